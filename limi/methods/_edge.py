"""Walks to the edge of a decision: how `guided` finds flips where they are rare.

Where protected values matter little, a row flips only if its score lies very near the edge, and no
learner knows scores so well. But they can be measured. A walk starts at natural rows (*anchors*)
that are not far from the edge and have a wide gap between their scores under the protected values.
It asks rows that differ from an anchor in up to three cells, under one protected value, which costs
one question. Each row that was asked is a *foothold* for the next change.

The walk asks the pairs of foothold and change that most likely lead to the edge. What a change did
elsewhere near the same anchor, or what another step of the same number did last, is what it is
expected to do here, within a factor; one that was not tried yet may do what changes of that column
usually do. So large changes come first,
and small steps of numbers once a foothold is near. Only a row so near to the edge that the gap of
its anchor reaches over it is checked, under all protected values.

A model that tells labels alone has no scores that could be measured: see `_lines.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule, round_scores
from limi.methods._arrays import Arrays
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import change, complete
from limi.table.rows import KeySet, distinct, snap
from limi.table.schema import Schema
from limi.table.steps import movable, step_sizes
from limi.types import Index, Latents, Mask, Rows, Scores

__all__ = ["Anchors", "Walk"]

_MOST_CHANGED = 3  # cells of an anchor
_OFFSETS = np.array([-8, -5, -3, -2, -1, 1, 2, 3, 5, 8])  # steps of a number
_MOST_STEPS = 80  # changes of an anchor that are steps of numbers
_NEIGHBOURS = 24  # ... and those that are cells of natural neighbours
_NEW_ANCHORS = 250  # of a round
_FOOTHOLDS = 500  # that are kept beside the newest: those with the most promising change
_TURNS = 48  # of a search, if each asks as much as it may
_AT_ONCE = (64, 256)  # footholds, fewest and most, from which a change is chosen in a turn
_REACH = 1.0  # log-odds that a walk bridges easily
_GAP_KEPT = 0.5  # power of an anchor's gap that rows near it still have: wide gaps are exceptions
_NEAR = 1.5  # gaps from the edge, within which a row is worth checking
_UNLIKE = 1.0  # of what a change did elsewhere, the part that it may do differently here
_UNLIKE_BACK = 2.0  # ... if it went the other way there
_LEAST = 0.005  # log-odds that any change may differ by
_NOTHING = 1e-4  # log-odds: a change that does less is not tried again near the anchor
_USUAL = np.log([0.5, 0.05])  # how far another cell, and one step, move log-odds at first guess
_USUAL_WORTH = 2.0  # changes
_SPREAD = 1.5  # times what is usual: what a change may do that was not tried
_SMALLEST = 1e-6  # smaller scores count as this one
_DIGITS = 6  # of log-odds that are compared: the last ones differ between processors

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Anchors(Arrays):
    """Natural rows with their latents, and their scores under protected values."""

    latents: Latents
    rows: Rows
    scores: Scores  # (n, K): NaN where one was not asked

    @staticmethod
    def of(latents: Latents, checked: Checked, decision: Rule) -> Anchors:
        """The rows that were checked under several protected values and do not flip."""
        n_asked = (~np.isnan(checked.scores)).sum(axis=1)
        steady = np.flatnonzero(~checked.flips & (n_asked > 1))
        scores = decision.as_score(checked.scores[steady])
        return Anchors(latents[steady], checked.rows[steady], scores)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def gap(self) -> Values:
        """(n,): log-odds between the lowest and the highest score."""
        odds = _log_odds(self.scores)
        return np.asarray(np.nanmax(odds, axis=1) - np.nanmin(odds, axis=1))

    @property
    def middle(self) -> Values:
        """(n,): how far from the edge the middle between them lies, as log-odds."""
        odds = _log_odds(self.scores)
        return np.asarray((np.nanmin(odds, axis=1) + np.nanmax(odds, axis=1)) / 2)

    def best(self, n: int) -> Anchors:
        """The n rows that lie nearest to the edge for their gap; of rows with the same scores the
        first, and none with the same score under all protected values."""
        gap = np.round(self.gap, _DIGITS)
        wide = np.flatnonzero(gap > 0)
        lack = (np.abs(self.middle[wide]) + _REACH) / gap[wide] ** _GAP_KEPT
        lack = np.round(lack, _DIGITS)
        first = np.sort(np.unique(np.column_stack([lack, gap[wide]]), axis=0, return_index=True)[1])
        return self[wide[first[np.argsort(lack[first], kind="stable")[:n]]]]


@dataclass(frozen=True)
class _Grounds(Arrays):
    """Anchors with the changes that may be tried near each, and what these are believed to do."""

    latents: Latents
    start: Rows
    cells: Rows  # the protected values under which rows are asked
    offset: Values  # log-odds from the score under these to the middle
    gap: Values
    n_flips: Values  # found near it
    column: Index  # (n, m) of each change
    value: Values
    steps: Values  # 0 where the change is not one by steps
    effect: Values  # by how much it moved log-odds near this anchor; 0 where it is not known
    unsure: Values  # how far off that may be; NaN where it is not known
    dead: Mask  # it does nothing near this anchor


@dataclass(frozen=True)
class _Footholds(Arrays):
    """Rows that were asked, from which changes are tried."""

    rows: Rows
    ground: Index  # the anchor's
    lack: Values  # log-odds from the edge
    done: Values  # (n, d) by how much the change of each cell has moved log-odds
    tried: Mask  # (n, m)


class Walk:
    """Rows on the way to the edge of a decision, the most promising ones first."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._usual = _Usual(len(schema))
        self._met = KeySet()
        self._grounds: _Grounds | None = None
        self._footholds: _Footholds | None = None

    def add(self, session: Session, anchors: Anchors, rng: np.random.Generator) -> None:
        """Start from the best of these as well."""
        anchors = anchors.best(_NEW_ANCHORS)
        if not len(anchors):
            return
        line = np.arange(len(anchors))
        under = np.asarray((~np.isnan(anchors.scores)).argmax(axis=1))
        column, value, steps = _draw_changes(session, anchors, rng)
        known = 0 if self._grounds is None else len(self._grounds.gap)
        grounds = _Grounds(
            latents=anchors.latents,
            start=anchors.rows,
            cells=self._schema.combinations[under],
            offset=anchors.middle - _log_odds(anchors.scores)[line, under],
            gap=anchors.gap,
            n_flips=np.zeros(len(anchors)),
            column=column,
            value=value,
            steps=steps,
            effect=np.zeros(value.shape),
            unsure=np.full(value.shape, np.nan),
            dead=~_differ(np.take_along_axis(anchors.rows, column, axis=1), value),
        )
        footholds = _Footholds(
            rows=anchors.rows,
            ground=line + known,
            lack=anchors.middle,
            done=np.zeros(anchors.rows.shape),
            tried=np.zeros(value.shape, dtype=bool),
        )
        self._grounds = grounds if self._grounds is None else self._grounds.joined(grounds)
        earlier = self._footholds
        self._footholds = footholds if earlier is None else earlier.joined(footholds)

    def search(self, session: Session, most: float) -> Iterator[tuple[Latents, Checked]]:
        """Rows at the edge with the latents of their anchors, and their verdicts; with about so
        many questions, as far as the budget goes and something is left to try."""
        end = session.watch.questions + most
        at_once = int(np.clip(most / _TURNS, *_AT_ONCE))
        while session.watch.questions < end and self._footholds is not None:
            asked = self._ask(session, at_once)
            if asked is None:
                return
            grounds = self._grounds
            assert grounds is not None
            reach = np.round(np.abs(asked.lack) - _NEAR * grounds.gap[asked.ground], _DIGITS)
            near = asked[reach <= 0]
            rows = complete(self._schema, near.rows)
            fresh = np.flatnonzero(session.unseen(rows))
            if not len(fresh):
                continue
            checked = session.check_kept(rows[fresh]).named("edge")
            of = near.ground[fresh[: len(checked)]]
            np.add.at(grounds.n_flips, of[checked.flips], 1.0)
            if len(checked):
                yield grounds.latents[of], checked
            if len(checked) < len(fresh):
                return

    def _ask(self, session: Session, most: int) -> _Footholds | None:
        """The footholds that the most promising changes lead to, none of them twice; None where
        there is nothing left to try, or no budget."""
        assert self._grounds is not None
        assert self._footholds is not None
        promise, undone = self._look_ahead()
        best = promise.max(axis=1)
        order = np.argsort(-best, kind="stable")
        chosen = order[:most][np.isfinite(best[order[:most]])]
        if not len(chosen):
            return None
        which = promise[chosen].argmax(axis=1)
        self._footholds.tried[chosen, which] = True
        here = self._footholds[chosen]
        grounds, line = self._grounds[here.ground], np.arange(len(chosen))
        column = grounds.column[line, which]
        here.rows[line, column] = grounds.value[line, which]
        asked = complete(self._schema, change(self._schema, here.rows, grounds.cells))
        new = self._find_new(session, complete(self._schema, here.rows), asked)
        scores = session.ask(asked[new])
        if len(new) and not len(scores):
            return None
        new = new[: len(scores)]  # the budget may end inside of them
        here, which, column = here[new], which[new], column[new]
        # What is compared is rounded, because the last digits differ between machines.
        lack = np.round(_log_odds(scores) + grounds.offset[new], _DIGITS)
        did = np.round(lack - here.lack + undone[chosen[new], which], _DIGITS)
        self._learn(here.ground, which, did)
        here.done[np.arange(len(new)), column] = did
        here = replace(here, lack=lack, tried=np.zeros_like(here.tried))
        self._keep(self._footholds[order[:_FOOTHOLDS]].joined(here))
        assert self._footholds is not None
        return self._footholds[len(self._footholds.lack) - len(new) :]

    def _find_new(self, session: Session, rows: Rows, asked: Rows) -> Index:
        """Which rows no walk has asked and no round has checked, of those that keep the rules of
        the table; the first of each key."""
        fresh = session.unseen(rows)
        broken = session.find_broken(asked)
        may = np.flatnonzero(fresh if broken is None else fresh & ~broken)
        apart = distinct(self._schema, rows[may])
        first = np.sort(apart.first[~self._met.contains(apart.keys[apart.first])])
        self._met.add(apart.keys[first])
        return np.asarray(may[first])

    def _look_ahead(self) -> tuple[Values, Values]:
        """(n, m) each, of every change from every foothold: the log of its chance to land on the
        edge, but for a constant, and what the change did that it takes the place of."""
        assert self._grounds is not None
        assert self._footholds is not None
        here = self._footholds
        grounds = self._grounds[here.ground]
        changed = _differ(here.rows, grounds.start)
        again = np.take_along_axis(changed, grounds.column, axis=1)
        may = ~here.tried & ~grounds.dead
        may &= _differ(np.take_along_axis(here.rows, grounds.column, axis=1), grounds.value)
        may &= again | (changed.sum(axis=1) < _MOST_CHANGED)[:, None]
        undone = np.where(again, np.take_along_axis(here.done, grounds.column, axis=1), 0.0)
        usual = self._usual.guess(grounds.column, grounds.steps)
        unsure = np.where(np.isnan(grounds.unsure), usual, grounds.unsure)
        variance = unsure**2 + (_UNLIKE * undone) ** 2 + _LEAST**2
        lack = here.lack[:, None] + grounds.effect - undone
        promise = -0.5 * lack**2 / variance - 0.5 * np.log(variance)
        # Findings near one anchor are much alike, so that each of them makes the next worth less.
        promise += (_GAP_KEPT * np.log(grounds.gap) - np.log1p(grounds.n_flips))[:, None]
        return np.where(may, np.round(promise, _DIGITS), -np.inf), undone

    def _learn(self, ground: Index, which: Index, did: Values) -> None:
        """Note what changes did: they, and other steps of the same number, may do alike."""
        assert self._grounds is not None
        grounds, line = self._grounds, np.arange(len(ground))
        column, steps = grounds.column[ground], grounds.steps[ground]
        mine, taken = column[line, which], steps[line, which]
        self._usual.learn(mine, taken, did)
        alike = (column == mine[:, None]) & (steps != 0) & (taken != 0)[:, None]
        slope = did / np.where(taken != 0, taken, 1.0)
        guess = slope[:, None] * steps
        unlike = np.where(steps * taken[:, None] > 0, _UNLIKE, _UNLIKE_BACK)
        # Several changes near one anchor may be learned of at once, so no line is written whole.
        of, other = np.nonzero(alike)
        grounds.effect[ground[of], other] = guess[of, other]
        grounds.unsure[ground[of], other] = (unlike * np.abs(guess))[of, other]
        grounds.effect[ground, which] = did
        grounds.unsure[ground, which] = _UNLIKE * np.abs(did)
        np.logical_or.at(grounds.dead, (ground, which), np.abs(did) < _NOTHING)

    def _keep(self, footholds: _Footholds) -> None:
        """Keep these footholds, and no anchor that none of them came from."""
        assert self._grounds is not None
        used, ground = np.unique(footholds.ground, return_inverse=True)
        self._grounds = self._grounds[used]
        self._footholds = replace(footholds, ground=ground.reshape(-1))


