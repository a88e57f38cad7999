"""A table, a model and protected columns, brought together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi import models
from limi.audits.asked import (
    Asked,
    Columns,
    notes_on_label,
    notes_on_threshold,
    read_answers,
    read_asked,
    settle_rule,
)
from limi.audits.beside import Beside, Joined, join
from limi.audits.columns import Chosen, choose_hidden, leave_out
from limi.audits.labels import (
    favorable_labels,
    read_favorable,
    read_labels,
    several,
    values_of,
)
from limi.audits.run_folder import digest, file_digest
from limi.audits.sending import in_time, tidying
from limi.decisions import AS_DECIDED
from limi.errors import BadTable, GivesNumbers, InvalidInput, LimiError, nearest, spell
from limi.models import Meaning, trial
from limi.models._base import ignore
from limi.models.target import SETTLING_ROWS, Target, settling_rows
from limi.models.trial import Terms
from limi.remote.options import Remote
from limi.search.budget import first_look
from limi.search.spread import Opened
from limi.system.words import both
from limi.table.column_values import split_name
from limi.table.files import infer, notes_of
from limi.table.frames import Codec, Frame, columns_of
from limi.table.grids import choose_missing_values
from limi.table.never_seen import find_never_seen
from limi.table.rule_checks import (
    GivenConstraints,
    add_constraints,
    describe_lost,
    require_kept,
    set_target_aside,
)
from limi.table.rules import Rules
from limi.table.schema import Column, Schema
from limi.table.schema_files import dump
from limi.table.whole import Whole, whole_of
from limi.types import Labels, Mask, Rows, Value

__all__ = ["HeldOut", "Problem", "describe_untaken", "prepare", "protected_values", "with_held_out"]

_UNNAMED = "table"
_HELD_OUT = "held-out rows"
_MOST_LEFT_OUT = 0.05  # of held-out rows that do not fit; more are not an oversight


@dataclass(frozen=True)
class HeldOut:
    """Rows that the model has not seen, apart from the table."""

    name: str
    rows: Rows
    labels: Labels | None  # as those of a problem
    truth: NDArray[np.float64] | None = None

    @property
    def sha256(self) -> str:
        """Of rows and labels."""
        known = [part for part in (self.labels, self.truth) if part is not None]
        labels = b"".join(part.tobytes() for part in known)
        return digest(np.ascontiguousarray(self.rows).tobytes(), labels)


@dataclass(frozen=True)
class Problem:
    """A table, a model and protected columns that fit each other."""

    target: Target
    rows: Rows
    label_column: str | None
    favorable: Value
    unfavorable: Value | None
    table_name: str = _UNNAMED
    model_name: str = "model"
    model_sha256: str | None = None
    labels: Labels | None = None  # 1 favorable, 0 not, -1 unknown; None without a target column
    truth: NDArray[np.float64] | None = None
    # ^ of classes and numbers: what the target column holds, as an answer of the rule
    known: tuple[Value, ...] = ()  # the target column's labels
    wanted: tuple[Value, ...] = ()  # those of them that are favorable
    held_out: HeldOut | None = None
    output: Meaning | None = None  # what a function's answers are, where the user said so
    dropped: tuple[str, ...] = ()  # columns that the user keeps from the model
    hidden: tuple[str, ...] = ()  # columns whose cells are shown and written nowhere
    beside: Joined | None = None  # protected columns that came from another table
    whole: Whole | None = None  # the table, where the rows are a sample of it
    notes: tuple[str, ...] = ()  # what the report should say of the table and of what was asked
    opened: Opened | None = None  # the model's file, for other processes

    @property
    def schema(self) -> Schema:
        """The columns that the model takes, with the protected ones."""
        return self.target.codec.schema

    @property
    def unseen(self) -> tuple[str, ...]:
        """Protected columns that the model does not take."""
        return self.target.unseen

    @property
    def blind(self) -> bool:
        """Does the model take no protected column, nor what goes along with one by the rules?

        Then changing one can flip nothing.
        """
        return self.target.blind

    @property
    def people(self) -> tuple[str, Rows, Labels | None]:
        """The population whose rows are people for whom the model decides, its rows and labels.

        Rows that the model has not seen are nearer to those to come than rows it may have been
        trained on.
        """
        held = self.held_out
        if held is None:
            return "real", self.rows, self.labels
        return "held-out", held.rows, held.labels

    @property
    def n_table(self) -> int:
        """Rows of the table, of which ours may be a sample."""
        return len(self.rows) if self.whole is None else self.whole.n_rows

    @property
    def labels_sha256(self) -> str | None:
        """Of the label column, which no search depends on but every repair does."""
        held = self.truth if self.labels is None else self.labels
        return None if held is None else digest(held.tobytes())

    def hashes(self) -> dict[str, str | None]:
        """What the run depends on, by content."""
        schema = dump(self.schema).encode()
        whole = () if self.whole is None else (self.whole.sha256.encode(),)
        return {
            "data_sha256": digest(schema, np.ascontiguousarray(self.rows).tobytes(), *whole),
            "model_sha256": self.model_sha256,
        }


def prepare(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    order: str | Sequence[Value] | None = None,
    schema: Schema | None = None,
    constraints: GivenConstraints = (),
    drop: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    redact: bool | str | Sequence[str] = True,
    shown: Collection[str] = (),
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    ask: bool = True,
    table_name: str = _UNNAMED,
    beside: Beside | None = None,
    max_seconds: float | None = None,
    max_queries: int | None = None,
    on_asked: Callable[[int], None] = ignore,
    clock: Callable[[], float] = time.perf_counter,
) -> Problem:
    """Bring model, table and protected columns together; an error says what does not fit.

    Protected columns that the table lacks are taken from the one `beside` it. Looking at the model
    on real rows takes `max_seconds` at most, where there is such a limit, and a small part of the
    run's `max_queries`; `on_asked` receives how many rows the model is given each time. Unless we
    `ask`, the model is opened and not a row is put to it. Columns to `drop`, or all but the `only`
    ones, are not the model's. Columns that look personal are hidden, and those that `redact` names,
    but not those that are `shown` already.
    """
    columns = columns_of(frame)
    _check_columns(columns, target)
    whole = whole_of(frame)
    joined = _join(frame, beside, _names(protected, schema))
    frame, aside = (frame, ()) if joined is None else (joined.frame, joined.aside)
    asked = read_asked(columns, target, favorable, decision, order)
    schema, set_aside = _settle(schema, frame, joined, protected, target)
    schema, dropped = leave_out(schema, drop, only)
    chosen = Chosen.among(frame, schema, only, labelled=target is not None)
    opening = _Opening(
        model,
        frame,
        add_constraints(schema, constraints, target=target),
        Terms(
            output=output,
            trust_pickle=trust_pickle,
            trust=tuple(trust),
            table=table_name,
            remote=remote,
            aside=(*(name for name in dropped if name in schema.protected), *aside),
            unlikely=chosen.unlikely,
            left_out=tuple(name for name in dropped if name not in schema.protected),
        ),
    )
    told: list[str] = []
    by_threshold: list[str] = []
    with tidying(remote), in_time(model):
        bound, asked = opening.open_guessing(asked, columns, target)
        if ask:
            chosen.warn(bound)
        if ask and chosen.needs_all(bound, frame):
            bound, asked = opening.giving_all().open_guessing(asked, columns, target)
        rows = bound.codec.encode(frame)
        require_kept(bound.codec.schema, rows)
        agrees, left_out = _agreeing(bound.codec.schema, rows)
        rows, names = rows[agrees], bound.codec.schema.names
        most = first_look(max_queries, SETTLING_ROWS)
        bound = replace(bound, on_asked=on_asked)
        bound = bound.settled(rows, seconds=max_seconds, most=most, clock=clock) if ask else bound
        truth = _some(asked.answers(columns, target), agrees)
        if ask:
            bound, told = settle_rule(asked, bound, rows, truth, most)
            by_threshold = notes_on_threshold(bound, rows, most)
        bound = replace(bound, on_asked=ignore)
    personal = chosen.personal(names)
    hidden, on_hidden = choose_hidden(bound.codec.schema, personal, redact, shown)
    return Problem(
        target=bound,
        rows=rows,
        label_column=target,
        favorable=asked.favorable,
        unfavorable=asked.unfavorable,
        table_name=table_name,
        model_name=_name(model),
        model_sha256=opening.sha256,
        labels=_some(asked.truth(columns, target), agrees),
        truth=truth,
        known=asked.labels,
        wanted=several(asked.wanted),
        output=output,
        beside=joined,
        dropped=dropped,
        hidden=hidden,
        whole=whole,
        opened=_opened(model, opening.terms_of(asked), bound, rows[settling_rows(len(rows), most)]),
        notes=(
            *told,
            *notes_on_label(asked, favorable, bound, target),
            *by_threshold,
            *set_aside,
            *chosen.tell(names),
            *(_notes(bound, rows, opening.schema, table_name, target, joined) if ask else ()),
            *left_out,
            *on_hidden,
        ),
    )


def _join(frame: Frame, beside: Beside | None, names: list[str]) -> Joined | None:
    """The protected columns of the table beside it; InvalidInput where not all rows are here."""
    if beside is None:
        return None
    whole = whole_of(frame)
    if whole is not None:
        raise InvalidInput(
            f"the table has {whole.n_rows:,} rows, of which only a sample is held in memory, but "
            "protected columns from another table must be joined to every row; write one table "
            "that has both"
        )
    return join(frame, beside, names)


def _opened(model: Any, terms: Terms, target: Target, rows: Rows) -> Opened | None:
    """What another process needs to have the same target; None where there is no file."""
    if not isinstance(model, str) or not models.files(model):
        return None
    kind, _, place = model.partition(":")
    # A worker may be in another folder.
    uri = f"{kind}:{os.path.abspath(place)}"
    return Opened(uri, terms, target.codec, target.unseen, target.rule, rows)


def _check_columns(columns: list[tuple[str, Any, Any]], target: str | None) -> None:
    names = [name for name, _, _ in columns]
    if target is not None and target not in names:
        raise BadTable(f"the table has no target column {target!r}; {nearest(target, names)}")
    if not columns or not len(columns[0][1]):
        raise BadTable("the table is empty; it needs at least one row")


def _notes(
    target: Target,
    rows: Rows,
    given: Schema,
    table_name: str,
    label_column: str | None,
    joined: Joined | None,
) -> tuple[str, ...]:
    """What the report should say of the model and the table."""
    schema = target.codec.schema
    return (
        *_lost(given, schema),
        *_unheld(schema, rows),
        *_unseen(schema, rows, None if joined else table_name, label_column),
    )


def _lost(given: Schema, taken: Schema) -> tuple[str, ...]:
    """A sentence on constraints over columns that the model does not take."""
    untaken = [name for name in given.names if name not in taken.names]
    why = f"it mentions columns that the model does not take ({spell(untaken)})"
    return describe_lost(Rules(given.rules.constraints), Rules(taken.rules.constraints), why)


def with_held_out(
    problem: Problem, frame: Frame, name: str = _HELD_OUT, beside: Beside | None = None
) -> Problem:
    """The problem with rows that the model has not seen, held to the table's columns and labels.

    A few rows may hold what the table does not, such as an age beyond its oldest; they are left
    out, and noted. More than a few are another table.
    """
    columns = columns_of(frame)
    target = problem.label_column
    names = [column for column, _, _ in columns]
    known = target is not None and target in names
    called = "held-out rows" if name == _HELD_OUT else f"held-out rows ({name})"
    lacking = [column for column in problem.schema.names if column not in names]
    if beside is not None:
        lacking = [column for column in lacking if column not in problem.schema.protected]
    if lacking and columns:
        raise BadTable(
            f"the {called} lack the column{'s' * (len(lacking) > 1)} {spell(map(repr, lacking))}"
        )
    try:
        if not columns or not len(columns[0][1]):
            raise BadTable("there are none")
        if beside is not None and not set(problem.schema.protected) <= set(names):
            frame = join(frame, beside, problem.schema.protected).frame
        if known and problem.known:
            _hold_labels(columns, target, problem)
        rows, fits, misfits = problem.target.codec.encode_fitting(frame)
    except BadTable as error:
        raise BadTable(f"the {called} do not fit the table: {error}") from None
    left = len(fits) - len(rows)
    if left > _MOST_LEFT_OUT * len(fits):
        raise BadTable(
            f"{left:,} of {len(fits):,} {called} do not fit the table: "
            f"{misfits.describe(problem.hidden)}"
        )
    labels = None
    if problem.labels is not None:
        labels = _some(favorable_labels(columns, target if known else None, problem.wanted), fits)
    agrees, left_out = _agreeing(problem.schema, rows, "held-out rows")
    if (~agrees).sum() > _MOST_LEFT_OUT * len(rows):
        raise BadTable(
            f"{int((~agrees).sum())} of {len(rows)} {called} do not hold what the rules "
            "derive; either they or the rules belong to another table"
        )
    truth = read_answers(problem.target.rule, columns, target if known else None)
    held = HeldOut(name, rows[agrees], _some(labels, agrees), _some(_some(truth, fits), agrees))
    notes = problem.notes + left_out
    if left:
        notes += (
            f"{left:,} of {len(fits):,} held-out rows were left out, because they hold values that "
            f"the table's columns do not: {misfits.describe(problem.hidden)}",
        )
    return replace(problem, held_out=held, notes=notes)


@dataclass(frozen=True, eq=False)
class _Opening:
    """A model, and the table it is bound to once it is known what is asked of it."""

    model: Any
    frame: Frame
    schema: Schema
    terms: Terms

    @cached_property
    def sha256(self) -> str | None:
        """Of the model's files."""
        return _model_digest(self.model) if isinstance(self.model, str) else None

    @cached_property
    def codec(self) -> Codec:
        """Of the table."""
        return Codec.learn(self.frame, self.schema)

    def giving_all(self) -> _Opening:
        """The same with all columns for the model, unlikely ones too."""
        return replace(self, terms=replace(self.terms, unlikely=()))

    def terms_of(self, asked: Asked) -> Terms:
        """What the model is opened with, once it is known what is asked of it."""
        return replace(self.terms, favorable=asked.wanted, labels=asked.labels, rule=asked.rule)

    def open(self, asked: Asked) -> Target:
        """The model bound by a rule."""
        terms = self.terms_of(asked)
        with trial.begun(self.model, self.sha256, terms) as judge:
            judge(self.codec, self.frame)
        return terms.bind(self.model, self.codec)

    def open_guessing(
        self, asked: Asked, columns: Columns, target: str | None
    ) -> tuple[Target, Asked]:
        """The model bound by what was asked; where that was guessed, by what it turns out to
        give."""
        try:
            bound = self.open(asked)
        except GivesNumbers:
            if not asked.guessed:
                raise
            asked = asked.as_numbers()
            return self.open(asked), asked
        except LimiError as error:
            if not (asked.guessed and asked.suggested):
                raise
            # Numbers in the target column, and yet a classifier: they are labels then.
            labels = self._labels(columns, target)
            if labels is None:
                raise error
            asked = Asked(AS_DECIDED, labels, read_favorable(None, labels, target))
            return self.open(asked), asked
        if asked.refusal is not None:
            raise asked.refusal
        return bound, asked

    def _labels(self, columns: Columns, target: str | None) -> tuple[Value, ...] | None:
        """The labels of the target column; None where the model does not decide between them."""
        try:
            labels = read_labels(columns, target)
            self.open(Asked(AS_DECIDED, labels, labels[-1:] if len(labels) > 2 else labels[-1]))
        except LimiError:
            return None
        return labels


