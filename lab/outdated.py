"""Kept cells that today's program would run again: which they are, and why, as far as they say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from lab.cells import Cell
from lab.files import Study, folder
from lab.results import DONE, Outcome, Results
from limi.metrics._enough import FEWEST_TO_JUDGE

__all__ = ["OLDER", "Marks", "describe_outdated", "find_older", "find_outdated", "take_marks"]

OLDER = " ‡"
"""Beside a number whose cells are known to be of a program that searched otherwise."""

Marks = Mapping[tuple[str, str], float]
"""Accuracy of today's targets, by table and kind, where a cell that is up to date shows it."""

_SAME = 1e-4  # accuracies are kept with four or five digits
# What a search measures whatever it finds, and by what its study asks for beside.
_SEARCH = ("seconds_before", "per_row", "curve", "one_apart")
_EXTRAS = {
    "definitions": ("atn_07", "atn_032"),
    "representative": ("representative_atn",),
    "likeness": ("likeness",),
    "detection": ("detection_logistic", "detection_boosted", "detection_svc"),
    "distance": ("distance",),
    "plausible": ("plausible", "plausible_low"),
}
_REPAIR = ("if_m", "if_n", "added")


def find_outdated(
    results: Results, cells: Iterable[Cell], marks: Marks | None = None
) -> dict[str, str]:
    """Why today's program would run a shown cell again, by the cell's name."""
    told = {}
    for cell in cells:
        outcome = results.outcomes.get(cell.name)
        if outcome is not None and outcome.status == DONE and outcome.digest != cell.digest():
            told[cell.name] = _tell_why(cell, outcome, marks or {})
    return told


def describe_outdated(results: Results, reasons: Mapping[str, str]) -> str:
    """Those cells in a sentence, by reason and variant; nothing where there are none."""
    counts: dict[str, dict[str, int]] = {}
    for name, why in reasons.items():
        variants = counts.setdefault(why, {})
        variant = results.outcomes[name].variant
        variants[variant] = variants.get(variant, 0) + 1
    if not counts:
        return ""
    parts = "; ".join(
        f"{', '.join(f'`{variant}` ({n:,})' for variant, n in variants.items())}: {why}"
        for why, variants in counts.items()
    )
    return f"{len(reasons):,} of the cells shown would be run again today: {parts}."


def take_marks(known: Iterable[tuple[Results, Sequence[Cell]]]) -> Marks:
    """The accuracy of today's targets, as far as cells that are up to date show it."""
    marks = {}
    for results, cells in known:
        for cell in cells:
            outcome = results.outcomes.get(cell.name)
            if outcome is None or outcome.status != DONE:
                continue
            accuracy = _accuracy(outcome)
            place = (cell.table, cell.target)
            if accuracy is not None and place not in marks and outcome.digest == cell.digest():
                marks[place] = accuracy
    return marks


def _accuracy(outcome: Outcome) -> float | None:
    """Of the target that was tested: in a repair, of the one before."""
    value = outcome.measures.get("before", outcome.measures).get("accuracy")
    return float(value) if isinstance(value, (int, float)) else None


def _tell_why(cell: Cell, outcome: Outcome, marks: Marks) -> str:
    if outcome.revision < cell.revision:
        why = f"revision {outcome.revision} of the method, which is now at {cell.revision}"
        least = _unchanged_from().get(cell.method)
        if least is None or _rows(outcome) < least:
            return why
        return f"{why} and finds the same in budgets of {least:,} rows or more"
    if other := _list_changes(_given(outcome), cell.given):
        return f"other settings ({', '.join(other)})"
    mark, accuracy = marks.get((cell.table, cell.target)), _accuracy(outcome)
    if mark is not None and accuracy is not None and abs(mark - accuracy) > _SAME:
        return f"another target (accuracy {accuracy:.4f}, and now {mark:.4f})"
    known = mark is not None and accuracy is not None
    same = "settings and target as today's" if known else "settings as today's"
    wanted = _list_measures(cell, outcome)
    lacking = [name for name in wanted or () if name not in outcome.measures]
    if lacking:
        return f"{same}, but without measures that were added since ({', '.join(lacking)})"
    whole = "" if wanted is None else ", and no measure is missing"
    return f"{same}{whole}; cells do not say what else was changed"


def _given(outcome: Outcome) -> dict[str, Any]:
    """What it says of itself, but for where it was run."""
    return {k: v for k, v in outcome.given.items() if k not in ("device", "machine")}


def _list_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Names of what differs, those inside of settings one by one."""
    told = []
    for name in {**old, **new}:
        one, two = old.get(name), new.get(name)
        if one != two:
            is_deep = isinstance(one, Mapping) or isinstance(two, Mapping)
            told += _list_changes(one or {}, two or {}) if is_deep else [name]
    return told


def _rows(outcome: Outcome) -> float:
    """Rows that its budget paid for, as far as it says."""
    return float(max(outcome.measures.get("rows") or 0, outcome.given.get("max_rows", 0)))


@cache
def _unchanged_from() -> dict[str, int]:
    """Methods whose last revision changed small budgets alone, and from how many rows on not."""
    tree = tomllib.loads((folder() / "scales.toml").read_text(encoding="utf-8"))
    return dict(tree.get("unchanged_from", {}))


def _list_measures(cell: Cell, outcome: Outcome) -> list[str] | None:
    """Measures that today's program would have taken of such a cell; None where it is not known."""
    if cell.kind == "repair" and "how" not in cell.extra:
        return list(_REPAIR)
    if cell.kind != "search" or "place" in cell.extra:
        return None
    wanted = list(_SEARCH)
    if outcome.measures.get("findings", 0) >= 4 * FEWEST_TO_JUDGE:
        wanted += [name for extra in cell.extras for name in _EXTRAS.get(extra, ())]
    return wanted


def find_older(study: Study, results: Results) -> dict[str, list[str]]:
    """What is known of cells of an earlier program, and the variants that have such cells.

    They are told by a measure that they lack, so a cell that was run again is not among them. What
    is known of them is known of a study that shows the same cells, too.
    """
    told: dict[str, list[str]] = {}
    for one in dict.fromkeys((*study.older, *study.planner.older)):
        for variant in one.variants:
            cells = [o for o in results.outcomes.values() if o.variant == variant]
            lacks = any(o.status == DONE and one.lacks not in o.measures for o in cells)
            if lacks and variant not in told.get(one.says, ()):
                told.setdefault(one.says, []).append(variant)
    return told
