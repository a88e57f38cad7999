"""Scale on a machine with many cores and a GPU, one JSON line per figure; under four minutes.

    python -m benchmarks.device_scale [two] [device] [memory] [workers]

`two` measures workers on two of the cores, beside `device` and `memory` on the others. `device`
times one million latents of LIMI with `ctgan` on census (sex) and bank (age): the search, its way
into the ledger, and the second check. `memory` compares 1 and 100 million latents on the device.
`workers` searches with a forest of 100 trees in 1, 4, 8 and 16 processes (`--counts`), and tells
the phases and what the process does that takes the results. What there is no time for (`--seconds`)
is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

BEGAN = time.perf_counter()
LATENTS = 1_000_000


def tell(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": value if isinstance(value, str) else round(float(value), 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def device(problems):
    """Census and bank with the second check; the bars are 0.2 and 0.4 seconds."""
    from benchmarks import _limi_gpu
    from limi.methods.limi import LIMI

    for table, protected in TABLES:
        _limi_gpu.clocks(LIMI(n_latents=LATENTS), problems, table, protected)


class Parent:
    """What the process that takes the results of workers does, and what workers asked in vain."""

    def __init__(self):
        from limi.methods import _scouting

        self.busy = self.thread = self.n_asked = self.n_met = 0
        follow = _scouting._follow

        def watched(session, probes, seen, ranges, parts):
            start, worked = time.perf_counter(), time.thread_time()
            told = follow(session, probes, seen, ranges, parts)
            self.busy += time.perf_counter() - start
            self.thread += time.thread_time() - worked
            self.n_asked += sum(int(part.asked.sum()) for part in parts if part is not None)
            self.n_met += len(told[1])
            return told

        _scouting._follow = watched

    def tell(self, words, search):
        """Of the search before this one."""
        tell(f"{words}: of the search, seconds in which results are taken", self.busy)
        tell(f"{words}: of these, seconds of this process itself", self.thread)
        tell(f"{words}: of the search, seconds of waiting for workers", search - self.busy)
        tell(
            f"{words}: keys that workers checked, for each that was met", self.n_asked / self.n_met
        )
        self.busy = self.thread = self.n_asked = self.n_met = 0


def workers(problems):
    """The same findings by more and more processes, and by one that has one core.

    Without workers a process still decodes in threads, on all cores; so efficiency is told against
    both: one process as it comes, and one on a single core.
    """
    from benchmarks import workers as bench
    from limi.system.cores import n_cores

    model, _ = bench.forest()
    parent = Parent()
    taken = {}
    for n in [n for n in COUNTS if n <= n_cores()]:
        cores = os.sched_getaffinity(0)
        if n == 0:
            os.sched_setaffinity(0, sorted(cores)[:1])
        seconds, whole, digest, found = bench.search(model, LATENTS, workers=max(n, 1))
        os.sched_setaffinity(0, cores)
        taken[n] = seconds, digest
        words = f"forest of 100 trees, {LATENTS:,} latents, "
        words += f"{n} workers" if n else "one process on one core"
        tell(f"{words}: seconds of labels, search and second check", seconds)
        tell(f"{words}: seconds in all", whole)
        for name in ("contract", "generator", "labels", "search", "second_check", "metrics"):
            tell(f"{words}: seconds of {name}", bench.PHASES[name])
        if n > 1:
            parent.tell(words, bench.PHASES["search"])
        tell(f"{words}: the same {found:,} findings", len({d for _, d in taken.values()}) == 1, 1)
    for alone, against in ((1, "one process"), (0, "one process on one core")):
        for n in [n for n in taken if n > 1 and alone in taken]:
            bar = 0.75 if n == 16 else None
            share = taken[alone][0] / taken[n][0] / n
            tell(f"forest of 100 trees, {n} workers: efficiency against {against}", share, bar)


COUNTS = [16, 1, 0, 4, 8]  # workers; 0 is one process on one core


def memory(problems):
    """Resident memory and that of the device, for a hundred times as many latents."""
    import torch

    from limi.methods.limi import LIMI
    from limi.search.budget import Budget
    from limi.search.engine import run

    there = problems.place.startswith("cuda")
    task, _ = problems.task("census", "sex")
    for n in (LATENTS, 100 * LATENTS):
        if there:
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        ran = run(LIMI(n_latents=n), task, Budget(), 0)
        words = f"census sex on the device, {n:,} latents"
        tell(f"{words}: seconds with the ledger", time.perf_counter() - start)
        tell(f"{words}: findings", len(ran.findings))
        tell(f"{words}: peak GB here", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
        if there:
            tell(f"{words}: peak GB there", torch.cuda.max_memory_allocated() / 2**30)


def two(problems):
    """Two workers on two cores, in a process of its own that is waited for before `workers`."""
    cores = sorted(os.sched_getaffinity(0))
    script = Path(__file__).with_name("workers.py")
    words = [sys.executable, str(script), "forest", "function", "million"]
    if len(cores) > 2:
        os.sched_setaffinity(0, cores[-2:])
    PENDING.append(subprocess.Popen(words))
    if len(cores) > 2:
        os.sched_setaffinity(0, cores[:-2])


def settle_two():
    """Wait for the other process, and have all cores again."""
    for process in PENDING:
        process.wait()
    PENDING.clear()
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


PENDING = []
TABLES = [("census", "sex"), ("bank", "age")]
PARTS = {"two": (two, 0), "device": (device, 60), "memory": (memory, 60), "workers": (workers, 90)}


def main():
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--seconds", type=float, default=230)
    parser.add_argument(
        "--counts", type=int, nargs="*", help="workers; 0: one core", default=COUNTS
    )
    parser.add_argument("--tables", nargs="*", default=["census", "bank"])
    given = parser.parse_args()
    COUNTS[:] = given.counts
    TABLES[:] = [pair for pair in TABLES if pair[0] in given.tables]
    import torch

    from benchmarks import _limi_gpu

    place = "cuda" if torch.cuda.is_available() else "cpu"
    problems = _limi_gpu.Problems(None, place)
    for name in given.parts or PARTS:
        # ^ in this order: `workers` wants all cores
        part, needs = PARTS[name]
        if name == "workers":
            settle_two()
        if time.perf_counter() - BEGAN + needs > given.seconds:
            tell(f"{name}: left out", "no time")
            continue
        part(problems)
    settle_two()


if __name__ == "__main__":
    main()
