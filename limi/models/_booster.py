"""A booster as a model, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limi.errors import GivesNumbers
from limi.models._base import Takes
from limi.models._scores import Favored, Outputs
from limi.types import Scores

__all__ = ["BoosterModel", "gives_numbers"]


def gives_numbers(objective: str) -> GivesNumbers:
    """What is said of a booster that predicts numbers where decisions are wanted."""
    return GivesNumbers(
        f"the booster has the objective {objective!r} and returns numbers; say how far apart two "
        "may be, or where bands begin: --decision 'difference > D', 'difference > 10 %' or 'bands "
        "= A, B, C'"
    )


@dataclass(frozen=True)
class BoosterModel:
    """Score rows with a booster, which decides nothing itself: its most probable class is taken,
    or its number."""

    booster: Any
    predict: Callable[[Any], Any]
    outputs: Outputs
    columns: Sequence[str] | None
    n_columns: int | None
    notes: tuple[str, ...] = ()
    prepare: Callable[[Any], Any] | None = None  # what the library needs done to the frame first

    @property
    def takes(self) -> Takes:
        """A frame where the booster knows its columns' names."""
        return "matrix" if self.columns is None else "frame"

    @property
    def favorable_column(self) -> Favored:
        """Which of its classes are favorable."""
        return self.outputs.favorable_column

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class, or whatever the rule has as answers."""
        given = inputs if self.prepare is None else self.prepare(inputs)
        return self.outputs.read(self.predict(given), len(inputs))
