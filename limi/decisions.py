"""What counts as a decision: which answers of a model differ, and how near the edge none does.

A decision is favorable where the score lies above 0.5. The last digits of a score are not the
model's but the machine's: sums come out in another order on another processor, in another batch,
on more threads. Where they alone decide, the same row flips here and not there. So a score within
`EDGE` of 0.5 is *on the edge*: it takes part in no flip, and to a search it counts as unfavorable,
whatever its last digit. Everything that asks which way a score decides asks here.

`EDGE` is what single precision leaves open. A sum of numbers of about 1 is then known to some
1e-7, and a score to a part of that: between processors the scores of a network with 256 units a
layer moved by 5e-7, those of double precision by 1e-13. Above it lies what a model may mean: the
votes of a hundred thousand trees differ by 1e-5. (A network that adds up large numbers, as one on
unscaled columns does, may move by more; its findings then hold where they were found.)

A model that settles ties by a rule of its own, as a forest does whose trees are even, has decided:
its scores are moved off the edge before they come here (`limi.models._scores`).

Where the user says a threshold, `score > 0.3`, scores are moved so that it comes to lie at 0.5
(`Favorable.move`): one edge and one middle serve every threshold.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from limi.errors import InvalidInput
from limi.system import words
from limi.system.arrays import find_highest, floor, where

__all__ = [
    "AS_DECIDED",
    "DECIDED_AGAINST",
    "DECIDED_FOR",
    "DECIDED_LEAD",
    "EDGE",
    "OTHER_CLASS",
    "PRECISION",
    "Bands",
    "Classes",
    "Difference",
    "Favorable",
    "Kind",
    "Numbers",
    "Rule",
    "contradicts",
    "differ",
    "favors",
    "move_threshold",
    "opposes",
    "parse_rule",
    "restore_threshold",
    "round_scores",
    "sides",
]

_DIGITS = 6
EDGE = 10.0**-_DIGITS
"""How near 0.5 a score is on the edge."""

PRECISION = 1e-6
"""How near two numbers are that rounding may have moved apart, as a part of the larger one, or of
the spread of a model's numbers where that is more: what single precision leaves open of a sum of
many terms, which may nearly cancel. It is `EDGE` for numbers of any size."""

_ROUNDING = 1e-3  # sums in another order differ in the last digits; that is not another answer

DECIDED_FOR, DECIDED_AGAINST = 0.5 + 2 * EDGE, 0.5 - 2 * EDGE
"""Scores that say no more than which way a model has decided."""

# All of these take arrays of numpy and tensors of torch alike. A NaN decides nothing.


def favors(scores: Any) -> Any:
    """Where the decision is favorable, clear of the edge.

    >>> import numpy as np
    >>> favors(np.array([0.4, 0.5, 0.5 + 1e-12, 0.6])).tolist()
    [False, False, False, True]
    """
    return scores > 0.5 + EDGE


def opposes(scores: Any) -> Any:
    """Where the decision is unfavorable, clear of the edge."""
    return scores < 0.5 - EDGE


def differ(scores: Any, others: Any) -> Any:
    """Where two decisions differ and both are clear of the edge: a flip.

    >>> import numpy as np
    >>> differ(np.array([0.4, 0.5 - 1e-12, 0.4]), np.array([0.6, 0.6, 0.5 + 1e-12])).tolist()
    [True, False, False]
    """
    return (favors(scores) & opposes(others)) | (opposes(scores) & favors(others))


def contradicts(scores: Any, favorable: Any) -> Any:
    """Where scores clearly give a different decision from this mask."""
    return (opposes(scores) & favorable) | (favors(scores) & ~favorable)


def sides(scores: Any) -> Any:
    """Which way scores decide: 1 favorable, -1 unfavorable, 0 on the edge.

    >>> import numpy as np
    >>> sides(np.array([0.4, 0.5 + 1e-12, 0.6])).tolist()
    [-1, 0, 1]
    """
    return favors(scores).astype("int8") - opposes(scores).astype("int8")


def round_scores(scores: Any) -> Any:
    """Scores, or differences of them, without the digits that may not steer a search."""
    return scores.round(decimals=_DIGITS)


# -- rules ------------------------------------------------------------------------------

Kind = Literal["favorable", "class", "number"]
"""What a model's answer is: a score that 0.5 parts, one of several classes, or a number."""


