"""What a run found, as plain data: the one thing that text, HTML and JSON are drawn from."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from limi.audits.rule_report import RuleReport
from limi.audits.what_if import WhatIf
from limi.decisions import AS_DECIDED, Bands, round_scores
from limi.decisions import Rule as DecisionRule
from limi.metrics import collect
from limi.metrics.effectiveness import findings_per_thousand_queries
from limi.metrics.group_lines import GroupLine
from limi.metrics.individual import Rate
from limi.metrics.naturalness import Likeness
from limi.metrics.outcomes import Outcomes
from limi.metrics.regions import Condition, Rule, Where
from limi.metrics.severity import severity_of
from limi.search.check import cause_names
from limi.search.findings import Found
from limi.system.plain import read
from limi.system.words import both, either
from limi.table.schema import Schema
from limi.twins import Twins
from limi.types import Index, Mask

__all__ = [
    "Clause",
    "Example",
    "Field",
    "LeftOut",
    "Region",
    "Regions",
    "Summary",
    "causes_first",
    "causes_in_words",
    "examples",
    "keep_flips",
    "read_flips",
    "regions",
    "rules_of",
    "show",
    "split_causes",
    "tell_causes",
]

FORMAT = 2

T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """One column of a pair."""

    name: str
    value: str
    partner: str
    protected: bool

    @property
    def changed(self) -> bool:
        """Does the partner differ here?"""
        return self.value != self.partner


@dataclass(frozen=True)
class Example:
    """A finding side by side with its partner."""

    fields: tuple[Field, ...]
    score: float
    partner_score: float
    origin: str
    flipped_by: str = ""  # as `causes_in_words` says it; empty where it is not known
    span: int = 0  # of decisions that are bands: how many of them all protected variants span
    naturalness: float | None = None  # of both rows among the table's; None where unknown
    partner_naturalness: float | None = None
    row: int | None = None  # its place in findings.parquet

    @property
    def gap(self) -> float:
        """Distance of the two scores."""
        return abs(self.score - self.partner_score)


@dataclass(frozen=True)
class LeftOut:
    """People of a population who count in none of its rates, and why."""

    rows: int
    reason: str


@dataclass(frozen=True)
class Clause:
    """A condition of a region: in words, and its values as the table writes them."""

    words: str
    column: str
    low: float | str | None = None  # None: no bound; a level is text
    high: float | str | None = None
    levels: tuple[str, ...] | None = None
    missing: bool = False  # does a missing cell meet it?


@dataclass(frozen=True)
class Region:
    """Rows that flip often, and how their people fare under each value.

    See `limi.metrics.regions.Rule`.
    """

    conditions: tuple[Clause, ...]
    rate: Rate
    share: float
    lift: float
    p_value: float
    what_if: WhatIf | None = None  # of the verifying rows (see `limi.audits.what_if.in_regions`)


@dataclass(frozen=True)
class Regions:
    """Where decisions flip, in a sample of a population (see `limi.metrics.regions.Where`)."""

    population: str
    base: Rate
    learned: int
    tried: int
    share: float
    flips: float
    reason: str
    rules: tuple[Region, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Everything a report shows."""

    table: str
    n_rows: int
    n_columns: int
    model: str
    target: str | None
    favorable: str
    unfavorable: str
    method: str
    settings: dict[str, Any]
    protected: dict[str, list[str]]  # the values that were tried
    combinations: int
    findings: int
    rows_checked: int
    queries: int  # rows that the model was given; of scouts, those whose answers were used
    seconds: float
    stop: str
    seed: int
    held_out: str | None = None  # rows that the model has not seen, where they were given
    n_held_out: int = 0
    decision: str = "favorable"  # the rule, as `limi.decisions.parse_rule` reads it
    kind: str = "favorable"  # what an answer is: a favorable score, a class or a number
    threshold: float | None = None  # the model's own score that stands at 0.5 of `examples`
    classes: tuple[str, ...] = ()  # where it is a class: their labels, in their order if ordered
    ordered: bool = False
    outcomes: tuple[Outcomes, ...] = ()  # of classes and numbers: what becomes of people
    preparation_seconds: float = 0.0  # to fit the generator
    generator: str | None = None
    rates: dict[str, Rate] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    # ^ of each population whose rate is not about everybody who was asked
    unmeasured: dict[str, str] = field(default_factory=dict)  # populations without a rate, and why
    scores: dict[str, float] = field(default_factory=dict)  # numbers of the method's own
    where: Regions | None = None  # None where no rows were checked apart from the search
    metrics: dict[str, Any] = field(default_factory=dict)  # see limi.metrics.collect
    naturalness: dict[str, Likeness] = field(default_factory=dict)
    # ^ ATN against the table at equal numbers of rows: of all findings, of representative ones, of
    #   the table's own rows that flip ("ceiling": what to hold the others against)
    pictures: dict[str, Any] = field(default_factory=dict)  # see limi.audits.pictures
    rates_by_column: dict[str, dict[str, Rate]] = field(default_factory=dict)
    # ^ with several protected columns, by column and population: rows that flip if it alone changes
    rate_flips: dict[str, str] = field(default_factory=dict)
    # ^ which rows of a rate flip, in the order of their stream: see `keep_flips`
    what_if: tuple[WhatIf, ...] = ()  # the same people under every value, of populations of people
    rules: RuleReport | None = None
    # ^ of a table with rules: rates and `what_if` are then with all that goes along with a
    #   protected value, and those of protected values alone are here
    favorable_findings: dict[str, int] = field(default_factory=dict)
    # ^ how many findings are decided favorably under each combination; empty if not all were asked
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    unconfirmed: int = 0
    steadiness: dict[str, Any] = field(default_factory=dict)  # see limi.search.steadiness
    estimate: dict[str, Any] = field(
        default_factory=dict
    )  # what was expected; see limi.audits.estimate
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    # ^ seconds and questions of each phase, in their order
    cut: dict[str, str] = field(default_factory=dict)  # by phase: what budgets left out, in words
    remote: dict[str, Any] = field(default_factory=dict)
    # ^ of a model behind an address: what was sent and what it costs; see limi.audits.sending
    noise: dict[str, Any] = field(default_factory=dict)
    # ^ of a model that answers by chance: pairs, error and noise floor; see limi.audits.noise
    twins: Twins | None = None  # the twin question with its answers, where it was asked
    groups: tuple[GroupLine, ...] = ()  # every group by itself; see limi.metrics.group_lines
    volume: int | None = None  # people per year whom the model decides for, where the user said so
    date: str = ""  # the day on which the run ended
    hidden: tuple[str, ...] = ()  # columns whose cells are shown nowhere
    real_people: int | None = None  # findings that hold a person of the table, on either side
    command: str = ""  # how to repeat the run
    used: dict[str, Any] = field(default_factory=dict)  # settings that the budget changed
    versions: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str | None] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def all_metrics(self) -> dict[str, Any]:
        """The tree of metrics, with how the same people fare under every value."""
        if not self.metrics:
            return {}
        tables = [dataclasses.asdict(table) for table in self.what_if]
        return self.metrics | {"what_if": _without_nan(tables)}

    @property
    def per_thousand_queries(self) -> float:
        """Findings per thousand queries of the model."""
        return findings_per_thousand_queries(self.findings, self.queries)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        tree = dataclasses.asdict(self)
        tree["metrics"] = collect.drop_derived(tree["metrics"])
        tree["format"] = FORMAT
        cleaned: dict[str, Any] = _without_nan(tree)
        return cleaned

    @staticmethod
    def from_dict(tree: dict[str, Any], *, derive: bool = True) -> Summary:
        """The inverse of `as_dict`; without `derive`, metrics that follow from others are left out,
        which spares whoever shows no metrics the libraries that work them out."""
        summary = read(Summary, tree)
        if summary.twins is not None:
            summary.twins.require_groups()
        if not derive or not summary.metrics:
            return summary
        return dataclasses.replace(
            summary, metrics=collect.add_derived(summary.metrics, summary.known)
        )

    @property
    def blind(self) -> bool:
        """Does the model take none of the protected columns, nor what goes along with them?"""
        along = () if self.rules is None else self.rules.along
        return self.twins is not None and {*self.protected, *along} <= set(self.twins.unseen)

    @property
    def known(self) -> collect.Known:
        """What metrics can be derived from."""
        effort = collect.Effort(math.nan, math.nan, self.queries)
        return collect.Known(
            self.rates,
            self.rates_by_column,
            self.naturalness,
            range(self.findings),
            effort,
            {name: left.rows for name, left in self.left_out.items()},
        )

    def n_asked(self, name: str) -> int:
        """How many people of a population were asked for its rate, those left out included."""
        left = self.left_out.get(name)
        return self.rates[name].n + (0 if left is None else left.rows)


