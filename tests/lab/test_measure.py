"""What a study measures of a cell's findings."""

import numpy as np

from lab.kinds import search as _measure
from limi import data
from limi.search.budget import Stop
from limi.search.engine import Run
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


def test_a_curve_is_even_within_what_was_asked_together():
    def curve(points):
        rows = tuple(row for row, _, _ in points)
        run = Run(None, Stop.EXHAUSTED, 0, 0.0, None, tuple((q, f) for _, q, f in points), rows)
        return _measure._curve(run)

    # 100 labels before the first row; then 400 rows asked at once, told in two parts.
    told = curve([(0, 100, 0), (300, 900, 30), (400, 900, 40)])
    assert told["rows"] == [100, 200, 400]
    assert told["queries"] == [300, 500, 900]
    assert told["findings"] == [10, 20, 40]
    # Rows that no question is asked for are one batch, which begins where labels end.
    told = curve([(0, 400, 0), (200, 400, 40), (400, 400, 40)])
    assert told["findings"] == [10, 20, 40]
    # Rows that were asked one batch after the other need not be alike.
    told = curve([(0, 100, 0), (200, 500, 40), (400, 900, 40)])
    assert told["findings"] == [20, 40, 40]
