"""People of whom nothing can be proven, because by the rules nobody near them has a partner.

Where a rule that binds partners names a column that moves, a row of a neighbourhood may have a
partner though the person has none. So the rows that rules tell apart are looked at, one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limi.proofs.grids import MOST_ROWS, codes_between, combine, count_between
from limi.proofs.near import Near
from limi.proofs.people import Answer, People, Stage
from limi.proofs.question import part_people
from limi.search.tried import Tried, stray_patterns
from limi.table.partners import expand
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["list_ruled", "mark_alone"]


def mark_alone(people: People, near: Near) -> None:
    """Note who is proven only because they have no partners.

    Where there are too many rows to look at, the proof stands: nobody there flips in any case.
    """
    enforcer = people.schema.enforcer
    bound = enforcer.binding
    if not any((near.reach[list(rule.columns)] > 0).any() for rule in bound):
        return
    for person in np.flatnonzero((people.answer == Answer.PROVEN) & ~people.own.is_paired):
        if not _has_partner(people, near, int(person)):
            people.prove(np.array([person]), Stage.PERSON, Answer.ALONE)


def _has_partner(people: People, near: Near, person: int) -> bool:
    """May somebody in a neighbourhood have a partner?"""
    schema = people.schema
    named = sorted({column for rule in schema.enforcer.constraints for column in rule.columns})
    _, centre, low, high = part_people(schema, near, people.rows[[person]])
    for box in range(len(centre)):
        rows, whole = list_ruled(schema, centre[box], low[box], high[box], named)
        if not whole:
            return True
        rows = rows[people.keep_rules(np.full(len(rows), person), rows)]
        places = schema.places_of(rows)
        if not len(rows):
            continue
        tried = Tried.of(schema, int(stray_patterns(places[:1])[0]))
        _, is_open = expand(schema, rows, tried.cells)
        if is_open is None:
            return True
        is_open[np.arange(len(rows)), tried.find(places)] = False
        if is_open.any():
            return True
    return False


def list_ruled(
    schema: Schema,
    centre: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    columns: list[int],
) -> tuple[Rows, bool]:
    """The rows between two ends that differ in these columns, else as the centre, and whether these
    are all: not where a real-valued column moves, or where there are too many."""
    moved = [j for j in columns if low[j] < high[j]]
    if np.prod(count_between(low[moved], high[moved], schema.step[moved])) > MOST_ROWS:
        return centre[None], False
    choices = [codes_between(low[j], high[j], schema.step[j]) for j in moved]
    # A missing cell that may become any value may stay missing too.
    choices = [
        np.append(codes, np.nan) if np.isnan(centre[j]) else codes
        for j, codes in zip(moved, choices, strict=True)
    ]
    return combine(schema, centre, moved, choices), True
