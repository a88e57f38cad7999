"""`python -m lab` as a user runs it."""

import sys

import pytest

from lab import run as _run
from lab.__main__ import main


@pytest.fixture
def limi(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run, "needs_of", lambda cells: [])
    monkeypatch.setattr(
        _run, "measure_cell", lambda cell, shop: {"findings": 1000 + cell.seed, "accuracy": 0.9}
    )

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["lab", *words])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return call


RUN = ["run", "dnn", "--scale", "smoke", "--workers", "1"]


def test_list_names_every_study(limi):
    code, out, _ = limi("list")
    assert code == 0
    for name in ("dnn", "several-protected", "queries"):
        assert name in out


def test_cells_that_are_done_are_not_run_again(limi):
    code, out, err = limi(*RUN)
    assert code == 0
    assert "12 cells (12 done); 12 were run now" in out
    assert "12 of 12: dnn credit-sex/guided/0" in err
    assert "12 were run" not in limi(*RUN)[1]


def test_absent_tables_are_said_and_do_not_fail(limi, monkeypatch):
    monkeypatch.delenv("LIMI_DATA", raising=False)
    code, out, err = limi("run", "rf", "--scale", "small", "--seeds", "1", "--workers", "1")
    assert code == 0
    assert "9 absent, 54 done" in out
    assert "rf meps-sex/aequitas/0 and 8 more: the MEPS table does not come with limi" in err


def test_a_failing_cell_fails_the_command_at_the_end(limi, monkeypatch):
    def measure_cell(cell, shop):
        if cell.variant == "sg":
            raise ValueError("no luck")
        return {"findings": 1}

    monkeypatch.setattr(_run, "measure_cell", measure_cell)
    code, out, err = limi(*RUN)
    assert code == 4
    assert "11 done, 1 failed" in out
    assert "ValueError at test_commands.py" in err
    assert "no luck" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "dmn"], "there is no study 'dmn'; did you mean 'dnn'?"),
        (["run", "dnn", "--scale", "tiny"], "unknown scale 'tiny'"),
        (["run", "dnn", "--seeds", "0"], "seeds is 0"),
        (["run", "dnn", "--workers", "0"], "workers is 0"),
        (["run", "dnn", "--workers", "some"], "must be a number, or auto"),
        (["run", "dnn", "--cluster", "ray:10001"], "ray://HOST:PORT"),
        (["check", "--workers", "-1"], "at least 1"),
        (["run", "dnn", "--scale", "smoke", "--only", "x"], "no cell is called 'x'"),
        (["page", "--results", "nowhere"], "there are no kept results in 'nowhere'"),
        (["page", "--results", "nowhere", "--file", "page.md"], "python -m lab run all"),
        (["check", "--baseline", "none.json"], "there is no baseline 'none.json'"),
    ],
)
def test_bad_input_is_one_sentence(limi, words, sentence):
    code, _, err = limi(*words)
    assert code == 2
    assert sentence in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err


def test_page_from_a_folder(limi, tmp_path):
    limi(*RUN, "--keep", "kept")
    code, out, _ = limi("page", "--results", "kept")
    assert code == 0
    assert "[LIMI finds most (networks)](reproduction/dnn.md) (Table 1)" in out
    code, _, _ = limi("page", "--results", "kept", "--file", "reproduction.md")
    assert code == 0
    assert (tmp_path / "reproduction.md").read_text("utf-8") == out
    behind = tmp_path / "reproduction"
    assert (behind / "dnn.md").read_text("utf-8").startswith("# Findings and")
    listed = (behind / "conditions.md").read_text("utf-8")
    assert (
        "| [Findings and speed against networks](dnn.md) | Table 1 | smoke | 12 of 12 |" in listed
    )