def keep_flips(flips: Mask) -> str:
    """Which rows flip, a bit each, as text; a later model is compared with it row by row.

    >>> keep_flips(np.array([True, False, True]))
    'oA=='
    """
    return base64.b64encode(np.packbits(flips).tobytes()).decode("ascii")


def read_flips(kept: str | None, rate: Rate) -> Mask | None:
    """The inverse, of the rows that a rate was measured on; None where nothing was kept.

    ValueError where the two do not belong together.
    """
    if kept is None:
        return None
    bits = np.frombuffer(base64.b64decode(kept, validate=True), dtype=np.uint8)
    flips = np.unpackbits(bits).astype(bool)[: rate.n]
    if len(flips) != rate.n or int(flips.sum()) != round(rate.estimate * rate.n):
        raise ValueError("rate_flips are not those of the rate")
    return flips


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: an unknown number is null there."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def regions(
    where: Where, population: str, what_if: Sequence[WhatIf | None] | None = None
) -> Regions:
    """Rules as a report shows them, each with what is known of its people."""
    told = [None] * len(where.rules) if what_if is None else what_if
    shown = tuple(
        Region(
            tuple(map(_as_clause, rule.conditions)),
            rule.rate,
            rule.share,
            rule.lift,
            rule.p_value,
            people,
        )
        for rule, people in zip(where.rules, told, strict=True)
    )
    return Regions(
        population,
        where.base,
        where.learned,
        where.tried,
        where.share,
        where.flips,
        where.reason,
        shown,
    )


