"""What the paper claims, judged by the written rule."""

import dataclasses

import pytest

from lab import claims as _claim_numbers
from lab import verdicts as _sides
from lab.claims import compute_of_paper, list_claims
from lab.derived import complete
from lab.files import load
from lab.results import Results, read
from lab.verdicts import Side, classify, judge, take_side
from tests.lab.small import FIRST, ROOT, TIMES, outcome


@pytest.fixture(autouse=True)
def small_plan(monkeypatch):
    """What is judged here is the whole plan; test_sides.py has plans of which a part was run."""
    monkeypatch.setattr(_sides, "list_planned", lambda scene: scene.benchmarks)


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
    ("limi", "adf", "holds"),
    [
        ([[5, 6], [1, 2]], [[1, 4], [2, 3]], "yes"),
        ([[1, 5], [1, 2]], [[3, 4], [3, 4]], "open"),
        ([[1, 2], [1, 2]], [[3, 4], [3, 4]], "no"),
    ],
)
def test_no_more_is_asked_than_the_paper_has(limi, adf, holds, monkeypatch):
    names = ("census-sex", "credit-sex")
    known = results(dict(zip(names, limi, strict=True)), dict(zip(names, adf, strict=True)))
    paper = {"census-sex": {"limi": 2, "adf": 1}, "credit-sex": {"limi": 1, "adf": 2}}
    paper |= {"bank-age": {"limi": 1, "adf": 2}, "mean": {"limi": 4, "adf": 5}}
    monkeypatch.setattr(_claim_numbers, "paper_numbers", lambda study: {"findings": paper})
    judged = judge(FIRST, known)
    assert judged.paper == "1 of 3"
    assert judged.holds == f"{holds} (`trees`)"


def test_a_claim_that_the_paper_has_nowhere_must_hold_wherever_it_was_tried(monkeypatch):
    paper = {"census-sex": {"limi": 1, "adf": 2}, "credit-sex": {"limi": 1, "adf": 2}}
    monkeypatch.setattr(_claim_numbers, "paper_numbers", lambda study: {"findings": paper})
    mine = {"census-sex": [5, 6], "credit-sex": [5, 6]}
    known = results(mine, {"census-sex": [1, 2], "credit-sex": [5, 7]})
    assert judge(FIRST, known).holds == "on 1 of 2 (`trees`)"


def test_a_claim_that_was_tried_on_few_benchmarks_needs_no_more_of_them():
    known = results({"census-sex": [5, 6]}, {"census-sex": [1, 2]})
    judged = judge(FIRST, known)  # 7 of 7 in the paper
    assert judged.holds == "yes (`trees`)"


@pytest.mark.parametrize(
    ("limi", "holds"), [([9, 10], "yes"), ([7, 9], "open"), ([6, 7], "no"), ([12, 14], "yes")]
)
def test_a_fall_may_be_bounded(limi, holds):
    claim = dataclasses.replace(FIRST, kind="size", number="fall", stated=0.2, bound=True)
    known = results({"census-sex": limi}, {"census-sex": [10, 10]})
    assert judge(claim, known).holds == f"{holds} (`trees`)"


@pytest.mark.parametrize(
    ("limi", "holds"),
    [
        ([20, 25], "yes"),
        ([19, 25], "yes"),
        ([15, 24], "smaller"),  # a seed that reaches it decides nothing
        ([15, 19], "smaller"),
        ([9, 15], "no"),
        ([9, 20], "open"),
        ([5, 8], "no: the opposite"),
        ([30], "open: one seed"),
    ],
)
def test_a_size_holds_if_the_mean_reaches_it_and_no_seed_is_on_the_other_side(limi, holds):
    known = results({"census-sex": limi}, {"census-sex": [10] * len(limi)})
    assert judge(TIMES, known).holds == f"{holds} (`trees`)"


@pytest.mark.parametrize(
    ("limi", "holds"), [([8, 9], "yes"), ([7, 9], "open"), ([6, 7], "no"), ([9], "open: one seed")]
)
def test_a_bound_is_kept_by_every_seed(limi, holds):
    claim = dataclasses.replace(FIRST, kind="size", number="low", over=(), stated=8.0, bound=True)
    known = results({"census-sex": limi}, {"census-sex": [1] * len(limi)})
    assert judge(claim, known).holds == f"{holds} (`trees`)"


def test_changes_and_ratios_also_come_of_the_means():
    limi, adf = (
        {"census-sex": [5, 5], "credit-sex": [4, 4]},
        {"census-sex": [10, 10], "credit-sex": [2, 2]},
    )
    claim = dataclasses.replace(FIRST, kind="size", number="less")
    assert judge(claim, results(limi, adf)).with_trees == "+25.0 %; of the means -25.0 %"
    claim = dataclasses.replace(
        FIRST, kind="size", number="pairs", first="", over=(), pairs=(("limi", "adf"),)
    )
    assert judge(claim, results(limi, adf)).with_trees == "1.25 x; of the means 0.75 x"


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, "yes (the sign alone)"),
        ({"ours": True}, "yes"),
        ({"stated": 0.5}, "yes"),
        ({"kind": "size", "number": "low", "over": (), "bound": True, "stated": 3.0}, "yes"),
    ],
)
def test_where_the_paper_has_no_number_the_sign_alone_is_judged(changes, holds):
    claim = dataclasses.replace(FIRST, **{"kind": "size", "number": "difference", **changes})
    judged = judge(claim, results({"census-sex": [5, 5]}, {"census-sex": [4, 3]}))
    assert judged.holds == f"{holds} (`trees`)"
    assert classify(judged.holds) == "yes"


@pytest.mark.parametrize(
    ("ctgan", "holds"),
    [
        ([12, 14], "smaller at best"),  # an upper limit of 1.3 rules out 2
        ([15, 24], "smaller at best"),
        ([30, 40], "open: an upper limit"),
        ([5, 6], "no: the opposite"),
        ([9, 12], "no"),
        ([9, 30], "open"),
    ],
)
def test_an_upper_limit_below_the_paper_s_number_rules_it_out(ctgan, holds):
    (known,) = results({"census-sex": [1, 1]}, {"census-sex": [10, 10]})
    more = {
        f"census-sex/limi.ctgan/{seed}": outcome(f"census-sex/limi.ctgan/{seed}", findings=value)
        for seed, value in enumerate(ctgan)
    }
    both = dataclasses.replace(known, outcomes={**known.outcomes, **more})
    judged = judge(dataclasses.replace(TIMES, at_most=True), [both])
    assert judged.holds == holds
    assert judged.with_paper_generator.startswith("at most ")


