import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lab.targets.ranks import critical_difference, rank
from limi.errors import InvalidInput
from tests.naive.ranks import mean_ranks

# Accuracies of C4.5 without and with tuned parameters on 14 tables, the worked example of Demsar
# (2006), tables 5 and 6: he finds these ranks, chi-square 9.28, F 3.69, and a difference of 1.25.
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
WORKED = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.973],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_the_worked_example_of_the_literature():
    found = rank(NAMES, WORKED)
    means = dict(zip(found.methods, found.means, strict=True))
    assert [round(means[name], 3) for name in NAMES] == [3.143, 2.0, 2.893, 1.964]
    assert found.statistic == pytest.approx(9.28, abs=0.01)
    davenport = 13 * found.statistic / (14 * 3 - found.statistic)
    assert davenport == pytest.approx(3.69, abs=0.01)
    assert found.p_value == pytest.approx(stats.f.sf(davenport, 3, 39))
    assert found.difference == pytest.approx(1.25, abs=0.005)
    # At the level of 10 % he has 2.291 for the quantile.
    assert critical_difference(4, 14, 0.1) == pytest.approx(2.291 * np.sqrt(20 / 84), abs=0.001)


def test_friedman_without_ties_is_that_of_scipy():
    rng = np.random.default_rng(0)
    values = rng.permuted(np.tile(np.arange(5.0), (9, 1)), axis=1)
    found = rank(list("abcde"), values)
    assert found.statistic == pytest.approx(stats.friedmanchisquare(*values.T).statistic)


line = st.tuples(*[st.sampled_from([None, 0, 1, 2, 3])] * 4)
tables = st.lists(line, min_size=2, max_size=6)


@settings(deadline=None)
@given(tables, st.booleans())
def test_ranks_are_those_of_counting(table, more_is_better):
    values = np.array([[np.nan if v is None else v for v in line] for line in table])
    names = [str(place) for place in range(len(table[0]))]
    found = rank(names, values, more_is_better=more_is_better)
    means = dict(zip(found.methods, found.means, strict=True))
    assert [means[name] for name in names] == pytest.approx(mean_ranks(table, more_is_better))
    assert list(found.means) == sorted(found.means)
    assert sum(found.firsts) == pytest.approx(len(table))
    assert 0 <= found.p_value <= 1


def test_bars_join_what_lies_within_the_difference():
    values = np.tile([9.0, 8.0, 7.0, 1.0], (30, 1))
    found = rank(["a", "b", "c", "d"], values)
    assert found.p_value == 0
    assert found.difference < 1
    assert found.alike() == []
    few = rank(["a", "b", "c", "d"], values[:2])
    assert few.alike() == [(0, 3)]


def test_too_few_have_no_ranks():
    with pytest.raises(InvalidInput, match="two methods and two targets"):
        rank(["a"], np.ones((3, 1)))
    with pytest.raises(InvalidInput, match="two methods and two targets"):
        rank(["a", "b"], np.ones((1, 2)))
