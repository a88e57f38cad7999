"""One call from a model, a table and rules to pass, fail or inconclusive.

Rows are asked in growing batches. After each, every rule looks at limits that hold at every look
(`limi.metrics.limits`), and the gate ends with the first broken rule, with the last one that is
kept, or where the budget does. The rules share one error rate by Bonferroni's correction, which
holds whatever their measures have to do with each other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.beside import read_beside
from limi.audits.generator_source import GeneratorSource, anchored
from limi.audits.hiding import hide_examples
from limi.audits.hiring import MOVING, hire, want_workers
from limi.audits.problem import Problem, prepare, protected_values, with_held_out
from limi.audits.run_folder import versions
from limi.audits.sending import exchange_of, sends_rows, settle_remote
from limi.audits.summary import examples
from limi.defaults import DEFAULT_GATE_QUERIES, DEFAULT_GENERATOR, MEASURED_ROWS
from limi.errors import InvalidInput
from limi.gates._baseline import Baseline
from limi.gates._measures import Asked, BaselineRate, Estimate, Measuring, measuring
from limi.gates._people import People
from limi.gates._result import Answer, ColumnRate, Gate, Judged, judge
from limi.gates._rules import OF_GROUPS, Rule, Rules, parse_rules
from limi.generators import Generator
from limi.gpu import place as devices
from limi.metrics.privileged import Privileged, Split, is_lowest, lowest, parse
from limi.metrics.rates import most_per_row, survey
from limi.models import Meaning
from limi.models._base import ignore
from limi.models.target import CONTRACT_ROWS
from limi.remote.options import Remote
from limi.search import steadiness
from limi.search.budget import Budget, check_seed
from limi.search.check import MAX_BATCH
from limi.search.findings import Findings
from limi.search.session import Session
from limi.search.spread import Spread
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.streams import Stream
from limi.system import cores
from limi.system.arguments import checked
from limi.system.watch import OutOfQueries, OutOfTime, Progress, Watch
from limi.system.words import both
from limi.table.frames import Frame
from limi.table.rule_checks import GivenConstraints
from limi.table.schema import Schema
from limi.types import Index, Mask, Rows, Scores, Value

__all__ = ["gate"]

_FIRST_ROWS = 32  # of the first batch
_GROWTH = 0.1  # of the rows asked so far: the next batch
_STEADY_ROWS = 16  # asked four times to see whether the answers stay
_LEARNING_SHARE = 3  # of what the budget can ask, the part that regions may be learned on
_MOST_LEARNED = 10_000
_EXAMPLES = 3


@checked
def gate(
    model: Any,
    frame: Frame,
    rules: Rules,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    target: str | None = None,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    order: str | Sequence[Value] | None = None,
    held_out: Frame | None = None,
    privileged: Privileged = (),
    baseline: str | Path | None = None,
    error: float = 0.05,
    generator: str | Path | Generator | None = DEFAULT_GENERATOR,
    schema: Schema | None = None,
    constraints: GivenConstraints = (),
    drop: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    redact: bool | str | Sequence[str] = True,
    protected_from: Frame | None = None,
    key: str | None = None,
    max_queries: int | None = DEFAULT_GATE_QUERIES,
    max_seconds: float | None = None,
    seed: int = 0,
    max_batch: int = MAX_BATCH,
    device: str = "auto",
    workers: int | str | None = None,
    cluster: str | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    table_name: str = "table",
    held_out_name: str = "held-out rows",
    protected_from_name: str = "the protected table",
    command: str = "",
    on_progress: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Gate:
    """Ask a model about as few rows as it takes to decide whether it keeps the rules.

    `rules` are texts such as `"natural_rate <= 1 %"` or `"real_rate no worse than baseline by 0.2
    points"`; the baseline is the folder of an earlier run on the same table. The probability of any
    wrong answer, over all rules together, is at most `error`, whatever the truth is. `privileged`
    names the groups of `spd` if a column has more than two values. Everything else is as for
    `limi.audit`.
    """
    wanted = parse_rules(rules)
    check_seed(seed)
    budget = Budget(max_queries=max_queries, max_seconds=max_seconds)
    _check(error, wanted, baseline, held_out)
    _check_ends(budget, max_batch)
    has_workers = want_workers(model, workers, cluster, device, budget)
    found = anchored(generator)
    beside = read_beside(protected_from, key, protected_from_name)
    # Of a model behind an address, the rows that are sent are counted where they are sent.
    is_local = not sends_rows(model)
    watch = Watch(clock, max_seconds, on_progress, max_queries=max_queries if is_local else None)
    watch.enter("contract")
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
        drop=drop,
        only=only,
        redact=redact,
        trust_pickle=trust_pickle,
        trust=trust,
        remote=settle_remote(
            model,
            remote,
            max_queries=max_queries,
            look=watch.check_time if watch.limited else None,
        ),
        table_name=table_name,
        beside=beside,
        max_queries=max_queries,
        on_asked=watch.count if is_local else ignore,
        clock=clock,
    )
    if held_out is not None:
        problem = with_held_out(problem, held_out, held_out_name, beside)
    exchange = exchange_of(problem.target)
    _require_kind(wanted, problem)
    wanted = _settle(wanted, problem)
    place, asked = devices.settle_device("cpu" if has_workers else device, problem.target, found)
    source = GeneratorSource(found, generator, seed, place)
    needs_generator = any(rule.population == "natural" for rule in wanted)
    if needs_generator:
        _require_generator(source, problem, wanted)
    plan = _Plan(
        problem=problem,
        rules=wanted,
        error=error,
        budget=budget,
        seed=seed,
        max_batch=max_batch,
        watch=watch,
        source=source if needs_generator else None,
        baseline=None if baseline is None else Baseline(baseline, problem),
        splits=_splits(problem, privileged),
        command=command,
        asked_before=0 if exchange is None else exchange.asked,
    )
    with ExitStack() as ending:
        if exchange is not None:
            ending.callback(exchange.rest)
        _require_budget(plan)
        score = asked.score
        if has_workers:
            spread = ending.enter_context(hire(asked, workers, cluster, problem.opened))
            plan, score = replace(plan, spread=spread), spread.score
        ending.enter_context(cores.share_cores())
        return _Looks(plan, watch.timed(score)).run()


def _require_kind(wanted: Sequence[Rule], problem: Problem) -> None:
    """InvalidInput where a rule of the gate needs scores and decisions have none."""
    decision = problem.target.rule
    sided = [rule for rule in wanted if rule.measure in ("score_gap", *OF_GROUPS)]
    if sided and decision.kind != "favorable":
        raise InvalidInput(
            f"the rule {sided[0].text!r} needs favorable scores, but the decision here is "
            f"{str(decision)!r}; rates work with every decision"
        )


def _check(
    error: float, rules: Sequence[Rule], baseline: str | Path | None, held_out: Frame | None
) -> None:
    """Refuse what cannot be, before anything is opened."""
    if not 0 < error < 0.5:
        raise InvalidInput(
            f"error is {error}; it is the chance of a wrong answer and must lie between 0 and 0.5, "
            "such as 0.05"
        )
    against = [rule.text for rule in rules if rule.against_baseline]
    if against and baseline is None:
        raise InvalidInput(
            f"the gate's rule {against[0]!r} compares with a baseline, but none is named; add "
            'baseline = "RUN" to [gate], or --baseline RUN'
        )
    if baseline is not None and not against:
        raise InvalidInput(
            f"the baseline {str(baseline)!r} is named, but no rule compares with it; add one, such "
            "as 'natural_rate no worse than baseline by 0.2 points'"
        )
    unseen = [rule.text for rule in rules if rule.population == "held-out"]
    if unseen and held_out is None:
        raise InvalidInput(
            f"the gate's rule {unseen[0]!r} is about held-out rows, but there are none; name them "
            "with --held-out FILE"
        )


def _check_ends(budget: Budget, max_batch: int) -> None:
    """Refuse a gate that might never end: at the limit no number of rows decides."""
    if budget.max_queries is None and budget.max_seconds is None:
        raise InvalidInput(
            "a gate without max-queries and max-seconds may never end, because right at its limit "
            "no number of rows can decide; give one of them"
        )
    if max_batch < 1:
        raise InvalidInput(f"max-batch is {max_batch}; it must be at least 1")


def _settle(rules: Sequence[Rule], problem: Problem) -> list[Rule]:
    """The rules with the populations that there are, one for each column that has its own."""
    people = problem.people[0]
    settled: list[Rule] = []
    for rule in rules:
        population = people if rule.population == "people" else rule.population
        columns = problem.schema.protected if rule.measure in OF_GROUPS else (None,)
        settled += [replace(rule, population=population, column=column) for column in columns]
    return settled


def _require_generator(source: GeneratorSource, problem: Problem, rules: Sequence[Rule]) -> None:
    if source.name is None:
        text = next(rule.text for rule in rules if rule.population == "natural")
        raise InvalidInput(
            f"the gate's rule {text!r} is about natural rows, which need a generator, but there is "
            "none; leave out --generator none, or bound the table's own rows with real_rate"
        )
    source.check(problem)


def _splits(problem: Problem, privileged: Privileged) -> dict[str, Split]:
    """The privileged groups that were named, by column."""
    schema = problem.schema
    if not privileged or not is_lowest(privileged):
        return parse(schema, privileged) if privileged else {}
    cells = {name: problem.rows[:, schema.position(name)] for name in schema.protected}
    return {
        name: lowest(schema[name], np.unique(held[~np.isnan(held)])) for name, held in cells.items()
    }


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A gate with all its settings."""

    problem: Problem
    rules: list[Rule]
    error: float
    budget: Budget
    seed: int
    max_batch: int
    watch: Watch
    source: GeneratorSource | None
    baseline: Baseline | None
    splits: dict[str, Split]
    command: str
    asked_before: int  # rows that a model behind an address was asked to see what it answers
    spread: Spread | None = None  # over workers, where there are some

    def baseline_rates(self) -> dict[str, BaselineRate]:
        """What the rules compare with, by population; InvalidInput where it cannot be."""
        if self.baseline is None:
            return {}
        populations = {rule.population for rule in self.rules if rule.against_baseline}
        if "natural" in populations:
            assert self.source is not None
            self.baseline.require_generator(self.source.name, self.source.digest, self.seed)
        return {name: self.baseline.rate(name, self.seed) for name in sorted(populations)}


