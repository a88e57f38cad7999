"""The exceptions of limi; each says what was given, what would work, and what to try.

LimiError
├── InvalidInput       an argument, option or schema that cannot be used      exit code 2
│   └── MissingCapability  a method or target lacks something the run needs   exit code 2
├── MissingDependency  an optional package is not installed                   exit code 2
├── BadTable           the data cannot be used as they are                    exit code 4
├── BadModel           the target raises, or answers what it must not         exit code 4
│   ├── GivesNumbers   it answers with numbers where decisions are wanted     exit code 4
│   └── Unreachable    an address does not answer; a run can be resumed       exit code 4
├── CorruptStore       a run folder or cache cannot be read                   exit code 4
└── FailedWrite        the system cannot write: a full disk, a broken device  exit code 4
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "BadModel",
    "BadTable",
    "CorruptStore",
    "FailedWrite",
    "GivesNumbers",
    "InvalidInput",
    "LimiError",
    "MissingCapability",
    "MissingDependency",
    "Unreachable",
    "find_repeated",
    "missing",
    "nearest",
    "spell",
]

_LONGEST_NAME = 200  # characters


class LimiError(Exception):
    """Anything limi refuses, with one sentence for the user."""

    exit_code: ClassVar[int] = 2


class InvalidInput(LimiError, ValueError):
    """An argument, option or schema that cannot be used."""


class MissingCapability(InvalidInput, TypeError):
    """A method needs something that this target or task does not offer."""


class MissingDependency(LimiError, ImportError):
    """An optional package is needed and not installed."""


class BadTable(LimiError, ValueError):
    """The data cannot be used as they are."""

    exit_code = 4


class BadModel(LimiError, ValueError):
    """The target raises, or gives answers that cannot be read as decisions."""

    exit_code = 4


class Unreachable(BadModel):
    """The address of a model no longer answers; all its answers are kept."""


class GivesNumbers(BadModel):
    """The target is a regressor: its answers are numbers, and the rule wants decisions."""


class CorruptStore(LimiError):
    """A run folder or cache cannot be read."""

    exit_code = 4


class FailedWrite(LimiError):
    """The system cannot write: the disk is full, a quota is spent, a device fails."""

    exit_code = 4


def missing(package: str, extra: str, purpose: str) -> MissingDependency:
    """The error for an optional package, naming the extra that brings it."""
    return MissingDependency(
        f"{purpose} needs the package {package}, which is not installed; "
        f"try: pip install 'limi[{extra}]'"
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as "did you mean 'themis'?", and always the list of known names.

    Capitals count for little: `male` is nearer to `Male` than to `Female`.
    """
    names = sorted(map(str, known))
    folded: dict[str, list[str]] = {}
    # Comparing is quadratic in the length, and nobody has mistyped a page of text.
    name = name[:_LONGEST_NAME]
    for other in (one for one in names if len(one) <= _LONGEST_NAME):
        folded.setdefault(other.strip().casefold(), []).append(other)
    close = difflib.get_close_matches(name.strip().casefold(), folded, n=1, cutoff=0.5)
    alike = folded[close[0]] if close else []
    closest = difflib.get_close_matches(name, alike, n=1, cutoff=0.0)
    hint = f"did you mean {closest[0]!r}? Known" if closest else "known"
    return f"{hint}: {spell(names)}"


def find_repeated(names: Iterable[object]) -> list[str]:
    """Names that occur more than once."""
    return sorted(str(name) for name, times in Counter(names).items() if times > 1)


def spell(names: Iterable[object], most: int = 12) -> str:
    """Names joined by commas, cut after the first few."""
    words = [str(name) for name in names]
    shown = ", ".join(map(_cut, words[:most])) or "none"
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]} ..."
