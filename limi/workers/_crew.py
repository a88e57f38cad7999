"""A crew: workers of one executor that do one kind of work, job after job."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from limi.errors import InvalidInput
from limi.workers._base import Executor, Failed, Killed, Stuck, Trial, Work

__all__ = ["Crew", "Patience"]

Patience = Callable[[Any], float]
"""Seconds that a job may take before its worker counts as stuck."""

TRIES = 3
"""How often a job is begun whose worker is killed each time, and how often a worker is hired in the
place of one that was killed before it was there."""

STUCK_TRIES = 2
"""How often a job is begun whose worker does not answer."""

_AHEAD = 2  # jobs begun or done for each worker before the first of them is taken
_LOOK_SECONDS = 0.02  # after which whoever waits for workers looks whether it should end
_TICK_SECONDS = 1.0  # after which whoever waits looks whether somebody is late
_BUSY = 100  # times as long as here a trial may take a worker: the machine may have much to do
_ARRIVES_SECONDS = 0.1  # that a worker which was forked needs at the most, before it answers


_ALL_KILLED = "every worker was killed before it was ready"


def _say_late(seconds: float) -> str:
    return f"no worker was ready within {seconds:.0f} seconds"


class Crew:
    """Workers that outlive a list of jobs, because hiring one takes a while.

    They are hired when there are jobs for them, and end with the block.
    """

    def __init__(self, executor: Executor, work: Work) -> None:
        self._executor, self._work = executor, work
        self._trial: Trial | None = None
        self._hands: list[Any] = []
        self._expected: set[Any] = set()  # those that are not there yet
        self._clock = _Clock()
        self._hired_at = 0.0
        self.again = 0  # jobs that were done again, because their worker was killed

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *raised: object) -> None:
        self.dismiss()

    @property
    def size(self) -> int:
        """Workers at the most."""
        return self._executor.workers

    def hire(self, n: int | None = None) -> None:
        """Have so many workers now, all by default; otherwise the first jobs wait for them."""
        if not self._hands:
            self._hired_at = self._clock.now()
        while len(self._hands) < min(self.size, self.size if n is None else n):
            self._hands.append(self._hire())

    def try_out(self, trial: Trial) -> None:
        """Give nobody another job who has not done this one first."""
        self._trial = trial
        for hand in self._hands:
            hand.begin(trial.job)
        self._expected.update(self._hands)

    @property
    def is_ready(self) -> bool:
        """Can jobs be given out? Not while all workers still start, as those of a cluster do for
        seconds, unless they are late, which whoever gives a job is told."""
        if self._hands and len(self._expected) == len(self._hands):
            for hand in self._executor.wait(list(self._expected), _ARRIVES_SECONDS):
                _takes_in(hand, self._expected)
            starts = len(self._expected) == len(self._hands)
            return not starts or self._clock.now() - self._hired_at > self._limit
        return True

    def dismiss(self) -> None:
        """End all workers."""
        hands, self._hands, self._expected = self._hands, [], set()
        for hand in hands:
            hand.end()

    def in_order(self, jobs: Sequence[Any]) -> list[Any]:
        """The results of all jobs in their order; what one of them raised is raised here."""
        results: list[Any] = [None] * len(jobs)
        for number, result in self.each(jobs):
            if isinstance(result, Failed):
                raise result.error
            results[number] = result
        return results

    def each(
        self, jobs: Sequence[Any], patience: Patience | None = None
    ) -> Iterator[tuple[int, Any]]:
        """The number of each job with its result, or a Failed, as they finish.

        A job whose worker is killed is done again by another, so that it is done once in the end;
        after three it fails as Killed. So is one whose worker takes longer than `patience` has for
        it; after two it fails as Stuck. Stuck is raised where no worker is there in time.
        """
        self.hire(len(jobs))
        waiting = deque(enumerate(jobs))
        idle = deque(hand for hand in self._hands if hand not in self._expected)
        at_work = _AtWork(self._clock, patience)

        def hand_out() -> None:
            while idle and waiting:
                number, job = waiting.popleft()
                at_work.begin(idle.popleft(), number, job, job)

        try:
            while waiting or at_work:
                hand_out()
                if not at_work:
                    idle.extend(self._await_one())
                    continue
                seconds = None if patience is None else _TICK_SECONDS
                ready = self._executor.wait([*at_work, *self._expected], seconds)
                idle.extend(hand for hand in ready if _takes_in(hand, self._expected))
                for hand, done in at_work.collect(ready):
                    idle.extend(self._replace(hand) if done.is_lost else [hand])
                    if done.is_again:
                        self.again += 1
                        waiting.appendleft((done.number, done.job))
                        continue
                    hand_out()
                    yield done.number, done.result
        finally:
            # Whoever stops listening leaves workers with a job that nobody wants.
            self._end(at_work)

    def in_turn(
        self,
        jobs: Iterable[Any],
        brief: Callable[[Any, Any], Any] = lambda hand, job: job,
        patience: Patience | None = None,
    ) -> Iterator[list[Any]]:
        """The results of jobs, or what they Failed of, in their order, all that are there at once;
        workers go some way ahead.

        While whoever listens is busy with some results, workers are at the next. `brief` makes what
        a worker is sent of a job, when it is sent; it and the jobs are asked in another thread.
        """
        self.hire()
        if len(self._expected) == len(self._hands):
            self._await_one()
        at_work = _AtWork(self._clock, patience)
        turns = _Turns(
            self._executor, self._hands, self._expected, self._limit, jobs, brief, at_work
        )
        try:
            while True:
                turns.wait_for_next()
                for gone in turns.take_lost():
                    # Here and not in the thread, so that nobody forks while another thread works.
                    self.again += 1
                    turns.add(self._replace(gone))
                if turns.has_next:
                    yield turns.take_ready()
                elif turns.is_over:
                    return
        finally:
            try:
                left = turns.end()
            except BaseException:
                # Interrupted again: who still has a job is not known, and what it answers would be
                # taken for the answer to another.
                self.dismiss()
                raise
            self._end(left)

    # -- who is there --

    def _hire(self) -> Any:
        hand = self._executor.hire(self._work)
        if self._trial is not None:
            hand.begin(self._trial.job)
        if self._trial is not None or hand.is_expected:
            self._expected.add(hand)
        return hand

    def _replace(self, gone: Any) -> list[Any]:
        """Hire a worker in the place of one; if it is there at once, it comes back."""
        place = self._hands.index(gone)
        self._expected.discard(gone)
        gone.end()
        self._hands[place] = self._hire()
        return [hand for hand in self._hands[place : place + 1] if hand not in self._expected]

    def _end(self, hands: Iterable[Any]) -> None:
        for hand in list(hands):
            if hand in self._hands:  # else the crew was dismissed already
                self._hands.remove(hand)
                hand.end()

    def _await_one(self) -> list[Any]:
        """Wait until one of those is there who are expected; Stuck where none comes."""
        for _ in range(TRIES):
            start = self._clock.now()
            while self._expected and self._clock.now() - start < self._limit:
                ready = self._executor.wait(list(self._expected), _TICK_SECONDS)
                if there := [hand for hand in ready if _takes_in(hand, self._expected)]:
                    return there
            is_late, limit = bool(self._expected), self._limit  # else all were killed
            self.dismiss()
            if is_late:
                self._executor = self._executor.otherwise(self._work, _say_late(limit))
            try:
                self.hire()
            except InvalidInput:  # work that was forked, and cannot travel in any other way
                raise Stuck(_say_late(limit)) from None
        raise Stuck(_ALL_KILLED)

    @property
    def _limit(self) -> float:
        """Seconds until a worker that is not there is late."""
        tried = 0.0 if self._trial is None else self._trial.seconds
        return self._executor.patience(self._work) + _BUSY * tried


def _takes_in(hand: Any, expected: set[Any]) -> bool:
    """Has somebody come who was expected? One who was killed on the way is noticed again, and
    replaced, when it is given a job."""
    if hand not in expected:
        return False
    expected.discard(hand)
    try:
        hand.result()  # what a trial fails of, jobs will fail of
    except Killed:
        return False
    return True


class _Clock:
    """Seconds that pass while somebody looks; a computer that sleeps is not a worker that does."""

    def __init__(self) -> None:
        self._last, self._passed = time.monotonic(), 0.0

    def now(self) -> float:
        """Since the beginning."""
        last, self._last = self._last, time.monotonic()
        self._passed += min(self._last - last, 2 * _TICK_SECONDS)
        return self._passed


@dataclass(frozen=True)
class _Done:
    """What came of a job."""

    number: int
    job: Any
    result: Any
    is_lost: bool = False  # is its worker gone?
    is_again: bool = False  # is it to be begun again?


class _AtWork:
    """Who is at which job, and how often it was begun."""

    def __init__(self, clock: _Clock, patience: Patience | None) -> None:
        self._clock, self._patience = clock, patience
        self._busy: dict[Any, tuple[int, Any, float]] = {}
        self._tries: dict[int, int] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._busy))

    def __len__(self) -> int:
        return len(self._busy)

    def now(self) -> float:
        """Seconds since the crew was formed."""
        return self._clock.now()

    def begin(self, hand: Any, number: int, job: Any, message: Any) -> None:
        """Give a worker a job."""
        self._tries[number] = self._tries.get(number, 0) + 1
        self._busy[hand] = number, job, self._clock.now()
        hand.begin(message)

    def collect(self, ready: Sequence[Any]) -> Iterator[tuple[Any, _Done]]:
        """What came of the jobs of those who have answered, or should have by now."""
        for hand in ready:
            if hand in self._busy:
                number, job, _ = self._busy.pop(hand)
                try:
                    result = hand.result()
                except Killed as killed:
                    yield hand, self._lose(number, job, killed, TRIES)
                    continue
                del self._tries[number]
                yield hand, _Done(number, job, result)
        if self._patience is None:
            return
        now = self._clock.now()
        for hand, (number, job, start) in list(self._busy.items()):
            allowed = self._patience(job)
            if now - start > allowed:
                del self._busy[hand]
                late = Stuck(f"a worker has not answered within {allowed:.0f} seconds")
                yield hand, self._lose(number, job, late, STUCK_TRIES)

    def _lose(self, number: int, job: Any, error: BaseException, most: int) -> _Done:
        is_again = self._tries[number] < most
        if not is_again:
            del self._tries[number]
        return _Done(number, job, Failed(error), is_lost=True, is_again=is_again)


class _Turns:
    """Jobs handed out by a thread, and their results in order."""

    def __init__(
        self,
        executor: Executor,
        hands: Sequence[Any],
        expected: set[Any],
        limit: float,
        jobs: Iterable[Any],
        brief: Callable[[Any, Any], Any],
        at_work: _AtWork,
    ) -> None:
        self._executor, self._brief = executor, brief
        self._jobs = enumerate(jobs)
        self._window = _AHEAD * executor.workers
        self._idle = deque(hand for hand in hands if hand not in expected)
        self._expected = expected  # whoever is hired meanwhile is added to it ...
        self._limit = limit  # ... and should be there after so many seconds
        self._waits_since: float | None = None  # nobody is there
        self._at_work = at_work
        self._again: deque[tuple[int, Any]] = deque()  # jobs whose worker was killed
        self._results: dict[int, Any] = {}
        self._lost: list[Any] = []
        self._n_to_replace = 0  # of the lost: those in whose place nobody was hired yet
        self._n_begun = 0
        self._next = 0  # the job whose result is taken next
        self._last: int | None = None  # how many jobs there are, once that is known
        self._error: BaseException | None = None
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    # -- for whoever listens --

    def wait_for_next(self) -> None:
        """Until there is a result to take, a worker to replace, or nothing more."""
        with self._changed:
            while not (self.has_next or self._lost or self.is_over):
                self._changed.wait()
            if self._error is not None:
                raise self._error

    @property
    def has_next(self) -> bool:
        """Is the next result there?"""
        return self._next in self._results

    @property
    def is_over(self) -> bool:
        """Was the last result taken, or is there no way to the next?"""
        return self._error is not None or self._next == self._last

    def take_ready(self) -> list[Any]:
        """The results up to the first that is not there."""
        ready = []
        with self._changed:
            while self.has_next:
                ready.append(self._results.pop(self._next))
                self._next += 1
            self._changed.notify_all()
        return ready

    def take_lost(self) -> list[Any]:
        """Workers that are gone."""
        with self._changed:
            lost, self._lost = self._lost, []
            return lost

    def add(self, hands: Iterable[Any]) -> None:
        """Somebody was hired in the place of one who was lost; who is there already can begin."""
        with self._changed:
            self._n_to_replace -= 1
            self._idle.extend(hands)
            self._changed.notify_all()

    def end(self) -> list[Any]:
        """Hand nothing out any more; the workers that are still at a job."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        return [*self._at_work, *self._lost]

    # -- in the thread --

    def _run(self) -> None:
        try:
            while not self._ending:
                self._hand_out()
                if awaited := [*self._at_work, *self._expected]:
                    self._collect(self._executor.wait(awaited, _LOOK_SECONDS))
                else:
                    with self._changed:
                        if not self._ending:
                            self._changed.wait(_LOOK_SECONDS)
                self._require_somebody()
        except BaseException as error:  # whoever listens is told
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _hand_out(self) -> None:
        while self._idle and (job := self._next_job()) is not None:
            hand = self._idle.popleft()
            self._at_work.begin(hand, *job, self._brief(hand, job[1]))

    def _next_job(self) -> tuple[int, Any] | None:
        if self._again:
            return self._again.popleft()
        if self._last is not None or self._n_begun - self._next >= self._window:
            return None
        job = next(self._jobs, None)
        if job is None:
            with self._changed:
                self._last = self._n_begun
                self._changed.notify_all()
            return None
        self._n_begun = job[0] + 1
        return job

    def _collect(self, ready: Sequence[Any]) -> None:
        self._idle.extend(hand for hand in ready if _takes_in(hand, self._expected))
        for hand, done in self._at_work.collect(ready):
            with self._changed:
                if done.is_lost:
                    self._lost.append(hand)
                    self._n_to_replace += 1
                else:
                    self._idle.append(hand)
                if done.is_again:
                    self._again.append((done.number, done.job))
                else:
                    self._results[done.number] = done.result
                self._changed.notify_all()

    def _require_somebody(self) -> None:
        """Stuck where all workers were lost, and nobody comes in their place."""
        now = self._at_work.now()
        if len(self._at_work) or self._idle or self._n_to_replace:
            self._waits_since = None
            return
        self._waits_since = now if self._waits_since is None else self._waits_since
        if not self._expected:
            raise Stuck(_ALL_KILLED)
        if now - self._waits_since > self._limit:
            raise Stuck(_say_late(self._limit))
