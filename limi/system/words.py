"""Counts, durations and lists of names as a reader would say them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from limi.system.shown import clean

__all__ = [
    *("both", "count", "either", "figure", "markdown", "number", "score", "seconds", "short"),
]


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(0.0042), seconds(1.84), seconds(200), seconds(7322)
    ('under 0.1 s', '1.8 s', '3 min 20 s', '2 h 2 min')
    """
    if not math.isfinite(value):
        return "unknown"
    if value < 0.1:
        return "under 0.1 s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def count(n: int) -> str:
    """A count with its thousands apart."""
    return f"{n:,}"


def short(n: float) -> str:
    """A round count for an axis.

    >>> short(0), short(2500), short(400_000), short(1_000_000)
    ('0', '2.5k', '400k', '1M')
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size:
            return f"{n / size:g}{letter}"
    return f"{n:g}"


def number(value: object) -> str:
    """A setting or a score of a method, short."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "unknown"
    if isinstance(value, int):
        return count(value)
    return str(value)


def figure(value: float) -> str:
    """A number of a model, with the digits that matter at its size.

    >>> figure(1203.52), figure(41.25), figure(-0.012345), figure(12.0)
    ('1,204', '41.25', '-0.0123', '12')
    """
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 1:
        shown = f"{value:.1f}" if size >= 100 else f"{value:.2f}"
        return shown.rstrip("0").rstrip(".")
    return f"{value:.3g}"


def score(value: float) -> str:
    """A score, with the digits that show its side of 0.5.

    >>> score(0.71349), score(0.500004), score(0.5)
    ('0.713', '0.500004', '0.500')
    """
    shown = f"{value:.3f}"
    return f"{value:.6f}" if shown == "0.500" and value != 0.5 else shown


def either(names: list[str], most: int = 4) -> str:
    """Names in a row, "or" before the last.

    >>> either(["sex"]), either(["sex", "race", "age"])
    ('sex', 'sex, race or age')
    """
    if len(names) > most:
        return f"the {len(names)} protected columns"
    return " or ".join(part for part in (", ".join(names[:-1]), "".join(names[-1:])) if part)


def markdown(text: str) -> str:
    """Text with what Markdown would take for marks, and a reader for HTML, made harmless.

    >>> markdown("a|b <i> *c*")
    'a\\\\|b &lt;i> \\\\*c\\\\*'
    """
    for mark in ("\\", "|", "*", "_", "`", "["):
        text = text.replace(mark, f"\\{mark}")
    return clean(text.replace("<", "&lt;").replace("\n", " "))


def both(words: Iterable[str], separator: str = ", ") -> str:
    """Words in a row, "and" before the last.

    >>> both(["sex", "race", "age"])
    'sex, race and age'
    """
    *first, last = [*words] or [""]
    return f"{separator.join(first)} and {last}" if first else last
