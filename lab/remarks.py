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
    {where findings limi > natural}    on which of them
    {held findings limi > natural,adf} on how many it is so by the rule, whatever the seeds; `lost`
                                       and `open` count the others, {where held ...} lists them
    {stand if_r control before}        higher, lower or not told apart on so many, by the rule
    {pairs findings limi > natural}    in how many pairs of one benchmark and seed, as "20 of 21"
    {best findings step-0,step-0.1}    which variant has the best mean, on how many benchmarks
    {best findings step-0,step-0.1 mean}  which has the best mean over all of them
    {runs effect_seen limi faces}      in how many runs something was seen, as "4 of 5"
    {stops limi rows}           how many cells ended by that, as "18 of 21"
    {taken curve eidig,expga}   how many cells of these variants have a measure, as "9 of 24"
    {taken curve}               of all of them
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

`check_text` finds what cannot be filled in, numbers that stand outside braces, in digits or in
words, and supports that do not hold. A number that is a definition and no result is named under
`fixed`, with as many words around it as it takes.

A paragraph waits, and is not shown, while a variant that it names has no cell on some benchmark, or
none that took the measure; where it was taken and there is no number, the text is wrong.
"""

from __future__ import annotations

import functools
import operator
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.derived import complete
from lab.files import Study, paper_numbers
from lab.measures import MEASURES, show
from lab.results import DONE, NOT_RUN, Results
from lab.rule import (
    ABOVE,
    BELOW,
    OPEN,
    TIE,
    compare,
    find_first,
    stand,
    stand_before_all,
    tell_stand,
)

__all__ = ["WAITS", "check_remarks", "check_text", "fill_in", "find_lacking", "find_numbers"]

WAITS = "*A part of this text waits for cells that have not been run.*"

_BLOCKS = re.compile(r"\n\n|\n(?=- )")
_BRACES = re.compile(r"\{([^{}]+)\}")
_CODE = re.compile(r"`[^`]*`")
_TARGETS = re.compile(r"\]\([^)]*\)")
_COUNTS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|"
    "dozens?|hundreds?|thousands?|millions?|once|twice|thrice|half|halves|thirds?|quarters?|fifths?|"
    "sixths?|sevenths?|eighths?|ninths?|tenths?|fifteenths?"
)
# Quantities in words; "every table" and "no benchmark" are counts as well.
_WORDS = re.compile(
    rf"\b(?:{_COUNTS}|(?:every|all|each|no|most|both|none of the|neither of the)(?: of)?"
    r"(?: the| our| its)? (?:tables?|benchmarks?|seeds?|cells?|pairs?|steps|generators|methods))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_OF_PAPER = re.compile(r"paper:[^ ,/]+")  # the paper's number as a side of a comparison
_OVER = ("low", "high", "mean", "means")


def fill_in(text: str, study: Study, known: Sequence[Results]) -> str:
    """The text with every number from the results; those of the largest scale come first.

    Paragraphs and items of a list that wait for cells are left out, and the text says so.
    """
    ready = [complete(study, results) for results in known]
    ends = [*_BLOCKS.findall(text), ""]
    blocks = [
        (block, end)
        for block, end in zip(_BLOCKS.split(text), ends, strict=True)
        if not any(_waits(place, study, ready) for place in _BRACES.findall(block))
    ]
    shown = "".join(block + end for block, end in blocks).rstrip()
    filled = _BRACES.sub(lambda found: _fill(found[1], study, ready) or f"({NOT_RUN})", shown)
    if len(blocks) == len(ends):
        return filled
    return f"{filled}\n\n{WAITS}" if filled else WAITS


def check_remarks(study: Study, known: Sequence[Results]) -> list[str]:
    """What is wrong with a study's remarks, notes and claims, a sentence each."""
    claims = [one.says for one in study.claims] + [one.says for one in study.combined]
    words = (study.remarks, *study.notes, *claims, *(one.says for one in study.older))
    return check_text(study.name, words, study, known, study.fixed, study.supports)


