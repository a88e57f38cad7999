"""Every metric passes the suite that limi ships, and the suite notices what is broken."""

import numpy as np
import pytest

from limi.metrics import GROUP, SEVERITY, declared, metric
from limi.testing.metrics import CHECKS, check
from limi.testing.problem import make_evidence, make_groups, score

READS = {"formula": "a / b", "range": "0 to 1", "better": "lower"}


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
