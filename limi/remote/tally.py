"""What was sent, and what came of it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Tally"]


@dataclass
class Tally:
    """Counts of a run; several threads add to them."""

    sent: int = 0  # rows, each counted once however often it had to be sent
    before: int = 0  # of them, those that were sent before the run was resumed
    again: int = 0  # rows sent again, because no answer came that could be used
    known: int = 0  # rows answered from memory
    requests: int = 0
    answers: int = 0  # of a chat model
    refused: int = 0  # of them, those that decide nothing
    failed: int = 0  # requests without an answer that could be used
    failures: dict[str, int] = field(default_factory=dict)  # why requests failed
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **more: int) -> None:
        """Count more."""
        with self._lock:
            for name, n in more.items():
                setattr(self, name, getattr(self, name) + n)

    def fail(self, why: str) -> None:
        """Count a request that failed."""
        with self._lock:
            self.failed += 1
            self.failures[why] = self.failures.get(why, 0) + 1

    def as_dict(self, price: float | None = None) -> dict[str, Any]:
        """For a report; the cost is that of all rows that travelled."""
        tree: dict[str, Any] = {
            "rows_sent": self.sent,
            **({"rows_sent_before": self.before} if self.before else {}),
            "rows_sent_again": self.again,
            "rows_from_cache": self.known,
            "requests": self.requests,
            "requests_failed": self.failed,
            "failures": dict(self.failures),
        }
        if self.answers:
            tree |= {"answers": self.answers, "refused": self.refused}
        if price is not None:
            tree["price_per_1000"] = price
            tree["cost"] = round(price * self.sent / 1000, 6)
            tree["cost_with_retries"] = round(price * (self.sent + self.again) / 1000, 6)
        return tree
