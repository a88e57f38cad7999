"""The words and numbers that every rendering of a report shares, so that no two disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from limi.audits.rule_report import RuleReport
from limi.audits.summary import Example, Field, Region, Summary, split_causes
from limi.audits.what_if import Versus, WhatIf
from limi.decisions import OTHER_CLASS, favors, restore_threshold
from limi.errors import spell
from limi.metrics._enough import FEWEST_TOLD
from limi.metrics._populations import POPULATIONS
from limi.metrics._populations import describe_population as aid
from limi.metrics._populations import name_population as population
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import Likeness
from limi.system.shown import clean
from limi.system.words import both, count, figure, number, score, seconds

__all__ = [
    "ANYTIME",
    "ATN",
    "DENSITIES",
    "TOO_FEW",
    "Answer",
    "NaturalnessWords",
    "Percent",
    "RegionWords",
    "Sentence",
    "aid",
    "alone",
    "along_words",
    "answer",
    "chance",
    "change",
    "clean",
    "decision",
    "describe_rate",
    "digits",
    "flipped_by",
    "found",
    "generator",
    "hash_of",
    "how_natural",
    "is_unsteady",
    "limits",
    "listed_rates",
    "natural",
    "only_protected",
    "over",
    "own_score",
    "percent",
    "phase",
    "phases",
    "places",
    "places_aid",
    "plain_question",
    "plain_rates",
    "points",
    "population",
    "rates_aid",
    "rates_and_gap",
    "rule_facts",
    "sample_size",
    "searched",
    "sentence",
    "share",
    "steadiness",
    "stopped",
    "tell_rules",
    "telling",
    "title",
    "told",
    "unmeasured",
    "unsteady",
    "value_of",
    "volume",
]

_LIMITS = (
    "Flips found are facts about this model: the two rows of a pair can be put to it again.",
    "A low rate is not a certificate of fairness. It is about the named population and the "
    "protected values that were tried, and about nothing else.",
    "Findings are distinct rows that a search went looking for. Their number grows with the "
    "budget; only a rate says how common flips are.",
)
_ALONE = (
    "A flip changes only the protected columns and leaves columns that depend on them unchanged. "
    "It shows that the model uses these values, not what would have happened to a person."
)
_ALONG = (
    "A flip changes the protected columns and what the rules change along with them, and leaves "
    "everything else unchanged. It shows how the model treats these values together, not what "
    "would have happened to a person."
)

ATN = (
    "Average tabular naturalness (ATN): how much the columns of a set of rows, one by one and in "
    "pairs, look like the table's; from 0 to 1, and higher is more alike. Small sets score lower, "
    "so all are compared at the same number of rows."
)


ANYTIME = (
    "the number of rows depended on the flips, so the interval is one that holds whenever the "
    "search stops"
)

TOO_FEW = "The findings were too few to be judged as a set."

_NATURAL = {
    "findings": ("findings", "all findings, as the search left them"),
    "representative": (
        "representative",
        "a draw from the findings that prefers rows like the table's",
    ),
    # Often the most that flipping rows reach, but a draw that leans to the table can pass it.
    "ceiling": ("real rows that flip", "the table's own, for comparison"),
}

DENSITIES = {"real": "table", "findings": "findings", "representative": "representative"}

_TELLING_COLUMNS = 5
_LONGEST_TOLD = 40  # characters of a value in a sentence
_MOST_SIDES = 6
_MORE_DIGITS = 3  # until figures on a line agree
_MANY_ALONE = 0.05  # of a population: so many without a partner want a word
_AGES = range(16, 121)  # below are children, and the codes of age groups

_STOPS = {
    "rows": "the budget of rows was spent",
    "queries": "the budget of queries was spent",
    "findings": "the wanted number of findings was reached",
    "seconds": "the time was up",
    "exhausted": "the method had nothing left to check",
    "rules": "hardly any row that it proposed keeps the rules of the table",
    "interrupted": "it was interrupted",
}


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
class NaturalnessWords:
    """How natural a set of rows is."""

    name: str
    aid: str
    value: float
    shown: str


@dataclass(frozen=True)
class RegionWords:
    """A region in which decisions flip often, in words."""

    conditions: tuple[str, ...]
    percent: Percent
    rows: str  # "2,120 natural rows"
    share: str  # "8.7 % of natural rows"
    times: str  # "much more often (6.1 times the average)"
    chance: str  # "p = 0.012"
    favored: str  # "sex Male over sex Female by 9.2 points, 5.1 to 13.3"; empty where none is

    @property
    def figures(self) -> str:
        """The numbers in one line."""
        shown = self.percent
        return (
            f"{shown.estimate} % of {self.rows} flip ({shown.low} to {shown.high} %), {self.times}"
        )

    def __str__(self) -> str:
        return f"{' and '.join(self.conditions)}: {self.figures}"


@dataclass(frozen=True)
class Sentence:
    """A finding in plain words, in its parts."""

    subject: str  # "A 37-year-old (workclass Private, occupation Sales)"
    decision: str
    side: str  # "sex Male"
    partner_decision: str
    partner_side: str
    verb: str = "is decided"

    def __str__(self) -> str:
        return (
            f"{self.subject} {self.verb} {self.decision} as {self.side} "
            f"but {self.partner_decision} as {self.partner_side}."
        )


def answer(summary: Summary) -> Answer:
    """What the run says, from the rate of the most telling population that was measured.

    A few rows make no headline: one flip of two is "50 %", and says nothing.
    """
    if summary.blind:
        return _answer_blind(summary)
    would = f"{_would(summary)} if {change_along(summary)}"
    for name, rate in listed_rates(summary):
        if rate.n >= FEWEST_TOLD and math.isfinite(rate.estimate):
            shown = percent(rate)
            evidence = f"95 % interval {shown.low} to {shown.high}, n = {count(rate.n)}"
            if left := summary.left_out.get(name):
                evidence += f"; {count(left.rows)} more are left out, because {left.reason}"
            if rate.anytime:
                evidence += f"; {ANYTIME}"
            tables = {"real": ("table", summary.n_rows), "held-out": ("file", summary.n_held_out)}
            if name in tables and summary.n_asked(name) == tables[name][1]:
                evidence += (
                    f"; all rows of the {tables[name][0]}, so the interval is for people like them"
                )
            if is_unsteady(summary.steadiness) and not summary.noise:
                times = summary.steadiness["times"]
                evidence += (
                    f"; only flips seen {times} times out of {times} count, because answers vary"
                )
            if plain := only_protected(summary, name):
                evidence += f"; {percent(plain).estimate} % {plain_question(summary)[1]}"
            if rate.estimate == 0 and summary.findings:
                evidence += f"; the search still found {count(summary.findings)} that flip"
            whom = population(name) + " with a partner" * (name in summary.left_out)
            return Answer(f"{shown.estimate} %", f"of {whom} {would}", evidence)
    if not searched(summary):
        return Answer(
            "Nothing",
            f"is known about rows that {would}",
            "not searched, and no rate measured: no time was left",
        )
    noun = "row was" if summary.findings == 1 else "rows were"
    few = any(math.isfinite(rate.estimate) for rate in summary.rates.values())
    rate_of = f"no rate of {FEWEST_TOLD} rows or more" if few else "no rate measured"
    checked = f"{count(summary.rows_checked)} rows checked, {rate_of}"
    return Answer(count(summary.findings), f"{noun} found that {would}", checked)


def _would(summary: Summary) -> str:
    """What a flip is, in the words of the rule."""
    what = summary.target or "number"
    if summary.kind == "class":
        return f"would get a different {summary.target or 'class'}"
    if summary.kind == "number" and summary.decision.startswith("bands"):
        return f"would fall into a different band of {what}"
    if summary.kind == "number":
        least = summary.decision.removeprefix("difference > ")
        amount = f"{figure(float(least.removesuffix('%')))}{' %' if least.endswith('%') else ''}"
        return f"would get a different {what} (by more than {amount})"
    return "would be decided differently"


def _answer_blind(summary: Summary) -> Answer:
    """Of a model that takes no protected column: what twins say of the widest gap."""
    twins = summary.twins
    names = both(summary.protected)
    because = "because the model does not take it"
    if twins is None or not twins.directions:
        why = "" if twins is None else f"; twins were not asked: {twins.reason}"
        would = f"would be decided differently if only {names} changed"
        return Answer("0 %", would, because + why)
    alone = f"if only {names} changed: 0 %, {because}"
    first = twins.directions[0]
    rate, own, other = first.gains, "unfavorably", "favorably"
    if first.losses.estimate > first.gains.estimate:
        rate, own, other = first.losses, "favorably", "unfavorably"
    shown = percent(rate)
    if first.coverage is not None and not first.well_measured:
        alone = (
            f"not measured well, because these twins account for {100 * first.coverage:.0f} % of "
            f"the gap between the groups; {alone}"
        )
    return Answer(
        f"{shown.estimate} %",
        f"of people with {first.group} are decided {own}, and their twins with {first.goal} "
        f"{other}",
        f"95 % interval {shown.low} to {shown.high}, n = {count(first.n)}; {alone}",
    )


def rates_aid(summary: Summary) -> list[str]:
    """What to know of the rates: of the rows they come from, and of those that are not there."""
    told = [*tell_rules(summary), *unmeasured(summary)]
    anytime = [population(name) for name, rate in summary.rates.items() if rate.anytime]
    if anytime:
        told.append(f"{both(anytime).capitalize()}: {ANYTIME}, and so it is wider.")
    if "real" in summary.rates and summary.held_out is None and not summary.blind:
        told.insert(
            0,
            "Whether the model was trained on the rows of your table is not known; if it was, new "
            "people flip a little more often. Give rows it has not seen with --held-out FILE.",
        )
    return told


def change(names: list[str]) -> str:
    """What has to happen for a flip: with several columns any of them may change, or several.

    >>> change(["sex"]), change(["sex", "race"])
    ('only sex changed', 'sex, race or both changed')
    >>> change(["sex", "race", "age"])
    'one or more of sex, race and age changed'
    """
    if len(names) == 1:
        return f"only {names[0]} changed"
    if len(names) == 2:
        return f"{names[0]}, {names[1]} or both changed"
    some = both(names) if len(names) <= 4 else f"the {len(names)} protected columns"
    return f"one or more of {some} changed"


def change_along(summary: Summary) -> str:
    """What has to happen for a flip in this run, with what must go along."""
    plain = change(list(summary.protected))
    if along_words(summary):
        return f"{plain.removeprefix('only ')} with what goes along with it"
    return f"{plain} to what the rules allow" if _has_two_questions(summary) else plain


def _has_two_questions(summary: Summary) -> bool:
    """Do the rules make partners other than those of the papers?"""
    return summary.rules is not None and bool(summary.rules.only_protected)


def plain_question(summary: Summary) -> tuple[str, str]:
    """The name of the papers' question beside that of the rules, and what it asks."""
    asks = f"if {change(list(summary.protected))}"
    if along_words(summary):
        return "nothing else", asks if "only" in asks else f"{asks} and nothing else with it"
    return "rules aside", f"{asks}, whatever the rules say"


