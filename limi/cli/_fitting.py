"""Errors that say what a command lacks, with the whole command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from limi.cli import _console

__all__ = ["showing_command"]


@contextmanager
def showing_command() -> Iterator[None]:
    """Where a model's columns do not fit, show the command that would do in place of what to add
    to it."""
    from limi.errors import BadModel
    from limi.models.target import SAME_COMMAND

    try:
        yield
    except BadModel as error:
        said, lacks, more = str(error).partition(SAME_COMMAND)
        if not lacks:
            raise
        raise BadModel(f"{said}{_console.command_line()} {more}") from None
