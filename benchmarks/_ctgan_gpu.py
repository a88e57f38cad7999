"""Training of the torch generators on a device, one JSON line a generator, table and seed.

    python -m benchmarks._ctgan_gpu                           # all, on cuda if there is one
    python -m benchmarks._ctgan_gpu --generators ctgan --tables census --seeds 0 1 2
    python -m benchmarks._ctgan_gpu --pack tables/            # for a machine without pandas
    python -m benchmarks._ctgan_gpu --packed tables/          # and there
    python -m benchmarks._ctgan_gpu --package 65              # the ctgan package, if installed

A line holds the seconds of the whole fit, those until the first step (preparation), steps per
second from the first tenth on, decoded rows per second, and ATN by the paper's equation on as many
plain samples as the table has rows. The first line of a device run also says whether a step on the
device agrees with the same step on the CPU. MEPS needs LIMI_DATA; see `limi datasets`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import types
from pathlib import Path

import numpy as np
import torch

try:
    import narwhals  # noqa: F401
except ImportError:  # a machine for training may lack it, and packed tables need no frames
    sys.modules["narwhals"] = types.ModuleType("narwhals")

from limi import generators
from limi.generators import ctgan as ctgan_module
from limi.generators._conditions import Conditions
from limi.generators._modes import Encoding
from limi.metrics.naturalness import average_tabular_naturalness
from limi.table.schema_files import dump, parse

TABLES = ("census", "credit", "bank", "meps")
ATN = {
    "transport": {"census": 0.965, "credit": 0.955, "bank": 0.975, "meps": 0.98},
    "ctgan": {"census": 0.865, "credit": 0.815, "bank": 0.885, "meps": 0.88},
}
N_DECODED = {"cuda": 1_000_000, "cpu": 65_536}


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def table(name: str, packed: Path | None):
    if packed is not None:
        kept = np.load(packed / f"{name}.npz")
        return kept["rows"].astype(np.float64), parse(str(kept["schema"]))
    from limi import data
    from limi.table.frames import Codec

    dataset = data.load(name)
    return Codec.learn(dataset.frame, dataset.schema).encode(dataset.frame), dataset.schema


def pack(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        rows, schema = table(name, None)
        np.savez_compressed(
            folder / f"{name}.npz", rows=rows.astype(np.float32), schema=dump(schema)
        )


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def measure(name: str, table_name: str, rows, schema, seed: int, device: str) -> None:
    module = generators.get(name)
    marks: list[tuple[float, int, int]] = []

    def on_step(done: float, words: str) -> None:
        wait(device)
        found = re.search(r"step ([\d,]+) of (?:at most )?([\d,]+)", words)
        counts = [int(number.replace(",", "")) for number in found.groups()] if found else [0, 0]
        marks.append((time.perf_counter(), *counts))

    begin = time.perf_counter()
    generator = module.fit(
        rows, schema, np.random.default_rng(seed), device=device, on_step=on_step
    )
    wait(device)
    seconds = time.perf_counter() - begin
    steps = marks[-1][1]
    late = [mark for mark in marks if mark[1] >= steps / 10] or marks[-1:]
    span = late[-1][0] - late[0][0]

    n = N_DECODED["cuda" if device.startswith("cuda") else "cpu"]
    latents = generator.latents_at(seed, torch.arange(n, device=device))
    generator.decode_tensor(latents[:4096])
    wait(device)
    start = time.perf_counter()
    generator.decode_tensor(latents)
    wait(device)
    decode_seconds = time.perf_counter() - start

    made = generator.decode(generator.sample_latents(len(rows), np.random.default_rng(seed)))
    score = average_tabular_naturalness(rows, made, schema).score
    tell(
        generator=name,
        table=table_name,
        seed=seed,
        device=torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        threads=torch.get_num_threads(),
        fit_seconds=round(seconds, 3),
        steps=steps,
        steps_at_most=marks[-1][2],
        steps_per_second=round((late[-1][1] - late[0][1]) / span, 1) if span else None,
        decoded_rows_per_second=round(n / decode_seconds),
        ATN=round(score, 4),
        bar=ATN[name][table_name],
        ok=bool(score >= ATN[name][table_name]),
        notes=list(generator.notes),
    )


def check_step(rows, schema, device: str) -> None:
    """The losses and first gradients of one CTGAN step on the device, beside those on the CPU."""
    gaps = {}
    made = []
    for place in ("cpu", device):
        rng = np.random.default_rng(0)
        encoding = Encoding.fit(rows, schema, rng)
        encoded = encoding.encode(rows, rng)
        conditions = Conditions.of(encoded, encoding)
        stream = torch.Generator(place).manual_seed(0)
        settings = ctgan_module.Settings()
        made.append(ctgan_module._Trainer(encoded, encoding, conditions, settings, stream))
    here, there = made
    inputs = {name: tensor[0] for name, tensor in here.draw(1).items()}
    moved = {name: tensor.to(device) for name, tensor in inputs.items()}
    for ours, theirs in ((here.generator, there.generator), (here.critic, there.critic)):
        for name, tensor in ours.items():
            theirs[name].data.copy_(tensor.data)
    for loss in ("critic_loss", "generator_loss"):
        a, b = getattr(here, loss)(inputs), getattr(there, loss)(moved)
        gaps[loss] = abs(float(a.detach()) - float(b.detach()))
        kind = "critic" if loss == "critic_loss" else "generator"
        pairs = [
            (t, getattr(there, kind)[name])
            for name, t in getattr(here, kind).items()
            if t.requires_grad
        ]
        ours = torch.autograd.grad(a, [pair[0] for pair in pairs])
        theirs = torch.autograd.grad(b, [pair[1] for pair in pairs])
        scale = max(float(g.abs().max()) for g in ours)
        gaps[f"{loss} gradient"] = max(
            float((g - h.cpu()).abs().max()) / scale for g, h in zip(ours, theirs, strict=True)
        )
    tell(check="one step on the device against the CPU", gaps=gaps, ok=max(gaps.values()) < 1e-3)


def package(rows, schema, table_name: str, n_steps: int, device: str) -> None:
    """Preparation and steps per second of the public ctgan package."""
    import pandas as pd
    from ctgan import CTGAN
    from ctgan.synthesizers import ctgan as inside

    frame = pd.DataFrame(rows.astype(np.int64), columns=schema.names)
    discrete = [c.name for c in schema.columns if c.kind != "numerical"]
    per_epoch = max(len(rows) // 500, 1)
    epochs = max(n_steps // per_epoch, 1)
    ready: list[float] = []
    begin_sampler = inside.DataSampler.__init__

    def noted(self, *args, **kwargs) -> None:
        begin_sampler(self, *args, **kwargs)
        ready.append(time.perf_counter())

    inside.DataSampler.__init__ = noted
    known = CTGAN.__init__.__code__.co_varnames
    switch = "enable_gpu" if "enable_gpu" in known else "cuda"
    model = CTGAN(epochs=epochs, **{switch: device.startswith("cuda")})
    start = time.perf_counter()
    model.fit(frame, discrete)
    end = time.perf_counter()
    tell(
        generator="ctgan package",
        table=table_name,
        preparation_seconds=round(ready[0] - start, 2),
        steps_per_second=round(epochs * per_epoch / (end - ready[0]), 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generators", nargs="*", default=["transport", "ctgan"])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--pack", type=Path, help="write the tables into this folder, and stop")
    parser.add_argument("--packed", type=Path, help="read the tables from this folder")
    parser.add_argument("--package", type=int, help="time this many steps of the ctgan package")
    given = parser.parse_args()
    if given.pack:
        return pack(given.pack, given.tables)
    for place, name in enumerate(given.tables):
        rows, schema = table(name, given.packed)
        if given.package:
            package(rows, schema, name, given.package, given.device)
            continue
        if place == 0:
            check_step(rows, schema, given.device)
        for kind in given.generators:
            for seed in given.seeds:
                measure(kind, name, rows, schema, seed, given.device)
    return None


if __name__ == "__main__":
    main()
