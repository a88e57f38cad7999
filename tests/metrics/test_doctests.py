"""The examples in docstrings of metrics, twins, audits and the words of a report."""

import doctest
import importlib
import pkgutil

import pytest

from limi import audits, decisions, metrics, twins
from limi.report import wording

MODULES = sorted(
    found.name
    for package in (metrics, twins, audits)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
)


@pytest.mark.parametrize("name", [*MODULES, decisions.__name__, wording.__name__])
def test_the_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
