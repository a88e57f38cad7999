"""The probing loop of `_latent` in tensors, so that only what flips leaves the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from limi.gpu.verdicts import BY_ROW, Collision, OnDevice, Seen, Tensor, Verdicts, same
from limi.search.check import Checked
from limi.table.partners import change

__all__ = ["Probed", "probe", "unseen"]


@dataclass(frozen=True, eq=False)
class Probed:
    """The flipping rows of a block in the loop's order, still on the device."""

    rows: Tensor
    verdicts: Verdicts
    n_checked: int  # rows in all, flipping or not
    paid: bool  # False where the budget ended

    def __len__(self) -> int:
        return len(self.rows)

    def checked(self, here: OnDevice, origin: str) -> Checked:
        """The same for the ledger, in arrays."""
        (whole,) = self.in_parts(here, origin, max(len(self), 1))
        return whole

    def in_parts(self, here: OnDevice, origin: str, size: int) -> Iterator[Checked]:
        """The same, so many rows at once; each part tells of its share of those that do not flip.

        A part is fetched while whoever takes them is busy with the one before.
        """
        n = max(len(self), 1)
        starts = range(0, n, size)
        ends = np.minimum(np.array(starts) + size, n)
        # In whole numbers: findings per row are then the same from the first part to the last.
        unflipped = np.diff((self.n_checked - len(self)) * ends // n, prepend=0).tolist()
        with ThreadPoolExecutor(1, "limi-fetch") as fetching:
            coming: list[Future[Checked]] = []
            for start, others in zip(starts, unflipped, strict=True):
                part = slice(start, start + size)
                coming.append(fetching.submit(self._take, part, here, origin, others))
                if start:
                    yield coming.pop(0).result()
            yield coming.pop().result()

    def _take(self, part: slice, here: OnDevice, origin: str, unflipped: int) -> Checked:
        v, rows = self.verdicts, self.rows[part].cpu().numpy()
        has_causes, has_bits = v.causes.ndim == 1, v.bits.shape[1]
        return Checked(
            rows,
            v.score[part].cpu().numpy(),
            change(here.schema, rows, v.partner[part].cpu().numpy()),
            v.partner_score[part].cpu().numpy(),
            v.flips[part].cpu().numpy(),
            origin=origin,
            causes=v.causes[part].cpu().numpy() if has_causes else np.zeros(0, dtype=np.uint8),
            bits=v.bits[part].cpu().numpy() if has_bits else np.zeros((0, 0), dtype=np.uint8),
            unflipped=unflipped,
        )


Check: TypeAlias = Callable[[Tensor], tuple[Tensor, Verdicts]]
"""The rows that the budget pays for, in order, and their verdicts."""


def probe(
    rows: Tensor,
    n_stages: int,
    check: Check,
    seen: Seen,
    *,
    again: Check | None = None,
    remember: bool = True,
    own_counts: bool = True,
    refuse: Callable[[Tensor], Tensor | None] = lambda rows: None,
) -> Probed:
    """What the paper's loop checks of latents, as `_latent.probe` works it out.

    `rows` are all candidates of all latents, candidate by candidate: some are decoded in vain, but
    a device would rather decode than wait. `seen` grows by the keys that were met, unless no one
    will ask for them. Rows that `refuse` names break a rule, and are passed over. `own_counts` says
    that rows of one key may differ in whether they flip, as where more than two values are tried.
    """
    import torch

    with torch.inference_mode():
        broken = refuse(rows)
        while True:
            try:
                block = _Block(rows, n_stages, seen, broken, own_counts=own_counts)
                while True:
                    while len(places := block.lacking()):
                        if not block.check(places, check):
                            return block.asked()
                    moved = block.find_moved()
                    if not len(moved) or not block.check(moved, again or check):
                        return block.finish(check, remember)
            except Collision:
                # About once in ten million runs; what was asked is asked again.
                seen.salt()


def unseen(seen: Seen, rows: Tensor) -> Tensor:
    """Which rows have a key that no earlier block has met."""
    import torch

    with torch.inference_mode():
        words = seen.packing.words(rows)
        while True:
            try:
                return ~seen.contains(seen.packing.names(words), words)
            except Collision:
                seen.salt()


class _Block:
    """Candidates of some latents: rows, keys, and what is known of them.

    An event is a candidate of a latent, numbered candidate by candidate. A key is told by its
    leader, the event that brought it first. Events with a key that was seen before this block lead
    themselves under a number behind all events, so that they share nothing.
    """

    def __init__(
        self,
        rows: Tensor,
        n_stages: int,
        seen: Seen,
        broken: Tensor | None = None,
        *,
        own_counts: bool = True,
    ) -> None:
        import torch

        packing, place = seen.packing, rows.device
        self.rows, self.seen, self.own_counts = rows, seen, own_counts
        self.n_events, self.n = len(rows), len(rows) // n_stages
        shape = (n_stages, self.n)
        self.words = packing.words(rows)
        names, start = packing.names(self.words), None
        if broken is not None:
            # Those that keep the rules come first, so that they lead their keys.
            start = broken.byte().argsort(stable=True)
            names = names[start]
        ascending, order = names.sort(stable=True)
        order = order if start is None else start[order]
        # Sorting is stable, so the first of equal names is the earliest event.
        first = torch.searchsorted(ascending, ascending)
        words = self.words[order]
        if not packing.named_exactly:
            same(words, words[first])
        old = seen.contains(ascending, words)
        if broken is not None:
            old |= broken[order]  # passed over, as what was seen before
        leader = torch.where(old, order + self.n_events, order[first])
        self.old = torch.empty_like(old)
        self.old[order] = old
        self.leader = torch.empty_like(leader)
        self.leader[order] = leader
        self.old, self.leader = self.old.view(shape), self.leader.view(shape)
        self.alone = torch.arange(self.n_events, 2 * self.n_events, device=place).view(shape)
        # By leader:
        self.verdict = torch.full((2 * self.n_events,), -1, dtype=torch.int8, device=place)
        self.slot = torch.full((self.n_events,), -1, device=place)  # where its finding is kept
        self.judge = torch.full((self.n_events,), -1, device=place)  # which event was asked
        # The loop's clock: latent by latent, and the candidates of one in turn.
        turn = torch.arange(self.n_events, dtype=torch.int32, device=place).view(self.n, n_stages)
        self.turn = turn.T.contiguous()
        self.examined = torch.zeros(shape, dtype=torch.bool, device=place)
        self.examined[0] = True
        self.fresh = torch.zeros(shape, dtype=torch.bool, device=place)
        self.found: list[tuple[Tensor, Verdicts]] = []
        self.n_found = 0

    def check(self, events: Tensor, check: Check) -> bool:
        """Take the verdicts of candidates for those of their keys; False where the budget ended
        before the last."""
        import torch

        rows, verdicts = check(self.rows[events])
        all_paid, events = len(rows) == len(events), events[: len(rows)]
        leader = self.leader.view(-1)[events]
        self.verdict[leader] = verdicts.flips.to(torch.int8)
        self.judge[leader], self.slot[leader] = events, -1
        flipping = verdicts.flips.nonzero()[:, 0]
        self.slot[leader[flipping]] = torch.arange(
            self.n_found, self.n_found + len(flipping), device=rows.device
        )
        self.n_found += len(flipping)
        self.found.append((rows[flipping], _some(verdicts, flipping)))
        return all_paid

    def lacking(self) -> Tensor:
        """The events that are met as new keys and have no verdict.

        Which candidates the loop examines, and which of them it meets as new keys, depends on what
        comes earlier only, so repeating the definition settles both from the first latent on; a
        few rounds do, because few latents share keys across candidates.
        """
        import torch

        leader, alone, turn = self.leader, self.alone, self.turn
        verdict = self.verdict[leader]
        known, flips, unjudged = leader < self.n_events, verdict == 1, verdict < 0
        waits = unjudged & ~self.old

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

        _, examined = look(self.examined)
        while True:
            fresh, following = look(examined)
            if torch.equal(following, examined):
                break
            _, examined = look(following)
        self.examined, self.fresh = examined, fresh
        return (fresh & unjudged).view(-1).nonzero()[:, 0]

    def asked(self) -> Probed:
        """What was checked until the budget ended, in the order of asking."""
        slot, _ = self.slot[self.slot >= 0].sort()
        return Probed(*self._found(slot), int((self.judge >= 0).sum()), False)

    def find_moved(self) -> Tensor:
        """Of the events that are met as new keys, those that differ in protected cells from the one
        that was asked for their key; where no value of their own counts, those that flip."""
        events = self.fresh.view(-1).nonzero()[:, 0]
        leader = self.leader.view(-1)[events]
        judge = self.judge[leader]
        moved = judge != events
        if not self.own_counts:
            moved &= self.slot[leader] >= 0
        events, judge = events[moved], judge[moved]
        protected = self.seen.packing.protected
        cells, others = self.rows[events][:, protected], self.rows[judge][:, protected]
        same = (cells == others) | (cells.isnan() & others.isnan())
        return events[~same.all(1)]

    def finish(self, check: Check, remember: bool) -> Probed:
        """What the loop met, in its order; its keys are seen from now on."""
        if not self.found:  # every key was seen before this block
            self.check(self.leader.new_zeros(0), check)
        # Transposed, so that places come in the order of the loop's clock.
        met = self.fresh.T.nonzero()
        event = met[:, 1] * self.n + met[:, 0]
        if remember and len(event):
            self.seen.add(self.words[event])
        slot = self.slot[self.leader.view(-1)[event]]
        return Probed(*self._found(slot[slot >= 0]), len(event), True)

    def _found(self, slots: Tensor) -> tuple[Tensor, Verdicts]:
        """The findings in these slots."""
        import torch

        rows = torch.cat([rows for rows, _ in self.found])
        return rows[slots], _some(Verdicts.join([told for _, told in self.found]), slots)


def _some(verdicts: Verdicts, places: Tensor) -> Verdicts:
    return Verdicts(*(getattr(verdicts, name)[places] for name in BY_ROW))
