"""One person: a card, and what can be asked about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.explore.exploration import NEAREST_BUDGET, Who
from limi.explore.jobs import Job
from limi.explore.near import Near, Turn
from limi.explore.person import change_cells
from limi.explore.query import Query
from limi.explore.views.base import Page, tell_share
from limi.explore.views.findings import FindingsView

__all__ = ["PersonView"]


class PersonView(FindingsView):
    """The card of a person."""

    def person(self, ref: str, query: Query, token: str) -> Page:
        """The card of somebody, before the model is asked."""
        who = self.x.who(ref)
        row = self._changed(who, query)
        cells, broken = self.x.show_person(row, who.row)
        found = None
        if ref[0] in "fp" and self.x.found is not None:
            found = self.found_lines(np.array([int(ref[1:])]))[0]
        return self.render(
            "person.html",
            token,
            whole=True,
            here="person",
            title=who.words,
            who=who,
            cells=cells,
            broken=broken,
            found=found,
            budget=NEAREST_BUDGET,
            can_ask=self.x.asker is not None,
            has_table=self.x.rows is not None,
            blind=self.x.asker is not None and self.x.asker.target.blind,
        )

    def _changed(self, who: Who, form: Query) -> NDArray[np.float64]:
        given = {
            int(name[5:]): value
            for name, value in form.pairs
            if name.startswith("cell-") and name[5:].isdecimal() and len(name) < 12
        }
        return change_cells(self.x.schema, who.row, given, self.x.hidden)

    def act(self, ref: str, action: str, form: Query, token: str, *, whole: bool) -> Page:
        """A question about somebody, or what stands for it while the model works."""
        who = self.x.who(ref)
        row = self._changed(who, form)
        x = self.x
        works: dict[str, tuple[str, str, Callable[[Job], Any], Callable[[Any], dict[str, Any]]]] = {
            "ask": (
                "Asking the model",
                "answer.html",
                lambda job: x.ask_person(row, who.row, job),
                lambda met: {"met": met, "reading": x.reading},
            ),
            "flip": (
                "Looking for the nearest person who flips",
                "near.html",
                lambda job: self._keep_near(x.find_nearest(row, "flip", job), who),
                lambda ready: ready,
            ),
            "steady": (
                "Looking for the nearest person who does not flip",
                "near.html",
                lambda job: self._keep_near(x.find_nearest(row, "steady", job), who),
                lambda ready: ready,
            ),
            "walk": (
                "Walking to the boundary",
                "walk.html",
                lambda job: [self._keep_turn(turn) for turn in x.walk(row, job)],
                lambda turns: {"turns": turns},
            ),
            "alike": (
                "Looking for people like this",
                "alike.html",
                lambda job: x.find_alike(row),
                lambda alike: {"alike": alike, "names": x.schema.names},
            ),
            "twins": (
                "Asking about twins",
                "twins.html",
                lambda job: x.ask_twins(row, job),
                lambda twins: {"twins": twins},
            ),
            "bookmark": (
                "Keeping this person",
                "kept.html",
                lambda job: x.bookmark(row, who.row, form.get("note").strip(), job),
                lambda kept: {},
            ),
        }
        if action not in works:
            raise InvalidInput("there is no such question")
        if action not in ("alike", "bookmark"):
            x.require_model()
        return self.begin(*works[action], token, whole=whole)

    def _keep_near(self, near: Near, who: Who) -> dict[str, Any]:
        """What was found, and a way to whom."""
        ready: dict[str, Any] = {"near": near, "ref": "", "natural": None}
        if near.found is not None:
            words = "flips" if near.goal == "flip" else "does not flip"
            ready["ref"] = self.x.keep(
                near.found.row, f"The nearest to {who.words.lower()} who {words}"
            )
            if self.x.judge is not None:
                told = float(self.x.judge.p_values(near.found.row[None])[0])
                ready["natural"] = tell_share(told)
        return ready

    def _keep_turn(self, turn: Turn) -> dict[str, Any]:
        told = None if turn.row is None else self.x.reading.tell(turn.answer)
        ref = "" if turn.row is None else self.x.keep(turn.row, f"With {turn.column} {turn.to}")
        return {"turn": turn, "told": told, "ref": ref}
