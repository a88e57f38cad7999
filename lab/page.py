"""The pages Reproduction: an overview of what holds, pages behind it, and a page per study."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lab.cells import expand
from lab.claims import list_claims
from lab.conditions import briefly
from lab.derived import Speeds, complete, read_speeds
from lab.files import SCALES, Study, load, load_overview, names, shipped_results
from lab.formats import note, render
from lab.outdated import OLDER, find_older, find_outdated, take_marks
from lab.prose import check_text, fill_in
from lab.results import DONE, Results, read
from lab.rule import draw_stands
from lab.tables import Ratios, Tried, claims, combine, matrix, tables, take_cells
from lab.verdicts import NO_VERDICT, VERDICTS, Judged, classify, judge
from limi.errors import InvalidInput

__all__ = ["check_pages", "figures", "pages"]

_Kept = Sequence[tuple[Study, list[Results]]]
"""Every study with its results, the largest scale first."""


def pages(folder: Path, stem: str = "reproduction") -> dict[str, str]:
    """The overview, the pages behind it and a page for each study, by path; the same text for the
    same results.

    InvalidInput where the folder holds results of no study at all.
    """
    studies = _keep_all(folder)
    reasons = _find_outdated(studies)
    told = {f"{stem}/{s.name}.md": _study(s, kept, stem, reasons) for s, kept in studies}
    return {
        f"{stem}.md": _overview(studies, stem, reasons),
        f"{stem}/claims.md": _claims_page(studies, stem),
        f"{stem}/conditions.md": _conditions_page(studies, stem),
        **told,
    }


def _keep_all(folder: Path) -> list[tuple[Study, list[Results]]]:
    """Every study with what is kept of it; InvalidInput where nothing is."""
    speeds = _speeds(folder)
    studies = [(study, _keep(study, folder, speeds)) for study in map(load, names())]
    if not any(kept for _, kept in studies):
        raise InvalidInput(
            f"there are no kept results in {str(folder)!r}; "
            f"keep some: python -m lab run all --scale small --keep {shlex.quote(str(folder))}"
        )
    return studies


_Reasons = Mapping[tuple[str, str], Mapping[str, str]]
"""Why cells would be run again today, by study and scale."""


def _find_outdated(studies: _Kept) -> _Reasons:
    cells = [
        (results, expand(study, results.scale))
        for study, kept in studies
        if not study.uses
        for results in kept
    ]
    marks = take_marks(cells)
    return {(r.study, r.scale): find_outdated(r, planned, marks) for r, planned in cells}


def _count_outdated(studies: _Kept, reasons: _Reasons) -> str:
    """How many of the cells that pages show are of an earlier version, in a sentence."""
    shown = sum(
        _progress(study, results)[0]
        for study, kept in studies
        if not study.uses
        for results in kept
    )
    every = [why for one in reasons.values() for why in one.values()]
    if not every:
        return ""
    same = sum(why.startswith("settings and target as today's") for why in every)
    settings = sum(why.startswith("settings as today's") for why in every)
    parts = (
        (same, "with today's settings and targets"),
        (settings, "with today's settings (it is not known whether with today's targets)"),
        (len(every) - same - settings, "by an earlier revision, with other settings or targets"),
    )
    told = [words if n == len(every) else f"{n:,} {words}" for n, words in parts if n]
    where = list(dict.fromkeys(name for (name, _), why in reasons.items() if why))
    return (
        f"{len(every):,} of the {shown:,} cells shown were made by earlier versions of limi, "
        f"{', '.join(told)}: {', '.join(f'[{one}](reproduction/{one}.md)' for one in where)}."
    )


def _speeds(folder: Path) -> Speeds:
    """Those of row-by-row programs in the folder, or else those that come with limi."""
    found = read_speeds(folder)
    return (read_speeds(shipped_results()) or {}) if found is None else found


# -- the overview, and what stands behind it -------------------------------------------------


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)


def _render(template: str, stem: str, **given: Any) -> str:
    return _TEMPLATES.get_template(f"{template}.md.j2").render(stem=stem, **given)


def _overview(studies: _Kept, stem: str, reasons: _Reasons) -> str:
    """Two screens: what holds, by which rule, and what a user should conclude."""
    words = load_overview()
    every = _judge(studies, ours=False)
    judged = [one for one in every if not one.claim.minor]
    return _render(
        "overview",
        stem,
        words=words,
        tally=_tally(every),
        table=_holds(judged, f"{stem}/", with_paper=True, brief=True),
        outdated=_count_outdated(studies, reasons),
        older=_list_older(judged, studies),
        conclusions=[_fill({**one, "also": ()}, studies) for one in words["conclusions"]],
    ).replace("](reproduction/", f"]({stem}/")


def _tally(judged: Sequence[Judged]) -> str:
    """How often each verdict was reached, whether or not the overview shows the claim."""
    counts = Counter(classify(one.holds) for one in judged if not one.claim.again)
    without = counts.pop(NO_VERDICT, 0)
    told = ", ".join(f"*{kind}* {counts[kind]}" for kind in VERDICTS if counts[kind])
    return (
        f"{counts.total()} claims of the paper are judged against numbers"
        f"{f', {without} more cannot be' if without else ''}. Verdicts, by the rule below: {told}. "
        "The main claims:\n"
    )


def _list_older(judged: Sequence[Judged], studies: _Kept) -> list[str]:
    """What the mark beside some numbers means, where it stands."""
    marked = {one.claim.study for one in judged if any(OLDER in told for told in one.brief)}
    said = [
        says
        for study, kept in studies
        if study.name in marked
        for results in kept
        for says in find_older(study, results)
    ]
    return list(dict.fromkeys(said))


def _claims_page(studies: _Kept, stem: str) -> str:
    """Every claim with its spread, the rule in full, and what was not reproduced."""
    words = load_overview()
    kept = {study.name: known for study, known in studies}
    judged, ours = _judge(studies, ours=False), _judge(studies, ours=True)
    noted = [one.claim for one in [*judged, *ours] if one.claim.note]
    return _render(
        "claims",
        stem,
        words=words,
        papers=_holds(judged, "", with_paper=True),
        ours=_holds(ours, "", with_paper=False),
        older=_list_older([*judged, *ours], studies),
        conclusions=[_fill(one, studies) for one in words["conclusions"]],
        notes=[(c.says, fill_in(c.note, load(c.study), kept[c.study])) for c in noted],
        not_reproduced=_fill_all(words["not_reproduced"], studies),
    ).replace("](reproduction/", "](")


def _conditions_page(studies: _Kept, stem: str) -> str:
    """What all pages share, a list of them, and which lack natural findings per query."""
    listed: list[tuple[Any, ...]] = []
    for study, kept in studies:
        listed += [(study, r.scale, *_progress(study, r)) for r in kept] or [(study, "", 0, 0)]
    lacking = [
        study
        for study, kept in studies
        if study.kind == "search" and kept and not study.uses
        if not any(take_cells(results, "plausible") for results in kept)
    ]
    (words,) = _fill_all(load_overview()["conditions"], studies)
    return _render("conditions", stem, conditions=words, listed=listed, lacking=lacking)


def _judge(studies: _Kept, *, ours: bool) -> list[Judged]:
    kept = {study.name: known for study, known in studies}
    return [judge(claim, kept[claim.study]) for claim in list_claims() if claim.ours == ours]


def check_pages(folder: Path) -> list[str]:
    """What the pages say that does not follow from the kept cells."""
    kept = {study.name: (study, known) for study, known in _keep_all(folder) if known}
    wrong = []
    for study, known in kept.values():
        words = (study.remarks, *study.notes, *(one.says for one in study.older))
        wrong += check_text(study.name, words, study, known, study.supports)
    overview = load_overview()
    told = [
        *((name, one) for name, one in overview.items() if name != "conclusions"),
        *((f"conclusion {one['says'][:40]!r}", one) for one in _conclusions(overview)),
        *((f"the note of {c.says!r}", {"study": c.study, "says": c.note}) for c in list_claims()),
    ]
    for name, given in told:
        if given.get("study") in kept:
            texts, supports = _texts(given), given.get("supports", ())
            wrong += check_text(name, texts, *kept[given["study"]], supports)
    return wrong


def _conclusions(words: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Conclusions, and what is added to them from other studies."""
    return [part for one in words["conclusions"] for part in (one, *one.get("also", ()))]


