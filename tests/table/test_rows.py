import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.table.rows import KeySet, distinct, group, in_any, keys, snap, uniform
from limi.table.schema import Column, Schema
from tests.naive.check import key
from tests.toy import MIXED, integers

WIDE = Schema(
    (
        *(integers(f"x{i}", -3, 250 + i) for i in range(12)),
        Column(name="real", kind="numerical", low=0, high=1, missing=True),
        integers("p", 0, 1),
    )
).protect(["p"])


def test_uniform_rows_lie_in_the_domain_and_reach_all_of_it():
    rows = uniform(MIXED, 20_000, np.random.default_rng(0))
    for position, column in enumerate(MIXED.columns):
        cells = rows[:, position]
        known = cells[~np.isnan(cells)]
        assert known.min() >= MIXED.low[position]
        assert known.max() <= MIXED.high[position]
        if column.size:
            assert len(np.unique(known)) == column.size
            assert np.isnan(cells).any() == column.missing
    # Missing is one more value of a column: job has four.
    assert abs(np.isnan(rows[:, 2]).mean() - 0.25) < 0.02


@given(split=st.lists(st.integers(0, 50), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_uniform_rows_do_not_depend_on_how_many_are_drawn_at_once(split, seed):
    rng = np.random.default_rng(seed)
    parts = np.concatenate([uniform(MIXED, n, rng) for n in split])
    whole = uniform(MIXED, sum(split), np.random.default_rng(seed))
    np.testing.assert_array_equal(parts, whole)


def plain_values(column):
    """Every value of a column with a step, as a table would hold them."""
    if column.kind != "numerical":
        return [float(code) for code in range(column.size)]
    return [round(column.low + k * column.step, column.decimals) for k in range(column.size)]


TENTHS = Schema(
    (
        Column(name="tenths", kind="numerical", low=-1.0, high=1.0, step=0.1, missing=True),
        Column(name="years", kind="numerical", low=1900, high=2020, step=5),
        Column(name="real", kind="numerical", low=-2.0, high=6.0, missing=True),
        Column(name="one", kind="numerical", low=4, high=4, step=1, missing=True),
        Column(name="level", kind="categorical", levels=("a", "b", "c"), missing=True),
        Column(name="halves", kind="numerical", low=0.5, high=9.5, step=1.5),
    )
)


def test_uniform_cells_are_one_float_each_in_row_order():
    """Also beyond the stretches of rows that are worked on together."""
    rows = uniform(TENTHS, 5_000, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    for row in rows:
        for cell, column in zip(row.tolist(), TENTHS.columns, strict=True):
            draw = rng.random()
            if not column.size:
                expected = column.low + draw * (column.high - column.low)
            else:
                values = [*plain_values(column), *([float("nan")] if column.missing else [])]
                expected = values[int(draw * len(values))]
            assert cell == expected or cell != cell != expected != expected


def test_snapping_is_to_the_nearest_value_of_each_column():
    rng = np.random.default_rng(4)
    wild = TENTHS.low + (TENTHS.high - TENTHS.low) * rng.normal(0.5, 0.6, (4_200, 6))
    wild[rng.random(wild.shape) < 0.05] = np.nan
    snapped = snap(TENTHS, wild)
    for place, column in enumerate(TENTHS.columns):
        values = np.array(plain_values(column)) if column.size else None
        for cell, got in zip(wild[:, place].tolist(), snapped[:, place].tolist(), strict=True):
            if cell != cell:
                assert got != got
            elif values is None:
                assert got == min(max(cell, column.low), column.high)
            else:
                assert got in values
                assert abs(got - cell) <= np.abs(values - cell).min() + 1e-12


def test_snap_gives_cells_that_a_table_would_hold():
    rows = np.array([[17.2, -1, 2.6, 0.5, 0.49, 9, 0.2999]])
    np.testing.assert_array_equal(snap(MIXED, rows), [[18, 0, 2, 0, 0, 5, 0.3]])
    np.testing.assert_array_equal(snap(MIXED, snap(MIXED, rows)), snap(MIXED, rows))


def test_keys_need_the_words_they_need():
    census_like = Schema((*(integers(f"x{i}", 0, 99) for i in range(9)), integers("p", 0, 1)))
    assert keys(census_like.protect(["p"]), np.zeros((3, 10))).shape == (3, 1)
    assert keys(WIDE, np.zeros((3, 14))).shape == (3, 3)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 60))
def test_keys_are_equal_exactly_when_the_other_columns_are(seed, n):
    rng = np.random.default_rng(seed)
    for schema in (MIXED.protect(["sex"]), WIDE):
        rows = uniform(schema, n, rng)
        rows = rows[rng.integers(0, max(n, 1), n)] if n else rows
        rows[:, schema.protected_index] = 0
        known = distinct(schema, rows)
        plain = [key(schema, row) for row in rows]
        assert len(known.first) == len(set(plain))
        assert [plain.index(k) for k in plain] == known.first[known.of].tolist()


# Sums of cells are exact only below 2^53: many levels, levels far from zero, and steps of a tenth.
ODD = [
    Schema((*(integers(f"x{i}", 0, 99) for i in range(9)), integers("p", 0, 1))),
    Schema(
        (
            *(integers(f"y{i}", 1900, 2020, missing=i % 2 == 0) for i in range(8)),
            integers("p", 0, 1),
        )
    ),
    Schema((integers("id", 10**15, 10**15 + 40), integers("x", 0, 10**6), integers("p", 0, 1))),
    Schema((integers("wide", -(2**40), 2**40), integers("x", -9, 9), integers("p", 0, 1))),
    Schema(
        (
            Column(name="tenths", kind="numerical", low=-1, high=1, step=0.1, missing=True),
            Column(name="halves", kind="numerical", low=0.5, high=900.5, step=0.5),
            integers("one", 4, 4),
            integers("p", 0, 1, missing=True),
        )
    ),
]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), place=st.integers(0, len(ODD) - 1))
def test_keys_of_neighbours_differ_and_protected_cells_do_not_matter(seed, place):
    schema = ODD[place].protect(["p"])
    rng = np.random.default_rng(seed)
    base = uniform(schema, 20, rng)
    # Corners, where sums are largest, and rows one step away from others in one column.
    base[0], base[1] = schema.low, schema.high
    moved = base[rng.integers(0, 20, 60)]
    columns = rng.integers(0, len(schema), 60)
    moved[np.arange(60), columns] += rng.choice([-1, 1], 60) * schema.step[columns]
    rows = snap(schema, np.concatenate([base, moved, base]))
    rows[-20:, schema.protected_index] = np.nan
    known = distinct(schema, rows)
    plain = [key(schema, row) for row in rows]
    assert [plain.index(k) for k in plain] == known.first[known.of].tolist()


