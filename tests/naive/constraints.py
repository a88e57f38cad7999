"""Rules row by row, on the values themselves, with None for what is missing or unknown.

A rule is a tree of tuples: ("implies", a, b), ("and", a, b), ("or", a, b), ("not", a),
("<=", x, y) and the other comparisons, ("in", x, constants), ("missing", x); x and y are
("column", name), ("constant", value), ("+", x, y) and the other signs, ("lookup", pairs, name).
"""

from __future__ import annotations

import json
import operator

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_STRENGTH = (
    {"implies": 1, "or": 2, "and": 3, "not": 4, "in": 5, "missing": 5}
    | dict.fromkeys(_COMPARISONS, 5)
    | {"+": 6, "-": 6, "*": 7, "/": 7, "column": 9, "constant": 9, "lookup": 9}
)


def write(tree):
    """The text of a rule with as few brackets as will do."""
    kind, *parts = tree
    if kind == "column":
        return parts[0]
    if kind == "constant":
        return json.dumps(parts[0])
    if kind == "lookup":
        pairs = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in parts[0])
        return "{" + pairs + "}[" + parts[1] + "]"
    strength = _STRENGTH[kind]
    if kind == "not":
        return f"not {_inner(parts[0], strength)}"
    if kind == "missing":
        return f"{_inner(parts[0], strength + 1)} is missing"
    if kind == "in":
        return f"{_inner(parts[0], strength + 1)} in {json.dumps(parts[1])}"
    left_first = kind in ("or", "and", *_SIGNS)
    right_first = kind == "implies"
    left = _inner(parts[0], strength + (not left_first))
    return f"{left} {kind} {_inner(parts[1], strength + (not right_first))}"


def _inner(tree, least):
    text = write(tree)
    return text if _STRENGTH[tree[0]] >= least else f"({text})"


def truth(tree, person, schema):
    """True, False, or None for a rule in one row, a mapping of names to values."""
    kind, *parts = tree
    if kind == "not":
        return _opposite(truth(parts[0], person, schema))
    if kind in ("and", "or", "implies"):
        first, second = (truth(part, person, schema) for part in parts)
        if kind == "and":
            return _either(first, second, False)
        return _either(_opposite(first) if kind == "implies" else first, second, True)
    if kind == "missing":
        return value(parts[0], person) is None
    if kind == "in":
        found = value(parts[0], person)
        return None if found is None else any(_same(found, one) for one in parts[1])
    return _compare(kind, *parts, person, schema)


def value(tree, person):
    """The value of a part of a rule in one row."""
    kind, *parts = tree
    if kind == "column":
        return person[parts[0]]
    if kind == "constant":
        return parts[0]
    if kind == "lookup":
        return next((to for key, to in parts[0] if _same(key, person[parts[1]])), None)
    left, right = (value(part, person) for part in parts)
    if left is None or right is None or (kind == "/" and right == 0):
        return None
    return _SIGNS[kind](left, right)


def _compare(sign, left, right, person, schema):
    one, other = value(left, person), value(right, person)
    if one is None or other is None:
        return None
    ordered = [t[1] for t in (left, right) if t[0] == "column" and schema[t[1]].kind == "ordered"]
    if ordered:
        one, other = (schema[ordered[0]].levels.index(v) for v in (one, other))
    if left[0] in _SIGNS or right[0] in _SIGNS:
        slack = 1e-9 * (abs(one) + abs(other))
        one, other = (0 if abs(one - other) <= slack else one - other), 0
    if sign in ("==", "!="):
        return _same(one, other) == (sign == "==")
    return {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign](
        one, other
    )


def _same(one, other):
    return one == other and isinstance(one, str) == isinstance(other, str)


def _opposite(answer):
    return None if answer is None else not answer


def _either(first, second, decisive):
    if decisive in (first, second):
        return decisive
    return None if None in (first, second) else not decisive