class _Usual:
    """What a change of each column usually does to log-odds, as walks have measured it."""

    def __init__(self, n: int) -> None:
        self._sum, self._n = np.zeros((2, 2, n))  # of logarithms: of other cells, and of one step

    def learn(self, column: Index, steps: Values, did: Values) -> None:
        """See what changes did."""
        by_steps = (steps != 0).astype(np.intp)
        each = np.maximum(np.abs(did) / np.where(steps != 0, np.abs(steps), 1.0), _NOTHING)
        np.add.at(self._sum, (by_steps, column), np.log(each))
        np.add.at(self._n, (by_steps, column), 1.0)

    def guess(self, column: Index, steps: Values) -> Values:
        """How much changes may do that were not tried."""
        of_all = self._sum.sum(axis=1) + _USUAL_WORTH * _USUAL
        of_all /= self._n.sum(axis=1) + _USUAL_WORTH
        known = (self._sum + _USUAL_WORTH * of_all[:, None]) / (self._n + _USUAL_WORTH)
        one: Values = np.exp(known)[(steps != 0).astype(np.intp), column]
        return _SPREAD * one * np.where(steps != 0, np.abs(steps), 1.0)


def _log_odds(scores: Scores) -> Values:
    bounded = np.clip(round_scores(scores), _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


def _differ(one: Values, other: Values) -> Mask:
    """Which cells differ; missing ones are alike."""
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _draw_changes(
    session: Session, anchors: Anchors, rng: np.random.Generator
) -> tuple[Index, Values, Values]:
    """(n, changes) each: a column, what stands there instead, and how many steps that is; 0 where
    it is not a change by steps."""
    stepped = _step(session.schema, anchors.rows, rng)
    near = _borrow(session, anchors, rng)
    columns, values = (
        np.concatenate(parts, axis=1) for parts in zip(stepped[:2], near, strict=True)
    )
    return columns, values, np.concatenate([stepped[2], np.zeros(near[0].shape)], axis=1)


def _step(schema: Schema, rows: Rows, rng: np.random.Generator) -> tuple[Index, Values, Values]:
    """Steps of numbers, all of them or as many as there may be."""
    ordered = np.array([column.kind in ("numerical", "ordered") for column in schema.columns])
    numbers = np.flatnonzero(movable(schema) & ordered)
    column = np.tile(np.repeat(numbers, len(_OFFSETS)), (len(rows), 1))
    steps = np.tile(_OFFSETS.astype(float), (len(rows), len(numbers)))
    if column.shape[1] > _MOST_STEPS:
        order = rng.random(column.shape).argsort(axis=1)[:, :_MOST_STEPS]
        column, steps = (np.take_along_axis(part, order, axis=1) for part in (column, steps))
    line = np.repeat(np.arange(len(rows)), column.shape[1])
    moved = rows[line]
    moved[np.arange(len(line)), column.ravel()] += (
        steps.ravel() * step_sizes(schema)[column.ravel()]
    )
    moved = snap(schema, moved)
    value = moved[np.arange(len(line)), column.ravel()].reshape(column.shape)
    size = step_sizes(schema)[column]
    left = np.take_along_axis(rows, column, axis=1)
    left = (value - left) / np.where(size > 0, size, 1.0)  # the range may end before so many steps
    return column, value, np.nan_to_num(np.round(left, _DIGITS))


def _borrow(session: Session, anchors: Anchors, rng: np.random.Generator) -> tuple[Index, Values]:
    """Cells of natural neighbours."""
    assert session.generator is not None
    n, width = anchors.latents.shape
    line = np.arange(n * _NEIGHBOURS)
    latents = np.repeat(anchors.latents, _NEIGHBOURS, axis=0)
    drawn = session.generator.sample_latents(n * _NEIGHBOURS, rng)
    at = rng.integers(width, size=n * _NEIGHBOURS)
    latents[line, at] = drawn[line, at]
    near, rows = session.generator.decode(latents), np.repeat(anchors.rows, _NEIGHBOURS, axis=0)
    # A neighbour under the anchor's protected values: other cells may go along with these.
    near = change(session.schema, near, rows[:, session.schema.protected_index])
    differs = _differ(near, rows) & movable(session.schema)
    place = np.where(differs, rng.random(near.shape), -1.0).argmax(axis=1)
    # A neighbour that is the same row brings no change, whatever its column.
    place = np.where(differs.any(axis=1), place, movable(session.schema).argmax())
    value = np.where(differs.any(axis=1), near[line, place], rows[line, place])
    return place.reshape(n, -1), value.reshape(n, -1)
