"""A repair in words: the lines of its table, a card for the model, and a page.

Everything is drawn from the plain tree that `repair.json` holds, so no two of them disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from limi import models
from limi.metrics.individual import Rate
from limi.report import _repair_page, wording
from limi.report._fronts import front
from limi.report._repair_page import Cell, Line, place_of, point_of, test_command
from limi.report.next_steps import NextStep
from limi.system import words

__all__ = [
    "RepairLine",
    "basis",
    "card",
    "files",
    "fresh",
    "heading",
    "lines",
    "means",
    "remarks",
    "render",
    "sentence",
]

Tree = Mapping[str, Any]

_ROWS = {
    "accuracy": ("held-out accuracy", "share of decisions that are right; higher is better"),
    "training_accuracy": ("training accuracy", "on the rows trained on, as the paper reports it"),
    "real": ("flips, real", "rows of the table, trained on or not (IF_o); lower is better"),
    "uniform": ("flips, uniform", "every combination of values (IF_r); lower is better"),
    "natural": ("flips, natural", "people of a generator; lower is better"),
    "real_only_protected": (
        "flips, real, protected only",
        "if only the protected values changed, and nothing else with them",
    ),
    "natural_only_protected": (
        "flips, natural, protected only",
        "if only the protected values changed, and nothing else with them",
    ),
    "spd": ("SPD", "gap between the groups' shares of favorable decisions; lower is better"),
    "aod": ("AOD", "mean gap between their true and false favorable rates; lower is better"),
}
_SHARES = tuple(name for name in _ROWS if name not in ("spd", "aod"))

_LIMITS = (
    "Flips are measured for the protected values of the run and for the named populations, and "
    "say nothing about others; a low rate is not a certificate of fairness.",
    "A repaired model is another model: its other properties (calibration, errors by group) need "
    "the same care as those of the first.",
    "Group gaps are averages over people who differ in more than the protected value.",
)


@dataclass(frozen=True)
class RepairLine:
    """One figure, before and after."""

    name: str
    aid: str
    before: str
    after: str
    change: str
    blind: str  # of the same model trained without the protected columns


def sentence(tree: Tree) -> str:
    """The verdict."""
    verdict = str(tree["verdict"])
    first = verdict[:1].upper() + verdict[1:]
    return f"{first}." if not first.endswith(".") else first


def basis(tree: Tree) -> str:
    """What a reader should see beside the verdict."""
    had, has = (_value("natural", tree[side]["natural"]) for side in ("before", "after"))
    on = _accuracy_of(tree)
    rows = "held-out" if on == "accuracy" else "training"
    lost = 100 * (tree["after"][on]["value"] - tree["before"][on]["value"])
    seeds = tree["settings"]["seeds"]
    return (
        f"Trained again without findings the model flips {had} of natural people, with them {has}"
        f"{f' (means over {seeds} seeds)' if seeds > 1 else ''}; accuracy "
        f"on {rows} rows changes by {lost:+.2f} points."
    )


def lines(tree: Tree) -> list[RepairLine]:
    """Every figure that was measured."""
    shown = []
    for name, (label, aid) in _ROWS.items():
        if name not in tree["before"]:
            continue  # without rules both questions are one
        before, after = tree["before"][name], tree["after"][name]
        if before["value"] is None and name == "accuracy":
            continue
        shown.append(
            RepairLine(
                label,
                aid,
                _figure(name, before),
                _figure(name, after),
                _change(name, tree),
                _value(name, tree["without_protected"][name]),
            )
        )
    return shown


def heading(tree: Tree) -> str:
    """Of the column with the model that was trained without the protected columns."""
    return f"without {words.either(list(tree['run']['protected']))}"


def means(tree: Tree) -> str:
    """With which means, different from the run's, the fresh checks were made."""
    used = tree["fresh"]
    generator = (
        f"another generator ({used['generator']})"
        if used["other_generator"]
        else (
            f"the generator {used['generator']}, fitted again because no other generator was "
            "available (transport needs torch),"
        )
    )
    return (
        f"Both models were searched with a different method ({used['method']}), with {generator} "
        "and a different seed from the run's, and asked about the same fresh people."
    )


