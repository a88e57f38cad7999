"""Tables of a study: ours beside the paper's, claims and ratios."""

import dataclasses

import pytest

from lab import page as _page
from lab import prose as _prose
from lab import tables as _tables
from lab.claims import list_claims
from lab.derived import complete
from lab.files import load
from lab.formats import render
from lab.measures import show, show_apart
from lab.results import Results
from lab.verdicts import judge
from tests.lab.small import outcome, small_study, tiny


def test_a_table_has_ours_the_spread_the_paper_s_and_the_ratio():
    (table,) = _tables.tables(small_study(), tiny())
    rows = {row[:2]: row[2:] for row in table.rows}
    assert table.headings == ("benchmark", "method", "findings", "min to max", "paper", "ratio")
    assert rows["census-sex", "adf"] == ("125,000", "120,000 to 130,000", "11,540", "10.83")
    assert rows["credit-sex", "limi"] == ("300,000", "300,000", "164,569", "1.82")
    assert rows["credit-sex", "adf"] == ("failed", "", "4,842", "")
    assert rows["mean", "adf"] == ("-", "", "8,191", "")
    assert rows["mean", "limi"] == ("200,000", "", "125,317", "1.60")
    assert "failed: credit-sex, adf: no gradient | at all" in render(table)


def test_the_matrix_marks_the_best_and_shows_the_paper_s():
    table = _tables.matrix(small_study(), "findings", tiny())
    assert table.headings == ("benchmark", "adf", "limi", "natural")
    assert table.rows[0] == ("census-sex", "125,000* (11,540)", "100,000 (86,065)", "80,000")
    assert table.rows[1] == ("credit-sex", "failed (4,842)", "300,000* (164,569)", "210,000")


def test_a_speed_of_a_gpu_is_marked_and_not_the_best():
    here = {"device": "cpu", "machine": "here"}
    given = {"limi": {"generator": "ctgan"}, "natural": {**here, "device": "cuda"}, "adf": here}
    cells = {}
    for value, (variant, its) in enumerate(given.items()):
        name = f"census-sex/{variant}/0"
        cells[name] = dataclasses.replace(outcome(name, per_second=90.0 - value), given=its)
    known = Results("dnn", "small", cells)
    table = _tables.matrix(small_study(), "per_second", known)
    assert table.rows[0][1:] == (
        "88.0 (3.20)",  # the only one to compare, so not the best of several
        "90.0 † (41.7)",
        "89.0 †",
    )
    assert "not compared" in table.notes[0]
    spec = dataclasses.replace(small_study().tables[0], measures=("per_second",))
    (listed,) = _tables.tables(dataclasses.replace(small_study(), tables=(spec,)), known)
    assert listed.rows[1][2] == "90.0 †"
    assert any("not compared" in note for note in listed.notes)


def test_claims_are_judged_benchmark_by_benchmark():
    study = small_study()
    claims = [
        dataclasses.replace(study.claims[0], over=("adf", "natural")),
        dataclasses.replace(study.claims[0], over=("natural",)),
        dataclasses.replace(study.claims[0], measure="atn", over=("real",)),
        dataclasses.replace(study.claims[0], first="absent-one", over=("adf",)),
    ]
    told = _tables.claims(dataclasses.replace(study, claims=tuple(claims)), tiny())
    assert [(t.held, t.against, t.open, t.missing) for t in told] == [
        (0, ("census-sex: adf 125,000 against 100,000",), (), ("credit-sex: adf",)),
        (2, (), (), ()),
        (2, (), (), ()),
        (0, (), (), ("census-sex: absent-one", "credit-sex: adf")),
    ]


def test_a_claim_is_open_where_the_seeds_meet():
    numbers = {"limi": (90, 110), "natural": (80, 95)}
    cells = {
        f"census-sex/{name}/{seed}": outcome(f"census-sex/{name}/{seed}", findings=value)
        for name, line in numbers.items()
        for seed, value in enumerate(line)
    }
    claim = dataclasses.replace(load("dnn").claims[0], over=("natural",))
    (tried,) = _tables.claims(small_study(claims=(claim,)), Results("dnn", "small", cells))
    assert (tried.held, tried.open) == (0, ("census-sex: natural 88 against 100",))


def test_a_table_says_how_many_seeds_its_cells_have():
    known = tiny()
    del known.outcomes["census-sex/limi/1"]
    (table,) = _tables.tables(small_study(), known)
    assert table.notes[0].startswith("Means over 1 to 2 seeds;")
    assert table.notes[0].endswith("; a cell without a spread has one seed.")


