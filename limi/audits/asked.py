"""The rule of a run: as the user says it, or guessed from the target column and the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.labels import (
    favorable_labels,
    in_words,
    match_label,
    numbers_of,
    places_of,
    read_favorable,
    read_labels,
    several,
)
from limi.decisions import (
    Bands,
    Classes,
    Difference,
    Favorable,
    Rule,
    favors,
    parse_rule,
)
from limi.errors import InvalidInput, LimiError, nearest, spell
from limi.models.target import SETTLING_ROWS, Target, settling_rows
from limi.types import Labels, Rows, Value

__all__ = [
    "Asked",
    "Columns",
    "notes_on_label",
    "notes_on_threshold",
    "read_answers",
    "read_asked",
    "settle_rule",
]

Columns = list[tuple[str, Any, Any]]

_ASKED = 256  # rows of the table that show what a threshold parts
_FEW = 20  # different whole numbers that may be labels
_SUGGESTED = 0.1  # of a standard deviation: how far two numbers may be apart where nobody says


@dataclass(frozen=True)
class Asked:
    """A rule, and what of the target column belongs to it."""

    rule: Rule
    labels: tuple[Value, ...] = ()
    wanted: Value | tuple[Value, ...] | None = None
    guessed: bool = False  # may a look at the model change the rule?
    suggested: bool = False  # is the difference yet to be told by the numbers themselves?
    refusal: LimiError | None = None  # what to say where the model gives no numbers

    def as_numbers(self) -> Asked:
        """The same for a model that gives numbers."""
        return Asked(Difference(0.0), suggested=True)

    @property
    def favorable(self) -> Any:
        """What is favorable, in words; None where nothing is."""
        if isinstance(self.rule, Favorable):
            return 1 if self.wanted is None else in_words(self.wanted)
        return in_words(several(self.wanted))

    @property
    def unfavorable(self) -> Any:
        """The other labels, in words; None where there are none."""
        wanted = several(self.wanted)
        return in_words([v for v in self.labels if v not in wanted]) if wanted else None

    def truth(self, columns: Columns, target: str | None) -> Labels | None:
        """Which rows carry a favorable label; None where nothing is favorable."""
        if not isinstance(self.rule, Favorable):
            return None
        return favorable_labels(columns, target, several(self.wanted))

    def answers(self, columns: Columns, target: str | None) -> NDArray[np.float64] | None:
        """What the target column holds as answers of the rule, NaN where unknown; None of scores,
        or without a column."""
        return read_answers(self.rule, columns, target)


def read_asked(
    columns: Columns,
    target: str | None,
    favorable: Value | Sequence[Value] | None,
    decision: str | None,
    order: str | Sequence[Value] | None,
) -> Asked:
    """What was asked for; InvalidInput or BadTable where it does not fit the target column."""
    rule = parse_rule(decision)
    if order is not None and not isinstance(rule, Classes):
        if decision is not None:
            raise InvalidInput(
                f"order was given together with the decision {decision!r}; only the decision "
                "'class' has an order of labels"
            )
        rule = Classes()
    if isinstance(rule, Classes):
        return _read_classes(columns, target, favorable, order)
    if rule.kind == "number":
        given = several(favorable)
        return Asked(rule, _labels_for_scores(columns, target, given), in_words_back(given))
    if decision is None and favorable is None:
        numbers = numbers_of(columns, target)
        seen = np.unique(numbers[~np.isnan(numbers)])
        if len(seen) > _FEW or (len(seen) > 2 and (seen % 1 != 0).any()):
            return replace(Asked(rule).as_numbers(), guessed=True)
    try:
        labels = read_labels(columns, target)
        wanted = read_favorable(favorable, labels, target)
    except LimiError as error:
        if decision is None and favorable is None and len(numbers_of(columns, target)):
            return Asked(rule, guessed=True, refusal=error)
        raise
    return Asked(rule, labels, wanted, guessed=decision is None)


def read_answers(rule: Rule, columns: Columns, target: str | None) -> NDArray[np.float64] | None:
    """What a target column holds as answers of a rule, NaN where unknown; None of scores, without
    a column, or where it holds no numbers and the rule compares them."""
    if isinstance(rule, Favorable) or target is None:
        return None
    if isinstance(rule, Classes):
        return places_of(columns, target, rule.labels)
    known = numbers_of(columns, target)
    return known if len(known) else None


def in_words_back(given: tuple[Value, ...]) -> Value | tuple[Value, ...] | None:
    """One label as it is, several as they are, none as None."""
    return given[0] if len(given) == 1 else given or None


def _labels_for_scores(
    columns: Columns, target: str | None, favorable: tuple[Value, ...]
) -> tuple[Value, ...]:
    """The labels of a classifier whose scores are compared as numbers."""
    return read_labels(columns, target) if favorable and target is not None else ()


def _read_classes(
    columns: Columns,
    target: str | None,
    favorable: Value | Sequence[Value] | None,
    order: str | Sequence[Value] | None,
) -> Asked:
    given = _in_order(order)
    if target is None and not given:
        raise InvalidInput(
            "the decision 'class' needs the labels; name the target column, or list the labels "
            "from worst to best with --order low,medium,high (order=[...] in Python)"
        )
    labels = read_labels(columns, target) if target is not None else tuple(given)
    if given:
        labels = _ordered(given, labels, target)
    wanted: Any = None
    places: tuple[int, ...] = ()
    if favorable is not None:
        wanted = read_favorable(favorable, labels, target)
        places = tuple(labels.index(label) for label in several(wanted))
    return Asked(Classes(labels, bool(given), places), labels, wanted)


def _in_order(order: str | Sequence[Value] | None) -> list[Value]:
    """The labels of an order: a list, or one text with commas; none where there is none."""
    if order is None:
        return []
    if isinstance(order, str):
        return [part.strip() for part in order.split(",")]
    if isinstance(order, (int, float, np.generic)) or not isinstance(order, Iterable):
        raise InvalidInput(
            f"order is {order!r}; name every label, the worst first, as in "
            "order=['low', 'medium', 'high']"
        )
    return list(order)


def _ordered(
    given: Sequence[Value], labels: tuple[Value, ...], target: str | None
) -> tuple[Value, ...]:
    """Labels in the order that was given, which names each of them once."""
    found = [match_label(label, labels) for label in given]
    for label, known in zip(given, found, strict=True):
        if known is None:
            raise InvalidInput(
                f"the order names {label!r}, which is not in the target column {target!r}; "
                f"{nearest(str(label), map(str, labels))}"
            )
    left = [label for label in labels if label not in found]
    if left or len(set(found)) < len(found):
        what = f"leaves out {spell(map(repr, left))}" if left else "names a label twice"
        raise InvalidInput(
            f"the order {', '.join(map(str, given))} {what}; name every label of {target!r} once, "
            "the worst first"
        )
    return tuple(label for label in found if label is not None)


def settle_rule(
    asked: Asked, target: Target, rows: Rows, truth: Any, most: int = SETTLING_ROWS
) -> tuple[Target, list[str]]:
    """The target with a rule that knows what the model answers for real rows, and what to say."""
    rule = target.rule
    if isinstance(rule, Favorable):
        return target, []
    notes = []
    answers = target.score(rows[settling_rows(len(rows), most)])
    if asked.suggested:
        known = np.empty(0) if truth is None else truth[~np.isnan(truth)]
        what = "the target column" if len(known) else "its numbers for the table"
        deviation = float(np.std(known if len(known) else answers))
        rule = Difference(float(f"{_SUGGESTED * deviation:.3g}"))
        notes.append(
            "the model returns numbers, and nothing says how large a difference matters, so more "
            f"than {rule.least:g} was taken, a tenth of the standard deviation of {what}; choose "
            "another limit with --decision 'difference > D', 'difference > 10 %' or 'bands = A, "
            "B, C'"
        )
    notes += _parts_nothing(rule, answers)
    return replace(target, rule=rule.settle(answers)), notes


def _parts_nothing(rule: Rule, answers: NDArray[np.float64]) -> list[str]:
    """A sentence where no two of these answers could be different decisions."""
    if not len(answers):
        return []
    n = len(answers)
    if isinstance(rule, Bands) and len(np.unique(rule.band(answers))) == 1:
        return [
            f"all {n:,} rows of the table fall into one band ({answers.min():g} to "
            f"{answers.max():g}), so the cuts separate none of them; are these the cuts in use?"
        ]
    if isinstance(rule, Difference) and not rule.differ(answers.min(), answers.max()):
        return [
            f"the model's numbers for {n:,} rows of the table lie between {answers.min():g} and "
            f"{answers.max():g}, so no two of them are far enough apart for {str(rule)!r}"
        ]
    if isinstance(rule, Classes) and len(np.unique(rule.place(answers))) == 1:
        return [
            f"the model gives all of {n:,} rows of the table the same class, "
            f"{rule.show(float(answers[0]))!r}"
        ]
    return []


def notes_on_label(asked: Asked, given: Any, target: Target, column: str | None) -> tuple[str, ...]:
    """What the report should say of the favorable label."""
    if not isinstance(target.rule, Favorable):
        return ()
    return _by_default(given, asked.wanted, column)


def _by_default(
    given: Value | Sequence[Value] | None,
    taken: Value | tuple[Value, ...] | None,
    target: str | None,
) -> tuple[str, ...]:
    """A sentence where nobody said which label is favorable."""
    if given is not None:
        return ()
    label = 1 if taken is None else taken
    where = "" if target is None else f" of {target!r}"
    return (
        f"no favorable label was named, so {label!r}{where} was taken as the one people want; if "
        "it is the other one, name it with --favorable LABEL (favorable= in Python)",
    )


def notes_on_threshold(target: Target, rows: Rows, most: int) -> list[str]:
    """What a threshold does to scores, and whether it parts any of at most so many rows."""
    rule = target.rule
    if rule.threshold is None:
        return []
    threshold = rule.threshold
    notes = [
        f"a score above {threshold:g} is favorable, whatever the model itself decides; reports "
        f"show the model's own scores, and findings have them as model_score, beside a score that "
        f"is rescaled so that 0.5 stands for {threshold:g}"
    ]
    some = rows[settling_rows(len(rows), min(most, _ASKED))]
    scores = target.score(some)
    if set(np.unique(scores)) <= {0.0, 1.0}:
        notes.append(
            f"the model's scores are all 0 or 1 (on {len(some):,} rows of the table), so every "
            "threshold gives the same decisions"
        )
    elif favors(scores).all() or not favors(scores).any():
        side = "above" if favors(scores).all() else "at or below"
        notes.append(
            f"all {len(some):,} rows of the table have scores {side} {threshold:g}, so the "
            "threshold separates none of them; is it the one in use?"
        )
    return notes