def _texts(given: Mapping[str, Any]) -> list[str]:
    return [given["says"]] if isinstance(given["says"], str) else list(given["says"])


def _fill_all(given: Mapping[str, Any], studies: _Kept) -> list[str]:
    """The texts of a page behind the overview, with the numbers of the study they name."""
    return [_fill({**given, "says": one}, studies) for one in _texts(given)]


def _fill(given: Mapping[str, Any], studies: _Kept) -> str:
    """A sentence with the numbers of its study, and what is to be added from other studies."""
    kept = {study.name: (study, known) for study, known in studies}
    said = []
    for one in (given, *given.get("also", ())):
        if "study" not in one:
            return str(one["says"])
        said.append(fill_in(one["says"], *kept[one["study"]]))
    return " ".join(said)


def _holds(judged: Sequence[Judged], place: str, *, with_paper: bool, brief: bool = False) -> str:
    """A table of claims whose pages lie at a place; `brief` leaves spreads out."""
    heads = ["claim", "ours, CTGAN", "ours, `trees`", "equal rows", "holds?"]
    if with_paper:
        heads.insert(1, "paper")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for one in judged:
        where = f" ({one.claim.where})" if with_paper else ""
        cells = [f"[{one.claim.says}]({place}{one.claim.study}.md){where}"]
        if with_paper:
            cells.append(one.paper)
        full = (one.with_paper_generator, one.with_trees, one.at_equal_rows)
        cells += one.brief if brief else full
        cells.append(f"**{one.holds}**" if one.holds else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# -- figures ----------------------------------------------------------------------------------


def figures(folder: Path) -> dict[str, str]:
    """The figures that the page shows, by file name."""
    from lab.figures import curves, figure  # late, because it brings matplotlib

    return {
        name: (curves if name.endswith("-curves.svg") else figure)(study, results)
        for study, kept in _keep_all(folder)
        for results in kept
        for name in _titles(study, results)
    }


def _titles(study: Study, results: Results) -> dict[str, str]:
    """The title of each figure of a study's page, by file name."""
    if not results.done:
        return {}
    titles = {f"{study.name}-{results.scale}.svg": study.title}
    given = study.figure.get("curves")
    drawn = given.get("variants") if isinstance(given, Mapping) else None
    kept = {outcome.variant for outcome in results.done if outcome.measures.get("curve")}
    if given and kept & set(drawn or kept):
        name = f"{study.name}-{results.scale}-curves.svg"
        titles[name] = f"{study.title}: findings against rows and queries"
    return titles


def _keep(study: Study, folder: Path, speeds: Speeds) -> list[Results]:
    """The results of each scale that was run, the largest first.

    A scale whose every cell a larger one has, and all of them are done there, says nothing more
    and is left out.
    """
    name = f"{study.uses or study.name}.json"
    kept: list[Results] = []
    known: list[set[str]] = []  # cells of larger scales that are whole
    for scale in reversed(SCALES):
        cells = {cell.name for cell in expand(study, scale)}
        if not (folder / scale / name).exists() or any(cells <= larger for larger in known):
            continue
        kept.append(complete(study, read(study, scale, folder), speeds))
        done, planned = _progress(study, kept[-1])
        known += [cells] if done == planned else []
    return kept


# -- a page per study -------------------------------------------------------------------------


def _progress(study: Study, results: Results) -> tuple[int, int]:
    """Cells that are done, and cells that the scale has."""
    size = study.planner.scale(results.scale)
    derived = {variant.name for variant in study.variants if variant.derived}
    planned = {
        f"{benchmark}/{variant}/{seed}"
        for benchmark in size.benchmarks
        for variant in set(size.variants) - derived
        for seed in range(size.seeds)
    }
    done = {
        name
        for name, outcome in results.outcomes.items()
        if outcome.status == DONE and outcome.variant not in derived
    }
    return len(done), len(planned | done)


def _study(study: Study, kept: Sequence[Results], stem: str, reasons: _Reasons) -> str:
    head = [
        f"# {study.title}",
        "",
        f"{_source(study)}. [Overview](../{stem}.md), [conditions and other pages](conditions.md).",
        "",
    ]
    if not kept:
        command = f"python -m lab run {study.name} --scale small"
        return "\n".join([*head, f"Not run yet: `{command}`.", ""])
    if study.remarks or _leads(study):
        head += [_illustrate(fill_in(study.remarks, study, kept), study, kept[0]), ""]
    notes = [f"- {fill_in(one, study, kept)}" for one in study.notes]
    parts = ["\n".join([*head, *notes, *([""] if notes else [])])]
    for number, results in enumerate(kept):
        why = reasons.get((results.study, results.scale), {})
        shown = _show(study, results, why, pictured=_leads(study) and not number)
        parts.append(f"## Scale {results.scale}\n")
        parts += shown if not number else _fold(f"The same at scale {results.scale}", shown)
    return "\n".join(parts).replace("](reproduction/", "](")


def _illustrate(remarks: str, study: Study, results: Results) -> str:
    """The remarks, with the picture after their first paragraph if the study wants it there."""
    if not _leads(study):
        return remarks
    first, _, rest = remarks.partition("\n\n")
    return "\n\n".join(filter(None, [first, *_link_figures(study, results), rest]))


def _leads(study: Study) -> bool:
    return bool(study.figure.get("lead"))


def _link_figures(study: Study, results: Results) -> list[str]:
    titles = _titles(study, results).items()
    return [f"![{title}](../figures/{name})" for name, title in titles]


def _source(study: Study) -> str:
    if study.source.startswith("ours"):
        return study.source[:1].upper() + study.source[1:]
    return f"Of the paper: {study.source}"


def _fold(title: str, parts: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>\n", *parts, "</details>\n"]


def _show(
    study: Study, results: Results, reasons: Mapping[str, str], *, pictured: bool
) -> list[str]:
    """Conditions, claims, tables and, unless it was `pictured` before, figures of one scale."""
    parts = ["\n".join([*(f"- {note(one)}" for one in briefly(study, results, reasons)), ""])]
    parts += filter(None, ["\n".join(_claims(study, results))])
    leading = dict.fromkeys(spec.measures[0] for spec in study.tables)
    known = [measure for measure in leading if _compares(study, results, measure)]
    parts += [
        render(matrix(study, measure, results, _lead_by(study, measure)))
        for measure in known or [*leading][:1]
    ]
    parts += [
        render(table) for spec in study.stands if (table := draw_stands(study, spec, results)).rows
    ]
    if not pictured:
        parts += [f"{picture}\n" for picture in _link_figures(study, results)]
    drawn = tables(study, results)
    shown = "\n".join(render(table) for table in drawn)
    return [*parts, *_fold(f"All cells of {study.name}, scale {results.scale}", [shown])]


def _lead_by(study: Study, measure: str) -> set[str]:
    """The variants of the tables that a measure leads: an empty set if one of them has all."""
    named = [spec.variants for spec in study.tables if spec.measures[0] == measure]
    return {one for some in named for one in some} if all(named) else set()


def _compares(study: Study, results: Results, measure: str) -> bool:
    """Have several variants this measure? A table of one compares nothing."""
    done = complete(study, results).outcomes.values()
    having = {o.variant for o in done if o.measures.get(measure) is not None}
    return len(having) > 1 or bool(having and len({o.variant for o in done}) == 1)


def _claims(study: Study, results: Results) -> list[str]:
    lines = []
    for tried in claims(study, results):
        if not tried.n and not take_cells(results, tried.claim.measure):
            continue
        lines.append(f"- {tried.claim.says}: **{_verdict(tried)}**.")
    lines += [
        f"- {ratios.combined.says}: {_tell_ratios(ratios)}." for ratios in combine(study, results)
    ]
    return [*lines, ""] if lines else []


def _tell_ratios(ratios: Ratios) -> str:
    """Their mean and that of each pair; what is missing where there is no mean of all."""
    pairs = [f"{name} {value:.2f}" for name, value in ratios.by_pair.items()]
    paper = ratios.combined.paper
    beside = f" (paper: {paper:.2f})" if paper is not None else ""
    if ratios.mean is None:
        head = f"**not computed**{beside}, because there is no ratio of "
        return "; ".join([head + "; ".join(ratios.missing), *pairs])
    told = ["mean of the ratios of benchmarks and seeds", *(pairs if len(pairs) > 1 else [])]
    return f"**{ratios.mean:.2f}**{beside}; {', '.join(told)}"


def _verdict(tried: Tried) -> str:
    """On how many benchmarks a claim holds beyond the seeds' spread, and where it does not.

    A part of the benchmarks decides nothing, and one seed nothing in favor of a claim: while either
    may still change what holds, the claim is open.
    """
    if tried.why:
        return f"not tried: {tried.why}"
    lacking = f"no number of {'; '.join(tried.missing)}" if tried.missing else ""
    if not tried.n:
        return "; ".join(filter(None, ["not tried", lacking]))
    if tried.held == tried.n:
        told = f"holds on all {tried.n} benchmarks" if tried.n > 1 else "holds"
    else:
        told = f"holds on {tried.held} of {tried.n} benchmarks"
        told += f"; not on {'; '.join(tried.against)}" if tried.against else ""
        told += f"; within the seeds' spread on {'; '.join(tried.open)}" if tried.open else ""
    alone = f"on {tried.alone} by one seed alone" if tried.alone else ""
    if lacking or (alone and not tried.against):
        why = "; ".join(filter(None, [alone, lacking]))
        return f"open ({why}); so far it {told}"
    return "; ".join(filter(None, [told, alone]))
