"""Workers of this machine: every job is done once in the end, and none outlives its crew."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from limi.errors import InvalidInput
from limi.workers import Crew, Failed, Killed, Local, Stuck, Trial, _crew, local
from limi.workers._open import count_workers

STARTS = ["fork", "anew"]


def squared(job):
    if job == 3:
        raise InvalidInput("three is no good")
    if job == 5:
        raise RuntimeError("five")
    if job == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return job * job


def killed_once(path):
    """Ends its own process the first time, as a system does that is short of memory."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(path).name


@pytest.mark.parametrize("start", STARTS)
def test_jobs_are_done_in_any_order_and_told_by_their_number(start, tmp_path):
    files = [str(tmp_path / name) for name in "ab"]
    with Crew(Local(2, start), squared) as crew:
        assert crew.in_order([1, 2, 4, 6]) == [1, 4, 16, 36]
        got = dict(crew.each([3, 5, 2]))
        assert isinstance(got[0].error, InvalidInput)
        assert str(got[1].error) == "five"
        assert got[1].where.startswith("test_local.py:")
        assert got[2] == 4
        with pytest.raises(InvalidInput, match="three is no good"):
            crew.in_order([3])
    with Crew(Local(2, start), killed_once) as crew:
        assert crew.in_order(files) == ["a", "b"]
        assert crew.again == 2


def test_a_job_that_kills_every_worker_fails_and_the_others_are_done():
    with Crew(Local(2), squared) as crew:
        got = dict(crew.each([1, 7, 2]))
    assert (got[0], got[2]) == (1, 4)
    assert isinstance(got[1].error, Killed)
    assert "exit code -9" in str(got[1].error)


def test_a_worker_that_was_killed_between_jobs_is_replaced():
    with Crew(Local(2), abs) as crew:
        assert crew.in_order([-1, -2]) == [1, 2]
        os.kill(crew._hands[0].pid, signal.SIGKILL)
        assert crew.in_order([-3, -4]) == [3, 4]
        assert crew.again == 1


def test_a_forked_worker_has_what_no_message_can_hold():
    lock = threading.Lock()  # cannot be pickled
    with Crew(Local(2), lambda job: (lock.locked(), job)) as crew:
        assert crew.in_order([1, 2]) == [(False, 1), (False, 2)]
    with (
        pytest.raises(InvalidInput, match=r"save it to a file .* or use --workers 1"),
        Crew(Local(2, "anew"), lambda job: lock) as crew,
    ):
        crew.in_order([1])


def test_workers_use_one_thread():
    def threads(job):
        from threadpoolctl import threadpool_info

        from limi.system.cores import n_cores

        return n_cores(), {pool["num_threads"] for pool in threadpool_info()}

    with Crew(Local(2), threads) as crew:
        assert crew.in_order([0]) == [(1, {1})]


def test_workers_end_with_their_crew_and_with_whoever_stops_listening():
    with Crew(Local(2), time.sleep) as crew:
        jobs = crew.each([0, 600])
        next(jobs)
        assert len(multiprocessing.active_children()) == 2
        jobs.close()
        assert crew.in_order([0, 0]) == [None, None]
    assert not multiprocessing.active_children()


PARENT = """
import sys, time
from limi.workers import Crew, Local
with Crew(Local(2, sys.argv[1]), time.sleep) as crew:
    crew.in_order([0.01, 0.01])
    print("working", flush=True)
    crew.in_order([600, 600])
"""


@pytest.mark.parametrize("start", STARTS)
def test_workers_end_with_a_parent_that_is_killed(tmp_path, start):
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "parent.py", start],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # which workers that are started anew share
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


def late(job):
    """Sleeps over a job that is a number of seconds."""
    if isinstance(job, float):
        time.sleep(job)
    return job


def test_a_job_that_nobody_answers_fails_as_stuck_and_the_others_are_done():
    with Crew(Local(2), late) as crew:
        got = dict(crew.each([1, 600.0, 2, 3], lambda job: 0.3))
        assert [got[n] for n in (0, 2, 3)] == [1, 2, 3]
        assert isinstance(got[1].error, Stuck)
        assert crew.again == 1
        told = [
            one for some in crew.in_turn([1, 600.0, 2], patience=lambda job: 0.3) for one in some
        ]
        assert (told[0], told[2]) == (1, 2)
        assert isinstance(told[1].error, Stuck)
        assert crew.in_order([4, 5]) == [4, 5]


def test_seconds_do_not_pass_while_nobody_looks(monkeypatch):
    """A computer that sleeps, or a process that was stopped, makes no worker late."""
    real = iter([0.0, 1.0, 4000.0, 4001.5])
    monkeypatch.setattr(_crew.time, "monotonic", lambda: next(real))
    clock = _crew._Clock()
    assert [clock.now() for _ in range(3)] == [1.0, 3.0, 4.5]


