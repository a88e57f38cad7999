"""The claims of `studies/claims.toml`: sentences of the paper, and of ours, that numbers can bear
out, and what the paper's own tables give for them.

There are five kinds: a method is `first` on so many benchmarks, or `first of means` over them, one
of several is the `best`, groups stand in an `order`, or a number has a `size`. The formulas of such
numbers are `FORMULAS`.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lab.files import Study, folder, load, paper_numbers
from lab.measures import MEASURES, SPEEDS, show
from lab.rule import TIE, find_first
from limi.errors import CorruptStore, nearest

__all__ = ["FORMULAS", "PaperClaim", "average_ratios", "compute", "compute_of_means"]
__all__ += ["compute_of_paper", "count_in_the_paper", "find_limit", "find_steadiness"]
__all__ += ["list_claims", "show_size", "show_steadiness", "tell_paper"]

KINDS = ("first", "first of means", "best", "order", "size")
_TUPLES = ("over", "group", "benchmarks")


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """One sentence of the paper, or of ours, that numbers can bear out."""

    says: str
    where: str  # the table or section
    study: str
    kind: str
    measure: str
    number: str = ""  # the formula of a size; `steadiness` of a mean
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
        return 1.0 if self.number in ("times", "ratio of less", "pairs") else 0.0

    @property
    def is_bound(self) -> bool:
        """Is its number to be kept, and not to be reached?"""
        return self.bound or self.number == "range"

    @property
    def is_of_targets(self) -> bool:
        """Is it about the targets themselves, which no seed of a search and no generator varies?"""
        return self.number == "mean" and self.measure == "accuracy"

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
    if claim.kind not in KINDS:
        raise KeyError(f"kind {claim.kind!r} is none of {KINDS}")
    if claim.kind == "size" and claim.number not in FORMULAS:
        raise KeyError(f"number {claim.number!r} is none of {[*FORMULAS]}")
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


# -- numbers, the paper's or ours, computed in the paper's way --------------------------------

Get = Callable[[str, str], float | None]
"""The number of a benchmark and a variant, of one seed or of the paper."""


def compute(claim: PaperClaim, benchmarks: Iterable[str], get: Get) -> float | None:
    """The number of a claim, as the paper computes it."""
    benchmarks = list(benchmarks)
    table = {v: [get(b, v) for b in benchmarks] for v in dict.fromkeys(claim.named)}
    if not benchmarks or any(x is None for line in table.values() for x in line):
        return None
    numbers: dict[str, list[float]] = {
        v: [x for x in line if x is not None] for v, line in table.items()
    }
    return FORMULAS[claim.number](claim, numbers)


def average_ratios(lines: Sequence[tuple[float, float]]) -> float | None:
    """None where there is nothing to be more than."""
    if not all(second for _, second in lines):
        return None
    return statistics.fmean(first / second for first, second in lines)


def find_steadiness(line: Iterable[float]) -> float:
    """The largest of the benchmarks in times of the smallest."""
    values = list(line)
    return max(values) / min(values) if min(values) > 0 else math.inf


def show_steadiness(value: float) -> str:
    """As it is written; of a method that finds nothing on a benchmark there is no number."""
    return f"{value:.1f} x" if math.isfinite(value) else "none on some"


def compute_of_means(claim: PaperClaim, lines: Mapping[str, Sequence[float]]) -> float | None:
    """What a mean of changes or ratios would be if means over benchmarks were taken first."""
    if claim.number not in ("less", "pairs"):
        return None
    pairs = claim.pairs or [(claim.first, claim.over[0])]
    first, second = (sum(sum(lines[pair[n]]) for pair in pairs) for n in (0, 1))
    if not second:
        return None
    return first / second if claim.number == "pairs" else 1 - first / second


def _less(before: Sequence[float], after: Sequence[float]) -> float:
    """Mean relative reduction over benchmarks; one that starts from 0 counts as none.

    The paper counts so. Where such a number rises, only the change of the means shows it.
    """
    return statistics.fmean((b - a) / b if b else 0.0 for b, a in zip(before, after, strict=True))


_Numbers = Mapping[str, Sequence[float]]
"""Of each variant the number on every benchmark."""


def _mean_of(numbers: _Numbers, names: Iterable[str]) -> float:
    return statistics.fmean(statistics.fmean(numbers[name]) for name in names)


def _times(claim: PaperClaim, numbers: _Numbers) -> float | None:
    others = _mean_of(numbers, claim.over)
    return _mean_of(numbers, [claim.first]) / others if others else None


def _fall(claim: PaperClaim, numbers: _Numbers) -> float | None:
    others = _mean_of(numbers, claim.over)
    return 1 - _mean_of(numbers, [claim.first]) / others if others else None


def _gap(claim: PaperClaim, numbers: _Numbers) -> float:
    return _mean_of(numbers, claim.group or (claim.first,)) - _mean_of(numbers, claim.over)


def _change(claim: PaperClaim, numbers: _Numbers) -> float:
    return _less(numbers[claim.over[0]], numbers[claim.first])


def _times_the_change(claim: PaperClaim, numbers: _Numbers) -> float:
    """Where it rises with LIMI's findings there is nothing to compare; where it falls with them
    alone, no factor is large enough."""
    before, rival = (numbers[name] for name in claim.over[:2])
    ours, theirs = _less(before, numbers[claim.first]), _less(before, rival)
    return ours / theirs if min(ours, theirs) > 0 else math.inf if ours > 0 else -math.inf


def _pairs(claim: PaperClaim, numbers: _Numbers) -> float | None:
    lines = [pair for a, b in claim.pairs for pair in zip(numbers[a], numbers[b], strict=True)]
    return average_ratios(lines)


def _range(claim: PaperClaim, numbers: _Numbers) -> float | None:
    means = [statistics.fmean(line) for line in numbers.values()]
    return max(means) / min(means) if min(means) else None


FORMULAS: Mapping[str, Callable[[PaperClaim, _Numbers], float | None]] = {
    "times": _times,
    "points": _gap,
    "difference": _gap,
    "less": _change,
    "fall": _fall,
    "ratio of less": _times_the_change,
    "pairs": _pairs,
    "range": _range,
    "mean": lambda claim, numbers: _mean_of(numbers, numbers),
    "low": lambda claim, numbers: min(x for line in numbers.values() for x in line),
    "high": lambda claim, numbers: max(x for line in numbers.values() for x in line),
}
"""The number of a claim of size, by name."""


def list_published(claim: PaperClaim) -> Mapping[str, Mapping[str, float]]:
    """The paper's numbers of a claim's measure, by benchmark and variant.

    It has one count of findings, and some of ours are read off at its limit.
    """
    published = paper_numbers(claim.study)
    return published.get(claim.measure) or published.get(claim.also, {})


def count_in_the_paper(claim: PaperClaim) -> tuple[int, int]:
    """On how many of its benchmarks a method is first in the paper's table, and of how many."""
    numbers = {} if claim.ours else list_published(claim)
    sign = MEASURES[claim.measure].sign
    lines = [numbers[b] for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    whole = [line for line in lines if {claim.first, *claim.over} <= set(line)]
    ahead = sum(
        all(sign * line[claim.first] > sign * line[r] for r in claim.over) for line in whole
    )
    return ahead, len(whole)


def find_limit(claim: PaperClaim) -> float | None:
    """What a bound has to keep: the number that the paper states, or else that of its table."""
    return claim.stated if claim.stated is not None else compute_of_paper(claim)


def compute_of_paper(claim: PaperClaim) -> float | None:
    """The claim's number, computed from the paper's own table."""
    numbers = list_published(claim)
    benchmarks = [b for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    whole = [b for b in numbers if b.startswith("mean")]
    return compute(claim, benchmarks or whole, lambda b, v: numbers.get(b, {}).get(v))


def show_size(claim: PaperClaim, value: float) -> str:
    """The number of a claim, as it is written."""
    if not math.isfinite(value):
        return "falls with LIMI's alone" if value > 0 else "does not fall with LIMI's"
    if claim.number in ("times", "ratio of less", "pairs", "range"):
        return f"{value:,.2f} x" if abs(value) < 10 else f"{value:,.1f} x"
    if claim.number in ("less", "fall"):
        return f"{_signed(-100 * value)} %"
    if claim.number == "points":
        return f"{_signed(100 * value)} points"
    if claim.number == "difference":
        return ("+" if value > 0 else "") + show(value, claim.measure)
    if claim.measure.startswith("auc"):
        return f"{value:.3f}"
    if claim.measure in ("findings", *SPEEDS):
        return show(value, claim.measure)
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    """With its sign, unless it is none."""
    return f"{value:+.1f}" if round(value, 1) else "0.0"


# -- the paper's own side ---------------------------------------------------------------------


def tell_paper(claim: PaperClaim, study: Study) -> str:
    """What the paper says: its printed number, and what its own table gives where that differs."""
    if claim.ours:
        return ""
    if claim.kind != "size":
        return claim.says_so or _first_in_the_paper(claim, study)
    stated = None if claim.stated is None else show_size(claim, claim.stated)
    value = compute_of_paper(claim)
    if value is None:
        return claim.says_so or stated or ""
    computed = show_size(claim, value)
    if stated is None or stated == computed or claim.bound:
        return stated or computed
    return f"{stated} (its table: {computed})"


def _first_in_the_paper(claim: PaperClaim, study: Study) -> str:
    """On how many of its benchmarks a method is first in the paper's table, or which one is."""
    numbers = list_published(claim)
    sign = MEASURES[claim.measure].sign
    benchmarks = [b for b in numbers if claim.is_of(b) and not b.startswith("mean")]
    if claim.number == "steadiness":
        return _steadiest_in_the_paper(claim, [numbers[b] for b in benchmarks])
    if claim.kind == "first of means":
        line = numbers["mean"]
        rival = max(claim.over, key=lambda name: sign * line[name])
        mine, theirs = (show(line[name], claim.measure) for name in (claim.first, rival))
        return f"{mine}; {rival} {theirs}"
    if claim.table:
        means = {b: statistics.fmean(numbers[b][v] for v in claim.over) for b in benchmarks}
        lowest = find_first({b: -mean for b, mean in means.items()})
        return lowest if lowest == TIE else f"`{lowest}`"
    if claim.kind == "best":
        means = {v: statistics.fmean(numbers[b][v] for b in benchmarks) for v in claim.over}
        best = find_first({v: sign * mean for v, mean in means.items()})
        return best if best == TIE else study.variant(best).label
    ahead, n = count_in_the_paper(claim)
    return f"{ahead} of {n}"


def _steadiest_in_the_paper(claim: PaperClaim, lines: Sequence[Mapping[str, float]]) -> str:
    """The largest over the smallest benchmark, of the method and of the steadiest rival."""
    spread = {name: find_steadiness(line[name] for line in lines) for name in claim.named}
    rival = min(claim.over, key=lambda name: spread[name])
    return f"{show_steadiness(spread[claim.first])}; {rival} {show_steadiness(spread[rival])}"
