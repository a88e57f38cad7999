"""Naturalness, speed and memory of the generators, one JSON line per figure.

    python -P benchmarks/generators.py                       # trees, on every table at hand
    python -P benchmarks/generators.py transport --device cuda --tables census credit

ATN is the paper's equation on as many plain samples as the table has rows, mean of three seeds.
Copies and the two-sample AUC come from a generator fitted to one half of the table and compared
with the other. Times are the best of several; where other work shares the cores, CPU seconds (of
all cores together) say more than those of the clock. MEPS needs LIMI_DATA; see `limi datasets`.
A figure without a bar is there to be read.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc

import numpy as np

from limi import data, generators
from limi.errors import LimiError
from limi.metrics.naturalness import average_tabular_naturalness, copy_shares, two_sample_auc
from limi.table.frames import Codec

ATN = {
    "trees": {"census": 0.99, "credit": 0.955, "bank": 0.99, "meps": 0.99},
    "transport": {"census": 0.965, "credit": 0.955, "bank": 0.975, "meps": 0.98},
    "ctgan": {"census": 0.865, "credit": 0.815, "bank": 0.885, "meps": 0.88},
}
FIT_SECONDS = {"trees": 2.0}
DECODE_ROWS = {("trees", "census"): 1e6}
AUC = {("trees", "census"): 0.60}
COPY_EXCESS = {"trees": 0.01}  # of generated rows over held-out rows

N_DECODED = {"trees": 2_000_000}  # others decode 50,000


def report(name: str, value: float, bar: float | None = None, *, at_least: bool = False) -> None:
    ok = None if bar is None else bool(value >= bar if at_least else value <= bar)
    print(json.dumps({"name": name, "value": round(value, 4), "bar": bar, "ok": ok}), flush=True)


def timed(function):
    """Seconds by the clock, seconds of all cores together, and the result."""
    start, start_cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - start, time.process_time() - start_cpu, result


def load(name):
    dataset = data.load(name)
    return Codec.learn(dataset.frame, dataset.schema).encode(dataset.frame), dataset.schema


def sampled(generator, n, seed):
    return generator.decode(generator.sample_latents(n, np.random.default_rng(seed)))


def measure(name: str, table: str, device: str, repeats: int) -> None:
    rows, schema = load(table)
    module = generators.get(name)

    def fit(part, seed=0):
        return module.fit(part, schema, np.random.default_rng(seed), device=device)

    runs = [timed(lambda: fit(rows)) for _ in range(repeats)]
    generator = runs[0][2]
    report(f"{name} {table} fit seconds", min(r[0] for r in runs), FIT_SECONDS.get(name))
    report(f"{name} {table} fit CPU seconds", min(r[1] for r in runs))

    latents = generator.sample_latents(N_DECODED.get(name, 50_000), np.random.default_rng(0))
    n, bar = len(latents), DECODE_ROWS.get((name, table))
    times = [timed(lambda: generator.decode(latents))[:2] for _ in range(max(repeats, 3))]
    report(f"{name} {table} decoded rows/s", n / min(t[0] for t in times), bar, at_least=True)
    report(f"{name} {table} decoded rows per CPU second", n / min(t[1] for t in times))

    scores = [
        average_tabular_naturalness(rows, sampled(generator, len(rows), seed), schema).score
        for seed in range(3)
    ]
    bar = ATN.get(name, {}).get(table)
    report(f"{name} {table} ATN", float(np.mean(scores)), bar, at_least=True)

    aucs, copies, linear = [], [], []
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(rows))
        seen, held_out = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
        made = sampled(fit(seen, seed), len(held_out), seed)
        rng = np.random.default_rng(seed)
        aucs.append(two_sample_auc(held_out, made, schema, rng))
        linear.append(two_sample_auc(held_out, made, schema, rng, classifier="logistic"))
        copies.append(copy_shares(seen, held_out, made, schema))
    report(f"{name} {table} AUC, boosted trees", float(np.mean(aucs)), AUC.get((name, table)))
    report(f"{name} {table} AUC, logistic", float(np.mean(linear)))
    report(f"{name} {table} copies, held-out rows", float(np.mean([c.held_out for c in copies])))
    report(f"{name} {table} copies, generated", float(np.mean([c.generated for c in copies])))
    excess = float(np.mean([c.excess for c in copies]))
    report(f"{name} {table} copies, excess", excess, COPY_EXCESS.get(name))


def memory(name: str, device: str) -> None:
    """Memory of decoding beside its rows, as numpy allocates it, for n latents and for twice n."""
    rows, schema = load("census")
    module = generators.get(name)
    generator = module.fit(rows[:2000], schema, np.random.default_rng(0), device=device)

    def megabytes(n):
        latents = generator.sample_latents(n, np.random.default_rng(0))
        tracemalloc.start()
        decoded = generator.decode(latents)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return (peak - decoded.nbytes) / 2**20

    n = N_DECODED.get(name, 50_000)
    megabytes(n)  # tables for decoding are made on first use
    report(f"{name} decode, MB beside the rows, {n:,} latents", megabytes(n))
    report(f"{name} decode, MB beside the rows, {2 * n:,} latents", megabytes(2 * n), 64.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["trees"], metavar="GENERATOR")
    parser.add_argument("--tables", nargs="*", default=data.encodings())
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    for name in given.names:
        for table in given.tables:
            try:
                measure(name, table, given.device, given.repeats)
            except LimiError as error:
                print(json.dumps({"name": f"{name} {table}", "skipped": str(error)}), flush=True)
        memory(name, given.device)


if __name__ == "__main__":
    main()
