"""The pages Reproduction: an overview of what holds and a page per study, from kept results."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from limi.errors import InvalidInput
from limi.studies._claims import RULE, Judged, judge, list_claims
from limi.studies._figures import curves, figure
from limi.studies._files import SCALES, Study, load, load_overview, names
from limi.studies._formats import note, render
from limi.studies._remarks import NOT_RUN, check_remarks, fill_in
from limi.studies._results import DONE, Results, read
from limi.studies._tables import (
    Tried,
    briefly,
    claims,
    combine,
    complete,
    matrix,
    tables,
    take_cells,
)

__all__ = ["check_pages", "figures", "page", "pages"]


def pages(folder: Path, stem: str = "reproduction") -> dict[str, str]:
    """The overview and a page for each study, by path; the same text for the same results.

    InvalidInput where the folder holds results of no study at all.
    """
    studies = _keep_all(folder)
    told = {f"{stem}/{study.name}.md": _study(study, kept, stem) for study, kept in studies}
    return {f"{stem}.md": _overview(studies, stem), **told}


def page(folder: Path, stem: str = "reproduction") -> str:
    """The overview: what holds, what a user should make of it, and what was not reproduced."""
    return _overview(_keep_all(folder), stem)


def _keep_all(folder: Path) -> list[tuple[Study, list[Results]]]:
    """Every study with what is kept of it; InvalidInput where nothing is."""
    studies = [(study, _keep(study, folder)) for study in map(load, names())]
    if not any(kept for _, kept in studies):
        raise InvalidInput(
            f"there are no kept results in {str(folder)!r}; "
            f"keep some: limi study run all --scale small --keep {shlex.quote(str(folder))}"
        )
    return studies


def _overview(studies: Sequence[tuple[Study, list[Results]]], stem: str) -> str:
    kept = {study.name: known for study, known in studies}
    judged = [judge(claim, kept[claim.study]) for claim in list_claims()]
    paper = [one for one in judged if not one.claim.ours]
    ours = [one for one in judged if one.claim.ours]
    words = load_overview()
    notes = [
        f"- {one.claim.says}: "
        + fill_in(one.claim.note, load(one.claim.study), kept[one.claim.study]).replace(
            "](reproduction/", f"]({stem}/"
        )
        for one in judged
        if one.claim.note
    ]
    return "\n".join(
        [
            words["head"] + _holds(paper, stem, with_paper=True),
            *notes,
            "",
            f"The rule. {RULE}",
            "## What a user should conclude",
            "",
            *(f"- {_fill(one, studies)}" for one in words["conclusions"]),
            "",
            "## Our own claims, by the same rule\n\n" + _holds(ours, stem, with_paper=False),
            "",
            "## Not reproduced, and why",
            "",
            *(
                f"- {one}".replace("](reproduction/", f"]({stem}/")
                for one in words["not_reproduced"]
            ),
            "",
            words["conditions"] + _list(studies, stem),
        ]
    )


def check_pages(folder: Path) -> list[str]:
    """What remarks and conclusions say that does not follow from the kept cells."""
    kept = {name: (load(name), _keep(load(name), folder)) for name in names()}
    wrong = [one for study, known in kept.values() if known for one in check_remarks(study, known)]
    for given in load_overview()["conclusions"]:
        study, known = kept[given["study"]]
        if known:
            told = dataclasses.replace(study, remarks=given["says"], fixed=tuple(given["fixed"]))
            wrong += check_remarks(told, known)
    for claim in list_claims():
        study, known = kept[claim.study]
        if known and NOT_RUN in fill_in(claim.note, study, known):
            wrong.append(f"the note of {claim.says!r} cannot be filled in from the kept cells")
    return wrong


def _fill(given: Mapping[str, str], studies: Sequence[tuple[Study, list[Results]]]) -> str:
    """A sentence of the overview with the numbers of its study."""
    kept = {study.name: (study, known) for study, known in studies}
    study, known = kept[given["study"]]
    return fill_in(given["says"], study, known)


def _holds(judged: Sequence[Judged], stem: str, *, with_paper: bool) -> str:
    heads = ["claim", "ours, CTGAN", "ours, `trees`", "equal rows", "holds?"]
    if with_paper:
        heads.insert(1, "paper")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for one in judged:
        where = f" ({one.claim.where})" if with_paper else ""
        cells = [f"[{one.claim.says}]({stem}/{one.claim.study}.md){where}"]
        if with_paper:
            cells.append(one.paper)
        cells += [one.with_paper_generator, one.with_trees, one.at_equal_rows]
        cells.append(f"**{one.holds}**" if one.holds else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def figures(folder: Path) -> dict[str, str]:
    """The figures that the page shows, by file name."""
    return {
        name: svg
        for study in map(load, names())
        for results in _keep(study, folder)
        for name, (_, svg) in _drawn(study, results).items()
    }


def _drawn(study: Study, results: Results) -> dict[str, tuple[str, str]]:
    """Title and picture of each figure of a study's page, by file name."""
    if not any(outcome.status == DONE for outcome in results.outcomes.values()):
        return {}
    drawn = {f"{study.name}-{results.scale}.svg": (study.title, figure(study, results))}
    if study.figure.get("curves") and (picture := curves(study, results)):
        title = f"{study.title}: findings against rows and queries"
        drawn[f"{study.name}-{results.scale}-curves.svg"] = (title, picture)
    return drawn


