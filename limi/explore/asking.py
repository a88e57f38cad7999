"""The one way in which an exploration asks a model: counted, remembered, and one at a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from limi.decisions import Rule
from limi.errors import InvalidInput
from limi.explore.jobs import Job
from limi.models.target import Target
from limi.remote.exchange import Exchange
from limi.types import Rows, Scores

__all__ = ["Asker", "Meter", "Spent"]

_MOST_REMEMBERED = 100_000  # answers
_LOOKED_UP = 4_096  # rows of one question; larger ones are drawn by chance, and seldom come again
_FIRST = 256  # rows of the first call, by which it is learned how fast the model is
_MOST_ROWS = 1 << 16  # of a call
_CALL_SECONDS = 0.5  # a call takes about so long, so that others come in between
_SLICE = 0.2  # seconds between two looks at whether anybody still waits


class Spent(InvalidInput):
    """The session may not ask so many questions any more."""


class Meter:
    """Questions of a whole session, and how many it may have."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.asked = most, 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int | None:
        """Questions that may still be asked; None for any number."""
        return None if self.most is None else max(0, self.most - self.asked)

    def take(self, n: int) -> None:
        """Count questions before they are asked; Spent where there are not so many left."""
        with self._lock:
            if self.most is not None and self.asked + n > self.most:
                left = max(0, self.most - self.asked)
                raise Spent(
                    f"this takes {n:,} more {'question' if n == 1 else 'questions'}, but only "
                    f"{left:,} of the session's {self.most:,} are left; start limi explore with a "
                    "higher --max-queries"
                )
            self.asked += n

    def asked_by(self, job: Job | None) -> int:
        """Questions of a job; of the session where there is none."""
        return self.asked if job is None else job.asked


class Asker:
    """Asks one model about rows of the exploration's schema."""

    def __init__(
        self,
        target: Target,
        meter: Meter,
        exchange: Exchange | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target, self.meter = target, meter
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._memory = threading.Lock()  # several threads ask, and each may forget old answers
        self._exchange = exchange  # through which a model behind an address is asked
        self._per_row: float | None = None
        self._clock = clock

    @property
    def rule(self) -> Rule:
        """What its answers mean."""
        return self.target.rule

    def score(self, rows: Rows, job: Job | None = None) -> Scores:
        """One answer per row; BadModel where the model fails, Cancelled where nobody waits."""
        if not len(rows):
            return np.empty(0)
        if len(rows) > _LOOKED_UP:
            return self._ask(rows, job)
        keys = _name_rows(rows)
        with self._memory:
            # Taken out at once: what is remembered now may be forgotten before the model answers.
            told = {key: self._known[key] for key in keys if key in self._known}
        unknown: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if key not in told and key not in unknown:
                unknown[key] = place
        if unknown:
            answers = self._ask(rows[list(unknown.values())], job)
            fresh = dict(zip(unknown, answers.tolist(), strict=True))
            self._remember(fresh)
            told |= fresh
        return np.array([told[key] for key in keys])

    def _remember(self, fresh: dict[bytes, float]) -> None:
        with self._memory:
            self._known.update(fresh)
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)

    def _ask(self, rows: Rows, job: Job | None) -> Scores:
        answers: list[Scores] = []
        start = 0
        while start < len(rows):
            part = rows[start : start + self._at_once()]
            with self._turn(job):
                self.meter.take(len(part))
                if job is not None:
                    job.asked += len(part)
                begun = self._clock()
                with self._watching(job):
                    answers.append(self.target.score(part))
                self._per_row = max((self._clock() - begun) / len(part), 1e-9)
            start += len(part)
        return np.concatenate(answers)

    def _watching(self, job: Job | None) -> AbstractContextManager[None]:
        """A block in which a server that keeps silent is left as soon as nobody waits any more, so
        that the next question need not wait for it."""
        if self._exchange is None or job is None:
            return nullcontext()
        return self._exchange.watched(job.look)

    def _at_once(self) -> int:
        if self._per_row is None:
            return _FIRST
        return int(np.clip(_CALL_SECONDS / self._per_row, 1, _MOST_ROWS))

    @contextmanager
    def _turn(self, job: Job | None) -> Iterator[None]:
        """A block in which nobody else asks: few models can be asked by two at once."""
        if job is not None:
            job.waiting_since = self._clock()
        try:
            while not self._lock.acquire(timeout=_SLICE):
                if job is not None:
                    job.look()
            try:
                if job is not None:
                    job.look()
                    job.waiting_since = self._clock()
                yield
            finally:
                self._lock.release()
        finally:
            if job is not None:
                job.waiting_since = None


def _name_rows(rows: Rows) -> list[bytes]:
    """Each row as bytes, equal where the rows are."""
    whole = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0)).tobytes()
    width = 8 * rows.shape[1]
    return [whole[start : start + width] for start in range(0, len(whole), width)]
