"""Constraints that a user gives, and rules that the table itself does not keep."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.table.rule_checks import add_constraints, require_kept
from limi.table.rules import Derived, Rules
from limi.table.schema import Column, Schema
from tests.toy import integers

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("Female", "Male")),
        Column(name="tie", kind="categorical", levels=("Wife", "Husband", "Child")),
        integers("age", 0, 99),
        integers("decade", 0, 9),
    )
)


@pytest.fixture(scope="module")
def rows():
    """A thousand people: husbands are men, wives women, and one of each is the other way."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 1000)
    tie = np.where(rng.random(1000) < 0.5, sex, 2)
    tie[:2], sex[:2] = [0, 1], [1, 0]
    age = rng.permutation(1000) % 100
    return np.stack([sex, tie, age, age // 10], axis=1).astype(float)


def test_rules_are_added_by_name_or_by_their_own_text():
    schema = add_constraints(SCHEMA, {"old": "age >= 0"})
    schema = add_constraints(schema, ["age <= 99"])
    assert schema.rules.constraints == (("old", "age >= 0"), ("age <= 99", "age <= 99"))
    assert add_constraints(schema, "age < 200").rules.constraints[-1][0] == "age < 200"
    assert add_constraints(schema, ()) is schema


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["aeg > 3"], "did you mean 'age'"),
        ([3], "a name and a rule as text"),
        ({"old": "age > 3"}, "different names; used twice: old"),
    ],
)
def test_rules_that_cannot_be_added(wanted, words):
    with pytest.raises(InvalidInput, match=words):
        add_constraints(add_constraints(SCHEMA, {"old": "age >= 0"}), wanted)


def test_a_long_rule_is_not_repeated_in_full():
    for rule in ("(" * 1500 + "age > 3", "age > 3 and " * 100 + "aeg > 3"):
        with pytest.raises(InvalidInput) as caught:
            add_constraints(SCHEMA, [rule], target="paid")
        assert len(str(caught.value)) < 300


def test_rules_that_nearly_every_row_keeps_are_taken(rows):
    require_kept(SCHEMA, rows)
    require_kept(add_constraints(SCHEMA, ['tie == "Husband" implies sex == "Male"']), rows)
    require_kept(add_constraints(SCHEMA, ["age > 3"]), rows[:0])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("age > 30", "of 1,000 rows .*; nearly every row should keep a rule"),
        ("age > 200", "no row of the table keeps constraint 'age > 200'; nearly every row should"),
        (
            'sex == "Male" implies tie == "Husband"',
            r"""the reverse, 'tie == "Husband" implies sex == "Male"', which 1 row breaks\?""",
        ),
        (
            'sex == "Male" -> age >= 0 -> (tie == "Husband")',
            r"""'\(age >= 0 -> \(tie == "Husband"\)\) implies sex == "Male"'""",
        ),
    ],
)
def test_a_rule_that_many_rows_break_is_refused_with_the_count(rows, rule, words):
    with pytest.raises(InvalidInput, match=words):
        require_kept(add_constraints(SCHEMA, [rule]), rows)


def test_rules_that_no_row_keeps_together_are_refused(rows):
    rules = {f"r{k}": f"not {4 * k} <= age <= {4 * k + 3}" for k in range(25)}
    with pytest.raises(InvalidInput, match="no row of the table keeps all 25 constraints"):
        require_kept(add_constraints(SCHEMA, rules), rows)


def test_a_derived_column_that_the_table_contradicts_is_refused(rows):
    def with_steps(of_ten):
        steps = tuple(range(of_ten, of_ten * 10, of_ten))
        derived = Derived(column="decade", sources=("age",), steps=steps, values=tuple(range(10)))
        return Schema(SCHEMA.columns, rules=Rules(derived=(derived,)))

    require_kept(with_steps(10), rows)
    with pytest.raises(
        InvalidInput, match=r"of 1,000 rows \(\d+ %\) hold a different value: with age"
    ):
        require_kept(with_steps(11), rows)


def test_missing_cells_agree_with_missing_cells_alone():
    columns = (
        Column(name="a", kind="categorical", levels=("x", "y"), missing=True),
        Column(name="b", kind="categorical", levels=("x", "y"), missing=True),
        Column(name="c", kind="categorical", levels=("x", "y"), missing=True),
    )
    lookup = ((("x",), "x"), (("y",), "y"))
    derived = tuple(Derived(column=name, sources=("a",), lookup=lookup) for name in "bc")
    schema = Schema(columns, rules=Rules(derived=derived))
    cells = np.where(np.arange(100) % 4 == 0, np.nan, np.arange(100) % 2)
    rows = np.stack([cells, cells, cells], axis=1)
    require_kept(schema, rows)
    with pytest.raises(InvalidInput, match="'c' is derived from a, but 25 of 100"):
        require_kept(schema, np.stack([cells, cells, np.nan_to_num(cells)], axis=1))
