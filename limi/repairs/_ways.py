"""The ways to repair a model, each of them from rows to a model that can be asked and shipped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, nearest
from limi.models.target import Target
from limi.repairs._average import Averaged, average_target
from limi.repairs._figures import hide_protected, usual_cells
from limi.repairs._mixing import MixedTable
from limi.repairs._partner_table import POINTS, choose_cells, make_table
from limi.repairs._recipes import Training
from limi.repairs._refit import Fitted
from limi.repairs._work import Work
from limi.search.check import check_rows
from limi.streams import Stream
from limi.table.partners import change_where_possible
from limi.types import Index, Rows, Truth

__all__ = ["HOWS", "WAYS", "Made", "Way", "check_how", "choose_strength", "copy_under_all"]

STRENGTHS = (0.1, 1.0, 10.0)
"""Of the penalty on pairs, that are tried."""

_MOST_COPIED = 300_000  # rows to train on with copies
_TRIED_ON = 0.2  # of the rows, which strength is chosen by
_TRIED_ROWS = 2_000  # of those, asked for flips


@dataclass(frozen=True)
class Made:
    """A repaired model."""

    target: Target
    native: Any
    asked: int = 1  # questions to the model inside for one answer
    seconds: float = 0.0
    mix: MixedTable | None = None  # what it was trained on, where rows were added
    inner: Fitted | None = None  # the model that is asked, where it is not the tested one
    notes: tuple[str, ...] = ()
    remade: Callable[..., Averaged] | None = field(default=None, repr=False)
    threshold: float | None = None  # where it was moved

    def decide_above(self, threshold: float) -> Made:
        """The same with another threshold of the favorable score."""
        assert self.remade is not None
        moved = self.remade(threshold=threshold)
        return replace(self, target=moved.target, native=moved.native, threshold=threshold)


@dataclass(frozen=True)
class Way:
    """A way to repair."""

    words: str
    make: Callable[[Work, Target, Training, int], Made]
    """Of the work, the model as it is, rows to train on, and the number of the trial."""
    trains: bool = True
    cost: int = 1  # beside that of training once
    exact: bool = False  # can no decision depend on a protected value afterwards?
    why_not: Callable[[Work], str] = lambda work: ""
    """Why a model cannot be repaired so; empty where it can."""

    def timed(self, work: Work, plain: Target, training: Training, place: int) -> Made:
        """The repaired model, with the seconds that it took."""
        start = time.perf_counter()
        made = self.make(work, plain, training, place)
        return replace(made, seconds=time.perf_counter() - start)


def check_how(how: str) -> tuple[str, ...]:
    """The ways that a word means; InvalidInput where it means none."""
    if how == "all":
        return HOWS
    if how not in WAYS:
        raise InvalidInput(f"unknown way to repair {how!r}; {nearest(how, ['all', *WAYS])}")
    return (how,)


def _average(work: Work, plain: Target, training: Training, place: int) -> Made:
    """The model as it is, averaged over the protected values of the table."""
    told = work.settings.averaging
    table = make_table(plain, training.rows, weights=told.weights)
    remade = partial(average_target, work.problem, plain, table, told.scale)
    averaged = remade()
    return Made(averaged.target, averaged.native, table.asked, notes=table.notes, remade=remade)


def _drop(work: Work, plain: Target, training: Training, place: int) -> Made:
    """Everybody's protected cells held at one value, in training and ever after."""
    schema = training.schema
    cells = usual_cells(schema, training.rows)
    hidden = hide_protected(schema, training.rows, cells)
    fitted = work.refit(hidden, training.labels, work.seed + place)
    table = make_table(fitted.target, training.rows, weights="uniform", only=cells[None])
    remade = partial(average_target, work.problem, fitted.target, table)
    held = remade()
    return Made(held.target, held.native, inner=fitted, remade=remade)


def _copies(work: Work, plain: Target, training: Training, place: int) -> Made:
    """Every row under every protected value with its true label, each counting its share."""
    rng = Stream.REPAIR_MIX.rng(work.seed, place, 1)
    rows, labels, weights = copy_under_all(training, rng)
    fitted = work.refit(rows, labels, work.seed + place, weights=weights)
    return Made(fitted.target, fitted.native)


