"""What the columns of a table seem to be: dates, identifiers, names of people, one value only.

A date or an identifier is nothing that a generator should invent or that tells why people are
decided differently, so such columns are set aside unless the model takes them. What looks like
personal data is named, and hidden wherever rows are written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from limi.errors import spell
from limi.system.shown import to_toml
from limi.table.files import FEW_LEVELS, as_numbers
from limi.table.frames import Frame, columns_of
from limi.table.guesses import names_target, parts_of, says
from limi.table.schema import Column, Schema

__all__ = ["Recognised", "Role", "recognise", "tell_aside"]

Role = Literal["date", "id", "label", "constant", "words", "numbers", "plain"]
"""A date; different in nearly every row; the label that nobody named; one value only; yes or no in
words; numbers stored as text; anything else."""

_LEAST_ROWS = 20  # of fewer, all may differ by chance
_NEARLY_ALL = 0.95  # of the known cells of a column of identifiers differ
_LOOKED_AT = 1_000  # levels that show what a column holds

_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_NAMED_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?:1[6-9]|20|21)\d\d"
_TIME = r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m)?(?:Z|[+-]\d\d:?\d\d)?)?"
_DATES = tuple(
    re.compile(pattern + _TIME, re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}-{_MONTH}-{_DAY}",
        rf"{_YEAR}/{_MONTH}/{_DAY}",
        rf"{_YEAR}\.{_MONTH}\.{_DAY}",
        rf"{_MONTH}/{_DAY}/(?:{_YEAR}|\d\d)",
        rf"{_DAY}/{_MONTH}/(?:{_YEAR}|\d\d)",
        rf"{_DAY}\.{_MONTH}\.(?:{_YEAR}|\d\d)",
        rf"{_DAY}-{_MONTH}-{_YEAR}",
        rf"{_DAY}[ -]{_NAMED_MONTH}[ -]{_YEAR}",
        rf"{_NAMED_MONTH} {_DAY},? {_YEAR}",
    )
)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]+\.[^@\s.]{2,24}")
_PHONE = re.compile(r"\+?(?:\(\d+\)|\d)(?:[ ./-]?(?:\(\d+\)|\d)){6,18}")
_TIED = re.compile(r"[ ./()+-]")  # what ties the parts of a phone number together
_STREET = re.compile(r"\d+\w? +\S.*|\S.* +\d+\w?", re.DOTALL)
_WORDS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"}, {"on", "off"})

_IDS = ("id", "ids", "uuid", "guid", "rowid", "identifier", "rownames", "index", "ssn")
_NAMES = ("name", "names", "firstname", "lastname", "surname", "forename", "fullname", "patient")
_HALVES = ("first", "last", "middle", "given", "family")  # of names, where they stand alone
_STREETS = ("street", "address", "addr", "strasse", "road")
_PHONES = ("phone", "telephone", "tel", "mobile", "cell", "fax")


@dataclass(frozen=True)
class Recognised:
    """What a column seems to be, and how sure its cells make us."""

    name: str
    role: Role
    said: str  # what was seen, in words that go on after the name: "holds dates"
    personal: str = ""  # what kind of personal data it looks like; "" for none

    @property
    def is_aside(self) -> bool:
        """Is it left out unless the model takes it?"""
        return self.role in ("date", "id", "label") or bool(self.personal)

    @property
    def line(self) -> str:
        """What a schema.toml says to take it otherwise."""
        kind = "categorical" if self.is_aside else "ignored"
        return f"[columns.{to_toml(self.name)}] kind = {to_toml(kind)}"


def recognise(
    frame: Frame,
    schema: Schema,
    among: Collection[str] | None = None,
    *,
    labelled: bool = True,
) -> dict[str, Recognised]:
    """What the columns of a schema, or those named of them, seem to be; one of them the label,
    unless the table is `labelled` by a column that was named."""
    wanted = set(schema.names if among is None else among)
    cells = {name: (series, backend) for name, series, backend in columns_of(frame)}
    found = {
        column.name: _recognise(column, *cells[column.name])
        for column in schema.columns
        if column.name in wanted and column.name in cells
    }
    labels = [
        name
        for name, seen in found.items()
        if schema[name].size == 2 and names_target(name) and not seen.is_aside
    ]
    if labels and not labelled:
        found[labels[-1]] = Recognised(labels[-1], "label", "looks like the label")
    return found


def tell_aside(found: Mapping[str, Recognised], names: Collection[str]) -> tuple[str, ...]:
    """A sentence on columns that were set aside."""
    told = []
    for words, those in _by_kind(found, names):
        verb, them = ("hold", "they are") if len(those) > 1 else ("holds", "it is")
        told.append(
            f"{spell(map(repr, those))} {verb} {words}, so {them} not generated, changed or given "
            f"to the model; to use {'one' if len(those) > 1 else 'it'}, write "
            f"{found[those[0]].line} into a schema.toml"
        )
    labels = [name for name in names if found[name].role == "label"]
    if labels:
        told.append(
            f"no --target was named, and {labels[0]!r} looks like the label, so it is not given to "
            f"the model; --target {labels[0]} also measures accuracy (target= in Python)"
        )
    return tuple(told)


def _by_kind(
    found: Mapping[str, Recognised], names: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """What columns hold that are set aside, in words, each with those that hold it."""
    dates = [name for name in names if found[name].role == "date"]
    own = [name for name in names if found[name].role == "id"]
    others = [name for name in names if name not in {*dates, *own} and found[name].personal]
    for words, those in (
        ("dates", dates),
        ("names or identifiers, different in nearly every row", own),
        *((found[name].personal, [name]) for name in others),
    ):
        if those:
            yield words, those


def _recognise(column: Column, series: Any, backend: Any) -> Recognised:
    role, said = _role(column, series, backend)
    personal = _personal(column, role)
    if personal and role == "plain":
        said = f"holds {personal}"  # and no example of them
    return Recognised(column.name, role, said, personal)


def _role(column: Column, series: Any, backend: Any) -> tuple[Role, str]:
    size = column.size
    if column.is_number:
        if column.low == column.high:
            return "constant", f"always holds {column.show(column.low)}"
        return _role_of_numbers(column, series, backend)
    texts = [level for level in column.levels[:_LOOKED_AT] if isinstance(level, str)]
    if size == 1:
        return "constant", f"always holds {column.show(0)!r}"
    if len(texts) < min(size, _LOOKED_AT):
        if _differs(column, series, backend):  # integers beyond what a float tells apart
            return "id", "holds a number of its own in nearly every row"
        return "plain", _say_levels(column)
    if any(all(map(pattern.fullmatch, map(str.strip, texts))) for pattern in _DATES):
        return "date", f"holds dates, such as {texts[0]!r}"
    if backend.categories(series) is None and _differs(column, series, backend):
        return "id", f"holds {size:,} different texts, one in nearly every row"
    if {text.strip().casefold() for text in texts} in _WORDS and size == 2:
        return "words", f"says {texts[0]!r} or {texts[1]!r}"
    if as_numbers(texts):
        return "numbers", f"holds numbers stored as text, such as {texts[0]!r}"
    return "plain", _say_levels(column)


def _say_levels(column: Column) -> str:
    shown = spell((repr(column.show(code)) for code in range(min(column.size, 5))), most=4)
    return f"holds {column.size:,} values: {shown}"


def _role_of_numbers(column: Column, series: Any, backend: Any) -> tuple[Role, str]:
    said = f"holds numbers from {column.show(column.low)} to {column.show(column.high)}"
    if column.step != 1.0 or column.missing:
        return "plain", said
    n = len(series)
    counts = column.low in (0.0, 1.0) and column.size == n
    if n < _LEAST_ROWS or not (counts or (says(column.name, _IDS) and column.size >= n)):
        return "plain", said
    numbers = backend.numbers(series)
    if counts and (np.diff(numbers) == 1).all():
        return "id", "counts the rows"
    if says(column.name, _IDS) and len(np.unique(numbers)) == n:
        return "id", "is called an identifier and differs in every row"
    return "plain", said


def _differs(column: Column, series: Any, backend: Any) -> bool:
    """Does nearly every row hold a value of its own?"""
    n = len(series)
    if column.size < _LEAST_ROWS or (not column.missing and column.size < _NEARLY_ALL * n):
        return False
    known = n if not column.missing else int((backend.factorize(series)[0] >= 0).sum())
    return column.size >= _NEARLY_ALL * known


def _personal(column: Column, role: Role) -> str:
    """What kind of personal data a column looks like."""
    if role in ("date", "constant") or (column.is_number and role != "id"):
        return ""
    if role == "id" and (says(column.name, _IDS) or column.is_number):
        return "identifiers"
    texts = [str(level).strip() for level in column.levels[:_LOOKED_AT] if level != ""]
    if texts and all(map(_EMAIL.fullmatch, texts)):
        return "e-mail addresses"
    phones = says(column.name, _PHONES) or (
        len(texts) >= _LEAST_ROWS and sum(map(bool, map(_TIED.search, texts))) > len(texts) / 2
    )
    if texts and phones and all(map(_PHONE.fullmatch, texts)):
        return "phone numbers"
    if len(texts) <= FEW_LEVELS and role != "id":
        return ""
    if says(column.name, _STREETS) and sum(map(bool, map(_STREET.fullmatch, texts))) > (
        len(texts) / 2
    ):
        return "streets"
    parts = parts_of(column.name)
    if says(column.name, _NAMES) or (len(parts) == 1 and parts[0] in _HALVES):
        return "names"
    return "identifiers" if role == "id" else ""