def along_words(summary: Summary) -> str:
    """The columns that may change with a protected value: "relationship and title"."""
    return both(summary.rules.along) if summary.rules is not None and summary.rules.along else ""


def only_protected(summary: Summary, name: str) -> Rate | None:
    """The rate of a population if only protected values changed, where rules make it another
    question."""
    if summary.rules is None:
        return None
    rate = summary.rules.only_protected.get(name)
    return rate if rate is not None and math.isfinite(rate.estimate) else None


def limits(summary: Summary) -> tuple[str, ...]:
    """What a run does not say."""
    return (*_LIMITS, _ALONG if along_words(summary) else _ALONE)


def tell_rules(summary: Summary) -> list[str]:
    """How the two questions differ, and how people stand to the rules."""
    rules = summary.rules
    if rules is None:
        return []
    told = []
    if rules.along:
        told.append(_two_questions(summary, rules))
    elif _has_two_questions(summary):
        told.append(
            "The first rate asks about partners that keep the rules of the table. The one below "
            "it also asks about those that could not exist, as the papers do."
        )
    for name, n in rules.breaking.items():
        if n:
            break_ = "breaks a rule itself" if n == 1 else "break a rule themselves"
            whose = "its" if n == 1 else "their"
            told.append(
                f"{count(n)} of the {population(name)} {break_}, which does not bind {whose} "
                "partners."
            )
    for name, left in summary.left_out.items():
        told.append(
            f"{count(left.rows)} of the {count(summary.n_asked(name))} {population(name)} "
            f"{'is' if left.rows == 1 else 'are'} left out of every rate, because {left.reason}."
        )
    left_out = summary.left_out.items()
    if any(left.rows >= _MANY_ALONE * summary.n_asked(name) for name, left in left_out):
        told.append(
            "Many people have no partner. A role or a derived column in the schema says what "
            "changes along with the protected value, so that they have one: see docs/roles.md."
        )
    for name, kept in rules.kept.items():
        if kept < 1 and name not in summary.unmeasured:
            told.append(
                f"{_share_of_drawn(kept)} of the {population(name)} drawn keep the rules; the "
                "others were drawn again."
            )
    return told


