"""What is known of each person, and the one way to become known as a flip: the user's own model.

Whatever finds a candidate, it is replayed: the row and its partners are put to the model by the
oracle of every search (`limi.search.check`), under the rules of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.search.check import Checked, check_rows
from limi.table.constraints import find_broken
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores

__all__ = ["Answer", "People", "Stage"]


class Answer(IntEnum):
    """What is known of a person's neighbourhood."""

    UNDECIDED = 0
    PROVEN = 1  # no row in it flips
    FLIPS = 2  # one does, which the model itself has shown
    ALONE = 3  # by the rules nobody in it has a partner, so there is nothing to prove


class Stage(IntEnum):
    """What decided it."""

    NOTHING = 0
    PERSON = 1  # the model, asked about the person
    BOUNDS = 2
    SEARCH = 3
    SPLITTING = 4
    SOLVER = 5
    CONSTRUCTION = 6  # of an averaged model


@dataclass(eq=False)
class People:
    """Rows of a table, with what becomes known of their neighbourhoods."""

    schema: Schema
    rows: Rows
    score: Callable[[Rows], Scores]
    answer: NDArray[np.int8] = field(init=False)
    stage: NDArray[np.int8] = field(init=False)
    witness: Rows = field(init=False)  # (n, d): NaN where there is none
    partner: Rows = field(init=False)
    scores: NDArray[np.float64] = field(init=False)  # (n, 2): of witness and partner
    own: Checked = field(init=False)
    gap: NDArray[np.float64] = field(init=False)  # proven: of sums in the neighbourhood, at most
    queries: int = 0
    slack: float = 0.0  # what rounding may move a sum by; every proof stays that far from the edge

    def __post_init__(self) -> None:
        n = len(self.rows)
        self.answer, self.stage = np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int8)
        self.witness = np.full(self.rows.shape, np.nan)
        self.partner = np.full(self.rows.shape, np.nan)
        self.scores = np.full((n, 2), np.nan)
        self.gap = np.full(n, np.inf)
        self.own = check_rows(self.score, self.schema, self.rows, keep_scores=True)
        self.queries = self.own.queries
        self._note(np.arange(n), self.own, Stage.PERSON)
        enforcer = self.schema.enforcer
        self._broken = find_broken(enforcer.constraints, self.rows)

    def __getstate__(self) -> dict[str, Any]:
        """What is known travels between processes; the model and the rules stay where they are."""
        stays = ("schema", "score", "_broken")
        return {name: value for name, value in vars(self).items() if name not in stays}

    @property
    def is_open(self) -> Mask:
        """Of whom nothing is known yet."""
        return np.asarray(self.answer == Answer.UNDECIDED)

    def prove(self, person: Index, stage: Stage, answer: Answer = Answer.PROVEN) -> None:
        """Note that nobody in these people's neighbourhoods flips."""
        self.answer[person], self.stage[person] = answer, stage

    def prove_alone(self, paired: Index) -> None:
        """Note who has no partner anywhere near; `paired` are the people who have one."""
        alone = self.is_open
        alone[paired] = False
        self.prove(np.flatnonzero(alone), Stage.PERSON, Answer.ALONE)

    def keep_rules(self, person: Index, rows: Rows) -> Mask:
        """Which rows keep all constraints that their person keeps."""
        enforcer = self.schema.enforcer
        broken = find_broken(enforcer.constraints, rows)
        return np.asarray(~(broken & ~self._broken[person]).any(axis=1))

    def replay(self, person: Index, rows: Rows, stage: Stage) -> Mask:
        """Put rows of people's neighbourhoods to the model; which of them flip."""
        kept = np.flatnonzero(self.keep_rules(person, rows))
        flips = np.zeros(len(rows), dtype=bool)
        if len(kept):
            checked = check_rows(self.score, self.schema, rows[kept])
            self.queries += checked.queries
            flips[kept] = checked.flips
            # The first flip of a person is kept.
            hits = np.flatnonzero(checked.flips)
            _, first = np.unique(person[kept[hits]], return_index=True)
            new = hits[first]
            new = new[self.is_open[person[kept[new]]]]
            self._note(person[kept[new]], checked[new], stage)
        return flips

    def _note(self, person: Index, checked: Checked, stage: Stage) -> None:
        hits = np.flatnonzero(checked.flips)
        who = person[hits]
        self.answer[who], self.stage[who] = Answer.FLIPS, stage
        self.witness[who], self.partner[who] = checked.rows[hits], checked.partner[hits]
        self.scores[who, 0] = checked.score[hits]
        self.scores[who, 1] = checked.partner_score[hits]
