"""Speed and memory of the oracle, one JSON line per figure.

    python benchmarks/check.py

Ratios are taken within this run: the batched check against the row-by-row loop of the research
programs (one model call a row and protected value), and against bare `score` calls on the
expanded matrix.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

from lab import models as benchmark
from limi import data
from limi.models.target import bind
from limi.search.check import MAX_BATCH, check_rows
from limi.table.frames import Codec
from limi.table.rows import uniform


def report(name: str, value: float, bar: float, *, at_least: bool) -> None:
    ok = value >= bar if at_least else value <= bar
    print(json.dumps({"name": name, "value": round(value, 3), "bar": bar, "ok": ok}), flush=True)


def target(kind: str, protected: str):
    census = data.load("census")
    codec = Codec.learn(census.frame, census.schema.protect([protected]))
    return bind(benchmark.train("census", kind), codec)


def best(seconds_of, repeats: int = 5) -> float:
    return min(seconds_of() for _ in range(repeats))


def timed(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def loop(score, schema, rows) -> None:
    """One model call a row and protected value, until the first flip, as published."""
    for row in rows:
        decided = score(row[None])[0] > 0.5
        for values in schema.combinations:
            twin = row[None].copy()
            twin[0, schema.protected_index] = values
            if (score(twin)[0] > 0.5) != decided:
                break


def against_the_loop(kind: str, bar: float, n_loop: int, n_batch: int) -> None:
    asked = target(kind, "age")
    schema = asked.codec.schema
    rows = uniform(schema, n_batch, np.random.default_rng(0))
    slow = timed(lambda: loop(asked.score, schema, rows[:n_loop])) / n_loop
    fast = best(lambda: timed(lambda: check_rows(asked.score, schema, rows)), 3) / n_batch
    report(
        f"check {kind} census age: times the rows/s of the loop", slow / fast, bar, at_least=True
    )
    print(json.dumps({"name": f"check {kind} census age: rows/s", "value": round(1 / fast)}))


def against_bare_scores(protected: str) -> None:
    asked = target("dnn", protected)
    schema = asked.codec.schema
    rows = uniform(schema, 200_000, np.random.default_rng(0))
    combinations = schema.combinations
    expanded = np.repeat(rows, len(combinations), axis=0)
    expanded[:, schema.protected_index] = np.tile(combinations, (len(rows), 1))
    # In batches of the same size as the oracle's: one huge call would only be slower.
    size = MAX_BATCH // len(combinations) * len(combinations)
    parts = [expanded[start : start + size] for start in range(0, len(expanded), size)]
    bare, ours = [], []
    for _ in range(5):  # taken in turns, so that a busy machine slows both
        bare.append(timed(lambda: [asked.score(part) for part in parts]))
        ours.append(timed(lambda: check_rows(asked.score, schema, rows)))
    name = f"oracle against bare score calls, dnn census {protected}"
    report(name, min(ours) / min(bare), 1.3, at_least=False)


def memory() -> None:
    """Peak memory of a fresh process that checks a million rows under nine protected values."""
    code = "import benchmarks.check as c; c.million()"
    subprocess.run([sys.executable, "-c", code], check=True)


def million() -> None:
    asked = target("dnn", "age")
    rows = uniform(asked.codec.schema, 1_000_000, np.random.default_rng(0))
    start = time.perf_counter()
    checked = check_rows(asked.score, asked.codec.schema, rows)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report("peak memory, 1 million rows x 9 values, GB", peak, 1.5, at_least=False)
    print(json.dumps({"name": "1 million rows x 9 values: seconds", "value": round(seconds, 2)}))
    assert checked.queries <= 9_000_000


if __name__ == "__main__":
    against_the_loop("dnn", 50, 300, 100_000)
    against_the_loop("rf", 100, 60, 20_000)
    against_bare_scores("age")
    against_bare_scores("sex")
    memory()