def _some(labels: Any, where: Mask) -> Any:
    return None if labels is None else labels[where]


def _agreeing(schema: Schema, rows: Rows, what: str = "rows") -> tuple[Mask, tuple[str, ...]]:
    """Which rows hold the derived cells that the rules give them, and a sentence on the others.

    What goes along with a protected value cannot be told of a row that does not follow the rule.
    """
    agrees: Mask = ~schema.enforcer.disagrees(rows)
    left = int((~agrees).sum())
    columns = spell(repr(derived.column) for derived in schema.rules.derived)
    if not left:
        return agrees, ()
    verb = "was left out, because it does" if left == 1 else "were left out, because they do"
    return agrees, (
        f"{left:,} of {len(rows):,} {what} {verb} not hold what the rules derive for {columns}",
    )


def _hold_labels(columns: list[tuple[str, Any, Any]], target: str | None, problem: Problem) -> None:
    """BadTable where the rows carry labels that the table does not know."""
    strange = [value for value in values_of(columns, target) if value not in problem.known]
    if strange:
        ordered = sorted(problem.known, key=lambda label: label not in problem.wanted)
        raise BadTable(
            f"their target column {target!r} holds {strange[0]!r}, while the table's holds "
            f"{both(map(repr, ordered))}"
        )


def _names(protected: str | Sequence[str] | Mapping[str, Any], schema: Schema | None) -> list[str]:
    """Columns that are named as protected, with or without values."""
    wanted = [protected] if isinstance(protected, str) else list(protected)
    if not wanted and schema is not None:
        return list(schema.protected)
    return [name.partition("=")[0] for name in wanted if isinstance(name, str)]