def fresh(tree: Tree) -> list[str]:
    """What the fresh checks found, one sentence each."""
    told = []
    for check in tree["checks"]:
        ended = check["rows_after"]
        of = f" of {ended:,}" if ended != check["rows"] else ""
        told.append(
            f"{check['words'][:1].upper()}{check['words'][1:]}: {check['before']:,} flips of "
            f"{check['rows']:,} rows before, {check['after']:,}{of} after."
        )
    own = tree["own_findings"]
    still = own["after"] / own["rows"] if own["rows"] else 0.0
    told.append(
        f"Of the run's own findings {still:.1%} still flip; by itself, that would prove nothing."
    )
    return told


def remarks(tree: Tree) -> list[str]:
    """What a reader must know to read the figures."""
    groups = tree["groups"]
    told = [
        "Before is the same kind of model, trained again on the same rows without findings; the "
        "fresh checks below ask the original itself.",
        f"{heading(tree)}: the same model trained with everybody's protected cells held at one "
        "value. It cannot flip by construction, so a repair has to beat what it costs. Other "
        "columns may still stand in for the protected ones.",
        f"Groups: {groups['privileged']} against all others ({groups['why']}); people whose "
        "protected cell is missing belong to neither.",
    ]
    reasons = {
        side[name]["reason"]
        for side in (tree["before"], tree["after"])
        for name in ("spd", "aod")
        if side[name].get("reason")
    }
    told += [f"No number: {reason}." for reason in sorted(reasons)]
    return told


def files(tree: Tree) -> list[str]:
    """What the folder holds."""
    kept = ["card.md", "report.html", "repair.json", "added.parquet"]
    return [*([tree["model_file"]] if tree["model_file"] else []), *kept]


def card(tree: Tree) -> str:
    """The card of the repaired model, in Markdown."""
    run, settings = tree["run"], tree["settings"]
    return "\n".join(
        [
            "# " + words.markdown(f"{run['model']} on {run['table']}, repaired"),
            "",
            f"**Verdict: {words.markdown(sentence(tree))}** {basis(tree)}",
            "",
            "## What was done",
            "",
            *map(_item, _done(tree)),
            "",
            "## Before and after",
            "",
            _measure_on(settings),
            "",
            f"| figure | before | after | change | {words.markdown(heading(tree))} |",
            "|---|---|---|---|---|",
            *(
                f"| {line.name} | {line.before} | {line.after} | {line.change} | {line.blind} |"
                for line in lines(tree)
            ),
            "",
            *map(_item, [*remarks(tree), means(tree), *fresh(tree)]),
            "",
            "## Data",
            "",
            _item(
                f"Table: {run['table']}, {tree['rows']['table']:,} rows, target {run['target']}, "
                f"favorable {run['favorable']}; sha256 {run['data_sha256']}"
            ),
            _item(f"Protected: {_protected(run)}"),
            _item(
                f"Findings: {run['findings']:,} by {run['method']} with generator "
                f"{run['generator'] or 'none'}, seed {run['seed']}"
            ),
            "- `added.parquet`: the rows that were added, with the labels they were learned with",
            "",
            "## Use",
            "",
            _use(tree, _code),
            "",
            "## Limits",
            "",
            *(f"- {words}" for words in _LIMITS),
            "",
            f"Made by limi {tree['versions'].get('limi', '')}"
            + (f": {_code(tree['command'])}" if tree["command"] else ""),
            "",
        ]
    )


def _item(text: str) -> str:
    """A line of a list in Markdown; names of columns, levels and files are text in it."""
    return f"- {words.markdown(text)}"


