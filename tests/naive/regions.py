"""Rules read one row at a time, and their numbers from the definitions."""

from __future__ import annotations

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
