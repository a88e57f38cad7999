"""Services of any other form, as `request:FILE.toml`, which says what is sent.

It also says where the answers stand:

    url = "https://host/score"
    per = "batch"                      # or "row": one request for each row
    columns = ["age", "sex"]           # all of the table where nothing is said

    [headers]
    X-Api-Key = "$KEY"                 # from the environment

    [body]
    people = "{records}"               # also {rows}, {columns}; of a row {record}, {row}, {age}

    [answer]
    scores = "result.*.score"          # or labels = "..."; * is each item of a list
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from limi.errors import InvalidInput, nearest, spell
from limi.models._base import Decision
from limi.models._offers import ModelOffers
from limi.models._remote import RemoteModel, connect, dump, find, parse_json, read_items
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Request
from limi.remote.options import Remote
from limi.system.reading import read_text

__all__ = ["load"]

OFFERS = ModelOffers(by_address=True, endings=(".toml",))

_KEYS = ("url", "method", "per", "columns", "headers", "body", "answer")
_METHODS = ("POST", "PUT")
_OF_BATCH = ("records", "rows", "columns")
_OF_ROW = ("record", "row", "columns")
_NAME = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class _Template:
    url: str
    host: str
    method: str
    per_row: bool
    columns: list[str] | None
    body: Any
    path: tuple[str, ...]  # of the answers
    text: str  # of the file, which is what it is known by

    @property
    def identity(self) -> str:
        return f"request {self.text}"

    @property
    def most_rows(self) -> int | None:
        return 1 if self.per_row else None

    def request(self, cells: Cells) -> Request:
        return Request(self.url, dump(_fill(self.body, self._lookup(cells))), method=self.method)

    def _lookup(self, cells: Cells) -> Callable[[str], Any]:
        if not self.per_row:
            whole = {"records": cells.records, "rows": cells.rows, "columns": cells.names}
            return whole.__getitem__
        one = cells.records[0]
        return (one | {"record": one, "row": cells.rows[0], "columns": cells.names}).__getitem__

    def read(self, body: bytes, n: int) -> list[Any]:
        answers = find(parse_json(body), self.path, ".".join(self.path))
        return read_items([answers] if self.per_row else answers)


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> RemoteModel:
    """The model behind a service that a file describes."""
    text = read_text(place, "a file that describes a request, request:FILE.toml")
    try:
        tree = tomllib.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{place!r} is not valid TOML: {error}") from None
    except RecursionError:
        raise InvalidInput(f"{place!r} is nested too deeply") from None
    shape, meaning = _read(place, tree, text)
    remote = Remote() if remote is None else remote
    headers = tree.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise InvalidInput(f"[headers] of {place!r} must hold texts")
    given = tuple(f"{name}: {value}" for name, value in headers.items())
    remote = replace(remote, headers=(*given, *remote.headers))
    if decision.output is None:
        decision = replace(decision, output=meaning)
    return connect(shape, decision, remote)


def _read(place: str, tree: dict[str, Any], text: str) -> tuple[_Template, Any]:
    """The template of a file; InvalidInput for whatever it should not say."""
    for key in tree:
        if key not in _KEYS:
            raise InvalidInput(f"{place!r} has {key!r}; {nearest(key, _KEYS)}")
    if not isinstance(tree.get("url"), str):
        raise InvalidInput(f'{place!r} has no address; write url = "https://HOST/PATH"')
    address = parse(tree["url"], 'url = "https://HOST/PATH"')
    method, per = tree.get("method", "POST"), tree.get("per", "batch")
    if method not in _METHODS:
        raise InvalidInput(f"method in {place!r} is {method!r}; {nearest(str(method), _METHODS)}")
    if per not in ("batch", "row"):
        raise InvalidInput(f'per in {place!r} is {per!r}; it must be "batch" or "row"')
    columns = tree.get("columns")
    if columns is not None and not (
        isinstance(columns, list) and columns and all(isinstance(name, str) for name in columns)
    ):
        raise InvalidInput(f"columns in {place!r} must be a list of names")
    if "body" not in tree:
        raise InvalidInput(f'{place!r} has no [body]; write one, such as people = "{{records}}"')
    _check_names(place, tree["body"], per == "row", columns)
    answer = tree.get("answer")
    known = ("scores", "labels")
    if not isinstance(answer, dict) or len(answer) != 1 or next(iter(answer)) not in known:
        raise InvalidInput(
            f"{place!r} must say where the answers are: write [answer] with scores or labels, "
            'such as scores = "result.*.score"'
        )
    ((meaning, path),) = answer.items()
    if not isinstance(path, str):
        raise InvalidInput(f'{meaning} in {place!r} is {path!r}; write a path such as "a.*.b"')
    shape = _Template(
        address.url,
        address.host,
        method,
        per == "row",
        columns,
        tree["body"],
        tuple(part for part in path.split(".") if part),
        text,
    )
    return shape, {"scores": "score", "labels": "label"}[meaning]


def _check_names(place: str, body: Any, per_row: bool, columns: list[str] | None) -> None:
    """InvalidInput where a placeholder stands for nothing, or no row would be sent."""
    used = {name for text in _texts(body) for name in _NAME.findall(text)}
    known = _OF_ROW if per_row else _OF_BATCH
    if not used:
        raise InvalidInput(
            f"[body] of {place!r} has no placeholder, so no row would be sent; use "
            f"{spell('{' + name + '}' for name in known)}"
        )
    if per_row and columns is None and used - set(known):
        # Without a list the table's own columns are known only later.
        return
    unknown = sorted(used - set(known) - set(columns or () if per_row else ()))
    if unknown:
        raise InvalidInput(
            f"[body] of {place!r} has the placeholder {unknown[0]!r}; "
            f"{nearest(unknown[0], (*known, *(columns or () if per_row else ())))}"
        )


def _texts(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [text for item in items for text in _texts(item)]


def _fill(tree: Any, lookup: Callable[[str], Any]) -> Any:
    """The tree with placeholders filled in; one that is a whole text keeps its type."""
    if isinstance(tree, dict):
        return {name: _fill(item, lookup) for name, item in tree.items()}
    if isinstance(tree, list):
        return [_fill(item, lookup) for item in tree]
    if not isinstance(tree, str):
        return tree
    whole = _NAME.fullmatch(tree)
    if whole:
        return _take(whole[1], lookup)
    return _NAME.sub(lambda match: str(_take(match[1], lookup)), tree)


def _take(name: str, lookup: Callable[[str], Any]) -> Any:
    try:
        return lookup(name)
    except KeyError:
        raise InvalidInput(
            f"the body of the request has the placeholder {name!r}, which is not a column of "
            "the table"
        ) from None