@pytest.mark.parametrize(("ctgan", "holds"), [([15, 24], "open: an upper limit"), ([5, 6], "no")])
def test_an_upper_limit_that_is_a_count_shows_only_what_fails(ctgan, holds):
    (known,) = results({"census-sex": ctgan}, {"census-sex": [10, 10]})
    cells = {
        one.cell: one
        for cell in known.outcomes.values()
        for one in [dataclasses.replace(cell, cell=cell.cell.replace("limi", "limi.ctgan"))]
    }
    judged = judge(dataclasses.replace(FIRST, at_most=True), [Results("dnn", "paper", cells)])
    assert judged.holds == holds


def test_a_rise_from_zero_shows_in_the_means():
    limi, adf = (
        {"census-sex": [5, 5], "credit-sex": [7, 7]},
        {"census-sex": [10, 10], "credit-sex": [0, 0]},
    )
    claim = dataclasses.replace(FIRST, kind="size", number="less")
    assert judge(claim, results(limi, adf)).with_trees == "-25.0 %; of the means +20.0 %"
    limi["credit-sex"] = [7, 17]
    shown = judge(claim, results(limi, adf)).with_trees
    assert shown == "-25.0 %; of the means +70.0 % (+20.0 % to +120.0 %)"


HERE = {"device": "cpu", "machine": "here"}


def judge_speeds(ctgan, trees=HERE):
    """Of three variants: LIMI with either generator as it is given, and ADF as with `trees`."""
    speeds = {"limi": (15.0, 19.0), "adf": (10.0, 10.0), "limi.ctgan": (90.0, 90.0)}
    cells = {}
    for variant, line in speeds.items():
        for seed, value in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", findings=5, per_second=value)
            its = {"generator": "ctgan", **ctgan} if variant == "limi.ctgan" else trees
            cells[cell.cell] = dataclasses.replace(cell, given=its)
    claim = dataclasses.replace(TIMES, measure="per_second")
    return judge(claim, [Results("dnn", "paper", cells)])


@pytest.mark.parametrize(
    ("given", "shown", "holds"),
    [
        (HERE, "9.00 x", "yes"),
        ({**HERE, "device": "cuda"}, "not comparable", "smaller (`trees`)"),
        ({**HERE, "machine": "there"}, "not comparable", "smaller (`trees`)"),
        ({"machine": "here"}, "not comparable", "smaller (`trees`)"),  # it does not say where
        ({"device": "cpu"}, "not comparable", "smaller (`trees`)"),
    ],
)
def test_speeds_of_a_gpu_or_of_several_machines_are_not_compared(given, shown, holds):
    judged = judge_speeds(given)
    assert (judged.with_paper_generator, judged.holds) == (shown, holds)


def test_speeds_of_cells_that_name_no_machine_are_not_judged():
    judged = judge_speeds({}, {"device": "cpu"})
    assert (judged.with_trees, judged.holds) == ("not comparable", "not comparable")


@pytest.mark.parametrize(
    ("limi", "adf", "shown", "holds"),
    [
        ([[9, 9], [5, 6]], [[4, 4], [7, 7]], "7 (7 to 8); adf 6", "yes"),
        ([[9, 9], [1, 2]], [[4, 4], [7, 7]], "5 (5 to 6); adf 6", "open"),
        ([[4, 4], [1, 2]], [[4, 4], [7, 7]], "3 (2 to 3); adf 6", "no"),
    ],
)
def test_a_mean_is_first_beyond_the_spread_of_the_seeds(limi, adf, shown, holds):
    claim = dataclasses.replace(FIRST, kind="first of means", ours=True)
    names = ("census-sex", "credit-sex")
    known = results(dict(zip(names, limi, strict=True)), dict(zip(names, adf, strict=True)))
    judged = judge(claim, known)
    assert (judged.with_trees, judged.holds) == (shown, f"{holds} (`trees`)")
    assert judged.brief[1] == shown.partition(" (")[0] + "; adf 6"


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
        FIRST,
        kind="size",
        number="high",
        first="",
        over=("limi", "adf"),
        stated=0.0,
        bound=True,
        ours=True,
    )
    for limi, holds in (([0, 0], "yes"), ([0, 3], "open"), ([2, 3], "no")):
        judged = judge(claim, results({"census-sex": limi}, {"census-sex": [0, 0]}))
        assert judged.holds == f"{holds} (`trees`)"


