"""What every target offers, and how raw answers become scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, DECIDED_LEAD, Classes, Rule, favors
from limi.errors import BadModel, GivesNumbers, InvalidInput, nearest, spell
from limi.models._scores import (
    Favored,
    Output,
    Outputs,
    Places,
    from_pairs,
    lie_in_range,
    probabilities,
    require_one_each,
    whole,
)
from limi.types import Mask, Scores, Truth, Value

__all__ = [
    "Answers",
    "Decides",
    "Decision",
    "LearnsPairs",
    "LearnsWeights",
    "Meaning",
    "Model",
    "Noted",
    "Refits",
    "Remembers",
    "Reopens",
    "Settles",
    "Takes",
    "WithForest",
    "WithModule",
    "ignore",
    "notes_of",
]

Meaning = Literal["label", "score"]
"""What the answers of a function are: labels, of which one is favorable, or favorable scores."""

Takes = Literal["frame", "matrix", "array"]
"""`"frame"`: the user's kind of frame; `"matrix"`: float64, one number per cell; `"array"`: such a
matrix where every column has numbers, else an array of the cells themselves."""


@runtime_checkable
class Model(Protocol):
    """A target: it takes a frame or an array and gives one answer a row.

    What answers are is said by the rule it was made with (`limi.decisions`): mostly scores, which
    are favorable above 0.5.

    Members that it may have beside these, each with a protocol in this module: `decide`, `settle`,
    `notes`, `anew`, `refit` with `describe_refit`, and `module` with `outputs`.
    """

    @property
    def takes(self) -> Takes:
        """What it is given."""
        ...

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns it wants, in order; None where it does not say."""
        ...

    @property
    def n_columns(self) -> int | None:
        """How many columns it wants; None where it does not say."""
        ...

    def score(self, inputs: Any) -> Scores:
        """One score in [0, 1] a row; targets that give labels only answer 0.0 or 1.0."""
        ...


@runtime_checkable
class Decides(Protocol):
    """A model with a way to decide beside its scores."""

    def decide(self, inputs: Any) -> Any:
        """Its own decisions: a mask of rows that are decided favorably; by a rule of classes, their
        places."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A model that is read in another way once real rows have been seen."""

    def settle(self, inputs: Any, on_asked: Callable[[int], None] = ...) -> Model:
        """The model to use from then on; `on_asked` receives the rows of each call of the model."""
        ...


@runtime_checkable
class Noted(Protocol):
    """A model with something for the report to say."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A model that answers a row it was asked before from memory."""

    def anew(self, first: int = 0) -> AbstractContextManager[None]:
        """A block in which a row that is asked again is really asked again.

        Its n-th asking in the block has the n-th of its answers, counted from `first`.
        """
        ...


@runtime_checkable
class Reopens(Protocol):
    """A model whose library does not outlive a fork: its threads stay behind in the parent."""

    def reopened(self) -> Model:
        """The same model, opened by this process."""
        ...


@runtime_checkable
class Refits(Protocol):
    """A model that can be trained again from scratch, for `limi repair`."""

    def describe_refit(self) -> str:
        """How it is trained, for people; InvalidInput where this very model cannot be."""
        ...

    def refit(self, inputs: Any, labels: Truth, seed: int, *, n_table: int) -> Any:
        """A model, or an object that limi can wrap, fitted on rows in the form that this one takes.

        Labels are 1 where favorable and 0 elsewhere; of a rule of classes they are its places, and
        of numbers the numbers themselves. The rows may have grown from a table of `n_table`; the
        seed counts where the kind takes one.
        """
        ...


@runtime_checkable
class LearnsPairs(Protocol):
    """A model that may be trained again with a penalty on pairs of scores: its `refit` then takes
    `pairs`, a partner for each row and a strength."""

    @property
    def learns_pairs(self) -> bool:
        """Can this very model?"""
        ...


