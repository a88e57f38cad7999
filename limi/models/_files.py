"""Model files: find them, read the options behind their names, quote what libraries say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import parse_qsl

from limi.errors import BadModel, InvalidInput, nearest, spell
from limi.models._scores import Output
from limi.system.foreign import reason
from limi.system.reading import is_file

__all__ = [
    "content_of",
    "existing",
    "output_kind",
    "split_options",
    "unreadable",
    "untrusted_pickle",
]


def existing(place: str, kind: str, endings: Sequence[str]) -> Path:
    """The path of a model file; InvalidInput where there is none, BadModel where it is locked."""
    path = Path(place)
    example = f"{kind}:model{endings[0]}"
    if not is_file(path):
        if os.path.isdir(place):
            raise InvalidInput(f"{place!r} is a folder; name one file, as in {example}")
        raise InvalidInput(f"there is no file {place!r}; name one, as in {example}")
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise _lock(place, error) from None
    return path


def content_of(path: Path) -> bytes:
    """All bytes of a model file; BadModel if they cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _lock(str(path), error) from None


def _lock(place: str, error: OSError) -> BadModel:
    said = error.strerror or type(error).__name__
    return BadModel(
        f"the file {place!r} cannot be read: {said}; check its permissions and the disk"
    )


def split_options(place: str, known: Sequence[str]) -> tuple[str, dict[str, str]]:
    """`FILE?name=value&...` as the file and its options; a file of that very name wins."""
    file, mark, text = place.rpartition("?")
    if not mark or is_file(Path(place)):
        return place, {}
    options = dict(parse_qsl(text, keep_blank_values=True))
    for name in options:
        if name not in known:
            raise InvalidInput(f"{place!r} has the unknown option {name!r}; {nearest(name, known)}")
    return file, options


def output_kind(word: Any) -> Output | None:
    """A declared kind of output; InvalidInput where it is another word."""
    if word is None or word in get_args(Output):
        return cast("Output | None", word)
    raise InvalidInput(f"output={word!r} is unknown; use one of {spell(get_args(Output))}")


def unreadable(place: str, what: str, error: BaseException) -> BadModel:
    """The error for a file that a library cannot read as what it should be."""
    return BadModel(f"{place!r} cannot be read as {what} ({reason(error)})")


def untrusted_pickle(place: str, kind: str, what: str | None = None) -> InvalidInput:
    """The refusal to open a pickle, with the formats that hold data alone."""
    return InvalidInput(
        f"{kind}:{place} was not opened: {what or f'a {kind} file'} can run any program on this "
        "machine while it is read; save the model as skops, ONNX, or in its library's own format "
        "(xgboost .json, lightgbm .txt, catboost .cbm), or allow it with trust_pickle=True "
        "(--trust-pickle) if you know who wrote it"
    )
