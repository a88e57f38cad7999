"""Workers: how much sooner the same findings are there, one JSON line per figure.

    python benchmarks/workers.py [forest | function | ray | many | million]

`forest` has 100 trees of scikit-learn, `function` is a Python function of some 50 microseconds
a row; both are searched by LIMI over census, and the digest of the findings must be the same for
any number of workers. `many` is the forest with 1, 4, 8 and 16 workers. `million` has the network
and the forest of the benchmarks, a million latents and default settings, and the share of the time
that the model alone would take. A process has one thread.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hashlib
import json
import time

import numpy as np

import limi
from limi import data
from limi.methods.limi import LIMI
from limi.system.cores import n_cores


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 3)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def forest():
    from sklearn.ensemble import RandomForestClassifier

    table = data.load("census")
    frame = table.frame
    rows = frame.drop(columns=table.target).to_numpy(float)
    return RandomForestClassifier(100, random_state=0).fit(rows, frame[table.target]), 200_000


def function():
    def slow(frame):
        """Some 50 microseconds a row, in Python's own loop."""
        told = np.empty(len(frame))
        for place, row in enumerate(frame.to_numpy(float).tolist()):
            merit = 0.0
            for _ in range(55):
                for number, cell in enumerate(row):
                    merit += cell * (0.01 + 0.001 * number)
            told[place] = merit / 55
        sexes = frame["sex"].to_numpy(float)
        return 1 / (1 + np.exp(-(told + 0.3 * sexes - 1.5)))

    return slow, 20_000


def search(model, n_latents, **given):
    """Seconds of the search with its labels, and the digest of what was found."""
    table = data.load("census")
    start = time.perf_counter()
    result = limi.audit(
        model,
        table.frame,
        protected=["sex"],
        target=table.target,
        schema=table.schema,
        method=LIMI(n_latents=n_latents, n_labelled=min(n_latents, 20_000)),
        max_rows=None,
        rate_rows=0,
        **given,
    )
    whole = time.perf_counter() - start
    found = result.found
    digest = hashlib.sha256(b"".join(a.tobytes() for a in (found.rows, found.score, found.partner)))
    spent = {name: told["seconds"] for name, told in result.summary.phases.items()}
    PHASES.clear()
    PHASES.update(spent)
    seconds = sum(spent[name] for name in ("labels", "search", "second_check"))
    return seconds, whole, digest.hexdigest(), len(found)


PHASES = {}  # seconds of the last search, by phase


def compare(name, made, counts, bar=None, **given):
    model, n_latents = made
    one = None
    for workers in counts:
        seconds, whole, digest, n = search(model, n_latents, workers=workers, **given)
        one = one or (seconds, whole, digest)
        label = f"{name}, {n_latents:,} latents, {n:,} findings, {workers} workers"
        report(f"{label}: seconds of labels, search and second check", seconds)
        report(f"{label}: seconds in all", whole)
        if workers != counts[0]:
            report(f"{label}: the same bytes", digest == one[2], 1)
            report(f"{label}: times as fast", one[0] / seconds, bar)
            report(f"{label}: efficiency", one[0] / seconds * counts[0] / workers)


def ray():
    made = forest()
    local, *_, digest, _ = search(*made, workers=2)
    there, *_, other, _ = search(*made, workers=2, cluster="ray")
    report("forest, 2 workers: the same bytes by Ray", digest == other, 1)
    report("forest, 2 workers: Ray's speed as a share of local", local / there, 0.9)


def million():
    """Seconds of everything between the table and checked findings; bars are half of before."""
    for kind, bar in (("dnn", 4.2), ("rf", 8.75)):
        table = data.load("census")
        for workers in (1, 2):
            start = time.perf_counter()
            result = limi.audit(
                f"benchmark:{kind}",
                table.frame,
                protected=["sex"],
                target=table.target,
                schema=table.schema,
                table_name="census",
                method="limi",
                max_rows=None,
                rate_rows=0,
                workers=workers,
            )
            spent = result.summary.phases
            names = ("generator", "labels", "search", "second_check")
            seconds = sum(spent[name]["seconds"] for name in names)
            words = f"census {kind}, 1,000,000 latents, {workers} workers"
            whole = time.perf_counter() - start
            report(
                f"{words}: seconds with generator, labels, second check",
                seconds,
                bar,
                at_least=False,
            )
            report(f"{words}: seconds in all", whole)
        target, rows = result.problem.target, result.problem.rows
        some = rows[np.arange(1 << 18) % len(rows)]
        target.score(some)
        start = time.perf_counter()
        target.score(some)
        alone = (time.perf_counter() - start) / len(some) * result.summary.queries
        report(f"census {kind}: seconds of the model alone, on these cores", alone)
        report(f"census {kind}: share of the model in the time of two workers", alone / seconds)


PARTS = {
    "million": million,
    "forest": lambda: compare("forest of 100 trees", forest(), (1, 2), 1.7),
    "function": lambda: compare("function of 50 us a row", function(), (1, 2), 1.7),
    "ray": ray,
    "many": lambda: compare(
        "forest of 100 trees", forest(), [n for n in (1, 4, 8, 16) if n <= n_cores()]
    ),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or [name for name in PARTS if name not in ("many", "million")]:
        PARTS[part]()
