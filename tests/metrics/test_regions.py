"""Rules of where decisions flip: recovered where they exist, absent where they do not."""

import dataclasses
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact

import limi
from limi.audits.summary import Summary
from limi.metrics import regions
from limi.metrics.individual import clopper_pearson, rate_of
from limi.metrics.regions import Condition, find_rules
from limi.report import html, text, wording
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from tests.naive import regions as naive
from tests.toy import MIXED, integers, schema_of

PEOPLE = Schema(
    (
        integers("age", 18, 80),
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="job", kind="categorical", levels=tuple("abcdef"), missing=True),
        Column(name="rank", kind="ordered", levels=("low", "mid", "high", "top")),
        Column(name="debt", kind="numerical", low=0.0, high=1.0, missing=True),
    )
).protect(["sex"])
AGE, JOB, RANK, DEBT = (PEOPLE[name] for name in ("age", "job", "rank", "debt"))


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = uniform(PEOPLE, n, rng)
    rows[rng.random(n) < 0.15, 4] = np.nan
    return rows


def rules_of(rows, flips, seed=0, schema=PEOPLE, **more):
    return find_rules(schema, rows, flips, np.random.default_rng(seed), **more)


def words(found):
    return [{str(condition) for condition in rule.conditions} for rule in found.rules]


# -- what is there is found ----------------------------------------------------------------


def test_a_box_is_recovered_with_its_bounds():
    rows = people(6_000)
    box = (rows[:, 0] >= 33) & (rows[:, 0] <= 57) & np.isin(rows[:, 2], [1, 4]) & (rows[:, 3] >= 2)
    found = rules_of(rows, box)
    assert words(found) == [{"age from 33 to 57", "job is b or e", "rank at least high"}]
    rule = found.rules[0]
    assert np.array_equal(rule.mask(rows), box)
    assert rule.rate.estimate == rule.rate.high == 1.0
    assert rule.lift == pytest.approx(1 / found.base.estimate)
    assert found.flips == 1.0
    assert found.tried == 1


@pytest.mark.parametrize(
    ("flips", "expected"),
    [
        (lambda rows: np.isnan(rows[:, 4]), "debt is missing"),
        (lambda rows: rows[:, 4] <= 0.3, "debt at most 0.3"),
        (lambda rows: ~(rows[:, 4] > 0.25), "debt at most 0.25 or missing"),
        (lambda rows: np.isnan(rows[:, 2]), "job is missing"),
        (lambda rows: np.isnan(rows[:, 2]) | (rows[:, 2] == 3), "job is d or missing"),
        (lambda rows: rows[:, 3] == 1, "rank is mid"),
        (lambda rows: rows[:, 3] <= 1, "rank at most mid"),
        (lambda rows: rows[:, 0] >= 70, "age at least 70"),
    ],
)
def test_every_kind_of_condition_is_recovered(flips, expected):
    rows = people(4_000, seed=3)
    found = rules_of(rows, flips(rows))
    assert len(found.rules) == 1
    recovered = found.rules[0]
    # A real number is known to the gap between two neighbours, of which the roundest is shown.
    if "debt at most" in expected:
        bound = recovered.conditions[0].high
        assert bound == pytest.approx(float(expected.split()[3]), abs=0.002)
        assert str(recovered).endswith("or missing") == expected.endswith("or missing")
    else:
        assert str(recovered) == expected


def test_denied_levels_are_said_the_short_way():
    rows = people(4_000)
    assert words(rules_of(rows, ~np.isin(rows[:, 2], [0, 5]) & (rows[:, 0] < 40))) == [
        {"job is not a or f", "age at most 39"}
    ]


def test_two_noisy_regions_are_told_apart():
    rows, rng = people(10_000), np.random.default_rng(5)
    one, two = (rows[:, 0] >= 60) & (rows[:, 2] == 0), np.isnan(rows[:, 4])
    flips = rng.random(len(rows)) < np.where(one, 0.5, np.where(two, 0.25, 0.02))
    found = rules_of(rows, flips)
    assert len(found.rules) == 2
    first, second = found.rules
    assert {c.column.name for c in first.conditions} == {"age", "job"}
    assert str(second) == "debt is missing"
    for rule, region, truth in ((first, one, 0.5), (second, two, 0.25)):
        assert (rule.mask(rows) & region).sum() > 0.7 * (rule.mask(rows) | region).sum()
        assert rule.rate.low < truth + 0.03  # the second region holds some rows of the first
        assert rule.rate.high > truth


