"""Tables of a study: ours, the spread over seeds, the paper's numbers, the ratio, and footnotes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lab.claims import average_ratios
from lab.conditions import are_comparable
from lab.derived import AT_ROWS, complete
from lab.files import Claim, Combined, Study, TableSpec, paper_numbers
from lab.formats import StudyTable
from lab.measures import (
    MEASURES,
    SPEEDS,
    found_too_few,
    needs,
    show,
    show_apart,
)
from lab.results import DONE, NOT_MEASURED, NOT_RUN, Outcome, Results
from lab.rule import compare, stand_before_all
from limi.metrics._enough import FEWEST_TO_JUDGE

__all__ = ["Ratios", "Tried", "claims", "combine", "matrix", "tables", "take_cells"]


_FEW_PEOPLE = (
    f"*So many people flip*: likeness needs at least {FEWEST_TO_JUDGE} of the table's own people "
    "who flip."
)
_FEW_FOUND = (
    "Not shown where a seed found fewer than the measure needs: the mean of the other seeds would "
    "be another number. No mean over benchmarks is shown with it."
)
MEAN = "mean"
_APART = " †"
_NOT_COMPARED = "† Of a GPU or another machine, or does not say: not compared with the others."
_OF_THE_PAPER = ("paper_end", "paper_seconds")  # measures of its runs, not of ours


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Every table of a study with all its cells."""
    results = complete(study, results)
    specs = [spec for spec in study.tables if any(take_cells(results, m) for m in spec.measures)]
    drawn = [_table(study, spec, results) for spec in specs or study.tables]
    return [table for table in drawn if table.rows] or drawn[:1]


def take_cells(results: Results, measure: str) -> bool:
    """Has any cell this measure? Some are taken at one scale alone."""
    return any(outcome.measures.get(measure) is not None for outcome in results.outcomes.values())


def _table(study: Study, spec: TableSpec, results: Results) -> StudyTable:
    paper = paper_numbers(study.name)
    n_seeds = len({outcome.seed for outcome in results.outcomes.values()})
    # A column that no cell has is left out; where none has any, the planned table is shown.
    taken = [name for name in spec.measures if take_cells(results, name)] or spec.measures
    columns = [c for name in taken for c in _columns(name, n_seeds, name in paper)]
    notes = _Notes()
    if n_seeds > 1:
        notes.add(_say_seeds(results, n_seeds))
    rows = []
    for benchmark in _benchmarks(study, results, paper):
        for variant in _variants(study, results):
            if spec.variants and variant not in spec.variants:
                continue
            place = _Place(results, benchmark, variant, notes)
            given = {
                m: _published(study, results, paper.get(m, {}), benchmark, variant) for m in taken
            }
            cells = [place.cell(kind, m, given[m]) for kind, m in columns]
            rows.append((benchmark, study.variant(variant).label, *cells))
    named = {"spread": "min to max", "paper": "paper", "ratio": "ratio"}
    headings = [named.get(kind, MEASURES[measure].label) for kind, measure in columns]
    first = ("benchmark", "method" if _by_method(study) else "variant")
    return StudyTable(spec.title, (*first, *headings), tuple(rows), tuple(notes.said))


def _say_seeds(results: Results, n_seeds: int) -> str:
    """How many seeds the means are of; some cells may have fewer than others."""
    done = Counter((o.benchmark, o.variant) for o in results.outcomes.values() if o.status == DONE)
    fewest = min(done.values(), default=n_seeds)
    if fewest == n_seeds:
        return f"Means over {n_seeds} seeds; the spread is the smallest and the largest."
    said = f"Means over {fewest} to {n_seeds} seeds; the spread is the smallest and the largest"
    return said + ("; a cell without a spread has one seed." if fewest == 1 else ".")


