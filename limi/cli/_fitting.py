"""Errors that say what a command lacks, with the whole command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from limi.cli import _console

__all__ = ["showing_command"]


@contextmanager
def showing_command(answers: Sequence[str] = ()) -> Iterator[None]:
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
        before = _console.command_line(answers)
        if "--only" in more:
            before = _without(before, ("--only", "--drop"))
        raise BadModel(f"{said}{before} {more}") from None


def _without(command: str, options: tuple[str, ...]) -> str:
    """A command without options that another one takes the place of, and their values."""
    kept: list[str] = []
    words = iter(shlex.split(command))
    for word in words:
        if word in options:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return shlex.join(kept)