class Rule(ABC):
    """What counts as a decision, said by two answers of a model: an answer is one float per row.

    Everything takes arrays of numpy and tensors of torch alike, and a NaN differs from nothing.
    What steers a search, but for flips themselves, sees answers as scores in [0, 1] (`as_score`),
    whatever they are.
    """

    kind: ClassVar[Kind]
    noun: ClassVar[str]
    """What an answer is called."""
    allowed: ClassVar[str] = "numbers"
    """What answers must be, in words."""

    @abstractmethod
    def show(self, answer: float) -> str:
        """An answer in words."""

    @abstractmethod
    def differ(self, one: Any, other: Any) -> Any:
        """Where two answers are different decisions, by more than rounding: a flip."""

    @abstractmethod
    def gap(self, one: Any, other: Any) -> Any:
        """How far two answers are apart, in the rule's own unit: how severe a flip is."""

    @abstractmethod
    def rank(self, answers: Any, mine: Any) -> Any:
        """(n, G): how far answers are from a row's own (n, 1), from 0 to 1, to choose the widest:
        what is nearer than `EDGE` to another of its line is equal to it."""

    @abstractmethod
    def as_score(self, answers: Any) -> Any:
        """Answers as scores in [0, 1], for what steers a search."""

    @abstractmethod
    def stands(self, answers: Any, mine: Any) -> Any:
        """int8: how a decision stands to the row's own; see `turns`."""

    @abstractmethod
    def turns(self, standing: Any, mine: Any) -> Any:
        """Where what `stands` says is a different decision from the row's own (n,)."""

    def leans(self, one: Any, other: Any) -> Any:
        """int8: which of two answers is more, 1 the one, -1 the other, 0 neither."""
        return (one > other).astype("int8") - (one < other).astype("int8")

    @abstractmethod
    def hits(self, answers: Any, mine: Any, other: Any) -> Any:
        """Where an answer is the event whose chance is compared, where answers are random.

        `mine` and `other` are the answers by which the two sides of a pair were decided
        differently at first; the event separates them.
        """

    def settle(self, answers: Any) -> Rule:
        """The same once it is known what the model answers for real rows."""
        return self

    @abstractmethod
    def allows(self, answers: Any) -> Any:
        """Where an answer is one that a model may give; no NaN is."""

    @property
    def threshold(self) -> float | None:
        """The score above which a decision is favorable, where the user gave one."""
        return None

    @property
    def log_odds(self) -> float:
        """Of the threshold: what a margin is compared with."""
        return 0.0

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes among which a model chooses; none where it does not."""
        return ()

    @property
    def ordered(self) -> bool:
        """Is a later label a better one?"""
        return False

    @property
    def wanted(self) -> tuple[int, ...]:
        """The places of the labels that people want, where that is known."""
        return ()

    def move(self, answers: Any) -> Any:
        """What a model gives, moved to where this rule expects it."""
        return answers

    def widen(self, gap: Any) -> Any:
        """How far two answers can be apart once they were moved."""
        return gap

    def moved(self, one: Any, other: Any) -> Any:
        """Where two answers to the same row differ by more than rounding ever makes them."""
        return abs(one - other) > _ROUNDING

    def contradicts(self, answers: Any, decided: Any) -> Any:
        """Where answers clearly give a different decision from the model's own."""
        return contradicts(answers, decided)


