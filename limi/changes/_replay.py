"""The findings of an earlier run, put to a newer model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.hiding import HIDDEN
from limi.audits.problem import Problem
from limi.audits.reopen import Run, open_findings, sides_of
from limi.audits.result import Result, answer_columns
from limi.audits.summary import causes_first, causes_in_words, tell_causes
from limi.audits.verify import ask_again
from limi.changes._columns import Brought, Columns, bring
from limi.changes._open import notes_of, open_newer, resting
from limi.decisions import Classes, Rule
from limi.errors import BadTable, InvalidInput
from limi.models import Meaning
from limi.remote.options import Remote
from limi.search import steadiness
from limi.search.budget import check_seed
from limi.search.findings import Found
from limi.streams import Stream
from limi.system.arguments import checked
from limi.system.watch import Watch
from limi.table.frames import Frame
from limi.table.schema import Schema
from limi.types import Mask, Scores, Value

__all__ = [
    *("GONE", "OUTCOMES", "SAME", "TURNED", "UNASKED"),
    *("Answer", "Example", "Replay", "ask_pairs", "replay"),
]

FORMAT = 1

SAME, TURNED, GONE, UNASKED = "still flips", "direction turned", "no longer flips", "not asked"
OUTCOMES = (SAME, TURNED, GONE, UNASKED)

_STEADY_ROWS = 128  # asked four times, to see whether the answers stay
_MOST_EXAMPLES = 3  # of each outcome
_MOST_REASONS = 20

Answer = float | str
"""A score or a number as it is, a class by its label."""


@dataclass(frozen=True)
class Example:
    """A pair of people, with what the models answer about them: a score, a number, or a label."""

    outcome: str
    changed: tuple[tuple[str, str, str], ...]  # column, value and the partner's value
    others: tuple[tuple[str, str], ...]  # column and value, the same for both
    before: tuple[Answer, Answer]
    after: tuple[Answer, Answer] | None  # None where it was not asked
    flipped_by: str = ""  # the columns that flipped it in the run, where there were several

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "outcome": self.outcome,
            "changed": {name: [value, other] for name, value, other in self.changed},
            "others": dict(self.others),
            "before": list(self.before),
            "after": None if self.after is None else list(self.after),
            "flipped_by": self.flipped_by,
        }


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What became of each finding of a run."""

    run: str
    model_before: str
    model: str
    outcome: NDArray[np.str_]
    reasons: NDArray[np.object_]  # why a finding was not asked; "" where it was
    rules: tuple[Rule, Rule] = field(repr=False)  # of answers before and after
    score: Scores  # the answer before
    partner_score: Scores
    new_score: Scores  # after; NaN where it was not asked
    new_partner_score: Scores
    found: Frame = field(repr=False)  # the findings as the run wrote them, a pandas frame
    added: tuple[str, ...] = ()  # columns that the newer model takes and the run's people lacked
    dropped: tuple[str, ...] = ()  # columns of the run that the newer model does not take
    renamed: Mapping[str, str] = field(default_factory=dict)
    filled: Mapping[str, str] = field(default_factory=dict)
    queries: int = 0
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def counts(self) -> dict[str, int]:
        """How many findings had each outcome."""
        return {name: int((self.outcome == name).sum()) for name in OUTCOMES}

    @property
    def unasked(self) -> dict[str, int]:
        """Why findings could not be asked, with how many; the commonest reason first."""
        told = Counter(str(reason) for reason in self.reasons if reason)
        return dict(told.most_common(_MOST_REASONS))

    @property
    def gaps(self) -> tuple[float, float]:
        """Mean distance of the two answers of those that were asked, before and after, in the
        unit of the rule."""
        asked = self.outcome != UNASKED
        if not asked.any():
            return float("nan"), float("nan")
        before = self.rules[0].gap(self.score[asked], self.partner_score[asked])
        after = self.rules[1].gap(self.new_score[asked], self.new_partner_score[asked])
        return float(before.mean()), float(after.mean())

    @property
    def findings(self) -> Frame:
        """The run's findings, one row each, with `outcome`, the new answers (`new_score` and
        `new_partner_score`; of classes `new_class` and `new_lead`, of numbers `new_prediction`) and
        the `reason` where one was not asked."""
        extra = {
            "outcome": self.outcome,
            **self._answers("new_", self.new_score),
            **self._answers("new_partner_", self.new_partner_score),
            "reason": self.reasons.astype(str),
        }
        frame = self.found.copy()
        for name, cells in extra.items():
            while name in frame.columns:
                name += "_"
            frame[name] = cells
        return frame

    def _answers(self, prefix: str, answers: Scores) -> dict[str, NDArray[Any]]:
        """Columns of new answers; None or NaN where a finding was not asked."""
        asked = self.outcome != UNASKED
        columns = {}
        for name, told in answer_columns(self.rules[1], answers[asked]).items():
            text = told.dtype.kind == "U"
            cells = np.full(len(answers), None if text else np.nan, object if text else np.float64)
            cells[asked] = told
            columns[prefix + name] = cells
        return columns

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        before, after = self.gaps
        return {
            "format": FORMAT,
            "run": self.run,
            "model_before": self.model_before,
            "model": self.model,
            "findings": len(self),
            "outcomes": self.counts,
            "not_asked_because": self.unasked,
            "decision": str(self.rules[1]),
            "mean_gap": {"before": before, "after": after},
            "columns": {
                "added": list(self.added),
                "dropped": list(self.dropped),
                "renamed": dict(self.renamed),
                "filled": dict(self.filled),
            },
            "queries": self.queries,
            "examples": [example.as_dict() for example in self.examples],
            "notes": list(self.notes),
            "command": self.command,
        }


