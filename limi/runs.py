"""Finished runs opened again: the table, the model and the findings that a folder stands for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from limi import data, models, store, tables
from limi.errors import BadModel, BadTable, CorruptStore, InvalidInput, listed
from limi.findings import Found
from limi.foreign import reason
from limi.frames import Frame
from limi.problems import Problem, prepare
from limi.reading import is_file
from limi.results import Result
from limi.types import Rows

__all__ = ["reopen"]

# Files of these kinds hold data alone; any other, and one of a package that limi does not know,
# may run code when it is opened. Torch files are programs, whatever is checked of them first.
_DATA_ALONE = {"benchmark", "catboost", "demo", "lightgbm", "onnx", "skops", "xgboost"}
_TEXT = ("table", "model", "data_sha256")
_TEXT_OR_NONE = ("target", "model_sha256", "labels_sha256", "output")
_SPOT = 256  # findings that are put to the model again


def reopen(
    folder: str | Path,
    *,
    table: str | None = None,
    model: str | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
) -> Result:
    """The result of a finished run, with its table and model at hand again.

    Both are held to what the run tested: a table or a model that has changed since is refused.
    `table` and `model` say where they are now. A model whose file runs code when it is opened must
    be named: a folder that somebody sent should not choose what runs here.
    """
    folder = Path(folder)
    summary = store.read_summary(folder)
    manifest = _manifest(folder)
    frame = _table(folder, manifest, table)
    named = _model(folder, manifest, model)
    schema = store.read_schema(folder)
    problem = prepare(
        named,
        frame,
        protected=(),
        target=manifest["target"],
        favorable=manifest["favorable"],
        output=manifest.get("output"),
        schema=schema,
        trust_pickle=trust_pickle,
        trust=trust,
        table_name=manifest["table"],
    )
    _same_table(problem, manifest, table or manifest["table"])
    if manifest["model_sha256"] not in (None, problem.model_sha256):
        raise BadModel(
            f"the model at {named!r} has changed since the run; give the one that was tested with "
            "--model KIND:PLACE, or test the new one first"
        )
    found = _found(folder, problem)
    _same_model(problem, found, named)
    return Result(problem, found, summary, manifest)


def _manifest(folder: Path) -> dict[str, Any]:
    tree = store.read_json(folder / "manifest.json")
    needed = ("format", "table", "model", "target", "favorable", "data_sha256", "model_sha256")
    lacking = [name for name in needed if name not in tree]
    if lacking:
        raise CorruptStore(
            f"the manifest in {str(folder)!r} is damaged: it lacks {listed(lacking)}"
        )
    odd = [
        *(name for name in ("format",) if not isinstance(tree[name], int)),
        *(name for name in _TEXT if not isinstance(tree[name], str)),
        *(name for name in _TEXT_OR_NONE if not isinstance(tree.get(name), (str, NoneType))),
        *(name for name in ("favorable",) if isinstance(tree[name], (list, dict))),
    ]
    if odd:
        raise CorruptStore(
            f"the manifest in {str(folder)!r} is damaged: its {odd[0]} is {tree[odd[0]]!r}"
        )
    if tree["format"] > store.FORMAT:
        raise CorruptStore(
            f"{str(folder)!r} was written by a newer limi (format {tree['format']}, this one reads "
            f"up to {store.FORMAT}); upgrade limi"
        )
    return tree


def _table(folder: Path, manifest: dict[str, Any], given: str | None) -> Frame:
    place = manifest["table"] if given is None else given
    if place in data.names() and not Path(place).exists():
        return data.load(place).frame
    # A pipe or a device would be waited for; a folder that somebody sent may name any.
    if given is None and not is_file(place):
        raise InvalidInput(
            f"the table {place!r} of the run {str(folder)!r} is not there (moved, or given in "
            "memory); say where it is with --table FILE, or repair the result in Python with "
            "limi.repair(result)"
        )
    return tables.read(place)


def _model(folder: Path, manifest: dict[str, Any], given: str | None) -> str:
    place: str = manifest["model"] if given is None else given
    kind = place.partition(":")[0]
    if given is None and (":" not in place or kind not in models.names()):
        raise InvalidInput(
            f"the run {str(folder)!r} tested a {place} that was given in memory; name its file "
            "with --model KIND:PLACE, or repair the result in Python with limi.repair(result)"
        )
    if given is None and kind not in _DATA_ALONE:
        raise InvalidInput(
            f"the run {str(folder)!r} tested {place}, and opening it may run code; if you know who "
            f"wrote it, name it: --model {shlex.quote(place)}"
        )
    return place


def _same_table(problem: Problem, manifest: dict[str, Any], place: str) -> None:
    hashes = {**problem.hashes(), "labels_sha256": problem.labels_sha256}
    for name, what in (("data_sha256", "rows"), ("labels_sha256", "labels")):
        # Folders of earlier versions know no sum of the labels.
        if manifest.get(name) not in (None, hashes[name]):
            raise BadTable(
                f"the table {place!r} holds other {what} than the run tested; give the table as it "
                "was with --table FILE, or test the model on the new one first"
            )


def _found(folder: Path, problem: Problem) -> Found:
    """The findings as arrays; their seconds and causes are not kept in the folder."""
    schema = problem.schema
    path = folder / "findings.parquet"
    if not path.is_file():
        raise CorruptStore(f"{str(folder)!r} is no run folder of limi: it has no {path.name}")
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
        rows = _encoded(problem, frame)
        twins = frame[schema.names].assign(
            **{name: frame[_free(f"{name}__partner", schema.names)] for name in schema.protected}
        )
        partner = _encoded(problem, twins)
        score, partner_score = (
            frame[_free(name, schema.names)].to_numpy(dtype=np.float64)
            for name in ("score", "partner_score")
        )
        origin = frame[_free("origin", schema.names)].to_numpy().astype(str)
    except (KeyError, OSError, ValueError, TypeError) as error:
        raise CorruptStore(
            f"the findings in {str(folder)!r} cannot be read: {reason(error)}"
        ) from None
    n = len(rows)
    return Found(
        rows,
        partner,
        score,
        partner_score,
        origin,
        np.zeros(n),
        np.zeros(n, dtype=np.uint8),
    )


def _encoded(problem: Problem, frame: Frame) -> Rows:
    if not len(frame):
        return np.empty((0, len(problem.schema)))
    return problem.target.codec.encode(frame)


def _free(name: str, taken: Sequence[str]) -> str:
    """The name that a column of ours got where the table has one of that name."""
    while name in taken:
        name += "_"
    return name


def _same_model(problem: Problem, found: Found, named: str) -> None:
    """Scores that the run wrote must come back; a model without a file has no other sum."""
    some = slice(0, _SPOT)
    sides = ((found.rows, found.score), (found.partner, found.partner_score))
    if not all(
        np.allclose(problem.target.score(rows[some]), score[some], rtol=1e-3, atol=1e-3)
        for rows, score in sides
    ):
        raise BadModel(
            f"the model {named!r} answers otherwise than in the run; give the one that was tested "
            "with --model KIND:PLACE, or test this one first"
        )