def test_the_mean_of_a_group_stands_beside_that_of_others():
    claim = dataclasses.replace(
        FIRST,
        kind="size",
        number="points",
        first="",
        group=("limi", "adf"),
        over=("adf",),
        ours=True,
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
    claim = next(
        one for one in list_claims() if one.measure == "auc_train" and one.number == "mean"
    )
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
    assert judged.at_equal_rows == "0.25 x (`trees`)"


# What the paper prints and its tables do not give, by study and number.
OTHER_THAN_ITS_TABLES = {
    ("dnn", 9.42): "by no average that was tried, as the list of what is not reproduced says",
    ("dnn", 8.71): "by none either",
    ("rf", 2.5): "that of SG and ExpGA the other way round",
    ("rf", 2.2): "that of ExpGA and SG the other way round",
    ("repair-dnn", 0.02): "its table is rounded to hundredths",
    ("repair-dnn", 0.03): "its table is rounded to hundredths",
    ("repair-dnn", -0.01): "about one point; half of that",
    ("step", 2): "twice as many; a little more",
}


def test_the_paper_s_averages_follow_from_its_tables():
    follows = {}
    for claim in list_claims():
        if claim.ours or claim.stated is None or (value := compute_of_paper(claim)) is None:
            continue
        is_so = value == pytest.approx(claim.stated, rel=0.006, abs=1e-6)
        follows.setdefault((claim.study, claim.stated), []).append(is_so)
    others = {place for place, told in follows.items() if not all(told)}
    assert others == set(OTHER_THAN_ITS_TABLES)
    assert sum(map(len, follows.values())) == 30
    assert sum(sum(told) for told in follows.values()) == 22


def test_what_is_judged_is_of_every_benchmark_that_its_scale_plans():
    kept = ROOT / "lab" / "studies" / "results"
    for name in sorted({claim.study for claim in list_claims()}):
        study = load(name)
        scales = [scale for scale in ("paper", "small") if (kept / scale / f"{name}.json").exists()]
        known = {scale: complete(study, read(study, scale, kept)) for scale in scales}
        for claim in (one for one in list_claims() if one.study == name):
            sides = [take_side(claim, study, list(known.values()), g) for g in ("ctgan", "trees")]
            for scale in {side.scale for side in sides if side and side.scale}:
                planned = {b for b in study.scale(scale).benchmarks if claim.is_of(b)}
                shown = {one.benchmark for one in known[scale].outcomes.values()}
                assert planned <= shown, claim.says


def repaired(**by_variant):
    """Cells of a repair study: the natural rate of one table by variant and seed."""
    cells = {}
    for variant, line in by_variant.items():
        for seed, value in enumerate(line):
            name = f"census-sex/{variant.replace('_', '-')}/{seed}"
            cells[name] = outcome(name, if_n=value, if_m=0.1)
    return [Results("repair-dnn", "paper", cells)]


NATURAL_RATE = {"study": "repair-dnn", "measure": "if_n", "over": ("before",)}
LESS = dataclasses.replace(
    FIRST, kind="size", number="less", stated=0.5, control="control", **NATURAL_RATE
)


@pytest.mark.parametrize(
    ("limi", "control", "holds"),
    [
        ([0.4, 0.5], [0.9, 1.0], "yes"),
        ([0.7, 0.8], [0.9, 1.0], "smaller"),
        ([0.7, 0.9], [0.8, 1.0], "no (cannot be told from the control)"),
        ([0.4, 0.5], [0.2, 0.3], "no (the control goes further)"),
        ([1.5, 1.9], [1.4, 1.6], "no (cannot be told from the control)"),
        ([1.5, 1.9], [1.1, 1.3], "no: the opposite"),
        ([0.9, 1.1], [0.8, 1.0], "no"),
        ([0.4, 1.1], [0.9, 1.0], "no (cannot be told from the control)"),  # open without it
    ],
)
def test_a_change_must_differ_from_that_of_a_training_without_findings(limi, control, holds):
    judged = judge(LESS, repaired(before=[1.0, 1.0], limi=limi, control=control))
    assert judged.holds == f"{holds} (`trees`)"
    assert "; control " in judged.brief[1]


@pytest.mark.parametrize(
    ("limi", "control", "holds"),
    [
        ([[1, 1], [80, 70]], [[10, 9], [95, 99]], "yes"),
        ([[1, 1], [120, 80]], [[10, 9], [95, 99]], "yes by the mean of changes alone"),
        ([[1, 1], [80, 70]], [[10, 9], [60, 90]], "yes by the mean of changes alone"),
        ([[5, 5], [110, 80]], [[10, 9], [99, 99]], "smaller by the mean of changes alone"),
        ([[12, 14], [80, 70]], [[10, 9], [95, 99]], "no"),  # one seed rises by the mean of changes
        ([[1, 1], [125, 120]], [[10, 9], [140, 150]], "yes by the mean of changes alone"),
    ],
)
def test_a_change_that_the_means_do_not_show_holds_by_the_other_average_alone(limi, control, holds):
    claim = dataclasses.replace(LESS, stated=0.3)
    cells = {}
    for benchmark, *lines in zip(("census-sex", "credit-sex"), limi, control, strict=True):
        before = {"census-sex": [10, 10], "credit-sex": [100, 100]}[benchmark]
        for variant, line in zip(("limi", "control", "before"), (*lines, before), strict=True):
            for seed, value in enumerate(line):
                cell = outcome(f"{benchmark}/{variant}/{seed}", if_n=value, if_m=0.1)
                cells[cell.cell] = cell
    judged = judge(claim, [Results("repair-dnn", "paper", cells)])
    assert judged.holds == f"{holds} (`trees`)"


def test_a_factor_over_a_change_that_the_control_has_too_says_so():
    claim = dataclasses.replace(
        LESS, kind="size", number="ratio of less", stated=2.0, over=("before", "neuronfair")
    )
    for rival, told in (
        ([0.95, 0.9], "; neuronfair -7.5 %, which falls short of it"),
        ([0.8, 0.65], "; neuronfair -27.5 %, which cannot be told from it"),
        ([0.65, 0.6], ""),
    ):
        known = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], neuronfair=rival, control=[0.8, 0.7])
        assert judge(claim, known).brief[1].endswith(f" (control -25.0 %{told})")


def test_a_factor_is_that_of_the_mean_changes_and_open_over_what_the_control_changes_as_much():
    claim = dataclasses.replace(
        LESS,
        kind="size",
        number="ratio of less",
        stated=2.0,
        over=("before", "neuronfair"),
        control="",
    )
    line = {"before": [1.0, 1.0], "limi": [0.6, 0.6], "neuronfair": [0.99, 0.79]}
    judged = judge(claim, repaired(**line, control=[1.0, 1.0]))
    assert judged.with_trees == "3.64 x (1.90 x to 40.0 x)"  # the mean of both would be 21
    assert judged.holds == "open: one model before (`trees`)"
    beside = dataclasses.replace(claim, control="control")
    assert judge(beside, repaired(**line, control=[1.01, 1.02])).holds == "yes (`trees`)"
    assert judge(beside, repaired(**line, control=[0.9, 1.02])).holds == "open (`trees`)"


def test_no_change_has_no_sign():
    known = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.75, 1.25])
    assert "; control 0.0 %)" in judge(LESS, known).brief[1]


def test_a_change_of_several_methods_is_the_mean_of_theirs():
    claim = dataclasses.replace(
        LESS, kind="size", number="points", first="", group=("limi", "sg"), stated=-0.5, bound=True
    )
    known = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], sg=[0.8, 0.7], control=[1.0, 1.5])
    judged = judge(claim, known)
    assert judged.brief[1] == "-40.0 points (control +25.0 points)"
    assert judged.holds == "yes (`trees`)"


def test_a_control_that_was_not_run_is_told():
    judged = judge(LESS, repaired(before=[1.0, 1.0], limi=[0.4, 0.5]))
    assert judged.brief[1] == "-55.0 % (means -55.0 %; control not run)"
    assert judged.holds == "open: no control (`trees`)"


def test_one_seed_of_the_control_decides_nothing():
    judged = judge(LESS, repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.9]))
    assert judged.brief[1] == "-55.0 % (means -55.0 %; control -10.0 % (one seed))"
    assert judged.holds == "open: one seed of the control (`trees`)"


