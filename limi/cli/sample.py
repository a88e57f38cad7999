"""`limi sample`: draw rows from a saved generator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from limi.cli import _console

__all__ = ["sample"]


def sample(
    file: Annotated[Path, Argument(help="Generator file of `limi fit`.")],
    out: Annotated[Path, Option(help="Parquet or CSV file to write.")],
    n: Annotated[int, Option("-n", "--rows", help="Rows to draw.")] = 1000,
    seed: Annotated[int, Option(help="Same seed, same rows.")] = 0,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Draw rows from a saved generator."""
    import numpy as np

    from limi import files, generators
    from limi.errors import InvalidInput
    from limi.frames import plain_frame

    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it must be 0 or a positive whole number")
    if n < 1:
        raise InvalidInput(f"--rows is {n}; draw at least one row")
    if out.suffix not in (".parquet", ".csv"):
        raise InvalidInput(f"{str(out)!r} must end in .parquet or .csv")
    place = files.place(out, replace=force)
    made = generators.load(file)
    rows = made.decode(made.sample_latents(n, np.random.default_rng(seed)))
    frame = plain_frame(made.schema, rows)
    to_file = frame.to_csv if out.suffix == ".csv" else frame.to_parquet
    files.write(place, lambda file: to_file(file, index=False))
    if as_json:
        _console.print_json({"file": str(out), "rows": n, "seed": seed, "generator": made.kind})
    else:
        _console.out.print(f"Written: {out} ({n:,} rows)")
