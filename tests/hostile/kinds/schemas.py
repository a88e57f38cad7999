"""Schema files: edited, damaged, deep, or elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.hostile.case import Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import PEOPLE, SMALL, Material
from tests.hostile.nasty import (
    FLOATS,
    INTEGERS,
    damaged,
    nested,
    respelled,
)

SHARE = 14
CORPUS = Corpus()

_KINDS = ("numerical", "categorical", "ordered", "boolean", "unknown", "datetime", "id", "email")


def asked(material: Material, name: str, thing: Thing, how: int = 0, **more: Any) -> Case:
    """A command that takes a schema."""
    files = {**material.files("people.csv", "model.py"), name: thing}
    if how == 0:
        words = ("test", *PEOPLE, "--model", "python:model.py:f", *SMALL, "--json")
        return Case((*words, "--schema", name), files, **more)
    if how == 1:
        words = ("fit", "people.csv", "--out", "made.gen", "--target", "ok", "--schema", name)
        return Case(words, files, ("made.gen", "made.gen.html"), **more)
    words = ("compare", *PEOPLE, "--model", "python:model.py:f", "--methods", "themis")
    return Case((*words, "--max-queries", "40", "--schema", name), files, **more)


def drawn(draw: Draw, material: Material) -> Case:
    make = draw.pick((_spelled, _spelled, _fields, _fields, _rules, _rules, _bytes, _place))
    return make(draw, material)


def _how(draw: Draw) -> int:
    return draw.pick((0, 0, 0, 0, 0, 0, 1, 2))


def _spelled(draw: Draw, material: Material) -> Case:
    """A sound schema in which a few words are others."""
    values = (*_KINDS, *INTEGERS, *FLOATS, "true", "[]", "{}", '""', "'x'", "[[1]]", "2020-01-01")
    text = respelled(draw, material.read("schema.toml").decode(), values)
    return asked(material, "s.toml", text.encode("utf-8", "surrogateescape"), _how(draw))


_TOML = (
    *('"numerical"', '"categorical"', '"ordered"', '"boolean"', '"x"', "1", "-1", "0", "true"),
    *("nan", "inf", "-inf", "1e308", "9" * 400, "0x7fffffffffffffff", "[]", '["F", "M"]', '["F"]'),
    *('["F", "F"]', '["M", "F", 3]', "[1, 2.5]", "[true, false]", "[[]]", "{}", "{a = 1}", '""'),
    *("1979-05-27T07:32:00Z", "07:32:00", "[nan]", '["\\u001b[31m"]', '"\\u202e"', "[inf]"),
    *('["\\u0000"]', "[" * 200 + "]" * 200, "'''x'''", "[1, 1.0, true]", "[1e999]"),
)
_FIELDS = ("kind", "levels", "low", "high", "step", "missing", "labels", "meaning", "x", "format")


def _fields(draw: Draw, material: Material) -> Case:
    """A schema whose columns have fields of any type."""
    lines = [draw.pick(("format = 1", "", "format = 2", "format = []", 'format = "1"'))]
    if draw.chance(30):
        lines += ["[protected]", f"{draw.pick(('sex', 'income', 'gone'))} = {draw.pick(_TOML)}"]
    for name in ("sex", "income", "debt", "gone")[: 1 + draw.below(4)]:
        lines.append(f"[columns.{name}]")
        fields = {"kind": draw.pick(_TOML[:5])}
        for _ in range(draw.below(4)):
            fields[draw.pick(_FIELDS)] = draw.pick(_TOML)
        lines += [f"{field} = {value}" for field, value in fields.items()]
    if draw.chance(10):
        lines.append(draw.pick(("[columns]", "[columns.sex]", "columns = 1", "[[columns]]", "[")))
    return asked(material, "s.toml", "\n".join(lines).encode(), _how(draw))


_WORDS = (
    *("income", "debt", "sex", "ok", "gone", "`in`", '"F"', "'M'", "3", "1e300", "-0.5", "true"),
    *("==", "!=", "<", ">=", "+", "*", "/", "and", "or", "not", "implies", "->", "in", "is"),
    *(
        "missing",
        "(",
        ")",
        "[1, 2]",
        '{"F": 1}[sex]',
        "{",
        "`",
        "__import__",
        "**",
        "\u202e",
        "\x1b",
    ),
)
_DERIVED = ("from", "values", "steps", "x")


def _rules(draw: Draw, material: Material) -> Case:
    """A sound schema with rules of any kind."""
    lines = [material.read("schema.toml").decode().replace("format = 1", "format = 2")]
    if draw.chance(80):
        words = [draw.pick(_WORDS) for _ in range(1 + draw.below(9))]
        rule = draw.pick((" ".join(words), "income >= 0", 'sex == "F" implies debt >= 0'))
        lines += ["[constraints]", f"a = {json.dumps(rule)}"]
    if draw.chance(40):
        lines.append(f"[derived.{draw.pick(('debt', 'income', 'sex', 'gone'))}]")
        fields = {"from": '"sex"', "values": "{ F = 1, M = 2 }"}
        fields[draw.pick(_DERIVED)] = draw.pick((*_TOML, '"income"', '["sex", "sex"]', "[1, 2]"))
        lines += [f"{field} = {value}" for field, value in fields.items()]
    if draw.chance(40):
        told = draw.pick((*_TOML, "[{ F = 1, M = 2 }]", '[{ F = "F", M = "F" }]', "[{}]"))
        lines += [f"[roles.{draw.pick(('sex', 'gone'))}]"]
        lines += [f"{draw.pick(('income', 'sex', 'gone'))} = {told}"]
    return asked(material, "s.toml", "\n".join(lines).encode(), _how(draw))


def _bytes(draw: Draw, material: Material) -> Case:
    """A sound schema with damaged bytes."""
    name = draw.pick(("s.toml", "s.TOML", "s", "s.json"))
    return asked(material, name, damaged(draw, material.read("schema.toml")), _how(draw))


def _place(draw: Draw, material: Material) -> Case:
    """A place where no schema is."""
    things: tuple[Thing, ...] = (Folder(), Fifo(), Link("s.toml"), Link("gone"), b"")
    name = draw.pick(("s.toml", "s.json"))
    return asked(material, name, draw.pick(things), _how(draw))


# -- the corpus ----------------------------------------------------------------------------


def _refused(name: str, thing: Thing | str, says: str = "") -> Callable[[Material], Case]:
    data = thing.encode() if isinstance(thing, str) else thing
    return lambda material: asked(material, name, data, exits=frozenset({2, 4}), says=says)


def _edited(old: str, new: str) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        text = material.read("schema.toml").decode()
        assert old in text
        return asked(material, "s.toml", text.replace(old, new).encode(), exits=frozenset({2, 4}))

    return build


def _ruled(rules: str) -> Callable[[Material], Case]:
    return _edited("format = 1", f"format = 2\n{rules}\n")


CORPUS.each(
    "toml",
    {
        "empty": _refused("s.toml", b""),
        "deep": _refused("s.toml", b"x = " + nested(5000)),
        "deep-tables": _refused("s.toml", b"[" + b"a." * 5000 + b"a]"),
        "a-pipe": _refused("s.toml", Fifo()),
        "a-folder": _refused("s.toml", Folder()),
        "a-link-to-itself": _refused("s.toml", Link("s.toml")),
        "no-text": _refused("s.toml", b"\xff\xfe"),
        "columns-that-are-none": _refused("s.toml", "columns = 3"),
        "a-newer-format": _edited("format = 1", "format = 9"),
        "a-format-that-is-a-list": _edited("format = 1", "format = []"),
        "a-range-without-end": _edited("high = 19", "high = inf"),
        "a-range-of-400-digits": _edited("high = 19", f"high = {'9' * 400}"),
        "a-step-of-nothing": _edited("step = 1", "step = nan"),
        "levels-that-are-lists": _edited('["F", "M"]', '[["F"], "M"]'),
        "levels-that-are-dates": _edited('["F", "M"]', "[1979-05-27, 1979-05-28]"),
        "a-kind-that-is-a-list": _edited('kind = "categorical"', "kind = []"),
        "a-rule-that-is-code": _ruled("[constraints]\na = \"__import__('os').system('x')\""),
        "a-rule-of-brackets": _ruled(f"[constraints]\na = '{'(' * 1900}'"),
        "a-rule-that-is-a-list": _ruled("[constraints]\na = []"),
        "a-derived-column-of-nothing": _ruled("[derived.debt]\nfrom = []\nvalues = {}"),
        "a-role-of-nobody": _ruled("[roles.sex]\nincome = [{}]"),
    },
)