def _share_of_drawn(kept: float) -> str:
    shown = f"{100 * kept:.1f}"
    return "Over 99.9 %" if shown == "100.0" else f"{shown} %"


def _two_questions(summary: Summary, rules: RuleReport) -> str:
    """Which of two rates answers which question, with an example where there is one."""
    names, example, asks = both(list(summary.protected)), "", ""
    for thing in rules.roles:
        (one, level), (other, becomes) = list(thing.levels.items())[:2]
        if level != becomes:
            was, now = f"{thing.protected} {one}", f"{thing.protected} {other}"
            example = f" ({thing.column} {level} as {was} is {becomes} as {now})"
            asks = f", and so asks about people with {thing.column} {level} and {now}"
            break
    return (
        f"The first rate changes {both(rules.along)} along with {names}{example}, so that the "
        f"partner could exist. The one below it changes {names} alone, as the papers do{asks}."
    )


def rule_facts(summary: Summary) -> list[tuple[str, str]]:
    """The rules in numbers, and what they kept from being asked; empty without any."""
    rules = summary.rules
    if rules is None:
        return []
    kinds = (
        (len(rules.constraints), "constraint"),
        (len(rules.derived), "derived column"),
        (len({(thing.protected, thing.column) for thing in rules.roles}), "role"),
    )
    facts = [("rules", ", ".join(f"{n} {kind}{'s' * (n != 1)}" for n, kind in kinds if n))]
    if rules.along:
        facts.append(("goes along", both(rules.along)))
    if rules.refused:
        facts.append(
            (
                "refused",
                f"{count(rules.refused)} of {count(rules.proposed)} rows that the search proposed "
                "broke a rule; the model was not asked about them, so they cost nothing",
            )
        )
    if rules.closed:
        partners = "1 partner" if rules.closed == 1 else f"{count(rules.closed)} partners"
        facts.append(
            (
                "no partner",
                (
                    f"{partners} would break a rule that the row keeps, so the model was not asked "
                    "about them"
                ),
            )
        )
    return facts


