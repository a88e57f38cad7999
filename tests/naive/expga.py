"""ExpGA one row at a time: a fresh ridge regression a row, then genes one by one."""

from __future__ import annotations

import math

import numpy as np

from limi.table.rows import uniform
from tests.naive.check import key, verdict


def positions(schema, row):
    """Cells counted in steps from the lowest value; missing is one step above the highest."""
    steps = []
    for column, cell in zip(schema.columns, row, strict=True):
        low, high, unit = bounds(column)
        steps.append((high - low) / unit + 1 if math.isnan(cell) else (cell - low) / unit)
    return steps


def bounds(column):
    if column.kind != "numerical":
        return 0.0, column.size - 1.0, 1.0
    return column.low, column.high, column.step or (column.high - column.low) / 100


def cell_at(column, position):
    low, high, unit = bounds(column)
    top = (high - low) / unit
    if column.missing and position > top + 0.5:
        return math.nan
    position = min(max(position, 0.0), top)
    if column.kind != "numerical" or column.step:
        return round(low + round(position) * unit, 9)
    return low + position * unit


def explain(points, scores, point, score):
    """Coefficients of a ridge regression, weighted by the distance to the point."""
    from sklearn.linear_model import Ridge

    data, answers = [point, *points], [score, *scores]
    width = 0.75 * math.sqrt(len(point))
    weights = []
    for other in data:
        distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(other, point, strict=True)))
        weights.append(math.sqrt(math.exp(-(distance**2) / width**2)))
    return Ridge(alpha=1.0).fit(data, answers, sample_weight=weights).coef_


def rank(coefficients, protected):
    """How many other columns come before the best of the protected ones."""
    best = max(abs(coefficients[j]) for j in protected)
    return sum(abs(c) >= best for j, c in enumerate(coefficients) if j not in protected)


def findings(method, score, schema, table, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made; every test costs one verdict."""
    explore_rng, exploit_rng = rng.spawn(2)
    found, tests = [], 0
    protected = set(schema.protected_index.tolist())

    def judge(row):
        nonlocal tests
        tests += 1
        flips, own, values = verdict(score, schema, row, "widest")
        if flips and key(schema, row) not in found:
            found.append(key(schema, row))
        twin = row.copy()
        twin[schema.protected_index] = values
        return round(abs(own - score(twin[None])[0]), 6)

    candidates = [table[i] for i in explore_rng.permutation(len(table))[: method.n_rows]]
    climbed = [positions(schema, row) for row in table]
    d = len(schema)
    mean = [sum(p[j] for p in climbed) / len(climbed) for j in range(d)]
    spread = [
        math.sqrt(sum((p[j] - mean[j]) ** 2 for p in climbed) / len(climbed)) for j in range(d)
    ]
    pool, answers = [], []
    for draws in explore_rng.standard_normal((method.n_samples - 1, d)):
        row = np.array(
            [cell_at(schema.columns[j], mean[j] + draws[j] * spread[j]) for j in range(d)]
        )
        answers.append(score(row[None])[0])
        pool.append(standard(schema, row, mean, spread))
    ranks = []
    for row in candidates:
        point = standard(schema, row, mean, spread)
        ranks.append(rank(explain(pool, answers, point, score(row[None])[0]), protected))

    threshold = method.threshold
    if threshold is None:
        threshold = 1
        while sum(r < threshold for r in ranks) < method.share * len(ranks):
            threshold += 1
    people = [row for row, r in zip(candidates, ranks, strict=True) if r < threshold]
    people = people[: method.n_seeds]
    fitness = []
    for row in people:
        if tests >= max_tests:
            return found
        fitness.append(judge(row))
    for _ in range(method.generations):
        if method.copies == "share":
            keys = [key(schema, row) for row in people]
            fitness = [value / keys.count(k) for value, k in zip(fitness, keys, strict=True)]
        people = breed(method, schema, people, fitness, exploit_rng)
        fitness = []
        for row in people:
            if tests >= max_tests:
                return found
            fitness.append(judge(row))
    return found


def standard(schema, row, mean, spread):
    return [
        (p - m) / (s if s > 0 else 1.0)
        for p, m, s in zip(positions(schema, row), mean, spread, strict=True)
    ]


def breed(method, schema, people, fitness, rng):
    n, d = len(people), len(schema)
    chosen = []
    for u in rng.random(n):
        if sum(fitness) <= 0:
            chosen.append(people[int(u * n)].copy())
            continue
        total = 0.0
        for person, share in zip(people, fitness, strict=True):
            total += share
            if u * sum(fitness) < total:
                chosen.append(person.copy())
                break
    order = rng.permutation(n)
    free = schema.free_index
    for pair, u in enumerate(rng.random((n // 2, 3))):
        if u[0] < method.crossover_rate:
            a, b = chosen[order[pair]], chosen[order[n // 2 + pair]]
            start = int(u[1] * len(free))
            end = start + 1 + int(u[2] * (len(free) - start))
            for j in free[start:end]:
                a[j], b[j] = b[j], a[j]
    hit = rng.random((n, d))
    fresh = uniform(schema, n, rng)
    for i in range(n):
        for j in free:
            if hit[i, j] < method.mutation_rate:
                chosen[i][j] = fresh[i, j]
    return chosen
