"""What twins have to tell, as plain data: a report is drawn from it, and it is kept as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from limi.metrics._rate import Rate
from limi.system.plain import Known

__all__ = [
    "WELL_MEASURED",
    "Carrier",
    "Direction",
    "Group",
    "Kept",
    "KeptBy",
    "TwinExample",
    "Twins",
]

KeptBy: TypeAlias = Literal["asked", "carriers"]
"""Why columns are kept: the user said so, or they carry most."""

WELL_MEASURED = (0.7, 1.3)
"""Coverage outside which twins do not account for the gap between groups."""


@dataclass(frozen=True)
class Group:
    """People who hold the same protected values."""

    name: str
    people: int  # in the table that twins were learned from
    favorable: Rate  # of those that were asked


@dataclass(frozen=True)
class Carrier:
    """Columns that go together, and the share of a group's changed decisions they carry."""

    columns: tuple[str, ...]
    share: Known
    error: float | None  # its standard error; unknown for one person


@dataclass(frozen=True)
class Kept:
    """What remains where columns stay as they are, because groups may differ in them."""

    columns: tuple[str, ...]
    why: KeptBy
    gains: Rate
    losses: Rate


@dataclass(frozen=True)
class TwinExample:
    """A person beside a twin, for illustration: nearly all draws of the twin decide this way."""

    group: str
    goal: str
    fields: tuple[tuple[str, str, str], ...]  # name, own value, the twin's
    score: Known
    twin_score: Known
    agreement: Known  # share of the draws that are decided like this twin


@dataclass(frozen=True)
class Direction:
    """People of one group, decided as their twins of another."""

    group: str
    goal: str
    n: int  # people asked
    gains: Rate  # decided favorably as their twin only; the interval covers what is missing of
    # the gap as well
    losses: Rate  # decided unfavorably as their twin only
    net: Known  # gains less losses
    gap: Known  # favorable decisions of the goal's people less those of the group's
    gap_error: Known  # its standard error
    coverage: float | None  # net / gap; None where the gap is no larger than chance makes it
    no_twin: int = 0  # people for whom every draw broke a constraint; not among the n
    fit_error: float | None = None  # standard deviation of the gains over tables drawn again
    agreement: float | None = None  # chance that two draws of a person's twin give the same verdict
    sure: Rate | None = None  # people whose verdict changes in nearly all draws
    carried: Literal["gains", "losses"] = "gains"  # the more frequent: what follows is about them
    orders: tuple[Known, ...] = ()  # their share with the columns in other orders
    n_carried: int = 0
    carriers: tuple[Carrier, ...] = ()  # largest share first
    kept: tuple[Kept, ...] = ()
    moved: dict[str, float] = field(default_factory=dict)  # by column: share of twins that differ

    @property
    def well_measured(self) -> bool:
        """Do these twins account for the gap between the groups? Unknown counts as no."""
        known = self.coverage
        return known is not None and WELL_MEASURED[0] <= known <= WELL_MEASURED[1]


@dataclass(frozen=True)
class Twins:
    """The twin question with its answers."""

    protected: tuple[str, ...]
    unseen: tuple[str, ...]  # protected columns that the model does not take
    keep: tuple[str, ...]  # columns that the user lets groups differ in
    population: str
    generator: str
    groups: tuple[Group, ...]
    directions: tuple[Direction, ...] = ()  # the widest gap first, each with its way back
    placebo: Rate | None = None  # flips between groups drawn at random: what the method makes up
    examples: tuple[TwinExample, ...] = ()
    queries: int = 0
    notes: tuple[str, ...] = ()
    reason: str = ""  # why there is no answer

    def require_groups(self) -> None:
        """ValueError where a direction leads from or to a group that nobody was asked of."""
        known = {one.name for one in self.groups if math.isfinite(one.favorable.estimate)}
        strange = [d for d in self.directions if not {d.group, d.goal} <= known]
        if strange:
            raise ValueError(f"twins go from {strange[0].group!r} to {strange[0].goal!r}")
