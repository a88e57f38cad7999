"""The same people under every value: definitions, what holds under chance, what is found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2, multinomial

from limi.errors import InvalidInput
from limi.metrics.what_if import (
    LEVEL,
    cochran_q,
    compare_values,
    mcnemar,
    paired_interval,
    what_if_rates,
)
from tests.naive import what_if as naive

tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.booleans(), min_size=k, max_size=k).map(tuple), min_size=1, max_size=40
    )
)


# -- definitions ------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(only_first=st.integers(0, 80), only_second=st.integers(0, 80))
def test_mcnemar_is_exact(only_first, only_second):
    told = float(mcnemar(only_first, only_second))
    assert told == pytest.approx(float(naive.mcnemar(only_first, only_second)), rel=1e-9)
    if only_first + only_second:
        peer = binomtest(only_first, only_first + only_second).pvalue
        assert told == pytest.approx(peer, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(table=tables)
def test_people_are_compared_one_by_one(table):
    decided = np.array(table)
    (told,) = compare_values([decided])
    n, k = decided.shape
    assert [rate.estimate for rate in told.rates] == [sum(c) / n for c in zip(*table, strict=True)]
    assert told.n_pairs == len(told.pairs) == k * (k - 1) // 2
    assert {frozenset((p.first, p.second)) for p in told.pairs} == {
        frozenset(pair) for pair in itertools.combinations(range(k), 2)
    }
    for pair in told.pairs:
        counts = naive.discordant(table, pair.first, pair.second)
        assert (pair.only_first, pair.only_second) == counts
        assert pair.only_first >= pair.only_second
        assert pair.difference == pytest.approx((counts[0] - counts[1]) / n)
        assert pair.low <= pair.difference <= pair.high
        assert pair.p_value == pytest.approx(float(naive.mcnemar(*counts)))
    corrected = naive.holm([pair.p_value for pair in told.pairs])
    assert [pair.corrected for pair in told.pairs] == pytest.approx(corrected)
    differences = [pair.difference for pair in told.pairs]
    assert differences == sorted(differences, reverse=True)
    assert told.q == pytest.approx(naive.cochran_q(table))


@settings(max_examples=60, deadline=None)
@given(table=tables, families=st.integers(1, 5))
def test_nobody_is_called_favored_without_the_corrected_test(table, families):
    (told,) = compare_values([np.array(table)], families=families)
    named = {(pair.first, pair.second) for pair in told.pairs if pair.supported}
    assert named <= set(naive.supported(table, families))
    assert told.n_supported == len(named)


@settings(max_examples=40, deadline=None)
@given(
    table=st.integers(2, 4).flatmap(
        lambda k: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=k, max_size=k), min_size=1, max_size=30
        )
    )
)
def test_a_score_on_the_edge_tells_no_two_values_apart(table):
    (told,) = compare_values([np.array(table, dtype=np.int8)])
    clear = [person for person in table if all(person)]
    for place, rate in enumerate(told.rates):
        assert rate.estimate == sum(person[place] > 0 for person in table) / len(table)
    for pair in told.pairs:
        sides = [(person[pair.first], person[pair.second]) for person in table]
        assert (pair.only_first, pair.only_second) == (sides.count((1, -1)), sides.count((-1, 1)))
    expected = naive.cochran_q([[side > 0 for side in person] for person in clear]) if clear else 0
    assert told.q == pytest.approx(expected)


def test_the_pairs_of_several_tables_are_one_family():
    rng = np.random.default_rng(0)
    several = [rng.random((200, k)) < np.linspace(0.2, 0.4, k) for k in (2, 4, 3)]
    together = compare_values(several, families=2)
    raw = [pair.p_value for table in together for pair in table.pairs]
    expected = np.minimum(1, 2 * np.array(naive.holm(raw)))
    told = [pair.corrected for table in together for pair in table.pairs]
    np.testing.assert_allclose(told, expected)
    for decided, table in zip(several, together, strict=True):
        (single,) = compare_values([decided])
        assert single.rates == table.rates
        for mine, other in zip(single.pairs, table.pairs, strict=True):
            assert mine.p_value == other.p_value
            assert other.low < mine.low < mine.high < other.high
    assert compare_values([]) == []
    (alike,) = compare_values([np.repeat(several[0][:, :1], 3, axis=1)], families=4)
    assert [pair.corrected for pair in alike.pairs] == [1.0] * 3


def test_with_two_values_the_interval_never_contradicts_the_test():
    b, c = np.meshgrid(np.arange(0, 61), np.arange(0, 61))
    b, c = b[b > c], c[b > c]
    low, _ = paired_interval(b, c, 200)
    assert (low[mcnemar(b, c) <= LEVEL] > 0).all()


@settings(max_examples=60, deadline=None)
@given(
    counts=st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 40)).filter(any),
    confidence=st.sampled_from([0.9, 0.95, 0.995]),
)
def test_the_ends_are_where_the_score_test_turns(counts, confidence):
    """The nuisance share is found by climbing the likelihood, not by its closed form."""
    b, c, rest = counts
    n = b + c + rest
    z = {0.9: 1.6448536, 0.95: 1.9599640, 0.995: 2.8070338}[confidence]
    low, high = (float(end) for end in paired_interval(b, c, n, confidence))
    assert -1 <= low <= (b - c) / n <= high <= 1
    for end, sign in ((low, 1), (high, -1)):
        if abs(end) < 1 - 1e-9:
            assert naive.score(b, c, n, end) == pytest.approx(sign * z, rel=1e-4)
    turned = paired_interval(c, b, n, confidence)
    np.testing.assert_allclose([-turned[1], -turned[0]], [low, high], atol=1e-9)


def test_the_interval_of_a_published_example():
    """Airway hyper-responsiveness of 21 children before and after a transplantation: 1 and 7 are
    discordant (Fagerland, Lydersen and Laake, 2014, by Tango's method)."""
    low, high = paired_interval(1, 7, 21)
    assert (round(float(low), 3), round(float(high), 3)) == (-0.517, -0.026)


def test_cochran_of_two_values_is_mcnemar_and_of_more_is_chi_squared():
    rng = np.random.default_rng(0)
    two = rng.random((300, 2)) < 0.3
    q, p_value = cochran_q(two)
    b, c = naive.discordant(two, 0, 1)
    assert q == pytest.approx((b - c) ** 2 / (b + c))
    assert p_value == pytest.approx(float(naive.mcnemar(b, c)))
    five = rng.random((300, 5)) < 0.3
    q, p_value = cochran_q(five)
    assert p_value == pytest.approx(chi2.sf(q, 4))


def test_cochran_says_nothing_where_too_few_people_are_decided_differently():
    few = np.zeros((1000, 3), dtype=bool)
    few[:5, 0] = True
    assert np.isnan(cochran_q(few)[1])
    few[:8, 0] = True
    assert cochran_q(few)[1] < 0.01
    assert cochran_q(np.ones((10, 4), dtype=bool)) == (0.0, 1.0)


def test_of_very_many_pairs_the_widest_supported_are_kept():
    rng = np.random.default_rng(1)
    places = np.arange(40)
    decided = rng.random((800, 1)) < (places / 40)[None, :] * 0.6 + 0.2
    (told,) = compare_values([decided], most=10)
    assert told.n_pairs == 780
    assert len(told.pairs) == 10 < told.n_supported
    assert all(pair.supported for pair in told.pairs)
    assert told.pairs[0].first > 30
    assert told.pairs[0].second < 10
    (steady,) = compare_values([np.repeat(rng.random((800, 1)) < 0.5, 40, axis=1)])
    assert (steady.pairs, steady.n_supported, steady.q) == ((), 0, 0.0)


def test_a_confidence_must_be_a_share():
    with pytest.raises(InvalidInput, match="confidence is 95"):
        paired_interval(3, 2, 10, confidence=95)


# -- what holds under chance ------------------------------------------------------------


def coverage(n, p10, p01, confidence=0.95):
    """The exact chance that the interval holds the truth, over all counts."""
    b, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1))
    b, c = b[b + c <= n], c[b + c <= n]
    low, high = paired_interval(b, c, n, confidence)
    counts = np.stack([b, c, n - b - c], axis=1)
    chance = multinomial.pmf(counts, n, [p10, p01, 1 - p10 - p01])
    held = (low <= p10 - p01 + 1e-12) & (high >= p10 - p01 - 1e-12)
    return float(chance[held].sum())


