"""Rows of a box that the constraints of a table may tell apart, value by value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.proofs.grids import MOST_ROWS, codes_between, combine
from limi.proofs.people import People
from limi.proofs.question import Question
from limi.trees.lattice import Lattice
from limi.types import Rows

__all__ = ["Allowed", "enumerate_cell", "enumerate_rules"]

Ints = NDArray[np.int64]
Allowed = list[tuple[list[tuple[int, int]], Ints]]
"""Columns, each with the side it is of, and the atoms that they may have together."""

_OF_A_REAL = 9  # numbers of a real-valued column that are tried


def enumerate_cell(
    lattice: Lattice, question: Question, part: int, low: Ints, high: Ints
) -> tuple[Rows, bool]:
    """Rows of a part of a box that differ in what constraints look at, and whether these are all.

    Where trees cannot tell the rows apart, the columns that no constraint names may hold anything:
    the person's own, or the nearest to it.
    """
    schema, centre = lattice.schema, question.centre[part]
    base = lattice.rows(low[None], centre[None])[0]
    own = lattice.atoms(centre[None])[0]
    base = np.where((own >= low) & (own <= high), centre, base)
    columns, choices, whole = _choices(lattice, question, part, low, high)
    if np.prod([len(choice) for choice in choices], dtype=float) > MOST_ROWS:
        return base[None], False
    return combine(schema, base, columns, choices), whole


def enumerate_rules(
    lattice: Lattice, question: Question, part: int, partner: int, people: People
) -> Allowed:
    """The atoms that columns may have together by the constraints, for a person and a partner.

    Nothing where there are too many to look at all of them: then the rules are not asked.
    """
    schema = lattice.schema
    enforcer = schema.enforcer
    if not enforcer.constraints:
        return []
    low, high = question.boxes.low[part], question.boxes.high[part]
    rows, whole = enumerate_cell(lattice, question, part, low, high)
    columns, _, _ = _choices(lattice, question, part, low, high)
    if not whole or not columns:
        return []
    person = np.full(len(rows), question.person[part])
    kept = people.keep_rules(person, rows)
    partners = rows.copy()
    moving = schema.moving_index
    partners[:, moving] = question.partners[part, partner, moving]
    is_open = enforcer.find_open(rows, partners[:, None])
    kept = kept if is_open is None else kept & is_open[:, 0]
    atoms = np.unique(lattice.atoms(rows[kept])[:, columns], axis=0)
    return [([(0, column) for column in columns], atoms)]


def _choices(
    lattice: Lattice, question: Question, part: int, low: Ints, high: Ints
) -> tuple[list[int], list[NDArray[np.float64]], bool]:
    """Columns that move and that constraints name, their codes in a box, and whether all of them.

    Real-valued columns have no last code, so of those some are tried.
    """
    schema = lattice.schema
    rules = schema.enforcer.constraints
    named = sorted({column for rule in rules for column in rule.columns})
    lowest, highest = question.low[part], question.high[part]
    columns = [j for j in named if lowest[j] < highest[j]]
    choices, whole = [], True
    for j in columns:
        step = schema.step[j]
        codes = (
            codes_between(lowest[j], highest[j], step)
            if step
            else np.linspace(lowest[j], highest[j], _OF_A_REAL)
        )
        whole &= bool(step)
        atoms = lattice.axes[j].atoms(codes)
        codes = codes[(atoms >= low[j]) & (atoms <= high[j])]
        if high[j] >= lattice.axes[j].size:
            codes = np.append(codes, np.nan)
        choices.append(codes)
    return columns, choices, whole