def describe_untaken(problem: Problem, *, twins_asked: bool) -> tuple[str, ...]:
    """A sentence where the model does not take a protected column, and who tells what it hides."""
    if not problem.unseen:
        return ()
    names = both(list(problem.unseen))
    told = f"the model does not take {names}, so changing only that cannot flip anything"
    if problem.blind:
        told += ": the rate is 0 by definition, and there is nothing to search"
    what = f"what it does with everything that goes along with {names} in the table"
    if twins_asked:
        return (f"{told}; twins show {what}",)
    return (f"{told}; --twin shows {what}",)


def _unheld(schema: Schema, rows: Rows) -> tuple[str, ...]:
    """A sentence for each protected column of which values are tried that no row holds."""
    notes = []
    for name, codes in zip(schema.protected, schema.protected_codes, strict=True):
        column, cells = schema[name], rows[:, schema.position(name)]
        absent = np.array(codes)[~_hold(column, np.array(codes), cells)]
        if len(absent):
            shown = spell([column.show(code) for code in absent], most=8)
            has = "has" if column.kind != "numerical" or column.step else "comes near"
            notes.append(
                f"nobody in the table {has} {len(absent)} of the {len(codes)} values of {name!r} "
                f"that were tried ({shown}); decisions under them are about people unlike any in "
                "the table"
            )
    return tuple(notes)


