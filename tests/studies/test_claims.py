"""What the paper claims, judged by the written rule."""

import dataclasses

import pytest

from limi.studies._claims import PaperClaim, compute, judge, list_claims
from limi.studies._files import load, paper_numbers
from limi.studies._results import Results
from tests.studies.small import outcome

FIRST = PaperClaim(
    says="first",
    where="",
    study="dnn",
    kind="first",
    measure="findings",
    first="limi",
    over=("adf",),
)
TIMES = dataclasses.replace(FIRST, kind="times", stated=2.0)


def results(limi, adf, more=None):
    """Two benchmarks: lists of findings by seed."""
    cells = {}
    for benchmark, numbers in limi.items():
        for variant, line in (("limi", numbers), ("adf", adf[benchmark])):
            for seed, value in enumerate(line):
                name = f"{benchmark}/{variant}/{seed}"
                cells[name] = outcome(name, findings=value, **(more or {}).get(variant, {}))
    return [Results("dnn", "paper", cells)]


@pytest.mark.parametrize(
    ("limi", "adf", "shown", "holds"),
    [
        ([[5, 6], [5, 6]], [[1, 4], [2, 3]], "2 of 2", "yes (`trees`)"),
        ([[5, 6], [5, 6]], [[1, 4], [2, 5]], "1 of 2, 1 open", "on 1 of 2 (`trees`)"),
        ([[1, 2], [1, 2]], [[3, 4], [3, 4]], "0 of 2", "no (`trees`)"),
        ([[1, 5], [1, 5]], [[3, 4], [3, 4]], "0 of 2, 2 open", "open (`trees`)"),
        ([[1, 5], [1, 2]], [[3, 4], [3, 4]], "0 of 2, 1 open", "no (`trees`)"),
        ([[5], [5]], [[1], [2]], "2 of 2 (one seed)", "open: one seed (`trees`)"),
    ],
)
def test_first_means_beyond_the_spread_of_the_seeds(limi, adf, shown, holds):
    names = ("census-sex", "credit-sex")
    known = results(dict(zip(names, limi, strict=True)), dict(zip(names, adf, strict=True)))
    judged = judge(FIRST, known)
    assert (judged.with_trees, judged.holds) == (shown, holds)
    assert judged.with_paper_generator == "not run"
    assert judged.paper == "7 of 7"


@pytest.mark.parametrize(
    ("limi", "holds"),
    [
        ([20, 25], "yes"),
        ([15, 19], "smaller"),
        ([9, 15], "no"),
        ([9, 20], "open"),
        ([5, 8], "no: the opposite"),
        ([30], "open: one seed"),
    ],
)
def test_a_size_holds_if_one_seed_reaches_it_and_none_is_on_the_other_side(limi, holds):
    known = results({"census-sex": limi}, {"census-sex": [10] * len(limi)})
    assert judge(TIMES, known).holds == f"{holds} (`trees`)"


@pytest.mark.parametrize(
    ("limi", "holds"), [([8, 9], "yes"), ([7, 9], "open"), ([6, 7], "no"), ([9], "open: one seed")]
)
def test_a_bound_is_kept_by_every_seed(limi, holds):
    claim = dataclasses.replace(FIRST, kind="low", over=(), stated=8.0, bound=True)
    known = results({"census-sex": limi}, {"census-sex": [1] * len(limi)})
    assert judge(claim, known).holds == f"{holds} (`trees`)"


def test_changes_and_ratios_also_come_of_the_means():
    limi, adf = (
        {"census-sex": [5, 5], "credit-sex": [4, 4]},
        {"census-sex": [10, 10], "credit-sex": [2, 2]},
    )
    claim = dataclasses.replace(FIRST, kind="less")
    assert judge(claim, results(limi, adf)).with_trees == "+25.0 %; of the means -25.0 %"
    claim = dataclasses.replace(FIRST, kind="pairs", first="", over=(), pairs=(("limi", "adf"),))
    assert judge(claim, results(limi, adf)).with_trees == "1.25 x; of the means 0.75 x"


