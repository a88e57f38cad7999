"""Words of errors: the nearest name, and lists that stay short."""

import pytest

from limi.errors import find_repeated, nearest, spell


def test_names_of_any_length_are_compared_in_time():
    long = ["x" * 100_000 + str(i) for i in range(3)]
    told = nearest("x" * 100_000, long)
    assert len(told) < 1000
    assert len(spell(long)) < 1000
    assert find_repeated(["b", "a", "b", 3, 3]) == ["3", "b"]


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
    assert nearest("zzz", ["Female", "Male"]) == "known: Female, Male"
    assert nearest("zzz", []) == "known: none"
