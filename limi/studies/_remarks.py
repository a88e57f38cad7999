"""Remarks of a study: prose whose numbers are taken from the cells.

A remark holds its numbers in braces, and they are filled in when it is shown, so that none can
outlive the cells that it came from:

    {atn limi census-sex}       the mean over seeds, on one benchmark
    {atn limi low}              the lowest of the benchmarks' means; `high`, and `mean` over all
    {findings limi/natural low} a ratio of two variants; {if_o limi:before mean} a relative change
    {if_o limi:before means}    the same of their means over all benchmarks
    {count findings limi > natural}    on how many benchmarks, as "5 of 7"
    {pairs findings limi > natural}    in how many pairs of one benchmark and seed, as "20 of 21"
    {small: atn limi mean}      of a scale; by default the largest that has the numbers

Variants are compared at the seeds that all of them have, where there are any.

`check_remarks` finds what cannot be filled in, and digits that stand outside braces: those of a
remark must be in its study's list `fixed`, of numbers that are definitions and not results.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from limi.studies._files import Study
from limi.studies._results import Results
from limi.studies._tables import MEASURES, complete, show

__all__ = ["NOT_RUN", "check_remarks", "fill_in"]

NOT_RUN = "(not run)"
_BRACES = re.compile(r"\{([^{}]+)\}")
_CODE = re.compile(r"`[^`]*`")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_OVER = ("low", "high", "mean", "means")


def fill_in(text: str, study: Study, known: Sequence[Results]) -> str:
    """The text with every number from the results; those of the largest scale come first."""
    ready = [complete(study, results) for results in known]
    return _BRACES.sub(lambda found: _fill(found[1], study, ready) or NOT_RUN, text)


def check_remarks(study: Study, known: Sequence[Results]) -> list[str]:
    """What is wrong with a study's remarks, a sentence each."""
    ready = [complete(study, results) for results in known]
    wrong = [
        f"{study.name}: {{{place}}} cannot be filled in from the kept cells"
        for place in _BRACES.findall(study.remarks)
        if _fill(place, study, ready) is None
    ]
    prose = _CODE.sub("", _BRACES.sub("", study.remarks))
    wrong += [
        f"{study.name}: the remark says {number}, which is not taken from the cells; write it in "
        "braces, or name it under `fixed` if it is a definition"
        for number in dict.fromkeys(_NUMBER.findall(prose))
        if number not in study.fixed
    ]
    return wrong


def _fill(place: str, study: Study, known: Sequence[Results]) -> str | None:
    """One number in words; None where the cells do not have it."""
    scale, colon, rest = place.partition(": ")
    wanted = [r for r in known if r.scale == scale] if colon else known
    words = (rest if colon else place).split()
    for results in wanted:
        tell = {"count": _count, "pairs": _pairs}.get(words[0], _number)
        told = tell(words, results)
        if told is not None:
            return told
    return None


def _number(words: list[str], results: Results) -> str | None:
    if len(words) != 3 or words[0] not in MEASURES:
        return None
    measure, variant, over = words
    parts = re.split(r"[/:]", variant)
    found = _by_benchmark(parts, measure, results)
    if over in _OVER and len(found) < len({o.benchmark for o in results.outcomes.values()}):
        return None  # over some benchmarks alone it would be another number
    if over == "means":
        found = {"all": [statistics.fmean(column) for column in zip(*found.values(), strict=True)]}
    if ":" in variant:
        values = {b: (line[0] - line[1]) / line[1] if line[1] else 0.0 for b, line in found.items()}
    elif "/" in variant:
        values = {b: line[0] / line[1] for b, line in found.items() if line[1]}
    else:
        values = {b: line[0] for b, line in found.items()}
    if not values or (over not in _OVER and over not in values):
        return None
    pick = {"low": min, "high": max, "mean": statistics.fmean, "means": statistics.fmean}
    value = pick[over](values.values()) if over in _OVER else values[over]  # type: ignore[operator]
    if ":" in variant:
        return f"{100 * value:+.0f} %"
    if "/" in variant:
        return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return show(value, measure)


def _by_benchmark(variants: list[str], measure: str, results: Results) -> dict[str, list[float]]:
    """The means of variants on each benchmark that has them all."""
    found = {}
    for benchmark, lines in _by_seed(variants, measure, results).items():
        if all(lines):
            common = set.intersection(*map(set, lines))
            found[benchmark] = [
                statistics.fmean(v for seed, v in line.items() if seed in common or not common)
                for line in lines
            ]
    return found


def _by_seed(
    variants: list[str], measure: str, results: Results
) -> dict[str, list[dict[int, float]]]:
    """By benchmark the numbers of each variant by seed."""
    found = dict.fromkeys(outcome.benchmark for outcome in results.outcomes.values())
    return {
        benchmark: [
            {
                outcome.seed: float(value)
                for outcome in results.of(benchmark, variant)
                if isinstance(value := outcome.measures.get(measure), (int, float))
            }
            for variant in variants
        ]
        for benchmark in found
    }


def _count(words: list[str], results: Results) -> str | None:
    if len(words) != 5 or words[3] not in "<>" or words[1] not in MEASURES:
        return None
    _, measure, first, sign, second = words
    found = _by_benchmark([first, second], measure, results).values()
    held = sum((a > b) if sign == ">" else (a < b) for a, b in found)
    return f"{held} of {len(found)}" if found else None


def _pairs(words: list[str], results: Results) -> str | None:
    if len(words) != 5 or words[3] not in "<>" or words[1] not in MEASURES:
        return None
    _, measure, first, sign, second = words
    found = [
        (one[seed], two[seed])
        for one, two in _by_seed([first, second], measure, results).values()
        for seed in one.keys() & two.keys()
    ]
    held = sum((a > b) if sign == ">" else (a < b) for a, b in found)
    return f"{held} of {len(found)}" if found else None
