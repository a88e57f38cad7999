"""A booster as a model, whichever library it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limi.models._base import Takes
from limi.models._scores import Favored, Output, Outputs
from limi.types import Scores

__all__ = ["BoosterModel"]


@dataclass(frozen=True)
class BoosterModel:
    """Score rows with a booster, which decides nothing itself: its most probable class is taken."""

    booster: Any
    predict: Callable[[Any], Any]
    favorable_column: Favored
    gives: Output
    columns: Sequence[str] | None
    n_columns: int | None
    notes: tuple[str, ...] = ()
    classes: int = 2
    prepare: Callable[[Any], Any] | None = None  # what the library needs done to the frame first

    @property
    def takes(self) -> Takes:
        """A frame where the booster knows its columns' names."""
        return "matrix" if self.columns is None else "frame"

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class."""
        outputs = Outputs(self.favorable_column, self.gives, self.classes)
        given = inputs if self.prepare is None else self.prepare(inputs)
        return outputs.read(self.predict(given), len(inputs))