def _unseen(schema: Schema, rows: Rows, table: str | None, target: str | None) -> tuple[str, ...]:
    """A sentence where partners hold what hardly anyone does, and no rule says what they may."""
    found = find_never_seen(schema, rows) if schema.protected else None
    if found is None:
        return ()
    # A frame of Python has no name that a command could take.
    return (found.describe("TABLE" if table == _UNNAMED else table, target),)


def _hold(column: Column, codes: NDArray[np.float64], cells: NDArray[np.float64]) -> Mask:
    """Which of a column's codes some cell holds; of real numbers, is nearest to."""
    if column.kind != "numerical" or column.step:
        return np.isin(codes, cells)
    order = np.argsort(codes)
    ascending = codes[order]
    between = (ascending[1:] + ascending[:-1]) / 2
    # As far beyond the first and the last as to the next value on their inner side.
    edges = np.array([2 * ascending[0] - between[0], *between, 2 * ascending[-1] - between[-1]])
    counts = np.histogram(cells[~np.isnan(cells)], bins=edges)[0]
    held = np.empty(len(codes), dtype=bool)
    held[order] = counts > 0
    return held


def _name(model: Any) -> str:
    if isinstance(model, str):
        return model
    name: str = getattr(model, "__name__", type(model).__name__)
    return name


