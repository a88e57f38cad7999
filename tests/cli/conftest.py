"""What the tests of commands share."""

import sys

import pytest

from limi.cli import main


@pytest.fixture
def limi(monkeypatch, capsys):
    """Call a command in this process: its exit code, standard output and standard error."""
    # These tests may themselves be run by a workflow.
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *words])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return call
