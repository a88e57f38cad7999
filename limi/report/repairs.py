"""Repairs side by side, in words: one table, a card for the model to take, and a page.

Everything is drawn from the plain tree that `repair.json` holds, so no two of them disagree.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from limi import models
from limi.metrics.individual import Rate
from limi.report import _repair_page, wording
from limi.report._fronts import front
from limi.report._repair_page import Cell, Line, place_of, point_of, test_command
from limi.report.next_steps import NextStep
from limi.system import words

__all__ = [
    "answers",
    "basis",
    "card",
    "files",
    "heads",
    "lines",
    "moved",
    "next_step",
    "remarks",
    "render",
    "sentence",
    "skipped",
]

Tree = Mapping[str, Any]

_SHARES = (
    *("accuracy", "favorable", "real", "natural", "real_alone", "natural_alone"),
    *("twins", "twins_kept"),
)
_NAMES = {
    "accuracy": ("accuracy", "share of decisions that are right; higher is better"),
    "auc": ("AUC", "how well scores rank people; higher is better"),
    "calibration": (
        "calibration error",
        ("how far scores and actual shares are apart; lower is better"),
    ),
    "favorable": ("favorable decisions", "share of people who get one"),
    "real": ("flips, real people", "rows of the table"),
    "natural": ("flips, natural people", "people of a generator"),
    "real_alone": ("flips, real, alone", "if only the value changed, and nothing else with it"),
    "natural_alone": (
        "flips, natural, alone",
        ("if only the value changed, and nothing else with it"),
    ),
    "twins": ("changed as a twin", "people decided differently as their twin in another group"),
    "twins_kept": ("changed as a twin, kept", "if one column may differ between the groups"),
    "spd": ("SPD", "gap between the groups' shares of favorable decisions"),
    "opportunity": ("equal opportunity", "gap among people whose true label is favorable"),
    "mean_absolute_error": ("mean absolute error", "in the unit of the target; lower is better"),
    "demographic_parity_difference": (
        "demographic parity difference",
        "gap between the groups' shares in the class where they differ most",
    ),
    "accuracy_score_difference": ("accuracy difference", "gap between the groups' accuracies"),
    "mean_prediction_difference": (
        "mean prediction difference",
        "gap between the groups' mean predictions, in the unit of the target",
    ),
    "mean_absolute_error_difference": (
        "mean absolute error difference",
        "gap between the groups' mean errors, in the unit of the target",
    ),
}

_FIRST = (
    *("accuracy", "mean_absolute_error", "favorable", "real", "natural", "spd"),
    *("demographic_parity_difference", "mean_prediction_difference"),
)
"""The figures that people ask about first."""

RULE = (
    "Among the repairs that make flips rarer and lose no more accuracy than allowed, limi "
    "recommends the one with the fewest flips; among equals, the one that loses the least "
    "accuracy (losses within 0.1 points are equal), then the one that asks the model least per "
    "answer, then the quickest to make."
)

_LEVEL = 0.05  # an error rate under which a difference counts as one
_UNKNOWN: Tree = {"value": None}

_LIMITS = (
    "Flips are measured for the protected values of the run and for the named populations; a low "
    "rate is not a certificate of fairness.",
    "No repair of this kind changes the fact that other columns go along with the protected one: "
    "a person and their twin in another group may still be decided differently. limi test --twin "
    "says through which columns, and --keep shows what remains if some of them may differ.",
    "Group gaps are averages over people who differ in more than the protected value.",
)


def heads(tree: Tree) -> list[str]:
    """The models in the order of the table."""
    return ["as it is", *(one["how"] for one in tree["tried"])]


def sentence(tree: Tree) -> str:
    """Which repair to take."""
    if tree["recommended"] is None:
        return "None of these repairs is recommended."
    best = _best(tree)
    assert best is not None
    close = words.both([best["how"], *tree["close"]])
    if tree["close"]:
        return (
            f"{close} cannot be told apart on these rows; the rule takes {best['how']}: "
            f"{best['words']}."
        )
    return f"Take {best['how']}: {best['words']}."


def basis(tree: Tree) -> str:
    """What a reader should see beside it."""
    best = _best(tree)
    if best is None:
        return " ".join(f"{one['how']}: {one['why']}." for one in tree["tried"])
    figures, before = best["figures"], tree["before"]
    kind = _kind(tree)
    if kind != "favorable":
        cost = (
            f"the mean absolute error goes from {_show('mean_absolute_error', before)} to "
            f"{_show('mean_absolute_error', figures)}"
            if kind == "number"
            else f"accuracy changes by {_change(best)}"
        )
        return (
            f"Flips {best['verdict'].partition(':')[0]}: {_show('natural', before)} of natural "
            f"people before, {_show('natural', figures)} after; {cost}."
        )
    return (
        f"Flips {best['verdict'].partition(':')[0]}: {_show('natural', before)} of natural people "
        f"before, {_show('natural', figures)} after; accuracy changes by {_change(best)}, the "
        f"share of favorable decisions from {_show('favorable', before)} to "
        f"{_show('favorable', figures)}."
    )


def _change(best: Tree) -> str:
    """What becomes of the accuracy, with its interval."""
    value, low, high = (-100 * best["accuracy_loss"][end] for end in ("value", "high", "low"))
    return f"{value:+.2f} points ({low:+.2f} to {high:+.2f})"


def lines(tree: Tree, *, only_first: bool = False) -> list[Line]:
    """Every figure of every model, or those that are asked for first."""
    sides = [(None, tree["before"]), *((one["how"], one["figures"]) for one in tree["tried"])]
    found = []
    for name, (label, aid) in _NAMES.items():
        if only_first and name not in _FIRST:
            continue
        if all(side.get(name, _UNKNOWN)["value"] is None for _, side in sides):
            continue
        cells = tuple(
            Cell(_show(name, side), _interval(name, side), how is not None and how == _taken(tree))
            for how, side in sides
        )
        found.append(Line(label, aid, cells))
    found.append(_count_line(tree, "questions", "questions to the model for one answer", _asked))
    if not only_first:
        found.append(_count_line(tree, "seconds", "to make it, on average", _seconds))
    return found


def _taken(tree: Tree) -> str | None:
    taken: str | None = tree["recommended"]
    return taken


def _count_line(tree: Tree, name: str, aid: str, tell: Any) -> Line:
    best = _taken(tree)
    told = [Cell(tell(one), best=one["how"] == best) for one in tree["tried"]]
    return Line(name, aid, (Cell("1" if name == "questions" else "-"), *told))


def _asked(one: Tree) -> str:
    return str(one["questions_per_answer"])


def _seconds(one: Tree) -> str:
    return f"{one['seconds']:.1f}"


def moved(tree: Tree) -> list[Line]:
    """Who gains and who loses by a repair, by group (`moved_words`)."""
    tried = tree["tried"]
    found = []
    only_changed = _only_changes(tree)
    for number, group in enumerate(tried[0]["moved"] if tried else ()):
        cells = []
        for one in tried:
            told = _repair_page.tell_counts(one["moved"][number], only_changed=only_changed)
            cells.append(Cell(told, best=one["how"] == _taken(tree)))
        found.append(Line(group["group"], f"of {group['people']:,} decisions", tuple(cells)))
    return found


def moved_words(tree: Tree) -> tuple[str, str]:
    """What `moved` counts: a heading, and in short."""
    kind = _kind(tree)
    if kind == "number":
        return f"Who gets another {tree['run']['target']}: more and less", "more / less"
    if kind == "class":
        if tree["run"]["ordered"]:
            return "Who gets a better class, and who a worse one", "better / worse"
        return "Who gets another class", "another class"
    return "Who gains and who loses a favorable decision", "gain / lose"


def rule(tree: Tree) -> str:
    """How the repair to take is chosen."""
    if _kind(tree) != "number":
        return RULE
    most = tree["settings"]["max_accuracy_loss"]
    allowed = words.figure(most * tree["settings"]["loss_scale"])
    return (
        "Among the repairs that make flips rarer and raise the mean error by no more than allowed "
        f"({allowed}: {100 * most:g} % of the error of always predicting the median), limi "
        "recommends the one with the fewest flips; among equals, the one with the smallest error "
        "(differences of 0.1 % of that are equal), then the one that asks the model least per "
        "answer, then the quickest to make."
    )


def _kind(tree: Tree) -> str:
    kind: str = tree["run"]["kind"]
    return kind


def reasons(tree: Tree) -> list[tuple[str, str, str]]:
    """Of each repair its name, why it is or is not the one to take, and the verdict on it."""
    return [(one["how"], one["why"], one["verdict"]) for one in tree["tried"]]


def remarks(tree: Tree) -> list[str]:
    """What a reader must know to read the figures."""
    settings, groups = tree["settings"], tree["groups"]
    told = [_measured_on(settings, _kind(tree))]
    if settings["trained_again"]:
        told.append(f"Models are trained again by {settings['trained_by']}.")
    told += skipped(tree)
    told += [f"{one['how']}: {note}." for one in tree["tried"] for note in one["notes"]]
    if any(one["how"] == "findings" for one in tree["tried"]):
        has_other = _kind(tree) == "favorable" and settings["preset"] != "paper"
        paper = "; the paper's own recipe is --preset paper" if has_other else ""
        told.append(
            f"findings: recipe {settings['recipe']} (preset {settings['preset']}), labelled by "
            f"{settings['label']}, {settings['fraction']:.0%} of the rows{paper}."
        )
    told += _share_words(tree) if _kind(tree) == "favorable" else []
    told.append(_twin_words(tree))
    told.append(_kept_words(tree))
    told.append(
        f"Groups of SPD and equal opportunity: {groups['privileged']} against all others "
        f"({groups['why']})."
        if _kind(tree) == "favorable"
        else (
            "Group differences are the largest between two values of a protected column, under "
            "the names that Fairlearn uses."
        )
    )
    return [one for one in told if one]


def skipped(tree: Tree) -> list[str]:
    """Ways that were not tried, by their reason."""
    by_reason: dict[str, list[str]] = {}
    for how, why in tree["skipped"].items():
        by_reason.setdefault(why, []).append(how)
    return [
        f"{_list(hows)} {'was' if len(hows) == 1 else 'were'} not tried: {why}."
        for why, hows in by_reason.items()
    ]


def _list(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _share_words(tree: Tree) -> list[str]:
    """Where the share of favorable decisions moved, and the threshold that keeps it."""
    found = []
    for one in tree["tried"]:
        share, at = one["share"], one["share"]["threshold_to_keep_it"]
        if share["was_moved"]:
            found.append(
                f"{one['how']} decides above {at:.3g}, so that as many people as before get a "
                "favorable decision; the threshold was chosen on half of these rows, without "
                "their labels."
            )
        elif share["p_value"] < _LEVEL:
            keeps = "" if at is None else f" A threshold of {at:.3g} keeps it (--same-share)."
            found.append(
                f"{one['how']} moves the share of favorable decisions beyond chance: "
                f"{share['gained']:,} people gain one, {share['lost']:,} lose one.{keeps}"
            )
    return found


def _twin_words(tree: Tree) -> str:
    """Whether a repair made more decisions depend on what goes with the protected columns."""
    before = tree["before"]["twins"]
    if before["value"] is None:
        return f"Twins were not asked about: {before.get('reason', 'no groups')}"
    raised = [
        one["how"]
        for one in tree["tried"]
        if one["figures"]["twins"]["value"] is not None
        and one["figures"]["twins"]["value"] > (before.get("high") or before["value"])
    ]
    if not raised:
        return (
            "No repair raised the share of people who are decided differently as their twin "
            "beyond its interval, and none is meant to lower it, because other columns carry it."
        )
    return (
        f"{' and '.join(raised)} raised the share of people who are decided differently as their "
        "twin: other columns have taken over the role of the protected ones."
    )


def _kept_words(tree: Tree) -> str:
    """What letting one column differ would explain of the twins' rate."""
    kept, before = tree["settings"]["kept"], tree["before"]
    if not kept or before["twins_kept"]["value"] is None:
        return ""
    return (
        f"Of the columns that go with the protected ones, {kept} explains most: if it may differ "
        f"between the groups (limi test --twin --keep {shlex.quote(kept)}), "
        f"{_show('twins_kept', before)} are decided differently as their twin, instead of "
        f"{_show('twins', before)}. Whether it may differ is for you to decide."
    )


