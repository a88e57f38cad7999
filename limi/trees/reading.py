"""From a target to its trees: which library it is of, and what stands before the trees.

A model is read in two parts: its trees as arrays, and a function from what the model is given to
the numbers that the trees compare. The second part is the user's own preprocessing, run as it is,
so nothing of it is written a second time. It may consist of steps that look at one column each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Favorable, favors, opposes
from limi.errors import BadModel
from limi.models._base import WithForest
from limi.models._booster import BoosterModel
from limi.models._classifier import SklearnModel
from limi.models.onnx import OnnxModel
from limi.models.target import Target
from limi.system.foreign import at_work, reason
from limi.trees import _catboost, _lightgbm, _onnx, _sklearn, _xgboost
from limi.trees._pipeline import part
from limi.trees._read import Read
from limi.trees.ensemble import Ensemble
from limi.types import Rows

__all__ = ["KINDS", "TOLERANCE", "Reading", "read_trees"]

KINDS = (
    "random forests, ExtraTrees, gradient boosting and histogram gradient boosting of "
    "scikit-learn, XGBoost, LightGBM, CatBoost, and tree ensembles in ONNX graphs"
)

TOLERANCE = 1e-5
"""How far a score of the reading may be from the model's own: what float32 leaves open."""

_READERS = (_sklearn, _xgboost, _lightgbm, _catboost)


@dataclass(frozen=True, eq=False)
class Reading:
    """A target's trees, and the numbers of rows that they compare."""

    target: Target
    ensemble: Ensemble  # its sums are 0 at the edge of the decision
    numbers: Callable[[Any], NDArray[Any]]
    jumps: tuple[int, ...] | None  # columns whose numbers may rise and fall; None for any of them
    edge: float  # the sum at which the model, or the user's threshold, decides

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return self.ensemble.kind

    def widest(self, gap: Any) -> Any:
        """How far two scores can be apart at most, if their sums are so far apart."""
        rule = self.target.rule
        told = np.minimum(self.ensemble.widest(gap), 1.0)
        return rule.widen(told)

    def features(self, rows: Rows) -> NDArray[np.float64]:
        """(n, features): what the trees are given for rows."""

        def told(error: BaseException) -> BadModel:
            return BadModel(f"the model's preprocessing raised {reason(error)}")

        with at_work(told):
            return np.asarray(self.numbers(self.target.present(rows)), dtype=np.float64)

    def margins(self, rows: Rows) -> NDArray[np.float64]:
        """(n,): sums of the trees; above 0 the decision is favorable."""
        return self.ensemble.margins(self.features(rows))

    def scores(self, margins: Any) -> NDArray[np.float64]:
        """Scores of sums, as the target gives them: above 0.5 favorable."""
        raw = self.ensemble.scores(np.asarray(margins) + self.edge)
        scores: NDArray[np.float64] = self.target.rule.move(raw)
        return scores

    def conform(self, rows: Rows) -> float:
        """The largest difference to the model's own scores on rows; BadModel where it matters.

        Sums within their rounding of the edge are decided by the library alone, and left out.
        """
        margins = self.margins(rows)
        theirs = self.target.score(rows)
        clear = np.abs(margins) > self.ensemble.slack
        wrong = clear & ((favors(theirs) & (margins < 0)) | (opposes(theirs) & (margins > 0)))
        apart = np.where(clear, np.abs(self.scores(margins) - theirs), 0.0)
        rule = self.target.rule
        wrong |= apart > rule.widen(TOLERANCE)
        if wrong.any():
            raise BadModel(
                f"the trees of this {self.ensemble.kind} were read, but on {int(wrong.sum())} of "
                f"{len(rows)} rows they give a different answer from the model, so nothing can be "
                "proven about it; is their answer processed in a way that limi does not know?"
            )
        return float(apart.max(initial=0.0))


def read_trees(target: Target) -> Reading:
    """The trees of a target; BadModel where it has none that can be read."""
    rule = target.rule
    if not isinstance(rule, Favorable):
        raise BadModel(
            f"proofs are about favorable decisions, but the decision here is {str(rule)!r}; name "
            "favorable labels, or a threshold such as --decision 'score > 0.3'"
        )
    found = _read(target.model)
    threshold = rule.threshold
    edge = 0.0
    if threshold is not None:
        edge = rule.log_odds if found.ensemble.link == "logistic" else 2 * threshold - 1
    ensemble = replace(found.ensemble, base=found.ensemble.base - edge)
    return Reading(target, ensemble, found.numbers, found.jumps, edge)


def _read(model: Any) -> Read:
    if isinstance(model, OnnxModel):
        return _onnx.read(model)
    if isinstance(model, WithForest) and model.forest is not None:
        return _sklearn.read_forest(model.forest, model.favorable_column, _as_single, "forest")
    if isinstance(model, BoosterModel):
        return _read_native(model.booster, _favorable(model), model.prepare)
    if isinstance(model, SklearnModel):
        if model.reads != "probability" or model.own is not None:
            raise BadModel(
                "proofs need a model that decides by its probability, but this one decides in its "
                "own way; give the model inside, with its threshold as --decision 'score > T'"
            )
        before, last, jumps = part(model.estimator)
        first = model.prepare
        found = _read_native(last, _favorable(model), None)

        def numbers(inputs: Any) -> NDArray[Any]:
            inputs = inputs if first is None else first(inputs)
            return found.numbers(before(inputs))

        if before.steps and found.jumps != ():
            jumps = None  # behind a step, a number's place tells nothing of its column
        return replace(found, numbers=numbers, jumps=jumps if before.steps else found.jumps)
    raise _no_trees(type(getattr(model, "function", model)).__name__)


def _read_native(native: Any, favorable: int, first: Callable[[Any], Any] | None) -> Read:
    reader = next((reader for reader in _READERS if reader.accepts(native)), None)
    if reader is None:
        raise _no_trees(type(native).__name__)
    found: Read = reader.read(native, favorable)
    if first is None:
        return found
    return replace(found, numbers=lambda inputs: found.numbers(first(inputs)))


def _favorable(model: Any) -> int:
    if not isinstance(model.favorable_column, int):
        raise BadModel("proofs are about decisions between two labels, but this model has more")
    return model.favorable_column


def _no_trees(name: str) -> BadModel:
    return BadModel(
        f"proofs need a model made of trees, but this one is of type {name}; those that can be "
        f"read are {KINDS} (and plain networks of linear layers and ReLUs)"
    )


def _as_single(inputs: Any) -> NDArray[Any]:
    return np.asarray(inputs, dtype=np.float32)
