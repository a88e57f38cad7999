"""A killed run goes on where it stopped, and finds the same; damage is said as damage."""

import errno
import os
import struct
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import CorruptStore, FailedWrite
from limi.methods.themis import Themis
from limi.search import answer_log
from limi.search.answer_log import AnswerLog, hash_rows, looks_like_one
from limi.search.budget import Budget
from limi.search.engine import run
from limi.system import writing
from tests.toy import Linear, schema_of, task

WIDE = schema_of((0, 99), (0, 99), (0, 9), (1, 5), protected=["x3"])
WIDE_MODEL = Linear((0.03, -0.05, 0.1, 0.4), 0.195)


class Killed(BaseException):
    pass


def search(path, score, max_batch=3000):
    with writing.lock(path) as log:
        journal = AnswerLog(log, score)
        here = task(WIDE, WIDE_MODEL, np.zeros((1, 4)), max_batch=max_batch)
        here = replace(here, score=journal.score)
        return run(Themis(), here, Budget(max_rows=20_000), 5), journal


def dying(after):
    calls = []

    def score(rows):
        calls.append(len(rows))
        if len(calls) > after:
            raise Killed
        return WIDE_MODEL(rows)

    return score


@pytest.mark.parametrize("cut", [0, 5, 100])
@pytest.mark.parametrize("sizes", [(3000, 3000, 3000), (3000, 700, 100_000)])
def test_a_resumed_run_equals_one_that_was_never_killed(tmp_path, cut, sizes):
    """In batches of any size, for they follow the speed of the model."""
    whole, _ = search(tmp_path / "whole", WIDE_MODEL)
    path = tmp_path / "journal"
    for after, size in zip((3, 6), sizes[:2], strict=True):
        with pytest.raises(Killed):
            search(path, dying(after), size)
    if cut:  # a kill may cut the last record short
        path.write_bytes(path.read_bytes()[:-cut])
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return WIDE_MODEL(rows)

    resumed, journal = search(path, counting, sizes[2])
    assert journal.replayed > 0
    assert journal.asked_again == min(256, journal.replayed)
    assert journal.replayed + sum(asked) == whole.queries + journal.asked_again
    assert ["cut short" in note for note in journal.notes] == ([True] if cut else []) + [False]
    assert f"{journal.replayed:,} answers" in journal.notes[-1]
    said = f"{journal.asked_again:,} queries outside the budget, found the same"
    assert said in journal.notes[-1]
    np.testing.assert_array_equal(resumed.findings.all().rows, whole.findings.all().rows)
    np.testing.assert_array_equal(resumed.findings.all().score, whole.findings.all().score)


# -- damage ---------------------------------------------------------------------------------

PEOPLE = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])
ANSWERS = np.array([0.2, 0.4, 0.9])
HEAD, RECORD = 12, 12 + 16 * 3 + 4


def answered(rows):
    """A model that knows three people."""
    return ANSWERS[(rows[:, 0] // 3).astype(int)]


def logged(path, n=3):
    """A journal of the same question n times."""
    with writing.lock(path) as log:
        journal = AnswerLog(log, answered)
        for _ in range(n):
            journal.score(PEOPLE)
    assert path.stat().st_size == n * RECORD
    return path


def replayed(path, n=3, score=answered, rows=PEOPLE):
    with writing.lock(path) as log:
        journal = AnswerLog(log, score)
        return journal, [journal.score(rows) for _ in range(n)]


def forged(scores):
    """A whole record with right checksums and wrong scores."""
    head = struct.pack("<4sI", b"LJ02", len(scores))
    body = hash_rows(PEOPLE).tobytes() + np.asarray(scores, dtype="<f8").tobytes()
    sums = zlib.crc32(head), zlib.crc32(body, zlib.crc32(head))
    return head + struct.pack("<I", sums[0]) + body + struct.pack("<I", sums[1])


class PlainLog:
    """What the model has said of each row, in order, and which answers are held: an oracle."""

    def __init__(self, asked, said):
        self.left = {}
        for row, score in zip(asked.tolist(), said, strict=True):
            self.left.setdefault(tuple(row), []).append(score)

    def score(self, rows):
        return [self.left[tuple(row)].pop(0) for row in rows.tolist()]


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_log_larger_than_what_is_held_is_replayed_in_parts(data):
    """In other batches, in almost the same order, and with answers that nobody wants."""
    seed, part = data.draw(st.integers(0, 2**31)), data.draw(st.integers(1, 40))
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, data.draw(st.sampled_from([5, 10**6])), size=(900, 2)).astype(float)
    said = rng.random(len(rows))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_log, "_PART", part)
        path = Path(folder) / "j"
        with writing.lock(path) as log:
            journal = AnswerLog(log, lambda some: pytest.fail("nothing is asked"))
            for batch in np.array_split(np.arange(len(rows)), data.draw(st.integers(1, 60))):
                journal.add(hash_rows(rows[batch]), said[batch])
        size = path.stat().st_size
        # Workers bring parts of a search out of order, but not by far.
        order = np.argsort(np.arange(len(rows)) // part + rng.random(len(rows)) * 2, kind="stable")
        order = order[rng.random(len(rows)) < 0.9] if len(np.unique(rows)) > 10 else order
        oracle = PlainLog(rows, said)
        with writing.lock(path) as log:
            journal = AnswerLog(log, lambda some: pytest.fail("nothing is asked"))
            journal._sample = journal._sample[:0]
            for batch in np.array_split(order, data.draw(st.integers(1, 60))):
                np.testing.assert_array_equal(journal.score(rows[batch]), oracle.score(rows[batch]))
                assert len(journal._known._parts) <= answer_log._MOST_PARTS
        assert path.stat().st_size == size


def test_what_is_no_longer_held_is_asked_again(tmp_path, monkeypatch):
    """Answers that the search did not want when others far behind them were given."""
    monkeypatch.setattr(answer_log, "_PART", 2)
    pairs = np.arange(400.0).reshape(100, 2, 2)
    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, lambda some: some[:, 0] / 1000)
        for pair in pairs:
            journal.score(pair)
    asked = []

    def watching(some):
        asked.extend(some[:, 0])
        return some[:, 0] / 1000

    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, watching)
        journal._sample = journal._sample[:0]
        for _, wanted in pairs:
            assert journal.score(wanted[None]) == wanted[0] / 1000
        assert (asked, journal.replayed) == ([], 100)
        journal.score(pairs[[0, -1], 0])
    assert asked == [0.0]


