"""Decoding and probability of `trees` for one row at a time, from its definition."""

from __future__ import annotations

import math
from statistics import NormalDist

RARE = 1e-6


def leaf_of(walk, codes):
    node = 0
    while walk.left[node] >= 0:
        goes_left = codes[walk.feature[node]] <= walk.threshold[node]
        node = int(walk.left[node] if goes_left else walk.right[node])
    return node


def chances(conditional, codes):
    """Bins that occur in the leaf, in their order, each with its share."""
    leaf = leaf_of(conditional.walk, codes)
    found = [
        (int(b), int(n))
        for node, b, n in zip(
            conditional.pair_node, conditional.pair_bin, conditional.pair_count, strict=True
        )
        if node == leaf
    ]
    total = sum(n for _, n in found)
    return [(b, n / total) for b, n in found]


def values_of(bins, b):
    """Values of a bin, each as often as the table holds it."""
    if b == len(bins.order):
        return [math.nan]
    run = bins.order[b]
    place = range(bins.starts[run], bins.starts[run + 1])
    return [bins.values[i] for i in place for _ in range(bins.counts[i])]


def decode(generator, latent):
    """The row of a latent none of whose numbers lies in the rare tail, grids only."""
    codes, row = [], [None] * len(generator.schema)
    for conditional in generator.conditionals:
        u = (NormalDist().cdf(latent[conditional.position]) - RARE) / (1 - RARE)
        reached = 0.0
        for b, share in chances(conditional, codes):
            if u < reached + share:
                values = values_of(conditional.bins, b)
                row[conditional.position] = values[int((u - reached) / share * len(values))]
                break
            reached += share
        codes.append(b)
    return row