@dataclass(frozen=True)
class Favorable(Rule):
    """A decision is favorable or not: as the model itself says, or by a threshold of its score."""

    threshold: float | None = None
    kind: ClassVar[Kind] = "favorable"
    noun: ClassVar[str] = "score"
    allowed: ClassVar[str] = "numbers in [0, 1]"

    def __post_init__(self) -> None:
        if self.threshold is not None and not EDGE < self.threshold < 1 - EDGE:
            raise InvalidInput(
                f"the threshold is {self.threshold:g}; scores lie between 0 and 1, so the "
                "threshold must too, as in 'score > 0.3' (for the numbers of a regressor, use "
                "'bands = 300, 580')"
            )

    def __str__(self) -> str:
        return "favorable" if self.threshold is None else f"score > {self.threshold!r}"

    def show(self, answer: float) -> str:
        """The score."""
        return words.score(answer)

    def differ(self, one: Any, other: Any) -> Any:
        """Where one is favorable and the other not, both clear of the edge."""
        return differ(one, other)

    def gap(self, one: Any, other: Any) -> Any:
        """The distance of the scores."""
        return abs(one - other)

    def rank(self, answers: Any, mine: Any) -> Any:
        """The gap itself."""
        return abs(answers - mine)

    def as_score(self, answers: Any) -> Any:
        """They are."""
        return answers

    def stands(self, answers: Any, mine: Any) -> Any:
        """Which way a score decides, whatever the row's own does."""
        return sides(answers)

    def turns(self, standing: Any, mine: Any) -> Any:
        """Where the two sides are opposite."""
        return standing * sides(mine)[:, None] < 0

    def hits(self, answers: Any, mine: Any, other: Any) -> Any:
        """Where it is favorable."""
        return favors(answers)

    def allows(self, answers: Any) -> Any:
        """From 0 to 1."""
        return (answers >= 0) & (answers <= 1)

    def move(self, scores: Any) -> Any:
        """Scores, moved so that above 0.5 they are favorable by this rule."""
        return scores if self.threshold is None else move_threshold(scores, self.threshold)

    def widen(self, gap: Any) -> Any:
        """How far two scores can be apart once they were moved, if they were so far apart before.

        The side of the threshold that is the narrower is stretched the more, so the widest gap
        holds as much of it as there is.

        >>> import numpy as np
        >>> Favorable(0.2).widen(np.array([0.0, 0.1, 0.6])).round(3).tolist()
        [0.0, 0.25, 0.75]
        """
        if self.threshold is None:
            return gap
        narrow = min(self.threshold, 1 - self.threshold)
        over = where(gap > narrow, gap - narrow, 0.0)
        moved = (gap - over) / (2 * narrow) + over / (2 * (1 - narrow))
        # What is near the threshold is moved off the edge.
        return where(gap > 0, moved + 4 * EDGE, 0.0 * gap)

    @property
    def log_odds(self) -> float:
        """Of the threshold: what a margin is compared with."""
        if self.threshold is None:
            return 0.0
        return math.log(self.threshold) - math.log1p(-self.threshold)


AS_DECIDED = Favorable()
"""The model itself decides."""


class _Pairwise(Rule):
    """Rules by which a decision has no side of its own, but differs from another or not."""

    def stands(self, answers: Any, mine: Any) -> Any:
        """1 where an answer is another decision and the higher one, -1 the lower, 0 the same."""
        apart = self.differ(answers, mine)
        higher = (apart & (answers > mine)).astype("int8")
        return higher - (apart & (answers < mine)).astype("int8")

    def turns(self, standing: Any, mine: Any) -> Any:
        """Where it is another."""
        return standing != 0


