"""Where decisions flip: a few rules on non-protected columns, learned on one half of a sample of
a population and verified on the other.

A rule is a conjunction of conditions: an interval of a number or of ordered levels, a set of
levels, missing or not. Candidates are grown by a beam search for the largest excess of flips over
the average, in units of its standard deviation; each next one is sought among the rows that no
earlier one holds. On the other half every candidate is tested once by Fisher's exact test, and
Holm's correction is taken over all that were tested: it holds under any dependence, which
overlapping rules have, and rejects all that Bonferroni's does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.metrics._holm import holm
from limi.metrics.individual import Rate, flip_rate, rate_of
from limi.table.schema import Column, Schema
from limi.types import Index, Mask, Rows

__all__ = [
    "LEAST_FLIPS",
    "LEVEL",
    "Condition",
    "Region",
    "Rule",
    "Where",
    "find_rules",
    "learn_regions",
]

LEAST_FLIPS = 30  # under so many a half holds too few to learn from
LEVEL = 0.05  # chance that any rule is shown where none is true

_MOST_RULES = 8  # rules tried; each further one makes the proof of the others harder
_MOST_CONDITIONS = 3
_MOST_LEARNED = 10_000  # rows; what is over them verifies
_BEAM = 6
_SLOTS = 48  # values of a column that the beam search tells apart; the bounds are exact later
_MOST_NAMED = 4  # levels of a condition in words
_MOST_DENIED = 3
_LEAST_ROWS = 20
_LEAST_SHARE = 0.01  # of the rows learned from
_LEAST_EXCESS = 3.0  # standard deviations, on the learning half
_LEAST_LIFT = 1.5
_SLACK = 0.05  # of the excess that a shorter rule may lose
_MOST_COMMON = 0.5  # rows in common, of those that either of two rules holds


# -- rules ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """What one column of a row must hold.

    Numbers and ordered levels: from `low` to `high`, both included. Others: one of `codes`. An
    empty tuple of codes with `missing` asks for a missing cell.
    """

    column: Column
    position: int  # of the column in a row
    low: float = -math.inf
    high: float = math.inf
    codes: tuple[float, ...] | None = None
    missing: bool = False  # does a missing cell meet it?

    def mask(self, rows: Rows) -> Mask:
        """Which rows meet it."""
        return self.mask_cells(rows[:, self.position])

    def mask_cells(self, cells: NDArray[np.float64]) -> Mask:
        """Which cells of the column meet it."""
        if self.codes is None:
            inside = (cells >= self.low) & (cells <= self.high)
        else:
            inside = np.isin(cells, self.codes)
        return inside | np.isnan(cells) if self.missing else inside

    def __str__(self) -> str:
        """In words: `"hours at least 45"`, `"job is Sales or missing"`."""
        return f"{self.column.name} {self._range() if self.codes is None else self._levels()}"

    def _range(self) -> str:
        show, gap = self.column.show, " or missing" if self.missing else ""
        if self.low == -math.inf and self.high == math.inf:
            return "is anything" if self.missing else "is known"
        if self.low == self.high:
            return f"is {show(self.low)}{gap}"
        if self.high == math.inf:
            return f"at least {show(self.low)}{gap}"
        if self.low == -math.inf:
            return f"at most {show(self.high)}{gap}"
        return f"from {show(self.low)} to {show(self.high)}{gap}"

    def _levels(self) -> str:
        named = self._show(self.codes or (), self.missing)
        if self.column.kind == "numerical":
            return f"is {_either(named)}"
        others = [code for code in range(self.column.size) if code not in (self.codes or ())]
        denied = self._show(others, self.column.missing and not self.missing)
        if denied == ["missing"]:
            return "is known"
        # Up to two levels are sooner said than what they leave out.
        if len(named) <= max(2, len(denied)):
            return f"is {_either(named)}"
        return f"is not {_either(denied)}"

    def _show(self, codes: Iterable[float], missing: bool) -> list[str]:
        return [*map(self.column.show, codes), *(["missing"] if missing else [])]


@dataclass(frozen=True)
class Region:
    """People who meet all of some conditions."""

    conditions: tuple[Condition, ...]

    def mask(self, rows: Rows) -> Mask:
        """Which rows lie in the region."""
        return _all_of(self.conditions, rows)

    def __str__(self) -> str:
        """Its conditions in words."""
        return " and ".join(map(str, self.conditions))


@dataclass(frozen=True)
class Rule(Region):
    """A region in which decisions flip often, with what the verifying half says of it."""

    rate: Rate  # of the region; the intervals of all rules tried hold together
    share: float  # of the population that lies in the region
    lift: float  # the region's rate over that of the population
    p_value: float  # Holm's, over all rules tried


@dataclass(frozen=True)
class Where:
    """The rules that were verified, highest rate first, and how they came about."""

    rules: tuple[Rule, ...] = ()
    base: Rate = field(default_factory=lambda: rate_of(0, 0))  # the verifying half as a whole
    learned: int = 0  # rows
    tried: int = 0  # rules
    share: float = 0.0  # of the verifying rows that lie in any of the rules
    flips: float = 0.0  # of the verifying rows that flip, those that do
    reason: str = ""  # why there are no rules
    verified_on: Index = field(default_factory=lambda: np.arange(0), repr=False, compare=False)
    # ^ places of the verifying rows in the sample


def _either(words: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _all_of(conditions: Iterable[Condition], rows: Rows) -> Mask:
    inside = np.ones(len(rows), dtype=bool)
    for condition in conditions:
        inside &= condition.mask(rows)
    return inside


# -- learn, then verify --------------------------------------------------------------------


def find_rules(
    schema: Schema,
    rows: Rows,
    flips: Mask,
    rng: np.random.Generator,
    *,
    level: float = LEVEL,
    most: int = _MOST_RULES,
) -> Where:
    """Rules for the rows that flip, of a sample of a population.

    At most one time in 1 / `level` a rule is shown although no region that was tried flips more
    often than the rest of the population.
    """
    n_flips = int(flips.sum())
    if n_flips < LEAST_FLIPS:
        return Where(
            base=flip_rate(flips),
            reason=(
                f"{n_flips:,} of {len(rows):,} rows flip; at least {LEAST_FLIPS} are needed to "
                "learn rules from one half of them and verify them on the other"
            ),
        )
    order = rng.permutation(len(rows))
    cut = min(len(rows) // 2, _MOST_LEARNED)
    learning, verifying = order[:cut], order[cut:]
    candidates = _learn(schema, rows[learning], flips[learning], most)
    where = _verify(candidates, rows[verifying], flips[verifying], level, learned=cut)
    return replace(where, verified_on=verifying)


def learn_regions(
    schema: Schema, rows: Rows, flips: Mask, *, most: int = _MOST_RULES
) -> list[Region]:
    """Regions that stand out among these rows; what they are worth, other rows have to tell."""
    return [Region(conditions) for conditions in _learn(schema, rows, flips, most)]


def _verify(
    candidates: list[tuple[Condition, ...]], rows: Rows, flips: Mask, level: float, learned: int
) -> Where:
    base, tried = flip_rate(flips), len(candidates)
    held = np.zeros(len(rows), dtype=bool)  # by the candidates so far
    masks, p_values = [_all_of(conditions, rows) for conditions in candidates], []
    for mask in masks:
        # A rule must hold as a whole, and in the rows that no earlier one holds: otherwise a
        # wider copy of a true rule would pass on the strength of the rows they share.
        p_values.append(
            max(_fisher(flips, mask), _fisher(flips[~mask | ~held], mask[~mask | ~held]))
        )
        held |= mask
    corrected = holm(np.array(p_values))
    shown, union = [], np.zeros(len(rows), dtype=bool)
    for conditions, mask, p_value in zip(candidates, masks, corrected, strict=True):
        n, hits = int(mask.sum()), int(flips[mask].sum())
        # Whichever rules come to be shown, at this confidence all intervals hold at once.
        rate = rate_of(hits, n, 1 - level / tried)
        if p_value <= level and _telling(rate.estimate, base.estimate):
            lift = rate.estimate / base.estimate
            shown.append(Rule(conditions, rate, n / len(rows), lift, float(p_value)))
            union |= mask
    shown.sort(key=lambda rule: -rule.rate.estimate)
    return Where(
        tuple(shown),
        base,
        learned,
        tried,
        float(union.mean()),
        float(flips[union].sum() / max(1, flips.sum())),
        "" if shown else _reason(tried),
    )


def _reason(tried: int) -> str:
    if not tried:
        return "no region flips clearly more often than the others"
    regions = "the one region" if tried == 1 else f"none of the {tried} regions"
    verb = "did not hold" if tried == 1 else "held"
    return f"{regions} that stood out in one half of the rows {verb} in the other"


def _fisher(flips: Mask, mask: Mask) -> float:
    """Chance of so many flips inside or more, if they fell on rows without regard to the mask."""
    from scipy.stats import hypergeom

    hits = int(flips[mask].sum())
    return float(hypergeom.sf(hits - 1, len(flips), int(flips.sum()), int(mask.sum())))


def _telling(rate: float, base: float) -> bool:
    """Is a rate so much above the average that it is worth a line? Half as much again; where the
    average leaves no room for that, half of the way to all rows."""
    return bool(rate >= min(_LEAST_LIFT * base, (1 + base) / 2) and rate > base)


# -- the search for candidates -------------------------------------------------------------


def _learn(schema: Schema, rows: Rows, flips: Mask, most: int) -> list[tuple[Condition, ...]]:
    base = float(flips.mean())
    grid = _Grid.of(schema, rows, flips)
    candidates: list[tuple[Condition, ...]] = []
    masks: list[Mask] = []
    open_rows = np.ones(len(rows), dtype=bool)
    least = max(_LEAST_ROWS, int(_LEAST_SHARE * len(rows)))
    if not 0 < base < 1:
        return []
    for _ in range(2 * most):
        here = np.flatnonzero(open_rows)
        aim = _Aim(rows[here], flips[here], base, least, len(grid.columns))
        best = _grow(grid[here], aim)
        if best is None:
            break
        conditions = _round(aim, _polish(aim, _shorter(aim, _polish(aim, best))))
        mask = _all_of(conditions, rows)
        open_rows &= ~mask
        if all((mask & other).sum() <= _MOST_COMMON * (mask | other).sum() for other in masks):
            candidates.append(conditions)
            masks.append(mask)
        if len(candidates) == most:
            break
    return candidates


@dataclass(frozen=True)
class _Aim:
    """Rows to learn from, and what is asked of a region of them."""

    rows: Rows
    flips: Mask
    base: float
    least: int  # rows
    columns: int  # to choose conditions from

    def excess(self, hits: NDArray[Any], n: NDArray[Any]) -> NDArray[np.float64]:
        """Flips over the average in standard deviations; -inf where a region is too small."""
        spread = np.sqrt(np.maximum(n, 1) * self.base * (1 - self.base))
        return np.where(n >= self.least, (hits - self.base * n) / spread, -np.inf)

    def of(self, mask: Mask) -> float:
        """The excess of a region, -inf where its rate is not telling."""
        n, hits = int(mask.sum()), int(self.flips[mask].sum())
        if n < self.least or not _telling(hits / n, self.base):
            return -math.inf
        return float(self.excess(np.array(hits), np.array(n)))


def _grow(grid: _Grid, aim: _Aim) -> tuple[Condition, ...] | None:
    """The best conjunction that a beam search meets, or None."""
    beam: list[tuple[tuple[Condition, ...], Mask]] = [((), np.ones(len(aim.rows), dtype=bool))]
    best, best_excess = None, _LEAST_EXCESS
    for _ in range(_MOST_CONDITIONS):
        offers = [
            (excess, place, condition)
            for place, (conditions, mask) in enumerate(beam)
            for excess, condition in grid.offers(aim, mask)
            if all(condition.position != used.position for used in conditions)
        ]
        offers.sort(key=lambda offer: (-offer[0], offer[1], offer[2].position))
        grown: list[tuple[tuple[Condition, ...], Mask]] = []
        seen: set[bytes] = set()
        for _, place, condition in offers:
            mask = beam[place][1] & condition.mask(aim.rows)
            signature = np.packbits(mask).tobytes()
            if signature in seen:
                continue
            seen.add(signature)
            grown.append(((*beam[place][0], condition), mask))
            if (excess := aim.of(mask)) > best_excess:
                best, best_excess = grown[-1][0], excess
            if len(grown) == _BEAM:
                break
        beam = grown
    return best


@dataclass(frozen=True)
class _Grid:
    """Rows as small whole numbers: for each free column one of `width` slots; the last one is for
    missing cells, the last but one for levels too rare to be told apart."""

    columns: tuple[Column, ...]
    positions: Index  # of the columns in a row
    slots: NDArray[np.int32]  # (n, d), each column's shifted by d * width
    flips: Mask
    starts: NDArray[np.float64]  # (d, width) smallest and largest cell of each slot; NaN: none
    ends: NDArray[np.float64]

    @staticmethod
    def of(schema: Schema, rows: Rows, flips: Mask) -> _Grid:
        """Slots that hold about equally many rows, and equally many that flip."""
        positions = schema.free_index
        width = _SLOTS + 2
        slots = np.empty((len(rows), len(positions)), dtype=np.int32)
        starts = np.full((len(positions), width), np.nan)
        ends = starts.copy()
        for place, position in enumerate(positions):
            cells = rows[:, position]
            if _is_range(schema.columns[position]):
                first = _edges(cells, flips)
                slot = np.searchsorted(first, cells, side="right") - 1
            else:
                levels, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
                first = np.sort(levels[np.argsort(-counts, kind="stable")[:_SLOTS]])
                slot = np.minimum(np.searchsorted(first, cells), max(len(first) - 1, 0))
                slot = np.where(first[slot] == cells, slot, _SLOTS) if len(first) else slot
            slot = np.where(np.isnan(cells), width - 1, slot)
            slots[:, place] = slot + place * width
            starts[place, : len(first)] = first
            # The largest cell of a slot, by sorting cells within slots.
            inner = np.lexsort((cells, slot))
            last = np.flatnonzero(np.diff(slot[inner], append=width) > 0)
            ends[place, slot[inner][last]] = cells[inner][last]
        return _Grid(
            tuple(schema.columns[p] for p in positions), positions, slots, flips, starts, ends
        )

    def __getitem__(self, index: Index) -> _Grid:
        return replace(self, slots=self.slots[index], flips=self.flips[index])

    def offers(self, aim: _Aim, mask: Mask) -> Iterator[tuple[float, Condition]]:
        """For each column the condition that leaves the largest excess among the masked rows."""
        shape = self.starts.shape
        n = np.bincount(self.slots[mask].ravel(), minlength=self.starts.size).reshape(shape)
        hits = np.bincount(self.slots[mask & self.flips].ravel(), minlength=self.starts.size)
        hits = hits.reshape(shape)
        ranges = np.array([_is_range(column) for column in self.columns])
        for places, best in ((ranges, self._best_ranges), (~ranges, self._best_sets)):
            where = np.flatnonzero(places)
            if len(where):
                yield from best(aim, where, n[where], hits[where])

    def _best_ranges(
        self, aim: _Aim, where: Index, n: NDArray[np.int64], hits: NDArray[np.int64]
    ) -> Iterator[tuple[float, Condition]]:
        inner, inner_hits = _spans(n[:, :_SLOTS]), _spans(hits[:, :_SLOTS])
        gaps, gap_hits = n[:, -1, None, None], hits[:, -1, None, None]
        # without missing cells, with them, and (in one cell of the third) nothing else
        excess = np.stack(
            [
                aim.excess(inner_hits, inner),
                np.where(gaps > 0, aim.excess(inner_hits + gap_hits, inner + gaps), -np.inf),
                np.broadcast_to(aim.excess(gap_hits, gaps), inner.shape),
            ],
            axis=1,
        )
        # A condition that all rows meet says nothing.
        whole = inner.max(axis=(1, 2), keepdims=True)
        excess[:, 0] = np.where((inner == whole) & (gaps == 0), -np.inf, excess[:, 0])
        excess[:, 1] = np.where((inner == whole) | (inner == 0), -np.inf, excess[:, 1])
        flat = excess.reshape(len(where), -1)
        chosen = flat.argmax(axis=1)
        for line, place in enumerate(where):
            value = float(flat[line, chosen[line]])
            if value == -np.inf:
                continue
            form, first, last = np.unravel_index(chosen[line], excess.shape[1:])
            filled = np.flatnonzero(n[line, :_SLOTS])
            column, position = self.columns[place], int(self.positions[place])
            if form == 2:
                yield value, Condition(column, position, codes=(), missing=True)
                continue
            low = -math.inf if first <= filled[0] else float(self.starts[place, first])
            high = math.inf if last >= filled[-1] else float(self.ends[place, last])
            yield value, Condition(column, position, low, high, missing=bool(form))

    def _best_sets(
        self, aim: _Aim, where: Index, n: NDArray[np.int64], hits: NDArray[np.int64]
    ) -> Iterator[tuple[float, Condition]]:
        for line, place in enumerate(where):
            column, position = self.columns[place], int(self.positions[place])
            best = _best_set(aim, n[line], hits[line])
            if best is None:
                continue
            value, named, denied = best
            gap = self.starts.shape[1] - 1
            codes = self.starts[place]
            if named is not None:
                inside = tuple(sorted(float(codes[s]) for s in named if s != gap))
                yield value, Condition(column, position, codes=inside, missing=gap in named)
            else:
                outside = {float(codes[s]) for s in denied if s != gap}
                inside = tuple(float(c) for c in range(column.size) if c not in outside)
                missing = column.missing and gap not in denied
                yield value, Condition(column, position, codes=inside, missing=missing)


def _is_range(column: Column) -> bool:
    return column.kind in ("numerical", "ordered")


def _edges(cells: NDArray[np.float64], flips: Mask) -> NDArray[np.float64]:
    """Smallest cells of at most `_SLOTS` slots."""
    known = ~np.isnan(cells)
    values = np.unique(cells[known])
    if len(values) <= _SLOTS:
        return values
    half = np.linspace(0, 1, _SLOTS // 2, endpoint=False)
    quantiles = [
        np.quantile(some, half, method="inverted_cdf")
        for some in (cells[known], cells[known & flips])
        if len(some)
    ]
    # `values[:1]`: every cell must lie in a slot, and the first quantile of a part may not.
    return np.unique(np.concatenate([values[:1], *quantiles]))[:_SLOTS]


def _spans(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(d, w) -> (d, w, w): sums from each slot to each; 0 where the first is behind the last."""
    total = np.cumsum(counts, axis=1)
    before = total - counts
    spans = total[:, None, :] - before[:, :, None]
    return np.where(np.tri(counts.shape[1], dtype=bool).T, spans, 0)