@runtime_checkable
class LearnsWeights(Protocol):
    """A model that may be trained again with rows that count differently: its `refit` then takes
    `weights`."""

    @property
    def learns_weights(self) -> bool:
        """Can this very model?"""
        ...


@runtime_checkable
class WithForest(Protocol):
    """A model of trees of scikit-learn that is none of scikit-learn's own classes: proofs and
    `guided` read them."""

    favorable_column: int

    @property
    def forest(self) -> Sequence[Any] | None:
        """The trees (`estimator.tree_`); None where this very model has none."""
        ...


@runtime_checkable
class WithModule(Protocol):
    """A model that is a torch module: it has gradients, and can be put on a device."""

    @property
    def module(self) -> Any:
        """The module; None where this very model has none."""
        ...

    @property
    def outputs(self) -> Outputs:
        """How to read what it returns."""
        ...


def ignore(n: int) -> None:
    """For whoever does not count the rows that a model is given."""


def notes_of(model: Model) -> tuple[str, ...]:
    """What the report should say of a model; nothing where it has no notes."""
    return tuple(model.notes) if isinstance(model, Noted) else ()


@dataclass(frozen=True)
class Decision:
    """Which answer is the favorable one, and which answers the table's target column knows.

    Of more than two labels several may be favorable, as a tuple.

    Labels are compared as a person would: text from a command line matches the class it spells
    (`"1"` matches 1, 1.0 and True).
    """

    favorable: Value | tuple[Value, ...] | None = None
    labels: tuple[Value, ...] = ()
    output: Meaning | None = None  # what the answers of a function are, where the user says so
    rule: Rule = AS_DECIDED

    @property
    def by_score(self) -> bool:
        """Does the user's rule decide by the model's score, whatever the model itself decides?"""
        return self.for_numbers or self.rule.threshold is not None

    @property
    def for_numbers(self) -> bool:
        """Are answers numbers? Of a classifier they are its scores of what is favorable."""
        return self.rule.kind == "number"

    @property
    def wanted(self) -> tuple[Value, ...]:
        """The favorable labels."""
        if self.favorable is None:
            return ()
        return self.favorable if isinstance(self.favorable, tuple) else (self.favorable,)

    @property
    def is_of_many(self) -> bool:
        """Are there more than two labels?"""
        return len(self.labels) > 2 or isinstance(self.favorable, tuple)

    @property
    def ordered(self) -> list[Value]:
        """The table's labels as scikit-learn orders classes."""
        return sorted(self.labels, key=lambda label: (isinstance(label, str), label))

    @property
    def numbered(self) -> range:
        """Classes that are numbers from 0, as a network or a booster has them."""
        return range(max(2, len(self.labels)))

    def outputs(self, kind: Output | None) -> Outputs:
        """Reads a model that has one output for each class, or one number."""
        if self.for_numbers:
            return Outputs(1, "number", 1)
        return Outputs(self.favored(self.numbered), kind, len(self.numbered))

    def output_notes(self) -> tuple[str, ...]:
        """What to say of such a model."""
        return () if self.for_numbers else self.notes(self.numbered)

    def favored(self, classes: Sequence[Any]) -> Favored:
        """Which of a classifier's classes are favorable: one of two, or some of many; of a rule
        of classes, where it has each."""
        known = [_unbox(c) for c in classes]
        if isinstance(self.rule, Classes):
            return self._places(self.rule, known)
        if self.for_numbers and self.favorable is None:
            raise InvalidInput(
                f"the model decides between classes ({spell(map(repr, known))}), but the rule "
                f"{str(self.rule)!r} compares numbers; say which label's score to compare: "
                "--favorable LABEL (favorable= in Python)"
            )
        if len(known) < 3 and not isinstance(self.favorable, tuple):
            return self.column(known)
        if len(known) < 3:
            raise BadModel(
                f"the model has {len(known)} classes ({spell(map(repr, known))}), but the target "
                f"column has {len(self.labels)} labels ({spell(map(repr, self.labels))})"
            )
        if not self.wanted:
            raise InvalidInput(
                f"the model has {len(known)} classes ({spell(map(repr, known))}); name the ones "
                "that people want: --favorable A,B (favorable=[...] in Python)"
            )
        places = tuple(sorted({self._place(label, known) for label in self.wanted}))
        if len(places) == len(known):
            raise InvalidInput(
                f"all classes of the model ({spell(map(repr, known))}) are called favorable, so no "
                "two decisions could differ; leave out those that people do not want"
            )
        return places

    def _places(self, rule: Classes, known: Sequence[Any]) -> Places:
        """Where a rule has each class of a model; behind the last what the table never has."""
        spelled = self.ordered if self._is_numbered(known) else known
        found = [_find(label, rule.labels) for label in spelled]
        strange = [label for label, place in zip(spelled, found, strict=True) if place is None]
        if len(strange) == len(found):
            raise BadModel(
                f"the model's classes ({spell(map(repr, known))}) are not among the labels "
                f"{spell(map(repr, rule.labels))}; name the column that it predicts"
            )
        if strange and rule.ordered:
            raise InvalidInput(
                f"the model has {spell(map(repr, strange))}, which the order "
                f"{', '.join(map(str, rule.labels))} lacks; add it where it belongs"
            )
        return Places(rule, tuple(len(rule.labels) if p is None else p for p in found))

    def _place(self, label: Value, known: Sequence[Any]) -> int:
        """Where a favorable label stands among many classes."""
        place = _find(label, self.ordered if self._is_numbered(known) else known)
        if place is not None:
            return place
        raise InvalidInput(
            f"favorable label {label!r} is not one of the model's classes; "
            f"{nearest(str(label), map(str, known))}"
        )

    def _is_numbered(self, known: Sequence[Any]) -> bool:
        """Are the classes numbers from 0 that stand for the table's labels, in their order?"""
        spelled = any(_find(label, known) is None for label in self.labels)
        return spelled and [_spell(c) for c in known] == [float(i) for i in range(len(self.labels))]

    def column(self, classes: Sequence[Any]) -> int:
        """Which of a classifier's two classes is favorable.

        A model that was trained on 0 and 1, while the table spells its labels out, says 1 for the
        favorable one.
        """
        known = [_unbox(c) for c in classes]
        if len(known) != 2:
            count = "one class only" if len(known) == 1 else f"{len(known)} classes"
            raise BadModel(
                f"the model has {count} ({spell(known)}); limi tests decisions between two"
            )
        bits = [_bit(c) for c in known]
        if self.favorable is None:
            if set(bits) == {0, 1}:
                return bits.index(1)
            raise InvalidInput(
                f"the model's classes are {spell(map(repr, known))}; say which one is favorable"
            )
        place = _find(self.favorable, known)
        if place is not None:
            return place
        if set(bits) == {0, 1} and _find(self.favorable, self.labels) is not None:
            return bits.index(1)
        raise InvalidInput(
            f"favorable label {self.favorable!r} is not one of the model's classes; "
            f"{nearest(str(self.favorable), map(str, known))}"
        )

    def notes(self, classes: Sequence[Any]) -> tuple[str, ...]:
        """A sentence where the model's classes are not the labels of the table."""
        known = [_unbox(c) for c in classes]
        if self.is_of_many or len(known) > 2 or isinstance(self.rule, Classes):
            return self._notes_of_many(known)
        if self.favorable is None or all(_find(v, known) is not None for v in self.labels):
            return ()
        return (
            f"the model answers {spell(map(repr, known))} while the table has "
            f"{spell(map(repr, self.labels))}; {known[self.column(known)]!r} was read as "
            f"{self.favorable!r}",
        )

    def _notes_of_many(self, known: Sequence[Any]) -> tuple[str, ...]:
        if self._is_numbered(known):
            pairs = zip(known, self.ordered, strict=True)
            return (
                "the model numbers its classes, which were matched with the table's labels in "
                f"order: {spell([f'{number} is {label!r}' for number, label in pairs], most=12)}",
            )
        unknown = [c for c in known if self.labels and _find(c, self.labels) is None]
        if not unknown:
            return ()
        return (
            f"the model has {spell(map(repr, unknown))}, which the target column never holds; "
            + (
                "that is shown as another class"
                if isinstance(self.rule, Classes)
                else "that is read as not favorable"
            ),
        )