def test_the_control_shows_its_spread_where_there_is_room():
    judged = judge(LESS, repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.8, 1.0]))
    assert judged.brief[1] == "-55.0 % (means -55.0 %; control -10.0 %)"
    assert judged.with_trees == (
        "-55.0 % (-60.0 % to -50.0 %; control -10.0 % (-20.0 % to 0.0 %)); "
        "of the means -55.0 % (-60.0 % to -50.0 %; control -10.0 %)"
    )


def test_ratios_are_judged_by_both_averages_where_the_paper_s_is_not_known():
    claim = dataclasses.replace(
        FIRST,
        kind="size",
        number="pairs",
        first="",
        over=(),
        pairs=(("limi", "adf"),),
        stated=2.0,
        ours=True,
    )
    limi = {"census-sex": [30, 30], "credit-sex": [110, 110]}
    adf = {"census-sex": [10, 10], "credit-sex": [100, 100]}
    judged = judge(claim, results(limi, adf))
    assert judged.with_trees == "2.05 x; of the means 1.27 x"
    assert judged.holds == "yes by the mean of ratios, smaller by the means (`trees`)"


def test_the_sign_alone_is_said_of_either_average():
    claim = dataclasses.replace(
        FIRST, kind="size", number="pairs", first="", over=(), pairs=(("limi", "adf"),)
    )
    limi = {"census-sex": [30, 30], "credit-sex": [110, 110]}
    adf = {"census-sex": [10, 10], "credit-sex": [200, 200]}
    judged = judge(claim, results(limi, adf))
    told = "yes (the sign alone) by the mean of ratios, no: the opposite by the means"
    assert judged.holds == f"{told} (`trees`)"
    assert classify(judged.holds) == "by a mean alone"


MEAN_OF_TARGETS = dataclasses.replace(
    FIRST,
    study="fitness",
    kind="size",
    number="mean",
    measure="auc_train",
    first="",
    over=("dnn", "svm"),
    stated=0.9,
    bound=True,
    each=True,
)


def of_targets(measure, **by_variant):
    """One table's numbers by kind of target and seed."""
    cells = {
        f"census/{variant}/{seed}": outcome(f"census/{variant}/{seed}", **{measure: value})
        for variant, line in by_variant.items()
        for seed, value in enumerate(line)
    }
    return [Results("fitness", "paper", cells)]


@pytest.mark.parametrize(
    ("svm", "shown", "holds"),
    [
        ([0.85, 0.85], "0.850", "yes"),
        ([0.95, 0.95], "0.950", "yes"),
        ([0.7, 0.7], "0.700", "no"),
    ],
)
def test_a_mean_that_hides_its_parts_shows_them(svm, shown, holds):
    judged = judge(MEAN_OF_TARGETS, of_targets("auc_train", dnn=[1.0, 1.0], svm=svm))
    assert judged.holds == f"{holds} (`trees`)"
    assert judged.with_trees.endswith(f"dnn 1.000, svm {shown})")


@pytest.mark.parametrize("svm", [0.85, 0.95, 0.7])
def test_the_accuracy_of_targets_is_one_draw_of_each_whatever_the_seeds(svm):
    claim = dataclasses.replace(MEAN_OF_TARGETS, measure="accuracy")
    judged = judge(claim, of_targets("accuracy", dnn=[1.0] * 3, svm=[svm] * 3))
    assert judged.holds == "open: one target of each kind"
    assert classify(judged.holds) == "open"
    told = f"(dnn 100.0 %, svm {100 * svm:.1f} %; one target of each kind), no generator"
    assert judged.with_trees.endswith(told)


def test_what_no_generator_is_involved_in_says_so():
    claim = dataclasses.replace(FIRST, first="eidig", over=("adf",), ours=True)
    cells = {
        name: outcome(name, findings=value)
        for value, variant in ((5, "eidig"), (4, "adf"))
        for name in (f"census-sex/{variant}/0", f"census-sex/{variant}/1")
    }
    assert judge(claim, [Results("dnn", "paper", cells)]).with_trees == "1 of 1, no generator"


def test_findings_at_the_paper_s_limit_are_judged_and_all_of_them_shown():
    claim = next(one for one in list_claims() if one.study == "step" and one.also)
    assert claim.measure == "found_latents"
    curve = {"rows": [100, 200], "queries": [1, 2], "findings": [60, 120]}
    cells = {}
    for seed in (0, 1):
        plain, moved = (f"census-sex/{name}/{seed}" for name in ("step-0", "step-0.3"))
        given = {"settings": {"n_latents": 100}}
        for name, n, rows in ((plain, 50, 100), (moved, 120, 200)):
            cell = outcome(name, findings=n, rows=rows, curve=curve)
            cells[name] = dataclasses.replace(cell, given=given)
    judged = judge(claim, [Results("step", "paper", cells)])
    assert judged.brief[1] == "1.20 x (without the limit 2.40 x)"
    assert judged.holds == "smaller (`trees`)"
    assert judged.paper == "2.00 x (its table: 2.04 x)"


def test_groups_stand_in_the_order_that_is_claimed():
    claim = dataclasses.replace(
        FIRST, kind="order", first="", over=(), order=(("limi",), ("adf",)), ours=True
    )
    for adf, holds in (([1, 2], "yes"), ([1, 9], "open"), ([8, 9], "no")):
        judged = judge(claim, results({"census-sex": [5, 6]}, {"census-sex": adf}))
        assert judged.holds == f"{holds} (`trees`)"
        assert judged.with_trees.startswith("6, ")


def test_a_method_out_of_order_is_named():
    order = (("limi",), ("adf", "eidig"), ("sg", "expga"))
    claim = dataclasses.replace(FIRST, kind="order", first="", over=(), order=order, ours=True)
    found = {"limi": 9, "adf": 7, "eidig": 3, "sg": 4, "expga": 1}
    cells = {
        name: outcome(name, findings=value)
        for variant, value in found.items()
        for name in (f"census-sex/{variant}/0", f"census-sex/{variant}/1")
    }
    judged = judge(claim, [Results("dnn", "paper", cells)])
    assert judged.with_trees == "9, 5, 2 (sg 4 is ahead of eidig 3)"
    assert judged.holds == "by the means of groups alone (`trees`)"


