import contextlib
import pickle
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import InvalidInput
from limi.table._rule_syntax import quote_name, quote_value, turn_around
from limi.table.constraints import Constraint, find_broken
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from tests.naive import constraints as naive
from tests.toy import MIXED

SCHEMA = Schema(
    (
        *MIXED.columns,
        Column(name="kin", kind="categorical", levels=("Husband", "Wife", "Own-child")),
        Column(name="hours-per-week", kind="numerical", low=0, high=200, step=1, missing=True),
        Column(name="grade", kind="ordered", levels=("low", "mid", "high"), missing=True),
        Column(name="size", kind="ordered", levels=(1, 2, 5)),
        Column(name="zip", kind="categorical", levels=(10, 20)),
        Column(name="in", kind="numerical", low=0, high=9, step=1),
    )
)


def draw_rows(n, seed=0):
    rows = uniform(SCHEMA, n, np.random.default_rng(seed))
    missing = np.random.default_rng(seed + 1).random(rows.shape) < 0.2
    return np.where(missing & SCHEMA.may_miss, np.nan, rows)


def person(row):
    """A row as names and values."""
    return {
        column.name: None
        if np.isnan(code)
        else float(code)
        if column.kind == "numerical"
        else column.levels[int(code)]
        for column, code in zip(SCHEMA.columns, row, strict=True)
    }


def broken(text, **cells):
    """Does a row with these values break a rule?"""
    row = np.full((1, len(SCHEMA)), np.nan)
    for name, value in cells.items():
        row[0, SCHEMA.position(name)] = SCHEMA[name].code(value)
    return bool(Constraint.read("r", text, SCHEMA).broken(row)[0])


ROWS = draw_rows(60)
PEOPLE = [person(row) for row in ROWS]

# -- trees of rules, drawn ------------------------------------------------------------------

numbers = st.sampled_from([-1, 0, 0.1, 0.3, 1, 2, 18, 40, 1.5])
columns = st.sampled_from(["age", "debt", "price"]).map(lambda name: ("column", name))
lookups = st.builds(
    lambda to: ("lookup", tuple(zip(("low", "mid", "high"), to, strict=False)), "grade"),
    st.lists(numbers, min_size=1, max_size=3),
)
quantities = st.recursive(
    columns | lookups,
    lambda inner: st.tuples(
        st.sampled_from("+-*/"), inner, inner | numbers.map(lambda x: ("constant", x))
    ).filter(lambda tree: tree[0] != "/" or tree[2] != ("constant", 0)),
    max_leaves=4,
)
signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
levels = st.sampled_from(["low", "mid", "high"]).map(lambda level: ("constant", level))
jobs = st.sampled_from(["a", "b", "c"])
comparisons = st.one_of(
    st.tuples(signs, quantities, quantities | numbers.map(lambda x: ("constant", x))),
    st.tuples(signs, st.just(("column", "rank")), levels | st.just(("column", "grade"))),
    st.tuples(
        st.sampled_from(["==", "!="]),
        st.just(("column", "job")),
        jobs.map(lambda j: ("constant", j)),
    ),
    st.tuples(st.just("in"), st.just(("column", "job")), st.lists(jobs, min_size=1).map(sorted)),
    st.tuples(st.just("in"), columns, st.lists(numbers, min_size=1, max_size=7)),
    st.tuples(st.just("missing"), quantities | st.just(("column", "job"))),
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or", "implies"]), inner, inner)
        | inner.map(lambda tree: ("not", tree))
    ),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(conditions)
def test_rules_mean_what_the_row_by_row_version_says(tree):
    text = naive.write(tree)
    expected = [naive.truth(tree, one, SCHEMA) is False for one in PEOPLE]
    assert Constraint.read("r", text, SCHEMA).broken(ROWS).tolist() == expected, text


@settings(max_examples=100, deadline=None)
@given(conditions)
def test_tensors_give_the_answers_of_arrays(tree):
    torch = pytest.importorskip("torch", reason="needs limi[torch]")
    constraint = Constraint.read("r", naive.write(tree), SCHEMA)
    found = constraint.broken(torch.as_tensor(ROWS))
    assert found.dtype == torch.bool
    assert found.tolist() == constraint.broken(ROWS).tolist()


