"""Claims of the claims file: what they name exists."""

import pytest

from limi.errors import CorruptStore
from limi.studies._files import _study, load
from limi.studies._paper_claims import _claim, list_claims

GIVEN = {
    "says": "IF_r falls",
    "where": "RQ3",
    "study": "repair-dnn",
    "kind": "less",
    "measure": "if_r",
    "first": "limi",
    "over": ["before"],
    "control": "control",
    "benchmarks": ["census", "bank-age"],
}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"control": "contrl"}, "the variant 'contrl'.*did you mean 'control'"),
        ({"first": "lim"}, "the variant 'lim'.*did you mean 'limi'"),
        ({"over": ["befor"]}, "the variant 'befor'"),
        ({"measure": "if_rr"}, "the measure 'if_rr'"),
        ({"also": "finding"}, "the measure 'finding'.*did you mean 'findings'"),
        ({"benchmarks": ["census", "adult"]}, "the benchmark 'adult'"),
        ({"table": "census"}, "the benchmark 'census'"),
        ({"kind": "more"}, "kind 'more' is none of"),
    ],
)
def test_a_claim_that_names_what_its_study_does_not_have_is_refused(changes, told):
    assert _claim(GIVEN).control == "control"
    with pytest.raises((CorruptStore, KeyError), match=told):
        _claim({**GIVEN, **changes})


def test_every_claim_of_the_file_names_what_its_study_has():
    for claim in list_claims():
        names = {variant.name for variant in load(claim.study).variants}
        assert {*claim.named, *filter(None, [claim.control])} <= names


@pytest.mark.parametrize(
    "figure",
    [{"line": ["limi", "lim"]}, {"marks": {"lim": "l"}}, {"curves": {"variants": ["lim"]}}],
)
def test_a_figure_that_names_an_unknown_variant_is_refused(figure):
    tree = {"title": "t", "source": "ours", "kind": "search", "methods": ["limi"], "tables": []}
    assert _study("mine", {**tree, "figure": {"line": ["limi"], "curves": True}}).figure
    with pytest.raises(KeyError, match=r"names variants that it does not have: \['lim'\]"):
        _study("mine", {**tree, "figure": figure})
