"""Threads of libraries: no more than there are free cores, unless the user has decided."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from limi.system import cores


def threads():
    return {library["num_threads"] for library in threadpool_info()}


@pytest.mark.parametrize(
    ("mine", "everywhere", "load", "expected"),
    [
        (8, 8, 0.0, 8),
        (8, 8, 0.4, 8),
        (8, 8, 5.0, 3),
        (2, 2, 13.0, 1),
        (2, 64, 30.0, 2),  # a container on a large machine
        (2, 64, 63.0, 1),
    ],
)
def test_threads_take_the_cores_that_others_leave(mine, everywhere, load, expected):
    assert cores.n_threads(mine, everywhere, load, {}) == expected
    assert cores.n_threads(mine, everywhere, load, {"OMP_NUM_THREADS": ""}) == expected


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_who_has_set_the_threads_is_left_alone(name):
    assert cores.n_threads(8, 8, 7.0, {name: "4"}) is None


def test_a_busy_machine_gets_one_thread_for_as_long_as_the_block_lasts(monkeypatch):
    np.ones((2, 2)) @ np.ones((2, 2))
    for name in cores._DECIDED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    before = threads()
    with cores.share_cores():
        assert threads() == {1}
    assert threads() == before
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with cores.share_cores():
        assert threads() == before


@pytest.mark.parametrize(
    ("written", "expected"),
    [("200000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", 64), ("", 64), ("-1 1", 64)],
)
def test_a_quota_of_a_container_counts(tmp_path, monkeypatch, written, expected):
    (tmp_path / "cpu.max").write_text(written, encoding="ascii")
    monkeypatch.setattr(cores, "_QUOTAS", ((tmp_path / "none",), (tmp_path / "cpu.max",)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)
    assert cores.n_cores() == expected


def test_a_quota_in_two_files_counts_too(tmp_path, monkeypatch):
    (tmp_path / "quota").write_text("300000\n", encoding="ascii")
    (tmp_path / "period").write_text("100000\n", encoding="ascii")
    monkeypatch.setattr(cores, "_QUOTAS", ((tmp_path / "quota", tmp_path / "period"),))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)
    assert cores.n_cores() == 3
