"""Findings and people in tables, with facets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from limi.audits.hiding import HIDDEN
from limi.explore.found import FIGURES
from limi.explore.query import FacetView, Query, facet_view, filters_of
from limi.explore.sheet import Selection, Sheet
from limi.explore.views.base import PAGE_ROWS, Page, View, tell_share
from limi.types import Index

__all__ = ["FindingsView"]

DRAWN = 20
_FIGURE_TITLES = {
    "severity": "Severity",
    "naturalness": "Naturalness of the person",
    "partner_naturalness": "Naturalness of the partner",
    "direction": "Who is favored",
    "origin": "How it was found",
    "flipped_by": "What flips it",
}


class FindingsView(View):
    """Tables of findings and of people."""

    def findings(self, query: Query, token: str) -> Page:
        """A table of findings with facets."""
        found = self.x.found
        if found is None:
            return self.people(query, token)
        chosen = found.sheet.select(filters_of(found.sheet, query, self.x.secret))
        by = query.get("sort")
        by = by if by in found.sheet.strips and by not in self.x.secret else ""
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
            first = (page - 1) * PAGE_ROWS
            which = chosen.page_by(found.priority, first, PAGE_ROWS, falling=True)
        return self.render(
            "findings.html",
            token,
            whole=True,
            here="findings",
            title="Findings",
            facets=self.facets(found.sheet, chosen, query, "/findings"),
            regions=self._region_facets(chosen, query),
            lines=self.found_lines(which),
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

    def facets(self, sheet: Sheet, chosen: Selection, query: Query, path: str) -> list[FacetView]:
        """The columns of a sheet as lists of choices, the protected ones first."""
        schema = self.x.schema
        protected = [f"c{schema.position(name)}" for name in schema.protected]
        names = [n for n in ("direction", "flipped_by", *FIGURES) if n in sheet.strips]
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

    def found_lines(self, which: Index) -> list[dict[str, Any]]:
        """Findings as lines of a table."""
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
                if name in self.x.secret:
                    cells.append((HIDDEN, ""))
                    continue
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
                    "natural": tell_share(float(figures["naturalness"][k])),
                    "partner_natural": tell_share(float(figures["partner_naturalness"][k])),
                }
            )
        return lines

    def people(self, query: Query, token: str) -> Page:
        """Rows of the table with facets, what is hidden left out."""
        sheet = self.x.people
        if sheet is None:
            return self.message(
                "The table is not available, so there are no people to show; start limi explore "
                "with --table FILE.",
                token,
                status=404,
            )
        chosen = sheet.select(filters_of(sheet, query, self.x.secret))
        by = query.get("sort")
        by = by if by in sheet.strips and by not in self.x.secret else ""
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
            facets=self.facets(sheet, chosen, query, "/people"),
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
