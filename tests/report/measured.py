"""Trees of metrics to draw: one as a run on the adult table gives it, one that means harm."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def share(value: float, low: float, high: float, n: int = 10_000) -> Tree:
    return {"value": value, "low": low, "high": high, "n": n}


def tree(name: str = "sex", privileged: str = "Male", other: str = "Female") -> Tree:
    return {
        "individual": {
            "flip_rates": {
                "uniform": share(0.011, 0.009, 0.0132),
                "real": share(0.0271, 0.024, 0.0305),
                "natural": {"value": None, "n": 0, "reason": "no row was checked"},
            },
            "causal_discrimination": share(0.011, 0.0085, 0.014),
            "group_discrimination": {"value": 0.0076, "n": 10_000},
            "consistency": {"value": 0.93235, "n": 4_000},
            "generalized_entropy_error": {"value": 0.0002, "n": 10_000},
        },
        "group": {
            name: {
                "labels": True,
                "privileged": privileged,
                "chosen": "it has the highest selection rate",
                "selection_rate": {
                    "privileged": share(0.2646, 0.2541, 0.2753, 6_728),
                    "others": share(0.0865, 0.0771, 0.0966, 3_272),
                },
                "statistical_parity_difference": {"value": -0.178, "low": -0.192, "high": -0.164},
                "parity_gap": {"value": 0.178, "low": 0.164, "high": 0.192},
                "average_odds_error": {
                    "value": None,
                    "reason": f"{name} {other} has no row whose true label is favorable",
                },
                "counts": [],
            },
            "alone": {"labels": True, "privileged": None, "chosen": "one value", "counts": []},
        },
        "naturalness": {
            "average_tabular_naturalness": {
                "findings": {"value": 0.7622},
                "representative": {"value": 0.7949},
                "ceiling": {"value": 0.7538},
            },
            "p_values": {
                "by": "log-probability",
                "findings": {"median": 0.434, "under_0.05": {"value": 0.0328, "n": 4213}},
                "partners": {"median": 0.0884, "under_0.05": {"value": 0.2082, "n": 4213}},
            },
            "detection": {
                "logistic": {"value": 0.2675, "auc": 0.8663},
                "svc": {"value": 0.1743, "auc": 0.9129},
            },
            "likeness_to_people_who_flip": {"value": 0.9187, "n": 271, "at_most": 0.9522},
            "nearest_neighbour_distance": {"value": 1.1593, "of_real_rows": 1.0184},
        },
        "severity": {
            "score_gap": {"value": 0.1413, "median": 0.127, "largest": 0.525},
            "margin": {"value": 0.0352, "median": 0.0253, "largest": 0.2325},
            "affected": {"volume": 100_000, "real": {"value": 2710, "low": 2401, "high": 3047}},
        },
        "effectiveness": {
            "findings": {"value": 4213},
            "findings_per_second": {
                "value": 1036.9,
                "scope": "the search alone",
                "with_preparation": 835.1,
            },
            "findings_per_thousand_queries": {"value": 11.8, "scope": "search and rates"},
            "distinct_cells": {"value": 1821},
            "pairwise_distance": {"value": 0.2948},
        },
    }
