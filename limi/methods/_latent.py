"""Latents chunk by chunk from a seed, the confident ones among them, and the probing loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.generators._base import Generator, WithTensors
from limi.generators._counter_rng import ranks
from limi.search.check import Checked
from limi.search.session import Session
from limi.search.tried import most_queries
from limi.table.rows import KeyNumbers, KeySet, keys
from limi.table.schema import Schema
from limi.types import Index, Keys, Latents, Mask, Rows

__all__ = [
    "CHUNK",
    "Chunk",
    "Confident",
    "Decode",
    "LatentStream",
    "TensorStream",
    "beside",
    "join_parts",
    "meet",
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

    def chunks(self, n: int | None = None, start: int = 0) -> Iterator[Latents]:
        """The first n latents (all by default) from one on, the same every time."""
        total = self.n if n is None else min(n, self.n)
        while start < total:
            end = min(total, start - start % CHUNK + CHUNK)
            yield self.part(start, end - start)
            start = end

    def part(self, start: int, n: int) -> Latents:
        """n latents from this one on, all of one chunk."""
        if isinstance(self.generator, WithTensors):
            latents: Latents = _tensors(self.generator, self.seed, start, n).cpu().numpy()
            return latents
        number, first = divmod(start, CHUNK)
        kept: tuple[int, Latents] | None = vars(self).get("_chunk")
        if kept is None or kept[0] != number:
            rng = np.random.default_rng([self.seed, number])
            size = min(CHUNK, self.n - number * CHUNK)
            kept = vars(self)["_chunk"] = (number, self.generator.sample_latents(size, rng))
        return kept[1][first : first + n]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_chunk"}

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
    """Arrays, or tensors, one after the other."""
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
    *,
    flips_only: bool = False,
) -> tuple[Checked, bool]:
    """What the paper's loop checks for n latents, in its order; False where the budget ended.

    The loop goes latent by latent through the candidates: it skips a key that was seen before,
    checks it otherwise, and leaves the latent at the first hit. What it skips depends on what came
    before, across latents. Here candidates are checked in batches, all of candidate 0 first, and
    the order of the loop is worked out in between, so that the same rows are checked and `seen`
    grows by the same keys. `_tensors.probe` is its twin on a device.

    A few rows are asked that the loop would not meet; `again` asks for rows that it meets where
    others of the same key were asked (by default `check`). Rows that `refuse` names break a rule,
    and are passed over as those that were seen before. With `flips_only` the others are told by
    their number alone.
    """
    chunk = Chunk(schema, n, candidates, seen, check, refuse, flips_only=flips_only)
    checked, met = meet(chunk, again or check)
    return checked, met is not None


def meet(chunk: Chunk, again: Callable[[Rows], Checked]) -> tuple[Checked, Mask | None]:
    """The rows of a chunk that the loop checks, in its order; and which candidates it meets, whose
    keys are seen now, or None where the budget ended."""
    while True:
        examined = chunk.ask()
        if examined is None:
            told, _ = chunk.told()
            return replace(told, unflipped=chunk.n_checked - len(told)), None
        if not chunk.n_asked:
            return Checked.nothing(len(chunk.schema)), np.zeros_like(examined)
        fresh = chunk.first(examined & chunk.known)
        moved = chunk.find_moved(fresh)
        if not len(moved) or not chunk.judge_again(moved, again):
            break
    chunk.seen.add(chunk.keys[fresh])
    told, event = chunk.told()
    # Where the loop meets each key first; a key that it does not meet after all is left out.
    turn = chunk.turn_of(event, fresh)
    told = told[np.argsort(turn, kind="stable")[: int((turn < chunk.never).sum())]]
    if chunk.flips_only:
        told = replace(told, unflipped=int(fresh.sum()) - len(told))
    return told, fresh


class Chunk:
    """Candidates of n latents: decoded rows, their keys, and what is known of them."""

    def __init__(
        self,
        schema: Schema,
        n: int,
        candidates: Sequence[Decode],
        seen: KeySet,
        check: Callable[[Rows], Checked],
        refuse: Callable[[Rows], Mask | None] = lambda rows: None,
        *,
        flips_only: bool = False,
    ) -> None:
        self.schema, self.seen, self.flips_only = schema, seen, flips_only
        self._candidates, self._check, self._refuse = candidates, check, refuse
        n_stages = len(candidates)
        width = keys(schema, np.zeros((0, len(schema)))).shape[1]
        self.rows = np.empty((n_stages, n, len(schema)))
        self.keys: Keys = np.zeros((n_stages, n, width), dtype=np.uint64)
        self.decoded = np.zeros((n_stages, n), dtype=bool)
        self.never = n_stages * n
        self.parts: list[Checked] = []  # what was asked
        self.events: list[Index] = []  # and which candidates these were
        self._asked_again = False
        self.n_asked = self.n_checked = 0  # the latter are as many as the budget has paid for
        self.few = 0  # so few candidates may be left
        self.old = np.zeros((n_stages, n), dtype=bool)  # seen before this chunk
        self._ids = np.full((n_stages, n), -1, dtype=np.intp)
        self._numbers = KeyNumbers()
        self._stays = np.ones((n_stages, n), dtype=bool)  # as far as is known: no hit before
        self._verdicts = np.zeros(0, dtype=np.int8)  # of each number of a key; -1: not asked yet
        self._asked = np.zeros(0, dtype=np.intp)  # and which candidate was asked
        # With two values that are both tried, all rows of a key flip or none does. With more, a
        # row's own answer may be the one that differs, or the one that lies on the edge.
        self._own_counts = most_queries(schema) > 2
        # The loop's clock: latent by latent, and the candidates of one in turn.
        self._turn = np.arange(n)[None, :] * n_stages + np.arange(n_stages)[:, None]

    def told(self) -> tuple[Checked, Index]:
        """All that was asked, of each key the row that was asked last; and which candidates these
        are."""
        if not self.parts:
            return Checked.nothing(len(self.schema)), np.empty(0, dtype=np.intp)
        told, event = Checked.join(self.parts), np.concatenate(self.events)
        if self._asked_again:
            # A row may be asked, another of its key, and then the first one again.
            kept = np.flatnonzero(self._asked[self._ids.reshape(-1)[event]] == event)
            _, last = np.unique(event[kept][::-1], return_index=True)
            kept = np.sort(kept[::-1][last])
            told, event = told[kept], event[kept]
        return told.named(self.parts[-1].origin), event

    def ask(self) -> Mask | None:
        """Decode and check whatever the loop examines: this, or None where the budget ended."""
        while True:
            examined, unknown = self.order()
            undecoded = examined & ~self.decoded
            n_undecoded, n_unknown = int(undecoded.sum()), int(unknown.sum())
            if max(n_undecoded, n_unknown) <= self.few:
                return examined
            # The larger batch first, so that what few latents lack is caught up with together.
            if n_undecoded >= n_unknown:
                self.decode(undecoded)
                continue
            if not self.judge(np.flatnonzero(unknown)):
                return None

    def judge(self, event: Index) -> bool:
        """Check these candidates, and take their verdicts for those of their keys; False where the
        budget ended before the last."""
        self.n_asked += len(event)
        n_paid = self._take_verdicts(event, self._check(self.rows_of(event)))
        self.n_checked += n_paid
        return n_paid == len(event)

    def judge_again(self, event: Index, check: Callable[[Rows], Checked]) -> bool:
        """The same for keys that have the verdict of another row."""
        self._asked_again = True
        return self._take_verdicts(event, check(self.rows_of(event))) == len(event)

    def _take_verdicts(self, event: Index, checked: Checked) -> int:
        event = event[: len(checked)]
        self.enter_verdicts(event, checked.flips)
        if self.flips_only:
            flips = checked.flips
            self.parts.append(checked[flips].named(checked.origin))
            self.events.append(event[flips])
        else:
            self.parts.append(checked)
            self.events.append(event)
        return len(checked)

    def enter_verdicts(self, event: Index, flips: Mask) -> None:
        """Take the verdicts of candidates for those of their keys."""
        numbers = self._ids.reshape(-1)[event]
        self._verdicts[numbers], self._asked[numbers] = flips, event

    def find_moved(self, fresh: Mask) -> Index:
        """Of the candidates that the loop meets first, those that differ in protected cells from
        the one that was asked for their key; where no value of their own counts, those that flip.
        """
        event: Index = np.flatnonzero(fresh)
        numbers = self._ids.reshape(-1)[event]
        asked = self._asked[numbers]
        moved = asked != event
        if not self._own_counts:
            moved &= self._verdicts[numbers] == 1
        event, asked = event[moved], asked[moved]
        if not len(event):
            return event
        protected = self.schema.protected_index
        cells, others = self.rows_of(event)[:, protected], self.rows_of(asked)[:, protected]
        same = (cells == others) | (np.isnan(cells) & np.isnan(others))
        differing: Index = event[~same.all(axis=1)]
        return differing

    def decode(self, wanted: Mask) -> None:
        """Enter the rows of (stage, n) candidates, and number their keys."""
        self.enter(wanted)
        self.decoded |= wanted
        fresh = wanted & ~self.old
        self._ids[fresh] = self._numbers.number(self.keys[fresh])
        new = np.full(len(self._numbers) - len(self._verdicts), -1, dtype=np.int8)
        self._verdicts = np.append(self._verdicts, new)
        self._asked = np.append(self._asked, new)

    def enter(self, wanted: Mask) -> None:
        """Enter rows and keys of candidates, and which of them are passed over."""
        rows = self.decode_rows(wanted)
        self.keys[wanted] = row_keys = keys(self.schema, rows)
        old, broken = self.seen.contains(row_keys), self._refuse(rows)
        self.old[wanted] = old if broken is None else old | broken

    def decode_rows(self, wanted: Mask) -> Rows:
        """Enter the rows of candidates: these, stage by stage."""
        parts = []
        for stage, mask in enumerate(wanted):
            if mask.any():
                parts.append(self._candidates[stage](mask))
                self.rows[stage, slice(None) if mask.all() else mask] = parts[-1]
        rows: Rows = join_parts(parts) if parts else np.empty((0, len(self.schema)))
        return rows

    @property
    def known(self) -> Mask:
        """Which candidates are decoded, and not passed over."""
        return self._ids >= 0

    def order(self) -> tuple[Mask, Mask]:
        """Which candidates the loop examines, and which keys that it meets have no verdict yet.

        A candidate whose predecessor is not judged yet waits.
        """
        # An undecoded candidate, or one that is passed over, has the last of these.
        verdict = np.append(self._verdicts, np.int8(-1))[self._ids]
        examined = np.zeros_like(self.decoded)
        examined[0] = True
        for stage in range(1, len(examined)):
            settled = self.old[stage - 1] | (verdict[stage - 1] >= 0)
            examined[stage] = examined[stage - 1] & settled & self.decoded[stage - 1]
        self._leave(examined, examined & (verdict == 1))
        return examined, self.first(examined & (self._ids >= 0) & (verdict < 0))

    def _leave(self, examined: Mask, flips: Mask) -> None:
        """Take away what the loop does not examine, because it leaves latents at a hit.

        What flips is a hit where its key is met first. Whether that is so depends on what comes
        earlier only, so repeating the definition settles it from the first latent on; a few rounds
        do, because few latents share keys across candidates.
        """
        some = np.flatnonzero(flips.any(axis=0))
        flips, whole = flips[:, some], examined[:, some]
        ids, turn, now = self._ids[:, some], self._turn[:, some], whole & self._stays[:, some]
        first = np.empty(len(self._verdicts), dtype=np.intp)
        while True:
            met = now & flips
            first[ids[met]] = self.never
            np.minimum.at(first, ids[met], turn[met])
            hit = np.zeros_like(met)
            hit[met] = turn[met] == first[ids[met]]
            following = whole.copy()
            for stage in range(1, len(whole)):
                following[stage] &= following[stage - 1] & ~hit[stage - 1]
            if np.array_equal(following, now):
                examined[:, some] = now
                self._stays[:, some] = now | ~whole  # where to begin the next time
                return
            now = following

    def first(self, met: Mask) -> Mask:
        """Of these candidates, the first of each key in the order of the loop."""
        first = np.full(len(self._verdicts), self.never)
        ids, turn = self._ids[met], self._turn[met]
        np.minimum.at(first, ids, turn)
        is_first = np.zeros_like(met)
        is_first[met] = turn == first[ids]
        return is_first

    def rows_of(self, places: Index) -> Rows:
        """The rows of these candidates, by their places among all."""
        rows: Rows = self.rows.reshape(self.never, -1)[places]
        return rows

    def turn_of(self, event: NDArray[np.intp], fresh: Mask) -> NDArray[np.int64]:
        """When the loop first meets the key of each event; `never` where it does not."""
        first = np.full(len(self._verdicts), self.never)
        np.minimum.at(first, self._ids[fresh], self._turn[fresh])
        met: NDArray[np.int64] = first[self._ids.reshape(-1)[event]]
        return met
