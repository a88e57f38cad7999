"""How much is asked for each part of the answer, cut to what a budget pays for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from limi.twins.carriers import PERMUTATIONS

__all__ = ["DRAWS", "MOST_OTHERS", "REFITS", "Effort", "directions", "least_questions"]

REFITS = 8
"""Tables drawn again, and orders of the columns tried."""

DRAWS = 20
"""Twins drawn of a person to see how sure their verdict is."""

MOST_OTHERS = 5
"""Groups that are compared with the one decided favorably most often."""

_MIXTURES = 3 * PERMUTATIONS  # of a changed decision, about: most twins differ in few carriers
_KEPT_SETS = 4
_FEWEST = {"people": 50, "again": 50, "kept": 50, "carried": 20, "drawn": 20}
_EACH = {  # questions of a person, by part
    "people": 3,  # themselves, their twin and that between random groups
    "carried": _MIXTURES,
    "kept": _KEPT_SETS,
    "again": 2 * REFITS,
    "drawn": DRAWS,
}
_OTHERS = ("carried", "kept", "again", "drawn")  # what is worth most first


def directions(n_groups: int) -> int:
    """How many directions so many groups have: to the best-off group and back."""
    return 2 * min(n_groups - 1, MOST_OTHERS)


def least_questions(directions: int) -> int:
    """Questions below which nobody is asked: half of them are for the rates of the fewest people.

    >>> least = least_questions(2)
    >>> Effort().within(least, 2).people, Effort().within(least - 1, 2).people
    (50, 0)
    """
    return 2 * _EACH["people"] * _FEWEST["people"] * directions


@dataclass(frozen=True)
class Effort:
    """People of each direction that each part is measured on; 0 for a part that is left out."""

    people: int = 5000  # the rates
    again: int = 1000  # with other tables and in other orders
    kept: int = 2500  # with each set of columns kept
    carried: int = 300  # changed decisions whose carriers are found
    drawn: int = 200  # whose twins are drawn many times

    def questions(self, directions: int) -> int:
        """Questions that all parts take at most, about."""
        return directions * sum(each * int(getattr(self, name)) for name, each in _EACH.items())

    def within(self, queries: float, directions: int) -> Effort:
        """As much of this as so many queries pay for.

        The rates are worth most: they get half of a budget that is too small for all. Of the other
        parts those that are worth more get their least first, and share what is left; a part for
        which too little is left is left out.
        """
        if queries >= self.questions(directions):
            return self
        people = min(self.people, int(queries / 2 / (_EACH["people"] * directions)))
        left = queries / directions - _EACH["people"] * people
        sizes = dict.fromkeys(_OTHERS, 0)
        for name in _OTHERS:
            least = min(_FEWEST[name], getattr(self, name))
            if _EACH[name] * least <= left:
                sizes[name] = least
                left -= _EACH[name] * least
        wanted = {name: getattr(self, name) - n for name, n in sizes.items() if n}
        total = sum(_EACH[name] * more for name, more in wanted.items())
        share = min(1.0, left / total) if total else 0.0
        for name, more in wanted.items():
            sizes[name] += math.floor(share * more)
        return Effort(people=people if people >= _FEWEST["people"] else 0, **sizes)
