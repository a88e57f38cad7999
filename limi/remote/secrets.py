"""Headers with secrets: filled in as a request is made, and nowhere else to be seen.

A user writes `Authorization: Bearer $TOKEN`, or `Authorization: @FILE` where a file holds the
value. What is shown, written or said is that text; should a server repeat a secret in its words,
the words are given with the name in its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from limi.errors import InvalidInput
from limi.system.reading import read_text

__all__ = ["Headers", "expand"]

_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIXED = re.compile("host|content-length|content-type|transfer-encoding|connection", re.IGNORECASE)
_DELICATE = re.compile("auth|cookie|token|key|secret|pass|credential|signature", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]{20,}")  # what keys look like
_SHORTEST = 4  # characters; shorter ones would be found in every other word


@dataclass(frozen=True, repr=False)
class Headers:
    """Headers as they are sent, and how what they hide is called."""

    values: Mapping[str, str]
    hidden: Mapping[str, str]  # by secret: what is shown in its place

    def scrub(self, text: str) -> str:
        """The text with every secret replaced by its name."""
        for secret in sorted(self.hidden, key=len, reverse=True):
            text = text.replace(secret, self.hidden[secret])
        return text

    def __repr__(self) -> str:
        return f"Headers({', '.join(self.values)})"


def expand(given: Sequence[str], environment: Mapping[str, str] | None = None) -> Headers:
    """Headers of texts such as `"X-Api-Key: $KEY"`; InvalidInput where one cannot be filled in."""
    environment = os.environ if environment is None else environment
    values: dict[str, str] = {}
    hidden: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not _HEADER.fullmatch(name):
            raise InvalidInput(
                f'the header {name!r} is not of the form "Name: value", such as "Authorization: '
                'Bearer $TOKEN"'
            )
        if _FIXED.fullmatch(name):
            raise InvalidInput(f"the header {name!r} is limi's own to set; leave it out")
        values[name] = _fill(name, value, environment, hidden)
    return Headers(values, hidden)


def _fill(name: str, value: str, environment: Mapping[str, str], hidden: dict[str, str]) -> str:
    if value.startswith("@"):
        secret = read_text(value[1:], f"a file that holds the value of the header {name}").strip()
        return _keep(name, value, secret, hidden)

    def replaced(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if not environment.get(variable):
            raise InvalidInput(
                f"the header {name!r} takes ${variable} from the environment, where it is not set; "
                f"export {variable}=..."
            )
        return _keep(name, f"${variable}", environment[variable].strip(), hidden)

    filled = _NAME.sub(replaced, value)
    if filled == value and (_DELICATE.search(name) or _RANDOM.fullmatch(value)):
        raise InvalidInput(
            f"the header {name!r} is given in plain text, which would be kept with the command; "
            f"put it into the environment and write --header '{name}: $NAME' in single quotes, "
            f"which the shell leaves as they are, or '{name}: @FILE'"
        )
    return filled


def _keep(name: str, shown: str, secret: str, hidden: dict[str, str]) -> str:
    if not secret.isprintable() or not secret.isascii():
        raise InvalidInput(
            f"{shown}, for the header {name!r}, holds characters that no header can have; it must "
            "be plain text on one line"
        )
    if len(secret) >= _SHORTEST:
        hidden[secret] = shown
    return secret