def _best_set(
    aim: _Aim, n: NDArray[np.int64], hits: NDArray[np.int64]
) -> tuple[float, list[int] | None, list[int]] | None:
    """The few levels to name, or to deny, that leave the largest excess."""
    filled = np.flatnonzero(n)
    if len(filled) < 2:
        return None
    over = hits[filled] - aim.base * n[filled]
    nameable = filled != _SLOTS  # the rare ones stand for many levels
    best: tuple[float, list[int] | None, list[int]] | None = None
    orders = [(-hits[filled] / n[filled], True), (-over, True), (over, False)]
    for key, naming in orders:
        order = filled[np.lexsort((filled, key, ~nameable))][: int(nameable.sum())]
        order = order[: _MOST_NAMED if naming else _MOST_DENIED]
        inside, inside_hits = np.cumsum(n[order]), np.cumsum(hits[order])
        if not naming:
            inside, inside_hits = n.sum() - inside, hits.sum() - inside_hits
        excess = aim.excess(inside_hits, inside)
        excess[inside == (n.sum() if naming else 0)] = -np.inf
        chosen = int(excess.argmax())
        if excess[chosen] > (best[0] if best else -np.inf):
            part = [int(s) for s in order[: chosen + 1]]
            best = float(excess[chosen]), part if naming else None, [] if naming else part
    return best


