"""Repair: train a model again with findings, and see whether it holds.

Findings get a label, join the table's rows by a recipe, and the same kind of model is trained from
scratch. It is done several times with some rows held out, before and after side by side; the model
that is kept is then trained on all rows and searched anew by other means than the run's.
"""

from __future__ import annotations

from limi.repairs._core import PRESETS, Preset, repair
from limi.repairs._labels import POLICIES, Policy
from limi.repairs._recipes import RECIPES
from limi.repairs._refit import Fit
from limi.repairs._result import Point, Repair
from limi.repairs._saving import require_saving

__all__ = [
    "POLICIES",
    "PRESETS",
    "RECIPES",
    "Fit",
    "Point",
    "Policy",
    "Preset",
    "Repair",
    "repair",
    "require_saving",
]
