"""What a scout is: part of a search that a worker does before the search comes there.

A search that says beforehand where it will look can be waited on: workers go ahead, draw, decode
and check, and the search takes what they bring in its own order, by its own rules and budgets, as
if it had asked itself. Nothing that a scout leaves out or has in vain changes what is found: what
is missing the search asks for, and what is too much it leaves.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limi.search.answer_log import hash_rows
from limi.types import Rows, Scores

__all__ = ["Answered", "GoesAhead", "News", "Recorder", "Scout", "Timed"]

_BUSY = 16  # times as long as alone a model takes on a machine with much else to do
_MOST_NEWS = 64  # that wait for a scout to hear them; one that was away for longer lacks some


class Scout(Protocol):
    """Looks at parts of a search. It travels to workers, each of which has its own."""

    def hear(self, news: Any) -> None:
        """What the search has done meanwhile, so that less is looked at in vain."""
        ...

    def look(self, score: Callable[[Rows], Scores], job: Any) -> Any:
        """What there is to find in a part; the same wherever and whenever it is looked at, but for
        what the news have spared."""
        ...


class GoesAhead(Protocol):
    """Whoever sends scouts."""

    @property
    def can_go_ahead(self) -> bool:
        """Are there workers, and nothing that has been answered before?"""
        ...

    @property
    def n_workers(self) -> int:
        """How many look at the same time."""
        ...

    @property
    def per_row(self) -> float:
        """Seconds of the model for one row, as far as they are known; 0 before that."""
        ...

    def go_ahead(
        self, scout: Scout, jobs: Iterable[Any], news: News
    ) -> Generator[list[Any], None, None]:
        """What scouts find in these parts, in their order, as many as are there; None of one where
        they failed."""
        ...


class News:
    """What a search tells its scouts, of which each hears what it has not heard yet."""

    def __init__(self) -> None:
        self._told: deque[Any] = deque(maxlen=_MOST_NEWS)
        self._n = 0
        self._heard: dict[Any, int] = {}
        self._lock = threading.Lock()  # one thread tells, and another sends

    def tell(self, what: Any) -> None:
        """One more piece."""
        with self._lock:
            self._told.append(what)
            self._n += 1

    def since(self, who: Any) -> list[Any]:
        """What this scout has not heard; all that is there, where it is new."""
        with self._lock:
            told, n = list(self._told), self._n
        lacking = n - self._heard.get(who, 0)
        self._heard[who] = n
        return told[max(0, len(told) - lacking) :]

    def knows(self, who: Any) -> bool:
        """Was this scout told anything before?"""
        return who in self._heard


class Answered:
    """Answers of the model to a scout's questions, as a journal keeps them."""

    def __init__(self, hashes: NDArray[np.int64], scores: Scores) -> None:
        self.hashes, self.scores = hashes, scores


class Timed:
    """A score function that keeps how many rows took how long.

    Seconds are those of the processor, because a busy machine makes no model slow; of one that
    waits for something else they are a share of those that passed.
    """

    def __init__(self, score: Callable[[Rows], Scores]) -> None:
        self._score = score
        self.n, self.seconds = 0, 0.0

    def __call__(self, rows: Rows) -> Scores:
        """The scores of rows."""
        start, worked = time.perf_counter(), time.process_time()
        scores = self._score(rows)
        passed, worked = time.perf_counter() - start, time.process_time() - worked
        self.n, self.seconds = self.n + len(rows), self.seconds + max(worked, passed / _BUSY)
        return scores


class Recorder:
    """A score function that keeps what was asked and answered."""

    def __init__(self, score: Callable[[Rows], Scores]) -> None:
        self._score = score
        self._hashes: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        self._scores: list[Scores] = [np.empty(0)]

    def __call__(self, rows: Rows) -> Scores:
        """The scores of rows."""
        scores = self._score(rows)
        self._hashes.append(hash_rows(rows))
        self._scores.append(scores)
        return scores

    @property
    def answered(self) -> Answered:
        """All of them."""
        return Answered(np.concatenate(self._hashes), np.concatenate(self._scores))
