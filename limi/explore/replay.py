"""A record repeated: every question is put to the model again, and the answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.audits.record import Record, cells_of, row_of
from limi.errors import CorruptStore, LimiError
from limi.explore.exploration import Exploration, count_flips
from limi.explore.person import meet
from limi.explore.reading import Reading

__all__ = ["Repeated", "replay"]


@dataclass(frozen=True)
class Repeated:
    """One line of the record, asked again."""

    number: int
    ask: str
    same: bool | None  # None where it could not be asked
    why: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"number": self.number, "ask": self.ask, "same": self.same, "why": self.why}


class _Unasked(Exception):
    """A question that cannot be put again as it was, with a sentence."""


def replay(
    exploration: Exploration, on_step: Callable[[int, int], None] = lambda done, of: None
) -> list[Repeated]:
    """Ask every question of the record again; nothing is written."""
    lines = [entry for entry in exploration.record.entries if "ask" in entry]
    aside = replace(exploration, record=Record(None, lambda: ""))
    told = []
    for place, entry in enumerate(lines):
        on_step(place, len(lines))
        told.append(_repeat(aside, entry))
    return told


def _repeat(exploration: Exploration, entry: Mapping[str, Any]) -> Repeated:
    number, ask = int(entry["number"]), str(entry["ask"])
    if ask not in _AGAIN:
        return Repeated(number, ask, None, "this kind of question is not repeated")
    try:
        why = _AGAIN[ask](exploration, entry)
    except (CorruptStore, _Unasked) as error:
        return Repeated(number, ask, None, str(error))
    except LimiError as error:
        return Repeated(number, ask, False, str(error))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Repeated(number, ask, None, f"the line is damaged: {error!r}")
    return Repeated(number, ask, not why, why)


def _require_other(exploration: Exploration, entry: Mapping[str, Any]) -> None:
    if "other" in entry and exploration.other is None:
        raise _Unasked(
            f"two models were asked, and one is here; name the second with --against "
            f"({entry['other']} then)"
        )


def _person(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    row = row_of(exploration.schema, entry["cells"])
    second = exploration.second if "other" in entry else None
    asker, reading = exploration.require_model(), exploration.reading
    met = meet(exploration.schema, row, asker, reading, other=second)
    if met.flips != entry["flips"]:
        return "the person flipped and no longer does" if entry["flips"] else "the person flips now"
    variants = [v for group in met.groups for v in group.variants]
    own = "" if entry["answer"] is None else _differ(reading, entry["answer"], met.own.answer)
    why = own or _differ_any(reading, entry["answers"], {v.label: v.answer for v in variants})
    if why:
        return why
    _require_other(exploration, entry)
    if second is None:
        return ""
    theirs = {v.label: v.other_answer for v in variants}
    why = _differ_any(second[1], entry["other_answers"], theirs)
    return f"second model: {why}" if why else ""


def _differ_any(reading: Reading, then: Mapping[str, Any], now: Mapping[str, float]) -> str:
    """In words, the first answer that is another one now; empty where none is."""
    for label, answer in then.items():
        why = "" if answer is None else _differ(reading, answer, now.get(label, np.nan))
        if why:
            return f"as {label} {why}"
    return ""


def _differ(reading: Reading, then: float, now: float) -> str:
    moved = reading.rule.moved(np.array([then], dtype=float), np.array([now]))
    return f"{then:.6g} was answered, and now {now:.6g}" if moved.any() or np.isnan(now) else ""


def _nearest(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    schema = exploration.schema
    around = exploration.neighbourhood(row_of(schema, entry["cells"]))
    asker = exploration.require_model()
    near = around.find_nearest(entry["goal"], asker, int(entry["budget"]))
    now = None if near.found is None else cells_of(schema, near.found.row)
    return "" if now == entry["found"] else "the nearest is somebody else now"


def _walk(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    around = exploration.neighbourhood(row_of(exploration.schema, entry["cells"]))
    now = {turn.column: turn.to for turn in around.walk(exploration.require_model())}
    other = sorted(name for name, to in entry["turns"].items() if now.get(name) != to)
    return f"a different change turns it in {', '.join(other)}" if other else ""


def _region(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    if not entry["drawn"]:
        return ""
    _require_other(exploration, entry)
    look = exploration.look_at(
        exploration.region_of(entry["conditions"]),
        number=int(entry["look"]),
        most_drawn=int(entry["drawn"]),
    )
    then, now = (entry["flips"], entry["n"]), (count_flips(look.rate), look.rate.n)
    if then != now:
        return f"{then[0]:,} of {then[1]:,} flipped, and now {now[0]:,} of {now[1]:,}"
    theirs = None if look.other is None else count_flips(look.other)
    if "other" in entry and theirs != entry["other_flips"]:
        return f"{entry['other_flips']:,} flipped with the second model, and now {theirs:,}"
    return ""


def _twins(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    told = exploration.ask_twins(row_of(exploration.schema, entry["cells"]))
    now = {twin.group: [twin.n - twin.same, twin.n] for twin in told}
    for group, (hits, n) in entry["groups"].items():
        if now.get(group) != [hits, n]:
            again, of = now.get(group, (0, 0))
            return (
                f"{hits:,} of {n:,} twins as {group} were decided differently, and now {again:,} "
                f"of {of:,}"
            )
    return ""


def _models(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    _require_other(exploration, entry)
    both = exploration.compare()
    now = {match.population: match.counts for match in both.matches}
    for population, counts in now.items():
        for name, n in counts.items():
            if entry[population][name] != n:
                return f"{name} among {population} people: {entry[population][name]:,}, now {n:,}"
    if (entry["findings"], entry["still"]) != (both.findings, both.still):
        return (
            f"{entry['still']:,} of {entry['findings']:,} findings still flipped with the second "
            f"model, and now {both.still:,} of {both.findings:,}"
        )
    return ""


_AGAIN: dict[str, Callable[[Exploration, Mapping[str, Any]], str]] = {
    "person": _person,
    "nearest": _nearest,
    "walk": _walk,
    "region": _region,
    "twins": _twins,
    "models": _models,
}
