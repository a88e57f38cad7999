"""LIMI and the guided search: speed, memory, findings and naturalness, one JSON line per figure.

    python benchmarks/limi_search.py [speed | boundary | memory | counts | thrift | guided |
                                      preset | million | gpu]

Without a name all but the long ones (`guided`, `preset`, `million`: over half an hour together on a
busy machine); the study `queries` has most of what they measure. Ratios are taken within this run.
MEPS is measured where LIMI_DATA names its folder.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

import limi
from lab import models as benchmark
from limi import data, generators
from limi.methods.limi import LIMI
from limi.metrics.naturalness import average_tabular_naturalness
from limi.metrics.representative import representative
from limi.models.target import bind
from limi.search import boundary
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.frames import Codec

BENCHMARKS = [
    ("census", "sex"),
    ("census", "race"),
    ("census", "age"),
    ("credit", "sex"),
    ("credit", "age"),
    ("bank", "age"),
    ("meps", "sex"),
]


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def known(table):
    return table != "meps" or "LIMI_DATA" in os.environ


def problem(table, kind, protected):
    known_table = data.load(table)
    codec = Codec.learn(known_table.frame, known_table.schema.protect([protected]))
    target = bind(benchmark.train(table, kind), codec)
    return target, codec.encode(known_table.frame)


def fitted(rows, schema):
    return generators.get("trees").fit(rows, schema, np.random.default_rng(0))


def loop(score, schema, rows):
    """Seconds of the published check: one call a row and value, until the first flip."""
    start = time.perf_counter()
    for row in rows:
        decided = score(row[None])[0] > 0.5
        for values in schema.combinations:
            twin = row[None].copy()
            twin[0, schema.protected_index] = values
            if (score(twin)[0] > 0.5) != decided:
                break
    return time.perf_counter() - start


def speed():
    for kind, n_latents, n_loop, bar in (
        ("dnn", 1_000_000, 1_500, 40),
        ("rf", 1_000_000, 1_500, 100),
    ):
        target, rows = problem("census", kind, "sex")
        schema = target.codec.schema
        start = time.perf_counter()
        task = Task(schema, target.score, rows, generator=fitted(rows, schema))
        with first_batch() as candidates:
            ran = run(LIMI(n_latents=n_latents), task, Budget(), 0)
        seconds = time.perf_counter() - start
        if kind == "dnn":
            report(
                "limi census sex dnn, 1 M latents, fit included: seconds",
                seconds,
                15,
                at_least=False,
            )
        report(f"limi census sex {kind}, {n_latents:,} latents: findings", len(ran.findings))
        per_second = len(ran.findings) / seconds
        report(f"limi census sex {kind}: findings/s, all included", per_second)
        # Candidates of the search itself, spread over its first batch. The loop's clock holds
        # its checks alone, so rows per second compare as findings per second do.
        chosen = candidates[0][:: max(1, len(candidates[0]) // n_loop)][:n_loop]
        slow = loop(target.score, schema, chosen) / len(chosen)
        whole = ran.seconds / ran.findings.rows_checked
        name = f"limi census sex {kind}: times the loop's findings/s"
        report(f"{name}, labels, boundary and decoding in our time alone", slow / whole, bar)
        start = time.perf_counter()
        check_rows(target.score, schema, candidates[0])
        fast = (time.perf_counter() - start) / len(candidates[0])
        report(f"{name}, checks of the same candidates alone", slow / fast, bar)


@contextmanager
def first_batch():
    """A list that will hold the first batch of rows that a session is asked to check."""
    kept, check = [], Session.check_kept

    def record(session, rows):
        if not kept:
            kept.append(rows)
        return check(session, rows)

    Session.check_kept = record
    try:
        yield kept
    finally:
        Session.check_kept = check


def boundary_speed():
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    latents = rng.normal(size=(100_000, 230)).astype(np.float32)
    favorable = latents @ rng.normal(size=230) + rng.normal(size=100_000) * 8 > 0
    start = time.perf_counter()
    ours = boundary.fit(latents, favorable)
    mine = time.perf_counter() - start
    start = time.perf_counter()
    theirs = LinearSVC(dual=False).fit(latents, favorable)
    slow = time.perf_counter() - start
    report("boundary 100,000 x 230: seconds", mine)
    report("boundary 100,000 x 230: times liblinear", slow / mine, 3)
    cosine = ours.normal @ theirs.coef_[0] / np.linalg.norm(theirs.coef_)
    report("boundary 100,000 x 230: cosine with liblinear", cosine, 0.9999)


def memory():
    for n in (1_000_000, 10_000_000):
        code = f"import benchmarks.limi_search as b; b.peak({n})"
        subprocess.run([sys.executable, "-c", code], check=True)


def peak(n_latents):
    target, rows = problem("census", "dnn", "sex")
    schema = target.codec.schema
    task = Task(schema, target.score, rows, generator=fitted(rows, schema))
    ran = run(LIMI(n_latents=n_latents), task, Budget(), 0)
    peaked = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = ran.findings.all()
    keys = 8 * 3 * ran.findings.rows_checked
    ledger = (keys + 2 * found.rows.nbytes + 40 * len(found)) / 2**30
    bar = 2.0 if n_latents == 1_000_000 else None
    report(f"limi census sex, {n_latents:,} latents: peak GB", peaked, bar, at_least=False)
    report(f"limi census sex, {n_latents:,} latents: of it ledger and keys, GB", ledger)


def counts():
    for table, protected in filter(lambda b: known(b[0]), BENCHMARKS):
        known_table = data.load(table)
        result = limi.audit(
            benchmark.train(table, "dnn"),
            known_table.frame,
            protected=[protected],
            target=known_table.target,
            schema=known_table.schema,
            method=LIMI(n_latents=200_000),
            max_rows=None,
        )
        name = f"limi {table} {protected}, trees, 200,000 latents"
        natural = {name: like.value for name, like in result.summary.naturalness.items()}
        report(f"{name}: findings", result.summary.findings)
        report(f"{name}: IF_o", result.rates["real"].estimate)
        ceiling = natural.get("ceiling")
        report(
            f"{name}: ATN of findings", natural["findings"], ceiling and round(ceiling - 0.02, 4)
        )
        report(f"{name}: ATN of representative findings", natural["representative"], ceiling)


def thrift():
    """One value after another until a flip is seen, against all values at once."""
    for table, protected in (("census", "race"), ("census", "age"), ("credit", "age")):
        target, rows = problem(table, "dnn", protected)
        schema = target.codec.schema
        generator = fitted(rows, schema)
        for method in ("natural", "guided"):
            found = {}
            for asked, budget in (
                ("one by one", Budget(max_queries=20_000)),
                ("at once", Budget(max_rows=20_000 // len(schema.combinations))),
            ):
                task = Task(schema, target.score, rows, generator=generator)
                ran = run(limi.methods.parse(method), task, budget, 0)
                found[asked] = len(ran.findings) / ran.queries
            name = f"{method} {table} {protected} dnn, 20,000 queries"
            gain = found["one by one"] / found["at once"]
            report(f"{name}: findings per query, values one by one in times of all at once", gain)


def guided():
    for kind in ("dnn", "rf"):
        for table, protected in filter(lambda b: known(b[0]), BENCHMARKS):
            per_thousand(table, protected, kind, (1_000, 10_000, 100_000))


def preset():
    """The preset of `guided` that gives up findings for naturalness."""
    for table, protected in filter(lambda b: known(b[0]), BENCHMARKS):
        per_thousand(table, protected, "dnn", (10_000, 100_000), ["preset=natural"])


def million():
    for table, protected in filter(lambda b: known(b[0]), BENCHMARKS):
        per_thousand(table, protected, "dnn", (1_000_000,))


def per_thousand(table, protected, kind, budgets, settings=()):
    target, rows = problem(table, kind, protected)
    schema = target.codec.schema
    generator = fitted(rows, schema)
    flipping = rows[check_rows(target.score, schema, rows).flips]
    ceiling = round(average_tabular_naturalness(rows, flipping, schema).score, 4)
    for queries in budgets:
        name = f"{table} {protected} {kind}, {queries:,} queries" + "".join(
            f", {setting}" for setting in settings
        )
        found = {}
        for method in ("guided", "limi", "natural", "themis"):
            task = Task(schema, target.score, rows, generator=generator)
            start = time.perf_counter()
            chosen = limi.methods.parse(method, settings if method == "guided" else ())
            ran = run(chosen, task, Budget(max_queries=queries), 0)
            found[method] = 1000 * len(ran.findings) / max(ran.queries, 1)
            report(f"{method} {name}: findings per thousand", found[method])
            if method == "guided":
                report(f"guided {name}: seconds", time.perf_counter() - start)
                mine = ran.findings.all().rows
        best = max(found["limi"], found["natural"])
        bar = 2 if queries >= 10_000 else None
        report(f"guided {name}: times limi or natural", found["guided"] / best, bar)
        for n in (None, min(len(rows), len(mine) // 4)):
            chosen = representative(rows, mine, schema, n, np.random.default_rng(0))
            likeness = average_tabular_naturalness(rows, mine[chosen], schema).score
            name_of = f"guided {name}: ATN of {len(chosen):,} representative findings"
            report(name_of, likeness, ceiling)


def gpu():
    """What `benchmarks._limi_gpu` measures, where there is a GPU."""
    import torch

    if not torch.cuda.is_available():
        print(json.dumps({"name": "LIMI on a GPU", "skipped": "this machine has none"}), flush=True)
        return
    subprocess.run([sys.executable, "-m", "benchmarks._limi_gpu"], check=True)


PARTS = {
    "speed": speed,
    "boundary": boundary_speed,
    "memory": memory,
    "counts": counts,
    "thrift": thrift,
    "guided": guided,
    "preset": preset,
    "million": million,
    "gpu": gpu,
}

LONG = ("guided", "preset", "million")

if __name__ == "__main__":
    for part in sys.argv[1:] or (name for name in PARTS if name not in LONG):
        PARTS[part]()
