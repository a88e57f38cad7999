"""Prose whose numbers are taken from the cells, and which is tried on them.

Remarks, notes and conclusions hold their numbers in braces, and they are filled in when the text is
shown, so that none can outlive the cells that it came from:

    {atn limi census-sex}       the mean over seeds, on one benchmark
    {atn limi low}              the lowest of the benchmarks' means; `high`, and `mean` over all
    {findings limi/natural low} a ratio of two variants; {if_o limi:before mean} a relative change
    {if_o limi:before means}    the same of their means over all benchmarks
    {span if_r control census-age}     the smallest and the largest of the seeds
    {least rows offset}         the smallest of all cells; `most`, the largest; "none" where it was
                                taken and no cell has a number
    {clock adf}                 on how many benchmarks the paper's runs ended by the clock
    {count findings limi > natural}    on how many benchmarks the mean is higher, as "5 of 7"
    {held findings limi > natural,adf} on how many it is so by the rule, whatever the seeds; `lost`
                                       and `open` count the others
    {where findings limi > natural}    on which of them; {where held ...} by the rule
    {stand if_r control before}        higher, lower or not told apart on so many, by the rule
    {pairs findings limi > natural}    in how many pairs of one benchmark and seed, as "20 of 21"
    {best findings step-0,step-0.1}    which variant has the best mean, on how many benchmarks
    {best findings step-0,step-0.1 mean}  which has the best mean over all of them
    {runs effect_seen limi faces}      in how many runs something was seen, as "4 of 5"
    {stops limi rows}           how many cells ended by that, as "18 of 21"
    {taken curve eidig,expga}   how many cells (of these variants) have a measure, as "9 of 24"
    {paper if_r before mean}    the paper's number: on a benchmark, or the mean over its own; of
                                another study's table if the study has `paper_of`
    {n benchmarks}              how many there are; {n seeds limi} of a variant,
                                {n seeds limi census-sex} on a benchmark
    {small: atn limi mean}      of a scale; by default the largest that has the numbers

Variants are compared at the seeds that all of them have, where there are any.

Words rest on `supports`, comparisons which must be true of the cells, against every rival named:

    likeness natural > limi mean        by the means over all benchmarks, or `mean on` those named
    findings limi > sg,expga count 4    by means, on so many benchmarks at least
    findings limi > sg on census-sex    by means, on the benchmarks named
    findings guided > limi,sg held 5    by the rule, on so many benchmarks at least
    if_r vote < paper lost at most 1    so many at most; `all` for all of them
    if_r control < 0.0359 open on census-sex    the seeds lie on either side of a number

A side is a variant, a number or the paper's number (`paper:limi`), and by means also a ratio of
two of them (`limi/natural`). The paper's number is that of the benchmark, or its only one.
"""

from __future__ import annotations

import functools
import operator
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from typing import TypeVar

from lab.derived import complete
from lab.files import Study, paper_numbers
from lab.measures import MEASURES, show
from lab.results import NOT_RUN, Outcome, Results
from lab.rule import TIE, compare, find_first, stand, stand_before_all, tell_stand

__all__ = ["check_text", "fill_in"]

_BRACES = re.compile(r"\{([^{}]+)\}")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_PICKS: Mapping[str, Callable[[Iterable[float]], float]] = {
    "low": min,
    "high": max,
    "mean": statistics.fmean,
    "means": statistics.fmean,
}
_RULED = ("held", "lost", "open")


_Found = TypeVar("_Found", bound=Sized)
_Told = TypeVar("_Told")


class _Missing(LookupError):
    """The cells do not have the numbers."""


def fill_in(text: str, study: Study, known: Sequence[Results]) -> str:
    """The text with every number from the results; those of the largest scale come first."""
    ready = [complete(study, results) for results in known]

    def fill(place: re.Match[str]) -> str:
        with suppress(_Missing):
            return _fill(place[1], study, ready)
        return f"({NOT_RUN})"

    return _BRACES.sub(fill, text)


def check_text(
    name: str,
    texts: Iterable[str],
    study: Study,
    known: Sequence[Results],
    supports: Sequence[str] = (),
) -> list[str]:
    """What is wrong with texts about a study's results, a sentence each."""
    ready = [complete(study, results) for results in known]
    wrong = []
    for place in _BRACES.findall("\n".join(texts)):
        try:
            _fill(place, study, ready)
        except _Missing:
            wrong.append(f"{name}: {{{place}}} cannot be filled in from the kept cells")
    for one in supports:
        try:
            holds = _at_scale(_holds, one, study, ready)
        except _Missing:
            holds = False
        if not holds:
            wrong.append(f"{name}: the words rest on {one!r}, which does not hold")
    return wrong


