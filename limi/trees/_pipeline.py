"""Pipelines of scikit-learn: what stands before the trees, if every step looks at one column.

Steps are on an allow-list. Each of them makes a number from one column and from nothing else.
Scalers and imputers of missing cells keep the order of numbers, to the last digit: a difference, a
quotient by a positive number and a cast never turn two numbers around. Encoders need not, nor
imputers that replace a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limi.errors import BadModel, spell

__all__ = ["Steps", "part"]

_IN_ORDER = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer")
_ENCODERS = ("OrdinalEncoder", "OneHotEncoder")
_AS_IT_IS = ("passthrough", "drop")


def part(estimator: Any) -> tuple[Steps, Any, tuple[int, ...] | None]:
    """What is done to rows first, the estimator that decides, and which columns are encoded.

    Columns are given by position; None stands for any of them.
    """
    before: list[Any] = []
    jumps: tuple[int, ...] | None = ()
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif _is_own(estimator, "Pipeline"):
            for _, step in estimator.steps[:-1]:
                encoded = _find_encoded(step)
                # Behind another step, the place of a number is not that of its column.
                first = not before or not encoded
                jumps = encoded if first and not jumps else jumps if not encoded else None
                before.append(step)
            estimator = estimator.steps[-1][1]
        else:
            return Steps(tuple(s for s in before if not _is_nothing(s))), estimator, jumps


@dataclass(frozen=True)
class Steps:
    """Fitted transformers, one after the other."""

    steps: tuple[Any, ...]

    def __call__(self, inputs: Any) -> Any:
        for step in self.steps:
            inputs = step.transform(inputs)
            inputs = inputs.toarray() if hasattr(inputs, "toarray") else inputs
        return inputs


def _find_encoded(step: Any) -> tuple[int, ...] | None:
    """Places of the inputs that a step encodes; BadModel where it may look at several at once."""
    if _is_own(step, "ColumnTransformer"):
        found: list[int] = []
        for name, inner, _ in step.transformers_:
            if _encodes(inner):
                found += step._transformer_to_input_indices[name]
        return tuple(sorted(set(found)))
    return None if _encodes(step) else ()


def _encodes(step: Any) -> bool:
    if _is_nothing(step):
        return False
    if _is_own(step, "Pipeline"):
        return sum(_encodes(inner) for _, inner in step.steps) > 0  # each is looked at
    if _is_own(step, "ColumnTransformer"):
        return sum(_encodes(inner) for _, inner, _ in step.transformers_) > 0
    if _is_own(step, "SimpleImputer"):
        return not _is_missing(step.missing_values)
    if _is_own(step, *_IN_ORDER) or (_is_own(step, "FunctionTransformer") and step.func is None):
        return False
    if _is_own(step, *_ENCODERS):
        return True
    known = (*_ENCODERS, "SimpleImputer", *_IN_ORDER[:-1], "ColumnTransformer", "passthrough")
    raise BadModel(
        f"the model's pipeline has a step of type {type(step).__name__}, through which nothing can "
        f"be proven; steps that can be read are {spell(known)}"
    )


def _is_missing(value: Any) -> bool:
    """Does it stand for no value: None, NaN, or what pandas has for it?"""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in _AS_IT_IS)


def _is_own(step: Any, *names: str) -> bool:
    """Is it scikit-learn's own class of that name?"""
    kind = type(step)
    return kind.__name__ in names and kind.__module__.partition(".")[0] == "sklearn"
