"""The oracle row by row and value by value, straight from the definition."""

from __future__ import annotations

import itertools


def side(score):
    """1 for a favorable decision, -1 for an unfavorable one, 0 within rounding of the edge."""
    if score > 0.500001:
        return 1
    return -1 if score < 0.499999 else 0


def same(one, other):
    return one == other or (one != one and other != other)


def tried(schema, row):
    """Values of the protected columns that are tried of a row: the combinations, then those with
    an own value that is none of the codes. The row's own values are left out."""
    own = tuple(row[schema.protected_index])
    codes = schema.protected_codes
    choices = [c if value in c else (*c, value) for c, value in zip(codes, own, strict=True)]
    combinations = list(itertools.product(*codes))
    mixtures = [
        values
        for values in itertools.product(*choices)
        if any(value not in c for value, c in zip(values, codes, strict=True))
    ]
    return [values for values in combinations + mixtures if not all(map(same, values, own))]


def causes(score, schema, row):
    """The smallest sets of protected columns that flip a row."""
    own = row[schema.protected_index]
    decision = side(score(row[None])[0])
    found = []
    columns = range(len(own))
    for size in range(1, len(own) + 1):
        for chosen in itertools.combinations(columns, size):
            if any(set(part) <= set(chosen) for part in found):
                continue
            for codes in itertools.product(*(schema.protected_codes[c] for c in chosen)):
                twin = row.copy()
                twin[schema.protected_index[list(chosen)]] = codes
                if side(score(twin[None])[0]) * decision < 0:
                    found.append(chosen)
                    break
    return found


def as_if(score, schema, row, column):
    """Which way a row is decided with each value of one protected column, all else as it is."""
    decided = []
    for code in schema.protected_codes[column]:
        twin = row.copy()
        twin[schema.protected_index[column]] = code
        decided.append(side(score(twin[None])[0]))
    return decided


def verdict(score, schema, row, rule):
    """(flips, own score, protected values of the partner) of one row."""
    own = score(row[None])[0]
    met = []
    for values in tried(schema, row):
        twin = row.copy()
        twin[schema.protected_index] = values
        other = score(twin[None])[0]
        met.append((side(other) * side(own) < 0, abs(other - own), values))
    flips = any(flipped for flipped, _, _ in met)
    known = [(gap, values) for flipped, gap, values in met if flipped == flips]
    if flips and rule == "first":
        return flips, own, known[0][1]
    widest = max(gap for gap, _ in known)
    return flips, own, next(values for gap, values in known if gap >= widest - 1e-6)


def key(schema, row):
    return tuple("missing" if row[i] != row[i] else float(row[i]) for i in schema.free_index)


def distinct_findings(score, schema, rows):
    """Keys of flipping rows, first seen first."""
    found = []
    for row in rows:
        if verdict(score, schema, row, "first")[0] and key(schema, row) not in found:
            found.append(key(schema, row))
    return found


def uniform_rate(score, schema, rows):
    flips = [verdict(score, schema, row, "first")[0] for row in rows]
    return sum(flips) / len(flips)
