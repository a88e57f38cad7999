"""The work of a repair: choose findings, label, mix, train again, measure, verify."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from limi import data
from limi.audits.problem import Problem, prepare
from limi.audits.result import Result
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadTable, InvalidInput, listed, nearest
from limi.metrics._populations import draw_people
from limi.metrics.collect import counts_by_column
from limi.metrics.privileged import Privileged
from limi.metrics.rates import measurable_rows
from limi.models.target import Target
from limi.repairs import _ensemble, _labels, _recipes, _verify
from limi.repairs._figures import (
    MOST_QUERIES,
    NAMES,
    Blinded,
    Figures,
    Groups,
    Scorer,
    Yardstick,
    groups,
    over_seeds,
)
from limi.repairs._labels import Policy
from limi.repairs._mixing import PAPER_FRACTION, PRESETS, Mixed, Preset, mixed, n_findings
from limi.repairs._refit import Fit, Fitted, Refit, refit_of
from limi.repairs._result import Point, Repair
from limi.search.budget import check_seed
from limi.search.findings import Found
from limi.streams import Stream
from limi.system import cores
from limi.table.frames import Frame
from limi.types import Index, Labels, Mask, Rows

__all__ = ["repair"]

SWEPT = (0.05, 0.10, 0.20, 0.30, 0.50, 1.00)

_RATE_ROWS = 20_000
_MOST_SEEDS = 1_000
_SEARCH_ROWS = 5_000

OnStep = Callable[[float, str], None]


@cores.shared()
def repair(
    result: Result,
    *,
    fit: Fit | None = None,
    preset: str = "best",
    recipe: str | None = None,
    label: Policy | None = None,
    fraction: float | None = None,
    seeds: int = 3,
    seed: int = 0,
    held_out: float = 0.2,
    test: Frame | None = None,
    privileged: Privileged = (),
    max_accuracy_loss: float = 0.01,
    sweep: bool | Sequence[float] = False,
    command: str = "",
    on_step: OnStep = lambda done, words: None,
) -> Repair:
    """Train an audited model again with its findings, and judge by fresh checks whether it helped.

    `preset` is `"best"`, `"strong"` for narrower group gaps at more accuracy lost, or `"paper"` for
    the paper's recipe; `recipe`, `label` and `fraction`
    (findings added, as a share of the rows trained on) replace what it says. `fit` is a function of
    a frame and its labels that returns a fitted model; scikit-learn estimators and benchmark models
    need none. `privileged` states whose decisions the others' are compared with, as `"sex=Male"`.

    Each of the seeds holds out other rows (or measures on `test`, a frame with the target column),
    and trains on the rest without and with the findings. The model that is kept is trained on all
    rows. `held_out=0` trains on everything, as the paper does.
    """
    if preset not in PRESETS:
        raise InvalidInput(f"there is no preset {preset!r}; {nearest(preset, PRESETS)}")
    chosen = PRESETS[preset]
    chosen = replace(
        chosen,
        recipe=recipe or chosen.recipe,
        label=label or chosen.label,
        fraction=chosen.fraction if fraction is None else fraction,
    )
    problem = result.problem
    fractions = _fractions(sweep, chosen.fraction)
    _check(
        result,
        chosen,
        seeds=seeds,
        seed=seed,
        held_out=held_out,
        limit=max_accuracy_loss,
        swept=bool(fractions),
    )
    compared = groups(problem, privileged, counts_by_column(result.summary.all_metrics))
    if chosen.label == "privileged" and not privileged:
        column = problem.schema[problem.schema.protected[0]]
        raise InvalidInput(
            "label privileged needs the privileged values; state them, for example "
            f"--privileged {column.name}={column.show(problem.schema.protected_codes[0][0])}"
        )
    # Checked now, so that an hour's work does not end in a refusal.
    codes = compared.codes(problem.schema) if chosen.label == "privileged" else {}
    refit = refit_of(problem, fit)
    run = result.summary
    work = _Work(
        problem=problem,
        found=result.found,
        preset=chosen,
        refit=refit,
        groups=compared,
        codes=codes,
        seed=seed,
        held_out=held_out,
        test=None if test is None else _labelled(problem, test),
        steps=_Steps((3 + len(fractions)) * seeds + 4, on_step),
    )
    yardstick = work.yardstick(run.generator)
    per_seed = [work.trial(yardstick, place, fractions) for place in range(seeds)]
    before = _joined([one.before for one in per_seed])
    after = _joined([one.after for one in per_seed])
    blind = _joined([one.blind for one in per_seed])
    front = [
        Point(share, _joined([one.swept[place] for one in per_seed]))
        for place, share in enumerate(fractions)
    ]
    loss = _verify.Loss.of(
        np.concatenate([one.right for one in per_seed]),
        np.concatenate([one.right_after for one in per_seed]),
        "training" if before["accuracy"].value is None else "held-out",
        np.concatenate([one.places for one in per_seed]),
    )
    fitted, mix = work.final()
    fresh = _verify.Fresh.beside(run.method, run.generator, run.seed)
    own, checks = work.fresh(fitted.target, fresh)
    return Repair(
        problem=problem,
        before=before,
        after=after,
        blind=blind,
        verdict=_verify.judge(
            checks, own, loss, before, after, max_accuracy_loss=max_accuracy_loss
        ),
        loss=loss,
        checks=tuple(checks),
        own=own,
        groups=compared,
        settings={
            "preset": preset,
            "recipe": chosen.recipe,
            "label": chosen.label,
            "fraction": chosen.fraction,
            "findings_used": mix.findings,
            "findings_drawn_twice": bool(mix.findings)
            and (chosen.replace or n_findings(chosen.fraction, len(work.known)) > len(work.found)),
            "seeds": seeds,
            "seed": seed,
            "held_out": None if test is not None else held_out,
            "max_accuracy_loss": max_accuracy_loss,
        },
        run={
            "table": problem.table_name,
            "model": problem.model_name,
            "protected": dict(run.protected),
            "target": problem.label_column,
            "favorable": problem.favorable,
            "method": run.method,
            "generator": run.generator,
            "seed": run.seed,
            "findings": len(result.found),
            **problem.hashes(),
        },
        how=refit.words,
        fresh=fresh,
        fitted=fitted,
        added=(mix.rows[len(work.known) :], mix.labels[len(work.known) :]),
        front=tuple(_with_ends(front, before, after, chosen.fraction) if sweep else ()),
        command=command,
    )


@dataclass
class _Steps:
    """Tells how far the work is."""

    total: int
    on_step: OnStep
    done: int = 0

    def next(self, words: str) -> None:
        """Say what comes next."""
        self.on_step(self.done / self.total, words)
        self.done += 1


@dataclass(frozen=True)
class _Trial:
    """One seed: the figures of what was trained without and with findings."""

    before: Figures
    after: Figures
    blind: Figures  # trained without the protected columns
    swept: tuple[Figures, ...]
    right: Mask  # decisions on rows not trained on, or trained on where there are no others
    right_after: Mask
    places: Index  # of those rows


@dataclass(frozen=True)
class _Work:
    """One repair with all its settings."""

    problem: Problem
    found: Found
    preset: Preset
    refit: Refit
    groups: Groups
    codes: Mapping[str, float]  # the privileged values, where findings are labelled by them
    seed: int
    held_out: float
    test: tuple[Rows, Labels] | None
    steps: _Steps = field(repr=False)

    @property
    def labels(self) -> Labels:
        """The table's labels."""
        assert self.problem.labels is not None
        return self.problem.labels

    @property
    def known(self) -> Index:
        """Rows whose label is known."""
        return np.flatnonzero(self.labels >= 0)

    def yardstick(self, used: str | None) -> Yardstick:
        """Rows to measure on, from streams of their own."""
        self.steps.next("drawing people to measure on")
        name = used if used in _verify.quick_generators() else DEFAULT_GENERATOR
        generator = _verify.fitted(name, self.problem, self.seed + _verify.FRESH_SEED)
        rng = Stream.REPAIR_YARDSTICK.rng(self.seed)
        return Yardstick.make(self.problem, self.groups, generator, _RATE_ROWS, rng)

    def trial(self, yardstick: Yardstick, place: int, fractions: Sequence[float]) -> _Trial:
        """Train without and with findings on the rows that are not held out by this seed."""
        trained, held = self._split(place)
        told = f"seed {place}"
        training = self._training(trained)
        unseen = held if len(held) else trained

        def measured(target: Scorer) -> tuple[Figures, Mask]:
            figures = yardstick.figures(target, trained, held, self.test)
            return figures, yardstick.right(target, unseen, self.test)

        self.steps.next(f"{told}: training as before")
        plain = self.refit(training.rows, training.labels, self.seed + place)
        before, right = measured(plain.target)
        self.steps.next(f"{told}: training without {listed(self.problem.schema.protected)}")
        blind, _ = measured(self._blinded(training, place))
        (after, right_after), *swept = (
            self._mixed(plain.target, training, place, fraction, told, measured)
            for fraction in (self.preset.fraction, *fractions)
        )
        places = unseen if self.test is None else np.arange(len(self.test[1]))
        figures = tuple(figures for figures, _ in swept)
        return _Trial(before, after, blind, figures, right, right_after, places)

    def _mixed(
        self,
        voter: Target,
        training: _recipes.Training,
        place: int,
        fraction: float,
        told: str,
        measured: Callable[[Scorer], tuple[Figures, Mask]],
    ) -> tuple[Figures, Mask]:
        self.steps.next(f"{told}: training with {fraction:.0%} of findings")
        mix = self._mix(voter, training, place, fraction)
        return measured(self.refit(mix.rows, mix.labels, self.seed + place).target)

    def _blinded(self, training: _recipes.Training, place: int) -> Blinded:
        """The same model trained without the protected columns: what any repair must beat."""
        schema = training.schema
        cells = Blinded.usual(schema, training.rows)
        hidden = Blinded.hide(schema, training.rows, cells)
        fitted = self.refit(hidden, training.labels, self.seed + place)
        return Blinded(fitted.target, schema, cells)

    def final(self) -> tuple[Fitted, Mixed]:
        """The model that is kept: trained on every row, with findings that the original labels."""
        self.steps.next("training the model that is kept")
        training = self._training(self.known)
        mix = self._mix(self.problem.target, training, 0, self.preset.fraction)
        return self.refit(mix.rows, mix.labels, self.seed), mix

    def fresh(
        self, after: Target, fresh: _verify.Fresh
    ) -> tuple[_verify.Check, list[_verify.Check]]:
        """The run's own findings again, and checks of both models by other means."""
        problem, original = self.problem, self.problem.target
        self.steps.next(f"fitting {fresh.generator} for fresh checks")
        other = _verify.fitted(fresh.generator, problem, fresh.seed)
        self.steps.next(f"searching both models anew by {fresh.method}")
        most = max(1, measurable_rows(problem.schema, 1, MOST_QUERIES))
        search = _verify.searched(
            problem,
            original,
            after,
            method=fresh.method,
            generator=other,
            rows=min(_SEARCH_ROWS, most),
            seed=fresh.seed,
        )
        n = min(_RATE_ROWS, most)
        rng = Stream.REPAIR_CHECK.rng(self.seed)
        people = draw_people("natural", n, rng, problem.schema, other)
        checks = [
            search,
            _verify.asked(
                "people",
                f"fresh people of {fresh.generator}",
                problem.schema,
                people,
                original,
                after,
            ),
        ]
        some = self.found.rows
        if len(some) > n:
            some = some[rng.choice(len(some), n, replace=False)]
        own = _verify.asked("own", "the run's own findings", problem.schema, some, original, after)
        return own, checks

    def _training(self, index: Index) -> _recipes.Training:
        return _recipes.Training(self.problem.schema, self.problem.rows[index], self.labels[index])

    def _mix(
        self, voter: Target, training: _recipes.Training, place: int, fraction: float
    ) -> Mixed:
        return mixed(
            replace(self.preset, fraction=fraction),
            training,
            self.found,
            voter.score,
            ensemble=lambda: self._ensemble(training),
            privileged=self.codes,
            rng=Stream.REPAIR_MIX.rng(self.seed, place),
        )

    def _ensemble(self, training: _recipes.Training) -> _ensemble.Ensemble:
        return _ensemble.fit(
            training.rows, training.labels, training.schema, blind_to=_blind_to(self.problem)
        )

    def _split(self, place: int) -> tuple[Index, Index]:
        """Rows to train on and rows held out, both classes in the table's proportion."""
        if self.test is not None or not self.held_out:
            return self.known, np.empty(0, dtype=np.intp)
        rng = Stream.REPAIR_HELD_OUT.rng(self.seed, place)
        held = []
        for label in (0, 1):
            mine = rng.permutation(np.flatnonzero(self.labels == label))
            held.append(mine[: round(self.held_out * len(mine))])
        out = np.sort(np.concatenate(held))
        return np.setdiff1d(self.known, out), out


