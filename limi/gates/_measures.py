"""What rules measure: counts that grow with the rows, and limits of them that hold at every look.

A measure takes batches of checked rows and says what it knows so far. What has to be chosen by
looking at rows (regions, groups) is chosen on the first of them, which then count for nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limi.audits.hiding import say_region
from limi.decisions import favors
from limi.gates._rules import Rule
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._groups import edge_words, find_edges
from limi.metrics._rate import clopper_pearson
from limi.metrics.limits import (
    change_limits,
    difference_limits,
    percentile_limits,
    share_limits,
)
from limi.metrics.privileged import Split, choose, count_by_value
from limi.metrics.regions import LEAST_FLIPS, Region, learn_regions
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Asked", "BaselineRate", "Estimate", "Measuring", "RegionRate", "measuring"]

_DIGITS = 9  # of a score that count: those behind them are the machine's
_LEARNED_ROWS = 512  # that a privileged group is chosen on
_LEAST_SHARE = 0.01  # of the first rows: a group that is compared
_MOST_REGIONS = 4
_ALL = "every row was asked about, so this is exact"


@dataclass(frozen=True)
class Asked:
    """Rows of one look, and what the model said to them."""

    rows: Rows
    score: Scores
    places: Index  # of the rows in their population's stream
    flips: Mask | None = None  # None where only the rows themselves were asked
    gaps: Scores | None = None  # the widest distance to a score under other protected values
    is_paired: Mask | None = None  # of whom could a partner exist? None for everybody

    @property
    def paired(self) -> Asked:
        """Without people who cannot have a partner: they are in no rate."""
        kept = self.is_paired
        if kept is None or kept.all():
            return self
        return Asked(
            self.rows[kept],
            self.score[kept],
            self.places[kept],
            None if self.flips is None else self.flips[kept],
            None if self.gaps is None else self.gaps[kept],
        )


@dataclass(frozen=True)
class BaselineRate:
    """What an earlier run has to say of a rate."""

    hits: int
    n: int
    anytime: bool = False  # did the flips have a say in the number of rows?
    flips: Mask | None = None  # of the first rows of the stream, where the run kept them
    is_zero: bool = False  # is it 0 by definition, because the model takes no protected column?


class Estimate(NamedTuple):
    """What is known of a measure."""

    value: float  # NaN where there is nothing yet
    low: float
    high: float
    n: int  # rows that it rests on
    hits: int | None = None  # of those, the rows that count against it
    note: str = ""


class RegionRate(NamedTuple):
    """How often decisions flip in a region, on rows that it was not learned from."""

    words: str
    hits: int
    n: int
    low: float
    high: float


class Measuring(ABC):
    """A rule at work: it takes batches and knows its limits after each."""

    needs_flips = True  # must rows be asked under every protected value?
    choosy = False  # does it want some people and not others?
    ends_with_baseline = False  # can it only use rows that an earlier run kept?

    @abstractmethod
    def take(self, asked: Asked) -> None:
        """Count a batch."""

    @abstractmethod
    def estimate(self) -> Estimate:
        """What is known now."""

    def exact(self) -> Estimate | None:
        """What it is, once every row of the population was taken; None where some of them counted
        for something else."""
        return None

    def wants(self, rows: Rows, places: Index) -> Mask:
        """Which rows could tell it anything."""
        return np.ones(len(rows), dtype=bool)

    def regions(self) -> tuple[RegionRate, ...]:
        """The regions that were measured, where there are any."""
        return ()


def measuring(
    rule: Rule,
    error: float,
    schema: Schema,
    *,
    baseline: BaselineRate | None,
    split: Split | None,
    hidden: Collection[str],
    most_learned: int,
) -> Measuring:
    """A rule at work, each of whose limits may be wrong with probability `error`."""
    if rule.against_baseline:
        assert baseline is not None
        return _Paired(error, baseline) if baseline.flips is not None else _Apart(error, baseline)
    if rule.measure == "rate":
        return _Share(error, lambda asked: _known(asked.flips))
    if rule.measure == "score_gap":
        assert rule.percentile is not None
        return _Percentile(error, 1 - rule.percentile / 100)
    if rule.measure == "spd":
        assert rule.column is not None
        return _Parity(error, schema, rule.column, split)
    if rule.measure in ("widest_spd", "impact_ratio"):
        assert rule.column is not None
        ratio = rule.measure == "impact_ratio"
        return _BetweenGroups(error, schema, rule.column, ratio=ratio)
    return _WorstRegion(error, schema, hidden, most_learned)


def _known(cells: NDArray[np.generic] | None) -> NDArray[np.generic]:
    assert cells is not None
    return cells


def _collapsed(known: Estimate) -> Estimate | None:
    """An estimate without doubt, where it has a value."""
    if math.isnan(known.value):
        return None
    note = f"{known.note}; {_ALL}" if known.note else _ALL
    return known._replace(low=known.value, high=known.value, note=note)


class _Share(Measuring):
    """The share of rows that count."""

    def __init__(self, error: float, counts: Callable[[Asked], NDArray[np.generic]]) -> None:
        self._error, self._counts = error, counts
        self._hits = self._n = 0

    def take(self, asked: Asked) -> None:
        self._hits += int(self._counts(asked).sum())
        self._n += len(asked.rows)

    def estimate(self) -> Estimate:
        share = self._hits / self._n if self._n else math.nan
        limits = share_limits(self._hits, self._n, self._error)
        return Estimate(share, *limits, self._n, self._hits)

    def exact(self) -> Estimate | None:
        return _collapsed(self.estimate())


class _Percentile(Measuring):
    """A percentile of the widest score gap of each row."""

    def __init__(self, error: float, share: float) -> None:
        self._error, self._share = error, share
        self._gaps: list[NDArray[np.float64]] = []

    def take(self, asked: Asked) -> None:
        assert asked.gaps is not None
        self._gaps.append(np.round(asked.gaps, _DIGITS))

    def estimate(self) -> Estimate:
        gaps = np.concatenate([np.empty(0), *self._gaps])
        if not len(gaps):
            return Estimate(math.nan, 0.0, 1.0, 0)
        value = float(np.quantile(gaps, 1 - self._share, method="inverted_cdf"))
        limits = percentile_limits(gaps, self._share, self._error)
        return Estimate(value, *limits, len(gaps))

    def exact(self) -> Estimate | None:
        return _collapsed(self.estimate())


class _Apart(Measuring):
    """A rate minus that of an earlier run, of which only counts are known.

    Both may rest on the same rows, so how they depend on each other is not known: each has
    half of the error, which holds whatever that is. A rate that is 0 by definition needs none.
    """

    def __init__(self, error: float, baseline: BaselineRate) -> None:
        if baseline.is_zero:
            self._was, self._before = 0.0, (0.0, 0.0)
        else:
            self._was = baseline.hits / baseline.n
            self._before = (
                share_limits(baseline.hits, baseline.n, error / 2)
                if baseline.anytime
                else clopper_pearson(baseline.hits, baseline.n, 1 - error)
            )
        part = error if baseline.is_zero else error / 2
        self._now = _Share(part, lambda asked: _known(asked.flips))

    def take(self, asked: Asked) -> None:
        self._now.take(asked)

    def estimate(self) -> Estimate:
        now, (low, high) = self._now.estimate(), self._before
        return Estimate(now.value - self._was, now.low - high, now.high - low, now.n, now.hits)


class _Paired(Measuring):
    """A rate minus that of an earlier run on the very same rows."""

    ends_with_baseline = True

    def __init__(self, error: float, baseline: BaselineRate) -> None:
        assert baseline.flips is not None
        self._others = 0  # rows that the run did not keep
        self._error, self._before = error, baseline.flips
        self._worse = self._same = self._better = 0

    def wants(self, rows: Rows, places: Index) -> Mask:
        return np.asarray(places < len(self._before))

    def take(self, asked: Asked) -> None:
        inside = asked.places < len(self._before)
        self._others += int((~inside).sum())
        now = np.asarray(_known(asked.flips), dtype=bool)[inside]
        before = self._before[asked.places[inside]]
        self._worse += int((now & ~before).sum())
        self._better += int((before & ~now).sum())
        self._same += int((now == before).sum())

    def estimate(self) -> Estimate:
        n = self._worse + self._same + self._better
        value = (self._worse - self._better) / n if n else math.nan
        limits = change_limits(self._worse, self._same, self._better, self._error)
        note = f"{self._worse:,} rows flip that did not, {self._better:,} do not flip that did"
        return Estimate(value, *limits, n, None, note)

    def exact(self) -> Estimate | None:
        return None if self._others else _collapsed(self.estimate())


class _Parity(Measuring):
    """The absolute difference of two groups' shares of favorable decisions."""

    needs_flips = False

    def __init__(self, error: float, schema: Schema, column: str, split: Split | None) -> None:
        # The difference may be too large in either direction: half of the error each.
        self._error, self._split = error / 2, split
        self._column, self._position = schema[column], schema.position(column)
        if split is None and self._column.kind != "numerical" and self._column.size == 2:
            self._split = Split(self._column.show(0.0), "there are two", codes=frozenset([0.0]))
        self._learned: list[tuple[NDArray[np.float64], Mask]] = []
        self._counts = np.zeros((2, 2), dtype=np.int64)  # hits and rows, privileged first

    def take(self, asked: Asked) -> None:
        cells, favorable = asked.rows[:, self._position], favors(asked.score)
        if self._split is None:
            self._learn(cells, favorable)
            return
        privileged = self._split.mask(cells)
        for place, group in enumerate((privileged, ~privileged & ~np.isnan(cells))):
            self._counts[place] += [int(favorable[group].sum()), int(group.sum())]

    def _learn(self, cells: NDArray[np.float64], favorable: Mask) -> None:
        """Choose the privileged group on the first rows."""
        self._learned.append((cells, favorable))
        if sum(len(part) for part, _ in self._learned) >= _LEARNED_ROWS:
            seen, decided = (np.concatenate(parts) for parts in zip(*self._learned, strict=True))
            self._split = choose(self._column, count_by_value(seen, decided, None))

    def estimate(self) -> Estimate:
        (hits, n), (other_hits, other_n) = self._counts.tolist()
        if not n or not other_n:
            return Estimate(math.nan, 0.0, 1.0, n + other_n)
        low, high = difference_limits((hits, n), (other_hits, other_n), self._error)
        value = abs(hits / n - other_hits / other_n)
        assert self._split is not None
        note = (
            f"{100 * hits / n:.1f} % of {n:,} with {self._column.name} {self._split.words} are "
            f"decided favorably, {100 * other_hits / other_n:.1f} % of {other_n:,} others"
        )
        ends = max(0.0, low, -high), max(abs(low), abs(high))
        return Estimate(value, *ends, n + other_n, None, note)

    def exact(self) -> Estimate | None:
        return None if self._learned else _collapsed(self.estimate())


