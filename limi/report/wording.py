"""The words and numbers that every rendering of a report shares, so that no two disagree."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass

from limi.metrics.individual import Rate
from limi.report.summary import Direction, Summary

__all__ = [
    "LIMITS",
    "Answer",
    "Opposed",
    "Percent",
    "aid",
    "answer",
    "clean",
    "count",
    "decision",
    "either",
    "hash_of",
    "listed_rates",
    "number",
    "opposed",
    "percent",
    "population",
    "score",
    "seconds",
    "share",
    "stopped",
    "unlisted",
]

LIMITS = (
    "Flips found are facts about this model: the two rows of a pair can be put to it again.",
    "A low rate is no certificate of fairness. It speaks of the named population and of the "
    "protected values that were tried, and of nothing else.",
    "Findings are distinct rows that a search went looking for. Their number grows with the "
    "budget; only a rate says how common flips are.",
    "A flip changes the protected columns alone and leaves columns that depend on them as they "
    "are. It shows that the model uses these values, not what would have happened to a person.",
)

_POPULATIONS = {
    "real": ("real rows", "the rows of your table"),
    "natural": ("natural rows", "people drawn from a generator that imitates the table"),
    "uniform": (
        "uniform rows",
        "all combinations of values the columns allow, equally likely, including unnatural people",
    ),
}

_STOPS = {
    "rows": "the budget of rows was spent",
    "queries": "the budget of queries was spent",
    "findings": "the wanted number of findings was reached",
    "seconds": "the time was up",
    "exhausted": "the method had nothing left to check",
    "interrupted": "it was interrupted",
}

_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclass(frozen=True)
class Answer:
    """The one sentence a report begins with, in three parts."""

    figure: str  # "12.3 %"
    statement: str  # "of real rows would be decided differently if only sex changed"
    evidence: str  # "95 % interval 12.0 to 12.7, n = 10,000"

    def __str__(self) -> str:
        return f"{self.figure} {self.statement} ({self.evidence})"


@dataclass(frozen=True)
class Percent:
    """A rate in percent, with as many digits as its interval supports."""

    estimate: str
    low: str
    high: str


@dataclass(frozen=True)
class Opposed:
    """Two combinations of protected values, and how many findings favor each over the other."""

    favored: str
    disfavored: str
    findings: int
    reverse: int
    reverse_known: bool  # False: `reverse` is an upper bound, for the list was cut


def answer(summary: Summary) -> Answer:
    """What the run says, from the rate of the most telling population that was measured."""
    change = f"would be decided differently if only {either(list(summary.protected))} changed"
    searched = f"{count(summary.rows_checked)} rows checked, no rate measured"
    for name, rate in listed_rates(summary):
        if math.isfinite(rate.estimate):
            shown = percent(rate)
            evidence = f"95 % interval {shown.low} to {shown.high}, n = {count(rate.n)}"
            if rate.estimate == 0 and summary.findings:
                evidence += f"; the search still found {count(summary.findings)} that flip"
            return Answer(f"{shown.estimate} %", f"of {population(name)} {change}", evidence)
    noun = "row was" if summary.findings == 1 else "rows were"
    return Answer(count(summary.findings), f"{noun} found that {change}", searched)


def listed_rates(summary: Summary) -> list[tuple[str, Rate]]:
    """Rates with their populations: real, natural, uniform, then any other as given."""
    order = [name for name in _POPULATIONS if name in summary.rates]
    order += [name for name in summary.rates if name not in _POPULATIONS]
    return [(name, summary.rates[name]) for name in order]


def population(name: str) -> str:
    """The rows of a population, as a noun."""
    return _POPULATIONS[name][0] if name in _POPULATIONS else f"{name} rows"


def aid(name: str) -> str:
    """One line on how to read a population; empty where there is nothing to say."""
    return _POPULATIONS[name][1] if name in _POPULATIONS else ""


def percent(rate: Rate) -> Percent:
    """A rate in percent; "not measured" where there is no estimate."""
    if not math.isfinite(rate.estimate):
        return Percent("not measured", "", "")
    width = 100 * (rate.high - rate.low)
    digits = math.ceil(-math.log10(width / 3)) if math.isfinite(width) and width > 0 else 1
    digits = min(max(digits, 1), 6)
    return Percent(*(_hundredth(x, digits) for x in (rate.estimate, rate.low, rate.high)))


def _hundredth(x: float, digits: int) -> str:
    # Exact ends are told apart from what merely rounds to them.
    return f"{100 * x:.0f}" if x in (0.0, 1.0) else f"{100 * x:.{digits}f}"


def share(part: int, whole: int) -> str:
    """A part of findings in percent.

    >>> share(1, 3), share(1, 1000), share(999, 1000)
    ('33 %', 'under 1 %', 'over 99 %')
    """
    if not whole:
        return "0 %"
    ratio = 100 * part / whole
    if 0 < ratio < 1:
        return "under 1 %"
    if 99 < ratio < 100:
        return "over 99 %"
    return f"{ratio:.0f} %"


def opposed(directions: tuple[Direction, ...], findings: int) -> list[Opposed]:
    """Directions with their reverse beside them, most findings first."""
    counts = {(d.favored, d.disfavored): d.findings for d in directions}
    complete = sum(counts.values()) >= findings
    least = min(counts.values(), default=0)
    seen: set[tuple[str, str]] = set()
    pairs = []
    for (favored, disfavored), n in sorted(counts.items(), key=lambda item: -item[1]):
        if (favored, disfavored) in seen:
            continue
        seen |= {(favored, disfavored), (disfavored, favored)}
        known = complete or (disfavored, favored) in counts
        reverse = counts.get((disfavored, favored), 0 if complete else least)
        # No more can be hidden than the list leaves over.
        reverse = reverse if known else min(reverse, findings - sum(counts.values()))
        pairs.append(Opposed(favored, disfavored, n, reverse, known))
    return pairs


def unlisted(summary: Summary) -> int:
    """Findings whose direction is none of the listed ones."""
    return max(0, summary.findings - sum(d.findings for d in summary.directions))


def decision(summary: Summary, value: float) -> str:
    """The decision that a score stands for, in the table's own words."""
    return summary.favorable if value > 0.5 else summary.unfavorable


def score(value: float) -> str:
    """A score, with the digits that show its side of 0.5.

    >>> score(0.71349), score(0.500004), score(0.5)
    ('0.713', '0.500004', '0.500')
    """
    shown = f"{value:.3f}"
    return f"{value:.6f}" if shown == "0.500" and value != 0.5 else shown


def stopped(summary: Summary) -> str:
    """Why the search ended."""
    return _STOPS.get(str(summary.stop), str(summary.stop))


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


def hash_of(name: str) -> str:
    """What a hash is of.

    >>> hash_of("data_sha256"), hash_of("file")
    ('SHA-256 of data', 'hash of file')
    """
    stem = name.removesuffix("_sha256")
    return f"hash of {name}" if stem == name else f"SHA-256 of {stem.replace('_', ' ')}"


def either(names: list[str], most: int = 4) -> str:
    """Names in a row, "or" before the last.

    >>> either(["sex"]), either(["sex", "race", "age"])
    ('sex', 'sex, race or age')
    """
    if len(names) > most:
        return f"the {len(names)} protected columns"
    return " or ".join(part for part in (", ".join(names[:-1]), "".join(names[-1:])) if part)


def clean(text: str) -> str:
    """Text that is safe to show: what would steer a terminal or turn the writing around is spelled.

    >>> clean("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable() and not _BIDI_CONTROLS.intersection(text):
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if c in _BIDI_CONTROLS or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")
        else c
        for c in text
    )
