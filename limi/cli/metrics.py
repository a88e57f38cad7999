"""`limi metrics`: what a finished run measured, and how to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import RUN_FILES
from limi.cli._options import AsJson

__all__ = ["metrics"]


def metrics(
    folder: Annotated[Path, Argument(metavar="RUN", help="Run folder."), RUN_FILES],
    volume: Annotated[
        int | None,
        Option(help="People the model decides about, to say how many of them would flip."),
    ] = None,
    privileged: Annotated[
        list[str] | None,
        Option(
            metavar="COL=VALUE",
            help="Group to compare the others with, such as sex=Male or age=30-90, or 'lowest' "
            "for the paper's split. Repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every metric of a finished run, with a line on how to read it."""
    import io

    from rich.console import Console

    from limi.audits.run_folder import read_schema, read_summary, reading
    from limi.errors import CorruptStore
    from limi.metrics import collect
    from limi.metrics.privileged import Privileged, is_lowest, parse
    from limi.report import text

    summary = read_summary(folder)
    if not summary.metrics:
        raise CorruptStore(f"the run in {str(folder)!r} has no metrics; run the test again")
    schema = read_schema(folder)
    # Read here, where a mistake is the user's; below it would be the file's.
    chosen: Privileged | None = privileged or None
    if chosen is not None and not is_lowest(chosen):
        chosen = parse(schema, chosen)
    with reading("summary", folder):
        tree = collect.answer_request(summary.all_metrics, schema, volume=volume, privileged=chosen)
        # Drawn once before anything is shown: a damaged file must not be shown half-way.
        text.print_metrics(tree, Console(file=io.StringIO()))
    if as_json:
        _console.print_json(tree)
    else:
        text.print_metrics(tree, _console.out)
