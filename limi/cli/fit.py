"""`limi fit`: fit a generator to a table, and say how well it imitates it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from typer import Option

from limi.cli import _console
from limi.cli._apart import Reads, Writes
from limi.cli._options import AsJson, Constraints, FitRows, SchemaFile, TableFile
from limi.defaults import DEFAULT_GENERATOR

if TYPE_CHECKING:
    from limi.table.schema import Schema
    from limi.types import Rows

__all__ = ["fit"]

_MOST_JUDGED = 20_000


def _files(out: Path) -> Iterator[tuple[str, Path]]:
    yield "--out", out
    yield "--out", _page(out)


def _page(out: Path) -> Path:
    """The page of a generator, beside its file."""
    return Path(f"{out}.html")


def fit(
    table: TableFile,
    out: Annotated[Path, Option(help="File to keep the generator in."), Writes(_files)],
    generator: Annotated[
        str, Option(help="`limi list generators`."), Reads("the generator")
    ] = DEFAULT_GENERATOR,
    target: Annotated[str | None, Option(help="Label column, which is left out.")] = None,
    schema: SchemaFile = None,
    constraint: Constraints = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Setting of the generator. Repeatable."),
    ] = None,
    fit_rows: FitRows = None,
    held_out: Annotated[float, Option(help="Share of rows to hold out and judge it by.")] = 0.2,
    seed: Annotated[int, Option(help="Same seed, same generator.")] = 0,
    device: Annotated[
        str, Option(help="cpu, cuda, or auto: cuda if the generator can use it.")
    ] = "auto",
    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a generator to a table; print how natural its rows are and draw them beside real ones."""
    import numpy as np

    from limi import generators
    from limi.cli._tables import features
    from limi.errors import InvalidInput
    from limi.gpu.place import choose_device
    from limi.report import marginals
    from limi.search.budget import check_seed
    from limi.system import writing

    place = writing.place(out, replace=force)
    page = writing.place(_page(place), replace=force)
    check_seed(seed)
    if not 0 <= held_out <= 0.5:
        raise InvalidInput(f"held-out is {held_out}; it must lie between 0 and 0.5")
    chosen = generators.read_settings_of(generator, settings or ())
    where = choose_device(device, None, generator)
    known, rows, notes = features(table, target, schema, constraint, fit_rows)
    for note in notes:
        _console.err.print(f"Note: {note}.", soft_wrap=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    n_kept = int(len(rows) * held_out)
    training, kept = rows[order[n_kept:]], rows[order[:n_kept]]
    start = time.perf_counter()
    with _console.steps(f"fitting {generator}") as on_step:
        made = generators.fit(
            generator, training, known, rng, settings=chosen, device=where, on_step=on_step
        )
    seconds = time.perf_counter() - start
    judged = {
        "generator": generator,
        "table": table,
        "rows": len(training),
        "columns": len(known),
        "seconds": round(seconds, 3),
        **_judge(made, known, training, kept, rng),
        "file": str(out),
        "page": f"{out}.html",
    }
    drawn, _ = generators.draw(made, min(len(rows), _MOST_JUDGED), rng)
    shown_page = marginals.render(f"{generator} on {table}", known, rows, drawn, judged)
    writing.write_all({page: shown_page, place: generators.content(made)})
    if as_json:
        _console.print_json(judged)
        return
    shown = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, value in judged.items():
        shown.add_row(
            name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
        )
    _console.out.print(shown)


def _judge(
    made: Any, schema: Schema, training: Rows, kept: Rows, rng: Any
) -> dict[str, float | None]:
    """Naturalness against the training rows; copies and two-sample test against held-out ones."""
    from limi import generators
    from limi.metrics._enough import FEWEST_TO_JUDGE
    from limi.metrics.naturalness import (
        average_tabular_naturalness,
        copy_shares,
        two_sample_auc,
    )

    real = training[:_MOST_JUDGED]
    drawn, accepted = generators.draw(made, len(real), rng)
    figures: dict[str, float | None] = {
        "naturalness": round(average_tabular_naturalness(real, drawn, schema).score, 4)
    }
    if schema.rules.constraints:
        figures["kept_rules"] = round(accepted, 4)
    if len(kept) >= FEWEST_TO_JUDGE:
        copies = copy_shares(training, kept, drawn, schema)
        figures |= {
            "copies_generated": round(copies.generated, 4),
            "copies_held_out": round(copies.held_out, 4),
            "two_sample_auc_boosted": round(two_sample_auc(kept, drawn, schema, rng), 4),
            "two_sample_auc_logistic": round(
                two_sample_auc(kept, drawn, schema, rng, classifier="logistic"), 4
            ),
        }
    return figures
