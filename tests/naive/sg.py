"""SG one row at a time: pop, check, grow a tree, negate the tests of its path one by one."""

from __future__ import annotations

import math

import numpy as np

from limi.methods._seeds import cluster_rows
from limi.search.session import Session
from limi.search.task import Task
from tests.naive.check import key, side, verdict
from tests.naive.expga import bounds, cell_at, positions


def path_of(tree, point):
    """(column, is below, threshold, share of the training rows that go the same way)."""
    node, tests = 0, []
    while tree.children_left[node] >= 0:
        column, threshold = tree.feature[node], tree.threshold[node]
        below = point[column] <= threshold
        following = tree.children_left[node] if below else tree.children_right[node]
        share = tree.n_node_samples[following] / tree.n_node_samples[node]
        tests.append((int(column), bool(below), float(threshold), float(share)))
        node = following
    return tests


def negated(test):
    column, below, threshold, share = test
    return column, not below, threshold, 1 - share


def interval(schema, tests, column):
    """The positions of one column that pass all tests of it; None where there are none."""
    low, high, unit = bounds(schema.columns[column])
    lowest, highest = 0.0, (high - low) / unit + schema.columns[column].missing
    whole = schema.columns[column].kind != "numerical" or schema.columns[column].step > 0
    if whole:
        highest = round(highest)
    for tested, below, threshold, _ in tests:
        if tested != column:
            continue
        if below:
            highest = min(highest, math.floor(threshold) if whole else threshold - 1e-6)
        else:
            lowest = max(lowest, math.floor(threshold) + 1 if whole else threshold + 1e-6)
    return (lowest, highest, whole) if lowest <= highest else None


def solution(schema, row, tests, columns, values, draw):
    """The row with these columns put to values that pass the tests; None where it cannot be."""
    intervals = {column: interval(schema, tests, column) for column in columns}
    if None in intervals.values():
        return None
    draws = draw()
    here, solved = positions(schema, row), row.copy()
    for column, (lowest, highest, whole) in intervals.items():
        low, _, unit = bounds(schema.columns[column])
        if values == "uniform":
            width = highest - lowest
            there = lowest + (
                math.floor(draws[column] * (width + 1)) if whole else draws[column] * width
            )
        else:
            wanted = here[column] if values == "nearest" else -low / unit
            there = min(max(wanted, lowest), highest)
        if there != here[column]:
            solved[column] = cell_at(schema.columns[column], there)
    return solved


def following(method, schema, tree, row, flips, draw):
    """(rank, row) of everything that one row leads to, in order."""
    path = path_of(tree, positions(schema, row))
    free = set(schema.free_index.tolist())
    found = []
    for place, test in enumerate(path):
        if not flips or test[0] not in free:
            continue
        tests = [negated(t) if k == place else t for k, t in enumerate(path)]
        solved = solution(schema, row, tests, [test[0]], method.local_values, draw)
        if solved is not None:
            mean = sum(t[3] for t in tests) / len(tests)
            found.append((round(1 - mean, 9), solved))
    prefix = []
    for test in path:
        if test[0] not in free:
            continue
        if test[3] < method.threshold:
            break
        tests = [*prefix, negated(test)]
        columns = sorted({t[0] for t in tests})
        solved = solution(schema, row, tests, columns, method.global_values, draw)
        if solved is not None:
            mean = sum(t[3] for t in tests) / len(tests)
            found.append((round(10 + mean, 9), solved))
        prefix.append(test)
    return found


def findings(method, score, schema, table, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made; every test costs one verdict."""
    from sklearn.tree import DecisionTreeClassifier

    seeds = cluster_rows(
        Session(Task(schema, score, table)), rng, n=method.n_seeds, clusters=method.clusters
    )
    places = np.floor(rng.random((method.n_samples, len(schema))) * len(table)).astype(int)
    pool, labels = [], []
    for place in places:
        row = np.array([table[i, j] for j, i in enumerate(place)])
        pool.append(positions(schema, row))
        labels.append(side(score(row[None])[0]) > 0)

    queue, known, found, tests, age = [], set(), [], 0, 0
    for row in seeds:
        if key(schema, row) not in known:
            known.add(key(schema, row))
            queue.append((5.0, age, row))
            age += 1
    while queue and tests < min(max_tests, method.limit):
        place = min(range(len(queue)), key=lambda k: queue[k][:2])
        _, _, row = queue.pop(place)
        tests += 1
        flips, own, _ = verdict(score, schema, row, "first")
        if flips:
            found.append(key(schema, row))
        part = np.floor(rng.random(len(pool)) * len(pool)).astype(int)
        learner = DecisionTreeClassifier(criterion="gini", random_state=int(rng.integers(2**31)))
        learner.fit(
            [positions(schema, row), *(pool[i] for i in part)],
            [side(own) > 0, *(labels[i] for i in part)],
        )
        draw = lambda: rng.random(len(schema)) if "uniform" in uses(method) else None  # noqa: E731
        for rank, solved in following(method, schema, learner.tree_, row, flips, draw):
            if key(schema, solved) not in known:
                known.add(key(schema, solved))
                queue.append((rank, age, solved))
                age += 1
    return found


def uses(method):
    return method.local_values, method.global_values