@dataclass(frozen=True)
class Answers:
    """Reads what a function or a graph returns as scores.

    Labels that are kept as floats look like scores; `settle` says which they are, from answers for
    real rows, so that no batch is read differently from the next.
    """

    decision: Decision = Decision()
    settled: Meaning | None = None

    @property
    def meaning(self) -> Meaning | None:
        """What answers are, where it is known."""
        return self.decision.output or self.settled

    @property
    def are_spelled_out(self) -> bool:
        """Does the table hold labels that are not 0 and 1?"""
        return any(_bit(label) is None for label in self.decision.labels)

    @property
    def may_mislead(self) -> bool:
        """Could the same float mean one thing as a label and another as a score?"""
        labels = self.decision.labels
        if self.decision.rule.kind != "favorable":
            return False
        numbers = all(isinstance(v, (int, float)) for v in labels) and not set(labels) <= {0, 1}
        return self.meaning is None and (
            self.decision.is_of_many
            or _bit(self.decision.favorable) == 0
            or (numbers and len(labels) == 2)
        )

    def settle(self, raw: Any) -> Answers:
        """The same with the meaning of floats settled; InvalidInput where it could be either."""
        array = _flat(_array(raw))
        if not self.may_mislead or array.ndim != 1 or array.dtype.kind != "f" or not array.size:
            return self
        if not self._can_be_labels(array):
            return replace(self, settled="score")
        if self.decision.is_of_many:
            return replace(self, settled="label")
        if not ((array >= 0) & (array <= 1)).all():
            return replace(self, settled="label")
        if np.array_equal(self.favors(array), favors(array)):
            return self  # it comes to the same
        seen = spell(sorted(set(array.tolist())))
        label = next(v for v in array.tolist() if self._favors(v) != favors(v))
        sides = ("favorable", "unfavorable")
        as_label, as_score = sides if self._favors(label) else sides[::-1]
        raise InvalidInput(
            f"the model's answers are all {seen}, so they may be labels or scores: as a label "
            f"{label} is {as_label}, as a score {as_score}; say which with --output label "
            'or --output score (output="label" or "score" in Python)'
        )

    def notes(self, raw: Any) -> tuple[str, ...]:
        """Sentences on how answers for real rows were read, where a reader may think otherwise."""
        array = _flat(_array(raw))
        if array.ndim != 1 or not array.size or self.decision.rule.kind != "favorable":
            return ()
        favorable = self.decision.favorable
        if self._are_scores(array):
            if self.decision.output or _bit(favorable) != 0:
                return ()
            return (
                f"the model's numbers were read as scores of {favorable!r}, the favorable label; "
                "if they are probabilities of the other label, return 1 minus them",
            )
        seen = sorted(set(array.tolist()), key=str)
        if self.decision.is_of_many:
            return ()
        return self.decision.notes(seen) if len(seen) == 2 else ()

    def read(self, raw: Any, n: int) -> Scores:
        """Scores of n rows from floats in [0, 1], a column of them for each label, or labels.

        Columns are read as scikit-learn gives them: one a label, in sorted order.
        """
        array = _array(raw)
        require_one_each(array, n, "answers")
        array = _flat(array)
        if self.decision.for_numbers:
            return _numbers(array)
        width = len(self.decision.numbered)
        if array.ndim == 2 and array.shape[1] == width and array.dtype.kind == "f":
            return self._pairs(array)
        if array.ndim != 1:
            columns = array.shape[1] if array.ndim == 2 else "several"
            known = "two" if width == 2 else f"{width}, one for each label,"
            raise BadModel(
                f"the model returned {columns} values per row; return the favorable score, {known} "
                "probabilities, or a label"
            )
        if isinstance(self.decision.rule, Classes):
            return self.places(array)
        if not self._are_scores(array):
            return self.favors(array).astype(np.float64)
        if array.dtype.kind not in "fiub":
            raise BadModel(
                f'the model answers {array.tolist()[0]!r} but output="score" promises numbers '
                'in [0, 1]; return the favorable score, or use output="label"'
            )
        finite = array.size and np.isfinite(array.astype(np.float64)).all()
        if array.dtype.kind == "f" and finite and not lie_in_range(array):
            raise GivesNumbers(
                f"the model returned scores from {array.min():g} to {array.max():g}; they must lie "
                "in [0, 1], with 0.5 as the threshold (apply a sigmoid to logits); if they are "
                "plain numbers, use --decision 'difference > D'"
            )
        return probabilities(array)

    def places(self, labels: Any) -> Scores:
        """Answers of a rule of classes from labels, or from scores of the second of two."""
        rule = self.decision.rule
        assert isinstance(rule, Classes)
        array = _array(labels)
        if len(rule.labels) == 2 and array.dtype.kind == "f" and not self._can_be_labels(array):
            second = probabilities(array)
            return from_pairs(np.stack([1 - second, second], axis=1), self._by_order)
        seen = list(dict.fromkeys(array.tolist()))
        if any(label is None or label != label for label in seen):
            raise BadModel("the model returned missing labels; it must decide for every row")
        found = [self._place(label) for label in seen]
        if None in found:
            raise self._strange([seen[found.index(None)]])
        told = np.zeros(len(array))
        for label, place in zip(seen, found, strict=True):
            told[array == label] = place
        return told + DECIDED_LEAD

    def _place(self, label: Any) -> int | None:
        """Where the rule has a label; numbers from 0 may stand for labels that are spelled out."""
        rule = self.decision.rule
        assert isinstance(rule, Classes)
        place = _find(label, rule.labels)
        if place is None and not any(isinstance(_spell(v), float) for v in rule.labels):
            number, ordered = _spell(label), self.decision.ordered
            if number in range(len(ordered)):
                place = _find(ordered[int(number)], rule.labels)
        return place

    @property
    def _by_order(self) -> Favored:
        return self.decision.favored(self.decision.ordered)

    def favors(self, labels: Any) -> Mask:
        """Which of these labels mean the favorable one."""
        array = _array(labels)
        seen = list(dict.fromkeys(array.tolist()))
        sides = [self._favors(label) for label in seen]
        if self.decision.is_of_many:
            pass  # any of them may be seen, and in one batch those of one side alone
        elif len(seen) > 2 or (len(seen) == 2 and len(set(sides)) == 1):
            raise self._strange(seen)
        return np.isin(array, [label for label, side in zip(seen, sides, strict=True) if side])

    def _favors(self, label: Any) -> bool:
        """The side of one label, whatever the other rows' labels are."""
        favorable, labels = self.decision.favorable, self.decision.labels
        if label is None or label != label:
            raise BadModel("the model returned missing labels; it must decide for every row")
        if favorable is None:
            if _bit(label) is None:
                raise InvalidInput(f"the model answers {label!r}; say which answer is favorable")
            return _bit(label) == 1
        if self.decision.is_of_many:
            return self._favors_of_many(label)
        if _find(label, (favorable,)) is not None:
            return True
        if labels and _find(label, labels) is None:
            # 0 and 1 may stand for labels that the table spells out.
            if _bit(label) is None or any(_bit(known) is not None for known in labels):
                raise self._strange([label])
            return _bit(label) == 1
        return not labels and _bit(label) == 1 and _bit(favorable) is None

    def _favors_of_many(self, label: Any) -> bool:
        labels, wanted = self.decision.labels, self.decision.wanted
        if labels and _find(label, labels) is None:
            # Numbers from 0 may stand for labels that the table spells out.
            number = _spell(label)
            numbers = any(isinstance(_spell(known), float) for known in labels)
            if numbers or number not in range(len(labels)):
                raise self._strange([label])
            label = self.decision.ordered[int(number)]
        return _find(label, wanted) is not None

    def _strange(self, seen: Sequence[Any]) -> BadModel:
        known = self.decision.labels or self.decision.wanted
        would = "two labels, one of them favorable" if len(known) < 3 else "these labels"
        return BadModel(
            f"the model answers {spell(map(repr, seen))} instead of {spell(map(repr, known))}; "
            f"return {would}, or scores in [0, 1]"
        )

    def _pairs(self, array: NDArray[Any]) -> Scores:
        pairs = probabilities(array)
        if not np.allclose(pairs.sum(axis=1), 1, rtol=0, atol=1e-3):
            raise BadModel(
                f"the model returned {pairs.shape[1]} numbers per row that do not add up to 1; "
                f"return {pairs.shape[1]} probabilities, or only the favorable score"
            )
        if self.decision.is_of_many or isinstance(self.decision.rule, Classes):
            return from_pairs(pairs, self._by_order)
        labels = self.decision.labels
        ordered = sorted(labels) if len({type(v) is str for v in labels}) == 1 else labels
        classes = ordered if len(ordered) == 2 else (0, 1)
        place = _find(self.decision.favorable, classes)
        return from_pairs(pairs, 1 if place is None else place)

    def _are_scores(self, array: NDArray[Any]) -> bool:
        """Floats are scores, unless they were settled as labels or can be nothing else."""
        if self.meaning is not None:
            return self.meaning == "score"
        return array.dtype.kind == "f" and not self._are_labels(array)

    def _are_labels(self, array: NDArray[Any]) -> bool:
        """Float labels such as 1.0 and 2.0; within [0, 1] numbers are scores."""
        labels = [v for v in self.decision.labels if isinstance(v, (int, float))]
        return (
            len(labels) == len(self.decision.labels) >= 2
            and not set(labels) <= {0, 1}
            and bool(np.isin(array, labels).all())
        )

    def _can_be_labels(self, array: NDArray[Any]) -> bool:
        """Are all of these numbers labels that the table, or a model of 0 and 1, may give?"""
        known = [_spell(label) for label in self.decision.labels or (0, 1)]
        return bool(np.isin(array, [number for number in known if isinstance(number, float)]).all())


