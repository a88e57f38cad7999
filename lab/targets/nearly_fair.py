"""Nearly fair targets: a model whose protected effect is shrunk until flips are as rare as stated.

A network of the papers keeps its shape: the weights of its protected inputs are scaled, and its
biases take in the mean of what is taken away, so that methods that look inside can be tried too.
Of any other model the score is blended with its mean over the protected values. Either way one
number says how much of the effect is left, and the rate among natural people grows with it; that
number is sought on 200,000 people whom no search of the benchmark meets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import models as benchmark
from lab.targets import estimator
from lab.targets.making import Making, draw_people
from limi.decisions import round_scores
from limi.errors import InvalidInput
from limi.repairs import average
from limi.search.check import check_rows
from limi.system import writing
from limi.types import Rows

__all__ = ["Settings", "make"]

_QUESTIONS = 600_000
_MOST_PEOPLE = 200_000
_HALVINGS = 18


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A model, and how rare its flips should be."""

    kind: str = "dnn"  # of the papers, or of the recipe `estimator`
    rate: float = 0.01  # of natural people
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidInput(f"rate is {self.rate}; it must lie between 0 and 1")


def make(making: Making) -> Any:
    """The model with as much of its effect as the rate allows; how much is kept in a file."""
    told: Settings = making.settings
    if told.kind == "dnn":
        network = benchmark.train(making.table.name, "dnn", seed=told.seed)
        return shrink(network, making, _look_up(making, lambda: _seek(network, making)))
    if told.kind in ("rf", "svm"):
        plain: Any = benchmark.train(making.table.name, told.kind, seed=told.seed)  # type: ignore[arg-type]
    else:
        frame = making.table.frame
        labels = frame[making.table.target]
        plain = estimator.fit(told.kind, frame[making.schema.names], labels, told.seed)
    blend = Blend.of(plain, making)
    return replace(blend, left=_look_up(making, lambda: _seek_blend(blend, making)))


def shrink(network: Any, making: Making, left: float) -> Any:
    """A network in which protected inputs count `left` of what they did, around their mean."""
    arrays = dict(network.scorer.arrays())
    places = [network.columns.index(name) for name in making.spec.protected]
    mean = making.table.frame[list(making.spec.protected)].to_numpy(dtype=np.float64).mean(axis=0)
    weight, bias = arrays["weight0"].copy(), arrays["bias0"].copy()
    bias += ((1 - left) * weight[:, places] @ mean).astype(bias.dtype)
    weight[:, places] *= left
    changed = {**arrays, "weight0": weight, "bias0": bias}
    return replace(network, scorer=type(network.scorer).from_arrays(changed))


@dataclass(frozen=True, eq=False)
class Blend:
    """A function of rows that returns a model's score, drawn towards its mean over groups."""

    plain: Any  # as `limi.models` asks it
    averaged: Any
    columns: tuple[str, ...]
    left: float = 1.0
    output = "score"

    @staticmethod
    def of(model: Any, making: Making) -> Blend:
        """Of a model and its average, which are asked in the same way."""
        native = average(
            model,
            making.table.frame,
            protected=making.spec.protected,
            target=making.table.target,
            favorable=making.table.favorable,
            schema=making.schema,
        )
        plain, averaged = making.problem(model).target, making.problem(native).target
        return Blend(plain.model, averaged.model, tuple(plain.shown.schema.names))

    @property
    def takes(self) -> str:
        """As the model: frames or matrices."""
        return str(self.plain.takes)

    def __call__(self, inputs: Any) -> NDArray[np.float64]:
        """Scores; without an effect that is left, the mean's."""
        mean = np.asarray(self.averaged.score(inputs), dtype=np.float64)
        return mean + self.left * (np.asarray(self.plain.score(inputs), dtype=np.float64) - mean)


def _look_up(making: Making, seek: Callable[[], float]) -> float:
    path = making.kept(".json")
    if not path.exists():
        writing.make_folder(path.parent)
        writing.write(path, json.dumps({"left": seek()}) + "\n")
    return float(json.loads(path.read_text(encoding="utf-8"))["left"])


def _people(making: Making) -> Rows:
    schema = making.schema.protect(list(making.spec.protected))
    n = min(_MOST_PEOPLE, _QUESTIONS // len(schema.combinations))
    return draw_people(making.people(), n, 1)


def _seek(network: Any, making: Making) -> float:
    """Bisected: the rate is asked of a network for every share that is tried."""
    rate, people = making.settings.rate, _people(making)
    target = making.problem(network).target

    def flips(left: float) -> float:
        shrunk = shrink(network, making, left)
        checked = check_rows(
            lambda rows: shrunk.score(target.present(rows)),
            target.codec.schema,
            people,
            decision=target.rule,
        )
        return float(checked.flips.mean())

    _require_enough(making, flips(1.0))
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle) > rate else (middle, high)
    return low


def _seek_blend(blend: Blend, making: Making) -> float:
    """At once: of each person it is known how much must be left for the decision to flip."""
    target = making.problem(blend).target
    schema, people = target.codec.schema, _people(making)
    checked = check_rows(target.score, schema, people, decision=target.rule, keep_scores=True)
    _require_enough(making, float(checked.flips.mean()))
    averaged = making.problem(replace(blend, left=0.0)).target.score(people)
    mean = averaged[:, None] - 0.5
    beyond = checked.scores - 0.5 - mean  # what the effect adds
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(mean * beyond < 0, -mean / beyond, np.inf).min(axis=1)
    place = int(making.settings.rate * len(people))
    return float(round_scores(np.sort(needed)[place : place + 2].mean()))


def _require_enough(making: Making, rate: float) -> None:
    if rate <= making.settings.rate:
        raise InvalidInput(
            f"the target {making.spec.name!r} should flip for {making.settings.rate:.2%} of "
            f"people, but even before anything is shrunk only {rate:.2%} do; ask for a lower rate"
        )
