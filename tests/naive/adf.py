"""ADF row by row: one walk after another, one row a question, straight from the description."""

from __future__ import annotations

import math

from tests.naive.check import key, verdict


def sign(number):
    return int(number > 0) - int(number < 0)


def clip(schema, row):
    for j in range(len(schema)):
        if not math.isnan(row[j]):
            row[j] = min(max(row[j], schema.low[j]), schema.high[j])
    return row


def paired(schema, row, values):
    twin = row.copy()
    twin[schema.protected_index] = values
    return twin


def direction(schema, own, other, fallback="none", column=None):
    """Moves of one row; `column` is the one drawn at random."""
    free = [int(j) for j in schema.free_index]
    up, up_other = [sign(g) for g in own], [sign(g) for g in other]
    moves = [a if a == b else 0 for a, b in zip(up, up_other, strict=True)]
    if fallback == "corrected":
        if not any(up):
            moves = up_other
        elif not any(up_other):
            moves = up
    moves = [m if j in free else 0 for j, m in enumerate(moves)]
    if fallback == "corrected" and not any(moves):
        moves[column] = up[column] or up_other[column]
    return moves


def explore(score, slope, schema, row, steps):
    """Rows that one seed visits, and whether the last of them flips."""
    row, path = row.copy(), []
    for step in range(steps + 1):
        flips, _, values = verdict(score, schema, row, "widest")
        path.append(row.copy())
        if flips:
            return path, True
        if step == steps:
            return path, False
        own = slope(row[None])[0]
        other = slope(paired(schema, row, values)[None])[0]
        row = clip(schema, row + direction(schema, own, other))
    return path, False


def chances(schema, own, other):
    """Weights of columns."""
    return [
        1 / (abs(own[j]) + abs(other[j]) + 1e-6) if j in schema.free_index else 0.0
        for j in range(len(schema))
    ]


def drawn(weights, rng):
    draw, total = rng.random() * sum(weights), 0.0
    for j, weight in enumerate(weights):
        total += weight
        if draw < total:
            return j
    raise AssertionError("no column was drawn")


def exploit(score, slope, schema, seed, steps, restart, rng):
    """(row, flips) of every step of one walk."""
    here, (flipped, _, values) = seed.copy(), verdict(score, schema, seed, "widest")
    first = here.copy(), flipped, values
    for _ in range(steps):
        weights = chances(
            schema, slope(here[None])[0], slope(paired(schema, here, values)[None])[0]
        )
        j = drawn(weights, rng)
        turn = -1 if rng.random() < 0.5 else 1
        there = here.copy()
        there[j] += turn
        there = clip(schema, there)
        flips, _, there_values = verdict(score, schema, there, "widest")
        yield there, flips
        if restart == "metropolis":
            lucky = rng.random() < math.exp(-1)
            if flips or not flipped or lucky:
                here, flipped, values = there, flips, there_values
        elif restart == "stay":
            if flips or not flipped:
                here, flipped, values = there, flips, there_values
        elif restart == "never" or flips:
            here, flipped, values = there, flips, there_values
        else:
            here, flipped, values = first


def search(score, slope, schema, rows, rng, explore_steps=10, exploit_steps=1000):
    """Keys of all findings from these seeds."""
    found = set()
    for row in rows:
        path, flips = explore(score, slope, schema, row, explore_steps)
        if not flips:
            continue
        found.add(key(schema, path[-1]))
        for there, hit in exploit(score, slope, schema, path[-1], exploit_steps, "metropolis", rng):
            if hit:
                found.add(key(schema, there))
    return found
