"""TVAE: its bound, its two ways to decode, and its encoder."""

import dataclasses

import numpy as np
import pytest
import torch

from limi.errors import InvalidInput
from limi.generators import tvae
from limi.generators._modes import Encoding
from limi.generators._training import generator_of
from limi.table.rows import snap
from limi.table.schema import Column, Schema
from limi.testing.generators import SCHEMA, table

FAST = tvae.Settings(epochs=1, min_steps=4, batch=40, code=6, layers=(12, 10), max_rows=1000)

LEVELS = Schema(
    (
        Column(name="a", kind="categorical", levels=("p", "q", "r")),
        Column(name="b", kind="boolean", levels=(False, True)),
        Column(name="n", kind="numerical", low=0, high=50, step=1),
    )
)


def dependent(n=600):
    rng = np.random.default_rng(0)
    a = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    number = np.clip(np.rint(rng.normal(10 + 15 * a, 2)), 0, 50)
    return np.column_stack([a, a == 2, number]).astype(float)


def fitted(rows=None, schema=SCHEMA, seed=0, **changes):
    rows = table(200) if rows is None else rows
    settings = dataclasses.replace(FAST, **changes)
    return tvae.fit(rows, schema, np.random.default_rng(seed), settings=settings)


@pytest.fixture(scope="module")
def trained():
    return fitted(dependent(), LEVELS, min_steps=1000, batch=200, rate=1e-2, layers=(32, 32))


def test_training_learns_a_table_and_its_dependencies(trained):
    real = dependent()
    made = trained.decode(trained.sample_latents(4000, np.random.default_rng(1)))
    assert np.mean((made[:, 0] == 2) == made[:, 1]) > 0.9
    shares = [np.bincount(rows[:, 0].astype(int), minlength=3) / len(rows) for rows in (real, made)]
    assert np.abs(shares[0] - shares[1]).max() < 0.05
    assert np.corrcoef(made[:, 0], made[:, 2])[0, 1] > 0.7


def test_rows_come_back_from_their_latents(trained):
    rows = dependent()
    latents = trained.encode(rows, np.random.default_rng(2))
    assert latents.shape == (600, FAST.code + 3)
    again = trained.decode(latents)
    assert np.mean(again == rows) > 0.995
    # Encoded codes are about normal, so that a search may start from them.
    assert np.abs(latents[:, : FAST.code].mean(axis=0)).max() < 0.5
    assert latents[:, : FAST.code].std() < 1.5


def test_a_number_of_the_latent_draws_one_cell_and_no_other(trained):
    latents = trained.sample_latents(300, np.random.default_rng(3))
    rows = trained.decode(latents)
    for column, place in enumerate(trained.cell_latents):
        moved = latents.copy()
        moved[:, place] = np.random.default_rng(4).standard_normal(300)
        changed = trained.decode(moved) != rows
        assert changed[:, column].any()
        assert not np.delete(changed, column, axis=1).any()


def test_the_bound_is_that_of_the_paper():
    rows = table(120)
    rng = np.random.default_rng(0)
    encoding = Encoding.fit(rows, SCHEMA, rng)
    encoded = encoding.encode(rows, rng)
    made = tvae._Trainer(encoded, encoding, FAST, generator_of(rng, torch.device("cpu")))
    picked, normals = torch.arange(30), torch.randn(30, FAST.code)

    x = tvae._dense(encoded, encoding, torch.device("cpu"))[:30]
    mean, log_var = tvae._encode(made.weights, x, FAST)
    out = tvae._mlp(made.weights, "decoder", mean + (log_var / 2).exp() * normals, 2)
    lost, scalar = torch.zeros(()), 0
    for j, part in enumerate(encoding.parts):
        start = encoding.n_scalars + int(encoding.starts[j])
        logits = out[:, start : start + len(part)]
        place = torch.tensor(encoded.places[:30, j]).long()
        lost = lost + torch.nn.functional.cross_entropy(logits, place, reduction="sum")
        if encoding.has_scalar[j]:
            deviation = made.weights["log_deviation"][scalar].exp()
            normal = torch.distributions.Normal(out[:, scalar].tanh(), deviation)
            told = normal.log_prob(torch.tensor(encoded.scalars[:30, j]))
            known = place < len(part) - part.missing
            lost = lost - ((told + 0.5 * np.log(2 * np.pi)) * known).sum()
            scalar += 1
    prior = torch.distributions.Normal(torch.zeros_like(mean), 1.0)
    posterior = torch.distributions.Normal(mean, (log_var / 2).exp())
    divergence = torch.distributions.kl_divergence(posterior, prior).sum()
    for weight in (1.0, 2.0):
        expected = (weight * lost + divergence) / 30
        assert torch.allclose(made.loss(picked, normals, weight), expected, rtol=1e-4)


