"""What the tests of models behind an address share."""

import pytest

from tests.cli.conftest import limi
from tests.remote.servers import App, people, serving

__all__ = ["limi"]


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture
def app():
    return App()


@pytest.fixture
def address(app):
    with serving(app) as there:
        yield there