def test_few_findings_excuse_only_what_is_measured_of_findings():
    cell = outcome("census-sex/limi/0", findings=3)
    known = Results("dnn", "small", {cell.cell: cell})
    told = [_tables._why_not(known, "census-sex", "limi", m) for m in ("atn", "opportunity")]
    assert told == ["under 50 found", "not measured"]


@pytest.mark.parametrize(
    ("mine", "theirs", "held", "n_against", "n_open"),
    [
        ((90, 110), (80, 89), 1, 0, 0),
        ((90, 110), (80, 90), 0, 0, 1),  # a tie is not ahead
        ((70, 100), (99, 130), 0, 0, 1),  # behind on average, and not in every pair
        ((70, 98), (99, 130), 0, 1, 0),
    ],
)
def test_pages_and_overview_hold_to_one_rule(mine, theirs, held, n_against, n_open):
    cells = {
        f"census-sex/{name}/{seed}": outcome(f"census-sex/{name}/{seed}", findings=value)
        for name, line in (("limi", mine), ("natural", theirs))
        for seed, value in enumerate(line)
    }
    results = Results("dnn", "small", cells)
    claim = dataclasses.replace(load("dnn").claims[0], over=("natural",))
    (tried,) = _tables.claims(small_study(claims=(claim,)), results)
    assert (tried.held, len(tried.against), len(tried.open)) == (held, n_against, n_open)
    same = dataclasses.replace(list_claims()[0], over=("natural",), equal_rows=False, ours=True)
    shown = f"{held} of 1" + (", 1 open" if n_open else "")
    assert judge(same, [results]).with_trees == f"{shown}, 1 of 7 benchmarks, `small`"


def test_one_seed_is_named_where_a_claim_rests_on_it():
    cells = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", findings=value)
        for name, value in (("limi", 90), ("natural", 80))
    }
    claim = dataclasses.replace(load("dnn").claims[0], over=("natural",))
    (tried,) = _tables.claims(small_study(claims=(claim,)), Results("dnn", "small", cells))
    assert (tried.held, tried.alone, tried.n) == (0, 1, 1)
    told = "open (on 1 by one seed alone; no number of credit-sex: natural); so far it holds on 0"
    assert _page._verdict(tried) == f"{told} of 1 benchmarks"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "holds on all 3 benchmarks"),
        (
            {"held": 2, "alone": 1},
            "open (on 1 by one seed alone); so far it holds on 2 of 3 benchmarks",
        ),
        (
            {"missing": ("bank-age: adf",)},
            "open (no number of bank-age: adf); so far it holds on all 3 benchmarks",
        ),
        (
            {"held": 1, "open": ("a: sg 1 against 2",), "alone": 1},
            "open (on 1 by one seed alone); so far it holds on 1 of 3 benchmarks; within the "
            "seeds' spread on a: sg 1 against 2",
        ),
        # One seed may decide against a claim, as in the overview.
        (
            {"held": 1, "against": ("a: sg 3 against 2",), "alone": 1},
            "holds on 1 of 3 benchmarks; not on a: sg 3 against 2; on 1 by one seed alone",
        ),
        (
            {"held": 0, "against": ("a: sg 3 against 2",), "alone": 1},
            "holds on 0 of 2 benchmarks; not on a: sg 3 against 2; on 1 by one seed alone",
        ),
        ({"held": 0, "missing": ("a: sg",)}, "not tried; no number of a: sg"),
        ({"why": "for a reason"}, "not tried: for a reason"),
    ],
)
def test_a_claim_of_a_study_is_open_with_one_seed_or_a_part_of_the_benchmarks(changes, told):
    claim = load("dnn").claims[0]
    tried = _tables.Tried(claim, held=3, against=(), open=(), missing=())
    assert _page._verdict(dataclasses.replace(tried, **changes)) == told


def test_a_reading_that_lacks_numbers_is_told_beside_the_one_that_has_them():
    """With either generator, what was run is told, and what was not is not."""
    cells = {}
    for variant, measures in (
        ("limi", {"findings": 9}),
        ("natural", {"findings": 5}),
        ("limi.ctgan", {}),
        ("natural.ctgan", {}),
    ):
        for seed in (0, 1):
            cell = outcome(f"census-sex/{variant}/{seed}", **measures)
            cells[cell.cell] = cell
    claim = dataclasses.replace(load("dnn").claims[0], over=("natural",))
    study = dataclasses.replace(load("dnn"), claims=(claim,))

    def told(known):
        tried = _tables.claims(study, Results("dnn", "smoke", known))
        return [(one.claim.first, one.n, bool(one.missing)) for one in tried]

    assert told(cells) == [("limi", 1, True), ("limi.ctgan", 0, True)]
    alone = {name: cell for name, cell in cells.items() if "ctgan" in name}
    assert told(alone) == [("limi.ctgan", 0, True)]
    assert [first for first, _, _ in told({})] == ["limi"]


