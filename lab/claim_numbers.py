"""The number of a claim from given numbers, the paper's or ours, computed in the paper's way."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.files import paper_numbers
from lab.measures import MEASURES, SPEEDS, show
from lab.paper_claims import PaperClaim

__all__ = ["Get", "average_ratios", "compute", "compute_of_means", "compute_of_paper"]
__all__ += ["count_in_the_paper", "find_limit", "find_steadiness", "list_published"]
__all__ += ["show_size", "show_steadiness"]

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
    mean = {v: statistics.fmean(line) for v, line in numbers.items()}
    if claim.kind == "mean":
        return statistics.fmean(mean.values())
    if claim.kind == "range":
        return max(mean.values()) / min(mean.values()) if min(mean.values()) else None
    if claim.kind in ("low", "high"):
        pick = min if claim.kind == "low" else max
        return pick(value for line in numbers.values() for value in line)
    if claim.kind == "pairs":
        lines = [
            (a, b)
            for one, two in claim.pairs
            for a, b in zip(numbers[one], numbers[two], strict=True)
        ]
        return average_ratios(lines)
    if claim.kind in ("less", "ratio of less"):
        return _relative(claim, numbers)
    others = statistics.fmean(mean[name] for name in claim.over)
    if claim.kind == "fall":
        return 1 - mean[claim.first] / others if others else None
    if claim.kind in ("points", "difference"):
        return statistics.fmean(mean[name] for name in claim.group or (claim.first,)) - others
    return mean[claim.first] / others if others else None


def average_ratios(lines: Sequence[tuple[float, float]]) -> float | None:
    """None where there is nothing to be more than."""
    if not all(second for _, second in lines):
        return None
    return statistics.fmean(first / second for first, second in lines)


def _relative(claim: PaperClaim, numbers: Mapping[str, Sequence[float]]) -> float:
    """The mean relative reduction, or that reduction in times of a rival's."""
    before, mine = numbers[claim.over[0]], numbers[claim.first]
    if claim.kind == "less":
        return _less(before, mine)
    ours, theirs = _less(before, mine), _less(before, numbers[claim.over[1]])
    # Where it rises with LIMI's findings there is nothing to compare; where it falls with them
    # alone, no factor is large enough.
    return ours / theirs if min(ours, theirs) > 0 else math.inf if ours > 0 else -math.inf


def find_steadiness(line: Iterable[float]) -> float:
    """The largest of the benchmarks in times of the smallest."""
    values = list(line)
    return max(values) / min(values) if min(values) > 0 else math.inf


def show_steadiness(value: float) -> str:
    """As it is written; of a method that finds nothing on a benchmark there is no number."""
    return f"{value:.1f} x" if math.isfinite(value) else "none on some"


def compute_of_means(claim: PaperClaim, lines: Mapping[str, Sequence[float]]) -> float | None:
    """What a mean of changes or ratios would be if means over benchmarks were taken first."""
    if claim.kind not in ("less", "pairs"):
        return None
    pairs = claim.pairs or [(claim.first, claim.over[0])]
    first, second = (sum(sum(lines[pair[n]]) for pair in pairs) for n in (0, 1))
    if not second:
        return None
    return first / second if claim.kind == "pairs" else 1 - first / second


def _less(before: Sequence[float], after: Sequence[float]) -> float:
    """Mean relative reduction over benchmarks; one that starts from 0 counts as none.

    The paper counts so. Where such a number rises, only the change of the means shows it.
    """
    return statistics.fmean((b - a) / b if b else 0.0 for b, a in zip(before, after, strict=True))


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
    if claim.kind in ("times", "ratio of less", "pairs", "range"):
        return f"{value:,.2f} x" if abs(value) < 10 else f"{value:,.1f} x"
    if claim.kind in ("less", "fall"):
        return f"{_signed(-100 * value)} %"
    if claim.kind == "points":
        return f"{_signed(100 * value)} points"
    if claim.kind == "difference":
        return ("+" if value > 0 else "") + show(value, claim.measure)
    if claim.measure.startswith("auc"):
        return f"{value:.3f}"
    if claim.measure in ("findings", *SPEEDS):
        return show(value, claim.measure)
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    """With its sign, unless it is none."""
    return f"{value:+.1f}" if round(value, 1) else "0.0"
