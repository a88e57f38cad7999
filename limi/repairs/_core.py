"""The work of a repair: choose findings, label, mix, train again, measure, verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from limi import data
from limi.audits.problem import HeldOut, Problem, prepare, with_held_out
from limi.audits.result import Result
from limi.decisions import favors
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadTable, InvalidInput, spell
from limi.metrics._populations import draw_people
from limi.metrics.collect import counts_by_column
from limi.metrics.privileged import Privileged, parse
from limi.metrics.rates import measurable_rows
from limi.models.target import Target
from limi.repairs import _ensemble, _recipes, _verify
from limi.repairs._compared import Moved, add_moved, count_moved
from limi.repairs._figures import (
    MOST_QUERIES,
    Blinded,
    Figures,
    RepairGroups,
    Scorer,
    Yardstick,
    groups,
    over_seeds,
)
from limi.repairs._hands import Hands, hire, pack_trained, take_trained
from limi.repairs._labels import Policy
from limi.repairs._mixing import MixedTable, mix_rows, n_findings
from limi.repairs._refit import Fit, Fitted, Recorded, Refit, refit_of
from limi.repairs._result import Point, Repair
from limi.repairs._settings import Settings, check_run, choose_preset, choose_swept
from limi.repairs._terms import Terms
from limi.search.findings import Found
from limi.streams import Stream
from limi.system import cores
from limi.table.frames import Frame
from limi.twins import Groups, find_groups
from limi.types import Index, Mask, Rows, Scores, Truth

__all__ = [
    "OnStep",
    "Steps",
    "Work",
    "compare_groups",
    "describe_run",
    "known_labels",
    "label_test",
    "repair_with_findings",
]

_RATE_ROWS = 20_000
_SEARCH_ROWS = 5_000

OnStep = Callable[[float, str], None]

_Checked = tuple[_verify.Check, list[_verify.Check]]
"""The run's own findings asked again, and checks by other means."""


@cores.share_cores()
def repair_with_findings(
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
    measured_on: str = "",
    tested: tuple[Rows, Truth] | None = None,
    privileged: Privileged = (),
    max_accuracy_loss: float = 0.01,
    sweep: bool | Sequence[float] = False,
    hands: Hands | None = None,
    command: str = "",
    on_step: OnStep = lambda done, words: None,
) -> Repair:
    """Train an audited model again with its findings, and judge by fresh checks whether it helped.

    `preset` is `"best"`, `"strong"` for narrower group gaps at more accuracy lost, or `"paper"` for
    the paper's recipe; `recipe`, `label` and `fraction` (findings added, as a share of the rows
    trained on) replace what it says. `fit` is a function of a frame and its labels that returns a
    fitted model; scikit-learn estimators need none. `privileged` states
    whose decisions the others' are compared with, as `"sex=Male"`.

    Each of the seeds holds out other rows (or measures on `tested`, rows with labels), and trains
    on the rest without and with the findings. The model that is kept is trained on all rows.
    `held_out=0` trains on everything, as the paper does.
    """
    mixing = choose_preset(preset, recipe=recipe, label=label, fraction=fraction)
    settings = Settings(
        preset,
        mixing,
        seeds=seeds,
        seed=seed,
        held_out=held_out,
        max_accuracy_loss=max_accuracy_loss,
        swept=choose_swept(sweep, mixing.fraction),
        measured_on=measured_on,
    )
    check_run(result)
    compared, codes = compare_groups(result, settings, privileged)
    work = Work(
        problem=result.problem,
        found=result.found,
        settings=settings,
        refit=refit_of(result.problem, fit),
        groups=compared,
        codes=codes,
        test=tested,
        steps=Steps((3 + len(settings.swept)) * seeds + 4, on_step),
    )
    run = result.summary
    fresh = _verify.Fresh.beside(run.method, run.generator, run.seed)
    yardstick = work.make_yardstick(run.generator)
    if hands is None:
        trials = [work.try_out(yardstick, place) for place in range(seeds)]
        kept = work.train_final()
        checked = work.check_anew(kept[0].target, fresh)
    else:
        trials, kept, checked = _share_out(work, yardstick, fresh, hands)
    figures = _OverSeeds.of(trials)
    return _conclude(
        work, figures, result, fresh, kept, checked, swept=bool(sweep), command=command
    )


