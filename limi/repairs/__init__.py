"""Repair: average a model over protected values, or train it again, and see whether it holds.

Every way that a model allows is an entry of `WAYS`, and all of them go through one pipeline:
measured several times with some rows held out, before and after side by side, then made from all
rows and searched again with another method, generator and seed. Findings that join the table's rows
get a label and a recipe.
"""

from __future__ import annotations

from limi.repairs._average import average
from limi.repairs._compare import make_repair, try_out
from limi.repairs._compared import Comparison
from limi.repairs._ensemble import Ensemble
from limi.repairs._ensemble import fit as fit_ensemble
from limi.repairs._figures import Figures, RepairGroups, groups
from limi.repairs._labels import Policy
from limi.repairs._mixing import PRESETS, MixedTable, mix_rows
from limi.repairs._recipes import RECIPES, Training, copy_under_others
from limi.repairs._refit import Fit, Fitted, refit_of
from limi.repairs._repair import repair
from limi.repairs._result import Repairs, Tried
from limi.repairs._saving import require_saving
from limi.repairs._settings import Settings, choose_preset
from limi.repairs._shipping import load_averaged, require_onnx
from limi.repairs._weights import parse_weights
from limi.repairs._work import Steps, Work

# `repair` puts these parts together; who follows another protocol puts them together otherwise.
__all__ = [
    "PRESETS",
    "RECIPES",
    "Comparison",
    "Ensemble",
    "Figures",
    "Fit",
    "Fitted",
    "MixedTable",
    "Policy",
    "RepairGroups",
    "Repairs",
    "Settings",
    "Steps",
    "Training",
    "Tried",
    "Work",
    "average",
    "choose_preset",
    "copy_under_others",
    "fit_ensemble",
    "groups",
    "load_averaged",
    "make_repair",
    "mix_rows",
    "parse_weights",
    "refit_of",
    "repair",
    "require_onnx",
    "require_saving",
    "try_out",
]