def test_an_order_is_counted_benchmark_by_benchmark_and_names_all_that_are_passed():
    order = (("limi",), ("adf", "eidig", "neuronfair"), ("sg", "expga"))
    claim = dataclasses.replace(FIRST, kind="order", first="", over=(), order=order, ours=True)
    found = {"limi": (99, 99), "adf": (3, 7), "eidig": (90, 90), "neuronfair": (4, 8)}
    found |= {"sg": (20, 5), "expga": (1, 1)}
    cells = {
        name: outcome(name, findings=value)
        for variant, line in found.items()
        for benchmark, value in zip(("census-sex", "credit-sex"), line, strict=True)
        for name in (f"{benchmark}/{variant}/0", f"{benchmark}/{variant}/1")
    }
    judged = judge(claim, [Results("dnn", "paper", cells)])
    passed = "sg 12 is ahead of neuronfair 6, adf 5"
    assert judged.with_trees == f"99, 34, 7 (benchmark by benchmark on 1 of 2; {passed})"
    assert judged.brief[1] == "99, 34, 7"
    assert judged.holds == "by the means of groups alone (`trees`)"
    one_seed = {name: cell for name, cell in cells.items() if cell.seed == 0}
    alone = judge(claim, [Results("dnn", "paper", one_seed)])
    assert alone.with_trees == f"99, 34, 7 (one seed) ({passed})"


def test_the_steadiest_has_the_smallest_spread_over_benchmarks():
    claim = dataclasses.replace(FIRST, kind="first of means", number="steadiness", ours=True)
    limi = {"census-sex": [2, 2], "credit-sex": [6, 6]}
    for adf, holds in (([1, 1], "no"), ([9, 9], "yes")):
        known = results(limi, {"census-sex": [1, 1], "credit-sex": adf})
        judged = judge(claim, known)
        assert (judged.with_trees, judged.holds) == (
            f"3.0 x; adf {adf[0]:.1f} x",
            f"{holds} (`trees`)",
        )


def test_one_seed_stands_behind_the_side_that_has_one():
    claim = dataclasses.replace(FIRST, kind="first of means", ours=True)
    benchmarks = ("census-sex", "credit-sex")
    for limi, adf, shown in (
        ([9], [4, 6], "9 (one seed); adf 5 (4 to 6)"),
        ([8, 10], [5], "9 (8 to 10); adf 5 (one seed)"),
    ):
        known = results(dict.fromkeys(benchmarks, limi), dict.fromkeys(benchmarks, adf))
        judged = judge(claim, known)
        assert judged.with_trees == shown
        assert judged.holds == "open: one seed (`trees`)"


def test_a_method_that_finds_nothing_on_a_benchmark_of_the_paper_has_no_steadiness(monkeypatch):
    claim = dataclasses.replace(FIRST, kind="first of means", number="steadiness", says_so="")
    table = {"census-sex": {"limi": 4.0, "adf": 0.0}, "credit-sex": {"limi": 2.0, "adf": 3.0}}
    monkeypatch.setattr(_claim_numbers, "list_published", lambda _: table)
    assert judge(claim, []).paper == "2.0 x; adf none on some"


def test_a_tie_in_the_paper_s_own_table_is_nobody_s(monkeypatch):
    claim = dataclasses.replace(FIRST, kind="best", first="limi", over=("limi", "adf"), says_so="")
    for adf, shown in ((3.0, "a tie"), (2.0, "limi")):
        table = {"census-sex": {"limi": 3.0, "adf": adf}}
        monkeypatch.setattr(_claim_numbers, "list_published", lambda _, table=table: table)
        assert judge(claim, []).paper == shown


def test_the_table_with_the_lowest_number_is_the_same_for_every_seed():
    claim = dataclasses.replace(FIRST, kind="best", first="", over=("limi",), table="credit-sex")
    claim = dataclasses.replace(claim, ours=True)
    for credit, shown, holds in (
        ([1, 2], "`credit-sex`", "yes"),
        ([1, 9], "`credit-sex` or `census-sex`", "open"),
        ([8, 9], "`census-sex`", "no"),
    ):
        limi = {"census-sex": [5, 5], "credit-sex": credit}
        judged = judge(claim, results(limi, {name: [1, 1] for name in limi}))
        assert (judged.with_trees, judged.holds) == (shown, f"{holds} (`trees`)")


def test_a_range_is_a_bound_from_above():
    claim = dataclasses.replace(
        FIRST, kind="size", number="range", first="", over=("limi", "adf"), stated=2.0, ours=True
    )
    for adf, holds in (([3, 3], "yes"), ([3, 2], "open"), ([1, 2], "no")):
        judged = judge(claim, results({"census-sex": [5, 5]}, {"census-sex": adf}))
        assert judged.holds == f"{holds} (`trees`)"


def test_a_difference_has_the_sign_and_the_form_of_its_measure():
    claim = dataclasses.replace(FIRST, kind="size", number="difference", ours=True)
    known = results({"census-sex": [5000, 7000]}, {"census-sex": [1000, 1000]})
    judged = judge(claim, known)
    assert (judged.with_trees, judged.holds) == ("+5,000 (+4,000 to +6,000)", "yes (`trees`)")


def test_numbers_of_an_earlier_program_are_marked():
    (known,) = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.9, 1.0])
    assert "‡" not in judge(LESS, [known]).brief[1]
    old = {
        name: dataclasses.replace(cell, measures={"if_n": cell.measures["if_n"]})
        for name, cell in known.outcomes.items()
    }
    marked = judge(LESS, [dataclasses.replace(known, outcomes=old)])
    assert marked.brief[1] == "-55.0 % (means -55.0 %; control -5.0 %) ‡"


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ("yes", "yes"),
        ("yes (`trees`)", "yes"),
        ("smaller (`trees`)", "smaller"),
        ("on 1 of 2 (`trees`)", "on some benchmarks"),
        ("by the mean alone", "by a mean alone"),
        ("smaller by the mean of changes alone (`trees`)", "by a mean alone"),
        ("by the means of groups alone (`trees`)", "by a mean alone"),
        ("yes by the mean of ratios, smaller by the means", "by a mean alone"),
        ("no by the mean of ratios, no: the opposite by the means", "no"),
        ("open by the mean of ratios, no by the means", "open"),
        ("open by the mean of ratios, smaller by the means", "by a mean alone"),
        ("open", "open"),
        ("open: one seed (`trees`)", "open"),
        ("open: no control", "open"),
        ("no (`trees`)", "no"),
        ("no (cannot be told from the control)", "no"),
        ("no (the control goes further) (`trees`)", "no"),
        ("yes (the sign alone) (`trees`)", "yes"),
        ("smaller at best", "smaller at best"),
        ("open: an upper limit", "open"),
        ("no: the opposite", "no: the opposite"),
        ("no: the opposite (`trees`)", "no: the opposite"),
        ("not computable", "not judged"),
        ("not run", "not judged"),
        ("not comparable", "not judged"),
    ],
)
def test_every_word_under_holds_is_counted_as_one_verdict(told, verdict):
    assert classify(told) == verdict