def _require_budget(plan: _Plan) -> None:
    """InvalidInput where the budget does not pay for what is asked in any case, and one row."""
    most, target, n = plan.budget.max_queries, plan.problem.target, len(plan.problem.rows)
    if most is None:
        return
    # Scores and decisions that contradict each other are asked for once more.
    contract = (4 if target.decides else 1) * min(CONTRACT_ROWS, n)
    first = plan.asked_before + plan.watch.questions + contract + 4 * min(_STEADY_ROWS, n)
    flips = any(rule.measure not in OF_GROUPS for rule in plan.rules)
    row = most_per_row(plan.problem.schema, None) if flips else 1
    if most < first + row:
        raise InvalidInput(
            f"max-queries is {most}; a gate asks up to {first} to see that the model repeats its "
            f"answers, and up to {row} for each row, so allow at least {first + row}"
        )


@dataclass
class _Work:
    """A rule at work."""

    rule: Rule
    measuring: Measuring
    estimate: Estimate
    answer: Answer = Answer.INCONCLUSIVE
    queries: int = 0

    def look(self, queries: int) -> None:
        """See what is known now; limits once held stay held, so that they only narrow."""
        before, now = self.estimate, self.measuring.estimate()
        self.estimate = now._replace(low=max(before.low, now.low), high=min(before.high, now.high))
        self.answer, self.queries = judge(self.rule, self.estimate), queries

    def know(self) -> None:
        """See what it is, now that every row of the population was asked: limits end there."""
        if self.answer == Answer.INCONCLUSIVE:
            known = self.measuring.exact()
            if known is None:
                return
            # "0.7 %" is not quite 7 / 1000 to a machine, and at the limit a rule is kept.
            at_limit = math.isclose(known.value, self.rule.limit, rel_tol=1e-9, abs_tol=1e-12)
            self.estimate = known
            self.answer = Answer.PASS if at_limit else judge(self.rule, known)