def check_text(
    name: str,
    texts: Iterable[str],
    study: Study | None,
    known: Sequence[Results],
    fixed: Sequence[str],
    supports: Sequence[str] = (),
) -> list[str]:
    """What is wrong with texts about a study's results, or about none, a sentence each."""
    whole = "\n".join(texts)
    ready = [] if study is None else [complete(study, results) for results in known]
    wrong = [
        f"{name}: {{{place}}} cannot be filled in from the kept cells"
        for place in _BRACES.findall(whole)
        if study is None or (_fill(place, study, ready) is None and not _waits(place, study, ready))
    ]
    wrong += [
        f"{name}: the text says {number!r}, which is not taken from the cells; write it in braces, "
        "or name it under `fixed` if it is a definition"
        for number in find_numbers(whole, fixed)
    ]
    wrong += [
        f"{name}: {one!r} is named under `fixed`, and the text does not say it"
        for one in fixed
        if not _fixed(one).search(re.sub(r"\s+", " ", whole))
    ]
    wrong += [
        f"{name}: the words rest on {one!r}, which does not hold"
        for one in supports
        if study is None or not (_waits(one, study, ready) or _is_supported(one, study, ready))
    ]
    return wrong


def find_numbers(text: str, fixed: Sequence[str] = ()) -> list[str]:
    """Numbers outside braces and code, in digits and in words, but for those that are fixed."""
    prose = _TARGETS.sub("]", _CODE.sub("", _BRACES.sub("", text)))
    prose = re.sub(r"\s+", " ", prose)
    for one in sorted(fixed, key=len, reverse=True):
        prose = _fixed(one).sub(" ", prose)
    found = [*_NUMBER.findall(prose), *(word[0] for word in _WORDS.finditer(prose))]
    return list(dict.fromkeys(found))


def find_lacking(text: str, study: Study, known: Sequence[Results]) -> list[str]:
    """Variants that a text waits for, each with the measure that is missing: `limi (atn)`."""
    ready = [complete(study, results) for results in known]
    found = [_lacking(place, study, ready) for place in _BRACES.findall(text)]
    return list(dict.fromkeys(name for names in found for name in names))


def _waits(place: str, study: Study, known: Sequence[Results]) -> bool:
    return bool(_lacking(place, study, known))


def _lacking(place: str, study: Study, known: Sequence[Results]) -> list[str]:
    """Variants that are named here and have no cell on some benchmark that took the measure.

    Of the scale that is named, or of the one that lacks least. A benchmark that is named is the
    only one that counts.
    """
    scale, colon, rest = place.partition(": ")
    words = re.split(r"[ ,/]|:(?! )", _OF_PAPER.sub("", rest or place))
    if words[0] in ("taken", "paper"):
        return []  # what is not there is what it counts, and the paper's numbers are
    measure = next((word for word in words if word in MEASURES), None)
    measure = "stop" if words[0] == "stops" else measure
    named = [variant.name for variant in study.variants if variant.name in words]
    lacking = [
        [
            f"{name} ({measure})"
            for name in named
            if not all(
                any(
                    outcome.status == DONE and (measure is None or measure in outcome.measures)
                    for outcome in results.of(benchmark, name)
                )
                for benchmark in _benchmarks(results, set(words))
            )
        ]
        for results in known
        if not colon or results.scale == scale
    ]
    return min(lacking, key=len, default=[f"{name} ({measure})" for name in named])


def _benchmarks(results: Results, named: set[str]) -> set[str]:
    every = {outcome.benchmark for outcome in results.outcomes.values()}
    return every & named or every


def _fixed(words: str) -> re.Pattern[str]:
    """Words that are a definition, where they are not a part of another number or word."""
    return re.compile(rf"(?<![\d.,\w]){re.escape(words)}(?![\d\w]|[.,]\d)")


# -- one place --------------------------------------------------------------------------------


def _fill(place: str, study: Study, known: Sequence[Results]) -> str | None:
    """One number in words; None where the cells do not have it."""
    scale, colon, rest = place.partition(": ")
    wanted = [r for r in known if r.scale == scale] if colon else known
    words = (rest if colon else place).split()
    if words[0] == "paper":
        return _of_the_paper(words, study)
    tell: dict[str, Callable[[list[str], Study, Results], str | None]] = {
        "count": _count,
        "where": _where,
        "pairs": _pairs,
        "stand": _stand,
        "best": _best,
        "stops": _stops,
        "span": _span,
        "least": _end,
        "most": _end,
        "clock": _clock,
        "n": _n,
        "taken": _taken,
        "runs": _runs,
        **dict.fromkeys(_RULED, _ruled),
    }
    for results in wanted:
        told = tell.get(words[0], _number)(words, study, results)
        if told is not None:
            return told
    return None


