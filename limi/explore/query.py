"""What a request asks for: filters, an order, a page; all of it bounded, and none of it a path."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from limi.errors import InvalidInput
from limi.explore.sheet import Facet, Filter, Sheet, Strip

__all__ = ["MOST_BYTES", "FacetView", "Line", "Query", "facet_view", "filters_of", "read_pairs"]

MOST_BYTES = 1 << 16
"""Of a body, or of a query string."""

_MOST_PAIRS = 500
_LONGEST = 2_000


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a form or of a query string; InvalidInput where there are too many."""
    if len(text) > MOST_BYTES:
        raise InvalidInput("the request is too long; choose fewer values")
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_PAIRS, encoding="utf-8"
        )
    except ValueError:
        raise InvalidInput(f"the request has more than {_MOST_PAIRS} parts") from None
    if any(len(part) > _LONGEST for pair in pairs for part in pair):
        raise InvalidInput(f"a part of the request is longer than {_LONGEST:,} letters")
    return tuple(pairs)


@dataclass(frozen=True)
class Query:
    """Pairs of names and values."""

    pairs: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """The last value of a name."""
        return next((value for key, value in reversed(self.pairs) if key == name), default)

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return [value for key, value in self.pairs if key == name]

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number from 0 to `most`; the default where it is none."""
        text = self.get(name)
        if not (text.isascii() and text.isdecimal() and len(text) <= 12):
            return default
        return min(int(text), most)

    def replace(self, changes: Mapping[str, Sequence[str] | str | None]) -> Query:
        """The same with other values of some names; None takes them away."""
        kept = [(key, value) for key, value in self.pairs if key not in changes]
        for name, value in changes.items():
            values = [value] if isinstance(value, str) else value or []
            kept += [(name, one) for one in values]
        return Query(tuple(kept))

    def encode(self) -> str:
        """As it stands in an address."""
        return urlencode([pair for pair in self.pairs if pair[1] != ""], quote_via=quote)


def filters_of(sheet: Sheet, query: Query, secret: Collection[str] = ()) -> dict[str, Filter]:
    """The filters that a request asks for, but for secret columns; InvalidInput where one makes
    no sense."""
    filters: dict[str, Filter] = {}
    for name in dict.fromkeys(key.partition(".")[0] for key, _ in query.pairs):
        if name not in sheet.strips or name in secret:
            continue
        values = [value for value in query.all(name) if value != ""]
        ends = [query.get(f"{name}.{end}") for end in ("low", "high", "below")]
        missing = "missing" in values
        codes = tuple(_number(v, name) for v in values if v != "missing")
        if codes or (missing and not any(ends)):
            filters[name] = Filter(codes=codes, missing=missing)
        elif any(ends):
            low, high, below = (
                default if not end else _number(end, name)
                for end, default in zip(ends, (-math.inf, math.inf, math.inf), strict=True)
            )
            filters[name] = Filter(low, high, below, missing=missing)
    return filters


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{text[:40]!r} is not a number to filter {name!r} by")
    return number


@dataclass(frozen=True)
class Line:
    """A value or a bin that can be chosen."""

    value: str
    label: str
    n: int
    share: float  # of the largest count
    chosen: bool
    href: str = ""  # of a bin


@dataclass(frozen=True)
class FacetView:
    """A column as a list of choices."""

    name: str
    title: str
    lines: tuple[Line, ...]
    is_range: bool
    low: str
    high: str
    below: str
    active: bool
    rest: int


def facet_view(strip: Strip, facet: Facet, title: str, query: Query, path: str) -> FacetView:
    """The choices of one column, with counts."""
    is_range = any(slot.low != slot.high for slot in facet.slots if not slot.is_missing)
    is_range = is_range or (strip.column is None and not strip.words)
    most = max((slot.n for slot in facet.slots), default=0) or 1
    lines = tuple(_lines(strip, facet, query, path, is_range, most))
    low, high, below = (query.get(f"{facet.name}.{end}") for end in ("low", "high", "below"))
    active = bool(low or high or below or [v for v in query.all(facet.name) if v])
    return FacetView(facet.name, title, lines, is_range, low, high, below, active, facet.rest)


def _lines(
    strip: Strip, facet: Facet, query: Query, path: str, is_range: bool, most: int
) -> Iterator[Line]:
    for slot in facet.slots:
        if slot.is_missing:
            chosen = "missing" in query.all(facet.name)
            yield Line("missing", "missing", slot.n, slot.n / most, chosen)
            continue
        if not is_range:
            value = f"{slot.low:.10g}"
            chosen = value in query.all(facet.name)
            yield Line(value, strip.show(slot.low), slot.n, slot.n / most, chosen)
            continue
        label = strip.show(slot.low)
        last = slot.high - (strip.column.step if strip.column is not None else 0.0)
        if last > slot.low:
            label += f" to {strip.show(last)}"
        names = (f"{facet.name}.low", f"{facet.name}.below", f"{facet.name}.high")
        changes: dict[str, Any] = dict.fromkeys(names)
        if not slot.chosen:
            changes |= {names[0]: f"{slot.low:.12g}", names[1]: repr(slot.high)}
        href = f"{path}?{query.replace({**changes, 'page': None}).encode()}"
        yield Line("", label, slot.n, slot.n / most, slot.chosen, href)
