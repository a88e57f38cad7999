"""Repair: train a model again with findings, and see whether it holds.

Findings get a label, join the table's rows by a recipe, and the same kind of model is trained from
scratch. It is done several times with some rows held out, before and after side by side; the model
that is kept is then trained on all rows and searched anew by other means than the run's.
"""

from __future__ import annotations

from limi.repairs._average import average
from limi.repairs._core import repair
from limi.repairs._ensemble import Ensemble
from limi.repairs._ensemble import fit as fit_ensemble
from limi.repairs._figures import Figures, RepairGroups, Yardstick, groups
from limi.repairs._labels import POLICIES, Policy
from limi.repairs._mixing import PRESETS, MixedTable, Preset, mix_rows
from limi.repairs._recipes import RECIPES, Training
from limi.repairs._refit import Fit, Fitted, Refit, refit_of
from limi.repairs._result import Point, Repair
from limi.repairs._saving import require_saving

# `repair` puts these parts together; who follows another protocol puts them together otherwise.
__all__ = [
    "POLICIES",
    "PRESETS",
    "RECIPES",
    "Ensemble",
    "Figures",
    "Fit",
    "Fitted",
    "MixedTable",
    "Point",
    "Policy",
    "Preset",
    "Refit",
    "Repair",
    "RepairGroups",
    "Training",
    "Yardstick",
    "average",
    "fit_ensemble",
    "groups",
    "mix_rows",
    "refit_of",
    "repair",
    "require_saving",
]
