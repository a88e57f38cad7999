"""A cell, results of a few cells, and a study that shows them."""

import dataclasses
from pathlib import Path

from lab import files as _files
from lab.cells import expand
from lab.claims import PaperClaim
from lab.files import load
from lab.results import DONE, Outcome, Results

ROOT = Path(__file__).parent.parent.parent
ALL = [*_files.names(), "watch"]
FIRST = PaperClaim(
    says="first",
    where="",
    study="dnn",
    kind="first",
    measure="findings",
    first="limi",
    over=("adf",),
)
TIMES = dataclasses.replace(FIRST, kind="size", number="times", stated=2.0)


def small_cell(**changes):
    given = next(c for c in expand(load("dnn"), "smoke") if c.variant == "limi")
    return dataclasses.replace(given, **changes)


def outcome(name, status=DONE, **measures):
    given = {"target": "dnn"}
    return Outcome(cell=name, digest="d", status=status, took=1.0, given=given, measures=measures)


def tiny():
    """Two benchmarks, three methods, two seeds, and a cell that could not run."""
    found = {
        "census-sex/limi": [(90_000, 0.81), (110_000, 0.83)],
        "census-sex/natural": [(80_000, 0.90), (80_000, 0.92)],
        "census-sex/adf": [(120_000, 0.60), (130_000, 0.62)],
        "credit-sex/limi": [(300_000, 0.9), (300_000, 0.9)],
        "credit-sex/natural": [(200_000, 0.9), (220_000, 0.9)],
    }
    outcomes = [
        outcome(
            f"{name}/{seed}", findings=n, per_second=n / 10, atn=atn, accuracy=0.88, real_atn=0.8
        )
        for name, numbers in found.items()
        for seed, (n, atn) in enumerate(numbers)
    ]
    outcomes.append(
        dataclasses.replace(outcome("credit-sex/adf/0", "failed"), why="no gradient | at all")
    )
    made = {"processor": "a machine", "cores": 2, "versions": {"limi": "0.1.0", "numpy": "2"}}
    return Results("dnn", "small", {o.cell: o for o in outcomes}, made)


def small_study(**changes):
    study = load("dnn")
    variants = tuple(study.variant(name) for name in ("adf", "limi", "natural"))
    spec = dataclasses.replace(study.tables[0], measures=("findings",), title="Counts")
    sizes = {
        "small": {
            "benchmarks": ["census-sex", "credit-sex"],
            "variants": ["adf", "limi", "natural"],
            "words": "few rows",
        }
    }
    return dataclasses.replace(study, variants=variants, tables=(spec,), _scales=sizes, **changes)