def fresh(tree: Tree) -> list[str]:
    """What the fresh checks found."""
    used = tree["fresh"]
    told = [
        f"Every model was searched with a different method ({used['method']}), with the generator "
        f"{used['generator']} and a different seed from the run's, and asked about the same fresh "
        "people."
    ]
    for one in tree["tried"]:
        parts = [
            f"{check['words']}: {check['before']:,} of {check['rows']:,} before, "
            f"{check['after']:,} of {check['rows_after']:,} after"
            for check in one["checks"]
        ]
        told.append(f"{one['how']}: {'; '.join(parts)}.")
    return told


def files(tree: Tree) -> list[str]:
    """What the folder holds."""
    added = [tree["added_file"]] if tree["added_file"] else []
    return [*tree["model_files"], *added, "card.md", "report.html", "repair.json"]


def use(tree: Tree) -> list[str]:
    """How the files of the model are used."""
    told = [f"{note[:1].upper()}{note[1:]}." for note in tree["model_notes"]]
    told += [f"To test it again: {command}" for command in _test_commands(tree)]
    others = [one["how"] for one in tree["tried"] if one["how"] != tree["recommended"]]
    if tree["model_files"] and others:
        told.append(f"To get another of these models instead: --how {' or '.join(others)}.")
    return told


def _test_commands(tree: Tree) -> list[str]:
    """The commands that test the model of this folder again, one for each file it is in."""
    names = tree["model_files"]
    if "score.py" in names:
        # The other files are what it opens.
        return [test_command(tree, f"python:{place_of(tree, 'score.py')}:score")]
    kinds = ((models.kind_of_file(name), name) for name in names)
    return [test_command(tree, f"{kind}:{place_of(tree, name)}") for kind, name in kinds if kind]


