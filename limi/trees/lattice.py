"""The trees of a target over the columns of its table.

Each question of a tree is about one column. All questions about a column cut its values into
*atoms*, within which no tree can tell two values apart. Atoms are numbered in the order of the
values; a missing value has the number behind the last. So a set of rows is a box of atoms, and a
question is a number to compare with: `atom <= cut` goes left. Questions that are not cuts (a set
of categories) have a table of their own.

How an atom answers is asked of the user's own preprocessing and compared as the library compares,
so that no rounding lies between a box and the rows in it. Columns of few values are asked value by
value. For others the value at which an answer turns is found by halving, down to neighbouring
floats: that is exact where larger values never make smaller numbers (`limi.trees._pipeline`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.trees.ensemble import Ensemble
from limi.trees.reading import Reading
from limi.types import Rows

__all__ = ["Axis", "Lattice", "build_lattice"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FEW = 4096  # values of a column that are asked one by one
_AT_ONCE = 1 << 14  # rows that are asked together
_WALKED = 1 << 12  # rows that walk the trees together


@dataclass(frozen=True, eq=False)
class Axis:
    """The atoms of one column, by the last place of each but the last atom.

    A place is the number of a value among those of a grid; a real number is its own place.
    """

    low: float
    high: float
    step: float  # 0 for a real-valued column
    last: Floats  # ascending; one less than atoms

    @property
    def size(self) -> int:
        """How many atoms there are beside that of missing values."""
        return len(self.last) + 1

    def places(self, codes: Any) -> Any:
        """Places of codes; NaN stays NaN."""
        codes = np.asarray(codes, dtype=np.float64)
        return np.rint((codes - self.low) / self.step) if self.step else codes

    def atoms(self, codes: Any) -> Ints:
        """Atoms of codes."""
        places = self.places(codes)
        found = np.searchsorted(self.last, places, side="left")
        return np.where(np.isnan(places), self.size, found).astype(np.int64)

    def nearest(self, codes: Floats, atoms: Ints) -> Floats:
        """The codes in atoms that are nearest to others; missing for the atom of missing values."""
        places = self.places(codes)
        first = np.append(-np.inf, self._behind(self.last))
        last = np.append(self.last, np.inf)
        here = np.minimum(atoms, self.size - 1)
        fallback = np.where(np.isfinite(last[here]), last[here], first[here])
        places = np.where(np.isnan(places), fallback, places)
        places = np.clip(places, first[here], last[here])
        lone = ~np.isfinite(places)  # one atom alone, and nothing to be near to
        near = self.low + places * self.step if self.step else places
        near = np.where(lone, self.low, near)
        return np.where(atoms >= self.size, np.nan, near)

    def _behind(self, places: Floats) -> Floats:
        return places + 1 if self.step else np.nextafter(places, np.inf)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Trees whose nodes ask for atoms of columns."""

    schema: Schema
    reading: Reading
    axes: tuple[Axis, ...]
    column: Ints  # of each node; 0 for leaves
    cut: Ints  # up to this atom a node goes left
    missing_left: NDArray[np.bool_]
    table: Ints  # of a node that is not a cut: its line in `counts`; -1 for a cut
    counts: Ints  # (tables, atoms + 2): how many atoms before each go left
    left: Ints
    right: Ints

    @property
    def ensemble(self) -> Ensemble:
        """The trees."""
        return self.reading.ensemble

    @cached_property
    def sizes(self) -> Ints:
        """Atoms of each column, without that of missing values."""
        return np.array([axis.size for axis in self.axes], dtype=np.int64)

    def atoms(self, rows: Rows) -> Ints:
        """(n, d): atoms of rows."""
        found = [axis.atoms(rows[:, j]) for j, axis in enumerate(self.axes)]
        return np.stack(found, axis=1)

    def rows(self, atoms: Ints, near: Rows) -> Rows:
        """(n, d): rows in atoms, as near to others as can be."""
        cells = [axis.nearest(near[:, j], atoms[:, j]) for j, axis in enumerate(self.axes)]
        made = np.stack(cells, axis=1)
        snapped = snap(self.schema, made)
        real = self.schema.step == 0
        return np.where(real, made, snapped)

    def can_go(self, nodes: Ints, low: Ints, high: Ints) -> tuple[Any, Any]:
        """Whether some atom from low to high goes left at a node, and whether one goes right."""
        cut, size = self.cut[nodes], self.sizes[self.column[nodes]]
        top = np.minimum(high, size - 1)
        left, right = low <= np.minimum(cut, top), (top > cut) & (top >= low)
        gone = high >= size
        if gone.any():
            turn = self.missing_left[nodes]
            left |= gone & turn
            right |= gone & ~turn
        line = self.table[nodes]
        odd = np.flatnonzero(line >= 0)
        if len(odd):
            line, first, behind = line[odd], low[odd], high[odd] + 1
            n_left = self.counts[line, behind] - self.counts[line, first]
            left[odd], right[odd] = n_left > 0, n_left < behind - first
        return left, right

    def conform(self, rows: Rows) -> None:
        """Hold atoms to the trees on these rows; BadModel where they end in other leaves."""
        apart = np.abs(self.margins(self.atoms(rows)) - self.reading.margins(rows))
        if (apart > self.ensemble.slack).any():
            raise BadModel(
                f"the columns of this {self.ensemble.kind} were cut where its trees ask, but "
                f"{int((apart > self.ensemble.slack).sum())} of {len(rows)} rows gave results that "
                "differ from the trees, so nothing can be proven about it; does its preprocessing "
                "change the order of a column?"
            )

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.ensemble.is_leaf

    @cached_property
    def spread(self) -> Floats:
        """(nodes,): how far apart the leaves below a node are."""
        low, high = self.ensemble.value.copy(), self.ensemble.value.copy()
        for node in self._upward:
            low[node] = np.minimum(low[self.left[node]], low[self.right[node]])
            high[node] = np.maximum(high[self.left[node]], high[self.right[node]])
        return high - low

    @cached_property
    def _upward(self) -> list[Ints]:
        """Inner nodes level by level, the deepest first."""
        levels: list[Ints] = []
        here = self.ensemble.roots
        while True:
            here = here[~self.is_leaf[here]]
            if not len(here):
                return levels[::-1]
            levels.append(here)
            here = np.concatenate([self.left[here], self.right[here]])

    @cached_property
    def parents(self) -> tuple[Ints, NDArray[np.bool_]]:
        """(nodes,) each: the node above, -1 for a root; and whether a node stands on its left."""
        above = np.full(len(self.column), -1, dtype=np.int64)
        on_left = np.zeros(len(self.column), dtype=bool)
        inner = np.flatnonzero(~self.is_leaf)
        above[self.left[inner]] = above[self.right[inner]] = inner
        on_left[self.left[inner]] = True
        return above, on_left

    def looks_at(self, columns: Ints) -> NDArray[np.bool_]:
        """(trees,): which trees ask for one of these columns."""
        asks = np.isin(self.column, columns) & ~self.is_leaf
        found = np.zeros(self.ensemble.n_trees, dtype=bool)
        found[self.ensemble.tree_of[asks]] = True
        return found

    def margins(self, atoms: Ints) -> Floats:
        """(n,): the sums of rows by their atoms."""
        every = np.ones(self.ensemble.n_trees, dtype=bool)
        total: Floats = self.ensemble.base + self.sums(atoms, every)
        return total

    def sums(self, atoms: Ints, trees: NDArray[np.bool_]) -> Floats:
        """(n,): the sums of some trees alone, without the base."""
        roots = self.ensemble.roots[trees]
        found = np.empty(len(atoms))
        plain = not len(self.counts)
        for start in range(0, len(atoms), _WALKED):
            part = atoms[start : start + _WALKED]
            walk = self._walk if plain and (part < self.sizes).all() else self._walk_odd
            found[start : start + len(part)] = self.ensemble.value[walk(part, roots)].sum(axis=1)
        return found

    def _walk(self, atoms: Ints, roots: Ints) -> Ints:
        """(n, trees): leaves, where every question is a cut and nothing is missing."""
        columns, cuts, ways = self._walking
        flat = atoms.astype(np.int32).ravel()
        here = np.repeat(roots.astype(np.int32)[None], len(atoms), axis=0)
        line = (np.arange(len(atoms), dtype=np.int32) * atoms.shape[1])[:, None]
        for _ in range(self.ensemble.depth):
            right = flat.take(line + columns.take(here)) > cuts.take(here)
            here = ways.take(2 * here + right)
        return here.astype(np.int64)

    @cached_property
    def _walking(self) -> tuple[Any, Any, Any]:
        """Column, cut and both ways of each node; a leaf leads to itself."""
        own = np.arange(len(self.column))
        ways = np.stack(
            [np.where(self.is_leaf, own, self.left), np.where(self.is_leaf, own, self.right)], 1
        )
        most = np.iinfo(np.int32).max
        return (
            self.column.astype(np.int32),
            np.minimum(self.cut, most).astype(np.int32),
            ways.ravel().astype(np.int32),
        )

    def _walk_odd(self, atoms: Ints, roots: Ints) -> Ints:
        here = np.repeat(roots[None], len(atoms), axis=0)
        for _ in range(self.ensemble.depth):
            row, tree = np.nonzero(~self.is_leaf[here])
            nodes = here[row, tree]
            own = atoms[row, self.column[nodes]]
            goes, _ = self.can_go(nodes, own, own)
            here[row, tree] = np.where(goes, self.left[nodes], self.right[nodes])
        return here


