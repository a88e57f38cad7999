"""Hostile input to the command line: a corpus of named cases, and a generator of new ones.

`python -m tests.hostile` runs generated inputs by the thousand and counts how they end;
`python -m tests.hostile --case ID` runs one of them again and shows all that it left. Each input
runs in a process of its own, in a scratch folder of its own that holds files of somebody else.

case.py       what an input is: words, files, and what it may leave behind
draw.py       choices by seed that can be given again and shrunk
nasty.py      values, names and bytes that programs stumble over; edits of bytes, JSON and archives
material.py   sound tables, models, generators and run folders, made once, to be damaged
scratch.py    the folder, its sentinels, and what changed in it
trials.py     trials of model files, forked instead of started
server.py     a warmed-up process that forks one child for each input
verdict.py    how an input ended
kinds/        one file for each class of input: its named cases and its generator
"""
