"""LIMI's labels and probes by workers that go ahead: they draw, decode and ask ranges of latents.

The search meets candidates in its own order, with the keys that it has seen; what a scout has
checked of them it takes from there. Scouts hear which keys were seen some ranges ago, so that they
lack a few candidates, which the search decodes and checks itself. A scout keeps in mind what it has
asked lately and the search has not told it yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule
from limi.generators._base import WithTensors
from limi.methods._latent import CHUNK, Chunk, Decode, LatentStream, join_parts, meet
from limi.search.ahead import GoesAhead, News
from limi.search.boundary import Boundary
from limi.search.check import Checked, check_rows
from limi.search.partner import Partner
from limi.search.session import Session
from limi.search.tried import mixture_counts, most_queries
from limi.table.rows import KeySet, in_any
from limi.table.schema import Schema
from limi.types import Index, Keys, Latents, Mask, Rows, Scores

__all__ = ["Probes", "at_once", "label_ahead", "probe_ahead"]

_LARGEST, _SMALLEST = CHUNK, 128  # latents of a range
_SOME_WORKERS, _MANY_WORKERS = 4, 8  # each looks at less, so that all have heard the news of late
_RANGES_EACH = 3  # ranges for each worker, where there are latents enough
_LAST_EACH = 1  # and of what is left: ranges become smaller, so that all workers end together
_SECONDS = 0.1  # of the model: no range is cut that takes less, because each has costs of its own
_FEW = 32  # of so many latents one: what so few lack is asked for at once, needed or not
_OWN = 4  # ranges whose keys a scout keeps in mind until it hears of them


@dataclass(frozen=True)
class Probes:
    """The candidates of latents: on a plane, and a step to either side."""

    latents: LatentStream
    plane: Boundary | None
    offsets: tuple[float, ...]

    def candidates(self, some: Latents) -> list[Decode]:
        """What decodes each candidate of these latents."""
        on_plane = self.plane.project(some) if self.plane else some
        return [partial(self._decode_some, on_plane, offset) for offset in self.offsets]

    def decode(self, some: Latents, stage: int) -> Rows:
        """One candidate of these latents."""
        on_plane = self.plane.project(some) if self.plane else some
        return self._decode(on_plane, self.offsets[stage])

    def _decode_some(self, on_plane: Latents, offset: float, mask: Mask) -> Rows:
        return self._decode(on_plane if mask.all() else on_plane[mask], offset)

    def _decode(self, on_plane: Latents, offset: float) -> Rows:
        moved = self.plane.shift(on_plane, offset) if self.plane and offset else on_plane
        return self.latents.decode(moved)


@dataclass(frozen=True)
class _Range:
    """Latents to look at; those that can be drawn by counting are drawn by whoever looks."""

    start: int
    n: int
    drawn: Latents | None

    def latents(self, stream: LatentStream) -> Latents:
        return stream.part(self.start, self.n) if self.drawn is None else self.drawn


@dataclass(frozen=True)
class _Scouted:
    """What scouts know of the candidates of latents."""

    decoded: Mask  # (stages, n)
    keys: Keys  # of those
    old: Mask  # of those: seen before, as the search has told
    mixed: NDArray[np.int64]  # of those: questions beside the combinations; empty where none is
    asked: Mask  # (stages * n,)
    places: Index  # what flips, among all
    found: Checked  # and how

    @staticmethod
    def join(
        parts: Sequence[_Scouted | None], sizes: Sequence[int], into: _Following
    ) -> tuple[Mask, Index, Checked]:
        """Enter what is known of several ranges: which candidates were asked, which of them flip,
        and how; nothing is known of ranges where scouts failed."""
        asked = np.zeros_like(into.decoded)
        n, none = sum(sizes), Checked.nothing(len(into.schema))
        places, found = [np.empty(0, dtype=np.intp)], [none]
        for part, start in zip(parts, np.cumsum([0, *sizes]), strict=False):
            if part is None:
                continue
            here = slice(start, start + part.decoded.shape[1])
            into.theirs[:, here] = part.decoded
            into.keys[:, here][part.decoded] = part.keys
            into.theirs_old[:, here][part.decoded] = part.old
            if len(part.mixed):
                into.mixed[:, here][part.decoded] = part.mixed
            asked[:, here] = part.asked.reshape(part.decoded.shape)
            stage, place = np.divmod(part.places, part.decoded.shape[1])
            places.append(stage * n + start + place)
            found.append(part.found)
        flipping = np.concatenate(places)
        order = np.argsort(flipping)
        return asked.reshape(-1), flipping[order], Checked.join(found)[order]


class _Counting(Chunk):
    """A chunk that keeps in mind what its rows would cost."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, flips_only=True)
        self._mixes = most_queries(self.schema) > len(self.schema.combinations)
        self.mixed = np.zeros(self.decoded.shape if self._mixes else (0, 0), dtype=np.int64)
        # ^ questions beside the combinations

    def decode_rows(self, wanted: Mask) -> Rows:
        """Enter the rows of candidates."""
        rows = super().decode_rows(wanted)
        if self._mixes:
            self.mixed[wanted] = mixture_counts(self.schema, rows)
        return rows

    def catch_up(self) -> None:
        """Decode and check all candidates of latents that lack something, if these are few.

        Their candidates depend on each other's verdicts, so that the loop would ask for them in
        many calls of few rows, of which each costs what a call costs.
        """
        examined, _ = self.order()
        lacking: Mask = np.any(examined & (~self.decoded | self._is_open), axis=0)
        if not lacking.any() or lacking.sum() > len(lacking) // _FEW:
            return
        wanted = np.broadcast_to(lacking, self.decoded.shape)
        if (undecoded := wanted & ~self.decoded).any():
            self.decode(undecoded)
        event = np.flatnonzero(self.first(wanted & self._is_open))
        if len(event):
            self.judge(event)

    @property
    def _is_open(self) -> Mask:
        """Which candidates have a key without a verdict."""
        verdict = np.append(self._verdicts, np.int8(0))[self._ids]
        return np.asarray(verdict < 0)


