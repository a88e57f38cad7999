"""What a command writes, held apart from what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from limi.system import writing
from limi.system.reading import is_file

__all__ = ["require_apart"]


def require_apart(
    outputs: Mapping[str, str | Path | None],
    inputs: Mapping[str, str | Path | None],
    *,
    models: Iterable[str | None] = (),
    runs: Iterable[Path | None] = (),
) -> None:
    """InvalidInput where an output, by the option that names it, is an input, or is in or around
    one.

    Inputs count where they are files: a table and a generator may be names as well. Models are
    KIND:PLACE, and bring their files; runs are folders, and bring the table and the
    model that they were made with. A run or model that cannot be read is reported where it is used.
    """
    from limi.audits.reopen import Run
    from limi.errors import LimiError
    from limi.models import files
    from limi.table.sources import file_of, is_source

    told: list[tuple[str, str | Path]] = []
    for what, given in inputs.items():
        with suppress(LimiError):  # a source that names no table
            path = file_of(given) if given is not None and is_source(given) else given
            if path is not None and is_file(path):
                told.append((what, path))
    for uri in models:
        with suppress(LimiError):
            told += [("the model", path) for path in files(uri or "")]
    for run in runs:
        if run is not None:
            told.append(("the run", run))
            with suppress(LimiError):
                told += Run.at(run).inputs()
    named = {option: path for option, path in outputs.items() if path is not None}
    writing.require_apart(named, told)
