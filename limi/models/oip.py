"""Open Inference Protocol v2, as `oip:URL#MODEL`: KServe, Triton, MLServer, Seldon.

What the server says of the model decides how rows travel: as one input for each column where it
names several, as one matrix where it names one, and as a frame (MLServer's content type `pd`)
where it names none; `#MODEL?form=columns`, `matrix` or `frame` says otherwise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from limi.errors import BadModel, InvalidInput, nearest, spell
from limi.models._base import Decision
from limi.models._offers import ModelOffers
from limi.models._remote import AtAddress, RemoteModel, connect, dump, find, parse_json, read_items
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Malformed, Request
from limi.remote.options import Remote

__all__ = ["load"]

OFFERS = ModelOffers(by_address=True)

_FORMS = ("columns", "frame", "matrix")
_SCORES = ("predict_proba", "probabilities", "output_probability", "scores")
_FACT = "metadata"
_TYPES = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64", "s": "BYTES"}


@dataclass(frozen=True)
class _Oip(AtAddress):
    form: str = ""
    inputs: tuple[tuple[str, str], ...] = ()  # names and types that the server tells
    most_rows: int | None = None

    @property
    def url(self) -> str:
        return self.address.join(f"/v2/models/{self.address.name}")

    @property
    def identity(self) -> str:
        return f"oip {self.url} {sorted(self.address.options.items())}"

    @property
    def columns(self) -> list[str] | None:
        if self.address.columns is not None or self.form != "columns" or not self.inputs:
            return self.address.columns
        return [name for name, _ in self.inputs]

    def told(self, metadata: bytes) -> _Oip:
        """The same, once the server has said what the model takes."""
        try:
            given = find(parse_json(metadata), ["inputs"], "inputs")
            inputs = tuple((str(one["name"]), str(one["datatype"])) for one in given or ())
            shapes = [len(one.get("shape") or ()) for one in given or ()]
        except (Malformed, KeyError, TypeError, AttributeError):
            raise BadModel(
                f"{self.host} does not describe the model's inputs at {self.url!r}; is it an Open "
                "Inference Protocol server?"
            ) from None
        form = self.address.options.get("form", "")
        if not form:
            wide = len(inputs) == 1 and shapes[0] == 2 and inputs[0][1] != "BYTES"
            form = "matrix" if wide else "columns" if inputs else "frame"
        return replace(self, form=form, inputs=inputs)

    def request(self, cells: Cells) -> Request:
        n, known = len(cells), dict(self.inputs)
        if self.form == "matrix":
            name, kind = self.inputs[0] if len(self.inputs) == 1 else ("input", "FP32")
            rows = cells.rows
            tree: dict[str, Any] = {
                "inputs": [
                    {"name": name, "datatype": kind, "shape": [n, len(cells.names)], "data": rows}
                ]
            }
        else:
            given = zip(cells.names, cells.columns, cells.kinds, strict=True)
            tree = {"inputs": [_input(*column, known.get(column[0])) for column in given]}
        if self.form == "frame":
            tree["parameters"] = {"content_type": "pd"}
        wanted = self.address.options.get("output")
        if wanted is not None:
            tree["outputs"] = [{"name": wanted}]
        return Request(self.address.join(f"/v2/models/{self.address.name}/infer"), dump(tree))

    def read(self, body: bytes, n: int) -> list[Any]:
        outputs = find(parse_json(body), ["outputs"], "outputs")
        try:
            by_name = {str(one["name"]): one for one in outputs}
            chosen = by_name[self._choose(list(by_name))]
            data, shape = list(chosen["data"]), [int(size) for size in chosen["shape"]]
        except (KeyError, TypeError, ValueError):
            raise Malformed("outputs without name, shape or data") from None
        if data and isinstance(data[0], list):
            return read_items(data)
        if len(shape) == 2 and shape[1] > 1:
            width = shape[1]
            if len(data) != shape[0] * width:
                raise Malformed(f"{len(data)} numbers in a shape of {shape}")
            data = [data[at : at + width] for at in range(0, len(data), width)]
        return read_items(data)

    def _choose(self, names: list[str]) -> str:
        """The output that decides."""
        wanted = self.address.options.get("output")
        if wanted in names:
            return str(wanted)
        found = [name for name in names if name in _SCORES] or names
        if wanted is None and len(found) == 1:
            return found[0]
        raise BadModel(
            f"the model has the outputs {spell(names)}; say which one decides with ?output=NAME "
            "after the model's name"
        )


def _input(name: str, column: list[Any], kind: str, wanted: str | None) -> dict[str, Any]:
    """A column as an input of the type that the server wants; BadModel where it cannot have it."""
    wanted = _TYPES.get(kind) or _guess(column) if wanted is None else wanted
    if wanted.startswith(("INT", "UINT")):
        column = _whole(name, column, wanted)
    elif wanted.startswith(("FP", "BF")) and any(isinstance(cell, str) for cell in column):
        raise _unfit(name, wanted, next(cell for cell in column if isinstance(cell, str)))
    tree: dict[str, Any] = {"name": name, "datatype": wanted, "shape": [len(column), 1]}
    if wanted == "BYTES":
        tree["parameters"] = {"content_type": "str"}
        column = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in column]
    return tree | {"data": column}


def _whole(name: str, column: list[Any], wanted: str) -> list[Any]:
    """The cells as whole numbers, which they must be: a half that is cut off is another row."""
    for cell in column:
        if isinstance(cell, str) or (isinstance(cell, float) and not cell.is_integer()):
            raise _unfit(name, wanted, cell)
    return [None if cell is None else int(cell) for cell in column]


def _unfit(name: str, wanted: str, cell: Any) -> BadModel:
    return BadModel(
        f"the server expects {name!r} to be {wanted}, but the table has {cell!r} there; give the "
        "table that the model takes, or name another model"
    )


def _guess(column: list[Any]) -> str:
    """The type of a column whose cells are of several kinds."""
    kinds = {type(cell) for cell in column} - {type(None)}
    for kind, name in ((bool, "BOOL"), (int, "INT64"), (float, "FP64")):
        if kinds == {kind}:
            return name
    return "FP64" if kinds == {int, float} else "BYTES"


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> RemoteModel:
    """The model behind a server of the protocol; what it takes is asked of the server."""
    form = "oip:http://HOST:PORT#MODEL"
    address = parse(place, form, known=("form", "output"), named=True)
    given = address.options.get("form", "frame")
    if given not in _FORMS:
        raise InvalidInput(f"unknown form {given!r} for rows; {nearest(given, _FORMS)}")
    shape = _Oip(address)
    model = connect(shape, decision, remote)
    exchange = model.exchange
    known = exchange.memory.fact(_FACT)
    if known is None:
        told = exchange.get(shape.url)
        shape = shape.told(told)
        exchange.keep_fact(_FACT, json.dumps(json.loads(told)))
    else:
        shape = shape.told(known.encode())
    exchange.shape = shape
    return model