@checked
def replay(
    run: Result | str | Path,
    model: Any,
    *,
    table: str | Path | Frame | None = None,
    schema: Schema | None = None,
    rename: Mapping[str, str] | Sequence[str] = (),
    fill: Mapping[str, Any] | Sequence[str] = (),
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    drop: str | Sequence[str] | None = None,
    only: str | Sequence[str] = (),
    protected_from: str | Path | Frame | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    row: int | None = None,
    seed: int = 0,
    command: str = "",
) -> Replay:
    """Ask a newer model about the people that an earlier run found.

    `run` is a result, or the folder that it was written to. `model` is the newer model, as for
    `limi.audit`. `table` is the table it was trained on, if its columns differ from the run's:
    `rename` says what columns of the run are called there (`{"sex": "gender"}`), and `fill` which
    value to use in columns that the run's people lack. What still cannot be asked about is counted,
    with the reason. `favorable`, `output`, `decision` and `drop` are by default as in the run;
    `only` and `remote` are as for `limi.audit`. `row` asks about a single finding, by its place in
    the run's findings.parquet.
    """
    opened = Run.of(run)
    check_seed(seed)
    columns = Columns.of(rename, fill)
    problem = open_newer(
        opened,
        model,
        opened.table(table),
        columns,
        schema=schema,
        anew=table is not None,
        favorable=favorable,
        output=output,
        decision=decision,
        drop=drop,
        only=only,
        protected_from=protected_from,
        trust_pickle=trust_pickle,
        trust=trust,
        remote=remote,
    )
    with resting(problem):
        return ask_pairs(
            opened,
            problem,
            columns,
            seed,
            called=opened.words if isinstance(run, Result) else str(run),
            row=row,
            command=command,
        )


def ask_pairs(
    run: Run,
    problem: Problem,
    columns: Columns,
    seed: int,
    *,
    called: str,
    row: int | None = None,
    command: str = "",
) -> Replay:
    """Put the findings of a run to the model of a problem; BadTable where none could be asked."""
    schema, frame, found = open_findings(run)
    rules = run.rule, problem.target.rule
    if row is not None:
        if not 0 <= row < len(found):
            raise InvalidInput(
                f"row is {row}; {run.words} has {len(found):,} findings, counted from 0"
            )
        frame, found = frame.iloc[[row]].reset_index(drop=True), found[np.array([row])]
    brought = bring(
        sides_of(frame, schema), schema, columns, problem.target.codec, found.causes, problem.hidden
    )
    can = brought.is_askable
    if len(found) and not can.any():
        (why, _), *_ = Counter(brought.reasons.tolist()).most_common(1)
        raise BadTable(
            f"none of the {len(found):,} findings of {run.words} can be put to this model: {why}"
        )
    after, flips, notes, queries = _ask(problem, found, brought, seed)
    outcome = np.full(len(found), UNASKED, dtype=f"U{max(map(len, OUTCOMES))}")
    then = rules[0].leans(found.score[can], found.partner_score[can])
    turned = then * rules[1].leans(after.score, after.partner_score) < 0
    outcome[can] = np.where(flips, np.where(turned, TURNED, SAME), GONE)
    new_score, new_partner_score = (np.full(len(found), np.nan) for _ in range(2))
    new_score[can], new_partner_score[can] = after.score, after.partner_score
    told = Replay(
        run=called,
        model_before=run.summary.model,
        model=problem.model_name,
        outcome=outcome,
        reasons=brought.reasons,
        rules=rules,
        score=found.score,
        partner_score=found.partner_score,
        new_score=new_score,
        new_partner_score=new_partner_score,
        found=frame,
        added=brought.added,
        dropped=brought.dropped,
        renamed=columns.renamed,
        filled=columns.filled,
        queries=queries,
        notes=(*notes, *notes_of(problem)),
        command=command,
    )
    return replace(told, examples=_examples(schema, found, told, run.hidden))