@dataclass(frozen=True)
class _Room:
    """What a worker keeps from job to job."""

    work: Work
    yardstick: Yardstick
    fresh: _verify.Fresh


def _do(room: _Room, place: int | None) -> Any:
    """A job in a worker: a seed, or the model that is kept."""
    if place is not None:
        return room.work.try_out(room.yardstick, place)
    recorded = Recorded(room.work.refit)
    fitted, _ = replace(room.work, refit=recorded).train_final()
    return pack_trained(recorded), room.work.check_anew(fitted.target, room.fresh)


def _share_out(
    work: Work, yardstick: Yardstick, fresh: _verify.Fresh, hands: Hands
) -> tuple[list[_Trial], tuple[Fitted, MixedTable], _Checked]:
    """The seeds, and the model that is kept, by workers; the same as one after the other."""
    room = _Room(replace(work, steps=Steps(1)), yardstick, fresh)
    seeds = range(work.settings.seeds)
    brought: dict[int | None, Any] = {}
    with hire(hands, work.problem, _do, room) as each:
        for place, result in each([*seeds, None]):
            if isinstance(result, BaseException):
                raise result
            brought[place] = result
            if place is None:
                work.steps.note("the model that is kept: trained and checked", 3)
            else:
                work.steps.note(f"seed {place}: trained and measured", 3 + len(work.settings.swept))
    message, checked = brought[None]
    again = replace(work, refit=take_trained(message, work.refit, work.problem), steps=Steps(1))
    return [brought[place] for place in seeds], again.train_final(), checked


def compare_groups(
    result: Result, settings: Settings, privileged: Privileged
) -> tuple[RepairGroups, Mapping[str, float]]:
    """The groups to compare, and the privileged values where findings are labelled by them."""
    problem = result.problem
    if problem.target.rule.kind == "favorable":
        compared = groups(problem, privileged, counts_by_column(result.summary.all_metrics))
    else:  # nobody is privileged unless it is stated: groups are compared with each other
        compared = RepairGroups(
            parse(problem.schema, privileged) if privileged else {}, "as stated"
        )
    if settings.mixing.label != "privileged":
        return compared, {}
    if not privileged:
        column = problem.schema[problem.schema.protected[0]]
        raise InvalidInput(
            "the label 'privileged' needs the privileged values; name them, for example "
            f"--privileged {column.name}={column.show(problem.schema.protected_codes[0][0])}"
        )
    # Looked up now, so that an hour's work does not end in a refusal.
    return compared, compared.codes(problem.schema)


def _conclude(
    work: Work,
    figures: _OverSeeds,
    result: Result,
    fresh: _verify.Fresh,
    kept: tuple[Fitted, MixedTable],
    checked: _Checked,
    *,
    swept: bool,
    command: str,
) -> Repair:
    """Judge the model that is kept."""
    settings = work.settings
    (fitted, mix), (own, checks) = kept, checked
    verdict = _verify.judge(
        checks,
        own,
        figures.loss,
        figures.before,
        figures.after,
        max_accuracy_loss=settings.max_accuracy_loss,
    )
    return Repair(
        problem=work.problem,
        before=figures.before,
        after=figures.after,
        blind=figures.blind,
        verdict=verdict,
        loss=figures.loss,
        checks=tuple(checks),
        own=own,
        groups=work.groups,
        settings=_describe_settings(work, mix),
        run=describe_run(result),
        how=work.refit.words,
        fresh=fresh,
        fitted=fitted,
        added=(mix.rows[len(work.known) :], mix.labels[len(work.known) :]),
        front=figures.front(settings) if swept else (),
        moved=figures.moved,
        command=command,
    )


