"""What the paper claims and what of it holds here, decided from the kept cells by a written rule.

`studies/claims.toml` lists the claims and the rule. Each is computed in the paper's way from the
paper's numbers, and in the same way from ours: with the paper's generator, with ours, and at equal
numbers of checked rows. Nobody enters a verdict by hand.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from limi.errors import CorruptStore
from limi.studies._conditions import is_on_gpu
from limi.studies._derived import at_rows, complete
from limi.studies._files import PAPER_GENERATOR, Study, folder, load, paper_numbers
from limi.studies._measures import MEASURES, SPEEDS, show
from limi.studies._results import DONE, Outcome, Results
from limi.studies._rule import compare

__all__ = ["Judged", "PaperClaim", "judge", "list_claims"]

NOT_RUN = "not run"
_FIRST = ("first", "first of means", "best")
_KINDS = (
    *_FIRST,
    "times",
    "points",
    "less",
    "fall",
    "ratio of less",
    "pairs",
    "mean",
    "low",
    "high",
)
_OPPOSITE = "no: the opposite"
_ONE_SEED = "open: one seed"
_ALONE = " (one seed)"
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
    group: tuple[str, ...] = ()  # in place of `first`: the mean of several
    pairs: tuple[tuple[str, str], ...] = ()
    stated: float | None = None  # the paper's number, as printed
    benchmarks: tuple[str, ...] = ()  # of these tables alone
    ours: bool = False
    equal_rows: bool = False  # can it be asked at equal numbers of rows?
    bound: bool = False  # the stated number, or the paper's own, is to be kept and not reached
    says_so: str = ""  # what the paper says where it prints no number
    note: str = ""
    fixed: tuple[str, ...] = ()  # numbers of the note that are definitions

    @property
    def named(self) -> tuple[str, ...]:
        """Every variant that it compares."""
        pairs = (name for pair in self.pairs for name in pair)
        return tuple(filter(None, (self.first, *self.group, *self.over, *pairs)))

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
    brief: tuple[str, str, str] = ("", "", "")  # the three sides without their spreads


@dataclass(frozen=True)
class _Side:
    """A claim's number for each seed, or its count of benchmarks, and the words for it."""

    shown: str
    verdict: str
    scale: str = ""
    n_seeds: int = 2
    more: str = ""  # the spread over seeds, and what other averages give

    def __str__(self) -> str:
        return self._at_scale(self.shown + self.more)

    @property
    def brief(self) -> str:
        """Without the spread."""
        return self._at_scale(self.shown)

    def _at_scale(self, told: str) -> str:
        return f"{told}, `{self.scale}`" if self.scale not in ("", "paper") else told


_NOTHING = _Side(NOT_RUN, NOT_RUN)


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
    tuples = {name: tuple(given.get(name, ())) for name in ("over", "group", "benchmarks", "fixed")}
    pairs = tuple(map(tuple, given.get("pairs", ())))
    claim = PaperClaim(**{**given, **tuples, "pairs": pairs})
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
    chosen = sides[PAPER_GENERATOR] or sides["trees"]
    if chosen is not None and chosen.verdict == _ON_GPU:
        chosen = sides["trees"]
    holds = NOT_RUN if chosen is None else chosen.verdict
    has_both = _has_generator(claim, study)
    if holds and chosen is sides["trees"] is not None and has_both:
        holds += " (`trees`)"
    told = [
        (sides[PAPER_GENERATOR] or _NOTHING) if has_both else None,
        sides["trees"] or _NOTHING,
        (equal or _NOTHING) if claim.equal_rows else None,
    ]
    ctgan, trees, at_equal_rows = ("" if side is None else str(side) for side in told)
    short, of_trees, of_equal = ("" if side is None else side.brief for side in told)
    return Judged(
        claim,
        _paper(claim, study),
        ctgan,
        trees,
        at_equal_rows,
        holds,
        (short, of_trees, of_equal),
    )


def _has_generator(claim: PaperClaim, study: Study) -> bool:
    """Is any of its variants run with the paper's generator as well?"""
    if claim.kind == "mean" and claim.measure == "accuracy":
        return False  # of targets, which no generator changes
    if any(study.variant(name).of for name in claim.named):
        return False  # it compares generators itself
    if claim.first and not any(variant.of == claim.first for variant in study.variants):
        return False  # its rivals alone were run with it
    return any(variant.of in claim.named for variant in study.variants if variant.of)


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
        if claim.measure in SPEEDS and _may_be_on_gpu(claim, results, benchmarks, of):
            side: _Side | None = _Side(_ON_GPU, _ON_GPU)
        elif claim.kind == "first":
            side = _count(claim, results, benchmarks, of, equal)
        elif claim.kind == "first of means":
            side = _first_of_means(claim, results, benchmarks, of, equal)
        elif claim.kind == "best":
            side = _best(claim, study, results, benchmarks, of)
        else:
            side = _measure(claim, results, benchmarks, of, equal)
        if side is not None:
            told = replace(side, scale=results.scale if side.shown != _ON_GPU else "")
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
    return [b for b in found if _is_meant(claim, b)]


