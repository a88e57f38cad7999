"""What the paper claims and what of it holds here, decided from the kept cells by a written rule.

`studies/claims.toml` lists the claims. Each is computed in the paper's way from the paper's
numbers, and in the same way from ours: with the paper's generator, with ours, and at equal numbers
of checked rows. Nobody enters a verdict by hand.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from limi.errors import CorruptStore
from limi.studies._files import PAPER_GENERATOR, Study, folder, load, paper_numbers
from limi.studies._results import DONE, Outcome, Results
from limi.studies._tables import MEASURES, at_rows, compare, complete

__all__ = ["RULE", "Judged", "PaperClaim", "judge", "list_claims"]

RULE = """\
A claim that a method is *first* is tried on each benchmark: it holds there if the method's worst
seed is better than the best seed of every rival, it fails there if the best seed of the method is
worse than the worst of some rival, and otherwise the benchmark is open. The claim holds if it
holds on all benchmarks, and is open if it holds on none and fails on none. Seeds are not paired:
every seed of one stands beside every seed of the other, also where two variants share their
latents and pairs would decide more (steps and boundaries; their pages count pairs). A claim of
*size* is computed once per seed, over all benchmarks in the paper's way: it holds if every seed
is on the claimed side and one reaches the paper's number; it is *smaller* if every seed is on the
claimed side and none reaches it; where the seeds stand on both sides it is open if one reaches
the paper's number or the paper has none, and else does not hold; the *opposite* holds if all
stand on the other side. A *bound* holds if every seed keeps it, fails if none does, and else is
open. One seed alone decides nothing in favor of a claim, so a smaller scale with several seeds
goes before a larger one with one. The last column judges the runs with the paper's generator, and
where there are none, those with `trees`, which it then says.

*Equal rows* are taken rival by rival: both methods are read off at the number of rows that the
shorter of the two runs checked, with CTGAN where that was run and else with `trees`. Relative
changes and Figure 3's ratios are means over benchmarks of each one's own, as the paper has them;
after them stands what the *means* over benchmarks give, where small rates weigh less. A benchmark
that starts from 0 (SPD on one, AOD on two) counts as no change in the first, as in the paper,
even where it rises; the means count the rise.
"""

NOT_RUN = "not run"
_KINDS = ("first", "times", "points", "less", "fall", "ratio of less", "pairs", "mean", "low")
_OPPOSITE = "no: the opposite"
_ONE_SEED = "open: one seed"
_ON_GPU = "not comparable"


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
    pairs: tuple[tuple[str, str], ...] = ()
    stated: float | None = None  # the paper's number, as printed
    benchmarks: str = ""  # of these tables alone
    ours: bool = False
    equal_rows: bool = False  # can it be asked at equal numbers of rows?
    bound: bool = False  # the stated number is to be kept, not reached
    on_gpu: bool = False  # speeds: LIMI ran on a GPU with CTGAN, and its rivals did not
    note: str = ""

    @property
    def null(self) -> float:
        """What the number would be if there were nothing to claim."""
        return 1.0 if self.kind in ("times", "ratio of less", "pairs") else 0.0


@dataclass(frozen=True)
class Judged:
    """A claim, what it comes to on every side, and whether it holds."""

    claim: PaperClaim
    paper: str
    with_paper_generator: str
    with_trees: str
    at_equal_rows: str
    holds: str


@dataclass(frozen=True)
class _Side:
    """A claim's number for each seed, or its count of benchmarks, and the words for it."""

    shown: str
    verdict: str
    scale: str = ""
    n_seeds: int = 2

    def __str__(self) -> str:
        return (
            f"{self.shown}, `{self.scale}`" if self.scale and self.scale != "paper" else self.shown
        )


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
    tuples = {
        "over": tuple(given.get("over", ())),
        "pairs": tuple(map(tuple, given.get("pairs", ()))),
    }
    claim = PaperClaim(**{**given, **tuples})
    if claim.kind not in _KINDS:
        raise KeyError(f"kind {claim.kind!r} is none of {_KINDS}")
    load(claim.study)
    return claim


def judge(claim: PaperClaim, known: Sequence[Results]) -> Judged:
    """A claim held against the results of its study, the largest scale first."""
    study = load(claim.study)
    known = [complete(study, results) for results in known]
    sides = {
        generator: _side(claim, study, known, generator) for generator in (PAPER_GENERATOR, "trees")
    }
    equal = None
    if claim.equal_rows:
        equal = _side(claim, study, known, PAPER_GENERATOR, equal=True) or _side(
            claim, study, known, "trees", equal=True
        )
    if claim.on_gpu:
        sides[PAPER_GENERATOR] = None
    chosen = sides[PAPER_GENERATOR] or sides["trees"]
    holds = NOT_RUN if chosen is None else chosen.verdict
    if holds and chosen is sides["trees"] is not None and _has_generator(claim, study):
        holds += " (`trees`)"
    return Judged(
        claim,
        _paper(claim, study),
        _ON_GPU
        if claim.on_gpu
        else str(sides[PAPER_GENERATOR] or NOT_RUN)
        if _has_generator(claim, study)
        else "",
        str(sides["trees"] or NOT_RUN),
        "" if not claim.equal_rows else str(equal or NOT_RUN),
        holds,
    )


