"""Shapley shares of one person's changed decision, over all orders of the carriers."""

from __future__ import annotations

import itertools
import math


def shares(decide, row, twin, groups):
    """By carrier: what it adds to the decision, on average over every order."""
    added = [0.0] * len(groups)
    for order in itertools.permutations(range(len(groups))):
        mixture = list(row)
        before = 0.0
        for place in order:
            for column in groups[place]:
                mixture[column] = twin[column]
            now = float(decide(mixture))
            added[place] += now - before
            before = now
    return [total / math.factorial(len(groups)) for total in added]
