"""`limi.repair`: one way to repair a model, or all of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from limi.audits.reopen import reopen
from limi.audits.result import Result
from limi.errors import InvalidInput
from limi.metrics.privileged import Privileged
from limi.repairs._average import Scale
from limi.repairs._compare import compare_repairs, count_steps
from limi.repairs._hands import want_hands
from limi.repairs._labels import Policy
from limi.repairs._partner_table import Weights
from limi.repairs._refit import Fit, Fitted, Refit, refit_of
from limi.repairs._result import Repairs
from limi.repairs._settings import (
    HELD_OUT,
    Averaging,
    Settings,
    check_labels,
    check_policy,
    check_threshold,
    choose_preset,
)
from limi.repairs._ways import WAYS, check_how
from limi.repairs._work import OnStep, Steps, Work, compare_groups, known_labels, label_test
from limi.system import cores
from limi.system.arguments import checked
from limi.table.frames import Frame
from limi.types import Rows, Truth

__all__ = ["repair"]


@checked
@cores.share_cores()
def repair(
    result: Result | str | Path,
    *,
    how: str = "all",
    fit: Fit | None = None,
    preset: str = "best",
    recipe: str | None = None,
    label: Policy | None = None,
    fraction: float | None = None,
    seeds: int | None = None,
    seed: int = 0,
    held_out: float | None = None,
    test: Frame | None = None,
    privileged: Privileged = (),
    max_accuracy_loss: float = 0.01,
    weights: Weights = "table",
    scale: Scale = "probability",
    same_share: bool = False,
    workers: int | str | None = None,
    cluster: str | None = None,
    command: str = "",
    on_step: OnStep = lambda done, words: None,
) -> Repairs:
    """Repair an audited model, and judge by fresh checks whether it helped.

    `result` is what `limi.audit` gives, or the folder of a run (`limi.reopen` opens one whose table
    or model have moved).

    `how` is `"average"` (nothing is trained: answers are averaged over the protected values),
    `"drop"` (trained without the protected columns), `"copies"` (with every row under every
    protected value), `"pairs"` (a network with a penalty on partners' scores), `"findings"` (with
    the run's findings), or `"all"`: every one that the model allows, side by side, with a
    recommendation.

    `preset` is for findings: `"best"`, `"strong"` for narrower group gaps at a higher cost in
    accuracy, or `"paper"` for the paper's recipe; `recipe`, `label` and `fraction` (findings added,
    as a share of the training rows) override it. `fit` is a function that takes a frame and its
    labels and returns a fitted model; scikit-learn estimators do not need it.
    `privileged` names the group that others are compared with, as `"sex=Male"`.

    `weights` and `scale` are those of `limi.average`. `same_share` moves the threshold of averaged
    and dropped models until as many people as before get a favorable decision.

    Models of classes and numbers are repaired in the same way; for numbers, the cost is their
    error, as a share of the error of always predicting the median. Each seed (three, or one if
    nothing is trained) measures on the held-out rows of the run, or on `test`, a frame with the
    target column; without either it holds out different rows of the table, a share of `held_out`
    (0.2). The model that is kept is made from all rows. `held_out=0` trains on everything, as the
    paper does.

    `workers` and `cluster` are those of `limi.audit`: a worker trains and measures a seed, with the
    same results.
    """
    hows = check_how(how)
    result = result if isinstance(result, Result) else reopen(result)
    hands = want_hands(result.problem, workers, cluster)
    seeds = (1 if not any(WAYS[one].trains for one in hows) else 3) if seeds is None else seeds
    tested, measured_on = _choose_test(result, test, held_out)
    mixing = choose_preset(preset, recipe=recipe, label=label, fraction=fraction)
    settings = Settings(
        preset,
        mixing,
        seeds=seeds,
        seed=seed,
        held_out=HELD_OUT if held_out is None else held_out,
        max_accuracy_loss=max_accuracy_loss,
        averaging=Averaging(weights, scale, same_share),
        measured_on=measured_on,
    )
    check_threshold(result, settings.averaging)
    check_labels(result)
    check_policy(result, settings.mixing)
    _check_sight(result)
    refit, why = _refit(result, fit, how)
    compared, codes = compare_groups(result, settings, privileged)
    work = Work(
        result.problem,
        result.found,
        settings,
        refit,
        compared,
        codes,
        tested,
        steps=Steps(1, on_step),
    )
    able, skipped = _choose(work, hows, why)
    rounds = settings.seeds if not why else 1
    work = replace(work, steps=Steps(count_steps(able, rounds), on_step))
    return compare_repairs(
        result, work, able, skipped, can_train=not why, hands=hands, command=command
    )


def _choose_test(
    result: Result, test: Frame | None, held_out: float | None
) -> tuple[tuple[Rows, Truth] | None, str]:
    """Rows with known labels to measure on, and what they are; None where rows of the table are to
    be held out."""
    if test is not None:
        if held_out is not None:
            raise InvalidInput(
                "test gives rows to measure on and held_out a share of the table's; give one of "
                "the two"
            )
        return label_test(result.problem, test), "a test table"
    if held_out is not None or result.summary.held_out is None:
        return None, ""
    words = f"the run's held-out rows ({result.summary.held_out})"
    held = result.problem.held_out
    if held is None:
        raise InvalidInput(
            f"{words} are not there or have changed since; put them back, or hold out rows of the "
            f"table instead, with held_out={HELD_OUT} (--held-out {HELD_OUT})"
        )
    known = known_labels(result.problem, held)
    # Rows without a label say nothing of what a repair costs.
    return (known, words) if known is not None else (None, "")


def _check_sight(result: Result) -> None:
    """Refuse a model that takes no protected column."""
    if result.problem.blind:
        names = " or ".join(result.problem.schema.protected)
        raise InvalidInput(
            f"the model does not take {names}, so no decision depends on it and there is nothing "
            "to average or drop; limi test --twin shows what goes along with it in other columns, "
            "and --keep names the columns that may differ"
        )


def _refit(result: Result, fit: Fit | None, how: str) -> tuple[Refit, str]:
    """How the model is trained again, and why it cannot be."""
    try:
        return refit_of(result.problem, fit), ""
    except InvalidInput as error:
        if fit is not None or (how in WAYS and WAYS[how].trains):
            raise
        return _Untrained(), str(error)


class _Untrained:
    """Stands where no model can be trained again; nobody asks it to."""

    words = ""
    by_function = False
    learns_pairs = False

    def __call__(
        self,
        rows: Rows,
        labels: Truth,
        seed: int,
        *,
        weights: NDArray[np.float64] | None = None,
        pairs: tuple[Rows, float] | None = None,
    ) -> Fitted:
        raise InvalidInput("this model cannot be trained again")


def _choose(work: Work, hows: Sequence[str], untrainable: str) -> tuple[list[str], dict[str, str]]:
    """The ways that the model allows, and why the others are skipped."""
    able, skipped = [], {}
    for how in hows:
        way = WAYS[how]
        why = (untrainable if way.trains else "") or way.why_not(work)
        if why:
            skipped[how] = why
        else:
            able.append(how)
    if not able:
        raise InvalidInput(next(iter(skipped.values())))
    return able, skipped