def _columns(measure: str, n_seeds: int, has_paper: bool) -> list[tuple[str, str]]:
    """What is shown of a measure; a spread needs seeds, a ratio the paper's number."""
    has_spread = n_seeds > 1 and MEASURES[measure].by_seed
    kinds = ["ours", *(["spread"] if has_spread else []), *(["paper", "ratio"] * has_paper)]
    return [(kind, measure) for kind in kinds]


def matrix(study: Study, measure: str, results: Results, among: Collection[str] = ()) -> StudyTable:
    """One measure with a row a benchmark and a column a variant: ours, and (the paper's).

    Of all variants, or `among` some.
    """
    results = complete(study, results)
    paper = paper_numbers(study.name).get(measure, {})
    printed = {variant for values in paper.values() for variant in values}
    published = {v.name for v in study.variants if (v.of or v.name) in printed}
    variants = [
        v
        for v in _variants(study, results)
        if (v in among or not among) and (v in published or _has(results, v, measure))
    ]
    rows = []
    for benchmark in _benchmarks(study, results, {measure: paper}):
        row = [benchmark]
        values = {v: _mean(results, benchmark, v, measure) for v in variants}
        apart = {v for v in variants if _is_apart(results, benchmark, v, measure)}
        best = _best({v: values[v] for v in variants if v not in apart}, measure)
        for variant in variants:
            value = values[variant]
            given = _published(study, results, paper, benchmark, variant)
            shown = (
                show(value, measure)
                if value is not None
                else _why_not(results, benchmark, variant, measure)
            )
            mark = "*" if variant == best else ""
            mark += _interval(results, benchmark, variant, measure) + _APART * (variant in apart)
            beside = f" ({show(given, measure)})" if given is not None else ""
            row.append(f"{shown}{mark}{beside}")
        rows.append(tuple(row))
    beside_ours = " (the paper's)" if paper else ""
    title = MEASURES[measure].label
    title += "" if measure in _OF_THE_PAPER else f": ours{beside_ours}"
    if MEASURES[measure].more_is_better is not None:
        title += "; * is the best mean of ours"
    if f"{measure}_low" in MEASURES:
        title += "; in square brackets the interval where a sample of findings was judged"
    labels = [study.variant(v).label for v in variants]
    cells = [cell for row in rows for cell in row]
    notes = [_NOT_COMPARED] if any(_APART in cell for cell in cells) else []
    places = [(b, v) for b in _run_of(results) for v in variants]
    few = [_few_people(results.of(*place), measure) for place in places]
    notes += [_FEW_PEOPLE] if any(n is not None for n in few) else []
    notes += [_FEW_FOUND] if any(_few_of_some(results, *p, measure) for p in places) else []
    notes += filter(None, [_tell_fewer_seeds(study, results, variants, measure)])
    notes += filter(None, [_tell_no_interval(study, results, variants, measure)])
    return StudyTable(title, ("benchmark", *labels), tuple(rows), tuple(notes), n_names=1)


def _tell_no_interval(study: Study, results: Results, variants: Iterable[str], measure: str) -> str:
    """Variants of a sampled measure whose interval some seeds lack."""
    if f"{measure}_low" not in MEASURES:
        return ""
    lacking = [
        study.variant(variant).label
        for variant in variants
        for benchmark in _run_of(results)
        if _mean(results, benchmark, variant, measure) is not None
        and _take_interval(results, benchmark, variant, measure) is None
    ]
    names = ", ".join(dict.fromkeys(lacking))
    return f"No interval is shown where some seeds have none: {names}." if names else ""


def _tell_fewer_seeds(study: Study, results: Results, variants: Iterable[str], measure: str) -> str:
    """Variants of which some seeds lack a measure that others have, though they found enough."""
    fewer: dict[str, list[str]] = {}
    for variant in variants:
        counts = []
        for benchmark in _run_of(results):
            done = _done(results, benchmark, variant)
            if done and not any(found_too_few(measure, o.measures) for o in done):
                counts.append((sum(o.measures.get(measure) is not None for o in done), len(done)))
        fewest = min((n for n, _ in counts), default=0)
        if any(n for n, _ in counts) and any(n < of for n, of in counts):
            label = f'"{study.variant(variant).label}"'  # which may hold a comma
            fewer.setdefault(f"{fewest} of {max(of for _, of in counts)}", []).append(label)
    parts = [f"{n} seeds of {', '.join(names)}" for n, names in fewer.items()]
    told = f"On at least one benchmark this was measured in only {'; '.join(parts)}."
    return told if parts else ""


