"""The question of a proof, answered by asking the model about every row of a neighbourhood."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from limi.search.check import check_rows
from limi.table.constraints import find_broken
from limi.table.partners import complete


def rows_near(schema: Any, near: dict[str, Any], person: np.ndarray) -> np.ndarray:
    """Every row of a person's neighbourhood, column by column, value by value."""
    choices = []
    for j, column in enumerate(schema.columns):
        own, wide = person[j], near.get(column.name, 0)
        low, high, step = schema.low[j], schema.high[j], schema.step[j]
        if wide == "any":
            values = [low + step * k for k in range(column.size)]
            values += [np.nan] if np.isnan(own) else []
        elif np.isnan(own) or not wide:
            values = [own]
        else:
            n = int(wide / step + 1e-9)
            values = [own + step * k for k in range(-n, n + 1)]
            values = [round(v, 9) for v in values if low - 1e-9 <= v <= high + 1e-9]
        choices.append(values)
    rows = complete(schema, np.array(list(itertools.product(*choices)), dtype=float))
    broken = find_broken(schema.enforcer.constraints, rows)
    own_broken = find_broken(schema.enforcer.constraints, person[None])
    return rows[~(broken & ~own_broken).any(axis=1)]


def flips_near(problem: Any, near: dict[str, Any], person: np.ndarray) -> bool:
    """Does any of them flip?"""
    rows = rows_near(problem.schema, near, person)
    return bool(check_rows(problem.target.score, problem.schema, rows).flips.any())