@dataclass(frozen=True)
class Classes(_Pairwise):
    """Any change of the predicted class.

    An answer is the place of the class among `labels`, plus how far it is ahead of the next one:
    p / (p + q) - 0.5, from 0 to less than 0.5 (`carry`). Of `ordered` labels a later one is better.
    A search that needs two sides has the `wanted` places on the one, the others on the other.
    """

    labels: tuple[Any, ...] = ()
    ordered: bool = False
    wanted: tuple[int, ...] = ()
    kind: ClassVar[Kind] = "class"
    noun: ClassVar[str] = "class"
    allowed: ClassVar[str] = "classes"

    def __str__(self) -> str:
        return "class"

    def show(self, answer: float) -> str:
        """The label of an answer; a class that the table never has comes behind all others."""
        place = math.floor(answer)
        return str(self.labels[place]) if place < len(self.labels) else OTHER_CLASS

    def allows(self, answers: Any) -> Any:
        """The place of a label, or of a class that the table never has."""
        return (answers >= 0) & (answers < len(self.labels) + 1)

    def carry(self, places: Any, lead: Any) -> Any:
        """Answers of places and of leads in [0, 0.5], which are cut a little below the end."""
        return places + where(lead < _MOST_LEAD, lead, _MOST_LEAD)

    def place(self, answers: Any) -> Any:
        """The class, as a whole float."""
        return floor(answers)

    def differ(self, one: Any, other: Any) -> Any:
        """Where two classes are not the same and both are ahead by more than the edge."""
        mine, theirs = floor(one), floor(other)
        return (mine != theirs) & (one - mine > EDGE) & (other - theirs > EDGE)

    def gap(self, one: Any, other: Any) -> Any:
        """How many places apart ordered classes are; of others 1 where they are not the same."""
        apart = abs(floor(one) - floor(other))
        return apart if self.ordered else where(apart > 0, 1.0, apart)

    def leans(self, one: Any, other: Any) -> Any:
        """Of ordered classes, which is the better one; of others neither is."""
        return super().leans(floor(one), floor(other)) * int(self.ordered)

    def hits(self, answers: Any, mine: Any, other: Any) -> Any:
        """Where it is the row's first class; of ordered ones, the better of the two or above."""
        places, first, second = floor(answers), floor(mine), floor(other)
        if not self.ordered:
            return places == first
        return places >= where(first > second, first, second)

    def rank(self, answers: Any, mine: Any) -> Any:
        """The gap, and among equals how far the class is ahead."""
        lead = where(floor(answers) != floor(mine), answers - floor(answers), 0.0)
        return (self.gap(answers, mine) + lead) / (len(self.labels) + 1)

    def as_score(self, answers: Any) -> Any:
        """Above 0.5 for the classes that people want, by as much as one is ahead."""
        places = floor(answers)
        lead, wanted = answers - places, places != places
        for place in self.wanted:
            wanted = wanted | (places == place)
        return 0.5 + where(wanted, lead, -lead)

    def settle(self, answers: Any) -> Classes:
        """With a side for searches: where nothing is wanted, the better half of what is ordered,
        else the class that is most common."""
        if self.wanted or not len(answers):
            return self
        n = len(self.labels)
        if self.ordered:
            return replace(self, wanted=tuple(range((n + 1) // 2, n)))
        counts = [int((floor(answers) == place).sum()) for place in range(n)]
        return replace(self, wanted=(counts.index(max(counts)),))

    def contradicts(self, answers: Any, decided: Any) -> Any:
        """Where the class is clearly another than the one that the model itself says."""
        places = floor(answers)
        return (places != floor(decided)) & (answers - places > EDGE)


_MOST_LEAD = 0.499
OTHER_CLASS = "another class"
DECIDED_LEAD = 2 * EDGE
"""The lead of a class of which no more is known than that the model has decided for it."""


@dataclass(frozen=True)
class Numbers(_Pairwise):
    """Answers that are numbers; `middle` and `spread` of those for real rows are their scale."""

    middle: float = field(default=0.0, kw_only=True)
    spread: float = field(default=1.0, kw_only=True)
    kind: ClassVar[Kind] = "number"
    noun: ClassVar[str] = "prediction"
    allowed: ClassVar[str] = "finite numbers"

    def show(self, answer: float) -> str:
        """The number."""
        return words.figure(answer)

    def allows(self, answers: Any) -> Any:
        """Neither NaN nor infinite."""
        return abs(answers) < math.inf

    def rank(self, answers: Any, mine: Any) -> Any:
        """The difference, as a part of what is largest in a line, or of the spread: digits that
        single precision leaves open are then under the edge."""
        known = where(answers == answers, abs(answers), 0.0)
        largest = find_highest(known)[:, None] + abs(mine)
        return abs(answers - mine) / where(largest > 2 * self.spread, largest, 2 * self.spread)

    def as_score(self, answers: Any) -> Any:
        """Above 0.5 beyond the middle, on the scale of real rows."""
        scaled = (answers - self.middle) / self.spread
        return 0.5 + 0.5 * scaled / (1 + abs(scaled))

    def settle(self, answers: Any) -> Numbers:
        """With the middle and the spread of these answers."""
        if not len(answers):
            return self
        low, middle, high = (float(x) for x in np.quantile(answers, [0.16, 0.5, 0.84]))
        spread = (high - low) / 2 or float(np.std(answers)) or 1.0
        # In few digits, so that the last ones of answers do not steer a search.
        middle, spread = float(f"{middle:.4g}"), float(f"{spread:.4g}")
        return replace(self, middle=self._cut(middle), spread=spread)

    def _cut(self, middle: float) -> float:
        return middle

    def moved(self, one: Any, other: Any) -> Any:
        """Where they differ by a thousandth of the spread, and by more than rounding."""
        _, high = _by_size(one, other)
        return abs(one - other) > _ROUNDING * self.spread + self._tolerance(high)

    def _tolerance(self, size: Any) -> Any:
        """What rounding may have added to numbers of this size. Near 0 it is that of the terms they
        are sums of, for which the spread of the numbers stands."""
        return PRECISION * where(size > self.spread, size, self.spread)


@dataclass(frozen=True)
class Difference(Numbers):
    """Two numbers that are further apart than `least`; if `relative`, than this part of the one
    nearer to 0."""

    least: float
    relative: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.least < math.inf:
            raise InvalidInput(
                f"the difference is {self.least:g}; it must be 0 or more, as in 'difference > 25' "
                "or 'difference > 10 %'"
            )

    def __str__(self) -> str:
        return f"difference > {_percent(self.least) if self.relative else _plain(self.least)}"

    def differ(self, one: Any, other: Any) -> Any:
        """Where the difference is larger by more than rounding."""
        low, high = _by_size(one, other)
        least = self.least * low if self.relative else self.least
        return abs(one - other) > least + self._tolerance(high)

    def gap(self, one: Any, other: Any) -> Any:
        """The difference, in the unit of the numbers."""
        return abs(one - other)

    def hits(self, answers: Any, mine: Any, other: Any) -> Any:
        """Where it lies above the middle of the two first numbers."""
        return answers > (mine + other) / 2


@dataclass(frozen=True)
class Bands(Numbers):
    """Numbers that fall into different bands; a band begins at its cut."""

    cuts: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in itertools.pairwise(self.cuts))
        if not self.cuts or not rising or not all(map(math.isfinite, self.cuts)):
            raise InvalidInput(
                f"the bands are cut at {', '.join(f'{cut:g}' for cut in self.cuts) or 'nothing'}; "
                "give increasing numbers, as in 'bands = 580, 670, 740'"
            )

    def __str__(self) -> str:
        return f"bands = {', '.join(map(_plain, self.cuts))}"

    def band(self, numbers: Any) -> Any:
        """The band of each number, from 0, as a float."""
        found = 0.0 * numbers
        for cut in self.cuts:
            found = found + where(numbers >= cut, 1.0, 0.0)
        return found

    def differ(self, one: Any, other: Any) -> Any:
        """Where the bands are not the same and neither number is within rounding of a cut."""
        return (self.gap(one, other) > 0) & self._is_clear(one) & self._is_clear(other)

    def gap(self, one: Any, other: Any) -> Any:
        """How many bands apart: how severe a flip is."""
        return abs(self.band(one) - self.band(other))

    def hits(self, answers: Any, mine: Any, other: Any) -> Any:
        """Where it is in the higher of the two first bands, or above."""
        first, second = self.band(mine), self.band(other)
        return self.band(answers) >= where(first > second, first, second)

    def span(self, answers: Any) -> Any:
        """(n,) of (n, G) numbers: how many bands they span, from the lowest to the highest that is
        clear of every cut; 1 where all are in one, 0 where none is clear."""
        band, clear = self.band(answers), self._is_clear(answers)
        highest = find_highest(where(clear, band, -1.0))
        lowest = -find_highest(where(clear, -band, -1.0 - len(self.cuts)))
        return where(highest < 0, 0.0, highest - lowest + 1.0)

    def rank(self, answers: Any, mine: Any) -> Any:
        """Bands first, and among equals the difference of the numbers."""
        bands = where(self.differ(answers, mine), self.gap(answers, mine), 0.0)
        return (bands + super().rank(answers, mine)) / (len(self.cuts) + 1)

    def _cut(self, middle: float) -> float:
        """The cut that is nearest to the middle: there decisions part."""
        return min(self.cuts, key=lambda cut: abs(cut - middle))

    def _is_clear(self, numbers: Any) -> Any:
        clear = numbers == numbers  # not where it is NaN
        for cut in self.cuts:
            clear = clear & (abs(numbers - cut) > PRECISION * max(abs(cut), self.spread))
        return clear


def _plain(number: float) -> str:
    """A number as people write it, and as it reads back.

    >>> _plain(25.0), _plain(0.1)
    ('25', '0.1')
    """
    return repr(int(number)) if number % 1 == 0 and abs(number) < 1e15 else repr(number)


def _percent(share: float) -> str:
    """A share in percent that reads back as itself.

    >>> _percent(0.07), _percent(1 / 3)
    ('7 %', '33.33333333333333 %')
    """
    shown = (float(f"{100 * share:.{digits}g}") for digits in (15, 16, 17))
    return f"{_plain(next((n for n in shown if n / 100 == share), 100 * share))} %"


def _by_size(one: Any, other: Any) -> tuple[Any, Any]:
    """The sizes of two numbers, the lower first."""
    mine, theirs = abs(one), abs(other)
    return where(mine < theirs, mine, theirs), where(mine < theirs, theirs, mine)


def move_threshold(scores: Any, threshold: float) -> Any:
    """Scores in [0, 1], moved in their order so that a threshold comes to lie at 0.5.

    Either side of it is stretched evenly. What lies within `EDGE` of the threshold is on the edge,
    and nothing else is, however much a side was stretched.

    >>> import numpy as np
    >>> move_threshold(np.array([0.0, 0.15, 0.3 + 1e-12, 0.65, 1.0]), 0.3).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if threshold == 0.5:
        return scores
    below = scores / (2 * threshold)
    above = 0.5 + (scores - threshold) / (2 * (1 - threshold))
    below = where(below < DECIDED_AGAINST, below, DECIDED_AGAINST)
    above = where(above > DECIDED_FOR, above, DECIDED_FOR)
    on_edge = 0 * scores + 0.5  # NaN stays NaN
    moved = where(scores < threshold - EDGE, below, on_edge)
    return where(scores > threshold + EDGE, above, moved)


def restore_threshold(moved: Any, threshold: float) -> Any:
    """The scores that `move_threshold` moved to these.

    >>> restore_threshold(0.25, 0.5), restore_threshold(0.75, 0.5)
    (0.25, 0.75)
    """
    below = moved * (moved <= 0.5) + 0.5 * (moved > 0.5)
    return 2 * threshold * below + 2 * (1 - threshold) * (moved - below)


_FORMS = (
    "'favorable' (as the model decides), a threshold such as 'score > 0.3', 'class' (any change of "
    "the predicted class), 'difference > 25' or 'difference > 10 %' (of numbers), or "
    "'bands = 580, 670, 740'"
)
_ABOVE = re.compile(r"(score|difference)\s*>\s*(\S+?)\s*(%?)")
_BANDS = re.compile(r"bands\s*=\s*(.*)")


def parse_rule(text: str | None) -> Rule:
    """The rule that a text spells; InvalidInput where it spells none.

    >>> parse_rule("score > 0.3")
    Favorable(threshold=0.3)
    >>> str(parse_rule("bands = 300, 580"))
    'bands = 300, 580'
    """
    if text is not None and not isinstance(text, str):
        raise InvalidInput(f"decision is {text!r}; it can be {_FORMS}")
    words = "favorable" if text is None else " ".join(text.split())
    if words == "favorable":
        return AS_DECIDED
    if words == "class":
        return Classes()
    if found := _BANDS.fullmatch(words):
        return Bands(tuple(_number(cut.strip(), text) for cut in found[1].split(",")))
    found = _ABOVE.fullmatch(words)
    if found is None or (found[1] == "score" and found[3]):
        raise InvalidInput(f"decision is {text!r}; it can be {_FORMS}")
    number = _number(found[2], text)
    if found[1] == "score":
        return Favorable(number)
    return Difference(number / 100, relative=True) if found[3] else Difference(number)


def _number(word: str, text: str | None) -> float:
    try:
        return float(word)
    except ValueError:
        raise InvalidInput(
            f"decision is {text!r}, and {word!r} is not a number; it can be {_FORMS}"
        ) from None
