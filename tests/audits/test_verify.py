"""The second check of findings, where the model moves and time is short."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from limi.audits import verify
from limi.decisions import AS_DECIDED
from limi.search.findings import Findings
from limi.search.steadiness import TIMES, Steadiness
from limi.system.watch import Watch
from tests.toy import MODEL, SCHEMA, grid, task

PER_FINDING = 2 * (1 + TIMES)  # once as every finding, then ten times


class Slow:
    """A second for each row; the decision of every third person moves after the first time."""

    rule = AS_DECIDED
    model = None
    anew = staticmethod(nullcontext)

    def __init__(self):
        self.now, self.asked = 0.0, {}

    def score(self, rows):
        self.now += len(rows)
        scores = MODEL.score(rows)
        for place, row in enumerate(rows):
            times = self.asked[tuple(row)] = self.asked.get(tuple(row), 0) + 1
            if times > 1 and (row[0] + row[1]) % 3 == 0:
                scores[place] = 0.9
        return scores

    decides = False


def checked_again(seconds, monkeypatch, at_once=2):
    from limi.search.session import Session

    monkeypatch.setattr(verify, "_CONFIRMED_AT_ONCE", at_once)
    model, ledger = Slow(), Findings(SCHEMA)
    ledger.add(Session(task()).check(grid(SCHEMA)), 0.0)
    problem = SimpleNamespace(target=model, rows=grid(SCHEMA))
    watch = Watch(lambda: model.now, seconds)
    plan = SimpleNamespace(
        problem=problem, watch=watch, seed=0, max_batch=4, spread=None, early=None
    )
    moving = Steadiness(rows=9, questions=36, again=1, scores_moved=1, decisions_moved=1)
    searched = SimpleNamespace(run=SimpleNamespace(findings=ledger), steadiness=moving)
    return verify.verify(plan, searched), len(ledger), model


def test_with_time_enough_what_moves_is_dropped_and_the_rest_kept(monkeypatch):
    (found, dropped), n, _ = checked_again(None, monkeypatch)
    steady = (found.rows[:, 0] + found.rows[:, 1]) % 3 != 0
    assert steady.all()
    assert 0 < len(found) < n
    assert dropped.moved == n - len(found)
    assert dropped.unasked == 0


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_where_time_runs_out_what_was_confirmed_is_kept(share, monkeypatch):
    everything, n, _ = checked_again(None, monkeypatch)
    seconds = 2 * n + share * (n * PER_FINDING - 2 * n)
    (found, dropped), _, model = checked_again(seconds, monkeypatch)
    assert model.now <= seconds + 4
    assert 0 < len(found) <= len(everything[0])
    assert dropped.unasked > 0
    # Each finding is kept, or moved, or was not asked: one of them.
    assert len(found) + dropped.moved + dropped.rounded + dropped.unasked == n
    expected = {tuple(row) for row in everything[0].rows}
    assert {tuple(row) for row in found.rows} <= expected
    assert np.all((found.rows[:, 0] + found.rows[:, 1]) % 3 != 0)
