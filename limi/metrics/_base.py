"""What a metric is: one function that names itself and says how it is to be read.

The function looks at the evidence of a run and gives a number, a figure with what belongs to it, or
several of them by name; None where there is nothing to measure. Declared by `metric` in a module of
the registry, it is measured in every run, listed, written to JSON, shown in the terminal and on the
page, and documented.
"""

from __future__ import annotations

import inspect
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from limi.decisions import AS_DECIDED, Rule, favors
from limi.errors import InvalidInput, nearest
from limi.metrics._enough import FEWEST_TO_JUDGE
from limi.metrics._rate import Rate
from limi.streams import Stream

if TYPE_CHECKING:
    from limi.metrics.naturalness import Likeness
    from limi.search.check import Checked
    from limi.search.findings import Found
    from limi.table.schema import Schema
    from limi.types import Index, Labels, Mask, Rows, Scores

__all__ = [
    "EFFECTIVENESS",
    "FAMILIES",
    "GROUP",
    "INDIVIDUAL",
    "NATURALNESS",
    "SEVERITY",
    "Decided",
    "Effort",
    "Evidence",
    "Family",
    "Figure",
    "Known",
    "Metric",
    "Part",
    "Tree",
    "entry_of",
    "figure_of",
    "metric",
    "shorten",
]

Tree: TypeAlias = dict[str, Any]
"""Plain data, as JSON holds it."""

Better = Literal["lower", "higher", "zero", "neither"]
"""Which values of a metric are better."""

Unit = Literal["number", "percent", "count", "rate"]
"""How its numbers are written: 0.123, 12.3 %, 1,234, 12.3."""


# -- what a metric looks at -------------------------------------------------------------


@dataclass(frozen=True)
class Decided:
    """Rows of people with the model's decisions and, where there are any, true labels."""

    population: str  # "real", or "held-out"
    rows: Rows
    favorable: Mask
    labels: Labels | None  # 1 favorable, 0 not, -1 unknown

    @staticmethod
    def of(
        population: str, rows: Rows, score: Scores, labels: Labels | None, index: Index
    ) -> Decided:
        """The rows at these places of a table, with the scores that they got."""
        return Decided(
            population, rows[index], favors(score), None if labels is None else labels[index]
        )


@dataclass(frozen=True)
class Effort:
    """What a run cost."""

    seconds: float
    preparation_seconds: float
    queries: int


_STREAMS = {"consistency": 0, "detection": 1, "pairwise_distance": 2}


