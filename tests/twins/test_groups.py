"""Groups of people, and the protected values of their twins."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.table.schema import Column, Schema
from limi.twins.groups import FEWEST, find_groups

SEX = Column(name="sex", kind="categorical", levels=("F", "M", "X"))
AGE = Column(name="age", kind="numerical", low=18, high=90, step=1, missing=True)
REAL = Column(name="height", kind="numerical", low=1.0, high=2.5)
PAY = Column(name="pay", kind="numerical", low=0, high=9, step=1)


def people(n, rng, **columns):
    return np.stack([*columns.values(), rng.integers(0, 10, n).astype(float)], axis=1)


def test_a_group_needs_forty_people_and_the_smaller_ones_are_named():
    rng = np.random.default_rng(0)
    rows = people(145, rng, sex=np.repeat([0.0, 1.0, 2.0], [66, FEWEST, FEWEST - 1]))
    groups = find_groups(Schema((SEX, PAY)).protect(["sex"]), rows)
    assert groups.names == ("sex F", "sex M")
    assert groups.counts.tolist() == [66, FEWEST]
    assert groups.small == (("sex X", FEWEST - 1),)
    assert set(groups.of(rows[-FEWEST + 1 :]).tolist()) == {-1}


def test_one_group_that_is_large_enough_is_refused_in_one_sentence():
    rows = people(100, np.random.default_rng(0), sex=np.repeat([0.0, 1.0], [90, 10]))
    with pytest.raises(InvalidInput, match=r"at least 40 people each.* have 90 and 10"):
        find_groups(Schema((SEX, PAY)).protect(["sex"]), rows)


def test_a_number_with_many_values_is_cut_at_quartiles_of_the_people():
    rng = np.random.default_rng(1)
    age = rng.integers(18, 91, 400).astype(float)
    age[:5] = np.nan
    rows = people(400, rng, age=age)
    groups = find_groups(Schema((AGE, PAY)).protect(["age"]), rows)
    assert len(groups) == 4
    assert groups.names[0].startswith("age under ")
    assert groups.names[-1].endswith(" or more")
    assert (groups.of(rows)[:5] == -1).all()
    assert groups.counts.min() > 80
    own = groups.of(rows)
    for number in range(3):
        assert rows[own == number, 0].max() < rows[own == number + 1, 0].min()


def test_few_values_of_a_number_are_bands_around_them():
    rng = np.random.default_rng(2)
    rows = people(300, rng, age=rng.integers(18, 91, 300).astype(float))
    groups = find_groups(Schema((AGE, PAY)).protect(["age=30,60"]), rows)
    assert groups.names == ("age under 45", "age 45 or more")
    rows = people(300, rng, height=rng.uniform(1.4, 2.1, 300))
    groups = find_groups(Schema((REAL, PAY)).protect(["height=1.5,1.7,1.9"]), rows)
    assert groups.names == ("height under 1.6", "height 1.6 to under 1.8", "height 1.8 or more")


def test_a_number_that_moves_to_another_band_keeps_its_rank():
    rng = np.random.default_rng(3)
    rows = people(400, rng, age=np.arange(400) % 60 + 18.0)
    groups = find_groups(Schema((AGE, PAY)).protect(["age=30,60"]), rows)
    own = groups.of(rows)
    young = rows[own == 0]
    old = groups.move(young, own[own == 0], np.ones(len(young), dtype=int), rng)
    assert (groups.of(old) == 1).all()
    order = np.argsort(young[:, 0], kind="stable")
    rank = np.searchsorted(groups.values[1][0], old[order, 0]) / len(groups.values[1][0])
    even = np.arange(len(order)) / len(order)
    assert np.abs(rank - even).max() < 0.08  # equal ages are told apart by a draw
    assert (old[:, 1] == young[:, 1]).all()


def test_several_columns_make_groups_of_their_combinations():
    rng = np.random.default_rng(4)
    sex, age = rng.integers(0, 2, 600).astype(float), rng.integers(18, 91, 600).astype(float)
    rows = np.stack([sex, age, rng.integers(0, 10, 600).astype(float)], axis=1)
    groups = find_groups(Schema((SEX, AGE, PAY)).protect(["sex", "age=30,60"]), rows)
    assert groups.names[0] == "sex F, age under 45"
    assert len(groups) == 4
    goals = (groups.of(rows) + 1) % 4
    assert (groups.of(groups.move(rows, groups.of(rows), goals, rng)) == goals).all()
