"""Numbers in remarks come from the cells."""

import dataclasses

import pytest

from limi.studies._files import load
from limi.studies._remarks import check_remarks, fill_in
from tests.studies.small import tiny


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{findings limi census-sex}", "100,000"),
        ("{findings limi low}", "100,000"),
        ("{findings limi high}", "300,000"),
        ("{findings limi mean}", "200,000"),
        ("{findings limi/natural high}", "1.43"),
        ("{findings limi:natural census-sex}", "+25 %"),
        ("{count findings limi > natural}", "2 of 2"),
        ("{pairs findings natural > limi}", "0 of 4"),
        ("{findings limi:natural means}", "+38 %"),
        ("{count findings natural > limi}", "0 of 2"),
        ("{small: atn limi census-sex}", "0.820"),
        ("{paper: atn limi census-sex}", "(not run)"),
        ("{atn limi bank-age}", "(not run)"),
        ("{nothing limi mean}", "(not run)"),
    ],
)
def test_a_number_is_filled_in(text, shown):
    assert fill_in(f"a {text} b", load("dnn"), [tiny()]) == f"a {shown} b"


def test_variants_are_compared_at_the_seeds_that_both_have():
    known = tiny()
    del known.outcomes["census-sex/natural/1"]
    text = "{findings limi:natural census-sex}, {findings limi census-sex}"
    assert fill_in(text, load("dnn"), [known]) == "+12 %, 100,000"


def test_digits_of_results_stand_in_braces():
    study = dataclasses.replace(
        load("dnn"), remarks="Of `95` rows {findings limi low}, 12 and 1,000.", fixed=("1,000",)
    )
    (wrong,) = check_remarks(study, [tiny()])
    assert "says 12," in wrong
