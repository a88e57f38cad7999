"""What decisions of other kinds cost, and what methods find of them.

    python -m benchmarks.decisions              # cost of the oracle per row, by kind of decision
    python -m benchmarks.decisions --methods    # findings of natural, limi and guided (minutes)

The model is a network, once with two hidden layers of 64 units and once with none, so that what is
timed is hardly more than limi's own part and the reading of outputs: two a row, ten, or one number.
The best of several rounds in processor time, all kinds in turn.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from limi.decisions import AS_DECIDED, Bands, Classes, Difference, Rule
from limi.models._scores import Favored, Outputs, Places
from limi.search.check import check_rows
from limi.table.schema import Column, Schema
from limi.types import Rows, Scores

ROWS, ROUNDS = 100_000, 7


def make_schema() -> Schema:
    """Twelve columns of numbers, one of which is protected."""
    names = ["sex", *(f"x{i}" for i in range(11))]
    columns = [
        Column(name=name, kind="numerical", high=1 if name == "sex" else 99, step=1)
        for name in names
    ]
    return Schema(tuple(columns)).protect(["sex"])


def make_kinds(
    width: int, hidden: tuple[int, ...], rng: np.random.Generator
) -> dict[str, tuple[Rule, Any]]:
    """By name: a rule, and a function of rows that gives its answers."""

    def network(n_outputs: int, favored: Favored, kind: Any) -> Callable[[Rows], Scores]:
        sizes = (width, *hidden, n_outputs)
        layers = [rng.normal(size=pair) / 60 for pair in itertools.pairwise(sizes)]
        outputs = Outputs(favored, kind, n_outputs)

        def score(rows: Rows) -> Scores:
            cells = rows
            for weights in layers[:-1]:
                cells = np.maximum(cells @ weights, 0.0)
            return outputs.read(cells @ layers[-1], len(rows))

        return score

    ten = Classes(tuple(range(10)), wanted=(0,))
    places = Places(ten, tuple(range(10)))
    return {
        "favorable, 2 outputs": (AS_DECIDED, network(2, 1, "logits")),
        "class, 10 outputs": (ten, network(10, places, "logits")),
        "some of 10 favorable": (AS_DECIDED, network(10, (0, 1), "logits")),
        "difference": (Difference(0.5), network(1, 1, "number")),
        "bands": (Bands((-1.0, 0.0, 1.0)), network(1, 1, "number")),
    }


def time_oracle(hidden: tuple[int, ...]) -> None:
    """Print processor time per row, and beside that of two outputs."""
    rng = np.random.default_rng(0)
    schema = make_schema()
    rows = rng.integers(0, 100, (ROWS, len(schema))).astype(float)
    rows[:, 0] %= 2
    kinds = make_kinds(len(schema), hidden, rng)
    best = dict.fromkeys(kinds, np.inf)
    for _ in range(ROUNDS):
        for name, (rule, score) in kinds.items():
            start = time.process_time()
            check_rows(score, schema, rows, decision=rule)
            best[name] = min(best[name], time.process_time() - start)
    first = next(iter(best.values()))
    layers = f"hidden layers {hidden}" if hidden else "no hidden layer"
    print(f"{ROWS:,} rows, two protected values, {layers}, the best of {ROUNDS} rounds")
    for name, seconds in best.items():
        print(f"{name:24} {1e6 * seconds / ROWS:6.2f} us a row  {seconds / first:5.2f} x")


def compare_methods() -> None:
    """Print findings of 3,000 rows by method, for numbers, bands and classes."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    import limi
    import limi.data

    number = HistGradientBoostingRegressor(random_state=0)
    several = HistGradientBoostingClassifier(random_state=0, max_iter=40)
    cases = (
        ("german-amount", number, "difference > 600"),
        ("german-amount", number, "bands = 2000, 4000, 8000"),
        ("adult-hours", several, "class"),
    )
    for name, estimator, decision in cases:
        known = limi.data.load(name)
        frame = known.frame.sample(min(6000, len(known.frame)), random_state=0)
        frame = frame.reset_index(drop=True)
        cells = frame.drop(columns=known.target)
        text = [column for column in cells if cells[column].dtype.kind not in "iuf"]
        coded = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
        )
        coder = make_column_transformer((coded, text), remainder="passthrough")
        model = make_pipeline(coder, estimator).fit(cells, frame[known.target])
        for method in ("natural", "limi", "guided"):
            found = [
                limi.audit(
                    model,
                    frame,
                    protected="sex",
                    target=known.target,
                    schema=known.schema,
                    method=method,
                    decision=decision,
                    max_rows=3000,
                    rate_rows=0,
                    seed=seed,
                )
                for seed in (0, 1)
            ]
            counts = ", ".join(str(len(result.findings)) for result in found)
            print(f"{name}, {decision}, {method}: {counts}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--methods", action="store_true", help="compare methods instead")
    warnings.simplefilter("ignore")
    if parser.parse_args().methods:
        compare_methods()
    else:
        time_oracle((64, 64))
        time_oracle(())