FACTOR = dataclasses.replace(
    LESS, kind="size", number="ratio of less", stated=2.0, over=("before", "neuronfair"), control=""
)


@pytest.mark.parametrize(
    ("limi", "shown", "holds"),
    [
        ([0.6, 0.6], "falls with LIMI's alone", "open: one model before"),
        (
            [0.6, 1.6],
            "does not fall with LIMI's to falls with LIMI's alone",
            "no",
        ),  # the mean rises
        ([1.4, 1.6], "does not fall with LIMI's", "no"),
        ([0.4, 1.1], "does not fall with LIMI's to falls with LIMI's alone", "open"),
        ([0.6], "falls with LIMI's alone (one seed)", "open: one seed"),
        ([1.6], "does not fall with LIMI's (one seed)", "open: one seed"),
    ],
)
def test_a_factor_over_what_does_not_fall_is_judged_seed_by_seed(limi, shown, holds):
    n = len(limi)
    known = repaired(before=[1.0] * n, limi=limi, neuronfair=[1.2] * n)
    judged = judge(FACTOR, known)
    assert judged.holds == f"{holds} (`trees`)"
    assert judged.with_trees.endswith(shown)


def test_a_factor_over_a_rival_that_falls_less_than_the_control_is_open():
    beside = dataclasses.replace(FACTOR, control="control")
    known = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], neuronfair=[0.95, 0.9], control=[0.8, 0.7])
    judged = judge(beside, known)
    assert judged.brief[1].endswith("(control -25.0 %; neuronfair -7.5 %, which falls short of it)")
    assert judged.holds == "open (`trees`)"


def test_nothing_is_more_than_none():
    claim = dataclasses.replace(
        FIRST, kind="size", number="pairs", first="", over=(), pairs=(("limi", "adf"),)
    )
    limi = {"census-sex": [5, 5], "credit-sex": [4, 4]}
    judged = judge(claim, results(limi, {"census-sex": [1, 1], "credit-sex": [0, 0]}))
    assert (judged.with_trees, judged.holds) == ("not computable", "not computable")
    times = judge(TIMES, results({"census-sex": [5, 6]}, {"census-sex": [0, 0]}))
    assert (times.with_trees, times.holds) == ("not computable", "not computable")


@pytest.mark.parametrize("before", [[0.9, 0.9], [0.9, 0.8]])
def test_the_network_before_all_training_is_one_seed(before):
    """It stands beside every seed, whatever was read off it there."""
    claim = dataclasses.replace(
        FIRST, study="repair-dnn", measure="accuracy", first="before", over=("limi",), ours=True
    )
    cells = {}
    for variant, line in (("before", before), ("limi", [0.5, 0.6])):
        for seed, value in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", accuracy=value)
            cells[cell.cell] = cell
    judged = judge(claim, [Results("repair-dnn", "paper", cells)])
    assert judged.holds == "open: one model before (`trees`)"
    assert judged.with_trees.startswith("1 of 1 (one model before)")


def test_speeds_that_cannot_be_compared_give_way_to_those_of_a_smaller_scale():
    def run(scale, line, given):
        cells = {}
        for variant, speed in line.items():
            for seed in (0, 1):
                cell = outcome(f"census-sex/{variant}/{seed}", per_second=speed)
                cells[cell.cell] = dataclasses.replace(cell, given=given[variant])
        return Results("dnn", scale, cells)

    claim = dataclasses.replace(TIMES, measure="per_second")
    there = {**HERE, "machine": "there"}
    large = run("paper", {"limi": 90.0, "adf": 10.0}, {"limi": there, "adf": HERE})
    small = run("small", {"limi": 30.0, "adf": 10.0}, {"limi": HERE, "adf": HERE})
    assert judge(claim, [large]).with_trees == "not comparable"
    judged = judge(claim, [large, small])
    assert (judged.with_trees, judged.holds) == ("3.00 x, `small`", "yes (`trees`)")


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "first of means"},
        {"kind": "best", "over": ("limi", "adf")},
        {"kind": "best", "first": "", "over": ("adf",), "table": "census-sex"},
        {"kind": "order", "first": "", "over": (), "order": (("limi",), ("adf",))},
    ],
)
def test_one_seed_decides_no_claim_of_who_is_first(changes):
    claim = dataclasses.replace(FIRST, ours=True, **changes)
    limi = {"census-sex": [5], "credit-sex": [9]}
    judged = judge(claim, results(limi, {"census-sex": [1], "credit-sex": [2]}))
    assert judged.holds.removesuffix(" (`trees`)") == "open: one seed"
    assert judged.with_trees.removesuffix(", no generator").endswith("(one seed)")


def test_an_order_within_groups_that_one_seed_breaks_is_of_the_means_alone():
    order = (("limi", "adf"), ("sg", "expga"))
    claim = dataclasses.replace(FIRST, kind="order", first="", over=(), order=order, ours=True)
    found = {"limi": (9, 9), "adf": (7, 4), "sg": (5, 5), "expga": (1, 1)}
    cells = {}
    for variant, line in found.items():
        for seed, value in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", findings=value)
            cells[cell.cell] = cell
    judged = judge(claim, [Results("dnn", "paper", cells)])
    assert judged.holds == "by the means of groups alone (`trees`)"


def test_benchmarks_of_one_seed_are_open_and_the_others_decide():
    names = ("census-sex", "census-race", "credit-sex", "bank-age")
    mine = dict(zip(names, ([1, 2], [1, 2], [1, 2], [5]), strict=True))
    known = results(mine, {**{name: [3, 4] for name in names[:3]}, "bank-age": [1]})
    judged = judge(FIRST, known)
    assert (judged.with_trees, judged.holds) == ("1 of 4 (one seed on 1)", "no (`trees`)")
    mine = dict(zip(names, ([5, 6], [5, 6], [5, 6], [5]), strict=True))
    judged = judge(FIRST, results(mine, {**{name: [3, 4] for name in names[:3]}, "bank-age": [1]}))
    assert (judged.with_trees, judged.holds) == ("4 of 4 (one seed on 1)", "on 3 of 4 (`trees`)")
    mine = dict(zip(names, ([2, 5], [2, 5], [2, 5], [5]), strict=True))
    judged = judge(FIRST, results(mine, {**{name: [3, 4] for name in names[:3]}, "bank-age": [1]}))
    assert judged.with_trees == "1 of 4, 3 open (one seed on 1)"
    assert (
        judged.holds == "open: one seed (`trees`)"
    )  # with the fourth it could hold, as in the paper