def _is_apart(results: Results, benchmark: str, variant: str, measure: str) -> bool:
    """Is this a speed of cells that are not of the machine of the others, or do not say where?"""
    if measure not in SPEEDS:
        return False
    inner = _run_of(results) if benchmark.startswith(MEAN) else [benchmark]
    outcomes = [one for b in inner for one in results.of(b, variant) if one.status == DONE]
    there = {str(one.given.get("machine", "")) for one in outcomes}
    return not are_comparable(outcomes) or bool(there - {_usual_machine(results)})


def _usual_machine(results: Results) -> str:
    """The machine that most cells name; none where they do not say."""
    done = [o for o in results.outcomes.values() if o.status == DONE and "machine" in o.given]
    named = Counter(str(one.given["machine"]) for one in done if are_comparable([one]))
    return named.most_common(1)[0][0] if named else ""


def _interval(results: Results, benchmark: str, variant: str, measure: str) -> str:
    """The interval of a measure that was taken of a sample, if it is one."""
    ends = _take_interval(results, benchmark, variant, measure)
    if ends is None or ends[0] == ends[1]:  # every finding was judged
        return ""
    shown = dict.fromkeys(show(end, measure) for end in ends)
    return f" [{' to '.join(shown)}]"


def _take_interval(
    results: Results, benchmark: str, variant: str, measure: str
) -> tuple[float, float] | None:
    """The ends of the interval of a measure; None where some seeds do not have them."""
    ends = [f"{measure}_{end}" for end in ("low", "high")]
    if not all(end in MEASURES for end in ends):
        return None
    inner = _run_of(results) if benchmark.startswith(MEAN) else [benchmark]
    for place in inner:  # an interval of some seeds need not hold the mean of all
        counts = {len(results.numbers(place, variant, name)) for name in (measure, *ends)}
        if len(counts) > 1:
            return None
    low, high = (_mean(results, benchmark, variant, end) for end in ends)
    return None if low is None or high is None else (low, high)


@dataclass(frozen=True)
class Tried:
    """A claim of a study, and on which benchmarks it holds."""

    claim: Claim
    held: int
    against: tuple[str, ...]  # where it does not, with the numbers
    open: tuple[str, ...]  # where the seeds' ranges meet
    missing: tuple[str, ...]  # rivals without a number, by benchmark
    alone: int = 0  # where one seed alone says that it holds, which decides nothing
    why: str = ""  # it was not tried

    @property
    def n(self) -> int:
        """Benchmarks that have the numbers."""
        return self.held + self.alone + len(self.against) + len(self.open)


def claims(study: Study, results: Results) -> list[Tried]:
    """Each claim with the benchmarks where it holds beyond the spread of the seeds, and others."""
    results = complete(study, results)
    told = []
    for claim in study.claims:
        both = [claim, *_with_the_paper_s_generator(study, results, claim)]
        # Where the claim's variant was run with one generator alone, the other has no reading.
        run = [one for one in both if _was_run(results, one.first)]
        told += [_try(one, study, results) for one in run or both[:1]]
    return told


def _was_run(results: Results, variant: str) -> bool:
    return any(outcome.variant == variant for outcome in results.outcomes.values())