def test_paired_intervals_hold_the_truth_as_often_as_they_say():
    shares = [(0.01, 0.01), (0.02, 0.01), (0.05, 0.02), (0.1, 0.1), (0.2, 0.05), (0.3, 0.3)]
    exact = [coverage(n, *pair) for n in (30, 100, 200) for pair in shares]
    assert min(exact) > 0.93
    assert 0.945 < np.mean(exact) < 0.985
    assert coverage(200, 0.05, 0.02, 0.995) > 0.99
    # As in a report: ten thousand people of whom few are decided differently.
    rng = np.random.default_rng(0)
    for p10, p01 in ((0.02, 0.01), (0.001, 0.001), (0.0003, 0.0), (0.015, 0.015)):
        drawn = rng.multinomial(10_000, [p10, p01, 1 - p10 - p01], size=20_000)
        low, high = paired_interval(drawn[:, 0], drawn[:, 1], 10_000)
        held = np.mean((low <= p10 - p01) & (high >= p10 - p01))
        assert 0.944 < held < 0.99


def test_a_band_holds_the_whole_curve_at_once():
    """People whose decisions hang together, as those of a curve do, and some that do not."""
    rng = np.random.default_rng(0)
    truth = np.linspace(0.1, 0.4, 12)
    n, held, each = 400, 0, []
    for _ in range(300):
        threshold = np.where(rng.random((n, 1)) < 0.7, rng.random((n, 1)), rng.random((n, 12)))
        band = what_if_rates(threshold < truth, together=True)
        held += all(r.low <= p <= r.high for r, p in zip(band, truth, strict=True))
        single = what_if_rates(threshold < truth)
        each.append([r.low <= p <= r.high for r, p in zip(single, truth, strict=True)])
    assert held / 300 > 0.95
    assert 0.94 < np.mean(each) < 0.99


