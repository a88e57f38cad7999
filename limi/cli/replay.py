"""`limi replay`: put the findings of a run to a newer model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, TABLE, Writes
from limi.cli._options import (
    AsJson,
    Cache,
    DecisionRule,
    Drop,
    FavorableLabels,
    Fill,
    Header,
    NewerSchema,
    Only,
    Rename,
    Returned,
    RunFolder,
    Timeout,
    Trust,
    TrustPickle,
    remote_of,
)

if TYPE_CHECKING:
    from limi.changes import Replay

__all__ = ["replay"]


def replay(
    folder: RunFolder,
    model: Annotated[
        str, Option(help="The newer model, as KIND:PLACE (`limi list models`)."), MODEL
    ],
    table: Annotated[
        str | None,
        Option(help="Table of the newer model, if its columns differ from those of the run."),
        TABLE,
    ] = None,
    schema: NewerSchema = None,
    rename: Rename = None,
    fill: Fill = None,
    favorable: FavorableLabels = None,
    output: Returned = None,
    decision: DecisionRule = None,
    drop: Drop = None,
    only: Only = None,
    row: Annotated[
        int | None, Option(help="Only this finding: its row in findings.parquet, from 0.")
    ] = None,
    out: Annotated[
        Path | None,
        Option(help="Parquet file to write: every finding and what became of it."),
        Writes(),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    cache: Cache = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Ask a newer model about the people that a run found: who still flips, and who does not?"""
    from limi.changes import replay as run_replay
    from limi.cli._tables import schema_for
    from limi.system import writing

    place = None if out is None else writing.place(_parquet(out), replace=force)
    told = run_replay(
        folder,
        model,
        table=table,
        schema=schema_for(table, schema),
        rename=rename or (),
        fill=fill or (),
        favorable=favorable,
        output=output,  # type: ignore[arg-type]
        decision=decision,
        drop=drop,
        only=only or (),
        trust_pickle=trust_pickle,
        trust=trust or (),
        remote=remote_of(header, None, cache, None, timeout),
        row=row,
        command=_console.command_line(),
    )
    if place is not None:
        writing.write(place, lambda file: _put(told, file))
    if as_json:
        _console.print_json(told.as_dict())
    else:
        _show(told, out)


def _parquet(out: Path) -> Path:
    from limi.errors import InvalidInput

    if out.suffix != ".parquet":
        raise InvalidInput(f"--out is {str(out)!r}; it must end in .parquet")
    return out


def _put(told: Replay, file: BinaryIO) -> None:
    told.findings.to_parquet(file, index=False)


def _show(told: Replay, out: Path | None) -> None:
    from rich.table import Table

    from limi.report import changes as page

    _console.out.print(page.sentence(told), soft_wrap=True)
    if not len(told):
        return
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(page.OUTCOME_HEADINGS):
        shown.add_column(heading, justify="left" if not place else "right")
    for line in page.outcomes(told):
        shown.add_row(*line)
    _console.out.print(shown)
    for words in (page.gaps(told), *page.columns(told), *page.unasked(told), *told.notes):
        if words:
            _console.out.print(words, soft_wrap=True)
    for words in page.shown_examples(told):
        _console.out.print(f"  {words}", soft_wrap=True)
    if out is not None:
        _console.out.print(f"Written: {out}", soft_wrap=True)