def card(tree: Tree) -> str:
    """The card of the model to take, in Markdown."""
    run = tree["run"]
    columns = heads(tree)
    return "\n".join(
        [
            "# " + words.markdown(f"{run['model']} on {run['table']}, repaired"),
            "",
            f"**{words.markdown(sentence(tree))}** {words.markdown(basis(tree))}",
            "",
            f"| figure | {' | '.join(columns)} |",
            f"|---|{'---|' * len(columns)}",
            *(
                f"| {line.name} | {' | '.join(cell.value for cell in line.cells)} |"
                for line in lines(tree)
            ),
            "",
            f"## {words.markdown(moved_words(tree)[0])}",
            "",
            f"| group | {' | '.join(columns[1:])} |",
            f"|---|{'---|' * (len(columns) - 1)}",
            *(
                f"| {words.markdown(line.name)} ({line.aid}) | "
                f"{' | '.join(cell.value for cell in line.cells)} |"
                for line in moved(tree)
            ),
            "",
            "## Why",
            "",
            rule(tree),
            "",
            *(_item(f"{how}: {why} ({verdict})") for how, why, verdict in reasons(tree)),
            "",
            *map(_item, [*remarks(tree), *fresh(tree)]),
            "",
            "## Data",
            "",
            _item(
                f"Table: {run['table']}, {tree['settings']['rows']:,} rows, target "
                f"{run['target']}, {_asked_for(run)}; sha256 {run['data_sha256']}"
            ),
            _item(
                "Protected: "
                + "; ".join(f"{name}: {', '.join(v)}" for name, v in run["protected"].items())
            ),
            "",
            "## Use and limits",
            "",
            *map(_item, [*use(tree), *_LIMITS]),
            "",
            f"Made by limi {tree['versions'].get('limi', '')}"
            + (f": {_code(tree['command'])}" if tree["command"] else ""),
            "",
        ]
    )


