"""ATN written straight from its definitions, with dictionaries and loops over cells."""

from __future__ import annotations

import itertools
import math


def is_missing(cell):
    return math.isnan(cell)


def known(cells):
    return [cell for cell in cells if not is_missing(cell)]


def shares(items):
    counted = {}
    for item in items:
        counted[item] = counted.get(item, 0) + 1
    return {item: count / len(items) for item, count in counted.items()}


def number_score(real, generated, definition):
    if definition == "paper":
        real = [math.inf if is_missing(cell) else cell for cell in real]
        generated = [math.inf if is_missing(cell) else cell for cell in generated]
    else:
        real, generated = known(real), known(generated)
    if not real or not generated:
        return math.nan
    gaps = [
        abs(
            sum(cell <= t for cell in real) / len(real)
            - sum(cell <= t for cell in generated) / len(generated)
        )
        for t in {*real, *generated} - {math.inf}
    ]
    return 1 - max(gaps, default=0)


def level_score(real, generated, definition):
    if definition == "paper":
        p, q = shares([str(c) for c in real]), shares([str(c) for c in generated])
    else:
        real, generated = known(real), known(generated)
        if not real or not generated:
            return math.nan
        counted = {level: float(real.count(level)) for level in real}
        for level in generated:
            counted.setdefault(level, 1e-6)
        p = {level: count / sum(counted.values()) for level, count in counted.items()}
        q = shares(generated)
    return 1 - 0.5 * sum(abs(p.get(level, 0) - q.get(level, 0)) for level in {*p, *q})


def correlation(x, y):
    both = [(a, b) for a, b in zip(x, y, strict=True) if not (is_missing(a) or is_missing(b))]
    if len({a for a, _ in both}) < 2 or len({b for _, b in both}) < 2:
        return math.nan
    mean_a = sum(a for a, _ in both) / len(both)
    mean_b = sum(b for _, b in both) / len(both)
    cov = sum((a - mean_a) * (b - mean_b) for a, b in both)
    return cov / math.sqrt(
        sum((a - mean_a) ** 2 for a, _ in both) * sum((b - mean_b) ** 2 for _, b in both)
    )


def bins(cells, of, definition):
    """Ten equal-width bins of the known cells of another column; its largest value has its own."""
    values = known(of)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = [low + i * (high - low) / 10 for i in range(10)] + [high]
    missing = "missing" if definition == "paper" else 11
    return [missing if is_missing(c) else sum(edge <= c for edge in edges) for c in cells]


def mean(scores):
    scores = [score for score in scores if not math.isnan(score)]
    return sum(scores) / len(scores) if scores else math.nan


def atn(real, generated, kinds, definition):
    """Scores of columns and pairs, and the total."""
    d = len(kinds)
    real = [[row[j] for row in real] for j in range(d)]
    generated = [[row[j] for row in generated] for j in range(d)]
    is_number = [kind == "numerical" for kind in kinds]
    columns = [
        (number_score if is_number[j] else level_score)(real[j], generated[j], definition)
        for j in range(d)
    ]
    pairs = {}
    for a, b in itertools.combinations(range(d), 2):
        if is_number[a] and is_number[b]:
            r, s = correlation(real[a], real[b]), correlation(generated[a], generated[b])
            pairs[a, b] = 1 - abs(r - s) / 2
            continue
        tables = []
        for side in (real, generated):
            coded = []
            for j in (a, b):
                of = side[j] if definition == "sdmetrics" else real[j]
                coded.append(
                    bins(side[j], of, definition) if is_number[j] else [str(c) for c in side[j]]
                )
            tables.append(shares(list(zip(*coded, strict=True))))
        p, q = tables
        pairs[a, b] = 1 - 0.5 * sum(abs(p.get(c, 0) - q.get(c, 0)) for c in {*p, *q})
    if definition == "sdmetrics-0.7":
        numbers = [score for j, score in enumerate(columns) if is_number[j]]
        levels = [score for j, score in enumerate(columns) if not is_number[j]]
        both = [score for (a, b), score in pairs.items() if is_number[a] and is_number[b]]
        mixed = [score for (a, b), score in pairs.items() if not (is_number[a] and is_number[b])]
        total = mean([mean([mean(numbers), mean(levels)]), mean([mean(both), mean(mixed)])])
    else:
        total = mean([mean(columns), mean(pairs.values())])
    return columns, pairs, total
