"""One pipeline for all ways to repair: tried over seeds, made to be kept, and checked anew.

Every way is measured on the same rows and people, beside the model as it is. What is kept is made
from all rows, and searched again with a method, a generator and a seed that the run did not use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.result import Result
from limi.decisions import favors
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadModel, InvalidInput
from limi.generators import Generator
from limi.metrics._populations import draw_people
from limi.models.target import Target
from limi.repairs import _verify
from limi.repairs._average import tell_threshold
from limi.repairs._choice import recommend
from limi.repairs._compared import Comparison, Moved, add_moved
from limi.repairs._figures import Figures, over_seeds
from limi.repairs._hands import Hands, hire
from limi.repairs._partner_table import Weights
from limi.repairs._recipes import Training
from limi.repairs._result import Repairs, Tried
from limi.repairs._share import choose_some, keep_share
from limi.repairs._ways import WAYS, Made, choose_strength
from limi.repairs._work import Steps, Work, describe_run
from limi.search.check import check_rows
from limi.streams import Stream
from limi.types import Index, Mask, Rows, Truth

__all__ = ["compare_repairs", "count_steps", "make_repair", "try_out"]

_RATE_ROWS = 5_000
_SEARCH_ROWS = 500
_MOST_QUESTIONS = 15_000  # to the model inside, for one fresh check
_SMALL = {"guided": {"trees": 30}}  # learners that are enough for so few rows
_SEARCH_COST = 2  # of a fresh search, in steps


def compare_repairs(
    result: Result,
    work: Work,
    hows: Sequence[str],
    skipped: Mapping[str, str],
    *,
    can_train: bool,
    hands: Hands | None = None,
    command: str = "",
) -> Repairs:
    """Try these ways, over seeds and then for keeps, and recommend one."""
    run = result.summary
    people = _draw_people(work, run.generator)
    inquiry, failed = _Inquiry(work, people, can_train).with_strength(hows)
    trials = inquiry.try_seeds([how for how in hows if how not in failed], hands)
    for trial in trials:
        failed = dict(trial.failed) | failed
    able = [how for how in hows if how not in failed]
    if not able:
        raise next(iter(failed.values()))
    # Where nothing can flip any more the usual generator will do: others take longer to import
    # than all the rest.
    light = all(WAYS[how].exact for how in able)
    fresh = _verify.Fresh.beside(run.method, run.generator, run.seed, light=light)
    judge = _Judge.prepare(work, fresh)
    concluded = [inquiry.conclude(how, trials, judge) for how in able]
    tried, recommended, close = recommend(concluded, work.settings.max_accuracy_loss, work.terms)
    return Repairs(
        work.problem,
        _join([trial.before for trial in trials]),
        tuple(tried),
        recommended,
        {**skipped, **{how: str(error) for how, error in failed.items()}},
        work.groups,
        inquiry.describe_settings(able),
        describe_run(result),
        fresh,
        command,
        close,
    )


def try_out(work: Work, how: str, people: Comparison, place: int) -> tuple[Figures, Figures]:
    """The figures of one seed, before a repair and after; what cannot be done is an error."""
    _require(work, how)
    trial = _Inquiry(work, people, can_train=True).try_out([how], place)
    if how in trial.failed:
        raise trial.failed[how]
    return trial.before, trial.after[how].figures


def make_repair(work: Work, how: str) -> Made:
    """The repaired model, made from every row; what cannot be done is an error."""
    _require(work, how)
    return WAYS[how].timed(work, work.problem.target, work.training(work.known), 0)


def _require(work: Work, how: str) -> None:
    why = WAYS[how].why_not(work)
    if why:
        raise InvalidInput(why)


def count_steps(hows: Sequence[str], rounds: int) -> int:
    """Of a comparison of these ways, with so many trials."""
    each = sum(WAYS[how].cost for how in hows)
    strength = 1 + WAYS["pairs"].cost if "pairs" in hows else 0
    return 1 + strength + rounds * (1 + each) + _SEARCH_COST * (1 + len(hows)) + each


def _draw_people(work: Work, used: str | None) -> Comparison:
    """The people that all models are asked about; `used` is the run's generator."""
    work.steps.next("drawing people to measure on")
    name = used if used in _verify.quick_generators() else DEFAULT_GENERATOR
    generator = _verify.fit_again(name, work.problem, work.seed + _verify.FRESH_SEED)
    rng = Stream.REPAIR_YARDSTICK.rng(work.seed)
    return Comparison.make(work.problem, work.groups, generator, _RATE_ROWS, rng)


