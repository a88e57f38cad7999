"""A table of our own in the shape of a well-known court file: 53 columns, two pairs of equal names,
names of people, dates, case numbers, a column without a cell."""

import numpy as np
import pandas as pd

# fmt: off
COLUMNS = [
    "id", "name", "first", "last", "compas_screening_date", "sex", "dob", "age", "age_cat",
    "race", "juv_fel_count", "decile_score", "juv_misd_count", "juv_other_count",
    "priors_count", "days_b_screening_arrest", "c_jail_in", "c_jail_out", "c_case_number",
    "c_offense_date", "c_arrest_date", "c_days_from_compas", "c_charge_degree",
    "c_charge_desc", "is_recid", "r_case_number", "r_charge_degree", "r_days_from_arrest",
    "r_offense_date", "r_charge_desc", "r_jail_in", "r_jail_out", "violent_recid",
    "is_violent_recid", "vr_case_number", "vr_charge_degree", "vr_offense_date",
    "vr_charge_desc", "type_of_assessment", "decile_score", "score_text", "screening_date",
    "v_type_of_assessment", "v_decile_score", "v_score_text", "v_screening_date",
    "in_custody", "out_custody", "priors_count", "start", "end", "event", "two_year_recid",
]
# fmt: on

TAKEN = ["sex", "age", "race", "juv_fel_count", "priors_count", "c_charge_degree"]
"""What a model of such a table usually takes."""

# fmt: off
_FIRST = [
    "ada", "ben", "cora", "dan", "eva", "finn", "gina", "hugo", "ida", "jon", "kira", "leo",
    "mia", "ned", "olga", "pia",
]
# fmt: on
# fmt: off
_LAST = [
    "abel", "brook", "chen", "diaz", "eklund", "fox", "gray", "hahn", "ito", "jansen", "kaya",
    "lund", "moss", "novak",
]
# fmt: on


def court_file(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Such a table, with the names as they stand in the file."""
    rng = np.random.default_rng(seed)

    def days(years: int, *, share: float = 1.0, time: bool = False) -> list[object]:
        start = np.datetime64("2013-01-01") + rng.integers(-365 * years, 365, n)
        text = [str(day) + (" 04:12:33" if time else "") for day in start]
        return [day if rng.random() < share else None for day in text]

    def cases(share: float = 1.0) -> list[object]:
        numbers = rng.permutation(10 * n)[:n]
        return [f"13{k:06d}CF10A" if rng.random() < share else None for k in numbers]

    def some(values: list[object], share: float = 1.0) -> list[object]:
        drawn = rng.choice(len(values), n)
        return [values[k] if rng.random() < share else None for k in drawn]

    first = [
        f"{name}{k}" for name, k in zip(rng.choice(_FIRST, n), rng.integers(0, 9, n), strict=True)
    ]
    last = [
        f"{name}{k}" for name, k in zip(rng.choice(_LAST, n), rng.integers(0, 9, n), strict=True)
    ]
    name = [f"{a} {b} {k}" for k, (a, b) in enumerate(zip(first, last, strict=True))]
    age = rng.integers(18, 70, n)
    priors = rng.poisson(3, n)
    score = np.clip(rng.integers(1, 8, n) + priors // 2, 1, 10)
    charge = [f"charge {k}" for k in range(30)]
    recid = (rng.random(n) < 0.2 + 0.05 * priors).astype(int)
    text = np.where(score > 7, "High", np.where(score > 4, "Medium", "Low"))
    band = np.where(age > 45, "Greater than 45", np.where(age < 25, "Less than 25", "25 - 45"))
    cells = [
        *(np.arange(1, n + 1), name, first, last, days(1), some(["Male", "Female"]), days(40), age),
        *(band, some(["African-American", "Caucasian", "Hispanic", "Other"]), rng.poisson(0.1, n)),
        *(score, rng.poisson(0.1, n), rng.poisson(0.1, n), priors, rng.integers(-30, 30, n)),
        *(days(1, time=True), days(1, time=True), cases(), days(1, share=0.8)),
        *(days(1, share=0.2), rng.integers(0, 500, n), some(["F", "M"]), some(charge), recid),
        *(cases(0.5), some(["(F3)", "(M1)"], 0.5), rng.integers(0, 90, n), days(1, share=0.5)),
        *(some(charge, 0.5), days(1, share=0.4), days(1, share=0.4), [None] * n, recid // 1),
        *(cases(0.15), some(["(F3)", "(M1)"], 0.1), days(1, share=0.1), some(charge, 0.1)),
        *(["Risk of Recidivism"] * n, score, text, days(1), ["Risk of Violence"] * n),
        *(rng.integers(1, 11, n), some(["Low", "Medium", "High"]), days(1), days(1), days(1)),
        *(priors, rng.integers(0, 60, n), rng.integers(60, 900, n), recid // 1, recid),
    ]
    frame = pd.concat([pd.Series(cell) for cell in cells], axis=1)
    frame.columns = COLUMNS
    return frame
