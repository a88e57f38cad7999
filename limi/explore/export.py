"""Findings that were selected, as a file: CSV, Parquet, or the pairs of a test."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from typing import Any

import numpy as np

from limi.audits.hiding import HIDDEN
from limi.audits.reopen import ANSWERS, free_name
from limi.audits.result import answer_columns
from limi.errors import InvalidInput
from limi.explore.exploration import Exploration
from limi.explore.found import FIGURES, FoundSheet
from limi.explore.query import Query, filters_of
from limi.explore.sheet import Strip
from limi.table.sheets import guard_cells
from limi.testing.export import MODULE, PAIRS, choose, write_module
from limi.testing.pairs import Pairs, Reading
from limi.types import Index

__all__ = ["EXPORTS", "export", "to_arrow"]

EXPORTS = ("csv", "parquet", "pytest")
_MOST_PAIRS = 1_000


def export(exploration: Exploration, kind: str, query: Query) -> tuple[str, str, bytes]:
    """The name, the media type and the bytes of a file of the selected findings."""
    found = exploration.found
    if found is None:
        raise InvalidInput("there are no findings here; limi test writes a run that has some")
    chosen = found.sheet.select(filters_of(found.sheet, query, exploration.secret))
    if not chosen.n:
        raise InvalidInput("no finding matches these filters, so there is nothing to write")
    which = chosen.rows
    if query.get("draw") == "1":
        which = found.draw_diverse(chosen, 20)
    if kind == "pytest":
        return "fairness-test.zip", "application/zip", _pairs(exploration, found, which)
    table = to_arrow(found, which, exploration.secret)
    sink = io.BytesIO()
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
        return "findings.parquet", "application/vnd.apache.parquet", sink.getvalue()
    from pyarrow import csv

    csv.write_csv(_guard_formulas(table), sink)
    return "findings.csv", "text/csv; charset=utf-8", sink.getvalue()


def to_arrow(found: FoundSheet, which: Index, secret: Collection[str] = ()) -> Any:
    """These findings as a table, under the names that a run's findings have."""
    import pyarrow as pa

    schema, sheet = found.schema, found.sheet
    columns: dict[str, Any] = {}

    def cells_of(key: str) -> Any:
        return pa.repeat(HIDDEN, len(which)) if key in secret else _native(sheet[key], which)

    for position, column in enumerate(schema.columns):
        columns[column.name] = cells_of(f"c{position}")
    for position in found.moving:
        name = free_name(f"{schema.names[position]}__partner", schema.names)
        columns[name] = cells_of(f"p{position}")
    for prefix in ("", "partner_"):
        answers = sheet[f"{prefix}score"].take(which)
        told = answer_columns(found.rule, answers)
        assert set(told) == set(ANSWERS[found.rule.kind])
        for name, cells in told.items():
            columns[free_name(f"{prefix}{name}", schema.names)] = pa.array(cells)
    for name in ("origin", "flipped_by"):
        if name in sheet.strips:
            strip = sheet[name]
            words = [strip.show(cell) for cell in strip.take(which).tolist()]
            columns[free_name(name, schema.names)] = pa.array(words)
    for name in FIGURES:
        columns[free_name(name, schema.names)] = pa.array(sheet[name].take(which))
    return pa.table(columns)


def _guard_formulas(table: Any) -> Any:
    """The table without a name or a text that a spreadsheet would run."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type):
            distinct = column.combine_chunks().dictionary_encode()
            texts = distinct.dictionary.to_pylist()
            guarded = pa.array([t if t is None else guard_cells(t) for t in texts], pa.string())
            column = pa.DictionaryArray.from_arrays(distinct.indices, guarded).dictionary_decode()
        columns.append(column)
    return pa.table(columns, names=[guard_cells(name) for name in table.column_names])


def _native(strip: Strip, which: Index) -> Any:
    """Cells in the table's own values."""
    import pyarrow as pa

    column = strip.column
    assert column is not None
    cells = strip.take(which)
    gaps = np.isnan(cells)
    if column.kind == "numerical":
        known = cells[~gaps]
        if column.step and not gaps.any() and (known % 1 == 0).all():
            return pa.array(cells.astype(np.int64))
        return pa.array(cells, mask=gaps)
    places = pa.array(np.where(gaps, 0, cells).astype(np.int32), mask=gaps)
    levels = pa.array(list(column.levels))
    return pa.DictionaryArray.from_arrays(places, levels).dictionary_decode()


def _pairs(exploration: Exploration, found: FoundSheet, which: Index) -> bytes:
    """A test of pytest with its pairs, as one archive."""
    if exploration.reading.rule.kind != "favorable":
        raise InvalidInput(
            "a test can only hold pairs of favorable decisions; download these as CSV or Parquet"
        )
    if exploration.asker is None:
        raise InvalidInput("a test needs the model; start limi explore without --read-only")
    if exploration.hidden:
        raise InvalidInput(
            "a test holds complete people, but some of their cells are hidden; show them to write "
            "one"
        )
    if exploration.model_uri is None:
        raise InvalidInput(
            "a test must name the model that it asks, but this one was given in memory; save it "
            "and open it with --model KIND:PLACE"
        )
    told = found.found(which)
    chosen = choose(told, _MOST_PAIRS)
    kept = Pairs(
        found.schema,
        to_arrow(found, which[chosen]).to_pandas(),
        told[chosen],
        Reading(
            favorable=exploration.asked_for.get("favorable"),
            labels=tuple(exploration.asked_for.get("labels", ())),
            output=exploration.asked_for.get("output"),
            decision=str(exploration.reading.rule),
            table=exploration.table_name,
        ),
    )
    module = write_module(
        exploration.model_uri,
        kept,
        about=f"chosen by hand from {len(found):,} that a search found",
    )
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((MODULE, module.encode()), (PAIRS, kept.as_parquet())):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return sink.getvalue()