def _ask(
    problem: Problem, found: Found, brought: Brought, seed: int
) -> tuple[Found, Mask, list[str], int]:
    """The pairs that can be asked with their new scores, which of them flip, notes and the cost."""
    can = brought.is_askable
    asked = replace(found[can], rows=brought.rows[can], partner=brought.partner[can])
    watch = Watch()
    target = problem.target
    with target.anew():  # what a model behind an address once said would be said again
        told = steadiness.sample(
            watch.counted(target.score),
            problem.rows,
            Stream.STEADINESS.rng(seed),
            n=_STEADY_ROWS,
            decision=target.rule,
        )
    after, flips = ask_again(target, asked, watch)
    notes = []
    if not told.steady:
        places = np.flatnonzero(flips)
        company = problem.rows if told.in_company else None
        with target.anew(1):  # the first answer of each is why it is asked again
            always, _ = steadiness.always_flip(
                watch.counted(target.score),
                after.rows[places],
                after.partner[places],
                Stream.CONFIRMATION.rng(seed),
                company=company,
                decision=target.rule,
            )
        flips[places[~always]] = False
        notes.append(
            f"{told.scores_moved} of {told.rows} rows got a different {target.rule.noun} when they "
            "were asked again, so only flips that were seen every time count"
        )
    return after, flips, notes, watch.questions


def _examples(
    schema: Schema, found: Found, told: Replay, hidden: Collection[str]
) -> tuple[Example, ...]:
    """A few findings of each outcome: those with the widest gap, after where they flip."""
    gap_before = told.rules[0].gap(found.score, found.partner_score)
    gap_after = np.nan_to_num(told.rules[1].gap(told.new_score, told.new_partner_score))
    words = causes_in_words(schema, found.causes)
    examples = []
    for outcome in OUTCOMES:
        places = np.flatnonzero(told.outcome == outcome)
        gap = gap_after if outcome in (SAME, TURNED) else gap_before
        for place in places[np.argsort(-gap[places], kind="stable")][:_MOST_EXAMPLES]:
            cells = [
                (column.name, HIDDEN, HIDDEN)
                if column.name in hidden
                else (column.name, column.show(float(mine)), column.show(float(other)))
                for column, mine, other in zip(
                    schema.columns, found.rows[place], found.partner[place], strict=True
                )
            ]
            by, protected = str(words[place]), schema.protected
            moved = [(name, (mine, other)) for name, mine, other in cells if mine != other]
            examples.append(
                Example(
                    outcome,
                    tuple((name, *sides) for name, sides in causes_first(moved, by, protected)),
                    tuple((name, mine) for name, mine, other in cells if mine == other),
                    _shown(told.rules[0], found.score[place], found.partner_score[place]),
                    _shown(told.rules[1], told.new_score[place], told.new_partner_score[place])
                    if outcome != UNASKED
                    else None,
                    tell_causes(by, protected),
                )
            )
    return tuple(examples)


def _shown(rule: Rule, *answers: float) -> tuple[Answer, Answer]:
    """The answers to a pair, as a report shows them."""
    one, other = (
        rule.show(float(answer)) if isinstance(rule, Classes) else float(answer)
        for answer in answers
    )
    return one, other