def _fill(place: str, study: Study, known: Sequence[Results]) -> str:
    match place.split():
        case ["paper", measure, variant, over]:
            table = paper_numbers(study.paper_of).get(measure, {})
            found = {b: line[variant] for b, line in table.items() if variant in line}
            if over == "mean" and found:
                found["mean"] = statistics.fmean(found.values())
            if over not in found:
                raise _Missing
            return show(found[over], measure)
    return _at_scale(_tell, place, study, known)


def _at_scale(
    tell: Callable[[Sequence[str], Study, Results], _Told],
    text: str,
    study: Study,
    known: Sequence[Results],
) -> _Told:
    """What the largest scale says that has the numbers, or the scale that the text names."""
    scale, colon, rest = text.partition(": ")
    for results in known:
        if not colon or results.scale == scale:
            with suppress(_Missing):
                return tell((rest if colon else text).split(), study, results)
    raise _Missing


# -- one place --------------------------------------------------------------------------------


def _tell(words: Sequence[str], study: Study, results: Results) -> str:
    """One number in words."""
    match words:
        case ["span", measure, variant, benchmark]:
            values = _need(results.numbers(benchmark, variant, measure))
            ends = dict.fromkeys(show(pick(values), measure) for pick in (min, max))
            return " to ".join(ends)
        case ["least" | "most" as which, measure, variant]:
            cells = [o for o in results.done if o.variant == variant]
            known = [x for o in cells if isinstance(x := o.measures.get(measure), (int, float))]
            if not known and any(measure in o.measures for o in cells):
                return "none"
            return show((min if which == "least" else max)(_need(known)), measure)
        case ["clock", variant]:
            ended = _need(list(_means([variant], "paper_end", results).values()))
            return _of(line == [1.0] for line in ended)
        case ["n", "benchmarks"]:
            return str(len(_need(results.benchmarks)))
        case ["n", "seeds", variant, *where]:
            cells = [o for o in results.done if o.variant == variant]
            return str(
                len(_need({o.seed for o in cells if o.benchmark in (where or [o.benchmark])}))
            )
        case ["taken", measure, *names] if measure in (*MEASURES, "curve"):
            variants = names[0].split(",") if names else None
            cells = [o for o in results.done if variants is None or o.variant in variants]
            return _of(o.measures.get(measure) is not None for o in _need(cells))
        case ["runs", measure, variant, benchmark]:
            return _of(x > 0 for x in _need(results.numbers(benchmark, variant, measure)))
        case ["stops", variant, why]:
            stops = [o.measures.get("stop") for o in results.done if o.variant == variant]
            return _of(stop == why for stop in _need(stops))
        case ["stand", measure, first, second]:
            return tell_stand(_need(stand(results, measure, first, second)))
        case [measure, variant, over] if measure in MEASURES:
            return _number(measure, variant, over, results)
    return _compare(words, study, results)


def _compare(words: Sequence[str], study: Study, results: Results) -> str:
    """Two variants or more, benchmark by benchmark."""
    match words:
        case ["best", measure, names, *over]:
            return _best(measure, names.split(","), bool(over), study, results)
        case ["where", word, *comparison] if word in _RULED:
            return _list(b for b, told in _rule(comparison, results).items() if told == word)
        case ["where", *comparison]:
            return _list(b for b, is_so in _ahead(comparison, results).items() if is_so)
        case ["count", *comparison]:
            return _of(_ahead(comparison, results).values())
        case ["pairs", measure, first, sign, second]:
            lines = _by_seed([first, second], measure, results).values()
            pairs = [(one[seed], two[seed]) for one, two in lines for seed in one.keys() & two]
            return _of(_is_past(sign, a, b) for a, b in _need(pairs))
        case [word, *comparison] if word in _RULED:
            return _of(told == word for told in _rule(comparison, results).values())
    raise _Missing


def _need(found: _Found) -> _Found:
    if not found:
        raise _Missing
    return found


def _of(held: Iterable[bool]) -> str:
    known = list(held)
    return f"{sum(known):,} of {len(known):,}"


def _list(benchmarks: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in benchmarks) or "none of them"


