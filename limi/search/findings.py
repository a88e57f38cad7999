"""The ledger: distinct flipping rows in the order they were found, with time and origin."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from limi.search.check import ALONE, REFUSED, Checked
from limi.table.rows import KeySet, distinct
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Findings", "Found"]


@dataclass(frozen=True)
class Found:
    """Findings as arrays, oldest first."""

    rows: Rows
    partner: Rows
    score: Scores
    partner_score: Scores
    origin: NDArray[np.str_]
    seconds: NDArray[np.float64]  # since the search began
    causes: NDArray[np.uint8]  # see `limi.search.check.cause_names`; 0 where it was not asked for
    naturalness: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # ^ p-value of the row (`limi.metrics.row_naturalness`); empty where none was told
    partner_naturalness: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bits: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint8))
    # ^ see `limi.search.check.Checked.bits`; empty where not every combination was asked
    chances: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 7)))
    # ^ of a model that answers by chance: how often each side was asked, and for the row and its
    #   partner the chance of the favorable answer with the ends of its interval
    span: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # ^ where decisions are bands: how many of them all protected variants of a row span

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Mask | Index | slice) -> Found:
        return Found(
            self.rows[index],
            self.partner[index],
            self.score[index],
            self.partner_score[index],
            self.origin[index],
            self.seconds[index],
            self.causes[index],
            self.naturalness[index] if len(self.naturalness) else self.naturalness,
            self.partner_naturalness[index] if len(self.naturalness) else self.naturalness,
            self.bits[index] if len(self.bits) else self.bits,
            self.chances[index] if len(self.chances) else self.chances,
            self.span[index] if len(self.span) else self.span,
        )


class Findings:
    """Append-only; a finding is distinct by its non-protected columns, for every method."""

    def __init__(self, schema: Schema, *, sided: bool = True) -> None:
        self.schema = schema
        self.sided = sided  # are decisions favorable or not? Only then `favorable` counts anything
        self.rows_checked = 0
        self.flips = 0  # flipping rows, repeated keys included
        self.alone = 0  # of the rows checked, those of which no partner could exist
        self.favorable = np.zeros(len(schema.combinations), dtype=np.int64)
        self._known = KeySet()
        self._parts: list[Found] = []

    def __len__(self) -> int:
        return len(self._known)

    def add(self, checked: Checked, seconds: float = 0.0, *, most: int | None = None) -> int:
        """Record a batch, keeping at most `most` new findings; the number of new ones."""
        refused, alone = ((checked.standing == kind).sum() for kind in (REFUSED, ALONE))
        self.rows_checked += len(checked) + checked.unflipped - int(refused)
        self.alone += int(alone)
        self.flips += int(checked.flips.sum())
        if len(checked.favorable):
            self.favorable += checked.favorable
        new = np.flatnonzero(checked.flips)
        if not len(new):
            return 0
        known = distinct(self.schema, checked.rows[new])
        first = known.first[~self._known.contains(known.keys[known.first])][:most]
        self._known.add(known.keys[first])
        new = new[first]
        self._parts.append(
            Found(
                checked.rows[new],
                checked.partner[new],
                checked.score[new],
                checked.partner_score[new],
                np.full(len(new), checked.origin),
                np.full(len(new), seconds),
                checked.causes[new] if len(checked.causes) else np.zeros(len(new), dtype=np.uint8),
                bits=checked.bits[new] if len(checked.bits) else checked.bits,
            )
        )
        return len(new)

    def all(self) -> Found:
        """Every finding so far."""
        if not self._parts:
            width = len(self.schema)
            empty = np.empty(0)
            nothing = np.empty((0, width))
            origin, causes = np.empty(0, dtype=str), np.empty(0, dtype=np.uint8)
            return Found(nothing, nothing, empty, empty, origin, empty, causes)
        if len(self._parts) > 1:
            parts = self._parts
            if not all(len(part.bits) for part in parts):
                none = np.zeros((0, 0), dtype=np.uint8)
                parts = [replace(part, bits=none) for part in parts]
            fields = Found.__dataclass_fields__
            joined = [np.concatenate([getattr(part, f) for part in parts]) for f in fields]
            self._parts = [Found(*joined)]
        return self._parts[0]
