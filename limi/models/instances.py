"""Servers that take `{"instances": [...]}`, as `instances:URL`: TensorFlow Serving, Vertex AI.

An instance is an object with the columns' names, or with `#form=lists` a list in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limi.errors import InvalidInput, nearest
from limi.models._base import Decision
from limi.models._offers import ModelOffers
from limi.models._remote import AtAddress, RemoteModel, connect, dump, find, parse_json, read_items
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Request
from limi.remote.options import Remote

__all__ = ["load"]

OFFERS = ModelOffers(by_address=True)

_FORMS = ("objects", "lists")


@dataclass(frozen=True)
class _Instances(AtAddress):
    most_rows: int | None = None

    @property
    def identity(self) -> str:
        return f"instances {self.url} {sorted(self.address.options.items())}"

    def request(self, cells: Cells) -> Request:
        as_lists = self.address.options.get("form") == "lists"
        rows: Any = cells.rows if as_lists else cells.records
        return Request(self.url, dump({"instances": rows}))

    def read(self, body: bytes, n: int) -> list[Any]:
        answers = find(parse_json(body), ["predictions"], "predictions")
        return read_items(answers, self.address.options.get("field"))


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> RemoteModel:
    """The model behind a server of instances."""
    address = parse(place, "instances:http://HOST:PORT/PATH", known=("field", "form"))
    form = address.options.get("form", "objects")
    if form not in _FORMS:
        raise InvalidInput(f"unknown form {form!r} for instances; {nearest(form, _FORMS)}")
    return connect(_Instances(address), decision, remote)
