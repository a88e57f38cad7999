"""Rules read one row at a time, and their numbers from the definitions."""

from __future__ import annotations

import itertools
import math


def meets(condition, row):
    """Does a row (a list of codes) meet a condition?"""
    cell = row[condition.position]
    if math.isnan(cell):
        return condition.missing
    if condition.codes is None:
        return condition.low <= cell <= condition.high
    return any(cell == code for code in condition.codes)


def lies_in(rule, row):
    return all(meets(condition, row) for condition in rule.conditions)


def holm(p_values):
    """Each p-value times the number of those not yet rejected, never below an earlier one."""
    corrected = {}
    largest = 0.0
    left = sorted(range(len(p_values)), key=lambda i: p_values[i])
    while left:
        largest = max(largest, len(left) * p_values[left[0]])
        corrected[left.pop(0)] = min(1.0, largest)
    return [corrected[i] for i in range(len(p_values))]


def fisher(flips, inside):
    """Chance that at least as many flips fall inside, over all ways to place them."""
    n, n_inside, n_flips = len(flips), sum(inside), sum(flips)
    hits = sum(flip and here for flip, here in zip(flips, inside, strict=True))
    ways = sum(
        math.comb(n_inside, k) * math.comb(n - n_inside, n_flips - k)
        for k in range(hits, min(n_inside, n_flips) + 1)
    )
    return ways / math.comb(n, n_flips)


def excess(rows, flips, base, least):
    """Flips over the average in standard deviations, of the rows of a region."""
    n = len(rows)
    if n < least:
        return -math.inf
    return (sum(flips) - base * n) / math.sqrt(n * base * (1 - base))


def best_range(cells, flips, base, least):
    """The largest excess of any interval of a column's cells, with missing ones or without, or of
    missing ones alone; all rows are no region."""
    known = sorted({cell for cell in cells if cell == cell})
    regions = [(low, high, gaps) for low in known for high in known for gaps in (False, True)]
    best = -math.inf
    for low, high, gaps in [*regions, (math.inf, -math.inf, True)]:
        inside = [low <= cell <= high or (gaps and cell != cell) for cell in cells]
        if not all(inside):
            hits = [flip for flip, here in zip(flips, inside, strict=True) if here]
            best = max(best, excess(hits, hits, base, least))
    return best


def best_set(cells, flips, base, least):
    """The largest excess of any set of levels, missing as one of them; all rows are no region."""
    levels = {"missing" if cell != cell else cell for cell in cells}
    best = -math.inf
    for size in range(1, len(levels)):
        for named in itertools.combinations(levels, size):
            hits = [
                flip
                for cell, flip in zip(cells, flips, strict=True)
                if ("missing" if cell != cell else cell) in named
            ]
            best = max(best, excess(hits, hits, base, least))
    return best
