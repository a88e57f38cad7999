"""A record repeated: every question is put to the model again, and the answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.audits.record import cells_of, row_of
from limi.errors import CorruptStore, LimiError
from limi.explore.exploration import Exploration
from limi.explore.person import meet

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


def replay(
    exploration: Exploration, on_step: Callable[[int, int], None] = lambda done, of: None
) -> list[Repeated]:
    """Ask every question of the record again; nothing is written."""
    lines = [entry for entry in exploration.record.entries if "ask" in entry]
    told = []
    for place, entry in enumerate(lines):
        on_step(place, len(lines))
        number, ask = int(entry["number"]), str(entry["ask"])
        if ask not in _AGAIN:
            told.append(Repeated(number, ask, None, "this kind of question is not repeated"))
            continue
        try:
            why = _AGAIN[ask](exploration, entry)
        except CorruptStore as error:
            told.append(Repeated(number, ask, None, str(error)))
        except LimiError as error:
            told.append(Repeated(number, ask, False, str(error)))
        except (KeyError, TypeError, ValueError) as error:
            told.append(Repeated(number, ask, None, f"the line is damaged: {error!r}"))
        else:
            told.append(Repeated(number, ask, not why, why))
    return told


def _person(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    row = row_of(exploration.schema, entry["cells"])
    met = meet(exploration.schema, row, exploration.require_model(), exploration.reading)
    moved = _differ(exploration, [entry["answer"]], [met.own.answer])
    now = {v.label: v.answer for group in met.groups for v in group.variants}
    for label, then in entry["answers"].items():
        if then is not None and _differ(exploration, [then], [now.get(label, np.nan)]):
            moved = moved or f"as {label} {then:.6g} was answered, and now {now.get(label)!r}"
    if met.flips != entry["flips"]:
        return (
            "the person flipped and does so no more" if entry["flips"] else "the person flips now"
        )
    return moved


def _differ(exploration: Exploration, then: list[float], now: list[float]) -> str:
    one, other = np.array(then, dtype=float), np.array(now, dtype=float)
    if exploration.reading.rule.moved(one, other).any() or np.isnan(other).any():
        return f"{then[0]:.6g} was answered, and now {now[0]:.6g}"
    return ""


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
    return f"another change turns it in {', '.join(other)}" if other else ""


def _region(exploration: Exploration, entry: Mapping[str, Any]) -> str:
    from limi import generators
    from limi.explore.regions import look_at
    from limi.streams import Stream

    if not entry["drawn"]:
        return ""
    number = int(entry["look"])
    generator = exploration.generator()
    rng = Stream.EXPLORE.rng(exploration.seed, 0, number)
    look = look_at(
        exploration.region_of(entry["conditions"]),
        number,
        exploration.schema,
        lambda n: generators.draw(generator, n, rng, exploration.schema)[0],
        exploration.require_model(),
        average=exploration.average(),
        most_drawn=int(entry["drawn"]),
    )
    flips = round(look.rate.estimate * look.rate.n) if look.rate.n else 0
    then = (entry["n"], entry["flips"])
    return (
        ""
        if (look.rate.n, flips) == then
        else f"{then[1]:,} of {then[0]:,} flipped, and now {flips:,} of {look.rate.n:,}"
    )


_AGAIN: dict[str, Callable[[Exploration, Mapping[str, Any]], str]] = {
    "person": _person,
    "nearest": _nearest,
    "walk": _walk,
    "region": _region,
}
