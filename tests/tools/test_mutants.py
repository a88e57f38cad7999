"""The tool that changes the code: what it changes, what it notices, and when it ends."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent.parent / "tools" / "mutants.py"

SUMS = '''
def spread(low, high):
    """Not a text to change."""
    if high < low:
        raise ValueError(f"{high} is under {low}")
    return high - low


def count_down(n):
    steps = 0
    while n > 0:
        n -= 1
        steps += 1
    return steps


def untested(n):
    return n * 2
'''
TESTS = """
from sums import count_down, spread
import pytest


def test_spread():
    assert spread(2, 5) == 3
    with pytest.raises(ValueError):
        spread(2, 1)


def test_count_down():
    assert count_down(3) == 3
"""


@pytest.fixture
def mutants(tmp_path, monkeypatch):
    pytest.importorskip("mutmut", reason="mutmut makes the changes")
    spec = importlib.util.spec_from_file_location("mutants", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", module)  # where its dataclasses look
    spec.loader.exec_module(module)
    files = {
        "sums.py": SUMS,
        "test_sums.py": TESTS,
        "pyproject.toml": '[tool.mutmut]\nsource_paths = ["sums.py"]\n',
    }
    for name, words in files.items():
        (tmp_path / name).write_text(words)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SUITES", {"sums": ("sums.py", ["test_sums.py"])})
    monkeypatch.setattr(module, "_LEAST", 1.0)
    return module


def call(module, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["mutants.py", *words])
    return module.main()


def test_survivors_are_told_and_those_that_were_read_are_counted_apart(
    mutants, monkeypatch, tmp_path, capsys
):
    kept = "untested: return n {* -> /} 2"
    monkeypatch.setattr(mutants, "APART", {"sums.py": {kept: "as an example"}})
    words = ["--each", "0", "--bar", "0.8", "--json", "table.json", "--workers", "1"]
    assert call(mutants, monkeypatch, *words) == 0
    told = json.loads((tmp_path / "table.json").read_text())["sums"]
    # An empty spread is not tested, and neither is the last function.
    assert sorted(told["survivors"]) == [
        "spread: if high <{ -> =} low:",
        "untested: return n * {2 -> 3}",
    ]
    assert told["noticed"] == told["of"] - 2
    assert (told["apart"], told["left"]) == (1, 0)
    shown = capsys.readouterr().out
    assert "sums" in shown
    assert "untested: return n * {2 -> 3}" in shown
    assert kept not in shown


def test_operators_comparisons_and_constants_change_and_texts_do_not(mutants):
    every, _ = mutants.mutants_of("sums.py", SUMS)
    texts = [mutant.text for mutant in every]
    assert "spread: return high {- -> +} low" in texts
    assert "count_down: n {- -> +}= 1" in texts
    assert not [text for text in texts if "None" in text or "is under" in text]
    assert len(set(texts)) == len(texts)


def test_an_entry_whose_line_was_changed_since_is_named(mutants, monkeypatch, capsys):
    old = "spread: return high {* -> /} low"
    monkeypatch.setattr(mutants, "APART", {"sums.py": {old: "as it was"}})
    assert call(mutants, monkeypatch, "--each", "1", "--bar", "0", "--workers", "1") == 1
    assert f"no longer there: {old}" in capsys.readouterr().out


def test_time_is_up(mutants, monkeypatch, capsys):
    start = time.monotonic()
    assert call(mutants, monkeypatch, "--minutes", "0") == 1
    assert "the time was up" in capsys.readouterr().out
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("def test_wrong():\n    assert not 1\n", r"test_sums.py::test_wrong fails"),
        ("import nothing_of_this_name\n", "nothing_of_this_name"),
    ],
)
def test_tests_that_fail_without_a_change_are_said_to(mutants, monkeypatch, tmp_path, tests, said):
    (tmp_path / "test_sums.py").write_text(tests)
    with pytest.raises(SystemExit, match=said):
        call(mutants, monkeypatch, "--workers", "1")