def _describe_settings(work: Work, mix: MixedTable) -> dict[str, Any]:
    """What was asked for, and what came of it, for JSON."""
    settings, mixing = work.settings, work.settings.mixing
    too_few = n_findings(mixing.fraction, len(work.known)) > len(work.found)
    return {
        "preset": settings.preset,
        "recipe": mixing.recipe,
        "label": mixing.label,
        "fraction": mixing.fraction,
        "findings_used": mix.findings,
        "findings_drawn_twice": bool(mix.findings) and (mixing.replace or too_few),
        "seeds": settings.seeds,
        "seed": settings.seed,
        "held_out": None if work.test is not None else settings.held_out,
        "measured_on": settings.measured_on,
        "max_accuracy_loss": settings.max_accuracy_loss,
    }


def describe_run(result: Result) -> dict[str, Any]:
    """What the findings come from, for JSON."""
    problem, run = result.problem, result.summary
    return {
        "table": problem.table_name,
        "model": problem.model_name,
        "protected": dict(run.protected),
        "target": problem.label_column,
        "favorable": problem.favorable,
        "favorable_name": run.favorable,
        "decision": run.decision,
        "kind": run.kind,
        "ordered": run.ordered,
        "method": run.method,
        "generator": run.generator,
        "seed": run.seed,
        "findings": len(result.found),
        **problem.hashes(),
    }


def _tell_nobody(done: float, words: str) -> None:
    """Of work in another process, whose steps its parent tells."""


@dataclass
class Steps:
    """Tells how far the work is."""

    total: int
    on_step: OnStep = _tell_nobody
    done: int = 0

    def note(self, words: str, cost: int) -> None:
        """Say what is done, which took so many of the usual steps."""
        self.done += cost
        self.on_step(min(1.0, self.done / self.total), words)

    def next(self, words: str, cost: int = 1) -> None:
        """Say what comes next, and how many of the usual steps it takes."""
        self.on_step(min(1.0, self.done / self.total), words)
        self.done += cost


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
    moved: Sequence[Moved]  # of their people, whose decision is another with findings


@dataclass(frozen=True)
class _OverSeeds:
    """The trials of all seeds, joined."""

    before: Figures
    after: Figures
    blind: Figures
    swept: tuple[Figures, ...]
    loss: _verify.Loss
    moved: tuple[Moved, ...]

    @staticmethod
    def of(trials: Sequence[_Trial]) -> _OverSeeds:
        """Means and intervals over seeds."""
        before = _join([one.before for one in trials])
        loss = _verify.Loss.of(
            np.concatenate([one.right for one in trials]),
            np.concatenate([one.right_after for one in trials]),
            "training" if before["accuracy"].value is None else "held-out",
            np.concatenate([one.places for one in trials]),
        )
        return _OverSeeds(
            before,
            after=_join([one.after for one in trials]),
            blind=_join([one.blind for one in trials]),
            swept=tuple(_join(each) for each in zip(*(one.swept for one in trials), strict=True)),
            loss=loss,
            moved=add_moved([one.moved for one in trials]),
        )

    def front(self, settings: Settings) -> tuple[Point, ...]:
        """Every fraction tried, from none to the largest."""
        points = [
            Point(0.0, self.before),
            *map(Point, settings.swept, self.swept),
            Point(settings.mixing.fraction, self.after),
        ]
        return tuple(sorted(points, key=lambda point: point.fraction))