class _BetweenGroups(Measuring):
    """The widest difference between two groups' shares of favorable decisions, or the ratio of the
    lowest share to the highest.

    Groups are the column's values, or bands of a number with many. The first rows say which there
    are by what they hold, whatever was decided about them, so those rows count as well. The limit
    on the fair side can only be wrong at the pair that is truly furthest apart, so its two shares
    have half of the error each; that on the other side at any share, so they all have a part.
    """

    needs_flips = False

    def __init__(self, error: float, schema: Schema, column: str, *, ratio: bool) -> None:
        self._error, self._ratio = error, ratio
        self._column, self._position = schema[column], schema.position(column)
        self._cells: list[NDArray[np.float64]] = []
        self._favorable: list[Mask] = []
        self._edges: NDArray[np.float64] | None = None
        self._groups: list[int] = []  # those that are compared

    def take(self, asked: Asked) -> None:
        cells = asked.rows[:, self._position]
        known = ~np.isnan(cells)
        self._cells.append(cells[known])
        self._favorable.append(favors(asked.score)[known])
        if self._edges is None and sum(map(len, self._cells)) >= _LEARNED_ROWS:
            self._learn(_LEAST_SHARE * _LEARNED_ROWS)

    def _learn(self, fewest: float) -> None:
        """Which groups there are."""
        cells = np.concatenate([np.empty(0), *self._cells])
        self._edges = find_edges(self._column, cells)
        sizes = np.bincount(np.searchsorted(self._edges, cells), minlength=len(self._edges) + 1)
        self._groups = np.flatnonzero(sizes >= fewest).tolist()

    def _counts(self) -> list[tuple[int, int, int]]:
        """Of each group its place, its favorable decisions and its rows."""
        assert self._edges is not None
        places = np.searchsorted(self._edges, np.concatenate(self._cells))
        favorable = np.concatenate(self._favorable)
        inside = [(place, places == place) for place in self._groups]
        return [(place, int(favorable[here].sum()), int(here.sum())) for place, here in inside]

    def estimate(self) -> Estimate:
        if self._edges is None:
            return Estimate(math.nan, 0.0, 1.0, sum(map(len, self._cells)))
        counts = self._counts()
        known = [group for group in counts if group[2] >= FEWEST_TOLD]
        if len(known) < 2:
            return Estimate(math.nan, 0.0, 1.0, sum(n for *_, n in counts))
        low, high = self._limits([(hits, n) for _, hits, n in known])
        if len(known) < len(counts):  # of a group that is still too small nothing is known
            low, high = (0.0, high) if self._ratio else (low, 1.0)
        return self._tell(known, low, high)

    def _limits(self, counts: list[tuple[int, int]]) -> tuple[float, float]:
        fair = [share_limits(hits, n, self._error / 2) for hits, n in counts]
        sure = [share_limits(hits, n, self._error / (2 * len(counts))) for hits, n in counts]
        least, most = min(low for low, _ in fair), max(high for _, high in fair)
        # Of the sure ones the pair that is furthest apart by its nearer ends.
        below, above = min(high for _, high in sure), max(low for low, _ in sure)
        if self._ratio:
            return (least / most if most else 0.0), min(1.0, below / above if above else 1.0)
        return max(0.0, above - below), most - least

    def _tell(self, counts: list[tuple[int, int, int]], low: float, high: float) -> Estimate:
        shares = sorted((hits / n, place, n) for place, hits, n in counts)
        (least, worst, n_worst), (most, best, n_best) = shares[0], shares[-1]
        value = (least / most if most else 1.0) if self._ratio else most - least
        name, words = self._column.name, self._words
        note = (
            f"{100 * most:.1f} % of {n_best:,} with {name} {words(best)} are decided favorably, "
            f"{100 * least:.1f} % of {n_worst:,} with {name} {words(worst)}"
        )
        return Estimate(value, low, high, sum(n for *_, n in counts), None, note)

    def _words(self, place: int) -> str:
        assert self._edges is not None
        return edge_words(self._column, self._edges, place)

    def exact(self) -> Estimate | None:
        if self._edges is None:
            self._learn(1)
        known = [group for group in self._counts() if group[2] >= FEWEST_TOLD]
        return _collapsed(self._tell(known, 0.0, 1.0)) if len(known) > 1 else None