def _joined(each: Sequence[Figures]) -> Figures:
    return {name: over_seeds([one[name] for one in each]) for name in NAMES}


def _with_ends(front: list[Point], before: Figures, after: Figures, fraction: float) -> list[Point]:
    points = [Point(0.0, before), *front, Point(fraction, after)]
    return sorted(points, key=lambda point: point.fraction)


def _fractions(sweep: bool | Sequence[float], own: float) -> tuple[float, ...]:
    if sweep is False:
        return ()
    given = SWEPT if sweep is True else tuple(sweep)
    for share in given:
        _check_fraction(share)
    return tuple(sorted({share for share in given if not math.isclose(share, own)}))


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction <= 1:
        raise InvalidInput(
            f"fraction is {fraction:g}; it must lie above 0 and be at most 1, as a share of the "
            f"rows trained on, such as {PAPER_FRACTION:g}"
        )


def _check(
    result: Result,
    chosen: Preset,
    *,
    seeds: int,
    seed: int,
    held_out: float,
    limit: float,
    swept: bool,
) -> None:
    _check_fraction(chosen.fraction)
    _recipes.get(chosen.recipe)
    if swept and chosen.recipe in _recipes.WITHOUT_FINDINGS:
        raise InvalidInput(
            f"the recipe {chosen.recipe} adds no findings, so there is no fraction to sweep; sweep "
            "another, such as copies+pairs"
        )
    if chosen.label not in _labels.POLICIES:
        raise InvalidInput(
            f"there is no way to label {chosen.label!r}; {nearest(chosen.label, _labels.POLICIES)}"
        )
    if not 1 <= seeds <= _MOST_SEEDS:
        raise InvalidInput(f"seeds is {seeds}; at least one is needed, and {_MOST_SEEDS:,} at most")
    check_seed(seed)
    if not 0 <= held_out <= 0.5:
        raise InvalidInput(f"held-out is {held_out:g}; it must lie between 0 and 0.5")
    if not 0 <= limit <= 1:
        raise InvalidInput(
            f"max-accuracy-loss is {limit:g}; it is a share of the rows, such as 0.01 for one point"
        )
    if result.problem.labels is None:
        raise InvalidInput(
            "the run has no target column, so there are no labels to train on; test the model "
            "again with the target named"
        )
    if not len(result.found):
        raise InvalidInput(
            "the run has no findings to repair with; search longer, or leave the model as it is"
        )
    known = result.problem.labels[result.problem.labels >= 0]
    if len(np.unique(known)) < 2:
        raise BadTable("the target column holds one label only; a model needs both to be trained")


def _labelled(problem: Problem, frame: Frame) -> tuple[Rows, Labels]:
    """Rows and labels of a test frame; rows without a label are left out."""
    given = prepare(
        problem.target.model,
        frame,
        protected=(),
        target=problem.label_column,
        favorable=problem.favorable,
        schema=problem.schema,
    )
    assert given.labels is not None
    known = given.labels >= 0
    return given.rows[known], given.labels[known]


def _blind_to(problem: Problem) -> set[str]:
    """The run's protected columns, and the others that a known table names."""
    known = data.load(problem.table_name).protected if problem.table_name in data.names() else ()
    return {*problem.schema.protected, *known}