def _keep(study: Study, folder: Path) -> list[Results]:
    """The results of each scale that was run, the largest first."""
    name = f"{study.uses or study.name}.json"
    return [
        complete(study, read(study, scale, folder))
        for scale in reversed(SCALES)
        if (folder / scale / name).exists()
    ]


def _list(studies: Sequence[tuple[Study, list[Results]]], stem: str) -> str:
    lines = ["| page | of the paper | scale | cells done of those planned |", "|---|---|---|---|"]
    for study, kept in studies:
        link = f"[{study.title}]({stem}/{study.name}.md) | {study.source}"
        if not kept:
            lines.append(f"| {link} | not run | |")
        for results in kept:
            done, planned = _progress(study, results)
            lines.append(f"| {link} | {results.scale} | {done:,} of {planned:,} |")
    return "\n".join(lines) + "\n"


def _progress(study: Study, results: Results) -> tuple[int, int]:
    """Cells that are done, and cells that the scale has."""
    size = (load(study.uses) if study.uses else study).scale(results.scale)
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


def _study(study: Study, kept: Sequence[Results], stem: str) -> str:
    head = [
        f"# {study.title}",
        "",
        f"{_source(study)}. [All studies](../{stem}.md).",
        "",
    ]
    if not kept:
        command = f"limi study run {study.name} --scale small"
        return "\n".join([*head, f"Not run yet: `{command}`.", ""])
    if study.remarks:
        head += [fill_in(study.remarks, study, kept), ""]
    parts = ["\n".join(head)]
    for number, results in enumerate(kept):
        shown = _show(study, results)
        parts.append(f"## Scale {results.scale}\n")
        parts += shown if not number else _fold(f"The same at scale {results.scale}", shown)
    return "\n".join(parts)


def _source(study: Study) -> str:
    if study.source.startswith("ours"):
        return study.source[:1].upper() + study.source[1:]
    return f"Of the paper: {study.source}"


def _fold(title: str, parts: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>\n", *parts, "</details>\n"]


def _show(study: Study, results: Results) -> list[str]:
    """Conditions, claims, tables and figures of one scale."""
    parts = ["\n".join([*(f"- {note(one)}" for one in briefly(study, results)), ""])]
    parts.append("\n".join(_claims(study, results)))
    leading = dict.fromkeys(spec.measures[0] for spec in study.tables)
    known = [measure for measure in leading if take_cells(complete(study, results), measure)]
    parts += [
        render(matrix(study, measure, results), "markdown") for measure in known or [*leading][:1]
    ]
    drawn_figures = _drawn(study, results)
    parts += [f"![{title}](../figures/{name})\n" for name, (title, _) in drawn_figures.items()]
    drawn = tables(study, results, brief=True)
    shown = "\n".join(render(table, "markdown") for table in drawn)
    return [*parts, *_fold(f"All cells of {study.name}, scale {results.scale}", [shown])]


def _claims(study: Study, results: Results) -> list[str]:
    lines = []
    for tried in claims(study, results):
        if not tried.n and not take_cells(results, tried.claim.measure):
            continue
        lines.append(f"- {tried.claim.says}: **{_verdict(tried)}**.")
    for one, ratios in combine(study, results):
        if not ratios:
            continue
        pairs = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items() if name != "mean")
        beside = f" (paper: {one.paper:.2f})" if one.paper is not None else ""
        lines.append(f"- {one.says}: **{ratios['mean']:.2f}**{beside}; {pairs}.")
    return [*lines, ""] if lines else []


def _verdict(tried: Tried) -> str:
    """On how many benchmarks a claim holds beyond the seeds' spread, and where it does not."""
    if not tried.n:
        told = "not tried"
    elif tried.held == tried.n:
        told = f"holds on all {tried.n} benchmarks" if tried.n > 1 else "holds"
    else:
        told = f"holds on {tried.held} of {tried.n} benchmarks"
        told += f"; not on {'; '.join(tried.against)}" if tried.against else ""
        told += f"; within the seeds' spread on {'; '.join(tried.open)}" if tried.open else ""
    if tried.n and tried.n_seeds < 2:
        told += "; some cells have one seed, which decides nothing"
    return told + (f"; no number of {'; '.join(tried.missing)}" if tried.missing else "")