def build_lattice(reading: Reading, person: Rows, whole: NDArray[np.bool_]) -> Lattice:
    """The lattice of a target. `person` is a row (1, d) of its table to ask about; columns in
    `whole` have an atom for each value."""
    schema = reading.target.codec.schema
    probe = _Probe(reading, schema, person)
    ensemble = reading.ensemble
    home = probe.homes()
    asked = np.where(ensemble.is_leaf, 0, home[np.maximum(ensemble.feature, 0)])
    axes, cut, flipped = [], np.zeros(len(asked), dtype=np.int64), np.zeros(len(asked), dtype=bool)
    missing_left = np.zeros(len(asked), dtype=bool)
    table = np.full(len(asked), -1, dtype=np.int64)
    lines: list[Ints] = []
    for j in range(len(schema)):
        nodes = np.flatnonzero(~ensemble.is_leaf & (asked == j))
        axis = probe.axis(j, nodes, bool(whole[j]))
        axes.append(axis)
        tests, of = _distinct_tests(ensemble, nodes)
        found = probe.answer(j, axis, tests)
        cut[nodes], flipped[nodes] = found.cut[of], found.flipped[of]
        missing_left[nodes] = found.missing_left[of]
        places = np.where(found.line < 0, -1, found.line + len(lines))
        table[nodes] = places[of]
        lines += list(found.lines)
    width = max((axis.size for axis in axes), default=0) + 2
    counts = np.zeros((len(lines), width), dtype=np.int64)
    for place, line in enumerate(lines):
        counts[place, : len(line)] = line
        counts[place, len(line) :] = line[-1]
    left = np.where(flipped, ensemble.right, ensemble.left)
    right = np.where(flipped, ensemble.left, ensemble.right)
    column = np.where(ensemble.is_leaf, 0, np.maximum(asked, 0))
    # Numbers that no column moves answer the same for every row.
    fixed = np.flatnonzero(~ensemble.is_leaf & (asked < 0))
    goes = ensemble.goes_left(fixed, probe.constants[ensemble.feature[fixed]])
    cut[fixed], missing_left[fixed] = np.where(goes, np.iinfo(np.int64).max, -1), goes
    return Lattice(
        schema, reading, tuple(axes), column, cut, missing_left, table, counts, left, right
    )


