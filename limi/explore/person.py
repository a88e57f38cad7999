"""One person, put to the model under every protected value, with all that is known of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limi.audits.hiding import HIDDEN
from limi.errors import InvalidInput
from limi.explore.asking import Asker
from limi.explore.jobs import Job
from limi.explore.reading import Reading, Told
from limi.metrics.row_naturalness import Judge
from limi.search.partner import choose_partner
from limi.table.constraints import Constraint, find_broken
from limi.table.partners import expand
from limi.table.schema import Column, Schema
from limi.types import Rows, Scores

__all__ = [
    "BrokenRule",
    "Cell",
    "Person",
    "Questions",
    "Variant",
    "change_cells",
    "describe_cells",
    "find_broken_rules",
    "meet",
]

_MOST_SHOWN = 24  # combinations of several protected columns that are listed
_MOST_OPTIONS = 200  # levels in a list to choose from
_CURVE = 5  # values of a number from which on they are a curve


@dataclass(frozen=True)
class BrokenRule:
    """A constraint that a row breaks, in its own words."""

    name: str
    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One cell of a card."""

    position: int
    name: str
    value: str  # as it is sent back: a number, or the code of a level
    shown: str
    start: str  # what it was when the card was opened
    changed: bool
    protected: bool
    hidden: bool
    broken: bool  # does a rule that is broken look at it?
    should: str  # what the rules derive for it, where it is something else
    options: tuple[tuple[str, str], ...]  # of levels: what to send, and what it means
    aid: str  # of numbers: what may be given


@dataclass(frozen=True)
class Variant:
    """The person with other protected values, and what goes along."""

    label: str
    own: bool
    row: NDArray[np.float64]
    answer: float
    told: Told
    flips: bool
    closed: tuple[BrokenRule, ...]  # rules that such a partner would break, so it was not asked
    along: tuple[tuple[str, str], ...]  # what else changes, and to what
    natural: float | None


@dataclass(frozen=True)
class Curve:
    """The answers along the values of a protected number."""

    points: tuple[tuple[float, float, str], ...]  # across and up, from 0 to 1, and words
    own: float  # where the person stands, across
    low: str
    high: str


@dataclass(frozen=True)
class Group:
    """What is said of one protected column, or of all together."""

    title: str
    variants: tuple[Variant, ...]
    curve: Curve | None = None
    left_out: int = 0  # combinations that are not listed


@dataclass(frozen=True)
class Person:
    """A card, answered."""

    row: NDArray[np.float64]
    cells: tuple[Cell, ...]
    broken: tuple[BrokenRule, ...]
    own: Variant
    groups: tuple[Group, ...]
    partner: Variant | None  # the widest of those that flip, or else of all
    flips: bool
    queries: int

    @property
    def flipping(self) -> list[Variant]:
        """The variants that are decided differently, of all that are listed."""
        return [v for group in self.groups for v in group.variants if v.flips]


def find_broken_rules(
    schema: Schema, row: NDArray[np.float64], among: Sequence[Constraint] | None = None
) -> tuple[BrokenRule, ...]:
    """The constraints that a row breaks, in their own words."""
    rules = schema.enforcer.constraints if among is None else among
    broken = find_broken(rules, row[None])[0]
    return tuple(
        BrokenRule(rule.name, rule.text, tuple(schema.names[i] for i in rule.columns))
        for rule, is_broken in zip(rules, broken, strict=True)
        if is_broken
    )


def change_cells(
    schema: Schema,
    start: NDArray[np.float64],
    given: Mapping[int, str],
    hidden: Collection[str] = (),
) -> NDArray[np.float64]:
    """A row with some cells changed, each as a form sends it; InvalidInput where one cannot be."""
    row = start.copy()
    for position, text in given.items():
        if not 0 <= position < len(schema):
            raise InvalidInput(f"there is no cell {position}; the table has {len(schema)} columns")
        column = schema.columns[position]
        if column.name not in hidden:
            row[position] = _read_cell(column, text)
    return row


