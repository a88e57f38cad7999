"""The CI examples of the documentation: their commands are run in a small project."""

import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limi.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
LINE = re.compile(r"^\s*- (?:run: )?(limi .*)$", re.MULTILINE)
COMMANDS = [
    command
    for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for command in LINE.findall(block)
]


def test_every_example_runs_a_gate():
    assert len(COMMANDS) == 2
    assert all(command.startswith("limi gate ") for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("name", "code"), [("fair", 0), ("unfair", 1)])
def test_the_commands_of_the_examples_answer_by_their_exit_codes(
    command, name, code, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    pd.DataFrame(
        {"age": np.arange(400) % 60 + 18, "sex": ["f", "m"] * 200, "ok": [0, 1] * 200}
    ).to_csv("people.csv", index=False)
    Path("model.py").write_text(
        "def fair(frame):\n    return (frame['age'] > 40) * 0.6 + 0.2\n"
        "def unfair(frame):\n    return (frame['sex'] == 'm') * 0.6 + 0.2\n"
    )
    Path("limi.toml").write_text(
        f'table = "people.csv"\nmodel = "python:model.py:{name}"\ntarget = "ok"\nfavorable = 1\n'
        'protected = "sex"\ngenerator = "none"\n[gate]\nreal_rate = "<= 3 %"\n'
    )
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == code
    words = shlex.split(command)
    written = {value for option, value in pairwise(words) if option[:2] == "--"}
    assert all(Path(path).stat().st_size for path in written)
    assert "Fairness gate" in Path("summary.md").read_text()
