"""Options that several commands have: the same name, the same words."""

from __future__ import annotations

from typing import Annotated

from typer import Option

__all__ = [
    "AsJson",
    "Constraints",
    "DecisionRule",
    "FavorableLabels",
    "Fill",
    "Rename",
    "Trust",
    "TrustPickle",
]

AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]

Constraints = Annotated[
    list[str] | None,
    Option(
        "--constraint",
        metavar="RULE",
        help="Rule that every row and every partner keeps, beside those of the schema: "
        "'hours <= 7 * 24'. Repeatable.",
    ),
]

DecisionRule = Annotated[
    str | None,
    Option(
        "--decision",
        metavar="RULE",
        help="What a favorable decision is, where not the model itself decides: 'score > 0.3'.",
    ),
]

FavorableLabels = Annotated[
    str | None,
    Option("--favorable", help="Label that people want; of more than two, several: A,B."),
]

Rename = Annotated[
    list[str] | None,
    Option(
        metavar="OLD=NEW",
        help="Column of the run that the newer table calls otherwise. Repeatable.",
    ),
]

Fill = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN=VALUE",
        help="Value that people of the run get in a column which they lacked. Repeatable.",
    ),
]

TrustPickle = Annotated[
    bool, Option("--trust-pickle", help="Open a pickle or joblib file, which can run any code.")
]

Trust = Annotated[
    list[str] | None, Option(metavar="TYPE", help="Type to trust in a skops file. Repeatable.")
]
