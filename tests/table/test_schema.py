import numpy as np
import pytest

from limi.errors import InvalidInput
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
    ("spec", "codes"),
    [
        ("sex", (0.0, 1.0)),
        ("sex=M,F", (1.0, 0.0)),
        ("vet", (0.0, 1.0)),
        ("vet=True,False", (1.0, 0.0)),
        ("age=18-80:31", (18.0, 49.0, 80.0)),
        ("age=20-22", (20.0, 21.0, 22.0)),
        ("age=20,60", (20.0, 60.0)),
        ("debt=-1-1:0.5", (-1.0, -0.5, 0.0, 0.5, 1.0)),
        ("price=0.1-0.4:0.1", (0.1, 0.2, 0.3, 0.4)),
        ('job="a",c', (0.0, 2.0)),
        ("job= a , c ", (0.0, 2.0)),
    ],
)
def test_protected_columns_as_users_write_them(spec, codes):
    assert MIXED.protect([spec]).protected_codes == (codes,)


def test_protected_columns_as_a_mapping():
    schema = MIXED.protect({"sex": None, "age": "20-40:20", "rank": ["low", "high"]})
    assert schema.protected == ("sex", "age", "rank")
    assert schema.protected_codes == ((0.0, 1.0), (20.0, 40.0), (0.0, 2.0))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (["sax"], "did you mean 'sex'"),
        (["sex=X"], "no value of column 'sex'"),
        (["age=10-30"], "outside column 'age'"),
        (["age=30-20"], "first must not be above"),
        (["age=20-30:2.5"], "does not fit"),
        (["debt"], "needs a range with a step above 0"),
        (["sex", "sex=F,M"], "named twice"),
        (["sex=F,F"], "lists a value twice"),
        (["sex=F"], "one value only"),
        ([], "no protected column"),
        (["age", "rank", "price"], "more than 1000"),
        ({"sex": 3}, "give a list of values"),
    ],
)
def test_what_cannot_be_protected_is_said_in_one_sentence(spec, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        MIXED.protect(spec)
    assert "\n" not in str(caught.value)


def test_not_every_column_can_be_protected():
    with pytest.raises(InvalidInput, match="every column is protected"):
        Schema((integers("a", 0, 1),)).protect(["a"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "numeric"}, "kinds are"),
        ({"kind": "categorical"}, "needs a list of levels"),
        ({"kind": "categorical", "levels": ("a", "a")}, "a level twice"),
        ({"kind": "categorical", "levels": ("a", "b"), "labels": ("x",)}, "2 levels and 1 labels"),
        ({"kind": "numerical", "low": 2, "high": 1}, "at most high"),
        ({"kind": "numerical", "low": 0, "high": float("inf")}, "at most high"),
        ({"kind": "numerical", "low": 0, "high": 1, "step": 0.3}, "no whole number of steps"),
        ({"kind": "numerical", "low": 0, "high": 1, "step": -1}, "use 0 or a number above"),
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
