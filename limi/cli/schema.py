"""`limi schema`: infer a table's schema and write it as TOML to edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from limi.cli import _console
from limi.cli._apart import Writes
from limi.cli._options import TableFile

__all__ = ["schema"]

_NO_TARGET = (
    "No --target was named, so rules may mention the column that the model decides. Such rules "
    "have no effect on a test."
)


def schema(
    table: TableFile,
    out: Annotated[
        Path | None, Option(help="TOML file to write. Default: standard output."), Writes()
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    mine: Annotated[
        bool,
        Option(
            "--mine",
            help="Suggest rules that the rows keep, with counts; this takes a few seconds.",
        ),
    ] = False,
    protected: Annotated[
        list[str] | None,
        Option(help="Protected column to record and to find roles for. Repeatable."),
    ] = None,
    target: Annotated[
        str | None,
        Option(help="Column the model predicts; it and rules about it are left out."),
    ] = None,
) -> None:
    """Infer what the columns of a table may hold, as TOML to edit and pass to --schema."""
    from limi import data
    from limi.cli._tables import check_target, is_known, set_aside
    from limi.system import writing
    from limi.table import files, mining, schema_files
    from limi.table.frames import Codec

    place = None if out is None else writing.place(out, replace=force)
    if is_known(table):
        known = data.load(table)
        frame, inferred = known.frame, known.schema
    else:
        frame = files.read(table)
        for note in files.notes_of(frame):
            _console.err.print(f"Note: {note}.", soft_wrap=True)
        if target is not None:
            check_target(table, frame, target)
        inferred = files.infer(frame, exclude=() if target is None else (target,))
    if protected:
        inferred = inferred.protect(protected)
    inferred, aside = set_aside(frame, inferred)
    found = None
    if mine:
        rows = Codec.learn(frame, inferred).encode(frame)
        found = mining.mine(inferred, rows, inferred.protected)
        if target is None and not is_known(table):
            found = replace(found, caution=_NO_TARGET)
    words = schema_files.dump(inferred, found, {name: seen.said for name, seen in aside.items()})
    if place is None:
        _console.print_text(words)
        return
    writing.write(place, words)
    ignored = f"; {len(aside)} set aside as dates or identifiers" if aside else ""
    _console.out.print(f"Written: {out} ({len(inferred)} columns{ignored})")
