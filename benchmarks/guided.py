"""What learning costs the guided search, and what it finds, one JSON line per figure.

    python benchmarks/guided.py [short | million | rare]

Each search runs twice in turn: with the learners as they are, and as they were at first (80 trees
of 31 leaves each, more examples, and a walk down each tree for every guess). Seconds are of the
processor, because walls of a shared machine tell little. `short` (the default, three minutes of a
processor) asks 100,000 queries, `million` a million (eight minutes). MEPS is measured where
LIMI_DATA names its folder. `rare` (three minutes) has targets of the open benchmark on which few
natural people flip: queries to the tenth finding, beside what natural rows need by their rate.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import sklearn.ensemble  # noqa: F401  (its import is not learning)

from lab import models as benchmark
from lab.kinds.bench import _Noting
from lab.targets.definitions import read
from lab.targets.making import make_problem
from limi import data, generators, methods
from limi.methods import _guessing
from limi.methods._guessing import Learners
from limi.models.target import bind
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.task import Task
from limi.table.frames import Codec
from limi.table.rows import distinct

SHORT = [
    ("census", "sex", "dnn"),
    ("bank", "age", "dnn"),
    ("credit", "sex", "dnn"),
    ("meps", "sex", "dnn"),
    ("census", "sex", "rf"),
]
RARE = [  # target, most queries, seeds
    ("census-sex.dnn-001pc", 30_000, 6),
    ("census-sex.dnn-01pc", 10_000, 6),
    ("credit-age.dnn-001pc", 60_000, 3),
    ("credit-age.dnn-01pc", 20_000, 3),
    ("bank-age.boosted-001pc", 60_000, 3),
    ("bank-age.boosted-01pc", 20_000, 3),
]
NATURAL = 300_000  # rows by which the rate is measured
MILLION = [("census", "sex", "dnn"), ("bank", "age", "dnn")]
TARGETS = Path(__file__).resolve().parent.parent / "lab" / "studies" / "bench" / "nearly-fair.toml"
AS_BEFORE = {"trees": 80, "leaves": 31}
PARTS_BEFORE = {
    "_FEWER_LEAVES": 1,
    "_FEW_ROWS": 0,
    "_PACE": 8.0,
    "_MOST_EXAMPLES": 120_000,
    "MOST_LEAVES": 0,  # so that trees are walked down
}


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


@contextmanager
def as_before():
    """Learners as they were before trees were larger, fewer and masked."""
    kept = {name: getattr(_guessing, name) for name in PARTS_BEFORE}
    for name, value in PARTS_BEFORE.items():
        setattr(_guessing, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(_guessing, name, value)


@contextmanager
def timed():
    """A counter of the processor seconds that learning and guessing take."""
    spent, fit, guess = Counter(), Learners.fit, Learners.guess

    def count(name, work):
        def counted(*given):
            start = time.process_time()
            try:
                return work(*given)
            finally:
                spent[name] += time.process_time() - start

        return counted

    Learners.fit, Learners.guess = staticmethod(count("fit", fit)), count("guess", guess)
    try:
        yield spent
    finally:
        Learners.fit, Learners.guess = staticmethod(fit), guess


def compare(table, protected, kind, queries, seeds):
    known = data.load(table)
    codec = Codec.learn(known.frame, known.schema.protect([protected]))
    target, rows = bind(benchmark.train(table, kind), codec), codec.encode(known.frame)
    schema = codec.schema
    generator = generators.get("trees").fit(rows, schema, np.random.default_rng(0))
    found, learning = Counter(), Counter()
    name = f"guided {table} {protected} {kind}, {queries:,} queries, {seeds} seeds"
    for seed in range(seeds):
        for when, settings in (("before", AS_BEFORE), ("now", {})):
            task = Task(schema, target.score, rows, generator=generator)
            with as_before() if when == "before" else nullcontext(), timed() as spent:
                start = time.process_time()
                ran = run(
                    methods.parse("guided", settings), task, Budget(max_queries=queries), seed
                )
                spent["all"] = time.process_time() - start
            found[when] += len(ran.findings)
            learning[when] += spent["fit"] + spent["guess"]
            for part in ("fit", "guess", "all"):
                learning[f"{part} {when}"] += spent[part]
    for when in ("before", "now"):
        report(f"{name}: findings {when}", found[when] / seeds)
        for part in ("fit", "guess", "all"):
            report(f"{name}: seconds {when}, {part}", learning[f"{part} {when}"] / seeds)
    report(f"{name}: findings in times of those before", found["now"] / found["before"], 0.98)
    share = learning["now"] / learning["before"]
    bar = 0.1 if queries >= 1_000_000 else None  # short searches are mostly small fits
    report(f"{name}: learning in times of that before", share, bar, at_least=False)


def short():
    for table, protected, kind in SHORT:
        if table != "meps" or "LIMI_DATA" in os.environ:
            compare(table, protected, kind, 100_000, 1)


def million():
    for table, protected, kind in MILLION:
        compare(table, protected, kind, 1_000_000, 1)


def rare():
    targets = {one.name: one for one in read(TARGETS).targets}
    with tempfile.TemporaryDirectory() as folder:
        for name, most, seeds in RARE:
            find_rare(name, make_problem(targets[name], Path(folder)), most, seeds)


def find_rare(name, problem, most, seeds):
    schema, target = problem.schema, problem.target
    generator = generators.fit("trees", problem.rows, schema, np.random.default_rng(0))
    drawn = generator.decode(generator.sample_latents(NATURAL, np.random.default_rng(1)))
    drawn = drawn[distinct(schema, drawn).first]
    rate = check_rows(target.score, schema, drawn).flips.mean()
    natural = 10 * len(schema.combinations) / rate
    reached = []
    for seed in range(seeds):
        noting = _Noting(methods.parse("guided", {}))
        task = Task(schema, target.score, problem.rows, generator=generator)
        run(noting, task, Budget(max_queries=most), seed)
        reached.append(noting.reached.get(10, 10 * most))
    report(f"{name}: percent of distinct natural people who flip", 100 * rate)
    report(f"{name}: queries of natural rows to the tenth finding, by the rate", natural)
    for words, value in (
        ("mean", np.mean(reached)),
        ("least", min(reached)),
        ("most", max(reached)),
    ):
        report(f"{name}: queries of guided to the tenth finding, {seeds} seeds, {words}", value)
    share = np.mean(reached) / natural
    report(f"{name}: in times of natural rows", share, 0.1, at_least=False)


PARTS = {"short": short, "million": million, "rare": rare}

if __name__ == "__main__":
    for part in sys.argv[1:] or ("short",):
        PARTS[part]()
