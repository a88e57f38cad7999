"""A model averaged over protected values: no training, and no decision that depends on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import logit

from limi import models
from limi.audits.problem import Problem, prepare
from limi.decisions import Rule, restore_threshold
from limi.errors import InvalidInput
from limi.models import Meaning
from limi.models._averaged import AveragedClassifier, AveragedFunction
from limi.models._classifier import SklearnModel
from limi.models.target import Target, bind
from limi.repairs._partner_table import (
    POINTS,
    PartnerTable,
    Weights,
    make_table,
    read_weights,
)
from limi.system.arguments import checked
from limi.table.frames import Frame
from limi.table.rule_checks import GivenConstraints
from limi.table.schema import Column, Schema
from limi.types import Value

__all__ = ["Averaged", "Scale", "average", "average_target", "check_scale", "tell_threshold"]

Scale = Literal["probability", "log-odds"]


@dataclass(frozen=True)
class Averaged:
    """A model that was averaged, with what it is averaged over."""

    target: Target
    native: AveragedClassifier | AveragedFunction
    table: PartnerTable


@checked
def average(
    model: Any,
    frame: Frame | None = None,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    weights: Weights = "table",
    scale: Scale = "probability",
    points: int = POINTS,
    target: str | None = None,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    order: str | Sequence[Value] | None = None,
    schema: Schema | None = None,
    constraints: GivenConstraints = (),
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
) -> AveragedClassifier | AveragedFunction:
    """A model whose answers are averaged over the protected values, so that no decision depends on
    them: a `limi.AveragedClassifier` for a fitted classifier, otherwise a function that takes a
    frame and returns scores.

    With a table (`frame`), partners are those that could exist by its schema and rules: what must
    change along with a protected value changes too. `weights` are `"table"` (how common each value
    is in it), `"uniform"`, or numbers by column and value, which need no table. A number with more
    than `points` values is averaged over quantiles of the table, or over the values that
    `protected` names (`age=20-80:10`). `scale` says whether probabilities or log-odds are averaged;
    with several classes, all of them are. A model that only returns labels is averaged by vote, and
    a regressor's numbers by their mean, as a function.
    """
    check_scale(scale)
    if frame is None:
        return _average_alone(model, protected, weights, scale)
    problem = prepare(
        model,
        frame,
        protected=protected,
        target=target,
        favorable=favorable,
        output=output,
        decision=decision,
        order=order,
        schema=schema,
        constraints=constraints,
        trust_pickle=trust_pickle,
        trust=trust,
    )
    table = make_table(problem.target, problem.rows, weights=weights, points=points)
    return average_target(problem, problem.target, table, scale).native


def check_scale(scale: str) -> None:
    """InvalidInput where nobody knows what that is."""
    if scale not in ("probability", "log-odds"):
        raise InvalidInput(f"scale is {scale!r}; it must be 'probability' or 'log-odds'")


def average_target(
    problem: Problem,
    target: Target,
    table: PartnerTable,
    scale: Scale = "probability",
    threshold: float | None = None,
) -> Averaged:
    """The averaged model of a target of this problem, as something to ask and to ship.

    `threshold` is the mean favorable score above which it decides so, in place of 0.5.
    """
    model = target.model
    if isinstance(model, SklearnModel):
        native: AveragedClassifier | AveragedFunction = AveragedClassifier(
            model.estimator,
            table.values,
            list(table.weights),
            table.along,
            table.closed,
            _read_as(model, scale),
            _threshold_of(model, threshold),
        )
    else:
        native = AveragedFunction(
            model.score,
            table.swaps,
            model.takes,
            target.shown.schema.names,
            _read_answers(target.rule, scale),
            threshold,
            _sorted_places(target.rule),
        )
    return Averaged(_bound(problem, target, native), native, table)


def _read_as(model: SklearnModel, scale: Scale) -> str:
    """What of a classifier is averaged: what its decisions follow."""
    return scale if model.reads == "probability" else model.reads


def _threshold_of(model: SklearnModel, given: float | None) -> float | None:
    """Where the second class of a classifier is decided; None where its mean is the higher one."""
    own = None if model.own is None or model.reads == "label" else model.own.of_second
    if given is None:
        return own
    second = given if model.favorable_column == 1 else 1 - given
    if model.reads == "margin":
        return float(logit(second)) + (own or 0.0)
    return second if own is None else restore_threshold(second, own)


def tell_threshold(target: Target, given: float) -> float:
    """A threshold of a target's scores, as a favorable score that its model itself would give:
    scores may have been moved because the model or the user has a threshold already."""
    model, rule = target.model, target.rule
    if rule.threshold is not None:
        return float(restore_threshold(given, rule.threshold))
    if isinstance(model, SklearnModel) and model.own is not None and model.reads == "probability":
        second = _threshold_of(model, given)
        assert second is not None
        return second if model.favorable_column == 1 else 1 - second
    return given


def _read_answers(rule: Rule, scale: Scale) -> str:
    """What of a model's answers is averaged: classes by vote, numbers as they are."""
    if rule.kind == "favorable":
        return scale
    return "class" if rule.kind == "class" else "probability"


