"""Rules of a gate: what a build may not exceed, as a person writes it.

`natural_rate <= 1 %`, `score_gap_p99 <= 0.2`, `real_rate no worse than baseline by 0.2 points`. A
name is a measure with the population in front of it; each measure has a usual one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from limi.errors import InvalidInput, find_repeated, nearest

__all__ = [
    "METRICS",
    "OF_GROUPS",
    "Measure",
    "Rule",
    "Rules",
    "is_metric",
    "parse_rules",
    "rule_texts",
]

Measure: TypeAlias = Literal[
    "rate", "worst_region_rate", "score_gap", "spd", "widest_spd", "impact_ratio"
]

OF_GROUPS = ("spd", "widest_spd", "impact_ratio")
"""Measures of a protected column's groups, which need no row under other values."""

Rules: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""`"natural_rate <= 1 %"`, a list of such texts, or `{"natural_rate": "<= 1 %"}`."""

_POPULATIONS = {"natural": "natural", "real": "real", "held_out": "held-out", "uniform": "uniform"}
_USUAL: dict[Measure, str] = {
    "worst_region_rate": "natural",
    "score_gap": "natural",
    "spd": "people",  # held-out rows where there are some, else the table's
    "widest_spd": "people",
    "impact_ratio": "people",
}
METRICS = (
    *(f"{population}_rate" for population in _POPULATIONS),
    "worst_region_rate",
    "real_worst_region_rate",
    "score_gap_p99",
    "real_score_gap_p99",
    "spd",
    "widest_spd",
    "impact_ratio",
)
"""Names to choose from; other populations and percentiles are spelled the same way."""

_NUMBER = r"(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})"
_NAME = re.compile(
    r"(?:(natural|real|held_out|uniform)_)?(rate|worst_region_rate|widest_spd|spd|impact_ratio|score_gap_p(\d{1,2}(?:\.\d{1,3})?))"
)
_BASELINE = re.compile(rf"(no worse|better) than baseline(?: by {_NUMBER}\s*([^\d\s].*)?)?")
# At the limit itself nothing is ever decided, so that < and <= mean the same.
_AT_MOST = re.compile(rf"(?:<=?|≤|at most)\s*{_NUMBER}\s*(in \d{{1,12}}|[^\d\s].*)?")
_AT_LEAST = re.compile(rf"(?:>=?|≥|at least)\s*{_NUMBER}\s*(in \d{{1,12}}|[^\d\s].*)?")
_COMMA = re.compile(r"(\d{1,12}),(\d{1,12})")
_SPLIT = re.compile(
    r"\s*([\w .-]*?)\s*([<≤]|at most\b|at least\b|no worse\b|better\b|[>=!≥].*|$)", re.DOTALL
)
_SHARES = {"%": 100.0, "percent": 100.0}
_POINTS = {"point": 100.0, "points": 100.0, "percentage points": 100.0}
_LONGEST = 80  # characters of a rule that are quoted


@dataclass(frozen=True)
class Rule:
    """One line of a gate, read."""

    text: str  # as it was written
    metric: str
    measure: Measure
    population: str
    limit: float  # a share, a score, or a difference of two shares
    percentile: float | None = None  # of score gaps, from 0 to 100
    against_baseline: bool = False  # is the limit one of the difference to an earlier run?
    column: str | None = None  # the protected column, where each has its own

    @property
    def at_least(self) -> bool:
        """Is more better, so that the limit is the least there may be?"""
        return self.measure == "impact_ratio"

    @property
    def name(self) -> str:
        """What tells it apart from the other rules of a gate."""
        return self.metric if self.column is None else f"{self.metric} of {self.column}"


def parse_rules(rules: Rules) -> list[Rule]:
    """The rules of a gate; InvalidInput for the first that cannot be read."""
    if isinstance(rules, str):
        rules = [rules]
    if isinstance(rules, Mapping):
        rules = rule_texts(rules)
    found = [_parse(text) for text in rules]
    if not found:
        raise InvalidInput(
            'the gate has no rule; write one, such as natural_rate = "<= 1 %" under [gate] in '
            "limi.toml, or --rule 'natural_rate <= 1 %'"
        )
    twice = find_repeated((rule.metric, rule.against_baseline) for rule in found)
    if twice:
        metric = next(r.metric for r in found if str((r.metric, r.against_baseline)) == twice[0])
        raise InvalidInput(f"two rules bound {metric}; keep the stricter one")
    return found


def is_metric(name: str) -> bool:
    """Is this something that a rule can bound?"""
    known = _NAME.fullmatch(_plain(name))
    return known is not None and not (known[2] == "rate" and known[1] is None)


def rule_texts(rules: Mapping[str, Any]) -> list[str]:
    """Rules by the name of what they bound, each as one text; a name may have several."""
    return [
        _join(name, limit)
        for name, value in rules.items()
        for limit in (value if isinstance(value, list) else [value])
    ]


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip()).casefold()


def _join(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name} {value}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(
            f"the gate's rule {name!r} is {_cut(repr(value))}; write a limit as text, such as "
            f'{name} = "<= 1 %"'
        )
    sign = ">=" if _plain(name).endswith("impact_ratio") else "<="
    return f"{name} {sign} {value!r}"


def _parse(text: str) -> Rule:
    split = _SPLIT.match(text)
    written = split[1] if split else text
    metric = _plain(written)
    known = _NAME.fullmatch(metric)
    if known is None or not is_metric(metric):
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} is about {_cut(written)!r}, which a gate does not "
            f"measure; {nearest(metric, METRICS)}"
        )
    measure: Measure = "score_gap" if known[3] else known[2]  # type: ignore[assignment]
    population = _POPULATIONS[known[1]] if known[1] else _USUAL[measure]
    percentile = float(known[3]) if known[3] else None
    if percentile is not None and not 0 < percentile < 100:
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} names a percentile of {percentile:g}; it must lie "
            "between 0 and 100, as in score_gap_p99"
        )
    assert split is not None
    rest = " ".join(text[split.end(1) :].split())
    shown = " ".join(text.split())
    comma = _COMMA.search(rest)
    if comma is not None:
        plain = comma[0].replace(",", "")
        raise InvalidInput(
            f"the gate's rule {_cut(shown)!r} has a comma in {comma[0]}; write "
            f"{comma[0].replace(',', '.')}" + (f" or {plain}" if len(comma[2]) == 3 else "")
        )
    compared = _BASELINE.fullmatch(rest)
    if compared is not None:
        limit = _margin(shown, metric, measure, compared[1], compared[2], compared[3])
        return Rule(shown, metric, measure, population, limit, percentile, against_baseline=True)
    sign, form = (">=", _AT_LEAST) if measure == "impact_ratio" else ("<=", _AT_MOST)
    bound = form.fullmatch(rest)
    if bound is None:
        raise InvalidInput(
            f"the gate's rule {_cut(shown)!r} cannot be read; write '{metric} {sign} "
            f"{_example(measure)}'"
            + (f", or '{metric} no worse than baseline by 0.2 points'" if measure == "rate" else "")
        )
    limit = _limit(shown, metric, measure, bound[1], bound[2])
    return Rule(shown, metric, measure, population, limit, percentile)


def _example(measure: Measure) -> str:
    if measure == "impact_ratio":
        return "0.8"
    return "1 %" if measure in ("rate", "worst_region_rate") else "0.1"


def _limit(text: str, metric: str, measure: Measure, number: str, unit: str | None) -> float:
    """The limit as a share from 0 to 1; a number that could be one or a hundredth is refused."""
    value = float(number)
    is_share = measure in ("rate", "worst_region_rate")
    if unit is None:
        if is_share or value >= 1:
            small = value if value >= 1 else 100 * value
            name = "%" if is_share else "points"
            sign = ">=" if measure == "impact_ratio" else "<="
            raise InvalidInput(
                f"the limit of the gate's rule {_cut(text)!r} has no unit, and {number} may be a "
                f"share of 1 or of 100; write '{metric} {sign} {small:g} {name}'"
                + (f" or '{metric} {sign} {value:g} {name}'" if small != value else "")
            )
        limit = value
    elif unit.startswith("in "):
        if not int(unit[3:]):
            raise InvalidInput(f"the gate's rule {_cut(text)!r} divides by zero")
        limit = value / int(unit[3:])
    else:
        units = _SHARES if is_share else _SHARES | _POINTS
        if unit not in units:
            raise InvalidInput(
                f"the limit of the gate's rule {_cut(text)!r} has the unit {_cut(unit)!r}; "
                f"{nearest(unit, units)}"
            )
        limit = value / units[unit]
    if not 0 < limit < 1:
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} has a limit of {100 * limit:g} %; no number of rows "
            "can show that it is kept (0) or broken (100); write a limit between the two"
        )
    return limit


def _margin(
    text: str, metric: str, measure: Measure, word: str, number: str | None, unit: Any
) -> float:
    """The most that a rate may lie above the baseline's; below zero where it has to be better."""
    if measure != "rate":
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} compares {metric} with a baseline, but a run keeps "
            "only rates to compare with; bound it with <= instead"
        )
    if number is None or not float(number):
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} leaves no margin, and no number of rows can show that "
            f"two rates are equal; write '{metric} {word} than baseline by 0.2 points'"
        )
    if unit not in _POINTS:
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} says by how much in {_cut(unit or 'no unit')!r}; "
            f"write '{metric} {word} than baseline by {number} points'"
        )
    margin = float(number) / _POINTS[unit]
    if margin >= 1:
        raise InvalidInput(
            f"the gate's rule {_cut(text)!r} allows 100 points, which is the whole scale"
        )
    return -margin if word == "better" else margin


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
