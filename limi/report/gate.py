"""The answer of a gate in words: for a terminal, and for whoever reads a pull request."""

from __future__ import annotations

import math
from dataclasses import replace

from limi.audits.summary import Example, causes_first, tell_causes
from limi.decisions import Classes, Rule, parse_rule
from limi.gates import Answer, Gate, Judged
from limi.gates._rules import OF_GROUPS
from limi.metrics._populations import name_population
from limi.system.shown import clean
from limi.system.words import both, count, markdown

__all__ = [
    *("HEADINGS", "cells", "example", "limits", "render_markdown", "sentence", "value", "why"),
]

HEADINGS = ("answer", "rule", "value", "from - to", "rows", "queries")

_STOPS = {
    "queries": "the budget of queries is spent",
    "seconds": "the time is up",
    "rows": "there are no more rows to ask about",
    "baseline": (
        "all rows that the baseline kept have been asked about; test the earlier model again with "
        "a larger --rate-rows to compare more of them"
    ),
}
_ANSWERS = {Answer.PASS: "pass", Answer.FAIL: "FAIL", Answer.INCONCLUSIVE: "open"}


def sentence(gate: Gate) -> str:
    """The answer, and how sure it is."""
    cost = f"{count(gate.queries)} queries; "
    cost += f"the chance of any wrong answer is at most {_percent(gate.error)}"
    if gate.answer == Answer.PASS:
        kept = "the rule is kept" if len(gate.rules) == 1 else "all rules are kept"
        return f"Pass: {kept} ({cost})."
    if gate.answer == Answer.FAIL:
        names = both([judged.rule.text for judged in gate.broken], "; ")
        return f"Fail: {names} {'is' if len(gate.broken) == 1 else 'are'} broken ({cost})."
    left = [judged.rule.text for judged in gate.rules if judged.answer == Answer.INCONCLUSIVE]
    return (
        f"Inconclusive: {both(left, '; ')} {'is' if len(left) == 1 else 'are'} neither clearly "
        f"kept nor clearly broken, and {_STOPS[gate.stop]} ({cost})."
    )


def cells(judged: Judged) -> tuple[str, ...]:
    """A line of a table, under `HEADINGS`."""
    return (
        _ANSWERS[judged.answer],
        clean(_name(judged)),
        value(judged),
        limits(judged),
        count(judged.estimate.n),
        count(judged.queries),
    )


def _name(judged: Judged) -> str:
    column = judged.rule.column
    return judged.rule.text if column is None else f"{judged.rule.text} ({column})"


def value(judged: Judged) -> str:
    """What was measured."""
    known = judged.estimate.value
    return "unknown" if math.isnan(known) else _show(judged, known, unit=True)


def limits(judged: Judged) -> str:
    """Between which ends it lies."""
    low, high = judged.estimate.low, judged.estimate.high
    return f"{_show(judged, low)} - {_show(judged, high, unit=True)}"


def _show(judged: Judged, number: float, *, unit: bool = False) -> str:
    rule = judged.rule
    if rule.against_baseline:
        return f"{100 * number:+.2f}{' points' if unit else ''}"
    if rule.measure in ("score_gap", *OF_GROUPS):
        return f"{number:.3f}"
    return f"{100 * number:.2f}{' %' if unit else ''}"


def why(judged: Judged) -> str:
    """What the value is, in a sentence."""
    rule, known = judged.rule, judged.estimate
    rows = f"{count(known.n)} {name_population(rule.population)}"
    if not known.n:
        told = f"nothing is known yet about {name_population(rule.population)}"
    elif rule.against_baseline:
        told = f"{value(judged)} against the baseline on {rows}"
    elif rule.measure == "rate":
        told = f"{count(known.hits or 0)} of {rows} flip"
    elif rule.measure == "worst_region_rate":
        told = f"{count(known.hits or 0)} of {rows} in the worst region flip"
    elif rule.measure == "score_gap":
        told = (
            f"{rule.percentile:g} % of {rows} have scores at most {value(judged)} apart when only "
            "protected values change"
        )
    elif rule.measure == "impact_ratio":
        told = (
            f"the lowest share of favorable decisions is {value(judged)} of the highest on {rows}"
        )
    elif rule.measure == "widest_spd":
        told = f"shares of favorable decisions differ by up to {value(judged)} on {rows}"
    else:
        told = f"shares of favorable decisions differ by {value(judged)} on {rows}"
    note = f"; {known.note}" if known.note else ""
    return clean(f"{rule.name}: {told}, limits {limits(judged)}{note}.")


def example(found: Example, gate: Gate) -> str:
    """A finding in one line."""
    protected = [f.name for f in found.fields if f.protected]
    moved = [(f.name, f"{f.value} -> {f.partner}") for f in found.fields if f.changed]
    told = causes_first(moved, found.flipped_by, protected)
    changed = ", ".join(f"{name} {change}" for name, change in told)
    if found.flipped_by:
        changed += f" (by {tell_causes(found.flipped_by, protected)})"
    others = [f"{f.name} {f.value}" for f in found.fields if not f.changed]
    rule = _rule(gate)
    sides = " -> ".join(rule.show(answer) for answer in (found.score, found.partner_score))
    return clean(f"{changed}: {rule.noun} {sides}; {', '.join(others)}")


def _rule(gate: Gate) -> Rule:
    """What counted as a decision, with the names of its classes."""
    rule = parse_rule(gate.decision)
    return replace(rule, labels=gate.classes) if isinstance(rule, Classes) else rule


def render_markdown(gate: Gate) -> str:
    """A summary that fits a pull request."""
    titles = {
        Answer.PASS: "passed",
        Answer.FAIL: "failed",
        Answer.INCONCLUSIVE: "inconclusive",
    }
    lines = [
        f"### Fairness gate: {titles[gate.answer]}",
        "",
        markdown(sentence(gate)),
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *("| " + " | ".join(map(markdown, cells(judged))) + " |" for judged in gate.rules),
    ]
    notes = [why(judged) for judged in gate.broken] + [*gate.notes]
    lines += ["", *(f"- {markdown(note)}" for note in notes)] if notes else []
    if gate.broken and gate.examples:
        lines += ["", "Decisions that flip:", ""]
        lines += [f"- {markdown(example(found, gate))}" for found in gate.examples]
    tested = f"Model {gate.model} on {gate.table}, protected {', '.join(gate.protected)}, seed "
    return "\n".join([*lines, "", markdown(f"{tested}{gate.seed}."), ""])


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
