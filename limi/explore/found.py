"""The findings of a run as a sheet: read from Parquet column by column, and never as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.reopen import ANSWERS, free_name
from limi.audits.result import partner_columns
from limi.audits.shown import choose_shown
from limi.decisions import Bands, Classes, Rule, favors
from limi.errors import CorruptStore
from limi.explore.sheet import Selection, Sheet, Strip
from limi.metrics.regions import Region
from limi.metrics.regions import Rule as RegionRule
from limi.metrics.severity import priority, severity_of
from limi.search.findings import Found
from limi.system.foreign import reason
from limi.system.reading import is_file
from limi.table.frames import Codec
from limi.table.schema import Column, Schema
from limi.types import Index, Rows, Scores

__all__ = ["FIGURES", "FoundSheet", "read_found", "sheet_of_found", "sheet_of_rows"]

FIGURES = ("severity", "naturalness", "partner_naturalness")
"""Figures of a finding that can be filtered and sorted by."""

_CANDIDATES = 1_000  # the strongest findings, among which a diverse draw is made
_MOST_DIRECTIONS = 200  # told apart; the others are one
_MOST_COUNTED = 1 << 20


@dataclass(frozen=True, eq=False)
class FoundSheet:
    """All findings of a run: who they are, their partners, and what is known of them.

    Strips are called `c0`, `c1`, ... for the columns of the schema, `p0`, ... for those in which
    partners may differ, and by their names for figures.
    """

    schema: Schema
    rule: Rule
    sheet: Sheet
    moving: tuple[int, ...]  # positions of the columns in which a partner may differ
    regions: tuple[Region, ...] = ()

    def __len__(self) -> int:
        return len(self.sheet)

    def rows(self, which: Index) -> Rows:
        """These people, as codes."""
        strips = [self.sheet[f"c{position}"] for position in range(len(self.schema))]
        return np.stack([strip.take(which) for strip in strips], axis=1)

    def partners(self, which: Index) -> Rows:
        """Their partners, as codes."""
        rows = self.rows(which)
        for position in self.moving:
            rows[:, position] = self.sheet[f"p{position}"].take(which)
        return rows

    def found(self, which: Index) -> Found:
        """These findings as the rest of limi has them."""
        figures = {name: self.sheet[name].take(which) for name in FIGURES}
        n = len(which)
        told = not np.isnan(figures["naturalness"]).all()
        none = np.empty(0)
        return Found(
            self.rows(which),
            self.partners(which),
            self.sheet["score"].take(which),
            self.sheet["partner_score"].take(which),
            np.full(n, ""),
            np.zeros(n),
            np.zeros(n, dtype=np.uint8),
            figures["naturalness"] if told else none,
            figures["partner_naturalness"] if told else none,
            span=figures["severity"] if isinstance(self.rule, Bands) else none,
        )

    @cached_property
    def priority(self) -> NDArray[np.float64]:
        """What to look at first: severity times the naturalness of the less natural of the two."""
        severity, *natural = (self.sheet[name].values for name in FIGURES)
        return priority(severity, np.minimum(*natural))

    def draw_diverse(self, chosen: Selection, most: int) -> Index:
        """Strong and natural findings of a selection that differ from each other."""
        rows = chosen.rows
        weight = self.priority[rows]
        if len(rows) > _CANDIDATES:
            first = np.argpartition(-weight, _CANDIDATES)[:_CANDIDATES]
            rows, weight = rows[first], weight[first]
        rows = rows[np.lexsort((rows, -weight))]
        rules = [r for r in self.regions if isinstance(r, RegionRule)]
        picked = choose_shown(self.schema, self.found(rows), self.rule, rules, most)
        return rows[picked]


def read_found(
    folder: Path, schema: Schema, rule: Rule, kind: str, regions: Sequence[Region] = ()
) -> FoundSheet:
    """The findings of a run folder; CorruptStore where they are not such as limi writes."""
    path = folder / "findings.parquet"
    if not is_file(path):
        raise CorruptStore(f"{str(folder)!r} is not a run folder of limi: it has no {path.name}")
    with _reading(folder), path.open("rb") as file:
        return _Reader(file, schema, rule).read(ANSWERS[kind], tuple(regions))


def sheet_of_found(
    schema: Schema, rule: Rule, found: Found, regions: Sequence[Region] = ()
) -> FoundSheet:
    """Findings that are in memory."""
    strips = {**sheet_of_rows(schema, found.rows).strips}
    for position in (schema.position(name) for name in partner_columns(schema)):
        key = f"p{position}"
        strips[key] = Strip.of(key, found.partner[:, position], schema.columns[position])
    unknown = np.full(len(found), np.nan)
    told = len(found.naturalness) > 0
    figures = {
        "score": found.score,
        "partner_score": found.partner_score,
        "severity": severity_of(rule, found),
        "naturalness": found.naturalness if told else unknown,
        "partner_naturalness": found.partner_naturalness if told else unknown,
    }
    for name, cells in figures.items():
        strips[name] = Strip(name, None, np.asarray(cells, dtype=np.float64), None)
    words, places = np.unique(found.origin, return_inverse=True)
    codes = np.arange(len(words), dtype=np.float64)
    strips["origin"] = Strip.at("origin", codes, places.reshape(-1), None, words.tolist())
    return _assemble(schema, rule, strips, len(found), tuple(regions))


def sheet_of_rows(schema: Schema, rows: Rows) -> Sheet:
    """People as a sheet."""
    strips = {
        f"c{position}": Strip.of(f"c{position}", rows[:, position], column)
        for position, column in enumerate(schema.columns)
    }
    return Sheet(strips, len(rows))


class _Reader:
    """Columns of a Parquet file as strips."""

    def __init__(self, file: Any, schema: Schema, rule: Rule) -> None:
        import pyarrow.parquet as pq

        text = [c.name for c in schema.columns if c.kind != "numerical"]
        text += [free_name(f"{name}__partner", schema.names) for name in text]
        ours = [free_name(name, schema.names) for name in ("origin", "flipped_by")]
        self._names = set(pq.read_schema(file).names)
        known = [name for name in (*text, *ours) if name in self._names]
        self._file = pq.ParquetFile(file, read_dictionary=known)
        self._schema, self._rule = schema, rule
        self._n = self._file.metadata.num_rows

    def read(self, answers: Sequence[str], regions: tuple[Region, ...]) -> FoundSheet:
        """All of it."""
        schema = self._schema
        moving = tuple(schema.position(name) for name in partner_columns(schema))
        strips: dict[str, Strip] = {}
        for position, column in enumerate(schema.columns):
            strips[f"c{position}"] = self._cells(f"c{position}", column.name, column)
        for position in moving:
            column = schema.columns[position]
            name = free_name(f"{column.name}__partner", schema.names)
            strips[f"p{position}"] = self._cells(f"p{position}", name, column)
        for prefix in ("", "partner_"):
            told = self._answers(prefix, answers)
            strips[f"{prefix}score"] = Strip(f"{prefix}score", None, told, None)
        for name in FIGURES:
            strips[name] = Strip(name, None, self._figures(name), None)
        for name in ("origin", "flipped_by"):
            if self._free(name) in self._names or name == "origin":
                strips[name] = self._words(name)
        return _assemble(schema, self._rule, strips, self._n, regions)

    def _free(self, name: str) -> str:
        return free_name(name, self._schema.names)

    def _column(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(f"it has no column {name!r}")
        return self._file.read(columns=[name], use_threads=False).column(0)

    def _cells(self, key: str, name: str, column: Column) -> Strip:
        """A column of the table, each of its values put through the codec once."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = self._column(name)
        if not pa.types.is_dictionary(cells.type):
            cells = pc.dictionary_encode(cells, null_encoding="mask")
        whole = cells.combine_chunks() if cells.num_chunks != 1 else cells.chunk(0)
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.unify_dictionaries().chunks) if self._n else None
        if whole is None or not len(whole):
            return Strip.at(key, np.empty(0), np.zeros(0, dtype=np.intp), column)
        known = pa.table({column.name: whole.dictionary})
        alone = Schema((column,))
        codes = Codec.learn(known, alone).encode(known)[:, 0] if len(known) else np.empty(0)
        places = whole.indices
        if places.null_count:
            codes = np.append(codes, np.nan)
            places = places.fill_null(len(codes) - 1)
        indices = places.to_numpy(zero_copy_only=False)
        values, where = np.unique(codes, return_inverse=True)  # two spellings, one value
        if len(values) < len(codes):
            return Strip.at(key, values, where.reshape(-1)[indices], column)
        return Strip.at(key, codes, indices, column)

    def _figures(self, name: str) -> NDArray[np.float64]:
        cells = self._column(self._free(name))
        return np.array(cells.to_numpy(), dtype=np.float64)

    def _words(self, name: str) -> Strip:
        cells = self._column(self._free(name)).combine_chunks()
        if not self._n:
            return Strip(name, None, np.empty(0), np.zeros(0, dtype=np.uint8), ())
        if hasattr(cells, "chunks"):
            import pyarrow as pa

            cells = pa.concat_arrays(cells.unify_dictionaries().chunks)
        words = tuple(map(str, cells.dictionary.to_pylist()))
        places = cells.indices.to_numpy(zero_copy_only=False)
        return Strip.at(name, np.arange(len(words), dtype=np.float64), places, None, words)

    def _answers(self, prefix: str, names: Sequence[str]) -> Scores:
        """The answers behind what was written of them (see `limi.audits.result`)."""
        if isinstance(self._rule, Classes):
            known = {self._rule.show(place): place for place in range(len(self._rule.labels) + 1)}
            labels = self._column(self._free(f"{prefix}{names[0]}")).to_pylist()
            places = np.array([known[str(label)] for label in labels], dtype=np.float64)
            return places + self._figures(f"{prefix}{names[1]}")
        return self._figures(f"{prefix}{names[0]}")


