"""All findings for the page: column by column, each text once, so that thousands are few bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.hiding import HIDDEN
from limi.audits.result import partner_columns, ranking
from limi.audits.summary import Summary
from limi.decisions import AS_DECIDED, Rule
from limi.metrics.severity import severity_of
from limi.report import wording
from limi.search.findings import Found
from limi.table.schema import Column, Schema

__all__ = ["MOST_FINDINGS", "Ledger", "as_json", "ledger_of"]

Ledger = dict[str, Any]
"""`{"total": n, "columns": [{"title", "cells"} or {"title", "levels", "cells"}], "cut": words}`"""

MOST_FINDINGS = 5_000
_MOST_COLUMNS = 40
_DIGITS = 4


def ledger_of(
    schema: Schema,
    found: Found,
    summary: Summary,
    rule: Rule = AS_DECIDED,
    most: int = MOST_FINDINGS,
) -> Ledger:
    """The findings of a run, the ones to look at first in front.

    Those beyond the first few thousand, and columns beyond the first forty, are in
    findings.parquet alone.
    """
    order = ranking(rule, found)[:most]
    chosen = found[order]
    moving = partner_columns(schema)
    names = [*moving, *(name for name in schema.names if name not in moving)][:_MOST_COLUMNS]
    columns: list[dict[str, Any]] = [{"title": "row", "cells": order.tolist()}]
    for name in names:
        position, column = schema.position(name), schema[name]
        if name in summary.hidden:
            columns.append({"title": name, "levels": [HIDDEN], "cells": [0] * len(chosen)})
            continue
        cells = chosen.rows[:, position]
        partner = chosen.partner[:, position] if name in moving else None
        columns.append(_column(column, cells, partner))
    columns += _answers(summary, chosen.score, chosen.partner_score)
    columns.append({"title": "severity", "cells": _numbers(severity_of(rule, chosen))})
    if len(chosen.naturalness):
        natural = np.minimum(chosen.naturalness, chosen.partner_naturalness)
        columns.append({"title": "naturalness", "cells": _numbers(natural)})
    cut = []
    if len(found) > len(chosen):
        cut.append(f"the first {len(chosen):,} of {summary.findings:,}")
    if len(names) < len(schema.names):
        cut.append(f"{len(names)} of {len(schema.names):,} columns")
    return {"total": len(found), "columns": columns, "cut": " and ".join(cut)}


def as_json(ledger: Ledger) -> str:
    """For a script element: nothing in it can end that element."""
    text = json.dumps(ledger, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _column(
    column: Column, cells: NDArray[np.float64], partner: NDArray[np.float64] | None
) -> dict[str, Any]:
    """A column of the table; where the partner differs, from what to what."""
    if partner is None and column.kind == "numerical":
        return {"title": column.name, "cells": _numbers(cells, column.decimals)}
    pairs = np.stack([cells, cells if partner is None else partner], axis=1)
    keys, places = np.unique(np.nan_to_num(pairs, nan=np.inf), axis=0, return_inverse=True)
    levels = []
    for one, other in keys:
        shown, now = (column.show(np.nan if np.isinf(code) else code) for code in (one, other))
        text = shown if shown == now else f"{shown} \u2192 {now}"
        levels.append(wording.clean(text))
    return {"title": column.name, "levels": levels, "cells": places.reshape(-1).tolist()}


def _answers(
    summary: Summary, score: NDArray[np.float64], partner: NDArray[np.float64]
) -> list[dict[str, Any]]:
    if summary.kind == "number":
        return [
            {"title": "prediction", "cells": _numbers(score)},
            {"title": "partner's prediction", "cells": _numbers(partner)},
        ]
    words = [
        f"{wording.decision(summary, float(one))} \u2192 {wording.decision(summary, float(other))}"
        for one, other in zip(score, partner, strict=True)
    ]
    levels = sorted(set(words))
    places = {text: place for place, text in enumerate(levels)}
    return [
        {
            "title": "decision",
            "levels": [wording.clean(text) for text in levels],
            "cells": [places[text] for text in words],
        }
    ]


def _numbers(cells: NDArray[np.float64], digits: int | None = None) -> list[float | int | None]:
    """Numbers as short as JSON can have them; a missing one is null."""
    rounded = np.round(cells, _DIGITS if digits is None else max(digits, 0))
    return [
        None if np.isnan(cell) else int(cell) if cell == int(cell) else float(cell)
        for cell in rounded
    ]