def _number(words: list[str], study: Study, results: Results) -> str | None:
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
        if over in _OVER and len(values) < len(found):
            return None  # a benchmark that has nothing to be more than is not left out
    else:
        values = {b: line[0] for b, line in found.items()}
    if not values or (over not in _OVER and over not in values):
        return None
    pick = {"low": min, "high": max, "mean": statistics.fmean, "means": statistics.fmean}
    value = pick[over](values.values()) if over in _OVER else values[over]  # type: ignore[operator]
    if ":" in variant:
        return f"{100 * value:+.0f} %" if round(100 * value) else "0 %"
    if "/" in variant:
        return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    return show(value, measure)


def _span(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) != 4 or words[1] not in MEASURES:
        return None
    _, measure, variant, benchmark = words
    values = results.numbers(benchmark, variant, measure)
    if not values:
        return None
    low, high = show(min(values), measure), show(max(values), measure)
    return low if low == high else f"{low} to {high}"


def _end(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) != 3 or words[1] not in MEASURES:
        return None
    pick, measure = min if words[0] == "least" else max, words[1]
    cells = [o for o in results.outcomes.values() if o.variant == words[2] and o.status == DONE]
    values = [float(v) for o in cells if isinstance(v := o.measures.get(measure), (int, float))]
    if not values and any(measure in o.measures for o in cells):
        return "none"
    return show(pick(values), measure) if values else None


def _clock(words: list[str], study: Study, results: Results) -> str | None:
    found = _by_benchmark(words[1:], "paper_end", results).values()
    return f"{sum(line == [1.0] for line in found)} of {len(found)}" if found else None


def _n(words: list[str], study: Study, results: Results) -> str | None:
    if words[1:] == ["benchmarks"]:
        return str(len({o.benchmark for o in results.outcomes.values()})) or None
    if len(words) in (3, 4) and words[1] == "seeds":
        done = [o for o in results.outcomes.values() if o.variant == words[2] and o.status == DONE]
        done = [o for o in done if len(words) == 3 or o.benchmark == words[3]]
        return str(len({o.seed for o in done})) if done else None
    return None


def _taken(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) not in (2, 3) or (words[1] not in MEASURES and words[1] != "curve"):
        return None
    variants = words[2].split(",") if len(words) == 3 else None
    done = [o for o in results.outcomes.values() if o.status == DONE]
    cells = [o for o in done if variants is None or o.variant in variants]
    n = sum(o.measures.get(words[1]) is not None for o in cells)
    return f"{n:,} of {len(cells):,}" if cells else None


def _runs(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) != 4 or words[1] not in MEASURES:
        return None
    _, measure, variant, benchmark = words
    values = results.numbers(benchmark, variant, measure)
    return f"{sum(value > 0 for value in values)} of {len(values)}" if values else None


def _of_the_paper(words: list[str], study: Study) -> str | None:
    if len(words) != 4:
        return None
    _, measure, variant, over = words
    table = paper_numbers(study.paper_of).get(measure, {})
    found = {b: line[variant] for b, line in table.items() if variant in line}
    if over == "mean" and found:
        return show(statistics.fmean(found.values()), measure)
    return show(found[over], measure) if over in found else None


def _stops(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) != 3:
        return None
    cells = [o for o in results.outcomes.values() if o.variant == words[1] and o.status == DONE]
    if not cells or not all("stop" in o.measures for o in cells):
        return None
    return f"{sum(o.measures['stop'] == words[2] for o in cells)} of {len(cells)}"


# -- comparisons ------------------------------------------------------------------------------


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
                and results.numbers(benchmark, variant, measure)
            }
            for variant in variants
        ]
        for benchmark in found
    }


def _ahead(first: str, sign: str, second: str, measure: str, results: Results) -> dict[str, bool]:
    """On which benchmarks the mean is on that side."""
    found = _by_benchmark([first, second], measure, results)
    return {b: a > c if sign == ">" else a < c for b, (a, c) in found.items()}


def _is_comparison(words: Sequence[str]) -> bool:
    return len(words) == 4 and words[2] in ("<", ">") and words[0] in MEASURES


def _count(words: list[str], study: Study, results: Results) -> str | None:
    if not _is_comparison(words[1:]):
        return None
    _, measure, first, sign, second = words
    found = _ahead(first, sign, second, measure, results)
    return f"{sum(found.values())} of {len(found)}" if found else None


