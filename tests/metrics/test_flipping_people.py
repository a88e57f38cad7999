"""Likeness to people who flip: of themselves, of others like them, and of strangers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from limi.metrics import naturalness
from limi.metrics.naturalness import average_tabular_naturalness
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="age", kind="numerical", low=0, high=99, step=1),
        Column(name="town", kind="categorical", levels=tuple("abcdef")),
    )
).protect(["sex"])


def draw(n: int, seed: int, *, old: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    age = np.clip(np.round(rng.normal(40 + 30 * old, 9, n)), 0, 99)
    return np.stack([rng.integers(0, 2, n), age, rng.integers(0, 6, n)], axis=1).astype(float)


class _Found(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.rows)


def evidence(found: np.ndarray, people: np.ndarray, flips: np.ndarray, **more: Any) -> Any:
    class Checked(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.rows)

    given: dict[str, Any] = {
        "schema": SCHEMA,
        "found": _Found(rows=found),
        "checked": {"real": Checked(rows=people, flips=flips)},
        "enough_to_compare": len(found) >= 50,
        "in_time": lambda what: True,
        "rng": lambda name: np.random.default_rng(0),
    }
    return SimpleNamespace(**(given | more))


PEOPLE = np.concatenate([draw(3_000, 0), draw(900, 1, old=1.0)])
FLIPS = np.arange(3_900) >= 3_000  # the old ones


def test_findings_like_those_who_flip_come_near_the_most_and_the_population_does_not():
    like = naturalness._measure_like_people(evidence(draw(5_000, 2, old=1.0), PEOPLE, FLIPS))
    usual = naturalness._measure_like_people(evidence(draw(5_000, 3), PEOPLE, FLIPS))
    assert like.n == usual.n == 800
    assert like.beside == usual.beside  # the same people, from a stream of their own
    at_most = like.beside["at_most"]
    assert 0.9 < at_most < 1
    assert at_most - 0.05 < like.value <= at_most + 0.02
    assert usual.value < at_most - 0.2


def test_as_many_findings_as_people_is_the_plain_atn():
    people, found = draw(120, 4), draw(120, 5)
    told = naturalness._measure_like_people(evidence(found, people, np.ones(120, dtype=bool)))
    assert told.value == average_tabular_naturalness(people, found, SCHEMA).score


def test_the_most_falls_with_the_number_of_people():
    most = [
        naturalness.most_alike(n, PEOPLE[FLIPS], SCHEMA, np.random.default_rng(1))
        for n in (50, 200, 800)
    ]
    assert most == sorted(most)


def test_held_out_people_go_before_those_of_the_table():
    old = evidence(draw(500, 6, old=1.0), PEOPLE, FLIPS)
    both = old.checked | {"held-out": evidence(draw(60, 6), *_flipping_young()).checked["real"]}
    assert naturalness._measure_like_people(old).value > 0.9
    told = naturalness._measure_like_people(
        evidence(draw(500, 6, old=1.0), PEOPLE, FLIPS, checked=both)
    )
    assert told.value < 0.8


def _flipping_young() -> tuple[np.ndarray, np.ndarray]:
    return draw(400, 7), np.ones(400, dtype=bool)


def test_too_few_who_flip_are_told():
    few = np.arange(3_900) >= 3_861
    told = naturalness._measure_like_people(evidence(draw(500, 8), PEOPLE, few))
    assert told.value is None
    assert told.reason == (
        "39 of the 3,900 real rows that were asked flip, and at least 50 are needed"
    )


@pytest.mark.parametrize(
    "more", [{"checked": {}}, {"in_time": lambda what: False}, {"enough_to_compare": False}]
)
def test_without_rates_time_or_findings_there_is_none(more):
    assert naturalness._measure_like_people(evidence(draw(500, 9), PEOPLE, FLIPS, **more)) is None
