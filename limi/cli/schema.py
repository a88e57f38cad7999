"""`limi schema`: infer a table's schema and write it as TOML to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from limi.cli import _console

__all__ = ["schema"]


def schema(
    table: Annotated[str, Argument(help="CSV or Parquet file, or a name of `limi list datasets`.")],
    out: Annotated[
        Path | None, Option(help="TOML file to write; standard output if absent.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Infer what the columns of a table may hold, as TOML to edit and give to --schema."""
    from limi import data
    from limi.cli._tables import is_known
    from limi.system import writing
    from limi.table import files, schema_files

    place = None if out is None else writing.place(out, replace=force)
    known = is_known(table)
    inferred = data.load(table).schema if known else files.infer(files.read(table))
    words = schema_files.dump(inferred)
    if place is None:
        _console.print_text(words)
        return
    writing.write(place, words)
    _console.out.print(f"Written: {out} ({len(inferred)} columns)")
