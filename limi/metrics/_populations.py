"""What the populations of rates are called, and what they are."""

from __future__ import annotations

__all__ = ["POPULATIONS", "describe_population", "name_population"]

POPULATIONS = {
    "held-out": ("held-out rows", "rows that the model has not seen, as you said"),
    "real": ("real rows", "the rows of your table"),
    "natural": ("natural rows", "people drawn from a generator that imitates the table"),
    "uniform": (
        "uniform rows",
        "all combinations of values the columns allow, equally likely, including unnatural people",
    ),
}
"""By the name of a population: its rows as a noun, and one line on them; in a reader's order."""


def name_population(name: str) -> str:
    """The rows of a population, as a noun."""
    return POPULATIONS[name][0] if name in POPULATIONS else f"{name} rows"


def describe_population(name: str) -> str:
    """One line on how to read a population; empty where there is nothing to say."""
    return POPULATIONS[name][1] if name in POPULATIONS else ""