class _Looking(_Counting):
    """A chunk that a scout looks at."""

    def __init__(self, own: Iterable[KeySet], *given: Any) -> None:
        super().__init__(*given)
        self._own = own
        self._heard = np.zeros_like(self.old)
        self._told = np.zeros(self.never, dtype=bool)  # what was asked
        self.few = self.decoded.shape[1] // _FEW

    def enter(self, wanted: Mask) -> None:
        """Enter rows and keys of candidates; what this scout has asked counts as seen."""
        super().enter(wanted)
        self._heard |= wanted & self.old
        fresh = wanted & ~self.old
        self.old[fresh] = in_any(self._own, self.keys[fresh])

    def enter_verdicts(self, event: Index, flips: Mask) -> None:
        """Take the verdicts of candidates for those of their keys."""
        self._told[event] = True
        super().enter_verdicts(event, flips)

    def scouted(self) -> _Scouted:
        """What is known now."""
        found, places = self.told()
        return _Scouted(
            self.decoded,
            self.keys[self.decoded],
            self._heard[self.decoded],
            self.mixed[self.decoded] if len(self.mixed) else self.mixed.reshape(-1),
            self._told,
            places,
            found,
        )

    @property
    def asked_keys(self) -> Keys:
        """What was asked for, each once."""
        keys: Keys = self.keys.reshape(self.never, -1)[self._told]
        return keys


@dataclass
class _ProbeScout:
    """Checks the candidates of ranges, as the search would that has seen what it has heard."""

    schema: Schema
    probes: Probes
    partner: Partner
    decision: Rule
    max_batch: int
    seen: KeySet = field(default_factory=KeySet)
    own: deque[KeySet] = field(default_factory=lambda: deque(maxlen=_OWN))

    def hear(self, news: Keys) -> None:
        """Keys that the search has met."""
        self.seen.add(news)

    def look(self, score: Callable[[Rows], Scores], job: _Range) -> _Scouted:
        """What becomes of the candidates of a range."""

        def check(rows: Rows) -> Checked:
            return check_rows(
                score,
                self.schema,
                rows,
                partner=self.partner,
                max_batch=self.max_batch,
                decision=self.decision,
            )

        candidates = self.probes.candidates(job.latents(self.probes.latents))
        chunk = _Looking(self.own, self.schema, job.n, candidates, self.seen, check)
        chunk.ask()
        chunk.catch_up()
        asked = KeySet()
        asked.add(chunk.asked_keys)
        self.own.append(asked)
        return chunk.scouted()


@dataclass(frozen=True)
class _LabelScout:
    """Asks for the rows of ranges as they are."""

    latents: LatentStream
    max_batch: int

    def hear(self, news: Any) -> None:
        """Nothing that is told changes a label."""

    def look(self, score: Callable[[Rows], Scores], job: _Range) -> Scores:
        """Scores of what a range decodes to."""
        rows = self.latents.decode(job.latents(self.latents))
        parts = range(0, len(rows), self.max_batch)
        return np.concatenate([score(rows[at : at + self.max_batch]) for at in parts])