def _number(measure: str, variant: str, over: str, results: Results) -> str:
    """Of a variant, or of two the ratio (`/`) or the change (`:`)."""
    sign = next((sign for sign in "/:" if sign in variant), "")
    found = _means(re.split("[/:]", variant), measure, results)
    if over in _PICKS:
        _need_all(found, results)
    if over == "means":
        found = {"all": [statistics.fmean(column) for column in zip(*found.values(), strict=True)]}
    if sign == ":":
        values = {b: (a - of) / of if of else 0.0 for b, (a, of) in found.items()}
    elif sign == "/":
        values = {b: a / of for b, (a, of) in found.items() if of}
    else:
        values = {b: a for b, (a,) in found.items()}
    if (over not in _PICKS and over not in values) or (len(values) < len(found) and over in _PICKS):
        raise _Missing  # a benchmark that has nothing to be more than is not left out
    value = _PICKS[over](_need(values).values()) if over in _PICKS else values[over]
    if sign == ":":
        return f"{100 * value:+.0f} %" if round(100 * value) else "0 %"
    if sign == "/":
        return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return show(value, measure)


def _best(
    measure: str, variants: Sequence[str], over_all: bool, study: Study, results: Results
) -> str:
    """Which of some variants has the best mean, on how many benchmarks, or over all of them."""
    found = _need_all(_means(variants, measure, results), results)
    of = {name: study.variant(name).of or name for name in variants}  # the text says with what
    labels = {name: study.variant(of[name]).label for name in variants}
    if over_all:
        found = {"all": [statistics.fmean(column) for column in zip(*found.values(), strict=True)]}
    sign = MEASURES[measure].sign
    first = [
        find_first({name: sign * x for name, x in zip(variants, line, strict=True)})
        for line in found.values()
    ]
    if over_all:
        return labels.get(first[0], first[0])
    counts = Counter(first)
    ranked = sorted([*variants, TIE], key=lambda name: -counts[name])
    parts = [f"{labels.get(name, name)} on {counts[name]}" for name in ranked if counts[name]]
    return f"{', '.join(parts)} of {len(found)}"


# -- comparisons ------------------------------------------------------------------------------


def _by_seed(
    variants: Sequence[str], measure: str, results: Results
) -> dict[str, list[dict[int, float]]]:
    """By benchmark the numbers of each variant by seed."""

    def line(benchmark: str, variant: str) -> dict[int, float]:
        if not results.numbers(benchmark, variant, measure):
            return {}
        cells: list[Outcome] = results.of(benchmark, variant)
        numbers = {o.seed: o.measures.get(measure) for o in cells}
        return {seed: float(x) for seed, x in numbers.items() if isinstance(x, (int, float))}

    return {b: [line(b, variant) for variant in variants] for b in results.benchmarks}


def _means(variants: Sequence[str], measure: str, results: Results) -> dict[str, list[float]]:
    """The means of variants on each benchmark that has them all, at the seeds that all have."""
    found = {}
    for benchmark, lines in _by_seed(variants, measure, results).items():
        if all(lines):
            common = set.intersection(*map(set, lines))
            found[benchmark] = [
                statistics.fmean(x for seed, x in line.items() if seed in common or not common)
                for line in lines
            ]
    return found


def _need_all(found: Mapping[str, list[float]], results: Results) -> dict[str, list[float]]:
    """Over some benchmarks alone it would be another number."""
    if not found or len(found) < len(results.benchmarks):
        raise _Missing
    return dict(found)


def _is_past(sign: str, a: float, b: float) -> bool:
    return a > b if sign == ">" else a < b


def _read(words: Sequence[str]) -> tuple[str, str, str, str]:
    match words:
        case [measure, first, ("<" | ">") as sign, second] if measure in MEASURES:
            return measure, first, sign, second
    raise _Missing


def _ahead(words: Sequence[str], results: Results) -> dict[str, bool]:
    """On which benchmarks the mean is on that side."""
    measure, first, sign, second = _read(words)
    found: dict[str, list[float]] = _need(_means([first, second], measure, results))
    return {b: _is_past(sign, a, c) for b, (a, c) in found.items()}


def _rule(words: Sequence[str], results: Results) -> dict[str, str]:
    """By benchmark whether a variant is on that side of all others: held, lost or open."""
    measure, first, sign, seconds = _read(words)
    known = [_stand(results, measure, first, sign, second) for second in seconds.split(",")]
    if any(benchmark not in one for one in known for benchmark in results.benchmarks):
        raise _Missing  # a rival without a number is not left out
    return {b: stand_before_all(one[b] for one in known) for b in results.benchmarks}