def test_small_numbers_keep_their_digits_and_extrapolated_ones_lose_them():
    assert show(0.03, "per_second") == "0.03"
    assert show(1234.5, "per_second") == "1,230"
    assert show(41.68, "per_second") == "41.7"
    assert show(320.61, "plausible_per_thousand") == "320"
    assert show(0.734, "plausible_per_thousand") == "0.73"
    assert show(123_456, "plausible") == "120,000"


def test_shares_of_a_sample_carry_two_digits_and_their_interval():
    assert show(0.2083, "plausible_per_row") == "21 %"
    assert show(0.0123, "plausible_per_row") == "1.2 %"
    measures = {"plausible": 210.0, "plausible_low": 200.0, "plausible_high": 221.0}
    cell = outcome("census-sex/limi/0", findings=300.0, rows=1000.0, **measures)
    known = complete(load("dnn"), Results("dnn", "small", {cell.cell: cell}))
    table = _tables.matrix(small_study(), "plausible_per_row", known)
    assert table.rows[0] == ("census-sex", "21 % [20 % to 22 %]")
    assert "interval" in table.title


def test_plausible_findings_per_query_carry_the_interval_of_their_count():
    measures = {"plausible": 210.0, "plausible_low": 200.0, "plausible_high": 221.0}
    cell = outcome("census-sex/limi/0", findings=300.0, rows=1000.0, queries=10_000.0, **measures)
    cell = dataclasses.replace(cell, measures={**cell.measures, "plausible_per_thousand": 21.0})
    known = complete(load("dnn"), Results("dnn", "small", {cell.cell: cell}))
    table = _tables.matrix(small_study(), "plausible_per_thousand", known)
    assert table.rows[0] == ("census-sex", "21 [20 to 22]")
    # Where every finding was judged there is nothing left open.
    exact = {**cell.measures, "plausible_low": 210.0, "plausible_high": 210.0}
    whole = Results("dnn", "small", {cell.cell: dataclasses.replace(cell, measures=exact)})
    table = _tables.matrix(small_study(), "plausible_per_thousand", whole)
    assert (table.rows[0], table.notes) == (("census-sex", "21"), ())


def test_the_end_of_the_paper_s_runs_is_a_word():
    assert [show(x, "paper_end") for x in (1.0, 0.0, 0.5)] == [
        "the clock",
        "itself",
        "50% the clock",
    ]


def test_why_a_cell_has_no_number():
    cell = outcome("census-sex/limi/0", findings=300.0, found_100k=None, paper_rows=None)
    known = Results("dnn", "small", {cell.cell: cell})
    told = [_tables._why_not(known, "census-sex", "limi", m) for m in ("found_100k", "paper_rows")]
    assert told == ["fewer rows", "never found as many"]


def test_less_is_better_where_it_is():
    worse = {
        "census-sex/limi/0": outcome("census-sex/limi/0", distance=1.5),
        "census-sex/adf/0": outcome("census-sex/adf/0", distance=1.2),
    }
    claim = dataclasses.replace(load("dnn").claims[0], measure="distance", over=("adf",))
    study = small_study(claims=(claim,))
    (tried,) = _tables.claims(study, Results("dnn", "small", worse))
    assert tried.against == ("census-sex: adf 1.20 against 1.50",)


def test_ratios_of_pairs_are_means_over_benchmarks():
    one = dataclasses.replace(
        load("queries").combined[0], pairs=(("limi", "natural"), ("natural", "limi"))
    )
    (ratios,) = _tables.combine(small_study(combined=(one,)), tiny())
    ahead = [(90 / 80 + 110 / 80) / 2, (300 / 200 + 300 / 220) / 2]
    behind = [(80 / 90 + 80 / 110) / 2, (200 / 300 + 220 / 300) / 2]
    assert ratios.by_pair["limi to natural"] == pytest.approx(sum(ahead) / 2)
    assert ratios.mean == pytest.approx((sum(ahead) + sum(behind)) / 4)
    assert ratios.missing == ()
    assert _page._tell_ratios(ratios).startswith("**1.05**; mean of the ratios of benchmarks")


