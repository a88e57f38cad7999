"""What an input is: the words of a command, the files it finds, and what it may leave."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

MINE = b"MINE: this file belongs to somebody else\n"
"""How every file begins that no command may touch, wherever it lies."""

ANSWERS = (1, 3)  # exit codes by which a gate answers: it failed, or does not know


@dataclass(frozen=True)
class Link:
    """A symbolic link to a place in the scratch folder."""

    to: str


@dataclass(frozen=True)
class Fifo:
    """A pipe that nobody writes to: whoever reads it waits for ever."""


@dataclass(frozen=True)
class Folder:
    """An empty folder."""


Thing: TypeAlias = bytes | Link | Fifo | Folder


@dataclass(frozen=True)
class Around:
    """What the program finds around it."""

    memory: int = 4 << 30  # bytes of address space beyond what the libraries take
    file_size: int = 256 << 20  # bytes a file may grow to; writing more fails as on a full disk
    files: int = 256  # that may be open at once
    ascii: bool = False  # streams as in the C locale
    stdout: str = "file"  # or closed, full, gone (a pipe whose reader has left)
    cwd: str = "there"  # or deleted
    variables: Mapping[str, str] = field(default_factory=dict)
    trial_s: int = 4  # that the trial of a model's file may take
    real_trial: bool = False  # in a Python that is started, not forked


@dataclass(frozen=True)
class Case:
    """One input."""

    words: tuple[str, ...]
    files: Mapping[str, Thing] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()  # files and folders of the work folder that may be written
    exits: frozenset[int] = frozenset({0, 2, 4})
    says: str = ""  # a pattern that standard error must hold
    chatty: bool = False  # a model that prints: standard error may hold more than a sentence
    around: Around = Around()
    entry: str = "limi.cli:main"

    @property
    def wants_json(self) -> bool:
        return "--json" in self.words

    def check_inside(self, work: str, box: str) -> None:
        """Nothing that an input names may lie outside the scratch folder."""
        for name in self.files:
            _check(name, work, work)
        for name, thing in self.files.items():
            if isinstance(thing, Link):
                _check(thing.to, os.path.dirname(os.path.join(work, name)), box)
        for word in self.words:
            for part in _pieces(word):
                if "/" in part or part == "..":
                    _check(part, work, box)


def _pieces(word: str) -> list[str]:
    parts = [re.sub(r"\b[a-z]+://[^/,=?]*", "", word)]  # an address is no place on this machine
    for mark in "=:,?":
        parts = [piece for part in parts for piece in part.split(mark)]
    return parts


def _check(name: str, work: str, inside: str) -> None:
    place = os.path.normpath(os.path.join(work, name))
    if place != inside and not place.startswith(inside + os.sep):
        raise ValueError(f"{name[:80]!r} lies outside the scratch folder")