def _read_cell(column: Column, text: str) -> float:
    if text.strip() in ("", "missing"):
        if not column.missing:
            raise InvalidInput(f"{column.name!r} cannot be missing; {_describe(column)}")
        return math.nan
    if column.kind == "numerical":
        return column.code(text.strip())
    if not (text.isascii() and text.isdecimal()) or int(text) >= column.size:
        raise InvalidInput(f"{text[:40]!r} is not a value of column {column.name!r}")
    return float(int(text))


def _describe(column: Column) -> str:
    if column.kind != "numerical":
        return f"it has {column.size} values"
    ends = f"{column.show(column.low)} to {column.show(column.high)}"
    return ends + (f" in steps of {column.show(column.step)}" if column.step not in (0, 1) else "")


def describe_cells(
    schema: Schema,
    row: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
    broken: Sequence[BrokenRule] = (),
    hidden: Collection[str] = (),
) -> tuple[Cell, ...]:
    """The cells of a card; without a start, nothing has changed."""
    start = row if start is None else start
    touched = {name for rule in broken for name in rule.columns}
    whole = schema.enforcer.complete(row[None])[0]
    cells = []
    for position, column in enumerate(schema.columns):
        mine, first, should = (float(x[position]) for x in (row, start, whole))
        secret = column.name in hidden
        options: tuple[tuple[str, str], ...] = ()
        if column.kind != "numerical" and not secret:
            codes = list(range(min(column.size, _MOST_OPTIONS)))
            codes += [int(mine)] if mine >= _MOST_OPTIONS else []
            options = tuple((str(code), column.show(code)) for code in codes)
            options += (("missing", "missing"),) if column.missing else ()
        value = "missing" if math.isnan(mine) else column.show(mine)
        if column.kind != "numerical" and not math.isnan(mine):
            value = str(int(mine))
        elif column.kind == "numerical" and math.isnan(mine):
            value = ""
        differs = not _same(mine, should)
        cells.append(
            Cell(
                position,
                column.name,
                "" if secret else value,
                HIDDEN if secret else column.show(mine),
                HIDDEN if secret else column.show(first),
                not _same(mine, first),
                column.name in schema.protected,
                secret,
                column.name in touched,
                column.show(should) if differs and not secret else "",
                options,
                _describe(column) if column.kind == "numerical" else "",
            )
        )
    return tuple(cells)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of one person: protected cells, and what to call them."""

    schema: Schema
    row: NDArray[np.float64]
    cells: NDArray[np.float64]  # (G, p), NaN where the own value is left; the first is the person
    titles: tuple[tuple[str, int, int], ...]  # of each group, and where it begins and ends
    asked: Rows  # (G, d)
    is_open: NDArray[np.bool_]

    @staticmethod
    def of(schema: Schema, row: NDArray[np.float64]) -> Questions:
        """The person, each protected column by itself, and all combinations where there are
        several."""
        width = len(schema.protected)
        lines: list[NDArray[np.float64]] = [np.full((1, width), np.nan)]
        titles, start = [], 1
        for place, (name, codes) in enumerate(
            zip(schema.protected, schema.protected_codes, strict=True)
        ):
            alone = np.full((len(codes), width), np.nan)
            alone[:, place] = codes
            lines.append(alone)
            titles.append((name, start, start + len(codes)))
            start += len(codes)
        if width > 1:
            lines.append(schema.combinations)
            titles.append(("together", start, start + len(schema.combinations)))
        cells = np.concatenate(lines)
        asked, is_open = expand(schema, row[None], cells)
        asked = asked[0]
        asked[0] = row  # as the person is, whatever the rules would derive
        allowed = np.ones(len(cells), dtype=bool) if is_open is None else is_open[0].copy()
        allowed[0] = True
        return Questions(schema, row, cells, tuple(titles), asked, allowed)

    def ask(self, asker: Asker, job: Job | None = None) -> Scores:
        """The answers, NaN where a partner could not exist."""
        answers = np.full(len(self.asked), np.nan)
        answers[self.is_open] = asker.score(self.asked[self.is_open], job)
        return answers

    def choose(self, answers: Scores, reading: Reading) -> tuple[int, NDArray[np.bool_]]:
        """Which question is the partner to show, and which differ from the person's own."""
        mine = answers[:1]
        others = answers[None, 1:]
        is_other = np.array([not self._is_own(k) for k in range(1, len(self.cells))])
        asked = is_other & self.is_open[1:]
        chosen, flips, _ = choose_partner(
            others, mine, candidates=asked[None], decision=reading.rule
        )
        return 1 + int(chosen[0]), np.concatenate([[False], flips[0] & asked])

    def _is_own(self, number: int) -> bool:
        own = self.row[self.schema.protected_index]
        return all(
            math.isnan(cell) or _same(float(cell), float(mine))
            for cell, mine in zip(self.cells[number], own, strict=True)
        )

    def label(self, number: int) -> str:
        """The protected values of a question in words."""
        named = zip(self.schema.protected, self.cells[number], strict=True)
        return ", ".join(
            f"{name} {self.schema[name].show(float(cell))}"
            for name, cell in named
            if not math.isnan(cell)
        )

    def along(self, number: int) -> tuple[tuple[str, str], ...]:
        """What changes beside the protected values, and to what."""
        schema = self.schema
        return tuple(
            (column.name, column.show(float(self.asked[number, position])))
            for position, column in enumerate(schema.columns)
            if column.name not in schema.protected
            and not _same(float(self.asked[number, position]), float(self.row[position]))
        )

    def shown(self) -> list[int]:
        """Questions that are listed."""
        return [
            0,
            *(
                k
                for title, start, end in self.titles
                for k in range(start, end)
                if title != "together" or end - start <= _MOST_SHOWN
            ),
        ]


