"""Addresses: http or https, a host, no password; behind a # what the kind needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from limi.errors import InvalidInput, nearest
from limi.remote.secrets import check_address

__all__ = ["Address", "parse"]

_LONGEST = 160  # characters of an address that are quoted


@dataclass(frozen=True)
class Address:
    """Where a model is asked, with the name and the options behind the #."""

    url: str
    name: str
    options: dict[str, str]

    @property
    def host(self) -> str:
        """The host with its port, which is where rows are sent."""
        return urlsplit(self.url).netloc

    def join(self, path: str) -> str:
        """The address of a path below this one; where it ends so already, itself."""
        parts = urlsplit(self.url)
        base = parts.path.rstrip("/")
        return urlunsplit(parts._replace(path=base if base.endswith(path) else base + path))

    @property
    def columns(self) -> list[str] | None:
        """The columns that the model takes, where the user names them."""
        named = self.options.get("columns")
        return None if named is None else [part.strip() for part in named.split(",")]


def parse(place: str, form: str, *, known: Sequence[str] = (), named: bool = False) -> Address:
    """`URL#NAME?option=value`; InvalidInput where it is not of the form that a user should write.

    All kinds know the option `columns`. Without a name the options stand alone behind the #.
    """
    bare, _, fragment = place.partition("#")
    try:
        parts = urlsplit(bare)
        host, _ = parts.hostname, parts.port  # a port that is not a number raises
        (host or "").encode("idna")  # so does a label that is empty or too long
    except ValueError as error:
        raise InvalidInput(f"{_cut(place)!r} is not an address: {error}; write {form}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(f"{_cut(place)!r} is not an http or https address; write {form}")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"the address of {host!r} holds a user name or password, which would be shown; give "
            'it as --header "Authorization: Basic $TOKEN" with TOKEN in the environment'
        )
    check_address(bare)
    name, mark, text = fragment.partition("?")
    if not named and not mark and "=" in name:
        name, text = "", name
    if named and not name:
        raise InvalidInput(f"{_cut(place)!r} does not name a model after a #; write {form}")
    if name and not named:
        raise InvalidInput(
            f"{_cut(place)!r} has {_cut(name)!r} after the #, but no model is named there; write "
            f"{form}"
        )
    options = dict(parse_qsl(text, keep_blank_values=True))
    for option in options:
        if option not in (*known, "columns"):
            raise InvalidInput(
                f"{_cut(place)!r} has the unknown option {option!r}; "
                f"{nearest(option, (*known, 'columns'))}"
            )
    return Address(urlunsplit(parts), name, options)


def _cut(place: str) -> str:
    return place if len(place) <= _LONGEST else f"{place[:_LONGEST]} ..."