@dataclass(frozen=True)
class _Measured:
    """A repair by one seed."""

    figures: Figures
    right: NDArray[np.float64]  # what each answer earns, see `Terms.credit`
    moved: Sequence[Moved]
    seconds: float
    threshold: float | None  # that would keep the share of favorable decisions


@dataclass(frozen=True)
class _Trial:
    """One seed: the model as before, and each repair of it."""

    before: Figures
    right: NDArray[np.float64]
    places: Index
    after: Mapping[str, _Measured]
    failed: Mapping[str, BadModel]  # ways that broke


@dataclass(frozen=True)
class _Inquiry:
    """What repairs start from, and on whom they are measured."""

    work: Work
    people: Comparison
    can_train: bool

    @property
    def seeds(self) -> int:
        """One, where nothing can be trained: every seed would measure the same model."""
        return self.work.settings.seeds if self.can_train else 1

    def with_strength(self, hows: Sequence[str]) -> tuple[_Inquiry, dict[str, BadModel]]:
        """The same with the strength of the penalty on pairs, chosen on the first seed's rows; or
        with the error where choosing it breaks."""
        if "pairs" not in hows:
            return self, {}
        work = self.work
        work.steps.next("choosing the strength of pairs", 1 + WAYS["pairs"].cost)
        training, *_ = self._split(0)
        try:
            strength = choose_strength(work, self._train_plain(training, 0), training)
        except BadModel as error:
            return self, {"pairs": error}
        return replace(self, work=replace(work, strength=strength)), {}

    def try_seeds(self, hows: Sequence[str], hands: Hands | None) -> list[_Trial]:
        """Every seed, here or by workers with the same results."""
        if hands is None:
            trials: list[_Trial] = []
            for place in range(self.seeds):
                broken = {how for trial in trials for how in trial.failed}
                trials.append(self.try_out([how for how in hows if how not in broken], place))
            return trials
        steps, brought = self.work.steps, dict[int, _Trial]()
        alone = replace(self, work=replace(self.work, steps=Steps(1)))
        cost = 1 + sum(WAYS[how].cost for how in hows)
        with hire(hands, self.work.problem, _try_seed, (alone, hows)) as each:
            for place, trial in each(range(self.seeds)):
                if isinstance(trial, BaseException):
                    raise trial
                brought[place] = trial
                steps.note(f"seed {place}: trained and measured", cost)
        return [brought[place] for place in sorted(brought)]

    def try_out(self, hows: Sequence[str], place: int) -> _Trial:
        """The model as before and each repair of it, on the rows that this seed holds out.

        A way that breaks is left out, as long as there are others to compare.
        """
        work = self.work
        training, rows, truth, places = self._split(place)
        work.steps.next(f"seed {place}: training as before")
        plain = self._train_plain(training, place)
        answers = plain.score(rows)
        before = self.people.figures(plain, rows, truth, 1, answers)
        after: dict[str, _Measured] = {}
        failed: dict[str, BadModel] = {}
        for how in hows:
            work.steps.next(f"seed {place}: {how}", WAYS[how].cost)
            try:
                made = WAYS[how].timed(work, plain, training, place)
            except BadModel as error:
                failed[how] = error
                continue
            after[how] = self._measure(made, rows, truth, answers, place)
        return _Trial(before, work.terms.credit(answers, truth), places, after, failed)

    def _measure(
        self, made: Made, rows: Rows, truth: Truth, answers: NDArray[np.float64], place: int
    ) -> _Measured:
        work, threshold = self.work, None
        now = made.target.score(rows)
        if made.remade is not None and work.terms.is_sided:
            some = choose_some(len(rows), Stream.REPAIR_HELD_OUT.rng(work.seed, place, 1))
            threshold = keep_share(now[some], int(favors(answers)[some].sum()))
            made = self._move(made, threshold)
            now = made.target.score(rows) if self._moves else now
        return _Measured(
            self.people.figures(made.target, rows, truth, made.asked, now),
            work.terms.credit(now, truth),
            self.people.moved(rows, answers, now),
            made.seconds,
            threshold,
        )

    def _train_plain(self, training: Training, place: int) -> Target:
        """The model as before, of these rows alone where it can be trained again."""
        if not self.can_train:
            return self.work.problem.target
        return self.work.refit(training.rows, training.labels, self.work.seed + place).target

    def _move(self, made: Made, threshold: float | None) -> Made:
        """The same, at the threshold that keeps the share where that was asked for."""
        return made.decide_above(threshold) if self._moves and threshold is not None else made

    @property
    def _moves(self) -> bool:
        return self.work.settings.averaging.same_share

    def _split(self, place: int) -> tuple[Training, Rows, Truth, Index]:
        """Rows to train on, and those to measure on with their labels and places."""
        work, problem = self.work, self.work.problem
        trained, held = work.split(place) if self.can_train else (work.known, work.known[:0])
        training = work.training(trained)
        if work.test is not None:
            rows, labels = work.test
            return training, rows, labels, np.arange(len(labels))
        unseen = held if len(held) else trained
        return training, problem.rows[unseen], work.labels[unseen], unseen

    def conclude(self, how: str, trials: Sequence[_Trial], judge: _Judge) -> Tried:
        """The repair for keeps, made from all rows, checked by other means, and the verdict."""
        work = self.work
        work.steps.next(f"{how}, for keeps", WAYS[how].cost + _SEARCH_COST)
        each = [trial.after[how] for trial in trials]
        limits = [one.threshold for one in each if one.threshold is not None]
        threshold = float(np.median(limits)) if limits else None
        made = self._move(make_repair(work, how), threshold)
        checks = judge.check(made)
        before, figures = _join([t.before for t in trials]), _join([one.figures for one in each])
        unseen = self.can_train and bool(work.settings.held_out)
        loss = _verify.Loss.of(
            np.concatenate([trial.right for trial in trials]),
            np.concatenate([one.right for one in each]),
            "held-out" if unseen or work.test is not None else "training",
            np.concatenate([trial.places for trial in trials]),
        )
        return Tried(
            how,
            figures,
            loss,
            tuple(checks),
            self._verdict(how, checks, loss, before, figures),
            add_moved([one.moved for one in each]),
            made.asked,
            float(np.mean([one.seconds for one in each])),
            threshold=None if threshold is None else tell_threshold(work.problem.target, threshold),
            made=made,
        )

    def _verdict(
        self,
        how: str,
        checks: list[_verify.Check],
        loss: _verify.Loss,
        before: Figures,
        after: Figures,
    ) -> _verify.Verdict:
        most = self.work.settings.max_accuracy_loss
        people = checks[-1]
        if not WAYS[how].exact or any(check.after for check in checks):
            return _verify.judge(
                checks,
                loss,
                before,
                after,
                max_accuracy_loss=most,
                terms=self.work.terms,
            )
        if not any(check.before for check in checks):
            return _verify.Verdict(
                "unchanged",
                f"none of {people.rows:,} fresh people flipped before, so there is nothing to "
                "remove",
            )
        columns = " or ".join(self.work.problem.schema.protected)
        flips = _verify.Verdict(
            "removed",
            f"by construction no decision depends on {columns}, and none of {people.rows:,} fresh "
            f"people flips, of whom {people.before:,} did",
        )
        if loss.value <= most:
            return flips
        return _verify.Verdict(
            "too costly" if loss.low > most else "inconclusive",
            f"{self.work.terms.tell_excess(loss.value, loss.on, most)} (flips are removed by "
            "construction)",
            flips="removed",
        )

    def describe_settings(self, able: Sequence[str]) -> dict[str, Any]:
        """For JSON."""
        work, settings = self.work, self.work.settings
        return {
            "how": list(able),
            "preset": settings.preset,
            "recipe": settings.mixing.recipe,
            "label": settings.mixing.label,
            "fraction": settings.mixing.fraction,
            "seeds": self.seeds,
            "seed": settings.seed,
            "held_out": None if work.test is not None else settings.held_out,
            "measured_on": settings.measured_on,
            "trained_again": self.can_train,
            "max_accuracy_loss": settings.max_accuracy_loss,
            "loss_scale": work.terms.scale,
            "trained_by": work.refit.words if self.can_train else "",
            "rows": len(work.problem.rows),
            "weights": _describe_weights(settings.averaging.weights),
            "scale": settings.averaging.scale,
            "same_share": settings.averaging.same_share,
            "kept": self.people.kept,
        }


