"""How many rows it takes to say something; with fewer, a report says that they are too few."""

from __future__ import annotations

__all__ = ["FEWEST_RANKED", "FEWEST_TOLD", "FEWEST_TO_JUDGE"]

FEWEST_TO_JUDGE = 50
"""Rows of a set whose naturalness, or whose difference from another, is told. Columns are compared
in ten bins: of fewer rows than five per bin, gaps are chance rather than unlikeness."""

FEWEST_TOLD = 30
"""Rows of a rate that makes a headline, and of a group that is called privileged for its rate. Of
30 rows one is 3 points of a rate, and the 95 % interval is up to 37 points wide."""

FEWEST_RANKED = 40
"""Rows of a table that single rows are ranked among: half of them are held out, and fewer than
twenty could not tell one row in twenty."""