def steps(name, low, high, step, missing=False):
    return Column(name=name, kind="numerical", low=low, high=high, step=step, missing=missing)


SMALL = {
    "whole numbers off zero": (
        steps("a", 5, 7, 1, True),
        steps("b", -3, 0, 1, True),
        steps("c", 0, 2, 1),
        steps("p", 0, 1, 1),
    ),
    "steps of all kinds": (
        steps("a", -0.2, 0.2, 0.1, True),
        steps("b", 0.5, 2.0, 0.5, True),
        steps("c", 3, 5, 1, True),
        steps("p", 0, 1, 1, True),
    ),
    "ones from a fraction on": (
        steps("a", 0.3, 9.3, 1),
        steps("b", 0.7, 5.7, 1, True),
        steps("c", -0.4, 1.6, 1),
        steps("p", 0.1, 1.1, 1),
    ),
    "fractions from a whole number on": (
        steps("a", -1, 1, 0.1),
        steps("b", 2, 4, 0.5, True),
        steps("c", 0, 6, 2),
        steps("p", 0, 2, 2),
    ),
    "a real one beside": (
        steps("a", 1, 3, 1, True),
        steps("r", -1.0, 1.0, 0.0, True),
        steps("one", 4, 4, 1),
        steps("p", 0, 1, 1),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_row_of_a_small_domain_has_a_key_of_its_own(name):
    schema = Schema(SMALL[name]).protect(["p"])
    axes = [plain_values(c) if c.size else [-1.0, -0.25, 0.5] for c in schema.columns[:3]]
    for axis, column in zip(axes, schema.columns, strict=False):
        axis.extend([float("nan")] if column.missing else [])
    rows = np.array([(*cells, schema.low[3]) for cells in itertools.product(*axes)])
    assert len(distinct(schema, rows).first) == len(rows) > 10
    # Whatever else is in a batch, and whatever its protected cells hold.
    other = rows.copy()
    other[:, 3] = schema.high[3]
    both = distinct(schema, np.concatenate([rows, other[::-1]]))
    assert both.of[len(rows) :].tolist() == list(range(len(rows)))[::-1]
    whole = np.flatnonzero(~np.isnan(rows).any(axis=1))
    np.testing.assert_array_equal(keys(schema, rows[whole]), keys(schema, rows)[whole])


def test_a_batch_with_missing_cells_gives_the_keys_of_one_without():
    schema = MIXED.protect(["sex"])
    rows = uniform(schema, 400, np.random.default_rng(0))
    complete = ~np.isnan(rows).any(axis=1)
    assert 0 < complete.sum() < len(rows)
    np.testing.assert_array_equal(keys(schema, rows)[complete], keys(schema, rows[complete]))


def test_many_keys_are_grouped_as_few_are():
    rng = np.random.default_rng(0)
    for words in (1, 2):
        many = rng.integers(0, 3000, (5000, words)).astype(np.uint64)
        first, of = group(many)
        position: dict[tuple[int, ...], int] = {}
        expected = [position.setdefault(tuple(k), i) for i, k in enumerate(many.tolist())]
        assert first[of].tolist() == expected
        few_first, few_of = group(many[:300])
        assert few_first[few_of].tolist() == expected[:300]


def test_minus_zero_is_zero_and_missing_is_missing():
    schema = MIXED.protect(["sex"])
    rows = np.tile(uniform(schema, 1, np.random.default_rng(1)), (4, 1))
    rows[:, 5] = [0.0, -0.0, np.nan, -np.nan]
    assert distinct(schema, rows).of.tolist() == [0, 0, 1, 1]


@settings(max_examples=40)
@given(
    batches=st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=8),
    words=st.integers(1, 3),
)
def test_key_set_behaves_like_a_set(batches, words):
    seen, plain = KeySet(), set()
    for batch in batches:
        # Few distinct values in every word, so that single words repeat a lot.
        numbers = np.array(batch, dtype=np.uint64).reshape(-1, 1)
        batch_keys = np.concatenate([numbers // np.uint64(3**w) for w in range(words)], axis=1)
        as_tuples = [tuple(k) for k in batch_keys.tolist()]
        assert seen.contains(batch_keys).tolist() == [k in plain for k in as_tuples]
        fresh = [i for i, k in enumerate(as_tuples) if k not in plain and as_tuples.index(k) == i]
        seen.add(batch_keys[fresh])
        plain |= set(as_tuples)
        assert len(seen) == len(plain)


@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_set_of_many_keys_behaves_like_a_set(words):
    """More keys than are searched one run after another, in batches of all sizes."""
    rng = np.random.default_rng(words)
    seen, plain = KeySet(), set()
    for size in (700, 3, 1, 600, 2000, 40, 900, 5, 5, 1300):
        batch = rng.integers(0, 60 if words > 1 else 4000, (size, words)).astype(np.uint64)
        as_tuples = [tuple(k) for k in batch.tolist()]
        assert seen.contains(batch).tolist() == [k in plain for k in as_tuples]
        fresh = sorted({k: i for i, k in reversed(list(enumerate(as_tuples)))}.values())
        fresh = [i for i in fresh if as_tuples[i] not in plain]
        seen.add(batch[fresh])
        plain |= set(as_tuples)
        assert len(seen) == len(plain)
    everything = np.array(sorted(plain), dtype=np.uint64)
    assert seen.contains(everything).all()


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("most", [None, 0, 37])
@pytest.mark.parametrize("in_memory", [None, 900])
def test_taking_new_keys_is_asking_for_each_and_adding_it(words, most, in_memory):
    rng = np.random.default_rng(words)
    seen, plain = KeySet(in_memory), set()
    for size in (700, 3, 0, 600, 2000, 40):
        batch = rng.integers(0, 60 if words > 1 else 4000, (size, words)).astype(np.uint64)
        expected = []
        for place, one in enumerate(map(tuple, batch.tolist())):
            if one not in plain and (most is None or len(expected) < most):
                plain.add(one)
                expected.append(place)
        assert seen.take_new(batch, most).tolist() == expected
        assert len(seen) == len(plain)
    assert seen.contains(np.array(sorted(plain), dtype=np.uint64).reshape(-1, words)).all()


@pytest.mark.parametrize("n", [2, 3, 511, 512, 513, 2_000])
@pytest.mark.parametrize("words", [1, 2])
def test_keys_are_grouped_by_where_they_occur_first(n, words):
    rng = np.random.default_rng(n)
    distinct_ones = rng.permutation(10 * n)[:n].astype(np.uint64)[:, None].repeat(words, axis=1)
    first, of = group(distinct_ones)
    assert first.tolist() == of.tolist() == list(range(n))
    twice = np.concatenate([distinct_ones[: n // 2], distinct_ones[: n - n // 2]])
    first, of = group(twice)
    position = {}
    expected = [position.setdefault(tuple(k), i) for i, k in enumerate(twice.tolist())]
    assert first.tolist() == sorted(set(expected))
    assert first[of].tolist() == expected


@pytest.mark.parametrize("n", [60, 2_000])
def test_keys_with_the_same_hash_are_grouped_apart(n, monkeypatch):
    monkeypatch.setattr("limi.table.rows._hash", lambda keys: keys[:, 0] & np.uint64(3))
    two = np.random.default_rng(0).integers(0, 9, (n, 2)).astype(np.uint64)
    first, of = group(two)
    position = {}
    expected = [position.setdefault(tuple(k), i) for i, k in enumerate(two.tolist())]
    assert first[of].tolist() == expected
    assert first.tolist() == sorted(set(expected))


def test_keys_are_packed_as_tightly_as_they_fit():
    """A word holds the columns whose numbers of values multiply up to 2^64, and not one more."""

    def words(*sizes):
        columns = (integers(f"x{i}", 0, size - 1) for i, size in enumerate(sizes))
        schema = Schema((*columns, integers("p", 0, 1))).protect(["p"])
        rows = np.zeros((2, len(sizes) + 1))
        rows[1, : len(sizes)] = np.array(sizes) - 1.0
        found = keys(schema, rows)
        assert (found[0] != found[1]).any()
        return found.shape[1]

    assert words(2**32, 2**32) == 1
    assert words(2**32, 2**32, 2) == 2
    assert words(2**32, 2**32 + 1) == 2
    assert words(2**53, 2**11) == 1
    assert words(2**53, 2**11 + 1) == 2
    assert words(*[2] * 64) == 1
    assert words(*[2] * 65) == 2


@pytest.mark.parametrize("n", [20, 2000])
def test_keys_are_looked_for_in_several_sets_at_once(n):
    asked = np.random.default_rng(n).permutation(n).astype(np.uint64)[:, None]
    sets = [KeySet(), KeySet(), KeySet()]
    sets[0].add(np.arange(0, n, 2, dtype=np.uint64)[:, None])
    sets[2].add(np.arange(0, n, 3, dtype=np.uint64)[:, None])
    assert in_any(sets, asked).tolist() == [k % 2 == 0 or k % 3 == 0 for k in asked[:, 0].tolist()]
    assert not in_any([], asked).any()


def test_key_set_tells_keys_with_the_same_hash_apart(monkeypatch):
    monkeypatch.setattr("limi.table.rows._hash", lambda keys: keys[:, 0] & np.uint64(1))
    seen = KeySet()
    stored = np.arange(0, 20, 2, dtype=np.uint64)[:, None].repeat(2, axis=1)
    seen.add(stored[:5])
    seen.add(stored[5:])
    asked = np.arange(20, dtype=np.uint64)[:, None].repeat(2, axis=1)
    assert seen.contains(asked).tolist() == [True, False] * 10
    # Others with that hash are not in the set.
    assert not seen.contains(stored + np.uint64(100)).any()
    many = np.repeat(stored + np.uint64(100), 60, axis=0)
    many[::7] = stored[3]
    assert seen.contains(many).tolist() == [k % 7 == 0 for k in range(600)]
    schema = WIDE
    rows = uniform(schema, 50, np.random.default_rng(3))
    assert len(distinct(schema, rows).first) == 50
