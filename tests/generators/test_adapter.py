"""Generators that others wrote: functions, objects and frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from limi import generators
from limi.errors import BadTable, InvalidInput
from limi.generators import adapt
from limi.table.schema import Column, Schema
from limi.testing.generators import CHECKS

SCHEMA = Schema(
    (
        Column(name="age", kind="numerical", low=17, high=90, step=1),
        Column(name="rate", kind="numerical", low=-3.0, high=3.0, missing=True),
        Column(name="job", kind="categorical", levels=("clerk", "cook", "none")),
    )
)
TABLE = pd.DataFrame(
    {"age": [20, 30, 40], "rate": [0.5, np.nan, 1.0], "job": ["cook", "none", "clerk"]}
)


def codes(latents):
    rows = np.column_stack([40 + 20 * latents[:, 0], latents[:, 1], np.abs(latents[:, 0])])
    rows[latents[:, 1] > 2, 1] = np.nan
    return rows


def words(latents):
    rows = codes(latents)
    levels = np.array(["clerk", "cook", "none"])[np.clip(np.rint(rows[:, 2]), 0, 2).astype(int)]
    return {"job": levels, "age": rows[:, 0], "rate": rows[:, 1], "more": rows[:, 0]}


class Own:
    """A generator of somebody else's."""

    latent_dim = 2

    def sample_latents(self, n, rng):
        return rng.random((n, 2))

    def decode(self, latents):
        return codes(latents)


@pytest.mark.parametrize("check", [c for c in CHECKS if c.__name__ != "a_file_keeps_it"])
def test_an_adapted_function_passes_the_contract(check):
    check(adapt(codes, SCHEMA, latent_dim=2))


def test_cells_are_moved_to_the_domain():
    rows = adapt(codes, SCHEMA, latent_dim=2).decode(np.array([[9.0, -9.0], [0.01, 2.5]]))
    np.testing.assert_array_equal(rows, [[90, -3, 2], [40, np.nan, 0]])


def test_an_object_brings_its_own_latents():
    generator = adapt(Own(), SCHEMA)
    latents = generator.sample_latents(50, np.random.default_rng(0))
    assert generator.latent_dim == 2
    assert latents.min() >= 0
    normal = adapt(codes, SCHEMA, latent_dim=2)
    assert normal.sample_latents(50, np.random.default_rng(0)).min() < 0
    np.testing.assert_array_equal(generator.decode(latents), normal.decode(latents))


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_read_by_name(library):
    table = TABLE if library is pd else pl.from_pandas(TABLE)
    generator = adapt(
        lambda latents: library.DataFrame(words(latents)), SCHEMA, latent_dim=2, table=table
    )
    latents = generator.sample_latents(200, np.random.default_rng(0))
    expected = adapt(codes, SCHEMA, latent_dim=2).decode(latents)
    np.testing.assert_array_equal(generator.decode(latents), expected)


def test_a_steady_batch_is_filled_up():
    sizes = []

    def decode(latents):
        sizes.append(len(latents))
        return codes(latents)

    generator = adapt(decode, SCHEMA, latent_dim=2, batch=64)
    latents = generator.sample_latents(100, np.random.default_rng(0))
    np.testing.assert_array_equal(
        generator.decode(latents), adapt(codes, SCHEMA, latent_dim=2).decode(latents)
    )
    assert set(sizes) == {64}


def test_decoding_that_draws_is_refused():
    rng = np.random.default_rng(0)

    def drawing(latents):
        rows = codes(latents)
        rows[:, 0] = rng.integers(17, 91, len(rows))
        return rows

    with pytest.raises(InvalidInput, match=r"same row, in age; .*evaluation mode"):
        adapt(drawing, SCHEMA, latent_dim=2)


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        (object(), {"latent_dim": 2}, "cannot be adapted"),
        (codes, {}, "latent_dim is None"),
        (codes, {"latent_dim": 0}, "latent_dim"),
        (lambda z: codes(z)[:, :2], {"latent_dim": 2}, "shape"),
        (lambda z: codes(z)[:-1], {"latent_dim": 2}, "shape"),
        (lambda z: words(z), {"latent_dim": 2}, "table=frame"),
        (lambda z: pd.DataFrame({"age": z[:, 0]}), {"latent_dim": 2, "table": TABLE}, "rate, job"),
    ],
)
def test_what_cannot_be_adapted(target, more, words):
    with pytest.raises(InvalidInput, match=words):
        adapt(target, SCHEMA, **more)


def test_foreign_cells_are_refused():
    def gaps(latents):
        rows = codes(latents)
        rows[:, 0] = np.nan
        return rows

    with pytest.raises(BadTable, match=r"missing cells .* age"):
        adapt(gaps, SCHEMA, latent_dim=2)
    with pytest.raises(BadTable, match="'pilot'"):
        adapt(
            lambda z: pd.DataFrame({**words(z), "job": "pilot"}),
            SCHEMA,
            latent_dim=2,
            table=TABLE,
        )


def test_an_adapted_generator_is_not_saved(tmp_path):
    with pytest.raises(InvalidInput, match="save the object itself"):
        generators.save(adapt(codes, SCHEMA, latent_dim=2), tmp_path / "generator.limi")
    assert "adapted" not in generators.names()