def test_no_rules_are_broken_by_no_row_of_a_tensor():
    torch = pytest.importorskip("torch", reason="needs limi[torch]")
    found = find_broken([], torch.as_tensor(ROWS))
    assert (found.shape, found.dtype) == ((len(ROWS), 0), torch.bool)


def test_single_precision_tensors_know_a_tenth():
    torch = pytest.importorskip("torch", reason="needs limi[torch]")
    rows = torch.as_tensor(ROWS, dtype=torch.float32)
    for text in ("price in [0.1, 0.2, 0.3, 0.7, 1.1]", "price * 3 == 0.9", "price == 0.7"):
        constraint = Constraint.read("r", text, SCHEMA)
        assert constraint.broken(rows).tolist() == constraint.broken(ROWS).tolist()


WORDS = [
    *("implies", "->", "and", "or", "not", "in", "is", "missing", "true", "==", "!=", "<", ">="),
    *("+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",", ":", "age", "sex", "job", "`zip`"),
    *('"F"', "'low'", "7", "0.5", "1e400", "rank", "vet", "`", '"', "\\", "**", "=", "lambda", "."),
]


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=60)
    | st.text(string.printable, max_size=60)
    | st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
    | st.builds(
        lambda text, at, odd: text[: at % (len(text) + 1)] + odd + text[at % (len(text) + 1) :],
        conditions.map(naive.write),
        st.integers(0, 1000),
        st.sampled_from(WORDS) | st.characters(),
    )
)
def test_whatever_text_is_a_rule_or_refused_in_a_sentence(text):
    with contextlib.suppress(InvalidInput):
        constraint = Constraint.read("r", text, SCHEMA)
        assert constraint.broken(ROWS).shape == (len(ROWS),)
        assert constraint.columns


