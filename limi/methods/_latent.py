"""Latents chunk by chunk from a seed, the confident ones among them, and the probing loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limi.check import Checked
from limi.generators._base import Generator
from limi.rows import KeySet, group, keys
from limi.schema import Schema
from limi.types import Keys, Latents, Mask, Rows, Scores

__all__ = ["CHUNK", "Confident", "LatentStream", "oversampled", "probe"]

CHUNK = 1 << 16  # latents drawn at once; part of what a seed means, so it is fixed


@dataclass(frozen=True)
class LatentStream:
    """n latents that are drawn again rather than kept: a seed is eight bytes."""

    generator: Generator
    n: int
    seed: int

    def chunks(self, n: int | None = None) -> Iterator[Latents]:
        """The first n latents (all by default), the same every time."""
        total = self.n if n is None else min(n, self.n)
        for number, start in enumerate(range(0, total, CHUNK)):
            rng = np.random.default_rng([self.seed, number])
            yield self.generator.sample_latents(min(CHUNK, total - start), rng)


class Confident:
    """The latents of one decision to fit on: a bounded choice out of a stream.

    `"random"` keeps a uniform sample, `"best"` those with the highest scores.
    """

    def __init__(self, most: int, rule: Literal["random", "best"]) -> None:
        self._most, self._rule = most, rule
        self._latents: list[Latents] = []
        self._rank: list[NDArray[np.float64]] = []

    def __len__(self) -> int:
        return min(self._most, sum(map(len, self._rank)))

    def add(self, latents: Latents, confidence: Scores, rng: np.random.Generator) -> None:
        """Offer latents, each with the score of its own decision."""
        self._latents.append(latents)
        self._rank.append(rng.random(len(latents)) if self._rule == "random" else -confidence)
        if sum(map(len, self._rank)) > 2 * self._most:
            self._keep_best()

    def latents(self) -> Latents:
        """What was kept."""
        self._keep_best()
        return self._latents[0]

    def _keep_best(self) -> None:
        rank, latents = np.concatenate(self._rank), np.concatenate(self._latents)
        best = np.argsort(rank, kind="stable")[: self._most]
        self._latents, self._rank = [latents[best]], [rank[best]]


def oversampled(latents: Latents, n: int, rng: np.random.Generator | None) -> Latents:
    """At least n latents: some repeated at random, or all in turn where there is no rng."""
    if len(latents) >= n:
        return latents
    if rng is None:
        return np.resize(latents, (n, latents.shape[1]))
    more = rng.integers(0, len(latents), n - len(latents))
    return np.concatenate([latents, latents[more]])


Decode = Callable[[Mask], Rows]
"""Rows of one candidate, for the latents in a mask."""


def probe(
    schema: Schema,
    n: int,
    candidates: Sequence[Decode],
    seen: KeySet,
    check: Callable[[Rows, int], Checked],
) -> tuple[Checked, bool]:
    """What the paper's loop checks for n latents, in its order; False where the budget ended.

    The loop goes latent by latent through the candidates: it skips a key that was seen before,
    checks it otherwise, and leaves the latent at the first hit. What it skips depends on what came
    before, across latents. Here candidates are checked in batches, all of candidate 0 first, and
    the order of the loop is worked out in between, so that the same rows are checked and `seen`
    grows by the same keys.
    """
    chunk = _Chunk(schema, n, len(candidates), seen)
    parts: list[Checked] = []
    events: list[NDArray[np.intp]] = []
    while True:
        examined, fresh = chunk.order()
        for stage in range(len(candidates)):
            undecoded = examined[stage] & ~chunk.decoded[stage]
            if undecoded.any():
                chunk.decode(stage, undecoded, candidates[stage](undecoded))
                break
            unknown = fresh[stage] & (chunk.verdict[stage] < 0)
            if unknown.any():
                checked = check(chunk.rows[stage, unknown], stage)
                parts.append(checked)
                events.append(stage * n + np.flatnonzero(unknown)[: len(checked)])
                if len(checked) < unknown.sum():
                    return Checked.join(parts).named(checked.origin), False
                chunk.verdict[stage, unknown] = checked.flips
                break
        else:
            break
    if not parts:
        return Checked.nothing(len(schema)), True
    seen.add(chunk.keys[fresh])
    joined, event = Checked.join(parts), np.concatenate(events)
    # Where the loop meets each key first; a key that it does not meet after all is left out.
    turn = chunk.turn_of(event, fresh)
    order = np.argsort(turn, kind="stable")[: int((turn < chunk.never).sum())]
    return joined[order], True


class _Chunk:
    """Candidates of n latents: decoded rows, their keys, and what is known of them."""

    def __init__(self, schema: Schema, n: int, n_stages: int, seen: KeySet) -> None:
        self._schema, self._seen = schema, seen
        width = keys(schema, np.zeros((0, len(schema)))).shape[1]
        self.rows = np.empty((n_stages, n, len(schema)))
        self.keys: Keys = np.zeros((n_stages, n, width), dtype=np.uint64)
        self.decoded = np.zeros((n_stages, n), dtype=bool)
        self.verdict = np.full((n_stages, n), -1, dtype=np.int8)
        self.never = n_stages * n
        self._old = np.zeros((n_stages, n), dtype=bool)  # seen before this chunk
        self._ids = np.full((n_stages, n), -1, dtype=np.int64)
        # The loop's clock: latent by latent, and the candidates of one in turn.
        self._turn = np.arange(n)[None, :] * n_stages + np.arange(n_stages)[:, None]

    def decode(self, stage: int, mask: Mask, rows: Rows) -> None:
        """Enter rows, and number all keys anew."""
        self.rows[stage, mask] = rows
        self.keys[stage, mask] = row_keys = keys(self._schema, rows)
        self._old[stage, mask] = self._seen.contains(row_keys)
        self.decoded[stage, mask] = True
        fresh = self.decoded & ~self._old
        self._ids[fresh] = group(self.keys[fresh])[1]

    def order(self) -> tuple[Mask, Mask]:
        """Which candidates the loop examines, and which of them it meets as new keys.

        Both depend on what comes earlier only, so repeating the definition settles them from the
        first latent on; a few rounds do, because few latents share keys across candidates.
        """
        known = self._ids >= 0
        n_ids = int(self._ids.max(initial=-1)) + 1
        verdicts = np.full(n_ids, -1, dtype=np.int8)
        judged = known & (self.verdict >= 0)
        verdicts[self._ids[judged]] = self.verdict[judged]
        self.verdict[known] = verdicts[self._ids[known]]
        examined = np.zeros_like(self.decoded)
        examined[0] = True
        while True:
            met = examined & known
            first = np.full(n_ids, self.never)
            np.minimum.at(first, self._ids[met], self._turn[met])
            fresh = np.zeros_like(met)
            fresh[met] = self._turn[met] == first[self._ids[met]]
            hit = fresh & (self.verdict == 1)
            following = examined.copy()
            for stage in range(1, len(examined)):
                # A candidate whose predecessor is not judged yet waits.
                settled = self.decoded[stage - 1] & (
                    self._old[stage - 1] | (self.verdict[stage - 1] >= 0)
                )
                following[stage] = following[stage - 1] & settled & ~hit[stage - 1]
            if np.array_equal(following, examined):
                return examined, fresh
            examined = following

    def turn_of(self, event: NDArray[np.intp], fresh: Mask) -> NDArray[np.int64]:
        """When the loop first meets the key of each event; `never` where it does not."""
        first = np.full(int(self._ids.max(initial=-1)) + 1, self.never)
        np.minimum.at(first, self._ids[fresh], self._turn[fresh])
        met: NDArray[np.int64] = first[self._ids.reshape(-1)[event]]
        return met
