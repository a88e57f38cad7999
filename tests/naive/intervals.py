"""Intervals that hold at any time, by the definition: try each value, and keep what nobody grows
rich against."""

import math


def anytime_share(hits, n, confidence):
    """Ends by halving between what is kept and what is not, one value at a time."""
    ends = []
    for outer in (0.0, 1.0):
        inner = hits / n
        for _ in range(64):
            middle = (inner + outer) / 2
            if _log_capital(hits, n, middle) < -math.log1p(-confidence):
                inner = middle
            else:
                outer = middle
        ends.append(outer)
    return tuple(ends)


def _log_capital(hits, n, p):
    """Bet by bet: at each row (hits so far + 1/2) / (rows so far + 1) is staked on a hit. The order
    of the rows does not matter, so hits come first."""
    capital = 0.0
    for row in range(n):
        is_hit = row < hits
        stake = (min(row, hits) + 0.5) / (row + 1)
        if (p if is_hit else 1 - p) == 0:
            return math.inf
        capital += math.log(stake / p) if is_hit else math.log((1 - stake) / (1 - p))
    return capital


def anytime_mean(numbers, confidence, narrowest=1_000):
    """Ends of a mean: the values m for which a mixture of normal bets on the sum of (x - m) stays
    poor, integrated over the size of the bet with the variance that was seen."""
    n = len(numbers)
    mean = math.fsum(numbers) / n
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / (n - 1))
    odds = -2 * math.log(1 - confidence)
    prior = (odds + math.log(odds + 1)) / narrowest
    ends = []
    for side in (-1, 1):
        inner, outer = mean, mean + side * 100 * deviation
        for _ in range(80):
            middle = (inner + outer) / 2
            total = n * (mean - middle) / deviation
            if _log_mixture(total, n, prior) < -math.log(1 - confidence):
                inner = middle
            else:
                outer = middle
        ends.append(outer)
    return tuple(ends)


def _log_mixture(total, n, prior):
    """ln of the integral of exp(b total - b^2 n / 2) over b normal with the prior's variance, by
    adding up slices around its peak."""
    peak = total / (n + 1 / prior)
    width = 1 / math.sqrt(n + 1 / prior)
    slices = 2_000
    step = 16 * width / slices
    at = [peak + (k - slices / 2) * step for k in range(slices + 1)]
    logs = [b * total - b * b * n / 2 - b * b / (2 * prior) for b in at]
    top = max(logs)
    area = step * math.fsum(math.exp(one - top) for one in logs)
    return top + math.log(area) - 0.5 * math.log(2 * math.pi * prior)
