"""The guided search: more findings a query than plain natural rows, and all of a small domain."""

import numpy as np
import pytest

from limi.budget import Budget, Stop
from limi.engine import run
from limi.errors import InvalidInput
from limi.methods.guided import Guided, _Scale, _telling
from limi.methods.natural import Natural
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, Rounding, schema_of, task

WIDE = schema_of((0, 60), (0, 60), (0, 30), (0, 1), protected=["x3"])
WIDE_MODEL = Linear((0.125, -0.0625, 0.0625, 1.0), -1.53125)


def searched(method, schema=WIDE, model=WIDE_MODEL, score=None, **budget):
    here = task(schema, model, generator=Rounding(schema))
    here.score = score or here.score
    return run(method, here, Budget(**budget), 0)


def test_it_finds_more_per_query_than_plain_natural_rows():
    guided = searched(Guided(), max_queries=4_000)
    plain = searched(Natural(), max_queries=4_000)
    assert guided.queries <= 4_000
    assert len(guided.findings) > 2 * len(plain.findings)


def test_labels_are_enough():
    def label(rows):
        return (WIDE_MODEL.score(rows) > 0.5).astype(float)

    guided = searched(Guided(), score=label, max_queries=4_000)
    plain = searched(Natural(), score=label, max_queries=4_000)
    assert len(guided.findings) > 2 * len(plain.findings)


def test_a_small_domain_is_searched_whole():
    ran = searched(Guided(), SCHEMA, MODEL)
    assert ran.stop == Stop.EXHAUSTED
    assert {tuple(row[:2].astype(int)) for row in ran.findings.all().rows} == FLIPPING


def test_a_model_that_ignores_the_protected_column_gives_nothing():
    ran = searched(Guided(), model=Linear((0.1, -0.1, 0.1, 0.0), 0.0), max_queries=2_000)
    assert len(ran.findings) == 0
    assert ran.queries > 1_900


def test_both_origins_are_named_and_exploration_is_kept():
    found = searched(Guided(explore=0.5), max_queries=3_000).findings.all()
    assert set(found.origin) == {"natural", "guided"}


def test_many_combinations_are_cut_to_the_telling_ones():
    schema = schema_of((0, 5), (1, 7), protected=["x1"])
    sides = np.array([0.5, 0.9, 0.1, 0.5, 0.2, 0.5, 0.8])
    assert _telling(schema, sides).ravel().tolist() == [2, 3, 5, 7]
    assert len(_telling(WIDE, np.zeros(2))) == 2


def test_it_learns_from_every_value_asked():
    schema = schema_of((0, 60), (0, 60), (0, 30), (1, 9), protected=["x3"])
    model = Linear((0.125, -0.0625, 0.0625, 0.125), -1.53125)
    guided = searched(Guided(), schema, model, max_queries=6_000)
    plain = searched(Natural(), schema, model, max_queries=6_000)
    assert len(guided.findings) > 1.7 * len(plain.findings)


def test_without_sharpness_rows_come_as_they_are_drawn():
    plain = searched(Natural(), max_queries=4_000)
    blunt = searched(Guided(sharpness=0.0), max_queries=4_000)
    assert 0.6 < len(blunt.findings) / len(plain.findings) < 1.4
    assert len(searched(Guided(), max_queries=4_000).findings) > 2 * len(blunt.findings)


def test_the_learner_that_was_right_gets_the_weight():
    rng = np.random.default_rng(0)
    flips = rng.random(2_000) < 0.3
    telling = np.where(flips, 1.0, -1.0) + rng.normal(0, 1, 2_000)
    guesses = np.column_stack([rng.normal(0, 1, 2_000), telling])
    scale = _Scale()
    assert np.array_equal(scale.log_odds(np.array([[1.0, 0.0], [0.0, 2.0]])), [2.0, 1.0])
    scale.learn(guesses, flips)
    chance = 1 / (1 + np.exp(-scale.log_odds(guesses)))
    assert abs(chance.mean() - flips.mean()) < 0.01  # it is a probability, not only an order
    noise, signal = scale.log_odds(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))[:2]
    assert signal - noise > 1.0
    scale.learn(-guesses, flips)  # what seems to tell against a flip counts for nothing
    scale.learn(-guesses, flips)
    assert np.array_equal(scale.log_odds(np.array([[0.0, 2.0]])), [1.0])


@pytest.mark.parametrize(
    "wrong",
    [{"pool": 0}, {"explore": 2.0}, {"growth": 0.5}, {"sharpness": -1.0}, {"sharpness": np.inf}],
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(InvalidInput):
        Guided(**wrong)
