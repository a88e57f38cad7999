"""Latents chunk by chunk from a seed, the confident ones among them, and the probing loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators._base import Generator, WithTensors
from limi.generators._counter_rng import ranks
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import KeySet, group, keys
from limi.table.schema import Schema
from limi.types import Keys, Latents, Mask, Rows

__all__ = [
    "CHUNK",
    "Confident",
    "Decode",
    "LatentStream",
    "TensorStream",
    "beside",
    "join_parts",
    "oversample",
    "pieces",
    "probe",
]

CHUNK = 1 << 16  # latents drawn at once; part of what a seed means, so it is fixed
_FEW = 64  # latents under which it pays to look ahead for those that bring anything new
_MOST_AHEAD = 1 << 16  # latents looked at together for keys that were not seen
_STALE = 10  # of so many latents less than one brought a new key
_AHEAD = 256  # latents looked at then
_GROWTH = 8  # times more latents than before, where time is short
_PART_SECONDS = 2.0  # what probing some of them may take then
_PER_FINDING = 4  # latents probed together for each finding that is still wanted


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
            size = min(CHUNK, total - start)
            if isinstance(self.generator, WithTensors):
                # By counting, so that a seed means the same latents on every device.
                yield _tensors(self.generator, self.seed, start, size).cpu().numpy()
            else:
                rng = np.random.default_rng([self.seed, number])
                yield self.generator.sample_latents(size, rng)

    def decode(self, latents: Latents) -> Rows:
        """One row per latent."""
        return self.generator.decode(latents)

    def ranks(self, start: int, n: int) -> NDArray[np.int64]:
        """Where in a random order of all latents these n stand."""
        numbers: NDArray[np.int64] = ranks(self.seed, np.arange(start, start + n))
        return numbers


@dataclass(frozen=True)
class TensorStream:
    """The same latents as tensors of the generator's device, so many at a time."""

    generator: WithTensors
    n: int
    seed: int
    size: int

    def chunks(self, n: int | None = None) -> Iterator[Any]:
        """The first n latents (all by default), the same every time."""
        total = self.n if n is None else min(n, self.n)
        for start in range(0, total, self.size):
            yield _tensors(self.generator, self.seed, start, min(self.size, total - start))

    def decode(self, latents: Any) -> Any:
        """One row per latent."""
        return self.generator.decode_tensor(latents)

    def ranks(self, start: int, n: int) -> Any:
        """Where in a random order of all latents these n stand."""
        import torch

        return ranks(self.seed, torch.arange(start, start + n, device=self.generator.device))


def _tensors(generator: WithTensors, seed: int, start: int, n: int) -> Any:
    import torch

    return generator.latents_at(seed, torch.arange(start, start + n, device=generator.device))


def join_parts(parts: Sequence[Any]) -> Any:
    """Arrays, or tensors, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(list(parts))


def beside(array: NDArray[Any], latents: Any) -> Any:
    """The array as it is, or as a tensor where the latents are tensors, on their device."""
    if isinstance(latents, np.ndarray):
        return array
    import torch

    return torch.from_numpy(array).to(latents.device)


class Confident:
    """The latents of one decision to fit on: those with the lowest ranks of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._latents: list[Any] = []
        self._rank: list[Any] = []

    def __len__(self) -> int:
        return min(self._most, sum(map(len, self._rank)))

    def add(self, latents: Any, rank: Any) -> None:
        """Offer latents; of two with one rank the earlier is preferred."""
        self._latents.append(latents)
        self._rank.append(rank)
        if sum(map(len, self._rank)) > 2 * self._most:
            self._keep_best()

    def latents(self) -> Any:
        """What was kept."""
        self._keep_best()
        return self._latents[0]

    def _keep_best(self) -> None:
        rank, latents = join_parts(self._rank), join_parts(self._latents)
        best = rank.argsort(stable=True)[: self._most]
        self._latents, self._rank = [latents[best]], [rank[best]]


def oversample(latents: Any, n: int, rng: np.random.Generator | None) -> Any:
    """At least n latents: some repeated at random, or all in turn where there is no rng."""
    known, lacking = len(latents), n - len(latents)
    if lacking <= 0:
        return latents
    more = np.arange(lacking) % known if rng is None else rng.integers(0, known, lacking)
    return join_parts([latents, latents[beside(more, latents)]])


def pieces(
    session: Session, latents: Any, n_stages: int, fresh: Callable[[Any], Any]
) -> Iterator[Any]:
    """Latents in parts within which no budget ends, so that their order is the loop's at any cap.

    A latent costs a row for each of its candidates at most. Where less is left than one latent may
    cost, they come one by one; `fresh` says which bring a key that was not seen, so that no time
    is lost with the others, nor where most keys of a small domain were seen. Where seconds are
    limited, a part takes a second or two in all.
    """
    ahead, is_stale = _AHEAD, False
    in_time = _AHEAD if session.watch.limited else len(latents)
    while len(latents):
        most = int(min(session.affordable / n_stages, len(latents)))
        wanted = max(_AHEAD, min(_PER_FINDING * session.findings_left, len(latents)))
        size = int(min(most, wanted, in_time))
        if most < min(_FEW, len(latents)) or (is_stale and most < len(latents)):
            first = latents[:ahead]
            new = first[fresh(first)]
            latents = join_parts([new, latents[ahead:]])
            ahead = _AHEAD if len(new) > size else min(2 * ahead, _MOST_AHEAD)
            size = min(max(size, 1), len(new))
        if size:
            start, left = session.watch.seconds, session.rows_left
            yield latents[:size]
            is_stale = left - session.rows_left < size / _STALE
            latents = latents[size:]
            if session.watch.limited:
                in_time = _in_time(session, size, session.watch.seconds - start)


