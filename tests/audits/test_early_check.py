"""The second check that begins while a search goes on."""

import numpy as np
import pytest

from limi.audits import early_check, verify
from limi.audits.early_check import EarlyCheck
from limi.decisions import AS_DECIDED
from limi.errors import BadModel
from limi.search.findings import Findings
from limi.search.session import Session
from limi.system.watch import Watch
from tests.toy import MODEL, SCHEMA, grid, task


class Noting:
    """A target that keeps what it was asked, and whose scores depend on the rows beside them."""

    rule = AS_DECIDED

    def __init__(self, stretch=0, fails=False):
        self.model = type("Model", (), {"stretch": stretch})()
        self.asked, self.fails = [], fails

    def score(self, rows):
        if self.fails:
            raise BadModel("the model raised ValueError: no")
        self.asked.append(rows)
        return MODEL.score(rows) + len(rows) * 1e-12

    decides = False


@pytest.fixture
def found(monkeypatch):
    for module in (early_check, verify):
        monkeypatch.setattr(module, "BLOCK", 4)
    ledger = Findings(SCHEMA)
    ledger.add(Session(task()).check(grid(SCHEMA)))
    whole = ledger.all()
    assert len(whole) == 9
    return whole


def offered(target, found, cuts):
    with EarlyCheck(target) as early:
        for part in np.split(np.arange(len(found)), cuts):
            early.offer(found[part])
        watch = Watch()
        return (*verify.ask_again(target, found, watch, early=early), watch)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [4, 8], [3, 9]])
@pytest.mark.parametrize("stretch", [0, 2, 3])
def test_answers_and_counts_are_those_of_a_check_that_follows(found, cuts, stretch, monkeypatch):
    monkeypatch.setattr(early_check, "_BLOCKS_AT_ONCE", 2)
    later = Noting(stretch)
    watch = Watch()
    expected, flips = verify.ask_again(later, found, watch)
    mine = Noting(stretch)
    again, same_flips, counted = offered(mine, found, cuts)
    np.testing.assert_array_equal(again.score, expected.score)
    np.testing.assert_array_equal(again.partner_score, expected.partner_score)
    np.testing.assert_array_equal(same_flips, flips)
    assert counted.questions == watch.questions == 2 * len(found)
    assert [len(rows) for rows in mine.asked] == [len(rows) for rows in later.asked]
    assert max(map(len, mine.asked)) == (8 if stretch == 2 else 4)


def test_a_model_that_fails_is_told_when_its_answers_are_wanted(found):
    with pytest.raises(BadModel, match="ValueError: no"):
        offered(Noting(fails=True), found, [])


def test_past_a_number_of_findings_the_rest_is_asked_afterwards(found, monkeypatch):
    monkeypatch.setattr(early_check, "_MOST_KEPT", 4)
    monkeypatch.setattr(early_check, "_MOST_WAITING", 1)
    target = Noting()
    with EarlyCheck(target) as early:
        for place in range(len(found)):
            early.offer(found[place : place + 1])
    assert sum(map(len, target.asked)) <= 2 * 4
    again, _, _ = offered(target, found, list(range(len(found))))
    assert len(again) == len(found)


def test_parts_of_another_size_are_not_taken_for_blocks(found):
    with EarlyCheck(Noting()) as early:
        early.offer(found)
        assert early.take(0, 3) is None
        assert early.take(2, 4) is None
        assert len(early.take(4, 4).score) == 4