def _pairs(words: list[str], study: Study, results: Results) -> str | None:
    if not _is_comparison(words[1:]):
        return None
    _, measure, first, sign, second = words
    found = [
        (one[seed], two[seed])
        for one, two in _by_seed([first, second], measure, results).values()
        for seed in one.keys() & two.keys()
    ]
    held = sum((a > b) if sign == ">" else (a < b) for a, b in found)
    return f"{held} of {len(found)}" if found else None


_RULED = ("held", "lost", "open")


def _rule(words: Sequence[str], results: Results) -> dict[str, str] | None:
    """By benchmark whether a variant is on that side of all others: held, lost or open."""
    if not _is_comparison(words):
        return None
    measure, first, sign, seconds = words
    ahead, behind = (ABOVE, BELOW) if sign == ">" else (BELOW, ABOVE)
    stands = [stand(results, measure, first, second) for second in seconds.split(",")]
    benchmarks = dict.fromkeys(o.benchmark for o in results.outcomes.values())
    if any(benchmark not in one for one in stands for benchmark in benchmarks):
        return None  # a rival without a number is not left out
    by_rule = {ahead: "held", behind: "lost", OPEN: "open"}
    return {b: stand_before_all(by_rule[one[b]] for one in stands) for b in benchmarks}


def _ruled(words: list[str], study: Study, results: Results) -> str | None:
    found = _rule(words[1:], results)
    if found is None:
        return None
    return f"{sum(told == words[0] for told in found.values())} of {len(found)}"


def _where(words: list[str], study: Study, results: Results) -> str | None:
    """The benchmarks where something holds, by means or by the rule."""
    if len(words) > 1 and words[1] in _RULED:
        found = _rule(words[2:], results)
        chosen = None if found is None else [b for b, told in found.items() if told == words[1]]
    elif _is_comparison(words[1:]):
        _, measure, first, sign, second = words
        ahead = _ahead(first, sign, second, measure, results)
        chosen = [b for b, is_so in ahead.items() if is_so] if ahead else None
    else:
        return None
    if chosen is None:
        return None
    return ", ".join(f"`{b}`" for b in chosen) or "none of them"


def _stand(words: list[str], study: Study, results: Results) -> str | None:
    if len(words) != 4 or words[1] not in MEASURES:
        return None
    found = stand(results, *words[1:])
    return tell_stand(found) if found else None


def _best(words: list[str], study: Study, results: Results) -> str | None:
    """Which of some variants has the best mean, on how many benchmarks, or over all of them."""
    over_all = words[-1] == "mean"
    if len(words) != 3 + over_all or words[1] not in MEASURES:
        return None
    measure, variants = words[1], words[2].split(",")
    found = _by_benchmark(variants, measure, results)
    if len(found) < len({o.benchmark for o in results.outcomes.values()}) or not found:
        return None
    sign = MEASURES[measure].sign
    of = {name: study.variant(name).of or name for name in variants}  # the text says with what
    labels = {name: study.variant(of[name]).label for name in variants}
    if over_all:
        found = {"all": [statistics.fmean(column) for column in zip(*found.values(), strict=True)]}
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


# -- what words rest on -----------------------------------------------------------------------


def _is_supported(text: str, study: Study, known: Sequence[Results]) -> bool:
    """Is a sentence true of the largest scale that has its numbers, or of the one it names?"""
    scale, colon, rest = text.partition(": ")
    for results in known:
        if not colon or results.scale == scale:
            told = _support((rest if colon else text).split(), study, results)
            if told is not None:
                return told
    return False


def _support(words: list[str], study: Study, results: Results) -> bool | None:
    """Is it true of these results? None where they do not have the numbers."""
    comparison, how = words[:4], words[4:]
    if not _is_comparison(comparison) or not how:
        return None
    measure, first, sign, seconds = comparison
    rivals = [(first, second) for second in seconds.split(",")]
    if how[0] in _RULED:
        told = [_tell(measure, sign, sides, study, results) for sides in rivals]
        found = [{b: word == how[0] for b, word in one.items()} for one in told]
        if how[0] == "held" and how[1:2] != ["at"]:  # ahead of all of them at once
            common = set.intersection(*map(set, found))
            found = [{b: all(one[b] for one in found) for b in found[0] if b in common}]
        return _all_or_none(_is_so(one, how[1:], results) for one in found)
    lines = [_by_side(measure, sides, study, results) for sides in rivals]
    if how[0] == "mean":
        return _all_or_none(_is_by_mean(line, sign, how[1:], results) for line in lines)
    ahead = [{b: a > c if sign == ">" else a < c for b, (a, c) in line.items()} for line in lines]
    how = how[1:] if how[0] == "count" else how if how[0] == "on" else []
    return _all_or_none(_is_so(one, how, results) for one in ahead)


