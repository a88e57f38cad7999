"""Groups of people: who holds which protected values, and which groups are large enough to ask.

Levels are groups as they are. The numbers of a protected column are cut into bands: around each
value that is tried where these are few, at quartiles of the people otherwise. A person who is
given another band keeps their rank: the eldest third of one is the eldest third of the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.table.schema import Column, Schema
from limi.types import Index, Rows

__all__ = ["FEWEST", "Groups", "find_groups"]

FEWEST = 40
"""People that a group must have: fewer say too little of what goes with their values."""

_MOST_TRIED = 6  # values of a number that are bands of their own
_QUARTILES = (0.25, 0.5, 0.75)

_Cells = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Part:
    """How one protected column tells people apart."""

    name: str
    words: tuple[str, ...]  # of each of its values or bands
    codes: _Cells  # ascending: the levels, or where each band but the first begins
    banded: bool

    def place_of(self, cells: _Cells) -> Index:
        """Which value or band each cell is, -1 for none."""
        if self.banded:
            return np.where(np.isnan(cells), -1, np.searchsorted(self.codes, cells, side="right"))
        place = np.minimum(np.searchsorted(self.codes, cells), len(self.codes) - 1)
        return np.where(self.codes[place] == cells, place, -1)


@dataclass(frozen=True, eq=False)
class Groups:
    """The combinations of protected values or bands that enough people hold."""

    schema: Schema
    parts: tuple[_Part, ...]
    places: Index  # (k, protected columns): the value or band of each group
    counts: Index  # (k,) people of the table
    small: tuple[tuple[str, int], ...]  # combinations that too few people hold, with their numbers
    values: tuple[tuple[_Cells, ...], ...]  # of each group and column: the cells of its people

    def __len__(self) -> int:
        return len(self.places)

    @property
    def names(self) -> tuple[str, ...]:
        """What each group is called."""
        return tuple(_name(self.parts, places) for places in self.places)

    def of(self, rows: Rows) -> Index:
        """The group of each row, -1 where it has none."""
        return _number(self.parts, self.schema, rows, self.places)

    def move(self, rows: Rows, own: Index, goals: Index, rng: np.random.Generator) -> Rows:
        """The rows with the protected values of their goals; a number keeps its rank."""
        moved = rows.copy()
        draws = rng.random((len(rows), len(self.parts)))
        for number, (part, position) in enumerate(
            zip(self.parts, self.schema.protected_index, strict=True)
        ):
            if not part.banded:
                moved[:, position] = part.codes[self.places[goals, number]]
                continue
            for start, goal in set(zip(own.tolist(), goals.tolist(), strict=True)):
                here = np.flatnonzero((own == start) & (goals == goal))
                moved[here, position] = _same_rank(
                    rows[here, position],
                    self.values[start][number],
                    self.values[goal][number],
                    draws[here, number],
                )
        return moved


def _same_rank(cells: _Cells, own: _Cells, goal: _Cells, draws: _Cells) -> _Cells:
    """Cells of one group as those of the same rank in another; a draw tells equal ones apart."""
    low, high = (np.searchsorted(own, cells, side=side) for side in ("left", "right"))
    rank = (low + draws * np.maximum(high - low, 1)) / len(own)
    place = np.minimum((rank * len(goal)).astype(np.intp), len(goal) - 1)
    return np.asarray(goal[place])


def find_groups(schema: Schema, rows: Rows) -> Groups:
    """The groups of a table; InvalidInput where fewer than two have enough people."""
    parts = tuple(
        _part(schema[name], rows[:, schema.position(name)], codes)
        for name, codes in zip(schema.protected, schema.protected_codes, strict=True)
    )
    places = np.array(list(itertools.product(*(range(len(part.words)) for part in parts))))
    numbers = _number(parts, schema, rows, places)
    counts = np.bincount(numbers[numbers >= 0], minlength=len(places))
    enough = counts >= FEWEST
    small = tuple(
        (_name(parts, place), int(count))
        for place, count in zip(places[~enough], counts[~enough], strict=True)
        if count
    )
    if enough.sum() < 2:
        largest = [int(count) for count in np.sort(counts)[::-1][:2]]
        raise InvalidInput(
            f"twins need two groups of at least {FEWEST} people each, but the largest of "
            f"{', '.join(schema.protected)} have {largest[0]} and "
            f"{largest[1] if len(largest) > 1 else 0}; give a larger table, or fewer protected "
            "columns or values"
        )
    values = tuple(
        tuple(np.sort(rows[numbers == number, position]) for position in schema.protected_index)
        for number in np.flatnonzero(enough)
    )
    return Groups(schema, parts, places[enough], counts[enough], small, values)


def _part(column: Column, cells: _Cells, codes: Sequence[float]) -> _Part:
    ordered = np.sort(np.asarray(codes, dtype=np.float64))
    if column.kind != "numerical":
        return _Part(column.name, tuple(map(column.show, ordered)), ordered, False)
    known = cells[~np.isnan(cells)]
    if len(ordered) <= _MOST_TRIED:
        if np.isin(known, ordered).all():
            return _Part(column.name, tuple(map(column.show, ordered)), ordered, False)
        edges = (ordered[1:] + ordered[:-1]) / 2
    else:
        edges = np.quantile(known, _QUARTILES, method="higher") if len(known) else ordered[1:2]
    if column.step:
        # The first value of a band, as the column writes it.
        edges = column.low + np.ceil((edges - column.low) / column.step - 1e-9) * column.step
        edges = np.round(edges, column.decimals)
    edges = np.unique(edges)
    return _Part(column.name, _band_words(column, edges), edges, True)


def _band_words(column: Column, edges: _Cells) -> tuple[str, ...]:
    """`under 28`, `28 to 37`, `48 or more`."""
    shown = [column.show(float(edge)) for edge in edges]
    ends = [
        column.show(float(np.round(edge - column.step, column.decimals)))
        if column.step
        else f"under {column.show(float(edge))}"
        for edge in edges
    ]
    between = [
        begin if begin == end else f"{begin} to {end}"
        for begin, end in zip(shown, ends[1:], strict=False)
    ]
    return (f"under {shown[0]}", *between, f"{shown[-1]} or more")


def _number(parts: Sequence[_Part], schema: Schema, rows: Rows, places: Index) -> Index:
    """Which of some combinations each row holds, -1 for none of them."""
    sizes = [len(part.words) for part in parts]
    lookup = np.full(int(np.prod(sizes)), -1, dtype=np.intp)
    lookup[np.ravel_multi_index(tuple(places.T), sizes)] = np.arange(len(places))
    flat = np.zeros(len(rows), dtype=np.intp)
    known = np.ones(len(rows), dtype=bool)
    for part, size, position in zip(parts, sizes, schema.protected_index, strict=True):
        place = part.place_of(rows[:, position])
        known &= place >= 0
        flat = flat * size + np.maximum(place, 0)
    return np.where(known, lookup[flat], -1)


def _name(parts: Sequence[_Part], places: Index) -> str:
    if len(parts) == 1:
        return f"{parts[0].name} {parts[0].words[int(places[0])]}"
    return ", ".join(
        f"{part.name} {part.words[int(place)]}" for part, place in zip(parts, places, strict=True)
    )