@pytest.mark.parametrize(
    ("limi", "adf", "shown", "holds"),
    [
        ([1], [3, 4], "0 of 2 (one seed)", "no"),
        ([3, 4], [9], "0 of 2 (one seed)", "no"),
        ([5], [1, 9], "0 of 2, 2 open (one seed)", "open"),
        ([5], [1, 2, 3], "2 of 2 (one seed)", "open: one seed"),
        ([5, 6, 7], [1], "2 of 2 (one seed)", "open: one seed"),
    ],
)
def test_one_seed_is_told_whatever_it_says(limi, adf, shown, holds):
    names = ("census-sex", "credit-sex")
    judged = judge(FIRST, results(dict.fromkeys(names, limi), dict.fromkeys(names, adf)))
    assert (judged.with_trees, judged.holds) == (shown, f"{holds} (`trees`)")


def test_what_is_open_for_one_seed_is_a_benchmark_that_was_held():
    """Lost with one seed, it is lost; what is open stands beside the one model before."""
    claim = dataclasses.replace(
        FIRST, study="repair-dnn", measure="accuracy", over=("before",), ours=True
    )
    lines = {"census-sex": ([0.9, 0.9], 0.8), "credit-sex": ([0.9, 0.9], 0.8)}
    lines |= {"bank-age": ([0.7], 0.8)}
    cells = {}
    for benchmark, (mine, before) in lines.items():
        for seed, value in enumerate(mine):
            for variant, accuracy in (("limi", value), ("before", before)):
                cell = outcome(f"{benchmark}/{variant}/{seed}", accuracy=accuracy, if_m=0.1)
                cells[cell.cell] = cell
    known = Results("repair-dnn", "paper", cells)
    paper = {name: {"limi": 2.0, "before": 1.0} for name in ("census-sex", "credit-sex")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_claim_numbers, "paper_numbers", lambda study: {"accuracy": paper})
        judged = judge(dataclasses.replace(claim, ours=False), [known])
    assert judged.with_trees == "2 of 3 (one model before on 2; one seed on 1)"
    assert judged.holds == "open: one model before (`trees`)"


def test_a_scale_with_a_benchmark_of_one_seed_gives_way_to_a_smaller_one():
    (large,) = results(
        {"census-sex": [5, 6], "credit-sex": [5]}, {"census-sex": [1], "credit-sex": [1]}
    )
    (small,) = results(
        {"census-sex": [1, 2], "credit-sex": [1, 2]}, {"census-sex": [3, 4], "credit-sex": [3, 4]}
    )
    judged = judge(FIRST, [large, dataclasses.replace(small, scale="small")])
    assert (judged.with_trees, judged.holds) == ("0 of 2, `small`", "no (`trees`)")


def test_equal_numbers_are_nobody_s_first():
    for over in (("limi", "adf"), ("adf", "limi")):
        claim = dataclasses.replace(FIRST, kind="best", over=over, ours=True)
        judged = judge(claim, results({"census-sex": [5, 6]}, {"census-sex": [5, 1]}))
        assert (judged.with_trees, judged.holds) == ("a tie or limi", "open (`trees`)")
    table = {"kind": "best", "first": "", "over": ("adf",), "table": "census-sex", "ours": True}
    both = {"census-sex": [5, 5], "credit-sex": [5, 5]}
    judged = judge(dataclasses.replace(FIRST, **table), results(both, both))
    assert (judged.with_trees, judged.holds) == ("a tie, no generator", "no")


def test_a_bound_is_open_with_one_seed_whether_or_not_it_keeps_it():
    claim = dataclasses.replace(FIRST, kind="size", number="low", over=(), stated=8.0, bound=True)
    for value in (6, 9):
        judged = judge(claim, results({"census-sex": [value]}, {"census-sex": [1]}))
        assert judged.holds == "open: one seed (`trees`)"


def test_a_mark_is_of_cells_that_the_claim_is_about():
    (known,) = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.8, 1.0])
    other = {
        name: outcome(name, if_n=0.5) for name in ("credit-sex/limi/0", "credit-sex/limi/1")
    }  # they lack what tells today's program
    both = dataclasses.replace(known, outcomes={**known.outcomes, **other})
    claim = dataclasses.replace(LESS, benchmarks=("census",))
    assert "‡" not in judge(claim, [both]).with_trees


def test_seeds_without_one_in_common_have_no_number():
    cells = {}
    for variant, seeds in (("limi", (0, 1)), ("adf", (2, 3))):
        for seed in seeds:
            cell = outcome(f"census-sex/{variant}/{seed}", findings=5)
            cells[cell.cell] = cell
    judged = judge(TIMES, [Results("dnn", "paper", cells)])
    assert (judged.with_trees, judged.holds) == ("not computable", "not computable")


def test_what_is_added_stands_with_and_without_spread():
    side = Side("-55.0 %", "yes", spread="-60 to -50", means="; of the means -40 %")
    side = side.add("control -5.0 %", "-9 to 0").add("adf -7.0 %").mark(" ‡")
    told = "-55.0 % (-60 to -50; control -5.0 % (-9 to 0); adf -7.0 %); of the means -40 % ‡"
    assert str(side) == told
    assert side.brief == "-55.0 % (control -5.0 %; adf -7.0 %) ‡"
    change = dataclasses.replace(side, means_in_brief="means -40 %")
    assert change.brief == "-55.0 % (means -40 %; control -5.0 %; adf -7.0 %) ‡"
    beside = dataclasses.replace(side, means="", rival=("sg -9.0 %", "-11 to -7"))
    assert str(beside).endswith("; adf -7.0 %); sg -9.0 % (-11 to -7) ‡")
    assert beside.brief.endswith("; adf -7.0 %); sg -9.0 % ‡")


def test_the_mark_of_an_earlier_program_stands_beside_the_spread_too():
    (known,) = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.8, 1.0])
    old = {
        name: dataclasses.replace(cell, measures={"if_n": cell.measures["if_n"]})
        for name, cell in known.outcomes.items()
    }
    judged = judge(LESS, [dataclasses.replace(known, outcomes=old)])
    assert judged.with_trees.count("‡") == judged.brief[1].count("‡") == 1


