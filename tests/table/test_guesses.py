"""Roles of columns, guessed from names and values."""

import pandas as pd
import pytest

from limi.data import load
from limi.table.files import infer
from limi.table.guesses import guess


def guessed(**columns):
    return guess(infer(pd.DataFrame(columns)))


def test_shipped_tables_are_guessed_as_they_are():
    for name in ("adult", "bank"):
        known = load(name)
        found = guess(infer(known.frame))
        assert (found.target, found.favorable) == (known.target, known.favorable)
    assert guess(infer(load("adult").frame)).protected == ("race", "sex")
    assert "age=17-89:9" in guess(infer(load("adult").frame)).maybe


@pytest.mark.parametrize(
    ("name", "values", "favorable"),
    [
        ("approved", [0, 1], 1),
        ("loan_default", [0, 1], 0),
        ("creditRisk", ["good", "bad"], "good"),
        ("hired", ["No", "Yes"], "Yes"),
        ("is_fraud", [True, False], False),
        ("Outcome", ["granted", "other"], "granted"),
        ("outcome", ["rejected", "other"], "other"),
        ("outcome", ["a", "b"], None),
        ("class", [1, 2], None),
    ],
)
def test_the_favorable_label_is_guessed_from_both(name, values, favorable):
    found = guessed(x=[1, 2, 3, 4], **{name: values * 2}, z=[5, 6, 7, 8])
    assert (found.target, found.favorable) == (name, favorable)


def test_a_protected_column_is_not_taken_for_the_target():
    found = guessed(x=[1, 2, 3, 4], Gender=["a", "b"] * 2)
    assert found.target is None
    assert found.protected == ("Gender",)


def test_parts_of_names_count_and_not_letters_in_them():
    found = guessed(usage=[1, 2, 3], applicantSex=["a", "b", "a"], essex=[1, 2, 3], y=[0, 1, 0])
    assert found.protected == ("applicantSex",)
    assert found.maybe == ()
    assert found.target == "y"


def test_many_values_are_offered_as_a_range_in_steps():
    found = guessed(age=list(range(18, 81)), income=list(range(63)), ok=[0, 1, 0] * 21)
    assert found.maybe == ("age=18-74:8",)
