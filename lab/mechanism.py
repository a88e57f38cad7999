"""People of whom the true twin is known: every column is a rising function of a rank of its own.

`sex` stands first; the others depend on it, on those before them, and on a rank that is kept when
sex changes. So each person's true twin is known, and what twins learned from the table say can be
held against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from limi.table.schema import Column, Schema
from limi.types import Rows, Scores

__all__ = ["Known", "draw_known"]

_Cells = NDArray[np.float64]

_COLUMNS = (
    Column(name="sex", kind="categorical", levels=("Female", "Male")),
    Column(name="age", kind="numerical", low=18, high=80, step=1),
    Column(name="schooling", kind="numerical", low=6, high=20, step=1),
    Column(name="household", kind="categorical", levels=("alone", "shared", "family")),
    Column(name="hours", kind="numerical", low=5, high=70, step=1),
    Column(name="savings", kind="numerical", low=0.0, high=400.0, step=0.0),
    Column(name="district", kind="categorical", levels=("north", "east", "south", "west")),
)


@dataclass(frozen=True)
class Known:
    """People, and their true twins."""

    schema: Schema
    rows: Rows
    twins: Rows

    @staticmethod
    def score(rows: Rows) -> Scores:
        """A lender that never looks at sex."""
        age, schooling, household, hours, savings = rows[:, 1:6].T
        points = 0.03 * (age - 40) + 0.22 * (schooling - 12) + 0.5 * (household == 2)
        points = points + 0.07 * (hours - 38) + 0.015 * (savings - 60)
        return np.asarray(1 / (1 + np.exp(-points)))


def draw_known(n: int, rng: np.random.Generator) -> Known:
    """n people drawn from the mechanism."""
    sex = (rng.random(n) < 0.5).astype(np.float64)
    ranks = rng.random((n, len(_COLUMNS) - 1))
    schema = Schema(_COLUMNS).protect(["sex"])
    return Known(schema, _people(sex, ranks), _people(1 - sex, ranks))


def _people(sex: _Cells, ranks: NDArray[np.float64]) -> Rows:
    """Everybody's cells, one column after another."""
    normal = ndtri(np.clip(ranks, 1e-9, 1 - 1e-9)).T
    age = np.clip(np.round(42 + 12 * normal[0]), 18, 80)
    schooling = np.clip(np.round(12.4 - 0.8 * sex + 2.2 * normal[1]), 6, 20)
    alone = 0.45 - 0.2 * sex - 0.1 * (age > 40)
    household = (ranks[:, 2] > alone).astype(np.float64) + (ranks[:, 2] > alone + 0.2)
    usual, width = 34 + 4 * sex + 2 * sex * (household == 2), 5 + 5 * sex
    hours = np.clip(np.round(usual + width * normal[3]), 5, 70)
    spread = np.exp(3.6 + 0.3 * sex + 0.06 * (schooling - 12) + 0.6 * normal[4])
    savings = np.clip(spread, 0, 400)
    district = np.floor(4 * ranks[:, 5])
    return np.stack([sex, age, schooling, household, hours, savings, district], axis=1)


_RECORDS = (
    Column(name="race", kind="categorical", levels=("African-American", "Caucasian")),
    Column(name="sex", kind="categorical", levels=("Female", "Male")),
    Column(name="age", kind="numerical", low=18, high=80, step=1),
    Column(name="priors_count", kind="numerical", low=0, high=40, step=1),
    Column(name="juvenile_count", kind="numerical", low=0, high=10, step=1),
    Column(name="charge", kind="categorical", levels=("misdemeanor", "felony")),
    Column(name="days_in_jail", kind="numerical", low=0, high=300, step=1),
)


def draw_recidivism(n: int, rng: np.random.Generator) -> tuple[Schema, Rows, NDArray[np.int8]]:
    """A synthetic table like that of COMPAS: its columns, and about its rates; nobody's records.

    Labels are 1 for nobody new arrested within two years, the favorable one.
    """
    race = (rng.random(n) < 0.4).astype(np.float64)
    sex = (rng.random(n) < 0.8).astype(np.float64)
    age = np.clip(np.round(18 + rng.gamma(1.5 + 0.3 * race, 9, n)), 18, 80)
    years = (age - 17) / 15
    usual = np.exp(0.75 - 0.65 * race + 0.35 * sex) * years**0.6
    priors = np.clip(rng.poisson(usual * rng.gamma(0.7, 1 / 0.7, n)), 0, 40)
    juvenile = np.clip(rng.poisson(0.25 * np.exp(-0.6 * race - 0.5 * (years - 1))), 0, 10)
    felony = (rng.random(n) < 0.6 + 0.015 * priors - 0.06 * race).astype(np.float64)
    jail = np.clip(np.round(rng.gamma(0.6, 12 + 4 * priors + 8 * felony)), 0, 300)
    risk = 0.15 * priors - 0.045 * (age - 30) + 0.3 * juvenile + 0.25 * sex + 0.15 * felony - 0.75
    again = rng.random(n) < 1 / (1 + np.exp(-risk))
    rows = np.stack([race, sex, age, priors, juvenile, felony, jail], axis=1).astype(np.float64)
    return Schema(_RECORDS), rows, (~again).astype(np.int8)
