"""The integer encodings of the fairness-testing papers, made from the raw tables by rule.

The rules give the files that ADF, AEQUITAS, ExpGA, NeuronFair and LIMI share, cell by cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limi.table.schema import Column, Schema

__all__ = ["bank", "census", "clip", "credit"]

Frame = Any  # a pandas frame

_MISSING_LABEL = "? (missing)"

_SHARED = {"age": 10, "fnlwgt": 20_000, "capital_gain": 1_000, "capital_loss": 100}


def census(raw: Frame, schema: Schema) -> Frame:
    """Adult as codes: quantities in coarse steps, education_num left out, missing as 100."""
    coded = {c.name: _code(raw[c.name], c, _SHARED.get(c.name, 1)) for c in schema.columns}
    return _frame(coded, income=raw["income"] == ">50K")


def credit(raw: Frame, schema: Schema, source_rows: Any) -> Frame:
    """German Credit as codes, in the order of the 600 source rows."""
    rows = raw.iloc[source_rows]
    coded = {}
    for position, column in enumerate(schema.columns):
        cells = rows[column.name]
        if column.name == "sex":
            coded["sex"] = cells == "A92"
        elif column.is_number:
            coded[column.name] = cells // {"credit_amount": 100, "age": 10}.get(column.name, 1)
        else:
            coded[column.name] = _suffix(cells, attribute=position + 1)
    return _frame(coded, credit_risk=rows["credit_risk"] == 1)


def bank(raw: Frame, schema: Schema) -> Frame:
    """Bank Marketing as codes: quantities in coarse steps and cut to the ends of their range."""
    steps = {"age": 10, "balance": 50, "duration": 10}
    coded = {c.name: _code(raw[c.name], c, steps.get(c.name, 1)) for c in schema.columns}
    coded["pdays"] = raw["pdays"] == -1
    cut = {
        name: np.clip(coded[name], schema[name].low, schema[name].high)
        for name in ("age", "balance", "duration", "previous")
    }
    return _frame({**coded, **cut}, subscribed=raw["y"] == "yes")


def clip(frame: Frame, schema: Schema) -> Frame:
    """The frame with every cell cut to the ends of its column's domain."""
    ends = {
        c.name: (c.low, c.high) if c.is_number else (min(c.levels), max(c.levels))
        for c in schema.columns
    }
    cut = {name: frame[name].clip(*ends[name]) for name in schema.names}
    return frame.assign(**cut).astype(np.int64)


def _code(cells: Any, column: Column, divisor: int) -> Any:
    """Text as the level that bears it as a label; numbers divided, rounded down."""
    if not column.labels:
        return cells // divisor if divisor > 1 else cells
    levels = dict(zip(column.labels, column.levels, strict=True))
    codes = cells.map(levels)
    return codes.fillna(levels[_MISSING_LABEL]) if _MISSING_LABEL in levels else codes


def _suffix(cells: Any, attribute: int) -> Any:
    """Codes such as A143 by what follows the attribute's number: A14, then the level, from 0."""
    first = 0 if attribute in (3, 4) else 1  # the published codes of these two start at A30, A40
    texts = cells.unique()
    return cells.map({text: int(text.removeprefix(f"A{attribute}")) - first for text in texts})


def _frame(columns: dict[str, Any], **target: Any) -> Frame:
    import pandas as pd

    cells = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
    last = {name: np.asarray(values, dtype=np.int64) for name, values in target.items()}
    return pd.DataFrame({**cells, **last})
