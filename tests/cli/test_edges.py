"""Options and files at the edge of what anybody would give: one sentence, and nothing is made."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limi import generators
from limi.cli import _console, main
from limi.cli import sample as sample_command
from limi.system.shown import clean_lines
from limi.table import files

ROOT = Path(__file__).parents[2]
MODEL = """
import numpy as np

def approve(frame):
    merit = frame["income"] / 2 + (frame["sex"] == frame["sex"].iloc[0]) * 0 + frame["age"] / 60
    return 1 / (1 + np.exp(3 - merit - (frame.iloc[:, 1] == "M") * 0.8))
"""
NASTY = "=1+1\x1b[31m\x9b\u202e"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "income": rng.normal(3, 1, n).round(1),
            NASTY: rng.choice([NASTY, "-1+1|x", "plain"], n),
            "ok": rng.choice(["yes", "no"], n),
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    made = generators.get("trees").fit(
        *_rows(folder / "people.csv"), np.random.default_rng(0), settings=None
    )
    generators.save(made, folder / "g.limi")
    return folder


def _rows(path):
    from limi.table.frames import Codec

    frame = files.read(path)
    schema = files.infer(frame)
    return Codec.learn(frame, schema).encode(frame), schema


@pytest.fixture
def call(home, monkeypatch, capsys):
    monkeypatch.chdir(home)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return run


BASE = ("people.csv", "--model", "python:model.py:approve", "--target", "ok")
SIDES = ("--favorable", "yes", "--protected", "sex")
TEST = ("test", *BASE, *SIDES, "--method", "themis", "--rate-rows", 20)
COMPARE = ("compare", *BASE, *SIDES, "--methods", "themis", "--max-queries", 100)
LONG = "x" * 300
BIG = 10**20


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([*TEST, "--max-rows", BIG], "more than can ever be spent"),
        ([*TEST, "--max-queries", BIG], "more than can ever be spent"),
        ([*TEST, "--max-findings", BIG], "more than can ever be spent"),
        ([*TEST, "--max-seconds", "1e308"], "more than can ever be spent"),
        ([*TEST, "--max-seconds", "nan"], "must be above 0"),
        ([*TEST, "--seed", -1], "seed is -1"),
        ([*TEST, "--generator", LONG], "unknown generator"),
        ([*TEST, "--generator", "nope", "--device", "cpu", "--out", "new"], "unknown generator"),
        (
            [*TEST, "--generator", "people.csv", "--device", "cpu", "--out", "new"],
            "not a generator",
        ),
        (
            [*TEST, "--method", "natural", "--generator", "none", "--out", "new"],
            "needs a generator",
        ),
        ([*TEST, "--schema", LONG], "File name too long"),
        ([*TEST, "--schema", "/dev/zero"], "is a pipe or a device"),
        ([*TEST, "--out", LONG], "cannot be written"),
        ([*TEST, "--out", ""], "name another place"),
        ([*COMPARE, "--seed", -1], "seed is -1"),
        ([*COMPARE, "--html", ""], "names '.'"),
        ([*COMPARE, "--max-queries", BIG], "more than can ever be spent"),
        (["fit", "people.csv", "--out", "."], "names '.'"),
        (["fit", "people.csv", "--out", "new.limi", "--seed", -1], "seed is -1"),
        (["fit", "people.csv", "--out", "new.limi", "--generator", "nope"], "unknown generator"),
        (["sample", "g.limi", "--out", "new.csv", "-n", 10**15], "between 1 and 1,000,000,000"),
        (["sample", "g.limi", "--out", "new.csv", "-n", 0], "draw between 1 and"),
        (["sample", "g.limi", "--out", "new.csv", "--seed", -1], "seed is -1"),
        (["sample", "people.csv", "--out", "new.csv"], "not a generator file"),
        (["sample", LONG, "--out", "new.csv"], "File name too long"),
        (["schema", f"{LONG}.csv"], "File name too long"),
        (["schema", "/dev/zero"], "is a pipe or a device"),
        (["schema", "people.csv", "--out", "."], "names '.'"),
        (["report", LONG], "File name too long"),
    ],
    ids=lambda given: "" if isinstance(given, str) else " ".join(str(w)[:12] for w in given[-3:]),
)
def test_it_is_told_in_one_sentence_and_nothing_is_made(call, home, words, told):
    before = sorted(path.name for path in home.iterdir())
    code, out, err = call(*words)
    assert code in (2, 4)
    assert out == ""
    assert told in err
    assert len(err.splitlines()) == 1
    assert "foresee" not in err
    assert sorted(path.name for path in home.iterdir() if path.name != "__pycache__") == before


def test_a_large_seed_is_a_seed(call):
    assert call(*TEST, "--max-rows", 50, "--seed", 10**40)[0] == 0


# -- what data hold ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["schema", "people.csv"],
        [*TEST, "--max-rows", 100],
        [*TEST, "--max-rows", 100, "--json"],
        [*TEST, "--max-rows", 100, "--protected", f"{NASTY}=plain,-1+1|x"],
        COMPARE,
        [*COMPARE, "--json"],
        ["fit", "people.csv", "--out", "fitted.limi", "--force", "--target", NASTY],
        ["fit", "people.csv", "--out", "fitted.limi", "--force", "--json"],
        ["sample", "g.limi", "--out", "s.csv", "--force"],
        ["sample", "g.limi", "--out", "s.csv", "--force", "--json"],
    ],
    ids=lambda words: " ".join(str(word)[:10] for word in (words[0], *words[-2:])),
)
def test_no_command_prints_what_steers_a_terminal(call, words):
    code, out, err = call(*words)
    assert code == 0, err
    assert clean_lines(out) == out
    assert clean_lines(err) == err
    if "--json" in words:
        json.loads(out)


def test_the_title_of_a_comparison_is_text(call, home):
    (home / f"{NASTY}.csv").write_bytes((home / "people.csv").read_bytes())
    try:
        code, out, err = call("compare", f"{NASTY}.csv", *COMPARE[2:])
    finally:
        (home / f"{NASTY}.csv").unlink()
    assert code == 0, err
    assert r"=1+1\x1b[31m\x9b\u202e" in " ".join(out.split())


def test_sampled_csv_is_guarded_and_says_so(call, home):
    code, out, err = call("sample", "g.limi", "--out", "s.csv", "--force", "--json")
    assert code == 0
    assert json.loads(out)["guarded"] == [NASTY]
    assert "now starts with a '" in " ".join(err.split())
    frame = pd.read_csv(home / "s.csv")
    assert f"'{NASTY}" in frame
    assert set(frame[f"'{NASTY}"]) == {f"'{NASTY}", "'-1+1|x", "plain"}
    assert call("sample", "g.limi", "--out", "s.parquet", "--force")[2] == ""
    assert set(pd.read_parquet(home / "s.parquet")[NASTY]) == {NASTY, "-1+1|x", "plain"}


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_samples_are_the_same_in_any_number_of_parts(call, home, monkeypatch, name):
    assert call("sample", "g.limi", "-n", 300, "--out", name, "--force")[0] == 0
    whole = (pd.read_csv if name.endswith("csv") else pd.read_parquet)(home / name)
    monkeypatch.setattr(sample_command, "_AT_ONCE", 70)
    assert call("sample", "g.limi", "-n", 300, "--out", name, "--force")[0] == 0
    parts = (pd.read_csv if name.endswith("csv") else pd.read_parquet)(home / name)
    pd.testing.assert_frame_equal(whole, parts)


def test_json_goes_to_stdout_and_everything_else_to_stderr(call):
    code, out, err = call(*TEST, "--max-rows", 100, "--json")
    assert code == 0
    assert isinstance(json.loads(out), dict)
    assert not _console.err.is_terminal
    assert "{" not in err


# -- what the machine lacks -------------------------------------------------------------------


def limited(words, kilobytes, cwd):
    """Exit code and errors of a command that may have so much memory."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))

    ran = subprocess.run(
        [sys.executable, "-m", "limi", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("words", "megabytes", "told"),
    [
        (["schema", "people.csv"], 40, "ulimit -v"),
        (["schema", "people.csv"], 150, "ulimit -v"),
        ([*TEST, "--max-rows", 50], 500, "limi test needs at least 1,024 MB"),
        (["sample", "g.limi", "--out", "new.csv"], 900, "limi sample needs"),
    ],
    ids=lambda given: "" if isinstance(given, str) else str(given)[:10],
)
def test_too_little_memory_is_told(home, words, megabytes, told):
    code, err = limited(words, megabytes << 10, home)
    assert code == 2
    assert told in err
    assert len(err.splitlines()) == 1


def test_help_needs_little_memory(home):
    assert limited(["test", "--help"], 1500 << 10, home)[0] == 0
    assert limited(["--help"], 100 << 10, home)[0] == 0


def test_a_folder_that_was_deleted_is_told(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = subprocess.run(
        ["bash", "-c", 'rmdir ../gone; "$0" -m limi schema people.csv', sys.executable],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode in (2, 4)
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith("limi: ")


def test_marks_in_names_are_text_in_a_progress_bar(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(type(_console.err), "is_terminal", True)
    monkeypatch.setattr(_console.err, "is_interactive", True)
    with _console.steps("[/bold]") as on_step:
        on_step(0.5, f"column [/x] {NASTY}")
    shown = capsys.readouterr().err
    assert "column [/x]" in shown
    assert "\u202e" not in shown


def test_names_that_are_not_utf8_are_names_everywhere(call, home, tmp_path):
    odd = os.fsdecode(b"p\xff\xe9")
    for name in ("people.csv", "model.py"):
        (tmp_path / f"{odd}{name}").write_bytes((home / name).read_bytes())
    table, run = f"{tmp_path / odd}people.csv", f"{tmp_path / odd}run"
    model = f"python:{tmp_path / odd}model.py:approve"
    words = ("--model", model, *TEST[4:], "--max-rows", 50)
    assert call("test", table, *words, "--out", run)[0] == 0
    code, out, err = call("report", run, "--json", "--html", f"{tmp_path / odd}.html")
    assert (code, err) == (0, "")
    assert json.loads(out)["table"] == table
    assert call("metrics", run)[0] == 0
    assert call("fit", table, "--out", f"{tmp_path / odd}.limi")[0] == 0
    for ending in ("csv", "parquet"):
        place = f"{tmp_path / odd}.{ending}"
        code, out, _ = call("sample", f"{tmp_path / odd}.limi", "--out", place, "--json")
        assert (code, json.loads(out)["file"]) == (0, place)
        assert len(files.read(place)) == 1000
