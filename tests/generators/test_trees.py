"""Trees against their definition, and on tables that are wide, long, odd or damaged."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from limi import data, generators
from limi.errors import CorruptStore, InvalidInput
from limi.generators import _bins, _decision_diagram, trees
from limi.generators._decision_diagram import DiagramWalk, _count, _cut, _pack
from limi.metrics.naturalness import average_tabular_naturalness, copy_shares
from limi.table.frames import Codec
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from limi.testing.generators import SCHEMA, table
from tests.naive import trees as naive

SMALL = Schema(
    (
        Column(name="x", kind="numerical", low=0, high=4, step=1, missing=True),
        Column(name="y", kind="categorical", levels=("a", "b", "c", "d")),
        Column(name="z", kind="boolean", levels=(False, True)),
    )
)


def small_rows(n, seed=0):
    """x decides y; the value 3 of x and the level d of y never occur."""
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, 1, 2, 4, np.nan], n, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    y = np.where(rng.random(n) < 0.9, np.where(np.isnan(x), 2, x % 2), rng.integers(0, 3, n))
    return np.column_stack([x, y, rng.random(n) < 0.2 + 0.5 * (y == 1)])


def all_rows(schema):
    axes = [
        [*(low + step * np.arange(size)), *([np.nan] if may_miss else [])]
        for low, step, size, may_miss in zip(
            schema.low, schema.step, schema.sizes, schema.may_miss, strict=True
        )
    ]
    return np.array(list(itertools.product(*axes)))


def fit(rows, schema, seed=0, **more):
    return trees.fit(rows, schema, np.random.default_rng(seed), settings=trees.Settings(**more))


def sample(generator, n, seed=1):
    return generator.decode(generator.sample_latents(n, np.random.default_rng(seed)))


# -- the definition ---------------------------------------------------------------------


def test_decoding_follows_the_definition():
    whole = Schema(tuple(c for c in SCHEMA.columns if c.name != "rate"))
    rows = np.delete(table(500), 1, axis=1)
    generator = fit(rows, whole, min_leaf=20, max_bins=12, protected_first=True)
    latents = generator.sample_latents(300, np.random.default_rng(0))

    expected = [naive.decode(generator, latent) for latent in latents]

    np.testing.assert_array_equal(generator.decode(latents), expected)


def test_probabilities_of_all_rows_add_up_to_one():
    generator = fit(small_rows(400), SMALL, min_leaf=20)
    probabilities = np.exp(generator.log_prob(all_rows(SMALL)))
    assert len(probabilities) == 48
    assert probabilities.min() > 0
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_samples_come_as_often_as_their_probability_says():
    generator = fit(small_rows(400), SMALL, min_leaf=20)
    n = 100_000
    drawn = sample(generator, n)
    every = all_rows(SMALL)
    counts = [
        int(np.all((drawn == row) | (np.isnan(drawn) & np.isnan(row)), axis=1).sum())
        for row in every
    ]
    expected = np.exp(generator.log_prob(every)) * n
    assert sum(counts) == n
    # Five standard deviations of a count.
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected) + 1).all()


def test_density_of_real_numbers_integrates_to_one():
    schema = Schema((SCHEMA["rate"],))
    generator = fit(table(400)[:, [1]], schema, max_bins=8)
    bins = generator.conditionals[0].bins
    points = bins.values[bins.counts > 1]
    atoms = np.exp(generator.log_prob(np.append(points, np.nan)[:, None])).sum()
    grid = np.linspace(-1, 3.5, 400_001)
    density = np.exp(generator.log_prob(np.setdiff1d(grid, bins.values)[:, None]))
    assert points.tolist() == [-1.0, 0.0] or 0.0 in points
    assert atoms + density.mean() * 4.5 == pytest.approx(1, abs=2e-3)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_row_of_the_domain_has_latents_that_give_it_back(seed):
    generator = fit(table(400), SCHEMA, min_leaf=20, max_bins=16)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([table(50, seed), uniform(SCHEMA, 50, rng), [SCHEMA.low, SCHEMA.high]])
    middles = generator.conditionals[1].bins._high[:-1]
    rows[:, 1] = np.where(rng.random(102) < 0.2, rng.choice(middles, 102), rows[:, 1])

    latents = generator.encode(rows, rng)

    assert np.isfinite(latents).all()
    real = SCHEMA.sizes == 0
    decoded = generator.decode(latents)
    np.testing.assert_array_equal(decoded[:, ~real], rows[:, ~real])
    np.testing.assert_allclose(decoded[:, real], rows[:, real], rtol=0, atol=1e-7)


def test_encoded_training_rows_are_standard_normal():
    rows = table(4000)
    generator = fit(rows, SCHEMA, min_leaf=50)
    latents = generator.encode(rows, np.random.default_rng(0))
    for column in latents.T:
        assert kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(latents.T) - np.eye(len(SCHEMA))).max() < 0.06


def test_a_column_depends_on_its_own_number_and_those_before():
    rows = table(1000)
    generator = fit(rows, SCHEMA, order=tuple(reversed(SCHEMA.names)))
    latents = generator.sample_latents(500, np.random.default_rng(0))
    moved = latents.copy()
    moved[:, SCHEMA.position("job")] += 1.0
    before, after = generator.decode(latents), generator.decode(moved)
    earlier = [SCHEMA.position(n) for n in ("country", "member", "size")]
    np.testing.assert_array_equal(before[:, earlier], after[:, earlier])
    assert (before[:, 0] != after[:, 0]).any()


def test_order_of_columns():
    rows = table(300)
    protected = SCHEMA.protect(["member"])
    assert fit(rows, SCHEMA).order == tuple(SCHEMA.names)
    assert fit(rows, protected, protected_first=True).order[0] == "member"
    fewest = fit(rows, SCHEMA, order="fewest-first").order
    assert fewest[:2] == ("country", "member")
    with pytest.raises(InvalidInput, match="did you mean 'price'"):
        fit(rows, SCHEMA, order=("prize", *SCHEMA.names[1:]))
    with pytest.raises(InvalidInput, match="once"):
        fit(rows, SCHEMA, order=("age",))
    with pytest.raises(InvalidInput, match="fewest-first"):
        fit(rows, SCHEMA, order="random")


@pytest.mark.parametrize(
    "wrong", [{"min_leaf": 0}, {"max_bins": 1}, {"min_gain": -1.0}, {"max_rows": 0}]
)
def test_settings_are_checked(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        trees.Settings(**wrong)


# -- threads, chunks, latents -----------------------------------------------------------


def test_threads_and_chunks_change_nothing(monkeypatch):
    rows = table(3000)
    generator = fit(rows, SCHEMA)
    latents = generator.sample_latents(5000, np.random.default_rng(0))
    alone = dataclasses.replace(generator, threads=1).decode(latents)
    monkeypatch.setattr(trees, "_CHUNK_ROWS", 600)
    np.testing.assert_array_equal(alone, dataclasses.replace(generator, threads=4).decode(latents))
    monkeypatch.setattr(trees, "_n_threads", lambda: 1)
    np.testing.assert_array_equal(alone, fit(rows, SCHEMA).decode(latents))


def test_decoding_holds_the_rows_and_a_few_chunks():
    generator = fit(table(3000), SCHEMA)
    # One thread: how far two of them overlap is chance; each holds as much as this one.
    generator = dataclasses.replace(generator, threads=1)

    def beyond_the_rows(n):
        latents = generator.sample_latents(n, np.random.default_rng(0))
        tracemalloc.start()
        rows = generator.decode(latents)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - rows.nbytes

    beyond_the_rows(100_000)
    assert beyond_the_rows(400_000) < 1.5 * beyond_the_rows(100_000)


def test_tails_and_single_precision_and_nan():
    generator = fit(table(300), SCHEMA)
    latents = generator.sample_latents(50, np.random.default_rng(0)).astype(np.float32)
    np.testing.assert_array_equal(
        generator.decode(latents), generator.decode(latents.astype(np.float64))
    )
    ends = generator.decode(np.array([[-np.inf] * 7, [-40.0] * 7, [40.0] * 7, [np.inf] * 7]))
    assert (ends[:, 0] >= 17).all()
    assert (ends[:, 0] <= 90).all()
    latents[3, 3] = np.nan
    with pytest.raises(InvalidInput, match="NaN"):
        generator.decode(latents)


# -- naturalness ------------------------------------------------------------------------


def test_dependencies_and_gaps_are_kept():
    rows = table(4000)
    drawn = sample(fit(rows, SCHEMA), 4000)
    assert average_tabular_naturalness(rows, drawn, SCHEMA).score > 0.98
    for j in (1, 3):
        assert np.isnan(drawn[:, j]).mean() == pytest.approx(np.isnan(rows[:, j]).mean(), abs=0.02)
    old = drawn[:, 0] > 40
    assert np.nanmean(drawn[old, 3]) > np.nanmean(drawn[~old, 3]) + 0.7
    independent = np.column_stack(
        [np.random.default_rng(j).permutation(column) for j, column in enumerate(rows.T)]
    )
    assert average_tabular_naturalness(rows, independent, SCHEMA).score < 0.97


def test_german_credit_is_imitated():
    dataset = data.load("credit")
    rows = Codec.learn(dataset.frame, dataset.schema).encode(dataset.frame)
    generator = fit(rows, dataset.schema)
    drawn = [sample(generator, len(rows), seed) for seed in range(3)]
    scores = [average_tabular_naturalness(rows, d, dataset.schema).score for d in drawn]
    assert np.mean(scores) >= 0.955
    assert copy_shares(rows, rows[:1], drawn[0], dataset.schema).generated == 0


def test_levels_without_order_are_put_in_one():
    # Even and odd levels of y go with low and high x, so the even ones belong together.
    schema = Schema(
        (
            Column(name="y", kind="categorical", levels=tuple("abcdefghij")),
            Column(name="x", kind="numerical", low=0, high=9, step=1),
        )
    )
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 5000).astype(float)
    rows = np.column_stack([y, rng.integers(0, 5, 5000) + 5 * (y % 2)])
    generator = fit(rows, schema)
    parity = generator.conditionals[0].bins.only_value % 2
    assert np.count_nonzero(np.diff(parity)) == 1
    assert generator.conditionals[1].walk.threshold[0] == 4
    drawn = sample(generator, 2000)
    np.testing.assert_array_equal(drawn[:, 0] % 2, drawn[:, 1] >= 5)


# -- columns of many values -------------------------------------------------------------


def test_thousands_of_levels_are_grouped_and_given_back():
    levels = tuple(f"town {i}" for i in range(20_000))
    schema = Schema(
        (
            Column(name="north", kind="boolean", levels=(False, True)),
            Column(name="town", kind="categorical", levels=levels),
        )
    )
    rng = np.random.default_rng(0)
    town = np.append(rng.permutation(20_000), np.full(5000, 7)).astype(float)
    rows = np.column_stack([town >= 10_000, town])
    generator = fit(rows, schema)
    drawn = sample(generator, 20_000)
    assert len(generator.conditionals[1].bins) < 200
    assert len(np.unique(drawn[:, 1])) > 8000
    assert (drawn[:, 1] == 7).mean() == pytest.approx(0.2, abs=0.02)
    assert ((drawn[:, 1] >= 10_000) == drawn[:, 0]).mean() > 0.95
    np.testing.assert_array_equal(generator.decode(generator.encode(rows[:500], rng)), rows[:500])


def test_real_numbers_lie_between_those_of_the_table_and_repeated_ones_stay():
    rng = np.random.default_rng(0)
    pay = np.where(rng.random(5000) < 0.3, 0.0, rng.lognormal(10, 1, 5000))
    schema = Schema((Column(name="pay", kind="numerical", low=0.0, high=float(pay.max())),))
    drawn = sample(fit(pay[:, None], schema), 5000)[:, 0]
    assert (drawn == 0).mean() == pytest.approx(0.3, abs=0.03)
    assert np.isin(drawn[drawn > 0], pay).mean() < 0.05
    # Nothing is invented between 0 and the smallest pay.
    assert drawn[drawn > 0].min() >= pay[pay > 0].min()
    assert kstest(drawn, pay).statistic < 0.04


def test_many_whole_numbers_decode_to_values_of_the_table():
    rng = np.random.default_rng(0)
    amount = rng.integers(0, 100, 4000) * 500.0 + rng.choice([0, 0, 0, 1, 99], 4000)
    schema = Schema((Column(name="amount", kind="numerical", low=0, high=50_000, step=1),))
    drawn = sample(fit(amount[:, None], schema), 4000)
    assert np.isin(drawn[:, 0], amount).all()
    assert len(np.unique(drawn)) > 150


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 200),
    span=st.sampled_from([1, 5, 300]),
    real=st.booleans(),
    max_bins=st.integers(2, 20),
)
def test_bins_hold_every_cell_and_give_it_back(seed, n, span, real, max_bins):
    rng = np.random.default_rng(seed)
    cells = rng.random(n) * span if real else rng.integers(0, span, n).astype(float)
    cells[rng.random(n) < 0.1] = np.nan
    bins = _bins.cut(cells, real=real, max_bins=max_bins)
    bins = bins.in_order(rng.permutation(bins.n_known))

    places = bins.bin_of(cells)
    np.testing.assert_array_equal(np.bincount(places, minlength=len(bins)), bins.weights)
    fraction = bins.locate(cells, places, rng.random(n))
    assert ((fraction >= 0) & (fraction < 1)).all()
    np.testing.assert_allclose(bins.resolve(places, fraction), cells, rtol=0, atol=1e-8 * span)
    assert bins.n_known <= 2 * max_bins + 1
    if not real:
        values, first = np.unique(cells, return_index=True)
        log, dense = bins.log_share(values, places[first])
        shares = np.bincount(places[first], np.exp(log), minlength=len(bins))
        np.testing.assert_allclose(shares, 1)
        assert not dense.any()


# -- walking ----------------------------------------------------------------------------


def random_walk(rng, n_columns, n_splits):
    feature, threshold, left, right = [0], [0], [-1], [-1]
    for _ in range(n_splits):
        leaf = int(rng.choice([i for i, child in enumerate(left) if child < 0]))
        feature[leaf], threshold[leaf] = int(rng.integers(n_columns)), int(rng.integers(5))
        left[leaf], right[leaf] = len(left), len(left) + 1
        for column, empty in ((feature, 0), (threshold, 0), (left, -1), (right, -1)):
            column += [empty, empty]
    nodes = [np.array(column, dtype=np.int32) for column in (feature, threshold, left, right)]
    return DiagramWalk(*nodes, np.full(n_columns, 6))


@pytest.mark.parametrize("most_entries", [1 << 17, 0])
@pytest.mark.parametrize("most_tried", [24, 2])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_columns=st.integers(1, 6), n_splits=st.integers(0, 150))
def test_lookups_end_where_the_walk_ends(most_entries, most_tried, seed, n_columns, n_splits):
    rng = np.random.default_rng(seed)
    codes = np.asfortranarray(rng.integers(0, 6, (50, n_columns)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_decision_diagram, "_MOST_ENTRIES", most_entries)
        patch.setattr(_decision_diagram, "_MOST_TRIED", most_tried)
        walk = random_walk(rng, n_columns, n_splits)
        found = walk.leaf_of(codes)
    expected = [naive.leaf_of(walk, row) for row in codes]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(walk.step_by_step(codes), expected)
    assert (walk._diagram is None) == (n_splits > 0 and not most_entries)


# -- large, wide and damaged ------------------------------------------------------------


def test_long_tables_are_drawn_from_openly():
    told = []
    generator = trees.fit(
        table(3000),
        SCHEMA,
        np.random.default_rng(0),
        settings=trees.Settings(max_rows=1000),
        on_step=lambda done, words: told.append(words),
    )
    assert generator.notes == ("fitted on 1,000 of 3,000 rows, drawn at random",)
    assert told[0] == generator.notes[0]
    assert int(generator.conditionals[0].bins.weights.sum()) == 1000
    assert fit(table(3000), SCHEMA, max_cells=7 * 500).notes[0].startswith("fitted on 500 ")


def test_wide_tables_use_the_columns_that_tell_most():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (400, 120)).astype(float)
    rows[:, 119] = rows[:, 37]
    columns = [Column(name=f"c{j}", kind="numerical", low=0, high=2, step=1) for j in range(120)]
    generator = fit(rows, Schema(tuple(columns)), max_parents=5)
    assert set(generator.conditionals[119].walk.feature.tolist()) == {0, 37}
    drawn = sample(generator, 200)
    np.testing.assert_array_equal(drawn[:, 119], drawn[:, 37])


@pytest.mark.parametrize(("d", "parents", "bins"), [(64, 40, 64), (65, 16, 32)])
def test_wide_tables_have_coarser_trees_unless_told(monkeypatch, d, parents, bins):
    offered, grow = [], trees._grow

    def watch(place, codes, n_codes, parents, seed, settings):
        offered.append(len(parents))
        return grow(place, codes, n_codes, parents, seed, settings)

    monkeypatch.setattr(trees, "_grow", watch)
    rows = np.random.default_rng(0).random((800, d))
    columns = (Column(name=f"c{j}", kind="numerical", low=0, high=1) for j in range(d))
    schema = Schema(tuple(columns))
    generator = fit(rows, schema)
    assert (max(offered), generator.conditionals[0].bins.n_known) == (parents, bins)
    offered.clear()
    generator = fit(rows, schema, max_parents=20, max_bins=10)
    assert (max(offered), generator.conditionals[0].bins.n_known) == (20, 10)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda a: np.where(a > 0, a + 10_000, a)),
        ("left", lambda a: np.where(a > 0, 0, a)),
        ("feature", lambda a: a + 50),
        ("pair_bin", lambda a: a + 1000),
        ("pair_node", lambda a: a * 0),
        ("starts", lambda a: a * 0),
        ("column", lambda a: a + 70),
        ("left_sizes", lambda a: a[:-1]),
    ],
)
def test_damaged_files_are_refused(tmp_path, monkeypatch, name, change):
    generator = fit(table(400), SCHEMA, min_leaf=20)
    arrays, facts = generator.state()
    arrays[name] = change(arrays[name])
    monkeypatch.setattr(trees.Trees, "state", lambda self: (arrays, facts))
    generators.save(generator, tmp_path / "generator.limi")
    with pytest.raises(CorruptStore, match="damaged"):
        generators.load(tmp_path / "generator.limi")


def test_a_file_keeps_settings_notes_and_probabilities(tmp_path):
    protected = SCHEMA.protect(["member"])
    generator = fit(
        table(400), protected, max_rows=300, order=tuple(SCHEMA.names[::-1]), protected_first=True
    )
    generators.save(generator, tmp_path / "generator.limi")
    again = generators.load(tmp_path / "generator.limi")
    assert again.settings == generator.settings
    assert again.notes == generator.notes
    assert again.order == generator.order
    rows = table(100, seed=9)
    np.testing.assert_array_equal(again.log_prob(rows), generator.log_prob(rows))
    assert math.isfinite(again.log_prob(rows).sum())


def test_sets_that_remain_are_counted_as_they_are_told_apart():
    rng = np.random.default_rng(0)
    for n_leaves in (2, 60, 64, 65, 190):
        sets, possible = (_pack(rng.random((n, n_leaves)) < 0.3) for n in (90, 12))
        assert _count(sets, possible) == len(_cut(sets, possible)[0])
