"""What a search yields for its time and queries."""

from __future__ import annotations

from limi.metrics._base import EFFECTIVENESS, Evidence, Figure, Known, metric

__all__ = ["findings_per_second", "findings_per_thousand_queries"]


def findings_per_second(findings: float, seconds: float, preparation_seconds: float = 0.0) -> float:
    """Findings per second (EGS); 0 where no time passed.

    findings / (seconds + preparation), from 0 upwards; higher is better. The LIMI paper counts the
    search alone; with the time to fit the generator the figure is what a user waits for.

    >>> findings_per_second(300, 1.0), findings_per_second(300, 1.0, 2.0)
    (300.0, 100.0)
    """
    passed = seconds + preparation_seconds
    return findings / passed if passed > 0 else 0.0


def findings_per_thousand_queries(findings: float, queries: int) -> float:
    """Findings per thousand rows that the model was asked; 0 where it was asked none.

    1000 findings / queries, from 0 to 1000; higher is better.
    """
    return 1000 * findings / queries if queries else 0.0


# -- measured in every run --------------------------------------------------------------


@metric(
    EFFECTIVENESS,
    name="findings",
    formula="distinct rows that flip, checked again",
    range="",
    better="neither",
    unit="count",
    derived=True,
    parts=lambda entry, family: (),  # every report begins with it
)
def _count_findings(evidence: Evidence | Known) -> int:
    """How many distinct rows were found to flip."""
    return evidence.n_findings


@metric(
    EFFECTIVENESS,
    name="findings_per_second",
    formula="findings / seconds of the search, without the time for LIMI's labels and boundary, "
    "as published; `with_preparation` adds that time and the fit of the generator",
    range="",
    better="higher",
    unit="rate",
    short="EGS",
    beside="{with_preparation} with preparation",
    main=False,
)
def _measure_per_second(evidence: Evidence) -> Figure:
    """Of the search alone; the other figure counts the time to fit the generator too."""
    n, effort = evidence.n_findings, evidence.effort
    prepared = findings_per_second(n, effort.seconds, effort.preparation_seconds)
    return Figure(
        findings_per_second(n, effort.seconds),
        beside={"scope": "the search alone", "with_preparation": prepared},
    )


@metric(
    EFFECTIVENESS,
    name="findings_per_thousand_queries",
    formula="1000 findings / rows asked, for rates and search",
    range="0 to 1,000",
    better="higher",
    unit="rate",
    main=False,
    derived=True,
)
def _measure_per_query(evidence: Evidence | Known) -> Figure:
    """Rows that the model was asked, for the search and for the rates."""
    return Figure(
        findings_per_thousand_queries(evidence.n_findings, evidence.effort.queries),
        beside={"scope": "queries of the search and of the rates"},
    )
