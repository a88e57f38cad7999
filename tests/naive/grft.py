"""GRFT one row at a time: generations gene by gene, then walks one cell at a time."""

from __future__ import annotations

import math

from tests.naive.aequitas import moved
from tests.naive.check import key, verdict
from tests.naive.expga import breed


def findings(method, score, schema, table, rng, max_tests=math.inf):
    """Keys of the findings in the order they are made; every test costs one verdict."""
    explore_rng, exploit_rng = rng.spawn(2)
    found, seeds, tests = [], [], 0

    def judge(row):
        nonlocal tests
        tests += 1
        flips, own, values = verdict(score, schema, row, "widest")
        if flips and key(schema, row) not in found:
            found.append(key(schema, row))
            seeds.append(row)
        partner = row.copy()
        partner[schema.protected_index] = values
        return flips, round(abs(own - score(partner[None])[0]), 6)

    def judge_all(rows):
        return [judge(row)[1] for row in rows if tests < max_tests]

    people = [table[i].copy() for i in explore_rng.permutation(len(table))[: method.size]]
    fitness = judge_all(people)
    for _ in range(method.generations):
        if len(seeds) >= method.n_seeds or tests >= max_tests:
            break
        keys = [key(schema, row) for row in people]
        shared = [value / keys.count(k) for value, k in zip(fitness, keys, strict=True)]
        children = breed(method, schema, people, shared, explore_rng)
        firsts = [i for i in range(len(people)) if keys.index(keys[i]) == i]
        best = sorted(firsts, key=lambda i: -fitness[i])[: round(method.survivors * len(people))]
        children = children[: max(len(people) - len(best), 1)]
        people = [people[i] for i in best] + children
        fitness = [fitness[i] for i in best] + judge_all(children)

    free = [j for j, c in enumerate(schema.columns) if j in schema.free_index and c.size != 1]
    here = [row.copy() for row in seeds[: method.n_seeds]]
    for _ in range(method.exploit_steps):
        for walk, u in enumerate(exploit_rng.random((len(here), 3))):
            if tests >= max_tests:
                return found
            there = here[walk].copy()
            j = free[int(u[0] * len(free))]
            for _ in range(1 + int(u[1] * method.longest)):
                there[j] = moved(schema.columns[j], there[j], -1 if u[2] < 0.5 else 1)
            if judge(there)[0]:
                here[walk] = there
    return found
