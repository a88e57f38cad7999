"""Models behind an address: one client, one memory of answers, one count of what was sent.

A kind of model says how rows become a request and how an answer reads (`limi.models`); whatever
travels goes through `exchange.Exchange`.
"""
