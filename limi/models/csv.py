"""Servers that take lines of CSV, as `csv:URL`: SageMaker's containers and their like.

Lines have the columns in the table's order, without names unless `#header=yes` is said. Answers
come one per line, or all on one line with commas between them.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from typing import Any

from limi.errors import BadModel, InvalidInput
from limi.models._base import Decision
from limi.models._offers import ModelOffers
from limi.models._remote import AtAddress, RemoteModel, connect
from limi.remote.address import parse
from limi.remote.cells import Cells
from limi.remote.client import Malformed, Request
from limi.remote.options import Remote

__all__ = ["load"]

OFFERS = ModelOffers(by_address=True)

_WHOLE = re.compile("[+-]?[0-9]{1,300}")
_NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)


@dataclass(frozen=True)
class _Lines(AtAddress):
    most_rows: int | None = None

    @property
    def identity(self) -> str:
        return f"csv {self.url} {sorted(self.address.options.items())}"

    def request(self, cells: Cells) -> Request:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self.address.options.get("header") == "yes":
            writer.writerow(cells.names)
        writer.writerows(cells.rows)
        body = text.getvalue().encode()
        return Request(self.url, body, content_type="text/csv", accept="text/csv")

    def read(self, body: bytes, n: int) -> list[Any]:
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Malformed("bytes that are not text") from None
        try:
            lines = [line for line in csv.reader(text.splitlines()) if line]
        except csv.Error as error:
            raise Malformed(f"lines that are not CSV ({error})") from None
        if len(lines) == 1 < n:
            lines = [[cell] for cell in lines[0]]
        rows = [[_number(cell) for cell in line] for line in lines]
        return [row[0] if len(row) == 1 else row for row in rows]


def _number(cell: str) -> Any:
    """A number where the text is one, else the text; BadModel where it is not finite."""
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise BadModel(
            f"the server answers {text}; it must return a decision or a finite score for every row"
        )
    return number


def load(place: str, decision: Decision, *, remote: Remote | None = None) -> RemoteModel:
    """The model behind a server of lines."""
    address = parse(place, "csv:http://HOST:PORT/PATH", known=("header",))
    if address.options.get("header", "no") not in ("yes", "no"):
        raise InvalidInput(
            f"header={address.options['header']} after the # must be yes or no: does the first "
            "line hold names?"
        )
    return connect(_Lines(address), decision, remote)
