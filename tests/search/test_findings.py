"""The ledger: the same findings in the same order, in memory or on disk."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest

from limi.errors import FailedWrite
from limi.methods import parse
from limi.search import findings as ledger
from limi.search.budget import Budget
from limi.search.check import Checked
from limi.search.engine import run
from limi.search.findings import Findings, Found, Spool
from limi.table.sketches import row_ranks
from tests.toy import WIDE, Rounding, schema_of, wide_task

SCHEMA = schema_of((0, 5), (0, 5), (0, 5), (0, 5), protected=["x3"])


def assert_same(one, other):
    for field in fields(Found):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def batches(seed=0, n=40):
    """Batches of rows, of which many repeat a key and some flip."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        rows = rng.integers(0, 6, (rng.integers(0, 60), 4)).astype(float)
        score, other = rng.random((2, len(rows)))
        yield Checked(
            rows,
            score,
            rows[:, ::-1].copy(),
            other,
            rng.random(len(rows)) < 0.4,
            origin=f"part {number}",
            bits=rng.integers(0, 256, (len(rows), 1)).astype(np.uint8),
        )


def filled(most_in_memory=None, most=None):
    schema = SCHEMA
    found = Findings(schema, most_in_memory=most_in_memory)
    counts = [found.add(batch, float(place), most=most) for place, batch in enumerate(batches())]
    return found, counts


@pytest.mark.parametrize("limit", [0, 1, 17, 100])
@pytest.mark.parametrize("most", [None, 3])
def test_a_ledger_on_disk_holds_what_one_in_memory_does(monkeypatch, limit, most):
    monkeypatch.setattr(ledger, "_AT_ONCE", 16)
    monkeypatch.setattr("limi.table.rows.MOST_IN_MEMORY", 10)
    plain, counts = filled(10**6, most)
    on_disk, same_counts = filled(limit, most)
    assert on_disk.is_spilled
    assert not plain.is_spilled
    assert (counts, len(plain)) == (same_counts, len(on_disk))
    assert_same(plain.all(), on_disk.all())
    parts = list(on_disk.parts())
    assert {len(part) for part in parts[:-1]} == {16}
    assert_same(plain.all(), ledger._join(parts))
    assert_same(plain.all(), ledger._join(list(plain.parts())))


def test_a_disk_that_is_full_is_told_when_findings_are_wanted(monkeypatch):
    def refuse(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("limi.system.writing.append", refuse)
    spool = ledger.Spool()
    spool.append(filled()[0].all())
    with pytest.raises(FailedWrite, match="No space left"):
        list(spool.pieces())


def test_a_batch_without_bits_takes_those_of_all(monkeypatch):
    monkeypatch.setattr(ledger, "_AT_ONCE", 16)
    found = Findings(SCHEMA, most_in_memory=20)
    for place, batch in enumerate(batches()):
        bare = place == 20
        found.add(
            Checked(
                batch.rows,
                batch.score,
                batch.partner,
                batch.partner_score,
                batch.flips,
                bits=batch.bits[:0, :0] if bare else batch.bits,
            )
        )
    assert all(len(part.bits) == 0 for part in found.parts())
    assert len(found.all().bits) == 0


def test_a_sample_is_fair_and_in_order(monkeypatch):
    monkeypatch.setattr(ledger, "_AT_ONCE", 16)
    every = filled()[0].all()
    spool = Spool()
    spool.append(every[:50])
    spool.append(every[50:])
    assert len(spool) == len(every)
    chosen = np.sort(np.argsort(row_ranks(0, len(every)))[:30])
    assert_same(spool.sample(30), every[chosen])
    assert_same(spool.sample(10**6), every)


def test_a_sample_of_many_takes_little_memory(monkeypatch):
    """The ranks of all findings at once would take 32 MB here, and more to be sorted."""
    spool = Spool()
    spool._n = 4_000_000
    tracemalloc.start()
    monkeypatch.setattr(Spool, "pieces", lambda self: iter(()))
    monkeypatch.setattr(ledger, "_join", len)
    assert spool.sample(1000) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


@pytest.mark.parametrize("method", ["limi", "themis", "natural", "real"])
def test_a_search_finds_the_same_whatever_the_limit(monkeypatch, method):
    made = wide_task(generator=Rounding(WIDE))
    budget = Budget(max_rows=1_500)
    whole = run(parse(method), made, budget, 3)
    monkeypatch.setattr(ledger, "MOST_IN_MEMORY", 7)
    monkeypatch.setattr("limi.table.rows.MOST_IN_MEMORY", 11)
    spilled = run(parse(method), made, budget, 3)
    assert spilled.findings.is_spilled
    one, other = whole.findings.all(), spilled.findings.all()
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.score, other.score)
    assert [n for _, n in whole.curve] == [n for _, n in spilled.curve]
