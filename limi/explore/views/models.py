"""Two models side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from limi.errors import InvalidInput
from limi.explore.exploration import Both, Match
from limi.explore.views.base import Page, View
from limi.metrics._rate import rate_of
from limi.report.wording import percent

__all__ = ["ModelsView"]

_SHOWN_PEOPLE = 25


class ModelsView(View):
    """What a second model fixes and breaks."""

    def models(self, token: str) -> Page:
        """Two models side by side."""
        ready = {} if self.x.both is None else self._tell_both(self.x.both)
        return self.render(
            "models.html", token, whole=True, here="models", title="Two models", **ready
        )

    def compare(self, token: str, *, whole: bool) -> Page:
        """Begin to compare them."""
        if self.x.other is None:
            raise InvalidInput(
                "there is only one model; name a second one with --against KIND:PLACE"
            )
        return self.begin(
            "Asking both models about the same people",
            "both.html",
            lambda job: self._tell_both(self.x.compare(job)),
            lambda ready: ready,
            token,
            whole=whole,
        )

    def _tell_both(self, both: Both) -> dict[str, Any]:
        return {"both": both, "matches": [self._tell_match(match) for match in both.matches]}

    def _tell_match(self, match: Match) -> dict[str, Any]:
        kinds = (
            ("Fixed: flip with the first model only", match.mended),
            ("Broken: flip with the second model only", match.broke),
            ("Decided differently by the two", match.disagree),
        )
        n = len(match.rows)
        return {
            "match": match,
            "n": n,
            "flips": [
                percent(rate_of(int(side.flips.sum()), int(side.is_paired.sum())))
                for side in (match.mine, match.theirs)
            ],
            "lists": [
                {
                    "title": title,
                    "n": int(mask.sum()),
                    "people": [
                        self._line_of(match, int(k)) for k in np.flatnonzero(mask)[:_SHOWN_PEOPLE]
                    ],
                }
                for title, mask in kinds
            ],
        }

    def _line_of(self, match: Match, place: int) -> dict[str, Any]:
        x = self.x
        row = match.rows[place]
        moving = [x.schema.names[p] for p in x.schema.moving_index]
        shown = [*moving, *(n for n in x.schema.names if n not in moving)]
        shown = [name for name in shown if name not in x.hidden][:6]
        assert x.other_reading is not None
        return {
            "ref": x.keep(row, f"{match.population.capitalize()} person {place + 1:,}"),
            "words": ", ".join(
                f"{name} {x.schema[name].show(float(row[x.schema.position(name)]))}"
                for name in shown
            ),
            "mine": x.reading.tell(float(match.mine.score[place])),
            "theirs": x.other_reading.tell(float(match.theirs.score[place])),
        }