def _as_clause(condition: Condition) -> Clause:
    column, codes = condition.column, condition.codes
    low, high = (
        None
        if not math.isfinite(bound)
        else bound
        if column.kind == "numerical"
        else column.show(bound)
        for bound in (condition.low, condition.high)
    )
    levels = None if codes is None else tuple(map(column.show, codes))
    return Clause(str(condition), column.name, low, high, levels, condition.missing)


def rules_of(schema: Schema, found: Regions | None) -> tuple[Rule, ...]:
    """The rules that regions stand for: the inverse of `regions`."""
    return tuple(
        Rule(
            tuple(_condition(schema, clause) for clause in region.conditions),
            region.rate,
            region.share,
            region.lift,
            region.p_value,
        )
        for region in (found.rules if found else ())
    )


def _condition(schema: Schema, clause: Clause) -> Condition:
    column = schema[clause.column]
    codes = {column.show(code): float(code) for code in range(len(column.levels))}

    def code(shown: float | str) -> float:
        return float(shown) if column.kind == "numerical" else codes[str(shown)]

    return Condition(
        column,
        schema.position(column.name),
        -math.inf if clause.low is None else code(clause.low),
        math.inf if clause.high is None else code(clause.high),
        None if clause.levels is None else tuple(map(code, clause.levels)),
        clause.missing,
    )


def causes_in_words(schema: Schema, causes: NDArray[np.uint8]) -> NDArray[np.str_]:
    """For each finding the protected columns that flip it: `"sex"`, `"sex, race"` where either
    does, `"sex+race"` where only both together do."""
    names = cause_names(schema)
    words = [
        ", ".join(name for bit, name in enumerate(names) if mask >> bit & 1)
        for mask in range(1 << len(names))
    ]
    return np.array(words)[causes.astype(np.intp)]


def split_causes(flipped_by: str, protected: Sequence[str]) -> list[list[str]]:
    """The sets of columns that `causes_in_words` wrote; none where it is not known."""
    sets = [part.split("+") for part in flipped_by.split(", ")]
    # A name with a comma or a plus cannot be told from two.
    return sets if all(name in protected for names in sets for name in names) else []


def tell_causes(flipped_by: str, protected: Sequence[str]) -> str:
    """Which columns flip a finding: `"sex"`, `"sex or race"`, `"sex and race together"`."""
    sets = split_causes(flipped_by, protected)
    parts = [names[0] if len(names) == 1 else f"{both(names)} together" for names in sets]
    return either(parts, len(parts)) if parts else flipped_by


def causes_first(
    cells: Sequence[tuple[str, T]], flipped_by: str, protected: Sequence[str]
) -> list[tuple[str, T]]:
    """Columns by name with anything, those that flip a finding first."""
    causes = {name for names in split_causes(flipped_by, protected) for name in names}
    return sorted(cells, key=lambda cell: cell[0] not in causes)


def examples(
    schema: Schema, found: Found, most: int = 10, decision: DecisionRule = AS_DECIDED
) -> tuple[Example, ...]:
    """The findings with the widest gap between the two answers."""
    gap = round_scores(severity_of(decision, found))
    if decision.kind == "class":  # among equals, the classes that are furthest ahead
        leads = [part - np.floor(part) for part in (found.score, found.partner_score)]
        gap = round_scores(gap + np.minimum(*leads))
    if isinstance(decision, Bands):  # among equals, the numbers that are furthest apart
        sides = (found.partner_score[:, None], found.score[:, None])
        gap = round_scores(gap + decision.rank(*sides)[:, 0])
    strongest = np.argsort(-gap, kind="stable")[:most]
    return show(schema, found, strongest)


def show(schema: Schema, found: Found, places: Index) -> tuple[Example, ...]:
    """The findings at these places as a report shows them."""
    chosen = found[places]
    return tuple(
        dataclasses.replace(_example(schema, chosen, k), row=int(places[k]))
        for k in range(len(chosen))
    )


def _example(schema: Schema, found: Found, place: int) -> Example:
    fields = tuple(
        Field(
            column.name,
            column.show(float(found.rows[place, position])),
            column.show(float(found.partner[place, position])),
            not bool(schema.free_mask[position]),
        )
        for position, column in enumerate(schema.columns)
    )
    return Example(
        fields,
        float(found.score[place]),
        float(found.partner_score[place]),
        str(found.origin[place]),
        str(causes_in_words(schema, found.causes[place : place + 1])[0]),
        int(found.span[place]) if len(found.span) else 0,
        _known(found.naturalness, place),
        _known(found.partner_naturalness, place),
    )


def _known(told: NDArray[np.float64], place: int) -> float | None:
    return float(told[place]) if len(told) and np.isfinite(told[place]) else None
