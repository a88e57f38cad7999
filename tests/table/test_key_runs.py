"""Sets of keys on disk: the same answers as in memory, whatever the limit."""

import errno
import os
import tempfile

import numpy as np
import pytest

from limi.errors import FailedWrite
from limi.system import scratch
from limi.table import key_runs
from limi.table.rows import KeySet


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("most", [0, 1, 100, 1_000])
def test_a_set_on_disk_answers_as_one_in_memory(monkeypatch, width, most):
    monkeypatch.setattr(key_runs, "_MERGED_AT_ONCE", 37)
    monkeypatch.setattr(key_runs, "_ASKED_AT_ONCE", 64)
    rng = np.random.default_rng(width)
    known, on_disk, plain = set(), KeySet(most), KeySet()
    for size in (1, 3, 700, 20, 2_000, 5, 900, 1):
        keys = rng.integers(0, 4_000 if width == 1 else 70, (size, width)).astype(np.uint64)
        keys[: size // 9] *= np.uint64(2**63 - 25)
        expected = np.array([tuple(key) in known for key in keys.tolist()])
        np.testing.assert_array_equal(on_disk.contains(keys), expected)
        np.testing.assert_array_equal(plain.contains(keys), expected)
        new = np.unique(keys[~expected], axis=0)
        on_disk.add(new)
        plain.add(new)
        known |= set(map(tuple, new.tolist()))
        assert len(on_disk) == len(plain) == len(known)
    assert on_disk._on_disk is not None
    assert on_disk._n_in_memory <= most
    # Runs stay few, because each is asked every time.
    assert len(on_disk._on_disk._runs) <= 12


def test_keys_of_one_hash_are_told_apart_on_disk(monkeypatch):
    monkeypatch.setattr("limi.table.rows._hash", lambda keys: keys[:, 0] % np.uint64(3))
    known = KeySet(4)
    first = np.array([[n, n * n] for n in range(60)], dtype=np.uint64)
    for part in np.split(first, 12):
        known.add(part)
    assert known.contains(first).all()
    assert not known.contains(first + np.uint64(100)).any()
    assert not known.contains(first + np.array([0, 1], dtype=np.uint64)).any()


def test_an_array_on_disk_is_what_was_written():
    held = scratch.Scratch(np.int32, width=2)
    assert held.look().shape == (0, 2)
    rows = np.arange(20, dtype=np.int32).reshape(10, 2)
    held.append(rows[:3])
    before = held.look()
    held.append(rows[3:])
    np.testing.assert_array_equal(held.look(), rows)
    held.forget()
    np.testing.assert_array_equal(before, rows[:3])
    np.testing.assert_array_equal(held.look(), rows)


def test_a_full_disk_is_one_sentence(monkeypatch):
    held = scratch.Scratch(np.int32)

    def full(fd, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(FailedWrite, match=r"limi cannot write .*No space left.*TMPDIR"):
            held.append(np.arange(5, dtype=np.int32))
    held.append(np.arange(5, dtype=np.int32))
    assert held.look().tolist() == [0, 1, 2, 3, 4]

    def nowhere(*args, **given):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    with pytest.raises(FailedWrite, match="Read-only file system"):
        scratch.Scratch(np.int32)
