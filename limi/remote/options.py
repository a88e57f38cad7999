"""What a user says of a model behind an address, beside the address itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from limi.errors import InvalidInput
from limi.system.arguments import check_fields

__all__ = ["Remote"]

_MOST_AT_ONCE = 256  # requests in flight; more are an attack and not an audit


@dataclass(frozen=True, kw_only=True)
class Remote:
    """How a model behind an address is asked.

    Headers are texts such as `"Authorization: Bearer $TOKEN"`, in which names are filled in from
    the environment as a request is made, and never elsewhere.
    """

    headers: tuple[str, ...] = ()
    concurrency: int = 4  # requests in flight
    cache: str | Path | None = None  # a file that keeps the answers, for this run and later ones
    max_queries: int | None = None  # rows that may be sent
    price: float | None = None  # of 1,000 queries
    timeout: float = 60.0  # seconds for an answer at most; less where answers have been quicker
    backoff: float = 0.25  # seconds before the first retry; each further one waits twice as long
    run: str = ""  # what the count of rows that were sent stands under in the cache
    resume: bool = False  # does that count go on?
    look: Callable[[], None] | None = None  # called while answers are waited for; it may raise

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.concurrency <= _MOST_AT_ONCE:
            raise InvalidInput(
                f"concurrency is {self.concurrency}; the number of requests in flight must lie "
                f"between 1 and {_MOST_AT_ONCE}"
            )
        for name in ("price", "timeout", "backoff"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InvalidInput(f"{name} is {value}; it must be 0 or more")
        if not self.timeout:
            raise InvalidInput(
                "timeout is 0; give the number of seconds that an answer may take at most"
            )