def _with_the_paper_s_generator(study: Study, results: Results, claim: Claim) -> list[Claim]:
    """The same claim of the same variants with CTGAN, where they were run with it."""
    if claim.measure in ("per_second", "per_second_all"):
        return []  # those searches may have had a GPU, which no rival has
    first = study.beside(claim.first)
    if not _was_run(results, first):
        return []
    over = tuple(study.beside(name) or name for name in claim.over)
    return [replace(claim, says=f"{claim.says} (CTGAN)", first=first, over=over)]


def _try(claim: Claim, study: Study, results: Results) -> Tried:
    if claim.measure in SPEEDS and not _has_one_machine(claim, study, results):
        return Tried(claim, 0, (), (), (), why="the cells do not all name one machine")
    held, alone, against, undecided, missing = 0, 0, [], [], []
    sign = MEASURES[claim.measure].sign
    for benchmark in _run_benchmarks(study, results):
        mine = results.numbers(benchmark, claim.first, claim.measure)
        others = {name: _rival(results, benchmark, claim, name) for name in claim.over}
        lacking = [name for name, values in others.items() if not values]
        if not mine or lacking:
            missing.append(f"{benchmark}: {', '.join(lacking) or claim.first}")
            continue
        means = {name: sign * statistics.fmean(values) for name, values in others.items()}
        mean = sign * statistics.fmean(mine)
        stands = {
            name: compare((sign * a, sign * b) for a in mine for b in values)
            for name, values in others.items()
        }
        ahead = [name for name, verdict in stands.items() if verdict == "lost"]
        rival = max(ahead or means, key=lambda name: means[name])
        told = stand_before_all(stands.values())
        shown = " against ".join(show_apart(sign * means[rival], sign * mean, claim.measure))
        more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
        if told == "lost":
            against.append(f"{benchmark}: {rival} {shown}{more}")
        elif told == "open":
            undecided.append(f"{benchmark}: {rival} {shown}")
        elif min(map(len, (mine, *others.values()))) < 2:
            alone += 1
        else:
            held += 1
    return Tried(claim, held, tuple(against), tuple(undecided), tuple(missing), alone)


def _has_one_machine(claim: Claim, study: Study, results: Results) -> bool:
    return are_comparable(
        outcome
        for benchmark in _run_benchmarks(study, results)
        for name in (claim.first, *claim.over)
        for outcome in results.of(benchmark, name)
        if outcome.status == DONE
    )


@dataclass(frozen=True)
class Ratios:
    """A ratio by pair of variants, of pairs that have it on every benchmark."""

    combined: Combined
    by_pair: Mapping[str, float]
    missing: tuple[str, ...]  # pairs without it, by benchmark

    @property
    def mean(self) -> float | None:
        """Over all pairs and benchmarks, where none is missing."""
        return None if self.missing else statistics.fmean(self.by_pair.values())


def combine(study: Study, results: Results) -> list[Ratios]:
    """Each ratio that any cell bears on, of the pairs that the scale has."""
    told = []
    benchmarks = list(_run_benchmarks(study, results))
    planned = study.planner.scale(results.scale).variants
    for one in study.combined:
        by_pair: dict[str, float] = {}
        missing = []
        pairs = [pair for pair in one.pairs if set(pair) <= set(planned)]
        if not any(_was_run(results, name) for pair in pairs for name in pair):
            continue
        for first, second in pairs:
            name = f"{first} to {second}"
            found = {b: _ratio_by_seed(results, b, first, second, one.measure) for b in benchmarks}
            known = [ratio for ratio in found.values() if ratio is not None]
            if len(known) == len(found):
                by_pair[name] = statistics.fmean(known)
            missing += [f"{b}: {name}" for b, ratio in found.items() if ratio is None]
        told.append(Ratios(one, by_pair, tuple(missing)))
    return told


def _ratio_by_seed(
    results: Results, benchmark: str, first: str, second: str, measure: str
) -> float | None:
    """The mean ratio of the seeds that both were run with; None if one of them has no number, or
    nothing to be more than."""
    mine, other = (
        {o.seed: o.measures.get(measure) for o in _done(results, benchmark, name)}
        for name in (first, second)
    )
    lines = [(mine[seed], other[seed]) for seed in mine if seed in other]
    known = [(a, b) for a, b in lines if a is not None and b is not None]
    return average_ratios(known) if lines and len(known) == len(lines) else None


