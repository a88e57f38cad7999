"""The command line, as the tests of commands call it."""

from tests.cli.conftest import limi

__all__ = ["limi"]
