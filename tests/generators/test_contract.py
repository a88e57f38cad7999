"""Every generator of the folder passes the suite that limi ships."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from limi import generators
from limi.errors import MissingDependency
from limi.table.schema import Column, Schema
from limi.testing.generators import CHECKS, FIT_CHECKS, SCHEMA, table

# Whatever of these a generator's settings have is cut down: the contract is not about quality.
SHORT = {"epochs": 1, "min_steps": 3, "steps": 3, "max_steps": 3, "patience": 1}

FEW_VALUES = Schema(
    (
        Column(name="x", kind="numerical", low=0, high=4, step=1, missing=True),
        Column(name="y", kind="categorical", levels=("a", "b", "c")),
        Column(name="z", kind="boolean", levels=(False, True)),
    )
)


def short_settings(module):
    known = {field.name for field in dataclasses.fields(module.Settings)}
    return module.Settings(**{name: value for name, value in SHORT.items() if name in known})


def few_values(n):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, n).astype(float)
    x[rng.random(n) < 0.1] = np.nan
    y = np.where(np.isnan(x), 2, x % 2)
    return np.column_stack([x, y, rng.integers(0, 2, n)])


@functools.cache
def fitted(name, which):
    module = generators.get(name)
    rows, schema = (table(300), SCHEMA) if which == "mixed" else (few_values(300), FEW_VALUES)
    return module.fit(rows, schema, np.random.default_rng(0), settings=short_settings(module))


def usable(name):
    """The module of a generator, or a skip where its package is not installed."""
    module = generators.get(name)
    try:
        fitted(name, "few")
    except MissingDependency as error:
        pytest.skip(str(error))
    return module


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("which", ["mixed", "few"])
@pytest.mark.parametrize("name", generators.names())
def test_contract(name, which, check):
    usable(name)
    check(fitted(name, which))


@pytest.mark.parametrize("check", FIT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", generators.names())
def test_fit(name, check):
    module = usable(name)
    check(module.fit, short_settings(module))


@pytest.mark.parametrize("name", generators.names())
def test_an_interrupt_ends_training(name):
    def stop(done, words):
        if done > 0:
            raise KeyboardInterrupt

    settings = short_settings(usable(name))
    with pytest.raises(KeyboardInterrupt):
        generators.fit(
            name,
            table(300),
            SCHEMA,
            np.random.default_rng(0),
            settings=settings,
            on_step=stop,
        )


@pytest.mark.parametrize("name", generators.names())
def test_a_class_carries_the_name_of_its_module(name):
    usable(name)
    assert fitted(name, "few").kind == name


class Draws:
    """Breaks the contract: decoding draws."""

    kind = "draws"
    schema = FEW_VALUES
    latent_dim = 3

    def sample_latents(self, n, rng):
        return rng.standard_normal((n, 3))

    def decode(self, latents):
        return few_values(len(latents)) if len(latents) != 1 else np.zeros((1, 3))

    def state(self):
        return {}, {}


@pytest.mark.parametrize(
    "name", ["decoding_is_a_function", "refuses_other_shapes", "a_file_keeps_it"]
)
def test_the_suite_notices(name):
    broken = {check.__name__: check for check in CHECKS}[name]
    with pytest.raises(Exception, match=r".") as caught:
        broken(Draws())
    assert not isinstance(caught.value, AttributeError)
