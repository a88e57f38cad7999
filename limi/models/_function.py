"""A function as a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.models._base import Answers, Takes
from limi.types import Scores

__all__ = ["FunctionModel"]


@dataclass(frozen=True)
class FunctionModel:
    """Score rows by calling a function with a frame; it returns scores or labels.

    A function with the attribute `takes = "matrix"` is given an array of numbers instead, and one
    with `columns = [...]` these columns only.
    """

    function: Callable[[Any], Any]
    answers: Answers

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
        n = len(inputs)
        if isinstance(inputs, np.ndarray):
            # The array may be the search's own rows; writing to it would change the test.
            inputs = inputs.view()
            inputs.flags.writeable = False
        return self.answers.read(self.function(inputs), n)
