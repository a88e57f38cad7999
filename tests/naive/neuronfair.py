"""NeuronFair row by row and neuron by neuron, straight from the description."""

from __future__ import annotations

import math

import numpy as np

from tests.naive import adf
from tests.naive.adf import clip, paired, sign
from tests.naive.check import key, verdict

GRID = 0.005


def reaction(activations, rows, twins):
    """z of each neuron: tanh of the mean absolute difference."""
    here, there = activations(rows), activations(twins)
    return [
        math.tanh(sum(abs(a - b) for a, b in zip(here[:, k], there[:, k], strict=True)) / len(rows))
        for k in range(here.shape[1])
    ]


def curve(z):
    """(threshold, share of neurons above it) on the grid."""
    points, t = [], 0.0
    while t < max(z) + GRID:
        points.append((t, sum(value > t for value in z) / len(z)))
        t = len(points) * GRID
    return points


def area(z):
    return GRID * sum(share for _, share in curve(z))


def biased(z):
    """Neurons above the threshold where the curve is closest to the diagonal."""
    threshold, _ = min(curve(z), key=lambda point: abs(point[1] - point[0]))
    return [value > threshold for value in z]


def pulled(own, other, mask, loss):
    """Derivative of the loss of one row by its activations, given its partner's."""
    a = [x if m else 0.0 for x, m in zip(own, mask, strict=True)]
    target = [x if m else 0.0 for x, m in zip(other, mask, strict=True)]
    top = max(a)
    total = sum(math.exp(x - top) for x in a)
    soft = [math.exp(x - top) / total for x in a]
    factor = sum(target) if loss == "derivative" else 1.0
    return [factor * s - t if m else 0.0 for s, t, m in zip(soft, target, mask, strict=True)]


def gradient(gradients, layer, mask, loss, row, partner):
    """Of the loss of a row against its partner."""
    own = gradients.activations(row[None], layer)[0]
    other = gradients.activations(partner[None], layer)[0]
    pull = np.array([pulled(own, other, mask, loss)])
    return gradients.layer_gradient(row[None], layer, lambda output: pull)[0]


def explore(score, slopes, schema, row, steps, decay, rng):
    """Rows that one seed visits, and whether the last flips; slopes(row, partner) gives both."""
    row, path = row.copy(), []
    own = other = 0.0
    for step in range(steps + 1):
        flips, _, values = verdict(score, schema, row, "widest")
        path.append(row.copy())
        if flips:
            return path, True
        if step == steps:
            return path, False
        new_own, new_other = slopes(row, paired(schema, row, values))
        own, other = decay * own + new_own, decay * other + new_other
        moves = [
            sign(own[j] + other[j]) if j in schema.free_index else 0 for j in range(len(schema))
        ]
        draws = rng.integers(-1, 2, len(schema))
        if not any(moves):
            moves = [int(draws[j]) if j in schema.free_index else 0 for j in range(len(schema))]
        row = clip(schema, row + moves)
    return path, False


def search(score, slopes, schema, rows, rng, explore_steps=40, decay=0.1, exploit_steps=1000):
    """Keys of all findings from these seeds."""
    found = set()

    def own_slope(given):
        # The local walk asks for a row and for its partner; each is the other's partner.
        row = given[0]
        values = verdict(score, schema, row, "widest")[2]
        return slopes(row, paired(schema, row, values))[0][None]

    for row in rows:
        path, flips = explore(score, slopes, schema, row, explore_steps, decay, rng)
        if not flips:
            continue
        found.add(key(schema, path[-1]))
        for there, hit in adf.exploit(
            score, own_slope, schema, path[-1], exploit_steps, "metropolis", rng
        ):
            if hit:
                found.add(key(schema, there))
    return found