def _has_generator(claim: PaperClaim, study: Study) -> bool:
    """Is any of its variants run with the paper's generator as well?"""
    named = {claim.first, *claim.over, *(name for pair in claim.pairs for name in pair)}
    if claim.kind == "mean" and claim.measure == "accuracy":
        return False  # of targets, which no generator changes
    if any(study.variant(name).of for name in filter(None, named)):
        return False  # it compares generators itself
    if claim.first and not any(variant.of == claim.first for variant in study.variants):
        return False  # its rivals alone were run with it
    return any(variant.of in named for variant in study.variants if variant.of)


# -- numbers --------------------------------------------------------------------------------

Get = Callable[[str, str], float | None]
"""The number of a benchmark and a variant, of one seed or of the paper."""


def _side(
    claim: PaperClaim, study: Study, known: Sequence[Results], generator: str, equal: bool = False
) -> _Side | None:
    """What the largest scale that has the numbers says, of those with several seeds first."""
    alone = None
    if generator == PAPER_GENERATOR and not _has_generator(claim, study):
        return None
    for results in known:
        benchmarks = _benchmarks(claim, results)
        of = partial(_named, study, generator)
        if claim.kind == "first":
            side = _count(claim, study, results, benchmarks, of, equal)
        else:
            side = _measure(claim, results, benchmarks, of, equal)
        if side is not None:
            told = _Side(side.shown, side.verdict, results.scale, side.n_seeds)
            if side.n_seeds > 1:
                return told
            alone = alone or told
    return alone


def _named(study: Study, generator: str, variant: str) -> str:
    """The variant as it is run with a generator; methods that need none have one name."""
    if generator != PAPER_GENERATOR:
        return variant
    return next((v.name for v in study.variants if v.of == variant), variant)


def _benchmarks(claim: PaperClaim, results: Results) -> list[str]:
    found = dict.fromkeys(outcome.benchmark for outcome in results.outcomes.values())
    return [b for b in found if b.startswith(claim.benchmarks)]


def _outcomes(results: Results, benchmark: str, variant: str) -> dict[int, Outcome]:
    return {o.seed: o for o in results.of(benchmark, variant) if o.status == DONE}


def _number(outcome: Outcome, measure: str) -> float | None:
    value = outcome.measures.get(measure)
    return float(value) if isinstance(value, (int, float)) else None


def _pair(
    claim: PaperClaim, first: Outcome, second: Outcome, equal: bool
) -> tuple[float | None, float | None]:
    """A measure of two cells; of findings at equal rows where that is asked."""
    if not equal:
        return _number(first, claim.measure), _number(second, claim.measure)
    rows = [_number(one, "rows") or 0.0 for one in (first, second)]
    return at_rows(first, min(rows)), at_rows(second, min(rows))


# -- who is first ---------------------------------------------------------------------------


def _count(
    claim: PaperClaim,
    study: Study,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
    equal: bool,
) -> _Side | None:
    """On how many benchmarks one variant is first of all, beyond the spread of the seeds."""
    sign = -1 if MEASURES[claim.measure].more_is_better is False else 1
    told: dict[str, int] = {"held": 0, "lost": 0, "open": 0}
    seeds: list[int] = []
    for benchmark in benchmarks:
        mine = _outcomes(results, benchmark, of(claim.first))
        verdicts = []
        for rival in claim.over:
            theirs = _outcomes(results, benchmark, of(rival))
            pairs = {
                (i, j): _pair(claim, a, b, equal)
                for i, a in mine.items()
                for j, b in theirs.items()
            }
            known = {
                place: (sign * a, sign * b)
                for place, (a, b) in pairs.items()
                if a is not None and b is not None
            }
            if not known:
                return None  # a rival without a number is not left out: nothing is decided
            seeds.append(min(len({i for i, _ in known}), len({j for _, j in known})))
            verdicts.append(compare(known.values()))
        if not verdicts:
            return None
        worst = "lost" if "lost" in verdicts else "open" if "open" in verdicts else "held"
        told[worst] += 1
    n = sum(told.values())
    if not n:
        return None
    shown = f"{told['held']} of {n}" + (f", {told['open']} open" if told["open"] else "")
    if min(seeds) < 2:
        shown += " (one seed)"
    verdict = "yes" if told["held"] == n else f"on {told['held']} of {n}" if told["held"] else "no"
    if not told["held"] and not told["lost"]:
        verdict = "open"
    if min(seeds) < 2 and told["held"]:
        verdict = _ONE_SEED
    return _Side(shown, verdict, n_seeds=min(seeds))


