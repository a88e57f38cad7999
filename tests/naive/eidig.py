"""EIDIG row by row, straight from the description; `slope` is the derivative of the score."""

from __future__ import annotations

from tests.naive.adf import chances, clip, drawn, paired, sign
from tests.naive.check import key, side, verdict


def confident(score, slope, row):
    """Derivative of the score of the decision taken."""
    taken = 1 if side(score(row[None])[0]) > 0 else -1
    return taken * slope(row[None])[0]


def explore(score, slope, schema, row, steps, decay):
    """Rows that one seed visits, and whether the last of them flips."""
    row, path = row.copy(), []
    own = other = 0.0
    for step in range(steps + 1):
        flips, _, values = verdict(score, schema, row, "widest")
        path.append(row.copy())
        if flips:
            return path, True
        if step == steps:
            return path, False
        own = decay * own + confident(score, slope, row)
        other = decay * other + confident(score, slope, paired(schema, row, values))
        moves = [
            -sign(own[j]) if j in schema.free_index and sign(own[j]) == sign(other[j]) else 0
            for j in range(len(schema))
        ]
        row = clip(schema, row + moves)
    return path, False


def exploit(score, slope, schema, seed, steps, update_every, rng):
    """(row, flips) of every step of one walk that returns to its seed after a failure."""

    def weights_at(row, values):
        return chances(schema, slope(row[None])[0], slope(paired(schema, row, values)[None])[0])

    here, values = seed.copy(), verdict(score, schema, seed, "widest")[2]
    weights = first = weights_at(seed, values)
    age = 0
    for _ in range(steps):
        if update_every is not None and age >= update_every:
            weights, age = weights_at(here, values), 0
        age += 1
        j = drawn(weights, rng)
        turn = -1 if rng.random() < 0.5 else 1
        there = here.copy()
        there[j] += turn
        there = clip(schema, there)
        flips, _, there_values = verdict(score, schema, there, "widest")
        yield there, flips
        if flips:
            here, values = there, there_values
        else:
            here, weights, age = seed.copy(), first, 0


def search(score, slope, schema, rows, rng, explore_steps=10, decay=0.5, exploit_steps=1000):
    """Keys of all findings from these seeds."""
    found = set()
    for row in rows:
        path, flips = explore(score, slope, schema, row, explore_steps, decay)
        if not flips:
            continue
        found.add(key(schema, path[-1]))
        for there, hit in exploit(score, slope, schema, path[-1], exploit_steps, 5, rng):
            if hit:
                found.add(key(schema, there))
    return found
