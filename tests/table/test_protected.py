"""Protected columns and their values, as users write them, and what cannot be protected."""

import pytest

from limi.errors import InvalidInput
from limi.table import protected
from limi.table.schema import Column, Schema
from tests.toy import MIXED, integers

AGE = Schema(
    (
        Column(name="age", kind="numerical", low=0, high=100, step=1),
        Column(name="job", kind="categorical", levels=("a", "b")),
    )
)

MANY = 2_000_000  # a pattern that is quadratic in the length would not come back


@pytest.mark.parametrize(
    "values",
    [
        *("1" * MANY, "1-" + "1" * MANY, "1." * MANY, "1e" * MANY, "1-1e400:1", "-" * MANY),
        *(" " * MANY, "1e400-1e400:1e400", "0-1e300:1e-300", "0-100:nan", "--", "0-9:1e400"),
        *("a" * MANY, ",".join(["1"] * 20_000), '"' * 20_001, "\ud800"),
    ],
    ids=lambda values: values[:8],
)
@pytest.mark.parametrize("column", ["age", "job"])
def test_values_that_mean_nothing_are_told_at_once(column, values):
    with pytest.raises(InvalidInput):
        protected.parse(AGE, [f"{column}={values}"])


@pytest.mark.parametrize(
    "value",
    [10**400, 10**5000, [1], {}, None, float("nan"), float("inf"), "1" * 5000],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("column", ["age", "job"])
def test_values_of_any_type_are_held_to_the_column(column, value):
    with pytest.raises(InvalidInput):
        AGE.protect({column: [value, value]})


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
        (["sex=X"], "not a value of column 'sex'"),
        (["age=10-30"], "outside the range of column 'age'"),
        (["age=30-20"], "first must not be above"),
        (["age=20-30:2.5"], "does not fit"),
        (["debt"], "needs a range with a step above 0"),
        (["sex", "sex=F,M"], "named twice"),
        (["sex=F,F"], "lists a value twice"),
        (["sex=F"], "only one value"),
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


@pytest.mark.parametrize("spec", ["age=30.5,40.5", "age=30.5-50.5:1", "price=0.05,0.1"])
def test_protected_values_lie_on_the_column_s_grid(spec):
    with pytest.raises(InvalidInput, match="steps of"):
        MIXED.protect([spec])


@pytest.mark.parametrize(
    "wanted", [{"sex": []}, {"age": [20, None]}, [("sex", "F")], ["job=a\nb"], {"sex": 3}]
)
def test_odd_ways_to_name_protected_values(wanted):
    with pytest.raises(InvalidInput):
        MIXED.protect(wanted)


def test_a_name_with_an_equals_sign_takes_values():
    schema = Schema(
        (Column(name="a=b", kind="categorical", levels=("x", "y,z", "w")), *MIXED.columns)
    )
    assert schema.protect(['a=b=x,"y,z"']).protected_codes == ((0.0, 1.0),)
