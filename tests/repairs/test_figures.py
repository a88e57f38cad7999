"""Figures of a repair: groups, counts and intervals over seeds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as student

from limi.errors import InvalidInput
from limi.metrics import rate_of
from limi.metrics.privileged import count_by_value
from limi.repairs import _figures
from limi.repairs._figures import RepairFigure
from tests.repairs.small import people, problem


def test_the_privileged_group_is_stated_or_said():
    one = problem()
    stated = _figures.groups(one, ["sex=F"])
    assert (stated.words, stated.reason) == ("sex=F", "as stated")
    unasked = _figures.groups(one)
    assert unasked.words == "sex=M"  # whom the model favors
    assert "not given" in unasked.reason
    lowest = _figures.groups(problem(protected=["age", "sex"]), "lowest")
    assert lowest.words == "age=20"
    assert (
        _figures.groups(one, {"sex": "M"}).split(one.schema, one.rows)[0].sum()
        == (people()["sex"] == "M").sum()
    )
    for wrong, told in (
        (["sex"], "COLUMN=VALUE"),
        (["income=3"], "not a protected column"),
        (["sex=X"], "not a value of column"),
    ):
        with pytest.raises(InvalidInput, match=told):
            _figures.groups(one, wrong)


def test_the_privileged_group_is_stated_as_for_metrics():
    one = problem(protected=["age", "sex"])
    assert _figures.groups(one, ["lowest"]).words == "age=20"
    young = _figures.groups(one, ["age=20-21"])
    assert young.split(one.schema, one.rows)[0].sum() == (people()["age"] <= 21).sum()
    several = _figures.groups(one, ["age=20,23", "sex=M"])
    inside = people()["age"].isin([20, 23]) & (people()["sex"] == "M")
    assert several.split(one.schema, one.rows)[0].sum() == inside.sum()
    assert _figures.groups(one, ["sex=M"]).codes(one.schema) == {"sex": 1.0}
    with pytest.raises(InvalidInput, match="a single privileged value"):
        young.codes(one.schema)


def test_the_model_says_who_is_privileged_and_not_the_labels():
    frame = people()
    frame["ok"] = np.where(frame["sex"] == "F", "yes", "no")  # the model favors men
    assert _figures.groups(problem(frame)).words == "sex=M"


def test_the_privileged_group_is_not_chosen_from_a_handful():
    one = problem()
    favored = one.target.score(one.rows) > 0.5
    sex = one.rows[:, one.schema.position("sex")]
    few = np.flatnonzero(favored & (sex == 0))[:5]
    few = np.append(few, np.flatnonzero(~favored & (sex == 1))[:35])
    handful = {"sex": count_by_value(sex[few], favored[few], None)}
    assert _figures.groups(one, counted=handful).words == "sex=M"  # as the whole table has it
    small = problem(people(40))
    assert "may be chance" in _figures.groups(small).reason
    assert "may be chance" not in _figures.groups(one).reason


def test_a_number_of_many_values_is_cut_in_halves():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, 10, 4000), "age": rng.integers(20, 70, 4000)})
    frame["sex"] = np.where(frame["age"] >= 45, "M", "F")
    frame["ok"] = np.where(frame["income"] > 8, "yes", "no")
    middle = int(np.median(frame["age"]))
    assert _figures.groups(problem(frame, protected=["age"])).words == f"age={middle} or more"


def test_a_reason_is_kept_over_seeds():
    figure = RepairFigure(None, reason="no row whose true label is favorable")
    joined = _figures.over_seeds([figure, RepairFigure(0.1)])
    assert joined.value is None
    assert joined.reason == figure.reason


def test_intervals_over_seeds_are_student_s():
    values = [0.10, 0.14, 0.12]
    figure = _figures.over_seeds([RepairFigure(v, v - 0.01, v + 0.01) for v in values])
    low, high = student.interval(
        0.95, 2, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(3)
    )
    assert (figure.value, figure.low, figure.high) == pytest.approx((0.12, low, high))
    assert (figure.seeds, figure.interval) == (tuple(values), "seeds")
    alone = _figures.over_seeds([RepairFigure(0.5, 0.4, 0.6)])
    assert (alone.low, alone.high) == (0.4, 0.6)


def test_zero_flips_over_seeds_show_the_bound_of_the_rows_asked():
    n = 20_000
    interval = rate_of(0, n).low, rate_of(0, n).high
    figure = _figures.over_seeds([RepairFigure(0.0, *interval)] * 3)
    # The seeds ask the same rows, so three of them prove no more than one.
    exact = binomtest(0, n).proportion_ci(method="exact")
    assert (figure.value, figure.low) == (0.0, 0.0)
    assert figure.high == pytest.approx(exact.high)
    assert figure.interval == "rows"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2)), min_size=2, max_size=5))
def test_intervals_over_seeds_are_the_wider_of_two(seeds):
    each = [RepairFigure(v, max(0.0, v - half), min(1.0, v + half)) for v, half in seeds]
    joined = _figures.over_seeds(each)
    values = np.array([f.value for f in each])
    half = student.ppf(0.975, len(each) - 1) * values.std(ddof=1) / np.sqrt(len(each))
    by_seeds = (max(0.0, values.mean() - half), min(1.0, values.mean() + half))
    by_rows = tuple(np.mean([getattr(f, end) for f in each]) for end in ("low", "high"))
    wider = max(by_seeds, by_rows, key=lambda ends: ends[1] - ends[0])
    assert joined.high - joined.low == pytest.approx(wider[1] - wider[0], abs=1e-12)
    assert joined.low - 1e-12 <= joined.value <= joined.high + 1e-12


def test_a_missing_protected_cell_belongs_to_no_group():
    one = problem()
    rows = one.rows[:6].copy()
    rows[:2, one.schema.position("sex")] = np.nan
    inside, outside = _figures.groups(one, {"sex": "M"}).split(one.schema, rows)
    assert not (inside | outside)[:2].any()
    assert (inside ^ outside)[2:].all()


def test_the_protected_cells_that_most_rows_have_are_put_everywhere():
    one = problem()
    cells = _figures.usual_cells(one.schema, one.rows)
    hidden = _figures.hide_protected(one.schema, one.rows, cells)
    protected = one.schema.protected_index
    assert (hidden[:, protected] == cells).all()
    same = (one.rows[:, protected] == cells).all(axis=1)
    assert same.mean() >= 0.5 / len(one.schema.combinations)
    np.testing.assert_array_equal(hidden[same], one.rows[same])
