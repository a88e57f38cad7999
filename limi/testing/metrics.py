"""What every metric owes, as a suite that third parties can run on their own.

    from limi.testing.metrics import CHECKS

    @pytest.mark.parametrize("check", CHECKS)
    def test_contract(check):
        check(my_metric)

Each check takes a metric (a function under `limi.metrics.metric`) and fails with an AssertionError
that says what was broken. `check` runs them one by one. The metric is measured on the evidence of
a small problem, `limi.testing.problem`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from limi.metrics import GROUP, Metric
from limi.metrics._base import entry_of
from limi.metrics.group import Groups, Tally
from limi.report.metrics import lines_of
from limi.testing.problem import make_evidence, make_groups

__all__ = ["CHECKS", "check"]

_RESERVED = {"labels", "population", "privileged", "chosen", "counts", "column"}


def check(metric: Metric) -> None:
    """Run every check on a metric."""
    for one in CHECKS:
        one(metric)


def declares_itself(metric: Metric) -> None:
    """A reader can make sense of the number without looking at the code."""
    assert isinstance(metric, Metric), f"{metric!r} is not declared by limi.metrics.metric"
    assert metric.name.isidentifier(), f"{metric.name!r} is not a name"
    assert metric.family != GROUP or metric.name not in _RESERVED, f"{metric.name} is limi's own"
    assert metric.line.endswith("."), "the docstring begins with a sentence"
    assert metric.formula, "formula says how it is computed"


def gives_plain_numbers(metric: Metric) -> None:
    """What it gives can be written as JSON, and its numbers are finite or have a reason."""
    measured = metric(_take_given(metric))
    if measured is not None:
        entry = entry_of(measured)
        assert json.loads(json.dumps(entry, allow_nan=False)) == entry


def the_same_run_the_same_number(metric: Metric) -> None:
    """It draws from no other source of chance than `evidence.rng`, and keeps no state."""
    one, other = (metric(_take_given(metric)) for _ in range(2))
    if one is not None and other is not None:
        assert entry_of(one) == entry_of(other), "two measurements differ"


def evidence_stays_as_it_is(metric: Metric) -> None:
    """Measuring writes nothing into what other metrics look at."""
    if metric.family == GROUP:
        return
    given = make_evidence()
    before = [array.copy() for array in _arrays(given)]
    metric(given)
    for array, was in zip(_arrays(given), before, strict=True):
        assert np.array_equal(array, was, equal_nan=array.dtype.kind == "f"), "it was changed"


def nothing_found_is_no_error(metric: Metric) -> None:
    """A run without findings, or groups without people, have no number or another one."""
    empty = (
        Groups(Tally(0, 0), Tally(0, 0), names=("one", "other"))
        if metric.family == GROUP
        else make_evidence(findings=False)
    )
    measured = metric(empty)
    if measured is not None:
        entry_of(measured)


def can_be_shown(metric: Metric) -> None:
    """Its lines have a name, words, and a number as text."""
    measured = metric(_take_given(metric))
    if measured is None:
        return
    entry = entry_of(measured)
    around = {metric.name: entry, "column": "x5", "privileged": "1"}
    for line in lines_of(metric, entry, around):
        assert line.name, "a line has a name"
        assert line.aid, "a line says how to read it"
        assert "{" not in line.aid, f"the words name what the entry lacks: {line.aid}"
        assert line.value, "a line has a number, or the word none"


def _take_given(metric: Metric) -> Any:
    return make_groups() if metric.family == GROUP else make_evidence()


def _arrays(given: Any) -> list[Any]:
    found = [getattr(given.found, field.name) for field in dataclasses.fields(given.found)]
    return [given.table, *found, given.decided.rows, given.decided.favorable, given.decided.labels]


CHECKS: tuple[Callable[[Metric], None], ...] = (
    declares_itself,
    gives_plain_numbers,
    the_same_run_the_same_number,
    evidence_stays_as_it_is,
    nothing_found_is_no_error,
    can_be_shown,
)
