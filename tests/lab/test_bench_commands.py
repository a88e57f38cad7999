"""`python -m lab bench` as a user runs it; what a cell measures is made up."""

import sys
from xml.etree import ElementTree

import pytest

from lab import run as _run
from lab.__main__ import main
from limi.errors import MissingCapability


def measured(cell, shop):
    """Numbers by which guided is first, and adf can do networks alone."""
    if cell.method == "adf" and not cell.benchmark.endswith("dnn"):
        raise MissingCapability("it cannot look inside")
    found = {"guided": 9, "limi": 5, "natural": 4, "adf": 2}.get(cell.method, 1)
    tree = {"rate": 0.1, "rate_low": 0.09, "rate_high": 0.11, "columns": 20, "combinations": 2}
    for budget in (100, 400, 1000):
        tree |= {f"found_{budget}": found * budget // 100, f"seconds_{budget}": 0.5}
    return tree | {
        "plausible_1000": 0.5,
        "to_1_1000": 100 - found,
        "to_10_1000": None if found < 3 else 300,
        "leaves_1000": 3,
        "coverage_1000": 0.4,
        "agreement_1000": 0.3,
        "distance_1000": 0.2,
    }


@pytest.fixture
def limi(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run, "needs_of", lambda cells: [])
    monkeypatch.setattr(_run, "measure_cell", measured)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["lab", "bench", *words])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return call


RUN = ["run", "--scale", "smoke", "--workers", "1"]


def test_list_names_targets_and_methods(limi):
    code, out, _ = limi("list")
    assert code == 0
    for name in ("nearly fair", "  census-sex.dnn  ", "grft, sg"):
        assert name in out


def test_run_table_and_page(limi, tmp_path):
    code, out, _ = limi(*RUN, "--keep", "kept")
    assert code == 0
    assert "8 cells (7 done, 1 unable); 8 were run now" in out
    assert "0 were run now" in limi(*RUN)[1]
    code, out, _ = limi("table", "--scale", "smoke")
    assert code == 0
    assert "90.0" in out
    assert "unable" in out
    assert "critical difference" in out
    code, out, _ = limi("table", "--measure", "tenth", "--scale", "smoke")
    assert "> 1,000" in out
    code, _, _ = limi("page", "--results", "kept", "--file", "docs.md")
    assert code == 0
    text = (tmp_path / "docs.md").read_text()
    assert "first on all 2 targets" in text
    assert "1 cells, such as `credit-sex.logistic/adf/0`, unable: it cannot look inside" in text
    shown = sorted(p.name for p in (tmp_path / "figures").iterdir())
    assert shown == ["bench-all-findings.svg", "bench-all-plausible.svg"]
    for name in shown:
        assert f"figures/{name}" in text
        ElementTree.parse(tmp_path / "figures" / name)


def test_a_file_adds_targets_and_methods(limi, tmp_path):
    (tmp_path / "mine.toml").write_text(
        "[[targets]]\nname = 'mine'\nrecipe = 'estimator'\ntable = 'credit'\n"
        "protected = ['age']\n[[methods]]\nname = 'twice'\nmethod = 'natural'\n"
    )
    code, out, _ = limi(*RUN, "--add", "mine.toml")
    assert code == 0
    assert "15 cells" in out
    out = limi("table", "--add", "mine.toml", "--scale", "smoke")[1]
    assert "mine" in out
    assert "twice" in out
    code, _, err = limi("list", "--add", "mine.toml", "--add", "mine.toml")
    assert code == 2
    assert "there is a target 'mine' already" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table", "--measure", "nothing"], "there is no measure 'nothing'"),
        (["table", "--budget", "7"], "no result has a budget of 7 queries"),
        (["table", "--scale", "huge"], "unknown scale 'huge'"),
        (["run", "--only", "nothing"], "no cell is called 'nothing'"),
        (["run", "--workers", "0"], "use at least 1"),
        (["run", "--cluster", "dask"], "write ray"),
        (["list", "--add", "none.toml"], "cannot be read"),
    ],
)
def test_what_cannot_be_is_said(limi, words, told):
    limi(*RUN)
    code, _, err = limi(*words)
    assert code == 2
    assert told in " ".join(err.split())
