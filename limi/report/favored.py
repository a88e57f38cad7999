"""Who is favored, in words: the same people under every value, and what chance explains.

No sentence names a direction that the corrected test does not support.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from limi.audits.summary import Summary
from limi.audits.what_if import AsIf, WhatIf
from limi.metrics._enough import FEWEST_TOLD
from limi.report import wording
from limi.system import words

__all__ = [
    "BAND",
    "FavoredTable",
    "alike",
    "among_findings",
    "chance",
    "lacking",
    "only_protected",
    "plain_title",
    "space_out",
    "tables",
    "tell",
]

_AS_IS = "Each person was decided as if they had each value, with everything else unchanged."
_WITH = (
    "Each person was decided as if they had each value, with what the rules of the table change "
    "along with it, and everything else unchanged."
)
_CHANCE = (
    "P-values (McNemar's exact test) are corrected for all comparisons of this report: at most "
    "one report in twenty calls anyone favored where nobody is. The intervals of all these "
    "differences hold together. Naming nobody does not prove that everybody is treated alike."
)
BAND = "The band of a curve holds for all its values at once."

_IN_A_SENTENCE = 4  # values whose rates fit into one
_MOST_TOLD = 3  # pairs
_MOST_ALIKE = 4  # values that cannot be told apart from one
_MOST_LISTED = 12  # combinations; the values of a column are listed however many there are
_MOST_COUNTED = 12  # combinations of findings
_PEOPLE = {
    "held-out": "held-out people",
    "real": "people of the table",
    "natural": "natural people",
}


@dataclass(frozen=True)
class FavoredTable:
    """The same people under every value of a column, ready to be shown."""

    what_if: WhatIf
    title: str  # "sex", "sex alone", "sex and race together"
    people: str  # "The same 10,000 people of the table"
    sentence: str  # with the rates where they are few
    verdicts: tuple[str, ...]
    listed: bool  # are there too many values for the sentence?

    @property
    def at_once(self) -> str:
        """What Cochran's test says of all values at once; empty where it says nothing."""
        table = self.what_if
        if len(table.values) < 3 or not math.isfinite(table.q_p_value):
            return ""
        values = "combinations" if len(table.columns) > 1 else "values"
        return (
            f"All {len(table.values)} {values} at once: Cochran's Q = {table.q:.1f}, "
            f"{wording.chance(table.q_p_value, corrected=False)} (not corrected)."
        )


def tables(summary: Summary, population: str | None = None) -> list[FavoredTable]:
    """The tables of a population, by default of the most telling one: columns alone, then all."""
    known = [name for name in _PEOPLE if any(t.population == name for t in summary.what_if)]
    chosen = population or (known[0] if known else None)
    return [tell(t, summary) for t in summary.what_if if t.population == chosen]


def chance(summary: Summary) -> str:
    """How people were compared, and what chance has to do with it."""
    return f"{_WITH if wording.along_words(summary) else _AS_IS} {_CHANCE}"


def plain_title(summary: Summary) -> str:
    """What the papers' question is called beside that of the rules."""
    return "If nothing else changed with it" if wording.along_words(summary) else "Rules aside"


def only_protected(summary: Summary, population: str | None = None) -> list[FavoredTable]:
    """The same if only protected values changed, where rules make it another question."""
    if summary.rules is None:
        return []
    told = summary.rules.only_protected_what_if
    known = [name for name in _PEOPLE if any(t.population == name for t in told)]
    chosen = population or (known[0] if known else None)
    return [tell(t, summary) for t in told if t.population == chosen]


def tell(table: WhatIf, summary: Summary) -> FavoredTable:
    """A table in words."""
    several = len(summary.protected) > 1
    title = table.columns[0] + (" alone" if several else "")
    if len(table.columns) > 1:
        title = f"{words.both(list(table.columns))} together"
    people = f"The same {words.count(table.n)} {_PEOPLE.get(table.population, table.population)}"
    if table.n < FEWEST_TOLD:
        few = f"{people}: too few to tell who is favored."
        return FavoredTable(table, title, people, few, (), False)
    listed = table.curve or len(table.columns) > 1 or len(table.values) > _IN_A_SENTENCE
    sentence = _sentence(table, people, f"decided {summary.favorable}", listed)
    listed &= len(table.columns) == 1 or len(table.values) <= _MOST_LISTED
    return FavoredTable(table, title, people, sentence, tuple(_verdicts(table)), listed)


