"""Sorted runs of keys on disk, for sets that do not fit into memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limi.system.scratch import Scratch
from limi.types import Keys, Mask

__all__ = ["DiskRuns"]

_MERGED_AT_ONCE = 1 << 18  # keys of each run
_ASKED_AT_ONCE = 1 << 9  # keys; each brings 64 kB of a large run into memory, where systems map
# what lies around a place, so that 4,096 of them took 130 MB of a run of 60 million keys

InRun = Callable[[NDArray[np.uint64], Keys, NDArray[np.uint64], Keys], Mask]
"""Which keys a run holds, given its hashes and keys, and theirs."""


class _Run:
    """Keys in the order of their hashes; a key of one word is its own hash."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._hashes: Scratch[np.uint64] = Scratch(np.uint64)
        self._keys: Scratch[np.uint64] | None = (
            None if width == 1 else Scratch(np.uint64, width=width)
        )

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def hashes(self) -> NDArray[np.uint64]:
        return self._hashes.look()

    @property
    def keys(self) -> Keys:
        return self.hashes[:, None] if self._keys is None else self._keys.look()

    def append(self, hashes: NDArray[np.uint64], keys: Keys) -> None:
        self._hashes.append(hashes)
        if self._keys is not None:
            self._keys.append(keys)

    def forget(self) -> None:
        self._hashes.forget()
        if self._keys is not None:
            self._keys.forget()


class DiskRuns:
    """A few runs whose sizes grow geometrically, as those in memory do."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, hashes: NDArray[np.uint64], keys: Keys) -> None:
        """Write keys that are sorted by their hashes as a run."""
        run = _Run(keys.shape[1])
        run.append(hashes, keys)
        self._runs.append(run)
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) > len(self._runs[-2]):
            later, earlier = self._runs.pop(), self._runs.pop()
            self._runs.append(_merge(earlier, later))

    def contains(self, hashes: NDArray[np.uint64], keys: Keys, in_run: InRun) -> Mask:
        """Which keys are in a run; they come sorted by their hashes."""
        found = np.zeros(len(keys), dtype=bool)
        for run in self._runs:
            for start in range(0, len(keys), _ASKED_AT_ONCE):
                some = slice(start, start + _ASKED_AT_ONCE)
                found[some] |= in_run(run.hashes, run.keys, hashes[some], keys[some])
                run.forget()
        return found


def _merge(one: _Run, other: _Run) -> _Run:
    """Both as one run, in parts that fit into memory."""
    merged = _Run(one.width)
    at = [0, 0]
    while at[0] < len(one) or at[1] < len(other):
        parts = [
            run.hashes[i : i + _MERGED_AT_ONCE] for run, i in zip((one, other), at, strict=True)
        ]
        # Up to the lower of the two ends nothing is missing; a part that ends its run has none.
        ends = [
            part[-1]
            for run, i, part in zip((one, other), at, parts, strict=True)
            if i + len(part) < len(run)
        ]
        sizes = [
            int(np.searchsorted(part, min(ends), side="right")) if ends else len(part)
            for part in parts
        ]
        hashes = np.concatenate([part[:size] for part, size in zip(parts, sizes, strict=True)])
        keys = np.concatenate(
            [run.keys[i : i + n] for run, i, n in zip((one, other), at, sizes, strict=True)]
        )
        del parts
        order = np.argsort(hashes, kind="stable")
        merged.append(hashes[order], keys[order])
        at = [i + size for i, size in zip(at, sizes, strict=True)]
        one.forget()
        other.forget()
    return merged