def unmeasured(summary: Summary) -> list[str]:
    """Which populations have no rate and why, a sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in summary.unmeasured.items():
        reasons.setdefault(reason, []).append(population(name))
    return [f"Not measured: {both(names)}, because {why}." for why, names in reasons.items()]


def listed_rates(summary: Summary) -> list[tuple[str, Rate]]:
    """Rates with their populations: people first, then natural, uniform and any other."""
    order = [name for name in POPULATIONS if name in summary.rates]
    order += [name for name in summary.rates if name not in POPULATIONS]
    return [(name, summary.rates[name]) for name in order]


def alone(summary: Summary, name: str) -> list[tuple[str, str, Rate]]:
    """With several protected columns, those of a population for each alone: name, aid and rate."""
    rates = summary.rates_by_column
    asks = (
        ("changed with what goes along with it, and no other")
        if along_words(summary)
        else "alone changed"
    )
    return [
        (f"only {column}", f"if {column} {asks}", rates[column][name])
        for column in rates
        if name in rates[column]
    ]


def plain_rates(summary: Summary, name: str) -> list[tuple[str, str, Rate]]:
    """The papers' question beside that of the rules: name, aid and rate, of all protected columns
    and of each alone; empty where both are one question."""
    rate = only_protected(summary, name)
    if rate is None or summary.rules is None:
        return []
    label, asks = plain_question(summary)
    by_column = summary.rules.only_protected_by_column
    return [
        (label, asks, rate),
        *(
            (f"only {column}", f"if {column} alone changed, {label}", by_column[column][name])
            for column in by_column
            if name in by_column[column]
        ),
    ]


def places(summary: Summary) -> list[RegionWords]:
    """Where decisions flip, highest rate first."""
    found = summary.where
    if found is None:
        return []
    rows = population(found.population)
    return [_place(region, rows, found.tried) for region in found.rules]


def _place(region: Region, rows: str, tried: int) -> RegionWords:
    return RegionWords(
        tuple(clause.words for clause in region.conditions),
        percent(region.rate),
        f"{count(region.rate.n)} {rows}",
        f"{100 * region.share:.1f} % of {rows}",
        _times(region.lift),
        chance(region.p_value, corrected=tried > 1),
        _favored_in(region),
    )


def _favored_in(region: Region) -> str:
    """Who is favored among the people of a region; empty where chance explains it."""
    table = region.what_if
    if table is None or not table.favored:
        return ""
    return f"{over(table, table.favored[0])} by {points(table.favored[0])}"


def over(table: WhatIf, pair: Versus, verb: str = "over") -> str:
    """Two values, the favored one first: "sex Male over sex Female"."""
    return f"{value_of(table, pair.favored)} {verb} {value_of(table, pair.disfavored)}"


def value_of(table: WhatIf, value: str) -> str:
    """A value with its column; a combination has them already."""
    return f"{table.columns[0]} {value}" if len(table.columns) == 1 else value


def rates_and_gap(favored: Rate, disfavored: Rate, pair: Versus) -> tuple[str, str, str]:
    """Two shares in percent and their difference in points, in digits in which they agree.

    Each alone would have the digits of its own interval: 19.3 % and 19.6 %, difference 0.2.

    >>> pair = Versus("a", "b", 30, 8, 0.0022, 0.0011, 0.0034, 1e-3, 1e-3, True)
    >>> rates_and_gap(Rate(0.1956, 0.18, 0.21, 10_000), Rate(0.1934, 0.18, 0.21, 10_000), pair)
    ('19.56', '19.34', '0.22 points, 0.11 to 0.34')
    """
    shares, gap = (favored.estimate, disfavored.estimate), pair.difference
    known = [digits(rate.low, rate.high) for rate in (favored, disfavored)]
    wanted = max(*known, digits(pair.low, pair.high))
    for places in range(wanted, wanted + _MORE_DIGITS):
        one, other, apart = (round(100 * x, places) for x in (*shares, gap))
        if round(one - other, places) == apart:
            break
    else:  # thirds never agree: then the difference is that of the shares as they are shown
        pair = replace(pair, difference=round(one - other, places) / 100)
    return _hundredth(shares[0], places), _hundredth(shares[1], places), points(pair, places)


def points(pair: Versus, places: int | None = None) -> str:
    """A difference in percentage points, with as many digits as its interval supports.

    >>> points(Versus("a", "b", 200, 100, 0.01, 0.0066, 0.0135, 1e-9, 1e-9, True))
    '1.0 points, 0.7 to 1.4'
    >>> points(Versus("a", "b", 200, 200, -1e-9, -0.01, 0.01, 1.0, 1.0, False))
    '0.0 points, -1.0 to 1.0'
    """
    places = digits(pair.low, pair.high) if places is None else places
    value, low, high = (f"{100 * x:z.{places}f}" for x in (pair.difference, pair.low, pair.high))
    return f"{value} points, {low} to {high}"


def chance(p_value: float, *, corrected: bool = True) -> str:
    """A p-value, and whether it is corrected for the other comparisons of the report.

    >>> chance(0.0123), chance(1e-9), chance(0.353, corrected=False)
    ('corrected p = 0.012', 'corrected p under 0.001', 'p = 0.353')
    """
    shown = "p under 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    return f"corrected {shown}" if corrected else shown


def _times(lift: float) -> str:
    """How much more often than on average, with a word for its size.

    >>> _times(1.12), _times(2.4), _times(6.1), _times(14.2)
    ('slightly more often (1.1 times the average)', 'more often (2.4 times the average)', \
'much more often (6.1 times the average)', 'much more often (14 times the average)')
    """
    size = "slightly " if lift < 1.25 else "much " if lift >= 3 else ""
    return f"{size}more often ({lift:.{1 if lift < 9.95 else 0}f} times the average)"


def places_aid(summary: Summary) -> str:
    """How the regions were found and how sure they are, or why there are none."""
    found = summary.where
    if found is None:
        return ""
    rows = population(found.population)
    if not found.rules:
        return f"No rules from {rows}: {found.reason}."
    sure = (
        "No other region was tried."
        if found.tried == 1
        else (
            f"P-values are corrected for the {count(found.tried)} regions tried (Holm); the "
            "intervals hold together, with 95 % confidence."
        )
    )
    those = "this region is" if len(found.rules) == 1 else "together these regions are"
    holds = "holds" if len(found.rules) == 1 else "hold"
    return (
        f"Learned on {count(found.learned)} {rows} and verified on {count(found.base.n)} others, "
        f"of which {percent(found.base).estimate} % flip; {those} "
        f"{share(round(found.share * found.base.n), found.base.n)} of them and {holds} "
        f"{100 * found.flips:.0f} % of the flips. {sure}"
    )


def percent(rate: Rate) -> Percent:
    """A rate in percent; "not measured" where there is no estimate."""
    if not math.isfinite(rate.estimate):
        return Percent("not measured", "", "")
    places = digits(rate.low, rate.high)
    return Percent(*(_hundredth(x, places) for x in (rate.estimate, rate.low, rate.high)))


def digits(low: float, high: float) -> int:
    """Digits behind the point that a percentage with this interval deserves."""
    width = 100 * (high - low)
    wanted = math.ceil(-math.log10(width / 3)) if math.isfinite(width) and width > 0 else 1
    return min(max(wanted, 1), 6)


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


def favorable(summary: Summary) -> str:
    """The favorable decision, and the rule where it is not the model's own."""
    rule = "" if summary.decision == "favorable" else f": {summary.decision}"
    return f"{summary.favorable} (favorable{rule})"


