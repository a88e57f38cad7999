"""The rule by which one variant is above another: every seed of the one beside every seed of the
other, on each benchmark by itself."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lab.files import StandSpec, Study
from lab.formats import StudyTable
from lab.measures import MEASURES, show
from lab.results import Results

__all__ = ["ABOVE", "BELOW", "OPEN", "TIE", "compare", "draw_stands", "find_first", "stand"]
__all__ += ["stand_before_all", "tell_stand"]

ABOVE, BELOW, OPEN = "higher", "lower", "not told apart"
TIE = "a tie"


def compare(pairs: Iterable[tuple[float, float]]) -> str:
    """How one stands to a rival, by every seed of the one beside every seed of the other.

    `held` if it is better in all pairs, `lost` if it is worse in all, else `open`, as without any.
    """
    known = list(pairs)
    if known and all(a > b for a, b in known):
        return "held"
    return "lost" if known and all(a < b for a, b in known) else "open"


def stand_before_all(stands: Iterable[str]) -> str:
    """How one stands to all of its rivals, from how it stands to each: `held` only before all of
    them, `lost` behind any."""
    known = list(stands)
    return next((word for word in ("lost", "open") if word in known), "held")


def find_first(values: Mapping[str, float]) -> str:
    """Whose value is the largest; nobody's where several are, but a TIE."""
    best = max(values.values())
    first = [name for name, value in values.items() if value == best]
    return first[0] if len(first) == 1 else TIE


def stand(results: Results, measure: str, first: str, second: str) -> dict[str, str]:
    """Where a variant stands to another, on each benchmark that has both.

    One seed alone decides nothing. A model before training stands beside every seed, and is one
    draw all the same: a text that holds something against it has to say so.
    """
    found = {}
    for benchmark in dict.fromkeys(outcome.benchmark for outcome in results.outcomes.values()):
        mine, theirs = (results.numbers(benchmark, name, measure) for name in (first, second))
        if not mine or not theirs:
            continue
        told = compare((a, b) for a in mine for b in theirs)
        if min(len(mine), len(theirs)) < 2:
            told = "open"
        found[benchmark] = {"held": ABOVE, "lost": BELOW, "open": OPEN}[told]
    return found


def tell_stand(found: Mapping[str, str]) -> str:
    """On how many benchmarks a variant is higher, lower and neither, in words; "" for none."""
    if not found:
        return ""
    n, counts = len(found), Counter(found.values())
    if n == 1:
        return next(iter(found.values()))
    named = [(word, counts[word]) for word in (ABOVE, BELOW, OPEN) if counts[word]]
    if len(named) == 1:
        if named[0][0] == OPEN:
            return f"{OPEN} on {'either benchmark' if n == 2 else f'any of {n} benchmarks'}"
        return f"{named[0][0]} on {'both' if n == 2 else f'all {n}'} benchmarks"
    first, *others = named
    return f"{first[0]} on {first[1]} of {n} benchmarks" + "".join(
        f", {word} on {count}" for word, count in others
    )


def draw_stands(study: Study, spec: StandSpec, results: Results) -> StudyTable:
    """A table of variants beside others: means and ranges over seeds, and what the rule says."""
    known = [
        (first, second, found)
        for first, second in spec.pairs
        if (found := stand(results, spec.measure, first, second))
    ]
    benchmarks = list(dict.fromkeys(b for _, _, found in known for b in found))
    drawn = _by_pair if len(benchmarks) <= _FEW else _by_benchmark
    headings, rows = drawn(study, spec, results, known, benchmarks)
    notes = ["Means, and in brackets the smallest and largest of so many seeds."] if rows else []
    if any(study.is_one_draw(name) for first, second, _ in known for name in (first, second)):
        notes.append(_ONE_DRAW)
    return StudyTable(spec.title, headings, rows, tuple(notes), n_names=1 + (drawn is _by_pair))


_ONE_DRAW = (
    "The model before is one training: higher or lower beside it says that every seed is so beside "
    "that one draw."
)
_FEW = 3  # benchmarks that fit beside one another
_Known = Sequence[tuple[str, str, Mapping[str, str]]]
_Drawn = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def _by_pair(
    study: Study, spec: StandSpec, results: Results, known: _Known, benchmarks: Sequence[str]
) -> _Drawn:
    """A row for each pair of variants, a column for each benchmark."""
    rows = []
    for first, second, found in known:
        cells = [
            f"{_range(results, b, first, spec.measure)} against "
            f"{_range(results, b, second, spec.measure)}: {found[b]}"
            if b in found
            else ""
            for b in benchmarks
        ]
        names = (study.variant(first).label, study.variant(second).label)
        rows.append((*names, *cells, tell_stand(found)))
    label = MEASURES[spec.measure].label
    return (label, "beside", *benchmarks, "by the rule"), tuple(rows)


def _by_benchmark(
    study: Study, spec: StandSpec, results: Results, known: _Known, benchmarks: Sequence[str]
) -> _Drawn:
    """A row for each benchmark: every variant once, then how they stand."""
    variants = list(dict.fromkeys(name for first, second, _ in known for name in (second, first)))
    labels = {name: study.variant(name).label for name in variants}
    rows = [
        (
            benchmark,
            *(_range(results, benchmark, name, spec.measure) for name in variants),
            *(found.get(benchmark, "") for _, _, found in known),
        )
        for benchmark in benchmarks
    ]
    whole = ("by the rule", *("" for _ in variants), *(tell_stand(found) for _, _, found in known))
    pairs = [f"{labels[first]} beside {labels[second]}" for first, second, _ in known]
    return ("benchmark", *labels.values(), *pairs), (*rows, whole) if rows else ()


def _range(results: Results, benchmark: str, variant: str, measure: str) -> str:
    values: Sequence[float] = results.numbers(benchmark, variant, measure)
    if not values:
        return ""
    low, high = show(min(values), measure), show(max(values), measure)
    mean = show(statistics.fmean(values), measure)
    return mean if low == high else f"{mean} ({low} to {high}, {len(values)})"