def meet(
    schema: Schema,
    row: NDArray[np.float64],
    asker: Asker,
    reading: Reading,
    *,
    start: NDArray[np.float64] | None = None,
    judge: Judge | None = None,
    hidden: Collection[str] = (),
    job: Job | None = None,
) -> Person:
    """Put a person to the model under every protected value."""
    before = asker.meter.asked_by(job)
    questions = Questions.of(schema, row)
    answers = questions.ask(asker, job)
    partner, flips = questions.choose(answers, reading)
    listed = sorted({*questions.shown(), partner})
    natural = {}
    if judge is not None:
        told = judge.p_values(questions.asked[listed])
        natural = dict(zip(listed, told.tolist(), strict=True))

    def variant(number: int) -> Variant:
        closed: tuple[BrokenRule, ...] = ()
        if not questions.is_open[number]:
            closed = find_broken_rules(schema, questions.asked[number], schema.enforcer.binding)
        return Variant(
            questions.label(number),
            number == 0 or questions._is_own(number),
            questions.asked[number],
            float(answers[number]),
            reading.tell(float(answers[number])),
            bool(flips[number]),
            closed,
            tuple(change for change in questions.along(number) if change[0] not in hidden),
            natural.get(number),
        )

    groups = []
    for title, first, end in questions.titles:
        if title == "together" and end - first > _MOST_SHOWN:
            groups.append(Group(title, (), left_out=end - first))
            continue
        variants = tuple(variant(k) for k in range(first, end))
        groups.append(Group(title, variants, _draw_curve(schema, title, row, variants)))
    broken = find_broken_rules(schema, row)
    is_partner = questions.is_open[partner] and not questions._is_own(partner)
    return Person(
        row,
        describe_cells(schema, row, start, broken, hidden),
        broken,
        variant(0),
        tuple(groups),
        variant(partner) if is_partner else None,
        bool(flips.any()),
        asker.meter.asked_by(job) - before,
    )


def _draw_curve(
    schema: Schema, name: str, row: NDArray[np.float64], variants: Sequence[Variant]
) -> Curve | None:
    """A curve where the column is a number of many values."""
    if name not in schema.names or schema[name].kind != "numerical" or len(variants) < _CURVE:
        return None
    column, position = schema[name], schema.position(name)
    values = np.array([v.row[position] for v in variants])
    low, high = float(values.min()), float(values.max())
    spread = (high - low) or 1.0
    points = tuple(
        (float(x - low) / spread, v.told.at, f"{column.show(float(x))}: {v.told.decision}")
        for x, v in zip(values, variants, strict=True)
        if not math.isnan(v.answer)
    )
    own = (
        float(np.clip((row[position] - low) / spread, 0, 1))
        if row[position] == row[position]
        else 0.0
    )
    return Curve(points, own, column.show(low), column.show(high))