def _try_seed(given: tuple[_Inquiry, Sequence[str]], place: int) -> _Trial:
    """A job in a worker."""
    inquiry, hows = given
    return inquiry.try_out(hows, place)


@dataclass(frozen=True)
class _Judge:
    """Fresh means, and what the original model does under them."""

    work: Work
    fresh: _verify.Fresh
    generator: Generator
    people: Rows
    flips: Mask  # of the people, by the original
    searches: dict[int, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def prepare(work: Work, fresh: _verify.Fresh) -> _Judge:
        """Fresh people, asked about once for all repairs."""
        problem = work.problem
        work.steps.next(f"fitting {fresh.generator} for fresh checks", _SEARCH_COST)
        generator = _verify.fit_again(fresh.generator, problem, fresh.seed)
        rng = Stream.REPAIR_CHECK.rng(work.seed)
        n = max(1, min(_RATE_ROWS, _MOST_QUESTIONS // len(problem.schema.combinations)))
        people, _ = draw_people("natural", n, rng, problem.schema, generator)
        rule = problem.target.rule
        flips = check_rows(problem.target.score, problem.schema, people, decision=rule).flips
        return _Judge(work, fresh, generator, people, flips)

    def check(self, made: Made) -> list[_verify.Check]:
        """A fresh search and fresh people, before and after."""
        schema, fresh = self.work.problem.schema, self.fresh
        most = max(1, _MOST_QUESTIONS // (len(schema.combinations) * made.asked))
        words = _verify.words_of_search(fresh.method, self.generator, fresh.seed)
        rows = min(_SEARCH_ROWS, most)
        after = self._search(made.target, rows)
        search = _verify.compare_searches(self._search_original(rows), after, words)
        n = min(len(self.people), most)
        had = self.flips[:n]
        rule = self.work.terms.rule
        has = check_rows(made.target.score, schema, self.people[:n], decision=rule).flips
        people = _verify.Check(
            "people",
            f"fresh people of {fresh.generator}",
            n,
            int(had.sum()),
            int(has.sum()),
            gone=int((had & ~has).sum()),
            new=int((has & ~had).sum()),
        )
        return [search, people]

    def _search_original(self, rows: int) -> tuple[int, int]:
        if rows not in self.searches:
            self.searches[rows] = self._search(self.work.problem.target, rows)
        return self.searches[rows]

    def _search(self, target: Target, rows: int) -> tuple[int, int]:
        return _verify.search_one(
            self.work.problem,
            target,
            method=self.fresh.method,
            generator=self.generator,
            rows=rows,
            seed=self.fresh.seed,
            settings=_SMALL.get(self.fresh.method),
        )


def _describe_weights(weights: Weights) -> Any:
    """For JSON, in which every value is text."""
    if isinstance(weights, str):
        return weights
    return {name: {str(v): share for v, share in of.items()} for name, of in weights.items()}


def _join(each: Sequence[Figures]) -> Figures:
    return {name: over_seeds([one[name] for one in each]) for name in each[0]}
