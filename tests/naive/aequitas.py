"""AEQUITAS one walk after the other and one cell at a time, straight from its description."""

from __future__ import annotations

import math

from limi.table.rows import uniform
from tests.naive.check import key, verdict


def bounds(column):
    """Lowest value, highest value and the size of a step."""
    if column.kind != "numerical":
        return 0.0, column.size - 1.0, 1.0
    return column.low, column.high, column.step or (column.high - column.low) / 100


def moved(column, cell, sign):
    """A cell one step on; missing is one step above the highest value."""
    low, high, unit = bounds(column)
    if math.isnan(cell):
        return high if sign < 0 else cell
    beyond = cell + sign * unit
    if beyond > high + 1e-9 and column.missing and cell > high - 1e-9:
        return math.nan
    beyond = min(max(beyond, low), high)
    if column.kind != "numerical" or column.step:
        beyond = round(low + round((beyond - low) / unit) * unit, 6)
    return beyond


def at_bound(column, cell):
    low, high, _ = bounds(column)
    if column.missing:
        return math.isnan(cell) or cell <= low
    return cell <= low or cell >= high


def findings(method, score, schema, table, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made; every test costs one verdict."""
    explore_rng, exploit_rng = rng.spawn(2)
    found, tests = [], 0

    def judge(row):
        nonlocal tests
        tests += 1
        flips = verdict(score, schema, row, "first")
        if flips[0] and key(schema, row) not in found:
            found.append(key(schema, row))
        return flips

    seeds = []
    for row in uniform(schema, method.n_samples, explore_rng):
        if tests >= max_tests:
            return found
        before = len(found)
        judge(row)
        if len(found) > before:
            seeds.append(row)

    free = [j for j in range(len(schema)) if j in schema.free_index]
    q = {j: 1 / len(free) for j in free}
    pi = dict.fromkeys(free, 0.5)
    for row in seeds[: method.n_seeds]:
        energy = 0.0
        for _ in range(method.exploit_steps):
            if tests >= max_tests:
                return found
            u = exploit_rng.random(4)
            total, j = 0.0, free[-1]
            for candidate in free:
                total += q[candidate]
                if u[0] < total:
                    j = candidate
                    break
            if at_bound(schema.columns[j], row[j]):
                sign = -1 if u[2] < 0.5 else 1
            else:
                sign = -1 if u[1] < pi[j] else 1
            there = row.copy()
            there[j] = moved(schema.columns[j], row[j], sign)
            flips = judge(there)[0]
            if method.variant != "random":
                if flips == (sign == -1):
                    pi[j] = min(pi[j] + method.direction_change, 1)
                else:
                    pi[j] = max(pi[j] - method.direction_change, 0)
            if method.variant == "fully-directed":
                change = method.column_change if flips else -method.column_change
                q[j] = max(q[j] + change, 0)
                total = sum(q.values())
                q = {k: share / total for k, share in q.items()}
            there_energy = 0.0 if flips else 1.0
            if u[3] < math.exp(-max(there_energy - energy, 0) / method.temperature):
                row, energy = there, there_energy
    return found
