"""Generator files: archives of arrays and a JSON head, edited or damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hostile.case import Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import PEOPLE, Material
from tests.hostile.nasty import (
    as_json,
    damaged,
    edited,
    put,
    respelled,
    rezipped,
    to_npy,
    unzipped,
    zipped,
)

SHARE = 10
CORPUS = Corpus()

KINDS = ("trees", "transport", "ctgan")


def asked(material: Material, thing: Thing, how: int = 0, **more: Any) -> Case:
    """A command that takes a generator."""
    if how == 0:
        words = ("sample", "x.gen", "--out", "made.csv", "-n", "20", "--json")
        return Case(words, {"x.gen": thing}, ("made.csv",), **more)
    if how == 1:
        words = ("sample", "x.gen", "--out", "made.parquet", "-n", "20")
        return Case(words, {"x.gen": thing}, ("made.parquet",), **more)
    words = ("test", *PEOPLE, "--model", "python:model.py:f", "--generator", "x.gen")
    words += ("--method", _METHODS[how % 2], "--max-rows", "40", "--rate-rows", "20", "--json")
    return Case(words, {**material.files("people.csv", "model.py"), "x.gen": thing}, **more)


_METHODS = ("natural", "limi")


def drawn(draw: Draw, material: Material) -> Case:
    sound = material.read(f"{draw.pick(KINDS)}.gen")
    data = draw.pick((rezipped, rezipped, rezipped, _head, _head, _schema, damaged))(draw, sound)
    return asked(material, data, draw.pick((0, 0, 0, 0, 1, 2, 3)))


def _head(draw: Draw, data: bytes) -> bytes:
    """Other facts in the head."""
    records = unzipped(data)
    records["generator.json"] = as_json(edited(draw, json.loads(records["generator.json"])))
    return zipped(records)


def _schema(draw: Draw, data: bytes) -> bytes:
    """Another schema in the head, so that it does not fit the arrays."""
    records = unzipped(data)
    head = json.loads(records["generator.json"])
    head["schema"] = respelled(draw, head["schema"])
    records["generator.json"] = as_json(head)
    return zipped(records)


# -- the corpus ----------------------------------------------------------------------------

_REFUSED = frozenset({2, 4})


def _refused(thing: Thing) -> Callable[[Material], Case]:
    return lambda material: asked(material, thing, exits=_REFUSED)


def _with_head(kind: str, *path: Any, value: Any) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        records = unzipped(material.read(f"{kind}.gen"))
        tree = json.loads(records["generator.json"])
        records["generator.json"] = as_json(put(tree, path, value))
        return asked(material, zipped(records), exits=_REFUSED)

    return build


def _with_arrays(
    kind: str, change: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Material], Case]:
    """Every array of a file changed in the same way."""

    def build(material: Material) -> Case:
        from tests.hostile.nasty import from_npy

        records = {
            name: to_npy(change(from_npy(data))) if name.endswith(".npy") else data
            for name, data in unzipped(material.read(f"{kind}.gen")).items()
        }
        return asked(material, zipped(records), exits=_REFUSED)

    return build


def _without_arrays(kind: str) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        records = unzipped(material.read(f"{kind}.gen"))
        return asked(
            material, zipped({"generator.json": records["generator.json"]}), exits=_REFUSED
        )

    return build


for _kind in KINDS:
    CORPUS.each(
        _kind,
        {
            "sound": lambda material, kind=_kind: asked(
                material, material.read(f"{kind}.gen"), exits=frozenset({0})
            ),
            "cut-in-half": lambda material, kind=_kind: asked(
                material, material.read(f"{kind}.gen")[:4000], exits=_REFUSED
            ),
            "without-arrays": _without_arrays(_kind),
            "arrays-half-as-long": _with_arrays(_kind, lambda a: a[: len(a) // 2] if a.ndim else a),
            "arrays-of-text": _with_arrays(_kind, lambda a: a.astype("U8")),
            "arrays-with-another-axis": _with_arrays(_kind, lambda a: a[None]),
            "facts-that-are-none": _with_head(_kind, "facts", value=3),
            "a-kind-that-is-a-list": _with_head(_kind, "kind", value=[]),
            "a-schema-that-is-a-number": _with_head(_kind, "schema", value=3),
            "a-format-that-is-text": _with_head(_kind, "format", value="x"),
        },
    )

CORPUS.each(
    "place",
    {
        name: _refused(thing)
        for name, thing in {
            "folder": Folder(),
            "pipe": Fifo(),
            "link-to-itself": Link("x.gen"),
            "empty": b"",
            "no-archive": b"PK\x03\x04" + b"\x00" * 100,
            "a-head-that-is-a-list": zipped({"generator.json": b"[]"}),
            "a-deep-head": zipped({"generator.json": b"[" * 100_000}),
        }.items()
    },
)
