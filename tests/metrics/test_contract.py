"""What every metric owes, and that these checks notice what is broken."""

import dataclasses
import json

import numpy as np
import pytest

from limi.metrics import GROUP, SEVERITY, Metric, declared, metric
from limi.metrics._base import entry_of
from limi.metrics.group import Groups, Tally
from limi.report.metrics import lines_of
from limi.testing.problem import score
from tests.metrics.evidence import make_evidence, make_groups

READS = {"formula": "a / b", "range": "0 to 1", "better": "lower"}
RESERVED = {"labels", "population", "privileged", "chosen", "chosen_from", "counts", "column"}


def declares_itself(metric):
    """A reader can make sense of the number without looking at the code."""
    assert isinstance(metric, Metric), f"{metric!r} is not declared by limi.metrics.metric"
    assert metric.name.isidentifier(), f"{metric.name!r} is not a name"
    assert metric.family != GROUP or metric.name not in RESERVED, f"{metric.name} is limi's own"
    assert metric.line.endswith("."), "the docstring begins with a sentence"
    assert metric.formula, "formula says how it is computed"


def gives_plain_numbers(metric):
    """What it gives can be written as JSON, and its numbers are finite or have a reason."""
    measured = metric(take_given(metric))
    if measured is not None:
        entry = entry_of(measured)
        assert json.loads(json.dumps(entry, allow_nan=False)) == entry


def the_same_run_the_same_number(metric):
    """It draws from no other source of chance than `evidence.rng`, and keeps no state."""
    one, other = (metric(take_given(metric)) for _ in range(2))
    if one is not None and other is not None:
        assert entry_of(one) == entry_of(other), "two measurements differ"


def evidence_stays_as_it_is(metric):
    """Measuring writes nothing into what other metrics look at."""
    if metric.family == GROUP:
        return
    given = make_evidence()
    before = [array.copy() for array in arrays_of(given)]
    metric(given)
    for array, was in zip(arrays_of(given), before, strict=True):
        assert np.array_equal(array, was, equal_nan=array.dtype.kind == "f"), "it was changed"


def nothing_found_is_no_error(metric):
    """A run without findings, or groups without people, have no number or another one."""
    empty = (
        Groups(Tally(0, 0), Tally(0, 0), names=("one", "other"))
        if metric.family == GROUP
        else make_evidence(findings=False)
    )
    measured = metric(empty)
    if measured is not None:
        entry_of(measured)


def can_be_shown(metric):
    """Its lines have a name, words, and a number as text."""
    measured = metric(take_given(metric))
    if measured is None:
        return
    entry = entry_of(measured)
    around = {metric.name: entry, "column": "x5", "privileged": "1"}
    for line in lines_of(metric, entry, around):
        assert line.name, "a line has a name"
        assert line.aid, "a line says how to read it"
        assert "{" not in line.aid, f"the words name what the entry lacks: {line.aid}"
        assert line.value, "a line has a number, or the word none"


def take_given(metric):
    return make_groups() if metric.family == GROUP else make_evidence()


def arrays_of(given):
    found = [getattr(given.found, field.name) for field in dataclasses.fields(given.found)]
    return [given.table, *found, given.decided.rows, given.decided.favorable, given.decided.labels]


CHECKS = (
    declares_itself,
    gives_plain_numbers,
    the_same_run_the_same_number,
    evidence_stays_as_it_is,
    nothing_found_is_no_error,
    can_be_shown,
)


def check(metric):
    """Run every check on a metric."""
    for one in CHECKS:
        one(metric)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", declared(), ids=lambda metric: metric.name)
def test_contract(metric, check):
    check(metric)


def test_nearly_every_metric_has_a_number_on_the_problem_of_the_suite():
    silent = [
        one.name
        for one in declared()
        if one(make_groups() if one.family == GROUP else make_evidence()) is None
    ]
    # Its decisions are yes or no and not numbers, and nobody has stated a volume.
    assert silent == ["answer_gap", "affected"]


def test_the_problem_has_findings_and_no_row_on_the_edge():
    evidence = make_evidence()
    assert len(evidence.found) > 100
    assert np.abs(score(evidence.table) - 0.5).min() > 1e-3
    assert len(make_evidence(findings=False).found) == 0


def draws_from_elsewhere(evidence):
    """A number of chance."""
    return float(np.random.default_rng().random())


def writes(evidence):
    """A number that leaves traces."""
    evidence.found.rows[0] = 0
    return 1.0


def forgets_the_empty_run(evidence):
    """Mean of what may be nothing."""
    return float(evidence.found.score[0])


def names_what_is_not_there(evidence):
    """Mean over {people} people."""
    return 1.0


def gives_an_array(evidence):
    """Many numbers at once."""
    return evidence.found.score


@pytest.mark.parametrize(
    ("measure", "error", "says"),
    [
        (draws_from_elsewhere, AssertionError, "two measurements differ"),
        (writes, AssertionError, "it was changed"),
        (forgets_the_empty_run, IndexError, "out of bounds"),
        (names_what_is_not_there, AssertionError, "the words name what the entry lacks"),
        (gives_an_array, ValueError, "return a number"),
    ],
)
def test_the_suite_notices(measure, error, says):
    with pytest.raises(error, match=says):
        check(metric(SEVERITY, **READS)(measure))


def test_the_suite_wants_a_metric_and_not_its_function():
    with pytest.raises(AssertionError, match=r"not declared by limi\.metrics\.metric"):
        check(draws_from_elsewhere)


def test_the_suite_refuses_the_name_of_a_fact_of_groups():
    def counts(groups):
        """Something else than the counts of a column."""

    with pytest.raises(AssertionError, match="counts is limi's own"):
        check(metric(GROUP, **READS)(counts))


def test_no_two_metrics_draw_from_one_stream():
    """Else leaving out one, for want of time, would change the other's number."""
    drawn = {}
    for one in declared():
        if one.family != GROUP:
            given = make_evidence()
            one(given)
            for stream in given._streams:
                drawn.setdefault(stream, []).append(one.name)
    assert "detection" in drawn
    assert [names for names in drawn.values() if len(names) > 1] == []