@pytest.mark.parametrize("start", STARTS)
def test_nobody_gets_a_job_before_its_trial_is_done(start, tmp_path):
    with Crew(Local(2, start), killed_once) as crew:
        crew.hire()
        crew.try_out(Trial(str(tmp_path / "a"), 0.001))  # one of the two does not survive
        assert crew.in_order([str(tmp_path / name) for name in "aaa"]) == ["a", "a", "a"]
    with Crew(Local(2, start), squared) as crew:
        crew.try_out(Trial(3, 0.001))  # what it fails of is told by the jobs
        assert crew.in_order([2, 4]) == [4, 16]


def held_up(path):
    """Waits for a file, as a worker of a cluster does for its node."""
    while not Path(path).exists():
        time.sleep(0.005)
    return path


def test_a_crew_is_ready_when_one_is_there_or_late(monkeypatch, tmp_path):
    mark = tmp_path / "mark"
    with Crew(Local(2), held_up) as crew:
        assert crew.is_ready  # nobody is hired yet, and whoever gives a job hires
        crew.hire()
        crew.try_out(Trial(str(mark), 0.0))
        assert not crew.is_ready
        with monkeypatch.context() as late:
            late.setattr(Local, "patience", lambda self, work: -1.0)
            assert crew.is_ready
        mark.touch()
        monkeypatch.setattr(_crew, "_ARRIVES_SECONDS", 60.0)
        assert crew.is_ready
        assert crew.in_order([str(mark)] * 3) == [str(mark)] * 3


def test_workers_that_do_not_do_their_trial_are_hired_in_another_way(monkeypatch):
    monkeypatch.setattr(local, "_FORKED_SECONDS", 0.3)
    monkeypatch.setattr(local, "_STARTED_SECONDS", 0.3)
    with Crew(Local(2), late) as crew:
        crew.try_out(Trial(2.5, 0.0))  # no fork is quick enough, and nothing else
        for ask in (lambda: crew.in_order([1]), lambda: list(crew.in_turn([1]))):
            with pytest.raises(Stuck, match="no worker was ready within 0 seconds"):
                ask()
        assert not crew._hands
    monkeypatch.setattr(local, "_STARTED_SECONDS", 60.0)
    with Crew(Local(2), late) as crew:
        crew.try_out(Trial(2.5, 0.0))
        assert crew.in_order([1, 2]) == [1, 2]
    lock = threading.Lock()  # cannot travel
    with Crew(Local(2), lambda job: late(job) or lock) as crew:
        crew.try_out(Trial(2.5, 0.0))
        with pytest.raises(Stuck, match="no worker was ready"):
            crew.in_order([1, 2])


def test_functions_of_a_script_travel(tmp_path):
    """Plain pickle would only name them, and nobody runs the script again."""
    (tmp_path / "script.py").write_text(
        "from limi.workers import Crew, Local\n"
        "def double(job): return 2 * job\n"
        "with Crew(Local(1, 'anew'), lambda job: double(job)) as crew:\n"
        "    print(crew.in_order([1, 2]))\n"
    )
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert told.stdout == "[2, 4]\n"


@pytest.mark.parametrize("given", ["0", "-1", 0, "many", "2.5", "5000", ""])
def test_a_number_of_workers_that_makes_no_sense_is_refused(given):
    with pytest.raises(InvalidInput, match="auto for one per core"):
        count_workers(given)


def test_auto_is_one_worker_for_each_core():
    assert count_workers("auto") == len(os.sched_getaffinity(0))
    assert (count_workers(None), count_workers("3"), count_workers(2)) == (1, 3, 2)


def test_a_failed_job_says_where():
    with Crew(Local(1), lambda job: [][job]) as crew:
        ((_, failed),) = crew.each([3])
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, IndexError)


def held(job):
    """Waits for a file, where it is given one."""
    while isinstance(job, Path) and not job.exists():
        time.sleep(0.001)
    return job


def test_jobs_of_a_listener_that_is_interrupted_twice_are_not_taken_for_others(
    monkeypatch, tmp_path
):
    def interrupted(turns):
        turns._ending = True
        turns._thread.join()  # so that nobody takes what comes late
        raise KeyboardInterrupt

    monkeypatch.setattr(_crew._Turns, "end", interrupted)
    with Crew(Local(2), held) as crew:
        listening = crew.in_turn([0, late := tmp_path / "late"])
        assert next(listening) == [0]
        with pytest.raises(KeyboardInterrupt):
            listening.close()
        late.touch()
        assert crew.in_order([1, 2, 3]) == [1, 2, 3]
