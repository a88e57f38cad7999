"""The pages of an exploration, rendered here: what a request becomes, apart from how it came."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.record import row_of
from limi.errors import InvalidInput, LimiError
from limi.explore import density
from limi.explore.exploration import NEAREST_BUDGET, Exploration, Match, Who
from limi.explore.found import FIGURES
from limi.explore.jobs import Job
from limi.explore.near import Near, Turn
from limi.explore.person import change_cells
from limi.explore.query import FacetView, Query, facet_view, filters_of
from limi.explore.sheet import Selection, Sheet
from limi.generators import Encoder
from limi.metrics._rate import Rate
from limi.metrics.regions import Region
from limi.metrics.regions import Rule as RegionRule
from limi.report import charts
from limi.report._pages import environment
from limi.report.wording import percent
from limi.system.words import both, count
from limi.types import Index, Rows

__all__ = ["Page", "Pages"]

PAGE_ROWS = 25
DRAWN = 20
_PATIENCE = 1.5  # seconds that a request waits for an answer before it says that it waits
_FIGURE_TITLES = {
    "severity": "Severity",
    "naturalness": "Naturalness of the person",
    "partner_naturalness": "Naturalness of the partner",
    "direction": "Who is favored",
    "origin": "How it was found",
    "flipped_by": "What flips it",
    "change": "With the other model",
}
_SHOWN_PEOPLE = 25
_MOST_ENCODED = 20_000  # findings that are placed along latent directions
_ENTRIES = 200


@dataclass(frozen=True)
class Page:
    """What a request is answered with."""

    body: str
    status: int = 200


class Pages:
    """Renders what an exploration knows."""

    def __init__(self, exploration: Exploration) -> None:
        self.x = exploration
        self._environment = environment("limi.explore")
        self._kinds: dict[int, tuple[str, dict[str, Any]]] = {}
        # ^ by the number of a job: the template of its answer, and what that needs beside it

    # -- rendering ------------------------------------------------------------------------------

    def render(
        self, template: str, token: str, *, whole: bool, status: int = 200, **content: Any
    ) -> Page:
        """A page, or the part of it that a script puts into one."""
        x = self.x
        body = self._environment.get_template(template).render(
            whole=whole,
            token=token,
            x=x,
            asked=x.meter.asked,
            most=x.meter.most,
            bookmarks=len(x.record.bookmarks),
            **content,
        )
        return Page(body, status)

    def message(
        self, sentence: str, token: str = "", *, whole: bool = True, status: int = 400
    ) -> Page:
        """One sentence."""
        return self.render(
            "message.html", token, whole=whole, status=status, sentence=sentence, here=""
        )

    # -- findings and people --------------------------------------------------------------------

    def findings(self, query: Query, token: str) -> Page:
        """A table of findings with facets."""
        found = self.x.found
        if found is None:
            return self.people(query, token)
        chosen = found.sheet.select(filters_of(found.sheet, query))
        by = query.get("sort")
        by = by if by in found.sheet.strips else ""
        falling = query.get("down") == "1"
        drawn = query.get("draw") == "1"
        page = query.number("page", 1, 10**9) or 1
        pages = max(1, math.ceil(chosen.n / PAGE_ROWS))
        page = min(page, pages)
        if drawn:
            which = found.draw_diverse(chosen, DRAWN) if chosen.n else np.arange(0)
        elif by:
            which = chosen.page((page - 1) * PAGE_ROWS, PAGE_ROWS, by, falling=falling)
        else:
            which = self._by_priority(chosen, (page - 1) * PAGE_ROWS)
        return self.render(
            "findings.html",
            token,
            whole=True,
            here="findings",
            title="Findings",
            facets=self._facets(found.sheet, chosen, query, "/findings"),
            regions=self._region_facets(chosen, query),
            lines=self._found_lines(which),
            columns=self._columns(),
            n=chosen.n,
            total=len(found),
            page=page,
            pages=pages,
            drawn=drawn,
            by=by,
            falling=falling,
            query=query,
            url=lambda **changes: f"/findings?{query.replace(changes).encode()}",
            filtered=bool(chosen.filters),
            hidden_pairs=[pair for pair in query.pairs if pair[0] in ("sort", "down") and pair[1]],
        )

    def _by_priority(self, chosen: Selection, start: int) -> Index:
        assert self.x.found is not None
        order = self.x.found.by_priority
        if chosen.mask is not None:
            order = order[chosen.mask[order]]
        return order[start : start + PAGE_ROWS].astype(np.intp)

    def _facets(self, sheet: Sheet, chosen: Selection, query: Query, path: str) -> list[FacetView]:
        schema = self.x.schema
        protected = [f"c{schema.position(name)}" for name in schema.protected]
        names = [n for n in ("direction", "change", "flipped_by", *FIGURES) if n in sheet.strips]
        names += [name for name in protected if name in sheet.strips]
        names += [
            f"c{position}"
            for position in range(len(schema))
            if f"c{position}" not in names and schema.names[position] not in self.x.hidden
        ]
        told = chosen.facets(names)
        views = []
        for name, facet in zip(names, told, strict=True):
            strip = sheet[name]
            title = _FIGURE_TITLES.get(name) or schema.columns[int(name[1:])].name
            views.append(facet_view(strip, facet, title, query, path))
        return views

    def _region_facets(self, chosen: Selection, query: Query) -> list[dict[str, Any]]:
        found = self.x.found
        assert found is not None
        lines = []
        for number, region in enumerate(found.regions):
            name = f"g{number}"
            facet = chosen.facets([name])[0]
            inside = facet.slots[1].n if len(facet.slots) > 1 else 0
            lines.append(
                {
                    "name": name,
                    "label": str(region),
                    "n": inside,
                    "chosen": "1" in query.all(name),
                }
            )
        return lines

    def _columns(self) -> list[tuple[str, str]]:
        """Columns of the table of findings: the protected ones and what goes along first."""
        schema = self.x.schema
        moving = [] if self.x.found is None else list(self.x.found.moving)
        rest = [p for p in range(len(schema)) if p not in moving]
        return [(f"c{position}", schema.names[position]) for position in (*moving, *rest)]

    def _found_lines(self, which: Index) -> list[dict[str, Any]]:
        found, schema = self.x.found, self.x.schema
        assert found is not None
        if not len(which):
            return []
        rows, partners = found.rows(which), found.partners(which)
        figures = {name: found.sheet[name].take(which) for name in FIGURES}
        scores = found.sheet["score"].take(which), found.sheet["partner_score"].take(which)
        lines = []
        for k, place in enumerate(which.tolist()):
            cells = []
            for name, _ in self._columns():
                position = int(name[1:])
                column = schema.columns[position]
                mine, theirs = (column.show(float(r[k, position])) for r in (rows, partners))
                cells.append((mine, theirs if theirs != mine else ""))
            lines.append(
                {
                    "ref": f"f{place}",
                    "number": place + 1,
                    "cells": cells,
                    "own": self.x.reading.tell(float(scores[0][k])),
                    "partner": self.x.reading.tell(float(scores[1][k])),
                    "severity": float(figures["severity"][k]),
                    "natural": _share(float(figures["naturalness"][k])),
                    "partner_natural": _share(float(figures["partner_naturalness"][k])),
                }
            )
        return lines

    def people(self, query: Query, token: str) -> Page:
        """Rows of the table with facets, what is hidden left out."""
        sheet = self.x.people
        if sheet is None:
            return self.message(
                "The table is not at hand, so there are no people to show; start limi explore "
                "with --table FILE.",
                token,
                status=404,
            )
        chosen = sheet.select(filters_of(sheet, query))
        by = query.get("sort")
        by = by if by in sheet.strips else ""
        falling = query.get("down") == "1"
        pages = max(1, math.ceil(chosen.n / PAGE_ROWS))
        page = min(query.number("page", 1, 10**9) or 1, pages)
        which = chosen.page((page - 1) * PAGE_ROWS, PAGE_ROWS, by or None, falling=falling)
        schema = self.x.schema
        shown = [p for p in range(len(schema)) if schema.names[p] not in self.x.hidden]
        assert self.x.rows is not None
        lines = [
            {
                "ref": f"r{place}",
                "number": place + 1,
                "cells": [schema.columns[p].show(float(self.x.rows[place, p])) for p in shown],
            }
            for place in which.tolist()
        ]
        return self.render(
            "people.html",
            token,
            whole=True,
            here="people",
            title="People",
            facets=self._facets(sheet, chosen, query, "/people"),
            lines=lines,
            columns=[(f"c{p}", schema.names[p]) for p in shown],
            n=chosen.n,
            total=len(sheet),
            page=page,
            pages=pages,
            by=by,
            falling=falling,
            url=lambda **changes: f"/people?{query.replace(changes).encode()}",
            filtered=bool(chosen.filters),
            hidden_pairs=[pair for pair in query.pairs if pair[0] in ("sort", "down") and pair[1]],
        )

    # -- one person -----------------------------------------------------------------------------

    def person(self, ref: str, query: Query, token: str) -> Page:
        """The card of somebody, before the model is asked."""
        who = self.x.who(ref)
        row = self._changed(who, query)
        cells, broken = self.x.show_person(row, who.row)
        found = None
        if ref[0] in "fp" and self.x.found is not None:
            found = self._found_lines(np.array([int(ref[1:])]))[0]
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
        works: dict[str, tuple[str, str, Callable[[Job], Any]]] = {
            "ask": ("Asking the model", "answer.html", lambda j: x.ask_person(row, who.row, j)),
            "flip": (
                "Looking for the nearest person who flips",
                "near.html",
                lambda j: x.find_nearest(row, "flip", j),
            ),
            "steady": (
                "Looking for the nearest person who does not flip",
                "near.html",
                lambda j: x.find_nearest(row, "steady", j),
            ),
            "walk": ("Walking to the boundary", "walk.html", lambda j: x.walk(row, j)),
            "alike": ("Looking for people like this", "alike.html", lambda j: x.find_alike(row)),
            "twins": ("Asking about twins", "twins.html", lambda j: x.ask_twins(row, j)),
        }
        if action == "bookmark":
            x.bookmark(row, who.row, form.get("note").strip())
            return self.render("kept.html", token, whole=whole, here="person", title=who.words)
        if action not in works:
            raise InvalidInput("there is no such question")
        if action != "alike":
            x.require_model()
        title, template, work = works[action]
        return self._begin(title, template, work, token, whole=whole, who=who, row=row)

    # -- jobs -----------------------------------------------------------------------------------

    def _begin(
        self,
        title: str,
        template: str,
        work: Callable[[Job], Any],
        token: str,
        *,
        whole: bool,
        **content: Any,
    ) -> Page:
        job = self.x.jobs.start(title, work)
        self._kinds[job.number] = (template, content)
        while len(self._kinds) > 400:
            del self._kinds[next(iter(self._kinds))]
        job.wait(_PATIENCE)
        return self.job(job.number, token, whole=whole)

    def job(self, number: int, token: str, *, whole: bool) -> Page:
        """How a question stands: its answer, or that it is being waited for."""
        job = self.x.jobs.get(number)
        template, content = self._kinds.get(number, ("message.html", {}))
        state = job.state
        common: dict[str, Any] = {"job": job, "state": state, "here": "job", "title": job.title}
        if state == "failed":
            return self.render("message.html", token, whole=whole, sentence=job.error, **common)
        told = job.result if state == "done" else job.partial
        ready = {} if told is None else self._ready(template, told, content)
        if state == "done" or (ready and template == "look.html"):
            return self.render(template, token, whole=whole, **common, **content, **ready)
        words = told.get("words", "") if isinstance(told, dict) else ""
        asked = told.get("queries") if isinstance(told, dict) else None
        return self.render("waiting.html", token, whole=whole, words=words, queries=asked, **common)

    def cancel(self, number: int, token: str, *, whole: bool) -> Page:
        """Stop waiting."""
        job = self.x.jobs.get(number)
        job.cancel()
        job.wait(_PATIENCE)
        return self.job(number, token, whole=whole)

    def _ready(self, template: str, told: Any, content: Mapping[str, Any]) -> dict[str, Any]:
        """What a template needs of an answer."""
        if template == "answer.html":
            return {"met": told, "reading": self.x.reading, "other": self.x.other_name}
        if template == "near.html":
            return self._ready_near(told, content)
        if template == "walk.html":
            return {"turns": [self._ready_turn(turn) for turn in told]}
        if template == "alike.html":
            return {"alike": told, "names": self.x.schema.names}
        if template == "twins.html":
            return {"twins": told}
        if template == "look.html":
            return {} if isinstance(told, dict) else self._ready_look(told)
        if template == "both.html":
            return {} if isinstance(told, dict) else self._ready_both()
        if template == "mapped.html":
            return {} if isinstance(told, dict) else told
        return {}

    def _ready_near(self, near: Near, content: Mapping[str, Any]) -> dict[str, Any]:
        ready: dict[str, Any] = {"near": near, "ref": "", "told": None, "natural": None}
        if near.found is not None:
            words = "flips" if near.goal == "flip" else "does not flip"
            ready["ref"] = content.get("kept") or self.x.keep(
                near.found.row, f"The nearest to {content['who'].words.lower()} who {words}"
            )
            judge = self.x.judge
            if judge is not None:
                ready["natural"] = _share(float(judge.p_values(near.found.row[None])[0]))
        return ready

    def _ready_turn(self, turn: Turn) -> dict[str, Any]:
        told = None if turn.row is None else self.x.reading.tell(turn.answer)
        ref = "" if turn.row is None else self.x.keep(turn.row, f"With {turn.column} {turn.to}")
        return {"turn": turn, "told": told, "ref": ref}

    # -- where ----------------------------------------------------------------------------------

    def where(self, query: Query, token: str) -> Page:
        """A region to build, and those of the run."""
        x = self.x
        sheet = x.people if x.people is not None else None if x.found is None else x.found.sheet
        facets: list[FacetView] = []
        if sheet is not None:
            chosen = sheet.select(filters_of(sheet, query))
            free = {f"c{p}" for p in x.schema.free_index}
            views = self._facets(sheet, chosen, query, "/where")
            facets = [view for view in views if view.name in free]
        return self.render(
            "where.html",
            token,
            whole=True,
            here="where",
            title="Where",
            facets=facets,
            regions=[
                (
                    region,
                    self._href_of(region),
                    percent(region.rate) if hasattr(region, "rate") else None,
                )
                for region in x.regions
            ],
            words=str(x.region_of(self._conditions(query))) if self._conditions(query) else "",
            pairs=[pair for pair in query.pairs if pair[1]],
            can_ask=x.asker is not None,
            looks=[e for e in x.record.entries if e.get("ask") == "region"][-12:][::-1],
            next_level=_level(1 - _error(x.looks + 1)),
            n_looks=x.looks,
        )

    def _href_of(self, region: Any) -> str:
        pairs: list[tuple[str, str]] = []
        for condition in region.conditions:
            name = f"c{condition.position}"
            if condition.codes is not None:
                pairs += [(name, f"{code:.10g}") for code in condition.codes]
                pairs += [(name, "missing")] if condition.missing else []
            elif condition.column.kind == "numerical":
                pairs += [
                    (f"{name}.{end}", f"{value:.10g}")
                    for end, value in (("low", condition.low), ("high", condition.high))
                    if math.isfinite(value)
                ]
            else:
                low = max(0, math.ceil(max(condition.low, 0)))
                high = min(condition.column.size - 1, condition.high)
                pairs += [(name, str(code)) for code in range(low, int(high) + 1)]
        return f"/where?{Query(tuple(pairs)).encode()}"

    def _conditions(self, query: Query) -> list[dict[str, Any]]:
        """The conditions of a region, from the filters that were chosen."""
        schema = self.x.schema
        made: list[dict[str, Any]] = []
        for position, column in enumerate(schema.columns):
            name = f"c{position}"
            values = [v for v in query.all(name) if v]
            low, high, below = (query.get(f"{name}.{end}") for end in ("low", "high", "below"))
            told: dict[str, Any] = {"column": column.name}
            if values:
                codes = [v for v in values if v != "missing"]
                told |= {"codes": [_code(column, v) for v in codes]}
                told |= {"missing": "missing" in values}
            elif low or high or below:
                told |= {"low": _finite(low)} if low else {}
                told |= {"high": _finite(high)} if high else {}
                if below:
                    end = _finite(below)
                    end = end - column.step if column.step else math.nextafter(end, -math.inf)
                    told["high"] = min(end, told.get("high", end))
            else:
                continue
            made.append(told)
        return made

    def look(self, form: Query, token: str, *, whole: bool) -> Page:
        """Begin to look at a region."""
        self.x.require_model()
        region = self.x.region_of(self._conditions(form))
        return self._begin(
            "Drawing natural people of this region",
            "look.html",
            lambda job: self.x.look_at(region, job),
            token,
            whole=whole,
            region=region,
        )

    def _ready_look(self, look: Any) -> dict[str, Any]:
        top = max(look.rate.high, look.average.high if look.average else 0.0)
        top = max(top, look.other.high if look.other else 0.0)
        ticks = charts.ticks(100 * top)
        last = ticks[-1]
        return {
            "look": look,
            "percent": percent(look.rate) if look.rate.n else None,
            "other_percent": percent(look.other) if look.other and look.other.n else None,
            "average": percent(look.average) if look.average else None,
            "level": _level(look.confidence),
            "ticks": [(tick / last, f"{tick:g}") for tick in ticks],
            "bar": _bar(look.rate, last),
            "other_bar": None if look.other is None else _bar(look.other, last),
            "average_at": 0.0 if look.average is None else 100 * look.average.estimate / last,
            "is_number": self.x.reading.rule.kind == "number",
            "share": f"{100 * look.share:.2g}",
            "favorable": self.x.reading.favorable,
        }

    # -- map ------------------------------------------------------------------------------------

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
        job = x.jobs.start("Drawing the map", lambda j: self._draw_map(across, up, who, j))
        self._kinds[job.number] = ("mapped.html", content)
        job.wait(_PATIENCE)
        job = x.jobs.get(job.number)
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
            found = nobody if x.found is None else _all_cells(x.found.sheet, f"c{position}")
            own = people[:, position]
            step = max(1, len(found) // 50_000)
            axes.append(density.Axis.of(column, np.concatenate([own, found[::step]])))
            mine.append(own)
            theirs.append(found)
        return tuple(axes), tuple(mine), tuple(theirs), None

    def _along_latents(self, people: Rows, job: Job) -> Any:
        x = self.x
        generator = x.generator(job)
        if not isinstance(generator, Encoder):
            raise InvalidInput(
                f"the generator {x.generator_name!r} does not find the latents of people; choose "
                "two columns"
            )
        assert x.found is not None
        from limi.streams import Stream

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
        derived = set() if schema.enforcer is None else set(schema.enforcer.derived_index.tolist())
        names = [name for p, name in enumerate(schema.names) if p not in derived]
        if len(names) == width:
            return names
        return schema.names if len(schema) == width else [f"latent {k + 1}" for k in range(width)]

    # -- two models -----------------------------------------------------------------------------

    def models(self, token: str) -> Page:
        """Two models side by side."""
        ready = {} if self.x.both is None else self._ready_both()
        return self.render(
            "models.html", token, whole=True, here="models", title="Two models", **ready
        )

    def compare(self, token: str, *, whole: bool) -> Page:
        """Begin to compare them."""
        if self.x.other is None:
            raise InvalidInput("there is one model; name another with --against KIND:PLACE")
        return self._begin(
            "Asking both models about the same people",
            "both.html",
            lambda job: self.x.compare(job),
            token,
            whole=whole,
        )

    def _ready_both(self) -> dict[str, Any]:
        both = self.x.both
        if both is None:
            return {}
        return {"both": both, "matches": [self._ready_match(match) for match in both.matches]}

    def _ready_match(self, match: Match) -> dict[str, Any]:
        from limi.metrics._rate import rate_of

        kinds = (
            ("Mended: flip with the first alone", match.mended),
            ("Broken: flip with the second alone", match.broke),
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

    # -- the record -----------------------------------------------------------------------------

    def record(self, token: str) -> Page:
        """Bookmarks, and what was asked."""
        x = self.x
        marks = []
        entries = {entry["number"]: entry for entry in x.record.entries}
        for mark in x.record.bookmarks:
            try:
                ref = x.keep(
                    row_of(x.schema, entries[mark.number]["cells"]), f"Bookmark {mark.number}"
                )
            except LimiError:  # a hidden cell, or a table whose columns have changed
                ref = ""
            marks.append((mark, ref))
        return self.render(
            "record.html",
            token,
            whole=True,
            here="record",
            title="Record",
            marks=marks,
            entries=[_tell_entry(entry) for entry in x.record.entries[-_ENTRIES:][::-1]],
            n_entries=len(x.record.entries),
            place=None if x.record.path is None else x.record.path.name,
        )

    def forget(self, form: Query, token: str) -> Page:
        """Remove a bookmark."""
        self.x.forget(form.number("number", 0, 10**9))
        return self.record(token)


def _rate_of(region: Region) -> Any:
    return percent(region.rate) if isinstance(region, RegionRule) else None


def _code(column: Any, text: str) -> float:
    value = _finite(text)
    if column.kind != "numerical" and not (value % 1 == 0 and 0 <= value < column.size):
        raise InvalidInput(f"{text[:40]!r} is not a value of column {column.name!r}")
    return value


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{text[:40]!r} is not a number")
    return value


def _share(value: float) -> str:
    """A p-value of naturalness in words."""
    if math.isnan(value):
        return ""
    return f"{100 * value:.0f} %" if value >= 0.02 else f"{100 * value:.1f} %"


def _shade(n: int, most: int) -> float:
    """How dark a count is drawn, from 0 to 1; by its root, because counts fall off fast."""
    return round(math.sqrt(n / most), 3) if n else 0.0


def _bar(rate: Rate, last: float) -> tuple[float, float, float]:
    if not rate.n:
        return 0.0, 0.0, 1.0
    at = [100 * x / last for x in (rate.estimate, rate.low, rate.high)]
    return at[0], at[1], at[2]


def _level(confidence: float) -> str:
    """A confidence in percent, with the digits that matter.

    >>> _level(0.975), _level(0.99985)
    ('97.5 %', '99.985 %')
    """
    digits = max(1, math.ceil(-math.log10(1 - confidence)) - 1)
    shown = f"{100 * confidence:.{digits}f}".rstrip("0").rstrip(".")
    return f"{shown} %"


def _error(number: int) -> float:
    from limi.explore.regions import error_of_look

    return error_of_look(number)


def _all_cells(sheet: Sheet, name: str) -> NDArray[np.float64]:
    strip = sheet[name]
    return strip.values if strip.places is None else strip.values[strip.places]


def _tell_nearest(entry: Mapping[str, Any]) -> str:
    who = "flips" if entry["goal"] == "flip" else "does not flip"
    found = "nobody" if entry["found"] is None else f"at distance {entry['distance']:.2f}"
    return f"the nearest person who {who}: {found}"


def _tell_twins(entry: Mapping[str, Any]) -> str:
    told = [f"{n:,} of {of:,} as {group}" for group, (n, of) in entry["groups"].items()]
    return f"twins who are decided otherwise: {both(told)}"


_TOLD: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "person": lambda entry: (
        "a person under every protected value: " + ("flips" if entry["flips"] else "does not flip")
    ),
    "nearest": _tell_nearest,
    "walk": lambda entry: (
        "single changes that turn the decision: "
        + (both([name for name, to in entry["turns"].items() if to is not None]) or "none")
    ),
    "region": lambda entry: f"{entry['words']}: {entry['flips']:,} of {entry['n']:,} flip",
    "twins": _tell_twins,
    "models": lambda entry: f"both models, beside {entry['other']}",
}
"""By the kind of a question: the question in words."""


def _tell_entry(entry: Mapping[str, Any]) -> dict[str, str]:
    """A line of the record in words."""
    ask = str(entry.get("ask", ""))
    try:
        if ask:
            told = _TOLD[ask](entry)
        elif "bookmark" in entry:
            told = f"bookmark: {entry['bookmark']}"
        else:
            told = f"bookmark {entry['forget']} removed"
    except (KeyError, TypeError, ValueError):
        told = "a line that cannot be read"
    queries = entry.get("queries")
    return {
        "number": str(entry.get("number", "")),
        "at": str(entry.get("at", "")),
        "words": told,
        "queries": count(queries) if isinstance(queries, int) else "",
    }