@dataclass(frozen=True)
class Evidence:
    """All that a metric may look at: the findings of a run and what was measured beside them.

    None of it asks the model again.
    """

    schema: Schema
    table: Rows
    found: Found
    """Findings that were checked again: `rows`, `partner`, `score`, `partner_score` and more."""

    rates: Mapping[str, Rate]
    """Flip rates by population: real, held-out, natural, uniform."""

    by_column: Mapping[str, Mapping[str, Rate]]
    """By protected column and population: the rates of rows that flip if it alone changes."""

    checked: Mapping[str, Checked]
    """The rows on which each rate was measured, with their verdicts."""

    decided: Decided | None
    """Decisions on rows of people; None where no rate of them was measured."""

    likeness: Mapping[str, Likeness]
    """How natural findings, representative findings and real rows that flip are as sets."""

    judged_by: str
    """How the naturalness of single findings was judged; empty where it was not."""

    effort: Effort
    seed: int
    decision: Rule = AS_DECIDED
    """Which answers are different decisions; scores are what `found` has only where its kind is
    favorable."""

    in_time: Callable[[str], bool] = lambda what: True
    """Is there time for one more? A metric that takes long asks this with its name in words, and
    gives None where there is not: the report then says that it is missing."""

    threshold: float | None = None
    """The model's own score that stands at 0.5 in `found`, where scores were moved for one."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    """By population: people who are in none of its rates, because rules allow them no partner."""

    n_found: int | None = None
    """How many findings there are, where `found` is a sample of them."""

    _streams: dict[str, np.random.Generator] = field(default_factory=dict, repr=False)

    @property
    def n_findings(self) -> int:
        """How many findings there are, in the sample or beyond it."""
        return len(self.found) if self.n_found is None else self.n_found

    def rng(self, name: str) -> np.random.Generator:
        """The stream of random numbers of a metric, by its name: no other metric draws from it."""
        if name not in self._streams:
            number = _STREAMS.get(name, len(_STREAMS) + zlib.crc32(name.encode()))
            self._streams[name] = Stream.METRICS.rng(self.seed, number)
        return self._streams[name]

    @property
    def enough_to_compare(self) -> bool:
        """Are there enough findings, and rows, to hold the ones against the others as sets?"""
        return len(self.found) >= FEWEST_TO_JUDGE and len(self.table) >= 2 * FEWEST_TO_JUDGE


@dataclass(frozen=True)
class Known:
    """What a summary holds of the evidence: enough for metrics that are `derived`."""

    rates: Mapping[str, Rate]
    by_column: Mapping[str, Mapping[str, Rate]]
    likeness: Mapping[str, Likeness]
    found: Sized
    effort: Effort
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_findings(self) -> int:
        """How many findings there are."""
        return len(self.found)


# -- what a metric gives ----------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A number and what belongs to it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None  # rows, where it is a share or a mean of them
    reason: str = ""  # why there is no number
    beside: dict[str, Any] = field(default_factory=dict)
    """Further numbers and words to keep, under names of their own."""


Measurement: TypeAlias = "Figure | Rate | float | Mapping[str, Any] | None"
"""What a metric gives: a mapping has further ones by name."""


def entry_of(measured: Measurement) -> Tree:
    """A measurement as plain data: always with `value`, or a dictionary of them by name."""
    if isinstance(measured, Mapping):
        return {name: _plain(part) for name, part in measured.items()}
    if not isinstance(measured, (Figure, Rate)):
        measured = Figure(measured)
    entry: Tree = _plain(measured)
    return entry


def _plain(part: Any) -> Any:
    if isinstance(part, Rate):
        part = figure_of(part)
    if isinstance(part, Figure):
        return _figure(part)
    if isinstance(part, Mapping):
        return {str(name): _plain(inner) for name, inner in part.items()}
    return shorten(part)


def figure_of(rate: Rate) -> Figure:
    """A share with its interval as a figure."""
    if not rate.n:
        return Figure(None, n=0, reason="no row was checked")
    holds = {"holds": "whenever one stops"} if rate.anytime else {}
    return Figure(rate.estimate, rate.low, rate.high, rate.n, beside=holds)


def _figure(figure: Figure) -> Tree:
    value, reason = shorten(figure.value), figure.reason
    if isinstance(value, str):
        raise InvalidInput(f"its value is {value!r}, which is not a number")
    if value is None and figure.value is not None:
        reason = reason or f"it is {figure.value}"
    ends = {"low": figure.low, "high": figure.high, "n": figure.n}
    return {
        "value": value,
        **{name: shorten(end) for name, end in ends.items() if end is not None},
        **({"reason": reason} if reason else {}),
        **{name: _plain(part) for name, part in figure.beside.items()},
    }


def shorten(number: Any) -> Any:
    """A number to six digits, as Python's own; None for what is not finite. Words stay."""
    if isinstance(number, (np.generic, np.ndarray)) and number.ndim == 0:
        number = number.item()
    if isinstance(number, float):
        return float(f"{number:.6g}") if math.isfinite(number) else None
    if number is None or isinstance(number, (int, str)):
        return number
    raise InvalidInput(
        f"it returns a {type(number).__name__}; return a number, a figure, a rate, or a mapping of "
        "them by name"
    )


# -- what a metric says of itself -------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Metrics that answer one question: a section of the report, a key in JSON."""

    name: str
    title: str
    words: str


INDIVIDUAL = Family(
    "individual", "Individuals", "How often a person's decision depends on protected values alone."
)
GROUP = Family("group", "Groups", "How differently the model decides on two groups of people.")
NATURALNESS = Family(
    "naturalness", "Naturalness", "How much the findings look like people of your table."
)
SEVERITY = Family("severity", "Severity", "How bad a flip is, and how many people it would be.")
EFFECTIVENESS = Family(
    "effectiveness",
    "Effectiveness",
    "What the search yields for its cost; this compares methods, not models.",
)
FAMILIES = (INDIVIDUAL, GROUP, NATURALNESS, SEVERITY, EFFECTIVENESS)