@dataclass(frozen=True, eq=False)
class _Answers:
    """How distinct questions about a column are answered, by atom."""

    cut: Ints
    flipped: NDArray[np.bool_]  # do the larger atoms go left, so that the two ways are swapped?
    missing_left: NDArray[np.bool_]
    line: Ints
    lines: list[Ints]


def _distinct_tests(ensemble: Ensemble, nodes: Ints) -> tuple[Ints, Ints]:
    """One node for each distinct question among some, and which of them each node asks."""
    told = np.stack(
        [
            ensemble.feature[nodes].astype(np.float64),
            ensemble.threshold[nodes],
            ensemble.strict[nodes],
            ensemble.missing_left[nodes],
            ensemble.hole[nodes],
            ensemble.set_of[nodes],
        ],
        axis=1,
    )
    _, first, of = np.unique(told, axis=0, return_index=True, return_inverse=True)
    return nodes[first], of.reshape(-1)


class _Probe:
    """Asks what a target's preprocessing makes of single columns."""

    def __init__(self, reading: Reading, schema: Schema, person: Rows) -> None:
        self._reading, self._schema, self._person = reading, schema, person
        self._ensemble = reading.ensemble
        self.constants = reading.features(person)[0]

    def _features(self, j: int, codes: Floats) -> Floats:
        """(n, features) of the person with these codes of one column."""
        parts = []
        for start in range(0, max(1, len(codes)), _AT_ONCE):
            part = codes[start : start + _AT_ONCE]
            rows = np.repeat(self._person, len(part), axis=0)
            rows[:, j] = part
            parts.append(self._reading.features(rows))
        return np.concatenate(parts)

    def _grid(self, j: int, places: Floats) -> Floats:
        """Codes at places of a column."""
        column = self._schema
        if not column.step[j]:
            return places
        rows = np.repeat(self._person, len(places), axis=0)
        rows[:, j] = column.low[j] + places * column.step[j]
        return snap(column, rows)[:, j]

    def _is_small(self, j: int) -> bool:
        return bool(0 < self._schema.sizes[j] <= _FEW)

    def homes(self) -> Ints:
        """(features,): the column that each number comes from, -1 where none moves it."""
        schema = self._schema
        home = np.full(len(self.constants), -1, dtype=np.int64)
        for j in range(len(schema)):
            if self._is_small(j):
                codes = self._grid(j, np.arange(schema.sizes[j], dtype=np.float64))
            else:
                self._require_order(j)  # else the ends would not tell what moves between them
                codes = np.array([schema.low[j], schema.high[j]])
            if schema.may_miss[j]:
                codes = np.append(codes, np.nan)
            found = self._features(j, codes)
            same = (found == found[0]) | (np.isnan(found) & np.isnan(found[0]))
            moved = ~same.all(axis=0)
            if (home[moved] >= 0).any():
                raise BadModel(
                    "the model's preprocessing makes a number from several columns, so nothing "
                    "can be proven about it"
                )
            home[moved] = j
        return home

    def axis(self, j: int, nodes: Ints, whole: bool) -> Axis:
        """The atoms of a column, by the nodes that ask for it."""
        schema, ensemble = self._schema, self._ensemble
        axis = Axis(float(schema.low[j]), float(schema.high[j]), float(schema.step[j]), np.empty(0))
        if self._is_small(j):
            n = int(schema.sizes[j])
            if whole:
                return replace(axis, last=np.arange(n - 1, dtype=np.float64))
            tests, _ = _distinct_tests(ensemble, nodes)
            values = self._features(j, self._grid(j, np.arange(n, dtype=np.float64)))
            turns = np.zeros(n - 1, dtype=bool)
            for start in range(0, len(tests), _FEW):
                part = tests[start : start + _FEW]
                goes = self._goes(part, values)
                turns |= (goes[:, 1:] != goes[:, :-1]).any(axis=0)
            return replace(axis, last=np.flatnonzero(turns).astype(np.float64))
        if whole:
            raise BadModel(
                f"column {schema.names[j]!r} has too many values to take part in the rules of a "
                "proof"
            )
        if not len(nodes):
            return axis
        return replace(axis, last=self._turns(j, nodes))

    def _goes(self, tests: Ints, values: Floats) -> NDArray[np.bool_]:
        """(tests, n): which values go left."""
        asked = values[:, self._ensemble.feature[tests]].T
        nodes = np.repeat(tests, len(values))
        return self._ensemble.goes_left(nodes, asked.ravel()).reshape(len(tests), len(values))

    def _turns(self, j: int, nodes: Ints) -> Floats:
        """Last places before an answer turns, of a column with many values."""
        schema, ensemble = self._schema, self._ensemble
        features, limits = ensemble.feature[nodes], ensemble.threshold[nodes]
        strict = ensemble.strict[nodes]
        if ensemble.hole[nodes].any():
            touched = np.unique(features[ensemble.hole[nodes]])
            features = np.concatenate([features, touched, touched])
            limits = np.concatenate([limits, np.repeat(ensemble.hole_ends, len(touched))])
            strict = np.concatenate([strict, np.repeat([True, False], len(touched))])
        told = np.unique(np.stack([features, limits, strict], axis=1), axis=0)
        features, limits, strict = told[:, 0].astype(np.int64), told[:, 1], told[:, 2] > 0
        self._require_rise(j, np.unique(features))

        def below(places: Floats) -> NDArray[np.bool_]:
            numbers = self._features(j, self._grid(j, places))[np.arange(len(places)), features]
            return np.asarray((numbers < limits) | (~strict & (numbers == limits)))

        low, high = schema.low[j], schema.high[j]
        step = schema.step[j]
        first, last = (0.0, np.rint((high - low) / step)) if step else (low, high)
        n = len(limits)
        inside = below(np.full(n, first)) & ~below(np.full(n, last))
        features, limits, strict = features[inside], limits[inside], strict[inside]
        bottom, top = np.full(len(limits), first), np.full(len(limits), last)
        middle = _between_whole if step else _between_real
        while True:
            tried = middle(bottom, top)
            open_ = (tried > bottom) & (tried < top)
            if not open_.any():
                return np.unique(bottom)
            goes = below(tried)
            bottom = np.where(open_ & goes, tried, bottom)
            top = np.where(open_ & ~goes, tried, top)

    def _require_order(self, j: int) -> None:
        """BadModel where numbers may rise and fall again as a column of many values rises."""
        schema, jumps = self._schema, self._reading.jumps
        if schema.names[j] in self._reading.target.unseen:
            return
        if jumps is None or j in jumps:
            raise BadModel(
                f"column {schema.names[j]!r} has more than {_FEW} values and goes through an "
                "encoder, or an imputer that replaces a number, so nothing can be proven; leave "
                "that step to columns of fewer values"
            )

    def _require_rise(self, j: int, features: Ints) -> None:
        """BadModel where a number falls as its column rises: halving would not be exact."""
        schema = self._schema
        ends = self._features(j, np.array([schema.low[j], schema.high[j]]))[:, features]
        if not (ends[0] <= ends[1]).all():
            raise BadModel(
                f"the model's preprocessing reverses the order of column {schema.names[j]!r}, so "
                "nothing can be proven"
            )

    def answer(self, j: int, axis: Axis, tests: Ints) -> _Answers:
        """How distinct questions are answered by the atoms of a column."""
        ensemble, n = self._ensemble, len(tests)
        cut, flipped = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        line, lines = np.full(n, -1, dtype=np.int64), list[Ints]()
        missing_left = ensemble.missing_left[tests].copy()
        if not n:
            return _Answers(cut, flipped, missing_left, line, lines)
        atoms = np.arange(axis.size)
        codes = self._grid(j, axis.places(axis.nearest(np.full(axis.size, np.nan), atoms)))
        if axis.size == 1:
            codes = np.array([self._schema.low[j]])
        values = self._features(j, codes)
        if self._schema.may_miss[j]:
            gone = self._features(j, np.array([np.nan]))
            missing_left = self._goes(tests, gone)[:, 0]
        for start in range(0, n, _FEW):
            part = np.arange(start, min(start + _FEW, n))
            goes = self._goes(tests[part], values)
            n_left = goes.sum(axis=1)
            is_prefix = (goes == (atoms < n_left[:, None])).all(axis=1)
            is_suffix = (goes == (atoms >= axis.size - n_left[:, None])).all(axis=1) & ~is_prefix
            flipped[part] = is_suffix
            cut[part] = np.where(is_suffix, axis.size - n_left, n_left) - 1
            for place in part[~is_prefix & ~is_suffix]:
                whole = np.append(goes[place - start], missing_left[place])
                line[place] = len(lines)
                lines.append(np.append(0, np.cumsum(whole)))
        missing_left = missing_left ^ flipped
        return _Answers(cut, flipped, missing_left, line, lines)


def _between_whole(low: Floats, high: Floats) -> Floats:
    middle: Floats = np.floor((low + high) / 2)
    return middle


def _between_real(low: Floats, high: Floats) -> Floats:
    """The float in the middle of all floats between two, so that halving ends at neighbours."""
    ordered = [_number(x) for x in (low, high)]
    middle = ordered[0] // 2 + ordered[1] // 2 + (ordered[0] % 2 + ordered[1] % 2) // 2
    return _float(middle)


def _number(x: Floats) -> Ints:
    """Floats as whole numbers in the same order, neighbours one apart."""
    bits = (np.asarray(x, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _float(numbers: Ints) -> Floats:
    bits = np.where(numbers < 0, np.int64(-(2**63)) - numbers, numbers)
    return bits.view(np.float64)
