"""What was asked for, and what is said of it: the table, its labels and the protected values."""

import numpy as np
import pandas as pd
import pytest

from limi.errors import InvalidInput, nearest
from limi.problems import prepare


def people(n=200):
    ages = np.array([20, 25, 30, 40, 50])
    return pd.DataFrame(
        {
            "age": ages[np.arange(n) % 5],
            "sex": np.where(np.arange(n) % 2, "Male", "Female"),
            "debt": (np.arange(n) % 7) / 7.3,
            "ok": np.arange(n) % 2,
        }
    )


def score(frame):
    return frame["age"] / 100


def prepared(frame=None, model=score, **given):
    frame = people() if frame is None else frame
    return prepare(model, frame, **{"protected": ["sex"], "target": "ok", **given})


# -- names and values -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("male", ["Female", "Male"], "Male"),
        ("MALE", ["Female", "Male"], "Male"),
        (" male", ["Female", "Male"], "Male"),
        ("femal", ["Female", "Male"], "Female"),
        ("yes", ["YES", "Yes"], "Yes"),
        ("sax", ["age", "sex"], "sex"),
    ],
)
def test_the_nearest_name_is_sought_without_regard_to_capitals_first(name, known, meant):
    assert nearest(name, known).startswith(f"did you mean {meant!r}? Known: ")


def test_nothing_near_suggests_nothing():
    assert nearest("zzz", ["Female", "Male"]) == "Known: Female, Male"
    assert nearest("zzz", []) == "Known: none"


def test_a_value_in_other_capitals_is_the_one_suggested():
    with pytest.raises(InvalidInput, match="did you mean 'Male'"):
        prepared(protected=["sex=male,female"])


def test_values_that_nobody_has_are_noted():
    (note,) = prepared(protected=["age=20-50:5"]).notes
    assert note.startswith(
        "nobody in the table has 2 of the 7 values of 'age' that were tried (35, 45); "
    )
    assert prepared(protected=["age=20,25,50"]).notes == ()
    assert prepared(protected=["sex"]).notes == ()


def test_of_real_numbers_it_counts_whether_somebody_comes_near():
    # The column runs from 0 to 0.82 in steps of 0.137, so that nobody has 0.4 itself.
    assert prepared(protected=["debt=0-0.8:0.2"]).notes == ()
    gap = people().assign(debt=lambda frame: frame["debt"].where(frame["debt"] < 0.3, 0.82))
    (note,) = prepared(gap, protected=["debt=0-0.8:0.2"]).notes
    assert "nobody in the table comes near 2 of the 5 values of 'debt' that were tried" in note
    assert "(0.4, 0.6)" in note
    unsorted = prepared(gap, protected=["debt=0.8,0.4,0,0.2,0.6"]).notes
    assert "(0.4, 0.6)" in unsorted[0]
