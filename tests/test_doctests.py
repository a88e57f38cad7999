"""The examples in docstrings hold, in every module that has some."""

import doctest
import importlib
from pathlib import Path

import pytest

import limi

FOLDER = Path(limi.__file__).parent
MODULES = [
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
