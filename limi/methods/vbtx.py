"""VBT-X: verification-based testing on a surrogate tree (Zhao et al., IST 2024).

A decision tree learns the target from random rows. Where the tree decides two rows differently
that differ in protected columns alone, such pairs are drawn and put to the target. What the target
decides differently goes into the tree's training rows.

Faithfulness
- Paper: a solver finds the pairs, and random parity constraints keep its solutions apart. Here the
  leaves that share a person are listed, one of their pairs is drawn at random (`cells="uniform"`;
  `"volume"` draws larger ones more often), then a row of what they share; no solver is needed.
- Paper: training rows that grow by what was wrong, and a fresh start with 5000 uniform rows after
  five rounds in which nothing was wrong, or where no pair exists. Here too, and after growing to
  ten times the number that a start has, for larger trees find no more but take longer.
- Paper: 50 solutions a round, each of them slow. Here a fifth of the number of training rows, with
  as many findings per query; `solutions=50` for theirs (`preset=paper`).
- Released code leaves the domain, because its formula has no bounds. Here rows never do.
- Released code cuts the digits of thresholds, which is wrong below zero. Here they are compared as
  they are.
- Released code drops a pair that the target decides differently but the other way round. Here it
  is a finding.
- Released code may repeat pairs. Here a key is asked once.
- Released code wants all protected columns to differ. Here at least one.
- Released code throws away a round whose last solver call failed. There is no such call here.
- The paper's runs end by the clock. Here also after `restarts` fresh starts in a row that bring no
  new row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.errors import InvalidInput
from limi.methods import _surrogate
from limi.methods._leaves import Boxes, Pairs, feasible_pairs
from limi.methods._surrogate import Tree
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import change
from limi.table.rows import uniform
from limi.table.steps import Ladder
from limi.types import Index, Mask, Rows

__all__ = ["VBTX"]

_MOST_GROWTH = 10  # times the rows of a start


@dataclass(frozen=True, kw_only=True)
class VBTX:
    """Test the pairs that a surrogate tree treats differently."""

    n_samples: int = 5000  # random rows that a tree starts from
    solutions: int | None = None  # pairs a round; None: one for every five training rows
    patience: int = 5  # rounds without new training rows before a fresh start
    restarts: int = 10  # fresh starts without a new row before the end
    cells: Literal["uniform", "volume"] = "uniform"  # how a pair of leaves is drawn

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "paper": {"solutions": 50},
    }

    def __post_init__(self) -> None:
        solutions = 1 if self.solutions is None else self.solutions
        if min(self.n_samples, solutions, self.patience, self.restarts) < 1:
            raise InvalidInput(
                "n_samples, solutions, patience and restarts must be at least 1 each"
            )

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rounds of pairs, and fresh starts."""
        barren = 0
        while barren < self.restarts:
            barren += 1
            surrogate = self._start(session, rng)
            yield Checked.nothing(len(session.schema))
            if surrogate is None:
                return
            quiet = 0
            while quiet < self.patience and len(surrogate) <= _MOST_GROWTH * self.n_samples:
                pairs = surrogate.pairs(rng)
                if not len(pairs):
                    break
                quiet += 1
                rows, expected = self._draw(session, surrogate, pairs, rng)
                if not len(rows):
                    continue
                checked = session.check(rows, origin="vbtx")
                yield checked
                if len(checked) < len(rows):
                    return
                barren = 0
                told = checked.is_asked
                decided = favors(session.decision.as_score(checked.score[told]))
                if surrogate.learn(checked.rows[told], decided, expected[told]):
                    quiet = 0

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The same; its findings can seed another method's local phase."""
        return self.search(session, rng)

    def _start(self, session: Session, rng: np.random.Generator) -> _Surrogate | None:
        n = _surrogate.n_affordable(session, self.n_samples)
        rows = uniform(session.schema, n, rng)
        scores = session.ask(rows)
        if not len(scores):
            return None
        return _Surrogate(session, rows[: len(scores)], favors(scores))

    def _draw(
        self, session: Session, surrogate: _Surrogate, pairs: Pairs, rng: np.random.Generator
    ) -> tuple[Rows, Mask]:
        """Pairs of rows, one after the other, with the decisions that the tree takes."""
        weights = np.ones(len(pairs))
        if self.cells == "volume":
            weights = pairs.sizes(surrogate.ladder)
        edges = np.cumsum(weights)
        n = max(1, len(surrogate) // 5) if self.solutions is None else self.solutions
        draws = rng.random((n, 1 + len(session.schema)))
        chosen = np.searchsorted(edges, draws[:, 0] * edges[-1], side="right")
        chosen = np.minimum(chosen, len(pairs) - 1)
        rows = pairs.points(surrogate.ladder, chosen, draws[:, 1:])
        values = surrogate.protected_values(pairs, chosen, rng.random((n, 2)))
        both = change(session.schema, np.repeat(rows, 2, axis=0), values)
        kept = np.repeat(session.unseen(rows), 2)
        return both[kept], np.tile([False, True], len(rows))[kept]


class _Surrogate:
    """A tree, its training rows, and the pairs of leaves that share a person."""

    def __init__(self, session: Session, rows: Rows, favorable: Mask) -> None:
        self.ladder = Ladder.of(session.schema)
        self._positions, self._favorable = self.ladder.climb(rows), favorable
        codes = [np.array(c) for c in session.schema.protected_codes]
        self._codes = list(zip(session.schema.protected_index, codes, strict=True))
        self._pairs: Pairs | None = None

    def __len__(self) -> int:
        return len(self._favorable)

    def learn(self, rows: Rows, favorable: Mask, expected: Mask) -> bool:
        """Add the rows that were not decided as expected; were there any?"""
        wrong = favorable != expected
        if not wrong.any():
            return False
        self._positions = np.concatenate([self._positions, self.ladder.climb(rows[wrong])])
        self._favorable = np.concatenate([self._favorable, favorable[wrong]])
        self._pairs = None
        return True

    def pairs(self, rng: np.random.Generator) -> Pairs:
        """The pairs of the tree of all training rows."""
        if self._pairs is None:
            tree = Tree.grow(self._positions, self._favorable, criterion="entropy", rng=rng)
            boxes = Boxes.of(self.ladder, tree)
            inhabited = np.ones(len(tree.column), dtype=bool)
            for held in self._hold(boxes, np.arange(len(tree.column))):
                inhabited &= held.any(axis=1)
            self._pairs = feasible_pairs(self.ladder, tree, inhabited, boxes, rng)
        return self._pairs

    def protected_values(
        self, pairs: Pairs, chosen: Index, draws: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(2m, p): for each chosen pair a combination of the one leaf, then one of the other."""
        values = np.empty((2 * len(chosen), len(self._codes)))
        one = self._hold(pairs.boxes, pairs.unfavorable[chosen])
        other = self._hold(pairs.boxes, pairs.favorable[chosen])
        rest = draws.copy()
        for place, (_, codes) in enumerate(self._codes):
            first, rest[:, 0] = _nth(one[place], rest[:, 0])
            second, rest[:, 1] = _nth(other[place], rest[:, 1])
            values[0::2, place], values[1::2, place] = codes[first], codes[second]
        return values

    def _hold(self, boxes: Boxes, nodes: Index) -> list[NDArray[np.bool_]]:
        """For each protected column, which of its codes lie in each node's box."""
        held = []
        for column, codes in self._codes:
            low, unit = self.ladder.low[column], self.ladder.unit[column]
            positions = np.round((codes - low) / unit, 9)
            held.append(
                (boxes.low[nodes, column, None] <= positions)
                & (positions <= boxes.high[nodes, column, None])
            )
        return held


def _nth(mask: NDArray[np.bool_], draws: NDArray[np.float64]) -> tuple[Index, Any]:
    """A true place of each line by one draw a line, and what is left of the draw."""
    count = mask.sum(axis=1)
    scaled = draws * count
    nth = np.floor(scaled)
    place: Index = (np.cumsum(mask, axis=1) > nth[:, None]).argmax(axis=1)
    return place, scaled - nth
