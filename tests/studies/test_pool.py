"""Worker processes: jobs fail alone, and no worker outlives the loop or its parent."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from limi.errors import InvalidInput
from limi.studies._pool import Failure, Pool


def squared(job):
    if job == 3:
        raise InvalidInput("three is no good")
    if job == 5:
        raise RuntimeError("five")
    if job == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return job * job


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_fail_alone(workers):
    jobs = [1, 2, 3, 4, 5, 6] if workers == 1 else [1, 2, 3, 4, 5, 6, 7, 8]
    with Pool(squared, workers) as pool:
        got = dict(pool.each(jobs))
        assert dict(pool.each([9])) == {9: 81}
    assert {job: got[job] for job in (1, 2, 4, 6)} == {1: 1, 2: 4, 4: 16, 6: 36}
    assert got[3] == Failure("three is no good", "InvalidInput")
    assert got[5].kind == "RuntimeError"
    assert "five" in got[5].why
    if workers == 2:
        assert got[7].kind == "Killed"
        assert got[8] == 64


def test_workers_end_with_the_loop_that_wants_them():
    with Pool(squared, 2) as pool:
        next(pool.each([1, 2, 4, 6]))
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()


def test_a_worker_that_ended_before_its_job_fails_that_job_alone():
    with Pool(abs, workers=2) as pool:
        assert sorted(result for _, result in pool.each([-1, -2])) == [1, 2]
        gone = pool._crew[0]
        os.kill(gone._process.pid, signal.SIGKILL)
        gone._process.join()
        results = dict(pool.each([-3, -4]))
    assert [one.kind for one in results.values() if isinstance(one, Failure)] == ["Killed"]
    assert len([one for one in results.values() if one in (3, 4)]) == 1


PARENT = """
import time
from limi.studies._pool import Pool
if __name__ == "__main__":
    with Pool(time.sleep, workers=2) as pool:
        jobs = pool.each([0.01, 0.01])
        next(jobs), next(jobs)
        print("working", flush=True)
        list(pool.each([600, 600]))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "working\n"
    parent.kill()
    parent.wait()
    # The workers hold the other end of this pipe until they end.
    closed, _, _ = select.select([parent.stdout], [], [], 60)
    assert closed
    assert parent.stdout.read() == ""
    parent.stdout.close()