def test_a_rise_from_zero_shows_in_the_means():
    limi, adf = (
        {"census-sex": [5, 5], "credit-sex": [7, 7]},
        {"census-sex": [10, 10], "credit-sex": [0, 0]},
    )
    claim = dataclasses.replace(FIRST, kind="less")
    assert judge(claim, results(limi, adf)).with_trees == "-25.0 %; of the means +20.0 %"


@pytest.mark.parametrize(
    ("given", "shown", "holds"),
    [
        ({"generator": "ctgan", "device": "cpu"}, "9.00 x", "yes"),
        ({"generator": "ctgan", "device": "cuda"}, "not comparable", "smaller (`trees`)"),
        ({"generator": "ctgan"}, "not comparable", "smaller (`trees`)"),  # it does not say
    ],
)
def test_a_speed_of_a_gpu_is_not_compared(given, shown, holds):
    speeds = {"limi": (15.0, 19.0), "adf": (10.0, 10.0), "limi.ctgan": (90.0, 90.0)}
    cells = {}
    for variant, line in speeds.items():
        for seed, value in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", findings=5, per_second=value)
            its = given if variant == "limi.ctgan" else {"device": "cpu"}
            cells[cell.cell] = dataclasses.replace(cell, given=its)
    judged = judge(
        dataclasses.replace(TIMES, measure="per_second"), [Results("dnn", "paper", cells)]
    )
    assert (judged.with_paper_generator, judged.holds) == (shown, holds)


@pytest.mark.parametrize(
    ("limi", "adf", "shown", "holds"),
    [
        ([[9, 9], [5, 6]], [[4, 4], [7, 7]], "7; adf 6", "yes"),
        ([[9, 9], [1, 2]], [[4, 4], [7, 7]], "5; adf 6", "open"),
        ([[4, 4], [1, 2]], [[4, 4], [7, 7]], "3; adf 6", "no"),
    ],
)
def test_a_mean_is_first_beyond_the_spread_of_the_seeds(limi, adf, shown, holds):
    claim = dataclasses.replace(FIRST, kind="first of means", ours=True)
    names = ("census-sex", "credit-sex")
    known = results(dict(zip(names, limi, strict=True)), dict(zip(names, adf, strict=True)))
    judged = judge(claim, known)
    assert (judged.with_trees, judged.holds) == (shown, f"{holds} (`trees`)")


def test_the_best_variant_has_the_best_mean_for_every_seed():
    claim = dataclasses.replace(FIRST, kind="best", over=("limi", "adf"), ours=True)
    for adf, shown, holds in (
        ([4, 4], "limi", "yes"),
        ([4, 9], "limi or adf", "open"),
        ([9, 9], "adf", "no"),
    ):
        judged = judge(claim, results({"census-sex": [5, 6]}, {"census-sex": adf}))
        assert (judged.with_trees, judged.holds) == (shown, f"{holds} (`trees`)")


def test_the_highest_of_several_is_a_bound_from_above():
    claim = dataclasses.replace(
        FIRST, kind="high", first="", over=("limi", "adf"), stated=0.0, bound=True, ours=True
    )
    for limi, holds in (([0, 0], "yes"), ([0, 3], "open"), ([2, 3], "no")):
        judged = judge(claim, results({"census-sex": limi}, {"census-sex": [0, 0]}))
        assert judged.holds == f"{holds} (`trees`)"


def test_the_mean_of_a_group_stands_beside_that_of_others():
    claim = dataclasses.replace(
        FIRST, kind="points", first="", group=("limi", "adf"), over=("adf",), ours=True
    )
    known = results({"census-sex": [0.9, 0.8]}, {"census-sex": [0.5, 0.5]})
    judged = judge(claim, known)
    assert (judged.with_trees, judged.holds) == (
        "+17.5 points (+15.0 points to +20.0 points)",
        "yes (`trees`)",
    )