def _model_digest(uri: str) -> str | None:
    """sha256 of the file that a model is read from, or of several together."""
    try:
        sums = [file_digest(path) for path in models.files(uri)]
    except OSError:  # opening the model will say why
        return None
    return sums[0] if len(sums) == 1 else digest("".join(sums).encode()) if sums else None


def protected_values(schema: Schema) -> dict[str, list[str]]:
    """The values that are tried of each protected column, as words."""
    return {
        name: [schema[name].show(code) for code in codes]
        for name, codes in zip(schema.protected, schema.protected_codes, strict=True)
    }


def _settle(
    schema: Schema | None,
    frame: Frame,
    joined: Joined | None,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None,
) -> tuple[Schema, tuple[str, ...]]:
    """The schema of all columns but the target, and what is to be said of columns and rules."""
    told = notes_of(frame)
    if schema is None:
        schema = infer(frame, exclude=() if target is None else (target,))
        told += _tell_empty(frame, {*schema.names, target})
    elif joined is not None:
        schema = joined.extend(schema)
    schema, notes = set_target_aside(schema, target)
    schema, chosen = _protect(schema, protected, target, frame)
    return schema, told + notes + chosen


def _tell_empty(frame: Frame, known: Collection[str | None]) -> tuple[str, ...]:
    """A sentence on the columns in which every cell is missing."""
    empty = [name for name, _, _ in columns_of(frame) if name not in known]
    if not empty:
        return ()
    return (
        f"in {spell(map(repr, empty))} every cell is missing, so "
        f"{'these columns were' if len(empty) > 1 else 'this column was'} left out",
    )


