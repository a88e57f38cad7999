"""Tables: CSV and Parquet files whose cells, names, types, bytes or places are odd."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hostile.case import MINE, Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import SMALL, Material
from tests.hostile.nasty import TEXTS, VALUES, WORDS, as_json, damaged, edited, respelled

SHARE = 22
CORPUS = Corpus()

ANY = b"""
def f(frame):
    return 0.7 - 0.4 * (frame["sex"] == "F") if "sex" in frame else [0.7] * len(frame)
"""
"""A model of any table."""


def asked(name: str, thing: Thing, how: int = 0, target: str = "ok", **more: Any) -> Case:
    """A command on a table: its schema, a test, a fit or a comparison."""
    files: dict[str, Thing] = {name: thing, "any.py": ANY}
    model = ("--model", "python:any.py:f", "--protected", "sex", "--target", target)
    model += ("--favorable", "yes")
    if how == 0:
        return Case(("schema", name), files, **more)
    if how == 1:
        return Case(("test", name, *model, *SMALL, "--json"), files, **more)
    if how == 2:
        words = ("fit", name, "--out", "made.gen", "--target", target, "--json")
        return Case(words, files, ("made.gen", "made.gen.html"), **more)
    if how == 3:
        words = ("schema", name, "--out", "made.toml")
        return Case(words, files, ("made.toml",), **more)
    words = ("compare", name, *model, "--methods", "themis", "--max-queries", "40", "--json")
    return Case(words, files, **more)


def _how(draw: Draw) -> int:
    return draw.pick((0, 0, 0, 0, 1, 1, 1, 2, 3, 4))


# -- generated -----------------------------------------------------------------------------


def drawn(draw: Draw, material: Material) -> Case:
    make = draw.pick((_cells, _cells, _spelled, _bytes, _arrow, _arrow, _metadata, _packed, _place))
    return make(draw, material)


_CELLS = (
    *("1", "2", "F", "M", "yes", "no", "", "NA", "nan", "0.1", "-0", "1e5", "inf", "-inf", "1e400"),
    *("9" * 20, "9" * 400, "0" * 50 + "1", "1.0000000000000001", "9007199254740993", "0x1f"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "12:30", "1,5", "1 000", "$5", "50%", "(5)", "True"),
    *(text for text in TEXTS if "\ud800" not in text and "\udcff" not in text),
    *("x" * 140_000, "=1+1"),
)


def _cells(draw: Draw, material: Material) -> Case:
    """A CSV of odd names and cells."""
    names = ["sex", "ok", "income", *(draw.pick(_CELLS) for _ in range(draw.below(4)))]
    if draw.chance(30):
        names[draw.below(len(names))] = draw.pick(_CELLS)
    pools = [["F", "M"], ["yes", "no"], ["1", "2", "3"]]
    pools += [[draw.pick(_CELLS) for _ in range(1 + draw.below(3))] for _ in names[3:]]
    rows = [[pool[line % len(pool)] for pool in pools] for line in range(draw.pick((12, 40, 1, 2)))]
    for _ in range(draw.below(4)):
        row = draw.pick(rows)
        if row and draw.chance(80):
            row[draw.below(len(row))] = draw.pick(_CELLS)
        elif draw.chance(50):
            row.append(draw.pick(_CELLS))
        elif row:
            row.pop()
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=draw.pick((",", ",", ",", ";", "\t", "|", " ", ":")),
        quoting=draw.pick((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
        lineterminator=draw.pick(("\n", "\r\n", "\r", "\n\n")),
    )
    writer.writerows([names, *rows])
    code = draw.pick(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32"))
    data = buffer.getvalue().encode(code, "replace")
    return asked(draw.pick(("t.csv", "t.tsv", "t.txt", "T.CSV")), data, _how(draw))


def _spelled(draw: Draw, material: Material) -> Case:
    """A sound CSV in which a few words are others."""
    text = respelled(draw, material.read("people.csv").decode(), _CELLS)
    return asked("t.csv", text.encode("utf-8", "surrogateescape"), _how(draw))


def _bytes(draw: Draw, material: Material) -> Case:
    """A sound file with damaged bytes."""
    name = draw.pick(("people.csv", "people.parquet", "typed.parquet"))
    return asked("t." + name.partition(".")[2], damaged(draw, material.read(name)), _how(draw))


def _packed(draw: Draw, material: Material) -> Case:
    """A file that is packed, badly packed, or something else than its name says."""
    sound = material.read(draw.pick(("people.csv", "people.parquet")))
    data = gzip.compress(sound, mtime=0)
    if draw.chance(50):
        data = damaged(draw, data, 2)
    name = draw.pick(("t.csv.gz", "t.tsv.gz", "t.csv", "t.parquet", "t.pq", "t.arrow", "t", "t.gz"))
    return asked(name, data if draw.chance(70) else sound, _how(draw))


def _place(draw: Draw, material: Material) -> Case:
    """A place where no table is, or a name that few programs can say."""
    things: tuple[Thing, ...] = (Folder(), Fifo(), Link("t.csv"), Link("nowhere"), Link("."), b"")
    name = draw.pick(("t.csv", "t.parquet", "t.csv.gz"))
    if draw.chance(50):
        return asked(name, draw.pick(things), _how(draw))
    odd = draw.pick([word for word in WORDS if len(os.fsencode(word)) < 200])
    return asked(f"x{odd}.{name.partition('.')[2]}", material.read("people.csv"), _how(draw))


def _columns(n: int) -> dict[str, Callable[[], Any]]:
    """Arrow columns of every type that Parquet can hold."""
    import datetime
    import decimal

    import pyarrow as pa

    day = datetime.date(2020, 1, 1)
    moment = datetime.datetime(2020, 1, 1)
    return {
        "integers": lambda: pa.array(range(n)),
        "floats": lambda: pa.array(np.linspace(0, 1, n)),
        "texts": lambda: pa.array(["a", "b"] * n)[:n],
        "lists": lambda: pa.array([[1, 2]] * n),
        "structs": lambda: pa.array([{"a": 1, "b": "x"}] * n),
        "maps": lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "lists of structs": lambda: pa.array([[{"a": [1]}]] * n),
        "bytes": lambda: pa.array([b"\xff\x00"] * n),
        "fixed bytes": lambda: pa.array([b"ab"] * n, pa.binary(2)),
        "nulls": lambda: pa.nulls(n),
        "truth": lambda: pa.array([True, None] * n)[:n],
        "decimals": lambda: pa.array([decimal.Decimal("1.5")] * n),
        "wide decimals": lambda: pa.array([decimal.Decimal(10) ** 60] * n, pa.decimal256(70)),
        "dates": lambda: pa.array([day] * n),
        "times": lambda: pa.array([datetime.time(1, 2)] * n),
        "moments": lambda: pa.array([moment] * n, pa.timestamp("ns", "Europe/Berlin")),
        "far moments": lambda: pa.array([2**40] * n, pa.timestamp("s")),
        "durations": lambda: pa.array([1, None] * n, pa.duration("ms"))[:n],
        "huge integers": lambda: pa.array([2**64 - 1, 0] * n, pa.uint64())[:n],
        "small floats": lambda: pa.array(np.linspace(0, 1, n).astype(np.float16)),
        "not numbers": lambda: pa.array([float("nan"), float("inf")] * n)[:n],
        "one value": lambda: pa.array([3.0] * n),
        "dictionary": lambda: pa.array(["a", "b"] * n)[:n].dictionary_encode(),
        "number dictionary": lambda: pa.array([1.5, None] * n)[:n].dictionary_encode(),
        "empty texts": lambda: pa.array([""] * n),
        "odd texts": lambda: pa.array(["\x1b[31m", "\u202e", "\x00", "=cmd"] * n)[:n],
        "many texts": lambda: pa.array([f"p{i}" for i in range(n)]),
        "large texts": lambda: pa.array(["a", None] * n, pa.large_string())[:n],
        "views": lambda: pa.array(["a", "b"] * n)[:n].cast(pa.string_view()),
    }


def _to_parquet(columns: dict[str, Any] | list[tuple[str, Any]], metadata: Any = None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    items = list(columns.items()) if isinstance(columns, dict) else columns
    table = pa.Table.from_arrays([a for _, a in items], names=[name for name, _ in items])
    if metadata is not None:
        table = table.replace_schema_metadata(metadata)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _arrow(draw: Draw, material: Material) -> Case:
    """A Parquet file of odd types and names."""
    import pyarrow as pa

    n = draw.pick((12, 40, 1, 0))
    known = _columns(n)
    columns = [
        ("sex", pa.array(["F", "M"] * n)[:n]),
        ("ok", pa.array(["yes", "no"] * n)[:n]),
        ("income", pa.array(range(n))),
    ]
    for _ in range(1 + draw.below(3)):
        kind = draw.pick(list(known))
        name = draw.pick(TEXTS)
        columns.append((kind if draw.below(3) else name, known[kind]()))
    if draw.chance(25):
        place = draw.below(3)
        columns[place] = (columns[place][0], known[draw.pick(list(known))]())
    columns = [(name.encode("utf-8", "replace").decode(), array) for name, array in columns]
    return asked(draw.pick(("t.parquet", "t.pq")), _to_parquet(columns), _how(draw))


def _metadata(draw: Draw, material: Material) -> Case:
    """A Parquet file whose pandas metadata were edited."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(material.read("typed.parquet")))
    tree = json.loads(table.schema.metadata[b"pandas"])
    values = (*VALUES, "sex", "ok", "object", "datetimetz", "categorical", "range", "int64")
    data = as_json(edited(draw, tree, values))
    if draw.chance(20):
        data = damaged(draw, data)
    table = table.replace_schema_metadata({b"pandas": data})
    if draw.chance(20):
        table = pa.Table.from_arrays(table.columns, names=["sex", "ok", "x", "y", "z"])
        table = table.replace_schema_metadata({b"pandas": data})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return asked("t.parquet", buffer.getvalue(), _how(draw))


