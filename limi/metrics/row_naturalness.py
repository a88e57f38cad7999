"""How natural one row is: its rank among real rows that the measure has not seen.

A measure of likeness (closeness to real rows) is made from one half of the table. The rows of the
other half say which values of it are usual. A row's p-value is the share of those that are not more
likely than the row:

    p = (1 + #{held-out real rows whose measure <= the row's}) / (1 + #{held-out real rows})

For a further row of the table p is uniform (conformal prediction: all that is assumed is that the
rows come in no particular order); a p-value under 0.05 says that fewer than one real row in twenty
is as odd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.metrics._base import NATURALNESS, Evidence, Figure, metric
from limi.metrics._enough import FEWEST_RANKED
from limi.metrics._space import Space, nearest
from limi.table.schema import Schema
from limi.types import Rows, Scores

__all__ = [
    "Judge",
    "conformal_p_values",
    "judge_by_distance",
    "nearest_neighbour_distance",
]

_MOST_FITTED = 50_000
_MOST_HELD_OUT = 20_000
_NEIGHBOURS = 5  # one alone ties wherever a table repeats rows
_MOST_NEIGHBOURS_AMONG = 2_000
_MOST_CLOSE_CALIBRATION = 10_000


@dataclass(frozen=True)
class Judge:
    """A measure of likeness and what it gives to held-out real rows."""

    measure: Callable[[Rows], Scores]  # higher: more natural
    calibration: Scores
    words: str  # what the measure is

    def p_values(self, rows: Rows) -> NDArray[np.float64]:
        """One p-value per row, in (0, 1]; higher is more natural."""
        if not len(rows):
            return np.empty(0)
        return conformal_p_values(self.measure(rows), self.calibration)


def conformal_p_values(scores: Scores, calibration: Scores) -> NDArray[np.float64]:
    """Rank of each score among held-out ones: the share that is at most as high, plus one.

    In (0, 1]; uniform for scores of the same kind as the held-out ones, and with ties larger.

    >>> conformal_p_values(np.array([0.5, 2.5, 9.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.25, 0.75, 1.0]
    """
    below = np.searchsorted(np.sort(calibration), scores, side="right")
    ranks: NDArray[np.float64] = (1 + below) / (1 + len(calibration))
    return ranks


def judge_by_distance(real: Rows, schema: Schema, rng: np.random.Generator) -> Judge:
    """A judge by the mean distance to the five nearest rows of a sample of one half."""
    fitted, held_out = _halves(real, rng)
    space = Space.learn(fitted[:_MOST_FITTED], schema)
    among = space.place(fitted[:_MOST_NEIGHBOURS_AMONG])
    k = min(_NEIGHBOURS, len(among))

    def closeness(rows: Rows) -> Scores:
        distances, _ = nearest(space.place(rows), among, k)
        close: Scores = -distances.mean(axis=1)
        return close

    return Judge(closeness, closeness(held_out[:_MOST_CLOSE_CALIBRATION]), "neighbour distance")


def nearest_neighbour_distance(
    real: Rows,
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    max_real: int = 5_000,
    max_rows: int = 2_000,
) -> float:
    """Mean Euclidean distance of rows to the nearest real row.

    Numbers are standardised by the real rows and levels have an axis each. From 0 (all are copies)
    upwards; lower is more natural, but compare with real rows that are not among `real`, for
    no real row lies at 0 either. Of more rows samples are drawn.
    """
    if not (len(real) and len(rows)):
        raise InvalidInput(
            f"a distance needs rows on both sides; there are {len(real)} real and {len(rows)} "
            "other rows"
        )
    space = Space.learn(real, schema)
    among, given = (
        side[rng.permutation(len(side))[:most]]
        for side, most in ((real, max_real), (rows, max_rows))
    )
    return float(nearest(space.place(given), space.place(among), 1)[0].mean())


def _halves(real: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    if len(real) < FEWEST_RANKED:
        raise InvalidInput(
            f"the table has {len(real)} rows; judging how natural a row is takes at least "
            f"{FEWEST_RANKED}"
        )
    order = rng.permutation(len(real))
    middle = len(real) // 2
    return real[order[:middle]], real[order[middle:]]


# -- measured in every run --------------------------------------------------------------


@metric(
    NATURALNESS,
    name="nearest_neighbour_distance",
    title="nearest-neighbour distance",
    formula="mean Euclidean distance of findings to the nearest real row, beside that of real rows "
    "to others",
    range="from 0",
    better="lower",
    beside="real rows {of_real_rows}",
    main=False,
)
def _measure_distance(evidence: Evidence) -> Figure | None:
    """Mean Euclidean distance of a finding to the nearest real row."""
    if not evidence.enough_to_compare or not evidence.in_time("distance to real rows"):
        return None
    rng, schema = evidence.rng("nearest_neighbour_distance"), evidence.schema
    shuffled = evidence.table[rng.permutation(len(evidence.table))]
    near, far = np.array_split(shuffled, [len(shuffled) // 2])
    return Figure(
        nearest_neighbour_distance(near, evidence.found.rows, schema, rng),
        beside={"of_real_rows": nearest_neighbour_distance(near, far, schema, rng)},
    )