def render(tree: Tree) -> str:
    """A page of its own; the same bytes for the same tree."""
    run, best = tree["run"], _best(tree)
    taken = best or (tree["tried"][0] if len(tree["tried"]) == 1 else None)
    first = taken or (tree["tried"][0] if tree["tried"] else None)
    others = [one for one in tree["tried"] if one is not first]
    title, short = moved_words(tree)
    bars = None
    if first is not None:
        bars = _repair_page.moved_bars(
            first["how"], first["moved"], only_changed=_only_changes(tree)
        )
    return _repair_page.render(
        _repair_page.RepairPage(
            title=f"{run['model']} on {run['table']}",
            date=tree.get("date", ""),
            verdict=sentence(tree),
            basis=basis(tree),
            answers=answers(tree),
            step=next_step(tree),
            facts=_facts(tree),
            picture=_picture(tree),
            moved=bars,
            moved_title=title,
            moved_aid=_moved_aid(tree, short),
            moved_heads=[one["how"] for one in others],
            moved_lines=moved({**tree, "tried": others}) if others else [],
            heads=heads(tree),
            taken=tree["recommended"],
            lines=lines(tree),
            lines_aid=_measured_on(tree["settings"], _kind(tree)),
            rule=rule(tree),
            reasons=reasons(tree),
            remarks=remarks(tree),
            fresh=fresh(tree),
            use=use(tree),
            limits=_LIMITS,
            command=tree["command"],
            version=tree["versions"].get("limi", ""),
        )
    )