def _numbers(array: NDArray[Any]) -> Scores:
    """One number per row; BadModel where it is not a number."""
    if array.ndim != 1:
        columns = array.shape[1] if array.ndim == 2 else "several"
        raise BadModel(f"the model returned {columns} values per row; return one number")
    if array.dtype.kind not in "fiub":
        raise BadModel(
            f"the model answers {array.tolist()[0]!r}, which is not a number, but the decision "
            "compares numbers; return one number per row"
        )
    return array.astype(np.float64)


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _array(raw: Any) -> NDArray[Any]:
    array = whole(raw)
    # Cells kept as objects get the type they share: numbers, truth values or text.
    return np.array(array.tolist()) if array.dtype == object else array


def _find(label: Any, among: Sequence[Any]) -> int | None:
    """Where a label stands: the same value, else the same text, else the same number."""
    for alike in (lambda v: v, str, _spell):
        places = [i for i, known in enumerate(among) if alike(known) == alike(label)]
        if len(places) == 1:
            return places[0]
    return None


def _spell(label: Any) -> str | float:
    text = str(label).strip()
    try:
        return float({"true": "1", "false": "0"}.get(text.lower(), text))
    except ValueError:
        return text


def _bit(label: Any) -> int | None:
    number = _spell(label)
    return int(number) if number in (0.0, 1.0) else None


def _unbox(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
