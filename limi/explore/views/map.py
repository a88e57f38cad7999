"""People and findings on two axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limi.errors import InvalidInput
from limi.explore import density
from limi.explore.jobs import Job
from limi.explore.query import Query
from limi.explore.views.base import Page, View
from limi.generators import Encoder
from limi.streams import Stream
from limi.types import Rows

__all__ = ["MapView"]

_MOST_ENCODED = 20_000  # findings that are placed along latent directions
_RULED = 50_000  # findings by which the ends of a scale are found


class MapView(View):
    """The map."""

    def map(self, query: Query, token: str) -> Page:
        """People and findings on two axes."""
        x = self.x
        names = [f"c{p}" for p in range(len(x.schema)) if x.schema.names[p] not in x.hidden]
        latent = x.rows is not None and x.found is not None and len(x.found) > 1
        usual = [
            f"c{p}"
            for p in x.schema.free_index
            if x.schema.columns[p].kind == "numerical" and x.schema.names[p] not in x.hidden
        ]
        usual = [*usual, *(n for n in names if n not in usual)]
        across = query.get("x") if query.get("x") in (*names, "latent") else usual[0]
        up = query.get("y") if query.get("y") in names else usual[min(1, len(usual) - 1)]
        if across == "latent" and not latent:
            across = usual[0]
        who = query.get("people")
        who = who if who in ("real", "natural") else "natural"
        if x.rows is None:
            who = "none"
        content: dict[str, Any] = {
            "axes": [(n, x.schema.columns[int(n[1:])].name) for n in names],
            "across": across,
            "up": up,
            "who": who,
            "latent": latent,
        }
        job = self.await_job(
            "Drawing the map",
            "mapped.html",
            lambda job: self._draw_map(across, up, who, job),
            lambda drawn: drawn,
        )
        ready: dict[str, Any] = job.result if job.state == "done" and job.result else {}
        return self.render(
            "map.html",
            token,
            whole=True,
            here="map",
            title="Map",
            job=job,
            state=job.state,
            **content,
            **ready,
        )

    def _draw_map(self, across: str, up: str, who: str, job: Job) -> dict[str, Any]:
        x = self.x
        people = np.empty((0, len(x.schema)))
        if who == "real" and x.rows is not None:
            people = x.rows
        elif who == "natural":
            people = x.natural_people(job)
        if across == "latent":
            axes, mine, theirs, which = self._along_latents(people, job)
        else:
            axes, mine, theirs, which = self._along_columns(across, up, people)
        grid = density.bin_people(axes, mine, theirs)
        most = max((b.n for b in grid.bins), default=1) or 1
        most_found = max((b.findings for b in grid.bins), default=1) or 1
        marks = []
        for one in grid.bins:
            ref = ""
            if one.first >= 0 and one.is_finding:
                ref = f"f{int(which[one.first]) if which is not None else one.first}"
            elif one.first >= 0 and who == "real":
                ref = f"r{one.first}"
            elif one.first >= 0:
                ref = x.keep(people[one.first], "A natural person")
            marks.append(
                {
                    "bin": one,
                    "ref": ref,
                    "shade": _shade(one.n, most),
                    "found": _shade(one.findings, most_found),
                }
            )
        return {"grid": grid, "marks": marks, "axis_x": axes[0], "axis_y": axes[1], "whose": who}

    def _along_columns(self, across: str, up: str, people: Rows) -> Any:
        x, places = self.x, [int(name[1:]) for name in (across, up)]
        nobody = np.empty(0)
        axes, mine, theirs = [], [], []
        for position in places:
            column = x.schema.columns[position]
            own, found, values = people[:, position], nobody, nobody
            if x.found is not None:
                strip = x.found.sheet[f"c{position}"]
                found = strip.cells
                if strip.places is not None or column.kind != "numerical":
                    values = strip.present
            step = max(1, len(found) // _RULED)
            axes.append(density.Axis.of(column, np.concatenate([own, found[::step]]), values))
            mine.append(own)
            theirs.append(found)
        return tuple(axes), tuple(mine), tuple(theirs), None

    def _along_latents(self, people: Rows, job: Job) -> Any:
        x = self.x
        generator = x.generator(job)
        if not isinstance(generator, Encoder):
            raise InvalidInput(
                f"the generator {x.generator_name!r} cannot find the latents of people; choose two "
                "columns"
            )
        assert x.found is not None
        rng = Stream.EXPLORE.rng(x.seed, 5)
        which = np.arange(len(x.found))
        if len(which) > _MOST_ENCODED:
            which = np.sort(rng.choice(len(which), _MOST_ENCODED, replace=False))
        own = generator.encode(people[:_MOST_ENCODED], rng)
        found = generator.encode(x.found.rows(which), rng)
        ways = density.tell_directions(own, found)
        names = self._latent_names(own.shape[1])
        axes, mine, theirs = [], [], []
        for way in ways:
            one, other = own @ way, found @ way
            low, high = np.quantile(np.concatenate([one, other]), [0.001, 0.999])
            title = density.name_direction(way, names)
            axes.append(density.Axis(title, float(low), float(high)))
            mine.append(one)
            theirs.append(other)
        return tuple(axes), tuple(mine), tuple(theirs), which

    def _latent_names(self, width: int) -> list[str]:
        schema = self.x.schema
        derived = set(schema.enforcer.derived_index.tolist())
        names = [name for p, name in enumerate(schema.names) if p not in derived]
        if len(names) == width:
            return names
        return schema.names if len(schema) == width else [f"latent {k + 1}" for k in range(width)]


def _shade(n: int, most: int) -> float:
    """How dark a count is drawn, from 0 to 1; by its root, because counts fall off fast."""
    return round(math.sqrt(n / most), 3) if n else 0.0