def test_conditions_that_do_not_matter_are_dropped():
    rows, rng = people(8_000), np.random.default_rng(2)
    flips = rng.random(len(rows)) < np.where(rows[:, 0] >= 65, 0.35, 0.05)
    assert [len(rule.conditions) for rule in rules_of(rows, flips).rules] == [1]


def test_rules_do_not_repeat_each_other():
    rows, rng = people(6_000), np.random.default_rng(2)
    slope = np.exp((rows[:, 0] - 80) / 12) + 0.2 * (rows[:, 3] == 3)
    rules = rules_of(rows, rng.random(len(rows)) < slope).rules
    assert len(rules) >= 2
    for one, other in itertools.combinations(rules, 2):
        a, b = one.mask(rows), other.mask(rows)
        assert (a & b).sum() <= 0.6 * (a | b).sum()


def test_a_wider_copy_of_a_true_rule_is_not_shown():
    rows = people(4_000)
    flips = rows[:, 0] >= 60
    true, wide = Condition(AGE, 0, low=60.0), Condition(AGE, 0, low=50.0)
    found = regions._verify([(true,), (wide,)], rows, flips, 0.05, learned=0)
    assert [str(rule) for rule in found.rules] == ["age at least 60"]
    assert found.tried == 2
    alone = regions._verify([(wide,)], rows, flips, 0.05, learned=0)
    assert [str(rule) for rule in alone.rules] == ["age at least 50"]


# -- what is not there is not --------------------------------------------------------------


def test_no_flips_give_no_rules():
    rows = people(500)
    found = rules_of(rows, np.zeros(500, dtype=bool))
    assert found.rules == ()
    assert found.reason.startswith("0 of 500 rows flip; at least 30")


def test_few_flips_are_said_to_be_few():
    rows = people(500)
    found = rules_of(rows, np.arange(500) < 29)
    assert found.rules == ()
    assert "29 of 500" in found.reason
    assert "29 of 500" not in rules_of(rows, np.arange(500) < 30).reason


def test_flips_everywhere_have_no_place():
    rows = people(500)
    found = rules_of(rows, np.ones(500, dtype=bool))
    assert found.rules == ()
    assert found.reason == "no region flips clearly more often than the others"


def test_noise_shows_rules_no_more_often_than_stated():
    schema = schema_of((0, 1), *[(0, 9)] * 6, (0, 2), protected=["x0"])
    runs, wrong, tried = 150, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = uniform(schema, 400, rng)
        found = rules_of(rows, rng.random(400) < 0.25, seed, schema)
        wrong += bool(found.rules)
        tried += bool(found.tried)
    assert tried > runs / 3  # regions did stand out, on one half
    assert wrong <= binom.ppf(0.999, runs, regions.LEVEL)


def test_intervals_of_shown_rules_hold_the_true_rate():
    schema = schema_of((0, 9), (0, 9), (0, 1), protected=["x2"])
    chances = np.full((10, 10), 0.1)
    chances[6:, 3:] = 0.3
    chances[:3, 8:] = 0.4
    cells = np.array(list(itertools.product(range(10), range(10), [0.0])), dtype=float)
    runs, missed, shown = 120, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = uniform(schema, 1_200, rng)
        chance = chances[rows[:, 0].astype(int), rows[:, 1].astype(int)]
        rules = rules_of(rows, rng.random(1_200) < chance, seed, schema).rules
        truth = [chances.ravel()[rule.mask(cells)].mean() for rule in rules]
        shown += len(rules)
        missed += any(not r.rate.low <= t <= r.rate.high for r, t in zip(rules, truth, strict=True))
    assert shown > runs
    assert missed <= binom.ppf(0.999, runs, 0.05)


# -- the numbers ---------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_test_is_fisher_s(pairs):
    flips, inside = (np.array(side) for side in zip(*pairs, strict=True))
    chance = regions._fisher(flips, inside)
    assert chance == pytest.approx(naive.fisher(flips.tolist(), inside.tolist()), rel=1e-9)
    table = [[(f & s).sum() for f in (flips, ~flips)] for s in (inside, ~inside)]
    assert chance == pytest.approx(fisher_exact(table, "greater").pvalue, rel=1e-9)