def exchangeable(rng, n, k):
    """Decisions of people to whom all values are alike: three kinds of models, in turn."""
    while True:
        yield rng.random((n, k)) < 0.1  # a coin for each person and value
        yield rng.random((n, k)) < rng.beta(0.3, 0.6, (n, 1))  # a person's own inclination
        alike = np.repeat(rng.random((n, 1)) < 0.4, k, axis=1)  # few are decided differently
        yield np.where(rng.random((n, 1)) < 0.05, rng.random((n, k)) < 0.5, alike)


def suspicious(decided):
    """May any pair be told apart at all? Not where no p-value is low before it is corrected."""
    counts = decided.T.astype(float) @ ~decided
    return (mcnemar(counts, counts.T) <= LEVEL).any()


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_values_that_are_alike_are_rarely_told_apart(k):
    models = itertools.islice(exchangeable(np.random.default_rng(k), 300, k), 2000)
    accused = sum(compare_values([d])[0].n_supported > 0 for d in models if suspicious(d))
    assert 0 < accused <= 0.05 * 2000


def test_a_point_of_difference_among_ten_thousand_is_found():
    """Three of a hundred are decided differently: two as the first value, one as the second."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        kind = rng.choice(3, size=10_000, p=[0.02, 0.01, 0.97])
        decided = np.repeat(rng.random((10_000, 1)) < 0.24, 2, axis=1)
        decided[kind == 0] = (True, False)
        decided[kind == 1] = (False, True)
        (pair,) = compare_values([decided], families=3)[0].pairs
        found += pair.supported and pair.first == 0
    assert found >= 0.9 * 200
