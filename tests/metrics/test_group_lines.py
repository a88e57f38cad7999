"""Every group by itself."""

import math

import numpy as np
import pytest

from limi.decisions import Classes, Difference
from limi.metrics import _groups
from limi.metrics._base import Decided
from limi.metrics.group_lines import GroupLine, group_lines
from limi.metrics.outcomes import measure_gaps
from limi.system.plain import read
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="age", kind="numerical", low=18, high=80, step=1, missing=True),
        Column(name="x", kind="numerical", low=0, high=9, step=1),
    )
).protect({"sex": None, "age": [20, 60]})
RNG = np.random.default_rng(0)
N = 900
ROWS = np.column_stack([RNG.integers(0, 2, N), RNG.integers(18, 81, N), RNG.integers(0, 10, N)])
ROWS = ROWS.astype(float)
ROWS[:40, 1] = np.nan
FAVORABLE = RNG.random(N) < np.where(ROWS[:, 0] == 1, 0.6, 0.3)
LABELS = (RNG.random(N) < 0.5).astype(np.int8)
LABELS[::7] = -1


@pytest.fixture(scope="module")
def lines():
    return group_lines(SCHEMA, Decided("real", ROWS, FAVORABLE, LABELS))


def of(lines, *columns):
    return [line for line in lines if line.columns == columns]


def test_counts_are_those_of_a_loop_over_rows(lines):
    for place, line in enumerate(of(lines, "sex")):
        inside = ROWS[:, 0] == place
        known = [(f, t) for f, t, i in zip(FAVORABLE, LABELS, inside, strict=True) if i and t >= 0]
        assert line.n == inside.sum()
        assert line.selection.estimate == pytest.approx(FAVORABLE[inside].mean())
        assert line.accuracy.estimate == pytest.approx(np.mean([f == t for f, t in known]))
        assert line.accuracy.n == len(known)
        wrong = [f for f, t in known if t == 0]
        assert line.false_favorable.estimate == pytest.approx(np.mean(wrong))
        missed = [not f for f, t in known if t == 1]
        assert line.false_unfavorable.estimate == pytest.approx(np.mean(missed))


def test_numbers_are_cut_into_bands_that_hold_everybody(lines):
    bands = of(lines, "age")
    assert len(bands) == 6
    assert bands[-1].group == "missing"
    assert sum(line.n for line in bands) == N


def test_intersections_part_all_rows_and_small_ones_say_nothing(lines):
    both = of(lines, "sex", "age")
    assert sum(line.n for line in both) == N
    small = [line for line in both if line.n < 30]
    assert small
    assert all(line.selection is None and not line.is_enough for line in small)


def test_the_impact_ratio_compares_with_the_most_selected_group(lines):
    women, men = of(lines, "sex")
    assert (men.reference, men.impact_ratio.estimate) == (True, 1.0)
    assert women.impact_ratio.estimate == pytest.approx(
        women.selection.estimate / men.selection.estimate
    )
    assert women.impact_ratio.low < women.impact_ratio.estimate < women.impact_ratio.high
    assert women.below_four_fifths is True


def test_the_interval_of_the_ratio_covers_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(5)
    schema = SCHEMA.select(["sex", "x"])
    inside = []
    for _ in range(200):
        rows = np.column_stack([np.arange(400) % 2, np.zeros(400)])
        decided = rng.random(400) < np.where(rows[:, 0] == 1, 0.6, 0.4)
        women, _ = group_lines(schema, Decided("real", rows, decided, None))
        inside.append(women.impact_ratio.low <= 2 / 3 <= women.impact_ratio.high)
    assert np.mean(inside) > 0.9