def _sorted_places(rule: Rule) -> tuple[int, ...]:
    """Where a rule has its labels, in the order in which functions give one number for each."""
    labels = rule.labels
    return tuple(
        sorted(range(len(labels)), key=lambda at: (isinstance(labels[at], str), labels[at]))
    )


def _bound(problem: Problem, target: Target, native: Any) -> Target:
    labels: list[Value] = [v for v in (problem.unfavorable, problem.favorable) if v is not None]
    wrap = partial(
        models.wrap,
        native,
        favorable=problem.wanted if len(problem.wanted) > 1 else problem.favorable,
        labels=problem.known or labels,
        rule=target.rule,
    )
    model = wrap(output="score") if isinstance(native, AveragedFunction) else wrap()
    # Settling would ask whether scores and decisions agree, and here they do by definition.
    return bind(model, target.codec, aside=target.unseen, rule=target.rule)


def _average_alone(
    model: Any,
    protected: str | Sequence[str] | Mapping[str, Any],
    weights: Weights,
    scale: Scale,
) -> AveragedClassifier:
    """Without a table: the values are those that weights are given for."""
    if not isinstance(weights, Mapping):
        raise InvalidInput(
            "without a table, the protected values are not known; give the table as the second "
            "argument, or weights such as {'sex': {'Male': 0.5, 'Female': 0.5}}"
        )
    named = [protected] if isinstance(protected, str) else _listed(protected)
    known = getattr(model, "feature_names_in_", None)
    if known is None or not hasattr(model, "classes_"):
        raise InvalidInput(
            f"{type(model).__name__} does not name its columns; give the table as the second "
            "argument"
        )
    given = Schema(
        tuple(
            Column(name=name, kind="categorical", levels=tuple(_values(weights, name)))
            for name in named
        )
    )
    columns = [Column(name="", kind="categorical", levels=("",))]
    schema = Schema((*given.columns, *columns)).protect(named)
    counted = read_weights(schema, schema.combinations, weights, schema.combinations)
    values: dict[str | int, list[Any]] = {
        name: [schema[name].levels[int(code)] for code in codes]
        for name, codes in zip(named, schema.combinations.T, strict=True)
    }
    untaken = [name for name in named if name not in list(known)]
    if untaken:
        raise InvalidInput(
            f"the model does not take {untaken[0]!r}, so there is nothing to average"
        )
    reads: str = scale if hasattr(model, "predict_proba") else "margin"
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        reads = "label"
    return AveragedClassifier(model, values, [float(w) for w in counted], reads=reads)


def _listed(protected: Any) -> list[str]:
    try:
        named = list(protected)
    except TypeError:
        named = []
    if not named or not all(isinstance(name, str) for name in named):
        raise InvalidInput(
            f"protected is {protected!r}; it names the columns to average over, such as ['sex']"
        )
    return named


def _values(weights: Mapping[str, Mapping[Any, float]], name: str) -> list[Any]:
    if name not in weights or not isinstance(weights[name], Mapping):
        raise InvalidInput(
            f"the weights do not cover the values of {name!r}; give some for every protected "
            "column, such as {'sex': {'Male': 0.5, 'Female': 0.5}}"
        )
    return [np.asarray(value).item() for value in weights[name]]
