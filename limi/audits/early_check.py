"""The second check, begun while the search goes on.

A search on a device leaves the processor idle, and the second check is the processor's: it puts
findings to the user's own model, just as it was given. Blocks are those of the second check that
follows a search, so that what is written of a finding is the same, whoever asked for it and when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from limi.models.target import Target
from limi.search.findings import Found
from limi.types import Rows, Scores

__all__ = ["BLOCK", "Answers", "EarlyCheck", "ask_block", "block_size"]

BLOCK = 8192  # fixed, so that written scores do not depend on a run's batch size
_BLOCKS_AT_ONCE = 2  # for a model whose scores do not depend on it; more threads hold the ledger up
_MOST_WAITING = 16  # calls; a search that is further ahead waits
_MOST_KEPT = 1 << 22  # findings whose answers are kept; later ones are asked for afterwards


def block_size(target: Target) -> int:
    """Findings that are put to a model together.

    A score may depend on the rows beside it in its last digits. A model that says in which
    stretches it takes rows gives the same scores for several blocks in one call, on more cores.
    """
    stretch = getattr(target.model, "stretch", 0)
    return _BLOCKS_AT_ONCE * BLOCK if stretch and BLOCK % stretch == 0 else BLOCK


@dataclass(frozen=True)
class Answers:
    """What a model says of findings and of their partners."""

    score: Scores
    partner_score: Scores
    decided: Any  # by the model itself; None where scores are all it says
    partner_decided: Any

    @property
    def n_decisions(self) -> int:
        """Rows that it was asked to decide."""
        return 0 if self.decided is None else 2 * len(self.score)


def ask_block(
    target: Target, rows: Rows, partner: Rows, counted: Callable[[Any], Any] = lambda ask: ask
) -> Answers:
    """One block of the second check, whose questions are counted by what wraps functions."""
    score = counted(target.score)
    scores = score(rows), score(partner)
    if not target.decides:
        return Answers(*scores, None, None)
    decide = counted(target.decide)
    return Answers(*scores, decide(rows), decide(partner))


class EarlyCheck:
    """Asks for findings again in a thread, block by block, as a context.

    One thread: models need not bear two calls at the same time. The search must ask another copy of
    the model, as one on a device does.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._size = target, block_size(target)
        self._pool = ThreadPoolExecutor(1, "limi-second-check")
        self._held: deque[Found] = deque()
        self._n_held = 0  # findings that do not fill a block yet
        self._blocks: list[Future[Answers]] = []

    def __enter__(self) -> EarlyCheck:
        return self

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def offer(self, found: Found) -> None:
        """New findings, in the order of the ledger."""
        if (len(self._blocks) + 1) * self._size > _MOST_KEPT:
            self._held.clear()
            return
        self._held.append(found)
        self._n_held += len(found)
        while self._n_held >= self._size:
            rows, partner = self._take_block()
            self._blocks.append(self._pool.submit(ask_block, self._target, rows, partner))
            if len(self._blocks) > _MOST_WAITING:
                self._blocks[-1 - _MOST_WAITING].exception()

    def take(self, start: int, most: int) -> Answers | None:
        """The answers to the block that begins with this finding and has at most so many; None
        where there is no such block, or it was not asked."""
        number, beside = divmod(start, self._size)
        if beside or number >= len(self._blocks) or most < self._size:
            return None
        return self._blocks[number].result()

    def _take_block(self) -> tuple[Rows, Rows]:
        parts, lacking = [], self._size
        while lacking:
            first = self._held.popleft()
            parts.append(first[:lacking])
            if len(first) > lacking:
                self._held.appendleft(first[lacking:])
            lacking -= len(parts[-1])
        self._n_held -= self._size
        if len(parts) == 1:
            return parts[0].rows, parts[0].partner
        return (
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.partner for part in parts]),
        )