def _is_meant(claim: PaperClaim, benchmark: str) -> bool:
    return not claim.benchmarks or benchmark.startswith(claim.benchmarks)


def _may_be_on_gpu(
    claim: PaperClaim, results: Results, benchmarks: Sequence[str], of: Callable[[str], str]
) -> bool:
    """Did a cell of a comparison of speeds search on a GPU, or not say where it did?"""
    outcomes = [
        outcome
        for benchmark in benchmarks
        for name in claim.named
        for outcome in _outcomes(results, benchmark, of(name)).values()
    ]
    return any(is_on_gpu(outcome) is not False for outcome in outcomes)


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
        shown += _ALONE
    verdict = "yes" if told["held"] == n else f"on {told['held']} of {n}" if told["held"] else "no"
    if not told["held"] and not told["lost"]:
        verdict = "open"
    if min(seeds) < 2 and told["held"]:
        verdict = _ONE_SEED
    return _Side(shown, verdict, n_seeds=min(seeds))


def _first_of_means(
    claim: PaperClaim,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
    equal: bool,
) -> _Side | None:
    """Is the mean over benchmarks the first of all, beyond the spread of the seeds?"""
    sign = -1 if MEASURES[claim.measure].more_is_better is False else 1
    verdicts, seeds, means = [], [], {}
    for rival in claim.over:
        lines = [_means_by_seed(claim, results, benchmarks, of, rival, equal, n) for n in (0, 1)]
        if not all(lines):
            return None
        mine, theirs = lines
        verdicts.append(compare((sign * a, sign * b) for a in mine for b in theirs))
        seeds.append(min(map(len, lines)))
        means[rival] = (statistics.fmean(mine), statistics.fmean(theirs))
    if not verdicts:
        return None
    worst = "lost" if "lost" in verdicts else "open" if "open" in verdicts else "held"
    best = max(means, key=lambda name: sign * means[name][1])
    ours, rivals = (show(value, claim.measure) for value in means[best])
    verdict = {"held": "yes", "lost": "no", "open": "open"}[worst]
    if min(seeds) < 2 and worst == "held":
        verdict = _ONE_SEED
    more = _ALONE if min(seeds) < 2 else ""
    return _Side(f"{ours}; {best} {rivals}", verdict, n_seeds=min(seeds), more=more)


def _means_by_seed(
    claim: PaperClaim,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
    rival: str,
    equal: bool,
    number: int,
) -> list[float]:
    """The mean over benchmarks for each seed, of the claim's method (0) or its rival (1).

    At equal rows both are read off at the rows of the shorter run of the same seed.
    """
    found: dict[int, list[float]] = {}
    for benchmark in benchmarks:
        both = [_outcomes(results, benchmark, of(name)) for name in (claim.first, rival)]
        for seed, outcome in both[number].items():
            other = both[1 - number].get(seed)
            value = _number(outcome, claim.measure)
            if equal:
                rows = [_number(one, "rows") or 0.0 for one in (outcome, other) if one is not None]
                value = at_rows(outcome, min(rows)) if other is not None else None
            if value is not None:
                found.setdefault(seed, []).append(value)
    return [statistics.fmean(line) for line in found.values() if len(line) == len(benchmarks)]


def _best(
    claim: PaperClaim,
    study: Study,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
) -> _Side | None:
    """Which variant has the best mean over benchmarks, for every seed."""
    pick = min if MEASURES[claim.measure].more_is_better is False else max
    cells = {(b, v): _outcomes(results, b, of(v)) for b in benchmarks for v in claim.over}
    if not cells or not all(cells.values()):
        return None
    winners: list[str] = []
    for seed in sorted(set.intersection(*(set(found) for found in cells.values()))):
        numbers = {
            v: [_number(cells[(b, v)][seed], claim.measure) for b in benchmarks] for v in claim.over
        }
        if any(x is None for line in numbers.values() for x in line):
            return None
        means = {v: sum(x for x in line if x is not None) for v, line in numbers.items()}
        winners.append(pick(means, key=lambda name: means[name]))
    if not winners:
        return None
    names = [study.variant(name).label for name in dict.fromkeys(winners)]
    is_so = [winner == claim.first for winner in winners]
    verdict = "yes" if all(is_so) else "open" if any(is_so) else "no"
    if len(winners) == 1 and verdict == "yes":
        verdict = _ONE_SEED
    more = _ALONE if len(winners) == 1 else ""
    return _Side(" or ".join(names), verdict, n_seeds=len(winners), more=more)


# -- how much -------------------------------------------------------------------------------