def _is_by_mean(
    line: Mapping[str, list[float]], sign: str, how: Sequence[str], results: Results
) -> bool | None:
    """Is the mean over all benchmarks, or over those named, on that side? None if some lack it."""
    if how and (how[0] != "on" or len(how) != 2):
        return None
    named = how[1].split(",") if how else sorted(_benchmarks(results, set()))
    if not named or any(benchmark not in line for benchmark in named):
        return None
    gap = sum(line[benchmark][0] - line[benchmark][1] for benchmark in named)
    return gap > 0 if sign == ">" else gap < 0


def _is_so(found: Mapping[str, bool], how: Sequence[str], results: Results) -> bool | None:
    """Is it so on as many benchmarks as wanted, or on those wanted? None if some are missing."""
    if how[:1] == ["on"] and len(how) == 2:
        named = how[1].split(",")
        return all(found[b] for b in named) if all(b in found for b in named) else None
    if not found or len(found) < len({o.benchmark for o in results.outcomes.values()}):
        return None  # a benchmark without a number is not left out
    if how == ["all"]:
        return all(found.values())
    if not how or not how[-1].isdigit():
        return None
    n, wanted = sum(found.values()), int(how[-1])
    return n <= wanted if how[:-1] == ["at", "most"] else n >= wanted if len(how) == 1 else None


def _all_or_none(told: Iterable[bool | None]) -> bool | None:
    known = list(told)
    return None if None in known else all(known)


def _by_side(
    measure: str, sides: Sequence[str], study: Study, results: Results
) -> dict[str, list[float]]:
    """Both sides of a comparison, by means, on each benchmark that has all their numbers."""
    parts = [part for side in sides for part in side.split("/")]
    variants = [part for part in parts if not _is_constant(part)]
    lines = {}
    for benchmark, means in _by_benchmark(variants, measure, results).items():
        value = dict(zip(variants, means, strict=True))
        fixed = {p: _constant(p, measure, benchmark, study) for p in parts if _is_constant(p)}
        value |= {part: number for part, number in fixed.items() if number is not None}
        ratios = [[value.get(part) for part in side.split("/")] for side in sides]
        known = [[n for n in ratio if n is not None] for ratio in ratios]
        if known == ratios and all(0 not in ratio[1:] for ratio in known):
            lines[benchmark] = [functools.reduce(operator.truediv, ratio) for ratio in known]
    return lines


def _tell(
    measure: str, sign: str, sides: tuple[str, str], study: Study, results: Results
) -> dict[str, str]:
    """By benchmark whether the first side is ahead of the second by the rule: held, lost, open."""
    first, second = sides
    if _is_constant(second):
        found = {}
        for benchmark in dict.fromkeys(o.benchmark for o in results.outcomes.values()):
            mine = results.numbers(benchmark, first, measure)
            theirs = _constant(second, measure, benchmark, study)
            if len(mine) > 1 and theirs is not None:
                found[benchmark] = compare((value, theirs) for value in mine)
    else:
        words = {ABOVE: "held", BELOW: "lost", OPEN: "open"}
        found = {b: words[told] for b, told in stand(results, measure, first, second).items()}
    turned = {"held": "lost", "lost": "held", "open": "open"}
    return found if sign == ">" else {b: turned[told] for b, told in found.items()}


def _is_constant(part: str) -> bool:
    return part.startswith("paper:") or _NUMBER.fullmatch(part) is not None


def _constant(part: str, measure: str, benchmark: str, study: Study) -> float | None:
    """A number, or the paper's: that of a benchmark, or the only one there is."""
    if not part.startswith("paper:"):
        return float(part)
    table = paper_numbers(study.paper_of).get(measure, {})
    line = next(iter(table.values())) if len(table) == 1 else table.get(benchmark, {})
    return line.get(part.partition(":")[2])