def speeds_at(scale, limi, adf, is_one_machine=True):
    cells = {}
    for variant, line in (("limi", limi), ("adf", adf)):
        for seed, speed in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", per_second=speed)
            given = HERE if is_one_machine or variant == "adf" else {**HERE, "machine": "there"}
            cells[cell.cell] = dataclasses.replace(cell, given=given)
    return Results("dnn", scale, cells)


@pytest.mark.parametrize(
    ("large", "small", "shown"),
    [
        (([90.0], [10.0]), ([30.0, 30.0], [10.0, 10.0]), "3.00 x, `small`"),
        (([90.0] * 2, [10.0] * 2, False), ([30.0], [10.0]), "3.00 x (one seed), `small`"),
        (([90.0], [10.0]), ([30.0], [10.0], False), "9.00 x (one seed)"),
        (([90.0], [10.0]), ([30.0], [10.0]), "9.00 x (one seed)"),
    ],
)
def test_a_scale_that_decides_nothing_gives_way_to_one_that_tells_more(large, small, shown):
    known = [speeds_at("paper", *large), speeds_at("small", *small)]
    assert judge(dataclasses.replace(TIMES, measure="per_second"), known).with_trees == shown


def test_a_scale_without_the_control_gives_way_to_one_that_has_it():
    (large,) = repaired(before=[1.0, 1.0], limi=[0.2, 0.3])
    (small,) = repaired(before=[1.0, 1.0], limi=[0.4, 0.5], control=[0.9, 1.0])
    judged = judge(LESS, [large, dataclasses.replace(small, scale="small")])
    assert judged.brief[1] == "-55.0 % (means -55.0 %; control -5.0 %), `small`"
    assert judged.holds == "yes (`trees`)"


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"bound": True, "stated": 0.5}, "yes"),  # a bound is not held against the control
        ({"bound": True, "stated": 0.9}, "no"),
        ({"stated": 0.9}, "open: no control"),
    ],
)
def test_a_bound_needs_no_control(changes, holds):
    claim = dataclasses.replace(LESS, **changes)
    judged = judge(claim, repaired(before=[1.0, 1.0], limi=[0.4, 0.4]))
    assert judged.holds == f"{holds} (`trees`)"
    assert judged.brief[1].endswith("control not run)")


def test_what_does_not_hold_needs_no_control():
    judged = judge(LESS, repaired(before=[1.0, 1.0], limi=[0.9, 1.1]))
    assert judged.holds == "no (`trees`)"


def test_a_factor_beside_one_seed_of_the_control_is_open():
    claim = dataclasses.replace(FACTOR, control="control")
    line = {"before": [1.0, 1.0], "limi": [0.2, 0.3], "neuronfair": [0.6, 0.7]}
    judged = judge(claim, repaired(**line, control=[1.0]))
    assert judged.holds == "open: one seed of the control (`trees`)"


@pytest.mark.parametrize("limi", [[0.8, 1.1], [0.9, 1.3]])  # the factor of both is 0.1, or none
def test_a_factor_that_one_seed_does_not_have_is_no_opposite(limi):
    known = repaired(before=[1.0, 1.0], limi=limi, neuronfair=[0.5, 0.5])
    assert judge(FACTOR, known).holds == "no (`trees`)"


def test_several_seeds_of_a_factor_go_before_an_infinite_one():
    (large,) = repaired(before=[1.0], limi=[0.6], neuronfair=[1.2])
    (small,) = repaired(before=[1.0, 1.0], limi=[0.4, 0.4], neuronfair=[0.8, 0.8])
    judged = judge(FACTOR, [large, dataclasses.replace(small, scale="small")])
    assert (judged.with_trees, judged.holds) == (
        "3.00 x, `small`",
        "open: one model before (`trees`)",
    )


def test_pairs_at_equal_rows_have_no_ratio_over_nothing():
    claim = dataclasses.replace(
        FIRST,
        kind="size",
        number="pairs",
        first="",
        over=(),
        pairs=(("limi", "adf"),),
        equal_rows=True,
    )

    def known(adf):
        curves = {"limi": {"rows": 100, "curve": curve(80)}, "adf": {"rows": 50, "curve": adf}}
        return results({"census-sex": [80, 80]}, {"census-sex": [9, 9]}, curves)

    def curve(found, rows=100):
        return {"rows": [rows], "queries": [1], "findings": [found]}

    assert judge(claim, known(curve(20, 50))).at_equal_rows == "2.00 x (`trees`)"
    assert judge(claim, known(curve(0, 50))).at_equal_rows == "not computable"


def test_a_seed_over_nothing_takes_no_part_in_either_average():
    claim = dataclasses.replace(
        FIRST, kind="size", number="pairs", first="", over=(), pairs=(("limi", "adf"),)
    )
    limi = {"census-sex": [40, 900], "credit-sex": [40, 900]}
    adf = {"census-sex": [10, 0], "credit-sex": [20, 10]}
    judged = judge(claim, results(limi, adf))
    assert judged.with_trees == "3.00 x (one seed); of the means 2.67 x"


def test_a_rival_that_is_one_network_is_one_draw():
    claim = dataclasses.replace(
        FIRST, study="repair-dnn", measure="accuracy", over=("before",), ours=True
    )
    cells = {}
    for variant, line in (("limi", [0.9, 0.95]), ("before", [0.8, 0.8])):
        for seed, value in enumerate(line):
            cell = outcome(f"census-sex/{variant}/{seed}", accuracy=value, if_m=0.1)
            cells[cell.cell] = cell
    judged = judge(claim, [Results("repair-dnn", "paper", cells)])
    assert judged.with_trees == "1 of 1 (one model before)"
    assert judged.holds == "open: one model before (`trees`)"


def test_equal_rows_with_trees_stand_where_those_with_ctgan_have_no_curve():
    claim = dataclasses.replace(TIMES, equal_rows=True)
    line = {"rows": [100], "queries": [1], "findings": [80]}
    curves = {name: {"rows": 100, "curve": line} for name in ("limi", "adf")}
    (known,) = results({"census-sex": [80, 80]}, {"census-sex": [80, 80]}, curves)
    with_ctgan = {
        name: outcome(name, findings=70)
        for name in ("census-sex/limi.ctgan/0", "census-sex/limi.ctgan/1")
    }
    both = dataclasses.replace(known, outcomes={**known.outcomes, **with_ctgan})
    judged = judge(claim, [both])
    assert judged.with_paper_generator == "0.88 x"
    assert judged.at_equal_rows == "1.00 x (`trees`)"
