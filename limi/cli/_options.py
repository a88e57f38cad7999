"""Options that several commands have: the same name, the same words."""

from __future__ import annotations

from typing import Annotated

from typer import Option

__all__ = ["AsJson", "Trust", "TrustPickle"]

AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]

TrustPickle = Annotated[
    bool, Option("--trust-pickle", help="Open a pickle or joblib file, which can run any code.")
]

Trust = Annotated[
    list[str] | None, Option(metavar="TYPE", help="Type to trust in a skops file. Repeatable.")
]
