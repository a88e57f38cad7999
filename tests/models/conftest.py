"""Trains each model once."""

import pytest

from tests.models.kinds import KINDS, Case


@pytest.fixture(scope="session")
def trained():
    """Models by name; boosters must go before their libraries do."""
    models: dict[str, Case] = {}
    yield models
    models.clear()


@pytest.fixture(params=sorted(KINDS))
def case(request, tmp_path_factory, trained) -> Case:
    """One model of every kind."""
    name = request.param
    if name not in trained:
        trained[name] = KINDS[name](tmp_path_factory.mktemp(name))
    return trained[name]
