"""MAFT's gradient column by column; the walks are EIDIG's."""

from __future__ import annotations

import numpy as np

from tests.naive import eidig


def slope_of(score, schema, h=1):
    """A function of rows: differences of the score over h, downwards at the upper bound."""

    def slope(rows):
        found = np.zeros_like(rows)
        for i, row in enumerate(rows):
            here = score(row[None])[0]
            for j in schema.free_index:
                step = h if row[j] + h <= schema.high[j] else -h
                there = row.copy()
                there[j] += step
                found[i, j] = (score(there[None])[0] - here) / step
        return found

    return slope


def search(score, schema, rows, rng, **more):
    """Keys of all findings from these seeds."""
    return eidig.search(score, slope_of(score, schema), schema, rows, rng, **more)
