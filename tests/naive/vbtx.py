"""VBT-X pair by pair: label rows one at a time, compare all leaves with all, draw one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np

from limi.table.rows import uniform
from tests.naive.check import key, side, verdict
from tests.naive.expga import bounds, cell_at, positions


def leaves_of(schema, learner):
    """(node, box, is favorable): every leaf with its lowest and highest position a column."""
    tree = learner.tree_
    whole = [c.kind != "numerical" or c.step > 0 for c in schema.columns]
    start = []
    for column in schema.columns:
        low, high, unit = bounds(column)
        start.append((0.0, round((high - low) / unit, 9) + column.missing))
    found = []

    def walk(node, box):
        if tree.children_left[node] < 0:
            found.append((node, box, bool(learner.classes_[tree.value[node, 0].argmax()])))
            return
        j, threshold = tree.feature[node], tree.threshold[node]
        low, high = box[j]
        under = math.floor(threshold) if whole[j] else threshold - 1e-6
        over = math.floor(threshold) + 1 if whole[j] else threshold + 1e-6
        walk(tree.children_left[node], [*box[:j], (low, min(high, under)), *box[j + 1 :]])
        walk(tree.children_right[node], [*box[:j], (max(low, over), high), *box[j + 1 :]])

    walk(0, start)
    return sorted(found)


def pairs_of(schema, learner):
    """(box of the unfavorable leaf, box of the favorable one) for all that share a person."""
    leaves = leaves_of(schema, learner)
    down = [(box, codes_in(schema, box)) for _, box, favorable in leaves if not favorable]
    up = [(box, codes_in(schema, box)) for _, box, favorable in leaves if favorable]
    shared = []
    for (a, a_codes), (b, b_codes) in itertools.product(down, up):
        if any(max(a[j][0], b[j][0]) > min(a[j][1], b[j][1]) for j in schema.free_index):
            continue
        if all(a_codes) and all(b_codes):
            shared.append((a, b))
    return shared


def codes_in(schema, box):
    """For each protected column, the codes that lie inside a box."""
    inside = []
    for j, codes in zip(schema.protected_index, schema.protected_codes, strict=True):
        low, _, unit = bounds(schema.columns[j])
        low_position, high_position = box[j]
        inside.append([c for c in codes if low_position <= (c - low) / unit <= high_position])
    return inside


def drawn(schema, pair, cells, values):
    """Two rows of a pair of leaves, from one number a column and one for each combination."""
    a, b = pair
    row = np.empty(len(schema))
    for j, column in enumerate(schema.columns):
        low, high = max(a[j][0], b[j][0]), min(a[j][1], b[j][1])
        width = max(high - low, 0.0)
        whole = column.kind != "numerical" or column.step > 0
        step = math.floor(cells[j] * (width + 1)) if whole else cells[j] * width
        row[j] = cell_at(column, low + step)
    rows = []
    for box, u in ((a, values[0]), (b, values[1])):
        twin = row.copy()
        for j, codes in zip(schema.protected_index, codes_in(schema, box), strict=True):
            place = math.floor(u * len(codes))
            twin[j], u = codes[place], u * len(codes) - place
        rows.append(twin)
    return rows


def findings(method, score, schema, table, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made; every pair costs one verdict."""
    from sklearn.tree import DecisionTreeClassifier

    found, seen = [], set()
    barren = 0
    while barren < method.restarts:
        barren += 1
        points, labels = [], []
        for row in uniform(schema, method.n_samples, rng):
            points.append(positions(schema, row))
            labels.append(side(score(row[None])[0]) > 0)
        pairs, quiet = None, 0
        while quiet < method.patience and len(labels) <= 10 * method.n_samples:
            if pairs is None:
                learner = DecisionTreeClassifier(
                    criterion="entropy", random_state=int(rng.integers(2**31))
                )
                pairs = pairs_of(schema, learner.fit(points, labels))
            if not pairs:
                break
            quiet += 1
            n = method.solutions or max(1, len(labels) // 5)
            numbers, values = rng.random((n, 1 + len(schema))), rng.random((n, 2))
            changed = False
            for u, v in zip(numbers, values, strict=True):
                two = drawn(schema, pairs[math.floor(u[0] * len(pairs))], u[1:], v)
                if key(schema, two[0]) in seen:
                    continue
                if len(seen) >= max_tests:
                    return found
                seen.add(key(schema, two[0]))
                barren = 0
                if verdict(score, schema, two[0], "first")[0]:
                    found.append(key(schema, two[0]))
                for row, expected in zip(two, (False, True), strict=True):
                    favorable = side(score(row[None])[0]) > 0
                    if favorable != expected:
                        points.append(positions(schema, row))
                        labels.append(favorable)
                        changed = True
            if changed:
                pairs, quiet = None, 0
    return found
