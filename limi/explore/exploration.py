"""One exploration: the people, the model, what is known of both, and every question asked."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi import generators, twins
from limi.audits.hiding import HIDDEN
from limi.audits.record import Record, cells_of
from limi.audits.summary import Summary
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import InvalidInput
from limi.explore.asking import Asker, Meter, Spent
from limi.explore.found import FoundSheet, sheet_of_rows
from limi.explore.jobs import Job, Jobs
from limi.explore.near import Goal, Near, Neighbourhood, Turn
from limi.explore.person import Person, describe_cells, find_broken_rules, meet
from limi.explore.reading import Reading
from limi.explore.regions import Look, look_at
from limi.explore.sheet import Sheet
from limi.generators import Generator
from limi.metrics._rate import Rate, rate_of
from limi.metrics._space import Space, nearest
from limi.metrics.collect import judge as make_judge
from limi.metrics.regions import LEVEL, Condition, Region
from limi.metrics.row_naturalness import Judge
from limi.search.check import Checked, check_rows
from limi.streams import Stream
from limi.system.reading import is_file
from limi.table.schema import Schema
from limi.types import Rows

__all__ = ["Alike", "Exploration", "Twin", "Who"]

NEAREST_BUDGET = 4_000
"""Questions that a search for the nearest person may take."""

_MOST_MADE = 10_000  # people that are kept because somebody came upon them
_ALIKE = 12
_TWINS = 200  # draws of one person's twins in each group
_MAPPED = 20_000  # natural people on the map
_AVERAGE_ROWS = 2_000
_LONGEST_FIT = 600.0  # seconds that a generator is waited for


@dataclass(frozen=True, eq=False)
class Who:
    """Somebody who can be met."""

    ref: str
    row: NDArray[np.float64]
    words: str  # who it is


@dataclass(frozen=True)
class Alike:
    """A real person like another."""

    ref: str
    distance: float
    cells: tuple[tuple[str, str, bool], ...]  # column, value, does it differ?


@dataclass(frozen=True)
class Twin:
    """What becomes of a person's twins in another group."""

    group: str
    n: int
    same: int  # of them, those decided as the person is
    share: Rate  # of those who are decided differently
    ref: str  # one of them
    changes: tuple[tuple[str, str, str], ...]
    decision: str


