"""The page of the open benchmark: ranks, diagrams, where ours is not first, and every number."""

from __future__ import annotations

import math

from lab.cells import expand
from lab.conditions import describe_machines
from lab.formats import StudyTable, note, render
from lab.outdated import describe_outdated, find_outdated
from lab.results import DONE, UNABLE
from lab.standings import MEASURES, Standings
from lab.targets.ranks import Ranks
from limi.errors import InvalidInput
from limi.system.words import markdown

__all__ = ["bench_figures", "bench_page"]

OURS = "guided"
_RIVALS_SHOWN = 20

_HEAD = """# The open benchmark: results

Written by `python -m lab bench page` from the results under `lab/studies/results/`;
[bench.md](bench.md) tells what is measured, why, and how to add a target or a method.

```console
$ make bench-field                               # runs what is not done; can be interrupted
$ python -m lab bench table --measure plausible  # any measure, with any budget
```
"""


def bench_page(standings: Standings) -> str:
    """The page; the same text for the same results."""
    main = standings.main_budget
    parts = [_HEAD, _tell_run(standings)]
    if standings.study.remarks:
        parts += [standings.study.remarks, ""]
    parts.append("## Ranks\n")
    parts.append(_RANKS_WORDS)
    for name, title, targets in _groups(standings):
        parts.append(render(standings.rank_table(title, targets)))
        parts += [
            f"![{drawn[0]}](figures/{file})\n"
            for file, drawn in _diagrams(standings).items()
            if file.startswith(f"bench-{name}-")
        ]
    parts.append("## By family\n")
    parts.append(render(standings.family_table(main)))
    parts.append(f"## Where `{OURS}` is not first\n")
    parts.append(_tell_losses(standings))
    parts.append("## Targets\n")
    parts.append(render(_list_targets(standings)))
    parts.append("## Every number\n")
    parts += _details(standings)
    parts.append(_tell_missing(standings))
    return "\n".join(parts)


def bench_figures(standings: Standings) -> dict[str, str]:
    """The diagrams that the page shows, by file name."""
    from lab.figures import draw_ranks  # late, because it brings matplotlib

    return {file: draw_ranks(ranks, title) for file, (title, ranks) in _diagrams(standings).items()}


_RANKS_WORDS = """Each target ranks the methods from 1 (best) by the mean over seeds; equal ones
share ranks. Two methods differ at the level of 5 % where their mean ranks lie further apart than
the critical difference (Nemenyi, after Friedman's test); bars join those that do not. A method that
cannot be tried on a target (it looks into networks alone) is ranked among the networks only. The
columns name what is ranked and the budget of queries: findings, findings of which both rows are
plausible, queries to the first and to the tenth finding, and the share of flipping people who live
where something was found.
"""


def _groups(standings: Standings) -> list[tuple[str, str, list[str]]]:
    found = [("all", "Mean ranks over all targets", standings.targets)]
    networks = standings.networks()
    if len(standings.able(standings.targets)) < len(standings.methods) and len(networks) > 1:
        found.append(("networks", "Mean ranks over networks, of all methods", networks))
    return found


def _diagrams(standings: Standings) -> dict[str, tuple[str, Ranks]]:
    drawn: dict[str, tuple[str, Ranks]] = {}
    main = standings.main_budget
    for name, title, targets in _groups(standings):
        for measure in ("findings", "plausible"):
            if main < MEASURES[measure].least:
                continue
            try:
                ranks = standings.rank(targets, measure, main)
            except InvalidInput:
                continue
            words = "findings" if measure == "findings" else "plausible findings"
            drawn[f"bench-{name}-{measure}.svg"] = (f"{title}: {words}, {main:,} queries", ranks)
    return drawn


def _tell_run(standings: Standings) -> str:
    results, study = standings.results, standings.study
    done, unable = (
        sum(outcome.status == status for outcome in results.outcomes.values())
        for status in (DONE, UNABLE)
    )
    size = study.scale(results.scale)
    cells = expand(study, results.scale)
    outdated = describe_outdated(results, find_outdated(results, cells))
    return (
        f"Scale `{results.scale}`: {size.words}. {len(standings.targets)} of {len(study.targets)} "
        f"targets, {len(standings.methods)} methods, {done:,} of {len(cells):,} cells done"
        + (f" and {unable:,} impossible (the method cannot be tried there)" if unable else "")
        + ("; what was not run is missing below. " if done + unable < len(cells) else ". ")
        + f"Machine: {describe_machines(results.made)}; one thread per cell.\n"
        + (f"\n{outdated}\n" if outdated else "")
    )


