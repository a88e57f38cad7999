"""What the kinds of models behind an address share: the model, and the reading of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from limi.errors import BadModel, missing, spell
from limi.models._base import Answers, Decision, ignore
from limi.models._function import FunctionModel
from limi.remote.address import Address
from limi.remote.client import Malformed
from limi.remote.exchange import Exchange, Shape
from limi.remote.options import Remote

__all__ = [
    "AtAddress",
    "RemoteModel",
    "connect",
    "dump",
    "find",
    "parse_json",
    "read_items",
    "say_where",
]

_SEEN = 64  # rows that show what the answers are
_SHARE = 40  # of the queries, the part that may be spent on that
_FEWEST = 8
_PLACE = re.compile("-?[0-9]{1,9}")


@dataclass(frozen=True)
class RemoteModel(FunctionModel):
    """A function of a frame that is answered elsewhere."""

    @property
    def exchange(self) -> Exchange:
        """What is sent, kept and counted."""
        assert isinstance(self.function, Exchange)
        return self.function

    def settle(self, inputs: Any, on_asked: Callable[[int], None] = ignore) -> RemoteModel:
        """The same once some rows have shown what its answers are."""
        allowed = self.exchange.max_queries
        n = _SEEN if allowed is None else max(_FEWEST, min(_SEEN, allowed // _SHARE))
        settled = super().settle(inputs[:n], on_asked)
        assert isinstance(settled, RemoteModel)
        return settled

    def anew(self, first: int = 0) -> AbstractContextManager[None]:
        """In this block a row that is asked again is really asked again."""
        return self.exchange.anew(first)


@dataclass(frozen=True)
class AtAddress:
    """What all shapes of servers with an address of their own have in common."""

    address: Address

    @property
    def host(self) -> str:
        """Where rows are sent."""
        return self.address.host

    @property
    def url(self) -> str:
        """The address itself, where a kind adds nothing to it."""
        return self.address.url

    @property
    def columns(self) -> list[str] | None:
        """Columns that the address names; all of the table's where it names none."""
        return self.address.columns


def connect(shape: Shape, decision: Decision, remote: Remote | None) -> RemoteModel:
    """A model of a server."""
    remote = Remote() if remote is None else remote
    return RemoteModel(Exchange(shape, remote), Answers(decision), (say_where(shape.host),))


def say_where(host: str) -> str:
    """What the report says of where rows went."""
    return (
        f"rows of the table, and rows made from it, were sent to {host} to be decided there, and "
        "nowhere else"
    )


def dump(tree: Any) -> bytes:
    """JSON for a request."""
    encoded: bytes = _msgspec().encode(tree)
    return encoded


def parse_json(body: bytes) -> Any:
    """The tree of a body; Malformed where it is not JSON, BadModel where it holds NaN."""
    try:
        return _msgspec().decode(body)
    except (ValueError, RecursionError):
        pass
    try:  # Python's own reader takes NaN and 1e999, about which there is more to say
        return json.loads(body, parse_constant=_refuse)
    except BadModel:
        raise
    except (ValueError, RecursionError):
        pass
    start = body[:40].decode("utf-8", "replace").strip()
    raise Malformed(f"no JSON ({start!r} ...)" if start else "an empty body")


def _msgspec() -> Any:
    try:
        import msgspec.json
    except ImportError:
        raise missing("msgspec", "remote", "a model behind an address") from None
    return msgspec.json


def _refuse(constant: str) -> None:
    raise BadModel(f"the server answers {constant}; every row needs a decision or a finite score")


def find(tree: Any, path: Sequence[str], whole: str) -> Any:
    """What stands at a path of names, places and `*` (each item of a list)."""
    if not path:
        return tree
    name, rest = path[0], path[1:]
    if name == "*" and isinstance(tree, list):
        return [find(item, rest, whole) for item in tree]
    if isinstance(tree, list) and _PLACE.fullmatch(name) and -len(tree) <= int(name) < len(tree):
        return find(tree[int(name)], rest, whole)
    if isinstance(tree, dict) and name in tree:
        return find(tree[name], rest, whole)
    has = f"it has {spell(tree)}" if isinstance(tree, dict) else f"there is a {_say_type(tree)}"
    raise Malformed(f"no {name!r} at {whole!r}: {has}")


def read_items(items: Any, field: str | None = None) -> list[Any]:
    """One answer a row, of a list whose items may be objects with one field, or with a named one;
    Malformed where it is not such a list, BadModel where an answer is missing."""
    if not isinstance(items, list):
        raise Malformed(f"no list of answers, but a {_say_type(items)}")
    kinds = set(map(type, items))
    if kinds == {dict}:
        if field is None and len(items[0]) != 1:
            raise BadModel(
                f"the server's answers have several fields ({spell(items[0])}); say which one "
                "decides with ?field=NAME behind the # of the address"
            )
        name = next(iter(items[0])) if field is None else field
        items = find(items, ["*", name], f"*.{name}")
        kinds = set(map(type, items))
    if kinds & {type(None), dict}:
        raise BadModel("the server leaves answers out (null); every row needs one")
    return list(items)


def _say_type(tree: Any) -> str:
    names = {dict: "JSON object", list: "list", str: "text", type(None): "null"}
    return names.get(type(tree), "number")
