"""What a run does where nothing else is said; apart, so that `limi --help` loads little."""

from __future__ import annotations

__all__ = [
    "BUDGETED_METHOD",
    "DEFAULT_GATE_QUERIES",
    "DEFAULT_GENERATOR",
    "DEFAULT_MAX_ROWS",
    "DEFAULT_METHOD",
    "MEASURED_ROWS",
]

DEFAULT_METHOD = "limi"
BUDGETED_METHOD = "guided"  # finds two to four times as much with a number of queries
DEFAULT_GENERATOR = "trees"
DEFAULT_MAX_ROWS = 100_000
MEASURED_ROWS = 10_000  # to measure each population's rate on
DEFAULT_GATE_QUERIES = 50_000  # that a gate may ask before it says that it does not know