def _measure(
    claim: PaperClaim,
    results: Results,
    benchmarks: Sequence[str],
    of: Callable[[str], str],
    equal: bool,
) -> _Side | None:
    """A number for each seed, from all benchmarks in the paper's way."""
    wanted = [of(name) for name in claim.named]
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
    side = _size(claim, values, center, _limit(claim))
    of_means = None if equal else _of_means(claim, benchmarks, partial(_of_all, claim, cells, of))
    if of_means is None or not math.isfinite(of_means):
        return side
    return replace(side, more=f"{side.more}; of the means {_show(claim, of_means)}")


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
    table = {v: [get(b, v) for b in benchmarks] for v in dict.fromkeys(claim.named)}
    if not benchmarks or any(x is None for line in table.values() for x in line):
        return None
    numbers: dict[str, list[float]] = {
        v: [x for x in line if x is not None] for v, line in table.items()
    }
    mean = {v: statistics.fmean(line) for v, line in numbers.items()}
    if claim.kind == "mean":
        return statistics.fmean(mean.values())
    if claim.kind in ("low", "high"):
        pick = min if claim.kind == "low" else max
        return pick(value for line in numbers.values() for value in line)
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
        return statistics.fmean(mean[name] for name in claim.group or (claim.first,)) - others
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


def _size(
    claim: PaperClaim, values: Sequence[float], center: float | None, limit: float | None
) -> _Side:
    """Words for a number with its spread, and the verdict of the rule."""
    low, high = min(values), max(values)
    if not math.isfinite(low * high):
        words = [_show(claim, low), _show(claim, high)]
        return _Side(" to ".join(dict.fromkeys(words)), "yes" if low > 0 else "no")
    shown = _show(claim, statistics.fmean(values) if center is None else center)
    ends = sorted([low, high], reverse=claim.kind in ("less", "fall"))
    more = _ALONE if len(values) == 1 else ""
    if len(values) > 1 and _show(claim, low) != _show(claim, high):
        more = f" ({_show(claim, ends[0])} to {_show(claim, ends[1])})"
    n = len(values)
    if claim.bound and limit is not None:
        worst, best = (low, high) if claim.kind != "high" else (-high, -low)
        limit = limit if claim.kind != "high" else -limit
        kept = "yes" if worst >= limit else "no" if best < limit else "open"
        return _Side(shown, _ONE_SEED if kept == "yes" and n == 1 else kept, n_seeds=n, more=more)
    if n == 1:
        return _Side(shown, _ONE_SEED, n_seeds=1, more=more)
    if high < claim.null:
        return _Side(shown, _OPPOSITE, more=more)
    reaches = claim.stated is None or high >= claim.stated
    if low <= claim.null:
        return _Side(shown, "open" if reaches else "no", more=more)
    return _Side(shown, "yes" if reaches else "smaller", more=more)


def _limit(claim: PaperClaim) -> float | None:
    """What a bound has to keep: the number that the paper states, or else that of its table."""
    return claim.stated if claim.stated is not None else _of_the_paper(claim, load(claim.study))


def _of_the_paper(claim: PaperClaim, study: Study) -> float | None:
    """The claim's number, computed from the paper's own table."""
    numbers = paper_numbers(study.name).get(claim.measure, {})
    benchmarks = [b for b in numbers if _is_meant(claim, b) and not b.startswith("mean")]
    whole = [b for b in numbers if b.startswith("mean")]
    return compute(claim, benchmarks or whole, lambda b, v: numbers.get(b, {}).get(v))


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
    if claim.measure in ("findings", *SPEEDS):
        return show(value, claim.measure)
    return f"{100 * value:.1f} %"


def _paper(claim: PaperClaim, study: Study) -> str:
    """What the paper says: its printed number, and what its own table gives where that differs."""
    if claim.ours:
        return ""
    if claim.kind in _FIRST:
        return claim.says_so or _first_in_the_paper(claim, study)
    stated = None if claim.stated is None else _show(claim, claim.stated)
    value = _of_the_paper(claim, study)
    if value is None:
        return stated or claim.says_so
    computed = _show(claim, value)
    if stated is None or stated == computed or claim.bound:
        return stated or computed
    return f"{stated} (its table: {computed})"


def _first_in_the_paper(claim: PaperClaim, study: Study) -> str:
    """On how many of its benchmarks a method is first in the paper's table, or which one is."""
    numbers = paper_numbers(study.name).get(claim.measure, {})
    sign = -1 if MEASURES[claim.measure].more_is_better is False else 1
    benchmarks = [b for b in numbers if _is_meant(claim, b) and not b.startswith("mean")]
    if claim.kind == "first of means":
        line = numbers["mean"]
        rival = max(claim.over, key=lambda name: sign * line[name])
        mine, theirs = (show(line[name], claim.measure) for name in (claim.first, rival))
        return f"{mine}; {rival} {theirs}"
    if claim.kind == "best":
        means = {v: statistics.fmean(numbers[b][v] for b in benchmarks) for v in claim.over}
        return study.variant(max(means, key=lambda name: sign * means[name])).label
    ahead = sum(
        all(sign * numbers[b][claim.first] > sign * numbers[b][r] for r in claim.over)
        for b in benchmarks
    )
    return f"{ahead} of {len(benchmarks)}"
