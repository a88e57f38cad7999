"""LIMI and the gradient methods on a device, one JSON line per figure.

    python -m benchmarks._limi_gpu                      # all parts, on cuda if there is one
    python -m benchmarks._limi_gpu --pack problems/     # for a machine without pandas
    python -m benchmarks._limi_gpu --packed problems/ --parts speed boundary
    python -m benchmarks._limi_gpu --profile census sex

A `ctgan` a table is trained first and kept beside the problems, or the one kept there is taken.
`speed` times one million latents after a warm-up, median of nine runs, by three clocks: the search
with its findings still on the device; the same with their way into the ledger; and with the second
check of every finding on top. `paper` is the preset of that name, with the naturalness of
what it finds. `boundary` fits 100,000 latents of 230 numbers beside liblinear. `gradient` runs the
gradient methods at the papers' settings on the census network, there and on the CPU. `same`
compares findings of the device with those of the CPU. MEPS needs LIMI_DATA; see `limi datasets`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

try:
    import narwhals  # noqa: F401
except ImportError:  # packed problems need no frames
    sys.modules["narwhals"] = types.ModuleType("narwhals")

from lab import models as benchmark
from limi import generators, methods
from limi.audits.early_check import EarlyCheck
from limi.audits.verify import ask_again
from limi.gpu import place as device
from limi.methods.limi import LIMI
from limi.metrics.naturalness import average_tabular_naturalness
from limi.metrics.representative import representative
from limi.models import gradients
from limi.models.target import Target
from limi.search import boundary
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.streams import Stream
from limi.system.watch import Watch
from limi.table.frames import Codec
from limi.table.schema_files import dump, parse

BENCHMARKS = [
    ("census", "sex"),
    ("census", "race"),
    ("census", "age"),
    ("credit", "sex"),
    ("credit", "age"),
    ("bank", "age"),
    ("meps", "sex"),
]
TABLES = ("census", "credit", "bank", "meps")
GRADIENT = ("adf", "eidig", "neuronfair", "maft")
N_LATENTS = 1_000_000
REPEATS, FEWER = 9, 5
ALL_INCLUDED = {("census", "sex"): 0.2, ("bank", "age"): 0.4}  # seconds, with the second check


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def pack(folder):
    from limi import data

    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        known = data.load(name)
        rows = Codec.learn(known.frame, known.schema).encode(known.frame)
        np.savez_compressed(
            folder / f"{name}.npz",
            rows=rows.astype(np.float32),
            schema=dump(known.schema),
            **benchmark.train(name, "dnn").scorer.arrays(),
        )


class Problems:
    """Tables, networks and generators by name."""

    def __init__(self, folder, place):
        self.folder, self.place, self.made = folder, place, {}

    def target(self, table, protected):
        """A benchmark network as limi tests it, and the table's rows."""
        if self.folder is None:
            from limi import data
            from limi.models.target import bind

            known = data.load(table)
            codec = Codec.learn(known.frame, known.schema.protect([protected]))
            return bind(benchmark.train(table, "dnn"), codec), codec.encode(known.frame)
        kept = np.load(self.folder / f"{table}.npz")
        schema = parse(str(kept["schema"])).protect([protected])
        network = benchmark._Network.from_arrays(dict(kept))
        model = benchmark.BenchmarkModel(network, tuple(schema.names), None)
        # A network takes codes as they are, so how the frame kept its cells plays no part.
        return Target(model, Codec(schema, None, ())), kept["rows"].astype(np.float64)

    def generator(self, table):
        """The table's ctgan: kept in the folder, or trained now."""
        if table in self.made:
            return self.made[table]
        path = None if self.folder is None else self.folder / f"{table}.ctgan"
        if path is not None and path.exists():
            made = generators.load(path, device=self.place)
        else:
            target, rows = self.target(table, "sex" if table != "bank" else "age")
            schema = replace(target.codec.schema, protected=(), protected_codes=())
            start = time.perf_counter()
            rng = np.random.default_rng(0)
            made = generators.get("ctgan").fit(rows, schema, rng, device=self.place)
            report(f"ctgan {table}: fit seconds", time.perf_counter() - start)
            if path is not None:
                generators.save(made, path)
        self.made[table] = made
        return made

    def task(self, table, protected):
        """A task on the device, and the target as it was given."""
        target, rows = self.target(table, protected)
        there = device.place_target(target, self.place)
        generator = self.generator(table)
        here = device.join_on_device(there, generator)
        task = Task(target.codec.schema, there.score, rows, generator=generator, on_device=here)
        return task, target