# -- from a candidate to words -------------------------------------------------------------


def _polish(aim: _Aim, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The same columns, with bounds at the cells that leave the largest excess."""
    given = conditions
    for _ in range(3):
        before = conditions
        for place, condition in enumerate(conditions):
            if condition.codes is None:
                others = (*conditions[:place], *conditions[place + 1 :])
                moved = _with_bounds(aim, condition, _all_of(others, aim.rows))
                conditions = (*conditions[:place], moved, *conditions[place + 1 :])
        if conditions == before:
            break
    # A larger excess may come with a rate that is no longer worth a line.
    kept = (aim.of(_all_of(c, aim.rows)) for c in (conditions, given))
    return conditions if next(kept) >= next(kept) else given


def _with_bounds(aim: _Aim, condition: Condition, mask: Mask) -> Condition:
    cells, flips = aim.rows[mask, condition.position], aim.flips[mask]
    gap = np.isnan(cells)
    values, of = np.unique(cells[~gap], return_inverse=True)
    if not len(values):
        return condition
    total = np.concatenate([[0], np.cumsum(np.bincount(of))])
    total_hits = np.concatenate(
        [[0], np.cumsum(np.bincount(of[flips[~gap]], minlength=len(values)))]
    )
    extra = int(gap.sum()) if condition.missing else 0
    extra_hits = int(flips[gap].sum()) if condition.missing else 0
    first = int(np.searchsorted(values, condition.low))
    last = int(np.searchsorted(values, condition.high, side="right"))  # one behind
    # A side without a bound stays without: a bound there was not worth its words.
    for _ in range(8):
        before = first, last
        if condition.low > -math.inf:
            n, hits = total[last] - total[:last], total_hits[last] - total_hits[:last]
            excess = aim.excess(hits + extra_hits, n + extra)
            first = int(excess.argmax()) if len(excess) and excess.max() > -np.inf else first
        if condition.high < math.inf:
            n = total[first + 1 :] - total[first]
            hits = total_hits[first + 1 :] - total_hits[first]
            excess = aim.excess(hits + extra_hits, n + extra)
            last = first + 1 + int(excess.argmax()) if excess.max() > -np.inf else last
        if (first, last) == before:
            break
    low = float(values[first]) if first > 0 and condition.low > -math.inf else -math.inf
    high = float(values[last - 1]) if last < len(values) and condition.high < math.inf else math.inf
    return replace(condition, low=low, high=high)


def _shorter(aim: _Aim, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Without the conditions, bounds and levels that add next to nothing, or no more than the
    best of as many choices would by chance."""
    enough = (1 - _SLACK) * aim.of(_all_of(conditions, aim.rows))
    while True:
        mask = _all_of(conditions, aim.rows)
        best, best_excess = None, -math.inf
        for cut in _cuts(conditions, aim.columns):
            left = _all_of(cut.conditions, aim.rows)
            excess = aim.of(left)
            if excess <= best_excess:
                continue
            # The rows at stake, beside those that they would join.
            pool = left if cut.widens else _all_of(cut.others, aim.rows) & ~left
            chance = _fisher(aim.flips[pool], mask[pool])
            if excess >= enough or chance > LEVEL / cut.choices:
                best, best_excess = cut.conditions, excess
        if best is None:
            return conditions
        conditions = best


@dataclass(frozen=True)
class _Cut:
    """Conditions with one thing left out."""

    conditions: tuple[Condition, ...]
    others: tuple[Condition, ...]  # without the one that is cut
    choices: int  # of how many such things it was the best
    widens: bool = True  # does the region grow?


def _cuts(conditions: tuple[Condition, ...], columns: int) -> Iterator[_Cut]:
    for place, condition in enumerate(conditions):
        before, behind = conditions[:place], conditions[place + 1 :]
        others = (*before, *behind)
        size = min(condition.column.size or _SLOTS, _SLOTS)
        if others:
            yield _Cut(others, others, columns * _choices(condition, size))
        looser: list[dict[str, Any]] = []
        tighter: list[dict[str, Any]] = []
        if condition.codes is None and -math.inf < condition.low and condition.high < math.inf:
            looser = [{"low": -math.inf}, {"high": math.inf}]
        if condition.codes is not None and 1 < len(condition.codes) <= _MOST_NAMED:
            tighter = [
                {"codes": tuple(c for c in condition.codes if c != code)}
                for code in condition.codes
            ]
        if condition.missing and condition.codes != ():
            tighter.append({"missing": False})
        for changes, widens in ((looser, True), (tighter, False)):
            for change in changes:
                yield _Cut((*before, replace(condition, **change), *behind), others, size, widens)


def _choices(condition: Condition, size: int) -> int:
    """Conditions on one column that the search chooses from."""
    if condition.codes is None:
        return size * (size + 1) // 2
    named, denied = range(1, _MOST_NAMED + 1), range(1, _MOST_DENIED + 1)
    return sum(math.comb(size, k) for k in named) + sum(math.comb(size, k) for k in denied)


def _round(aim: _Aim, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Bounds as round as the gap between two neighbouring cells allows."""
    kept = []
    for place, condition in enumerate(conditions):
        column = condition.column
        if condition.codes is None and column.kind == "numerical" and column.step in (0.0, 1.0):
            others = (*conditions[:place], *conditions[place + 1 :])
            cells = aim.rows[_all_of(others, aim.rows), condition.position]
            below, above = cells[cells < condition.low], cells[cells > condition.high]
            low, high = condition.low, condition.high
            if low > -math.inf and len(below):
                low = 0.0 - _roundest(-low, -float(below.max()))
            if high < math.inf and len(above):
                high = _roundest(high, float(above.min()))
            condition = replace(condition, low=low, high=high)
        kept.append(condition)
    return tuple(kept)


def _roundest(least: float, under: float) -> float:
    """The number with the fewest digits in [least, under).

    >>> _roundest(5013.0, 5178.0), _roundest(0.29931, 0.30042), _roundest(44.0, 45.0)
    (5100.0, 0.3, 44.0)
    """
    first = min(math.floor(math.log10(max(abs(least), abs(under)))) + 1, 300)
    for power in range(first, first - 17, -1):
        # Dividing by a whole power of ten is exact where multiplying by 0.1 is not.
        scale = 10.0 ** abs(power)
        steps = math.ceil(least / scale) if power >= 0 else math.ceil(least * scale)
        number = steps * scale if power >= 0 else steps / scale
        if least <= number < under:
            return number
    return least
