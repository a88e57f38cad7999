"""Group and individual metrics row by row, straight from their formulas."""

from __future__ import annotations

import math


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