def _tell_losses(standings: Standings) -> str:
    if OURS not in standings.methods:
        return f"`{OURS}` was not tried.\n"
    lines = []
    for measure in ("findings", "plausible", "first"):
        told = MEASURES[measure]
        for budget in standings.budgets:
            if budget < told.least or (measure != "findings" and budget != standings.main_budget):
                continue
            lost = standings.not_first(OURS, measure, budget)
            n = len(standings.complete(standings.targets, [OURS], budget))
            if not n:
                continue
            where = f"{told.label}, {budget:,} queries"
            if not lost:
                lines.append(f"- **{where}**: first on all {n} targets.")
                continue
            shown = "; ".join(
                f"{markdown(target)} ({rival} {_show(theirs, measure)}, {_show(mine, measure)})"
                for target, rival, theirs, mine in lost[:_RIVALS_SHOWN]
            )
            more = f"; and {len(lost) - _RIVALS_SHOWN} more" if len(lost) > _RIVALS_SHOWN else ""
            lines.append(
                f"- **{where}**: not first on {len(lost)} of {n} targets (who is, theirs, "
                f"`{OURS}`'s): {shown}{more}."
            )
    return "\n".join(lines) + "\n"


def _show(value: float, measure: str) -> str:
    return format(value, MEASURES[measure].form)


def _list_targets(standings: Standings) -> StudyTable:
    rows = []
    main = standings.main_budget
    for family, targets in standings.families.items():
        for target in targets:
            fact = {
                name: standings.fact(target, name)
                for name in ("columns", "combinations", "accuracy", "rate", "rate_low", "rate_high")
            }
            values = {m: standings.value(target, m, "findings", main) for m in standings.methods}
            known = {m: v for m, v in values.items() if not math.isnan(v)}
            best = max(known, key=lambda m: known[m]) if known else "-"
            rows.append(
                (
                    family,
                    target,
                    str(standings.study.targets[target]["words"]),
                    f"{fact['columns']:.0f}",
                    f"{fact['combinations']:.0f}",
                    "-" if math.isnan(fact["accuracy"]) else f"{fact['accuracy']:.1%}",
                    f"{_share(fact['rate'])} ({_share(fact['rate_low'])} to "
                    f"{_share(fact['rate_high'])})",
                    f"{best} {known[best]:,.1f}" if known and known[best] else "nobody",
                )
            )
    headings = (
        *("family", "target", "what", "columns", "combinations", "accuracy"),
        *("natural people who flip", f"most findings per 1,000 of {main:,} queries"),
    )
    return StudyTable("", headings, tuple(rows), n_names=3)


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _details(standings: Standings) -> list[str]:
    wanted = [("findings", budget) for budget in standings.budgets]
    main = standings.main_budget
    for measure, told in MEASURES.items():
        if measure != "findings" and main >= told.least:
            wanted.append((measure, main))
    parts = []
    for measure, budget in wanted:
        table = standings.table(measure, budget)
        shown = render(StudyTable("", table.headings, table.rows, table.notes, table.n_names))
        parts.append(f"<details><summary>{table.title}</summary>\n\n{shown}\n</details>\n")
    return parts


def _tell_missing(standings: Standings) -> str:
    """Why cells have no numbers, each reason once."""
    told: dict[str, list[str]] = {}
    for outcome in standings.results.outcomes.values():
        if outcome.status != DONE:
            words = f"{outcome.status}: {outcome.why}"
            told.setdefault(words, []).append(outcome.cell)
    lines = [
        f"- {len(cells):,} cells, such as `{cells[0]}`, {note(words)}"
        for words, cells in sorted(told.items(), key=lambda one: -len(one[1]))
    ]
    if not lines:
        return ""
    return "\n".join(["Cells without numbers:", "", *lines]) + "\n"
