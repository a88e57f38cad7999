"""The pages of all studies, and those in the documentation."""

import copy
import dataclasses
import re

from lab import files as _files
from lab import page as _page
from lab.claims import list_claims
from lab.derived import complete
from lab.files import load, load_overview
from lab.page import check_pages
from lab.results import Results, keep, read
from lab.verdicts import Judged
from tests.lab.small import ROOT, outcome, tiny


def test_the_pages_say_what_holds_and_what_does_not(tmp_path):
    keep(tiny(), tmp_path)
    pages = _page.pages(tmp_path)
    assert pages == _page.pages(tmp_path)
    assert (
        "LIMI finds more than every method of the paper: **not tried; no number of census-sex: "
        "aequitas, sg, eidig, neuronfair, expga" in pages["reproduction/dnn.md"]
    )
    assert "LIMI finds more a thousand queries" not in pages["reproduction/dnn.md"]
    listed = pages["reproduction/conditions.md"]
    assert "[Findings and speed against forests](rf.md) | Table 2 | not run | |" in listed
    names = ("claims", "conditions", *_files.names())
    assert set(pages) == {"reproduction.md", *(f"reproduction/{name}.md" for name in names)}
    # No cell is left out: every planned benchmark and method stands in the table.
    for benchmark in load("dnn").benchmarks:
        for name in load("dnn").scale("small").variants:
            label = load("dnn").variant(name).label
            assert f"| {benchmark} | {label} |" in pages["reproduction/dnn.md"]


def test_a_page_shows_every_scale_and_only_what_was_measured_there(tmp_path):
    keep(tiny(), tmp_path)
    counted = {"findings": 90.0, "plausible_per_thousand": 8.0, "rows": 100.0}
    larger = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", **counted)
        for name in ("limi", "adf")
    }
    keep(Results("dnn", "paper", larger), tmp_path)
    at_paper, at_small = _page.pages(tmp_path)["reproduction/dnn.md"].split("## Scale small")
    assert "plausible per 1,000 queries: ours" in at_paper
    assert "not run: " in at_paper  # of what a scale plans, what is missing is named
    assert "plausible per 1,000" not in at_small
    assert "figures/dnn-paper.svg" in at_paper
    assert "figures/dnn-small.svg" in at_small


def test_a_smaller_scale_is_left_out_once_a_larger_one_is_whole(tmp_path):
    study = load("dnn")
    whole = {
        f"{benchmark}/{variant}/{seed}": outcome(f"{benchmark}/{variant}/{seed}", findings=9.0)
        for benchmark in study.scale("paper").benchmarks
        for variant in study.scale("paper").variants
        for seed in range(study.scale("paper").seeds)
    }
    keep(tiny(), tmp_path)
    keep(Results("dnn", "paper", whole), tmp_path)
    pages = _page.pages(tmp_path)
    assert "## Scale small" not in pages["reproduction/dnn.md"]
    assert "## Scale small" not in pages["reproduction/naturalness.md"]  # which shows those cells
    assert "figures/dnn-small.svg" not in pages["reproduction/dnn.md"]
    assert f"{len(whole)} of the {len(whole)} cells shown" in pages["reproduction.md"]
    whole.popitem()
    keep(Results("dnn", "paper", whole), tmp_path)
    assert "## Scale small" in _page.pages(tmp_path)["reproduction/dnn.md"]


def test_a_smaller_scale_with_more_seeds_is_shown(tmp_path):
    study = load("images")
    assert study.scale("small").seeds > study.scale("paper").seeds
    for scale in ("small", "paper"):
        size = study.scale(scale)
        cells = {
            f"{benchmark}/{variant}/{seed}": outcome(f"{benchmark}/{variant}/{seed}", effect=1.0)
            for benchmark in size.benchmarks
            for variant in size.variants
            for seed in range(size.seeds)
        }
        keep(Results("images", scale, cells), tmp_path)
    page = _page.pages(tmp_path)["reproduction/images.md"]
    assert page.index("## Scale paper") < page.index("## Scale small")


