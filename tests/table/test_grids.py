"""Values of a protected number that was named without any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limi.table.grids import choose_grid, choose_missing_values
from limi.table.schema import Column, Schema


def number(name="age", low=17.0, high=90.0, step=1.0):
    return Column(name=name, kind="numerical", low=low, high=high, step=step)


SEX = Column(name="sex", kind="categorical", levels=("f", "m"))
JOB = Column(name="job", kind="categorical", levels=tuple("abcdefg"))


def test_values_are_quantiles_rounded_as_people_round():
    ages = np.repeat(np.arange(17.0, 91.0), 5)
    grid = choose_grid(number(), ages)
    assert grid == [20, 30, 35, 40, 50, 55, 65, 70, 80, 85]
    incomes = np.linspace(0, 98_765, 4_001)
    grid = choose_grid(number(high=98_765.0, low=0.0, step=0.0), incomes)
    assert grid == [5000.0 * value for value in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)]


@pytest.mark.parametrize("share", [0.5, 0.96, 0.999])
def test_a_number_that_most_people_hold_alike_has_two_values_at_least(share):
    gains = np.zeros(1_000)
    gains[int(1_000 * share) :] = np.linspace(1_000, 99_999, 1_000 - int(1_000 * share)).round()
    grid = choose_grid(number("gain", 0.0, 99_999.0), gains)
    assert grid[0] == 0
    assert 2 <= len(grid) <= 10


@given(
    st.lists(st.integers(-50, 1_000), min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.1]),
    st.integers(2, 10),
)
def test_every_value_is_one_that_the_column_may_hold(cells, step, most):
    numbers = np.array(cells) * (step or 0.37)
    column = number("x", float(numbers.min()), float(numbers.max()), step)
    grid = choose_grid(column, np.append(numbers, np.nan), most)
    assert 2 <= len(grid) <= most
    assert grid == sorted(set(grid))
    Schema((column, SEX)).protect({"x": grid})


def test_only_numbers_of_many_values_without_any_get_some():
    schema = Schema((number(), number("grade", 1.0, 9.0), SEX, JOB))
    ages = np.arange(17.0, 91.0)
    told = choose_missing_values(schema, ["age", "sex"], lambda name: ages)
    assert told[0] == {"age": [20, 30, 35, 40, 50, 55, 65, 70, 80, 85], "sex": None}
    assert told[1] == (
        "'age' was named without values, so 10 of the table's were chosen: 20, 30, 35, 40, 50, 55, "
        "65, 70, 80, 85; choose others with a list, age=20,85, or a range with a step, "
        "age=LOW-HIGH:STEP",
    )
    for wanted in (["grade", "sex"], ["age=20-60:20"], {"age": [20, 40]}, ["age", "age"], [3]):
        assert choose_missing_values(schema, wanted, lambda name: ages) == (wanted, ())


def test_with_several_columns_the_product_stays_under_the_cap():
    schema = Schema((number("a"), number("b"), number("c"), JOB, SEX))
    ages = np.arange(17.0, 91.0)
    chosen, told = choose_missing_values(schema, ["a", "b", "c", "job"], lambda name: ages)
    assert len(told) == 3
    assert len(schema.protect(chosen).combinations) <= 1_000
    assert len(chosen["a"]) == 5
