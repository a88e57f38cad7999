"""Headers with secrets: filled in as a request is made, and nowhere else to be seen.

A user writes `Authorization: Bearer $TOKEN`, or `Authorization: @FILE` where a file holds the
value, and `?key=$KEY` where a service wants it in the address. What is shown, written or said is
that text; should a server repeat a secret in its words, the words are given with the name in its
place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit

from limi.errors import InvalidInput
from limi.system.reading import read_text

__all__ = ["Headers", "check_address", "expand"]

_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIXED = re.compile("host|content-length|content-type|transfer-encoding|connection", re.IGNORECASE)
_DELICATE = re.compile("auth|cookie|token|key|secret|pass|credential|signature", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]{20,}")  # what keys look like
_IN_ADDRESS = re.compile(r"(?<==)\$(\w+)(?=&|$)")
_SHORTEST = 4  # characters; shorter ones would be found in every other word


@dataclass(frozen=True, repr=False)
class Headers:
    """Headers as they are sent, and how what they hide is called."""

    values: Mapping[str, str]
    hidden: Mapping[str, str]  # by secret: what is shown in its place
    keys: Mapping[str, str] = field(default_factory=dict)  # by name: secrets of the address

    def scrub(self, text: str) -> str:
        """The text with every secret replaced by its name, however it is escaped."""
        for secret in sorted(self.hidden, key=len, reverse=True):
            for spelled in _spellings(secret):
                text = text.replace(spelled, self.hidden[secret])
        return text

    def fill(self, url: str) -> str:
        """The address with the secrets in its query, as it is spoken to and nowhere shown."""
        return _IN_ADDRESS.sub(lambda match: quote(self.keys[match[1]], safe=""), url)

    def __repr__(self) -> str:
        return f"Headers({', '.join(self.values)})"


def check_address(url: str) -> None:
    """InvalidInput where an address holds what looks like a key, in plain text."""
    for name, value in parse_qsl(urlsplit(url).query):
        if _IN_ADDRESS.fullmatch(value) or re.fullmatch(r"\$\w+", value):
            continue
        if _DELICATE.search(name) or _RANDOM.fullmatch(value):
            raise InvalidInput(
                f"{name!r} in the address is given in plain text, which would be stored with the "
                f"command; put it into an environment variable and write '?{name}=$NAME' in single "
                "quotes"
            )


def expand(
    given: Sequence[str], environment: Mapping[str, str] | None = None, *, url: str = ""
) -> Headers:
    """Headers of texts such as `"X-Api-Key: $KEY"`, and the secrets that an address names;
    InvalidInput where one cannot be filled in."""
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
            raise InvalidInput(f"the header {name!r} is set by limi; leave it out")
        values[name] = _fill(name, value, environment, hidden)
    keys = {
        name: _take(f"the address reads ${name}", name, environment, hidden)
        for name in _IN_ADDRESS.findall(url)
    }
    return Headers(values, hidden, keys)


def _fill(name: str, value: str, environment: Mapping[str, str], hidden: dict[str, str]) -> str:
    if value.startswith("@"):
        secret = read_text(value[1:], f"a file that holds the value of the header {name}").strip()
        if not secret:
            raise InvalidInput(f"the file of the header {name!r} is empty: {value[1:]!r}")
        return _keep(value, secret, hidden)

    def replaced(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        return _take(f"the header {name!r} reads ${variable}", variable, environment, hidden)

    filled = _NAME.sub(replaced, value)
    if filled == value and (_DELICATE.search(name) or _RANDOM.fullmatch(value)):
        raise InvalidInput(
            f"the header {name!r} is given in plain text, which would be stored with the command; "
            f"put it into an environment variable and write --header '{name}: $NAME' in single "
            f"quotes, so that the shell does not expand it, or '{name}: @FILE'"
        )
    return filled


def _take(who: str, variable: str, environment: Mapping[str, str], hidden: dict[str, str]) -> str:
    secret = environment.get(variable, "").strip()
    if not secret:
        raise InvalidInput(f"{who} from the environment, but it is not set; export {variable}=...")
    return _keep(f"${variable}", secret, hidden)


def _keep(shown: str, secret: str, hidden: dict[str, str]) -> str:
    if not secret.isprintable() or not secret.isascii():
        raise InvalidInput(
            f"{shown} holds characters that are not allowed in a header; it must be plain text on "
            "one line"
        )
    if len(secret) >= _SHORTEST:
        hidden[secret] = shown
    return secret


def _spellings(secret: str) -> set[str]:
    """A secret as it is, in JSON and in an address."""
    in_json = json.dumps(secret)[1:-1]
    return {secret, in_json, in_json.replace("/", "\\/"), quote(secret, safe=""), quote(secret)}