# -- the language, by example ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cells", "is_broken"),
    [
        ('kin == "Husband" implies sex == "M"', {"kin": "Husband", "sex": "F"}, True),
        ('kin == "Husband" implies sex == "M"', {"kin": "Wife", "sex": "F"}, False),
        ('kin == "Husband" -> sex == "M"', {"kin": "Husband", "sex": "F"}, True),
        ("age >= 18 implies vet implies rank == 'low'", {"age": 40, "vet": False}, False),
        ("(age >= 18 implies vet) implies rank == 'low'", {"age": 40, "vet": False}, False),
        ("(age < 18 implies vet) implies rank == 'low'", {"age": 40, "rank": "mid"}, True),
        ("age < 18 implies vet implies rank == 'low'", {"age": 40, "rank": "mid"}, False),
        ("`hours-per-week` <= 7 * 24", {"hours-per-week": 168}, False),
        ("`hours-per-week` <= 7 * 24", {"hours-per-week": 169}, True),
        ("7 * 24 >= `hours-per-week`", {"hours-per-week": 169}, True),
        ("20 <= age < 30", {"age": 30}, True),
        ("20 <= age < 30", {"age": 20}, False),
        ("not vet", {"vet": True}, True),
        ("vet == true", {"vet": False}, True),
        ("vet or `in` > 3", {"vet": False, "in": 3}, True),
        ("job is missing", {"job": "a"}, True),
        ("job is missing", {}, False),
        ("job is not missing", {}, True),
        ("job not in ['a', 'b']", {"job": "b"}, True),
        ("job not in ['a', 'b']", {}, False),
        ("age in (18, 19, 20, 21, 22, 23)", {"age": 24}, True),
        ("age in {18, 19, 20, 21, 22, 23,}", {"age": 23}, False),
        ("rank < 'high'", {"rank": "high"}, True),
        ("rank == grade", {"rank": "low", "grade": "mid"}, True),
        ("rank <= grade", {"rank": "low", "grade": "mid"}, False),
        ("rank <= grade", {"rank": "low"}, False),
        ("size * 2 <= 4", {"size": 5}, True),
        ("age >= size", {"age": 18, "size": 5}, False),
        ("zip == 10", {"zip": 20}, True),
        ("price == 0.1 + 0.2", {"price": 0.3}, False),
        ("price + 0.1 == 0.3", {"price": 0.2}, False),
        ("price * 3 < 0.3", {"price": 0.1}, True),
        ("debt * 3 == 0.3", {"debt": 0.1}, False),
        ("debt * 2 == 2.00001", {"debt": 1}, True),
        ("debt * 100 == 410", {"debt": 4.1}, False),
        ("price * 3 == 0", {"price": 0}, False),
        ("price * 3 != 0", {"price": 0}, True),
        ("debt * 3 >= 0.3", {"debt": 0.1}, False),
        ("debt * 3 <= 0.3", {"debt": 0.1}, False),
        ("debt * 3 > 0.3", {"debt": 0.1}, True),
        ("age / debt > 0", {"age": 18, "debt": 0}, False),
        ("-debt <= 2", {"debt": -3}, True),
        ("age == {'low': 18, 'mid': 19}[rank]", {"age": 19, "rank": "low"}, True),
        ("age == {'low': 18, 'mid': 19}[rank]", {"age": 19, "rank": "high"}, False),
        ("rank == {18: 'low', 19: 'mid'}[age]", {"age": 19, "rank": "low"}, True),
        ("rank >= {18: 'low', 19: 'mid'}[age]", {"age": 18, "rank": "low"}, False),
        ("age != 18 and age != 19", {"age": 19}, True),
        ("debt > 1 or age > 20", {"age": 20}, False),
        ("debt > 1 and age > 20", {"age": 20}, True),
    ],
)
def test_a_rule_by_example(text, cells, is_broken):
    assert broken(text, **cells) is is_broken


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("realtion == 'x'", "there is no column 'realtion'; "),
        ("ag > 3", "did you mean 'age'?"),
        ("kin == 'Husbnd'", "did you mean 'Husband'?"),
        ("kin in ['Wife', 'Husbnd']", "did you mean 'Husband'?"),
        ("sex == M", "'M'; it is a value of column 'sex', and values are written in quotes"),
        ("sex < 'M'", "the values of column 'sex' have no order, because it is categorical"),
        ("zip >= 10", "have no order"),
        ("rank < sex", "the values of column 'sex' have no order"),
        ("rank < size", "list different values"),
        ("age == 'old'", "'old' is used where a number is expected"),
        ("age + sex > 3", "column 'sex' is categorical and holds no numbers"),
        ("age", "compare it with something"),
        ("age and vet", "compare it with something"),
        ("3", "a rule is a condition"),
        ("1 < 2", "compares two constants"),
        ("3 * 4 == 12", "compares two constants"),
        ("(age > 3) == vet", "a condition is used where"),
        ("age = 3", "write == for equal"),
        ("age == 3 & vet", "write 'and'"),
        ("age > ", "the rule ends where a column, a number or a text in quotes is expected"),
        ("age > 3 vet", "'vet' is at character 9, where the end of the rule"),
        ("(age > 3", "the rule ends where ')' is expected"),
        ("age in 3", "where a list such as"),
        ("hours-per-week > 3", "there is no column 'hours'"),
        ("age ** 2 > 3", "'*' is at character 6"),
        ("age > 1e400", "beyond 1e+300"),
        ("age > 1e200 * 1e200", "too large"),
        ("age / 0 > 1", "divides by zero"),
        ("age == {'low': 1, 'low': 2}[rank]", "names 'low' twice"),
        ("age == {'low': 'mid'}[rank]", "gives values of another column"),
        ("3 is missing", "a constant is never missing"),
        ("sex == 'F\\x'", "write \\\\ for a backslash"),
        ("sex == 'F", "a second quote"),
        ("__import__('os')", "is at character 11"),
        ("age.real > 3", "'.', is not allowed there"),
        ("", "the rule ends"),
        ("age > 3 or " * 200 + "vet", "2,203 characters, more than 2,000"),
        ("(" * 60 + "vet" + ")" * 60, "more than 40 deep"),
        ("not " * 60 + "vet", "more than 40 deep"),
        ("+".join(["age"] * 60) + "> 3", "more than 40 deep"),
        ("age in [" + ",".join(["1"] * 450) + "]", "more than 400"),
    ],
)
def test_what_is_no_rule_is_refused_in_one_sentence(text, words):
    with pytest.raises(InvalidInput) as caught:
        Constraint.read("r", text, SCHEMA)
    assert str(caught.value).startswith("constraint 'r': ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        ("vet" + " " * 1997, "vet" + " " * 1998),
        ("not " * 39 + "vet", "not " * 40 + "vet"),
        pytest.param("(" * 39 + "vet" + ")" * 39, "(" * 40 + "vet" + ")" * 40, id="brackets"),
        ("-" * 38 + "age < 3", "-" * 39 + "age < 3"),
        ("+".join(["age"] * 39) + " < 3", "+".join(["age"] * 40) + " < 3"),
        (f"age in {[1] * 398}", f"age in {[1] * 399}"),
    ],
)
def test_the_limits_are_reached_and_not_passed(fits, too_much):
    Constraint.read("r", fits, SCHEMA)
    with pytest.raises(InvalidInput):
        Constraint.read("r", too_much, SCHEMA)