def test_a_claim_may_be_of_some_tables_alone():
    claim = dataclasses.replace(FIRST, benchmarks=("credit",))
    limi = {"census-sex": [1, 1], "credit-sex": [5, 6]}
    judged = judge(claim, results(limi, {"census-sex": [2, 2], "credit-sex": [3, 4]}))
    assert judged.with_trees == "1 of 1"
    assert judged.paper == "2 of 2"


def test_a_mean_of_the_paper_s_table_is_a_bound():
    claim = next(one for one in list_claims() if one.measure == "auc_train" and one.kind == "mean")
    for value, holds in ((0.95, "yes (`trees`)"), (0.85, "no (`trees`)")):
        cells = {
            name: outcome(name, auc_train=value)
            for name in ("census/dnn/0", "census/dnn/1", "credit/dnn/0", "credit/dnn/1")
        }
        judged = judge(claim, [Results("fitness", "paper", cells)])
        assert (judged.paper, judged.holds) == ("0.920", holds)


def test_the_overview_leaves_spreads_out():
    (large,) = results({"census-sex": [15, 16]}, {"census-sex": [10, 10]})
    judged = judge(TIMES, [dataclasses.replace(large, scale="small")])
    assert judged.with_trees == "1.55 x (1.50 x to 1.60 x), `small`"
    assert judged.brief == ("not run", "1.55 x, `small`", "")


def test_a_method_run_with_one_generator_has_no_column_of_the_other():
    claim = dataclasses.replace(FIRST, first="guided", over=("limi",), ours=True)
    assert (
        judge(claim, results({"census-sex": [5]}, {"census-sex": [1]})).with_paper_generator == ""
    )


def test_several_seeds_of_a_smaller_scale_go_before_one_of_a_larger():
    (large,) = results({"census-sex": [30]}, {"census-sex": [10]})
    (small,) = results({"census-sex": [15, 16]}, {"census-sex": [10, 10]})
    small = dataclasses.replace(small, scale="small")
    judged = judge(TIMES, [large, small])
    assert judged.with_trees == "1.55 x (1.50 x to 1.60 x), `small`"
    assert judge(TIMES, [large]).with_trees == "3.00 x (one seed)"


def test_a_rival_without_a_number_is_not_left_out():
    claim = dataclasses.replace(FIRST, over=("adf", "sg"))
    known = results({"census-sex": [5, 6]}, {"census-sex": [1, 2]})
    assert judge(claim, known).with_trees == "not run"


def test_equal_rows_are_those_that_both_had_checked():
    curves = {
        "limi": {
            "rows": 1000,
            "curve": {"rows": [100, 1000], "queries": [1, 2], "findings": [10, 100]},
        },
        "adf": {"rows": 100, "curve": {"rows": [50, 100], "queries": [1, 2], "findings": [20, 40]}},
    }
    claim = dataclasses.replace(TIMES, equal_rows=True)
    known = results({"census-sex": [100, 100]}, {"census-sex": [40, 40]}, curves)
    judged = judge(claim, known)
    assert judged.with_trees == "2.50 x"
    assert judged.at_equal_rows == "0.25 x"


def test_the_paper_s_averages_follow_from_its_tables():
    """All of them but the two that the list of what is not reproduced names."""
    for claim in list_claims():
        numbers = paper_numbers(claim.study).get(claim.measure, {})
        benchmarks = [b for b in numbers if not b.startswith("mean")]
        is_size = claim.kind not in ("first", "first of means", "best", "mean", "low", "high")
        if claim.ours or claim.stated is None or not is_size or not benchmarks:
            continue
        benchmarks = [b for b in benchmarks if b.startswith(claim.benchmarks or ("",))]
        if claim.stated in (9.42, 8.71) or claim.note or claim.stated == 2.2:
            continue
        value = compute(claim, benchmarks, lambda b, v, n=numbers: n[b].get(v))
        assert value == pytest.approx(claim.stated, rel=0.03), claim.says


def test_every_claim_names_variants_of_its_study():
    for claim in list_claims():
        study = load(claim.study)
        for name in claim.named:
            assert study.variant(name).name == name
