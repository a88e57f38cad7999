"""A repaired model as files that one can ship."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from limi import models
from limi.audits.problem import Problem
from limi.audits.run_folder import read_json
from limi.decisions import Classes, Rule, parse_rule
from limi.errors import InvalidInput, LimiError, missing
from limi.models._averaged import AveragedClassifier, AveragedFunction, Swaps
from limi.models._classifier import SklearnModel
from limi.repairs import _onnx, _saving, mlflow
from limi.repairs._refit import Fitted
from limi.repairs._ways import Made
from limi.system.reading import is_file
from limi.system.shown import to_json
from limi.system.writing import Content

__all__ = ["ONNX", "files", "load_averaged", "require_onnx"]

ONNX = "model.onnx"

_SCORE = '''"""Scores of {model}, averaged over {columns}: `python:score.py:score` for limi.

`score` takes a frame with the columns of the table and returns {what}.
What it is averaged over is in averaging.json beside this file.
"""

from pathlib import Path

from limi.repairs import load_averaged

score = load_averaged(Path(__file__).with_name("averaging.json"))
'''


_RETURNS = {
    "favorable": "a favorable score for each row; above 0.5 is favorable",
    "class": "the shares of votes for each class, in sorted order",
    "number": "a number for each row",
}


def require_onnx(how: str = "all", problem: Problem | None = None) -> None:
    """Refuse where no ONNX file could be written, before the work starts."""
    if problem is not None and not isinstance(problem.target.model, SklearnModel):
        raise InvalidInput(
            "only averaged and dropped scikit-learn classifiers can be written as ONNX, and "
            f"{problem.model_name} is something else; leave --onnx out"
        )
    if how not in ("all", "average", "drop"):
        raise InvalidInput(
            f"--how {how} writes no ONNX file; only averaged and dropped classifiers can be "
            "written as ONNX"
        )
    if find_spec("skl2onnx") is None:
        raise missing("skl2onnx", "export", "writing an ONNX model")


def files(
    problem: Problem, made: Made, *, onnx: bool = False
) -> tuple[dict[str, Content], list[str]]:
    """The files by name, and sentences on what could not be written."""
    found, notes = _own_files(problem, made)
    opened = [name for name in mlflow.OPENED if name in found]
    if opened:
        found["MLmodel"] = mlflow.describe(opened[0])
    if onnx:
        try:
            found[ONNX] = _as_onnx(problem, made)
        except LimiError as error:
            notes.append(f"no ONNX file was written: {error}")
    return found, notes


def _as_onnx(problem: Problem, made: Made) -> bytes:
    if not isinstance(made.native, AveragedClassifier):
        raise InvalidInput(
            "only averaged and dropped scikit-learn classifiers can be written as ONNX"
        )
    return _onnx.export(made.native, made.target.present(problem.rows[:1]))


def _own_files(problem: Problem, made: Made) -> tuple[dict[str, Content], list[str]]:
    """The model as it is."""
    native = made.native
    found: dict[str, Content] = {}
    notes: list[str] = []
    if isinstance(native, AveragedFunction):
        return _as_function(problem, native, made.inner)
    stored = _saving.store(Fitted(made.target, native))
    if stored is not None:
        found[stored[0]] = stored[1]
    else:
        notes.append("limi cannot write this kind of model to a file without code")
    return found, notes


def _as_function(
    problem: Problem, native: AveragedFunction, inner: Fitted | None
) -> tuple[dict[str, Content], list[str]]:
    """A Python file that asks the model where it is, and what it is averaged over.

    A model that was trained again is written beside it.
    """
    found: dict[str, Content] = {}
    place = problem.model_name
    if inner is not None:
        stored = _saving.store(inner)
        if stored is None:
            return {}, [
                "the model was retrained, and limi cannot write this kind to a file without code; "
                "it is `.model` of the result"
            ]
        found = dict([stored])
        place = f"{models.kind_of_file(stored[0])}:{stored[0]}"
    elif problem.model_sha256 is None and ":" not in problem.model_name:
        return {}, [
            "the model was given in memory, so no file can name it; the averaged model is "
            "`.model` of the result"
        ]
    swaps, rule = native.swaps, problem.target.rule
    tree: dict[str, Any] = {
        "format": 1,
        "model": place,
        "table": problem.table_name,
        "favorable": problem.favorable,
        "labels": list(problem.known)
        or [v for v in (problem.unfavorable, problem.favorable) if v is not None],
        "output": problem.output,
        "decision": str(problem.target.rule),
        "classes": list(rule.labels),
        "takes": native.takes,
        "columns": list(native.columns or ()),
        "values": [[column, list(cells)] for column, cells in swaps.values.items()],
        "weights": swaps.weights.tolist(),
        "along": list(swaps.along),
        "closed": list(swaps.closed),
        "reads": native.reads,
        "threshold": native.threshold,
        "places": list(native.places),
    }
    words = _SCORE.format(
        model=place.replace("\\", "/").replace('"', "'"),
        columns=" and ".join(problem.schema.protected).replace('"', "'"),
        what=_RETURNS[rule.kind],
    )
    return {**found, "averaging.json": to_json(tree) + "\n", "score.py": words}, []


def load_averaged(path: str | Path) -> AveragedFunction:
    """The averaged function that a repair's `averaging.json` describes; opens the model it names:
    a file beside it, or as the run named it, from the folder that one is in."""
    tree = read_json(Path(path))
    kind, _, name = tree["model"].partition(":")
    beside = Path(path).parent / name
    model = models.load(
        f"{kind}:{beside}" if is_file(beside) else tree["model"],
        favorable=tree["favorable"],
        labels=tuple(tree["labels"]),
        output=tree["output"],
        table=tree["table"],
        rule=_rule(tree),
    )
    swaps = Swaps(dict(tree["values"]), tree["weights"], tree["along"], tree["closed"])
    columns = tree["columns"] or None
    return AveragedFunction(
        model.score,
        swaps,
        tree["takes"],
        columns,
        tree["reads"],
        tree["threshold"],
        tree["places"],
    )


def _rule(tree: Mapping[str, Any]) -> Rule:
    """The rule that the model was repaired under."""
    rule = parse_rule(tree["decision"])
    return Classes(tuple(tree["classes"])) if isinstance(rule, Classes) else rule