@pytest.mark.parametrize("part", ["(vet)", "not vet", "-age < 3", "(vet -> vet)", "age < (3)"])
def test_what_stands_side_by_side_does_not_add_up(part):
    Constraint.read("r", " and ".join([part] * 60), SCHEMA)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("vet implies age > 3", "age > 3 implies vet"),
        ("(vet -> vet) -> age > 3", "age > 3 implies (vet -> vet)"),
        ("vet -> age > 3 -> vet", "(age > 3 -> vet) implies vet"),
        ("job in ['->'] -> vet", "vet implies job in ['->']"),
        (
            "age in [1, 2] and {'a': 1}[job] > 0 -> vet",
            "vet implies age in [1, 2] and {'a': 1}[job] > 0",
        ),
        ("vet", None),
        ("(vet -> vet)", "vet implies vet"),
    ],
)
def test_an_implication_is_turned_around(text, turned):
    assert turn_around(text) == turned


def test_what_is_not_text_is_no_rule():
    with pytest.raises(InvalidInput, match="a name and a rule as text"):
        Constraint.read("r", 3, SCHEMA)


def test_a_rule_knows_its_columns_and_survives_a_pickle():
    constraint = Constraint.read("r", "rank == {18: 'low'}[age] or job in ['a']", SCHEMA)
    assert constraint.columns == (0, 2, 3)
    again = pickle.loads(pickle.dumps(constraint))  # noqa: S301 - our own
    assert again == constraint
    assert hash(again) == hash(constraint)
    assert again.broken(ROWS).tolist() == constraint.broken(ROWS).tolist()
    assert Constraint.read("r", "vet", SCHEMA) != constraint


def test_many_rows_are_looked_at_in_parts():
    rows = draw_rows(40_000)
    constraint = Constraint.read("r", "age >= 30 or vet", SCHEMA)
    assert constraint.broken(rows).tolist() == ((rows[:, 0] < 30) & (rows[:, 4] == 0)).tolist()


def test_several_rules_at_once_give_a_column_each():
    rules = [Constraint.read(str(k), text, SCHEMA) for k, text in enumerate(["vet", "age < 50"])]
    found = find_broken(rules, ROWS)
    assert found.tolist() == [
        list(pair) for pair in zip(*(r.broken(ROWS) for r in rules), strict=True)
    ]
    assert find_broken([], ROWS).shape == (len(ROWS), 0)


def test_codes_outside_a_column_are_unknown():
    row = np.full((1, len(SCHEMA)), 77.0)
    assert not Constraint.read("r", "age == {'low': 1}[rank]", SCHEMA).broken(row).any()


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_and_any_level_can_be_written(odd):
    schema = Schema((Column(name=odd, kind="categorical", levels=(odd, odd + "x")),))
    text = f"{quote_name(odd)} == {quote_value(odd)}"
    if len(text) <= 2000:
        assert Constraint.read("r", text, schema).broken(np.array([[0.0], [1.0]])).tolist() == [
            False,
            True,
        ]
