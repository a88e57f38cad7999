"""GRFT: generations, walks, and agreement with one row at a time."""

import numpy as np
import pytest

from limi.errors import InvalidInput
from limi.methods import parse
from limi.methods.grft import Grft
from limi.search.budget import Budget
from limi.search.engine import run
from limi.table.rows import uniform
from tests.naive import grft as naive
from tests.naive.check import key
from tests.toy import FLIPPING, Linear, schema_of, task

WIDE = schema_of((0, 9), (-3, 6), (0, 4), (0, 1), (1, 3), protected=["x3", "x4"])
WIDE_MODEL = Linear((0.5, -0.6, 0.3, 0.8, 0.4), -1.15)


def found_keys(ran):
    return [key(ran.findings.schema, row) for row in ran.findings.all().rows]


def test_the_whole_set_of_flips_is_reached():
    ran = run(Grft(generations=20, exploit_steps=60), task(), Budget(), 3)
    assert {k[:2] for k in found_keys(ran)} == FLIPPING


@pytest.mark.parametrize(
    ("settings", "max_rows"),
    [
        ({"size": 30, "generations": 4, "n_seeds": 12, "exploit_steps": 9, "longest": 2}, None),
        ({"size": 40, "generations": 6, "n_seeds": 500, "survivors": 0.25}, 300),
        (
            {"size": 20, "generations": 3, "n_seeds": 500, "survivors": 1.0, "exploit_steps": 5},
            None,
        ),
    ],
)
@pytest.mark.kernels
def test_findings_are_those_of_one_row_at_a_time(settings, max_rows):
    method = Grft(**settings)
    table = uniform(WIDE, 60, np.random.default_rng(4))
    for seed in range(3):
        ran = run(method, task(WIDE, WIDE_MODEL, table), Budget(max_rows=max_rows), seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        most = np.inf if max_rows is None else max_rows
        assert found_keys(ran) == naive.findings(
            method, WIDE_MODEL.score, WIDE, table, rng, max_tests=most
        )


def test_the_genetic_phase_finds_what_the_table_alone_does_not():
    # The protected bit decides only where both others are near their ends: no row of the table is.
    schema = schema_of((0, 60), (0, 60), (0, 1), protected=["x2"])
    model = Linear((1.0, 1.0, 4.0), -118.5)
    table = uniform(schema, 200, np.random.default_rng(0))
    table = table[(table[:, :2].sum(axis=1) < 100)]
    without = run(Grft(generations=0), task(schema, model, table), Budget(), 1)
    bred = run(Grft(generations=40, exploit_steps=20), task(schema, model, table), Budget(), 1)
    assert len(without.findings) == 0
    assert len(bred.findings) >= 3


def test_walks_stay_among_rows_that_flip():
    ran = run(Grft(generations=0, exploit_steps=30), task(), Budget(), 0)
    assert {k[:2] for k in found_keys(ran)} <= FLIPPING


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 0}, "size"),
        ({"exploit_steps": -1}, "exploit_steps"),
        ({"survivors": 1.5}, "survivors is 1.5"),
        ({"mutation_rate": -0.1}, "mutation_rate"),
    ],
)
def test_settings_that_cannot_be_are_told(settings, words):
    with pytest.raises(InvalidInput, match=words):
        Grft(**settings)


def test_it_goes_by_its_name():
    assert isinstance(parse("grft"), Grft)