class _Looks:
    """A gate at work: batch after batch until the rules are decided or the budget is spent."""

    def __init__(self, plan: _Plan, score: Callable[[Rows], Scores]) -> None:
        self._plan, self._watch = plan, plan.watch
        problem = plan.problem
        decision = problem.target.rule
        self._task = Task(
            problem.schema, score, problem.rows, max_batch=plan.max_batch, decision=decision
        )
        self._compared = plan.baseline_rates()
        self._ledger = Findings(problem.schema, sided=decision.kind == "favorable")
        self._told = Steadiness(0, 0)
        self._asked: dict[str, int] = {}
        self._alone: dict[tuple[str, str], list[int]] = {}

    def run(self) -> Gate:
        """The answer."""
        plan, watch = self._plan, self._watch
        stop = "decided"
        works: list[_Work] = []
        try:
            self._hold_to_contract()
            if plan.source is not None:
                watch.enter("generator")
                generator = plan.source.make(plan.problem, watch)
                self._task = replace(self._task, generator=generator)
            watch.enter("rates")
            self._session = Session(self._task, watch=watch)
            self._session.keep_scores = any(rule.measure == "score_gap" for rule in plan.rules)
            works = [self._set_to_work(rule) for rule in plan.rules]
            with nullcontext() if self._told.steady else plan.problem.target.anew():
                stop = self._look_on(works)
        except OutOfQueries:
            stop = "queries"
            works = works or [self._set_to_work(rule) for rule in plan.rules]
        except OutOfTime:
            stop = "seconds"
            works = works or [self._set_to_work(rule) for rule in plan.rules]
        return self._conclude(works, stop)

    def _hold_to_contract(self) -> None:
        target, rows = self._plan.problem.target, self._plan.problem.rows
        self._watch.count(target.contract(rows, most=CONTRACT_ROWS))
        with target.anew():
            self._told = steadiness.sample(
                self._watch.counted(self._task.score, in_any_case=True),
                rows,
                Stream.STEADINESS.rng(self._plan.seed),
                n=_STEADY_ROWS,
                max_batch=self._plan.max_batch,
                decision=target.rule,
            )
        if self._plan.spread is not None:
            # Whether a model is steady is seen in one process, and one that is not stays there.
            go_on = self._plan.spread.begin if self._told.steady else self._plan.spread.rest
            go_on()

    def _set_to_work(self, rule: Rule) -> _Work:
        plan = self._plan
        affordable = _MOST_LEARNED if self._left == np.inf else self._rows_left(flips=True)
        work = measuring(
            rule,
            plan.error / len(plan.rules),
            plan.problem.schema,
            baseline=self._compared.get(rule.population),
            split=None if rule.column is None else plan.splits.get(rule.column),
            hidden=plan.problem.hidden,
            most_learned=min(_MOST_LEARNED, max(1, affordable // _LEARNING_SHARE)),
        )
        return _Work(rule, work, work.estimate())

    def _look_on(self, works: list[_Work]) -> str:
        """Ask and look until every rule is decided; what ended it."""
        people: dict[str, People] = {}
        ended: dict[str, str] = {}  # populations that nothing more comes from, and why
        while True:
            undecided = [work for work in works if work.answer == Answer.INCONCLUSIVE]
            still = [work for work in undecided if work.rule.population not in ended]
            if not undecided or any(work.answer == Answer.FAIL for work in works):
                return "decided"
            if not still:
                whys = [ended[work.rule.population] for work in undecided]
                return min(whys, key=("queries", "baseline", "rows").index)
            for population in dict.fromkeys(work.rule.population for work in still):
                if population not in people:
                    people[population] = self._people(population)
                mine = [work for work in still if work.rule.population == population]
                why = self._look_once(people[population], population, mine)
                if why:
                    ended[population] = why

    def _look_once(self, people: People, population: str, works: list[_Work]) -> str:
        """Ask one batch more of a population; why there is none, where there is none."""
        flips = any(work.measuring.needs_flips for work in works)
        n = min(
            max(_FIRST_ROWS, int(_GROWTH * self._asked.get(population, 0))),
            self._rows_left(flips=flips),
        )
        if n < 1:
            return "queries"

        def wanted(rows: Rows, places: Index) -> Mask:
            masks = [work.measuring.wants(rows, places) for work in works]
            return np.asarray(np.any(masks, axis=0))

        rows, places = people.take(n, wanted)
        if not len(rows):
            kept = all(work.measuring.ends_with_baseline for work in works)
            return "baseline" if kept and not self._asked_all(population) else "rows"
        fair = not all(work.measuring.choosy for work in works)
        asked = self._ask(population, rows, places, fair) if flips else self._score(rows, places)
        self._asked[population] = self._asked.get(population, 0) + len(asked.rows)
        for work in works:
            work.measuring.take(asked.paired if work.measuring.needs_flips else asked)
            work.look(self._watch.questions)
            if self._asked_all(population):
                work.know()
        return ""

    def _table(self, population: str) -> Rows | None:
        """The rows of a population that is a table's; None where it is drawn without an end."""
        problem = self._plan.problem
        held = None if problem.held_out is None else problem.held_out.rows
        return {"real": problem.rows, "held-out": held}.get(population)

    def _asked_all(self, population: str) -> bool:
        """Was every row of a table asked? None is asked twice; a sample is not all of it."""
        table = self._table(population)
        if table is None or (population == "real" and self._plan.problem.whole is not None):
            return False
        return self._asked.get(population, 0) == len(table)

    def _score(self, rows: Rows, places: Index) -> Asked:
        return Asked(rows, self._session.scores(rows), places)

    def _ask(self, population: str, rows: Rows, places: Index, fair: bool) -> Asked:
        """Rows under every protected value; `fair` says that none was passed over."""
        key = sum(population.encode())
        rng = Stream.CONFIRMATION.rng(self._plan.seed, key, self._asked.get(population, 0))
        surveyed = survey(self._session, rows, self._told, rng)
        checked = surveyed.checked
        n = len(checked)
        self._ledger.add(checked.named(population))
        paired = checked.is_paired
        for column, flips in surveyed.alone.items() if fair else ():
            counts = self._alone.setdefault((column, population), [0, 0])
            counts[0] += int(flips[paired].sum())
            counts[1] += int(paired.sum())
        gaps = None
        if self._session.keep_scores:
            # What could not exist was not asked, and has no score.
            gaps = np.nan_to_num(np.abs(checked.scores - checked.score[:, None])).max(axis=1)
        return Asked(checked.rows, checked.score, places[:n], checked.flips, gaps, paired)

    def _people(self, population: str) -> People:
        problem, compared = self._plan.problem, self._compared.get(population)
        paired = compared is not None and compared.flips is not None
        return People(
            population,
            self._plan.seed,
            problem.schema,
            table=self._table(population),
            generator=self._task.generator,
            first=compared.n if compared is not None and paired else MEASURED_ROWS,
        )

    @property
    def _left(self) -> float:
        """Queries that may still be asked."""
        most = self._plan.budget.max_queries
        return np.inf if most is None else most - self._plan.asked_before - self._watch.questions

    def _rows_left(self, *, flips: bool) -> int:
        if self._left == np.inf:
            return MAX_BATCH
        left = max(0, int(self._left))
        return left // most_per_row(self._task.schema, self._told) if flips else left

    def _conclude(self, works: list[_Work], stop: str) -> Gate:
        plan, problem = self._plan, self._plan.problem
        answers = {work.answer for work in works}
        answer = Answer.INCONCLUSIVE
        if Answer.FAIL in answers:
            answer = Answer.FAIL
        elif answers == {Answer.PASS}:
            answer = Answer.PASS
        rule = problem.target.rule
        return Gate(
            answer=answer,
            rules=tuple(
                Judged(w.rule, w.answer, w.estimate, w.queries, w.measuring.regions())
                for w in works
            ),
            stop=stop,
            error=plan.error,
            queries=self._watch.questions,
            max_queries=plan.budget.max_queries,
            seed=plan.seed,
            table=problem.table_name,
            model=problem.model_name,
            protected=protected_values(problem.schema),
            generator=None if plan.source is None else plan.source.name,
            baseline=None if plan.baseline is None else plan.baseline.folder,
            columns=tuple(
                ColumnRate(column, population, *counts)
                for (column, population), counts in self._alone.items()
            ),
            examples=hide_examples(
                examples(problem.schema, self._ledger.all(), _EXAMPLES, rule), problem.hidden
            ),
            hidden=problem.hidden,
            decision=str(rule),
            kind=rule.kind,
            classes=tuple(map(str, rule.labels)),
            notes=(
                *problem.notes,
                *_passed_by_definition(problem, plan.rules),
                *problem.target.notes,
                *_notes(self._told),
                *([MOVING] if plan.spread is not None and not self._told.steady else []),
                *([] if plan.spread is None else plan.spread.notes),
            ),
            hashes=problem.hashes(),
            versions=versions(),
            command=plan.command,
        )


def _passed_by_definition(problem: Problem, rules: Sequence[Rule]) -> list[str]:
    """A sentence on rules about flips, where the model takes nothing that could flip it."""
    about_flips = [repr(rule.text) for rule in rules if rule.measure not in OF_GROUPS]
    if not problem.blind or not about_flips:
        return []
    names = both(list(problem.unseen))
    told = f"{both(about_flips)} {'passes' if len(about_flips) == 1 else 'pass'} by definition"
    return [
        f"the model does not take {names}, so changing it flips nothing and {told}; limi test "
        f"--twin shows what it does with everything that goes along with {names}, and a rule on "
        "spd bounds how far apart the groups' shares of favorable decisions are"
    ]


def _notes(told: Steadiness) -> list[str]:
    if told.steady:
        return []
    return [
        f"{told.scores_moved} of {told.rows} rows got a different score when they were asked "
        "again, so only flips that were seen every time count"
    ]
