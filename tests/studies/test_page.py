"""The pages of all studies, and those in the documentation."""

import dataclasses

from limi import studies
from limi.studies._files import load
from limi.studies._page import check_pages
from limi.studies._results import Results, keep, read
from tests.studies.small import ROOT, outcome, tiny


def test_the_pages_say_what_holds_and_what_does_not(tmp_path):
    keep(tiny(), tmp_path)
    pages = studies.pages(tmp_path)
    assert pages == studies.pages(tmp_path)
    assert pages["reproduction.md"] == studies.page(tmp_path)
    assert (
        "LIMI finds more than every method of the paper: **not tried; no number of census-sex: "
        "aequitas, sg, eidig, neuronfair, expga" in pages["reproduction/dnn.md"]
    )
    assert "LIMI finds more a thousand queries" not in pages["reproduction/dnn.md"]
    overview = pages["reproduction.md"]
    assert (
        "[Findings and speed against forests](reproduction/rf.md) | Table 2 | not run | |"
        in overview
    )
    assert set(pages) == {"reproduction.md", *(f"reproduction/{n}.md" for n in studies.names())}
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
    at_paper, at_small = studies.pages(tmp_path)["reproduction/dnn.md"].split("## Scale small")
    assert "plausible per 1,000 queries: ours" in at_paper
    assert "not run: " in at_paper  # of what a scale plans, what is missing is named
    assert "plausible per 1,000" not in at_small
    assert {"dnn-paper.svg", "dnn-small.svg"} <= set(studies.figures(tmp_path))


def test_a_remark_whose_number_no_longer_follows_is_found(tmp_path):
    keep(tiny(), tmp_path)
    found = check_pages(tmp_path)
    assert any("{plausible_share limi mean} cannot be filled in" in one for one in found)
    study = dataclasses.replace(load("dnn"), remarks="LIMI finds 17 of 95 %.", fixed=("95",))
    from limi.studies._remarks import check_remarks

    (wrong,) = check_remarks(study, [read(study, "small", tmp_path)])
    assert "the remark says 17, which is not taken from the cells" in wrong


def test_the_pages_in_the_documentation_are_what_the_kept_results_give():
    """Write them anew with: make study-page."""
    results = ROOT / "studies" / "results"
    assert check_pages(results) == []
    for name, text in studies.pages(results).items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, name
