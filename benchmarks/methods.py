"""The methods of the literature against their row-by-row twins, one JSON line a figure.

    python benchmarks/methods.py [twins | paper]

`twins` runs each black-box method and its twin of tests/naive with the same settings and the same
limit of rows on the census targets, and compares findings per second. The twins of the gradient
methods get 40 of the 1,000 seeds that the methods walk in lock-step. `paper` runs
the papers' settings on one benchmark of each table.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # this folder has a limi.py of its own

import json
import os
import resource
import time
from importlib import import_module

import numpy as np

from limi import data, generators, gradients, methods
from limi.budget import Budget
from limi.engine import run
from limi.frames import Codec
from limi.methods._seeds import clustered
from limi.models import benchmark
from limi.target import bind
from limi.task import Task

BLACK_BOX = {
    "aequitas": {"n_samples": 300, "exploit_steps": 60},
    "expga": {"n_rows": 20, "n_samples": 1000, "generations": 20},
    "sg": {"n_seeds": 40, "n_samples": 1000},
    "vbtx": {"n_samples": 1000},
}
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


def per_second(target, rows, name, settings, max_rows):
    start = time.perf_counter()
    ran = run(methods.parse(name, settings), task_of(target, rows), Budget(max_rows=max_rows), 0)
    return len(ran.findings) / (time.perf_counter() - start), len(ran.findings)


def twins():
    for kind, bar in (("dnn", 20), ("rf", 20)):
        target, rows = make("census", kind, "sex")
        schema = target.codec.schema
        for name, settings in BLACK_BOX.items():
            twin = import_module(f"tests.naive.{name}")
            limit = 2_000 if kind == "dnn" else 300
            start = time.perf_counter()
            method = methods.parse(name, settings)
            rng = np.random.default_rng(0)
            found = twin.findings(method, target.score, schema, rows, rng, max_tests=limit)
            slow = len(found) / (time.perf_counter() - start)
            fast, count = per_second(target, rows, name, settings, limit)
            report(f"{name} census sex {kind}: findings/s", fast)
            report(f"{name} census sex {kind}: findings/s of the twin", slow)
            if slow and count:
                report(f"{name} census sex {kind}: times the twin's findings/s", fast / slow, bar)
    gradient_twins()


def gradient_twins():
    target, rows = make("census", "dnn", "sex")
    schema, slopes = target.codec.schema, gradients.of(target)
    seeds = clustered(task_of(target, rows), np.random.default_rng(0), n=40)
    arguments = {
        "adf": (target.score, slopes.loss_gradient, schema, seeds),
        "eidig": (target.score, slopes.output_gradient, schema, seeds),
        "maft": (target.score, schema, seeds),
    }
    for name in GRADIENT:
        settings = {"n_seeds": 1000, "exploit_steps": 20}
        fast, _ = per_second(target, rows, name, settings, None)
        report(f"{name} census sex dnn: findings/s", fast)
        if name not in arguments:
            continue
        twin = import_module(f"tests.naive.{name}")
        start = time.perf_counter()
        rng = np.random.default_rng(0)
        found = twin.search(*arguments[name], rng, explore_steps=10, exploit_steps=20)
        slow = len(found) / (time.perf_counter() - start)
        report(f"{name} census sex dnn: findings/s of the twin", slow)
        if slow:
            report(f"{name} census sex dnn: times the twin's findings/s", fast / slow, 30)


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


PARTS = {"twins": twins, "paper": paper}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
