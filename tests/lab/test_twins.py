"""Twins beside optimal transport: exact pairs, and measures that mean what they say."""

import itertools

import numpy as np
import pytest

from lab.cells import expand
from lab.files import load
from lab.kinds.twins import match_people, measure
from lab.mechanism import draw_known, draw_recidivism
from lab.workshop import Workshop
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="job", kind="categorical", levels=("a", "b", "c")),
        Column(name="age", kind="numerical", low=0, high=99, step=1),
    )
).protect(["sex"])


def test_pairs_are_those_of_all_permutations_with_the_least_distance():
    rng = np.random.default_rng(0)
    people, pool = (
        np.stack([np.full(5, sex), rng.integers(0, 3, 5), rng.integers(0, 99, 5)], axis=1).astype(
            float
        )
        for sex in (0, 1)
    )
    spread = np.concatenate([people, pool])[:, 2].std()

    def cost(order):
        other = pool[list(order)]
        jobs = (people[:, 1] != other[:, 1]).sum()
        return jobs + (((people[:, 2] - other[:, 2]) / spread) ** 2).sum()

    best = min(itertools.permutations(range(5)), key=cost)
    assert match_people(SCHEMA, people, pool).tolist() == list(best)


def test_true_twins_keep_what_does_not_hang_on_sex():
    known = draw_known(500, np.random.default_rng(1))
    age, district = (known.schema.position(name) for name in ("age", "district"))
    assert (known.rows[:, age] == known.twins[:, age]).all()
    assert (known.rows[:, district] == known.twins[:, district]).all()
    assert (known.rows[:, 0] == 1 - known.twins[:, 0]).all()
    again = draw_known(500, np.random.default_rng(1))
    assert (again.rows == known.rows).all()


def test_the_synthetic_table_has_two_groups_with_a_gap():
    schema, rows, labels = draw_recidivism(3000, np.random.default_rng(2))
    assert (rows >= schema.low).all()
    assert (rows <= schema.high).all()
    race = rows[:, schema.position("race")]
    gap = labels[race == 1].mean() - labels[race == 0].mean()
    assert 0.05 < gap < 0.3


@pytest.mark.parametrize("matching", ["trees", "assignment"])
def test_a_cell_on_people_whose_twins_are_known(matching, tmp_path):
    cells = expand(load("twins"), "smoke")
    cell = next(c for c in cells if c.table == "known" and c.variant == matching)
    told = measure(cell, Workshop(tmp_path))
    assert told["people"] == 60
    assert told["gains"] - told["losses"] == pytest.approx(told["net"], abs=2e-4)
    assert 0 <= told["placebo"] <= 1
    assert told["right"] > 0.6
    assert told["seconds"] >= 0
