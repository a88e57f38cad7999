"""A crew: workers of one executor that do one kind of work, job after job."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from limi.workers._base import Executor, Failed, Killed, Work

__all__ = ["Crew"]

TRIES = 3
"""How often a job is begun whose worker is killed each time."""

_AHEAD = 2  # jobs begun or done for each worker before the first of them is taken
_LOOK_SECONDS = 0.02  # after which whoever waits for workers looks whether it should end


class Crew:
    """Workers that outlive a list of jobs, because hiring one takes a while.

    They are hired when there are jobs for them, and end with the block.
    """

    def __init__(self, executor: Executor, work: Work) -> None:
        self._executor, self._work = executor, work
        self._hands: list[Any] = []
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
        while len(self._hands) < min(self.size, self.size if n is None else n):
            self._hands.append(self._executor.hire(self._work))

    def dismiss(self) -> None:
        """End all workers."""
        hands, self._hands = self._hands, []
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

    def each(self, jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The number of each job with its result, or a Failed, as they finish.

        A job whose worker is killed is done again by another, so that it is done once in the end;
        after three it fails as Killed.
        """
        self.hire(len(jobs))
        waiting = deque(enumerate(jobs))
        tries = [0] * len(jobs)
        busy: dict[Any, int] = {}

        def begin(hand: Any) -> None:
            if waiting:
                number, job = waiting.popleft()
                tries[number] += 1
                busy[hand] = number
                hand.begin(job)

        try:
            for hand in self._hands:
                begin(hand)
            while busy:
                for hand in self._executor.wait(list(busy)):
                    number = busy.pop(hand)
                    try:
                        result = hand.result()
                    except Killed as error:
                        hand = self._replace(hand)
                        if tries[number] < TRIES:
                            self.again += 1
                            waiting.appendleft((number, jobs[number]))
                            begin(hand)
                            continue
                        result = Failed(error)
                    begin(hand)
                    yield number, result
        finally:
            # Whoever stops listening leaves workers with a job that nobody wants.
            for hand in busy:
                if hand in self._hands:  # else the crew was dismissed already
                    self._hands.remove(hand)
                    hand.end()

    def in_turn(
        self, jobs: Iterable[Any], brief: Callable[[Any, Any], Any] = lambda hand, job: job
    ) -> Iterator[list[Any]]:
        """The results of jobs, or what they Failed of, in their order, all that are there at once;
        workers go some way ahead.

        While whoever listens is busy with some results, workers are at the next. `brief` makes what
        a worker is sent of a job, when it is sent; it and the jobs are asked in another thread.
        """
        self.hire()
        turns = _Turns(self._executor, self._hands, jobs, brief)
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
                at_work = turns.end()
            except BaseException:
                # Interrupted again: who still has a job is not known, and what it answers would be
                # taken for the answer to another.
                self.dismiss()
                raise
            for hand in at_work:
                if hand in self._hands:
                    self._hands.remove(hand)
                    hand.end()

    def _replace(self, gone: Any) -> Any:
        place = self._hands.index(gone)
        gone.end()
        self._hands[place] = self._executor.hire(self._work)
        return self._hands[place]


class _Turns:
    """Jobs handed out by a thread, and their results in order."""

    def __init__(
        self,
        executor: Executor,
        hands: Sequence[Any],
        jobs: Iterable[Any],
        brief: Callable[[Any, Any], Any],
    ) -> None:
        self._executor, self._brief = executor, brief
        self._jobs = enumerate(jobs)
        self._window = _AHEAD * executor.workers
        self._idle = deque(hands)
        self._busy: dict[Any, tuple[int, Any]] = {}
        self._again: deque[tuple[int, Any]] = deque()  # jobs whose worker was killed
        self._tries: dict[int, int] = {}
        self._results: dict[int, Any] = {}
        self._lost: list[Any] = []
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
                self._tries.pop(self._next, None)
                self._next += 1
            self._changed.notify_all()
        return ready

    def take_lost(self) -> list[Any]:
        """Workers that are gone."""
        with self._changed:
            lost, self._lost = self._lost, []
            return lost

    def add(self, hand: Any) -> None:
        """One more worker."""
        with self._changed:
            self._idle.append(hand)
            self._changed.notify_all()

    def end(self) -> list[Any]:
        """Hand nothing out any more; the workers that are still at a job."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        return [*self._busy, *self._lost]

    # -- in the thread --

    def _run(self) -> None:
        try:
            while not self._ending:
                self._hand_out()
                if self._busy:
                    self._collect(self._executor.wait(list(self._busy), _LOOK_SECONDS))
                else:
                    with self._changed:
                        if not self._ending:
                            self._changed.wait(_LOOK_SECONDS)
        except BaseException as error:  # whoever listens is told
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _hand_out(self) -> None:
        while self._idle and (job := self._next_job()) is not None:
            number, given = job
            hand = self._idle.popleft()
            self._tries[number] = self._tries.get(number, 0) + 1
            self._busy[hand] = job
            hand.begin(self._brief(hand, given))

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
        for hand in ready:
            number, given = self._busy.pop(hand)
            try:
                result = hand.result()
            except Killed as error:
                with self._changed:
                    self._lost.append(hand)
                    if self._tries[number] < TRIES:
                        self._again.append((number, given))
                    else:
                        self._results[number] = Failed(error)
                    self._changed.notify_all()
                continue
            self._idle.append(hand)
            with self._changed:
                self._results[number] = result
                self._changed.notify_all()
