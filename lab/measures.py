"""What is measured of cells: names, and how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limi.metrics._enough import FEWEST_TO_JUDGE

__all__ = ["MEASURES", "SPEEDS", "Measure", "found_too_few", "needs", "show", "show_apart"]

SPEEDS = ("per_second", "per_second_search", "per_second_all", "seconds", "seconds_before")
"""Measures that a GPU changes."""


@dataclass(frozen=True)
class Measure:
    """How a measure is called and shown."""

    label: str
    form: str
    more_is_better: bool | None = True  # None: neither
    by_seed: bool = True  # else it is the same for every seed

    @property
    def sign(self) -> int:
        """1 where more is better, or neither is; -1 where less is."""
        return -1 if self.more_is_better is False else 1


MEASURES = {
    "findings": Measure("findings", ",.0f"),
    "per_second": Measure("findings/s", "3"),
    "per_second_search": Measure("findings/s after the first check", "3"),
    "per_second_all": Measure("findings/s, generator fitted", "3"),
    "per_thousand_queries": Measure("per 1,000 queries", ",.2f"),
    "per_row": Measure("rows that flip", ".2%"),
    "rows": Measure("rows checked", ",.0f", None),
    "queries": Measure("queries", ",.0f", None),
    "seconds": Measure("seconds", ",.1f", False),
    "seconds_before": Measure("seconds before the first check", ",.1f", False),
    "found_1k": Measure("found in 1,000 rows", ",.0f"),
    "found_10k": Measure("found in 10,000 rows", ",.0f"),
    "found_100k": Measure("found in 100,000 rows", ",.0f"),
    "found_latents": Measure("found in as many rows as latents", ",.0f"),
    "diversity": Measure("diversity", ".3f"),
    "cells": Measure("cells", ",.0f"),
    "one_apart": Measure("one column from another", ".1%", None),
    "atn": Measure("ATN, the paper's equation", ".3f"),
    "atn_07": Measure("ATN, SDMetrics 0.7", ".3f"),
    "atn_032": Measure("ATN, SDMetrics 0.32", ".3f"),
    "representative_atn": Measure("representative, the paper's equation", ".3f"),
    "representative_atn_07": Measure("representative, 0.7", ".3f"),
    "representative_atn_032": Measure("representative, 0.32", ".3f"),
    "real_atn": Measure("flipping rows of the table", ".3f", None),
    "real_rate": Measure("IF_o", ".4f", None),
    "detection_boosted": Measure("detection, boosted", ".3f", False),
    "detection_logistic": Measure("detection, logistic", ".3f", False),
    "detection_svc": Measure("detection, SVC", ".3f", False),
    "distance": Measure("distance", ".2f", False),
    "plausible": Measure("plausible findings", "2", True),
    "plausible_low": Measure("from", "2", None),
    "plausible_high": Measure("to", "2", None),
    "likeness": Measure("like people who flip", ".3f"),
    "real_likeness": Measure("flipping people of the table", ".3f", None),
    "plane_favorable": Measure("favorable on the plane", ".1%", None),
    "paper_end": Measure("the paper's runs ended by", "end", None, by_seed=False),
    "paper_seconds": Measure("the paper's seconds", ",.0f", None, by_seed=False),
    "paper_rows": Measure("rows ours checked for as many", "2", None),
    "paper_speed": Measure("per second of the paper's", "2 rate", None),
    "loop_rows": Measure("rows one by one in the paper's time", "2", None, by_seed=False),
    "loop_findings": Measure("found by then", ",.0f"),
    "loop_speed": Measure("rows per second, one by one", "2"),
    "loop_per_second": Measure("findings/s, one by one", "2 rate"),
    "loop_before": Measure("seconds before the first row", "2", False),
    "plausible_share": Measure("plausible", ".1%", True),
    "plausible_per_thousand": Measure("plausible per 1,000 queries", "2 rate", True),
    "plausible_per_thousand_low": Measure("from", "2 rate", None),
    "plausible_per_thousand_high": Measure("to", "2 rate", None),
    "plausible_per_row": Measure("plausible findings per checked row", "2 share", True),
    "plausible_per_row_low": Measure("from", "2 share", None),
    "plausible_per_row_high": Measure("to", "2 share", None),
    "auc_train": Measure("AUC, train", ".4f"),
    "auc_entire": Measure("AUC, entire", ".4f"),
    "accuracy": Measure("accuracy", ".4f"),
    "added": Measure("rows added", ",.0f", None),
    "repeats": Measure("rows added per finding", ".1f", None),
    "if_r": Measure("IF_r", ".4f", False),
    "if_o": Measure("IF_o", ".4f", False),
    "if_m": Measure("shuffled rate", ".4f", False),
    "if_n": Measure("natural rate", ".4f", False),
    "held_out": Measure("accuracy, held out", ".4f"),
    "auc": Measure("AUC", ".4f"),
    "calibration": Measure("calibration error", ".3f", False),
    "favored": Measure("favorable decisions", ".1%", None),
    "twin_rate": Measure("changed as a twin", ".1%", False),
    "opportunity": Measure("equal opportunity", ".3f", False),
    "spd": Measure("SPD", ".3f", False),
    "aod": Measure("AOD", ".3f", False),
    "overlap": Measure("overlap", ".3f"),
    "share": Measure("variance along the first component", ".1%", None),
    "generator_atn": Measure("ATN of samples", ".3f"),
    "generator_seconds": Measure("seconds to fit", ",.1f", False),
    "gains": Measure("gains", ".1%", None),
    "losses": Measure("losses", ".1%", None),
    "gap": Measure("gap", ".3f", None),
    "coverage": Measure("coverage", ".0%", None),
    "kappa": Measure("kappa", ".2f"),
    "placebo": Measure("placebo", ".2%", False),
    "twin_auc": Measure("AUC", ".3f", False),
    "right": Measure("right", ".1%"),
    "speed": Measure("speed ratio", ".2f"),
    "flip_share": Measure("flips", ".1%", None),
    "valid_share": Measure("twins that count", ".1%", None),
    "twin_flips": Measure("twins that flip", ".1%", None),
    "floor_flips": Measure("placebos that flip", ".1%", None),
    "excess": Measure("excess", "+.1%", None),
    "excess_low": Measure("from", "+.1%", None),
    "excess_high": Measure("to", "+.1%", None),
    "excess_seen": Measure("excess seen", ".0%", None),
    "effect": Measure("effect", "+.2f", None),
    "effect_low": Measure("from", "+.2f", None),
    "effect_high": Measure("to", "+.2f", None),
    "effect_floor": Measure("floor", ".2f", None),
    "effect_size": Measure("size of the effect", ".2f", None),
    "direction": Measure("direction", ".0%", None),
    "effect_seen": Measure("effect seen", ".0%", None),
}

_NEEDS = {"one_apart": 1, "diversity": 2, "distance": FEWEST_TO_JUDGE} | {
    name: FEWEST_TO_JUDGE * (4 if name.startswith("representative") else 1)
    for name in MEASURES
    if name.startswith(("atn", "representative", "detection", "plausible"))
}


def needs(measure: str, measures: Mapping[str, Any]) -> int:
    """How many findings this measure needs of a cell; 0 where findings do not matter."""
    if measure == "likeness":  # as many as people flip in the table, up to a limit
        return max(FEWEST_TO_JUDGE, measures.get("likeness_n") or 0)
    return _NEEDS.get(measure, 0)


def found_too_few(measure: str, measures: Mapping[str, Any]) -> bool:
    """Does a cell lack a measure because it found fewer than that needs?"""
    found = measures.get("findings")
    if measures.get(measure) is not None or not isinstance(found, (int, float)):
        return False
    return found < needs(measure, measures)


def show(value: float, measure: str) -> str:
    """A number as its measure is written."""
    form = MEASURES[measure].form
    if form == "2":  # counts that a sample was extrapolated to: two digits are known
        return f"{float(f'{value:.2g}'):,.0f}"
    if form == "3":  # speeds: further digits are the machine's noise
        places = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
        return f"{float(f'{value:.3g}'):,.{places}f}"
    if form == "2 rate":
        places = 0 if abs(value) >= 10 else 1 if abs(value) >= 1 else 2
        return f"{float(f'{value:.2g}'):,.{places}f}"
    if form == "2 share":
        return f"{float(f'{100 * value:.2g}'):g} %"
    if form == "end":  # of a mean, how many of the cells
        return {0.0: "itself", 1.0: "the clock"}.get(value, f"{value:.0%} the clock")
    if form == ",.1f" and abs(value) < 10:
        form = ",.2f"
    return format(value, form)


def show_apart(one: float, other: float, measure: str) -> tuple[str, str]:
    """Two numbers, with as many digits as it takes to see which is larger."""
    told = show(one, measure), show(other, measure)
    if told[0] != told[1] or one == other:
        return told
    for digits in range(3, 8):
        told = _digits(one, digits), _digits(other, digits)
        if told[0] != told[1]:
            break
    return told


def _digits(value: float, digits: int) -> str:
    short = float(f"{value:.{digits}g}")
    return f"{short:,.0f}" if abs(short) >= 10 ** (digits - 1) else f"{short:,g}"
