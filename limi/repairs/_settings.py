"""What a repair is asked for, and what of it makes no sense."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from limi.audits.result import Result
from limi.errors import BadTable, InvalidInput, nearest
from limi.repairs import _labels, _recipes
from limi.repairs._average import Scale, check_scale
from limi.repairs._labels import Policy
from limi.repairs._mixing import PAPER_FRACTION, PRESETS, Preset
from limi.repairs._partner_table import Weights
from limi.search.budget import check_seed

__all__ = [
    "HELD_OUT",
    "Averaging",
    "Settings",
    "check_labels",
    "check_policy",
    "check_threshold",
    "choose_preset",
]

HELD_OUT = 0.2  # share of the rows, where none were given to measure on

_MOST_SEEDS = 1_000


@dataclass(frozen=True)
class Averaging:
    """How a model is averaged."""

    weights: Weights = "table"
    scale: Scale = "probability"
    same_share: bool = False  # is the threshold moved until as many are favored as before?

    def __post_init__(self) -> None:
        check_scale(self.scale)


@dataclass(frozen=True)
class Settings:
    """How a model is trained again, how often, and what it may lose. Made only if all of it can
    be done."""

    preset: str  # where `mixing` comes from
    mixing: Preset
    seeds: int  # how often to train with other rows held out
    seed: int
    held_out: float  # share of the rows
    max_accuracy_loss: float
    averaging: Averaging = Averaging()
    measured_on: str = ""  # rows given to measure on; without any, some of the table's are held out

    def __post_init__(self) -> None:
        _check_fraction(self.mixing.fraction)
        _recipes.get(self.mixing.recipe)
        self._check_label()
        self._check_numbers()

    def _check_label(self) -> None:
        label = self.mixing.label
        if label not in _labels.POLICIES:
            raise InvalidInput(
                f"unknown way to label {label!r}; {nearest(label, _labels.POLICIES)}"
            )

    def _check_numbers(self) -> None:
        if not 1 <= self.seeds <= _MOST_SEEDS:
            raise InvalidInput(f"seeds is {self.seeds}; it must lie between 1 and {_MOST_SEEDS:,}")
        check_seed(self.seed)
        if not 0 <= self.held_out <= 0.5:
            raise InvalidInput(f"held-out is {self.held_out:g}; it must lie between 0 and 0.5")
        if not 0 <= self.max_accuracy_loss <= 1:
            raise InvalidInput(
                f"max-accuracy-loss is {self.max_accuracy_loss:g}; it must be a share of the rows, "
                "such as 0.01 for one point"
            )


def choose_preset(
    name: str, *, recipe: str | None, label: Policy | None, fraction: float | None
) -> Preset:
    """A preset by its name, with what was given beside it in place of its own."""
    if name not in PRESETS:
        raise InvalidInput(f"unknown preset {name!r}; {nearest(name, PRESETS)}")
    usual = PRESETS[name]
    return replace(
        usual,
        recipe=recipe or usual.recipe,
        label=label or usual.label,
        fraction=usual.fraction if fraction is None else fraction,
    )


def check_labels(result: Result) -> None:
    """Refuse a run that nothing can be trained from."""
    problem = result.problem
    rule, labels = problem.target.rule, problem.labels
    truth = labels if rule.kind == "favorable" else problem.truth
    if truth is None:
        what = "numbers" if rule.kind == "number" and problem.label_column else "target column"
        raise InvalidInput(
            f"the run has no {what}, so there are no labels to train on; test the model "
            "again with the target named"
        )
    if rule.kind == "number" and problem.known:
        raise InvalidInput(
            f"the run compared scores of a classifier ({str(rule)!r}), but a repair needs its "
            "decisions; test it without --decision, or with a threshold"
        )
    if labels is None:
        if len(np.unique(truth[~np.isnan(truth)])) < 2:
            raise BadTable(
                "the target column holds only one value, so nothing can be learned from it"
            )
        return
    if len(problem.known) > 2:
        raise InvalidInput(
            f"some of the {len(problem.known)} labels of the target column are favorable, but limi "
            "trains models with two labels, or with all classes; test the model with --decision "
            "class"
        )
    if len(np.unique(labels[labels >= 0])) < 2:
        raise BadTable("the target column holds only one label; training needs both")


def check_threshold(result: Result, averaging: Averaging) -> None:
    """Refuse to move a threshold that the run itself names."""
    rule = result.problem.target.rule
    if averaging.same_share and rule.kind != "favorable":
        raise InvalidInput(
            f"the decision is {str(rule)!r}, so there is no share of favorable decisions to keep; "
            "leave out --same-share"
        )
    if averaging.same_share and rule.threshold is not None:
        raise InvalidInput(
            f"the run decides by {str(rule)!r}, a threshold that a model file does not hold; "
            "repair without --same-share, and the report names the threshold that keeps the share"
        )


def check_policy(result: Result, mixing: Preset) -> None:
    """Refuse labels of findings that only models of two labels can give."""
    if result.problem.target.rule.kind != "favorable" and mixing.label == "ensemble":
        raise InvalidInput(
            f"findings labelled by {mixing.label!r} are either favorable or not, but the decision "
            f"here is {str(result.problem.target.rule)!r}; label them by vote or privileged "
            "(--label vote)"
        )


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction <= 1:
        raise InvalidInput(
            f"fraction is {fraction:g}; it is a share of the training rows, above 0 and at most 1, "
            f"such as {PAPER_FRACTION:g}"
        )
