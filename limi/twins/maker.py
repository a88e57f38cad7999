"""Twins: the same person as somebody of another group, by a generator that has the groups first.

A generator with the protected columns at the head of its order is a map, column after column, from
ranks to cells that depend on the cells before. A twin keeps the ranks, takes the other group's
protected values, and is decoded again: somebody at the 80th percentile of hours among women like
them comes out at the 80th percentile among men like that. Columns that are *kept* stand directly
behind the protected ones and stay as they are.

Ranks are uniform in every group if the generator is right. Where a column's are not (its tree did
not split on the group, or not well), they are *bent*: a rank goes through its own group's
distribution to an even one, and from there to the goal's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limi import generators
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import InvalidInput, nearest, spell
from limi.generators import Encoder, Generator
from limi.generators._domain import HIGHEST, RARE
from limi.table.constraints import find_broken
from limi.table.schema import Schema
from limi.twins.groups import Groups, find_groups
from limi.types import Index, Mask, Rows

__all__ = ["TwinMaker", "check_keep", "learn", "require_generator"]

MIN_GAIN = 2.0
"""What a split must tell, in multiples of chance: at 1 even a shuffled group moves columns."""

_KNOTS = np.linspace(0.0, 1.0, 21)
_MOST_DRAWS = 20  # of a twin that breaks a constraint
_ODD = 0.01  # the chance of a bend in a column of even ranks, for all columns and groups together


class _WithRanks(Generator, Encoder, Protocol):
    """A generator that finds the latents of rows."""


@dataclass(frozen=True, eq=False)
class TwinMaker:
    """Makes the twins of rows in other groups."""

    schema: Schema
    groups: Groups
    generator: _WithRanks
    keep: tuple[str, ...]
    bends: dict[int, NDArray[np.float64]]  # by column: (groups, knots) quantiles of its ranks

    @property
    def fixed(self) -> Index:
        """Positions of the protected and the kept columns."""
        kept = [self.schema.position(name) for name in self.keep]
        return np.array([*self.schema.protected_index, *kept], dtype=np.intp)

    def make(self, rows: Rows, goals: Index, rng: np.random.Generator) -> Rows:
        """The twin of each row in its goal's group: one draw from all that the row allows.

        Every row must have a group. Derived columns follow, and a twin that breaks a constraint
        which its row keeps is drawn again; where that does not help the row itself comes back,
        with its own group (see `found`).
        """
        twins = self._draw(rows, goals, rng)
        enforcer = self.schema.enforcer
        if not enforcer.constraints:
            return twins
        own = find_broken(enforcer.constraints, rows)
        left = np.arange(len(rows))
        for _ in range(_MOST_DRAWS):
            broken = find_broken(enforcer.constraints, twins[left])
            left = left[(broken & ~own[left]).any(axis=1)]
            if not len(left):
                return twins
            twins[left] = self._draw(rows[left], goals[left], rng)
        broken = find_broken(enforcer.constraints, twins[left])
        left = left[(broken & ~own[left]).any(axis=1)]
        twins[left] = rows[left]
        return twins

    def found(self, twins: Rows, goals: Index) -> Mask:
        """Which of these are twins, and not people for whom there is none."""
        return np.asarray(self.groups.of(twins) == goals)

    def _draw(self, rows: Rows, goals: Index, rng: np.random.Generator) -> Rows:
        from scipy.special import ndtr, ndtri  # late: it takes 0.15 s

        if not len(rows):
            return rows.copy()
        ranks, values, wanted = rng.spawn(3)
        own, fixed = self.groups.of(rows), self.fixed
        latents = self.generator.encode(rows, ranks)
        for position, knots in self.bends.items():
            shares = ndtr(latents[:, position])
            latents[:, position] = ndtri(_bend(shares, knots, own, goals))
        goal = self.groups.move(rows, own, goals, values)
        enforcer = self.schema.enforcer
        if enforcer.roles:
            # A kept column keeps the thing that it says: a Wife's twin is a Husband.
            goal = np.asarray(enforcer.change(rows, goal[:, self.schema.protected_index]))
        latents[:, fixed] = self.generator.encode(goal, wanted)[:, fixed]
        twins = self.generator.decode(latents)
        twins[:, fixed] = goal[:, fixed]
        return np.asarray(enforcer.complete(twins))


def learn(
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    keep: Sequence[str] = (),
    order: Sequence[str] | None = None,
    groups: Groups | None = None,
    generator: str = DEFAULT_GENERATOR,
) -> TwinMaker:
    """Learn from a table what goes with its protected columns.

    `keep` names columns that may differ between the groups; `order` puts the others in an order
    of its own, which is the table's otherwise. `generator` is the name of one that encodes and
    takes an order of columns.
    """
    check_keep(schema, keep)
    require_generator(generator)
    groups = find_groups(schema, rows) if groups is None else groups
    keep = _with_sources(schema, keep)
    first = [*schema.protected, *keep]
    rest = [name for name in order or schema.names if name not in first]
    module = generators.get(generator)
    # Rules are kept by whoever makes a twin; ranks are of all that the columns allow.
    fitted = module.fit(rows, schema.unruled, rng, settings=_settings(module, (*first, *rest)))
    moved = [schema.position(name) for name in rest]
    return TwinMaker(
        schema, groups, fitted, tuple(keep), _find_bends(fitted, rows, groups, moved, rng)
    )


def _with_sources(schema: Schema, keep: Sequence[str]) -> tuple[str, ...]:
    """Columns to keep, with those that derived ones are computed from."""
    kept = list(keep)
    for derived in reversed(schema.rules.in_order):
        if derived.column in kept:
            kept += [n for n in derived.sources if n not in kept and n not in schema.protected]
    return tuple(kept)


def check_keep(schema: Schema, keep: Sequence[str]) -> None:
    """InvalidInput where a column cannot be kept."""
    for name in keep:
        if name not in schema.names:
            raise InvalidInput(
                f"the column {name!r} to keep is not one that the model takes; "
                f"{nearest(name, schema.names)}"
            )
        if name in schema.protected:
            raise InvalidInput(
                f"{name!r} is protected and cannot be kept, because a twin differs in it; keep "
                "columns in which groups may differ, such as hours of work"
            )
    if len(set(keep)) != len(keep):
        raise InvalidInput(f"the columns to keep include one twice: {spell(keep)}")


def require_generator(name: str) -> None:
    """InvalidInput where a generator cannot make twins."""
    if not _can_make(name):
        able = [other for other in generators.names() if _can_make(other)]
        raise InvalidInput(
            f"the generator {name!r} cannot make twins: it cannot find the latents of given rows, "
            f"or has no order of columns; these can: {spell(able)}"
        )


def _can_make(name: str) -> bool:
    offers = generators.offers(name)
    return offers.has_encoder and offers.in_order


def _settings(module: ModuleType, order: tuple[str, ...]) -> Any:
    """The generator's settings with this order, and without splits on chance where it has such."""
    known = {field.name for field in fields(module.Settings)}
    careful = {"min_gain": MIN_GAIN} if "min_gain" in known else {}
    return module.Settings(order=order, **careful)


