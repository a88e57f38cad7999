"""The pages of an exploration: what a request becomes, apart from how it came."""

from __future__ import annotations

from limi.explore.views.base import Page
from limi.explore.views.map import MapView
from limi.explore.views.person import PersonView
from limi.explore.views.record import RecordView
from limi.explore.views.where import WhereView

__all__ = ["Page", "Pages"]


class Pages(PersonView, WhereView, MapView, RecordView):
    """All views of one exploration."""
