"""One side of a claim: the words for its number, and the verdict of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.results import NOT_MEASURED, NOT_RUN, TOO_FEW

__all__ = [
    "ALONE",
    "FOUND_TOO_FEW",
    "HOLDS",
    "NOTHING",
    "NOT_COMPARABLE",
    "NOT_COMPUTABLE",
    "NOT_JUDGED",
    "ONE_BEFORE",
    "ONE_SEED",
    "ONE_TARGET",
    "OPPOSITE",
    "SIGN_ALONE",
    "SMALLER_AT_BEST",
    "UNMEASURED",
    "UPPER_LIMIT",
    "Side",
    "put_in_brackets",
]

NOT_COMPARABLE = "not comparable"
_NOT_COMPUTABLE = "not computable"
NOT_JUDGED = (NOT_RUN, NOT_COMPARABLE, NOT_MEASURED, TOO_FEW, _NOT_COMPUTABLE)
OPPOSITE = "no: the opposite"
ONE_SEED = "open: one seed"
ONE_BEFORE = "open: one model before"
ONE_TARGET = "open: one target of each kind"
UPPER_LIMIT = "open: an upper limit"
SMALLER_AT_BEST = "smaller at best"
ALONE = " (one seed)"
# The paper has no number to reach, so this asks less than a plain yes.
SIGN_ALONE = "yes (the sign alone)"
HOLDS = ("yes", SIGN_ALONE, "smaller")


@dataclass(frozen=True)
class Side:
    """A claim's number for each seed, or its count of benchmarks, and the words for it."""

    shown: str
    verdict: str
    scale: str = ""
    n_seeds: int = 2
    spread: str = ""  # over seeds
    asides: tuple[tuple[str, str], ...] = ()  # what is told in brackets, and the spread of it
    rival: tuple[str, str] = ("", "")  # the best of the others, and the spread of that
    means: str = ""  # what the means over benchmarks give
    means_in_brief: str = ""  # the same, where a sign depends on the average
    marks: str = ""
    values: tuple[float, ...] = ()  # by seed, of a claim of size

    def __str__(self) -> str:
        told = [self.spread, *(words + put_in_brackets(spread) for words, spread in self.asides)]
        words, spread = self.rival
        return self._tell(told, words + put_in_brackets(spread), self.means)

    @property
    def brief(self) -> str:
        """Without spreads, and without other averages where no sign depends on them."""
        told = [self.means_in_brief, *(words for words, _ in self.asides)]
        return self._tell(told, self.rival[0], "")

    def add(self, words: str, spread: str = "") -> Side:
        """The side with more in its brackets."""
        return replace(self, asides=(*self.asides, (words, spread)))

    def mark(self, words: str) -> Side:
        """The side with more behind it."""
        return replace(self, marks=self.marks + words)

    def _tell(self, told: Sequence[str], rival: str, means: str) -> str:
        inside = put_in_brackets("; ".join(filter(None, told)))
        beside = rival and f"; {rival}"
        return self._at_scale(self.shown + inside + beside + means + self.marks)

    def _at_scale(self, told: str) -> str:
        return f"{told}, `{self.scale}`" if self.scale not in ("", "paper") else told


NOTHING = Side(NOT_RUN, NOT_RUN)
UNMEASURED = Side(NOT_MEASURED, NOT_MEASURED)
FOUND_TOO_FEW = Side(TOO_FEW, TOO_FEW)
NOT_COMPUTABLE = Side(_NOT_COMPUTABLE, _NOT_COMPUTABLE)


def put_in_brackets(words: str) -> str:
    """The words in brackets, or nothing for none."""
    return words and f" ({words})"
