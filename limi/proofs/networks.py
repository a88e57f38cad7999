"""Small networks of linear layers and ReLUs: bounds by linear relaxation, and cuts; no solver.

A box of rows goes through the layers as linear bounds in the inputs (CROWN: Zhang et al., Efficient
Neural Network Robustness Certification with General Activation Functions, 2018). The bounds of a
row and of its partner are linear in the same columns, so that their weighted difference is bounded
at a corner of the box; a flip is refused as for trees (`limi.trees.bounds`). Boxes that stay open
are cut in two where the bounds lean most; a box of few rows is put to the model, row by row.

Rounding: a product of n terms in float32 is off by at most g(n + 2) times the sum of their sizes
(`limi.trees.ensemble`). What one layer is off by reaches the next ones through their weights and
through ReLUs that are on; where one may be on or off, by anything between. So every box has a slack
of its own, which is added to the bounds of each layer before the next one is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from limi.decisions import EDGE, Favorable, favors, opposes
from limi.errors import BadModel, InvalidInput
from limi.models._base import WithModule
from limi.models.target import Target
from limi.proofs.grids import codes_between, combine, count_between
from limi.proofs.near import Near
from limi.proofs.people import People, Stage
from limi.proofs.question import make_partners, part_people
from limi.table.rows import snap
from limi.trees.ensemble import SINGLE
from limi.types import Index, Rows

__all__ = ["Network", "NetworkProof", "find_network"]

Floats = NDArray[np.float64]
Layers = tuple[tuple[Floats, Floats], ...]

_WEIGHTS = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)
_FEW_ROWS = 32  # of a box that is put to the model whole
_BATCH = 512  # boxes that are bounded together


@dataclass(frozen=True, eq=False)
class Network:
    """Layers (units x inputs) whose last gives one number, above 0 favorable."""

    target: Target
    layers: Layers
    edge: float

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return f"network of {'-'.join(str(len(bias)) for _, bias in self.layers[:-1])} units"

    def inputs(self, rows: Rows) -> Floats:
        """The numbers that the network is given."""
        return np.asarray(self.target.present(rows), dtype=np.float64)

    def margins(self, numbers: Floats) -> Floats:
        """(n,): what it gives, less the edge."""
        here = numbers
        for place, (weight, bias) in enumerate(self.layers):
            here = (np.maximum(here, 0.0) if place else here) @ weight.T + bias
        return here[:, 0]

    def widest(self, gap: Any) -> Any:
        """How far two scores can be apart at most, if the margins are so far apart."""
        rule = self.target.rule
        assert isinstance(rule, Favorable)
        gap = np.asarray(gap)
        told = np.where(gap > 0, 2 * expit(gap / 2) - 1 + 4 * EDGE, 0.0)
        return rule.widen(np.minimum(told, 1.0))

    def conform(self, rows: Rows) -> float:
        """The largest difference to the model's scores; BadModel where it decides otherwise."""
        numbers = self.inputs(rows)
        margins, theirs = self.margins(numbers), self.target.score(rows)
        slack = self.bound(numbers, numbers).slack
        clear = np.abs(margins) > slack
        wrong = clear & ((favors(theirs) & (margins < 0)) | (opposes(theirs) & (margins > 0)))
        rule = self.target.rule
        assert isinstance(rule, Favorable)
        apart = np.abs(rule.move(expit(margins + self.edge)) - theirs)
        # A network on unscaled columns adds up large numbers, whose last digits are many.
        wrong |= clear & (apart > rule.widen(1e-5 + slack))
        if wrong.any():
            raise BadModel(
                f"the layers of this network were read, but on {int(wrong.sum())} of {len(rows)} "
                "rows they give a different answer from the model, so nothing can be proven about "
                "it"
            )
        return float(apart.max(initial=0.0))

    def bound(self, low: Floats, high: Floats) -> Bounds:
        """Linear bounds of the margin in boxes of numbers."""
        before: list[tuple[Floats, Floats]] = []  # of what goes into each ReLU
        rounded: list[Floats] = []  # what each layer's own sums may be off by
        lows, highs = low, high
        for place, (weight, bias) in enumerate(self.layers):
            size = np.maximum(np.abs(lows), np.abs(highs))
            n = weight.shape[1] + 2
            growth = n * SINGLE / (1 - n * SINGLE)
            off = growth * (size @ np.abs(weight).T + np.abs(bias))
            if not place:  # numbers that float32 does not hold are rounded before the first layer
                off += SINGLE * size @ np.abs(weight).T
            rounded.append(off * (1 + 1e-6))
            error = self._carry(place, before, rounded)
            found = self._backward(place, low, high, before)
            if place == len(self.layers) - 1:
                return Bounds(*found, low, high, slack=error[:, 0])
            below, above = (
                _least(found[0], found[1], low, high),
                -_least(-found[2], -found[3], low, high),
            )
            # Whichever is tighter: the plain interval or the linear bound.
            middle, half = (lows + highs) / 2, (highs - lows) / 2
            plain, wide = middle @ weight.T + bias, half @ np.abs(weight).T
            below, above = np.maximum(below, plain - wide), np.minimum(above, plain + wide)
            # As the library's own sums have it, so that both turn the same ReLUs on.
            before.append((below - error, np.maximum(above, below) + error))
            lows, highs = (np.maximum(end, 0.0) for end in before[-1])
        raise AssertionError("a network has layers")

    def _carry(
        self, place: int, before: list[tuple[Floats, Floats]], rounded: list[Floats]
    ) -> Floats:
        """(n, units): how far a layer may be off, by its own rounding and that of all before it.

        The way from an error to this layer has slopes that lie between two ends: those of the
        ReLUs on it, each 0, 1, or anything between where it may be on or off.
        """
        weight, _ = self.layers[place]
        n = len(rounded[0])
        centre = np.broadcast_to(weight, (n, *weight.shape))
        radius = np.zeros_like(centre)
        total = rounded[place].copy()
        for layer in range(place - 1, -1, -1):
            below, above = before[layer]
            least, most = (below >= 0).astype(float), (above > 0).astype(float)
            middle, half = (least + most)[:, None] / 2, (most - least)[:, None] / 2
            radius = radius * (middle + half) + np.abs(centre) * half
            centre = centre * middle
            total += np.einsum("nij,nj->ni", np.abs(centre) + radius, rounded[layer])
            inner, _ = self.layers[layer]
            centre, radius = centre @ inner, radius @ np.abs(inner)
        return total

    def _backward(
        self, place: int, low: Floats, high: Floats, before: list[tuple[Floats, Floats]]
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Slopes (n, units, d) and offsets (n, units) from below and from above."""
        weight, bias = self.layers[place]
        n = len(low)
        slopes = [np.broadcast_to(weight, (n, *weight.shape))] * 2
        offsets = [np.broadcast_to(bias, (n, len(bias)))] * 2
        for layer in range(place - 1, -1, -1):
            below, above = before[layer]
            open_ = (below < 0) & (above > 0)
            span = np.where(open_, above - below, 1.0)
            rise = np.where(open_, above / span, (below >= 0).astype(float))
            start = np.where(open_, -rise * below, 0.0)
            flat = np.where(open_, (above > -below).astype(float), rise)
            inner, shift = self.layers[layer]
            for side, sign in ((0, -1.0), (1, 1.0)):
                slope = slopes[side]
                up, down = np.maximum(sign * slope, 0.0), np.minimum(sign * slope, 0.0)
                through = sign * (up * rise[:, None] + down * flat[:, None])
                moved = sign * np.einsum("nij,nj->ni", up, start)
                offsets[side] = offsets[side] + moved + through @ shift
                slopes[side] = through @ inner
        return slopes[0], offsets[0], slopes[1], offsets[1]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Linear bounds of one number in boxes: from below and from above."""

    slope_low: Floats  # (n, 1, d)
    offset_low: Floats  # (n, 1)
    slope_high: Floats
    offset_high: Floats
    low: Floats
    high: Floats
    slack: Floats  # (n,): what rounding leaves open

    @property
    def least(self) -> Floats:
        """(n,)."""
        return _least(self.slope_low, self.offset_low, self.low, self.high)[:, 0]

    @property
    def most(self) -> Floats:
        """(n,)."""
        return -_least(-self.slope_high, -self.offset_high, self.low, self.high)[:, 0]


def _least(slope: Floats, offset: Floats, low: Floats, high: Floats) -> Floats:
    """(n, units): the smallest value of linear functions in boxes."""
    up, down = np.maximum(slope, 0.0), np.minimum(slope, 0.0)
    found: Floats = offset + np.einsum("nij,nj->ni", up, low) + np.einsum("nij,nj->ni", down, high)
    return found


def _most_apart(weight: float, first: Bounds, second: Bounds, shared: NDArray[np.bool_]) -> Floats:
    """(n,): the largest of weight * first - (1 - weight) * second, in columns that both share."""
    slope = weight * first.slope_high[:, 0] - (1 - weight) * second.slope_low[:, 0]
    rest = weight * first.offset_high[:, 0] - (1 - weight) * second.offset_low[:, 0]
    own = weight * first.slope_high[:, 0] * first.low
    theirs = (1 - weight) * second.slope_low[:, 0] * second.low
    rest = rest + np.where(shared, 0.0, own - theirs).sum(axis=1)
    corner = np.where(slope > 0, first.high, first.low)
    found: Floats = rest + np.where(shared, slope * corner, 0.0).sum(axis=1)
    return found


def find_network(target: Target) -> Network | None:
    """The layers of a target that is a plain network; None where it is not."""
    model, rule = target.model, target.rule
    if not isinstance(model, WithModule) or model.module is None or model.takes != "matrix":
        return None
    if not isinstance(rule, Favorable):
        return None
    parts = list(model.module.children()) if hasattr(model.module, "children") else []
    names = [type(part).__name__ for part in parts]
    hidden = names[:-1] if names[-1:] == ["Linear"] else []
    if not hidden or hidden != ["Linear", "ReLU"] * (len(hidden) // 2):
        return None
    if type(model.module).__name__ != "Sequential":
        return None
    outputs = model.outputs
    if outputs.kind == "probability" or not isinstance(outputs.favorable_column, int):
        return None
    layers = [
        (part.weight.detach().double().numpy(), part.bias.detach().double().numpy())
        for part in parts
        if type(part).__name__ == "Linear" and part.bias is not None
    ]
    weight, bias = layers[-1]
    if len(layers) != len(parts) - len(parts) // 2 or len(bias) not in (1, 2):
        return None
    if len(bias) == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    sign = 1.0 if outputs.favorable_column == 1 else -1.0
    edge = rule.log_odds
    last = (sign * weight, sign * bias - edge)
    return Network(target, (*layers[:-1], last), edge)


class NetworkProof:
    """Decides people of a network as far as bounds and cuts do."""

    def __init__(self, network: Network, near: Near, people: People) -> None:
        self._network, self._people = network, people
        self._schema = people.schema
        self._person, self._centre, low, high = part_people(self._schema, near, people.rows)
        self._partners, self._there = make_partners(self._schema, near, self._centre)
        free = np.isin(np.arange(len(self._schema)), self._schema.moving_index, invert=True)
        self._shared = free[: len(network.target.shown.schema)]
        for j in np.flatnonzero(near.reach > 0):
            numbers = self._schema.columns[j].level_numbers
            if self._schema.columns[j].kind != "numerical" and (
                numbers is None or (np.diff(numbers) < 0).any()
            ):
                raise InvalidInput(
                    f"near lets {self._schema.names[j]!r} move, whose values are not in numerical "
                    "order, so a network cannot be bounded between them"
                )
        gone = np.isnan(low) | ~free
        self._low = np.where(gone, self._centre, low)
        self._high = np.where(gone, self._centre, high)
        self.spent = np.zeros(len(people.rows), dtype=np.int64)
        self._listed = np.zeros(len(people.rows), dtype=bool)  # who had a box put to the model
        self.slack = 0.0

    def run(self, most: int, enough: Callable[[], bool], on_round: Callable[[], None]) -> None:
        """Bound and cut until everybody is decided or has had so many boxes."""
        people, person = self._people, self._person
        there = self._there.any(axis=1)
        people.prove_alone(person[there])
        part, low, high = np.flatnonzero(there), self._low[there], self._high[there]
        people.gap[:] = 0.0
        waits = np.zeros(len(self._person), dtype=bool)  # boxes that were never bounded
        waits[part] = True
        stage, unseen = Stage.BOUNDS, len(part)
        # Boxes that were given up keep their person open.
        left = np.zeros(len(people.rows), dtype=bool)
        while len(part) and not enough():
            now, later = np.arange(min(_BATCH, len(part))), np.arange(_BATCH, len(part))
            new = self._look(part[now], low[now], high[now], first=stage == Stage.BOUNDS)
            waits[part[now]] = False
            part, low, high = (
                np.concatenate([old[later], made])
                for old, made in zip((part, low, high), new, strict=True)
            )
            keeps = people.is_open[person[part]] | waits[part]  # each is bounded once
            gives_up = keeps & ~waits[part] & (self.spent[person[part]] >= most)
            left[person[part[gives_up]]] = True
            keeps &= ~gives_up
            part, low, high = part[keeps], low[keeps], high[keeps]
            busy = left.copy()
            busy[person[part]] = True
            done = np.flatnonzero(people.is_open & ~busy)
            people.prove(done, stage)
            people.stage[done[self._listed[done]]] = Stage.SPLITTING
            unseen -= len(now)
            stage = Stage.BOUNDS if unseen > 0 else Stage.SPLITTING
            on_round()
        people.gap[person[waits]] = np.inf  # nothing is known of how far scores are apart there

    def _look(self, part: Index, low: Rows, high: Rows, first: bool) -> tuple[Index, Rows, Rows]:
        """Bound boxes; halves of those that stay open."""
        np.add.at(self.spent, self._person[part], 1)
        is_open, lean = self._bound(part, low, high, first)
        index = np.flatnonzero(is_open)
        part, low, high, lean = part[index], low[index], high[index], lean[index]
        self._try_corners(part, low, high, lean)
        few = np.prod(count_between(low, high, self._schema.step), axis=1) <= _FEW_ROWS
        for at in np.flatnonzero(few & self._people.is_open[self._person[part]]):
            rows = self._enumerate(int(part[at]), low[at], high[at])
            who = np.full(len(rows), self._person[part[at]])
            self._listed[self._person[part[at]]] = True
            self._people.replay(who, rows, Stage.SPLITTING)
        part, low, high, lean = part[~few], low[~few], high[~few], lean[~few]
        return self._cut(part, low, high, lean)

    def _numbers(self, rows: Rows) -> Floats:
        return self._network.inputs(rows)

    def _bound(
        self, part: Index, low: Rows, high: Rows, first: bool
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Which boxes may hold a flip, and how much each column matters."""
        mine = self._network.bound(*self._ends(low, high))
        is_open = np.zeros(len(part), dtype=bool)
        lean = np.abs(mine.slope_high[:, 0]) + np.abs(mine.slope_low[:, 0])
        self.slack = max(self.slack, float(mine.slack.max(initial=0.0)))
        for number in range(self._there.shape[1]):
            there = self._there[part, number]
            ends = []
            for end in (low, high):
                partner = end.copy()
                moving = self._schema.moving_index
                partner[:, moving] = self._partners[part, number][:, moving]
                ends.append(partner)
            theirs = self._network.bound(*self._ends(*ends))
            slack = np.maximum(mine.slack, theirs.slack)
            fall = (mine.most >= -slack) & (theirs.least <= slack)
            rise = (theirs.most >= -slack) & (mine.least <= slack)
            for weight in _WEIGHTS:
                fall &= _most_apart(weight, mine, theirs, self._shared) >= -slack
                rise &= _most_apart(weight, theirs, mine, self._shared) >= -slack
            is_open |= (fall | rise) & there
            lean = lean + np.abs(theirs.slope_high[:, 0]) * there[:, None]
            if first:
                gap = 2 * np.maximum(
                    _most_apart(0.5, mine, theirs, self._shared),
                    _most_apart(0.5, theirs, mine, self._shared),
                )
                np.maximum.at(
                    self._people.gap, self._person[part], np.where(there, gap + 2 * slack, 0.0)
                )
        return is_open, lean

    def _ends(self, low: Rows, high: Rows) -> tuple[Floats, Floats]:
        """Numbers between which the inputs of boxes lie."""
        first, last = self._numbers(low), self._numbers(high)
        return np.minimum(first, last), np.maximum(first, last)

    def _enumerate(self, part: int, low: Any, high: Any) -> Rows:
        """All rows of a box of few."""
        moved = np.flatnonzero(high > low).tolist()
        choices = [codes_between(low[j], high[j], self._schema.step[j]) for j in moved]
        rows = combine(self._schema, low, moved, choices)
        return self._settle_cells(np.full(len(rows), part), rows)

    def _settle_cells(self, part: Index, rows: Rows) -> Rows:
        """Rows on the grid; what does not move is the person's own, digit by digit."""
        moved = self._high[part] > self._low[part]
        grid = np.where(self._schema.step > 0, snap(self._schema, rows), rows)
        kept: Rows = np.where(moved, grid, self._centre[part])
        return kept

    def _try_corners(self, part: Index, low: Rows, high: Rows, lean: Floats) -> None:
        """Look at the middle and two corners of each box; what flips is put to the model."""
        if not len(part):
            return
        bound = self._network.bound(*self._ends(low, high))
        slope = np.zeros_like(low)
        slope[:, : lean.shape[1]] = bound.slope_high[:, 0]
        step = np.where(self._schema.step > 0, self._schema.step, 1.0)
        middle = np.where(
            self._schema.step > 0, low + np.floor((high - low) / step / 2) * step, (low + high) / 2
        )
        for rows in (np.where(slope > 0, high, low), np.where(slope > 0, low, high), middle):
            rows = self._settle_cells(part, rows)
            own = self._network.margins(self._numbers(rows))
            hits = np.zeros(len(part), dtype=bool)
            for number in range(self._there.shape[1]):
                partner = rows.copy()
                moving = self._schema.moving_index
                partner[:, moving] = self._partners[part, number][:, moving]
                theirs = self._network.margins(self._numbers(partner))
                hits |= (own * theirs <= 0) & self._there[part, number]
            index = np.flatnonzero(hits & self._people.is_open[self._person[part]])
            if len(index):
                self._people.replay(self._person[part[index]], rows[index], Stage.SEARCH)

    def _cut(self, part: Index, low: Rows, high: Rows, lean: Floats) -> tuple[Index, Rows, Rows]:
        """Both halves of boxes, cut in the column that the bounds lean on most."""
        width = high - low
        matters = np.zeros_like(width)
        matters[:, : lean.shape[1]] = lean * width[:, : lean.shape[1]]
        column = np.where(width > 0, matters + 1e-12, -1.0).argmax(axis=1)
        line, step = np.arange(len(part)), self._schema.step[column]
        at_low, at_high = low[line, column], high[line, column]
        unit = np.where(step > 0, step, 1.0)
        middle = np.where(
            step > 0,
            at_low + np.floor(np.rint((at_high - at_low) / unit) / 2 - 0.25) * unit,
            (at_low + at_high) / 2,
        )
        middle = np.maximum(middle, at_low)
        lows, highs = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
        highs[2 * line, column] = middle
        lows[2 * line + 1, column] = np.where(step > 0, middle + step, middle)
        return np.repeat(part, 2), lows, highs