def test_answers_are_found_by_their_rows(tmp_path):
    """In any order and any batch; a row that is not in the log is asked and logged."""
    path = logged(tmp_path / "j", 1)
    asked = []

    def watching(rows):
        asked.append(rows.tolist())
        return np.full(len(rows), 0.7)

    other = np.array([[9.0, 9.0, 9.0]])
    with writing.lock(path) as log:
        journal = AnswerLog(log, watching)
        journal._sample = journal._sample[:0]
        mixed = journal.score(np.concatenate([PEOPLE[2:], other, PEOPLE[:1]]))
        np.testing.assert_array_equal(mixed, [0.9, 0.7, 0.2])
        np.testing.assert_array_equal(journal.score(PEOPLE[1:2]), [0.4])
        assert (asked, journal.replayed) == ([other.tolist()], 3)
        np.testing.assert_array_equal(journal.score(PEOPLE[1:2]), [0.7])
    assert replayed(path, 1, rows=other, score=watching)[1][0].tolist() == [0.7]


def test_a_row_that_was_asked_often_gets_its_answers_in_their_order(tmp_path):
    answers = iter(np.linspace(0, 1, 12))
    rows = PEOPLE[[0, 1, 0, 0]]
    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, lambda rows: np.array([next(answers) for _ in rows]))
        known = np.concatenate([journal.score(rows), journal.score(PEOPLE[:2])])
    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, lambda rows: np.full(len(rows), 0.123))
        journal._sample = journal._sample[:0]
        parts = [rows[:1], rows[1:3], np.concatenate([rows[3:], PEOPLE[:2]]), PEOPLE[:1]]
        again = np.concatenate([journal.score(part) for part in parts])
    np.testing.assert_array_equal(again, [*known, 0.123])


@pytest.mark.parametrize("at", range(RECORD))
@pytest.mark.parametrize("record", [0, 2])
def test_at_any_changed_byte_the_log_is_cut_and_that_is_said(tmp_path, at, record):
    path = logged(tmp_path / "j")
    whole = path.read_bytes()
    data = bytearray(whole)
    data[record * RECORD + at] ^= 0x10
    path.write_bytes(data)
    journal, scores = replayed(path)
    assert journal.replayed == 3 * record
    assert f"damaged at record {record + 1} (its " in journal.notes[0]
    assert f"last {(3 - record) * RECORD} bytes" in journal.notes[0]
    np.testing.assert_array_equal(scores, [ANSWERS] * 3)
    assert path.read_bytes() == whole


def test_a_whole_log_has_nothing_to_say_of_damage(tmp_path):
    assert replayed(tmp_path / "new")[0].notes == []
    assert "damaged" not in " ".join(replayed(logged(tmp_path / "j"))[0].notes)


