"""Regions: built by clicking, and looked at until they are decided."""

from __future__ import annotations

import math
from typing import Any

from limi.errors import InvalidInput
from limi.explore.query import FacetView, Query, filters_of
from limi.explore.regions import Look, confidence_of_look
from limi.explore.views.base import Page, read_finite
from limi.explore.views.findings import FindingsView
from limi.metrics._rate import Rate
from limi.metrics.regions import Region
from limi.metrics.sequential import FEWEST_FOR_MEAN
from limi.report import charts
from limi.report.wording import percent
from limi.table.schema import Column

__all__ = ["WhereView", "tell_level"]


class WhereView(FindingsView):
    """A region and its rate."""

    def where(self, query: Query, token: str) -> Page:
        """A region to build, and those of the run."""
        x = self.x
        x.record.refresh()
        sheet = x.people if x.people is not None else None if x.found is None else x.found.sheet
        facets: list[FacetView] = []
        if sheet is not None:
            chosen = sheet.select(filters_of(sheet, query, x.secret))
            free = {f"c{p}" for p in x.schema.free_index}
            views = self.facets(sheet, chosen, query, "/where")
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
            next_level=tell_level(confidence_of_look(x.looks + 1)),
            n_looks=x.looks,
        )

    def _href_of(self, region: Region) -> str:
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
                pairs += [(name, "missing")] if condition.missing else []
            else:
                low = max(0, math.ceil(max(condition.low, 0)))
                high = min(condition.column.size - 1, condition.high)
                pairs += [(name, str(code)) for code in range(low, int(high) + 1)]
                pairs += [(name, "missing")] if condition.missing else []
        return f"/where?{Query(tuple(pairs)).encode()}"

    def _conditions(self, query: Query) -> list[dict[str, Any]]:
        """The conditions of a region, from the filters that were chosen."""
        schema = self.x.schema
        made: list[dict[str, Any]] = []
        for position, column in enumerate(schema.columns):
            name = f"c{position}"
            values = [v for v in query.all(name) if v]
            low, high, below = (query.get(f"{name}.{end}") for end in ("low", "high", "below"))
            told: dict[str, Any] = {"column": column.name, "missing": "missing" in values}
            codes = [v for v in values if v != "missing"]
            if codes or (values and not (low or high or below)):
                told |= {"codes": [_code(column, v) for v in codes]}
            elif low or high or below:
                told |= {"low": read_finite(low)} if low else {}
                told |= {"high": read_finite(high)} if high else {}
                if below:
                    end = read_finite(below)
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
        return self.begin(
            "Drawing natural people of this region",
            "look.html",
            lambda job: self.x.look_at(region, job),
            self._tell_look,
            token,
            whole=whole,
        )

    def _tell_look(self, look: Look) -> dict[str, Any]:
        top = max(look.rate.high, look.average.high if look.average else 0.0)
        ticks = charts.ticks(100 * top)
        last = ticks[-1]
        return {
            "look": look,
            "percent": percent(look.rate) if look.rate.n else None,
            "average": percent(look.average) if look.average else None,
            "level": tell_level(look.confidence),
            "share_level": tell_level(look.share_confidence),
            "fewest": FEWEST_FOR_MEAN,
            "ticks": [(tick / last, f"{tick:g}") for tick in ticks],
            "bar": _bar(look.rate, last),
            "average_at": 0.0 if look.average is None else 100 * look.average.estimate / last,
            "is_number": self.x.reading.rule.kind == "number",
            "share": f"{100 * look.share:.2g}",
            "favorable": self.x.reading.favorable,
        }


def _code(column: Column, text: str) -> float:
    value = read_finite(text)
    if column.kind != "numerical" and not (value % 1 == 0 and 0 <= value < column.size):
        raise InvalidInput(f"{text[:40]!r} is not a value of column {column.name!r}")
    return value


def _bar(rate: Rate, last: float) -> tuple[float, float, float]:
    if not rate.n:
        return 0.0, 0.0, 1.0
    at = [100 * x / last for x in (rate.estimate, rate.low, rate.high)]
    return at[0], at[1], at[2]


def tell_level(confidence: float) -> str:
    """A confidence in percent, with the digits that matter.

    >>> tell_level(0.975), tell_level(0.99985)
    ('97.5 %', '99.985 %')
    """
    digits = max(1, math.ceil(-math.log10(1 - confidence)) - 1)
    shown = f"{100 * confidence:.{digits}f}".rstrip("0").rstrip(".")
    return f"{shown} %"