def _code(text: str) -> str:
    """Text as Markdown shows it letter by letter, whatever marks it holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{wording.clean(text)}{space}{fence}"


def render(tree: Tree) -> str:
    """A page of its own; the same bytes for the same tree."""
    run, settings = tree["run"], tree["settings"]
    moved = tree.get("moved", ())
    seeds = f", {settings['seeds']} seeds together" if settings["seeds"] > 1 else ""
    return _repair_page.render(
        _repair_page.RepairPage(
            title=f"{run['model']} on {run['table']}",
            date=tree.get("date", ""),
            verdict=sentence(tree),
            basis=basis(tree),
            answers=_answers(tree),
            step=_next_step(tree),
            facts=_facts(tree),
            picture=_picture(tree),
            moved=_repair_page.moved_bars("after", moved, only_changed=False),
            moved_title="Who gains and who loses a favorable decision",
            moved_aid=(
                f"Decisions with findings compared with those without them, by group{seeds}; of "
                "people who were not trained on, if there are any."
            ),
            moved_heads=(),
            moved_lines=(),
            heads=("before", "after", "change", heading(tree)),
            taken="after" if _is_good(tree) else None,
            lines=[_line(line, _is_good(tree)) for line in lines(tree)],
            lines_aid=_measure_on(settings),
            rule="",
            reasons=(),
            remarks=remarks(tree),
            fresh=[means(tree), *fresh(tree)],
            use=[*_done(tree), _use(tree)],
            limits=_LIMITS,
            command=tree["command"],
            version=tree["versions"].get("limi", ""),
        )
    )


def _is_good(tree: Tree) -> bool:
    return str(tree["verdict"]).startswith(("removed", "reduced"))


def _line(line: RepairLine, good: bool) -> Line:
    """A line whose cells hold their intervals apart."""
    cells = [_cell(text) for text in (line.before, line.after, line.change, line.blind)]
    cells[1] = Cell(cells[1].value, cells[1].interval, good)
    return Line(line.name, line.aid, tuple(cells))


def _cell(text: str) -> Cell:
    value, _, interval = text.partition(" (")
    return Cell(value, interval.replace(")", ""))


def _answers(tree: Tree) -> list[tuple[str, str]]:
    """What somebody asks first, and the answers."""
    had, has = (_figure("natural", tree[side]["natural"]) for side in ("before", "after"))
    told = [("Flips", f"{had} of natural people before, {has} after.")]
    on = _accuracy_of(tree)
    before, after = (_figure(on, tree[side][on]) for side in ("before", "after"))
    told.append(("What it costs", f"{_ROWS[on][0].capitalize()} {before} before, {after} after."))
    moved = tree.get("moved", ())
    if not moved:
        return told
    wanted = tree["run"].get("favorable_name") or tree["run"]["favorable"]
    return told + _repair_page.tell_moved(moved, f"become {wanted}", f"no longer are {wanted}")


def _next_step(tree: Tree) -> NextStep:
    if not _is_good(tree):
        return NextStep(
            "Compare it with the other ways to repair this model: leave out --how, or use --how "
            "all.",
            "",
        )
    if tree["model_file"] is None:
        return NextStep("Train the model on the table and added.parquet together.", "")
    return NextStep("Test the repaired model as you would any other.", _test(tree))


def _facts(tree: Tree) -> list[tuple[str, str]]:
    settings, rows = tree["settings"], tree["rows"]
    return [
        ("Findings added", words.count(settings["findings_used"])),
        ("Rows added", words.count(rows["added"])),
        ("Rows of the table", words.count(rows["table"])),
        ("Seeds", str(settings["seeds"])),
    ]


def _accuracy_of(tree: Tree) -> str:
    held = tree["before"]["accuracy"]["value"] is not None
    return "accuracy" if held else "training_accuracy"


def _picture(tree: Tree) -> _repair_page.Picture | None:
    """Flips against accuracy: before, after, without the protected columns; or all of a sweep."""
    on, swept = _accuracy_of(tree), tree["front"]
    sides = [
        (f"{point['fraction']:.0%}" if point["fraction"] else "before", point) for point in swept
    ] or [
        ("before", tree["before"]),
        ("after", tree["after"]),
        (heading(tree), tree["without_protected"]),
    ]
    points = [
        (name, side, point_of(name, side[on], side["natural"], 100.0)) for name, side in sides
    ]
    known = [(name, side, point) for name, side, point in points if point is not None]
    limit = tree["before"][on]["value"] - tree["settings"].get("max_accuracy_loss", 0.01)
    drawn = front([p for *_, p in known], limit=100 * limit, series=bool(swept))
    if drawn is None:
        return None
    many = tree["settings"]["seeds"] > 1
    dots = "A small dot is one seed, a large dot the mean of them" if many else "A dot is a model"
    fractions = " Each mark is a share of findings that was added." if swept else ""
    return _repair_page.Picture(
        drawn,
        _ROWS[on][0],
        f"{_ROWS[on][0]}, %",
        f"{dots}; the ring is the model as before.{fractions} Down and to the right is better."
        + (" The dashed line marks the most that may be lost." if drawn.limit is not None else ""),
        tuple(
            (name, f"{_value('natural', side['natural'])} flip, accuracy {_value(on, side[on])}")
            for name, side, _ in known
        ),
    )


def _done(tree: Tree) -> list[str]:
    settings, rows = tree["settings"], tree["rows"]
    twice = ", some of them more than once" if settings["findings_drawn_twice"] else ""
    recipe = f"Recipe {settings['recipe']} (preset {settings['preset']})"
    findings = (
        f"{settings['findings_used']:,} findings{twice}, drawn for {settings['fraction']:.0%} of "
        f"the table and labelled by {settings['label']}"
    )
    return [
        f"{recipe}: {findings if settings['findings_used'] else 'no findings'}.",
        f"{rows['added']:,} rows were added to the table's {rows['table']:,}.",
        f"The model was trained again by {tree['how']}; the one that is kept, on all rows of the "
        "table and the added ones.",
    ]


def _measure_on(settings: Tree) -> str:
    times = settings["seeds"]
    mean = (
        f"Means over {times} seeds with 95 % intervals: Student's over the seeds or, if wider and "
        "marked *, each seed's own interval over rows (exact for shares), averaged and not "
        "pooled, because all seeds ask about the same rows."
        if times > 1
        else "One seed, with 95 % intervals over the rows."
    )
    if settings["held_out"]:
        return (
            f"{mean} Each seed holds out {settings['held_out']:.0%} of the rows and trains on the "
            "rest, without (before) and with (after) findings; accuracy, SPD and AOD are measured "
            "on the held-out rows unless stated otherwise."
        )
    on = (
        f"; accuracy, SPD and AOD are measured on {settings['measured_on']}"
        if settings["held_out"] is None
        else "; accuracy, SPD and AOD are measured on those rows too"
    )
    return f"{mean} Trained on all rows, without (before) and with (after) findings{on}."


def _protected(run: Tree) -> str:
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in run["protected"].items())


def _use(tree: Tree, quote: Callable[[str], str] = str) -> str:
    """How the model's file is used; `quote` marks what is typed."""
    if tree["model_file"] is None:
        added = quote("added.parquet")
        return f"The model was not written; retrain it on the table and {added} together."
    return f"{quote(_test(tree))} tests it again; it is data without code."


