"""A model bound to a codec: rows in, scores out, exactly as the user's model receives them."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from limi.decisions import AS_DECIDED, Favorable, Rule
from limi.errors import BadModel, LimiError, spell
from limi.models._base import Decides, Model, Remembers, Settles, ignore, notes_of
from limi.models._gaps import note_on_gaps
from limi.models._scores import require_one_each, whole
from limi.system.foreign import at_work, reason
from limi.table.frames import Codec
from limi.table.guesses import names_target
from limi.types import Index, Rows, Scores

__all__ = ["CONTRACT_ROWS", "SAME_COMMAND", "SETTLING_ROWS", "Target", "bind", "settling_rows"]

SETTLING_ROWS = 2000
"""Rows that show how to read a model: of more, one is likelier to be decided in two ways."""

_TIMED_ROWS = 8  # asked first where time is short
CONTRACT_ROWS = 16
SAME_COMMAND = "the same command with "
"""Before what a command line lacks, so that it can be shown whole."""

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """Asks a model for the scores of rows.

    Rows may have protected columns that the model does not take: they stand last, and it is not
    given them.
    """

    model: Model
    codec: Codec
    notes: tuple[str, ...] = field(default=())
    unseen: tuple[str, ...] = ()  # columns that the model does not take
    rule: Rule = AS_DECIDED  # what its answers mean
    on_asked: Callable[[int], None] = field(default=ignore, compare=False, repr=False)
    # ^ receives how many rows the model is about to be given

    @cached_property
    def shown(self) -> Codec:
        """The columns that the model is given."""
        names = self.codec.schema.names
        return (
            self.codec.select(names[: len(names) - len(self.unseen)]) if self.unseen else self.codec
        )

    @property
    def blind(self) -> bool:
        """Does the model take none of the protected columns, nor any that goes along with them?"""
        schema = self.codec.schema
        return {schema.names[i] for i in schema.moving_index} <= set(self.unseen)

    def present(self, rows: Rows) -> Any:
        """What the model is given for these rows."""
        shown = self.shown
        rows = rows[:, : len(shown.schema)] if self.unseen else rows
        if self.model.takes == "frame":
            return shown.decode(rows)
        if self.model.takes == "array" and _text_columns(shown):
            return _cells(shown.decode(rows))
        return shown.matrix(rows)

    def score(self, rows: Rows) -> Scores:
        """One answer a row, mostly a score; BadModel where the model raises or answers what it must
        not."""
        if not len(rows):
            return np.empty(0)
        self.on_asked(len(rows))

        def ask(given: Any) -> Scores:
            answers = whole(self.model.score(given))
            require_one_each(answers, len(rows), "scores")
            return answers.astype(np.float64)

        scores = self._ask(ask, rows)
        if scores.ndim != 1:
            raise BadModel(
                f"the model returned answers of shape {scores.shape}; it must return one per row"
            )
        wrong = ~self.rule.allows(scores)  # a NaN is not allowed
        if wrong.any():
            raise BadModel(
                f"the model returned {int(wrong.sum())} {self._answers} of {len(scores)} that are "
                f"not {self.rule.allowed}, the first of them {scores[wrong][0]:g}"
            )
        moved: Scores = self.rule.move(scores)
        return moved

    @property
    def threshold(self) -> float | None:
        """The model's own score that stands at 0.5 of the scores here; None where none was moved:
        that of the rule, or one that the model decides by itself."""
        if not isinstance(self.rule, Favorable):
            return None
        if self.rule.threshold is not None:
            return self.rule.threshold
        own: float | None = getattr(self.model, "own_threshold", None)
        return own

    @property
    def _answers(self) -> str:
        return "scores" if isinstance(self.rule, Favorable) else "answers"

    @property
    def decides(self) -> bool:
        """Has the model a way to decide beside its scores, which counts?"""
        by_score = self.rule.threshold is not None
        return isinstance(self.model, Decides) and not by_score and self.rule.kind != "number"

    def decide(self, rows: Rows) -> Any:
        """The model's own decisions, favorable or not, or which class; None where its scores are
        all it says, or all that counts."""
        if not self.decides:
            return None
        if not len(rows):
            return np.empty(0, dtype=bool)
        self.on_asked(len(rows))
        return self._ask(self.model.decide, rows)  # type: ignore[attr-defined]

    def anew(self, first: int = 0) -> AbstractContextManager[None]:
        """A block in which a row that is asked again gets another answer, if the model has one."""
        return self.model.anew(first) if isinstance(self.model, Remembers) else nullcontext()

    def settled(
        self,
        rows: Rows,
        *,
        seconds: float | None = None,
        most: int = SETTLING_ROWS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Target:
        """The same target once its model has seen real rows, with notes on what they showed.

        A model that does not decide by a score above 0.5 is asked for its decisions from
        then on; a network's single output is found to be logits. Asks for at most `most` rows, up
        to three times; fewer where they would take more than these seconds.
        """
        if not isinstance(self.model, Settles) or not len(rows) or self.rule.kind == "number":
            return self
        settle = partial(self.model.settle, on_asked=self.on_asked)
        if seconds is not None:
            few, start = rows[_spread(len(rows), _TIMED_ROWS)], clock()
            with suppress(LimiError):  # more rows may settle what these do not
                self._ask(settle, few)
            per_row = max((clock() - start) / len(few), 1e-9)
            most = int(np.clip(seconds / per_row, _TIMED_ROWS, most))
        model = self._ask(settle, rows[_spread(len(rows), most)])
        known = notes_of(self.model)
        return replace(
            self, model=model, notes=(*self.notes, *(n for n in notes_of(model) if n not in known))
        )

    def contract(self, rows: Rows, *, most: int = CONTRACT_ROWS) -> int:
        """Hold the model to what the search relies on; the number of rows it was asked.

        It leaves its input as it is, and scores lie on the side of 0.5 that its own decisions take.
        Whether it answers the same each time is told by `limi.search.steadiness`.
        """
        rows = rows[_spread(len(rows), most)]
        n = len(rows)
        if not n:
            return 0
        given = rows.copy()
        first = self.score(rows)
        if not np.array_equal(rows, given, equal_nan=True):
            raise BadModel("the model changes its input; make it work on a copy")
        decided = self.decide(rows)
        if decided is None:
            return n
        wrong = self.rule.contradicts(first, decided)
        if not wrong.any():
            return 2 * n
        # Decisions that move from one asking to the next contradict nothing.
        again = self.decide(rows)
        steady = again is not None and np.array_equal(decided, again)
        if steady and not self.rule.differ(first, self.score(rows)).any():
            raise BadModel(
                "the model's own decisions differ from the side of its scores for "
                f"{int(wrong.sum())} of {n} rows; settle the target on real rows first, so that "
                "its decisions are used"
            )
        return 4 * n if steady else 3 * n

    def _ask(self, question: Callable[[Any], T], rows: Rows) -> T:
        inputs = self.present(rows)

        def told(error: BaseException) -> BadModel:
            return BadModel(f"the model raised {reason(error)} (it was given {_describe(inputs)})")

        with at_work(told):
            return question(inputs)


def bind(
    model: Model,
    codec: Codec,
    *,
    aside: Sequence[str] = (),
    unlikely: Sequence[str] = (),
    left_out: Sequence[str] = (),
    rule: Rule = AS_DECIDED,
) -> Target:
    """A target of a model and the codec of a table; BadModel where the columns do not fit.

    Columns that stand `aside` are not the model's, unless it names them; `unlikely` ones are not,
    unless it names them or counts them in. Protected ones that it does not take stay with its
    rows, unseen. Columns that the user has `left_out` are named where the model wants them.
    """
    schema = codec.schema
    with at_work(lambda error: BadModel(f"looking at the model raised {reason(error)}")):
        columns, n_columns, takes = model.columns, model.n_columns, model.takes
    if columns is not None:
        _refuse_left_out(columns, left_out)
        wanted: Sequence[str] = _match(columns, schema.names)
    else:
        wanted = _count_out(
            n_columns, [n for n in schema.names if n not in aside], schema.protected, unlikely
        )
    unseen = tuple(name for name in schema.protected if name not in wanted)
    if [*wanted, *unseen] != schema.names:
        codec = codec.select([*wanted, *unseen])
    target = Target(model, codec, notes_of(model), unseen, rule)
    target = replace(target, notes=(*target.notes, *note_on_gaps(model, target.shown)))
    text = _text_columns(target.shown)
    if takes == "matrix" and text:
        raise BadModel(
            f"the model takes only numbers, but these columns hold text: {spell(text)}; give the "
            "table that the model was trained on, or wrap both in a Python function"
        )
    return target


def _count_out(
    n_columns: int | None,
    names: Sequence[str],
    protected: Sequence[str],
    unlikely: Sequence[str],
) -> Sequence[str]:
    """The columns of a model that names none; one that wants too few may lack the protected."""
    likely = [name for name in names if name not in unlikely]
    if n_columns is None:
        return likely
    for some in (likely, names):
        free = [name for name in some if name not in protected]
        for columns in (some, free):
            if n_columns == len(columns):
                return columns
    raise BadModel(
        f"the model needs {n_columns} columns, but the table has {len(names)} besides the target: "
        f"{spell(names)}; {_fit(n_columns, names, protected, unlikely)}"
    )


def _fit(
    n_columns: int, names: Sequence[str], protected: Sequence[str], unlikely: Sequence[str]
) -> str:
    """What to add to a command so that as many columns are left as the model wants."""
    excess = len(names) - n_columns
    if excess < 0:
        return "give a table with all columns that the model was trained on"
    labels = [name for name in names if names_target(name) and name not in protected]
    likely = [*unlikely, *(name for name in reversed(labels) if name not in unlikely)]
    if len(likely) < excess:
        return f"name the ones it takes: {SAME_COMMAND}--only COLUMN,COLUMN,..."
    left_out = " ".join(f"--drop {shlex.quote(name)}" for name in likely[:excess])
    return f"if it does not take {spell(map(repr, likely[:excess]))}: {SAME_COMMAND}{left_out}"


def _refuse_left_out(wanted: Sequence[str], left_out: Sequence[str]) -> None:
    """BadModel where the model wants a column that the user has left out."""
    lacking = [name for name in wanted if name in left_out]
    if lacking:
        given = shlex.quote(",".join(wanted))
        raise BadModel(
            f"the model needs {spell(map(repr, lacking))}, which --drop or --only left out; try: "
            f"{SAME_COMMAND}--only {given}"
        )


def _hint_at_one_hot(absent: Sequence[str], names: Sequence[str]) -> str:
    """What to do where the columns that are wanted look made from those that are there."""
    made = [name for name in absent if any(name.startswith(known) for known in names)]
    if len(made) < len(absent):
        return ""
    return (
        "; they seem to be made from these, so save the model in one pipeline with the step that "
        "makes them, or write a Python function that makes them and asks the model (--model "
        "python:FILE.py:NAME)"
    )


def _match(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """The table's name of each column that a model wants.

    Model formats replace characters that they cannot keep, so `capital-gain` may come back as
    `capital_gain`; where just one column reads the same, it is meant.
    """
    plain: dict[str, list[str]] = {}
    for name in names:
        plain.setdefault(_plain(name), []).append(name)
    found = [[name] if name in names else plain.get(_plain(name), []) for name in wanted]
    absent = [name for name, places in zip(wanted, found, strict=True) if len(places) != 1]
    if absent:
        raise BadModel(
            f"the model needs the columns {spell(absent)}, which the table lacks; it has "
            f"{spell(names)}{_hint_at_one_hot(absent, names)}"
        )
    return [place for (place,) in found]


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _text_columns(codec: Codec) -> list[str]:
    return [
        column.name
        for column in codec.schema.columns
        if column.kind != "numerical" and column.level_numbers is None
    ]


def _cells(frame: Any) -> Any:
    """A frame's cells as an array, as its own library gives it."""
    return (frame if hasattr(frame, "to_numpy") else frame.to_pandas()).to_numpy()


def settling_rows(n: int, most: int = SETTLING_ROWS) -> Index:
    """Which of n rows a model is settled on."""
    return _spread(n, most)


def _spread(n: int, most: int) -> Index:
    """Positions of at most `most` of n rows, evenly apart: tables are often sorted."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp)) if n else np.arange(0)


def _describe(inputs: Any) -> str:
    if isinstance(inputs, np.ndarray):
        return f"an array of shape {inputs.shape}"
    names = list(getattr(inputs, "columns", []))
    names = list(getattr(inputs, "column_names", names))
    return f"a {type(inputs).__name__} with {spell(names) if names else 'columns'}"