class _Following(_Counting):
    """A chunk of the search, of which scouts know most."""

    def __init__(
        self,
        session: Session,
        candidates: Sequence[Decode],
        seen: KeySet,
        parts: Sequence[_Scouted | None],
        sizes: Sequence[int],
    ) -> None:
        super().__init__(session.schema, sum(sizes), candidates, seen, session.look_up)
        self.theirs, self.theirs_old = np.zeros((2, *self.decoded.shape), dtype=bool)
        self._has_row = np.zeros(self.never, dtype=bool)
        known = _Scouted.join(parts, sizes, self)
        self.decode(self.theirs.copy())
        self._take(*known)
        self.catch_up()

    def enter(self, wanted: Mask) -> None:
        """Enter keys of candidates, and rows of those alone that no scout has decoded."""
        theirs = wanted & self.theirs
        # What scouts have heard of is seen, so the others alone are looked up.
        open_keys = theirs & ~self.theirs_old
        self.old |= theirs & self.theirs_old
        self.old[open_keys] = self.seen.contains(self.keys[open_keys])
        mine = wanted & ~self.theirs
        if mine.any():
            super().enter(mine)

    def decode_rows(self, wanted: Mask) -> Rows:
        """Enter the rows of candidates."""
        self._has_row |= wanted.reshape(-1)
        return super().decode_rows(wanted)

    def rows_of(self, places: Index) -> Rows:
        """The rows of these candidates, decoded where scouts alone have them."""
        lacking = np.zeros(self.never, dtype=bool)
        lacking[places] = True
        lacking &= ~self._has_row
        if lacking.any():
            self.decode_rows(lacking.reshape(self.decoded.shape))
        return super().rows_of(places)

    def _take(self, asked: Mask, flipping: Index, found: Checked) -> None:
        """Take what scouts have checked: of each key what was asked in its first candidate."""
        numbers = self._ids.reshape(-1)
        places = np.flatnonzero(asked & (numbers >= 0))
        self.n_asked += len(places)
        first = np.full(len(self._verdicts), self.never)
        first[numbers[places[::-1]]] = places[::-1]  # of several the last one stays
        chosen = first[first < self.never]
        at = np.searchsorted(flipping, chosen)
        flips = np.append(flipping, -1)[at] == chosen
        self.enter_verdicts(chosen, flips)
        self.parts.append(found[at[flips]])
        self.events.append(chosen[flips])

    def cost(self, met: Mask) -> int:
        """Questions that candidates cost."""
        mixed = int(self.mixed[met].sum()) if len(self.mixed) else 0
        return int(met.sum()) * len(self.schema.combinations) + mixed


def probe_ahead(
    session: Session, ahead: GoesAhead, probes: Probes, seen: KeySet, start: int
) -> Iterator[tuple[int, Checked]]:
    """What the loop checks from a latent on, with the number of latents that it took each time; as
    long as no budget may end within a range, and workers have something to do."""
    stream, n_left = probes.latents, probes.latents.n - start
    questions = len(probes.offsets) * len(session.schema.combinations)
    n_paid = int(min(n_left, session.affordable / len(probes.offsets)))
    cutting = _Cutting(ahead, n_paid, questions)
    if n_left < 2 * cutting.size or n_paid < cutting.size or _may_end_anywhere(session):
        return
    task = session.task
    scout = _ProbeScout(task.schema, probes, task.partner, task.decision, task.max_batch)
    news = News()
    going = ahead.go_ahead(scout, cutting.cut(stream, start, stream.n), news)
    try:
        for brought in going:
            while brought:
                # As many as the budget surely has rows for, and what is worth it to be followed at
                # once.
                n_paid = int(min(session.affordable / len(probes.offsets), CHUNK))
                some = cutting.take(len(brought), n_paid)
                if not some or session.ahead is None:
                    return
                parts, brought = brought[: len(some)], brought[len(some) :]
                cutting.learn(some, parts, len(session.schema.combinations))
                checked, met = _follow(session, probes, seen, some, parts)
                news.tell(met)
                yield sum(one.n for one in some), checked
    finally:
        going.close()


def label_ahead(
    session: Session, ahead: GoesAhead, stream: LatentStream, n: int
) -> Iterator[Scores]:
    """Scores of what the first n latents decode to, chunk by chunk; of as many chunks as workers
    can look at."""
    cutting = _Cutting(ahead, n, 1)
    if n < 2 * cutting.size:
        return
    jobs = cutting.cut(stream, 0, n)
    going = ahead.go_ahead(_LabelScout(stream, session.max_batch), jobs, News())
    parts: list[Scores] = []
    try:
        for brought in going:
            for scores in brought:
                (job,) = cutting.take(1, n)
                if scores is None:
                    return
                parts.append(scores)
                end = job.start + job.n
                if end % CHUNK == 0 or end == n:
                    yield session.take_scores(join_parts(parts))
                    parts = []
    finally:
        going.close()


