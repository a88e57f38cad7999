"""What a metric may look at, of the small problem of `limi.testing.problem`."""

from dataclasses import replace

import numpy as np

from limi.decisions import favors
from limi.methods.real import Real
from limi.metrics import Decided, Effort, Evidence
from limi.metrics.group import Groups, tally
from limi.metrics.naturalness import Likeness
from limi.metrics.rates import measure
from limi.metrics.row_naturalness import judge_by_distance
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.testing.problem import _WEIGHTS, SCHEMA, make_task, score


def make_evidence(*, findings=True, seed=0):
    """What a metric may look at, of a run that found something, or nothing."""
    task = make_task()
    found = run(Real(), task, Budget(), seed).findings.all()
    judge = judge_by_distance(task.rows, SCHEMA, np.random.default_rng(seed))
    found = replace(
        found,
        naturalness=judge.p_values(found.rows),
        partner_naturalness=judge.p_values(found.partner),
    )[: None if findings else 0]
    measured = measure(Session(task), ["real", "uniform", "natural"], seed, rows=300)
    score_of = measured.checked["real"].score
    places = measured.places["real"]
    return Evidence(
        schema=SCHEMA,
        table=task.rows,
        found=found,
        rates=measured.rates,
        by_column=measured.alone,
        checked=measured.checked,
        decided=Decided.of("real", task.rows, score_of, _labels(task.rows), places),
        likeness={"findings": Likeness(0.9, 0.01, 50, 10)} if findings else {},
        judged_by=judge.words,
        effort=Effort(2.0, 1.0, measured.queries),
        seed=seed,
    )


def make_groups():
    """Two groups of the problem's people by a protected column."""
    rows = make_task().rows
    favorable, privileged = favors(score(rows)), rows[:, 5] == 1
    mine, others = (tally(favorable, _labels(rows), side) for side in (privileged, ~privileged))
    return Groups(mine, others, names=("x5 1", "x5 other than 1"))


def _labels(rows):
    """True labels that the model mostly meets."""
    noise = np.random.default_rng(1).normal(0, 2, len(rows))
    return (rows[:, :4] @ _WEIGHTS[:4] + noise > -2).astype(np.int8)