def _test(tree: Tree) -> str:
    file = tree["model_file"]
    return test_command(tree, f"{models.kind_of_file(file)}:{place_of(tree, file)}")


def _figure(name: str, figure: Tree) -> str:
    plain = _value(name, figure)
    if figure.get("low") is None or figure.get("high") is None:
        return plain
    mark = "*" if figure.get("interval") == "rows" and len(figure.get("seeds", ())) > 1 else ""
    if name not in _SHARES:
        return f"{plain} ({figure['low']:.3f} to {figure['high']:.3f}){mark}"
    shown = _percent(figure)
    return f"{plain} ({shown.low} to {shown.high}){mark}"


def _value(name: str, figure: Tree) -> str:
    """A figure without its interval, with as many digits as the interval asks for."""
    value = figure.get("value")
    if value is None:
        return "-"
    if name not in _SHARES:
        return f"{value:.3f}"
    plain = f"{100 * value:.2f}"
    if figure.get("low") is not None and figure.get("high") is not None:
        plain = max(plain, _percent(figure).estimate, key=len)
    return f"{plain} %"


def _percent(figure: Tree) -> wording.Percent:
    return wording.percent(Rate(figure["value"], figure["low"], figure["high"], 0))


def _change(name: str, tree: Tree) -> str:
    before, after = tree["before"][name]["value"], tree["after"][name]["value"]
    if before is None or after is None:
        return "-"
    if name in ("accuracy", "training_accuracy"):
        return f"{100 * (after - before):+.2f} points"
    if not before:
        return "0 before"
    change = 100 * (after / before - 1)
    # What is nearly gone is not gone.
    return f"{max(change, -99.9):+.1f} %" if after and change < -99 else f"{change:+.0f} %"