# -- how much -------------------------------------------------------------------------------


def _measure(
    claim: PaperClaim,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
    equal: bool,
) -> _Side | None:
    """A number for each seed, from all benchmarks in the paper's way."""
    named = [claim.first, *claim.over, *(name for pair in claim.pairs for name in pair)]
    wanted = [of(name) for name in named if name]
    cells = {(b, v): _outcomes(results, b, v) for b in benchmarks for v in wanted}
    if not cells or not all(cells.values()):
        return None
    common = set.intersection(*(set(found) for found in cells.values()))
    center = None if equal else compute(claim, benchmarks, partial(_of_all, claim, cells, of))
    values = []
    for seed in sorted(common):
        if equal:
            value = _times_at_equal_rows(claim, benchmarks, cells, of, seed)
        else:
            value = compute(claim, benchmarks, partial(_of_seed, claim, cells, of, seed))
        if value is not None:
            values.append(value)
    if not values:
        return None
    side = _size(claim, values, center)
    of_means = None if equal else _of_means(claim, benchmarks, partial(_of_all, claim, cells, of))
    if of_means is None or not math.isfinite(of_means):
        return side
    shown = f"{side.shown}; of the means {_show(claim, of_means)}"
    return _Side(shown, side.verdict, n_seeds=side.n_seeds)


def _of_all(
    claim: PaperClaim,
    cells: dict[tuple[str, str], dict[int, Outcome]],
    of: Callable[[str], str],
    benchmark: str,
    variant: str,
) -> float | None:
    """The mean over seeds; the paper's averages are those of such means."""
    outcomes = cells[(benchmark, of(variant))].values()
    known = [n for n in (_number(one, claim.measure) for one in outcomes) if n is not None]
    return statistics.fmean(known) if known else None


def _of_seed(
    claim: PaperClaim,
    cells: dict[tuple[str, str], dict[int, Outcome]],
    of: Callable[[str], str],
    seed: int,
    benchmark: str,
    variant: str,
) -> float | None:
    return _number(cells[(benchmark, of(variant))][seed], claim.measure)


def compute(claim: PaperClaim, benchmarks: Iterable[str], get: Get) -> float | None:
    """The number of a claim, as the paper computes it."""
    benchmarks = list(benchmarks)
    named = [claim.first, *claim.over, *(name for pair in claim.pairs for name in pair)]
    table = {v: [get(b, v) for b in benchmarks] for v in dict.fromkeys(filter(None, named))}
    if not benchmarks or any(x is None for line in table.values() for x in line):
        return None
    numbers: dict[str, list[float]] = {
        v: [x for x in line if x is not None] for v, line in table.items()
    }
    mean = {v: statistics.fmean(line) for v, line in numbers.items()}
    if claim.kind == "mean":
        return statistics.fmean(mean.values())
    if claim.kind == "low":
        return min(numbers[claim.first])
    if claim.kind == "pairs":
        ratios = [
            a / b
            for one, two in claim.pairs
            for a, b in zip(numbers[one], numbers[two], strict=True)
            if b
        ]
        return statistics.fmean(ratios)
    if claim.kind == "less":
        return _less(numbers[claim.over[0]], numbers[claim.first])
    if claim.kind == "ratio of less":
        before, rival = (numbers[name] for name in claim.over)
        mine, theirs = _less(before, numbers[claim.first]), _less(before, rival)
        # Where it rises with LIMI's findings there is nothing to compare; where it falls with
        # them alone, no factor is large enough.
        return mine / theirs if min(mine, theirs) > 0 else math.inf if mine > 0 else -math.inf
    others = statistics.fmean(mean[name] for name in claim.over)
    if claim.kind == "fall":
        return 1 - mean[claim.first] / others if others else None
    if claim.kind == "points":
        return mean[claim.first] - others
    return mean[claim.first] / others if others else None


def _of_means(claim: PaperClaim, benchmarks: Sequence[str], get: Get) -> float | None:
    """What a mean of changes or ratios would be if means over benchmarks were taken first."""
    if claim.kind not in ("less", "pairs"):
        return None
    pairs = claim.pairs or [(claim.first, claim.over[0])]
    found = [(get(b, one), get(b, two)) for one, two in pairs for b in benchmarks]
    known = [(a, b) for a, b in found if a is not None and b is not None]
    first, second = sum(a for a, _ in known), sum(b for _, b in known)
    if not second:
        return None
    return first / second if claim.kind == "pairs" else 1 - first / second


