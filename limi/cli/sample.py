"""`limi sample`: draw rows from a saved generator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import Reads, Writes
from limi.cli._options import AsJson

if TYPE_CHECKING:
    import numpy as np

    from limi.generators import Generator
    from limi.types import Rows

__all__ = ["sample"]

_MOST = 1_000_000_000
_AT_ONCE = 1 << 16  # rows, so that memory does not grow with their number


def sample(
    file: Annotated[Path, Argument(help="Generator file of `limi fit`."), Reads("the generator")],
    out: Annotated[Path, Option(help="Parquet or CSV file to write."), Writes()],
    n: Annotated[int, Option("-n", "--rows", help="Rows to draw.")] = 1000,
    seed: Annotated[int, Option(help="Same seed, same rows.")] = 0,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw rows from a saved generator."""
    import numpy as np

    from limi import generators
    from limi.errors import InvalidInput, spell
    from limi.search.budget import check_seed
    from limi.system import writing
    from limi.table import sheets

    check_seed(seed)
    if not 1 <= n <= _MOST:
        raise InvalidInput(f"--rows is {n:,}; draw between 1 and {_MOST:,} rows")
    if out.suffix not in (".parquet", ".csv"):
        raise InvalidInput(f"{str(out)!r} must end in .parquet or .csv")
    place = writing.place(out, replace=force)
    made = generators.load(file)
    rng = np.random.default_rng(seed)
    parts = _draw(made, n, rng)
    as_csv = out.suffix == ".csv"
    put = sheets.write_csv if as_csv else sheets.write_parquet
    writing.write(place, lambda file: put(file, made.schema, parts))
    spelled = sheets.formulas(made.schema) if as_csv else []
    if spelled:
        _console.err.print(
            "Text that a spreadsheet would run as a formula now starts with a ', in "
            f"{spell(spelled)}; a .parquet file keeps it unchanged."
        )
    if as_json:
        told = {"file": str(out), "rows": n, "seed": seed, "generator": made.kind}
        _console.print_json(told | {"guarded": spelled})
    else:
        _console.out.print(f"Written: {out} ({n:,} rows)")


def _draw(made: Generator, n: int, rng: np.random.Generator) -> Iterator[Rows]:
    """n rows in parts, so that memory does not grow with their number."""
    from limi import generators

    enforcer = made.schema.enforcer
    if enforcer.constraints:
        for part in generators.draws(made, n, rng):
            yield part.rows[:n]
            n -= len(part.rows)
        return
    for start in range(0, n, _AT_ONCE):
        yield made.decode(made.sample_latents(min(_AT_ONCE, n - start), rng))
