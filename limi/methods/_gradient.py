"""What the gradient methods share: where gradients come from, and walks in lock-step.

A walk explores (rows move towards the boundary until they flip) or wanders (flipping rows change
one column at a time). All walks of a phase take their steps together, one batch a step.

Moves are counted in steps of a column (`limi.table.steps`). A missing cell stays missing, and
protected columns never move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.errors import InvalidInput, MissingCapability
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import snap
from limi.table.schema import Schema
from limi.table.steps import movable, move, step_sizes
from limi.types import Mask, Rows, Scores

__all__ = [
    "Estimated",
    "Heading",
    "Kind",
    "Moves",
    "Restart",
    "Slopes",
    "Twofold",
    "Wandering",
    "climb",
    "confidence",
    "downhill",
    "of_both",
    "require",
    "require_sizes",
    "slopes_of",
    "wander",
]

Kind = Literal["auto", "exact", "estimated"]
"""Whose gradients: the target's own where it has some, else estimates; its own; estimates."""

Restart = Literal["metropolis", "reset_to_seed", "never", "stay"]
"""Where a walk goes on from a row that does not flip: there, if the row before did not flip either
or else by a chance of 1/e; at its seed; there; or at the row before, if that one flipped."""

Moves: TypeAlias = NDArray[np.float64]
"""(n, d): whole numbers of steps."""

Heading: TypeAlias = Callable[[Checked, Mask], Moves]
"""The moves of rows that go on; the mask says which of the rows it was given last they are."""

Twofold: TypeAlias = tuple[Rows, Rows]
"""Gradients at rows and at their partners."""

_TINY = 1e-12  # the smallest score that a loss is taken of
_EPSILON = 1e-6  # keeps the reciprocal of a vanishing gradient finite; EIDIG's


class Slopes(Protocol):
    """Gradients over rows, exact or estimated."""

    def loss_gradient(self, rows: Rows) -> Rows:
        """Derivative of -log(score of the decision taken) by each code."""
        ...

    def output_gradient(self, rows: Rows) -> Rows:
        """Derivative of the score by each code."""
        ...


def slopes_of(session: Session, kind: Kind) -> Slopes:
    """The gradients that a method asked for; MissingCapability where only estimates would do."""
    if kind != "estimated" and session.gradients is not None:
        return session.gradients
    if kind == "exact":
        raise MissingCapability(
            "gradient='exact' needs a model with gradients, which this one lacks; give a torch "
            "module, or use gradient='estimated'"
        )
    if kind == "auto":
        note = "the model has no gradients, so they were estimated from its scores"
        if note not in session.notes:
            session.notes.append(note)
    return Estimated(session)


def require_sizes(method: object) -> None:
    """InvalidInput where a size that all gradient methods have makes no sense."""
    steps = ("explore_steps", "exploit_steps")  # a phase may have none
    others = ("n_seeds", "clusters", "explore_step", "exploit_step")
    for least, names in ((0, steps), (1, others)):
        require(least, **{name: getattr(method, name) for name in names})


def require(least: int, **counts: int) -> None:
    """InvalidInput where a count is below the least."""
    for name, count in counts.items():
        if count < least:
            raise InvalidInput(f"{name} is {count}; it must be at least {least}")


