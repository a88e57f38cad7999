"""What an audit found, as frames, metrics and files."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from limi.audits.problem import Problem
from limi.audits.summary import Summary, causes_in_words
from limi.audits.what_if import WhatIf
from limi.decisions import Classes, restore_threshold
from limi.decisions import Rule as DecisionRule
from limi.errors import InvalidInput, nearest
from limi.metrics import collect
from limi.metrics._rate import Rate, Unmeasured
from limi.metrics.privileged import Privileged
from limi.metrics.regions import Rule
from limi.metrics.representative import representative
from limi.metrics.severity import priority, severity_of
from limi.models.target import Target
from limi.search.check import cause_names
from limi.search.findings import Found, Spool
from limi.streams import Stream
from limi.system.arguments import checked
from limi.system.shown import to_json
from limi.system.writing import Content, write
from limi.table.frames import Frame
from limi.table.schema import Schema
from limi.table.schema_files import dump
from limi.twins import Twins
from limi.types import Index, Mask, Scores

if TYPE_CHECKING:
    from limi.explore.server import Served
    from limi.report.plots import Plots

__all__ = [
    "Rates",
    "Result",
    "draw_representative",
    "files",
    "partner_columns",
]


class Rates(dict[str, Rate]):
    """Rates by population; one that was not measured is NaN, and its `reason` says why.

    >>> Rates({}, {"natural": "no generator was given"})["natural"].reason
    'no generator was given'
    """

    def __init__(self, rates: Mapping[str, Rate], unmeasured: Mapping[str, str]) -> None:
        super().__init__(rates)
        self.unmeasured = dict(unmeasured)

    def __missing__(self, name: str) -> Rate:
        if name in self.unmeasured:
            return Unmeasured(reason=self.unmeasured[name])
        known = [*self, *self.unmeasured]
        raise InvalidInput(f"there is no population {name!r}; {nearest(str(name), known)}")


@dataclass(frozen=True)
class Result:
    """What an audit found."""

    problem: Problem
    found: Found
    summary: Summary
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rules: tuple[Rule, ...] = field(default=(), repr=False)
    frame: Frame | None = field(default=None, repr=False)  # the table as it was given
    spool: Spool | None = field(default=None, repr=False)
    # ^ all findings, where they do not fit into memory: `found` is then a fair sample of them

    @property
    def rates(self) -> Rates:
        """Share of flipping rows by population, each with a 95 % interval.

        With rules, what must change along with a protected value changes too.
        """
        return Rates(self.summary.rates, self.summary.unmeasured)

    @property
    def rates_only_protected(self) -> Rates:
        """The same rates if only the protected values changed, and nothing else with them.

        Equal to `rates` if the rules of the table bind no partner.
        """
        rules = self.summary.rules
        if rules is None or not rules.only_protected:
            return self.rates
        return Rates(rules.only_protected, self.summary.unmeasured)

    @property
    def rates_by_column(self) -> dict[str, Rates]:
        """With several protected columns, the rates for each: rows that flip if only it changes.

        Rows that flip only if two columns change together are in none of them.
        """
        return {
            column: Rates(rates, self.summary.unmeasured)
            for column, rates in self.summary.rates_by_column.items()
        }

    @property
    def rates_by_column_only_protected(self) -> dict[str, Rates]:
        """The same if nothing else changed with that column.

        Equal to `rates_by_column` if the rules of the table bind no partner.
        """
        rules = self.summary.rules
        if rules is None or not rules.only_protected:
            return self.rates_by_column
        return {
            column: Rates(rates, self.summary.unmeasured)
            for column, rates in rules.only_protected_by_column.items()
        }

    @checked
    def what_if(
        self,
        column: str | None = None,
        population: str | None = None,
        *,
        only_protected: bool = False,
    ) -> WhatIf:
        """The same people decided as if they had each value of a protected column: `values` with
        their rates, `pairs` with differences, and `favored`, which names nobody without support.

        By default the only column, or all of them together; and the table's people, or natural
        ones where those were not measured. Where the table has rules, with all that must go along
        with a value, or if the protected values changed alone (`only_protected`).
        """
        rules, tables = self.summary.rules, self.summary.what_if
        if only_protected and rules is not None and rules.only_protected:
            tables = rules.only_protected_what_if
        return _choose(self.summary, tables, column, population)

    @property
    def twins(self) -> Twins | None:
        """What the model does with what goes with the protected columns: gains and losses of
        people decided as their twins of another group, with carriers, placebo and what remains
        where columns are kept. None where nobody asked (`audit(..., twin=True)`)."""
        return self.summary.twins

    @property
    def stop(self) -> str:
        """Why the search ended."""
        return self.summary.stop

    @cached_property
    def findings(self) -> Frame:
        """One row per finding, in the type of the given frame: its columns, the partner's protected
        values as `<column>__partner` with those of columns that may go along, `score`,
        `partner_score`, `origin`, `severity` (the gap of the scores), `naturalness` and
        `partner_naturalness` (p-values; NaN where unknown).

        Where the decision is a class there are `class` and `lead` (how far it is ahead of the next,
        from 0 to 0.5) in place of the score, and `severity` counts places of ordered classes; where
        it is a number there is `prediction`, and `severity` is the difference, or how many bands
        all protected variants span.

        All of them, also where a run keeps them on disk and `found` is a sample."""
        return findings_frame(
            self.problem.target, self.found if self.spool is None else self.spool.all()
        )

    @cached_property
    def groups(self) -> Frame:
        """Every group of the protected columns and of their intersections, one per row, in the type
        of the given frame: `n`, then `selection_rate`, `what_if_rate`, `accuracy`,
        `false_favorable_rate`, `false_unfavorable_rate` and `impact_ratio`, each with `_low` and
        `_high`; NaN where there are too few rows to say, or no labels.

        Where decisions are numbers there are `mean_prediction` and `mean_absolute_error`, and where
        they are classes `selection_rate_<class>` and `accuracy`, for each protected column."""
        return groups_frame(self.problem.target, self.summary)

    @checked
    def representative(self, n: int | None = None, *, seed: int = 0) -> Frame:
        """The n findings that look most like the table, as a frame like `findings`.

        Drawn by weights, calibrated to the table's columns; by default as many as these are
        effectively worth (at least 500), but no more than a quarter of the findings, or than the
        table has rows.
        """
        if n is not None and n < 1:
            raise InvalidInput(f"n is {n}; it is how many findings to draw and must be at least 1")
        chosen = draw_representative(self.problem, self.found, n, seed)
        return findings_frame(self.problem.target, self.found[chosen])

    @checked
    def ranked(self, n: int | None = None) -> Frame:
        """The n findings to look at first, or all: by severity times naturalness.

        A pair is as natural as the less natural of its two rows.
        """
        order = ranking(self.problem.target.rule, self.found)[:n]
        return findings_frame(self.problem.target, self.found[order])

    @checked
    def metrics(
        self, *, volume: int | None = None, privileged: Privileged | None = None
    ) -> dict[str, Any]:
        """Every metric of the run as plain data: `value`, with `low` and `high` where there is an
        interval, and `reason` where there is no number.

        `volume` is a number of people, and adds how many of them would flip. `privileged` names the
        group that others are compared with (`"sex=Male"`), or `"lowest"` for the paper's split; by
        default the group with the highest selection rate, as the answer says.
        """
        return collect.answer_request(
            self.summary.all_metrics, self.problem.schema, volume=volume, privileged=privileged
        )

    def where(self) -> list[Rule]:
        """Regions in which decisions flip more often than on average, highest rate first.

        Each was learned on one half of a sample and verified on the other; `str(rule)` has its
        conditions in words, `rule.rate` its rate. An empty list: `summary.where.reason` says why.
        """
        return list(self.rules)

    def inside(self, rule: Rule, frame: Frame) -> Mask:
        """Which rows of a frame lie in the region of a rule; InvalidInput for anything but one."""
        if not isinstance(rule, Rule):
            raise InvalidInput(
                f"rule is {str(rule)[:80]!r}, but inside() takes a region of result.where(); for a "
                "condition of your own use frame.query(...)"
            )
        return rule.mask(self.problem.target.codec.encode(frame))

    @property
    def plot(self) -> Plots:
        """Pictures for a notebook: `plot.rates()`, `plot.where()` and `plot.pairs()`. Plain SVG, or
        with `.draw(ax)` by matplotlib."""
        from limi.report.plots import Plots

        return Plots(self.summary)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the HTML report."""
        from limi.report import html

        write(path, html.render(self.summary, self._ledger()))
        return Path(path)

    @checked
    def explore(
        self,
        *,
        max_queries: int | None = None,
        timeout: float = 60.0,
        record: str | Path | None = None,
        port: int = 0,
    ) -> Served:
        """A page on this machine for asking the model about single people; `stop()` ends it.

        A notebook shows it in the cell.

        `max_queries` limits the questions of the session, `timeout` the seconds for one answer, and
        `record` names the file in which questions are kept.
        """
        from limi.explore.opening import explore_result
        from limi.explore.server import serve_aside

        kept = None if record is None else Path(record)
        made = explore_result(self, max_queries=max_queries, timeout=timeout, record=kept)
        return serve_aside(made, port)

    def _ledger(self) -> dict[str, Any]:
        """All findings for the page."""
        from limi.report.ledger import ledger_of

        rule = self.problem.target.rule
        return ledger_of(self.problem.schema, self.found, self.summary, rule)

    def __repr__(self) -> str:
        from limi.report import wording

        rates = ", ".join(
            f"{name} {wording.describe_rate(self.summary, name)}" for name in self.rates
        )
        return (
            f"<limi.Result: {self.summary.findings} findings by {self.summary.method}, "
            f"protected {', '.join(self.summary.protected)}; flip rates: {rates or 'none'}>"
        )

    def _repr_html_(self) -> str:
        from limi.report import html

        return html.snippet(self.summary)