def copy_under_all(
    training: Training, rng: np.random.Generator
) -> tuple[Rows, Truth, NDArray[np.float64]]:
    """The rows, then each under every other value whose partner could exist, their labels, and
    what each copy counts: all copies of a row together count one."""
    schema, rows, labels = training.schema, training.rows, training.labels
    cells = choose_cells(schema, rows, max(2, min(16, _MOST_COPIED // max(1, len(rows)))))
    own = np.all(rows[:, None, schema.protected_index] == cells[None], axis=2)
    parts: list[tuple[Rows, Index]] = [(rows, np.arange(len(rows)))]
    order = rng.permutation(len(cells))
    for number in order[: max(1, _MOST_COPIED // max(1, len(rows)))]:
        others = np.flatnonzero(~own[:, number])
        wanted = np.tile(cells[number], (len(others), 1))
        made, there = change_where_possible(schema, rows[others], wanted)
        parts.append((made, others[there]))
    whose = np.concatenate([place for _, place in parts])
    count = np.bincount(whose, minlength=len(rows))
    return np.concatenate([made for made, _ in parts]), labels[whose], 1 / count[whose]


def _findings(work: Work, plain: Target, training: Training, place: int) -> Made:
    """The table and findings, by the preset."""
    mix = work.mix(plain, training, place)
    fitted = work.refit(mix.rows, mix.labels, work.seed + place)
    repeats = work.settings.mixing.replace or mix.findings > len(work.found)
    twice = ", some of them more than once" if repeats else ""
    note = (
        f"{mix.findings:,} findings were drawn{twice}, and {len(mix.rows) - mix.own:,} rows added "
        f"to the table's {mix.own:,}"
    )
    return Made(fitted.target, fitted.native, mix=mix, notes=(note,))


def _pairs(work: Work, plain: Target, training: Training, place: int) -> Made:
    """A penalty on how far the scores of a row and of a partner lie apart, as strong as is best."""
    strength = work.strength
    if strength is None:
        strength = choose_strength(work, plain, training)
    fitted = _train_paired(work, training, strength, place)
    return Made(fitted.target, fitted.native, notes=(f"strength of the penalty: {strength:g}",))


def _train_paired(work: Work, training: Training, strength: float, place: int) -> Fitted:
    """Trained with each row beside one of its partners."""
    schema, rows = training.schema, training.rows
    rng = Stream.REPAIR_MIX.rng(work.seed, place, 2)
    cells = choose_cells(schema, rows, POINTS)
    made, there = change_where_possible(
        schema, rows, cells[rng.integers(len(cells), size=len(rows))]
    )
    partners = rows.copy()
    partners[there] = made
    return work.refit(rows, training.labels, work.seed + place, pairs=(partners, strength))


def choose_strength(work: Work, plain: Target, training: Training) -> float:
    """Of some strengths the one with fewest flips on rows held out of these, among those that cost
    no more accuracy than is allowed; the weakest where all cost more."""
    rng = Stream.REPAIR_MIX.rng(work.seed, 0, 3)
    held = rng.random(len(training.rows)) < _TRIED_ON
    rows, truth = training.rows[held], training.labels[held]
    rest = Training(training.schema, training.rows[~held], training.labels[~held])
    usual = float(work.terms.credit(plain.score(rows), truth).mean())
    tried = []
    for strength in STRENGTHS:
        target = _train_paired(work, rest, strength, 0).target
        lost = usual - float(work.terms.credit(target.score(rows), truth).mean())
        asked = rows[:_TRIED_ROWS]
        rule = work.terms.rule
        flips = float(check_rows(target.score, training.schema, asked, decision=rule).flips.mean())
        tried.append((lost > work.settings.max_accuracy_loss, flips, strength))
    if all(too_dear for too_dear, _, _ in tried):
        return STRENGTHS[0]
    return min(tried)[2]


def _why_no_pairs(work: Work) -> str:
    if work.refit.learns_pairs:
        return ""
    return (
        "a penalty on pairs of scores needs a fit function that also takes partners and strength; "
        "other models learn from copies"
    )


def _why_no_findings(work: Work) -> str:
    if len(work.found):
        return ""
    return "the run has no findings to train with; search longer, or leave the model as it is"


WAYS = {
    "average": Way(
        "the model unchanged, with its answers averaged over the protected values",
        _average,
        trains=False,
        exact=True,
    ),
    "drop": Way("trained again without the protected columns", _drop, exact=True),
    "copies": Way("trained again with every row under every protected value", _copies, cost=3),
    "pairs": Way(
        "trained again with a penalty on the distance between partners' scores",
        _pairs,
        cost=2,
        why_not=_why_no_pairs,
    ),
    "findings": Way(
        "trained again with the run's findings", _findings, cost=2, why_not=_why_no_findings
    ),
}
HOWS = tuple(WAYS)
