"""The probing loop of `_latent` in tensors, so that only what flips leaves the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from limi.check import Checked
from limi.tensors import BY_ROW, Collision, OnDevice, Seen, Tensor, Verdicts, located, same

__all__ = ["Probed", "probe"]


@dataclass(frozen=True, eq=False)
class Probed:
    """The flipping rows of a block in the loop's order, still on the device.

    A few of them may not flip themselves: see `_Block._as_met`.
    """

    rows: Tensor
    verdicts: Verdicts
    n_checked: int  # rows in all, flipping or not
    paid: bool  # False where the budget ended

    def __len__(self) -> int:
        return len(self.rows)

    def checked(self, here: OnDevice, origin: str) -> Checked:
        """The same for the ledger, in arrays."""
        rows = self.rows.cpu().numpy()
        v = self.verdicts
        partner = rows.copy()
        partner[:, here.schema.protected_index] = v.partner.cpu().numpy()
        return Checked(
            rows,
            v.score.cpu().numpy(),
            partner,
            v.partner_score.cpu().numpy(),
            v.flips.cpu().numpy(),
            origin=origin,
            causes=v.causes.cpu().numpy() if v.causes.ndim == 1 else np.zeros(0, dtype=np.uint8),
            bits=v.bits.cpu().numpy(),
            unflipped=self.n_checked - len(rows),
        )


Wanted: TypeAlias = list[tuple[int, Tensor | None]]
"""Candidates by number, each with the places of its latents in the block; None: all of them."""

Decode: TypeAlias = Callable[[Wanted], Tensor]
"""The rows of candidates, one behind the other."""

Check: TypeAlias = Callable[[Tensor], tuple[Tensor, Verdicts]]
"""The rows that the budget pays for, in order, and their verdicts."""


def probe(
    n: int,
    n_stages: int,
    decode: Decode,
    check: Check,
    seen: Seen,
    *,
    eager: bool = False,
    remember: bool = True,
) -> Probed:
    """What the paper's loop checks for n latents, as `_latent.probe` works it out.

    `eager` decodes all candidates at once: some of them in vain, but a device would rather decode
    than wait. Rows are then asked in other batches, so that where a budget ends among them, others
    are left. `seen` grows by the keys that were met, unless no one will ask for them.
    """
    import torch

    with torch.inference_mode():
        while True:
            try:
                block = _Block(n, n_stages, seen)
                first: Wanted = [(stage, None) for stage in range(n_stages if eager else 1)]
                block.decode(first, decode(first))
                return _probe(block, decode, check, remember)
            except Collision:
                # About once in ten million runs; what was asked is asked again.
                seen.salt()


def _probe(block: _Block, decode: Decode, check: Check, remember: bool) -> Probed:
    while True:
        undecoded, unknown = block.lacking()
        if not undecoded and not unknown:
            return block.finish(check, remember)
        # The larger batch first, so that what few latents lack is caught up with together.
        if _size(undecoded, block.n) >= _size(unknown, block.n):
            block.decode(undecoded, decode(undecoded))
        elif not block.check(unknown, check):
            return block.asked()


def _size(wanted: Wanted, n: int) -> int:
    return sum(n if places is None else len(places) for _, places in wanted)


class _Block:
    """Candidates of n latents: rows, keys, and what is known of them.

    An event is a candidate of a latent, numbered candidate by candidate. A key is told by its
    leader, the event that brought it first. Events without a key, or with one that was seen before
    this block, lead themselves under a number behind all events, so that they share nothing.
    """

    def __init__(self, n: int, n_stages: int, seen: Seen) -> None:
        import torch

        place = seen.packing.low.device
        self.n, self.n_stages, self.seen = n, n_stages, seen
        self.n_events = n * n_stages
        shape = (n_stages, n)
        self.rows: list[Tensor | None] = [None] * n_stages
        n_words = seen.packing.weights.shape[1] + len(seen.packing.real)
        self.words = torch.zeros((self.n_events, n_words), dtype=torch.int64, device=place)
        self.alone = torch.arange(self.n_events, 2 * self.n_events, device=place).view(shape)
        self.leader = self.alone.clone()
        self.decoded = torch.zeros(shape, dtype=torch.bool, device=place)
        self.old = torch.zeros(shape, dtype=torch.bool, device=place)
        # By leader:
        self.verdict = torch.full((2 * self.n_events,), -1, dtype=torch.int8, device=place)
        self.slot = torch.full((self.n_events,), -1, device=place)  # where its finding is kept
        # The loop's clock: latent by latent, and the candidates of one in turn.
        turn = torch.arange(self.n_events, dtype=torch.int32, device=place).view(n, n_stages)
        self.turn = turn.T.contiguous()
        self.runs: list[tuple[Tensor, Tensor]] = []  # ascending names and their leaders
        self.examined = torch.zeros(shape, dtype=torch.bool, device=place)
        self.examined[0] = True
        self.fresh = torch.zeros(shape, dtype=torch.bool, device=place)
        self.found: list[tuple[Tensor, Verdicts]] = []
        self.n_found = self.n_asked = 0

    def decode(self, wanted: Wanted, rows: Tensor) -> None:
        """Enter the rows of candidates, and find out which keys are whose."""
        import torch

        packing = self.seen.packing
        events = self._events(wanted)
        words = packing.words(rows)
        self._keep(wanted, rows)
        if events is None:
            self.words[: self.n] = words
            self.decoded[0] = True
        else:
            self.words[events] = words
            self.decoded.view(-1)[events] = True
        ascending, order = packing.names(words).sort(stable=True)
        at = order if events is None else events[order]
        # Sorting is stable, so the first of equal names is the earliest event.
        first = torch.searchsorted(ascending, ascending)
        leader = at[first]
        if not packing.named_exactly:
            words = words[order]
            same(words, words[first])
        for known, theirs in self.runs:
            where, found = located(known, ascending)
            others = theirs[where]
            if not packing.named_exactly:
                here = found & (others < self.n_events)
                same(words, self.words[torch.where(here, others, 0)], here)
            leader = torch.where(found, others, leader)
        old = self.seen.contains(ascending, words)
        leader = torch.where(old, at + self.n_events, leader)
        self.runs.append((ascending, leader))
        self.old.view(-1)[at] = old
        self.leader.view(-1)[at] = leader

    def check(self, wanted: Wanted, check: Check) -> bool:
        """Enter the verdicts of candidates; False where the budget ended before the last."""
        import torch

        asked = [
            self.rows[s] if places is None else self.rows[s][places]  # type: ignore[index]
            for s, places in wanted
        ]
        events = self._events(wanted)
        leader = self.leader[0] if events is None else self.leader.view(-1)[events]
        n_asked = len(leader)
        rows, verdicts = check(torch.cat(asked) if len(asked) > 1 else asked[0])
        leader = leader[: len(rows)]
        self.verdict[leader] = verdicts.flips.to(torch.int8)
        self.n_asked += len(rows)
        flipping = verdicts.flips.nonzero()[:, 0]
        self.slot[leader[flipping]] = torch.arange(
            self.n_found, self.n_found + len(flipping), device=rows.device
        )
        self.n_found += len(flipping)
        self.found.append((rows[flipping], _some(verdicts, flipping)))
        return len(rows) == n_asked

    def _events(self, wanted: Wanted) -> Tensor | None:
        """Their numbers; None for all of candidate 0, which are the first."""
        import torch

        if wanted == [(0, None)]:
            return None
        numbers = [
            torch.arange(s * self.n, (s + 1) * self.n, device=self.turn.device)
            if places is None
            else s * self.n + places
            for s, places in wanted
        ]
        return torch.cat(numbers) if len(numbers) > 1 else numbers[0]

    def _keep(self, wanted: Wanted, rows: Tensor) -> None:
        parts = rows.split([self.n if places is None else len(places) for _, places in wanted])
        for (stage, places), part in zip(wanted, parts, strict=True):
            if places is None:
                self.rows[stage] = part
                continue
            if self.rows[stage] is None:
                self.rows[stage] = rows.new_empty((self.n, rows.shape[1]))
            self.rows[stage][places] = part  # type: ignore[index]

    def lacking(self) -> tuple[Wanted, Wanted]:
        """Candidates that are examined and have no rows, and new ones without a verdict.

        Which candidates the loop examines, and which of them it meets as new keys, depends on what
        comes earlier only, so repeating the definition settles both from the first latent on; a
        few rounds do, because few latents share keys across candidates.
        """
        import torch

        n_decoded = sum(rows is not None for rows in self.rows)
        near = slice(0, min(n_decoded + 1, self.n_stages))  # others have not been reached
        leader, alone, turn = self.leader[near], self.alone[near], self.turn[near]
        verdict = self.verdict[leader]
        known, flips, unjudged = leader < self.n_events, verdict == 1, verdict < 0
        undecoded = ~self.decoded[near]
        waits = undecoded | (unjudged & ~self.old[near])

        def look(examined: Tensor) -> tuple[Tensor, Tensor]:
            """Which of the examined candidates are new keys, and what is examined then."""
            met = examined & known
            at = torch.where(met, leader, alone)
            first = turn.new_full((2 * self.n_events,), self.n_events)
            first.scatter_reduce_(0, at.view(-1), turn.reshape(-1), "amin")
            fresh = met & (turn == first[at])
            # The loop goes on behind a candidate that is judged, or old, and no hit.
            stops = (fresh & flips) | waits
            following = examined.clone()
            for stage in range(1, len(following)):
                torch.gt(following[stage - 1], stops[stage - 1], out=following[stage])
            return fresh, following

        _, examined = look(self.examined[near])
        while True:
            fresh, following = look(examined)
            lacking = torch.stack([examined & undecoded, fresh & unjudged])
            changed = (following != examined).any()
            # One glance at the device tells all that the next step depends on.
            counts = torch.cat([lacking.sum(-1).view(-1), changed.view(1)]).tolist()
            if not counts.pop():
                break
            _, examined = look(following)
        self.examined[near], self.fresh[near] = examined, fresh
        half = len(examined)
        return self._places(lacking[0], counts[:half]), self._places(lacking[1], counts[half:])

    def _places(self, masks: Tensor, counts: list[int]) -> Wanted:
        return [
            (stage, None if count == self.n else mask.nonzero()[:, 0])
            for stage, (mask, count) in enumerate(zip(masks, counts, strict=True))
            if count
        ]

    def asked(self) -> Probed:
        """What was checked until the budget ended, in the order of asking."""
        rows, verdicts = self._joined()
        return Probed(rows, verdicts, self.n_asked, False)

    def finish(self, check: Check, remember: bool) -> Probed:
        """What the loop met, in its order; its keys are seen from now on."""
        if not self.found:  # every key was seen before this block
            self.check([(0, self.leader.new_zeros(0))], check)
        # Transposed, so that places come in the order of the loop's clock.
        met = self.fresh.T.nonzero()
        event = met[:, 1] * self.n + met[:, 0]
        if remember and len(event):
            self.seen.add(self.words[event])
        slot = self.slot[self.leader.view(-1)[event]]
        flipping = (slot >= 0).nonzero()[:, 0]
        slot = slot[flipping]
        rows, verdicts = self._joined()
        rows, verdicts = rows[slot], _some(verdicts, slot)
        return Probed(*self._as_met(met[flipping], rows, verdicts, check), len(event), True)

    def _as_met(
        self, met: Tensor, asked: Tensor, verdicts: Verdicts, check: Check
    ) -> tuple[Tensor, Verdicts]:
        """Verdicts of the rows that the loop meets, where another row of the key was asked.

        The two differ in protected cells only, so that both flip, unless a value of their own is
        what makes one flip; the few are asked again.
        """
        import torch

        rows = asked.clone()
        for stage, theirs in enumerate(self.rows):
            mine = (met[:, 1] == stage).nonzero()[:, 0]
            if theirs is not None and len(mine):
                rows[mine] = theirs[met[mine, 0]]
        protected = self.seen.packing.protected
        cells, others = rows[:, protected], asked[:, protected]
        same = (cells == others) | (cells.isnan() & others.isnan())
        moved = (~same.all(1)).nonzero()[:, 0]
        if not len(moved):
            return asked, verdicts
        again, theirs = check(rows[moved])
        place = torch.arange(len(asked), device=asked.device)
        place[moved[: len(again)]] = len(asked) + torch.arange(len(again), device=asked.device)
        joined = [
            torch.cat([getattr(verdicts, name), getattr(theirs, name)])[place] for name in BY_ROW
        ]
        return torch.cat([asked, again])[place], Verdicts(*joined)

    def _joined(self) -> tuple[Tensor, Verdicts]:
        import torch

        rows = torch.cat([rows for rows, _ in self.found])
        joined = [torch.cat([getattr(v, name) for _, v in self.found]) for name in BY_ROW]
        return rows, Verdicts(*joined)


def _some(verdicts: Verdicts, places: Tensor) -> Verdicts:
    return Verdicts(*(getattr(verdicts, name)[places] for name in BY_ROW))
