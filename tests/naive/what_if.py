"""The same people under every value: person by person, straight from the definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def discordant(table, first, second):
    """People decided favorably as the first value and not as the second, and the other way."""
    only_first = sum(1 for person in table if person[first] and not person[second])
    only_second = sum(1 for person in table if person[second] and not person[first])
    return only_first, only_second


def mcnemar(only_first, only_second):
    """Chance that a fair coin is at least as one-sided."""
    n = only_first + only_second
    apart = abs(only_first - only_second)
    ways = sum(math.comb(n, heads) for heads in range(n + 1) if abs(2 * heads - n) >= apart)
    return Fraction(ways, 2**n)


def holm(p_values):
    left = sorted(range(len(p_values)), key=lambda k: p_values[k])
    corrected, so_far = [0.0] * len(p_values), 0.0
    for rank, k in enumerate(left):
        so_far = max(so_far, (len(p_values) - rank) * p_values[k])
        corrected[k] = min(1.0, so_far)
    return corrected


def cochran_q(table):
    """The textbook formula: sums over columns and over people."""
    k = len(table[0])
    columns = [sum(person[j] for person in table) for j in range(k)]
    people = [sum(person) for person in table]
    total = sum(columns)
    below = k * total - sum(u * u for u in people)
    if not below:
        return 0.0
    return (k - 1) * (k * sum(c * c for c in columns) - total * total) / below


def likeliest_reverse(b, c, n, d):
    """The share of people for the second value only, most likely if the difference is d."""

    def likelihood(x):
        shares = (x + d, x, 1 - 2 * x - d)
        counts = (b, c, n - b - c)
        if any(p < 0 or (p == 0 and m) for p, m in zip(shares, counts, strict=True)):
            return -math.inf
        return sum(m * math.log(p) for p, m in zip(shares, counts, strict=True) if m)

    low, high = max(0.0, -d), (1 - d) / 2
    for _ in range(200):  # it has one hill
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if likelihood(left) < likelihood(right):
            low = left
        else:
            high = right
    return (low + high) / 2


def score(b, c, n, d):
    """The score statistic for a difference d of two shares of the same n people."""
    x = likeliest_reverse(b, c, n, d)
    variance = n * (2 * x + d - d * d)
    return (b - c - n * d) / math.sqrt(variance) if variance > 0 else math.inf


def supported(table, tables=1, level=0.05):
    """Pairs of values of which the first is favored: (first, second)."""
    k = len(table[0])
    pairs = list(itertools.combinations(range(k), 2))
    counts = [discordant(table, *pair) for pair in pairs]
    corrected = holm([float(mcnemar(*count)) for count in counts])
    found = []
    for pair, (b, c), p_value in zip(pairs, counts, corrected, strict=True):
        if tables * p_value <= level:
            found.append(pair if b > c else pair[::-1])
    return found