def rule_in_words(summary: Summary) -> str:
    """What counts as a decision."""
    if summary.kind == "favorable":
        return f"{favorable(summary)} or {summary.unfavorable}"
    if summary.kind == "class":
        labels = spell(list(summary.classes), most=12)
        order = ", from the worst to the best" if summary.ordered else ""
        return f"any change of the class ({labels}{order})"
    return f"a number; {summary.decision}"


def decision(summary: Summary, value: float) -> str:
    """The decision that an answer stands for, in the table's own words."""
    if summary.kind == "class":
        place = math.floor(value)
        return summary.classes[place] if place < len(summary.classes) else OTHER_CLASS
    if summary.kind == "number":
        return figure(value)
    return summary.favorable if favors(value) else summary.unfavorable


def apart(summary: Summary, example: Example) -> tuple[str, str]:
    """What the answers of a pair are called, and how far apart they are."""
    one, other = example.score, example.partner_score
    if summary.kind == "class":
        leads = [value - math.floor(value) for value in (one, other)]
        return "lead over the next class", f"{leads[0]:.3f} and {leads[1]:.3f}"
    if summary.kind == "number":
        bands = f"; {example.span} bands over all protected values" if example.span else ""
        return (
            "predictions",
            f"{figure(one)} and {figure(other)}, gap {figure(abs(one - other))}{bands}",
        )
    one, other = own_score(summary, one), own_score(summary, other)
    return "scores", f"{score(one)} and {score(other)}, gap {score(abs(one - other))}"


