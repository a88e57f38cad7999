"""Repairs side by side: every way that a model allows, measured alike and searched again alike."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.drafts import Draft
from limi.audits.problem import Problem
from limi.audits.result import Result
from limi.audits.run_folder import versions
from limi.decisions import favors
from limi.defaults import DEFAULT_GENERATOR
from limi.errors import BadModel, InvalidInput, spell
from limi.generators import Generator
from limi.metrics._populations import draw_people
from limi.metrics.individual import rate_of
from limi.metrics.what_if import mcnemar
from limi.models.target import Target
from limi.repairs import _shipping, _verify
from limi.repairs._average import tell_threshold
from limi.repairs._compared import Comparison, Moved, add_moved, describe
from limi.repairs._core import Steps, Work, describe_run
from limi.repairs._figures import Figures, RepairGroups, over_seeds
from limi.repairs._hands import Hands, hire, pack_trained, take_trained
from limi.repairs._partner_table import Weights
from limi.repairs._recipes import Training
from limi.repairs._refit import Recorded
from limi.repairs._share import choose_some, keep_share
from limi.repairs._terms import Terms
from limi.repairs._ways import WAYS, Made, choose_strength
from limi.search.check import check_rows
from limi.streams import Stream
from limi.system.shown import to_json
from limi.system.writing import Content
from limi.types import Index, Mask, Rows, Truth

__all__ = ["Repairs", "Tried", "compare_repairs", "count_steps", "make_repair", "try_out"]

FORMAT = 2

_RATE_ROWS = 5_000
_SEARCH_ROWS = 500
_MOST_QUESTIONS = 15_000  # to the model inside, for one fresh check
_SMALL = {"guided": {"trees": 30}}  # learners that are enough for so few rows
_SEARCH_COST = 2  # of a fresh search, in steps
_SAME_ACCURACY = 0.001  # losses that lie nearer than this count as equal


@dataclass(frozen=True)
class Tried:
    """One repair, with the evidence for and against it."""

    how: str
    figures: Figures
    loss: _verify.Loss
    checks: tuple[_verify.Check, ...]
    verdict: _verify.Verdict
    moved: tuple[Moved, ...]
    asked: int  # questions to the model inside for one answer
    seconds: float  # to make it
    why: str = ""  # it is the one to take, or is not
    threshold: float | None = None  # that keeps the share of favorable decisions
    made: Made = field(default=None, repr=False)  # type: ignore[assignment]

    @property
    def people(self) -> _verify.Check:
        """The fresh people that both models were asked about."""
        return self.checks[-1]

    def _share(self) -> dict[str, Any]:
        """What became of the share of favorable decisions, and which threshold keeps it."""
        gained = sum(one.gained for one in self.moved)
        lost = sum(one.lost for one in self.moved)
        return {
            "gained": gained,
            "lost": lost,
            "p_value": float(f"{float(mcnemar(gained, lost)):.3g}"),
            "threshold_to_keep_it": None if self.threshold is None else round(self.threshold, 6),
            "was_moved": self.made.threshold is not None,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "how": self.how,
            "words": WAYS[self.how].words,
            "verdict": str(self.verdict),
            "why": self.why,
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "accuracy_loss": self.loss.as_dict(),
            "checks": [check.as_dict() for check in self.checks],
            "moved": describe(self.moved),
            "share": self._share(),
            "questions_per_answer": self.asked,
            "seconds": round(self.seconds, 3),
            "notes": list(self.made.notes),
        }


@dataclass(frozen=True)
class Repairs:
    """Repairs of one model, side by side, and which of them to take."""

    problem: Problem
    before: Figures
    tried: tuple[Tried, ...]
    recommended: str | None
    skipped: Mapping[str, str]  # ways that the model does not allow, and why
    groups: RepairGroups
    settings: Mapping[str, Any]
    run: Mapping[str, Any]
    fresh: _verify.Fresh
    command: str = ""
    close: tuple[str, ...] = ()  # ways that cannot be told from the recommended one

    def __getitem__(self, how: str) -> Tried:
        for one in self.tried:
            if one.how == how:
                return one
        why = self.skipped.get(how, f"these were tried: {spell(one.how for one in self.tried)}")
        raise InvalidInput(f"the repair {how!r} was not tried: {why}")

    @property
    def best(self) -> Tried | None:
        """The repair to take; None where none is good enough."""
        return None if self.recommended is None else self[self.recommended]

    @property
    def model(self) -> Any:
        """The repaired model to take, as an estimator, a benchmark model or a function; the only
        one that was tried where none is recommended."""
        best = self.best or (self.tried[0] if len(self.tried) == 1 else None)
        return None if best is None else best.made.native

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": FORMAT,
            "recommended": self.recommended,
            "close": list(self.close),
            "verdict": "none recommended" if self.best is None else str(self.best.verdict),
            "before": {name: figure.as_dict() for name, figure in self.before.items()},
            "tried": [one.as_dict() for one in self.tried],
            "skipped": dict(self.skipped),
            "fresh": asdict(self.fresh),
            "groups": {"privileged": self.groups.words, "why": self.groups.reason},
            "settings": dict(self.settings),
            "run": dict(self.run),
            "model_files": [],
            "model_notes": [],
            "versions": versions(),
            "date": datetime.date.today().isoformat(),
            "command": self.command,
        }

    def save(
        self, folder: str | Path, *, force: bool = False, model: bool = True, onnx: bool = False
    ) -> Path:
        """Write the model to take, as ONNX too where that is wanted, its card, the report and the
        figures."""
        if onnx:
            _shipping.require_onnx(problem=self.problem)
        with Draft.at(folder, force=force) as draft:
            shipped, notes = self._ship(model=model, onnx=onnx)
            if onnx and _shipping.ONNX not in shipped:
                raise InvalidInput(
                    "; ".join(notes) or "no model is recommended, so none is written"
                )
            self._fill(draft, shipped, notes)
        return Path(folder)

    def write(self, draft: Draft, *, model: bool = True, onnx: bool = False) -> dict[str, Any]:
        """Fill a folder that was begun and put it in its place at once; what `as_dict` gives, with
        the files of the model and notes on those that could not be written."""
        return self._fill(draft, *self._ship(model=model, onnx=onnx))

    def _ship(self, *, model: bool, onnx: bool) -> tuple[dict[str, Content], list[str]]:
        """The files of the model to take, and notes on those that could not be written."""
        best = self.best or (self.tried[0] if len(self.tried) == 1 else None)
        if model and best is not None:
            return _shipping.files(self.problem, best.made, onnx=onnx)
        return {}, ["no ONNX file was written: no model is recommended"] if onnx and model else []

    def _fill(self, draft: Draft, shipped: dict[str, Content], notes: list[str]) -> dict[str, Any]:
        from limi.report import repairs as page

        tree = self.as_dict() | {"model_files": list(shipped), "model_notes": notes}
        files: dict[str, Content] = {
            "repair.json": to_json(tree) + "\n",
            "card.md": page.card(tree),
            "report.html": page.render(tree),
            **shipped,
        }
        draft.finish(files, keep_journal=False)
        return tree

    def __repr__(self) -> str:
        told = ", ".join(f"{one.how}: {one.verdict.word}" for one in self.tried)
        first = self.recommended or "none"
        choice = f"{spell([first, *self.close])} within chance" if self.close else first
        return f"<limi.Repairs: {choice} recommended; {told}>"


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
    inquiry = _Inquiry(work, tuple(hows), can_train)
    run = result.summary
    beside = partial(_verify.Fresh.beside, run.method, run.generator, run.seed)
    comparison = inquiry.draw_people(run.generator)
    if hands is None:
        trials = [inquiry.try_out(comparison, place) for place in range(inquiry.seeds)]
        inquiry.require_able()
        fresh = beside(light=inquiry.is_exact)
        judge = _Judge.prepare(work, fresh)
        kept = {
            how: inquiry.keep(how, inquiry.find_threshold(how, trials), judge)
            for how in inquiry.able
        }
    else:
        trials, fresh, kept = _share_out(inquiry, comparison, beside, hands)
    concluded = [inquiry.conclude(how, trials, *kept[how]) for how in inquiry.able]
    before = _join([trial.before for trial in trials])
    tried, recommended, close = recommend(concluded, work.settings.max_accuracy_loss, work.terms)
    return Repairs(
        work.problem,
        before,
        tuple(tried),
        recommended,
        {**skipped, **{how: str(error) for how, error in inquiry.failed.items()}},
        work.groups,
        inquiry.describe_settings(),
        describe_run(result),
        fresh,
        command,
        close,
    )


def try_out(work: Work, how: str, comparison: Comparison, place: int) -> tuple[Figures, Figures]:
    """The figures of one seed, before a repair and after; what cannot be done is an error."""
    why = WAYS[how].why_not(work)
    if why:
        raise InvalidInput(why)
    inquiry = _Inquiry(work, (how,), can_train=True)
    trial = inquiry.try_out(comparison, place)
    if how in inquiry.failed:
        raise inquiry.failed[how]
    return trial.before, trial.after[how]


def make_repair(work: Work, how: str) -> Made:
    """The repaired model, made from every row; what cannot be done is an error."""
    why = WAYS[how].why_not(work)
    if why:
        raise InvalidInput(why)
    return WAYS[how].timed(work, work.problem.target, work.training(work.known), 0)


def count_steps(hows: Sequence[str], rounds: int) -> int:
    """Of a comparison of these ways, with so many trials."""
    each = sum(WAYS[how].cost for how in hows)
    return 1 + rounds * (1 + each) + _SEARCH_COST * (1 + len(hows)) + each


@dataclass(frozen=True)
class _Trial:
    """One seed: the model as before, and each repair of it."""

    before: Figures
    after: Mapping[str, Figures]
    right: NDArray[np.float64]  # what each answer earns, see `Terms.credit`
    right_after: Mapping[str, NDArray[np.float64]]
    places: Index
    moved: Mapping[str, Sequence[Moved]]
    seconds: Mapping[str, float]
    thresholds: Mapping[str, float]  # that would keep the share of favorable decisions


@dataclass(frozen=True)
class _Inquiry:
    """What is tried, and on what."""

    work: Work
    hows: tuple[str, ...]
    can_train: bool
    failed: dict[str, BadModel] = field(default_factory=dict)  # of several, those that broke

    @property
    def able(self) -> list[str]:
        """The ways that have not failed."""
        return [how for how in self.hows if how not in self.failed]

    def _make(self, how: str, plain: Target, training: Training, place: int) -> Made | None:
        """A repair; None where the model breaks, as long as there are others to compare."""
        try:
            return WAYS[how].timed(self.work, plain, training, place)
        except BadModel as error:
            self.failed[how] = error
            return None

    @property
    def seeds(self) -> int:
        """One, where nothing can be trained: every seed would measure the same model."""
        return self.work.settings.seeds if self.can_train else 1

    def require_able(self) -> None:
        """What broke the ways, where all of them did."""
        if not self.able:
            raise next(iter(self.failed.values()))

    @property
    def is_exact(self) -> bool:
        """Can nothing flip any more? Then the usual generator will do: others take longer to import
        than all the rest."""
        return all(WAYS[how].exact for how in self.able)

    def draw_people(self, used: str | None) -> Comparison:
        """The people that all models are asked about; `used` is the run's generator."""
        work = self.work
        work.steps.next("drawing people to measure on")
        name = used if used in _verify.quick_generators() else DEFAULT_GENERATOR
        generator = _verify.fit_again(name, work.problem, work.seed + _verify.FRESH_SEED)
        rng = Stream.REPAIR_YARDSTICK.rng(work.seed)
        comparison = Comparison.make(work.problem, work.groups, generator, _RATE_ROWS, rng)
        work.memory["kept"] = comparison.kept
        return comparison

    def try_out(self, comparison: Comparison, place: int) -> _Trial:
        """The model as before and each repair of it, on the rows that this seed holds out."""
        work, told = self.work, f"seed {place}"
        training, rows, truth, places = self._split(place)
        work.steps.next(f"{told}: training as before")
        plain = self._train_plain(training, place)
        answers, terms = plain.score(rows), work.terms
        before = comparison.figures(plain, rows, truth, 1, answers)
        after, right, moved, seconds, thresholds = {}, {}, {}, {}, {}
        some = choose_some(len(rows), Stream.REPAIR_HELD_OUT.rng(work.seed, place, 1))
        for how in self.able:
            work.steps.next(f"{told}: {how}", WAYS[how].cost)
            made = self._make(how, plain, training, place)
            if made is None:
                continue
            now = made.target.score(rows)
            if made.remade is not None and terms.is_sided:
                wanted = int(favors(answers)[some].sum())
                thresholds[how] = keep_share(now[some], wanted)
                made = self._move(made, thresholds[how])
                now = made.target.score(rows) if self._moves else now
            after[how] = comparison.figures(made.target, rows, truth, made.asked, now)
            right[how] = terms.credit(now, truth)
            moved[how] = comparison.moved(rows, answers, now)
            seconds[how] = made.seconds
        right_before = terms.credit(answers, truth)
        return _Trial(before, after, right_before, right, places, moved, seconds, thresholds)

    def _train_plain(self, training: Training, place: int) -> Target:
        """The model as before, of these rows alone where it can be trained again."""
        if not self.can_train:
            return self.work.problem.target
        return self.work.refit(training.rows, training.labels, self.work.seed + place).target

    def choose_strength(self) -> float:
        """Of the penalty on pairs, as the first seed chooses it."""
        training, *_ = self._split(0)
        return choose_strength(self.work, self._train_plain(training, 0), training)

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

    def find_threshold(self, how: str, trials: Sequence[_Trial]) -> float | None:
        """That keeps the share of favorable decisions, over the seeds; None where none is moved."""
        if how not in trials[0].thresholds:
            return None
        return float(np.median([trial.thresholds[how] for trial in trials]))

    def make_to_keep(self, how: str, threshold: float | None) -> Made:
        """The repair from all rows."""
        work = self.work
        training = work.training(work.known)
        made = WAYS[how].timed(work, work.problem.target, training, 0)
        return self._move(made, threshold)

    def keep(
        self, how: str, threshold: float | None, judge: _Judge
    ) -> tuple[Made, list[_verify.Check]]:
        """The repair for keeps, checked by other means."""
        self.work.steps.next(f"{how}, for keeps", WAYS[how].cost + _SEARCH_COST)
        made = self.make_to_keep(how, threshold)
        return made, judge.check(made)

    def conclude(
        self, how: str, trials: Sequence[_Trial], made: Made, checks: list[_verify.Check]
    ) -> Tried:
        """The verdict on a repair that is kept."""
        work = self.work
        threshold = self.find_threshold(how, trials)
        before = _join([trial.before for trial in trials])
        figures = _join([trial.after[how] for trial in trials])
        unseen = self.can_train and (work.test is not None or bool(work.settings.held_out))
        loss = _verify.Loss.of(
            np.concatenate([trial.right for trial in trials]),
            np.concatenate([trial.right_after[how] for trial in trials]),
            "held-out" if unseen or work.test is not None else "training",
            np.concatenate([trial.places for trial in trials]),
        )
        return Tried(
            how,
            figures,
            loss,
            tuple(checks),
            self._verdict(how, checks, loss, before, figures),
            add_moved([trial.moved[how] for trial in trials]),
            made.asked,
            float(np.mean([trial.seconds[how] for trial in trials])),
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
                people,
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

    def describe_settings(self) -> dict[str, Any]:
        """For JSON."""
        work, settings = self.work, self.work.settings
        return {
            "how": self.able,
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
            "kept": work.memory["kept"],
        }


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


@dataclass(frozen=True)
class _Job:
    """What a worker is asked for: the strength of a penalty, a seed, or a repair for keeps."""

    place: int | None = None  # of a seed
    how: str = ""  # for keeps
    fresh: _verify.Fresh | None = None  # by which it is checked
    threshold: float | None = None
    strength: float | None = None  # of the penalty on pairs, once it is known


@dataclass(frozen=True)
class _Room:
    """What a worker keeps from job to job."""

    inquiry: _Inquiry
    comparison: Comparison
    judges: dict[_verify.Fresh, _Judge] = field(default_factory=dict)


def _do(room: _Room, job: _Job) -> Any:
    """A job in a worker."""
    inquiry = replace(room.inquiry, failed={})
    if job.strength is not None:
        inquiry.work.memory["strength"] = job.strength
    if job.place is not None:
        return inquiry.try_out(room.comparison, job.place), inquiry.failed
    if not job.how:
        return inquiry.choose_strength()
    assert job.fresh is not None
    recorded = Recorded(inquiry.work.refit)
    work = replace(inquiry.work, refit=recorded)
    made = replace(inquiry, work=work).make_to_keep(job.how, job.threshold)
    if job.fresh not in room.judges:
        room.judges[job.fresh] = _Judge.prepare(inquiry.work, job.fresh)
    return pack_trained(recorded), room.judges[job.fresh].check(made)


def _share_out(
    inquiry: _Inquiry,
    comparison: Comparison,
    beside: Callable[..., _verify.Fresh],
    hands: Hands,
) -> tuple[list[_Trial], _verify.Fresh, dict[str, tuple[Made, list[_verify.Check]]]]:
    """Seeds and repairs for keeps, by workers; the same as one after the other."""
    work, steps = inquiry.work, inquiry.work.steps
    room = _Room(replace(inquiry, work=replace(work, steps=Steps(1))), comparison)
    trials: dict[int, _Trial] = {}
    broken: dict[int, Mapping[str, BadModel]] = {}
    brought: dict[str, Any] = {}
    with hire(hands, work.problem, _do, room) as each:
        strength = None
        if "pairs" in inquiry.able:
            ((_, strength),) = each([_Job()])
            if isinstance(strength, BadModel):
                inquiry.failed["pairs"], strength = strength, None
            elif isinstance(strength, BaseException):
                raise strength
            else:
                work.memory["strength"] = strength

        def keeps(fresh: _verify.Fresh) -> list[_Job]:
            hows = sorted(inquiry.able, key=lambda how: -WAYS[how].cost)
            moved = work.settings.averaging.same_share
            in_order = [trials[place] for place in sorted(trials)]
            limits = {how: inquiry.find_threshold(how, in_order) if moved else None for how in hows}
            return [_Job(None, how, fresh, limits[how], strength) for how in hows]

        def do(jobs: Sequence[_Job]) -> None:
            for job, result in each(jobs):
                if job.place is None:
                    brought[job.how] = result
                    steps.note(f"{job.how}, for keeps", WAYS[job.how].cost + _SEARCH_COST)
                    continue
                if isinstance(result, BaseException):
                    raise result
                trials[job.place], broken[job.place] = result
                cost = 1 + sum(WAYS[how].cost for how in inquiry.hows)
                steps.note(f"seed {job.place}: trained and measured", cost)

        seeds = [_Job(place, strength=strength) for place in range(inquiry.seeds)]
        fresh = beside(light=inquiry.is_exact)
        # What is kept depends on the seeds by its threshold alone.
        at_once = not work.settings.averaging.same_share
        do([*seeds, *keeps(fresh)] if at_once else seeds)
        for place in sorted(broken):
            for how, error in broken[place].items():
                inquiry.failed.setdefault(how, error)
        inquiry.require_able()
        judged = beside(light=inquiry.is_exact)
        if not at_once or judged != fresh:
            do(keeps(judged))
    for how in inquiry.able:
        if isinstance(brought[how], BaseException):
            raise brought[how]
    in_order = [trials[place] for place in sorted(trials)]
    kept = {}
    for how in inquiry.able:
        message, checks = brought[how]
        again = replace(work, refit=take_trained(message, work.refit, work.problem))
        threshold = inquiry.find_threshold(how, in_order)
        kept[how] = replace(inquiry, work=again).make_to_keep(how, threshold), checks
    return in_order, judged, kept


def recommend(
    tried: Sequence[Tried], max_accuracy_loss: float, terms: Terms = _verify.AS_USUAL
) -> tuple[list[Tried], str | None, tuple[str, ...]]:
    """The repairs with the reason for or against each, the one to take, and those that may be as
    good.

    Of those that make flips rarer and lose no more accuracy than is allowed: the one with fewest
    flips, then the one that loses least accuracy (losses within 0.1 points are equal), then the one
    that asks least for an answer, then the quickest to make. Others with as few flips may be as
    good where they were refused for their loss alone, and that may be chance.
    """
    able = [one for one in tried if one.verdict.word in ("removed", "reduced")]
    if not able:
        words = "not recommended: "
        return (
            [replace(one, why=words + _word(one, max_accuracy_loss, terms)) for one in tried],
            None,
            (),
        )
    least = min(map(_flips, able))
    fewest = [one for one in able if _flips(one) <= least]
    lost = min(one.loss.value for one in fewest)
    near = [one for one in fewest if one.loss.value <= lost + _SAME_ACCURACY]
    best = min(near, key=lambda one: (one.asked, one.seconds))
    # Refused for a cost that may be chance, though as few flips are left.
    close = tuple(
        one.how
        for one in tried
        if one not in able
        and one.verdict.helps
        and _flips(one) <= least
        and one.loss.low <= max_accuracy_loss
    )
    explained = []
    for one in tried:
        if one is best:
            first = f"first by the rule, but {spell(close)} may be as good" if close else ""
            praise = _praise(best, fewest, near, tried, terms)
            why = f"{first or 'recommended'}: {praise}"
            if best.loss.high > max_accuracy_loss:
                why += f"; {terms.tell_at_most(best.loss.high, max_accuracy_loss)}"
        elif one not in able:
            why = _word(one, max_accuracy_loss, terms)
        elif one not in fewest:
            why = (
                f"{_still(one)} of fresh people still flip; with {best.how}, "
                f"{'none' if _flips(best) == 0 else _percent(best.people.shares[1])}"
            )
        elif one not in near:
            why = f"{terms.tell_more(one.loss.value - best.loss.value)} {best.how}"
        elif one.asked > best.asked:
            why = f"as good as {best.how}, but asks the model {one.asked} times per answer"
        else:
            why = f"as good as {best.how}, but takes longer to make"
        if one.how in close or (one in fewest and one not in near and _may_be_equal(one, best)):
            why += ", which may be chance"
        explained.append(replace(one, why=why))
    return explained, best.how, close


def _may_be_equal(one: Tried, best: Tried) -> bool:
    """May the two lose the same, for all that the rows say?"""
    return one.loss.low <= best.loss.value


def _flips(one: Tried) -> float:
    """Share of fresh people who may flip, by the end of the interval; 0 where so few do that they
    count as removed."""
    if one.verdict.removes:
        return 0.0
    return rate_of(one.people.after, one.people.rows_after or one.people.rows).high


def _praise(
    best: Tried,
    fewest: Sequence[Tried],
    near: Sequence[Tried],
    tried: Sequence[Tried],
    terms: Terms,
) -> str:
    removes = _flips(best) == 0
    praise = "it removes the flips" if removes else "it leaves the fewest flips"
    if len(tried) == 1:
        return praise if removes else "it makes flips rarer"
    if len(fewest) == 1:
        if not removes:
            return praise
        alone = not any(one.verdict.removes for one in tried if one is not best)
        return f"{praise}, and no other does{'' if alone else ' at a cost that is allowed'}"
    numbers = terms.measure == "error"
    if len(near) == 1:
        least = "errs least" if numbers else "loses least accuracy"
        return f"{praise} and {least} of those that do"
    no_more = "errs no more" if numbers else "loses no more accuracy"
    return f"{praise}, {no_more} than others that do, and is the cheapest of them"


def _word(one: Tried, max_accuracy_loss: float, terms: Terms) -> str:
    if one.verdict.word == "unchanged":
        some = any(check.before for check in one.checks)
        return "flips are not rarer" if some else "nobody flipped before"
    if one.verdict.word == "worse":
        return "flips are more common"
    if one.loss.value > max_accuracy_loss:
        return terms.tell_too_much(one.loss.value, max_accuracy_loss)
    return one.verdict.reason


def _still(one: Tried) -> str:
    """How many flip, or may for all that is known."""
    share = one.people.shares[1]
    return _percent(share) if share else f"up to {_percent(_flips(one))}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _describe_weights(weights: Weights) -> Any:
    """For JSON, in which every value is text."""
    if isinstance(weights, str):
        return weights
    return {name: {str(v): share for v, share in of.items()} for name, of in weights.items()}


def _join(each: Sequence[Figures]) -> Figures:
    return {name: over_seeds([one[name] for one in each]) for name in each[0]}