@pytest.mark.parametrize("broken", [0, None])
def test_a_ratio_is_of_every_pair_benchmark_and_seed_or_says_what_is_missing(broken):
    """ADF failed on one benchmark, and on the other a seed has nothing to be more than."""
    one = dataclasses.replace(
        load("queries").combined[0], pairs=(("limi", "natural"), ("limi", "adf")), paper=1.65
    )
    known = tiny()
    name = "census-sex/adf/1"
    known.outcomes[name] = dataclasses.replace(known.outcomes[name], measures={"findings": broken})
    (ratios,) = _tables.combine(small_study(combined=(one,)), known)
    assert ratios.mean is None
    assert list(ratios.by_pair) == ["limi to natural"]
    assert _page._tell_ratios(ratios) == (
        "**not computed** (paper: 1.65), because there is no ratio of census-sex: limi to adf; "
        "credit-sex: limi to adf; limi to natural 1.34"
    )
    none = dataclasses.replace(one, pairs=(("sg", "expga"),))
    assert _tables.combine(small_study(combined=(none,)), known) == []
    assert _tables.combine(small_study(combined=(one,)), Results("dnn", "small", {})) == []


def test_a_pair_that_the_scale_does_not_have_is_not_missing():
    study = load("combination")
    planned = study.scale("smoke").variants
    (one,) = study.combined
    pairs = [pair for pair in one.pairs if set(pair) <= set(planned)]
    assert 0 < len(pairs) < len(one.pairs)
    cells = {
        name: outcome(name, findings=n)
        for benchmark in study.scale("smoke").benchmarks
        for pair in pairs
        for n, variant in zip((20, 10), pair, strict=True)
        for name in [f"{benchmark}/{variant}/0"]
    }
    (ratios,) = _tables.combine(study, Results("combination", "smoke", cells))
    assert (ratios.mean, ratios.missing) == (2.0, ())


def test_what_a_repair_measures_before_is_a_variant_of_its_own():
    study = load("repair-dnn")
    before = {"accuracy": 0.88, "if_o": 0.2, "if_r": 0.1}
    outcomes = {
        name: outcome(name, before=before, if_o=0.1, accuracy=0.87)
        for name in ("census-sex/limi/0", "census-sex/adf/0")
    }
    results = complete(study, Results("repair-dnn", "small", outcomes))
    assert results.numbers("census-sex", "before", "if_o") == [0.2]
    claim = dataclasses.replace(study.claims[0], measure="if_o", first="limi", over=("before",))
    (told,) = _tables.claims(dataclasses.replace(study, claims=(claim,)), results)
    assert (told.alone, told.held, told.against) == (1, 0, ())


def test_a_speed_of_another_machine_or_of_none_is_marked():
    given = {"limi": "there", "natural": "", "adf": "here"}
    cells = {}
    for benchmark in ("census-sex", "credit-sex"):
        for variant, machine in given.items():
            name = f"{benchmark}/{variant}/0"
            its = {"device": "cpu", "machine": machine} if machine else {"device": "cpu"}
            its = {**its, "machine": "here"} if benchmark == "credit-sex" else its
            cells[name] = dataclasses.replace(outcome(name, per_second=9.0), given=its)
    table = _tables.matrix(small_study(), "per_second", Results("dnn", "small", cells))
    assert ["†" in cell for cell in table.rows[0][1:]] == [False, True, True]


def test_speeds_of_several_machines_decide_no_claim():
    study = small_study()
    claim = dataclasses.replace(study.claims[0], measure="per_second", over=("natural",))
    (tried,) = _tables.claims(dataclasses.replace(study, claims=(claim,)), tiny())
    assert (tried.n, tried.why) == (0, "the cells do not all name one machine")
    assert _page._verdict(tried) == "not tried: the cells do not all name one machine"


def test_numbers_that_look_alike_have_more_digits():
    assert show_apart(151_000.0, 149_000.0, "plausible") == ("151,000", "149,000")
    assert show_apart(110.2, 109.8, "plausible_per_thousand") == ("110.2", "109.8")
    assert show_apart(0.81, 0.92, "atn") == ("0.810", "0.920")
    assert show_apart(0.8101, 0.8102, "atn") == ("0.8101", "0.8102")
    assert show_apart(5.0, 5.0, "findings") == ("5", "5")


def test_the_paper_s_steps_stand_beside_what_ours_find_within_its_limit():
    cell = outcome("census-sex/step-0/0", findings=99.0, found_latents=88.0)
    known = Results("step", "small", {cell.cell: cell})
    tables = [_tables.matrix(load("step"), m, known) for m in ("findings", "found_latents")]
    assert [table.rows[0][1] for table in tables] == ["99", "88 (38,974)"]


def test_a_column_that_no_cell_has_is_left_out():
    spec = dataclasses.replace(small_study().tables[0], measures=("findings", "one_apart"))
    (table,) = _tables.tables(dataclasses.replace(small_study(), tables=(spec,)), tiny())
    assert "one column from another" not in table.headings


