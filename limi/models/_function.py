"""A function as a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limi.models._base import Answers, Takes, ignore
from limi.types import Scores

__all__ = ["FunctionModel"]

_SEEN = 64  # rows that show whether a function answers with labels of its own


@dataclass(frozen=True)
class FunctionModel:
    """Score rows by calling a function with a frame; it returns scores or labels.

    A function with the attribute `takes = "matrix"` is given an array of numbers instead, and one
    with `columns = [...]` these columns only.
    """

    function: Callable[[Any], Any]
    answers: Answers
    notes: tuple[str, ...] = ()

    @property
    def takes(self) -> Takes:
        """A frame, unless the function says otherwise."""
        wanted: Takes = getattr(self.function, "takes", "frame")
        return wanted

    @property
    def columns(self) -> Sequence[str] | None:
        """The function's attribute `columns`, where it has one."""
        names = getattr(self.function, "columns", None)
        return None if names is None else list(names)

    @property
    def n_columns(self) -> int | None:
        """A function does not say."""
        return None

    def score(self, inputs: Any) -> Scores:
        """What the function returns, read as scores."""
        return self.answers.read(self._answer(inputs), len(inputs))

    def settle(self, inputs: Any, on_asked: Callable[[int], None] = ignore) -> FunctionModel:
        """The same function once it is known what its answers are, with notes on how they are read.

        Where the table's labels are 0 and 1 and 1 is favorable, labels and scores come to the same,
        and nothing is asked.
        """
        if not (self.answers.may_mislead or self.answers.are_spelled_out):
            return self
        seen = inputs if self.answers.may_mislead else inputs[:_SEEN]
        on_asked(len(seen))
        raw = self._answer(seen)
        answers = self.answers.settle(raw)
        answers.read(raw, len(seen))
        return replace(self, answers=answers, notes=answers.notes(raw))

    def _answer(self, inputs: Any) -> Any:
        if isinstance(inputs, np.ndarray):
            # The array may be the search's own rows; writing to it would change the test.
            inputs = inputs.view()
            inputs.flags.writeable = False
        return self.function(inputs)