def test_the_overview_has_two_screens():
    """About 1,790 of 1,800 pixels on a screen of 1440 x 900, with these rows and words."""
    overview = _page.pages(ROOT / "lab" / "studies" / "results")["reproduction.md"]
    rows = [line for line in overview.splitlines() if line.startswith("| [")]
    assert 14 <= len(rows) <= 20
    assert max(len(row.split("](")[0]) for row in rows) <= 110
    told = [line for line in overview.splitlines() if line.startswith("- **")]
    assert len(told) == 5
    assert max(len(one.split()) for one in told) <= 55
    assert len(overview.split()) <= 1_190
    assert "reproduction/claims.md" in overview
    assert "reproduction/conditions.md" in overview


def test_the_claims_page_has_all_that_conclusions_rest_on():
    pages = _page.pages(ROOT / "lab" / "studies" / "results")
    told = [line for line in pages["reproduction.md"].splitlines() if line.startswith("- **")]
    whole = pages["reproduction/claims.md"].partition("## What the conclusions rest on")[2]
    for one in told:
        assert one.replace("](reproduction/", "](") in whole
    assert "preset=calibrated" not in pages["reproduction.md"]
    assert "preset=calibrated" in whole


def test_the_overview_says_how_old_its_cells_are(tmp_path):
    keep(tiny(), tmp_path)
    overview = _page.pages(tmp_path)["reproduction.md"]
    assert "10 of the 10 cells shown were made by earlier versions of limi" in overview
    assert "Cells of an earlier program" not in overview
    old = outcome("census-sex/limi/0", if_r=0.1)
    before = dataclasses.replace(
        old, measures={"if_r": 0.1, "before": {"if_r": 0.2}, "findings": 5, "added": 9}
    )
    keep(Results("repair-dnn", "small", {before.cell: before}), tmp_path)
    pages = _page.pages(tmp_path)
    assert "‡ Cells of an earlier program: in these searches" in pages["reproduction.md"]
    assert "‡ **Cells of an earlier program** (limi)" in pages["reproduction/repair-dnn.md"]


def test_minor_claims_stand_on_their_page_alone(tmp_path):
    keep(tiny(), tmp_path)
    pages = _page.pages(tmp_path)
    minor = [claim.says for claim in list_claims() if claim.minor]
    assert minor
    shown = [line for line in pages["reproduction.md"].splitlines() if line.startswith("| [")]
    assert len(shown) == sum(not claim.minor and not claim.ours for claim in list_claims())
    for says in minor:
        assert f"| [{says}](" in pages["reproduction/claims.md"]


def test_the_overview_counts_every_verdict_of_the_paper_shown_or_not():
    def judged(holds, **changes):
        claim = dataclasses.replace(list_claims()[0], **{"again": False, **changes})
        return Judged(claim, "", "", "", "", holds)

    told = _page._tally(
        [
            judged("yes"),
            judged("yes (`trees`)", minor=True),
            judged("no (cannot be told from the control)"),
            judged("no", again=True),
            judged("not computable"),
        ]
    )
    assert told.startswith(
        "3 claims of the paper are judged against numbers, 1 more cannot be. Verdicts, by the rule "
        "below: *yes* 2, *no* 1. "
    )


def test_a_leading_figure_needs_no_remarks():
    cells = {
        name: outcome(name, per_row=0.2, likeness=0.9)
        for name in ("census-sex/natural/0", "census-sex/plane/0")
    }
    known = [Results("boundary", "small", cells)]
    for remarks in ("", "First.\n\nThen."):
        study = dataclasses.replace(load("boundary"), remarks=remarks)
        page = _page._study(study, known, "reproduction", {})
        assert page.count("](../figures/boundary-small.svg)") == 1
        assert page.index("figures/boundary-small.svg") < page.index("## Scale small")


def test_a_statement_of_speed_is_counted_once():
    claims = [claim for claim in list_claims() if not claim.ours]
    head = _page.pages(ROOT / "lab" / "studies" / "results")["reproduction.md"].partition(
        "| claim |"
    )[0]
    counted = [claim for claim in claims if not claim.again]
    assert f"{len(counted)} claims of the paper" in head
    assert sum(int(n) for n in re.findall(r"\*[a-z: ]+\* (\d+)", head)) == len(counted)
    again = [claim for claim in claims if claim.again]
    assert again
    for claim in again:
        assert "per_second" in claim.measure
        nearer = (one for one in counted if (one.study, one.kind) == (claim.study, claim.kind))
        assert any("per_second" in one.measure for one in nearer), claim.says


