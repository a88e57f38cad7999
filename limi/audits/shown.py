"""Which findings a report shows: strong and natural ones that differ from each other.

The first is the one to look at first (severity times naturalness). Each next one is the strongest
of those that show most that is new: another direction, another region, other values of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule as DecisionRule
from limi.decisions import favors, round_scores
from limi.metrics.regions import Rule
from limi.metrics.severity import priority, severity_of
from limi.search.findings import Found
from limi.table.schema import Schema
from limi.types import Index

__all__ = ["choose_shown"]

_CANDIDATES = 1_000  # the strongest ones, of which some are shown
_BANDS = 5  # of a number, to tell other values from the same
_DIRECTION, _REGION = 0.3, 0.2  # what another one counts; columns share the rest


def choose_shown(
    schema: Schema,
    found: Found,
    decision: DecisionRule,
    regions: Sequence[Rule] = (),
    most: int = 10,
) -> Index:
    """Places of the findings to show, in the order in which to show them."""
    if not len(found):
        return np.arange(0)
    natural = np.full(len(found), np.nan)
    if len(found.naturalness):
        natural = np.minimum(found.naturalness, found.partner_naturalness)
    weight = round_scores(priority(severity_of(decision, found), natural))
    order = np.argsort(-weight, kind="stable")[:_CANDIDATES]
    traits, worth = _traits(schema, found[order], decision, regions)
    strength = weight[order] / max(float(weight[order[0]]), 1e-12)
    new = np.ones(traits.shape, dtype=bool)  # is the trait of a candidate not shown yet?
    chosen: list[int] = []
    left = np.ones(len(order), dtype=bool)
    for _ in range(min(most, len(order))):
        gain = np.where(left, round_scores(strength * (new @ worth)), -1.0)
        # Once all that can be shown is shown, the strongest of the rest.
        best = int(np.argmax(gain if gain.max() > 0 else np.where(left, strength, -1.0)))
        chosen.append(best)
        left[best] = False
        new &= traits != traits[best]
    return order[chosen]


def _traits(
    schema: Schema, found: Found, decision: DecisionRule, regions: Sequence[Rule]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What each finding shows, a number per trait, and what a trait is worth."""
    own, other = schema.places_of(found.rows), schema.places_of(found.partner)
    if decision.kind == "favorable":
        # Who is favored counts, and not which of the two the search met first.
        swap = ~favors(found.score)
        own[swap], other[swap] = other[swap], own[swap].copy()
    direction = np.unique(np.hstack([own, other]), axis=0, return_inverse=True)[1].reshape(-1)
    region = np.zeros(len(found), dtype=np.int64)
    for place, rule in enumerate(regions, 1):
        region = np.where((region == 0) & rule.mask(found.rows), place, region)
    columns = [_bands(found.rows[:, position]) for position in schema.free_index]
    traits = np.stack([direction, region, *columns], axis=1)
    rest = (1 - _DIRECTION - _REGION) / max(len(columns), 1)
    return traits, np.array([_DIRECTION, _REGION, *([rest] * len(columns))])


def _bands(cells: NDArray[np.float64]) -> NDArray[np.int64]:
    """The values of a column as whole numbers, many of them in a few bands."""
    known = np.unique(cells[~np.isnan(cells)])
    if len(known) > 2 * _BANDS:
        cuts = np.quantile(cells[~np.isnan(cells)], np.arange(1, _BANDS) / _BANDS)
        places = np.searchsorted(cuts, cells)
    else:
        places = np.searchsorted(known, cells)
    return np.where(np.isnan(cells), -1, places).astype(np.int64)
