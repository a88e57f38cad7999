"""Choices: drawn by seed, written down, given again, and shrunk to the few that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Draw:
    """A stream of small choices, of which 0 is always the tamest.

    What was chosen stands in `taken`. Given choices come first, each cut to what may be chosen;
    where they end the seed goes on, or zeros where there is none. So any list of numbers is an
    input, and fewer or smaller numbers are a simpler one.
    """

    def __init__(self, rng: np.random.Generator | None = None, given: Sequence[int] = ()) -> None:
        self.taken: list[int] = []
        self._rng = rng
        self._given = tuple(given)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        place = len(self.taken)
        if place < len(self._given):
            value = min(self._given[place], n - 1)
        else:
            value = 0 if self._rng is None else int(self._rng.integers(n))
        self.taken.append(value)
        return value

    def pick(self, things: Sequence[T]) -> T:
        """One of several, the tamest first."""
        return things[self.below(len(things))]

    def chance(self, percent: int) -> bool:
        """Whether something unusual happens."""
        return self.below(100) >= 100 - percent

    def bytes(self, n: int) -> bytes:
        """Any bytes."""
        return bytes(self.below(256) for _ in range(n))


def shrunk(
    choices: Sequence[int], still: Callable[[tuple[int, ...]], bool], *, tries: int = 200
) -> tuple[int, ...]:
    """Fewer and smaller choices for which `still` holds, found greedily in so many tries."""
    best = list(choices)
    left = [tries]

    def better(new: list[int]) -> bool:
        nonlocal best
        if left[0] <= 0 or new == best:
            return False
        left[0] -= 1
        if still(tuple(new)):
            best = new
            return True
        return False

    size = max(len(best) // 2, 1)
    while size and left[0] > 0:
        place = len(best) - size
        while place >= 0:
            better(best[:place] + best[place + size :])
            place -= size
        size //= 2
    for change in (lambda value: 0, lambda value: value // 2, lambda value: value - 1):
        for place in range(len(best)):
            if place < len(best) and best[place]:
                better([*best[:place], change(best[place]), *best[place + 1 :]])
    while best and best[-1] == 0:  # where choices end zeros follow
        best.pop()
    return tuple(best)


def stream(seed: int, kind: str, number: int) -> np.random.Generator:
    """The random numbers of one input, whatever ran before it."""
    words: Any = [seed, number, *kind.encode()]
    return np.random.default_rng(words)