def _stand(
    results: Results, measure: str, first: str, sign: str, second: str, study: Study | None = None
) -> dict[str, str]:
    """By benchmark whether the first is on that side of a variant or a number by the rule."""
    words = {"higher": "held", "lower": "lost"}
    if study is not None and _is_constant(second):
        found = {}
        for benchmark in results.benchmarks:
            mine = results.numbers(benchmark, first, measure)
            theirs = _constant(second, measure, benchmark, study)
            if len(mine) > 1 and theirs is not None:
                found[benchmark] = compare((value, theirs) for value in mine)
    else:
        stands = stand(results, measure, first, second)
        found = {b: words.get(told, "open") for b, told in stands.items()}
    turned = {"held": "lost", "lost": "held", "open": "open"}
    return found if sign == ">" else {b: turned[told] for b, told in found.items()}


# -- what words rest on -----------------------------------------------------------------------


def _holds(words: Sequence[str], study: Study, results: Results) -> bool:
    """Is a support true of these results?"""
    measure, first, sign, seconds = _read(words[:4])
    rivals = seconds.split(",")
    match words[4:]:
        case [word, *how] if word in _RULED:
            told = [_stand(results, measure, first, sign, one, study) for one in rivals]
            found = [{b: verdict == word for b, verdict in one.items()} for one in told]
            if word == "held" and how[:1] != ["at"]:  # ahead of all of them at once
                common = set.intersection(*map(set, found))
                found = [{b: all(one[b] for one in found) for b in found[0] if b in common}]
            return all(_is_so(one, how, results) for one in found)
        case ["mean", *how]:
            return all(_is_by_mean(measure, first, sign, r, how, study, results) for r in rivals)
        case ["count", *how] | how:
            if not how or (words[4] != "count" and how[0] != "on"):
                raise _Missing
            lines = [_sides(measure, (first, one), study, results) for one in rivals]
            return all(
                _is_so({b: _is_past(sign, a, c) for b, (a, c) in line.items()}, how, results)
                for line in lines
            )
    raise _Missing


def _is_by_mean(
    measure: str,
    first: str,
    sign: str,
    rival: str,
    how: Sequence[str],
    study: Study,
    results: Results,
) -> bool:
    """Is the mean over all benchmarks, or over those named, on that side?"""
    if how and (how[0] != "on" or len(how) != 2):
        raise _Missing
    line = _sides(measure, (first, rival), study, results)
    named = how[1].split(",") if how else results.benchmarks
    if not named or any(benchmark not in line for benchmark in named):
        raise _Missing
    return _is_past(sign, sum(line[b][0] - line[b][1] for b in named), 0)


def _is_so(found: Mapping[str, bool], how: Sequence[str], results: Results) -> bool:
    """Is it so on as many benchmarks as wanted, or on those wanted?"""
    if how[:1] == ["on"] and len(how) == 2:
        named = how[1].split(",")
        if any(b not in found for b in named):
            raise _Missing
        return all(found[b] for b in named)
    if not found or len(found) < len(results.benchmarks):
        raise _Missing  # a benchmark without a number is not left out
    match how:
        case ["all"]:
            return all(found.values())
        case ["at", "most", n] if n.isdigit():
            return sum(found.values()) <= int(n)
        case [n] if n.isdigit():
            return sum(found.values()) >= int(n)
    raise _Missing


def _sides(
    measure: str, sides: Sequence[str], study: Study, results: Results
) -> dict[str, list[float]]:
    """Both sides of a comparison, by means, on each benchmark that has all their numbers."""
    parts = [part for side in sides for part in side.split("/")]
    variants = [part for part in parts if not _is_constant(part)]
    lines = {}
    for benchmark, means in _means(variants, measure, results).items():
        value: dict[str, float | None] = dict(zip(variants, means, strict=True))
        value |= {p: _constant(p, measure, benchmark, study) for p in parts if _is_constant(p)}
        ratios = [[value[part] for part in side.split("/")] for side in sides]
        known = [[n for n in ratio if n is not None] for ratio in ratios]
        if known == ratios and all(0 not in ratio[1:] for ratio in known):
            lines[benchmark] = [functools.reduce(operator.truediv, ratio) for ratio in known]
    return lines


def _is_constant(part: str) -> bool:
    return part.startswith("paper:") or _NUMBER.fullmatch(part) is not None


def _constant(part: str, measure: str, benchmark: str, study: Study) -> float | None:
    """A number, or the paper's: that of a benchmark, or the only one there is."""
    if not part.startswith("paper:"):
        return float(part)
    table = paper_numbers(study.paper_of).get(measure, {})
    line = next(iter(table.values())) if len(table) == 1 else table.get(benchmark, {})
    return line.get(part.partition(":")[2])