# -- numbers ------------------------------------------------------------------------------


class _Notes:
    """Footnotes, each said once."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def add(self, text: str) -> None:
        if text not in self.said:
            self.said.append(text)


@dataclass(frozen=True)
class _Place:
    """A row of a table."""

    results: Results
    benchmark: str
    variant: str
    notes: _Notes

    def cell(self, kind: str, measure: str, given: float | None) -> str:
        """One cell of the row."""
        mean = _mean(self.results, self.benchmark, self.variant, measure)
        if kind == "ours" and mean is None:
            if _few_of_some(self.results, self.benchmark, self.variant, measure):
                self.notes.add(_FEW_FOUND)
            return _why_not(self.results, self.benchmark, self.variant, measure, self.notes)
        if kind == "ours" and mean is not None:
            apart = _is_apart(self.results, self.benchmark, self.variant, measure)
            if apart:
                self.notes.add(_NOT_COMPARED)
            return show(mean, measure) + _APART * apart
        if kind == "spread":
            return _spread(self.results, self.benchmark, self.variant, measure)
        if kind == "paper":
            return "" if given is None else show(given, measure)
        return _ratio(mean / given if mean is not None and given else None)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.2f}" if ratio < 100 else f"{ratio:,.0f}"


def _mean(results: Results, benchmark: str, variant: str, measure: str) -> float | None:
    """The mean over seeds; of a mean row, over the benchmarks, where none is missing."""
    if benchmark.startswith(MEAN):
        table = benchmark.removeprefix(MEAN).removeprefix(" of ")
        inner = [b for b in _run_of(results) if not table or b.partition("-")[0] == table]
        values = [_mean(results, b, variant, measure) for b in inner]
        known = [value for value in values if value is not None]
        return statistics.fmean(known) if known and len(known) == len(values) else None
    found = results.numbers(benchmark, variant, measure)
    return statistics.fmean(found) if found else None


def _done(results: Results, benchmark: str, variant: str) -> list[Outcome]:
    return [outcome for outcome in results.of(benchmark, variant) if outcome.status == DONE]


def _few_of_some(results: Results, benchmark: str, variant: str, measure: str) -> bool:
    """Did some seeds find too few for a measure that others have?"""
    done = _done(results, benchmark, variant)
    known = any(o.measures.get(measure) is not None for o in done)
    return known and any(found_too_few(measure, o.measures) for o in done)


def _rival(results: Results, benchmark: str, claim: Claim, name: str) -> list[float]:
    """What a claim compares with: another variant, or the table's own rows that flip."""
    if name == "real":
        return results.numbers(benchmark, claim.first, "real_atn")
    return results.numbers(benchmark, name, claim.measure)


def _spread(results: Results, benchmark: str, variant: str, measure: str) -> str:
    found = results.numbers(benchmark, variant, measure)
    if len(found) < 2 or _mean(results, benchmark, variant, measure) is None:
        return ""
    low, high = show(min(found), measure), show(max(found), measure)
    return low if low == high else f"{low} to {high}"


def _published(
    study: Study,
    results: Results,
    numbers: dict[str, dict[str, float]],
    benchmark: str,
    variant: str,
) -> float | None:
    """The paper's number of a cell; of a mean that it does not print, the mean of its column."""
    name = study.variant(variant).of or variant
    if benchmark == MEAN and MEAN not in numbers:
        column = [numbers.get(b, {}).get(name) for b in _run_benchmarks(study, results)]
        known = [value for value in column if value is not None]
        return statistics.fmean(known) if known and len(known) == len(column) else None
    return numbers.get(benchmark, {}).get(name)


