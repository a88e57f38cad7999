"""How many rows a request has, and how long its answer is waited for: both are learned."""

from __future__ import annotations

import math
import threading
from collections import deque

__all__ = ["Pace", "Patience"]

_FIRST = 64  # rows
_MOST = 4096
_LEAST_SHARED = 16  # rows below which a small batch is not split among requests in flight
_FASTER = 0.9  # seconds per row, against those of half the size, that are worth growing for
_FORGIVEN = 32  # requests that succeed until a size that was too slow once is tried again
_SHORTEST = 1.0  # seconds that an answer is waited for at least
_TIMES = 8  # as long as the slowest of late, an answer may take
_LATELY = 32  # answers
_LEAST_SEEN = 4  # answers, before anything is concluded from them


class Pace:
    """The size of requests: more rows while that is faster for each of them, fewer on failure."""

    def __init__(self, most: int | None = None) -> None:
        self._hard = min(_MOST, most or _MOST)  # never more
        self._most = self._hard
        self._now = min(_FIRST, self._most)
        self._best: dict[int, float] = {}  # by size: seconds for a row
        self._succeeded = 0
        self._lock = threading.Lock()

    def size(self, left: int, in_flight: int) -> int:
        """Rows of the next request, of so many that are left."""
        with self._lock:
            shared = max(_LEAST_SHARED, math.ceil(left / in_flight))
            return max(1, min(self._now, shared, left))

    def learn(self, n: int, seconds: float) -> None:
        """A request of n rows took so long."""
        with self._lock:
            self._succeeded += 1
            if self._succeeded >= _FORGIVEN:
                self._most, self._succeeded = min(self._hard, 2 * self._most), 0
            if n < self._now:
                return
            per_row = seconds / n
            self._best[n] = min(per_row, self._best.get(n, math.inf))
            before = self._best.get(n // 2, math.inf)
            if self._best[n] < _FASTER * before and 2 * n <= self._most:
                self._now = 2 * n

    def shrink(self, n: int, *, for_good: bool) -> None:
        """A request of n rows was too large, by the server's word, or took too long."""
        with self._lock:
            self._most = max(1, n // 2)
            self._now = min(self._now, self._most)
            self._succeeded = 0
            if for_good:
                self._hard = self._most


class Patience:
    """How long an answer is waited for: several times the slowest of late, within limits.

    A request that is lost on the way then costs a few seconds, not the whole time-out.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self._seen: deque[tuple[int, float]] = deque(maxlen=_LATELY)
        self._lock = threading.Lock()

    def seconds(self, n: int, late: int = 0) -> float:
        """For n rows whose answer came too late so many times already: twice as long each time."""
        with self._lock:
            if len(self._seen) < _LEAST_SEEN:
                return self.most
            slowest = max(took for _, took in self._seen)
            # Only what is larger than all of them may take longer: most of a call is its own cost.
            slowest *= max(1.0, n / max(size for size, _ in self._seen))
        learned: float = max(_SHORTEST, _TIMES * slowest) * 2.0**late
        return min(self.most, learned)

    def learn(self, n: int, seconds: float) -> None:
        """A request of n rows was answered after so long."""
        with self._lock:
            self._seen.append((max(1, n), seconds))
