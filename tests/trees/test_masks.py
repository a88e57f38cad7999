"""Trees added up by masks give what the library gives by walking down each of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from limi.trees.histograms import plant
from limi.trees.masks import MaskedTrees, _Bins

SCHEMA = Schema(
    columns=(
        Column(name="whole", kind="numerical", low=-3, high=40, step=1),
        Column(name="halves", kind="numerical", low=0.5, high=9, step=0.5, missing=True),
        Column(name="real", kind="numerical", low=-1, high=1, missing=True),
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="job", kind="categorical", levels=tuple("abcdefg"), missing=True),
        Column(name="grade", kind="ordered", levels=tuple("uvwxyz")),
        Column(name="far", kind="numerical", low=0, high=9_999, step=1),
        Column(name="old", kind="boolean", levels=(False, True)),
    ),
).protect(["sex", "old"])
FREE = np.array(SCHEMA.free_index)
CATEGORICAL = [column.kind in ("categorical", "boolean") for column in SCHEMA.columns]


def draw(n, seed):
    rng = np.random.default_rng(seed)
    rows = uniform(SCHEMA, n, rng)
    for i, column in enumerate(SCHEMA.columns):
        if column.missing:
            rows[rng.random(n) < 0.1, i] = np.nan
    return rows


def grow(leaves=31, trees=12, n=600):
    rows = draw(n, 0)
    known = np.nan_to_num(rows)
    pull = known[:, 0] / 9 + known[:, 3] * (known[:, 4] % 3) - known[:, 2] * known[:, 5]
    pull += (known[:, 6] > 4_000) * known[:, 7] * 2
    rows[rows[:, 4] == 6, 4] = 5  # a level that no tree has seen
    shape = {"max_leaf_nodes": leaves, "max_iter": trees, "min_samples_leaf": 2}
    scores = HistGradientBoostingRegressor(categorical_features=CATEGORICAL, **shape)
    scores.fit(rows, pull)
    categorical = [CATEGORICAL[i] for i in FREE]
    flips = HistGradientBoostingClassifier(categorical_features=categorical, **shape)
    flips.fit(rows[:, FREE], pull > 3)
    return scores, flips


def masked(*learned, schema=SCHEMA):
    every = [np.arange(len(schema)), FREE]
    planted = [plant(one, columns) for one, columns in zip(learned, every, strict=False)]
    return MaskedTrees.plant(schema, planted, schema.protected_index)


def settings():
    rows = np.zeros((len(SCHEMA.combinations), len(SCHEMA)))
    rows[:, SCHEMA.protected_index] = SCHEMA.combinations
    return rows


@pytest.mark.parametrize(
    ("leaves", "n", "n_masks"),
    [(8, 600, 1), (31, 600, 1), (32, 600, 2), (124, 600, 4), (200, 900, 7)],
)
def test_sums_are_those_of_the_library(leaves, n, n_masks):
    scores, flips = grow(leaves, n=n)
    trees, rows = masked(scores, flips), draw(700, 1)
    by_scores, by_flips = trees.add_up(rows, settings())
    assert trees.groups[0].lines.shape[1] >= n_masks * 12 + 12
    for i, values in enumerate(SCHEMA.combinations):
        rows[:, SCHEMA.protected_index] = values
        assert np.allclose(by_scores[:, i], scores.predict(rows), rtol=0, atol=1e-5)
    assert by_flips.shape == (700, 1)  # the protected columns are not among these
    assert np.allclose(by_flips[:, 0], flips.decision_function(rows[:, FREE]), rtol=0, atol=1e-5)


def test_sums_are_the_same_for_any_threads_and_parts():
    trees, rows = masked(*grow()), draw(9_000, 2)
    whole = trees.add_up(rows, settings())
    parts = [trees.add_up(part, settings()) for part in np.split(rows, 9)]
    for found in (
        trees.add_up(rows, settings(), n_threads=3),
        [np.concatenate(part) for part in zip(*parts, strict=True)],
    ):
        for one, other in zip(whole, found, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("low", "step"), [(0.0, 0.1), (0.3, 1.0), (-2.0, 0.01)])
def test_decimals_lie_in_the_bins_that_the_library_puts_them_in(low, step):
    column = Column(name="x", kind="numerical", low=low, high=low + 1_000 * step, step=step)
    schema = Schema((column, Column(name="sex", kind="boolean", levels=(False, True))))
    schema = schema.protect(["sex"])
    rows = uniform(schema, 3_000, np.random.default_rng(0))
    pull = np.sin(rows[:, 0] / step) * 3
    learned = HistGradientBoostingRegressor(max_leaf_nodes=200, min_samples_leaf=2).fit(rows, pull)
    trees = MaskedTrees.plant(schema, [plant(learned, np.arange(2))], schema.protected_index)
    (sums,) = trees.add_up(rows, np.array([[0.0, 0.0], [0.0, 1.0]]))
    for sex in (0, 1):
        rows[:, 1] = sex
        assert np.allclose(sums[:, sex], learned.predict(rows), rtol=0, atol=1e-5)


def test_trees_that_never_split_give_one_sum():
    constant = HistGradientBoostingRegressor(max_iter=3).fit(draw(30, 0), np.full(30, 2.5))
    (sums,) = masked(constant).add_up(draw(5, 1), settings())
    assert sums.tolist() == [[2.5]] * 5


def test_columns_are_joined_while_their_lines_are_few():
    scores, flips = grow()
    groups = masked(scores, flips).groups
    assert sum(len(group.bins) for group in groups) == len(FREE)
    assert len(groups) < len(FREE)
    assert max(len(group.lines) for group in groups if len(group.bins) > 1) <= 1024
    for group in groups:
        assert len(group.lines) == np.prod([bins.size for bins in group.bins])


def test_cells_outside_a_domain_count_as_its_ends():
    planted = [plant(grow()[0], np.arange(len(SCHEMA)))]
    bins = _Bins.of(SCHEMA, 0, planted)
    assert bins.place(np.array([-99.0, 99.0])).tolist() == bins.place(np.array([-3.0, 40])).tolist()
    searched = replace(bins, looked_up=None)  # as columns of many values are
    every = np.arange(-3.0, 41)
    assert np.array_equal(bins.place(every), searched.place(every))