def own_score(summary: Summary, value: float) -> float:
    """The model's own score, also where scores were moved for a threshold."""
    if summary.kind != "favorable" or summary.threshold is None:
        return value
    return float(restore_threshold(value, summary.threshold))


def sentence(example: Example, summary: Summary) -> str:
    """A finding in one sentence of plain words."""
    return str(told(example, summary))


def told(example: Example, summary: Summary) -> Sentence:
    """A finding in plain words: who it is, and what decides."""
    same = telling(example, summary)
    age = same[0].value if same and same[0].name.lower() == "age" else ""
    if age.isdecimal() and age.isascii() and int(age) in _AGES:
        article = "An" if age[0] == "8" or age == "18" else "A"
        known = ", ".join(map(_cell, same[1:]))
        subject = f"{article} {age}-year-old" + (f" ({known})" if known else "")
    else:
        subject = f"A row with {both(map(_cell, same))}" if same else "A row"
    changed = [field for field in example.fields if field.changed]
    order = list(summary.protected)  # as everywhere else in a report
    changed.sort(key=lambda f: order.index(f.name) if f.name in order else len(order))
    partners = [Field(f.name, f.partner, f.partner, f.protected) for f in changed]
    return Sentence(
        subject,
        _cut(decision(summary, example.score)),
        _side(changed) or "found",
        _cut(decision(summary, example.partner_score)),
        _side(partners) or "its partner",
        "gets" if summary.kind == "number" else "is decided",
    )


def telling(example: Example, summary: Summary) -> list[Field]:
    """The few columns that say most of a row, of those that its partner shares.

    An age comes first; then what protected columns did not change, values in words, numbers; and
    of equals those in which the examples differ.
    """
    values: dict[str, set[str]] = {}
    for field in (field for other in summary.examples for field in other.fields):
        values.setdefault(field.name, set()).add(field.value)
    shared = [field for field in example.fields if not field.changed]
    ranks = [(_rank(field), len(values.get(field.name, ())) < 2) for field in shared]
    chosen = sorted(range(len(shared)), key=lambda place: ranks[place])[:_TELLING_COLUMNS]
    chosen.sort(key=lambda place: (shared[place].name.lower() != "age", place))
    return [shared[place] for place in chosen]