def _only_changes(tree: Tree) -> bool:
    """Are decisions classes of which none is better than another?"""
    return _kind(tree) == "class" and not tree["run"]["ordered"]


def _moved_aid(tree: Tree, short: str) -> str:
    settings = tree["settings"]
    seeds = f", {settings['seeds']} seeds together" if settings["seeds"] > 1 else ""
    held = "held-out rows" if settings["trained_again"] else "rows of the table"
    on = settings["measured_on"] or held
    return f"{short[:1].upper()}{short[1:]}: decisions about the people of {on}{seeds}, by group."


def answers(tree: Tree) -> list[tuple[str, str]]:
    """What somebody asks first, and the answers."""
    best = _best(tree)
    if best is None:
        return [(one["how"], f"{one['why'][:1].upper()}{one['why'][1:]}.") for one in tree["tried"]]
    before, after = tree["before"], best["figures"]
    told = [
        (
            "Flips",
            f"{_show('natural', before)} of natural people before, {_show('natural', after)} after "
            f"(at most {_most(after['natural'])}).",
        )
    ]
    cost = _cost(tree)
    if before.get(cost, _UNKNOWN)["value"] is not None:
        told.append(
            (
                "What it costs",
                f"{_NAMES[cost][0].capitalize()} {_show(cost, before)} before, "
                f"{_show(cost, after)} after.",
            )
        )
    if _only_changes(tree):
        return told
    return told + _repair_page.tell_moved(best["moved"], *_becomes(tree))


def _most(figure: Tree) -> str:
    high = figure.get("high")
    return "an unknown share" if high is None else f"{100 * high:.2g} %"


def _becomes(tree: Tree) -> tuple[str, str]:
    """What becomes of decisions that change."""
    kind = _kind(tree)
    if kind == "number":
        return "rise", "fall"
    if kind == "class":
        return "are better", "are worse"
    wanted = tree["run"].get("favorable_name") or tree["run"]["favorable"]
    return f"become {wanted}", f"no longer are {wanted}"


def next_step(tree: Tree) -> NextStep:
    """What to do with the repair, or without one."""
    if tree["recommended"] is None:
        most = f"{100 * tree['settings']['max_accuracy_loss']:g}"
        most += " point" if most == "1" else " points"
        return NextStep(
            f"Allow a cost in accuracy of more than {most} "
            "(--max-accuracy-loss), or see where decisions flip most and what goes with it (limi "
            "report).",
            "",
        )
    commands = _test_commands(tree)
    if not commands:
        added = tree["added_file"]
        how = f"on the table and {added} together" if added else "that way"
        return NextStep(f"Train the model {how}; limi wrote no file for it.", "")
    return NextStep("Test the repaired model as you would any other.", commands[0])


def _facts(tree: Tree) -> list[tuple[str, str]]:
    settings, best = tree["settings"], _best(tree)
    told = [
        ("Repairs tried", str(len(tree["tried"]))),
        ("Seeds", str(settings["seeds"])),
        ("Rows of the table", words.count(settings["rows"])),
    ]
    if best is not None:
        told.append(("Questions per answer", _asked(best)))
        told.append(("Seconds to make it", _seconds(best)))
    return told


def _cost(tree: Tree) -> str:
    return "mean_absolute_error" if _kind(tree) == "number" else "accuracy"


