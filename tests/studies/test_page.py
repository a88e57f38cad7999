"""The page of all studies, and the one in the documentation."""

from limi import studies
from limi.studies._files import load
from limi.studies._results import Results, keep
from tests.studies.small import ROOT, outcome, tiny


def test_the_page_says_what_holds_and_what_does_not(tmp_path):
    keep(tiny(), tmp_path)
    text = studies.page(tmp_path)
    assert text == studies.page(tmp_path)
    assert (
        "LIMI finds more than every method of the paper: **holds on 0 of 1 benchmarks; "
        "not on census-sex: adf 125,000 against 100,000**" in text
    )
    assert "| [rf](#rf) | Table 2 | not run | | |" in text
    for name in studies.names():
        assert f"\n## {name}\n" in text
    # No cell is left out: every planned benchmark and method stands in the table.
    for benchmark in load("dnn").benchmarks:
        for variant in load("dnn").variants:
            assert f"| {benchmark} | {variant.label} |" in text


def test_the_page_shows_every_scale_and_only_what_was_measured_there(tmp_path):
    keep(tiny(), tmp_path)
    counted = {"findings": 90.0, "plausible": 80.0, "plausible_share": 0.9, "rows": 100.0}
    larger = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", **counted)
        for name in ("limi", "adf")
    }
    keep(Results("dnn", "paper", larger), tmp_path)
    text = studies.page(tmp_path)
    assert text.index("### dnn, scale paper") < text.index("### dnn, scale small")
    at_paper, at_small = (
        text.split("### dnn, scale small")[0],
        text.split("### dnn, scale small")[1],
    )
    assert "plausible findings: ours" in at_paper
    assert "plausible" not in at_small.split("\n## ")[0]
    assert {"dnn-paper.svg", "dnn-small.svg"} <= set(studies.figures(tmp_path))


def test_the_page_in_the_documentation_is_what_the_kept_results_give():
    """Write it anew with: limi study page --file docs/reproduction.md."""
    assert (ROOT / "docs" / "reproduction.md").read_text("utf-8") == studies.page(
        ROOT / "studies" / "results"
    )
