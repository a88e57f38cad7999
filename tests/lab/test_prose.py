"""Numbers in prose come from the cells."""

import dataclasses

import pytest

from lab.files import load
from lab.prose import check_text, fill_in
from lab.results import Results
from tests.lab.small import outcome, tiny


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
        ("{where findings limi > natural}", "`census-sex`, `credit-sex`"),
        ("{where findings natural > limi}", "none of them"),
        ("{held findings limi > natural}", "2 of 2"),
        ("{lost findings natural > limi}", "2 of 2"),
        ("{open findings natural > limi}", "0 of 2"),
        ("{where held findings natural < limi}", "`census-sex`, `credit-sex`"),
        ("{stand findings limi natural}", "higher on both benchmarks"),
        ("{best findings limi,natural}", "limi on 2 of 2"),
        ("{best findings limi,natural mean}", "limi"),
        ("{span findings limi census-sex}", "90,000 to 110,000"),
        ("{span findings limi credit-sex}", "300,000"),
        ("{least findings limi}", "90,000"),
        ("{most findings natural}", "220,000"),
        ("{most paper_rows limi}", "none"),
        ("{runs atn limi census-sex}", "2 of 2"),
        ("{runs atn limi bank-age}", "(not run)"),
        ("{taken atn}", "10 of 10"),
        ("{taken likeness limi,natural}", "0 of 8"),
        ("{taken curve adf}", "0 of 2"),
        ("{taken nothing}", "(not run)"),
        ("{paper findings limi credit-sex}", "164,569"),
        ("{paper findings limi mean}", "149,711"),
        ("{paper findings natural mean}", "(not run)"),
        ("{n benchmarks}", "2"),
        ("{n seeds limi}", "2"),
        ("{n seeds limi bank-age}", "(not run)"),
        ("{n seeds adf census-sex}", "2"),
        ("{clock limi}", "0 of 2"),
        ("{clock natural}", "(not run)"),
        ("{small: atn limi census-sex}", "0.820"),
        ("{atn limi bank-age}", "(not run)"),
        ("{nothing limi mean}", "(not run)"),
        ("{held findings limi > real}", "(not run)"),
    ],
)
def test_a_number_is_filled_in(text, shown):
    assert fill_in(f"a {text} b", load("dnn"), [tiny()]) == f"a {shown} b"


def test_variants_are_compared_at_the_seeds_that_both_have():
    known = tiny()
    del known.outcomes["census-sex/natural/1"]
    text = "{findings limi:natural census-sex}, {findings limi census-sex}"
    assert fill_in(text, load("dnn"), [known]) == "+12 %, 100,000"


@pytest.mark.parametrize(
    ("support", "holds"),
    [
        ("findings limi > natural mean", True),
        ("findings natural > limi mean", False),
        ("findings natural < limi count 2", True),
        ("findings natural < limi count 3", False),
        ("findings limi > natural held 2", True),
        ("findings limi > natural held 3", False),
        ("small: findings limi > natural mean", True),
        ("findings limi natural", False),
        ("findings limi > natural", False),
        ("findings limi > natural nonsense", False),
        ("findings limi > natural count many", False),
        ("findings limi > natural count at 2", False),
        ("nonsense", False),
        # Of several rivals it must hold against every one.
        ("atn limi < natural,real mean", False),
        # By means: at least, at most, on all, and on those named.
        ("findings natural > limi count at most 0", True),
        ("findings limi > natural count at most 1", False),
        ("findings limi > natural count all", True),
        ("atn natural > limi count all", False),
        ("atn natural > limi on census-sex", True),
        ("atn natural > limi on census-sex,credit-sex", False),
        ("findings adf > limi on census-sex", True),
        # By the rule.
        ("findings limi > natural held all", True),
        ("findings limi > natural held at most 1", False),
        ("findings natural > limi held at most 0", True),
        ("findings natural > limi lost 2", True),
        ("findings natural > limi lost at most 1", False),
        ("findings natural < limi lost at most 0", True),
        ("findings natural < limi held on credit-sex", True),
        ("findings adf > limi held on census-sex", True),
        ("findings adf > limi,natural held on census-sex", True),
        ("findings limi > adf,natural held on census-sex", False),
        ("atn natural > limi open on credit-sex", True),
        ("atn natural > limi open all", False),
        ("atn natural > limi open at most 1", True),
        ("atn limi < natural mean on census-sex", True),
        ("findings adf > limi mean on census-sex", True),
        ("findings limi > 150000 mean on census-sex,credit-sex", True),
        ("findings limi > 150000 mean on census-sex", False),
        ("findings limi > natural mean on census-sex,credit-sex", True),
        ("findings limi > natural mean census-sex", False),
        ("findings limi > natural mean census-sex credit-sex", False),
        # Numbers, the paper's numbers and ratios.
        ("findings limi > 95000 mean", True),
        ("findings limi > 95000 open on census-sex", True),
        ("findings limi > 95000 held on credit-sex", True),
        ("findings limi < 95000 lost on credit-sex", True),
        ("findings limi < 95000 held on credit-sex", False),
        ("findings limi > paper:limi count all", True),
        ("findings limi > paper:limi held all", True),
        ("findings natural > paper:limi count all", False),
        ("findings limi > paper:nobody mean", False),
        ("findings limi/natural > 1.2 count all", True),
        ("findings limi/natural > 1.3 count all", False),
        ("findings limi/natural < 1.4 mean", True),
        ("findings limi/paper:limi > 1.1 count all", True),
        ("findings limi/natural > adf/natural on census-sex", False),
        ("findings limi/0 > 1 mean", False),
    ],
)
def test_words_rest_on_what_the_cells_say(support, holds):
    study = load("dnn")
    wrong = check_text("words", ["More."], study, [tiny()], [support])
    assert (wrong == []) == holds
    if not holds:
        assert wrong == [f"words: the words rest on {support!r}, which does not hold"]