def _rank(field: Field) -> int:
    if field.value in ("missing", ""):
        return 5
    if field.name.lower() == "age":
        return 0
    if field.protected:
        return 1
    try:
        return 3 if float(field.value) else 4
    except ValueError:
        return 2


def _side(fields: list[Field]) -> str:
    cells = [_cell(field) for field in fields]
    return both(cells) if len(cells) <= _MOST_SIDES else spell(cells, most=_MOST_SIDES)


def _cell(field: Field) -> str:
    return f"{_cut(field.name)} {_cut(field.value)}"


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST_TOLD else f"{value[: _LONGEST_TOLD - 3]}..."


def flipped_by(example: Example, summary: Summary) -> str:
    """Which protected columns flip a finding, in words; empty where it is not known."""
    sets = split_causes(example.flipped_by, list(summary.protected))
    if not sets:
        return example.flipped_by
    alone = [names[0] for names in sets if len(names) == 1]
    parts = [f"{' or '.join(alone)} alone"] if alone else []
    parts += [f"{both(names)} together" for names in sets if len(names) > 1]
    return ", or ".join(parts)


def how_natural(example: Example) -> str:
    """How usual both rows of a finding are among the table's; empty where it is not known.

    >>> how_natural(Example((), 0.2, 0.7, "", naturalness=0.41, partner_naturalness=0.004))
    'the row is as usual as 41 % of real rows, its partner as 0.4 %'
    """
    if example.naturalness is None or example.partner_naturalness is None:
        return ""
    own, other = (
        f"{100 * value:.0f} %" if value >= 0.02 else f"{100 * value:.1f} %"
        for value in (example.naturalness, example.partner_naturalness)
    )
    return f"the row is as usual as {own} of real rows, its partner as {other}"


def sample_size(summary: Summary, name: str, rate: Rate) -> str:
    """How many rows a rate of a population rests on, and of how many that were asked."""
    n_asked = summary.n_asked(name)
    whole = f" of {count(n_asked)}" if 0 < rate.n < n_asked else ""
    return f"n = {count(rate.n)}{whole}"


def describe_rate(summary: Summary, name: str) -> str:
    """A rate in one line, with its interval and its rows: "0.5 % (0.2 to 0.8 %, n = 2,184)"."""
    rate = summary.rates[name]
    size = sample_size(summary, name, rate)
    if rate.n < FEWEST_TOLD or not math.isfinite(rate.estimate):
        return f"{round(rate.estimate * rate.n) if rate.n else 0} of {count(rate.n)} rows"
    shown = percent(rate)
    return f"{shown.estimate} % ({shown.low} to {shown.high} %, {size})"


def volume(summary: Summary) -> str:
    """How many people per year that is, where a volume was given and a rate was measured."""
    if summary.volume is None or summary.blind:
        return ""
    for name, rate in listed_rates(summary):
        if rate.n >= FEWEST_TOLD and math.isfinite(rate.estimate) and name != "uniform":
            people = summary.volume * rate.n / summary.n_asked(name)  # others cannot flip
            figures = [count(round(people * x)) for x in (rate.estimate, rate.low, rate.high)]
            return (
                f"Of {count(summary.volume)} people per year, about {figures[0]} ({figures[1]} to "
                f"{figures[2]}) would be decided differently, if they are like the "
                f"{population(name)}."
            )
    return ""


def natural(summary: Summary) -> list[NaturalnessWords]:
    """How natural findings are, beside what can be expected; only what was measured."""
    order = [name for name in _NATURAL if name in summary.naturalness]
    order += [name for name in summary.naturalness if name not in _NATURAL]
    return [
        NaturalnessWords(
            words, " ".join(filter(None, (aid, _draw(like)))), like.value, f"{like.value:.3f}"
        )
        for name in order
        for words, aid in [_NATURAL.get(name, (name, ""))]
        # What is not a number is null in a file.
        if math.isfinite((like := summary.naturalness[name]).value)
    ]


def _draw(like: Likeness) -> str:
    """How many rows a set was judged by.

    >>> _draw(Likeness(0.87, 0.0061, 1700, 10)), _draw(Likeness(0.9, n=700)), _draw(Likeness(1))
    ('(10 draws of 1,700 rows, spread 0.006)', '(700 rows)', '')
    """
    if like.n is None:
        return ""
    if like.spread is None:
        return f"({count(like.n)} rows)"
    return f"({like.draws} draws of {count(like.n)} rows, spread {like.spread:.3f})"