def _why_not(
    results: Results, benchmark: str, variant: str, measure: str, notes: _Notes | None = None
) -> str:
    """Why a cell has no number, in a word; the sentence becomes a footnote."""
    if benchmark.startswith(MEAN):
        return "-"
    outcomes = results.of(benchmark, variant)
    if not outcomes:
        return NOT_RUN
    told: Outcome | None = next((o for o in outcomes if o.status != DONE), None)
    if told is None and measure in AT_ROWS and any(measure in o.measures for o in outcomes):
        return "fewer rows"
    if told is None and measure in ("paper_rows", "paper_speed"):
        return "never found as many"
    if told is None:
        return _say_what_lacks(outcomes, measure, notes)
    if notes is not None and told.why:
        where = (
            benchmark.partition("-")[0] if told.status == "absent" else f"{benchmark}, {variant}"
        )
        notes.add(f"{told.status}: {where}: {told.why}")
    return told.status


def _say_what_lacks(outcomes: Sequence[Outcome], measure: str, notes: _Notes | None) -> str:
    """Why cells that are done have no number: too few findings, or too few people who flip."""
    if (people := _few_people(outcomes, measure)) is not None:
        if notes is not None:
            notes.add(_FEW_PEOPLE)
        return "1 person flips" if people == 1 else f"{people} people flip"
    lacking = [o.measures for o in outcomes if found_too_few(measure, o.measures)]
    if not lacking:
        return NOT_MEASURED
    fewest = max(needs(measure, measures) for measures in lacking)
    return f"under {fewest:,} found" if fewest > 1 else "none found"


def _few_people(outcomes: Sequence[Outcome], measure: str) -> int | None:
    """How many of the table's own people flip, where they are too few for a likeness to them."""
    known = [o.measures["likeness_n"] for o in outcomes if "likeness_n" in o.measures]
    if measure not in ("likeness", "real_likeness") or not known:
        return None
    return max(known) if max(known) < FEWEST_TO_JUDGE else None


def _best(values: dict[str, float | None], measure: str) -> str | None:
    better = MEASURES[measure].more_is_better
    known = {name: value for name, value in values.items() if value is not None}
    if better is None or len(known) < 2:
        return None
    return max(known, key=lambda name: known[name] if better else -known[name])


def _benchmarks(
    study: Study, results: Results, paper: dict[str, dict[str, dict[str, float]]]
) -> list[str]:
    """The benchmarks to show, and the means that make sense of them."""
    shown = list(_run_benchmarks(study, results))
    # Doses of a bias have no mean worth showing.
    means = [MEAN] if len(shown) > 1 and study.kind != "images" else []
    means += [key for m in paper.values() for key in m if key.startswith(f"{MEAN} of ")]
    return [*shown, *dict.fromkeys(means)]


def _run_benchmarks(study: Study, results: Results) -> Iterable[str]:
    size = study.scale(results.scale) if not study.uses else None
    planned = size.benchmarks if size else ()
    found = _run_of(results)
    return list(dict.fromkeys([*planned, *found])) if planned else found


def _run_of(results: Results) -> list[str]:
    return results.benchmarks


def _variants(study: Study, results: Results) -> list[str]:
    found = {outcome.variant for outcome in results.outcomes.values()}
    planned = study.scale(results.scale).variants if not study.uses else tuple(found)
    pairs = [{v.name, study.beside(v.name)} for v in study.variants if study.beside(v.name)]
    # What was run with one generator alone has no column of "not run" for the other.
    spare = {name for pair in pairs for name in pair if pair & found} - found
    shown = (found | set(planned)) - spare
    return [v.name for v in study.variants if v.name in shown]


def _has(results: Results, variant: str, measure: str) -> bool:
    outcomes = results.outcomes.values()
    return any(
        o.variant == variant and (measure in o.measures or o.status != DONE) for o in outcomes
    )


def _by_method(study: Study) -> bool:
    return all(variant.name == variant.method for variant in study.variants)
