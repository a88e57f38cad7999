"""The answer of a gate as JUnit XML, which every CI system shows.

One test case for each rule, with its numbers as properties, and one for each protected column. The
same gate gives the same bytes: there is no time in them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.etree import ElementTree as tree

from limi.gates import Answer, Gate, Judged
from limi.metrics._populations import name_population
from limi.report.gate import why
from limi.system.shown import clean
from limi.system.words import both, count

__all__ = ["render"]

# What XML cannot hold, however it is written, beside what `clean` spells.
_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass
class _Case:
    """One test case."""

    name: str
    answer: Answer
    message: str = ""
    properties: dict[str, object] = field(default_factory=dict)


def render(gate: Gate, inconclusive: str | None = None) -> str:
    """The XML; `inconclusive` says what not knowing counts as, by default as skipped."""
    suites = {
        "limi.gate.rules": [_rule(judged) for judged in gate.rules],
        "limi.gate.protected": [_column(gate, column) for column in gate.protected],
    }
    root = tree.Element("testsuites", {"name": "limi gate"})
    for name, cases in suites.items():
        suite = tree.SubElement(root, "testsuite", {"name": name})
        for case in cases:
            _write(suite, name, case, inconclusive)
        _count(suite)
    _count(root)
    tree.indent(root)
    text = tree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _rule(judged: Judged) -> _Case:
    known = judged.estimate
    numbers: dict[str, object] = {
        "value": known.value,
        "low": known.low,
        "high": known.high,
        "limit": judged.rule.limit,
        "rows": known.n,
        "queries": judged.queries,
        "population": judged.rule.population,
    }
    column = judged.rule.column
    name = judged.rule.text if column is None else f"{judged.rule.text} ({column})"
    return _Case(name, judged.answer, why(judged), numbers)


def _column(gate: Gate, column: str) -> _Case:
    """A protected column: broken where a broken rule is about it, or is broken by it alone too."""
    mine = [judged for judged in gate.rules if judged.rule.column in (None, column)]
    alone = {one.population: one for one in gate.columns if one.column == column}
    numbers: dict[str, object] = {}
    for population, one in alone.items():
        numbers[f"{population} rows"] = one.rows
        numbers[f"{population} rows that flip by it alone"] = one.flips
    guilty = [
        judged
        for judged in mine
        if judged.answer == Answer.FAIL
        and (
            judged.rule.column == column
            or judged.rule.population not in alone
            or alone[judged.rule.population].flips
        )
    ]
    if guilty:
        broken = both([judged.rule.text for judged in guilty], "; ")
        told = [
            f"{count(one.flips)} of {count(one.rows)} {name_population(population)} flip if "
            f"{column} alone changes"
            for population, one in alone.items()
        ]
        message = clean("; ".join([f"broken: {broken}", *told]))
        return _Case(column, Answer.FAIL, message, numbers)
    if all(judged.answer == Answer.PASS for judged in mine):
        return _Case(column, Answer.PASS, "", numbers)
    return _Case(column, Answer.INCONCLUSIVE, "not every rule about it is decided", numbers)


def _write(suite: tree.Element, name: str, case: _Case, inconclusive: str | None) -> None:
    element = tree.SubElement(suite, "testcase", {"classname": name, "name": _text(case.name)})
    if case.properties:
        properties = tree.SubElement(element, "properties")
        for key, number in case.properties.items():
            given = {"name": _text(key), "value": _number(number)}
            tree.SubElement(properties, "property", given)
    message = _text(case.message)
    unknown = case.answer == Answer.INCONCLUSIVE
    if case.answer == Answer.FAIL or (unknown and inconclusive == "fail"):
        kind = "inconclusive" if unknown else "broken"
        failure = tree.SubElement(element, "failure", {"message": message, "type": kind})
        failure.text = message
    elif unknown and inconclusive is None:
        tree.SubElement(element, "skipped", {"message": f"inconclusive: {message}"})


def _count(element: tree.Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
        element.set(name, str(len(element.findall(f".//{tag}"))))
    element.set("errors", "0")


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else "unknown"
    return _text(str(value))


def _text(text: str) -> str:
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", clean(text))
