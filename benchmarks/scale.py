"""Large tables and many findings: time and memory; one JSON line per figure.

    python benchmarks/scale.py table     a table of ten million rows and fifty columns, end to end
    python benchmarks/scale.py fit-rows  naturalness by the number of rows a generator is fitted to
    python benchmarks/scale.py findings  memory of a search by the number of latents (--latents)

Memory is that of a process of its own, as the system counts it (peak resident set). Tables are
written into a scratch folder (`--scratch`, about 2 GB) and left there for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS, COLUMNS = 10_000_000, 50
ROOT = Path(__file__).resolve().parent.parent
PART = 500_000  # rows of a file
JOBS = [f"job {n}" for n in range(40)]
PLACES = [f"place {n}" for n in range(300)]
MODEL = """
import numpy as np

def approve(frame):
    lead = frame["age"] / 10 + frame["n0"] - frame["n1"] + (frame["sex"] == "M") * 0.4
    return 1 / (1 + np.exp(-(lead.to_numpy(dtype=float) - 5)))
"""


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows in which columns hang together: two hidden traits move most of them."""
    one, two = rng.normal(size=(2, n))
    sex = np.where(rng.random(n) < 0.5 + 0.1 * np.tanh(one), "M", "F")
    columns: dict[str, Any] = {
        "age": np.clip(np.rint(45 + 12 * one + 4 * rng.normal(size=n)), 18, 90).astype(np.int64),
        "sex": sex,
        "job": np.take(JOBS, np.clip(20 + 8 * two + 4 * rng.normal(size=n), 0, 39).astype(int)),
        "place": np.take(PLACES, (300 * rng.random(n) ** 2).astype(int)),
    }
    for number in range(COLUMNS - 5):
        mixed = one * np.cos(number) + two * np.sin(number) + rng.normal(size=n)
        if number % 3 == 0:
            columns[f"n{number}"] = mixed.round(2)
        elif number % 3 == 1:
            columns[f"n{number}"] = np.rint(10 * mixed).astype(np.int64)
        else:
            columns[f"n{number}"] = np.where(rng.random(n) < 0.05, np.nan, mixed)
    columns["ok"] = np.where(one + rng.normal(size=n) > 0, "yes", "no")
    return pd.DataFrame(columns)


def written(folder: Path, rows: int) -> Path:
    """The table as Parquet files, written once."""
    place = folder / f"people-{rows}"
    if not place.exists():
        draft = folder / f"people-{rows}.draft"
        draft.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, rows, PART)):
            rng = np.random.default_rng([7, number])
            part = people(min(PART, rows - start), rng)
            part.to_parquet(draft / f"part-{number:03}.parquet", row_group_size=100_000)
        draft.rename(place)
    return place


def measured(folder: Path, words: list[str]) -> tuple[float, float, str]:
    """Seconds and peak memory in GB of `limi` with these words, and what it printed."""
    start = time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "limi", *words], cwd=folder, env=env, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    said = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, said
    return time.perf_counter() - start, usage.ru_maxrss / 2**20, said


def table(folder: Path, rows: int) -> None:
    """`limi test` on a table that does not fit into memory."""
    place = written(folder, rows)
    (folder / "scale_model.py").write_text(MODEL)
    size = sum(path.stat().st_size for path in place.iterdir()) / 2**30
    words = ["test", str(place), "--model", "python:scale_model.py:approve", "--target", "ok"]
    words += ["--favorable", "yes", "--protected", "sex", "--json"]
    seconds, memory, said = measured(folder, words)
    summary = json.loads(said)
    name = f"{summary['n_rows']:,} rows x {COLUMNS} columns"
    report(f"{name}: GB on disk", size)
    report(f"{name}: seconds", seconds)
    report(f"{name}: peak GB", memory, 4.0)
    report(f"{name}: findings", summary["findings"])


def fit_rows(folder: Path, rows: int) -> None:
    """How natural rows are by the number of rows that the generator was fitted to."""
    from limi import generators
    from limi.metrics.naturalness import average_tabular_naturalness
    from limi.table.files import infer, read
    from limi.table.frames import Codec
    from limi.table.large import DEFAULT_FIT_ROWS

    frame = read(written(folder, rows), fit_rows=450_000)
    schema = infer(frame, exclude=("ok",))
    every = Codec.learn(frame, schema).encode(frame)
    del frame
    order = np.random.default_rng(0).permutation(len(every))
    judges, every = every[order[:50_000]], every[order[50_000:]]
    before = None
    for n in (25_000, 50_000, 100_000, 200_000, 400_000):
        start = time.perf_counter()
        made = generators.fit("trees", every[:n], schema, np.random.default_rng(1))
        seconds = time.perf_counter() - start
        drawn, _ = generators.draw(made, len(judges), np.random.default_rng(2))
        natural = average_tabular_naturalness(judges, drawn, schema).score
        report(f"fitted to {n:,} rows: seconds", seconds)
        report(f"fitted to {n:,} rows: naturalness", natural)
        if before is not None:
            bar = 0.005 if n > DEFAULT_FIT_ROWS else None  # of more rows than are drawn
            report(f"fitted to {n:,} rows: change of naturalness", abs(natural - before), bar)
        before = natural


def findings(folder: Path, _: int, latents: list[int]) -> None:
    """`limi test` of the census benchmark's network with more and more latents."""
    first = None
    for n in latents:
        words = [
            "test",
            "census",
            "--model",
            f"python:{ROOT / 'lab' / 'models.py'}:census_dnn",
            "--protected",
            "sex",
            "--json",
        ]
        words += ["--max-rows", str(4 * n), "--set", f"n_latents={n}", "--device", "cpu"]
        words += ["--out", f"found-{n}", "--force"]
        seconds, memory, said = measured(folder, words)
        summary = json.loads(said)
        name = f"{n:,} latents"
        report(f"{name}: findings", summary["findings"])
        report(f"{name}: seconds", seconds)
        for phase in ("search", "second_check"):
            report(f"{name}: seconds, {phase}", summary["phases"][phase]["seconds"])
        report(f"{name}: peak GB", memory)
        first = memory if first is None else first
        report(f"{name}: peak memory in times of {latents[0]:,} latents", memory / first, 1.1)


def report(name: str, value: float, most: float | None = None) -> None:
    """One line of a figure, and whether it is no more than its bar."""
    line: dict[str, Any] = {"name": name, "value": round(float(value), 4)}
    if most is not None:
        line |= {"bar": most, "ok": bool(value <= most)}
    print(json.dumps(line), flush=True)


PARTS: dict[str, Callable[..., None]] = {
    "table": table,
    "fit-rows": fit_rows,
    "findings": findings,
}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--latents", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "limi-scale")
    given = parser.parse_args()
    given.scratch.mkdir(parents=True, exist_ok=True)
    for name in given.parts or PARTS:
        more = {"latents": given.latents} if name == "findings" else {}
        PARTS[name](given.scratch, given.rows, **more)


if __name__ == "__main__":
    main()