@dataclass(frozen=True)
class Work:
    """One repair: what it starts from, and how it is done."""

    problem: Problem
    found: Found
    settings: Settings
    refit: Refit
    groups: RepairGroups
    codes: Mapping[str, float]  # the privileged values, where findings are labelled by them
    test: tuple[Rows, Truth] | None
    steps: Steps = field(repr=False)
    memory: dict[str, Any] = field(default_factory=dict, repr=False)  # what was settled on the way

    @cached_property
    def terms(self) -> Terms:
        """What is right, and what is lost."""
        return Terms.of(self.problem)

    @property
    def labels(self) -> Truth:
        """The table's labels; of other kinds its classes or numbers, as answers of the rule."""
        truth = self.problem.labels if self.terms.is_sided else self.problem.truth
        assert truth is not None
        return truth

    @property
    def known(self) -> Index:
        """Rows whose label is known."""
        return self.terms.find_known(self.labels)

    @property
    def seed(self) -> int:
        """Where all randomness of the repair comes from."""
        return self.settings.seed

    def make_yardstick(self, used: str | None) -> Yardstick:
        """Rows to measure on, from streams of their own; `used` is the run's generator."""
        self.steps.next("drawing people to measure on")
        name = used if used in _verify.quick_generators() else DEFAULT_GENERATOR
        generator = _verify.fit_again(name, self.problem, self.seed + _verify.FRESH_SEED)
        rng = Stream.REPAIR_YARDSTICK.rng(self.seed)
        return Yardstick.make(self.problem, self.groups, generator, _RATE_ROWS, rng)

    def try_out(self, yardstick: Yardstick, place: int) -> _Trial:
        """Train without and with findings on the rows that are not held out by this seed."""
        trained, held = self.split(place)
        told = f"seed {place}"
        training = self.training(trained)
        unseen = held if len(held) else trained
        rows, truth = self.test or (self.problem.rows[unseen], self.labels[unseen])

        def measure(target: Scorer) -> tuple[Figures, Scores]:
            return yardstick.figures(target, trained, held, self.test), target.score(rows)

        self.steps.next(f"{told}: training as before")
        plain = self.refit(training.rows, training.labels, self.seed + place)
        before, answers = measure(plain.target)
        self.steps.next(f"{told}: training without {spell(self.problem.schema.protected)}")
        blind, _ = measure(self._blind(training, place))
        (after, answers_after), *swept = (
            self._mixed(plain.target, training, place, fraction, told, measure)
            for fraction in (self.settings.mixing.fraction, *self.settings.swept)
        )
        places = unseen if self.test is None else np.arange(len(self.test[1]))
        figures = tuple(figures for figures, _ in swept)
        right, right_after = (favors(a) == (truth == 1) for a in (answers, answers_after))
        moved = count_moved(
            self.terms, self.problem.schema, self._people, self.groups, rows, answers, answers_after
        )
        return _Trial(before, after, blind, figures, right, right_after, places, moved)

    @cached_property
    def _people(self) -> Groups | None:
        """The groups by which gains and losses are reported; None where they are too small."""
        try:
            return find_groups(self.problem.schema, self.problem.rows)
        except InvalidInput:
            return None

    def _mixed(
        self,
        voter: Target,
        training: _recipes.Training,
        place: int,
        fraction: float,
        told: str,
        measure: Callable[[Scorer], tuple[Figures, Scores]],
    ) -> tuple[Figures, Scores]:
        self.steps.next(f"{told}: training with {fraction:.0%} of findings")
        mix = self.mix(voter, training, place, fraction)
        return measure(self.refit(mix.rows, mix.labels, self.seed + place).target)

    def _blind(self, training: _recipes.Training, place: int) -> Blinded:
        """The same model trained without the protected columns: what any repair must beat."""
        schema = training.schema
        cells = Blinded.usual(schema, training.rows)
        hidden = Blinded.hide(schema, training.rows, cells)
        fitted = self.refit(hidden, training.labels, self.seed + place)
        return Blinded(fitted.target, schema, cells)

    def train_final(self) -> tuple[Fitted, MixedTable]:
        """The model that is kept: trained on every row, with findings that the original labels."""
        self.steps.next("training the model that is kept")
        training = self.training(self.known)
        mix = self.mix(self.problem.target, training, 0, self.settings.mixing.fraction)
        return self.refit(mix.rows, mix.labels, self.seed), mix

    def check_anew(self, after: Target, fresh: _verify.Fresh) -> _Checked:
        """The run's own findings again, and checks of both models by other means."""
        problem, original = self.problem, self.problem.target
        self.steps.next(f"fitting {fresh.generator} for fresh checks")
        other = _verify.fit_again(fresh.generator, problem, fresh.seed)
        self.steps.next(f"searching both models again with {fresh.method}")
        most = max(1, measurable_rows(problem.schema, 1, MOST_QUERIES))
        search = _verify.search_again(
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
        people, _ = draw_people("natural", n, rng, problem.schema, other)
        checks = [
            search,
            _verify.ask(
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
        own = _verify.ask("own", "the run's own findings", problem.schema, some, original, after)
        return own, checks

    def training(self, index: Index) -> _recipes.Training:
        """Some of the table's rows, to train on."""
        return _recipes.Training(self.problem.schema, self.problem.rows[index], self.labels[index])

    def mix(
        self, voter: Target, training: _recipes.Training, place: int, fraction: float
    ) -> MixedTable:
        """Training rows with findings that a model labels."""
        return mix_rows(
            replace(self.settings.mixing, fraction=fraction),
            training,
            self.found,
            voter.score,
            ensemble=lambda: self._ensemble(training),
            privileged=self.codes,
            rng=Stream.REPAIR_MIX.rng(self.seed, place),
            decision=self.terms.rule,
        )

    def _ensemble(self, training: _recipes.Training) -> _ensemble.Ensemble:
        return _ensemble.fit(
            training.rows, training.labels, training.schema, blind_to=_blind_to(self.problem)
        )

    def split(self, place: int) -> tuple[Index, Index]:
        """Rows to train on and rows held out, all classes in the table's proportion."""
        if self.test is not None or not self.settings.held_out:
            return self.known, np.empty(0, dtype=np.intp)
        rng = Stream.REPAIR_HELD_OUT.rng(self.seed, place)
        held = []
        for part in self._strata():
            mine = rng.permutation(part)
            held.append(mine[: round(self.settings.held_out * len(mine))])
        out = np.sort(np.concatenate(held))
        return np.setdiff1d(self.known, out), out

    def _strata(self) -> list[Index]:
        """Rows by label; numbers are not told apart."""
        if self.terms.rule.kind == "number":
            return [self.known]
        return [
            np.flatnonzero(self.labels == label) for label in np.unique(self.labels[self.known])
        ]


def _join(each: Sequence[Figures]) -> Figures:
    return {name: over_seeds([one[name] for one in each]) for name in each[0]}


def label_test(problem: Problem, frame: Frame) -> tuple[Rows, Truth]:
    """Rows and labels of a test frame; rows without a label are left out."""
    rule = problem.target.rule
    if rule.kind == "favorable":
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
    held = with_held_out(problem, frame, "the test table").held_out
    assert held is not None
    labelled = known_labels(problem, held)
    if labelled is None:
        raise BadTable(f"the test table has no target column {problem.label_column!r}")
    return labelled


def known_labels(problem: Problem, held: HeldOut) -> tuple[Rows, Truth] | None:
    """Held-out rows whose label is known, with their labels; None where there are none."""
    truth = held.labels if problem.target.rule.kind == "favorable" else held.truth
    if truth is None:
        return None
    known = Terms(problem.target.rule).find_known(truth)
    return (held.rows[known], truth[known]) if len(known) else None


def _blind_to(problem: Problem) -> set[str]:
    """The run's protected columns, and the others that a known table names."""
    known = data.load(problem.table_name).protected if problem.table_name in data.names() else ()
    return {*problem.schema.protected, *known}
