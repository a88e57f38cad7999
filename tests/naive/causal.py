"""CausalFT's idea one row at a time, and its ties one pair of columns at a time."""

from __future__ import annotations

import math

import numpy as np

from tests.naive.aequitas import moved
from tests.naive.check import key, verdict


def ties(rows, scores, protected, free):
    """Products of partial correlations, from residuals of regressions on all other columns."""
    columns = [rows[:, j] for j in range(rows.shape[1])] + [np.asarray(scores)]
    columns = [(c - c.mean()) / c.std() for c in columns]
    last = len(columns) - 1

    def partial(a, b, apart=()):
        rest = np.column_stack([c for i, c in enumerate(columns) if i not in (a, b, *apart)])
        left = [
            columns[i] - rest @ np.linalg.lstsq(rest, columns[i], rcond=None)[0] for i in (a, b)
        ]
        return abs(np.corrcoef(*left)[0, 1])

    found = []
    for s in protected:
        line = []
        for f in free:
            x, y = columns[s], columns[f]
            forward = np.mean(x * y) * (np.mean(x * np.tanh(y)) - np.mean(np.tanh(x) * y)) > 0
            line.append(partial(s, f, [last]) * partial(f, last) * (1.0 if forward else 0.5))
        found.append(line)
    return np.array(found)


def findings(method, score, schema, table, tied, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made, with the tied columns given."""
    explore_rng, exploit_rng = rng.spawn(2)
    found, seeds, tests = [], [], 0

    def judge(row):
        nonlocal tests
        tests += 1
        flips, _, _ = verdict(score, schema, row, "widest")
        if flips and key(schema, row) not in found:
            found.append(key(schema, row))
            if len(seeds) < method.n_seeds:
                seeds.append(row)
        return flips

    for i in explore_rng.permutation(len(table))[: method.n_samples]:
        judge(table[i].copy())
    free = [j for j, c in enumerate(schema.columns) if j in schema.free_index and c.size != 1]
    here = [row.copy() for row in seeds]
    exploit_rng.permutation(len(table))  # rows that were asked for their scores
    for _ in range(method.exploit_steps):
        for walk, u in enumerate(exploit_rng.random((len(here), 4))):
            if tests >= max_tests:
                return found
            there = here[walk].copy()
            if u[0] < method.causal_share and len(tied):
                j = tied[int(u[1] * len(tied))]
                there[j] = table[int(u[3] * len(table))][j]
            else:
                j = free[int(u[1] * len(free))]
                there[j] = moved(schema.columns[j], there[j], -1 if u[2] < 0.5 else 1)
            if judge(there):
                here[walk] = there
    return found
