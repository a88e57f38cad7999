"""Tables that do not fit into memory: one pass over their batches, a few numbers for each column.

The pass keeps a fair sample of rows, and of every column a few cells that show what it may hold:
all levels, the lowest and the highest number, one that needs so many decimals, a gap. What is
inferred from these witnesses is what would be inferred from all cells.

The pass uses every core: one thread reads the next batch while others look at the columns of this
one. Each column sees its batches in order, so the number of threads changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable
from limi.system.cores import n_cores
from limi.table.parts import Parts
from limi.table.schema import LARGEST_EXACT
from limi.table.sketches import DistinctCount, Quantiles, RowSampler
from limi.table.whole import Whole, note_whole

__all__ = ["DEFAULT_FIT_ROWS", "MOST_CELLS", "draw_from_parts", "read_whole"]

MOST_CELLS = 100_000_000  # of a table that is read as a whole
DEFAULT_FIT_ROWS = 200_000  # rows that are drawn from a larger one
_MOST_LEVELS = 100_000  # of a column of text; one with more names people, and tells nothing of them
_MOST_DECIMALS = 6
_QUANTILES = 10_000  # numbers that stand for a column's quantiles


def read_whole(parts: Parts) -> tuple[Any, list[str]]:
    """The pandas frame of all rows of a table in parts, and what there is to say."""
    import pyarrow as pa

    batches = parts.open()
    tables = list(batches)
    if not sum(map(len, tables)):
        raise _no_rows(parts)
    # Categories of all batches, in the order in which these bring them.
    whole = pa.concat_tables(tables).unify_dictionaries()
    return whole.to_pandas().reset_index(drop=True), list(batches.notes)


def _no_rows(parts: Parts) -> BadTable:
    return BadTable(f"{str(parts.files[0])!r} holds no rows; a table needs at least one row")


def draw_from_parts(parts: Parts, fit_rows: int) -> tuple[Any, list[str]]:
    """A pandas frame of rows drawn from a table in parts, and what there is to say.

    Where that is all of it, the frame is the table, as pandas would read it.
    """
    import pyarrow as pa

    batches = parts.open()
    sample = _Sample(fit_rows)
    columns: dict[str, _Column] = {}
    schema = None
    with ThreadPoolExecutor(n_cores(), "limi-read") as threads:
        for table in _read_ahead(batches, threads):
            schema = table.schema if schema is None else schema
            plain = _decode(table)
            for name, cells in zip(table.column_names, plain.columns, strict=True):
                if name not in columns:
                    columns[name] = _column(cells.type)
            seen = [columns[name] for name in table.column_names]
            list(threads.map(_look, seen, plain.columns, table.columns))
            sample.offer(plain)
    if schema is None or not sample.n_seen:
        raise _no_rows(parts)
    rows = sample.take().replace_schema_metadata(schema.metadata)
    notes = list(batches.notes)
    if len(rows) == sample.n_seen:
        frame = _to_pandas(rows, columns, is_text=parts.is_text)
        return frame.reset_index(drop=True), notes
    kept = [name for name in rows.column_names if not columns[name].left_out]
    witness = _witness({name: columns[name] for name in kept}, rows.schema)
    both = pa.concat_tables([rows.select(kept), witness.replace_schema_metadata(schema.metadata)])
    frame = _to_pandas(both, columns, is_text=parts.is_text)
    people = frame.iloc[: len(rows)].reset_index(drop=True)
    notes += [
        f"the column {name!r} {columns[name].left_out}" for name in columns if name not in kept
    ]
    notes.append(
        f"it has {sample.n_seen:,} rows, of which {len(rows):,} were drawn at random: the "
        "generator is fitted to these, and rates and metrics come from this sample, with its "
        "intervals; the values that columns may hold were read from all rows"
    )
    whole = Whole(
        sample.n_seen,
        frame.iloc[len(rows) :].reset_index(drop=True),
        {name: columns[name].quantiles for name in kept if len(columns[name].quantiles)},
        parts.sha256,
    )
    note_whole(people, whole)
    return people, notes


def _read_ahead(batches: Iterable[Any], threads: ThreadPoolExecutor) -> Iterator[Any]:
    """The batches in order, the next of which is read while the caller works on one."""
    rest = iter(batches)
    coming = threads.submit(next, rest, None)
    while (table := coming.result()) is not None:
        coming = threads.submit(next, rest, None)
        yield table


def _look(column: _Column, plain: Any, stored: Any) -> None:
    """Show a column its cells of a batch, without and with their dictionary."""
    column.look(plain.combine_chunks() if plain.num_chunks != 1 else plain.chunk(0))
    column.note_categories(stored)


def _decode(table: Any) -> Any:
    """A table of Arrow without dictionaries, whose numbering changes from batch to batch."""
    import pyarrow as pa

    fields = [
        pa.field(one.name, one.type.value_type) if pa.types.is_dictionary(one.type) else one
        for one in table.schema
    ]
    return table.cast(pa.schema(fields))


def _to_pandas(table: Any, columns: dict[str, _Column], *, is_text: bool) -> Any:
    """As pandas reads it, with the categories of all batches."""
    import pandas as pd

    frame = table.to_pandas()
    for name in frame.columns:
        known = columns[name].categories
        if known is not None:
            ordered = columns[name].is_ordered
            frame[name] = pd.Categorical(frame[name], known.to_pandas(), ordered=ordered)
        elif is_text and frame[name].dtype == object:
            frame[name] = frame[name].where(frame[name].notna(), np.nan)
    return frame


class _Sample:
    """Rows that were drawn so far."""

    def __init__(self, n: int) -> None:
        self._sampler = RowSampler(n)
        self._parts: list[Any] = []
        self.n_seen = 0

    def offer(self, table: Any) -> None:
        self.n_seen += len(table)
        self._parts.append(_filter(table, self._sampler.offer(len(table))))
        self._prune(at_end=False)

    def _prune(self, *, at_end: bool) -> None:
        masks = self._sampler.settle(at_end=at_end)
        if masks is not None:
            pairs = zip(self._parts, masks, strict=True)
            self._parts = [_filter(part, mask) for part, mask in pairs]

    def take(self) -> Any:
        import pyarrow as pa

        self._prune(at_end=True)
        return pa.concat_tables(self._parts)


def _filter(table: Any, mask: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    # Copied: a slice would keep the whole batch in memory.
    return table if mask.all() else table.take(pa.array(np.flatnonzero(mask)))


class _Column(Protocol):
    """What is kept of a column."""

    left_out: str  # why it cannot be used, in words
    categories: Any  # of Arrow, in their order; None where the column has none
    is_ordered: bool

    @property
    def quantiles(self) -> NDArray[np.float64]: ...
    def look(self, cells: Any) -> None: ...
    def note_categories(self, cells: Any) -> None: ...
    def witnesses(self) -> Any: ...


def _column(kind: Any) -> _Column:
    import pyarrow.types as types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _Numbers(kind)
    return _Levels(kind)


class _Noted:
    """Categories as pandas stores them, in the order in which the batches bring them."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.left_out = ""
        self.categories: Any = None
        self.is_ordered = False
        self.gaps = False

    def note_categories(self, cells: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_dictionary(cells.type):
            return
        self.is_ordered = bool(cells.type.ordered)
        known = [] if self.categories is None else [self.categories]
        held = [chunk.dictionary.cast(self.kind) for chunk in cells.chunks]
        self.categories = pc.unique(pa.concat_arrays([*known, *held])).drop_null()

    def gap(self) -> list[Any]:
        """A missing cell, where there is one."""
        import pyarrow as pa

        return [pa.nulls(1, self.kind)] if self.gaps else []


class _Numbers(_Noted):
    """Ends, decimals and quantiles of a column of numbers."""

    def __init__(self, kind: Any) -> None:
        super().__init__(kind)
        self._low, self._high = np.inf, -np.inf
        self._decimals = 0  # that all numbers so far need
        self._has_nan = self._has_infinity = False
        self._kept: list[Any] = []
        self._sketch = Quantiles()

    @property
    def quantiles(self) -> NDArray[np.float64]:
        return self._sketch.spread(_QUANTILES)

    def look(self, cells: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.gaps |= cells.null_count > 0
        there = pc.drop_null(cells)
        numbers = there.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if np.isnan(numbers).any() or np.isinf(numbers).any():
            for odd in ("nan", "infinity"):
                self._note_odd(there, numbers, odd)
            finite = np.isfinite(numbers)
            there, numbers = there.filter(pa.array(finite)), numbers[finite]
        if not len(numbers):
            return
        low, high = int(numbers.argmin()), int(numbers.argmax())
        shown = [low] if numbers[low] < self._low else []
        shown += [high] if numbers[high] > self._high else []
        self._low, self._high = min(self._low, numbers[low]), max(self._high, numbers[high])
        shown += self._need_decimals(numbers)
        if shown:
            self._kept.append(there.take(pa.array(shown)))
        self._sketch.add(numbers)
        if pa.types.is_integer(self.kind) and max(-self._low, self._high) > LARGEST_EXACT:
            self.left_out = (
                "holds whole numbers beyond 2^53, which look like identifiers rather than "
                "quantities, so it was left out; store it as text if the model takes it"
            )

    def _note_odd(self, there: Any, numbers: NDArray[np.float64], what: str) -> None:
        """Keep one cell that is not a number, or is infinite."""
        import pyarrow as pa

        found = np.flatnonzero((np.isnan if what == "nan" else np.isinf)(numbers))
        known = self._has_nan if what == "nan" else self._has_infinity
        if len(found) and not known:
            self._kept.append(there.take(pa.array(found[:1])))
        self._has_nan |= bool(len(found)) and what == "nan"
        self._has_infinity |= bool(len(found)) and what == "infinity"

    def _need_decimals(self, numbers: NDArray[np.float64]) -> list[int]:
        """Numbers that need more decimals than those before: one for each further decimal."""
        import pyarrow.types as types

        shown: list[int] = []
        while self._decimals <= _MOST_DECIMALS and not types.is_integer(self.kind):
            off = np.flatnonzero(np.round(numbers, self._decimals) != numbers)
            if not len(off):
                break
            shown.append(int(off[0]))
            self._decimals += 1
        return shown

    def witnesses(self) -> Any:
        import pyarrow as pa

        return pa.concat_arrays([*self._kept, *self.gap()])


class _Levels(_Noted):
    """All values of a column of text, truth values or dates, or about how many there are."""

    def __init__(self, kind: Any) -> None:
        super().__init__(kind)
        self._known: Any = None
        self._count = DistinctCount()
        self.quantiles = np.empty(0)

    def look(self, cells: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.gaps |= cells.null_count > 0
        new = pc.unique(cells).drop_null()
        self._count_values(new)
        if self.left_out:
            return
        known = new if self._known is None else pc.unique(pa.concat_arrays([self._known, new]))
        self._known = known

    def _count_values(self, new: Any) -> None:
        import pandas as pd

        self._count.add(pd.util.hash_array(new.to_pandas().astype(str).to_numpy(dtype=object)))
        n_known = 0 if self._known is None else len(self._known)
        if self.left_out or n_known + len(new) > _MOST_LEVELS:
            n = self._count.estimate
            if self.left_out or n > _MOST_LEVELS:
                self._known = None
                self.left_out = (
                    f"holds about {n:,} different values, which identify people rather than "
                    f"describe them (more than {_MOST_LEVELS:,}), so it was left out"
                )

    def witnesses(self) -> Any:
        import pyarrow as pa

        return pa.concat_arrays([self._known, *self.gap()])


def _witness(columns: dict[str, _Column], schema: Any) -> Any:
    """A table of the cells that show what columns may hold; shorter columns repeat theirs."""
    import pyarrow as pa

    cells = {name: column.witnesses() for name, column in columns.items()}
    n = max((len(some) for some in cells.values()), default=0)
    spread = {
        name: some.take(pa.array(np.arange(n) % len(some))) if len(some) else pa.nulls(n, some.type)
        for name, some in cells.items()
    }
    return pa.table(spread, schema=pa.schema([schema.field(name) for name in columns]))
