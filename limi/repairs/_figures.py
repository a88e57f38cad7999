"""What a model is measured by before and after, on the same rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from limi.audits.problem import Problem
from limi.decisions import favors
from limi.errors import InvalidInput, spell
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._groups import MANY_VALUES
from limi.metrics.privileged import (
    Counts,
    Privileged,
    Split,
    choose,
    count_by_value,
    is_lowest,
    lowest,
    parse,
)
from limi.table.partners import change
from limi.table.schema import Schema
from limi.types import Mask, Rows

__all__ = [
    "Figures",
    "RepairFigure",
    "RepairGroups",
    "groups",
    "hide_protected",
    "over_seeds",
    "usual_cells",
]


@dataclass(frozen=True)
class RepairFigure:
    """A number with its 95 % interval, or the reason why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    seeds: tuple[float | None, ...] = ()
    reason: str = ""
    interval: str = ""  # over "seeds", or over the "rows" of one of them
    unit: str = ""  # "number" where it is in the unit of the target, and not a share

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        tree = {name: _round(value) for name, value in asdict(self).items()}
        return {name: value for name, value in tree.items() if value not in ([], "")}


Figures = dict[str, RepairFigure]


def usual_cells(schema: Schema, rows: Rows) -> NDArray[np.float64]:
    """The protected cells that most of the rows have."""
    kinds, counts = np.unique(rows[:, schema.protected_index], axis=0, return_counts=True)
    most: NDArray[np.float64] = kinds[int(np.argmax(counts))]
    return most


def hide_protected(schema: Schema, rows: Rows, cells: NDArray[np.float64]) -> Rows:
    """The rows with everybody's protected cells held at one value.

    That takes out what the columns tell, as dropping them would, and works for every pipeline,
    those that name their columns among them.
    """
    return change(schema, rows, np.tile(cells, (len(rows), 1)))


@dataclass(frozen=True)
class RepairGroups:
    """The privileged group, and why it is that one."""

    splits: Mapping[str, Split]  # by protected column
    reason: str

    @property
    def words(self) -> str:
        """For people."""
        return ", ".join(f"{name}={split.words}" for name, split in self.splits.items())

    def split(self, schema: Schema, rows: Rows) -> tuple[Mask, Mask]:
        """Which rows belong to it, and which to the others.

        A row with a missing cell in one of the columns belongs to neither.
        """
        inside = np.ones(len(rows), dtype=bool)
        known = np.ones(len(rows), dtype=bool)
        for name, split in self.splits.items():
            cells = rows[:, schema.position(name)]
            inside &= split.mask(cells)
            known &= ~np.isnan(cells)
        return inside & known, ~inside & known

    def codes(self, schema: Schema) -> dict[str, float]:
        """The one value of each column that it states; InvalidInput where it states several."""
        found = {}
        for name, split in self.splits.items():
            if len(split.codes) != 1:
                raise InvalidInput(
                    f"the privileged group is {self.words}; labels from it need a single "
                    f"privileged value of {name}, such as "
                    f"{name}={schema[name].show(schema[name].low)}"
                )
            (found[name],) = split.codes
        return found


def groups(
    problem: Problem, stated: Privileged = (), counted: Mapping[str, Counts] | None = None
) -> RepairGroups:
    """The stated privileged group; else the one that `limi metrics` chooses, column by column.

    `counted` are the run's own counts of decisions, so that both choose from the same rows; where
    they are too few to choose from, the tested model decides on the whole table. `"lowest"` is the
    paper's: the lowest value of the first protected column against all others.
    """
    schema = problem.schema
    if is_lowest(stated):
        first, cells = schema.protected[0], problem.rows[:, schema.protected_index[0]]
        split = lowest(schema[first], cells[~np.isnan(cells)])
        return RepairGroups({first: split}, split.why)
    if stated:
        return RepairGroups(parse(schema, stated), "as stated")
    counts = counted if counted and all(map(_are_enough, counted.values())) else _count(problem)
    splits = {name: choose(schema[name], known) for name, known in counts.items() if known}
    few = [name for name in splits if not _are_enough(counts[name])]
    return RepairGroups(splits, _UNASKED + (_FEW.format(names=spell(few)) if few else ""))


_UNASKED = (
    "not given, so chosen as in `limi metrics`: for each protected column, the group that the "
    "tested model selects most often"
)
_FEW = f"; fewer than two groups of {{names}} have {FEWEST_TOLD} rows, so this choice may be chance"


def _are_enough(counts: Counts) -> bool:
    """Do at least two groups hold the rows that a privileged group is chosen from?

    A number with many values is cut into two halves.
    """
    rows = [group.rows for _, group in counts]
    if len(rows) > MANY_VALUES:
        return sum(rows) >= 2 * FEWEST_TOLD
    return sum(n >= FEWEST_TOLD for n in rows) >= min(2, len(rows)) > 0


def _count(problem: Problem) -> dict[str, Counts]:
    schema, rows = problem.schema, problem.rows
    favorable = favors(problem.target.score(rows))
    return {
        name: count_by_value(rows[:, position], favorable, problem.labels)
        for name, position in zip(schema.protected, schema.protected_index, strict=True)
    }


def over_seeds(each: Sequence[RepairFigure]) -> RepairFigure:
    """The mean over seeds with the wider of two intervals; one seed keeps the interval of its own.

    Student's over the seeds says how much training varies, and nothing where all seeds agree, on
    zero flips for example. The mean of the seeds' own intervals says how much the rows vary: the
    seeds ask the same rows, or overlapping ones, so that all of them together know no more rows
    than one does.
    """
    if len(each) == 1:
        (only,) = each
        return replace(only, seeds=(only.value,), interval="rows" if only.low is not None else "")
    values = [figure.value for figure in each]
    lacking = [figure.reason for figure in each if figure.value is None]
    unit = each[0].unit
    if lacking:
        return RepairFigure(None, seeds=tuple(values), reason=lacking[0], unit=unit)
    known = np.array(values, dtype=np.float64)
    spread = float(known.std(ddof=1)) / math.sqrt(len(known))
    half = float(stdtrit(len(known) - 1, 0.975)) * spread
    mean = float(known.mean())
    most = math.inf if unit else 1.0
    low, high, interval = max(0.0, mean - half), min(most, mean + half), "seeds"
    lows = [figure.low for figure in each if figure.low is not None]
    highs = [figure.high for figure in each if figure.high is not None]
    if len(lows) == len(highs) == len(each) and np.mean(highs) - np.mean(lows) > high - low:
        low, high, interval = float(np.mean(lows)), float(np.mean(highs)), "rows"
    return RepairFigure(mean, low, high, tuple(values), interval=interval, unit=unit)


def _round(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_round(v) for v in value]
    return round(value, 6) if isinstance(value, float) else value