def _choose(
    summary: Summary, tables: tuple[WhatIf, ...], column: str | None, population: str | None
) -> WhatIf:
    if not tables:
        from limi.report import favored

        raise InvalidInput(f"who is favored is not known. {favored.lacking(summary)}")
    columns = tuple(summary.protected) if column is None else (column,)
    if column is not None and column not in summary.protected:
        raise InvalidInput(
            f"{column!r} is not a protected column of the run; {nearest(column, summary.protected)}"
        )
    known = dict.fromkeys(table.population for table in tables)
    if population is not None and population not in known:
        raise InvalidInput(
            f"the {population} people were not compared; {nearest(population, known)}"
        )
    wanted = population or next(iter(known))
    return next(t for t in tables if t.columns == columns and t.population == wanted)


def draw_representative(problem: Problem, found: Found, n: int | None, seed: int) -> Index:
    """Positions of n findings that look most like the table, or of as many as there are."""
    rng = Stream.REPRESENTATIVE.rng(seed)
    return representative(problem.rows, found.rows, problem.schema, n, rng)


def answer_columns(rule: DecisionRule, answers: Scores) -> dict[str, NDArray[Any]]:
    """What is written of a model's answers, in the user's terms."""
    if isinstance(rule, Classes):
        known = np.array([rule.show(place) for place in range(len(rule.labels) + 1)])
        places = np.floor(answers)
        return {"class": known[places.astype(np.intp)], "lead": answers - places}
    return {rule.noun: answers}