def _less(before: Sequence[float], after: Sequence[float]) -> float:
    """Mean relative reduction over benchmarks; one that starts from 0 counts as none.

    The paper counts so. Where such a number rises, only the change of the means shows it.
    """
    return statistics.fmean((b - a) / b if b else 0.0 for b, a in zip(before, after, strict=True))


def _times_at_equal_rows(
    claim: PaperClaim,
    benchmarks: Sequence[str],
    cells: dict[tuple[str, str], dict[int, Outcome]],
    of: Callable[[str], str],
    seed: int,
) -> float | None:
    """Times as many findings as the rivals, each rival at the rows that both had checked."""
    pairs = [(claim.first, rival) for rival in claim.over] or claim.pairs
    mine, theirs = [], []
    for first, rival in pairs:
        for benchmark in benchmarks:
            one, two = (cells[(benchmark, of(name))][seed] for name in (first, rival))
            a, b = _pair(claim, one, two, equal=True)
            if a is None or b is None:
                return None
            mine.append(a)
            theirs.append(b)
    if claim.pairs:
        return statistics.fmean(a / b for a, b in zip(mine, theirs, strict=True) if b)
    return sum(mine) / sum(theirs) if sum(theirs) else None


def _size(claim: PaperClaim, values: Sequence[float], center: float | None) -> _Side:
    """Words for a number with its spread, and the verdict of the rule."""
    low, high = min(values), max(values)
    if not math.isfinite(low * high):
        words = [_show(claim, low), _show(claim, high)]
        return _Side(" to ".join(dict.fromkeys(words)), "yes" if low > 0 else "no")
    shown = _show(claim, statistics.fmean(values) if center is None else center)
    ends = sorted([low, high], reverse=claim.kind in ("less", "fall"))
    if len(values) > 1 and _show(claim, low) != _show(claim, high):
        shown += f" ({_show(claim, ends[0])} to {_show(claim, ends[1])})"
    if len(values) == 1:
        shown += " (one seed)"
    if claim.kind == "mean":
        return _Side(shown, "", n_seeds=len(values))
    if claim.bound and claim.stated is not None:
        kept = "yes" if low >= claim.stated else "no" if high < claim.stated else "open"
        alone = kept == "yes" and len(values) == 1
        return _Side(shown, _ONE_SEED if alone else kept, n_seeds=len(values))
    if len(values) == 1:
        return _Side(shown, _ONE_SEED, n_seeds=1)
    if high < claim.null:
        return _Side(shown, _OPPOSITE)
    if low <= claim.null:
        return _Side(shown, "open" if claim.stated is None or high >= claim.stated else "no")
    return _Side(shown, "yes" if claim.stated is None or high >= claim.stated else "smaller")


def _show(claim: PaperClaim, value: float) -> str:
    if not math.isfinite(value):
        return "falls with LIMI's alone" if value > 0 else "does not fall with LIMI's"
    if claim.kind in ("times", "ratio of less", "pairs"):
        return f"{value:,.2f} x" if abs(value) < 10 else f"{value:,.1f} x"
    if claim.kind in ("less", "fall"):
        return f"{-100 * value:+.1f} %"
    if claim.kind == "points":
        return f"{100 * value:+.1f} points"
    if claim.measure.startswith("auc"):
        return f"{value:.3f}"
    return f"{100 * value:.1f} %"


def _paper(claim: PaperClaim, study: Study) -> str:
    """What the paper says: its printed number, and what its own table gives where that differs."""
    if claim.ours:
        return ""
    numbers = paper_numbers(study.name).get(claim.measure, {})
    benchmarks = [b for b in numbers if b.startswith(claim.benchmarks) and not b.startswith("mean")]
    whole = [b for b in numbers if b.startswith("mean")]
    stated = None if claim.stated is None else _show(claim, claim.stated)
    if claim.kind == "first":
        sign = -1 if MEASURES[claim.measure].more_is_better is False else 1
        used = benchmarks or whole
        if not used:
            return f"{int(claim.stated)} of {int(claim.stated)}" if claim.stated else ""
        ahead = sum(
            all(sign * numbers[b][claim.first] > sign * numbers[b][r] for r in claim.over)
            for b in used
        )
        return f"{ahead} of {len(used)}"
    value = compute(claim, benchmarks or whole, lambda b, v: numbers.get(b, {}).get(v))
    if value is None:
        return stated or ""
    computed = _show(claim, value)
    if stated is None or stated == computed:
        return computed
    return f"{stated} (its table: {computed})"
