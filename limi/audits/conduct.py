"""An audit at work: the contract, the generator, the rates, the search."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from limi.audits.early_check import EarlyCheck
from limi.audits.estimate import Estimate
from limi.audits.hiring import MOVING
from limi.audits.noise import Floor, measure_floor
from limi.audits.plan import CONTRACT_SHARE, MOST_TO_JUDGE, Plan
from limi.audits.sending import exchange_of, in_time, too_late
from limi.generators import Generator
from limi.gpu import place as devices
from limi.metrics.rates import Measured, measurable_rows, measure, measure_blind, most_per_row
from limi.models.target import CONTRACT_ROWS
from limi.search import steadiness
from limi.search.budget import Budget, Stop, first_look, queries_for
from limi.search.engine import Run, run
from limi.search.findings import Findings
from limi.search.session import Session
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.streams import Stream
from limi.system.watch import OutOfTime
from limi.twins import Twins
from limi.types import Rows, Scores

__all__ = ["Searched", "conduct"]

_STEADY_SHARE = 40  # of the seconds, to see whether the model is steady


@dataclass(frozen=True)
class Searched:
    """What came of a plan before the findings are checked again."""

    run: Run
    measured: Measured
    generator: Generator | None
    prepared: float  # seconds to fit the generator
    steadiness: Steadiness
    expected: Estimate
    cut: dict[str, str]  # by phase: what time or budget left out, in words
    twins: Twins | None = None
    notes: list[str] = field(default_factory=list)
    noisy: bool = False  # does the model answer by chance?
    floor: Floor | None = None


def conduct(plan: Plan, score: Callable[[Rows], Scores]) -> Searched:
    """Hold the model to its contract, fit the generator, measure rates, then search."""
    watch = plan.watch
    with in_time(plan.problem.target.model):
        told = _hold_to_contract(plan, score)
    alone = _spread(plan, told)
    expected = plan.estimate(told)
    watch.planned = {name: float(n) for name, n in expected.questions.items()}
    plan.on_plan(expected)
    cut: dict[str, str] = {}
    watch.enter("generator")
    generator = _make_generator(plan, cut)
    on_device = None
    if generator is not None and plan.source.device != "cpu":
        on_device = devices.join_on_device(plan.asked, generator)
    task = dataclasses.replace(
        plan.task(score),
        generator=generator,
        on_device=on_device,
        recheck=plan.per_finding(told),
        ahead=plan.spread,
    )
    prepared = watch.took()["generator"].seconds
    watch.enter("rates")
    noisy, allowed = plan.is_noisy(told), plan.rate_queries
    with nullcontext() if told.steady or noisy else plan.problem.target.anew():
        measured = _measure_rates(plan, task, told, cut, allowed)
    half = None if allowed is None else allowed // 2
    floor = measure_floor(plan, score, measured, half) if noisy else None
    with watch.ending(watch.until - _seconds_to_sum_up(plan)):
        twins = _ask_twins(plan, task, told, measured.queries)
        # What the search sees once is asked again and again, for half of what is left.
        early = plan.early if told.steady and not noisy and on_device is not None else None
        ran = _search(plan, task, _left(plan, 2 if noisy else 1), cut, early)
    rows = ran.findings.rows_checked + sum(rate.n for rate in measured.rates.values())
    nothing = ran.stop == Stop.SECONDS and not rows and twins is None and not plan.problem.blind
    if nothing and exchange_of(plan.problem.target) is not None:
        raise too_late(plan.problem.target.model)
    return Searched(
        ran,
        measured,
        generator,
        prepared,
        told,
        expected,
        cut,
        twins,
        notes=alone,
        noisy=noisy,
        floor=floor,
    )


def _spread(plan: Plan, told: Steadiness) -> list[str]:
    """Let workers ask from now on; a sentence where they cannot, because answers move."""
    if plan.spread is None:
        return []
    if told.steady and not plan.is_noisy(told):
        plan.spread.begin()
        return []
    plan.spread.rest()
    return [MOVING]


def _left(plan: Plan, share: int = 1) -> Budget:
    """What is left of the budget, or one part in so many of it; one question at least, because a
    budget must have one."""
    if plan.budget.max_queries is None:
        return plan.budget
    left = max(1, int(plan.queries_left) // share)
    return dataclasses.replace(plan.budget, max_queries=left)


def _ask_twins(plan: Plan, task: Task, told: Steadiness, rates: int) -> Twins | None:
    if plan.twin is None:
        return None
    plan.watch.enter("twins")
    return plan.twin.ask(
        plan.problem,
        task,
        plan.seed,
        watch=plan.watch,
        max_queries=_left(plan).max_queries,
        told=told,
        rates=rates,
    )


def _hold_to_contract(plan: Plan, score: Callable[[Rows], Scores]) -> Steadiness:
    """Look whether the model can be searched; its speed is seen on the way."""
    target, watch, rows = plan.problem.target, plan.watch, plan.problem.rows
    most = first_look(plan.budget.max_queries, CONTRACT_ROWS)
    if watch.limited:
        # One row, then a few: the difference shows what a call itself costs.
        ask = watch.counted(watch.timed(target.score), in_any_case=True)
        ask(rows[:1])
        most = int(np.clip(_affordable(plan, CONTRACT_SHARE), 2, most))
        ask(rows[:most])
    watch.count(target.contract(rows, most=most))
    return _see_steadiness(plan, watch.counted(score, in_any_case=True))


def _see_steadiness(plan: Plan, score: Callable[[Rows], Scores]) -> Steadiness:
    """How much of what the model answers moves when it is asked again.

    Asked through the journal, so that a resumed run goes the way that it went before.
    """
    n = first_look(plan.budget.max_queries, steadiness.SAMPLED)
    least = 16 if plan.budget.max_queries is None else 2
    if plan.watch.limited:
        n, least = int(min(n, _affordable(plan, _STEADY_SHARE))), 2
    # In coarse steps, so that a clock that ticks a little otherwise changes nothing.
    sizes = (2, 4, 8, 16, 32, 64, 128, 256, steadiness.SAMPLED)
    n = max((size for size in sizes if least <= size <= n), default=least)
    rng = Stream.STEADINESS.rng(plan.seed)
    with plan.problem.target.anew():
        return steadiness.sample(
            score,
            plan.problem.rows,
            rng,
            n=n,
            max_batch=plan.max_batch,
            decision=plan.problem.target.rule,
        )


def _affordable(plan: Plan, share: int) -> float:
    """Questions that one part in so many of the seconds pays for."""
    with plan.watch.ending(plan.watch.seconds + plan.max_seconds / share):
        return plan.watch.affordable


def _seconds_to_sum_up(plan: Plan) -> float:
    """Seconds kept for metrics and report, which ask nothing but take their time."""
    if plan.budget.max_seconds is None:
        return 0.0
    share = min(1.0, len(plan.problem.rows) / MOST_TO_JUDGE)
    return min(plan.budget.max_seconds / 5, 1.0 + 3.0 * share)


def _make_generator(plan: Plan, cut: dict[str, str]) -> Generator | None:
    if plan.problem.blind or (not plan.rate_rows and "generator" not in plan.method.needs):
        return None
    watch = plan.watch
    try:
        with watch.ending((watch.seconds + watch.until) / 2):
            return plan.source.make(plan.problem, watch)
    except OutOfTime:
        cut["generator"] = (
            f"the generator {plan.source.name} was not ready after half of the time; fit it "
            "beforehand (limi fit) and give its file"
        )
        return None


def _populations(plan: Plan, task: Task) -> list[str]:
    people = plan.problem.people[0]
    return [people, "uniform", *(["natural"] if task.generator is not None else [])]


def _measure_rates(
    plan: Plan, task: Task, told: Steadiness, cut: dict[str, str], allowed: int | None
) -> Measured:
    """Rates of all populations but uniform rows that the search measures itself.

    People are measured in any case: a search keeps no decision that does not flip, and who is
    favored takes all of them.
    """
    if plan.problem.blind:
        return _measure_blind(plan, task)
    populations = _populations(plan, task)
    if plan.own_population(told.steady) == "uniform":
        populations.remove("uniform")
    told_apart: Steadiness | None = told
    if plan.is_noisy(told):
        # Flips are counted as they come, and the noise floor, which costs the other half, is told.
        told_apart = None
        allowed = None if allowed is None else allowed // 2
    n = measurable_rows(task.schema, len(populations), allowed, told_apart)
    if n < plan.rate_rows and populations:
        why = "a rate takes at most 250,000 questions"
        if allowed is not None:
            wanted = most_per_row(task.schema, told_apart) * (2 if task.schema.rules else 1)
            why = _why_few_rows(plan, wanted * len(populations) * (1 + plan.is_noisy(told)))
        cut["rates"] = (
            f"each rate was measured on at most {n:,} rows, not on {plan.rate_rows:,}: {why}"
        )
    share = (plan.max_seconds - plan.watch.seconds) * min(1.5 * plan.rate_share, 0.9)
    with plan.watch.ending(plan.watch.seconds + share):
        return measure(
            Session(task, watch=plan.watch),
            populations,
            plan.seed,
            rows=plan.rate_rows,
            max_queries=allowed,
            told=told_apart,
            held_out=None if plan.problem.held_out is None else plan.problem.held_out.rows,
        )


def _why_few_rows(plan: Plan, per_row: int) -> str:
    """Why rates are measured on fewer rows than were asked for; a row of all of them may take so
    many questions."""
    allowed = plan.rate_queries
    by_time = allowed is not None and allowed < plan.paid_rate_queries
    name = f"--max-{'seconds' if by_time else 'queries'}"
    if not plan.rates_first:
        return f"rates get a fifth of {name}; name --rate-rows, and they get up to four fifths"
    if by_time:
        return f"the search keeps a fifth of {name}"
    enough = queries_for(plan.rate_rows * per_row, plan.rate_share)
    return f"the search keeps a fifth of {name}, of which {enough:,} are enough"


def _measure_blind(plan: Plan, task: Task) -> Measured:
    """What people are decided, asked once each: no protected value can change it."""
    name, rows, _ = plan.problem.people
    n = plan.rate_rows if plan.rate_queries is None else min(plan.rate_rows, plan.rate_queries)
    return measure_blind(Session(task, watch=plan.watch), name, rows, plan.seed, n)


def _search(
    plan: Plan, task: Task, budget: Budget, cut: dict[str, str], early: EarlyCheck | None
) -> Run:
    """The search, as far as there is time for it; none where a flip is impossible."""
    if plan.problem.blind:
        return Run(Findings(task.schema), Stop.EXHAUSTED, 0, 0.0, Session(task, watch=plan.watch))
    lacking = plan.method.needs - task.capabilities
    if budget.max_queries is not None and budget.max_queries < len(task.schema.combinations):
        cut["search"] = (
            "no queries were left to search, so what a search would find is not known; allow more "
            "with max_queries"
        )
        return Run(Findings(task.schema), Stop.QUERIES, 0, 0.0, Session(task, watch=plan.watch))
    if "generator" in cut and "generator" in lacking:
        ran = Run(Findings(task.schema), Stop.SECONDS, 0, 0.0, Session(task, watch=plan.watch))
    else:
        on_found = None if early is None else early.offer
        ran = run(plan.method, task, budget, plan.seed, watch=plan.watch, on_found=on_found)
    if ran.stop == Stop.SECONDS and not ran.findings.rows_checked:
        cut["search"] = (
            "no time was left to search, so what a search would find is not known; allow more "
            "--max-seconds, or fewer --rate-rows"
        )
    elif ran.stop == Stop.SECONDS:
        cut["search"] = (
            f"the search ended after {ran.findings.rows_checked:,} rows, because time ran out"
        )
    return ran
