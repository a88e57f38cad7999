"""The JSON Schemas of the files that limi writes, as a check of what was written."""

import json
from functools import cache
from pathlib import Path

import jsonschema

FOLDER = Path(__file__).parent.parent / "docs"


@cache
def schema_of(name):
    """A validator of the files of this name; the schema itself is checked first."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def breaches(name, tree):
    """What is wrong with a file, in the words of the validator; an empty list if nothing is."""
    found = schema_of(name).iter_errors(tree)
    return [f"{'/'.join(map(str, one.path))}: {one.message}" for one in found]
