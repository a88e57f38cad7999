"""Every group by itself."""

import math

import numpy as np
import pytest

from limi.metrics._base import Decided
from limi.metrics.group_lines import GroupLine, group_lines
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
        assert GroupLine.from_dict(json.loads(json.dumps(dataclasses.asdict(line)))) == line
