"""Scale on a machine with many cores and a GPU, one JSON line per figure; under four minutes.

    python -m benchmarks.device_scale [two] [device] [memory] [workers]

`two` measures workers on two of the cores, beside `device` and `memory` on the others. `device`
times one million latents of LIMI with `ctgan` on census (sex) and bank (age): the search, its way
into the ledger, and the second check. `memory` compares 1 and 100 million latents on the device.
`workers` searches with a forest of 100 trees in 1, 4, 8 and 16 processes. What there is no time for
(`--seconds`) is named and left out.
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

    for table, protected in (("census", "sex"), ("bank", "age")):
        _limi_gpu.clocks(LIMI(n_latents=LATENTS), problems, table, protected)


def workers(problems):
    """The same findings by more and more processes."""
    from benchmarks import workers as bench
    from limi.system.cores import n_cores

    model, _ = bench.forest()
    counts = [n for n in (1, 16, 4, 8) if n <= n_cores()]
    alone = None
    for n in counts:
        seconds, whole, digest, found = bench.search(model, LATENTS, workers=n)
        alone = alone or (seconds, digest)
        words = f"forest of 100 trees, {LATENTS:,} latents, {n} workers"
        tell(f"{words}: seconds of labels, search and second check", seconds)
        tell(f"{words}: seconds in all", whole)
        if n > 1:
            tell(f"{words}: the same {found:,} findings", digest == alone[1], 1)
            bar = 0.75 if n == 16 else None
            tell(f"{words}: efficiency", alone[0] / seconds / n, bar)


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
PARTS = {"two": (two, 0), "device": (device, 60), "memory": (memory, 60), "workers": (workers, 75)}


def main():
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--seconds", type=float, default=230)
    given = parser.parse_args()
    import torch

    from benchmarks import _limi_gpu

    place = "cuda" if torch.cuda.is_available() else "cpu"
    problems = _limi_gpu.Problems(None, place)
    for name in given.parts or PARTS:
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
