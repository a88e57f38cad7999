"""Finished run folders, read: every part held to what limi writes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from limi.audits.summary import FORMAT as SUMMARY_FORMAT
from limi.audits.summary import Summary
from limi.errors import CorruptStore, InvalidInput, LimiError
from limi.system.reading import is_file
from limi.table import schema_files
from limi.table.schema import Schema

__all__ = [
    "FORMAT",
    "digest",
    "file_digest",
    "read_json",
    "read_schema",
    "read_summary",
    "reading",
    "versions",
]

FORMAT = 1  # of the manifest

_OTHERS = {
    "proof.json": "a proof of limi certify",
    "images.json": "a test of images",
    "repair.json": "a repair",
}
"""Files of other folders that limi writes, and what those hold."""

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read_summary(folder: str | Path, *, derive: bool = True) -> Summary:
    """The summary of a finished run; CorruptStore where the folder is none, or is newer.

    `derive` is of `Summary.from_dict`.
    """
    folder = Path(folder)
    try:  # not Path.is_dir, which tells nobody why it cannot look since Python 3.14
        is_there = stat.S_ISDIR(os.stat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except (OSError, ValueError) as error:  # not to be looked into, or no name of a folder
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"the run folder {_cut(str(folder))!r} cannot be read: {why}; name another"
        ) from None
    if not is_there:
        raise InvalidInput(f"there is no run folder {_cut(str(folder))!r}")
    for name, what in _OTHERS.items():
        if is_file(folder / name):
            raise InvalidInput(
                f"{_cut(str(folder))!r} holds {what}, not a test run; open its report.html, or "
                f"read {name}"
            )
    tree = read_json(folder / "summary.json")
    version = tree.get("format")
    if not isinstance(version, int):
        raise CorruptStore(
            f"{str(folder)!r} is not a run folder of limi: its summary has no format"
        )
    if version > SUMMARY_FORMAT:
        raise CorruptStore(
            f"{str(folder)!r} was written by a newer limi (format {version}, this one reads up to "
            f"{SUMMARY_FORMAT}); upgrade limi"
        )
    try:
        with reading("summary", folder):
            summary = Summary.from_dict(tree, derive=derive)
    except InvalidInput as error:  # numbers that metrics are derived from are none
        raise CorruptStore(f"the summary in {str(folder)!r} is damaged: {error}") from None
    return summary


def read_schema(folder: str | Path) -> Schema:
    """The schema of a finished run; CorruptStore where it is damaged or missing."""
    try:
        with reading("schema", folder):
            return schema_files.load(Path(folder) / "schema.toml")
    except InvalidInput as error:
        raise CorruptStore(f"the schema in {str(folder)!r} is damaged: {error}") from None


@contextmanager
def reading(what: str, folder: str | Path) -> Iterator[None]:
    """CorruptStore where a part of a run turns out not to be as limi wrote it."""
    try:
        yield
    except LimiError:
        raise
    except _DAMAGE as error:
        said = _cut(" ".join(f"{type(error).__name__}: {error}".split()))
        raise CorruptStore(
            f"the {what} in {str(folder)!r} is damaged: {said}; run the test again"
        ) from None


def _cut(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def digest(*parts: bytes) -> str:
    """sha256 of parts, each with its length, so that no two lists of parts collide."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of what computed a run."""
    found = {"python": platform.python_version()}
    for name in ("limi", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of ours; CorruptStore where it holds none."""
    try:
        if path.exists() and not path.is_file():
            raise CorruptStore(f"{str(path)!r} cannot be read: it is not a file")
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorruptStore(
            f"{str(path.parent)!r} is not a run folder of limi: it has no {path.name}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(tree, dict):
        raise CorruptStore(f"{str(path)!r} cannot be read: it holds no object")
    return tree
