"""Group and individual metrics row by row, straight from their formulas."""

from __future__ import annotations

import math
from statistics import NormalDist


def share(cells):
    return sum(cells) / len(cells) if cells else math.nan


def rates(decisions, labels, group, side):
    """Selection rate, true positive rate and false positive rate of one side."""
    rows = [i for i, member in enumerate(group) if member == side]
    return (
        share([decisions[i] for i in rows]),
        share([decisions[i] for i in rows if labels[i] == 1]),
        share([decisions[i] for i in rows if labels[i] == 0]),
    )


def differences(decisions, labels, privileged):
    selected, true, false = (
        others - mine
        for others, mine in zip(
            rates(decisions, labels, privileged, False),
            rates(decisions, labels, privileged, True),
            strict=True,
        )
    )
    return {
        "statistical_parity_difference": selected,
        "parity_gap": abs(selected),
        "equal_opportunity_difference": true,
        "average_odds_difference": (true + false) / 2,
        "average_odds_error": (abs(true) + abs(false)) / 2,
    }


def generalized_entropy(decisions, labels, alpha):
    benefits = [1 + d - y for d, y in zip(decisions, labels, strict=True)]
    mean = sum(benefits) / len(benefits)
    if not mean:
        return 0.0
    if alpha == 1:
        parts = [b / mean * math.log(b / mean) if b else 0.0 for b in benefits]
    elif alpha == 0:
        parts = [-math.log(b / mean) if b else math.inf for b in benefits]
    else:
        parts = [((b / mean) ** alpha - 1) / (alpha * (alpha - 1)) for b in benefits]
    return sum(parts) / len(parts)


def wilson(hits, n, confidence):
    """The shares p that a score test does not reject: (hits / n - p)^2 <= z^2 p (1 - p) / n."""
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    a, b, c = 1 + z2 / n, -(2 * hits / n + z2 / n), (hits / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def square_and_add(parts, confidence):
    """(value, low, high) of a sum of shares, from (weight, hits, n) of each."""
    value = down = up = 0.0
    for weight, hits, n in parts:
        here = hits / n
        low, high = wilson(hits, n, confidence)
        ends = [weight * low, weight * high]
        value += weight * here
        down += (weight * here - min(ends)) ** 2
        up += (max(ends) - weight * here) ** 2
    return value, max(-1.0, value - math.sqrt(down)), min(1.0, value + math.sqrt(up))


def absolute(*gaps):
    """(value, low, high) of the mean size of gaps."""
    ends = []
    for value, low, high in gaps:
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        ends.append((abs(value), nearest, max(abs(low), abs(high))))
    return tuple(sum(column) / len(gaps) for column in zip(*ends, strict=True))


def intervals(privileged, others, confidence):
    """(value, low, high) of every difference, from counts (rows, favorable, positives,
    true_favorable, negatives, false_favorable) of the two groups."""
    rows, favorable, positives, true, negatives, false = range(6)

    def gap(hits, n, weight=1.0):
        return [(weight, others[hits], others[n]), (-weight, privileged[hits], privileged[n])]

    def difference(hits, n, confidence):
        return square_and_add(gap(hits, n), confidence)

    each = 1 - (1 - confidence) / 2
    odds = [*gap(true, positives, 0.5), *gap(false, negatives, 0.5)]
    parity = difference(favorable, rows, confidence)
    return {
        "statistical_parity_difference": parity,
        "parity_gap": absolute(parity),
        "equal_opportunity_difference": difference(true, positives, confidence),
        "average_odds_difference": square_and_add(odds, confidence),
        "average_odds_error": absolute(
            difference(true, positives, each), difference(false, negatives, each)
        ),
    }
