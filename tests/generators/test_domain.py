"""The domain of a column: every cell that the schema allows has a share, and comes back from it."""

import numpy as np
import pytest

from limi.generators import _domain, transport, trees
from limi.table.schema import Column, Schema
from limi.testing.generators import CHECKS

COLUMNS = [
    Column(name="level", kind="categorical", levels=("p", "q", "r"), missing=True),
    Column(name="whole", kind="numerical", low=-2, high=3, step=1),
    Column(name="tenths", kind="numerical", low=0, high=0.5, step=0.1, missing=True),
    Column(name="real", kind="numerical", low=-4.0, high=9.0),
    Column(name="lone", kind="numerical", low=2.0, high=2.0, missing=True),
]


def cells_of(column):
    if column.size == 0:
        cells = np.array([column.low, (column.low + column.high) / 2, column.high])
    else:
        low, step = (column.low, column.step) if column.kind == "numerical" else (0.0, 1.0)
        cells = np.round(low + step * np.arange(column.size), 12)
    return np.append(cells, np.nan) if column.missing else cells


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("draw", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_every_cell_comes_back_from_a_share_inside_0_and_1(column, draw):
    cells = cells_of(column)
    shares = _domain.share_of(cells, np.full(len(cells), draw), column)
    assert ((shares > 0) & (shares < 1)).all()
    again = _domain.cell_at(shares, column)
    assert np.allclose(again, cells, rtol=0, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_the_shares_of_a_grid_add_up_to_1(column):
    if column.size:
        assert np.isclose(_domain.probability_of(cells_of(column), column).sum(), 1.0)


BEYOND = Schema(
    (
        Column(name="x", kind="numerical", low=0.0, high=10.0),
        Column(name="y", kind="numerical", low=-1.0, high=1.0),
        Column(name="z", kind="boolean", levels=(False, True)),
    )
)


def within(n=200):
    """Rows that stay well inside the schema, so that its ends lie beyond the data."""
    rng = np.random.default_rng(0)
    return np.column_stack([3 + 4 * rng.random(n), rng.random(n) - 0.5, rng.integers(0, 2, n)])


@pytest.mark.parametrize(
    ("module", "settings"),
    [(trees, None), (transport, transport.Settings(steps=2, hidden=8, embedding=2))],
    ids=["trees", "transport"],
)
def test_the_ends_of_the_schema_have_finite_latents_beyond_the_data(module, settings):
    generator = module.fit(within(), BEYOND, np.random.default_rng(0), settings=settings)
    ends = np.array([[0.0, -1.0, 0.0], [10.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    latents = generator.encode(ends, np.random.default_rng(1))
    assert np.isfinite(latents).all()
    assert np.allclose(generator.decode(latents), ends, atol=1e-6)
    for check in CHECKS:
        check(generator)