def wait(place):
    if place.startswith("cuda"):
        torch.cuda.synchronize()


def search(method, task, place):
    """Seconds and findings of a search that leaves its findings on the device."""
    wait(place)
    start = time.perf_counter()
    rng = Stream.SEARCH.rng(0)
    n = 0
    for batch in method.probed(Session(task), task.on_device, rng):
        n += len(batch)
    wait(place)
    return time.perf_counter() - start, n


def clocks(method, problems, table, protected):
    task, target = problems.task(table, protected)
    search(method, task, problems.place)
    times = sorted(search(method, task, problems.place) for _ in range(REPEATS))
    seconds, n = times[REPEATS // 2]
    words = f"limi {table} {protected}, ctgan, {method.n_latents:,} latents"
    if method.n_labelled is None:
        words += ", paper"
    # The bars are those of the default settings.
    bars = (0.15, 400_000) if method.n_labelled is not None else (None, None)
    report(f"{words}: findings", n)
    report(f"{words}: seconds, findings on the device", seconds, bars[0], at_least=False)
    report(f"{words}: seconds, the best run", times[0][0])
    report(f"{words}: seconds, the worst run", times[-1][0])
    report(f"{words}: findings/s, on the device", n / seconds, bars[1])
    ledgers, totals, waits = [], [], []
    for _ in range(FEWER):
        start = time.perf_counter()
        run(method, task, Budget(), 0)
        ledgers.append(time.perf_counter() - start)
        # The second check begins while the search goes on, as in an audit.
        start = time.perf_counter()
        with EarlyCheck(target) as early:
            ran = run(method, task, Budget(), 0, on_found=early.offer)
            searched = time.perf_counter()
            parts = []
            for found in ran.findings.parts():
                at = sum(len(flips) for _, flips in parts)
                parts.append(ask_again(target, found, Watch(), early=early, start=at))
        totals.append(time.perf_counter() - start)
        waits.append(time.perf_counter() - searched)
    together = float(np.median(totals))
    bar = ALL_INCLUDED.get((table, protected)) if method.n_labelled is not None else None
    report(f"{words}: seconds, findings in the ledger", np.median(ledgers))
    report(f"{words}: seconds, second check (CPU) of all as well", together, bar, at_least=False)
    report(f"{words}: seconds, of that after the search", np.median(waits))
    confirmed, after = ran.findings.all(), np.concatenate([flips for _, flips in parts])
    alone, flips = ask_again(target, confirmed, Watch())
    early_scores = np.concatenate([again.score for again, _ in parts])
    report(f"{words}: the same bytes as without", np.array_equal(alone.score, early_scores), 1)
    confirmed = alone[flips]
    report(f"{words}: findings/s, all included", len(confirmed) / together)
    report(f"{words}: unconfirmed", (~after).sum())
    return task, confirmed, ran, n / seconds


def speed(problems):
    method = LIMI(n_latents=N_LATENTS)
    rates = [clocks(method, problems, table, protected)[3] for table, protected in BENCHMARKS]
    report("benchmarks of seven with a million findings/s", sum(r >= 1e6 for r in rates), 5)


def paper(problems):
    method = methods.parse("limi", ["preset=paper"])
    for table, protected in BENCHMARKS:
        task, found, ran, _ = clocks(method, problems, table, protected)
        words = f"limi {table} {protected}, ctgan, paper"
        schema, rows = task.schema, task.rows
        rng = np.random.default_rng(0)
        from limi.search.check import check_rows

        report(f"{words}: rows checked", ran.findings.rows_checked)
        real = check_rows(task.score, schema, rows).flips
        report(f"{words}: IF_o", real.mean())
        sample = rows[rng.choice(len(rows), min(len(rows), 20_000), replace=False)]
        some = found.rows[rng.choice(len(found), min(len(found), len(sample)), replace=False)]
        size = min(len(sample), max(1, len(found) // 4))
        best = found.rows[representative(rows, found.rows, schema, size, rng)]
        for name, given in (("findings", some), ("representative", best), ("ceiling", rows[real])):
            score = average_tabular_naturalness(sample, given, schema).score
            report(f"{words}: ATN of {name}", score)


def boundary_speed(problems):
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    latents = rng.normal(size=(100_000, 230)).astype(np.float32)
    favorable = latents @ rng.normal(size=230) + rng.normal(size=100_000) * 8 > 0
    z, up = (torch.tensor(a, device=problems.place) for a in (latents, favorable))
    times = []
    for _ in range(6):
        wait(problems.place)
        start = time.perf_counter()
        plane = boundary.fit(z, up)
        wait(problems.place)
        times.append(time.perf_counter() - start)
    mine = float(np.median(times[1:]))
    start = time.perf_counter()
    theirs = LinearSVC(dual=False).fit(latents, favorable)
    slow = time.perf_counter() - start
    report("boundary 100,000 x 230: seconds", mine)
    report("boundary 100,000 x 230: seconds of liblinear", slow)
    report("boundary 100,000 x 230: times liblinear", slow / mine, 50)
    cosine = plane.normal.cpu().numpy() @ theirs.coef_[0] / np.linalg.norm(theirs.coef_)
    report("boundary 100,000 x 230: cosine with liblinear", cosine, 0.9999)


def gradient(problems):
    target, rows = problems.target("census", "sex")
    there = device.place_target(target, problems.place)
    for name in GRADIENT:
        for words, asked in ((problems.place, there), ("cpu", target)):
            slopes = gradients.of(asked)
            # A first short run, so that kernels are loaded.
            for budget in (Budget(max_rows=2_000), Budget(max_seconds=25)):
                task = Task(asked.codec.schema, asked.score, rows, gradients=slopes)
                start = time.perf_counter()
                ran = run(methods.parse(name), task, budget, 0)
                seconds = time.perf_counter() - start
            words = f"{name} census sex, the paper's settings or 25 s, {words}"
            report(f"{words}: findings ({ran.stop})", len(ran.findings))
            report(f"{words}: seconds", seconds)
            report(f"{words}: findings/s", len(ran.findings) / seconds)


def same(problems):
    """Keys that differ between the device and arrays on the CPU, by the same latents."""
    from limi.table.rows import keys

    for table, protected in (("census", "sex"), ("meps", "sex")):
        task, target = problems.task(table, protected)
        method = LIMI(n_latents=100_000, n_labelled=50_000)
        there = run(method, task, Budget(), 0).findings.all().rows
        arrays, facts = task.generator.state()
        module = generators.get("ctgan")
        cpu = module.from_state(arrays, json.loads(json.dumps(facts)), task.generator.schema)
        task = Task(task.schema, target.score, task.rows, generator=cpu)
        here = run(method, task, Budget(), 0).findings.all().rows
        both = [{bytes(key) for key in keys(task.schema, rows)} for rows in (there, here)]
        words = f"limi {table} {protected}, ctgan, 100,000 latents"
        report(f"{words}: findings on both", len(both[0] & both[1]))
        report(f"{words}: findings on one of device and CPU", len(both[0] ^ both[1]))


def profile(problems, table, protected):
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as recorded

    task, _ = problems.task(table, protected)
    method = LIMI(n_latents=N_LATENTS)
    search(method, task, problems.place)
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with recorded(activities=kinds) as seen:
        search(method, task, problems.place)
    averages = seen.key_averages()
    order = "self_cuda_time_total" if problems.place != "cpu" else "self_cpu_time_total"
    print(averages.table(sort_by=order, row_limit=25, max_name_column_width=50))
    print(averages.table(sort_by="self_cpu_time_total", row_limit=12, max_name_column_width=40))


PARTS = {
    "speed": speed,
    "paper": paper,
    "boundary": boundary_speed,
    "gradient": gradient,
    "same": same,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pack", type=Path, help="write the problems into this folder, and stop")
    parser.add_argument("--packed", type=Path, help="read the problems from this folder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--profile", nargs=2, metavar=("TABLE", "PROTECTED"))
    given = parser.parse_args()
    if given.pack:
        return pack(given.pack)
    problems = Problems(given.packed, given.device)
    if given.profile:
        return profile(problems, *given.profile)
    for part in given.parts:
        PARTS[part](problems)
    return None


if __name__ == "__main__":
    main()
