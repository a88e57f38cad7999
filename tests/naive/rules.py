"""Rules row by row: what goes along with a protected value, told cell by cell from the rules' own
words, and the oracle that obeys them."""

from __future__ import annotations

import numpy as np

from tests.naive.check import side, tried


def moves(role, schema, value):
    """{code under the first value: code under this one}, with chains joined to circles."""
    given, column = schema[role.protected], schema[role.column]
    things = [{given.code(v): column.code(level) for v, level in thing} for thing in role.things]
    first = given.code(role.things[0][0][0])
    moved = {thing[first]: thing[value] for thing in things if value in thing}
    for start in [code for code in moved if code not in moved.values()]:
        end = start
        while end in moved:
            end = moved[end]
        moved[end] = start
    return moved


def compute(derived, schema, row):
    """A derived cell."""
    cells = [row[schema.position(name)] for name in derived.sources]
    if any(cell != cell for cell in cells):
        return np.nan
    column = schema[derived.column]
    if derived.values:
        passed = sum(cells[0] >= step for step in derived.steps)
        return column.code(derived.values[passed])
    for values, value in derived.lookup:
        codes = [schema[n].code(v) for n, v in zip(derived.sources, values, strict=True)]
        if codes == cells:
            return column.code(value)
    raise AssertionError("a gap")


def complete(schema, row):
    row = row.copy()
    for derived in schema.rules.in_order:
        row[schema.position(derived.column)] = compute(derived, schema, row)
    return row


def partner(schema, row, values):
    """The row with these protected values, and all that goes along."""
    changed = row.copy()
    roles = [
        role
        for role in schema.rules.roles
        if role.protected in schema.protected and role.column not in schema.protected
    ]
    for role in reversed(roles):
        at = schema.position(role.column)
        back = {b: a for a, b in moves(role, schema, row[schema.position(role.protected)]).items()}
        changed[at] = back.get(changed[at], changed[at])
    changed[schema.protected_index] = values
    for role in roles:
        at = schema.position(role.column)
        ahead = moves(role, schema, changed[schema.position(role.protected)])
        changed[at] = ahead.get(changed[at], changed[at])
    return complete(schema, changed)


def verdict(score, schema, row, kept, rule="widest"):
    """(flips, own score, partner) of one row; `kept` are predicates of what a row must keep."""
    own = score(row[None])[0]
    met = []
    for values in tried(schema, row):
        other = partner(schema, row, values)
        if any(keeps(row) and not keeps(other) for keeps in kept):
            continue
        there = score(other[None])[0]
        met.append((side(there) * side(own) < 0, abs(there - own), other))
    if not met:
        return False, own, None
    flips = any(flipped for flipped, _, _ in met)
    known = [(gap, other) for flipped, gap, other in met if flipped == flips]
    if flips and rule == "first":
        return flips, own, known[0][1]
    widest = max(gap for gap, _ in known)
    return flips, own, next(other for gap, other in known if gap >= widest - 1e-6)
