"""How much is asked for each part of the answer, cut to what a budget pays for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from limi.twins.carriers import PERMUTATIONS

__all__ = ["DRAWS", "MOST_OTHERS", "REFITS", "Effort", "directions"]

REFITS = 8
"""Tables drawn again, and orders of the columns tried."""

DRAWS = 20
"""Twins drawn of a person to see how sure their verdict is."""

MOST_OTHERS = 5
"""Groups that are compared with the one decided favorably most often."""

_MIXTURES = 3 * PERMUTATIONS  # of a changed decision, about: most twins differ in few carriers
_KEPT_SETS = 4
_FEWEST = {"people": 50, "again": 50, "kept": 50, "carried": 20, "drawn": 20}


def directions(n_groups: int) -> int:
    """How many directions so many groups have: to the best-off group and back."""
    return 2 * min(n_groups - 1, MOST_OTHERS)


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
        each = (
            3 * self.people  # themselves, their twins and those between random groups
            + 2 * REFITS * self.again
            + _KEPT_SETS * self.kept
            + _MIXTURES * self.carried
            + DRAWS * self.drawn
        )
        return directions * each

    def within(self, queries: float, directions: int) -> Effort:
        """As much of this as so many queries pay for; parts that become too small are left out.

        The rates are worth most: they get half of a budget that is too small for all.
        """
        if queries >= self.questions(directions):
            return self
        rates = min(self.people, int(queries / 2 / (3 * directions)))
        rest = queries - 3 * directions * rates
        others = replace(self, people=0).questions(directions)
        share = min(1.0, rest / others)
        scaled = {
            name: math.floor(share * getattr(self, name))
            for name in ("again", "kept", "carried", "drawn")
        }
        enough = {name: n if n >= _FEWEST[name] else 0 for name, n in scaled.items()}
        return Effort(people=rates if rates >= _FEWEST["people"] else 0, **enough)
