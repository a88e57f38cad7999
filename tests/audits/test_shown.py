"""Which findings are shown."""

import numpy as np

from limi.audits.shown import choose_shown
from limi.decisions import AS_DECIDED
from limi.search.findings import Found
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M", "X")),
        Column(name="job", kind="categorical", levels=("a", "b", "c", "d")),
        Column(name="age", kind="numerical", low=18, high=80, step=1),
    )
).protect(["sex"])


def found(rows, partner, score, partner_score):
    rows, partner = np.array(rows, float), np.array(partner, float)
    n = len(rows)
    made = Found.__new__(Found)
    values = {
        "rows": rows,
        "partner": partner,
        "score": np.array(score, float),
        "partner_score": np.array(partner_score, float),
    }
    import dataclasses

    for field in dataclasses.fields(Found):
        unknown = field.name.endswith("naturalness") or field.name in ("span", "chances")
        default = np.empty(0) if unknown else np.zeros(n)
        object.__setattr__(made, field.name, values.get(field.name, default))
    return made


def test_the_strongest_comes_first_and_then_other_directions_and_values():
    rows = [[0, 0, 30]] * 6 + [[0, 1, 30], [2, 0, 30]]
    partner = [[1, 0, 30]] * 6 + [[1, 1, 30], [1, 0, 30]]
    gap = [0.9, 0.89, 0.88, 0.87, 0.86, 0.85, 0.5, 0.4]
    scores = [0.5 + g / 2 for g in gap]
    others = [0.5 - g / 2 for g in gap]
    chosen = choose_shown(SCHEMA, found(rows, partner, scores, others), AS_DECIDED, most=4)
    assert chosen[0] == 0
    assert set(chosen[1:3]) == {6, 7}
    assert chosen[3] == 1


def test_which_of_the_two_was_met_first_is_no_direction():
    rows = [[0, 0, 30], [1, 0, 30], [2, 0, 30]]
    partner = [[1, 0, 30], [0, 0, 30], [1, 0, 30]]
    chosen = choose_shown(
        SCHEMA, found(rows, partner, [0.9, 0.1, 0.6], [0.1, 0.9, 0.4]), AS_DECIDED, most=2
    )
    assert chosen.tolist() == [0, 2]


def test_nothing_found_shows_nothing():
    empty = found(np.empty((0, 3)), np.empty((0, 3)), [], [])
    assert len(choose_shown(SCHEMA, empty, AS_DECIDED)) == 0