def _own_scores(target: Target, found: Found) -> dict[str, NDArray[Any]]:
    """The model's own numbers, where scores were moved for a threshold."""
    if target.threshold is None:
        return {}
    own, other = (
        restore_threshold(scores, target.threshold) for scores in (found.score, found.partner_score)
    )
    return {"model_score": own, "partner_model_score": other}


def findings_frame(target: Target, found: Found) -> Frame:
    """Findings as a user gets them, in the type of the given frame."""
    codec, rule = target.codec, target.rule
    schema, backend = codec.schema, codec.backend
    names = schema.names
    partner = codec.decode(found.partner)
    frame = codec.decode(found.rows)
    columns = {name: backend.column(frame, name) for name in names}
    for name in partner_columns(schema):
        columns[_free_name(f"{name}__partner", columns)] = backend.column(partner, name)
    unknown = np.full(len(found), np.nan)
    told = len(found.naturalness) > 0
    extra = {
        **answer_columns(rule, found.score),
        **{f"partner_{k}": v for k, v in answer_columns(rule, found.partner_score).items()},
        **_own_scores(target, found),
        "origin": found.origin,
        "severity": severity_of(rule, found),
        "naturalness": found.naturalness if told else unknown,
        "partner_naturalness": found.partner_naturalness if told else unknown,
    }
    if len(found.chances):
        sides = ("chance", "partner_chance")
        names_ = [f"{side}{end}" for side in sides for end in ("", "_low", "_high")]
        extra |= dict(zip(["asked", *names_], found.chances.T, strict=True))
    # A frugal search does not ask every value, so it cannot say which columns flip a row.
    if cause_names(schema) and (found.causes.any() or not len(found)):
        extra["flipped_by"] = causes_in_words(schema, found.causes)
    for name, cells in extra.items():
        columns[_free_name(name, columns)] = backend.plain_column(cells)
    return backend.frame(columns)


_GROUP_RATES = {
    "selection_rate": "selection",
    "what_if_rate": "what_if",
    "accuracy": "accuracy",
    "false_favorable_rate": "false_favorable",
    "false_unfavorable_rate": "false_unfavorable",
    "impact_ratio": "impact_ratio",
}