def is_unsteady(tree: dict[str, Any]) -> bool:
    """Did the model give other answers when it was asked again?"""
    return bool(tree.get("scores_moved"))


def settings(summary: Summary) -> list[tuple[str, str]]:
    """The settings of the method, with what the budget made of them."""
    return [
        (name, number(value) + _used(summary, name)) for name, value in summary.settings.items()
    ]


def _used(summary: Summary, name: str) -> str:
    if name not in summary.used:
        return ""
    return f" ({number(summary.used[name])} used, because of the budget)"


def steadiness(tree: dict[str, Any]) -> str:
    """Whether the model answered the same each time, in words; empty where it was not asked."""
    if not tree.get("rows"):
        return ""
    asked = f"{count(tree['rows'])} rows asked again, in another order and in small batches"
    if not is_unsteady(tree):
        return f"{asked}: always the same answer"
    shown = percent(rate_of(tree["decisions_moved"], tree["rows"]))
    return (
        f"{asked}: {count(tree['decisions_moved'])} got a different decision ({shown.estimate} %, "
        f"{shown.low} to {shown.high}), {count(tree['scores_moved'])} a different score"
    )


_MOVED_BY = {
    "asking again": (
        "from one call to the next (is dropout left on, or a threshold drawn at random? Fix its "
        "seed, or switch to eval mode)"
    ),
    "another order": "with the order of the rows (does it draw random numbers by position?)",
    "other batches": (
        "with the other rows in a batch (does it standardise or rank within a batch? Batch norm "
        "belongs in eval mode)"
    ),
}


def unsteady(tree: dict[str, Any]) -> str:
    """What a reader has to know of a model whose answers move; empty where they do not."""
    if not is_unsteady(tree):
        return ""
    cause = next((words for by, words in _MOVED_BY.items() if tree["moved_by"].get(by)), "")
    return (
        f"the model does not always give the same answer: {steadiness(tree)}. Its answers vary "
        f"{cause}. So a row counts as flipping, and a finding is kept, only if both sides kept "
        f"their decision {tree['times']} times, in different orders and batches; what flips less "
        "reliably is left out, and the same seed may find other rows"
    )


def generator(summary: Summary) -> str:
    """The generator, and how long it took to make ready."""
    if summary.generator is None:
        return "none"
    spent = summary.preparation_seconds
    return f"{summary.generator}, ready after {seconds(spent)}" if spent else summary.generator


_PHASES = {
    "contract": "looking at the model",
    "generator": "fitting the generator",
    "rates": "measuring rates",
    "twins": "asking about twins",
    "labels": "labelling",
    "search": "searching",
    "second_check": "asking findings again",
    "metrics": "working out metrics",
}


def phase(name: str) -> str:
    """What a run does in a phase.

    >>> phase("second_check"), phase("other")
    ('asking findings again', 'other')
    """
    return _PHASES.get(name, name)


def phases(summary: Summary) -> list[tuple[str, str]]:
    """How long each phase took, in words, where it was told."""
    return [
        (phase(name), seconds(spent["seconds"]))
        for name, spent in summary.phases.items()
        if spent["seconds"] >= 0.05 or spent["questions"]
    ]


def searched(summary: Summary) -> bool:
    """Did the search get to check anything, or was there none?"""
    if summary.blind:
        return False
    return bool(summary.rows_checked) or summary.stop != "seconds"


def found(summary: Summary) -> str:
    """The number of findings; no number where nothing was searched."""
    return count(summary.findings) if searched(summary) else "not searched"


def stopped(summary: Summary) -> str:
    """Why the search ended."""
    if summary.blind:
        return f"the model does not take {both(summary.protected)}, so changing it flips nothing"
    if not searched(summary):
        return "no time was left for it"
    return _STOPS.get(str(summary.stop), str(summary.stop))


def title(name: str) -> str:
    """The name of a method's own number, as a label.

    >>> title("boundary_auc_train"), title("error_bound")
    ('boundary AUC train', 'error bound')
    """
    return " ".join("AUC" if word == "auc" else word for word in name.split("_"))


def hash_of(name: str) -> str:
    """What a hash is of.

    >>> hash_of("data_sha256"), hash_of("file")
    ('SHA-256 of data', 'hash of file')
    """
    stem = name.removesuffix("_sha256")
    return f"hash of {name}" if stem == name else f"SHA-256 of {stem.replace('_', ' ')}"
