import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.table.frames import check_names
from limi.table.schema import Column, Schema
from tests.toy import MIXED, integers


def test_every_column_is_a_grid_or_an_interval():
    assert MIXED.sizes.tolist() == [73, 2, 3, 3, 2, 0, 21]
    assert MIXED.low.tolist() == [18, 0, 0, 0, 0, -5, 0]
    assert MIXED.high.tolist() == [90, 1, 2, 2, 1, 5, 2]
    assert MIXED.step.tolist() == [1, 1, 1, 1, 1, 0, 0.1]


def test_combinations_run_with_the_first_column_slowest():
    schema = MIXED.protect(["sex", "rank"])
    assert schema.combinations.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert schema.protected_index.tolist() == [1, 3]
    assert schema.free_index.tolist() == [0, 2, 4, 5, 6]


def test_combination_of_finds_each_row_s_own():
    schema = MIXED.protect(["sex=M,F", "age=20-40:10"])
    rows = np.zeros((4, 7))
    rows[:, 0] = [20, 40, 25, 30]
    rows[:, 1] = [1, 0, 0, np.nan]
    assert schema.combination_of(rows).tolist() == [0, 5, -1, -1]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "numeric"}, "kinds are"),
        ({"kind": "categorical"}, "needs a list of levels"),
        ({"kind": "categorical", "levels": ("a", "a")}, "a level twice"),
        ({"kind": "categorical", "levels": ("a", "b"), "labels": ("x",)}, "2 levels and 1 labels"),
        ({"kind": "numerical", "low": 2, "high": 1}, "not exceed high"),
        ({"kind": "numerical", "low": 0, "high": float("inf")}, "not exceed high"),
        ({"kind": "numerical", "low": 0, "high": 1, "step": 0.3}, "not a whole number of steps"),
        ({"kind": "numerical", "low": 0, "high": 1, "step": -1}, "it must be 0 or more"),
    ],
)
def test_columns_that_make_no_sense(fields, words):
    with pytest.raises(InvalidInput, match=words):
        Column(name="c", **fields)


def test_column_names_differ():
    with pytest.raises(InvalidInput, match="occur twice: a"):
        Schema((integers("a", 0, 1), integers("a", 0, 1)))


def test_true_and_one_are_different_levels_only_where_python_says_so():
    column = Column(name="c", kind="categorical", levels=(0, 1), labels=("no", "yes"))
    assert column.code("yes") == 1.0
    assert column.code("1") == 1.0
    assert column.show(1.0) == "yes"


def test_select_keeps_protection_of_what_stays():
    schema = MIXED.protect(["sex", "rank"]).select(["rank", "age"])
    assert schema.names == ["rank", "age"]
    assert schema.protected == ("rank",)
    assert schema.combinations.tolist() == [[0], [1], [2]]


def test_thousands_of_columns_cost_a_step_each():
    """Names are looked up, never searched: comparisons of names grow with the columns alone."""

    class Name(str):
        compared = 0
        __slots__ = ()

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    n = 2000
    columns = tuple(
        Column(name=Name(f"c{i}"), kind="numerical", low=0, high=1, step=1) for i in range(n)
    )
    Name.compared = 0
    schema = Schema(columns)
    for i in range(n):
        assert schema.position(Name(f"c{i}")) == i
    schema.select([Name(f"c{i}") for i in range(n)])
    check_names([Name(f"c{i}") for i in range(n)])
    assert Name.compared < 20 * n


def test_columns_of_every_kind_answer_alike():
    number = Column(name="x", kind="numerical", low=0.5, high=1.5, step=0.25, missing=True)
    real = Column(name="r", kind="numerical", low=0, high=2)
    levels = Column(name="c", kind="categorical", levels=("a", 7, "c"))
    ends = [(c.first, c.last, c.spacing, c.is_number) for c in (number, real, levels)]
    assert ends == [(0.5, 1.5, 0.25, True), (0.0, 2.0, 0.0, True), (0.0, 2.0, 1.0, False)]
    assert number.codes_at(np.arange(5.0)).tolist() == [0.5, 0.75, 1.0, 1.25, 1.5]
    assert [number.value(1.0), number.value(1.25), levels.value(1.0)] == [1, 1.25, 7]
    codes = np.array([0.5, 0.6, 1.5, 2.0, np.nan])
    assert number.fits(codes).tolist() == [True, False, True, False, True]
    assert real.fits(codes).tolist() == [True, True, True, True, False]
    assert levels.fits(codes).tolist() == [False, False, False, True, False]