def _find_bends(
    generator: _WithRanks,
    rows: Rows,
    groups: Groups,
    moved: Sequence[int],
    rng: np.random.Generator,
) -> dict[int, NDArray[np.float64]]:
    """Quantiles of the ranks of each group, for columns in which they are not even."""
    from scipy.special import ndtr  # late: it takes 0.15 s
    from scipy.stats import ks_2samp  # late, because it takes a second

    own = groups.of(rows)
    shares = ndtr(generator.encode(rows, rng))
    members = [own == number for number in range(len(groups))]
    bends = {}
    for position in moved:
        chance = min(
            float(ks_2samp(shares[mine, position], shares[~mine, position], method="asymp").pvalue)
            if not mine.all()
            else 1.0
            for mine in members
        )
        if chance * len(moved) * len(groups) < _ODD:
            inner = [np.quantile(shares[mine, position], _KNOTS[1:-1]) for mine in members]
            ends = np.zeros((len(groups), 1))
            bends[position] = np.hstack([ends, np.array(inner), ends + 1.0])
    return bends


def _bend(
    shares: NDArray[np.float64], knots: NDArray[np.float64], own: Index, goals: Index
) -> NDArray[np.float64]:
    """Shares through the distribution of their own group to an even one, and on to the goal's."""
    bent = np.empty_like(shares)
    for number in np.unique(own):
        mine = own == number
        bent[mine] = np.interp(shares[mine], knots[number], _KNOTS)
    for number in np.unique(goals):
        theirs = goals == number
        bent[theirs] = np.interp(bent[theirs], _KNOTS, knots[number])
    # What the tree leaves to the whole column or domain is not part of a group's distribution.
    return np.where(shares < RARE, shares, np.clip(bent, RARE, HIGHEST))
