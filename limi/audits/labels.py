"""What a target column holds: labels, of which some are favorable, or numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, nearest, spell
from limi.table.frames import plain
from limi.table.schema import same_number
from limi.types import Labels, Value

__all__ = [
    "favorable_labels",
    "in_words",
    "match_label",
    "numbers_of",
    "places_of",
    "read_favorable",
    "read_label_names",
    "read_labels",
    "several",
    "values_of",
]

_MOST_LABELS = 100  # of a target column; more are numbers or names, and no decisions


def values_of(columns: list[tuple[str, Any, Any]], target: str | None) -> list[Value]:
    """What a column holds beside missing cells."""
    series, backend = next((s, b) for name, s, b in columns if name == target)
    _, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    return [v for v in values if not (isinstance(v, float) and math.isnan(v))]


def read_labels(columns: list[tuple[str, Any, Any]], target: str | None) -> tuple[Value, ...]:
    """The labels of a column, sorted; BadTable where they are too many to be decisions."""
    if target is None:
        return ()
    known = values_of(columns, target)
    if not 2 <= len(known) <= _MOST_LABELS:
        several = f"2 to {_MOST_LABELS} labels"
        raise BadTable(
            f"the target column {target!r} has {len(known)} different "
            f"value{'s' * (len(known) != 1)} ({spell(map(repr, known), most=5)}); limi tests "
            f"decisions between {several}, so name the column that holds the labels; if it holds "
            "numbers that the model predicts, say how far apart two may be (--decision "
            "'difference > D'), or where bands begin (--decision 'bands = A, B')"
        )
    return tuple(sorted(known, key=lambda v: (isinstance(v, str), v)))


def favorable_labels(
    columns: list[tuple[str, Any, Any]], target: str | None, favorable: tuple[Value, ...]
) -> Labels | None:
    """Which rows of the table carry the favorable label; -1 where the cell is missing."""
    if target is None:
        return None
    series, backend = next((s, b) for name, s, b in columns if name == target)
    codes, cells = backend.factorize(series)
    values = [plain(cell) for cell in cells]
    gaps = [isinstance(value, float) and math.isnan(value) for value in values]
    meaning = [-1 if gap else value in favorable for gap, value in zip(gaps, values, strict=True)]
    known: Labels = np.array([*meaning, -1], dtype=np.int8)[codes]  # code -1, a gap: the last
    return known


def read_favorable(
    favorable: Value | Sequence[Value] | None, labels: tuple[Value, ...], target: str | None
) -> Value | tuple[Value, ...] | None:
    """The favorable label; of more than two, those that are favorable, as a tuple."""
    given = several(favorable)
    if not labels:
        return given[0] if len(given) == 1 else given or None
    if not given:
        if set(labels) == {0, 1}:
            return labels[1]
        said = ",".join(map(str, labels[-2:])) if len(labels) > 2 else str(labels[-1])
        which = (
            "which ones people want, one or several" if len(labels) > 2 else "which one people want"
        )
        raise InvalidInput(
            f"the target column {target!r} holds {spell(map(repr, labels))}; say {which}, for "
            f"example --favorable {said!r}{_other_rules(labels)}"
        )
    if len(given) == 1 and isinstance(given[0], str) and match_label(given[0], labels) is None:
        # On a command line several labels are one text.
        given = tuple(part.strip() for part in given[0].split(","))
    wanted = [match_label(label, labels) for label in given]
    for label, found in zip(given, wanted, strict=True):
        if found is None:
            raise InvalidInput(
                f"favorable label {label!r} is not in the target column {target!r}; "
                f"{nearest(str(label), map(str, labels))}"
            )
    chosen = tuple(label for label in labels if label in wanted)
    if len(chosen) == len(labels):
        raise InvalidInput(
            f"all labels of the target column {target!r} ({spell(map(repr, labels))}) are called "
            "favorable, so no two decisions could differ; leave out those that people do not want"
        )
    return chosen[0] if len(labels) == 2 else chosen


def _other_rules(labels: tuple[Value, ...]) -> str:
    """What else could be asked of more than two labels."""
    if len(labels) < 3:
        return ""
    numbers = all(_is_number(label) for label in labels)
    return (
        "; or that any change of the class counts, --decision class (with --order LOW,...,HIGH if "
        "some are better than others)"
    ) + ("; or how far apart numbers may be, --decision 'difference > D'" if numbers else "")


def match_label(wanted: Value, labels: tuple[Value, ...]) -> Value | None:
    """The label that is meant: the same value, the same text or the same number."""
    for label in labels:
        if label == wanted or str(label) == str(wanted) or same_number(wanted, label):
            return label
    return None


def several(wanted: Value | Sequence[Value] | None) -> tuple[Value, ...]:
    """One label, several or none as a tuple, each as plain Python."""
    if wanted is None:
        return ()
    if isinstance(wanted, (str, int, float, bool, np.generic)):
        return (plain(wanted),)
    try:
        return tuple(map(plain, wanted))
    except TypeError:
        raise InvalidInput(
            f"favorable is {wanted!r}; give a label of the target column, or a list of them"
        ) from None


def in_words(labels: Value | Sequence[Value]) -> Any:
    """One label as it is, several as words; None for none."""
    named = several(labels)
    if len(named) < 2:
        return named[0] if named else None
    *first, last = map(str, named)
    return f"{', '.join(first)} or {last}"


def read_label_names(
    given: str | Mapping[Any, str] | None, known: tuple[Value, ...]
) -> dict[str, str]:
    """What labels mean, by the label as text; on a command line `1=granted,0=refused`."""
    if given is None:
        return {}
    if isinstance(given, str):
        parts = next(csv.reader([given], skipinitialspace=True), [])
        pairs = [part.partition("=") for part in parts]
        if not pairs or not all(equals and name.strip() for _, equals, name in pairs):
            raise InvalidInput(
                f"the label names are {given[:160]!r}; write LABEL=NAME,LABEL=NAME, for example "
                "1=granted,0=refused"
            )
        given = {label.strip(): name.strip().strip('"') for label, _, name in pairs}
    names = {}
    for label, name in given.items():
        found = match_label(plain(label), known) if known else label
        if found is None:
            raise InvalidInput(
                f"{label!r} is given a name but is not a label; "
                f"{nearest(str(label), map(str, known))}"
            )
        names[str(found)] = str(name)
    return names


def numbers_of(columns: list[tuple[str, Any, Any]], target: str | None) -> NDArray[np.float64]:
    """The cells of a column as numbers, NaN where one is missing; none where it holds others."""
    if target is None:
        return np.empty(0)
    known = _cells(columns, target, lambda value: value if _is_number(value) else math.inf)
    return np.empty(0) if np.isinf(known).any() else known


def places_of(
    columns: list[tuple[str, Any, Any]], target: str | None, labels: Sequence[Value]
) -> NDArray[np.float64]:
    """Where the cells of a column stand among labels, NaN where one is missing or none of them."""
    if target is None:
        return np.empty(0)
    return _cells(
        columns, target, lambda value: labels.index(value) if value in labels else math.nan
    )


def _cells(columns: list[tuple[str, Any, Any]], target: str, meaning: Any) -> NDArray[np.float64]:
    series, backend = next((s, b) for name, s, b in columns if name == target)
    codes, cells = backend.factorize(series)
    known = np.array([*(meaning(plain(cell)) for cell in cells), math.nan], dtype=np.float64)
    told: NDArray[np.float64] = known[codes]  # code -1, a gap: the last
    return told


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