def _picture(tree: Tree) -> _repair_page.Picture | None:
    """Flips of natural people against accuracy, or against the error of numbers."""
    cost, kind = _cost(tree), _kind(tree)
    sides = [("as it is", tree["before"])]
    sides += [(one["how"], one["figures"]) for one in tree["tried"]]
    scale = 1.0 if kind == "number" else 100.0
    points = [
        point_of(name, side.get(cost, _UNKNOWN), side.get("natural", _UNKNOWN), scale)
        for name, side in sides
    ]
    known = [point for point in points if point is not None]
    if not known or points[0] is None:
        return None
    settings = tree["settings"]
    worse = scale * settings["max_accuracy_loss"] * settings["loss_scale"]
    start = points[0].cost
    drawn = front(
        known,
        limit=start + worse if kind == "number" else start - worse,
        least=2 * worse if kind == "number" else 1.0,
    )
    if drawn is None:
        return None
    return _repair_page.Picture(
        drawn,
        _NAMES[cost][0],
        _NAMES[cost][0] if kind == "number" else "accuracy, %",
        _picture_aid(tree, drawn.limit is not None),
        tuple(
            (name, f"{_show('natural', side)} flip, {_NAMES[cost][0]} {_show(cost, side)}")
            for (name, side), point in zip(sides, points, strict=True)
            if point is not None
        ),
    )


def _picture_aid(tree: Tree, limited: bool) -> str:
    better = "left" if _kind(tree) == "number" else "right"
    seeds = (
        ("A small dot is one seed, a large dot the mean of them")
        if tree["settings"]["seeds"] > 1
        else ""
    )
    what = seeds or "A dot is a model"
    beyond = " The dashed line marks the most that may be lost." if limited else ""
    return f"{what}; the ring is the model as it is. Down and to the {better} is better.{beyond}"


def _asked_for(run: Tree) -> str:
    """What counted as a decision."""
    if run["kind"] == "favorable":
        return f"favorable {run['favorable']}"
    return f"decision {run['decision']}"


def _best(tree: Tree) -> Tree | None:
    return next((one for one in tree["tried"] if one["how"] == tree["recommended"]), None)


def _item(text: str) -> str:
    return f"- {words.markdown(text)}"


def _code(text: str) -> str:
    """Text as Markdown shows it letter by letter, whatever marks it holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{wording.clean(text)}{space}{fence}"


def _measured_on(settings: Tree, kind: str) -> str:
    times = settings["seeds"]
    if not settings["trained_again"]:
        on = settings["measured_on"] or "rows of the table that it may have been trained on"
        return f"The model cannot be trained again, so it is measured unchanged, on {on}."
    measured = {
        "favorable": "accuracy, AUC, calibration, shares and group gaps",
        "class": "accuracy and group gaps",
        "number": "errors and group gaps",
    }[kind]
    mean = f"Means over {times} seeds" if times > 1 else "One seed"
    on = (
        f"each holds out {settings['held_out']:.0%} of the rows, on which {measured} are measured"
        if settings["held_out"]
        else f"measured on {settings['measured_on']}"
        if settings["held_out"] is None
        else "trained on all rows and measured on them"
    )
    return f"{mean} with 95 % intervals; {on}."


def _show(name: str, side: Tree) -> str:
    figure = side.get(name, _UNKNOWN)
    value = figure["value"]
    if value is None:
        return "-"
    if figure.get("unit"):
        return words.figure(value)
    if name not in _SHARES:
        return f"{value:.3f}"
    plain = f"{100 * value:.2f}"
    if figure.get("low") is not None and figure.get("high") is not None:
        plain = max(plain, _percent(figure).estimate, key=len)
    return f"{plain} %"


def _interval(name: str, side: Tree) -> str:
    figure = side.get(name, _UNKNOWN)
    if figure["value"] is None or figure.get("low") is None or figure.get("high") is None:
        return ""
    if figure.get("unit"):
        return f"{words.figure(figure['low'])} to {words.figure(figure['high'])}"
    if name not in _SHARES:
        return f"{figure['low']:.3f} to {figure['high']:.3f}"
    shown = _percent(figure)
    return f"{shown.low} to {shown.high}"


def _percent(figure: Tree) -> wording.Percent:
    return wording.percent(Rate(figure["value"], figure["low"], figure["high"], 0))