def test_the_numbers_of_a_rule_are_those_of_the_verifying_half():
    rows, rng = people(3_001), np.random.default_rng(8)
    flips = rng.random(3_001) < np.where(rows[:, 0] >= 60, 0.5, 0.1)
    found = rules_of(rows, flips, seed=4)
    verifying = np.random.default_rng(4).permutation(3_001)[1_500:]
    assert (found.learned, found.base.n) == (1_500, 1_501)
    held = set()
    for rule in found.rules:
        inside = [i for i in verifying if naive.lies_in(rule, rows[i].tolist())]
        hits = int(flips[inside].sum())
        assert (rule.rate.n, rule.rate.estimate) == (len(inside), hits / len(inside))
        assert rule.share == len(inside) / 1_501
        assert rule.lift == pytest.approx(rule.rate.estimate / flips[verifying].mean())
        confidence = 1 - 0.05 / found.tried
        assert (rule.rate.low, rule.rate.high) == clopper_pearson(hits, len(inside), confidence)
        held |= set(inside)
    assert found.rules
    assert found.share == pytest.approx(len(held) / 1_501)
    assert found.flips == pytest.approx(flips[list(held)].sum() / flips[verifying].sum())


def test_the_same_seed_gives_the_same_rules():
    rows, rng = people(2_000), np.random.default_rng(8)
    flips = rng.random(2_000) < np.where(rows[:, 3] >= 2, 0.5, 0.1)
    assert rules_of(rows, flips, seed=1) == rules_of(rows, flips, seed=1)
    assert rules_of(rows, flips, seed=1) != rules_of(rows, flips, seed=2)


def test_beyond_ten_thousand_rows_the_rest_verifies():
    rows = people(25_000)
    found = rules_of(rows, rows[:, 0] >= 70)
    assert (found.learned, found.base.n) == (10_000, 15_000)
    assert words(found) == [{"age at least 70"}]


# -- conditions ----------------------------------------------------------------------------


@st.composite
def conditions(draw):
    position = draw(st.integers(0, len(MIXED) - 1))
    column = MIXED.columns[position]
    missing = draw(st.booleans())
    if column.kind in ("numerical", "ordered") and draw(st.booleans()):
        bounds = st.one_of(st.floats(-6, 91), st.sampled_from([-math.inf, math.inf, 0.0, 1.0]))
        return Condition(column, position, draw(bounds), draw(bounds), missing=missing)
    codes = draw(st.sets(st.integers(0, 3).map(float), max_size=3))
    return Condition(column, position, codes=tuple(sorted(codes)), missing=missing)


