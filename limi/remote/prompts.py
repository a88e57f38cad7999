"""Templates of prompts: a row as a question, in several wordings, and words that answer it.

A template is a TOML file with `prompts` (Jinja, in a sandbox; columns are fields, and `person` has
all of them), the words that mean a `favorable` and an `unfavorable` answer, and `system`, which
may be left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from limi.errors import InvalidInput, nearest, spell
from limi.system.foreign import reason
from limi.system.reading import is_file, read_text

__all__ = ["READY", "Prompts", "read_prompts"]

READY = ("hiring", "insurance", "loans")
_KEYS = ("favorable", "unfavorable", "system", "prompts")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_FIRST = re.compile(r"[\W_]*([^\W_]+)[*_\"')\]]*\s*(?:[.,;:!\n]|-|\u2013|\u2014|$)")
_NOT = {"not", "cannot", "never", "neither", "nor", "unable", "without"}


@dataclass(frozen=True)
class Prompts:
    """A template that has been read."""

    name: str
    text: str  # of the file, which is what it is known by
    texts: tuple[str, ...]  # wordings
    favorable: tuple[str, ...]
    unfavorable: tuple[str, ...]
    system: str = ""

    @cached_property
    def _compiled(self) -> list[Any]:
        room = _make_room()
        try:
            return [room.from_string(text) for text in self.texts]
        except (TemplateError, RecursionError) as error:
            raise InvalidInput(f"the template {self.name!r} is not valid: {error}") from None

    @cached_property
    def _fields(self) -> set[str]:
        room = _make_room()
        return {
            name for text in self.texts for name in meta.find_undeclared_variables(room.parse(text))
        }

    def check(self) -> None:
        """InvalidInput where the template cannot be used, whatever the columns are."""
        assert len(self._compiled) == len(self.texts)

    def render(self, record: Mapping[str, Any], turn: int) -> str:
        """The question about a row, in the wording of this turn."""
        unknown = sorted(self._fields - {*record, "person"})
        if unknown:
            raise InvalidInput(
                f"the template {self.name!r} has {unknown[0]!r}, which is not a column of the "
                f"table; {nearest(unknown[0], record)}"
            )
        shown = {name: "unknown" if cell is None else cell for name, cell in record.items()}
        template = self._compiled[turn % len(self._compiled)]
        try:
            text: str = template.render({**shown, "person": shown})
        except UndefinedError as error:
            raise InvalidInput(
                f"the template {self.name!r} needs a value that is not there: {error}"
            ) from None
        except Exception as error:  # what a template does is as manifold as a program
            raise InvalidInput(
                f"the template {self.name!r} cannot be filled: {reason(error)}"
            ) from None
        return text.strip()

    def side(self, answer: str) -> bool | None:
        """Is an answer favorable? None where it says neither, or both.

        A word that stands alone at the beginning decides, as in "No, I would not approve it".
        Otherwise it is the words of one side, unless they are denied: "I cannot approve it" may
        be a refusal to answer as well.
        """
        first = _FIRST.match(answer)
        if first is not None and first[1].casefold() in (*self.favorable, *self.unfavorable):
            return first[1].casefold() in self.favorable
        words = {word.casefold().replace("\u2019", "'") for word in _WORD.findall(answer)}
        sides = [any(w in words for w in known) for known in (self.favorable, self.unfavorable)]
        denied = words & _NOT or any(word.endswith("n't") for word in words)
        return None if sides[0] == sides[1] or denied else sides[0]


def _make_room() -> ImmutableSandboxedEnvironment:
    """Where templates run: in a sandbox, and without chance, so that a row is always one prompt."""
    room = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    del room.globals["lipsum"], room.filters["random"]
    return room


def read_prompts(name: str) -> Prompts:
    """The template of a name, or of a file; InvalidInput where it cannot be used."""
    if name in READY and not is_file(name):
        text = files("limi.remote").joinpath("templates", f"{name}.toml").read_text("utf-8")
    elif not is_file(name) and not Path(name).suffix:
        raise InvalidInput(
            f"unknown template {name!r}; {nearest(name, READY)}, or a file such as mine.toml"
        )
    else:
        text = read_text(name, "a template of prompts, such as template=mine.toml")
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name!r} is not valid TOML: {error}") from None
    for key in tree:
        if key not in _KEYS:
            raise InvalidInput(f"{name!r} has {key!r}; {nearest(key, _KEYS)}")
    prompts = Prompts(
        name,
        text,
        _texts(name, tree, "prompts"),
        _words(name, tree, "favorable"),
        _words(name, tree, "unfavorable"),
        tree.get("system", ""),
    )
    if not isinstance(prompts.system, str):
        raise InvalidInput(f"system in {name!r} is {prompts.system!r}; it must be text")
    both = set(prompts.favorable) & set(prompts.unfavorable)
    if both:
        raise InvalidInput(f"{name!r} calls {spell(sorted(both))} favorable and unfavorable")
    prompts.check()
    return prompts


def _words(name: str, tree: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Words that are looked for in an answer; InvalidInput for phrases, which are never found."""
    words = tuple(word.casefold() for word in _texts(name, tree, key))
    for word in words:
        if not _WORD.fullmatch(word):
            raise InvalidInput(
                f"{key} in {name!r} has {word!r}; give single words, without punctuation"
            )
    return words


def _texts(name: str, tree: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given: Sequence[Any] = tree.get(key, ())
    if not isinstance(given, list) or not given or not all(isinstance(t, str) for t in given):
        raise InvalidInput(f"{name!r} must have {key}, a list of words")
    return tuple(given)
