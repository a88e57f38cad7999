"""What an answer of a model says, in the words of its table and of its kind of decision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from limi.decisions import Bands, Classes, Rule, favors, opposes
from limi.system.words import figure

__all__ = ["Reading", "Told"]


@dataclass(frozen=True)
class Told:
    """One answer in words."""

    decision: str
    figure: str  # the score, the lead of a class, or the number
    side: str  # "for", "against", or "" where a decision has no side
    at: float  # from 0 to 1, where it stands on a scale


@dataclass(frozen=True)
class Reading:
    """How answers are read."""

    rule: Rule
    favorable: str = "favorable"
    unfavorable: str = "unfavorable"

    @property
    def title(self) -> str:
        """What the figure beside a decision is."""
        titles = {"favorable": "Score", "class": "Lead over the next class", "number": "Number"}
        return titles[self.rule.kind]

    @property
    def has_sides(self) -> bool:
        """Is a decision favorable or not?"""
        return self.rule.kind == "favorable"

    def tell(self, answer: float) -> Told:
        """One answer in words; a NaN was not asked."""
        if math.isnan(answer):
            return Told("not asked", "", "", 0.0)
        at = float(np.asarray(self.rule.as_score(np.array([answer])))[0])
        if isinstance(self.rule, Classes):
            return Told(self.rule.show(answer), f"{answer - math.floor(answer):.3f}", "", at)
        if self.rule.kind == "number":
            return Told(self._tell_number(answer), self.rule.show(answer), "", at)
        one = np.array([answer])
        side = "for" if favors(one)[0] else "against" if opposes(one)[0] else ""
        words = {"for": self.favorable, "against": self.unfavorable, "": "on the edge"}[side]
        return Told(words, self.rule.show(answer), side, at)

    def _tell_number(self, answer: float) -> str:
        if not isinstance(self.rule, Bands):
            return figure(answer)
        cuts, band = self.rule.cuts, int(self.rule.band(np.array([answer]))[0])
        if band == 0:
            return f"below {figure(cuts[0])}"
        if band == len(cuts):
            return f"{figure(cuts[-1])} or more"
        return f"{figure(cuts[band - 1])} to {figure(cuts[band])}"
