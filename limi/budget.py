"""When a run ends, and why it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from limi.errors import InvalidInput

__all__ = ["Budget", "Stop"]


class Stop(StrEnum):
    """Why a run ended."""

    ROWS = "rows"
    QUERIES = "queries"
    FINDINGS = "findings"
    SECONDS = "seconds"
    EXHAUSTED = "exhausted"  # the method had nothing left to check
    INTERRUPTED = "interrupted"


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
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidInput(
                    f"{name.replace('_', '-')} is {value}; a budget must be above 0 "
                    "(leave it out for no limit)"
                )
