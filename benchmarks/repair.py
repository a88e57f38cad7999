"""Repairs side by side: what they cost in accuracy and in time.

    python benchmarks/repair.py table      the head of every table, from `limi repair` itself
    python benchmarks/repair.py cost       an averaged answer beside a plain one
    python benchmarks/repair.py benchmarks seven benchmarks x DNN and RF: accuracy lost by averaging
    python benchmarks/repair.py million    direct flips of a shipped model on a million rows

The published COMPAS table is not part of limi; a synthetic one of its columns, size and rates
(`limi.studies`) stands for it.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # this folder has a limi.py of its own

import numpy as np
import pandas as pd
import skops.io as sio
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import limi
from limi.metrics._populations import draw_uniform
from limi.models import benchmark
from limi.search.check import check_rows
from limi.studies._mechanism import draw_recidivism

SEVEN = [
    *(("census", name) for name in ("age", "race", "sex")),
    *(("credit", name) for name in ("age", "sex")),
    *(("bank", name) for name in ("age",)),
    *(("meps", name) for name in ("SEX",)),
]
FIGURES = ("accuracy", "auc", "natural", "natural_alone", "twins", "spd")


def recidivism(n=6172):
    """The synthetic table as a frame."""
    schema, rows, labels = draw_recidivism(n, np.random.default_rng(0))
    frame = pd.DataFrame(
        {
            column.name: [column.levels[int(code)] for code in codes]
            if column.levels
            else codes.astype(int)
            for column, codes in zip(schema.columns, rows.T, strict=True)
        }
    )
    return frame.assign(again=np.where(labels == 1, "no", "yes")), schema


def model(last):
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer(
        (encoder, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    return make_pipeline(columns, last)


def cases():
    frame, schema = recidivism()
    forest = RandomForestClassifier(100, random_state=0)
    boosted = HistGradientBoostingClassifier(random_state=0)
    for column, last in (("race", forest), ("race", boosted), ("sex", forest)):
        yield "synthetic recidivism", column, last, frame, "again", "no", schema
    adult = limi.data.load("adult")
    frame = adult.frame.drop(columns="fnlwgt")
    schema = adult.schema.select([n for n in adult.schema.names if n != "fnlwgt"])
    yield "adult", "sex", boosted, frame, adult.target, adult.favorable, schema


def table(seeds=1):
    for name, column, last, frame, target, favorable, schema in cases():
        people = frame.drop(columns=target)
        fitted = model(last).fit(people, frame[target])
        result = limi.audit(
            *(fitted, frame),
            protected=[column],
            target=target,
            favorable=favorable,
            schema=schema,
            max_rows=2_000,
            rate_rows=0,
        )
        began = time.perf_counter()
        made = limi.repair(result, seeds=seeds, held_out=0.4)
        took = time.perf_counter() - began
        kind = type(last).__name__
        print(f"\n{name} {column}, {kind}, {took:.0f} s; recommended: {made.recommended}")
        print(f"{'':>10}" + "".join(f"{figure:>15}" for figure in FIGURES))
        sides = [("as it is", made.before), *((one.how, one.figures) for one in made.tried)]
        for how, figures in sides:
            shown = [figures[figure].value for figure in FIGURES]
            cells = "".join(f"{'-' if v is None else f'{v:.3f}':>15}" for v in shown)
            print(f"{how:>10}{cells}", flush=True)


def cost():
    frame, schema = recidivism()
    people = frame.drop(columns="again")
    for last in (RandomForestClassifier(100, random_state=0), HistGradientBoostingClassifier()):
        fitted = model(last).fit(people, frame["again"])
        told = {"protected": ["race"], "target": "again", "favorable": "no", "schema": schema}
        fair = limi.average(fitted, frame, **told)

        def seconds(one):
            times = []
            for _ in range(5):
                began = time.process_time()
                one.predict_proba(people)
                times.append(time.process_time() - began)
            return min(times)

        times = len(fair.weights)
        print(f"{type(last).__name__}: {seconds(fair) / seconds(fitted) / times:.2f} x {times}")


def benchmarks(seeds=3):
    for name, column in SEVEN:
        known = limi.data.load(name)
        rows, labels = benchmark._split(known)
        for kind in ("dnn", "rf"):
            lost = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                held = rng.random(len(rows)) < 0.3
                columns = tuple(known.schema.names)
                made = benchmark.fit(kind, rows[~held], labels[~held], columns=columns, seed=seed)
                fair = limi.average(
                    *(made, known.frame),
                    protected=[column],
                    target=known.target,
                    favorable=known.favorable,
                    schema=known.schema,
                )
                truth = labels[held] == 1
                wrong = [((m(rows[held]) > 0.5) != truth).mean() for m in (made.score, fair)]
                lost.append(wrong[1] - wrong[0])
            print(
                f"{name} {column} {kind}: {100 * np.mean(lost):+.2f} points of accuracy lost, "
                f"by seed {', '.join(f'{100 * one:+.2f}' for one in lost)}",
                flush=True,
            )


def million(n=1_000_000):
    frame, schema = recidivism()
    last = HistGradientBoostingClassifier(random_state=0)
    fitted = model(last).fit(frame.drop(columns="again"), frame["again"])
    told = {"protected": ["race"], "target": "again", "favorable": "no", "schema": schema}
    fair = limi.average(fitted, frame, **told)
    with tempfile.TemporaryDirectory() as folder:
        sio.dump(fair, Path(folder) / "fair.skops")
        place = f"skops:{Path(folder) / 'fair.skops'}"
        result = limi.audit(place, frame, **told, max_rows=100, rate_rows=0)
    problem = result.problem
    flips, rng = 0, np.random.default_rng(0)
    for _ in range(10):
        rows, _ = draw_uniform(problem.schema, n // 10, rng)
        flips += int(check_rows(problem.target.score, problem.schema, rows).flips.sum())
    print(f"{flips} direct flips of {n:,} rows")


if __name__ == "__main__":
    {"table": table, "cost": cost, "benchmarks": benchmarks, "million": million}[sys.argv[1]]()
