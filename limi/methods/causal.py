"""CausalFT's idea: change first what the protected column acts through (Du and Chen, TOSEM 2025).

Rows of the table that flip are the seeds. Around each of them a walk changes one cell at a time.
Every second change is in a column that is tied most directly to a protected one and moves the
decision too, to a value that somebody else in the table has.

Faithfulness
- From the published description alone; no line of its program was used.
- Paper: a causal graph is learned from a part of the training data (LiNGAM); of the features that
  an edge joins to the sensitive one, the most relevant one that influences the label too is changed
  along with it. Here: partial correlations, given all other columns, say how direct both ties are,
  and LiNGAM's pairwise measure which way the first one points; a column that the protected one acts
  on counts twice one that acts on it. A method of limi sees no labels, so that the score of the
  model stands for them: it is asked about some rows of the table, and these are queries.
- Paper: a framework around other generators of tests. Here: a second phase of its own that can
  follow any first one (`grft+causal`, `natural+causal`); alone it starts from the table's rows.
- Paper: the perturbation of the causal feature follows the learned effect. Here: its cell is taken
  from another row of the table, which needs no order of levels.
- Findings with 10,000 queries, and of the same walks without the prior (`causal_share=0`), two
  seeds: 937 and 1,415 on the census network (sex), 1,214 and 1,424 on credit (age), 497 and 576 on
  bank (age), 1,138 and 1,497 on a logistic regression (credit, sex). So here the prior does not
  pay: a walk that returns to the same few columns meets the same keys again. That is why `guided`
  has no such option.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.decisions import round_scores
from limi.errors import InvalidInput
from limi.methods._phases import two_phase
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import snap
from limi.table.steps import Ladder, movable
from limi.types import Index, Rows, Scores

__all__ = ["Causal"]

_ROUND = 4096  # rows explored at once
_RIDGE = 1e-3  # so that columns which repeat one another have a partial correlation
_AGAINST = 0.5  # what a tie counts that points to the protected column
_ASKED_SHARE = 0.05  # of the queries left, for asking which columns move the score
_FEWEST = 10  # rows that say anything about ties


@dataclass(frozen=True, kw_only=True)
class Causal:
    """Walk from rows that flip, mostly along the column that the protected one acts through."""

    n_samples: int = 1000  # rows of the table that are tried for seeds
    n_seeds: int = 1000  # flipping rows to search around, at most
    exploit_steps: int = 1000  # moves around each seed
    columns: int = 2  # tied ones that are changed for each protected column; the paper has 1
    causal_share: float = 0.5  # share of the moves that change a tied column
    n_asked: int = 500  # rows whose scores say which columns matter

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "paper": {"columns": 1},
    }

    def __post_init__(self) -> None:
        if min(self.n_samples, self.n_seeds, self.columns, self.n_asked) < 1:
            raise InvalidInput("n_samples, n_seeds, columns and n_asked must be at least 1")
        if self.exploit_steps < 0:
            raise InvalidInput(f"exploit_steps is {self.exploit_steps}; it must be at least 0")
        if not 0 <= self.causal_share <= 1:
            raise InvalidInput(f"causal_share is {self.causal_share}; it must lie in [0, 1]")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table, then walks."""
        return two_phase(session, self, self, rng, n_seeds=self.n_seeds)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Rows of the table in random order."""
        order = rng.permutation(len(session.rows))[: self.n_samples]
        for start in range(0, len(order), _ROUND):
            rows = snap(session.schema, session.rows[order[start : start + _ROUND]])
            yield session.check(rows, origin="explore")

    def exploit(
        self, session: Session, seeds: Checked, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """Walks from all seeds together, which never leave the rows that flip."""
        schema = session.schema
        free = np.flatnonzero(movable(schema))
        if not len(free):
            return
        tied = self._tied_columns(session, free, rng)
        ladder, here, table = Ladder.of(schema), seeds, snap(schema, session.rows)
        for _ in range(self.exploit_steps):
            draws = rng.random((len(here), 4))
            causal = (draws[:, 0] < self.causal_share) & (len(tied) > 0)
            among_free = free[np.floor(draws[:, 1] * len(free)).astype(np.intp)]
            steps = np.where(draws[:, 2] < 0.5, -1.0, 1.0)
            rows = ladder.step_cells(here.rows, among_free, steps)
            if len(tied):
                place = tied[np.floor(draws[:, 1] * len(tied)).astype(np.intp)]
                other = table[np.floor(draws[:, 3] * len(table)).astype(np.intp)]
                rows = np.where(causal[:, None], _take(here.rows, other, place), rows)
            checked = session.check(rows, origin="exploit")
            yield checked
            if len(checked) < len(rows):
                return
            here = checked.where(checked.flips, here)

    def _tied_columns(self, session: Session, free: Index, rng: np.random.Generator) -> Index:
        """The columns to change first, for all protected ones together; none where too few rows
        can be asked."""
        n = min(self.n_asked, len(session.rows))
        if np.isfinite(session.queries_left):
            n = min(n, int(_ASKED_SHARE * session.queries_left))
        if n < _FEWEST:
            return free[:0]
        rows = session.rows[rng.permutation(len(session.rows))[:n]]
        scores = session.ask(rows)
        if len(scores) < n:
            return free[:0]
        ties = measure_ties(rows, round_scores(scores), session.schema.protected_index, free)
        chosen = [free[line[: self.columns]] for line in np.argsort(-ties, axis=1, kind="stable")]
        return np.unique(np.concatenate(chosen))


def _take(rows: Rows, others: Rows, columns: Index) -> Rows:
    """Rows with one cell each of others."""
    taken, line = rows.copy(), np.arange(len(rows))
    taken[line, columns] = others[line, columns]
    return taken


def measure_ties(rows: Rows, scores: Scores, protected: Index, free: Index) -> NDArray[np.float64]:
    """(protected, free): how directly each column is tied to a protected one and to the score.

    The product of both partial correlations, given all other columns; half of it where the tie
    points to the protected column. Rounded, because the last digits are the machine's.
    """
    filled = np.where(np.isnan(rows), np.nanmean(np.nan_to_num(rows), axis=0), rows)
    points = np.column_stack([filled, scores])
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    covariance = points.T @ points / len(points)
    # Of columns alone: given the score, whatever moves it would seem tied.
    among = _correlate_partially(covariance[:-1, :-1])
    with_score = _correlate_partially(covariance)
    direct = among[np.ix_(protected, free)] * with_score[-1, free]
    curved = np.tanh(points)
    leaning = covariance * (points.T @ curved - curved.T @ points) / len(points)
    forward = leaning[np.ix_(protected, free)] > 0
    return np.asarray(np.round(direct * np.where(forward, 1.0, _AGAINST), 6))


def _correlate_partially(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes of partial correlations of each two, given all others."""
    inverse = np.linalg.inv(covariance + _RIDGE * np.eye(len(covariance)))
    scale = np.sqrt(np.diag(inverse))
    return np.asarray(np.abs(inverse / np.outer(scale, scale)))
