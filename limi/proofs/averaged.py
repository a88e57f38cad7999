"""Models that are averaged over protected values: nobody flips, by their construction.

An averaged model (`limi.average`) puts every protected value into a row, and what goes along with
it, and answers with the mean. A row and its partner differ in those cells alone. Where the same
rows with the same weights come of both, the model inside is given the same, and the two answers are
one. That is seen from what is put in, without asking the model: each row of a neighbourhood that
the averaging tells apart is laid beside its partners. With roles it holds where partners of
partners are partners; without any it always does. Rows of which it does not hold are put to the
model: it may flip them, and where it does not, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, spell
from limi.models._averaged import AveragedClassifier, AveragedFunction, Swaps
from limi.models.target import Target
from limi.proofs.alone import list_ruled
from limi.proofs.near import Near
from limi.proofs.people import People, Stage
from limi.proofs.question import make_partners, part_people
from limi.types import Rows

__all__ = ["Averaging", "find_averaging", "prove_by_averaging"]

_AT_ONCE = 256  # boxes


@dataclass(frozen=True, eq=False)
class Averaging:
    """What a target's model is averaged over."""

    target: Target
    swaps: Swaps

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return f"model averaged over {spell(self.columns)}"

    @property
    def columns(self) -> list[str]:
        """The columns that it does not look at; arrays have places for names."""
        names = self.target.shown.schema.names
        return [names[c] if isinstance(c, int) else str(c) for c in self.swaps.values]

    @property
    def looked_up(self) -> list[int]:
        """Places of the columns by which something is put in."""
        names = self.target.shown.schema.names
        found = set[int]()
        for rule in (*self.swaps.along, *self.swaps.closed):
            by = [*rule["by"], *([rule["column"]] if "column" in rule else [])]
            found |= {c if isinstance(c, int) else names.index(str(c)) for c in by}
        return sorted(found)

    def widest(self, gap: Any) -> Any:
        """How far two scores can be apart: not at all where it is proven, else anything."""
        return np.minimum(gap, 1.0)

    def agrees(self, rows: Rows, partners: Rows) -> NDArray[np.bool_]:
        """(n,): of which pairs the same is averaged."""
        return self.swaps.agree(self.target.present(rows), self.target.present(partners))


def find_averaging(target: Target) -> Averaging | None:
    """What a target's model is averaged over; None where it is not, BadModel where it is averaged
    over columns other than the protected ones."""
    native = getattr(target.model, "estimator", getattr(target.model, "function", None))
    if isinstance(native, AveragedClassifier):
        swaps = Swaps(native.values, native.weights, native.along, native.closed)
    elif isinstance(native, AveragedFunction):
        swaps = native.swaps
    else:
        return None
    found = Averaging(target, swaps)
    others = [c for c in target.codec.schema.protected if c not in (*found.columns, *target.unseen)]
    if others:
        raise BadModel(
            f"the model is averaged over {spell(found.columns)} and not over {spell(others)}, so "
            "its construction proves nothing about the latter; average it over all protected "
            "columns, or give the model inside"
        )
    return found


def prove_by_averaging(
    averaging: Averaging, near: Near, people: People, enough: Callable[[], bool]
) -> None:
    """Note of whom it is proven by the construction of the model."""
    schema = people.schema
    person, centre, low, high = part_people(schema, near, people.rows)
    partners, there = make_partners(schema, near, centre)
    people.prove_alone(person[there.any(axis=1)])
    moving, looked_up = schema.moving_index, averaging.looked_up
    unsure = np.zeros(len(people.rows), dtype=bool)
    boxes = np.flatnonzero(there.any(axis=1))
    for start in range(0, len(boxes), _AT_ONCE):
        if enough():
            unsure[person[boxes[start:]]] = True
            break
        chosen = boxes[start : start + _AT_ONCE]
        listed = [
            list_ruled(schema, centre[b], low[b], high[b], looked_up) for b in chosen.tolist()
        ]
        unsure[person[chosen[[not whole for _, whole in listed]]]] = True
        rows = np.concatenate([rows for rows, _ in listed])
        box = np.repeat(chosen, [len(rows) for rows, _ in listed])
        for number in range(there.shape[1]):
            here = np.flatnonzero(there[box, number])
            theirs = rows[here].copy()
            theirs[:, moving] = partners[box[here], number][:, moving]
            if len(here):
                odd = here[~averaging.agrees(rows[here], theirs)]
                unsure[person[box[odd]]] = True
                people.replay(person[box[odd]], rows[odd], Stage.SEARCH)
    people.gap[:] = np.where(unsure, np.inf, 0.0)
    people.prove(np.flatnonzero(people.is_open & ~unsure), Stage.CONSTRUCTION)
