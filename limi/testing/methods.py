"""What every method owes, as a suite that third parties can run on their own.

    from limi.testing.methods import CHECKS
    from limi.testing.problem import make_task

    @pytest.mark.parametrize("check", CHECKS)
    def test_contract(check):
        check(MyMethod, make_task)

`make_task` makes a fresh task of a small problem with known flips; it is called several times, with
keyword arguments for `Task` (such as max_batch). `check` runs them one by one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from limi.decisions import differ
from limi.methods import Method
from limi.search import method as members
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.method import CAPABILITIES, MEMBERS
from limi.search.task import Task
from limi.table.rows import distinct, snap
from limi.testing.problem import make_task
from limi.types import Rows, Scores

__all__ = [
    "CHECKS",
    "check",
    "every_finding_flips",
    "findings_are_distinct",
    "members_are_what_they_promise",
    "nothing_leaves_the_domain",
    "parameters_are_frozen",
    "same_seed_same_findings",
    "stops_at_a_budget_of_findings",
    "stops_at_a_budget_of_queries",
    "stops_at_a_budget_of_rows",
    "the_last_digits_change_nothing",
]

MakeMethod = Callable[[], Method]
MakeTask = Callable[..., Task]

_ROWS = 3_000
_LAST_DIGITS = 1e-14  # of a score in double precision; limi's own edge is far wider


def check(make: MakeMethod, make_task: MakeTask = make_task) -> None:
    """Run every check on a method."""
    for one in CHECKS:
        one(make, make_task)


def parameters_are_frozen(make: MakeMethod, make_task: MakeTask) -> None:
    """A method is a frozen dataclass: its repr is the record of the run."""
    method = make()
    assert dataclasses.is_dataclass(type(method))
    assert vars(type(method))["__dataclass_params__"].frozen
    assert make() == method


def members_are_what_they_promise(make: MakeMethod, make_task: MakeTask) -> None:
    """What a method offers has the form that limi expects, so that nothing of it is in vain."""
    method = make()
    kind = type(method)
    settings = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    assert isinstance(method.needs, frozenset)
    assert method.needs <= CAPABILITIES, f"it needs what no task offers: {method.needs}"
    assert method.population in (None, "real", "uniform")
    assert not settings & MEMBERS - {"name"}, "a setting must not be called like a member"
    for offer in ("explore", "exploit", "most_rows", "scores"):
        assert callable(vars(kind).get(offer, len)), f"{offer} must be a method"
    for name, preset in members.presets(kind).items():
        assert set(preset) <= settings, f"the preset {name!r} has settings that do not exist"
        dataclasses.replace(method, **preset)  # type: ignore[type-var]
    assert isinstance(members.is_exhaustive(method), bool)
    assert isinstance(members.stops_on_flips(method), bool)
    assert members.revision(method) >= 1
    assert members.most_rows(method, 1_000) > 0
    told = members.scores(method, run(method, make_task(), Budget(max_rows=64), 0).findings)
    assert all(isinstance(name, str) and math.isfinite(told[name]) for name in told)


def same_seed_same_findings(make: MakeMethod, make_task: MakeTask) -> None:
    """The batch size changes nothing, and the method object keeps no state."""
    method = make()
    found = [
        run(method, make_task(max_batch=size), Budget(max_rows=_ROWS), 11).findings.all()
        for size in (100_000, 100_000, 64)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].rows, other.rows)
        np.testing.assert_array_equal(found[0].partner, other.partner)


def the_last_digits_change_nothing(make: MakeMethod, make_task: MakeTask) -> None:
    """A score that is off by what another processor or batch may add steers no search."""
    exact = make_task()
    score, rng = exact.score, np.random.default_rng(0)

    def noisy(rows: Rows) -> Scores:
        noise = rng.uniform(-_LAST_DIGITS, _LAST_DIGITS, len(rows))
        return np.clip(score(rows) + noise, 0.0, 1.0)

    inexact = dataclasses.replace(exact, score=noisy)
    budget = Budget(max_rows=_ROWS // 2)
    one, other = (run(make(), task, budget, 12).findings.all() for task in (exact, inexact))
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.partner, other.partner)


def every_finding_flips(make: MakeMethod, make_task: MakeTask) -> None:
    """Asked again, each finding and its partner are decided differently."""
    task = make_task()
    found = run(make(), task, Budget(max_rows=_ROWS), 1).findings.all()
    assert len(found), "the problem has flips that the method should find"
    assert check_rows(task.score, task.schema, found.rows).flips.all()
    assert differ(task.score(found.rows), task.score(found.partner)).all()


def findings_are_distinct(make: MakeMethod, make_task: MakeTask) -> None:
    """No two findings share their non-protected columns."""
    task = make_task()
    found = run(make(), task, Budget(max_rows=_ROWS), 2).findings.all()
    assert len(distinct(task.schema, found.rows).first) == len(found)


def nothing_leaves_the_domain(make: MakeMethod, make_task: MakeTask) -> None:
    """Every row that reaches the model lies on the schema's grid and within its ranges."""
    task = make_task()
    score, asked = task.score, []

    def watch(rows: Rows) -> Scores:
        asked.append(rows.copy())
        return score(rows)

    run(make(), dataclasses.replace(task, score=watch), Budget(max_rows=_ROWS), 3)
    rows = np.concatenate(asked)
    np.testing.assert_allclose(snap(task.schema, rows), rows, atol=1e-9)
    assert not np.isnan(rows[:, ~task.schema.may_miss]).any()


def stops_at_a_budget_of_rows(make: MakeMethod, make_task: MakeTask) -> None:
    """Never more rows than the budget."""
    ran = run(make(), make_task(), Budget(max_rows=137), 4)
    assert ran.findings.rows_checked <= 137
    assert ran.stop in (Stop.ROWS, Stop.EXHAUSTED)


def stops_at_a_budget_of_queries(make: MakeMethod, make_task: MakeTask) -> None:
    """Never more queries than the budget."""
    ran = run(make(), make_task(), Budget(max_queries=731, max_rows=_ROWS), 5)
    assert ran.queries <= 731
    assert ran.stop in (Stop.QUERIES, Stop.EXHAUSTED, Stop.ROWS)


def stops_at_a_budget_of_findings(make: MakeMethod, make_task: MakeTask) -> None:
    """Exactly the number of findings asked for, where there are enough."""
    ran = run(make(), make_task(), Budget(max_findings=3, max_rows=_ROWS), 6)
    assert len(ran.findings) <= 3
    assert ran.stop in (Stop.FINDINGS, Stop.EXHAUSTED, Stop.ROWS)


CHECKS = [
    parameters_are_frozen,
    members_are_what_they_promise,
    same_seed_same_findings,
    the_last_digits_change_nothing,
    every_finding_flips,
    findings_are_distinct,
    nothing_leaves_the_domain,
    stops_at_a_budget_of_rows,
    stops_at_a_budget_of_queries,
    stops_at_a_budget_of_findings,
]