def test_the_largest_place_is_decoded_where_cells_have_no_number_of_their_own(trained):
    plain = dataclasses.replace(
        trained, settings=dataclasses.replace(trained.settings, latent="code")
    )
    assert plain.latent_dim == FAST.code
    codes = trained.sample_latents(300, np.random.default_rng(0))[:, : FAST.code]
    middle, scores = trained._decode(torch.tensor(codes))
    rows = plain.decode(codes)
    largest = scores[:, :3].argmax(1).numpy()
    assert np.array_equal(rows[:, 0], np.array(trained.encoding.parts[0].values)[largest])
    assert middle.shape == (300, 1)
    assert plain.encode(rows, np.random.default_rng(0)).shape == (300, FAST.code)


def test_the_number_of_a_column_draws_its_cell_and_no_other(trained):
    latents = trained.sample_latents(500, np.random.default_rng(0)).astype(float)
    rows = trained.decode(latents)
    moved = latents.copy()
    moved[:, FAST.code + 0] *= -1
    other = trained.decode(moved)
    assert (other[:, 0] != rows[:, 0]).any()
    assert np.array_equal(other[:, 1:], rows[:, 1:])


def test_tensors_decode_as_arrays_do():
    generator = fitted()
    latents = generator.sample_latents(1100, np.random.default_rng(0))
    rows = generator.decode_tensor(torch.tensor(latents))
    assert rows.dtype == torch.float64
    assert np.array_equal(rows.numpy(), generator.decode(latents), equal_nan=True)
    drawn = generator.sample_latents_tensor(7, torch.Generator().manual_seed(0))
    assert drawn.shape == (7, generator.latent_dim)


def test_held_out_rows_end_the_training():
    told = []
    settings = dataclasses.replace(FAST, min_steps=3000, max_steps=3000, patience=100, rate=0.05)
    generator = tvae.fit(
        dependent(80),
        LEVELS,
        np.random.default_rng(0),
        settings=settings,
        on_step=lambda done, words: told.append((done, words)),
    )
    assert told[-1][0] == 1.0
    assert "held-out rows were predicted best after" in generator.notes[-1]
    assert len(told) < 40
    assert "loss" in told[-1][1]


def test_without_held_out_rows_all_steps_are_taken():
    generator = fitted(held_out=0.0, min_steps=60)
    assert generator.notes == ()


def test_the_released_settings_take_300_epochs_and_the_largest_places():
    released = tvae.Settings.released()
    assert released.steps(32_561) == 19_500
    assert released.steps(600) == 300
    assert (released.latent, released.reconstruction) == ("code", 2.0)
    assert tvae.Settings().steps(32_561) == 2000
    assert tvae.Settings().steps(600) == 1000


def test_missing_cells_and_wide_columns_come_back():
    schema = Schema(
        (
            Column(name="zip", kind="categorical", levels=tuple(range(900)), missing=True),
            Column(name="n", kind="numerical", low=0, high=30, step=1, missing=True),
        )
    )
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 900, 1000), rng.poisson(5, 1000)]).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    generator = fitted(rows, schema, max_levels=32, min_steps=200)
    made = generator.decode(generator.sample_latents(1000, np.random.default_rng(0)))
    assert np.array_equal(snap(schema, made), made, equal_nan=True)
    assert (np.abs(np.isnan(made).mean(axis=0) - 0.2) < 0.1).all()
    again = generator.decode(generator.encode(rows, np.random.default_rng(1)))
    same = (again == rows) | (np.isnan(again) & np.isnan(rows))
    assert same[:, 0].mean() > 0.95
    assert same[:, 1].mean() > 0.99


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"held_out": 1.0}, "held_out is 1.0"),
        ({"patience": 0}, "patience is 0"),
        ({"latent": "cells"}, "code"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        tvae.Settings(**changes)