@given(st.lists(conditions(), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_masks_agree_with_a_reading_row_by_row(given_conditions, seed):
    rng = np.random.default_rng(seed)
    rows = uniform(MIXED, 40, rng)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rule = regions.Rule(tuple(given_conditions), rate_of(5, 10), 0.1, 1.0, 0.5)
    assert rule.mask(rows).tolist() == [naive.lies_in(rule, row) for row in rows.tolist()]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition(AGE, 0, low=45.0), "age at least 45"),
        (Condition(AGE, 0, high=30.0), "age at most 30"),
        (Condition(AGE, 0, 30.0, 45.0), "age from 30 to 45"),
        (Condition(AGE, 0, 40.0, 40.0), "age is 40"),
        (Condition(DEBT, 4, low=0.25, missing=True), "debt at least 0.25 or missing"),
        (Condition(DEBT, 4), "debt is known"),
        (Condition(DEBT, 4, codes=(), missing=True), "debt is missing"),
        (Condition(RANK, 3, low=2.0), "rank at least high"),
        (Condition(RANK, 3, 1.0, 2.0), "rank from mid to high"),
        (Condition(JOB, 2, codes=(0.0,)), "job is a"),
        (Condition(JOB, 2, codes=(0.0, 1.0, 2.0)), "job is a, b or c"),
        (Condition(JOB, 2, codes=(0.0, 1.0), missing=True), "job is a, b or missing"),
        (Condition(JOB, 2, codes=(0.0, 1.0, 2.0, 3.0, 4.0), missing=True), "job is not f"),
        (Condition(JOB, 2, codes=(0.0, 1.0, 2.0, 3.0, 4.0)), "job is not f or missing"),
        (Condition(JOB, 2, codes=tuple(map(float, range(6)))), "job is known"),
    ],
)
def test_conditions_in_words(condition, expected):
    assert str(condition) == expected


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 300),
    st.sampled_from([0.0, 0.1, 0.5, 0.97, 1.0]),
    st.sets(st.integers(0, 6), max_size=7),
)
def test_any_table_is_taken(seed, n, chance, emptied):
    schema = MIXED.protect(["sex"])
    rng = np.random.default_rng(seed)
    rows = uniform(schema, n, rng)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    for position in emptied:
        rows[:, position] = np.nan if position % 2 else schema.low[position]
    flips = rng.random(n) < np.where(rows[:, 3] == 2, min(1.0, 3 * chance), chance)
    found = find_rules(schema, rows, flips, rng)
    assert bool(found.reason) == (not found.rules)
    for rule in found.rules:
        assert rule.p_value <= regions.LEVEL
        assert rule.rate.low <= rule.rate.estimate <= rule.rate.high
        assert rule.rate.estimate > found.base.estimate
        positions = [condition.position for condition in rule.conditions]
        assert len(set(positions)) == len(positions)
        assert schema.position("sex") not in positions


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-6, 1e5))
def test_round_bounds_stay_in_their_gap(least, width):
    under = least + width
    if least < under:
        number = regions._roundest(least, under)
        assert least <= number < under
        # With one digit less there is no number in the gap.
        power = -Decimal(repr(number)).normalize().as_tuple().exponent - 1
        coarser = math.ceil(Fraction(least) * Fraction(10) ** power) / Fraction(10) ** power
        assert number == 0 or float(coarser) >= under or power > 10


# -- the parts of the search ---------------------------------------------------------------


PARTS = Schema(
    (
        integers("n", -3, 8, missing=True),
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="rank", kind="ordered", levels=("low", "mid", "high"), missing=True),
        Column(name="job", kind="categorical", levels=tuple("abcd"), missing=True),
        Column(name="debt", kind="numerical", low=0.0, high=1.0, missing=True),
    )
).protect(["sex"])


def part(n, seed, gaps):
    """Rows of few values, some missing, and flips that depend on nothing."""
    rng = np.random.default_rng(seed)
    rows = uniform(PARTS, n, rng)
    rows[:, 4] = np.round(rows[:, 4] * 30) / 30
    rows[:, [0, 2, 3]] = np.nan_to_num(rows[:, [0, 2, 3]], nan=1.0)
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows, rng.random(n) < 0.3


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("chance", [0.7, 0.1])
def test_each_column_offers_the_condition_with_the_largest_excess(seed, gaps, chance):
    rows, flips = part(90, seed, gaps)
    # With few others beside those that flip, all rows would be the best of all, and are none.
    mask = np.random.default_rng(seed).random(90) < np.where(flips, 0.7, chance)
    aim = regions._Aim(rows, flips, float(flips.mean()), 6, 4)
    offers = {c.column.name: (value, c) for value, c in _offers(rows, flips, aim, mask)}
    for position, column in enumerate(PARTS.columns):
        if column.name == "sex":
            assert "sex" not in offers
            continue
        cells, hits = rows[mask, position].tolist(), flips[mask].tolist()
        search = naive.best_set if column.name == "job" else naive.best_range
        value, condition = offers[column.name]
        best = search(cells, hits, aim.base, 6)
        if column.name == "job" and chance == 0.1:
            # Levels are taken in order, and the best of that order may be all of them.
            assert 0.9 * best < value <= best + 1e-9
        else:
            assert value == pytest.approx(best), column.name
        # The condition is the region that it was offered for.
        inside = mask & condition.mask(rows)
        told = naive.excess(rows[inside], flips[inside].tolist(), aim.base, 6)
        assert value == pytest.approx(told)
        assert condition.position == position
        # A bound that leaves nothing out is none.
        known = [cell for cell in cells if cell == cell]
        if condition.codes is None:
            assert condition.low == -math.inf or condition.low > min(known)
            assert condition.high == math.inf or condition.high < max(known)


