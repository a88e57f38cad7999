"""When a run ends, and why it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from limi.errors import InvalidInput
from limi.system.arguments import check_fields

__all__ = ["MOST", "Budget", "Stop", "check_seed", "first_look", "queries_for", "round_up"]

MOST = 10**15
"""A larger budget is a slip of the hand, and counts of such size are no longer exact."""


_LOOK_SHARE = 40  # a row may be asked about four times, and is then a tenth of the queries
_LOOKS = 8  # of so many rows each: how to read the model, its contract, and whether it is steady
_MOST_LOOKED = 8_200  # questions of the first look where they are not few


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


def first_look(max_queries: int | None, most: int) -> int:
    """Rows for one part of the first look at a model: `most`, or few where questions are few."""
    return most if max_queries is None else max(2, min(most, max_queries // _LOOK_SHARE))


def round_up(number: float) -> int:
    """Two digits: more would promise what nobody knows."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


def queries_for(questions: float, share: float) -> int:
    """A budget of queries of which `share` pays for the first look and so many questions."""
    look = _LOOKS / _LOOK_SHARE
    return round_up(min(questions / (share - look), (questions + _MOST_LOOKED) / share))


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a run; None means no limit."""

    max_rows: int | None = None
    max_queries: int | None = None
    max_findings: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
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
