"""Walks to the edge of a decision: how `guided` finds flips where they are rare.

Where protected values matter little, a row flips only if its score lies very near the edge, and no
learner knows scores so well. But they can be measured. A walk starts at a natural row (the
*anchor*) that lacks little to a flip, in parts of the gap between its scores under the protected
values. It asks rows that differ from the anchor in one cell: what each change does to the score.
Most changes are small steps of numbers, the others are cells of natural neighbours. Then many
combinations of changes are drawn, what they do is added up, and those are checked that most likely
come to lie on the edge: where the sum says so, and little has to be changed, because changes do
together what they do alone only as far as they are small. Where some of them flip, more of the
same anchor are checked.

A model that tells labels alone has no scores that could be added up: see `_lines.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule, round_scores
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.partners import change, complete
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.table.steps import movable, step_sizes
from limi.types import Index, Latents, Rows, Scores

__all__ = ["Anchors", "questions_each", "walk"]

_CHANGES = 48  # that are measured of each anchor
_SMALL = 32  # of these, the steps of numbers
_OFFSETS = np.array([-8, -5, -3, -2, -1, 1, 2, 3, 5, 8])
_COMBINATIONS = 8_000  # drawn for each anchor
_SIZES = np.array([1, 2, 2, 3, 3, 3, 3, 3])  # changes in a combination; there are few single ones
_AT_ONCE = int(_SIZES.max())
_UNSURE = 0.05  # of what changes do alone, the part that they may do otherwise together
_LEAST_UNSURE = 0.001
_BEST = 128  # combinations of an anchor that may be checked ...
_CHECKED = 8  # ... so many at a time, for as long as some flip
_SMALLEST = 1e-6  # score that is told from 0
_DIGITS = 6  # of log-odds that are compared: the last ones are the machine's

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Anchors:
    """Natural rows with their latents, and their scores under protected values."""

    latents: Latents
    rows: Rows
    scores: Scores  # (n, K): NaN where one was not asked

    @staticmethod
    def of(latents: Latents, checked: Checked, decision: Rule) -> Anchors:
        """The rows that were checked and do not flip."""
        steady = np.flatnonzero(~checked.flips)
        scores = decision.as_score(checked.scores[steady])
        return Anchors(latents[steady], checked.rows[steady], scores)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> Anchors:
        return Anchors(self.latents[which], self.rows[which], self.scores[which])

    def joined(self, other: Anchors) -> Anchors:
        """These, and then the others."""
        return Anchors(
            np.concatenate([self.latents, other.latents]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.scores, other.scores]),
        )

    def best(self, n: int) -> Anchors:
        """The n rows that lack least to a flip, in parts of their gap; of rows with the same scores
        the first, and none with the same score under all protected values."""
        odds = _log_odds(self.scores)
        gap = np.round(np.nanmax(odds, axis=1) - np.nanmin(odds, axis=1), _DIGITS)
        wide = np.flatnonzero(gap > 0)
        lack = np.round(np.abs(_middle(self.scores[wide])) / gap[wide], _DIGITS)
        first = np.sort(np.unique(np.column_stack([lack, gap[wide]]), axis=0, return_index=True)[1])
        return self[wide[first[np.argsort(lack[first], kind="stable")[:n]]]]

    def without(self, others: Anchors) -> Anchors:
        """These, but for some of them."""
        known = (self.latents[:, None] == others.latents).all(axis=2).any(axis=1)
        return self[np.flatnonzero(~known)]


def _log_odds(scores: Scores) -> Values:
    bounded = np.clip(round_scores(scores), _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


def _middle(scores: Scores) -> Values:
    """How far from the edge the middle of scores (n, K) lies, as log-odds."""
    odds = _log_odds(scores)
    return np.asarray((np.nanmin(odds, axis=1) + np.nanmax(odds, axis=1)) / 2)


def questions_each(schema: Schema) -> int:
    """Questions that a walk from one anchor asks at least."""
    return _CHANGES + _CHECKED * len(schema.combinations)


def walk(
    session: Session, anchors: Anchors, rng: np.random.Generator
) -> Iterator[tuple[Latents, Checked]]:
    """Rows near the edge with the latents of their anchors, and their verdicts, as far as the
    budget goes."""
    asked_under = np.asarray((~np.isnan(anchors.scores)).argmax(axis=1))
    cells = session.schema.combinations[asked_under]
    start = change(session.schema, anchors.rows, cells)
    place, value = _draw_changes(session, anchors, start, rng)
    changed = np.repeat(start, _CHANGES, axis=0)
    changed[np.arange(len(changed)), place.ravel()] = value.ravel()
    scores = session.ask(changed)
    if len(scores) < len(changed):
        return
    own = _log_odds(anchors.scores[np.arange(len(anchors)), asked_under])
    effects = _log_odds(scores).reshape(place.shape) - own[:, None]
    rows = _combine(anchors, place, value, effects, rng)
    of = np.repeat(np.arange(len(anchors)), rows.shape[1])
    rows = complete(session.schema, rows.reshape(-1, rows.shape[2]))
    fresh = np.flatnonzero(session.unseen(rows))
    while len(fresh):
        now = fresh[_count_before(of[fresh]) < _CHECKED]
        checked = session.check_kept(rows[now]).named("edge")
        if not len(checked):
            return
        now = now[: len(checked)]
        yield anchors.latents[of[now]], checked
        fresh = np.setdiff1d(fresh, now)
        fresh = fresh[np.isin(of[fresh], of[now[checked.flips]])]


def _draw_changes(
    session: Session, anchors: Anchors, start: Rows, rng: np.random.Generator
) -> tuple[Index, Values]:
    """(n, changes) each: a column, and what stands there instead."""
    assert session.generator is not None
    schema = session.schema
    n, width = anchors.latents.shape
    line = np.arange(n * _CHANGES)
    latents = np.repeat(anchors.latents, _CHANGES, axis=0)
    drawn = session.generator.sample_latents(n * _CHANGES, rng)
    at = rng.integers(width, size=n * _CHANGES)
    latents[line, at] = drawn[line, at]
    near, rows = session.generator.decode(latents), np.repeat(start, _CHANGES, axis=0)
    differs = (near != rows) & movable(schema)
    place = np.where(differs, rng.random(near.shape), -1.0).argmax(axis=1)
    # A neighbour that is the same row changes nothing, wherever that is measured.
    same = ~differs.any(axis=1)
    place = np.where(same, movable(schema).argmax(), place)
    near = np.where(same[:, None], rows, near)
    stepped, small = _step(schema, rows, rng)
    if stepped is not None:
        is_small = np.tile(np.arange(_CHANGES) < _SMALL, n)
        place = np.where(is_small, small, place)
        near = np.where(is_small[:, None], stepped, near)
    return place.reshape(n, _CHANGES), near[line, place].reshape(n, _CHANGES)


def _step(schema: Schema, rows: Rows, rng: np.random.Generator) -> tuple[Rows | None, Index]:
    """Rows after a few steps of one number each, and of which; None where there are no numbers."""
    ordered = np.array([column.kind in ("numerical", "ordered") for column in schema.columns])
    numbers = np.flatnonzero(movable(schema) & ordered)
    if not len(numbers):
        return None, numbers
    column = numbers[rng.integers(len(numbers), size=len(rows))]
    stepped = rows.copy()
    steps = _OFFSETS[rng.integers(len(_OFFSETS), size=len(rows))]
    stepped[np.arange(len(rows)), column] += steps * step_sizes(schema)[column]
    return snap(schema, stepped), column


def _combine(
    anchors: Anchors, place: Index, value: Values, effects: Values, rng: np.random.Generator
) -> Rows:
    """(n, best, d): each anchor with the changes that most likely bring it onto the edge."""
    n, line = len(anchors), np.arange(len(anchors))[:, None]
    drawn = rng.integers(_CHANGES, size=(_AT_ONCE, n, _COMBINATIONS))
    size = _SIZES[rng.integers(len(_SIZES), size=(n, _COMBINATIONS))]
    used = np.arange(_AT_ONCE)[:, None, None] < size
    # A column is changed once: a later change of the same one is left out.
    for later in range(1, _AT_ONCE):
        for earlier in range(later):
            used[later] &= place[line, drawn[later]] != place[line, drawn[earlier]]
    moved = np.where(used, effects[line, drawn], 0.0)
    expected = _middle(anchors.scores)[:, None] + moved.sum(axis=0)
    unsure = _UNSURE * np.sqrt((moved**2).sum(axis=0)) + _LEAST_UNSURE
    likely = np.round(-0.5 * (expected / unsure) ** 2 - np.log(unsure), _DIGITS)
    best = np.argsort(-likely, axis=1, kind="stable")[:, :_BEST]
    rows = np.repeat(anchors.rows[:, None], best.shape[1], axis=1)
    for turn in range(_AT_ONCE):
        change_of = drawn[turn][line, best]
        at = place[line, change_of][..., None]
        kept = np.take_along_axis(rows, at, axis=2)
        new = np.where(used[turn][line, best], value[line, change_of], kept[..., 0])
        np.put_along_axis(rows, at, new[..., None], axis=2)
    return rows


def _count_before(groups: Index) -> Index:
    """Of members sorted by their groups, how many of the same group come before each."""
    _, first, n = np.unique(groups, return_index=True, return_counts=True)
    return np.asarray(np.arange(len(groups)) - np.repeat(first, n))