class _WorstRegion(Measuring):
    """The highest rate among the regions that stood out on the first rows.

    The lower limit takes the regions' own at their part of the error, for any of them may be too
    high; the upper limit can only be wrong where that of the worst is, so each has all of it.
    """

    def __init__(
        self, error: float, schema: Schema, hidden: Collection[str], most_learned: int
    ) -> None:
        self._error, self._schema, self._most_learned = error, schema, most_learned
        self._hidden = hidden
        self._rows: list[Rows] = []
        self._flips: list[Mask] = []
        self._regions: list[Region] = []
        self._counts: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)

    def wants(self, rows: Rows, places: Index) -> Mask:
        wanted = np.full(len(rows), not self._regions)
        for region in self._regions:
            wanted |= region.mask(rows)
        return wanted

    def take(self, asked: Asked) -> None:
        flips = np.asarray(_known(asked.flips), dtype=bool)
        if not self._regions:
            self._learn(asked.rows, flips)
            return
        for place, region in enumerate(self._regions):
            inside = region.mask(asked.rows)
            self._counts[place] += [int(flips[inside].sum()), int(inside.sum())]

    def _learn(self, rows: Rows, flips: Mask) -> None:
        self._rows.append(rows)
        self._flips.append(flips)
        n, hits = sum(map(len, self._rows)), sum(int(part.sum()) for part in self._flips)
        if hits >= LEAST_FLIPS or n >= self._most_learned:
            seen, flipped = np.concatenate(self._rows), np.concatenate(self._flips)
            found = learn_regions(self._schema, seen, flipped, most=_MOST_REGIONS)
            # Where nothing stands out, everybody is the worst region there is.
            self._regions, self.choosy = found or [Region(())], bool(found)
            self._counts = np.zeros((len(self._regions), 2), dtype=np.int64)
            self._rows, self._flips = [], []

    def regions(self) -> tuple[RegionRate, ...]:
        part = self._error / max(1, len(self._regions))
        return tuple(
            RegionRate(
                say_region(region, self._hidden) or "everybody, because no region stands out",
                hits,
                n,
                share_limits(hits, n, part)[0],
                share_limits(hits, n, self._error)[1],
            )
            for region, (hits, n) in zip(self._regions, self._counts.tolist(), strict=True)
        )

    def estimate(self) -> Estimate:
        found = self.regions()
        if not any(region.n for region in found):
            learned = sum(map(len, self._rows))
            note = f"{learned:,} rows used to learn regions" if learned else ""
            return Estimate(math.nan, 0.0, 1.0, 0, 0, note)
        worst = max(found, key=lambda region: region.hits / max(region.n, 1))
        return Estimate(
            worst.hits / worst.n,
            max(region.low for region in found),
            max(region.high for region in found),
            worst.n,
            worst.hits,
            f"worst: {worst.words}",
        )