@pytest.mark.parametrize("left", range(2 * RECORD + 1, 3 * RECORD))
def test_a_last_record_that_was_cut_short_is_asked_again(tmp_path, left):
    path = logged(tmp_path / "j")
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    journal, scores = replayed(path)
    assert journal.replayed == 6
    assert "damaged at record 3 (it was cut short, as by a kill)" in journal.notes[0]
    assert f"last {left - 2 * RECORD} bytes" in journal.notes[0]
    np.testing.assert_array_equal(scores, [ANSWERS] * 3)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf, -0.1, 1.1, -1e-300])
def test_scores_that_no_model_gives_are_refused(tmp_path, score):
    (tmp_path / "j").write_bytes(forged([0.2, score, 0.9]))
    with pytest.raises(CorruptStore, match=r"that are not numbers in \[0, 1\]"):
        replayed(tmp_path / "j", 1)


def test_scores_that_the_model_does_not_give_are_told_by_asking_again(tmp_path):
    (tmp_path / "j").write_bytes(forged([0.2, 0.1, 0.9]))
    with pytest.raises(
        CorruptStore, match=r"the model says 0\.4, but the log says 0\.1; start again"
    ):
        replayed(tmp_path / "j", 1)
    # Another batch may move the last digits.
    (tmp_path / "j").write_bytes(forged([0.2, 0.4 + 1e-9, 0.9]))
    assert replayed(tmp_path / "j", 1)[0].asked_again == 3


@pytest.mark.parametrize("kind", ["by chance", "by company"])
def test_a_model_whose_answers_move_can_be_resumed(tmp_path, kind):
    rng = np.random.default_rng(0)

    def moving(rows):
        noise = rng.random(len(rows)) if kind == "by chance" else np.linspace(0, 1, len(rows))
        return (answered(rows) + noise) / 2

    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, moving)
        known = [journal.score(PEOPLE) for _ in range(3)]
    # So that the sample does not hold every row, and a batch differs from the one that was asked.
    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, moving)
        journal._sample = journal._sample[1::2]
        again = [journal.score(PEOPLE) for _ in range(3)]
    np.testing.assert_array_equal(again, known)
    assert ("vary by themselves" in journal.notes[0]) == (kind == "by chance")


def test_the_sample_is_the_same_every_time_and_spread_over_the_log(tmp_path):
    rng = np.random.default_rng(1)
    batches = [rng.integers(0, 3, size=(n, 3)) * 3.0 for n in (1, 500, 3, 0, 2000, 1)]
    with writing.lock(tmp_path / "j") as log:
        journal = AnswerLog(log, answered)
        for rows in batches:
            journal.score(rows)
    seen = []
    for _ in range(2):
        asked = []

        def watching(rows, asked=asked):
            asked.append(rows)
            return answered(rows)

        with writing.lock(tmp_path / "j") as log:
            journal = AnswerLog(log, watching)
            for rows in batches:
                journal.score(rows)
        seen.append(asked)
        assert journal.asked_again == sum(map(len, asked)) == 256
    for first, second in zip(*seen, strict=True):
        np.testing.assert_array_equal(first, second)
    assert sorted(map(len, seen[0]))[-1] < 256


def test_a_log_without_checksums_is_refused(tmp_path):
    old = struct.pack("<4sII", b"LJ01", 3, 0) + ANSWERS.tobytes()
    (tmp_path / "j").write_bytes(old)
    with pytest.raises(CorruptStore, match="begun by an earlier limi"):
        replayed(tmp_path / "j", 1)
    assert looks_like_one(tmp_path / "j")


@pytest.mark.parametrize(("start", "is_one"), [(b"", True), (b"LJ", True), (b"PK\3\4", False)])
def test_a_journal_is_told_by_its_start(tmp_path, start, is_one):
    (tmp_path / "j").write_bytes(start)
    assert looks_like_one(tmp_path / "j") is is_one


def test_a_count_that_nobody_could_read_takes_no_memory(tmp_path):
    path = logged(tmp_path / "j", 1)
    head = struct.pack("<4sI", b"LJ02", 0xFFFFFFFF)
    path.write_bytes(path.read_bytes() + head + struct.pack("<I", zlib.crc32(head)))
    journal, _ = replayed(path, 1)
    assert journal.replayed == 3


def test_a_full_disk_leaves_whole_records(tmp_path, monkeypatch):
    write = os.write

    def full(fd, data):
        write(fd, bytes(data[:7]))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = logged(tmp_path / "j", 1)
    with writing.lock(path) as log:
        journal = AnswerLog(log, answered)
        journal.score(PEOPLE)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(
                FailedWrite, match=r"answers of the model .*No space left.*--resume"
            ):
                journal.score(PEOPLE)
        assert path.stat().st_size == RECORD
        journal.score(PEOPLE)
    assert path.stat().st_size == 2 * RECORD
