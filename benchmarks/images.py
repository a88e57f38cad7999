"""Audits of images: seconds of each part, and what planted doses show on several seeds.

    LIMI_DATA=... python benchmarks/images.py              # eigenfaces on this machine's cores
    LIMI_DATA=... python benchmarks/images.py --gpu        # the autoencoder, ResNet-18 as target
    LIMI_DATA=... python benchmarks/images.py --seeds 5 --doses 0 2

The faces are not shipped; LIMI_DATA names the folder that holds `faces/faces64.npz` and its labels.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lab.kinds.images import find_faces, fit_thumbnails
from limi.images import attributes, audit_images, makers


def main():
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--gpu", action="store_true")
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--doses", type=float, nargs="*", default=[0.0, 2.0])
    asked.add_argument("--cases", type=int)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    people = find_faces()
    told = on_gpu(people, given) if given.gpu else on_cores(people, given)
    if given.json:
        given.json.write_text(json.dumps(told, indent=2))


def on_cores(people, given):
    """Eigenfaces, a target that looks at small grey images, scorers of pixels, judge of edges."""
    target = fit_thumbnails(people, ["gender"])
    cases = given.cases or 6_000
    return [
        audit(target, "eigenfaces", people, seed=seed, plant=dose, cases=cases)
        for seed in range(given.seeds)
        for dose in given.doses
    ]


def on_gpu(people, given):
    """The autoencoder, with a balanced ResNet-18 and one trained as the photographs come."""
    from limi.images.networks import fit_scorer

    rng = np.random.default_rng(0)
    seen = people.images[~people.split]
    made, seconds = timed(lambda: makers.fit("vae", seen, rng, device="cuda"))
    told = [show({"part": "fit vae", "seconds": seconds})]

    def learn(name, architecture, beside):
        fit = fit_scorer(architecture, np.random.default_rng(1), "cuda")
        found, seconds = timed(
            lambda: attributes.learn(
                name, fit, architecture, people.images, people.labels, people.split, beside
            )
        )
        part = f"fit {architecture} of {name}{'' if beside else ', as photographed'}"
        told.append(show({"part": part, "seconds": seconds, "accuracy": found.accuracy}))
        return found.scorer

    balanced = learn("smile", "resnet18", ["gender"])
    as_it_is = learn("smile", "resnet18", [])
    judge = {
        name: learn(name, "plain", [o]) for name, o in (("gender", "smile"), ("smile", "gender"))
    }
    cases = given.cases or 50_000
    audit(balanced, made, people, seed=0, plant=0.0, cases=512, judge=judge, device="cuda")  # warm
    runs = [(seed, dose, balanced) for seed in range(given.seeds) for dose in given.doses]
    for seed, dose, target in [*runs, (0, 0.0, as_it_is)]:
        line = audit(
            target, made, people, seed=seed, plant=dose, cases=cases, judge=judge, device="cuda"
        )
        told.append({**line, "target": "balanced" if target is balanced else "as photographed"})
    paper = {"seed": 0, "plant": 0.0, "cases": cases, "judge": judge, "preset": "paper"}
    told.append(audit(balanced, made, people, device="cuda", **paper))
    return told


def audit(target, generator, people, **options):
    """One audit and its figures."""
    began = time.perf_counter()
    result = audit_images(
        target, generator, "gender", images=people, truth="smile", hold=["source"], **options
    )
    return show(
        {
            "generator": result.generator,
            "preset": result.preset,
            "seed": result.seed,
            "dose": result.planted,
            "seconds": time.perf_counter() - began,
            "cases": result.searched["cases"],
            "valid": result.searched["valid"],
            "flips_of_cases": result.searched["flips"] / result.searched["cases"],
            "effect": result.effect.effect,
            "low": result.effect.low,
            "high": result.effect.high,
            "floor": result.effect.floor,
            "direction": result.effect.direction,
            "excess": result.excess.excess,
            "excess_low": result.excess.low,
            "excess_high": result.excess.high,
            "excess_searched": result.excess_searched.excess,
            "excess_searched_low": result.excess_searched.low,
            "verdict": result.verdict,
            "smallest_dose": None if result.smallest_dose is None else result.smallest_dose.dose,
            "findings": result.n_findings,
        }
    )


def timed(work):
    began = time.perf_counter()
    made = work()
    return made, time.perf_counter() - began


def show(line):
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}))
    return line


if __name__ == "__main__":
    main()
