"""Options that several commands have: the same name, the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from limi.cli._apart import HEADERS, MODEL, RUN, TABLE, Reads, table_files

if TYPE_CHECKING:
    from limi.remote.options import Remote

__all__ = [
    "AsJson",
    "Cache",
    "Cluster",
    "Concurrency",
    "Constraints",
    "DecisionRule",
    "Drop",
    "FavorableLabels",
    "Fill",
    "Full",
    "Header",
    "Key",
    "LabelNames",
    "LabelOrder",
    "NewerSchema",
    "Only",
    "Price",
    "ProtectedFrom",
    "Redact",
    "Rename",
    "Returned",
    "RunFolder",
    "SchemaFile",
    "ShowPersonal",
    "TableFile",
    "TestedModel",
    "Trust",
    "TrustPickle",
    "Verbose",
    "Volume",
    "Workers",
    "redacted",
    "remote_of",
]

TableFile = Annotated[
    str, Argument(help="CSV or Parquet file, or a name of `limi list datasets`."), TABLE
]

TestedModel = Annotated[
    str, Option(help="Model to test, as KIND:PLACE (`limi list models`)."), MODEL
]

SchemaFile = Annotated[
    Path | None, Option(help="Schema of the table, as TOML."), Reads("the schema")
]

NewerSchema = Annotated[
    Path | None, Option(help="Schema of that table, as TOML."), Reads("the schema")
]

Returned = Annotated[
    str | None, Option("--output", help="What a Python function returns: label or score.")
]

RunFolder = Annotated[Path, Argument(metavar="RUN", help="Run folder of `limi test`."), RUN]

AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]

Drop = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN",
        help="Column that the model does not take, if limi cannot tell. Repeatable, or with "
        "commas.",
    ),
]

Only = Annotated[
    list[str] | None,
    Option(metavar="COLUMN,...", help="Columns that the model takes, instead of --drop."),
]

Redact = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN",
        help="Column to hide in everything that is written, in addition to those that look "
        "like names, addresses, phone numbers or identifiers. Repeatable.",
    ),
]

ShowPersonal = Annotated[
    bool, Option("--show-personal", help="Show columns that look like personal data.")
]

ProtectedFrom = Annotated[
    str | None,
    Option(metavar="FILE", help="Table with protected columns that the model's table lacks."),
    Reads("the protected table", table_files),
]

Key = Annotated[str | None, Option(help="Column that identifies people in both tables.")]

LabelNames = Annotated[
    str | None,
    Option(metavar="LABEL=NAME,...", help="What labels mean, for reports: 1=granted,0=refused."),
]

Volume = Annotated[
    int | None,
    Option(
        metavar="PEOPLE",
        help="People the model decides about per year, to say how many of them would flip.",
    ),
]

Full = Annotated[bool, Option("--full", help="Print the whole report instead of forty lines.")]

Verbose = Annotated[
    bool,
    Option("--verbose", help="Say what limi understood of every column, and how to change it."),
]

Constraints = Annotated[
    list[str] | None,
    Option(
        "--constraint",
        metavar="RULE",
        help="Rule that every row and every partner keeps, in addition to those of the schema: "
        "'hours <= 7 * 24'. Repeatable.",
    ),
]

DecisionRule = Annotated[
    str | None,
    Option(
        "--decision",
        metavar="RULE",
        help="What counts as a different decision: 'score > 0.3', class (any other class), "
        "'difference > 25', 'difference > 10 %', 'bands = 580, 670'.",
    ),
]

LabelOrder = Annotated[
    str | None,
    Option("--order", metavar="LABELS", help="Classes, the worst first: low,medium,high."),
]

FavorableLabels = Annotated[
    str | None,
    Option("--favorable", help="Label that people want; several with commas: A,B."),
]

Rename = Annotated[
    list[str] | None,
    Option(
        metavar="OLD=NEW",
        help="Column of the run that has another name in the newer table. Repeatable.",
    ),
]

Fill = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN=VALUE",
        help="Value for a column that the people of the run lack. Repeatable.",
    ),
]

TrustPickle = Annotated[
    bool,
    Option("--trust-pickle", help="Open a pickle or joblib file, although it can run any code."),
]

Trust = Annotated[
    list[str] | None, Option(metavar="TYPE", help="Type to trust in a skops file. Repeatable.")
]

Workers = Annotated[
    str | None,
    Option(
        metavar="N|auto",
        help="Processes that ask the model; auto for one per core. The findings are the same.",
    ),
]

Cluster = Annotated[
    str | None,
    Option(
        metavar="ray|ray://HOST:PORT",
        help="Use a Ray cluster: the one in RAY_ADDRESS or a local one (ray), or one at an "
        "address.",
    ),
]

Header = Annotated[
    list[str] | None,
    Option(
        metavar="'NAME: VALUE'",
        help="Header for every request to a remote model, with $NAME from the environment or "
        "@FILE: 'Authorization: Bearer $TOKEN'. Repeatable.",
    ),
    HEADERS,
]

Concurrency = Annotated[
    int | None, Option(help="Requests in flight to a remote model; 4 by default.")
]

Cache = Annotated[
    Path | None,
    Option(metavar="FILE", help="File that keeps the answers of a remote model, for all runs."),
    Reads("the cache"),
]

Timeout = Annotated[
    float | None,
    Option(
        metavar="SECONDS",
        help="Seconds to wait at most for an answer of a remote model; 60 by default, and less "
        "where its answers have been quicker.",
    ),
]

FitRows = Annotated[
    int | None,
    Option(
        help="Rows to draw from the table for the generator, rates and metrics. By default "
        "all, or 200,000 if the table has more than 100 million cells."
    ),
]

Price = Annotated[
    float | None, Option(help="Price of 1,000 queries; the report then states the cost.")
]


def redacted(columns: list[str] | None, show: bool) -> bool | list[str]:
    """Which columns are hidden, as `limi.audit` takes it."""
    from limi.errors import InvalidInput

    if columns and show:
        raise InvalidInput(
            "--redact hides columns and --show-personal hides none; give one of them"
        )
    return columns or not show


def remote_of(
    header: list[str] | None,
    concurrency: int | None,
    cache: Path | None,
    price: float | None,
    timeout: float | None,
) -> Remote | None:
    """How a model behind an address is asked; None where nothing is said of it."""
    from limi.remote.options import Remote

    if not header and all(given is None for given in (concurrency, cache, price, timeout)):
        return None
    usual = Remote()
    return Remote(
        headers=tuple(header or ()),
        concurrency=usual.concurrency if concurrency is None else concurrency,
        cache=cache,
        price=price,
        timeout=usual.timeout if timeout is None else timeout,
    )
