"""Neural transport: a triangular map, its exact probabilities, and its encoder."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from limi.errors import InvalidInput
from limi.generators import transport
from limi.table.rows import snap
from limi.table.schema import Column, Schema
from limi.testing.generators import SCHEMA, table

FAST = transport.Settings(steps=20, hidden=16, embedding=3, batch=64)

SMALL = Schema(
    (
        Column(name="a", kind="categorical", levels=("p", "q", "r")),
        Column(name="n", kind="numerical", low=0, high=5, step=1, missing=True),
        Column(name="b", kind="boolean", levels=(False, True)),
    )
)


def small(n=800, seed=0):
    """r is rare, n grows with a and misses for q at times, b is whether a is r."""
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    number = np.minimum(rng.poisson(0.5 + a), 4).astype(float)
    number[(a == 1) & (rng.random(n) < 0.3)] = np.nan
    return np.column_stack([a, number, a == 2]).astype(float)


def everything():
    numbers = [0.0, 1, 2, 3, 4, 5, np.nan]
    return np.array(list(itertools.product([0.0, 1, 2], numbers, [0.0, 1])))


def fitted(rows=None, schema=SCHEMA, seed=0, **changes):
    rows = table(300) if rows is None else rows
    settings = dataclasses.replace(FAST, **changes)
    return transport.fit(rows, schema, np.random.default_rng(seed), settings=settings)


@pytest.fixture(scope="module")
def trained():
    return fitted(small(4000), SMALL, steps=300, rate=2e-2, hidden=32)


def test_probabilities_are_those_of_decoded_samples(trained):
    rows = everything()
    chances = np.exp(trained.log_prob(rows))
    assert abs(chances.sum() - 1) < 1e-9
    made = trained.decode(trained.sample_latents(60_000, np.random.default_rng(0)))
    same = (made[:, None] == rows) | (np.isnan(made[:, None]) & np.isnan(rows))
    seen = same.all(axis=2).mean(axis=0)
    assert abs(seen.sum() - 1) < 1e-12
    assert np.abs(seen - chances).max() < 0.006


def test_training_learns_a_table_and_its_dependencies(trained):
    made = trained.decode(trained.sample_latents(5000, np.random.default_rng(1)))
    assert np.mean((made[:, 0] == 2) == made[:, 2]) > 0.98
    real = small(20_000, seed=5)
    for level in range(3):
        ours, theirs = (rows[rows[:, 0] == level] for rows in (made, real))
        assert abs(len(ours) / 5000 - len(theirs) / 20_000) < 0.04
        assert abs(np.nanmean(ours[:, 1]) - np.nanmean(theirs[:, 1])) < 0.2
        assert abs(np.isnan(ours[:, 1]).mean() - np.isnan(theirs[:, 1]).mean()) < 0.06
    alike = trained.log_prob(real).mean()
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    assert alike > trained.log_prob(shuffled).mean() + 0.5


def test_every_row_of_the_schema_comes_back_from_its_latent(trained):
    rows = everything()  # 5 never occurs in the table
    for seed in range(5):
        latents = trained.encode(rows, np.random.default_rng(seed))
        assert np.array_equal(trained.decode(latents), rows, equal_nan=True)


def test_latents_of_the_table_are_about_normal(trained):
    latents = trained.encode(small(2000, seed=3), np.random.default_rng(0))
    assert np.abs(latents.mean(axis=0)).max() < 0.2
    assert np.abs(latents.std(axis=0) - 1).max() < 0.2


def test_a_column_depends_on_earlier_ones_alone(trained):
    latents = trained.sample_latents(2000, np.random.default_rng(0))
    rows = trained.decode(latents)
    for j in range(3):
        moved = latents.copy()
        moved[:, j] *= -1
        other = trained.decode(moved)
        assert np.array_equal(other[:, :j], rows[:, :j], equal_nan=True)
        changed = (other[:, j:] != rows[:, j:]) & ~np.isnan(rows[:, j:])
        assert changed[:, 0].any() or j == 2  # b is settled by a
    moved = latents.copy()
    moved[:, 0] *= -1
    assert (trained.decode(moved)[:, 2] != rows[:, 2]).any()  # b follows a


def test_decoding_is_monotone_in_the_number_of_the_column(trained):
    latents = np.zeros((400, 3))
    latents[:, 0] = np.linspace(-4, 4, 400)
    assert (np.diff(trained.decode(latents)[:, 0]) >= 0).all()


def test_real_numbers_are_resolved_inside_their_bins():
    rng = np.random.default_rng(0)
    schema = Schema((Column(name="x", kind="numerical", low=-10.0, high=10.0, missing=True),))
    rows = rng.normal(0, 2, (3000, 1)).clip(-10, 10)
    rows[rng.random(3000) < 0.25] = 0.0
    rows[rng.random(3000) < 0.1] = np.nan
    generator = fitted(rows, schema, max_bins=20)
    made = generator.decode(generator.sample_latents(4000, np.random.default_rng(1)))[:, 0]
    assert abs(np.mean(made == 0) - np.mean(rows == 0)) < 0.03
    assert abs(np.isnan(made).mean() - np.isnan(rows).mean()) < 0.03
    assert len(np.unique(made)) > 2000
    known = np.sort(rows[~np.isnan(rows)])
    shares = np.searchsorted(known, np.sort(made[~np.isnan(made)])) / len(known)
    assert np.abs(np.quantile(shares, [0.1, 0.3, 0.9]) - [0.1, 0.3, 0.9]).max() < 0.05
    asked = np.append(rng.uniform(-10, 10, (500, 1)), rows, axis=0)
    again = generator.decode(generator.encode(asked, rng))
    assert np.allclose(again, asked, atol=1e-6, equal_nan=True)
    grid = np.linspace(-10, 10, 200_001)[:, None]
    mass = np.exp(generator.log_prob(grid[np.abs(grid[:, 0]) > 1e-9])).sum() * 1e-4
    atoms = np.exp(generator.log_prob(np.array([[0.0], [np.nan]]))).sum()
    assert abs(mass + atoms - 1) < 0.01


def test_thousands_of_levels_are_grouped_and_come_back():
    schema = Schema(
        (Column(name="zip", kind="categorical", levels=tuple(range(4000))), SMALL.columns[2])
    )
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 3000, 2000), rng.integers(0, 2, 2000)]).astype(float)
    generator = fitted(rows, schema)
    made = generator.decode(generator.sample_latents(2000, np.random.default_rng(1)))
    assert set(made[:, 0]) <= set(rows[:, 0])
    assert len(set(made[:, 0])) > 800
    asked = np.column_stack([np.arange(4000), np.arange(4000) % 2]).astype(float)
    assert np.array_equal(generator.decode(generator.encode(asked, rng)), asked)
    assert np.isfinite(generator.log_prob(asked)).all()


def test_columns_stand_in_the_order_asked_for():
    schema = SMALL.protect(["b"])
    assert fitted(small(100), schema).order == ("a", "n", "b")
    assert fitted(small(100), schema, order="fewest-first").order == ("b", "a", "n")
    assert fitted(small(100), schema, protected_first=True).order == ("b", "a", "n")
    assert fitted(small(100), schema, order=("n", "b", "a")).order == ("n", "b", "a")
    generator = fitted(small(), schema, order=("n", "b", "a"))
    rows = small(300, seed=4)
    latents = generator.encode(rows, np.random.default_rng(0))
    assert np.array_equal(generator.decode(latents), rows, equal_nan=True)
    moved = latents.copy()
    moved[:, 0] += 3  # a is decoded last and moves nothing else
    assert np.array_equal(generator.decode(moved)[:, 1:], rows[:, 1:], equal_nan=True)
    for order in (("a", "b"), ("a", "n", "c"), "backwards"):
        with pytest.raises(InvalidInput, match="order"):
            fitted(small(50), schema, order=order)


def test_the_network_of_training_is_the_one_that_decodes():
    rows = small(200)
    layout = transport._layout(rows, SMALL, FAST)
    stream = torch.Generator().manual_seed(0)
    made = transport._Trainer(layout.bins_of(rows), layout, SMALL, FAST, 1e-2, stream)
    with torch.no_grad():
        for tensor in made.weights.values():
            tensor.add_(torch.randn(tensor.shape, generator=stream) * 0.3)
        loss = float(made.loss(made.weights, torch.arange(200)))
    weights = layout.finished({name: t.detach() for name, t in made.weights.items()})
    generator = transport.Transport(SMALL, layout, weights, FAST, torch.device("cpu"))
    assert np.isclose(-generator.log_prob(rows).mean(), loss, atol=1e-4)


def test_tensors_decode_as_arrays_do(trained):
    latents = trained.sample_latents(1500, np.random.default_rng(0))
    rows = trained.decode_tensor(torch.tensor(latents))
    assert rows.dtype == torch.float64
    assert np.array_equal(rows.numpy(), trained.decode(latents), equal_nan=True)


def test_the_lowest_millionth_decodes_to_the_whole_domain(trained):
    latents = np.zeros((3, 3))
    latents[:, 1] = [-40.0, -6.0, -4.9]
    rows = trained.decode(latents)
    assert np.array_equal(snap(SMALL, rows), rows, equal_nan=True)
    from scipy.special import ndtr

    codes = np.floor(ndtr(latents[:, 1]) / transport.RARE * 7)
    expected = np.where(codes < 6, codes, np.nan)
    assert np.array_equal(rows[:, 1], expected, equal_nan=True)


def test_held_out_rows_end_the_training_at_the_best_weights():
    told = []
    settings = dataclasses.replace(FAST, steps=2000, patience=40, rate=0.1, hidden=64)
    generator = transport.fit(
        small(120),
        SMALL,
        np.random.default_rng(0),
        settings=settings,
        on_step=lambda done, words: told.append((done, words)),
    )
    losses = [float(words.split("loss ")[1].split()[0]) for _, words in told if "loss" in words]
    assert told[-1][0] == 1.0
    assert len(losses) < 100
    best = 20 * (1 + int(np.argmin(losses)))
    assert generator.notes[-1].endswith(f"after {best}")


def test_nothing_global_is_drawn():
    state = torch.get_rng_state()
    fitted()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"averaging": 1.0}, "averaging is 1.0"),
        ({"held_out": -0.1}, "held_out is -0.1"),
        ({"max_bins": 1}, "max_bins is 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        transport.Settings(**changes)
