"""One audit of a wide table: where its seconds go. 500 columns by 20,000 rows unless told.

python benchmarks/wide.py [COLUMNS ROWS] [--profile]
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd

import limi


def make_table(columns: int, rows: int, seed: int = 0) -> pd.DataFrame:
    """Numbers, whole numbers and levels in turn, all of them related, and sex."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 6))
    cells: dict[str, object] = {}
    for place in range(columns - 1):
        column = hidden @ rng.normal(size=6) + rng.normal(size=rows)
        if place % 3 == 0:
            cells[f"c{place}"] = np.round(column, 2)
        elif place % 3 == 1:
            cells[f"c{place}"] = np.clip(np.round(2 * column), -9, 9).astype(int)
        else:
            levels = np.clip(np.round(column + 3), 0, 5).astype(int)
            cells[f"c{place}"] = np.array(list("abcdef"))[levels]
    cells["sex"] = np.array(["f", "m"])[rng.integers(0, 2, rows)]
    return pd.DataFrame(cells)


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:] if text != "--profile"]
    columns, rows = sizes or (500, 20_000)
    frame = make_table(columns, rows)
    numbers = [name for name in frame if frame[name].dtype.kind in "if"]
    weights = np.random.default_rng(1).normal(size=len(numbers)) / np.sqrt(len(numbers))

    def decide(given: pd.DataFrame) -> np.ndarray:
        score = given[numbers].to_numpy(float) @ weights + 0.5 * (given["sex"] == "f").to_numpy()
        return 1 / (1 + np.exp(-score))

    # Of the processor's time, which other programs change less than that of the clock.
    profile = cProfile.Profile(time.process_time)
    start, spent = time.perf_counter(), time.process_time()
    with profile if "--profile" in sys.argv else nullcontext():
        result = limi.audit(decide, frame, protected="sex")
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    name = f"{columns} columns by {rows:,} rows, {result.summary.findings:,} findings"
    bar = 120.0 * (columns / 500) * (rows / 20_000)
    figures: list[dict[str, Any]] = [
        {"name": f"{name}: seconds in all", "value": seconds, "bar": bar}
    ]
    figures[0]["ok"] = seconds <= bar
    figures.append({"name": f"{name}: processor seconds", "value": spent})
    for phase, told in result.summary.phases.items():
        figures.append({"name": f"{name}: seconds of {phase}", "value": told["seconds"]})
    for figure in figures:
        print(json.dumps(figure | {"value": round(float(figure["value"]), 1)}), flush=True)
    if "--profile" in sys.argv:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(40)


if __name__ == "__main__":
    main()
