"""The methods of the literature against their row-by-row twins, one JSON line per figure.

    python benchmarks/methods.py [twins | small | larger | rows | gradient | paper]

`twins` runs each black-box method and its twin of tests/naive with the same settings and the same
limit of rows on the census targets, and compares findings per second: once with small settings,
where a batch holds few rows, and once with larger ones. `rows` compares what SG finds with as many
rows in blocks and one by one, the order of its twin (a test holds the two to each other), because
one seed tells little: a run finds half or twice the mean. `gradient` compares the gradient methods,
whose twins get 40 of the 1,000 seeds that the methods walk in lock-step. `paper` runs the papers'
settings on one benchmark of each table.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import time
from functools import partial
from importlib import import_module

import numpy as np

from lab import models as benchmark
from limi import data, generators, methods
from limi.methods import neuronfair
from limi.methods._seeds import cluster_rows
from limi.models import gradients
from limi.models.target import bind
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.task import Task
from limi.table.frames import Codec

SMALL = {
    "aequitas": {"n_samples": 300, "exploit_steps": 60},
    "expga": {"n_rows": 20, "n_samples": 1000, "generations": 20},
    "sg": {"n_seeds": 40, "n_samples": 1000},
    "vbtx": {"n_samples": 1000},
}
LARGER = {
    "aequitas": {"n_samples": 5000, "exploit_steps": 100},
    "expga": {"n_rows": 300, "n_samples": 1000, "generations": 1000},
    "sg": {"n_seeds": 1000, "n_samples": 1000},
    "vbtx": {"n_samples": 1000},
}
SIZES = {"small": (SMALL, {"dnn": 2_000, "rf": 300}), "larger": (LARGER, {"dnn": 8000, "rf": 6000})}
BLACK_BOX = list(SMALL)
GRADIENT = ["adf", "eidig", "neuronfair", "maft"]


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 3)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def make(table, kind, protected):
    known = data.load(table)
    codec = Codec.learn(known.frame, known.schema.protect([protected]))
    target = bind(benchmark.train(table, kind), codec)
    return target, codec.encode(known.frame)


def task_of(target, rows, generator=None):
    slopes = gradients.of(target)
    return Task(target.codec.schema, target.score, rows, gradients=slopes, generator=generator)


def per_second(make_task, name, settings, max_rows):
    """Findings per second of whole runs, and findings of one; short runs are repeated."""
    seconds, runs = 0.0, 0
    while not runs or (seconds < 1 and runs < 5):
        task = make_task()
        start = time.perf_counter()
        ran = run(methods.parse(name, settings), task, Budget(max_rows=max_rows), 0)
        seconds += time.perf_counter() - start
        runs += 1
    return runs * len(ran.findings) / seconds, len(ran.findings)


def twins(sizes=tuple(SIZES)):
    for kind, size in itertools.product(("dnn", "rf"), sizes):
        target, rows = make("census", kind, "sex")
        schema = target.codec.schema
        every, limits = SIZES[size]
        for name, settings in every.items():
            twin = import_module(f"tests.naive.{name}")
            # The twin of SG grows a tree per row, so it gets as many rows as take a minute.
            limit = min(limits[kind], 1_000) if name == "sg" else limits[kind]
            method = methods.parse(name, settings)
            rng = np.random.default_rng(0)
            start = time.perf_counter()
            found = twin.findings(method, target.score, schema, rows, rng, max_tests=limit)
            slow = len(found) / (time.perf_counter() - start)
            # A pair of VBT-X is one test of its twin and two rows here.
            max_rows = 2 * limit if name == "vbtx" else limit
            task = partial(task_of, target, rows)
            fast, count = per_second(task, name, settings, max_rows)
            words = f"{name} census sex {kind}, {size}"
            report(f"{words}: findings", count)
            report(f"{words}: findings of the twin", len(found))
            report(f"{words}: findings/s", fast)
            report(f"{words}: findings/s of the twin", slow)
            if slow and count:
                report(f"{words}: times the twin's findings/s", fast / slow, 20)


def equal_rows(seeds=24):
    sizes = {100: SMALL, 300: SMALL, 1_000: LARGER}
    for kind, limit in itertools.product(("dnn", "rf"), sizes):
        target, rows = make("census", kind, "sex")
        found = {}
        for name, settings in (("in blocks", {}), ("one by one", {"block": 1})):
            method = methods.parse("sg", {**sizes[limit]["sg"], **settings})
            budget = Budget(max_rows=limit)
            ran = [run(method, task_of(target, rows), budget, seed) for seed in range(seeds)]
            found[name] = np.mean([len(one.findings) for one in ran])
            words = f"sg census sex {kind}, {limit:,} rows, {seeds} seeds"
            report(f"{words}: findings {name}", found[name])
        share = found["in blocks"] / found["one by one"]
        report(f"{words}: in blocks in times of one by one", share, 0.9)


def gradient_twins():
    target, rows = make("census", "dnn", "sex")
    schema, slopes = target.codec.schema, gradients.of(target)
    seeds = cluster_rows(task_of(target, rows), np.random.default_rng(0), n=40)
    arguments = {
        "adf": (target.score, slopes.loss_gradient, schema, seeds),
        "eidig": (target.score, slopes.output_gradient, schema, seeds),
        "neuronfair": (target.score, pair_slopes(slopes, schema, rows), schema, seeds),
        "maft": (target.score, schema, seeds),
    }
    for name in GRADIENT:
        settings = {"n_seeds": 1000, "exploit_steps": 20}
        if name == "neuronfair":
            settings["extra"] = 0.0  # its twin draws no further neurons
        fast, _ = per_second(partial(task_of, target, rows), name, settings, None)
        report(f"{name} census sex dnn: findings/s", fast)
        twin = import_module(f"tests.naive.{name}")
        explore_steps = methods.parse(name).explore_steps
        start = time.perf_counter()
        rng = np.random.default_rng(0)
        found = twin.search(*arguments[name], rng, explore_steps=explore_steps, exploit_steps=20)
        slow = len(found) / (time.perf_counter() - start)
        report(f"{name} census sex dnn: findings/s of the twin", slow)
        if slow:
            report(f"{name} census sex dnn: times the twin's findings/s", fast / slow, 30)


def pair_slopes(slopes, schema, rows):
    """What NeuronFair's twin climbs: one row and its partner, through neurons chosen before."""
    method = methods.parse("neuronfair")
    layer, biased = neuronfair.choose(
        slopes, schema, rows, method.layer, method.share, method.scoring
    )
    twin = import_module("tests.naive.neuronfair")

    def both(row, partner):
        return (
            twin.gradient(slopes, layer, biased, method.loss, row, partner),
            twin.gradient(slopes, layer, biased, method.loss, partner, row),
        )

    return both


def paper():
    for table, protected in (
        ("census", "sex"),
        ("credit", "sex"),
        ("bank", "age"),
        ("meps", "sex"),
    ):
        if table == "meps" and "LIMI_DATA" not in os.environ:
            continue
        target, rows = make(table, "dnn", protected)
        rng = np.random.default_rng(0)
        generator = generators.get("trees").fit(rows, target.codec.schema, rng)
        for name in [*BLACK_BOX, *GRADIENT]:
            start = time.perf_counter()
            budget = Budget(max_seconds=45)
            ran = run(methods.parse(name), task_of(target, rows, generator), budget, 0)
            seconds = time.perf_counter() - start
            words = f"{name} {table} {protected} dnn, the paper's settings"
            report(f"{words}: findings ({ran.stop})", len(ran.findings))
            report(f"{words}: seconds", seconds, 300, at_least=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    report("peak memory of all of these, GB", peak, 2.0, at_least=False)


PARTS = {
    "twins": twins,
    "small": lambda: twins(["small"]),
    "larger": lambda: twins(["larger"]),
    "rows": equal_rows,
    "gradient": gradient_twins,
    "paper": paper,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or ("twins", "rows", "gradient", "paper"):
        PARTS[part]()