@dataclass(eq=False)
class Exploration:
    """All that the pages show and ask."""

    schema: Schema
    reading: Reading
    name: str  # what is explored: the run's folder, or the table
    model_name: str
    table_name: str
    asker: Asker | None  # None where the model is not asked
    meter: Meter
    record: Record
    jobs: Jobs
    rows: Rows | None = None  # real people, if the table is available
    found: FoundSheet | None = None
    summary: Summary | None = None
    regions: tuple[Region, ...] = ()
    hidden: tuple[str, ...] = ()
    seed: int = 0
    generator_name: str = DEFAULT_GENERATOR
    given_generator: Generator | None = None
    model_uri: str | None = None  # KIND:PLACE from the root on, where the model has a file
    asked_for: Mapping[str, Any] = field(default_factory=dict)  # favorable, labels, output
    notes: tuple[str, ...] = ()
    _made: dict[str, Who] = field(default_factory=dict)
    _refs: dict[tuple[bytes, str], str] = field(default_factory=dict)  # in the same order
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _learning: threading.Lock = field(default_factory=threading.Lock)  # of twins, which takes long
    _fitted: Future[Generator] | None = None
    _judged: Future[Judge | None] | None = None
    _twin_maker: Any = None
    _average: Rate | None = None  # how often natural people flip, once that was measured

    @property
    def looks(self) -> int:
        """Looks at regions, in this session, those before it, and those beside it."""
        return _count_looks(self.record.entries)

    @cached_property
    def secret(self) -> frozenset[str]:
        """The strips of hidden columns: neither shown nor filtered or sorted by."""
        places = [self.schema.position(name) for name in self.hidden]
        return frozenset(f"{kind}{place}" for place in places for kind in "cp")

    # -- people ---------------------------------------------------------------------------------

    @cached_property
    def people(self) -> Sheet | None:
        """The rows of the table as a sheet."""
        return None if self.rows is None else sheet_of_rows(self.schema, self.rows)

    def who(self, ref: str) -> Who:
        """Somebody by a reference such as `f12`; InvalidInput where there is nobody."""
        kind, number = ref[:1], ref[1:]
        if not (number.isascii() and number.isdecimal() and len(number) <= 9):
            raise InvalidInput("there is no person by that name; go back to the findings")
        place = int(number)
        if kind in ("f", "p") and self.found is not None and place < len(self.found):
            which = np.array([place])
            if kind == "f":
                return Who(ref, self.found.rows(which)[0], f"Finding {place + 1:,}")
            return Who(ref, self.found.partners(which)[0], f"Partner of finding {place + 1:,}")
        if kind == "r" and self.rows is not None and place < len(self.rows):
            return Who(ref, self.rows[place], f"Row {place + 1:,} of the table")
        if kind == "m" and ref in self._made:
            return self._made[ref]
        raise InvalidInput(
            "this person is no longer known: people who came up in an answer are kept only while "
            "limi explore runs"
        )

    def keep(self, row: NDArray[np.float64], words: str) -> str:
        """A reference to somebody whom an answer came upon, the same one for the same person."""
        row = np.array(row, dtype=np.float64)
        key = (row.tobytes(), words)
        with self._lock:
            # Who comes up again is kept longest: a map drawn again shows the same people.
            ref = self._refs.pop(key, "") or f"m{next(self._numbers)}"
            self._refs[key] = ref
            self._made.pop(ref, None)
            self._made[ref] = Who(ref, row, words)
            while len(self._made) > _MOST_MADE:
                del self._made[next(iter(self._made))]
                del self._refs[next(iter(self._refs))]
        return ref

    def first_person(self) -> str:
        """Whom to show where nobody was named."""
        if self.found is not None and len(self.found):
            return f"f{int(np.argmax(self.found.priority))}"
        return "r0"

    # -- what is learned from the table ---------------------------------------------------------

    def warm(self) -> None:
        """Begin what the first question would wait for."""
        with self._lock:
            if self.rows is not None and self._judged is None:
                self._judged = _in_thread(self._make_judge)

    def _make_judge(self) -> Judge | None:
        assert self.rows is not None
        return make_judge(self.rows, self.schema, Stream.NATURALNESS.rng(self.seed))

    @property
    def judge(self) -> Judge | None:
        """What tells how natural a row is; None without a table of enough rows."""
        self.warm()
        return None if self._judged is None else self._judged.result()

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        """(d,): what one unit of distance is in each column."""
        scale = np.ones(len(self.schema))
        for position, column in enumerate(self.schema.columns):
            if column.kind not in ("numerical", "ordered"):
                continue
            spread = 0.0
            if self.rows is not None:
                cells = self.rows[:, position]
                cells = cells[np.isfinite(cells)]
                spread = float(cells.std()) if len(cells) else 0.0
            width = float(self.schema.high[position] - self.schema.low[position])
            scale[position] = spread or width / 4 or 1.0
        return scale

    def generator(self, job: Job | None = None) -> Generator:
        """What natural people are drawn from, fitted where it has to be."""
        if self.given_generator is not None:
            return self.given_generator
        if self.rows is None:
            raise InvalidInput(
                "natural people are learned from the table, which is not available; name it with "
                "--table FILE"
            )
        with self._lock:
            if self._fitted is None or (
                self._fitted.done() and self._fitted.exception() is not None
            ):
                self._fitted = _in_thread(self._fit)
        if job is not None:
            job.tell({"words": f"learning to draw natural people ({self.generator_name})"})
        begun = time.monotonic()
        while not self._fitted.done() and time.monotonic() - begun < _LONGEST_FIT:
            if job is not None:
                job.look()
            time.sleep(0.02)
        return self._fitted.result(timeout=0)

    def _fit(self) -> Generator:
        assert self.rows is not None
        if is_file(self.generator_name):
            return generators.obey(generators.load(self.generator_name), self.schema)
        rng = Stream.GENERATOR.rng(self.seed)
        return generators.fit(self.generator_name, self.rows, self.schema, rng)

    # -- questions ------------------------------------------------------------------------------

    def require_model(self) -> Asker:
        """The model; InvalidInput where it is not asked."""
        if self.asker is None:
            raise InvalidInput("the model is not asked here: limi explore was started read-only")
        return self.asker

    def ask_person(
        self,
        row: NDArray[np.float64],
        start: NDArray[np.float64] | None = None,
        job: Job | None = None,
    ) -> Person:
        """A person under every protected value."""
        asker = self.require_model()
        met = meet(
            self.schema,
            row,
            asker,
            self.reading,
            start=start,
            judge=self.judge,
            hidden=self.hidden,
            job=job,
        )
        self.record.add(
            {
                "ask": "person",
                "cells": cells_of(self.schema, row, self.hidden),
                "answer": met.own.answer,
                "answers": {v.label: v.answer for group in met.groups for v in group.variants},
                "flips": met.flips,
                "queries": met.queries,
            }
        )
        return met

    def show_person(
        self, row: NDArray[np.float64], start: NDArray[np.float64] | None = None
    ) -> tuple[Any, Any]:
        """A person's cells and broken rules, without asking anybody."""
        broken = find_broken_rules(self.schema, row)
        return describe_cells(self.schema, row, start, broken, self.hidden), broken

    def neighbourhood(self, row: NDArray[np.float64]) -> Neighbourhood:
        """The people near somebody."""
        return Neighbourhood(self.schema, row, self.scale, self.hidden)

    def find_nearest(self, row: NDArray[np.float64], goal: Goal, job: Job | None = None) -> Near:
        """The nearest person who flips, or who does not."""
        asker = self.require_model()
        budget = NEAREST_BUDGET if self.meter.left is None else min(NEAREST_BUDGET, self.meter.left)
        near = self.neighbourhood(row).find_nearest(goal, asker, budget, job)
        found = near.found
        self.record.add(
            {
                "ask": "nearest",
                "goal": goal,
                "cells": cells_of(self.schema, row, self.hidden),
                "budget": budget,
                "found": None if found is None else cells_of(self.schema, found.row, self.hidden),
                "distance": None if found is None else found.distance,
                "queries": near.queries,
            }
        )
        return near

    def walk(self, row: NDArray[np.float64], job: Job | None = None) -> list[Turn]:
        """Which single changes turn the decision."""
        asker = self.require_model()
        before = self.meter.asked_by(job)
        turns = self.neighbourhood(row).walk(asker, job)
        self.record.add(
            {
                "ask": "walk",
                "cells": cells_of(self.schema, row, self.hidden),
                "turns": {turn.column: turn.to for turn in turns},
                "queries": self.meter.asked_by(job) - before,
            }
        )
        return turns

    @cached_property
    def _space(self) -> tuple[Space, Any]:
        assert self.rows is not None
        space = Space.learn(self.rows, self.schema)
        return space, space.place(self.rows)

    def find_alike(self, row: NDArray[np.float64]) -> list[Alike]:
        """Real people like this one, with what is hidden hidden."""
        if self.rows is None:
            raise InvalidInput(
                "real people come from the table, which is not available; name it with --table FILE"
            )
        space, points = self._space
        distances, which = nearest(space.place(row[None]), points, min(_ALIKE, len(self.rows)))
        alike = []
        for far, place in zip(distances[0].tolist(), which[0].tolist(), strict=True):
            other = self.rows[place]
            cells = tuple(
                (
                    column.name,
                    HIDDEN if column.name in self.hidden else column.show(float(cell)),
                    not (cell == mine or (np.isnan(cell) and np.isnan(mine))),
                )
                for column, cell, mine in zip(self.schema.columns, other, row, strict=True)
            )
            alike.append(Alike(f"r{place}", far, cells))
        return alike

    # -- twins ----------------------------------------------------------------------------------

    def ask_twins(self, row: NDArray[np.float64], job: Job | None = None) -> list[Twin]:
        """What becomes of a person's twins of other groups: the same person as somebody there."""
        asker = self.require_model()
        if self.rows is None:
            raise InvalidInput("twins are learned from the table; name it with --table FILE")
        if job is not None:
            job.tell({"words": "learning what goes with the protected columns"})
        with self._learning:
            if self._twin_maker is None:
                groups = twins.find_groups(self.schema, self.rows)
                rng = Stream.TWINS.rng(self.seed, 90)
                self._twin_maker = twins.learn(self.rows, self.schema, rng, groups=groups)
        maker = self._twin_maker
        mine = int(maker.groups.of(row[None])[0])
        if mine < 0:
            raise InvalidInput("this person belongs to none of the groups in the table")
        before = self.meter.asked_by(job)
        own = asker.score(row[None], job)
        told = []
        for goal in range(len(maker.groups)):
            if goal == mine:
                continue
            told.append(self._ask_twins_in(maker, row, goal, own, asker, job))
        self.record.add(
            {
                "ask": "twins",
                "cells": cells_of(self.schema, row, self.hidden),
                "groups": {twin.group: [twin.n - twin.same, twin.n] for twin in told},
                "queries": self.meter.asked_by(job) - before,
            }
        )
        return told

    def _ask_twins_in(
        self, maker: Any, row: NDArray[np.float64], goal: int, own: Any, asker: Asker, job: Any
    ) -> Twin:
        rows = np.repeat(row[None], _TWINS, axis=0)
        goals = np.full(_TWINS, goal)
        made = maker.make(rows, goals, Stream.EXPLORE.rng(self.seed, 1, goal))
        made = made[maker.found(made, goals)]
        if not len(made):
            return Twin(maker.groups.names[goal], 0, 0, rate_of(0, 0), "", (), "")
        answers = asker.score(made, job)
        differ = np.asarray(asker.rule.differ(answers, np.repeat(own, len(answers))))
        # The twin that is most like the others: the nearest to the middle of their answers.
        typical = int(np.argmin(np.abs(answers - np.median(answers))))
        other = made[typical]
        changes = self.neighbourhood(row).neighbour(other).changes
        changes = tuple(c for c in changes if c[0] not in self.hidden)
        ref = self.keep(other, f"A twin as {maker.groups.names[goal]}")
        n, hits = len(made), int(differ.sum())
        decision = self.reading.tell(float(answers[typical])).decision
        # The groups of one answer share its error.
        share = rate_of(hits, n, 1 - LEVEL / max(len(maker.groups) - 1, 1))
        return Twin(maker.groups.names[goal], n, n - hits, share, ref, changes, decision)

    # -- regions --------------------------------------------------------------------------------

    def region_of(self, conditions: Sequence[Mapping[str, Any]]) -> Region:
        """A region from its conditions, each a column with ends or values."""
        made = []
        for told in conditions:
            name = str(told["column"])
            column = self.schema[name]
            if name in self.schema.protected:
                raise InvalidInput(
                    f"{name!r} is protected; a region describes people by other columns"
                )
            if name in self.hidden:
                raise InvalidInput(f"the cells of {name!r} are hidden, so regions cannot use them")
            codes = told.get("codes")
            made.append(
                Condition(
                    column,
                    self.schema.position(name),
                    float(told.get("low", -np.inf)),
                    float(told.get("high", np.inf)),
                    None if codes is None else tuple(sorted(float(code) for code in codes)),
                    bool(told.get("missing", False)),
                )
            )
        if not made:
            raise InvalidInput("a region needs a condition; choose values of a column")
        return Region(tuple(made))

    def look_at(
        self,
        region: Region,
        job: Job | None = None,
    ) -> Look:
        """How often decisions flip in a region; one more look."""
        asker = self.require_model()
        generator = self.generator(job)
        number = self._begin_look(region)
        rng = Stream.EXPLORE.rng(self.seed, 0, number)
        look = look_at(
            region,
            number,
            self.schema,
            lambda n: generators.draw(generator, n, rng, self.schema)[0],
            asker,
            average=self.average(job),
            job=job,
        )
        self.record.add(
            {
                "ask": "region",
                "conditions": [_tell_condition(c) for c in region.conditions],
                "words": str(region),
                "look": number,
                "confidence": look.confidence,
                "drawn": look.drawn,
                "n": look.rate.n,
                "flips": _count_flips(look.rate),
                "low": look.rate.low,
                "high": look.rate.high,
                "queries": look.queries,
            }
        )
        return look

    def _begin_look(self, region: Region) -> int:
        """The number of a new look. It stands in the record before anything is drawn, so that
        nobody else has it, and a look that is given up counts."""
        line = self.record.add(
            lambda known: {"begin": "region", "look": 1 + _count_looks(known), "words": str(region)}
        )
        return int(line["look"])

    def average(self, job: Job | None = None) -> Rate:
        """How often natural people flip, as the run measured it or as is measured now."""
        if self.summary is not None and "natural" in self.summary.rates:
            rate = self.summary.rates["natural"]
            if rate.n:
                return rate
        return self._measured_average(job)

    def _measured_average(self, job: Job | None) -> Rate:
        with self._lock:
            known = self._average
        if known is not None:
            return known
        asker = self.require_model()
        rng = Stream.EXPLORE.rng(self.seed, 2)
        rows, _ = generators.draw(self.generator(job), _AVERAGE_ROWS, rng, self.schema)
        checked = self.check(asker, rows, job)
        rate = rate_of(int(checked.flips.sum()), int(checked.is_paired.sum()))
        self._average = rate
        return rate

    def check(self, asker: Asker, rows: Rows, job: Job | None = None) -> Checked:
        """Verdicts of rows."""
        return check_rows(
            lambda asked: asker.score(asked, job), self.schema, rows, decision=asker.rule
        )

    def natural_people(self, job: Job | None = None, n: int = _MAPPED) -> Rows:
        """Natural people, the same ones each time."""
        rng = Stream.EXPLORE.rng(self.seed, 3)
        return generators.draw(self.generator(job), n, rng, self.schema)[0]

    # -- bookmarks ------------------------------------------------------------------------------

    def bookmark(
        self,
        row: NDArray[np.float64],
        start: NDArray[np.float64],
        note: str,
        job: Job | None = None,
    ) -> dict[str, Any]:
        """Keep a person with a note; what the model says is kept along, unless it is not asked or
        the session has no questions left."""
        cells, _ = self.show_person(row, start)
        entry: dict[str, Any] = {
            "bookmark": note,
            "cells": cells_of(self.schema, row, self.hidden),
            "shown": [[cell.name, cell.shown] for cell in cells],
            "changed": [[cell.name, cell.start, cell.shown] for cell in cells if cell.changed],
            "decision": "not asked",
            "figure": "",
            "partner": [],
            "partner_decision": "",
            "partner_figure": "",
            "flips": False,
        }
        if self.asker is not None:
            with suppress(Spent):
                entry |= self._answers_for(self.asker, row, job)
        return self.record.add(entry)

    def _answers_for(
        self, asker: Asker, row: NDArray[np.float64], job: Job | None
    ) -> dict[str, Any]:
        """What a bookmark says of the model's answers."""
        met = meet(self.schema, row, asker, self.reading, hidden=self.hidden, job=job)
        told: dict[str, Any] = {
            "decision": met.own.told.decision,
            "figure": met.own.told.figure,
            "flips": met.flips,
        }
        if met.partner is not None:
            theirs = describe_cells(self.schema, met.partner.row, row, (), self.hidden)
            told |= {
                "partner": [[c.name, c.start, c.shown] for c in theirs if c.changed],
                "partner_decision": met.partner.told.decision,
                "partner_figure": met.partner.told.figure,
            }
        return told

    def forget(self, number: int) -> None:
        """Remove a bookmark."""
        if number not in {mark.number for mark in self.record.bookmarks}:
            raise InvalidInput(f"there is no bookmark {number}")
        self.record.add({"forget": number})


def _count_looks(entries: Sequence[Mapping[str, Any]]) -> int:
    """The highest number of a look."""
    numbers = (entry.get("look") for entry in entries)
    return max((n for n in numbers if isinstance(n, int)), default=0)


def _count_flips(rate: Rate) -> int:
    """How many flipped, behind a rate."""
    return round(rate.estimate * rate.n) if rate.n else 0


def _tell_condition(condition: Condition) -> dict[str, Any]:
    told: dict[str, Any] = {"column": condition.column.name}
    if condition.codes is not None:
        told["codes"] = list(condition.codes)
    else:
        if np.isfinite(condition.low):
            told["low"] = condition.low
        if np.isfinite(condition.high):
            told["high"] = condition.high
    if condition.missing:
        told["missing"] = True
    return told


def _in_thread(work: Callable[[], Any]) -> Future[Any]:
    """The future of work that nobody has to wait for."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="limi-explore-learn").start()
    return future