def test_an_interval_of_some_seeds_is_not_shown_beside_the_mean_of_all():
    ends = {"plausible_per_row_low": 0.1, "plausible_per_row_high": 0.3}
    cells = {}
    for seed, more in enumerate((ends, {})):
        name = f"census-sex/limi/{seed}"
        cells[name] = outcome(name, plausible_per_row=0.2, **more)
    known = Results("dnn", "small", cells)
    assert _tables._interval(known, "census-sex", "limi", "plausible_per_row") == ""
    (told,) = _tables.matrix(small_study(), "plausible_per_row", known).notes
    assert told == "No interval is shown where some seeds have none: limi."
    whole = {n: dataclasses.replace(c, measures={**c.measures, **ends}) for n, c in cells.items()}
    known = Results("dnn", "small", whole)
    assert _tables._interval(known, "census-sex", "limi", "plausible_per_row") == " [10 % to 30 %]"


@pytest.mark.parametrize(
    ("measure", "many", "told"),
    [
        ("plausible", {"findings": 60, "plausible": 40}, "under 50 found"),
        ("plausible_share", {"findings": 60, "plausible_share": 0.7}, "under 50 found"),
        ("atn", {"findings": 60, "atn": 0.7}, "under 50 found"),
        ("representative_atn", {"findings": 600, "representative_atn": 0.7}, "under 200 found"),
        ("likeness", {"findings": 600, "likeness": 0.7, "likeness_n": 413}, "under 413 found"),
        ("one_apart", {"findings": 600, "one_apart": 0.7}, "none found"),
    ],
)
def test_nothing_is_told_of_those_seeds_alone_that_found_enough(measure, many, told):
    known = tiny()
    few = {**many, "findings": 0, measure: None}
    for seed, measures in enumerate([many, few]):
        for name in (f"census-sex/limi/{seed}", f"credit-sex/limi/{seed}"):
            one = many if name.startswith("credit") else measures
            known.outcomes[name] = dataclasses.replace(known.outcomes[name], measures=one)
    assert known.numbers("census-sex", "limi", measure) == []
    # Neither is it in the texts.
    assert [*_prose._means(["limi"], measure, known)] == ["credit-sex"]
    table = _tables.matrix(small_study(), measure, known)
    shown = {row[0]: row[table.headings.index("limi")].rstrip("*") for row in table.rows}
    assert shown["census-sex"] == told
    assert shown["mean"] == "-"
    assert [note for note in table.notes if note.startswith("Not shown where a seed found fewer")]
    spec = dataclasses.replace(small_study().tables[0], measures=(measure,))
    (listed,) = _tables.tables(dataclasses.replace(small_study(), tables=(spec,)), known)
    assert ("census-sex", "limi", told) in {row[:3] for row in listed.rows}
    assert any(note.startswith("Not shown where a seed found fewer") for note in listed.notes)


def test_a_likeness_that_the_table_is_too_small_for_says_how_few_flip():
    cells = {}
    for benchmark, n in (("census-sex", 63), ("credit-sex", 4)):
        cell = outcome(f"{benchmark}/limi/0", findings=800, likeness=None, likeness_n=n)
        if benchmark == "census-sex":
            cell = dataclasses.replace(cell, measures={**cell.measures, "likeness": 0.8})
        cells[cell.cell] = cell
    known = Results("dnn", "small", cells)
    spec = dataclasses.replace(small_study().tables[0], measures=("likeness",))
    study = dataclasses.replace(small_study(), tables=(spec,))
    for table in (_tables.matrix(study, "likeness", known), *_tables.tables(study, known)):
        assert any("4 people flip" in row for row in table.rows)
        assert any("at least 50 of the table's own people who flip" in one for one in table.notes)


def test_a_reason_is_told_only_of_what_findings_are_needed_for():
    cell = outcome("census-sex/limi/0", findings=3)
    known = Results("dnn", "small", {cell.cell: cell})
    told = [_tables._why_not(known, "census-sex", "limi", m) for m in ("likeness", "per_second")]
    assert told == ["under 50 found", "not measured"]


def test_a_measure_that_some_seeds_lack_says_so():
    known = tiny()
    name = "census-sex/limi/0"
    measures = {k: v for k, v in known.outcomes[name].measures.items() if k != "atn"}
    known.outcomes[name] = dataclasses.replace(known.outcomes[name], measures=measures)
    (told,) = _tables.matrix(small_study(), "atn", known).notes
    assert told == ('On at least one benchmark this was measured in only 1 of 2 seeds of "limi".')