def test_a_conclusion_may_add_what_another_study_says(monkeypatch):
    known = [(load("dnn"), [tiny()]), (load("repair-dnn"), [])]
    one = {
        "study": "dnn",
        "says": "Of {findings limi mean}.",
        "also": [
            {"study": "repair-dnn", "says": "Not {if_r limi mean}."},
            {"study": "dnn", "says": "More than {findings natural mean}."},
        ],
    }
    assert _page._fill(one, known) == "Of 200,000. Not (not run). More than 145,000."


def test_a_table_of_one_variant_is_left_out(tmp_path):
    cells = {
        name: outcome(name, findings=5.0, **more)
        for name, more in (("census-sex/limi/0", {"found_10k": 3.0}), ("census-sex/adf/0", {}))
    }
    keep(Results("dnn", "small", cells), tmp_path)
    page = _page.pages(tmp_path)["reproduction/dnn.md"].partition("<details>")[0]
    assert "**findings: ours" in page
    assert "found in 10,000 rows" not in page


def test_no_variant_loses_a_number_because_a_table_names_others():
    """The table of a measure may leave a variant out only where another shows it."""
    kept = ROOT / "lab" / "studies" / "results"
    tried = []
    for path in sorted(kept.glob("*/*.json")):
        study = load(path.stem)
        results = complete(study, read(study, path.parent.name, kept))
        for measure in {spec.measures[0] for spec in study.tables}:
            shown = _page._lead_by(study, measure)
            if not shown:  # all of them
                continue
            tried.append((study.name, measure))
            others = [spec.variants for spec in study.tables if measure in spec.measures]
            shown = shown.union(*others) if all(others) else {v.name for v in study.variants}
            having = {o.variant for o in results.outcomes.values() if measure in o.measures}
            left_out = [v for v in study.variants if v.name in having - shown]
            assert not [v.name for v in left_out if (v.of or v.name) not in shown], tried[-1]
    assert ("queries", "plausible_per_thousand") in tried


def test_comparisons_without_natural_findings_per_query_are_named():
    known = {"dnn": {"plausible": 5}, "rf": {"plausible": None}, "svm": {}, "fitness": {}}
    kept = []
    for name, measures in known.items():
        cell = outcome("census-sex/limi/0", findings=9, **measures)
        kept.append((load(name), [Results(name, "small", {cell.cell: cell})]))
    rest = [(load("step"), []), (load("repair-dnn"), [])]
    told = _page._conditions_page([*kept, *rest], "reproduction").partition("## Natural")[2]
    assert "Not counted: [Findings and speed against forests](rf.md); [Findings and speed" in told
    assert "](svm.md). They were not measured when these cells ran" in told
    assert not [name for name in ("dnn", "fitness", "step") if f"]({name}.md)" in told]
    told = _page._conditions_page([*kept[:1], *rest], "reproduction")
    assert "Not counted" not in told


def test_links_follow_the_name_of_the_page(tmp_path):
    keep(tiny(), tmp_path)
    pages = _page.pages(tmp_path, "copy")
    assert "](reproduction/" not in "".join(pages.values())
    assert "](copy/claims.md)" in pages["copy.md"]
    assert "](../copy.md)" in pages["copy/dnn.md"]


def test_a_text_that_no_longer_follows_is_found(tmp_path, monkeypatch):
    keep(tiny(), tmp_path)
    words = copy.deepcopy(load_overview())
    words["conclusions"][0]["supports"] = ["findings natural > limi mean"]
    claims = [dataclasses.replace(list_claims()[0], note="On {findings nobody mean}.")]
    monkeypatch.setattr(_page, "load_overview", lambda: words)
    monkeypatch.setattr(_page, "list_claims", lambda: claims)
    found = check_pages(tmp_path)
    assert set(found) >= {
        f"conclusion {words['conclusions'][0]['says'][:40]!r}: the words rest on "
        "'findings natural > limi mean', which does not hold",
        "the note of 'LIMI finds most (networks)': {findings nobody mean} cannot be filled in from "
        "the kept cells",
    }


def test_the_pages_in_the_documentation_are_what_the_kept_results_give():
    """Write them anew with: make study-page."""
    results = ROOT / "lab" / "studies" / "results"
    assert check_pages(results) == []
    for name, text in _page.pages(results).items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, name
