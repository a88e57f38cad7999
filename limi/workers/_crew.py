"""A crew: workers of one executor that do one kind of work, job after job."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from limi.workers._base import Executor, Failed, Killed, Work

__all__ = ["Crew"]

TRIES = 3
"""How often a job is begun whose worker is killed each time."""


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

    def _replace(self, gone: Any) -> Any:
        place = self._hands.index(gone)
        gone.end()
        self._hands[place] = self._executor.hire(self._work)
        return self._hands[place]
