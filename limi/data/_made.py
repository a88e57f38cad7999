"""Tables made from those of UCI in a stated way: one whose target is a number, and one whose target
is one of three classes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["HOURS", "amount", "hours"]

HOURS = ("under 35", "35 to 44", "45 or more")
_CUTS = (35, 45)


def amount(german: Any) -> Any:
    """German Credit without its risk: the amount of the credit is the target, and the last."""
    others = [name for name in german if name not in ("credit_risk", "credit_amount")]
    return german[[*others, "credit_amount"]]


def hours(adult: Any) -> Any:
    """Adult with the hours of a week in three bands as the target; its own target is left out, and
    fnlwgt, which is not a property of a person."""
    others = [name for name in adult if name not in ("hours_per_week", "fnlwgt", "income")]
    bands = np.array(HOURS)[np.digitize(adult["hours_per_week"], _CUTS)]
    return adult[others].assign(hours=bands)
