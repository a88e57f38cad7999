"""Writes golden_sdmetrics.json: what SDMetrics itself says of one pair of small tables.

Run where sdmetrics 0.32 is installed: python tests/metrics/make_golden.py
SDMetrics needs a package under the Business Source License, so limi neither requires nor
installs it; its answers are kept here instead, and compared live where it is importable.
"""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path

import numpy as np

PLACE = Path(__file__).with_name("golden_sdmetrics.json")
KINDS = {
    "age": "numerical",
    "pay": "numerical",
    "rate": "numerical",
    "job": "categorical",
    "sex": "categorical",
    "town": "categorical",
    "flat": "numerical",
}
N_LEVELS = {"job": 6, "sex": 2, "town": 5}


def tables(n, m, seed):
    """Two tables of rows with correlations, gaps, a constant, and a level the real one lacks."""
    rng = np.random.default_rng(seed)

    def draw(n, drift):
        age = rng.integers(17, 90, n).astype(float)
        pay = np.round(age * 10 + rng.normal(0, 150 + 100 * drift, n), 2)
        rate = rng.normal(drift, 1, n)
        rate[rng.random(n) < 0.1 + 0.1 * drift] = np.nan
        job = np.floor(rng.random(n) ** (1 + drift) * (5 + drift))
        sex = (rng.random(n) < 0.4 + 0.002 * age).astype(float)
        town = np.minimum(rng.poisson(1 + drift + sex), 4).astype(float)
        town[rng.random(n) < 0.15] = np.nan
        return np.column_stack([age, pay, rate, job, sex, town, np.full(n, 3.0)])

    return draw(n, 0), draw(m, 1)


def by_report(real, generated):
    """The quality report of the installed SDMetrics, its thresholds off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sdmetrics.reports.single_table import QualityReport

        report = QualityReport()
        report.real_correlation_threshold = 0
        report.real_association_threshold = 0
        columns = {name: {"sdtype": kind} for name, kind in KINDS.items()}
        report.generate(_frame(real), _frame(generated), {"columns": columns}, verbose=False)
        shapes = report.get_details("Column Shapes")
        trends = report.get_details("Column Pair Trends")
    return {
        "score": report.get_score(),
        "columns": [_plain(score) for score in shapes["Score"]],
        "pairs": [_plain(score) for score in trends["Score"]],
    }


def by_metric(real, generated):
    """SDMetrics' single metrics, numbers cut at edges of the real data as version 0.7 cut them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity
        from sdmetrics.errors import ConstantInputError
        from sdmetrics.single_column import KSComplement, TVComplement

        a, b = _frame(real), _frame(generated)
        columns = [
            (KSComplement if kind == "numerical" else TVComplement).compute(a[name], b[name])
            for name, kind in KINDS.items()
        ]
        binned = [a.copy(), b.copy()]
        for name, kind in KINDS.items():
            if kind == "numerical":
                edges = np.histogram_bin_edges(a[name].dropna())
                for frame, raw in zip(binned, (a, b), strict=True):
                    frame[name] = np.digitize(raw[name], bins=edges)
        pairs = []
        for one, two in itertools.combinations(KINDS, 2):
            names = [one, two]
            if KINDS[one] == KINDS[two] == "numerical":
                try:
                    pairs.append(CorrelationSimilarity.compute(a[names], b[names]))
                except ConstantInputError:
                    pairs.append(np.nan)
            else:
                pairs.append(ContingencySimilarity.compute(*(frame[names] for frame in binned)))
    return {"columns": [_plain(s) for s in columns], "pairs": [_plain(s) for s in pairs]}


def _frame(rows):
    import pandas as pd

    return pd.DataFrame(rows, columns=list(KINDS))


def _plain(score):
    return None if np.isnan(score) else float(score)


def main():
    real, generated = tables(60, 50, seed=1)
    cells = [[_cells(row) for row in rows] for rows in (real, generated)]
    golden = {
        "made by": "tests/metrics/make_golden.py with sdmetrics 0.32.0",
        "real": cells[0],
        "generated": cells[1],
        "report": by_report(real, generated),
        "metrics": by_metric(real, generated),
    }
    PLACE.write_text(json.dumps(golden) + "\n", encoding="utf-8")


def _cells(row):
    return [None if np.isnan(x) else float(x) for x in row]


if __name__ == "__main__":
    main()
