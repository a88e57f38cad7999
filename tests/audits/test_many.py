"""Runs of more findings than memory should hold: all are checked and written, a sample is shown."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import limi
from limi.search import findings as ledger


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, 800),
            "sex": rng.choice(["F", "M"], 800),
            "race": rng.choice(list("abc"), 800),
            "debt": rng.normal(0, 2, 800).round(1),
            "ok": rng.choice(["yes", "no"], 800),
        }
    )


def approve(frame):
    lead = (frame["age"] - 40) / 10 - frame["debt"] + (frame["sex"] == "M") - (frame["race"] == "b")
    return 1 / (1 + np.exp(-lead.to_numpy(dtype=float) - 0.0123))


def audit(table, out, **more):
    given = {"protected": ["sex", "race"], "target": "ok", "favorable": "yes", "method": "themis"}
    given |= {"max_rows": 1_500, "rate_rows": 300, "out": out} | more
    return limi.audit(approve, table, **given)


@pytest.fixture(scope="module")
def both(table, tmp_path_factory):
    """The same run in memory and on disk."""
    place = tmp_path_factory.mktemp("runs")
    whole = audit(table, place / "whole")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger, "MOST_IN_MEMORY", 100)
        patched.setattr(ledger, "_AT_ONCE", 64)
        patched.setattr("limi.table.rows.MOST_IN_MEMORY", 50)
        spilled = audit(table, place / "spilled")
    return whole, spilled, place


def test_all_findings_are_checked_and_written_in_row_groups(both):
    whole, _, place = both
    expected = pd.read_parquet(place / "whole" / "findings.parquet")
    assert len(expected) == whole.summary.findings > 200
    pd.testing.assert_frame_equal(pd.read_parquet(place / "spilled" / "findings.parquet"), expected)
    groups = pq.ParquetFile(place / "spilled" / "findings.parquet").metadata.num_row_groups
    assert groups == -(-len(expected) // 64)
    assert pq.ParquetFile(place / "whole" / "findings.parquet").metadata.num_row_groups == 1


def test_counts_are_of_all_and_the_rest_of_a_stated_sample(both):
    whole, spilled, place = both
    assert len(spilled.found) == 100
    pd.testing.assert_frame_equal(spilled.findings, whole.findings)
    one, other = whole.summary, spilled.summary
    for name in ("findings", "rates", "queries", "rows_checked", "favorable_findings"):
        assert getattr(one, name) == getattr(other, name)
    assert one.favorable_findings
    assert one.real_people == other.real_people
    counted = [s.metrics["effectiveness"]["findings"] for s in (one, other)]
    assert counted[0] == counted[1]
    note = f"there are {other.findings:,} findings, more than fit in memory"
    assert any(note in told and "come from 100 drawn at random" in told for told in other.notes)
    assert note in (place / "spilled" / "report.html").read_text()
    assert note not in json.dumps(one.as_dict())
    assert set(map(tuple, spilled.found.rows)) < set(map(tuple, whole.found.rows))


class Turning:
    """A model that answers otherwise once findings are asked again."""

    phase = ""

    def __call__(self, frame):
        scores = approve(frame)
        is_late = self.phase == "second_check"
        return np.where(is_late & (frame["age"].to_numpy() % 3 == 0), 0.9, scores)


def test_answers_that_move_are_confirmed_as_in_memory(table, monkeypatch):
    """What is on disk is then taken up as a whole."""
    runs = []
    for most in (10**6, 20):
        monkeypatch.setattr(ledger, "MOST_IN_MEMORY", most)
        model = Turning()
        result = limi.audit(
            model,
            table.drop(columns="ok"),
            protected=["sex"],
            method="themis",
            output="score",
            max_rows=400,
            rate_rows=0,
            generator=None,
            on_progress=lambda progress, model=model: setattr(model, "phase", progress.phase),
        )
        runs.append(result)
    one, other = runs
    assert 0 < one.summary.findings == other.summary.findings
    pd.testing.assert_frame_equal(one.findings, other.findings)
    for run in runs:
        assert "not when findings were asked about again" in " ".join(run.summary.notes)
