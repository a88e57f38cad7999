"""How often decisions flip in a named population, measured apart from any search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from limi.defaults import MEASURED_ROWS
from limi.metrics._base import INDIVIDUAL, Evidence, Figure, Known, Part, Tree, figure_of, metric
from limi.metrics._populations import (
    LEAST_KEPT,
    POPULATIONS,
    choose_places,
    describe_population,
    draw_people,
    name_population,
    people_rng,
)
from limi.metrics.individual import Rate, flip_rate, rate_of
from limi.metrics.sequential import anytime_interval, anytime_rate
from limi.search.check import Checked
from limi.search.rounds import survey_people
from limi.search.session import Session
from limi.search.steadiness import Steadiness, always_flip, confirm
from limi.search.tried import most_queries
from limi.system.watch import OutOfTime
from limi.table.partners import change
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows

__all__ = [
    "MOST_QUERIES",
    "Measured",
    "Surveyed",
    "UnderRules",
    "measurable_rows",
    "measure",
    "measure_blind",
    "most_per_row",
    "survey",
]

MOST_QUERIES = 250_000  # of a rate: many protected combinations make a row dear
_EXPANDED = 4096  # rows whose partners are looked at together


@dataclass(frozen=True)
class UnderRules:
    """The same people if only protected values change, and how they stand to the rules."""

    only_protected: Measured  # without rules: the question of the papers
    breaking: dict[str, int]  # people who break a rule themselves, by population
    alone: dict[str, int]  # people who cannot have a partner
    kept: dict[str, float]  # of people who were drawn, the share that keeps the rules
    unmeasured: dict[str, str]  # populations without a rate, and why


@dataclass(frozen=True)
class Measured:
    """Rates by population, and what they cost."""

    rates: dict[str, Rate]
    queries: int
    checked: dict[str, Checked]  # the rows of each population with their verdicts
    alone: dict[str, dict[str, Rate]]  # with several protected columns, by column and population:
    # ^ the rates of rows that flip if that column alone changes
    places: dict[str, Index]  # where those of a table stand in it
    under_rules: UnderRules | None = None  # of a table with rules

    @property
    def flipping(self) -> dict[str, Rows]:
        """The rows of each population that flip."""
        return {name: checked.rows[checked.flips] for name, checked in self.checked.items()}


def measure(
    session: Session,
    populations: list[str],
    seed: int,
    *,
    rows: int = MEASURED_ROWS,
    max_queries: int | None = None,
    told: Steadiness | None = None,
    held_out: Rows | None = None,
) -> Measured:
    """Rates of these populations, each on a sample of fixed size drawn from its own stream.

    The population `real` is the session's table, `held-out` the rows that are given as such.
    `max_queries` bounds the cost of all of them together; where time runs out, a rate is that of
    the rows asked until then, whose number no flip has a say in. Where the model is `told` to be
    unsteady, only rows that flip every time they are asked count as flipping. With several
    protected columns each has a rate alone as well, without the rows that flip only if two change
    together. Where the table has rules, the same people are also asked without them; people
    who cannot have a partner are in no rate.
    """
    n = min(rows, measurable_rows(session.schema, len(populations), max_queries, told))
    measured, ruled = _nothing(session.schema), session.schema.rules
    plain, told_rules = _nothing(session.schema), _RuleCounts()
    binding = session.schema.enforcer.binds_partners
    tables = {"real": session.rows, "held-out": held_out}
    places = measured.places
    for name in populations if n > 0 else []:
        rng = people_rng(name, seed)
        table = tables.get(name)
        people: Any
        decode: Callable[[Any], Rows] = np.asarray
        if table is not None:
            places[name] = _places(session, len(table), n, rng)
            people = table[places[name]]
        elif name == "natural" and session.ahead is not None and session.generator is not None:
            # Whoever asks about them decodes them; there are no rules, or nobody would go ahead.
            people, decode = session.generator.sample_latents(n, rng), session.generator.decode
        else:
            people, kept = draw_people(name, n, rng, session.schema, session.generator)
            told_rules.note_drawn(name, len(people), kept)
            if not len(people):
                continue
        try:
            measured = _survey(session, measured, name, people, told, rng, decode)
            if ruled:
                people = people[: len(measured.checked[name])]
                told_rules.note_people(session.schema, name, measured.checked[name])
            if binding:
                plain = _survey(session.without_rules(), plain, name, people, told, rng)
        except OutOfTime:
            break
        finally:
            if table is not None and name in measured.checked:
                places[name] = places[name][: len(measured.checked[name])]
    if not ruled:
        return measured
    under = told_rules.told(plain)
    return replace(measured, queries=measured.queries + plain.queries, under_rules=under)


def _nothing(schema: Schema) -> Measured:
    return Measured({}, 0, {}, {column: {} for column in _alone(schema)}, {})


def _survey(
    session: Session,
    measured: Measured,
    name: str,
    people: Rows,
    told: Steadiness | None,
    rng: np.random.Generator,
    decode: Callable[[Any], Rows] = np.asarray,
) -> Measured:
    """The rates with those of one more population."""
    surveyed = survey(session, people, told, rng, decode)
    checked = surveyed.checked
    paired = checked.is_paired
    measured.rates[name] = flip_rate(checked.flips[paired])
    measured.checked[name] = checked
    for place, (column, flips) in enumerate(surveyed.alone.items()):
        able = _can_change_alone(session.schema, checked.rows, place)
        measured.alone[column][name] = flip_rate(flips[able])
    return replace(measured, queries=measured.queries + surveyed.queries)


@dataclass(frozen=True)
class Surveyed:
    """Rows with their verdicts, under all protected columns together and under each alone."""

    checked: Checked
    alone: dict[str, Mask]  # with several protected columns
    queries: int


def survey(
    session: Session,
    people: Any,
    told: Steadiness | None,
    rng: np.random.Generator,
    decode: Callable[[Any], Rows] = np.asarray,
) -> Surveyed:
    """Verdicts of rows, or of what latents decode to, under all protected columns and under each
    alone, confirmed where the model is `told` to be unsteady."""
    doubt = _Doubt(session, told, rng) if told is not None and not told.steady else None
    checked = survey_people(session, people, decode)
    checked = checked if doubt is None else doubt.confirmed(checked)
    alone = {
        column: _flips_alone(session, checked, place, doubt)
        for place, column in enumerate(_alone(session.schema))
    }
    return Surveyed(checked, alone, checked.queries + (0 if doubt is None else doubt.queries))


@dataclass
class _RuleCounts:
    """How people stand to the rules, population by population."""

    breaking: dict[str, int] = field(default_factory=dict)
    alone: dict[str, int] = field(default_factory=dict)
    kept: dict[str, float] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)

    def note_drawn(self, name: str, n: int, kept: float) -> None:
        """Of people who were drawn, how many keep the rules."""
        self.kept[name] = kept
        if not n:
            self.unmeasured[name] = (
                f"fewer than {100 * LEAST_KEPT:.0f} % of them keep the rules of the table "
                f"({100 * kept:.2f} % of those drawn)"
            )

    def note_people(self, schema: Schema, name: str, checked: Checked) -> None:
        """Of people who were asked, how many break a rule, and how many have no partner."""
        self.breaking[name] = int(schema.enforcer.breaks(checked.rows).sum())
        self.alone[name] = int((~checked.is_paired).sum())

    def told(self, plain: Measured) -> UnderRules:
        return UnderRules(plain, self.breaking, self.alone, self.kept, self.unmeasured)


def measure_blind(session: Session, name: str, rows: Rows, seed: int, most: int) -> Measured:
    """What is decided about people by a model that takes no protected column.

    Nobody flips, by definition, so each row is asked once.
    """
    rng = people_rng(name, seed)
    places = _places(session, len(rows), most, rng)
    people = rows[places]
    try:
        scores = session.scores(people)
    except OutOfTime:
        return Measured({}, 0, {}, {}, {})
    if not len(people):
        return Measured({}, 0, {}, {}, {})
    n_values = [len(codes) for codes in session.schema.protected_codes]
    if len(n_values) > 1:
        n_values.append(len(session.schema.combinations))
    decided = session.decision.stands(scores, scores)[:, None]
    checked = Checked(
        people,
        scores,
        people,
        scores,
        np.zeros(len(people), dtype=bool),
        queries=len(people),
        as_if=tuple(np.repeat(decided, n, axis=1) for n in n_values),
    )
    nobody = Rate(0.0, 0.0, 0.0, len(people))
    alone = {column: {name: nobody} for column in _alone(session.schema)}
    return Measured({name: nobody}, len(people), {name: checked}, alone, {name: places})


def _alone(schema: Schema) -> tuple[str, ...]:
    """Columns that have a rate alone: one that is the only one needs none."""
    return schema.protected if len(schema.protected) > 1 else ()


@dataclass
class _Doubt:
    """Flips of a model whose answers move, asked again and again."""

    session: Session
    told: Steadiness
    rng: np.random.Generator
    queries: int = 0  # for columns alone

    @property
    def company(self) -> Rows | None:
        """Rows to stand beside those in question."""
        return self.session.rows if self.told.in_company else None

    def confirmed(self, checked: Checked) -> Checked:
        """Verdicts of which only those flips are left that are seen every time."""
        session = self.session
        return confirm(
            checked,
            session.scores,
            self.rng,
            company=self.company,
            max_batch=session.max_batch,
            decision=session.decision,
        )

    def kept(self, rows: Rows, partner: Rows) -> Mask:
        """Which pairs are decided differently every time."""
        session = self.session
        kept, asked = always_flip(
            session.scores,
            rows,
            partner,
            self.rng,
            company=self.company,
            max_batch=session.max_batch,
            decision=session.decision,
        )
        self.queries += asked
        return kept


def _flips_alone(session: Session, checked: Checked, place: int, doubt: _Doubt | None) -> Mask:
    """Which rows flip if this protected column alone changes, and all else is as it is."""
    schema = session.schema
    flipped = session.decision.turns(checked.as_if[place], checked.score)
    flips: Mask = flipped.any(axis=1)
    if doubt is None or not flips.any():
        return flips
    codes = np.array(schema.protected_codes[place])
    cells = np.full((int(flips.sum()), len(schema.protected)), np.nan)
    cells[:, place] = codes[flipped[flips].argmax(axis=1)]
    partner = change(schema, checked.rows[flips], cells)
    flips[flips] = doubt.kept(checked.rows[flips], partner)
    return flips


def _can_change_alone(schema: Schema, rows: Rows, place: int) -> Mask:
    """Which rows have a partner that could exist if this protected column alone changes."""
    able = np.ones(len(rows), dtype=bool)
    enforcer = schema.enforcer
    if not enforcer.binding:
        return able
    codes = np.array(schema.protected_codes[place])
    cells = np.full((len(codes), len(schema.protected)), np.nan)
    cells[:, place] = codes
    for start in range(0, len(rows), _EXPANDED):
        part = rows[start : start + _EXPANDED]
        others = part[:, schema.protected_index[place], None] != codes
        may_ask = enforcer.find_open(part, enforcer.expand(part, cells))
        able[start : start + _EXPANDED] = (others if may_ask is None else others & may_ask).any(1)
    return able


def measurable_rows(
    schema: Schema,
    n_populations: int,
    max_queries: int | None = None,
    told: Steadiness | None = None,
) -> int:
    """On how many rows each rate can be measured, where all may ask so many queries together."""
    per_row = most_per_row(schema, told)
    per_row *= 2 if schema.rules else 1  # people are asked with what goes along, and without
    most = MOST_QUERIES if max_queries is None else max_queries // max(1, n_populations)
    return most // per_row


def most_per_row(schema: Schema, told: Steadiness | None) -> int:
    """Queries that surveying a row may take."""
    # + 1: a row may hold a value of its own; with several columns it costs mixtures as well.
    per_row = max(len(schema.combinations) + 1, most_queries(schema))
    return per_row + (0 if told is None else told.per_flip * (1 + len(_alone(schema))))


def _places(session: Session, size: int, n: int, rng: np.random.Generator) -> Index:
    chosen = choose_places(size, n, rng)
    # Time may end the asking, and the first rows of a table are not a fair part of it.
    return rng.permutation(chosen) if session.watch.limited else chosen


# -- measured in every run --------------------------------------------------------------

_RATES = {"real": "IF_o", "uniform": "IF_r"}


def _flip_rate_parts(entry: Tree, family: Tree) -> Iterator[Part]:
    known = [name for name in POPULATIONS if name in entry]
    for name in [*known, *(name for name in entry if name not in known)]:
        rows = name_population(name)
        aid = f"the share that flips of {describe_population(name) or name}"
        yield Part(f"flip rate of {rows}", aid, entry[name], _RATES.get(name, ""))
        for column, alone in family.get("flip_rates_by_column", {}).items():
            if name in alone:
                yield Part(
                    f"flip rate of {rows}, {column} alone",
                    f"the share that flips if {column} changes and everything else stays the same",
                    alone[name],
                )


@metric(
    INDIVIDUAL,
    name="flip_rates",
    title="flip rate",
    formula="flipping rows / rows, for each population: real rows come from the table, natural "
    "rows from a generator, uniform rows from the whole domain; held-out rows, which the model has "
    "not seen (`--held-out`), replace real rows, also for groups, consistency and errors",
    range="0 to 100 %",
    better="lower",
    unit="percent",
    short="IF_o (real), IF_r (uniform)",
    main=False,
    derived=True,
    parts=_flip_rate_parts,
)
def _measure_flip_rates(evidence: Evidence | Known) -> Mapping[str, Figure]:
    """The share of rows that flip, of each population."""
    figures = {name: _at_any_time(rate) for name, rate in evidence.rates.items()}
    for name, n in evidence.left_out.items():
        figures[name].beside["left_out"] = n
    return figures


@metric(
    INDIVIDUAL,
    name="flip_rates_by_column",
    title="flip rate of one column",
    formula="the same, of rows that flip if that column alone changes; where there are several",
    range="0 to 100 %",
    better="lower",
    unit="percent",
    main=False,
    derived=True,
    parts=lambda entry, family: (),  # beside the rates of all columns together
)
def _measure_rates_by_column(
    evidence: Evidence | Known,
) -> Mapping[str, Mapping[str, Figure]] | None:
    """The share of rows that flip if one protected column changes and all else is as it is."""
    return {
        column: {name: _at_any_time(rate) for name, rate in alone.items()}
        for column, alone in evidence.by_column.items()
    } or None


def _at_any_time(rate: Rate) -> Figure:
    """A rate with a second interval, which holds for all numbers of rows at once."""
    low, high = anytime_interval(round(rate.estimate * rate.n) if rate.n else 0, rate.n)
    ends = {"anytime": {"low": float(low), "high": float(high)}}
    return replace(figure_of(rate), beside=figure_of(rate).beside | ends)


@metric(
    INDIVIDUAL,
    name="causal_discrimination",
    formula="flipping rows / uniform rows, with a 99 % interval",
    range="0 to 100 %",
    better="lower",
    unit="percent",
    main=False,
)
def _measure_causal_discrimination(evidence: Evidence) -> Figure | None:
    """THEMIS's name for the share of uniform rows that flip, with its 99 % interval."""
    uniform = evidence.rates.get("uniform")
    if uniform is None or not uniform.n:
        return None
    counted = anytime_rate if uniform.anytime else rate_of
    rate = figure_of(counted(round(uniform.estimate * uniform.n), uniform.n, 0.99))
    return replace(rate, beside=rate.beside | {"confidence": 0.99})
