"""Repairs side by side: what they cost in accuracy and in time.

    python benchmarks/repair.py table      the head of every table, from `limi repair` itself
    python benchmarks/repair.py cost       an averaged answer beside a plain one
    python benchmarks/repair.py benchmarks [TABLE ...]
                                           seven benchmarks x DNN and RF, three seeds: accuracy lost
                                           by averaging, and whether probabilities or log-odds are
                                           better averaged
    python benchmarks/repair.py seconds    averaging alone and all ways, two and six values
    python benchmarks/repair.py workers [N]
                                           all ways by one process and by N, by the clock
    python benchmarks/repair.py million    direct flips of a shipped model on a million rows

The published COMPAS table is not part of limi; a synthetic one of its columns, size and rates
(`lab`) stands for it.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import limi
from lab import models as benchmark
from lab.mechanism import draw_recidivism
from limi.audits.problem import prepare
from limi.decisions import favors
from limi.metrics._populations import draw_uniform
from limi.repairs._average import average_target
from limi.repairs._compared import expected_calibration_error, rank_auc
from limi.repairs._partner_table import make_table
from limi.search.check import check_rows

SEVEN = {
    "census": ["age", "race", "sex"],
    "credit": ["age", "sex"],
    "bank": ["age"],
    "meps": ["sex"],
}
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


def audited_forests():
    """A forest on a table of COMPAS' size, tested for a column of two values and of six."""
    frame, _ = recidivism()
    # Six values as in the published table, by chance, so that they cost what those would.
    drawn = np.random.default_rng(1).choice(list("abcd"), len(frame), p=[0.55, 0.33, 0.08, 0.04])
    rare = np.random.default_rng(2).random(len(frame)) < 0.15
    six = frame.assign(race=np.where(rare, drawn, frame["race"]))
    for words, people in (("two values", frame), ("six values", six)):
        fitted = model(RandomForestClassifier(100, random_state=0))
        fitted.fit(people.drop(columns="again"), people["again"])
        result = limi.audit(
            *(fitted, people),
            protected=["race"],
            target="again",
            favorable="no",
            max_rows=2_000,
            rate_rows=0,
        )
        yield words, result


def workers(n=2):
    """All ways by one process and by several: seconds by the clock, and whether figures differ."""
    for words, result in audited_forests():
        took, trees = [], []
        for number in (1, int(n)):
            began = time.perf_counter()
            tree = limi.repair(result, workers=number).as_dict()
            took.append(time.perf_counter() - began)
            # Seconds, and which of two equally good repairs was the quicker, are the machine's.
            tried = [
                {name: told for name, told in one.items() if name not in ("seconds", "why")}
                for one in tree["tried"]
            ]
            trees.append((tree["before"], tried))
        same = "the same figures" if trees[0] == trees[1] else "OTHER FIGURES"
        print(
            f"{words}: {took[0]:.1f} s by 1 worker, {took[1]:.1f} s by {n} "
            f"({took[0] / took[1]:.2f} times as fast), {same}",
            flush=True,
        )


def seconds():
    """From an audited model to a folder with the figures, on a table of COMPAS' size."""
    for words, result in audited_forests():
        for how in ("average", "all"):
            began, used = time.perf_counter(), time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                limi.repair(result, how=how).save(Path(folder) / "fixed", model=False)
            took, used = time.perf_counter() - began, time.process_time() - used
            print(f"{words}, --how {how}: {took:.1f} s ({used:.1f} s of processors)", flush=True)


def benchmarks(*tables, seeds=3):
    """Models that 30 % of the rows were held out from, as they are and averaged, on those rows."""
    for name in tables or SEVEN:
        known = limi.data.load(name)
        rows, labels = benchmark._split(known)
        told = {"target": known.target, "favorable": known.favorable, "schema": known.schema}
        for kind in ("dnn", "rf"):
            found = {column: [] for column in SEVEN[name]}
            for seed in range(seeds):
                held = np.random.default_rng(seed).random(len(rows)) < 0.3
                columns = tuple(known.schema.names)
                made = benchmark.fit(kind, rows[~held], labels[~held], columns=columns, seed=seed)
                for column, each in found.items():
                    problem = prepare(made, known.frame, protected=[column], **told)
                    partners = make_table(problem.target, problem.rows[~held])
                    fair, odds = (
                        average_target(problem, problem.target, partners, scale).target
                        for scale in ("probability", "log-odds")
                    )
                    asked = (problem.target, fair, odds)
                    people, truth = problem.rows[held], labels[held]
                    each.append([measure(one, problem.schema, people, truth) for one in asked])
            for column, each in found.items():
                show_averages(f"{name} {column} {kind}", np.array(each))


def measure(target, schema, rows, labels):
    scores = target.score(rows)
    truth = labels == 1
    sure = np.clip(scores, 1e-3, 1 - 1e-3)
    return [
        100 * float((favors(scores) == truth).mean()),
        rank_auc(scores, labels).value,
        100 * float(favors(scores).mean()),
        100 * float(check_rows(target.score, schema, rows[:2_000]).flips.mean()),
        float(-np.log(np.where(truth, sure, 1 - sure)).mean()),
        expected_calibration_error(scores, labels),
    ]


def show_averages(head, each):
    """(seeds, as it is / probabilities / log-odds, figures): their means, and what is lost."""
    lost = each[:, 0, 0] - each[:, 1, 0]
    mean = each.mean(axis=0)
    print(
        f"{head}: {lost.mean():+.2f} points of accuracy lost (by seed "
        f"{', '.join(f'{one:+.2f}' for one in lost)}); as it is / probabilities / log-odds: "
        f"accuracy {' / '.join(f'{v:.2f}' for v in mean[:, 0])}, "
        f"AUC {' / '.join(f'{v:.3f}' for v in mean[:, 1])}, "
        f"favorable % {' / '.join(f'{v:.1f}' for v in mean[:, 2])}, "
        f"flips % {' / '.join(f'{v:.1f}' for v in mean[:, 3])}, "
        f"log loss {' / '.join(f'{v:.3f}' for v in mean[:, 4])}, "
        f"calibration error {' / '.join(f'{v:.3f}' for v in mean[:, 5])}",
        flush=True,
    )


def million(n=1_000_000):
    import skops.io as sio

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
    commands = (table, cost, seconds, benchmarks, workers, million)
    asked = {command.__name__: command for command in commands}
    asked[sys.argv[1]](*sys.argv[2:])
