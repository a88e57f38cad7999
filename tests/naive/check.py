"""The oracle row by row and value by value, straight from the definition."""

from __future__ import annotations

import itertools


def verdict(score, schema, row, rule):
    """(flips, own score, partner combination) of one row."""
    own = score(row[None])[0]
    own_values = tuple(row[schema.protected_index])
    best = None
    flips = False
    for values in itertools.product(*schema.protected_codes):
        if values == own_values:
            continue
        twin = row.copy()
        twin[schema.protected_index] = values
        other = score(twin[None])[0]
        flipped = (other > 0.5) != (own > 0.5)
        gap = round(abs(other - own), 6)
        if rule == "first":
            better = (flipped and not flips) or (
                not flips and not flipped and (best is None or gap > best[1])
            )
        else:
            better = best is None or (flipped, gap) > (best[0], best[1])
        if better:
            best = (flipped, gap, values)
        flips = flips or flipped
    return flips, own, best[2]


def key(schema, row):
    return tuple("missing" if row[i] != row[i] else float(row[i]) for i in schema.free_index)


def distinct_findings(score, schema, rows):
    """Keys of flipping rows, first seen first."""
    found = []
    for row in rows:
        if verdict(score, schema, row, "first")[0] and key(schema, row) not in found:
            found.append(key(schema, row))
    return found


def uniform_rate(score, schema, rows):
    flips = [verdict(score, schema, row, "first")[0] for row in rows]
    return sum(flips) / len(flips)
