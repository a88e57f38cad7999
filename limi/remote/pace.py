"""How many rows a request has: more while that is faster for each row, fewer where it fails."""

from __future__ import annotations

import math
import threading

__all__ = ["Pace"]

_FIRST = 64  # rows
_MOST = 4096
_LEAST_SHARED = 16  # rows below which a small batch is not split among requests in flight
_FASTER = 0.9  # seconds per row, against those of half the size, that are worth growing for
_FORGIVEN = 32  # requests that succeed until a size that was too slow once is tried again


class Pace:
    """The size of requests; threads tell how long theirs took."""

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
