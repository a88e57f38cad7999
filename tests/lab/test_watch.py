"""The watch over measures that must not fall."""

import json

import pytest

from lab import watch as _watch
from lab.cells import expand
from lab.files import load
from lab.results import Results
from limi.errors import CorruptStore, InvalidInput
from tests.lab.small import outcome


def test_the_watch_fails_where_a_measure_falls_too_far():
    margins = {"per_thousand_queries": 0.1, "atn": 0.02}
    now = Results(
        "watch",
        "small",
        {
            "a/limi/0": outcome("a/limi/0", per_thousand_queries=91.0, atn=0.70),
            "a/new/0": outcome("a/new/0", per_thousand_queries=5.0),
        },
    )
    before = {
        "a/limi/0": {"per_thousand_queries": 100.0, "atn": 0.80},
        "a/gone/0": {"atn": 0.5},
    }
    watched = {(w.cell, w.measure): w for w in _watch.compare(now, before, margins)}
    assert watched["a/limi/0", "per_thousand_queries"].ok
    assert not watched["a/limi/0", "atn"].ok
    assert "FELL by more than 2%" in str(watched["a/limi/0", "atn"])
    assert not watched["a/gone/0", "atn"].ok
    assert watched["a/new/0", "per_thousand_queries"].ok
    assert "nothing to compare with" in str(watched["a/new/0", "per_thousand_queries"])


def test_the_watch_has_a_baseline_for_its_cells():
    known = json.loads(_watch.baseline_file().read_text("utf-8"))
    assert set(known) == {c.name for c in expand(load("watch"), "small")}
    assert all(set(measures) == set(load("watch").margins) for measures in known.values())


def test_a_missing_baseline_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="no baseline"):
        _watch.watch(tmp_path / "none.json")


@pytest.mark.parametrize("content", ["[]", '{"a": 3}', '{"a": {"findings": "x"}}', "[" * 100_000])
def test_a_damaged_baseline_is_said_before_the_watch(tmp_path, content):
    (tmp_path / "watch.json").write_text(content)
    with pytest.raises(CorruptStore, match="the baseline"):
        _watch.watch(tmp_path / "watch.json")
