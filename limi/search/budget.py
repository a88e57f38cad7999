"""When a run ends, and why it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from limi.errors import InvalidInput

__all__ = ["MOST", "Budget", "Stop", "check_seed"]

MOST = 10**15
"""A larger budget is a slip of the hand, and counts of such size are no longer exact."""


class Stop(StrEnum):
    """Why a run ended."""

    ROWS = "rows"
    QUERIES = "queries"
    FINDINGS = "findings"
    SECONDS = "seconds"
    EXHAUSTED = "exhausted"  # the method had nothing left to check
    RULES = "rules"  # hardly a proposed row keeps the rules of the table
    INTERRUPTED = "interrupted"


def check_seed(seed: int) -> None:
    """InvalidInput where no stream of random numbers starts at a seed."""
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it must be 0 or a positive whole number")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a run; None means no limit."""

    max_rows: int | None = None
    max_queries: int | None = None
    max_findings: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_queries", "max_findings", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and value != math.inf):
                raise InvalidInput(
                    f"{name.replace('_', '-')} is {value}; a budget must be above 0 "
                    "(leave it out for no limit)"
                )
            if value is not None and value > MOST:
                much = f"of {len(str(value))} digits" if isinstance(value, int) else f"{value:.6g}"
                raise InvalidInput(
                    f"{name.replace('_', '-')} is {much}, more than can ever be spent; use "
                    f"{MOST:,} or less (or leave it out for no limit)"
                )
