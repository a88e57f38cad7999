"""What a study measures of a cell's findings."""

import numpy as np

from limi import data
from limi.studies import _measure
from limi.table.frames import Codec
from limi.table.rows import uniform


def test_natural_rows_are_plausible_and_uniform_ones_are_not():
    known = data.load("census")
    codec = Codec.learn(known.frame, known.schema)
    real = codec.encode(known.frame)
    rng = np.random.default_rng(0)
    halves = np.split(real[rng.permutation(len(real))[:8000]], 2)
    natural = _measure._plausible(halves[0], halves[1], codec.schema, 8000, rng)
    assert natural["plausible_share"] > 0.9
    assert natural["plausible_low"] <= natural["plausible"] <= natural["plausible_high"]
    assert natural["plausible_per_thousand"] == 1000 * natural["plausible"] / 8000
    wild = uniform(codec.schema, 2000, rng)
    odd = _measure._plausible(halves[0], wild, codec.schema, 4000, rng)
    assert odd["plausible_share"] < 0.05