# -- the corpus ----------------------------------------------------------------------------


def _csv(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


_SOUND = ("sex,ok,income", "F,yes,1", "M,no,2", "F,no,3", "M,yes,4")


def _of(name: str, thing: Thing, how: int) -> Callable[[Material], Case]:
    return lambda material: asked(name, thing, how)


def _parquet_column(kind: str) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        import pyarrow as pa

        n = 12
        columns = {
            "sex": pa.array(["F", "M"] * 6),
            "ok": pa.array(["yes", "no"] * 6),
            kind: _columns(n)[kind](),
        }
        return asked("t.parquet", _to_parquet(columns), 1)

    return build


CORPUS.each("parquet", {kind.replace(" ", "-"): _parquet_column(kind) for kind in _columns(0)})
CORPUS.each(
    "csv",
    {
        name: _of("t.csv", data, how)
        for name, data, how in (
            ("empty", b"", 0),
            ("only-a-header", b"sex,ok\n", 0),
            ("no-header", b"\n\n1,2\n", 0),
            ("two-of-one-name", b"sex,sex,ok\nF,F,yes\n", 0),
            ("zeros", b"sex,ok\x00\nF,y\x00es\n", 1),
            ("an-integer-of-400-digits", _csv("sex,ok,x", f"F,yes,{'9' * 400}", "M,no,1"), 1),
            ("a-name-of-200000-characters", b"sex,ok," + b"x" * 200_000 + b"\nF,yes,1\n", 0),
            ("a-cell-of-200000-characters", b"sex,ok,x\nF,yes," + b"x" * 200_000 + b"\n", 0),
            ("more-cells-than-names", _csv(*_SOUND, "F,yes,1,2,3"), 1),
            ("a-quote-that-never-ends", _csv("sex,ok", 'F,"yes', "M,no"), 1),
            ("utf-16", "sex,ok\nF,yes\n".encode("utf-16"), 0),
            ("bytes-that-are-no-text", b"sex,ok\nF,\xff\xfe\nM,no\n", 0),
            ("a-name-that-is-no-text", b"sex,ok,\xff\nF,yes,1\nM,no,1\n", 0),
            (
                "names-that-steer-a-terminal",
                "sex,ok,\x1b[31m\x9b\u202e\nF,yes,1\nM,no,2\n".encode(),
                0,
            ),
            ("cells-that-steer-a-terminal", "sex,ok,x\nF,yes,\x1b[2J\nM,no,\u202e\n".encode(), 0),
            ("infinite-cells", _csv("sex,ok,x", "F,yes,inf", "M,no,1"), 1),
            ("text-and-numbers", _csv("sex,ok,x", "F,yes,a", "M,no,1"), 1),
            ("one-row", _csv("sex,ok,x", "F,yes,1"), 1),
            ("one-column", b"sex\nF\nM\n", 1),
            ("carriage-returns", b"sex,ok\rF,yes\rM,no\r", 1),
        )
    },
)


@CORPUS.case("csv-of-3000-columns")
def _(material: Material) -> Case:
    names = [f"c{i}" for i in range(3000)]
    return asked("t.csv", _csv(",".join(names), *[",".join(["1"] * 3000)] * 3))


@CORPUS.case("csv-fit-to-a-formula")
def _(material: Material) -> Case:
    return asked("t.csv", _csv("sex,ok,x", *["F,yes,=cmd|' C calc'!A0", "M,no,+1+1"] * 8), 2)


CORPUS.each(
    "place",
    {
        name: _of("t.csv", thing, 1)
        for name, thing in {
            "folder": Folder(),
            "pipe": Fifo(),
            "link-to-itself": Link("t.csv"),
            "link-to-nowhere": Link("nowhere"),
        }.items()
    },
)


@CORPUS.case("place-a-pipe-for-parquet")
def _(material: Material) -> Case:
    return asked("t.parquet", Fifo(), 0, exits=frozenset({2, 4}))


@CORPUS.case("place-a-name-of-300-characters")
def _(material: Material) -> Case:
    return Case(("schema", "x" * 300 + ".csv"), exits=frozenset({2, 4}))


@CORPUS.case("place-a-name-that-is-no-text")
def _(material: Material) -> Case:
    return asked("t\udcff.csv", material.read("people.csv"), 1)


@CORPUS.case("schema-over-a-file-of-somebody-else")
def _(material: Material) -> Case:
    files = {"t.csv": material.read("people.csv"), "made.toml": MINE}
    return Case(("schema", "t.csv", "--out", "made.toml"), files, exits=frozenset({2}))


def _with_metadata(data: bytes) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        import pyarrow.parquet as pq

        table = pq.read_table(io.BytesIO(material.read("people.parquet")))
        columns = list(zip(table.column_names, table.columns, strict=True))
        made = _to_parquet(columns, {b"pandas": data})
        return asked("t.parquet", made, 1, exits=frozenset({0, 4}))

    return build


CORPUS.each(
    "pandas-metadata",
    {
        name: _with_metadata(data)
        for name, data in {
            "no-json": b"{",
            "no-object": b"[]",
            "index-that-is-not-there": b'{"index_columns": ["gone"], "columns": []}',
            "deep": b"[" * 100_000,
            "columns-that-are-none": b'{"index_columns": [], "columns": 3}',
        }.items()
    },
)
