"""The time of a run: how fast the model answers, what each phase took, and when all must end.

Everything that is asked goes through a watch. It cuts questions into calls of about a second, so
that progress shows and a budget of seconds holds; answers never depend on it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from limi.types import Rows, Scores

__all__ = ["PHASES", "OutOfQueries", "OutOfTime", "Progress", "Spent", "Watch"]

PHASES = (
    "contract",
    "generator",
    "rates",
    "twins",
    "labels",
    "search",
    "second_check",
    "metrics",
)
"""What a run does, in this order."""

_SHORTEST_CALL = 10  # where time is short: that part of a usual call
_CALL_SECONDS = 1.0  # what a call of the model takes at most, as far as its speed is known
_FIRST_ROWS = 64  # asked at once while the speed is unknown and time is short
_GROWTH = 16  # times more rows at once than ever before, at most


class OutOfTime(Exception):
    """The seconds are spent. Whoever asked may still use what was answered before."""


class OutOfQueries(OutOfTime):
    """The rows that the model may be asked about are spent, which ends a run as time does."""


@dataclass
class Spent:
    """What a phase took."""

    seconds: float = 0.0
    questions: int = 0


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    phase: str
    done: float  # of the phase, from 0 to 1
    seconds: float  # since the run began
    left: float  # seconds that the whole run will take yet, at the speed seen so far
    queries: int  # in all phases
    rows: int = 0  # checked by the search
    findings: int = 0
    retries: int = 0  # requests to an address that were made again


class _Speed:
    """What calls of a model cost: so much each, and so much for every row."""

    def __init__(self) -> None:
        self._small = self._big = (0, 0.0)  # rows and seconds of the smallest and largest call
        self._per_call = self._per_row = 0.0
        self._drift = 1.0  # how much dearer the last call was than it should have been

    @property
    def known(self) -> bool:
        """Was anything asked yet?"""
        return self._big[0] > 0

    def learn(self, n: int, seconds: float) -> None:
        """So many rows took so long together."""
        # Of calls of one size the fastest: what else the machine does only ever adds to it.
        if n >= self._big[0]:
            self._big = (n, min(seconds, self._big[1]) if n == self._big[0] else seconds)
        if n <= self._small[0] or not self._small[0]:
            self._small = (n, min(seconds, self._small[1]) if n == self._small[0] else seconds)
        (few, short), (many, long) = self._small, self._big
        if many >= 2 * few:
            self._per_row = max(0.0, long - short) / (many - few)
            self._per_call = max(0.0, long - self._per_row * many)
        else:
            self._per_row, self._per_call = long / many, 0.0
        expected = self._per_call + self._per_row * n
        self._drift = seconds / expected if expected > 0 else 1.0

    def at_best(self) -> float:
        """Seconds for one row among as many as may be asked at once."""
        n = _GROWTH * self._big[0]
        return (self._per_call + self._per_row * n) / n if n else 0.0

    def seconds(self, n: float) -> float:
        """What a call of n rows takes."""
        return self._drift * (self._per_call + self._per_row * n)

    def rows(self, seconds: float) -> float:
        """How many rows a call of so many seconds has; not far more than were ever asked at once,
        because nobody knows what they would take."""
        most = _GROWTH * self._big[0]
        if self.seconds(most) <= seconds:
            return most
        spare = seconds / self._drift - self._per_call
        # A call whose rows cost nothing beside it fits in whole, or not at all.
        return spare / self._per_row if spare > 0 and self._per_row else 0.0

    def rows_in_all(self, seconds: float) -> float:
        """How many rows so many seconds have, in several calls if one would be too large."""
        most = _GROWTH * self._big[0]
        took = self.seconds(most)
        return most * (seconds // took) if 0 < took <= seconds else self.rows(seconds)

    def call(self) -> float:
        """Seconds of a call that is worth its own cost: about one, as far as it can be."""
        return max(_CALL_SECONDS, 2 * self._drift * self._per_call)


class Watch:
    """A clock that knows the phases of a run and the speed of its model."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        max_seconds: float | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        *,
        max_queries: int | None = None,
    ) -> None:
        self._clock, self._began = clock, clock()
        self.max_queries = max_queries  # rows that the model may be asked about in all phases
        self.on_progress = on_progress
        self.until = math.inf if max_seconds is None else max_seconds  # the present phase's end
        self.ran_out = False  # was a question left unasked because it was too late?
        self.owed = 0  # questions that must still be asked after this phase
        self._speed = _Speed()
        self.spent: dict[str, Spent] = {}
        self.planned: dict[str, float] = {}  # questions of each phase, as far as they are known
        self.rows = self.findings = 0  # what the search has to tell
        self.retries: Callable[[], int] = lambda: 0  # of a model behind an address
        self.done: Callable[[], float] | None = None  # of the search, which may end by any budget
        self._phase, self._stepped = "", 0.0
        self._entered = self._began
        self._ends = self.until

    # -- time ---------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Since the watch began."""
        return self._clock() - self._began

    @property
    def limited(self) -> bool:
        """Is there a budget of seconds?"""
        return math.isfinite(self.until)

    @property
    def left(self) -> float:
        """Seconds until the present phase has to end, less what is owed afterwards."""
        return self.until - self.seconds - self.owed * self.per_row

    @property
    def late(self) -> bool:
        """Is there less time than the model takes for one row?"""
        return self.limited and self.left < max(self._speed.seconds(1), 1e-9)

    @property
    def affordable(self) -> float:
        """Questions that there is time for, at the speed seen last."""
        if not self.limited or not self.per_row:
            return math.inf
        left = max(0.0, self.left)
        return self._speed.rows_in_all(left) if left < self._speed.call() else left / self.per_row

    @property
    def best_per_row(self) -> float:
        """Seconds of the model for one row of a large call, where nothing else keeps it waiting."""
        return self._speed.at_best()

    @property
    def per_row(self) -> float:
        """Seconds of the model for one row among many; 0 while nothing is known."""
        if not self._speed.known:
            return 0.0
        n = max(1.0, self._speed.rows(self._speed.call()))
        return self._speed.seconds(n) / n

    @contextmanager
    def ending(self, at: float) -> Iterator[None]:
        """A phase that has to end by then, so that something is left for those behind it."""
        before, self.until = self.until, min(self.until, at)
        try:
            yield
        finally:
            self.until, self.ran_out = before, False

    def look(self, n: int = 0) -> None:
        """OutOfTime where the present phase has to end; OutOfQueries where n more questions are
        more than the model may be asked."""
        self._look_at_queries(n)
        if self.late:
            self.ran_out = True
            raise OutOfTime

    def check_time(self) -> None:
        """OutOfTime where the present phase is over, also in the middle of a question."""
        if self.left <= 0:
            self.ran_out = True
            raise OutOfTime

    # -- phases -------------------------------------------------------------------------

    def enter(self, phase: str) -> None:
        """From now on, time and questions are those of this phase."""
        now = self._clock()
        self._now.seconds += now - self._entered
        self._phase, self._entered, self._stepped = phase, now, 0.0
        self.tell()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase that ends with a block; what follows counts for the one before."""
        before = self._phase
        self.enter(name)
        try:
            yield
        finally:
            self.enter(before)

    @property
    def _now(self) -> Spent:
        return self.spent.setdefault(self._phase, Spent())

    @property
    def questions(self) -> int:
        """Asked in all phases."""
        return sum(spent.questions for spent in self.spent.values())

    def took(self) -> Mapping[str, Spent]:
        """What each phase took until now, in their order."""
        self.enter(self._phase)
        return {name: self.spent[name] for name in PHASES if name in self.spent}

    # -- questions ----------------------------------------------------------------------

    def at_once(self, most: int) -> int:
        """How many rows to ask in one call, so that it takes about a second and no longer than
        there is time. Towards the end calls are shorter: a model that slows down in the last of
        them would take the time of what comes after."""
        if not self._speed.known:
            return min(most, _FIRST_ROWS) if self.limited else most
        seconds = self._speed.call()
        if self.limited:
            last = max(self.left / 3, self._speed.call() / _SHORTEST_CALL)
            seconds = min(seconds, last, max(self.left, 0.0))
        elif self._speed.seconds(most) <= seconds:
            return most
        return max(1, min(most, int(self._speed.rows(seconds))))

    def timed(self, score: Callable[[Rows], Scores]) -> Callable[[Rows], Scores]:
        """The same function, whose speed the watch learns."""

        def ask(rows: Rows) -> Scores:
            start = self._clock()
            scores = score(rows)
            self.learn(len(rows), self._clock() - start)
            return scores

        return ask

    def learn(self, n: int, seconds: float) -> None:
        """So many rows took so long."""
        if n:
            self._speed.learn(n, seconds)

    def ask(self, score: Callable[[Rows], Scores], rows: Rows, most: int) -> Scores:
        """The scores of rows, asked in calls of at most so many; OutOfTime where it is too late."""
        parts = []
        start = 0
        while start < len(rows):
            part = rows[start : start + self.at_once(most)]
            self.look(len(part))
            parts.append(score(part))
            self.count(len(part))
            start += len(part)
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    @property
    def queries_left(self) -> float:
        """Rows that the model may be asked about yet."""
        return math.inf if self.max_queries is None else self.max_queries - self.questions

    def _look_at_queries(self, n: int) -> None:
        if n > self.queries_left:
            raise OutOfQueries

    def count(self, n: int) -> None:
        """n rows were asked."""
        self._now.questions += n
        self.tell()

    def counted(
        self, score: Callable[[Rows], Scores], *, in_any_case: bool = False
    ) -> Callable[[Rows], Scores]:
        """The same function, whose questions count; its batches are left as they are."""

        def ask(rows: Rows) -> Scores:
            if in_any_case:
                self._look_at_queries(len(rows))
            else:
                self.look(len(rows))
            scores = score(rows)
            self.count(len(rows))
            return scores

        return ask

    def step(self, done: float) -> None:
        """So much of a phase is done that asks no questions."""
        self._stepped = done
        self.tell()

    # -- progress -----------------------------------------------------------------------

    def tell(self) -> None:
        """Say how far the run is."""
        seconds, done = self.seconds, self._done()
        self.on_progress(
            Progress(
                self._phase,
                done,
                seconds,
                self._left(seconds, done),
                self.questions,
                self.rows,
                self.findings,
                self.retries(),
            )
        )

    def _done(self) -> float:
        if self._phase == "search" and self.done is not None:
            return min(1.0, self.done())
        planned = self.planned.get(self._phase, 0.0)
        asked = self._now.questions / planned if planned else 0.0
        return min(1.0, max(asked, self._stepped))

    def _left(self, seconds: float, done: float) -> float:
        """What is left of this phase at its own speed, and of later ones at the model's."""
        per_row = self.per_row
        here = self._now.seconds + self._clock() - self._entered
        names = list(self.planned)
        later = names[names.index(self._phase) + 1 :] if self._phase in names else names
        questions = sum(self.planned[name] for name in later)
        # The first answers of a phase say little about its speed.
        if done > 0.05:
            left = here * (1 - done) / done
        else:
            left = (1 - done) * self.planned.get(self._phase, 0.0) * per_row
        left += questions * per_row
        return max(0.0, min(left, self._ends - seconds))
