"""What a newer model changed: the old findings asked again, and rates of the same people."""

from __future__ import annotations

from limi.changes._diff import Diff, Population, diff
from limi.changes._open import as_meant, open_newer
from limi.changes._rates import Change, ChangedRegion, Regions, changed_regions, compare
from limi.changes._replay import (
    GONE,
    OUTCOMES,
    SAME,
    TURNED,
    UNASKED,
    Answer,
    Example,
    Replay,
    replay,
)

__all__ = [
    "GONE",
    "OUTCOMES",
    "SAME",
    "TURNED",
    "UNASKED",
    "Answer",
    "Change",
    "ChangedRegion",
    "Diff",
    "Example",
    "Population",
    "Regions",
    "Replay",
    "as_meant",
    "changed_regions",
    "compare",
    "diff",
    "open_newer",
    "replay",
]
