"""The claims of `studies/claims.toml`: sentences of the paper, and of ours, that numbers can bear
out."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lab.files import folder, load
from lab.measures import MEASURES
from limi.errors import CorruptStore, nearest

__all__ = ["FIRST", "PaperClaim", "list_claims"]

FIRST = ("first", "first of means", "steadiest", "best", "table", "order")
"""Kinds that say who is first, and not by how much."""

_KINDS = (
    *FIRST,
    "times",
    "points",
    "difference",
    "less",
    "fall",
    "ratio of less",
    "pairs",
    "range",
    "mean",
    "low",
    "high",
)
_TUPLES = ("over", "group", "benchmarks")


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """One sentence of the paper, or of ours, that numbers can bear out."""

    says: str
    where: str  # the table or section
    study: str
    kind: str
    measure: str
    first: str = ""
    over: tuple[str, ...] = ()
    group: tuple[str, ...] = ()  # in place of `first`: the mean of several
    order: tuple[tuple[str, ...], ...] = ()  # groups, the best first
    pairs: tuple[tuple[str, str], ...] = ()
    stated: float | None = None  # the paper's number, as printed
    benchmarks: tuple[str, ...] = ()  # of these tables alone
    table: str = ""  # the one that is said to have the lowest number
    ours: bool = False
    minor: bool = False  # on the page of claims alone
    again: bool = False  # a statement that another claim reads more nearly, so it is not counted
    at_most: bool = False  # with the paper's generator the number is an upper limit
    equal_rows: bool = False  # can it be asked at equal numbers of rows?
    bound: bool = False  # the stated number, or the paper's own, is to be kept and not reached
    each: bool = False  # a mean over variants whose own numbers are shown as well
    control: str = ""  # the variant that shows what happens without findings
    also: str = ""  # of the same, for the paper's number; shown beside a size, not a count
    also_says: str = ""  # what that one is
    says_so: str = ""  # what the paper says where it prints no number
    note: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Every variant that it compares."""
        pairs = (name for pair in (*self.pairs, *self.order) for name in pair)
        return tuple(filter(None, (self.first, *self.group, *self.over, *pairs)))

    @property
    def null(self) -> float:
        """What the number would be if there were nothing to claim."""
        return 1.0 if self.kind in ("times", "ratio of less", "pairs") else 0.0

    @property
    def is_bound(self) -> bool:
        """Is its number to be kept, and not to be reached?"""
        return self.bound or self.kind == "range"

    @property
    def is_of_targets(self) -> bool:
        """Is it about the targets themselves, which no seed of a search and no generator varies?"""
        return self.kind == "mean" and self.measure == "accuracy"

    def is_of(self, benchmark: str) -> bool:
        """Is it claimed of this benchmark?"""
        return not self.benchmarks or benchmark.startswith(self.benchmarks)


@cache
def list_claims() -> tuple[PaperClaim, ...]:
    """Every claim, in the order of the paper, then ours."""
    path = folder() / "claims.toml"
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        return tuple(_claim(given) for given in tree["claims"])
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CorruptStore(f"the file {path.name!r} cannot be read: {error}") from None


def _claim(given: dict[str, Any]) -> PaperClaim:
    tuples: dict[str, Any] = {name: tuple(given.get(name, ())) for name in _TUPLES}
    tuples |= {name: tuple(map(tuple, given.get(name, ()))) for name in ("pairs", "order")}
    claim = PaperClaim(**{**given, **tuples})
    if claim.kind not in _KINDS:
        raise KeyError(f"kind {claim.kind!r} is none of {_KINDS}")
    for name in filter(None, (claim.measure, claim.also)):
        if name not in MEASURES:
            raise KeyError(f"{name!r} is not a measure; {nearest(name, MEASURES)}")
    _check_names(claim)
    return claim


def _check_names(claim: PaperClaim) -> None:
    """CorruptStore where a claim names what its study does not have."""
    study = load(claim.study)
    variants = [variant.name for variant in study.variants]
    _require("variant", (*claim.named, claim.control), variants, claim)
    _require("benchmark", (claim.table,), study.benchmarks, claim)
    # A benchmark may be named by its table.
    fits = [one for one in claim.benchmarks if any(b.startswith(one) for b in study.benchmarks)]
    _require("benchmark", set(claim.benchmarks) - set(fits), study.benchmarks, claim)


def _require(kind: str, names: Iterable[str], known: Collection[str], claim: PaperClaim) -> None:
    for name in filter(None, names):
        if name not in known:
            raise CorruptStore(
                f"the claim {claim.says!r} names the {kind} {name!r}, which the study "
                f"{claim.study!r} does not have; {nearest(name, known)}"
            )