@dataclass(frozen=True)
class Part:
    """One line of a metric: what it is called, how to read it, and its figure as plain data."""

    title: str
    words: str
    entry: Tree
    short: str = ""


Parts: TypeAlias = Callable[[Tree, Tree], Iterable[Part]]
"""Lines of a metric, from its own entry and from that of its family (of its column, with the
column's name as `column`, for groups)."""


@dataclass(frozen=True)
class Metric:
    """A function with a name, and how its numbers are to be read."""

    name: str  # the key in JSON
    family: Family
    measure: Callable[[Any], Measurement] = field(repr=False)  # of Evidence, or of Groups
    line: str  # what it is, for the list
    words: str  # the same for the report, which may name parts of the entry: "on {n} rows"
    formula: str
    range: str
    better: Better
    title: str
    short: str  # the paper's abbreviation
    unit: Unit
    beside: str  # what is shown next to the number in place of its interval: "largest {largest}"
    main: bool  # does the summary in the terminal show it?
    needs_labels: bool  # of groups: has it no meaning without true labels?
    derived: bool  # does it follow from what a summary holds anyway? Then it is not stored
    parts: Parts | None = field(repr=False)

    def __call__(self, evidence: Any) -> Measurement:
        """What the function gives."""
        return self.measure(evidence)

    @property
    def reads(self) -> str:
        """Range and direction in words."""
        words = {"zero": "0 is best", "neither": ""}
        better = words.get(self.better, f"{self.better} is better")
        return ", ".join(filter(None, (self.range, better)))

    def lines(self, entry: Tree, family: Tree) -> Iterable[Part]:
        """The lines of an entry: one, or one for each of several figures."""
        failed = entry.get("value", 0) is None  # with a reason, where several would have parts
        if self.parts is not None and not failed:
            return self.parts(entry, family)
        if "value" in entry:
            return [Part(self.title, self.words, entry, self.short)]
        return [
            Part(f"{self.title}, {name}", self.words, _as_entry(part), self.short)
            for name, part in entry.items()
        ]


def _as_entry(part: Any) -> Tree:
    return part if isinstance(part, dict) else {"value": part}


def metric(
    family: Family,
    *,
    formula: str,
    range: str,
    better: Better,
    unit: Unit = "number",
    name: str | None = None,
    title: str | None = None,
    short: str = "",
    beside: str = "",
    main: bool = True,
    needs_labels: bool = False,
    derived: bool = False,
    parts: Parts | None = None,
) -> Callable[[Callable[[Any], Measurement]], Metric]:
    """Make a metric of a function of a run's `Evidence`; its docstring says what it is.

    Of the family `GROUP` it is a function of two groups' counts (`limi.metrics.group.Groups`), and
    is measured for every protected column, and again when a user names another privileged group.

    The metric goes by the function's name unless `name` gives another. `formula`, `range` ("0 to
    1") and `better` are what a reader must know to make sense of the number.
    """
    for what, given, known in (("better", better, Better), ("unit", unit, Unit)):
        if given not in get_args(known):
            raise InvalidInput(f"{what} is {given!r}; {nearest(str(given), get_args(known))}")

    def declare(measure: Callable[[Any], Measurement]) -> Metric:
        key = name or measure.__name__
        told = " ".join((inspect.getdoc(measure) or "").partition("\n\n")[0].split())
        if not told:
            raise InvalidInput(
                f"the metric {key!r} has no docstring; write one that says what it is"
            )
        return Metric(
            key,
            family,
            measure,
            line=_as_line(told),
            words=_as_aid(told),
            formula=formula,
            range=range,
            better=better,
            title=title or key.replace("_", " "),
            short=short,
            unit=unit,
            beside=beside,
            main=main,
            needs_labels=needs_labels,
            derived=derived,
            parts=parts,
        )

    return declare


def _as_line(sentence: str) -> str:
    """A sentence for the list, which has no run: without the clause that names its numbers."""
    plain = re.sub(r"[,;][^,;{}]*\{\w+\}[^,;.]*", "", sentence)
    return re.sub(r"\{(\w+)\}", r"\1", plain)


def _as_aid(sentence: str) -> str:
    """A sentence as the words under a number; names in capitals keep them."""
    lower = sentence[:1].lower() if sentence[1:2].islower() or sentence[1:2] == " " else ""
    return (lower + sentence[1:] if lower else sentence).removesuffix(".")