def _offers(rows, flips, aim, mask):
    return regions._Grid.of(PARTS, rows, flips).offers(aim, mask)


def test_a_region_must_hold_enough_rows_and_flip_often_enough():
    rows, flips = np.zeros((100, 1)), np.arange(100) < 25
    aim = regions._Aim(rows, flips, 0.25, 8, 1)
    place = np.arange(100)
    # 6 of 8 flip where 2 would: 4 over the average, of a spread of sqrt(8 x 0.25 x 0.75).
    assert aim.of((place < 6) | (place > 97)) == pytest.approx(4 / math.sqrt(1.5))
    assert aim.of(place < 7) == -math.inf
    assert aim.of((place < 3) | (place > 94)) == pytest.approx(1 / math.sqrt(1.5))
    assert aim.of((place < 3) | (place > 93)) == -math.inf  # 3 of 9: not half as much again


@pytest.mark.parametrize(
    ("rate", "base", "telling"),
    [
        (0.375, 0.25, True),
        (0.374, 0.25, False),
        (0.875, 0.75, True),  # half of the way to all
        (0.874, 0.75, False),
        (1.0, 1.0, False),
        (0.0, 0.0, False),
        (0.75, 0.5, True),
        (0.74, 0.5, False),
    ],
)
def test_a_rate_is_worth_a_line_from_half_as_much_again(rate, base, telling):
    assert regions._telling(rate, base) == telling


def test_spans_are_sums_from_each_slot_to_each():
    counts = np.array([[1, 2, 0, 4], [5, 0, 0, 1]])
    spans = regions._spans(counts)
    for line, first, last in itertools.product(range(2), range(4), range(4)):
        assert spans[line, first, last] == sum(counts[line, first : last + 1])


def test_choices_are_as_many_as_there_are():
    bounds = [(low, high) for low in range(7) for high in range(7) if low <= high]
    assert regions._choices(Condition(AGE, 0, low=3.0), 7) == len(bounds)
    levels = range(6)
    named = [s for k in range(1, 5) for s in itertools.combinations(levels, k)]
    denied = [s for k in range(1, 4) for s in itertools.combinations(levels, k)]
    assert regions._choices(Condition(JOB, 2, codes=(1.0,)), 6) == len(named) + len(denied)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("side", ["low", "high"])
def test_an_open_bound_moves_to_where_the_excess_is_largest(seed, missing, side):
    rows, flips = part(80, seed, 0.1)
    aim = regions._Aim(rows, flips, float(flips.mean()), 5, 4)
    mask = np.random.default_rng(seed).random(80) < 0.8
    condition = Condition(PARTS.columns[0], 0, **{side: 2.0}, missing=missing)
    moved = regions._with_bounds(aim, condition, mask)
    known = sorted({cell for cell in rows[mask, 0].tolist() if cell == cell})
    best = max(
        naive.excess(rows[inside], flips[inside].tolist(), aim.base, 5)
        for bound in known
        for inside in [mask & dataclasses.replace(condition, **{side: bound}).mask(rows)]
    )
    inside = mask & moved.mask(rows)
    told = naive.excess(rows[inside], flips[inside].tolist(), aim.base, 5)
    assert told == pytest.approx(best)
    # The other side stays open, and a bound that leaves nothing out is none.
    other = moved.high if side == "low" else moved.low
    assert abs(other) == math.inf
    assert moved.missing == missing


@pytest.mark.parametrize("seed", range(10))
def test_two_bounds_move_to_where_neither_alone_can_do_better(seed):
    rows, flips = part(80, seed, 0.1)
    aim = regions._Aim(rows, flips, float(flips.mean()), 5, 4)
    everyone = np.ones(80, dtype=bool)
    given_one = Condition(PARTS.columns[0], 0, 0.0, 4.0)
    moved = regions._with_bounds(aim, given_one, everyone)

    def told(condition):
        inside = condition.mask(rows)
        return naive.excess(rows[inside], flips[inside].tolist(), aim.base, 5)

    known = sorted({cell for cell in rows[:, 0].tolist() if cell == cell})
    best = told(moved)
    assert best >= told(given_one)
    for bound in known:
        assert told(dataclasses.replace(moved, low=bound)) <= best + 1e-9
        assert told(dataclasses.replace(moved, high=bound)) <= best + 1e-9


