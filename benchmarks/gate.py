"""What a gate costs and how often it is wrong, over simulated models; one JSON line per figure.

python benchmarks/gate.py [PART ...] [--models N]

Every model is asked through `limi.gates.gate`, and its true rate is known: it flips for the people
whose column `u` lies under a bound, and uniform rows hold every value of `u` equally often.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from limi.gates import gate
from limi.table.schema import Column, Schema

VALUES = 10_000  # of u
LIMIT = 0.01
PROMISED = 0.05
SIMULATED = 2_000  # models, over both sides of the limit

SCHEMA = Schema(
    (
        Column(name="u", kind="numerical", low=0, high=VALUES - 1, step=1),
        Column(name="sex", kind="categorical", levels=("f", "m")),
    )
)
FRAME = pd.DataFrame({"u": np.arange(0, VALUES, VALUES // 50), "sex": ["f", "m"] * 25})


def flipping(rate: float, gap: float = 0.2) -> Callable[[Any], Any]:
    """A model that flips for this share of people, by a gap of scores."""
    bound, half = round(rate * VALUES), gap / 2

    def score(frame: Any) -> Any:
        u, male = frame["u"].to_numpy(), (frame["sex"] == "m").to_numpy()
        flips = u < bound
        return np.where(flips, np.where(male, 0.5 + half, 0.5 - half), 0.1)

    return score


def parity(apart: float) -> Callable[[Any], Any]:
    """A model whose groups' shares of favorable decisions differ by this much."""
    low, high = round((0.3 - apart / 2) * VALUES), round((0.3 + apart / 2) * VALUES)

    def score(frame: Any) -> Any:
        u, male = frame["u"].to_numpy(), (frame["sex"] == "m").to_numpy()
        return np.where(u < np.where(male, high, low), 0.9, 0.1)

    return score


def ask(model: Callable[[Any], Any], rules: list[str], seed: int, **more: Any) -> Any:
    return gate(
        model,
        FRAME,
        rules,
        protected=["sex"],
        schema=SCHEMA,
        generator=None,
        output="score",
        seed=seed,
        **more,
    )


def report(name: str, value: float, bar: float | None = None) -> None:
    line: dict[str, object] = {"name": name, "value": round(value, 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": value <= bar}
    print(json.dumps(line), flush=True)


def simulate(
    name: str,
    models: int,
    truths: tuple[float, ...],
    limit: float,
    make: Callable[[float], Callable[[Any], Any]],
    rules: list[str],
) -> None:
    """Gates over models of several truths: wrong and undecided answers, and mean queries."""
    wrong_of_all = 0
    each = -(-models // len(truths))
    for truth in truths:
        answered = [ask(make(truth), rules, seed) for seed in range(each)]
        answers = [str(one.answer) for one in answered]
        bad = "fail" if truth <= limit else "pass"
        wrong_of_all += answers.count(bad)
        told = f"{name} {truth / limit:g} times the limit"
        report(f"{told}: wrong", answers.count(bad) / each)
        report(f"{told}: inconclusive", answers.count("inconclusive") / each)
        report(f"{told}: mean queries", float(np.mean([one.queries for one in answered])))
    report(f"{name}: wrong of {each * len(truths):,} models", wrong_of_all / each / len(truths))


def rates(models: int) -> None:
    """One rule on a rate."""
    times = (0, 0.25, 0.5, 0.8, 0.9, 1, 1.01, 1.1, 1.25, 1.5, 2, 5, 20)
    truths = tuple(round(LIMIT * t * VALUES) / VALUES for t in times)
    simulate("rate", models, truths, LIMIT, flipping, ["uniform_rate <= 1 %"])


def groups(models: int) -> None:
    """One rule on the difference of two groups."""
    truths = tuple(0.1 * t for t in (0, 0.5, 0.9, 1, 1.02, 1.1, 1.5, 2))
    # Limits of a difference take longer to compute than the rows to ask, so there are fewer models.
    simulate("spd", models // 16, truths, 0.1 + 1e-9, parity, ["uniform_spd <= 0.1"])


def several(models: int) -> None:
    """Three rules that share the error; a rate and a percentile are both at their limits."""
    rules = ["uniform_rate <= 1 %", "uniform_score_gap_p99 <= 0.1", "uniform_spd <= 0.1"]
    truths = tuple(LIMIT * t for t in (0, 0.5, 0.9, 1, 1.02, 1.1, 1.5, 2, 5))
    simulate("three rules", models // 4, truths, LIMIT, flipping, rules)


PARTS = {"rates": rates, "groups": groups, "several": several}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--models", type=int, default=SIMULATED)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.models)
