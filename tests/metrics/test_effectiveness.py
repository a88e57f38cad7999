"""Findings per second and per query."""

from __future__ import annotations

from limi.metrics.effectiveness import findings_per_second, findings_per_thousand_queries


def test_effectiveness_names_its_clock_and_guards_zero():
    assert findings_per_second(100, 2.0) == 50
    assert findings_per_second(100, 2.0, 2.0) == 25
    assert findings_per_second(0, 0.0) == 0
    assert findings_per_thousand_queries(5, 2000) == 2.5
    assert findings_per_thousand_queries(5, 0) == 0
