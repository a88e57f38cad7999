"""Findings and a problem that are small enough to count by hand."""

import numpy as np
import pandas as pd

from limi.audits.problem import prepare
from limi.search.findings import Found
from tests.toy import schema_of

SCHEMA = schema_of((0, 4), (0, 4), (0, 3), (0, 1), protected=["x2", "x3"])


def findings(schema, n, rng):
    rows = rng.integers(schema.low, schema.high + 1, (n, len(schema))).astype(float)
    partner = rows.copy()
    partner[:, schema.protected_index[0]] = (rows[:, schema.protected_index[0]] + 1) % 4
    zeros = np.zeros(n)
    return Found(rows, partner, zeros, zeros, np.full(n, ""), zeros, np.zeros(n, dtype=np.uint8))


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 10, n),
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(20, 24, n),
        }
    )
    frame["ok"] = np.where(frame["income"] + 2 * (frame["sex"] == "M") > 5, "yes", "no")
    return frame


def problem(frame=None, protected=("sex",)):
    def model(frame):
        return 1 / (1 + np.exp(5.5 - frame["income"] - 2 * (frame["sex"] == "M")))

    given = people() if frame is None else frame
    return prepare(model, given, protected=list(protected), target="ok", favorable="yes")
