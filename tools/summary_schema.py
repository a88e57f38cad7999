"""The JSON Schema of `summary.json`, written from the dataclass that is stored there.

python tools/summary_schema.py           # write docs/summary.schema.json
python tools/summary_schema.py --check   # fail where it no longer describes the code
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

from limi.audits.summary import FORMAT, Summary

_FILE = Path(__file__).parent.parent / "docs" / "summary.schema.json"
_PLAIN = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def describe(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; dataclasses are described once, in `known`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind is float:
        return {"type": ["number", "null"]}  # an unknown number is null
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [describe(one, known) for one in inner]}
    if origin is dict:
        return {"type": "object", "additionalProperties": describe(inner[1], known)}
    if origin in (list, tuple):
        return {"type": "array", "items": describe(inner[0], known)}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in known:
            known[kind.__name__] = {}  # while it is described it may name itself
            known[kind.__name__] = describe_fields(kind, known)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"{kind} has no schema yet; say in tools/summary_schema.py what it is in JSON")


def describe_fields(kind: type, known: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: all of its fields are written, and nothing else."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": {name: describe(hints[name], known) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def render() -> str:
    """The whole schema as text."""
    known: dict[str, Any] = {}
    tree = describe_fields(Summary, known)
    tree["properties"]["format"] = {"const": FORMAT}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"summary.json of a run folder, format {FORMAT}",
    }
    return json.dumps(head | tree | {"$defs": known}, indent=1) + "\n"


def main() -> int:
    """Write the file, or say that it is old."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where it differs")
    if not parser.parse_args().check:
        _FILE.write_text(render(), encoding="utf-8")
        return 0
    current = _FILE.exists() and _FILE.read_text(encoding="utf-8") == render()
    print("all is current" if current else "old; run python tools/summary_schema.py")
    return int(not current)


if __name__ == "__main__":
    sys.exit(main())
