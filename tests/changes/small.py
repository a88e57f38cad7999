"""People, and models whose flips can be counted by hand: they decide by sex for some ages."""

import numpy as np
import pandas as pd

AGES = 40


def people(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(AGES, size=n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "sex": rng.choice(["f", "m"], n),
            "ok": rng.choice(["no", "yes"], n),
        }
    )


def people_of_two_kinds(n=200):
    """With a second protected column, which comes first in the table."""
    races = np.random.default_rng(1).choice(["a", "b"], n)
    frame = people(n)
    frame.insert(0, "race", races)
    return frame


def by_sex_or_race(frame):
    """Scores that depend on sex under 20, and on race from 30 on."""
    age = frame["age"].to_numpy(dtype=float)
    sex, race = (frame["sex"] == "m").to_numpy(), (frame["race"] == "b").to_numpy()
    told = np.where(age < 20, sex, (age >= 30) & race)
    return np.where(told, 0.8, 0.3)


def by_sex(below, *, favors="m", age="age", sex="sex"):
    """Scores that depend on sex for people under an age, and say no to all others."""

    def score(frame):
        young = frame[age].to_numpy(dtype=float) < below
        wanted = (frame[sex] == favors).to_numpy()
        return np.where(young, np.where(wanted, 0.8, 0.3), 0.2)

    return score
