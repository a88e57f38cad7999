"""The page Reproduction: every study's claims, tables and conditions, from the kept results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from limi.errors import InvalidInput
from limi.studies._figures import figure
from limi.studies._files import SCALES, Study, load, names
from limi.studies._formats import note, render
from limi.studies._results import DONE, Results, read
from limi.studies._tables import claims, combine, complete, matrix, tables, take_cells

__all__ = ["figures", "page"]

_HEAD = """# Reproduction

The tables and figures of the LIMI paper, and some of ours, run again by `limi study` and read
beside the paper's numbers. This page is generated from the results under `studies/results/`
(`limi study page`); its remarks come from the study files.

```console
$ limi study list                         # what there is
$ limi study run dnn --scale small        # runs what is not done; interrupt it and run it again
$ limi study table dnn --format markdown  # ours, the spread over seeds, the paper's, the ratio
$ limi study plot dnn                     # the figure, as SVG
$ limi study run all --scale paper        # the paper's settings
$ limi study check                        # fails where a method has become worse
```

Benchmarks are called after our tables: `census` is the paper's Adult, `sex` its gender. A study
shows every scale that was run, the largest first. Findings are facts about these targets; none
of these numbers certifies a model.
"""


def page(folder: Path) -> str:
    """The page for the results in a folder; the same text for the same results.

    InvalidInput where it holds results of no study at all.
    """
    studies = [(study, _keep(study, folder)) for study in map(load, names())]
    if not any(kept for _, kept in studies):
        raise InvalidInput(
            f"there are no kept results in {str(folder)!r}; "
            f"keep some: limi study run all --scale small --keep {shlex.quote(str(folder))}"
        )
    return "\n".join([_HEAD, _overview(studies), *(_study(*one) for one in studies)])


def figures(folder: Path) -> dict[str, str]:
    """The figures that the page shows, by file name."""
    drawn = {}
    for name in names():
        study = load(name)
        for results in filter(_is_drawn, _keep(study, folder)):
            drawn[_figure_name(study, results)] = figure(study, results)
    return drawn


def _figure_name(study: Study, results: Results) -> str:
    return f"{study.name}-{results.scale}.svg"


def _is_drawn(results: Results) -> bool:
    return any(outcome.status == DONE for outcome in results.outcomes.values())


def _keep(study: Study, folder: Path) -> list[Results]:
    """The results of each scale that was run, the largest first."""
    name = f"{study.uses or study.name}.json"
    return [
        read(study, scale, folder) for scale in reversed(SCALES) if (folder / scale / name).exists()
    ]


def _overview(studies: Sequence[tuple[Study, list[Results]]]) -> str:
    lines = ["| study | of the paper | scale | cells | claims that hold |", "|---|---|---|---|---|"]
    for study, kept in studies:
        link = f"[{study.name}](#{study.name}) | {study.source}"
        if not kept:
            lines.append(f"| {link} | not run | | |")
        for results in kept:
            tried = [(n, len(against)) for _, n, against in claims(study, results) if n]
            held = sum(not n_against for _, n_against in tried)
            done = sum(outcome.status == DONE for outcome in results.outcomes.values())
            holding = f"{held} of {len(tried)}" if tried else ""
            cells = f"{done:,} of {len(results.outcomes):,}"
            lines.append(f"| {link} | {results.scale} | {cells} | {holding} |")
    return "\n".join(lines) + "\n"


def _study(study: Study, kept: Sequence[Results]) -> str:
    head = [f"## {study.name}", "", f"*{study.title}.* Of the paper: {study.source}.", ""]
    if not kept:
        command = f"limi study run {study.name} --scale small"
        return "\n".join([*head, f"Not run yet: `{command}`.", ""])
    if study.remarks:
        head += [study.remarks, ""]
    parts = ["\n".join(head)]
    for results in kept:
        if len(kept) > 1:
            parts.append(f"### {study.name}, scale {results.scale}\n")
        parts += _show(study, results)
    return "\n".join(parts)


def _show(study: Study, results: Results) -> list[str]:
    """Claims, tables and conditions of one scale."""
    parts = ["\n".join(_claims(study, results))]
    leading = dict.fromkeys(spec.measures[0] for spec in study.tables)
    known = [measure for measure in leading if take_cells(complete(study, results), measure)]
    parts += [
        render(matrix(study, measure, results), "markdown") for measure in known or [*leading][:1]
    ]
    if _is_drawn(results):
        parts.append(f"![{study.title}](figures/{_figure_name(study, results)})\n")
    drawn = tables(study, results)
    notes = "\n".join(f"- {note(one)}" for one in drawn[-1].notes)
    shown = "\n".join(
        render(type(t)(t.title, t.headings, t.rows, () if t is drawn[-1] else t.notes), "markdown")
        for t in drawn
    )
    title = f"All cells of {study.name}, scale {results.scale}"
    parts.append(f"<details><summary>{title}</summary>\n\n{shown}\n</details>\n")
    parts.append(f"{notes}\n")
    return parts


def _claims(study: Study, results: Results) -> list[str]:
    lines = []
    for claim, tried, against in claims(study, results):
        if not tried and not take_cells(results, claim.measure):
            continue
        if not tried:
            verdict = "not tried"
        elif not against:
            verdict = f"holds on all {tried} benchmarks" if tried > 1 else "holds"
        else:
            verdict = f"holds on {tried - len(against)} of {tried} benchmarks; not on " + "; ".join(
                against
            )
        lines.append(f"- {claim.says}: **{verdict}**.")
    for one, ratios in combine(study, results):
        if not ratios:
            continue
        pairs = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items() if name != "mean")
        beside = f" (paper: {one.paper:.2f})" if one.paper is not None else ""
        lines.append(f"- {one.says}: **{ratios['mean']:.2f}**{beside}; {pairs}.")
    return [*lines, ""] if lines else []
