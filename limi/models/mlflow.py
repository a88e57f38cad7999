"""MLflow's scoring server, as `mlflow:URL`: the address of `mlflow models serve`.

It returns what the model's `predict` returns, which is often labels only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limi.models._base import Decision
from limi.models._offers import ModelOffers
from limi.models._remote import AtAddress, RemoteModel, connect, dump, find, parse_json, read_items
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Request
from limi.remote.options import Remote

__all__ = ["load"]

OFFERS = ModelOffers(by_address=True)


@dataclass(frozen=True)
class _Mlflow(AtAddress):
    most_rows: int | None = None

    @property
    def url(self) -> str:
        return self.address.join("/invocations")

    @property
    def identity(self) -> str:
        return f"mlflow {self.url} {sorted(self.address.options.items())}"

    def request(self, cells: Cells) -> Request:
        # Whole numbers stay whole, so that the server's frame has the table's types.
        split = {"columns": cells.names, "data": cells.rows}
        return Request(self.url, dump({"dataframe_split": split}))

    def read(self, body: bytes, n: int) -> list[Any]:
        answers = find(parse_json(body), ["predictions"], "predictions")
        return read_items(answers, self.address.options.get("field"))


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> RemoteModel:
    """The model behind an MLflow scoring server."""
    address = parse(place, "mlflow:http://HOST:PORT", known=("field",))
    return connect(_Mlflow(address), decision, remote)
