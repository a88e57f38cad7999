"""What every generator owes, as a suite that third parties can run on their own.

    from limi.testing.generators import CHECKS, FIT_CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    def test_contract(check):
        check(my_generator)

    @pytest.mark.parametrize("check", FIT_CHECKS)
    def test_fit(check):
        check(my_module.fit, my_module.Settings(epochs=1))

`CHECKS` take a generator (any schema will do). `FIT_CHECKS` take the `fit` of a generator's module
and settings that make it short; they fit it to small odd tables of their own. Each check fails
with an AssertionError that says what was broken.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from limi import generators
from limi.errors import InvalidInput, LimiError
from limi.generators import Encoder, Generator, WithDensity
from limi.generators._base import WithTensors
from limi.generators._checks import require_rows
from limi.table.rows import snap
from limi.table.schema import Column, Schema
from limi.types import Rows

__all__ = ["CHECKS", "FIT_CHECKS", "SCHEMA", "check", "table"]

Fit = Callable[..., Generator]

_MOST_ROWS = 3000  # of a domain that is counted through


def check(generator: Generator) -> None:
    """Run every check on a generator."""
    for one in CHECKS:
        one(generator)


# -- a generator ------------------------------------------------------------------------


def has_the_members(generator: Generator) -> None:
    """It has the members of a generator, and they hold what they may."""
    name = type(generator).__name__
    assert isinstance(generator, Generator), f"{name} lacks a member of limi.generators.Generator"
    assert generator.kind, "kind is a word"
    assert isinstance(generator.schema, Schema), "schema is a Schema"
    assert generator.latent_dim >= 1, f"latent_dim is {generator.latent_dim}"
    notes = getattr(generator, "notes", ())
    assert all(isinstance(note, str) for note in notes), "notes are sentences"


def offers_are_kept(generator: Generator) -> None:
    """It can do what the module of its kind declares, and nothing that it conceals."""
    if generator.kind not in generators.names():
        return
    offers = generators.offers(generator.kind)
    for protocol, declared in (
        (Encoder, offers.has_encoder),
        (WithTensors, offers.on_device),
    ):
        can = isinstance(generator, protocol)
        assert can == declared, f"{protocol.__name__}: {can}, but OFFERS says {declared}"


def latents_follow_the_rng(generator: Generator) -> None:
    """The same rng draws the same finite latents, however n is split."""
    whole = _latents(generator, 20)
    assert whole.shape == (20, generator.latent_dim), whole.shape
    assert np.issubdtype(whole.dtype, np.floating), whole.dtype
    assert np.isfinite(whole).all(), "latents are finite"
    assert np.array_equal(whole, _latents(generator, 20)), "two draws from one seed differ"
    assert not np.array_equal(whole, _latents(generator, 20, seed=1)), "the rng is not used"
    rng = np.random.default_rng(0)
    parts = np.concatenate([generator.sample_latents(n, rng) for n in (7, 0, 13)])
    assert np.array_equal(whole, parts), "20 latents differ from 7 and 13"


def rows_lie_in_the_domain(generator: Generator) -> None:
    """One float64 row per latent, every cell one that the schema allows."""
    rows = generator.decode(_latents(generator, 300))
    assert rows.shape == (300, len(generator.schema)), rows.shape
    assert rows.dtype == np.float64, rows.dtype
    require_rows(rows, generator.schema)
    on_grid = snap(generator.schema, rows)
    assert np.array_equal(on_grid, rows, equal_nan=True), "cells are not those of a table"


def far_latents_decode_too(generator: Generator) -> None:
    """A search moves latents; rows stay in the domain however far they are."""
    for factor in (0.0, 10.0, -1e3):
        rows = generator.decode(factor * _latents(generator, 50))
        require_rows(rows, generator.schema)


def decoding_is_a_function(generator: Generator) -> None:
    """The same latent gives the same row: again, alone, backwards, and among many."""
    latents = _latents(generator, 200)
    rows = generator.decode(latents)
    given = latents.copy()
    _same(generator, rows, generator.decode(given), "two calls differ")
    assert np.array_equal(given, latents), "decode changed its input"
    _same(generator, rows[::-1], generator.decode(latents[::-1].copy()), "order matters")
    alone = np.concatenate([generator.decode(latents[i : i + 1]) for i in range(5)])
    _same(generator, rows[:5], alone, "a latent decoded by itself gives another row")
    many = generator.decode(np.concatenate([_latents(generator, 1500, seed=5), latents]))
    _same(generator, rows, many[1500:], "a latent among many gives another row")


def no_latents_no_rows(generator: Generator) -> None:
    """An empty batch has an empty answer."""
    assert generator.decode(_latents(generator, 0)).shape == (0, len(generator.schema))


def samples_differ(generator: Generator) -> None:
    """Rows of different latents are not all the same, where the schema has more than one."""
    rows = generator.decode(_latents(generator, 200))
    possible = math.prod(column.size + column.missing or 2 for column in generator.schema.columns)
    assert possible == 1 or len(np.unique(rows, axis=0)) > 1, "every latent gives one row"


def refuses_other_shapes(generator: Generator) -> None:
    """Latents of another width are refused with a sentence."""
    for shape in ((3, generator.latent_dim + 1), (generator.latent_dim,)):
        try:
            generator.decode(np.zeros(shape))
        except InvalidInput:
            continue
        raise AssertionError(f"latents of the shape {shape} were decoded")


def a_file_keeps_it(generator: Generator) -> None:
    """Saved and loaded, it decodes the same latents to the same rows."""
    latents = _latents(generator, 200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generator.limi"
        generators.save(generator, path)
        again = generators.load(path)
    assert type(again) is type(generator), f"{type(again).__name__} was loaded"
    assert again.schema == generator.schema, "the schema changed"
    assert np.array_equal(again.sample_latents(20, np.random.default_rng(0)), latents[:20])
    _same(generator, generator.decode(latents), again.decode(latents), "other rows after loading")


def encoding_gives_latents(generator: Generator) -> None:
    """Where it can encode: one finite latent per row, the same for the same rng.

    That holds at the ends of every column too, whether or not the table reached them.
    """
    if not isinstance(generator, Encoder):
        return
    ends = np.stack([generator.schema.low, generator.schema.high])
    rows = np.concatenate([generator.decode(_latents(generator, 98)), ends])
    latents = generator.encode(rows, np.random.default_rng(1))
    assert latents.shape == (100, generator.latent_dim), latents.shape
    assert np.isfinite(latents).all(), "latents are finite"
    again = generator.encode(rows, np.random.default_rng(1))
    assert np.allclose(latents, again, rtol=1e-5, atol=1e-6), "two encodings from one seed differ"
    require_rows(generator.decode(latents), generator.schema)


def probabilities_are_probabilities(generator: Generator) -> None:
    """Where it has a density: no NaN, likely rows above unlikely ones, and at most 1 in all."""
    if not isinstance(generator, WithDensity):
        return
    rows = generator.decode(_latents(generator, 200))
    log_prob = generator.log_prob(rows)
    assert log_prob.shape == (200,), log_prob.shape
    assert not np.isnan(log_prob).any(), "log_prob is NaN"
    assert (log_prob > -math.inf).all(), "its own rows are impossible"
    again = generator.log_prob(rows[::-1].copy())[::-1]
    assert np.allclose(log_prob, again, rtol=1e-5, atol=1e-5), "order matters"
    domain = _domain(generator.schema)
    if domain is not None:
        total = float(np.exp(generator.log_prob(domain)).sum())
        assert total <= 1 + 1e-3, f"the probabilities of all rows add up to {total}"


CHECKS: tuple[Callable[[Generator], None], ...] = (
    has_the_members,
    offers_are_kept,
    latents_follow_the_rng,
    rows_lie_in_the_domain,
    far_latents_decode_too,
    decoding_is_a_function,
    no_latents_no_rows,
    samples_differ,
    refuses_other_shapes,
    a_file_keeps_it,
    encoding_gives_latents,
    probabilities_are_probabilities,
)


# -- fitting ----------------------------------------------------------------------------

SCHEMA = Schema(
    (
        Column(name="age", kind="numerical", low=17, high=90, step=1),
        Column(name="rate", kind="numerical", low=-1.0, high=3.5, missing=True),
        Column(name="price", kind="numerical", low=0.0, high=9.9, step=0.1),
        Column(name="job", kind="categorical", levels=("clerk", "cook", "none"), missing=True),
        Column(name="size", kind="ordered", levels=("S", "M", "L")),
        Column(name="member", kind="boolean", levels=(False, True)),
        Column(name="country", kind="categorical", levels=("here",)),
    )
)
"""Every kind of column: a grid, real numbers, decimals, levels, an order, and a constant."""


def table(n: int, seed: int = 0) -> Rows:
    """n rows of `SCHEMA` with dependent columns and missing cells."""
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 91, n).astype(np.float64)
    rate = np.where(rng.random(n) < 0.2, 0.0, np.clip(rng.normal(age / 60, 0.5), -1, 3.5))
    rate[rng.random(n) < 0.1] = np.nan
    price = np.round(np.clip(rng.exponential(2, n), 0, 9.9), 1)
    job = (age > 40) + (rng.random(n) < 0.3).astype(np.float64)
    job[rng.random(n) < 0.05] = np.nan
    size = np.clip(np.rint(price / 3), 0, 2)
    member = (rng.random(n) < 0.2 + 0.3 * size).astype(np.float64)
    return np.column_stack([age, rate, price, job, size, member, np.zeros(n)])


def same_seed_same_generator(fit: Fit, settings: Any) -> None:
    """Two fits from one seed decode alike, and the rows given are left as they are."""
    rows = table(200)
    given = rows.copy()
    made = [fit(given, SCHEMA, np.random.default_rng(3), settings=settings) for _ in range(2)]
    assert np.array_equal(given, rows, equal_nan=True), "fit changed its rows"
    latents = _latents(made[0], 200)
    _same(made[0], made[0].decode(latents), made[1].decode(latents), "two fits differ")


def progress_is_told(fit: Fit, settings: Any) -> None:
    """on_step hears fractions that rise to 1, with words."""
    told: list[tuple[float, str]] = []
    fit(
        table(200),
        SCHEMA,
        np.random.default_rng(0),
        settings=settings,
        on_step=lambda done, words: told.append((done, words)),
    )
    fractions = [done for done, _ in told]
    assert told, "on_step was never called"
    assert fractions == sorted(fractions), "progress went back"
    assert fractions[0] >= 0, fractions[0]
    assert fractions[-1] == 1.0, f"progress ended at {fractions[-1]}"
    assert all(isinstance(words, str) for _, words in told), "words are text"


def odd_tables_are_fitted(fit: Fit, settings: Any) -> None:
    """Twenty rows, one row, one column, constants, and a column all missing: it simply works."""
    rows = table(20)
    all_missing = table(60)
    all_missing[:, [1, 3]] = np.nan
    one_column = Schema((SCHEMA.columns[0],))
    cases: list[tuple[Rows, Schema]] = [
        (rows, SCHEMA),
        (rows[:1], SCHEMA),
        (np.tile(rows[:1], (40, 1)), SCHEMA),
        (all_missing, SCHEMA),
        (rows[:, :1], one_column),
    ]
    for data, schema in cases:
        generator = fit(data, schema, np.random.default_rng(0), settings=settings)
        decoded = generator.decode(_latents(generator, 50))
        assert decoded.shape == (50, len(schema)), decoded.shape
        require_rows(decoded, schema)


def unusable_tables_are_refused(fit: Fit, settings: Any) -> None:
    """No rows, infinite cells, a missing or foreign cell that the schema forbids, another width."""
    infinite, missing, foreign = table(30), table(30), table(30)
    infinite[3, 1], missing[4, 0], foreign[5, 4] = np.inf, np.nan, 7
    unusable = {
        "no rows": table(30)[:0],
        "infinite cells": infinite,
        "missing cells": missing,
        "a level that does not exist": foreign,
        "another width": table(30)[:, :3],
    }
    for words, rows in unusable.items():
        try:
            fit(rows, SCHEMA, np.random.default_rng(0), settings=settings)
        except LimiError:
            continue
        raise AssertionError(f"a table with {words} was fitted")


FIT_CHECKS: tuple[Callable[[Fit, Any], None], ...] = (
    same_seed_same_generator,
    progress_is_told,
    odd_tables_are_fitted,
    unusable_tables_are_refused,
)


# -- shared -----------------------------------------------------------------------------


def _latents(generator: Generator, n: int, seed: int = 0) -> Any:
    return generator.sample_latents(n, np.random.default_rng(seed))


def _same(generator: Generator, rows: Rows, other: Rows, words: str) -> None:
    """Equal cells; real numbers may differ by the rounding of single precision."""
    real = generator.schema.sizes == 0
    grid = np.array_equal(rows[:, ~real], other[:, ~real], equal_nan=True)
    span = (generator.schema.high - generator.schema.low)[real]
    gap = np.abs(rows[:, real] - other[:, real]) <= 1e-5 * span
    both_missing = np.isnan(rows[:, real]) & np.isnan(other[:, real])
    assert grid, words
    assert (gap | both_missing).all(), words


def _domain(schema: Schema) -> Rows | None:
    """Every row that a schema allows, where those are few; None else."""
    sizes = schema.sizes + schema.may_miss
    if (schema.sizes == 0).any() or np.prod(sizes.astype(np.float64)) > _MOST_ROWS:
        return None
    axes = [
        [*(low + step * np.arange(size)), *([np.nan] if may_miss else [])]
        for low, step, size, may_miss in zip(
            schema.low, schema.step, schema.sizes, schema.may_miss, strict=True
        )
    ]
    return np.array(list(itertools.product(*axes)))
