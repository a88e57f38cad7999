"""The page of a repair, be it one way or several side by side: what all of them show alike."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limi.report import _fronts, _pages
from limi.report.charts import ticks
from limi.report.next_steps import NextStep, opening_of, option_of
from limi.system import words

__all__ = [
    "Cell",
    "Line",
    "MovedBar",
    "MovedBars",
    "Picture",
    "RepairPage",
    "moved_bars",
    "place_of",
    "point_of",
    "render",
    "tell_moved",
    "test_command",
]

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A figure and its interval."""

    value: str
    interval: str = ""
    best: bool = False  # of the repair to take


@dataclass(frozen=True)
class Line:
    """One figure of every model."""

    name: str
    aid: str
    cells: tuple[Cell, ...]


_MOST_GROUPS = 3  # that the first screen names


@dataclass(frozen=True)
class MovedBar:
    """Of one group: whose decision changed, and how far the bars reach to either side."""

    name: str
    people: str
    gained: float
    lost: float
    label: str
    shares: str


@dataclass(frozen=True)
class MovedBars:
    """Groups on one axis that has nothing in its middle."""

    how: str
    bars: tuple[MovedBar, ...]
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Picture:
    """Flips against what is lost."""

    front: _fronts.Front
    cost: str  # what is lost
    across: str  # the same as the axis says it
    aid: str
    key: tuple[tuple[str, str], ...]  # the name of each mark, and its figures


@dataclass(frozen=True)
class RepairPage:
    """All that the template draws."""

    title: str
    date: str
    verdict: str
    basis: str
    answers: Sequence[tuple[str, str]]
    step: NextStep | None
    facts: Sequence[tuple[str, str]]
    picture: Picture | None
    moved: MovedBars | None
    moved_title: str
    moved_aid: str
    moved_heads: Sequence[str]  # of the other repairs, in a table
    moved_lines: Sequence[Line]
    heads: Sequence[str]
    taken: str | None
    lines: Sequence[Line]
    lines_aid: str
    rule: str
    reasons: Sequence[tuple[str, str, str]]
    remarks: Sequence[str]
    fresh: Sequence[str]
    use: Sequence[str]
    limits: Sequence[str]
    command: str
    version: str


def render(page: RepairPage) -> str:
    """A page of its own; the same bytes for the same content."""
    return _pages.render("repairs.html", ("report", "repair"), script="report", **vars(page))


def moved_bars(how: str, moved: Sequence[Tree], *, only_changed: bool) -> MovedBars | None:
    """Gains to the right and losses to the left, as shares of each group's decisions."""
    shares = {
        one["group"]: tuple(one[way] / max(one["people"], 1) for way in ("gained", "lost"))
        for one in moved
    }
    if not shares:
        return None
    steps = ticks(100 * max(max(pair) for pair in shares.values()), 2)
    top = steps[-1] / 100
    bars = tuple(
        MovedBar(
            one["group"],
            words.count(one["people"]),
            gained / top,
            lost / top,
            tell_counts(one, only_changed=only_changed),
            f"{100 * gained:.1f} %"
            if only_changed
            else f"+{100 * gained:.1f} / -{100 * lost:.1f} %",
        )
        for one in moved
        for gained, lost in [shares[one["group"]]]
    )
    if only_changed:
        return MovedBars(how, bars, [(s / steps[-1], f"{s:g}") for s in steps])
    left = [((1 - s / steps[-1]) / 2, f"-{s:g}") for s in reversed(steps[1:])]
    return MovedBars(
        how, bars, left + [((1 + s / steps[-1]) / 2, f"+{s:g}" if s else "0") for s in steps]
    )


def tell_counts(one: Tree, *, only_changed: bool) -> str:
    """Counts of a group as a cell has them."""
    return f"{one['gained']:,}" if only_changed else f"+{one['gained']:,} / -{one['lost']:,}"


def tell_moved(moved: Sequence[Tree], gain: str, lose: str) -> list[tuple[str, str]]:
    """Who gains and who loses on the whole, for the first screen.

    `gain` and `lose` say what becomes of the decisions that change.
    """
    net = sorted(moved, key=lambda one: one["gained"] - one["lost"])
    losing = [one for one in net if one["gained"] < one["lost"]]
    gaining = [one for one in reversed(net) if one["gained"] > one["lost"]]

    def tell(one: Tree) -> str:
        return (
            f"{one['group']}: of {words.count(one['people'])} decisions, "
            f"{words.count(one['gained'])} {gain} and {words.count(one['lost'])} {lose}"
        )

    told = []
    for name, groups in (("Who gains", gaining), ("Who loses", losing)):
        shown = "; ".join(map(tell, groups[:_MOST_GROUPS]))
        more = len(groups) - _MOST_GROUPS
        also = f"; and {more} more group{'s' * (more > 1)}" if more > 0 else ""
        told.append((name, f"{shown}{also}." if groups else "No group on the whole."))
    return told


def point_of(name: str, cost: Tree, flips: Tree, scale: float) -> _fronts.Point | None:
    """A model in the picture; None where one of both was not measured."""
    if cost.get("value") is None or flips.get("value") is None:
        return None
    seeds = zip(cost.get("seeds", ()), flips.get("seeds", ()), strict=False)
    known = tuple((scale * c, f) for c, f in seeds if c is not None and f is not None)
    return _fronts.Point(
        name, scale * cost["value"], flips["value"], known if len(known) > 1 else ()
    )


def place_of(tree: Tree, file: str) -> str:
    """A file of the repair's folder as the one who wrote the command would name it."""
    folder = option_of(tree["command"], "--out")
    return file if not folder else f"{folder.rstrip('/')}/{file}"


def test_command(tree: Tree, model: str) -> str:
    """The command that tests a model of this folder."""
    run = tree["run"]
    told = ["limi", "test", run["table"], "--model", model, "--target", str(run["target"])]
    told += ["--favorable", str(run["favorable"])]
    for name in run["protected"]:
        told += ["--protected", name]
    if ">" in (run.get("decision") or ""):
        told += ["--decision", run["decision"]]
    return shlex.join([*told, *opening_of(tree["command"])])
