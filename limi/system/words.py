"""Counts, durations and lists of names as a reader would say them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from limi.system.shown import clean

__all__ = ["both", "count", "either", "markdown", "number", "seconds", "short"]


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
