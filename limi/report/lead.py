"""The first screen of a page: the answer in six lines that somebody can act on."""

from __future__ import annotations

from dataclasses import dataclass

from limi.audits.summary import Summary
from limi.metrics._rate import Rate, rate_of
from limi.report import favored, outcomes, wording
from limi.report.next_steps import NextStep, next_step
from limi.system import words

__all__ = ["Lead", "tell"]

_MOST_LOSERS = 3  # that are named beside the one that loses most


@dataclass(frozen=True)
class Lead:
    """What stands below the answer, line by line; empty where it is not known."""

    lines: tuple[tuple[str, str], ...]  # what it answers, and the answer
    step: NextStep


def tell(summary: Summary) -> Lead:
    """The first screen of a run."""
    lines = (
        ("Who loses", _who_loses(summary)),
        ("Who gets more", _who_gets_more(summary)),
        ("How many people", wording.volume(summary)),
        ("Where most", _worst_region(summary)),
        ("Accuracy", _accuracy(summary)),
        ("Found", _found(summary)),
    )
    return Lead(tuple((name, told) for name, told in lines if told), next_step(summary))


def _who_loses(summary: Summary) -> str:
    if summary.blind or summary.kind != "favorable":
        return ""
    tables = favored.tables(summary)
    clear = [table for table in tables if table.what_if.favored]
    if not clear:
        return tables[0].verdicts[0] if tables and tables[0].verdicts else ""
    table = clear[0].what_if
    pair = table.favored[0]
    rates = {value.value: value.rate for value in table.values}
    if not {pair.favored, pair.disfavored} <= set(rates):  # of a damaged summary
        return clear[0].verdicts[0]
    more, less, gap = wording.rates_and_gap(rates[pair.favored], rates[pair.disfavored], pair)
    others = favored.alike(table, pair.disfavored, pair.favored)
    known = {value: wording.percent(rate).estimate for value, rate in rates.items()}
    shares = [(pair.disfavored, less), *((value, known[value]) for value in others[:_MOST_LOSERS])]
    names = [wording.value_of(table, value) for value, _ in shares]
    listed = [f"{share} % as {name}" for name, (_, share) in zip(names, shares, strict=True)]
    more_alike = len(others) - _MOST_LOSERS
    who = words.both([*names, f"{more_alike} more"] if more_alike > 0 else names)
    who += ", which cannot be told apart" if others else ""
    return (
        f"{who}: the same {words.count(table.n)} people are decided {summary.favorable} "
        f"{words.both(listed)}, against {more} % as {wording.value_of(table, pair.favored)} "
        f"({gap})."
    )


def _who_gets_more(summary: Summary) -> str:
    return "" if summary.kind == "favorable" else outcomes.who_gets_more(summary)


def _worst_region(summary: Summary) -> str:
    places = [] if summary.blind else wording.places(summary)
    return f"{places[0]}." if places else ""


def _accuracy(summary: Summary) -> str:
    """Right decisions of all people who have a label, from the groups of the first column."""
    first = next(iter(summary.protected), None)
    lines = [line for line in summary.groups if line.columns == (first,)]
    known = [line.accuracy for line in lines if line.accuracy is not None]
    if not known:
        return ""
    rate = _pooled(known)
    shown = wording.percent(rate)
    return f"{shown.estimate} % ({shown.low} to {shown.high}, n = {words.count(rate.n)})."


def _pooled(rates: list[Rate]) -> Rate:
    return rate_of(
        sum(round(rate.estimate * rate.n) for rate in rates), sum(rate.n for rate in rates)
    )


def _found(summary: Summary) -> str:
    if not wording.searched(summary) or not summary.findings:
        return ""
    made_up = (
        f"{words.count(summary.findings)} generated people whose decision flips, not real ones"
    )
    if summary.real_people:
        return (
            f"{words.count(summary.findings)} people whose decision flips; "
            f"{words.count(summary.real_people)} of them, or their partners, equal a row of the "
            "table, and the others are generated."
        )
    none = "; none equals a row of the table" if summary.real_people == 0 else ""
    return f"{made_up}{none}."