@pytest.mark.parametrize(
    ("how", "holds"),
    [
        ("mean", False),  # over all of them
        ("mean on census-sex", True),
        ("mean on census-sex,credit-sex", False),
        ("on census-sex", True),
        ("held on census-sex", True),
        ("on credit-sex", False),
        ("held on credit-sex", False),
        ("count 1", False),
        ("held 1", False),
        ("lost at most 1", False),
    ],
)
def test_a_benchmark_without_a_number_is_not_left_out_of_what_is_counted(how, holds):
    known = tiny()
    for name in ("credit-sex/limi/0", "credit-sex/limi/1"):
        cell = known.outcomes[name]
        known.outcomes[name] = dataclasses.replace(cell, measures={**cell.measures, "atn": None})
    support = f"atn natural > limi {how}"
    assert (check_text("w", [], load("dnn"), [known], [support]) == []) == holds


def test_the_only_number_of_the_paper_is_that_of_every_benchmark():
    # Several protected columns at once: the paper prints means over its benchmarks alone.
    study, known = load("several-protected"), dataclasses.replace(tiny(), study="several-protected")
    told = [
        check_text("w", [], study, [known], [support])
        for support in ("findings limi > paper:limi mean", "findings limi < paper:limi count 1")
    ]
    assert told == [[], []]


def test_the_largest_scale_that_has_the_numbers_decides_what_words_rest_on():
    larger = dataclasses.replace(
        tiny(),
        scale="paper",
        outcomes={
            cell.cell: cell
            for cell in (
                outcome("census-sex/limi/0", findings=1),
                outcome("census-sex/natural/0", findings=2),
            )
        },
    )
    told = check_text("w", [], load("dnn"), [larger, tiny()], ["findings limi > natural mean"])
    assert len(told) == 1


def test_a_measure_without_a_number_is_wrong_and_not_waited_for():
    known = tiny()
    for name in ("census-sex/limi/0", "census-sex/limi/1"):
        cell = known.outcomes[name]
        known.outcomes[name] = dataclasses.replace(cell, measures={**cell.measures, "atn": None})
    assert len(check_text("x", ["{atn limi mean}"], load("dnn"), [known])) == 1


def test_cells_that_ended_by_something_are_counted():
    known = tiny()
    for number, (name, cell) in enumerate(list(known.outcomes.items())):
        stop = "rows" if number % 2 else "exhausted"
        known.outcomes[name] = dataclasses.replace(cell, measures={**cell.measures, "stop": stop})
    assert fill_in("{stops limi rows}", load("dnn"), [known]) == "2 of 4"


def test_a_tie_is_nobody_s_best():
    known = tiny()
    for name in ("census-sex/limi/0", "census-sex/limi/1"):
        cell = known.outcomes[name]
        known.outcomes[name] = dataclasses.replace(cell, measures={"findings": 80_000})
    shown = fill_in("{best findings limi,natural}", load("dnn"), [known])
    assert shown == "limi on 1, a tie on 1 of 2"
    for name in ("credit-sex/limi/0", "credit-sex/limi/1"):
        cell = known.outcomes[name]
        known.outcomes[name] = dataclasses.replace(cell, measures={"findings": 210_000})
    assert fill_in("{best findings limi,natural mean}", load("dnn"), [known]) == "a tie"


def test_a_ratio_over_all_benchmarks_is_of_all_of_them():
    known = tiny()
    for name in ("credit-sex/natural/0", "credit-sex/natural/1"):
        cell = known.outcomes[name]
        known.outcomes[name] = dataclasses.replace(cell, measures={"findings": 0})
    for over in ("low", "high", "mean"):
        text = f"{{findings limi/natural {over}}}"
        (wrong,) = check_text("x", [text], load("dnn"), [known])
        assert wrong == f"x: {text} cannot be filled in from the kept cells"
    # On one benchmark, of the means over all, and as a change (which counts as none) there is one.
    text = "{findings limi/natural census-sex} {findings limi/natural means}"
    assert fill_in(text, load("dnn"), [known]) == "1.25 5.00"
    assert fill_in("{findings limi:natural low}", load("dnn"), [known]) == "0 %"


def test_a_study_may_name_the_paper_s_table_of_another():
    study = dataclasses.replace(load("retraining"), paper_of="repair-dnn")
    cells = {
        name: outcome(name, if_r=value)
        for name, value in (("census-sex/control/0", 0.03), ("census-sex/control/1", 0.04))
    }
    known = [Results("retraining", "small", cells)]
    text = "{paper if_r before census-sex}, {paper if_r limi bank-age}"
    assert fill_in(text, study, known).endswith("0.0359, 0.1315")
    for support, holds in (
        ("if_r control < paper:before open on census-sex", True),
        ("if_r control < paper:before held on census-sex", False),
    ):
        assert (check_text("x", [], study, known, [support]) == []) == holds
    alone = dataclasses.replace(study, paper_of="retraining")
    assert check_text("x", [text], alone, known) != []
