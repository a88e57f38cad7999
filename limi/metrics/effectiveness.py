"""What a search yields for its time and queries."""

from __future__ import annotations

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
