"""The question of a proof: for each person, boxes of atoms that hold the whole neighbourhood.

A neighbourhood is one box, unless it moves a column that others follow: the sources of a derived
column, or a column with a role. Then there is a box for every value of these, so that within a box
only columns move that nothing else depends on, and a row's partners differ from it in known cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, spell
from limi.proofs.near import Near
from limi.search.tried import Tried, stray_patterns
from limi.table.partners import complete, expand
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.trees.bounds import Boxes
from limi.trees.lattice import Lattice
from limi.types import Index, Mask, Rows

__all__ = ["Question", "ask_about", "find_followed", "make_partners", "part_people"]

_MOST_PARTS = 512  # boxes of a person


@dataclass(frozen=True, eq=False)
class Question:
    """Boxes of people, with the codes between which each box lies."""

    person: Index  # (boxes,): whose neighbourhood a box is of
    boxes: Boxes
    centre: Rows  # (boxes, d): the person, in this box
    low: Rows  # (boxes, d): codes
    high: Rows
    partners: Rows  # (boxes, partners, d): the person's, in this box

    def __len__(self) -> int:
        return len(self.person)

    def __getitem__(self, index: Index | Mask) -> Question:
        return Question(
            self.person[index],
            self.boxes[index],
            self.centre[index],
            self.low[index],
            self.high[index],
            self.partners[index],
        )


def find_followed(schema: Schema) -> Mask:
    """(d,): which columns others follow by the rules, so that each value has a box of its own."""
    followed = np.zeros(len(schema), dtype=bool)
    enforcer = schema.enforcer
    for role in enforcer.roles:
        followed[role.moved] = True
    followed[enforcer.trace(enforcer.derived_index.tolist())] = True
    followed[schema.protected_index] = False
    return followed


def ask_about(lattice: Lattice, near: Near, rows: Rows) -> Question:
    """The boxes of people's neighbourhoods."""
    schema = lattice.schema
    person, centre, low, high = part_people(schema, near, rows)
    moving = schema.moving_index
    partners, there = make_partners(schema, near, centre)
    own = lattice.atoms(centre)
    low_atoms, high_atoms = lattice.atoms(low), lattice.atoms(high)
    # A missing cell that may become any value may stay missing too.
    gone = np.isnan(centre)
    low_atoms = np.where(gone & ~np.isinf(near.reach), own, low_atoms)
    high_atoms = np.where(gone, own, high_atoms)
    derived = schema.enforcer.derived_index
    for fixed in (moving, derived):
        low_atoms[:, fixed] = high_atoms[:, fixed] = own[:, fixed]
    n, n_partners, _ = partners.shape
    atoms = lattice.atoms(partners.reshape(n * n_partners, -1))[:, moving]
    boxes = Boxes(low_atoms, high_atoms, moving, atoms.reshape(n, n_partners, len(moving)), there)
    return Question(person, boxes, centre, low, high, partners)


def part_people(schema: Schema, near: Near, rows: Rows) -> tuple[Index, Rows, Rows, Rows]:
    """People, box by box: whose it is, the person in it, and its lowest and highest codes."""
    low, high = near.ends(schema, rows)
    person, centre = np.arange(len(rows)), rows.copy()
    followed = np.flatnonzero(find_followed(schema) & (near.reach > 0))
    for j in followed:
        step = schema.step[j] or 1.0
        places = [np.rint((end[:, j] - schema.low[j]) / step) for end in (low, high)]
        stays = np.isnan(centre[:, j]) & ~np.isinf(near.reach[j])
        counts = np.where(stays, 1, np.nan_to_num(places[1] - places[0]) + 1).astype(np.int64)
        if counts.max(initial=1) * (len(person) / max(1, len(rows))) > _MOST_PARTS:
            names = spell(schema.names[k] for k in followed)
            raise InvalidInput(
                f"near lets {names} move, which other columns follow by the rules, in more than "
                f"{_MOST_PARTS} ways for one person; let them move less"
            )
        index = np.repeat(np.arange(len(person)), counts)
        nth = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
        cells = low[index, j] + nth * step
        person, centre, low, high = person[index], centre[index], low[index], high[index]
        cells = np.where(stays[index], np.nan, cells)
        centre[:, j] = low[:, j] = high[:, j] = cells
    if len(followed):
        centre = complete(schema, snap(schema, centre))
        derived = schema.enforcer.derived_index
        for fixed in (followed, derived):
            low[:, fixed] = high[:, fixed] = centre[:, fixed]
    return person, centre, low, high


def make_partners(schema: Schema, near: Near, centre: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """(n, partners, d) rows, and which of them may be asked."""
    places = schema.places_of(centre)
    patterns = stray_patterns(places)
    kinds = {int(p): Tried.of(schema, int(p)) for p in np.unique(patterns)}
    most = max((len(tried.cells) for tried in kinds.values()), default=1)
    made = np.repeat(centre[:, None], most, axis=1)
    there = np.zeros((len(centre), most), dtype=bool)
    enforcer = schema.enforcer
    bound = enforcer.binding
    # Whether a partner could exist may change within the box; then it counts as one that may.
    changes = any((near.reach[list(constraint.columns)] > 0).any() for constraint in bound)
    for pattern, tried in kinds.items():
        here = np.flatnonzero(patterns == pattern)
        n_tried = len(tried.cells)
        asked, is_open = expand(schema, centre[here], tried.cells)
        made[here, :n_tried] = asked
        there[here, :n_tried] = True if is_open is None or changes else is_open
        there[here, tried.find(places[here])] = False
    return made, there