def test_a_group_that_is_never_selected_has_a_ratio_of_zero_with_a_bound():
    rows = np.column_stack([np.arange(200) % 2, np.zeros(200)])
    women, men = group_lines(
        SCHEMA.select(["sex", "x"]), Decided("real", rows, rows[:, 0] == 1, None)
    )
    assert women.impact_ratio.estimate == women.impact_ratio.low == 0
    assert 0 < women.impact_ratio.high < 0.8
    assert women.accuracy is None
    assert math.isclose(men.selection.estimate, 1)


def test_nobody_selected_means_no_ratio():
    rows = np.column_stack([np.arange(200) % 2, np.zeros(200)])
    nobody = np.zeros(200, dtype=bool)
    lines = group_lines(SCHEMA.select(["sex", "x"]), Decided("real", rows, nobody, None))
    assert all(line.impact_ratio is None for line in lines)


def test_lines_survive_json(lines):
    import dataclasses
    import json

    for line in lines:
        assert read(GroupLine, json.loads(json.dumps(dataclasses.asdict(line)))) == line


def frame_of(metrics, decided, groups):
    fairlearn = pytest.importorskip("fairlearn.metrics", reason="fairlearn is the other opinion")
    known = decided.labels >= 0
    return fairlearn.MetricFrame(
        metrics={name: getattr(fairlearn, name) for name in metrics},
        y_true=decided.labels[known],
        y_pred=decided.favorable[known].astype(int),
        sensitive_features=groups[known],
    )


def test_every_group_has_the_figures_of_fairlearn(lines):
    """To 12 digits, on the rows with labels; selection is of all rows."""
    names = {
        "false_favorable": "false_positive_rate",
        "false_unfavorable": "false_negative_rate",
    }
    decided = Decided("real", ROWS, FAVORABLE, LABELS)
    parted = _groups.cut(SCHEMA["age"], ROWS[:, 1])
    for column, groups in (
        ("sex", np.array(["F", "M"])[ROWS[:, 0].astype(int)]),
        ("age", np.array(parted.words)[parted.places]),
    ):
        theirs = frame_of(names.values(), decided, groups).by_group
        for line in of(lines, column):
            for ours, name in names.items():
                found = getattr(line, ours)
                if found is not None:  # of enough rows
                    expected = theirs.loc[line.group, name]
                    assert found.estimate == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["class", "number"])
def test_gaps_of_classes_and_numbers_are_those_of_fairlearn(kind):
    fairlearn = pytest.importorskip("fairlearn.metrics", reason="fairlearn is the other opinion")
    from sklearn.metrics import accuracy_score, mean_absolute_error

    rng = np.random.default_rng(4)
    cells = rng.integers(0, 3, 600).astype(float)
    column = Column(name="race", kind="categorical", levels=("a", "b", "c"))
    schema = Schema((column, SCHEMA["x"])).protect(["race"])
    rows = np.column_stack([cells, np.zeros(600)])
    truth = rng.integers(0, 3, 600).astype(float)
    answers = np.where(rng.random(600) < 0.6, truth, rng.integers(0, 3, 600))
    given = {"sensitive_features": cells}
    if kind == "class":
        rule = Classes(("low", "mid", "high"))
        ours = measure_gaps(schema, rule, rows, answers + 0.25, truth)
        gap = fairlearn.MetricFrame(metrics=accuracy_score, y_true=truth, y_pred=answers, **given)
        widest = max(
            fairlearn.demographic_parity_difference(truth == k, answers == k, **given)
            for k in range(3)
        )
        theirs = {"accuracy_score_difference": gap.difference()}
        theirs["demographic_parity_difference"] = widest
    else:
        ours = measure_gaps(schema, Difference(10.0), rows, answers, truth)
        frames = [
            fairlearn.MetricFrame(metrics=metric, y_true=truth, y_pred=answers, **given)
            for metric in (fairlearn.mean_prediction, mean_absolute_error)
        ]
        names = ("mean_prediction_difference", "mean_absolute_error_difference")
        theirs = dict(zip(names, (frame.difference() for frame in frames), strict=True))
    assert ours == pytest.approx(theirs, abs=1e-12)