class _Cutting:
    """Cuts latents into ranges: large ones at first, because a call of many rows costs most models
    less for each, and smaller ones towards the end."""

    def __init__(self, ahead: GoesAhead, n_left: int, questions: float) -> None:
        self._ahead = ahead
        self._questions = questions  # of a latent; as many as there can be, until some are known
        self._n_asked = self._n_looked = 0
        self._kept: list[_Range] = []  # those that were cut and not taken yet
        n_workers = ahead.n_workers
        parts = 1 if n_workers < _SOME_WORKERS else 2 if n_workers < _MANY_WORKERS else 8
        self.size = self._halve(_LARGEST // parts, n_left, _RANGES_EACH * n_workers)

    def cut(self, stream: LatentStream, start: int, end: int) -> Iterator[_Range]:
        """The ranges, in order."""
        counted = isinstance(stream.generator, WithTensors)
        while start < end:
            # Halved and never more than it was, so that no range lies in two chunks.
            self.size = self._halve(self.size, end - start, _LAST_EACH * self._ahead.n_workers)
            n_here = min(self.size, end - start)
            drawn = None if counted else stream.part(start, n_here)
            self._kept.append(_Range(start, n_here, drawn))
            yield self._kept[-1]
            start += self.size

    def take(self, n_ranges: int, n_latents: int) -> list[_Range]:
        """Of the ranges that were cut the first, so many at most, and of so many latents."""
        ends = np.cumsum([one.n for one in self._kept[:n_ranges]])
        n = int(np.searchsorted(ends, n_latents, side="right"))
        some, self._kept[:n] = self._kept[:n], []
        return some

    def learn(
        self, ranges: Sequence[_Range], parts: Sequence[_Scouted | None], n_combinations: int
    ) -> None:
        """How many questions the latents of ranges take."""
        for one, part in zip(ranges, parts, strict=True):
            if part is not None:
                self._n_looked += one.n
                self._n_asked += n_combinations * int(part.asked.sum())
        if self._n_looked:
            self._questions = self._n_asked / self._n_looked

    def _halve(self, size: int, n_left: int, n_ranges: int) -> int:
        """The size of ranges of which there should be so many in what is left, where it is enough
        for that."""
        seconds = self._questions * self._ahead.per_row
        quick = _LARGEST // 8  # of a model that takes no time the rest does
        while size > _SMALLEST and n_left < n_ranges * size:
            if size <= quick and size // 2 * seconds < _SECONDS:
                break
            size //= 2
        return size


def at_once(session: Session) -> int:
    """Latents to probe before it is asked again whether workers may go ahead.

    Where they never may, a whole chunk, as one process takes it: what is asked beside the rows that
    the loop meets, and so where a budget ends, depends on how latents are cut.
    """
    never = session.task.ahead is None or not session.is_plain or _may_end_anywhere(session)
    return CHUNK if never else _LARGEST // 2


def _may_end_anywhere(session: Session) -> bool:
    """Does a number of findings end the search, wherever it is reached?"""
    return bool(np.isfinite(session.findings_left))


def _follow(
    session: Session,
    probes: Probes,
    seen: KeySet,
    ranges: Sequence[_Range],
    parts: Sequence[_Scouted | None],
) -> tuple[Checked, Keys]:
    """What the loop checks in ranges that scouts have looked at, and the keys that it meets.

    Only what it meets is counted, be it checked here or there, so that counts do not depend on who
    was how far ahead.
    """
    sizes = [one.n for one in ranges]
    chunk = _Following(session, _Late(probes, ranges).each, seen, parts, sizes)
    checked, met = meet(chunk, session.look_up)
    assert met is not None  # no budget ends here
    keys = chunk.keys[met]
    session.take(keys, chunk.cost(met))
    return checked, keys


class _Late:
    """Candidates of latents that are drawn when the first of them is wanted."""

    def __init__(self, probes: Probes, ranges: Sequence[_Range]) -> None:
        self._probes, self._ranges = probes, ranges
        self._latents: Latents | None = None
        self.each = [partial(self._decode, stage) for stage in range(len(probes.offsets))]

    def _decode(self, stage: int, mask: Mask) -> Rows:
        if self._latents is None:
            drawn = [one.latents(self._probes.latents) for one in self._ranges]
            self._latents = join_parts(drawn)
        return self._probes.decode(self._latents[mask], stage)
