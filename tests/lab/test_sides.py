"""One side of a claim: which scale speaks, and why there is no number."""

import dataclasses

import pytest

from lab.results import Results
from lab.verdicts import classify, judge
from tests.lab.small import FIRST, TIMES, outcome

BENCHMARKS = (
    "census-sex",
    "census-race",
    "census-age",
    "credit-sex",
    "credit-age",
    "bank-age",
    "meps-sex",
)
LESS = dataclasses.replace(
    FIRST,
    kind="size",
    number="less",
    study="repair-dnn",
    measure="if_n",
    stated=0.5,
    over=("before",),
    control="control",
)


def cells(by_variant, scale="paper", study="dnn", measure="findings"):
    """By variant the numbers of every seed on each benchmark; None: the cell lacks the measure."""
    found = {}
    for variant, lines in by_variant.items():
        for benchmark, line in lines.items():
            for seed, value in enumerate(line):
                name = f"{benchmark}/{variant}/{seed}"
                found[name] = outcome(name, if_m=0.1, **({} if value is None else {measure: value}))
    return Results(study, scale, found)


def everywhere(line, benchmarks=BENCHMARKS):
    return dict.fromkeys(benchmarks, line)


@pytest.mark.parametrize(
    ("claim", "shown"), [(FIRST, "1 of 1, 1 of 7 benchmarks"), (TIMES, "3.00 x, 1 of 7 benchmarks")]
)
def test_a_part_of_the_benchmarks_decides_nothing(claim, shown):
    part = {
        "limi": everywhere([30, 30], ["census-sex"]),
        "adf": everywhere([10, 10], ["census-sex"]),
    }
    judged = judge(claim, [cells(part)])
    assert (judged.with_trees, judged.holds) == (shown, "open: 1 of 7 benchmarks (`trees`)")


@pytest.mark.parametrize(("claim", "shown"), [(FIRST, "0 of 7"), (TIMES, "0.50 x")])
def test_a_whole_scale_goes_before_a_larger_one_of_which_a_part_was_run(claim, shown):
    part = {
        "limi": everywhere([30, 30], ["census-sex"]),
        "adf": everywhere([10, 10], ["census-sex"]),
    }
    whole = {"limi": everywhere([5, 5]), "adf": everywhere([10, 10])}
    judged = judge(claim, [cells(part), cells(whole, scale="small")])
    assert judged.with_trees == f"{shown}, `small`"
    assert judged.holds in ("no (`trees`)", "no: the opposite (`trees`)")


@pytest.mark.parametrize(
    ("control", "words"),
    [({}, "control not run"), ({"control": everywhere([None, None])}, "control not computable")],
)
def test_the_control_says_why_it_has_no_number(control, words):
    lines = {"before": everywhere([1.0, 1.0]), "limi": everywhere([0.4, 0.5]), **control}
    judged = judge(LESS, [cells(lines, study="repair-dnn", measure="if_n")])
    assert words in judged.with_trees
    assert judged.holds == "open: no control (`trees`)"


@pytest.mark.parametrize(
    "control", [[0.9, 0.9], [0.1, 0.1], [None, None]], ids=["behind", "further", "unmeasured"]
)
def test_a_bound_is_not_held_against_the_control(control):
    claim = dataclasses.replace(LESS, bound=True)
    lines = {
        "before": everywhere([1.0, 1.0]),
        "limi": everywhere([0.4, 0.4]),
        "control": everywhere(control),
    }
    judged = judge(claim, [cells(lines, study="repair-dnn", measure="if_n")])
    assert judged.holds == "yes (`trees`)"


def test_benchmarks_of_one_seed_and_those_beside_one_model_are_counted_apart():
    claim = dataclasses.replace(FIRST, study="repair-dnn", measure="if_n", over=("before",))
    lines = {
        "before": everywhere([1.0, 1.0]),
        "limi": {**everywhere([0.4, 0.5]), "credit-sex": [0.4]},
    }
    judged = judge(claim, [cells(lines, study="repair-dnn", measure="if_n")])
    assert judged.with_trees == "7 of 7 (one model before on 6; one seed on 1)"
    assert judged.holds == "open: one seed (`trees`)"


def test_a_difference_to_one_model_before_is_open():
    claim = dataclasses.replace(
        LESS, kind="size", number="difference", first="before", over=("limi",), control=""
    )
    lines = {"before": everywhere([1.0, 1.0]), "limi": everywhere([0.4, 0.5])}
    judged = judge(claim, [cells(lines, study="repair-dnn", measure="if_n")])
    assert judged.holds == "open: one model before (`trees`)"


def test_a_verdict_that_nobody_knows_is_an_error():
    with pytest.raises(ValueError, match="'held' is not one of the verdicts"):
        classify("held")
    assert classify("not run") == "not judged"