def test_bounds_are_as_round_as_the_cells_around_them_allow():
    rows = np.array([[10.0], [40.0], [44.0], [61.0], [78.0], [80.0]])
    aim = regions._Aim(rows, np.ones(6, dtype=bool), 0.5, 1, 1)
    column = integers("age", 10, 80)

    def rounded(low, high):
        (condition,) = regions._round(aim, (Condition(column, 0, low, high),))
        assert condition.mask(rows).tolist() == Condition(column, 0, low, high).mask(rows).tolist()
        return condition.low, condition.high

    assert rounded(44.0, 61.0) == (44.0, 70.0)
    assert rounded(61.0, 78.0) == (60.0, 78.0)
    assert rounded(78.0, math.inf) == (70.0, math.inf)
    assert rounded(-math.inf, 10.0) == (-math.inf, 10.0)
    assert rounded(10.0, 80.0) == (10.0, 80.0)  # nothing lies beyond
    # A step of two has its own values, and levels have no digits.
    even = Column(name="even", kind="numerical", low=10, high=80, step=2)
    kept = Condition(even, 0, 44.0, 61.0)
    assert regions._round(aim, (kept,)) == (kept,)


def test_bounds_are_rounded_among_the_rows_of_the_other_conditions():
    ages, flags = [10.0, 43.0, 44.0, 46.0, 80.0], [1.0, 0.0, 1.0, 0.0, 1.0]
    rows = np.column_stack([ages, flags, flags])
    aim = regions._Aim(rows, np.ones(5, dtype=bool), 0.5, 1, 3)
    age = Condition(integers("age", 10, 80), 0, 44.0, 44.0)
    one, two = (Condition(integers(name, 0, 1), k, low=1.0) for k, name in ((1, "a"), (2, "b")))
    for conditions in ((age, one), (one, age), (one, age, two), (age, one, two)):
        rounded = regions._round(aim, conditions)
        moved = rounded[conditions.index(age)]
        assert (moved.low, moved.high) == (40.0, 50.0)
        assert len(rounded) == len(conditions)
    assert regions._round(aim, (age,)) == (age,)


def test_a_bound_that_adds_nothing_is_left_out():
    rows = people(3_000)
    rng = np.random.default_rng(0)
    flips = rng.random(3_000) < np.where(rows[:, 0] >= 60, 0.5, 0.05)
    aim = regions._Aim(rows, flips, float(flips.mean()), 30, 4)

    def shorter(*conditions):
        return [str(condition) for condition in regions._shorter(aim, conditions)]

    assert shorter(Condition(AGE, 0, 60.0, 79.0)) == ["age at least 60"]
    assert shorter(Condition(AGE, 0, 60.0, 70.0)) == ["age at least 60"]
    # A condition that has nothing to do with it, and a level, and missing cells.
    late = Condition(AGE, 0, low=60.0)
    assert shorter(late, Condition(RANK, 3, low=1.0)) == ["age at least 60"]
    assert shorter(Condition(DEBT, 4, high=0.9, missing=True), late) == ["age at least 60"]
    assert shorter(late) == ["age at least 60"]
    jobs = rng.random(3_000) < np.where(rows[:, 2] == 2, 0.6, 0.05)
    aim = regions._Aim(rows, jobs, float(jobs.mean()), 30, 4)
    assert shorter(Condition(JOB, 2, codes=(2.0, 3.0), missing=True)) == ["job is c"]


def test_of_very_many_levels_the_common_ones_are_told_apart():
    town = Column(name="town", kind="categorical", levels=tuple(f"t{i}" for i in range(60)))
    schema = Schema((town, integers("p", 0, 1))).protect(["p"])
    rng = np.random.default_rng(0)
    common, rare = rng.integers(0, 10, 3_000), rng.integers(10, 60, 500)
    towns = rng.permutation(np.concatenate([common, rare])).astype(float)
    rows = np.column_stack([towns, np.zeros(3_500)])
    found = rules_of(rows, towns == 3, schema=schema)
    assert words(found) == [{"town is t3"}]
    # The rare ones count all the same: as those that are not denied.
    found = rules_of(rows, ~np.isin(towns, [3, 5]) & (rng.random(3_500) < 0.5), schema=schema)
    assert words(found) in ([], [{"town is not t3 or t5"}])