def _assemble(
    schema: Schema, rule: Rule, strips: dict[str, Strip], n: int, regions: tuple[Region, ...]
) -> FoundSheet:
    """The sheet, with directions and regions told from what is there."""
    moving = tuple(schema.position(name) for name in partner_columns(schema))
    strips["direction"] = _tell_directions(schema, rule, strips, n)
    for number, region in enumerate(regions):
        inside = np.ones(n, dtype=bool)
        for condition in region.conditions:
            strip = strips[f"c{condition.position}"]
            met = condition.mask_cells(strip.values)
            inside &= met if strip.places is None else met[strip.places]
        ends, words = np.array([0.0, 1.0]), ("outside", "inside")
        strips[f"g{number}"] = Strip(f"g{number}", None, ends, inside.view(np.uint8), words)
    return FoundSheet(schema, rule, Sheet(strips, n), moving, regions)


def _tell_directions(schema: Schema, rule: Rule, strips: dict[str, Strip], n: int) -> Strip:
    """Whom each finding favors over whom; where nothing is favorable, from whom to whom."""
    own, other = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    values: list[NDArray[np.float64]] = []
    for position in schema.protected_index:
        mine, theirs = strips[f"c{position}"], strips[f"p{position}"]
        known = np.unique(np.concatenate([mine.values, theirs.values]))
        values.append(known)
        for strip, total in ((mine, own), (theirs, other)):
            where = np.searchsorted(known, strip.values).astype(np.int32)
            total *= len(known)
            total += where if strip.places is None else where[strip.places]
    width = max(int(np.prod([max(len(known), 1) for known in values])), 1)
    if rule.kind == "favorable":
        first = favors(strips["score"].values)
        own, other = np.where(first, own, other), np.where(first, other, own)
    pairs, places = _number(own.astype(np.int64) * width + other, width * width)
    verb = "over" if rule.kind == "favorable" else "and"
    named = [
        f"{_name_group(schema, values, int(pair) // width)} {verb} "
        f"{_name_group(schema, values, int(pair) % width)}"
        for pair in pairs[:_MOST_DIRECTIONS]
    ]
    if len(pairs) > _MOST_DIRECTIONS:
        named.append("others")
        places = np.minimum(places, _MOST_DIRECTIONS)
    codes = np.arange(len(named), dtype=np.float64)
    return Strip.at("direction", codes, places.reshape(-1), None, named)


def _number(codes: Index, size: int) -> tuple[Index, Index]:
    """The codes under a size that occur, ascending, and the place of each among them."""
    if size > _MOST_COUNTED:
        values, places = np.unique(codes, return_inverse=True)
        return values, places.reshape(-1)
    occurs = np.bincount(codes, minlength=size) > 0  # counting needs no sorting
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _name_group(schema: Schema, values: Sequence[NDArray[np.float64]], number: int) -> str:
    """The protected values that a number stands for, the last column fastest."""
    words = []
    for name, known in zip(reversed(schema.protected), reversed(values), strict=True):
        number, place = divmod(number, max(len(known), 1))
        words.append(f"{name} {schema[name].show(float(known[place]))}")
    return ", ".join(reversed(words))


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except CorruptStore:
        raise
    except (KeyError, IndexError, OSError, ValueError, TypeError) as error:
        raise CorruptStore(
            f"the findings in {str(folder)!r} cannot be read: {reason(error)}"
        ) from None