def _in_time(session: Session, size: int, took: float) -> int:
    """How many latents to probe together after so many took so long: not far more, and a second's
    worth or two."""
    allowed = min(_PART_SECONDS, max(session.watch.left, 0.0) / 2)
    return int(min(_GROWTH * size, max(1.0, size * allowed / max(took, 1e-9))))


Decode = Callable[[Mask], Rows]
"""Rows of one candidate, for the latents in a mask."""


def probe(
    schema: Schema,
    n: int,
    candidates: Sequence[Decode],
    seen: KeySet,
    check: Callable[[Rows], Checked],
    again: Callable[[Rows], Checked] | None = None,
    refuse: Callable[[Rows], Mask | None] = lambda rows: None,
) -> tuple[Checked, bool]:
    """What the paper's loop checks for n latents, in its order; False where the budget ended.

    The loop goes latent by latent through the candidates: it skips a key that was seen before,
    checks it otherwise, and leaves the latent at the first hit. What it skips depends on what came
    before, across latents. Here candidates are checked in batches, all of candidate 0 first, and
    the order of the loop is worked out in between, so that the same rows are checked and `seen`
    grows by the same keys. `_tensors.probe` is its twin on a device.

    A few rows are asked that the loop would not meet; `again` asks for rows that it meets where
    others of the same key were asked (by default `check`). Rows that `refuse` names break a rule,
    and are passed over as those that were seen before.
    """
    chunk = _Chunk(schema, n, len(candidates), seen, refuse)
    parts: list[Checked] = []
    events: list[NDArray[np.intp]] = []
    while True:
        examined, fresh = chunk.order()
        undecoded, unknown = examined & ~chunk.decoded, fresh & (chunk.verdict < 0)
        n_undecoded, n_unknown = int(undecoded.sum()), int(unknown.sum())
        if not n_undecoded and not n_unknown:
            break
        # The larger batch first, so that what few latents lack is caught up with together.
        if n_undecoded >= n_unknown:
            chunk.decode(undecoded, candidates)
            continue
        checked = check(chunk.rows[unknown])
        parts.append(checked)
        events.append(np.flatnonzero(unknown)[: len(checked)])
        if len(checked) < n_unknown:
            return Checked.join(parts).named(checked.origin), False
        chunk.verdict[unknown] = checked.flips
    if not parts:
        return Checked.nothing(len(schema)), True
    seen.add(chunk.keys[fresh])
    joined, event = Checked.join(parts), np.concatenate(events)
    # Where the loop meets each key first; a key that it does not meet after all is left out.
    turn = chunk.turn_of(event, fresh)
    order = np.argsort(turn, kind="stable")[: int((turn < chunk.never).sum())]
    return _as_met(chunk, joined[order], turn[order], again or check), True


def _as_met(
    chunk: _Chunk, asked: Checked, turn: NDArray[np.int64], check: Callable[[Rows], Checked]
) -> Checked:
    """Verdicts of the rows that the loop meets, where another row of the key was asked.

    The two differ in protected cells only, so that both flip, unless a value of their own is what
    makes one flip; the few are asked again.
    """
    met, protected = chunk.row_at(turn), chunk.schema.protected_index
    cells, others = met[:, protected], asked.rows[:, protected]
    same = (cells == others) | (np.isnan(cells) & np.isnan(others))
    moved = np.flatnonzero(asked.flips & ~same.all(axis=1))
    if not len(moved):
        return asked
    again = check(met[moved])
    place = np.arange(len(asked))
    place[moved[: len(again)]] = len(asked) + np.arange(len(again))
    return Checked.join([asked, again])[place]


class _Chunk:
    """Candidates of n latents: decoded rows, their keys, and what is known of them."""

    def __init__(
        self,
        schema: Schema,
        n: int,
        n_stages: int,
        seen: KeySet,
        refuse: Callable[[Rows], Mask | None],
    ) -> None:
        self.schema, self._seen, self._refuse = schema, seen, refuse
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

    def decode(self, wanted: Mask, candidates: Sequence[Decode]) -> None:
        """Enter the rows of (stage, n) candidates, and number all keys anew."""
        for stage, mask in enumerate(wanted):
            if mask.any():
                self.rows[stage, mask] = candidates[stage](mask)
        self.keys[wanted] = row_keys = keys(self.schema, self.rows[wanted])
        old, broken = self._seen.contains(row_keys), self._refuse(self.rows[wanted])
        self._old[wanted] = old if broken is None else old | broken
        self.decoded |= wanted
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

    def row_at(self, turn: NDArray[np.int64]) -> Rows:
        """The rows that the loop meets at these turns."""
        n_stages = len(self.decoded)
        rows: Rows = self.rows[turn % n_stages, turn // n_stages]
        return rows

    def turn_of(self, event: NDArray[np.intp], fresh: Mask) -> NDArray[np.int64]:
        """When the loop first meets the key of each event; `never` where it does not."""
        first = np.full(int(self._ids.max(initial=-1)) + 1, self.never)
        np.minimum.at(first, self._ids[fresh], self._turn[fresh])
        met: NDArray[np.int64] = first[self._ids.reshape(-1)[event]]
        return met