def _sentence(table: WhatIf, people: str, decided: str, listed: bool) -> str:
    if len(table.columns) > 1 and len(table.values) > _MOST_LISTED:
        rates = sorted((value.rate for value in table.values), key=lambda rate: rate.estimate)
        low, high = (wording.percent(rate).estimate for rate in (rates[0], rates[-1]))
        return (
            f"{people} as each of the {words.count(len(table.values))} combinations: from {low} "
            f"to {high} % are {decided}."
        )
    if listed:
        column = table.columns[0] if len(table.columns) == 1 else "they"
        return f"{people}, {decided} as if {column} were ..."
    told = {value.value: wording.percent(value.rate).estimate for value in table.values}
    difference = ""
    known = {value.value: value.rate for value in table.values}
    if len(table.values) == 2 and {pair.favored for pair in table.pairs} <= set(known):
        (pair,) = table.pairs
        more, less = known[pair.favored], known[pair.disfavored]
        told[pair.favored], told[pair.disfavored], gap = wording.rates_and_gap(more, less, pair)
        difference = f"; difference {gap}"
    shares = ", ".join(
        f"{told[v.value]} %{'' if k else f' are {decided}'} as {wording.value_of(table, v.value)}"
        for k, v in enumerate(table.values)
    )
    return f"{people}: {shares}{difference}."


def _verdicts(table: WhatIf) -> list[str]:
    favored = table.favored
    if len(table.values) == 2:
        (pair,) = table.pairs
        if not pair.only_favored + pair.only_disfavored:
            return ["Nobody is decided differently under the two, so nobody is called favored."]
        chance = wording.chance(pair.corrected)
        if favored:
            return [f"{wording.over(table, pair, 'is favored over')} ({chance})."]
        return [f"That is no more than chance explains ({chance}), so nobody is called favored."]
    if not favored:
        return [
            f"None of the {words.count(table.n_pairs)} pairs of values differ by more than chance "
            "explains, so nobody is called favored."
        ]
    lines = [
        f"{wording.over(table, pair, 'is favored over')}: {wording.points(pair)} "
        f"({wording.chance(pair.corrected)})."
        for pair in favored[:_MOST_TOLD]
    ]
    widest = favored[0]
    lines[0] += _tell_alike(table, widest.disfavored, widest.favored)
    lines[0] += _tell_alike(table, widest.favored, widest.disfavored)
    more = table.n_supported - len(lines)
    if more > 0:
        pairs = "pair differs" if more == 1 else "pairs differ"
        lines.append(f"{words.count(more)} more {pairs} by more than chance explains.")
    return lines


def alike(table: WhatIf, value: str, other: str) -> list[str]:
    """Values that cannot be told apart from one, and differ from the other as surely as it does."""
    if table.n_supported > len(table.favored):  # of very many pairs the widest alone are kept
        return []
    apart = {frozenset((pair.favored, pair.disfavored)) for pair in table.favored}
    return [
        third.value
        for third in table.values
        if third.value not in (value, other)
        and frozenset((third.value, other)) in apart
        and frozenset((third.value, value)) not in apart
    ]


def _tell_alike(table: WhatIf, value: str, other: str) -> str:
    """A sentence on the values that cannot be told apart from one; empty where there are none."""
    found = [wording.value_of(table, name) for name in alike(table, value, other)]
    if not found:
        return ""
    shown = words.both(found[:_MOST_ALIKE])
    if len(found) > _MOST_ALIKE:
        shown = f"{', '.join(found[:_MOST_ALIKE])} and {len(found) - _MOST_ALIKE} more"
    return f" {shown} cannot be told apart from {wording.value_of(table, value)}."


def among_findings(summary: Summary) -> str:
    """How many findings are decided favorably under each value: counts, and what they are not."""
    counts = summary.favorable_findings
    if not counts or len(counts) > _MOST_COUNTED:
        return ""
    column = f"{next(iter(summary.protected))} " if len(summary.protected) == 1 else ""
    listed = [f"{words.count(n)} as {column}{value}" for value, n in counts.items()]
    findings = f"{words.count(summary.findings)} finding{'s' * (summary.findings != 1)}"
    return (
        f"Of the {findings}, decided {summary.favorable}: "
        f"{words.both(listed, separator='; ' if not column else ', ')}. The search went looking "
        "for these rows, so the counts do not say whom the model favors."
    )


def lacking(summary: Summary) -> str:
    """Why there is no table; empty where there is one."""
    if summary.what_if:
        return ""
    moved = summary.steadiness.get("moved_by", {})
    if moved.get("other batches") and sum(moved.values()) == moved["other batches"]:
        return (
            "Not measured: the model's answers depend on the other rows in a batch, so the same "
            "people cannot be compared under two values."
        )
    if not any(name in summary.rates for name in _PEOPLE):
        return (
            "Not measured: this needs people whom no search has chosen, and no rate of real or "
            "natural rows was measured."
        )
    return (
        "Not measured: the search itself has measured the rate, and nobody was asked apart from "
        "it; test again without --rate-rows 0."
    )


def space_out(values: Sequence[AsIf], most: int = 12) -> list[AsIf]:
    """So many values at most, evenly spaced, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    steps = (len(values) - 1) / (most - 1)
    return [values[round(k * steps)] for k in range(most)]