@dataclass(frozen=True, eq=False)
class Estimated:
    """Gradients by differences between a row and its neighbours in each free column.

    A neighbour lies `size` steps up, or down where that would leave the range, so it is a row of
    the domain: categories stay categories, and a tree shows the jump that a move would meet. Asks
    for one row and one neighbour a free column. Where the budget ends, what is missing counts as
    flat; the next check then ends the run.
    """

    session: Session
    size: float = 1.0  # h, in steps; at least one whole step on a grid

    def loss_gradient(self, rows: Rows) -> Rows:
        """Differences of -log(score of the decision taken at the row itself)."""

        def loss(scores: Scores) -> Scores:
            favorable = favors(scores[:, :1])
            taken: Scores = -np.log(np.maximum(np.where(favorable, scores, 1 - scores), _TINY))
            return taken

        return self._differences(rows, loss)

    def output_gradient(self, rows: Rows) -> Rows:
        """Differences of the score."""
        return self._differences(rows, lambda scores: scores)

    def _differences(self, rows: Rows, reading: Callable[[Scores], Scores]) -> Rows:
        columns = np.flatnonzero(movable(self.session.schema))
        width = len(columns) + 1
        slope = np.zeros_like(rows)
        size = max(1, self.session.max_batch // width)
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            there = self._neighbours(part)[:, columns]
            asked = np.repeat(part[:, None, :], width, axis=1)
            asked[:, np.arange(1, width), columns] = there
            scores = self.session.ask(asked.reshape(-1, rows.shape[1]))
            done = len(scores) // width
            scores = reading(scores[: done * width].reshape(done, width))
            distance = (there - part[:, columns])[:done]
            rise = scores[:, 1:] - scores[:, :1]
            known = np.isfinite(distance) & (distance != 0)
            slope[start : start + done, columns] = np.divide(
                rise, distance, out=np.zeros_like(rise), where=known
            )
        return slope

    def _neighbours(self, rows: Rows) -> Rows:
        """(n, d): each cell's neighbour in its own column."""
        schema = self.session.schema
        grid = np.maximum(1.0, np.rint(self.size)) * schema.step
        distance = np.where(schema.step > 0, grid, self.size * step_sizes(schema))
        up, down = rows + distance, rows - distance
        # Where neither fits, the range is narrower than the distance: its other end will do.
        far = np.where(rows - schema.low > schema.high - rows, schema.low, schema.high)
        below = np.where(down >= schema.low - 1e-9, down, far)
        there = np.where(up <= schema.high + 1e-9, up, below)
        return snap(schema, np.where(np.isnan(rows), rows, there))


def of_both(slope: Callable[[Rows], Rows]) -> Callable[[Checked], Twofold]:
    """Gradients at rows and at their partners, from those at rows."""
    return lambda here: (slope(here.rows), slope(here.partner))


def confidence(slopes: Slopes, rows: Rows, score: Scores) -> Rows:
    """Derivative of the score of the decision taken; scores are those that steer a search."""
    return np.where(favors(score), 1.0, -1.0)[:, None] * slopes.output_gradient(rows)


def climb(
    session: Session,
    rows: Rows,
    steps: int,
    heading: Heading,
) -> Iterator[Checked]:
    """Move rows until they flip, at most `steps` times."""
    for step in range(steps + 1):
        checked = session.check(rows, origin="explore")
        yield checked
        going = ~checked.flips
        if step == steps or not going.any():
            return
        here = checked[going]
        rows = move(session.schema, here.rows, heading(here, going))


def downhill(session: Session, slopes: Slopes, decay: float, size: int) -> Heading:
    """Moves against the confidence, where a row's and its partner's momentum agree: EIDIG's."""
    memory: list[Rows] = []

    def heading(here: Checked, going: Mask) -> Moves:
        as_score = session.decision.as_score
        own = confidence(slopes, here.rows, as_score(here.score))
        other = confidence(slopes, here.partner, as_score(here.partner_score))
        if memory:
            own += decay * memory[0][going]
            other += decay * memory[1][going]
        memory[:] = own, other
        agreed = np.where(np.sign(own) == np.sign(other), np.sign(own), 0.0)
        return -size * np.where(movable(session.schema), agreed, 0.0)

    return heading


@dataclass(frozen=True, kw_only=True)
class Wandering:
    """How walks around seeds go on."""

    steps: int
    size: int = 1
    restart: Restart = "metropolis"
    update_every: int | None = 1  # moves after which gradients are read again; None: never
    decay: float = 0.0  # momentum
    directed: bool = False  # towards the sum of both gradients; otherwise either way at random


def wander(
    session: Session,
    seeds: Checked,
    rng: np.random.Generator,
    pull: Callable[[Checked], Twofold],
    how: Wandering,
) -> Iterator[Checked]:
    """Change one column at a time around flipping rows, preferring those that matter least.

    A column's chance is inverse to the gradient's size there: |own| + |partner's|, or the size of
    their sum where walks are directed.
    """
    if not len(seeds):
        return
    here = seeds
    slopes = first = _Momentum(pull(seeds), how)
    weights = seed_weights = first.weights(session.schema)
    age = np.zeros(len(seeds), dtype=np.int64)
    for _ in range(how.steps):
        due = age >= (how.update_every or np.inf)
        if due.any():
            slopes = slopes.after(due, pull(here[due]))
            weights = np.where(due[:, None], slopes.weights(session.schema), weights)
            age[due] = 0
        age += 1
        turn = slopes.directions if how.directed else None
        rows = _nudge(session.schema, here.rows, weights, turn, how.size, rng)
        checked = session.check(rows, origin="exploit")
        yield checked
        here, back = _settle(how.restart, here, checked, seeds, rng)
        if back.any():
            weights = np.where(back[:, None], seed_weights, weights)
            slopes = slopes.where(~back, first)
            age[back] = 0


@dataclass(frozen=True, eq=False)
class _Momentum:
    """Gradients of walks and of their partners, with some memory of earlier ones."""

    pair: Twofold
    how: Wandering

    def after(self, due: Mask, pair: Twofold) -> _Momentum:
        """The same once the walks that are due have read theirs again."""
        fresh = []
        for old, new in zip(self.pair, pair, strict=True):
            slope = old.copy()
            slope[due] = self.how.decay * old[due] + new
            fresh.append(slope)
        return _Momentum((fresh[0], fresh[1]), self.how)

    def where(self, mask: Mask, otherwise: _Momentum) -> _Momentum:
        """These where the mask is true, the others elsewhere."""
        own, other = (
            np.where(mask[:, None], mine, theirs)
            for mine, theirs in zip(self.pair, otherwise.pair, strict=True)
        )
        return _Momentum((own, other), self.how)

    @property
    def directions(self) -> Moves:
        """Where the sum of both gradients points."""
        return np.sign(self.pair[0] + self.pair[1])

    def weights(self, schema: Schema) -> Rows:
        """Chances of columns, not normalised; gradients count by what one step changes."""
        own, other = self.pair
        size = np.abs(own + other) if self.how.directed else np.abs(own) + np.abs(other)
        return np.where(movable(schema), 1 / (size * step_sizes(schema) + _EPSILON), 0.0)


def _nudge(
    schema: Schema,
    rows: Rows,
    weights: Rows,
    directions: Moves | None,
    size: int,
    rng: np.random.Generator,
) -> Rows:
    """Rows with one column moved, drawn by the weights."""
    line = np.arange(len(rows))
    total = np.cumsum(np.where(np.isnan(rows), 0.0, weights), axis=1)
    # Rounding must not push a draw past the last column that has a weight.
    draw = np.minimum(rng.random(len(rows)) * total[:, -1], np.nextafter(total[:, -1], 0.0))
    column = np.minimum((total <= draw[:, None]).sum(axis=1), rows.shape[1] - 1)
    turn = np.where(rng.random(len(rows)) < 0.5, -1.0, 1.0)
    if directions is not None:
        towards = directions[line, column]
        turn = np.where(towards != 0, towards, turn)
    moves = np.zeros_like(rows)
    # A row whose free cells are all missing has no weight anywhere and stays as it is.
    moves[line, column] = np.where(total[:, -1] > 0, size * turn, 0.0)
    return move(schema, rows, moves)


def _settle(
    restart: Restart, here: Checked, checked: Checked, seeds: Checked, rng: np.random.Generator
) -> tuple[Checked, Mask]:
    """Where walks go on from, and which of them are back at their seed."""
    nowhere = np.zeros(len(checked), dtype=bool)
    if restart == "never":
        return checked, nowhere
    if restart == "reset_to_seed":
        return checked.where(checked.flips, otherwise=seeds), ~checked.flips
    accepted = checked.flips | ~here.flips
    if restart == "metropolis":
        # The energy is 0 for a flip and 1 otherwise, the temperature 1.
        accepted |= rng.random(len(checked)) < np.exp(-1.0)
    return checked.where(accepted, otherwise=here), nowhere