def test_what_was_tried_in_vain_is_counted():
    assert regions._reason(0) == "no region flips clearly more often than the others"
    assert regions._reason(1).startswith("the one region that stood out")
    assert regions._reason(1).endswith("did not hold in the other")
    assert regions._reason(2).startswith("none of the 2 regions")
    assert regions._reason(2).endswith("held in the other")


# -- in a result ---------------------------------------------------------------------------


def table(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "hours": rng.integers(10, 70, n),
            "sex": rng.choice(["F", "M"], n),
            "status": rng.choice(["married", "single", "widowed"], n),
        }
    )


def boxed(frame):
    """Men are favored in one box; elsewhere hours decide."""
    inside = (frame["hours"] >= 45) & (frame["status"] != "single")
    return np.where(inside, frame["sex"] == "M", frame["hours"] >= 30).astype(float)


def audited(**more):
    options = {"protected": ["sex"], "seed": 0, "max_rows": 1_000} | more
    return limi.audit(boxed, table(), **options)


@pytest.fixture(scope="module")
def summary():
    return audited().summary


@pytest.mark.parametrize(
    ("options", "population"),
    [
        ({}, "natural"),
        ({"generator": None, "method": "themis"}, "real"),
        ({"generator": None, "method": "real", "max_rows": None}, "real"),
    ],
)
def test_an_audit_says_where(options, population):
    result = audited(**options)
    [rule] = result.where()
    assert {str(c) for c in rule.conditions} == {
        "hours at least 45",
        "status is married or widowed",
    }
    assert rule.rate.estimate == 1.0
    frame = table(seed=1)
    inside = (frame["hours"] >= 45) & (frame["status"] != "single")
    assert result.inside(rule, frame).tolist() == inside.tolist()
    shown = result.summary.where
    assert shown is not None
    assert shown.population == population
    people = shown.rules[0].what_if
    assert people is not None
    assert people.n == rule.rate.n  # of the verifying half, like the rate
    (pair,) = people.favored
    assert (pair.favored, pair.disfavored) == ("M", "F")
    assert (pair.only_favored, pair.only_disfavored) == (people.n, 0)


def test_rules_cost_no_query():
    asked = 0

    def counting(frame):
        nonlocal asked
        asked += len(frame)
        return boxed(frame)

    result = limi.audit(counting, table(), protected=["sex"], seed=0, max_rows=500)
    before = asked
    assert result.where()
    assert asked == before
    again = limi.audit(counting, table(), protected=["sex"], seed=0, max_rows=500, rate_rows=0)
    assert again.where() == []
    assert again.summary.where is None


def test_a_small_query_budget_says_that_flips_are_too_few():
    result = audited(max_queries=300)
    assert result.where() == []
    assert result.summary.where is not None
    assert "at least 30 are needed to learn rules" in result.summary.where.reason
    assert result.summary.where.reason in text.render(result.summary).replace("\n  ", " ")


def test_the_report_shows_rules_in_every_form(summary):
    [place] = wording.places(summary)
    assert str(place).endswith("times the average)")
    assert "100 % of" in place.figures
    assert place.favored.startswith("sex M over sex F by 100.0 points, ")
    page, plain = html.render(summary), " ".join(text.render(summary).split())
    for condition in place.conditions:
        assert condition in page
        assert condition in plain
    assert place.figures in plain
    assert "Where it happens" in page
    tree = json.loads(json.dumps(summary.as_dict()))
    assert Summary.from_dict(tree) == summary
    clauses = {clause["column"]: clause for clause in tree["where"]["rules"][0]["conditions"]}
    assert clauses["hours"]["low"] == 45.0
    assert clauses["hours"]["high"] is None
    assert clauses["status"]["levels"] == ["married", "widowed"]


def test_a_summary_without_rules_can_still_be_read(summary):
    summary = dataclasses.replace(summary, where=None)
    tree = summary.as_dict()
    del tree["where"]
    assert Summary.from_dict(tree).where is None
    assert "Where it happens" not in html.render(summary)
    assert "Where it happens" not in text.render(summary)
