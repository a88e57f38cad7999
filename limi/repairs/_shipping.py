"""A repaired model as files that one can ship."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from limi.audits.problem import Problem
from limi.errors import LimiError
from limi.models._averaged import AveragedClassifier, AveragedFunction
from limi.repairs import _onnx, _saving
from limi.repairs._refit import Fitted
from limi.repairs._ways import Made
from limi.system.shown import to_json
from limi.system.writing import Content

__all__ = ["files", "load_averaged"]

_SCORE = '''"""Scores of {model}, averaged over {columns}: `python:score.py:score` for limi.

`score` takes a frame with the columns of the table and returns a favorable score a row, above 0.5
favorable. What it is averaged over is in averaging.json beside this file.
"""

from pathlib import Path

from limi.repairs import load_averaged

score = load_averaged(Path(__file__).with_name("averaging.json"))
'''


def files(problem: Problem, made: Made) -> tuple[dict[str, Content], list[str]]:
    """The files by name, and sentences on what could not be written."""
    native = made.native
    found: dict[str, Content] = {}
    notes: list[str] = []
    if isinstance(native, AveragedFunction):
        return _as_function(problem, native)
    stored = _saving.store(Fitted(made.target, native))
    if stored is not None:
        found[stored[0]] = stored[1]
    else:
        notes.append("the model is of a kind that limi has no file without code for")
    if isinstance(native, AveragedClassifier) and find_spec("skl2onnx"):
        try:
            example = made.target.present(problem.rows[:1])
            found["model.onnx"] = _onnx.export(native, example)
        except LimiError as error:
            notes.append(f"no ONNX file was written: {error}")
    return found, notes


def _as_function(
    problem: Problem, native: AveragedFunction
) -> tuple[dict[str, Content], list[str]]:
    """A Python file that asks the model where it is, and what it is averaged over."""
    if problem.model_sha256 is None and ":" not in problem.model_name:
        return {}, [
            "the model was given in memory, so that no file can name it; the averaged one is "
            "`.model` of the result"
        ]
    swaps = native.swaps
    tree: dict[str, Any] = {
        "format": 1,
        "model": problem.model_name,
        "table": problem.table_name,
        "favorable": problem.favorable,
        "labels": [v for v in (problem.unfavorable, problem.favorable) if v is not None],
        "output": problem.output,
        "takes": native.takes,
        "columns": list(native.columns or ()),
        "values": [[column, list(cells)] for column, cells in swaps.values.items()],
        "weights": swaps.weights.tolist(),
        "along": list(swaps.along),
        "closed": list(swaps.closed),
    }
    words = _SCORE.format(
        model=problem.model_name.replace("\\", "/").replace('"', "'"),
        columns=" and ".join(problem.schema.protected).replace('"', "'"),
    )
    return {"averaging.json": to_json(tree) + "\n", "score.py": words}, []


def load_averaged(path: Any) -> AveragedFunction:
    """The averaged function that a repair's `averaging.json` describes; opens the model it names,
    from the folder that one is in."""
    from limi import models
    from limi.audits.run_folder import read_json
    from limi.models._averaged import Swaps

    tree = read_json(path)
    model = models.load(
        tree["model"],
        favorable=tree["favorable"],
        labels=tuple(tree["labels"]),
        output=tree["output"],
        table=tree["table"],
    )
    swaps = Swaps(dict(tree["values"]), tree["weights"], tree["along"], tree["closed"])
    return AveragedFunction(model.score, swaps, tree["takes"], tree["columns"] or None)