def _protect(
    schema: Schema,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None,
    frame: Frame,
) -> tuple[Schema, tuple[str, ...]]:
    """The schema with these columns protected, and which values were chosen for numbers."""
    wanted = [protected] if isinstance(protected, str) else protected
    for name in wanted:
        if target is not None and isinstance(name, str) and name.partition("=")[0] == target:
            raise InvalidInput(
                f"{target!r} is the target column; a protected column must be one that the model "
                "takes"
            )
    if not wanted and schema.protected:
        return schema, ()
    for text in wanted:
        name = split_name(text, schema.names)[0] if isinstance(text, str) else None
        if name is not None and name not in schema.names:
            parts = [part.strip() for part in name.split(",")]
            if set(parts) <= set(schema.names):
                each = ", ".join(map(repr, parts))
                raise InvalidInput(
                    f"there is no column {name!r}; name each of {each} by itself: --protected once "
                    "for each, or a list in Python"
                )
            raise InvalidInput(
                f"there is no column {name!r}; {nearest(name, schema.names)}; if another file has "
                "it, give that file with --protected-from FILE --key COLUMN"
            )
    cells = {name: (series, backend) for name, series, backend in columns_of(frame)}

    whole = whole_of(frame)

    def numbers_of(name: str) -> NDArray[np.float64]:
        if whole is not None:
            return whole.quantiles[name]
        series, backend = cells[name]
        found: NDArray[np.float64] = backend.numbers(series)
        return found

    chosen, told = choose_missing_values(schema, wanted, numbers_of)
    return schema.protect(chosen), told
