"""Claims of the claims file: what they name exists."""

import pytest

from lab.claims import _claim
from lab.files import _study
from limi.errors import CorruptStore

GIVEN = {
    "says": "IF_r falls",
    "where": "RQ3",
    "study": "repair-dnn",
    "kind": "size",
    "number": "less",
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
        ({"measure": "if_rr"}, "'if_rr.*' is not a measure; did you mean"),
        ({"also": "finding"}, "is not a measure; did you mean .*'findings"),
        ({"benchmarks": ["census", "adult"]}, "the benchmark 'adult'"),
        ({"table": "census"}, "the benchmark 'census'"),
        ({"kind": "more"}, "kind 'more' is none of"),
    ],
)
def test_a_claim_that_names_what_its_study_does_not_have_is_refused(changes, told):
    assert _claim(GIVEN).control == "control"
    with pytest.raises((CorruptStore, KeyError), match=told):
        _claim({**GIVEN, **changes})


def test_a_study_of_another_s_table_of_the_paper_names_one_that_is_there():
    tree = {"title": "t", "source": "ours", "kind": "repair", "methods": ["limi"], "tables": []}
    assert _study("mine", {**tree, "paper_of": "repair-dnn"}).paper_of == "repair-dnn"
    with pytest.raises(KeyError, match="no table of the paper for 'repair-dn'"):
        _study("mine", {**tree, "paper_of": "repair-dn"})


@pytest.mark.parametrize(
    "figure",
    [{"line": ["limi", "lim"]}, {"marks": {"lim": "l"}}, {"curves": {"variants": ["lim"]}}],
)
def test_a_figure_that_names_an_unknown_variant_is_refused(figure):
    tree = {"title": "t", "source": "ours", "kind": "search", "methods": ["limi"], "tables": []}
    assert _study("mine", {**tree, "figure": {"line": ["limi"], "curves": True}}).figure
    with pytest.raises(KeyError, match=r"names variants that it does not have: \['lim'\]"):
        _study("mine", {**tree, "figure": figure})