def groups_frame(target: Target, summary: Summary) -> Frame:
    """Groups as a user gets them."""
    backend, lines = target.codec.backend, summary.groups
    if summary.outcomes:
        known = _outcome_cells(summary)
        return backend.frame({name: backend.plain_column(known[name]) for name in known})
    cells: dict[str, NDArray[Any]] = {
        "columns": np.array([" and ".join(line.columns) for line in lines], dtype=str),
        "group": np.array([line.group for line in lines], dtype=str),
        "n": np.array([line.n for line in lines], dtype=np.int64),
    }
    for title, name in _GROUP_RATES.items():
        rates = [getattr(line, name) for line in lines]
        for end, part in (("", "estimate"), ("_low", "low"), ("_high", "high")):
            cells[f"{title}{end}"] = np.array(
                [np.nan if rate is None else getattr(rate, part) for rate in rates],
                dtype=np.float64,
            )
    return backend.frame({name: backend.plain_column(column) for name, column in cells.items()})


def _outcome_cells(summary: Summary) -> dict[str, NDArray[Any]]:
    """Groups where decisions are classes or numbers: columns by name."""
    first = summary.outcomes[0].population
    lines = [
        (outcome.column, group)
        for outcome in summary.outcomes
        if outcome.population == first
        for group in outcome.groups
    ]
    figures: dict[str, list[float | None]] = {}
    if summary.kind == "class":
        for place, label in enumerate(summary.classes):
            shares = [group.selection_rates for _, group in lines]
            figures[f"selection_rate_{label}"] = [s[place] if s else None for s in shares]
        figures["accuracy"] = [group.accuracy for _, group in lines]
    else:
        figures["mean_prediction"] = [group.mean_prediction for _, group in lines]
        figures["mean_absolute_error"] = [group.mean_absolute_error for _, group in lines]
    return {
        "columns": np.array([column for column, _ in lines], dtype=str),
        "group": np.array([group.value for _, group in lines], dtype=str),
        "n": np.array([group.n for _, group in lines], dtype=np.int64),
        **{name: np.array(cells, dtype=np.float64) for name, cells in figures.items()},
    }


def partner_columns(schema: Schema) -> list[str]:
    """Columns in which partners may differ, the protected ones first."""
    along = [
        schema.names[i] for i in schema.moving_index if schema.names[i] not in schema.protected
    ]
    return [*schema.protected, *along]


def ranking(rule: DecisionRule, found: Found) -> Index:
    """Findings in the order of severity times naturalness, the strongest first."""
    natural = np.full(len(found), np.nan)
    if len(found.naturalness):
        natural = np.minimum(found.naturalness, found.partner_naturalness)
    weight = priority(severity_of(rule, found), natural)
    return np.argsort(-weight, kind="stable")


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """A table may have a column called `score` itself; ours then gets an underscore more."""
    while name in taken:
        name += "_"
    return name


def files(result: Result) -> dict[str, Content]:
    """The files of a run folder beside its manifest."""
    import pyarrow.parquet as pq

    from limi.audits.hiding import hide_cells, hide_schema
    from limi.report import html

    hidden, backend = result.problem.hidden, result.problem.target.codec.backend

    def to_arrow(found: Found) -> Any:
        findings = findings_frame(result.problem.target, found)
        if hidden:
            cells = {name: backend.column(findings, name) for name in backend.names(findings)}
            findings = backend.frame(hide_cells(cells, hidden, backend, len(found)))
        return backend.to_arrow(findings)

    content: Content
    if result.spool is None:
        sink = io.BytesIO()
        pq.write_table(to_arrow(result.found), sink)
        content = sink.getvalue()
    else:
        content = _write_parts(result.spool, to_arrow)
    return {
        "schema.toml": dump(hide_schema(result.problem.schema, hidden)),
        "findings.parquet": content,
        "summary.json": to_json(result.summary.as_dict()) + "\n",
        "report.html": html.render(result.summary, result._ledger()),
    }


def _write_parts(spool: Spool, to_arrow: Callable[[Found], Any]) -> Callable[[BinaryIO], None]:
    """What writes findings as one Parquet file, a row group for each part."""

    def write(file: BinaryIO) -> None:
        import pyarrow.parquet as pq

        writer = None
        for part in spool.parts():
            table = to_arrow(part)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table.cast(writer.schema))
        assert writer is not None
        writer.close()

    return write
