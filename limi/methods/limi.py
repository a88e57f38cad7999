"""LIMI: natural rows near a surrogate decision boundary (Xiao et al., ISSTA 2023).

Sample latents, decode and score them, fit a linear boundary to the confident ones in latent
space, move every latent onto it, and check it and a step to either side.

Faithfulness
- Paper: a million latents, score threshold 0.7, over-sampling at random to 50,000 latents per
  class, step (lambda) 0.3, order z0, z+, z-, leave a latent at the first hit. `preset=paper`.
- Released code: takes the 50,000 best scored per class and repeats the smaller class in turn to the
  larger one's size (`choice="best"`). It also uses step 0.1 for forests and SVMs (set `step`),
  and clips rows only after labelling them; here rows never leave the schema's domain.
- Paper and code label all latents. `preset=best`, the default, labels 100,000, and at most a tenth
  of the rows or queries that a budget allows (but 200): the boundary is the same to the third digit
  and the queries go into the search. A report says beside `n_labelled` how many were used.
- The paper's generator is a CTGAN; the default here is `trees` (generator="ctgan" for the paper's).
- The loop over latents and candidates is batched; the rows it checks, their order and the keys it
  skips are those of the literal loop, also where a budget of rows ends it.
- `preset=calibrated` is ours: balancing the classes moves the paper's plane away from the decision,
  so that far fewer than half of the rows on it are favorable where classes are unequal. Its plane
  is that of a logistic regression on all labelled latents, without one more query; `calibration`
  goes from 0, the paper's plane, to 1. It finds more per row, among people less like the table's
  own who flip (docs/reproduction/boundary.md), so it is not the default.
- The published findings per second (EGS) begin when samples, labels and boundary are ready. A run
  tells the seconds of its phases apart, so that labels and search can be read alone.
- Targets that answer labels only have no confidence to filter by; all their latents count.
"""

from __future__ import annotations

from collections.abc import Generator as Coroutine
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from limi.decisions import favors, opposes, round_scores
from limi.errors import InvalidInput
from limi.gpu.verdicts import OnDevice, Seen
from limi.methods._latent import (
    Confident,
    LatentStream,
    TensorStream,
    beside,
    join_parts,
    oversample,
    pieces,
    probe,
)
from limi.methods._scouting import Probes, at_once, label_ahead, probe_ahead
from limi.methods._tensors import Probed, unseen
from limi.methods._tensors import probe as probe_tensors
from limi.search import boundary as planes
from limi.search.boundary import Boundary
from limi.search.check import Checked
from limi.search.session import Session
from limi.search.tried import most_queries
from limi.table.rows import KeySet, keys
from limi.types import Latents, Mask, Rows

__all__ = ["LIMI"]

_BOUNDARY_SHARE = 10  # of what may be asked or checked, at most a tenth is labelled
_FEWEST_LABELLED = 200  # with fewer there is no usable boundary
_LABELLED_AT_ONCE = 2048  # where time is short
_POOR_AUC = 0.75
_MOST_JUDGED = 1 << 22  # labelled latents by which it is told; one is drawn like the other
_AT_ONCE = 1 << 16  # findings that leave a device together
_RANKED = 12  # digits by which scores are ranked


@dataclass(frozen=True, kw_only=True)
class LIMI:
    """Probe natural rows around a boundary fitted in latent space."""

    n_latents: int = 1_000_000  # latents to move onto the boundary and probe
    n_labelled: int | None = 100_000  # latents scored for the boundary; None: all of them
    threshold: float = 0.7  # latents with a surer score fit the boundary (epsilon)
    per_class: int = 50_000  # latents of each side that the boundary is fitted to
    choice: Literal["random", "best"] = "random"  # which confident latents to fit on
    step: float = 0.3  # distance of a probe from the boundary (lambda)
    boundary: Literal["fitted", "random"] = "fitted"  # random is the paper's control
    calibration: float = 0.0  # 0: the paper's plane, 1: the one where decisions change, or between
    C: float = 1.0  # inverse strength of the boundary's regularization

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "paper": {"n_labelled": None},
        "calibrated": {"calibration": 1.0},
    }

    def most_rows(self, n_table: int) -> int:
        """Rows that a search checks at most: three candidates of every latent."""
        return 3 * self.n_latents

    def __post_init__(self) -> None:
        if self.n_latents < 1 or self.per_class < 1:
            raise InvalidInput("n_latents and per_class must be at least 1")
        if self.C <= 0 or (self.n_labelled is not None and self.n_labelled < 1):
            raise InvalidInput("C must be above 0, and n_labelled at least 1")
        if not 0.5 <= self.threshold < 1:
            raise InvalidInput(f"threshold is {self.threshold}; it must lie in [0.5, 1)")
        if not 0 <= self.calibration <= 1:
            raise InvalidInput(
                f"calibration is {self.calibration}; use 0 for the paper's plane, 1 for the "
                "calibrated one, or a share between them"
            )

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """Boundary first, then the probes; as tensors where target and generator share a device.

        A budget of queries is spent in arrays: the frugal order of asking is not worth a device.
        """
        session.remembers = False  # the loop knows which keys it has seen
        if session.on_device is None or np.isfinite(session.queries_left):
            yield from self._search(session, rng, flips_only=not session.schema.rules)
        else:
            yield from self._on_device(session, session.on_device, rng)

    def explore(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """The same; LIMI's rows can also seed another method's local phase."""
        yield from self._search(session, rng, flips_only=False)

    def _search(
        self, session: Session, rng: np.random.Generator, *, flips_only: bool
    ) -> Iterator[Checked]:
        """Probes of all latents; with `flips_only`, rows that do not flip are counted alone."""
        assert session.generator is not None
        latents = LatentStream(session.generator, self.n_latents, int(rng.integers(2**62)))
        plane = yield from self._plane(session, latents, rng)
        session.enter("search")
        seen = KeySet()
        offsets = (0.0, self.step, -self.step) if self.step and plane else (0.0,)
        probes = Probes(latents, plane, offsets)

        def fresh(some: Latents) -> Mask:
            every = np.ones(len(some), dtype=bool)
            rows = [decode(every) for decode in probes.candidates(some)]
            new: Mask = np.any([_is_new(session, seen, r) for r in rows], axis=0)
            return new

        def again(rows: Rows) -> Checked:
            with session.beside_rows():
                return session.check_kept(rows)

        start = 0
        while True:
            if flips_only and session.ahead is not None:
                for n, checked in probe_ahead(session, session.ahead, probes, seen, start):
                    start += n
                    yield checked.named("limi")
            chunk = next(latents.chunks(start=start), None)
            if chunk is None:
                return
            chunk = chunk[: at_once(session)] if flips_only else chunk
            start += len(chunk)
            for piece in pieces(session, chunk, len(offsets), fresh):
                left = session.rows_left
                checked, paid = probe(
                    session.schema,
                    len(piece),
                    probes.candidates(piece),
                    seen,
                    session.check_kept,
                    again,
                    session.find_refused,
                    flips_only=flips_only,
                )
                # What the loop does not meet costs no row.
                session.rows_left = left - len(checked) - checked.unflipped
                yield checked.named("limi")
                if not paid:
                    return

    def _on_device(
        self, session: Session, here: OnDevice, rng: np.random.Generator
    ) -> Iterator[Checked]:
        """The same search, of which only what flips leaves the device."""
        for batch in self.probed(session, here, rng):
            if isinstance(batch, Checked):
                yield batch
                continue
            # Where nothing but the latents may end the search, in parts: the ledger and whoever
            # checks again need not wait for all of a large batch.
            is_free = not (session.watch.limited or np.isfinite(session.findings_left))
            is_free = is_free and session.rows_left >= 1
            yield from batch.in_parts(here, "limi", _AT_ONCE if is_free else max(len(batch), 1))

    def probed(
        self, session: Session, here: OnDevice, rng: np.random.Generator
    ) -> Iterator[Checked | Probed]:
        """What flips, as tensors; before that the empty batches of the boundary."""
        seed = int(rng.integers(2**62))
        latents = TensorStream(here.generator, self.n_latents, seed, here.chunk)
        plane = yield from self._plane(session, latents, rng)
        session.enter("search")
        seen = Seen(here.packing)
        offsets = (0.0, self.step, -self.step) if self.step and plane else (0.0,)

        def candidates(some: Any) -> Any:
            on_plane = plane.project(some) if plane else some
            moved = [plane.shift(on_plane, o) if plane and o else on_plane for o in offsets]
            return join_parts([latents.decode(one) for one in moved])

        def fresh(some: Any) -> Any:
            rows = candidates(some)
            new, broken = unseen(seen, rows), session.find_broken(rows)
            return (new if broken is None else new & ~broken).view(len(offsets), -1).any(0)

        def again(rows: Any) -> Any:
            with session.beside_rows():
                return session.check_tensors(rows)

        n_left = self.n_latents
        for chunk in latents.chunks():
            n_left -= len(chunk)
            for piece in pieces(session, chunk, len(offsets), fresh):
                left = session.rows_left
                probed = probe_tensors(
                    candidates(piece),
                    len(offsets),
                    session.check_tensors,
                    seen,
                    again=again,
                    # The last piece of all leaves nobody to ask for its keys.
                    remember=n_left > 0 or len(piece) < len(chunk),
                    own_counts=most_queries(session.schema) > 2,
                    refuse=session.find_refused,
                )
                session.rows_left = left - probed.n_checked
                yield probed
                if not probed.paid:
                    return

    def fit_plane(self, session: Session, rng: np.random.Generator) -> Boundary | None:
        """The boundary that a search with this rng would probe around."""
        assert session.generator is not None
        latents = LatentStream(session.generator, self.n_latents, int(rng.integers(2**62)))
        fitting = self._plane(session, latents, rng)
        while True:
            try:
                next(fitting)
            except StopIteration as fitted:
                plane: Boundary | None = fitted.value
                return plane

    def _plane(
        self, session: Session, latents: LatentStream | TensorStream, rng: np.random.Generator
    ) -> Coroutine[Checked, None, Boundary | None]:
        """The boundary, or None where every natural row is decided alike."""
        if self.boundary == "random":
            return planes.random(next(latents.chunks(1)), rng)
        sides = Confident(self.per_class), Confident(self.per_class)
        favored: list[Any] = []  # by chunk, a byte for each: all latents may be labelled
        distances: list[Any] = []
        n_labelled = self._n_labelled(session)
        session.enter("labels", n_labelled)
        ends = session.watch.seconds + session.watch.left / _BOUNDARY_SHARE
        told: Iterator[Any] = iter(())
        if session.ahead is not None and isinstance(latents, LatentStream):
            told = label_ahead(session, session.ahead, latents, n_labelled)
        for chunk in latents.chunks(n_labelled):
            score = next(told, None)
            if score is None:
                score = _labels(session, latents, chunk, ends)
            rank = latents.ranks(sum(map(len, favored)), len(score))
            favored.append(favors(score))
            self._sort(chunk[: len(score)], score, rank, sides)
            yield Checked.nothing(len(session.schema))
            if len(score) < len(chunk):
                break
        session.used["n_labelled"] = sum(map(len, favored))
        down, up = sides
        if not len(down) or not len(up):
            session.notes.append(
                f"no boundary could be fitted: of {sum(map(len, favored)):,} natural rows, "
                f"{len(up)} were clearly favorable and {len(down)} clearly not; plain natural rows "
                "were checked instead"
            )
            return None
        plane, fitness = self._fit(down.latents(), up.latents(), rng)
        if self.calibration:
            plane = self._calibrate(plane, latents, favored)
        for chunk, favorable in zip(latents.chunks(n_labelled), favored, strict=False):
            distances.append(plane.distance(chunk[: len(favorable)]))
            if sum(map(len, distances)) >= _MOST_JUDGED:
                break
        entire = planes.auc(join_parts(distances), join_parts(favored[: len(distances)]))
        session.facts.update(boundary_auc_train=fitness, boundary_auc_entire=entire)
        session.notes.extend(plane.notes)
        if entire < _POOR_AUC:
            session.notes.append(
                f"the boundary fits poorly (AUC {entire:.2f} on the labelled latents): findings "
                "per query may be no better than those of plain natural rows"
            )
        return plane

    def _calibrate(
        self, plane: Boundary, latents: LatentStream | TensorStream, favored: list[Any]
    ) -> Boundary:
        """The plane between the paper's and that of all labelled latents."""

        def labelled() -> Iterator[tuple[Any, Any]]:
            n = sum(map(len, favored))
            for chunk, favorable in zip(latents.chunks(n), favored, strict=False):
                yield chunk[: len(favorable)], favorable

        return planes.between(plane, planes.calibrate(labelled, C=self.C), self.calibration)

    def _n_labelled(self, session: Session) -> int:
        """A tenth of what may be checked or asked at most: the boundary serves the search.

        A wish for all latents holds against a budget of rows, which limits checks and not labels.
        """
        n = self.n_latents if self.n_labelled is None else min(self.n_labelled, self.n_latents)
        allowed = min(session.queries_left, session.watch.affordable)
        if self.n_labelled is not None:
            allowed = min(allowed, session.rows_left)
        if np.isfinite(allowed):
            n = min(n, max(_FEWEST_LABELLED, int(allowed) // _BOUNDARY_SHARE))
        return n

    def _sort(
        self, latents: Latents, score: Any, rank: Any, sides: tuple[Confident, Confident]
    ) -> None:
        """Hand confident latents to the side of their decision."""
        labels_only = bool(((score == 0) | (score == 1)).all())
        readings = (opposes(score), 1 - score), (favors(score), score)
        for side, (mine, confidence) in zip(sides, readings, strict=True):
            sure = mine if labels_only else mine & (round_scores(confidence) > self.threshold)
            # Rounded, so that equal scores stay equal whatever the order of their sums.
            best = -confidence[sure].round(decimals=_RANKED)
            side.add(latents[sure], best if self.choice == "best" else rank[sure])

    def _fit(self, down: Latents, up: Latents, rng: np.random.Generator) -> tuple[Boundary, float]:
        """The boundary between the two sides, made equal in number, and its AUC on them."""
        if self.choice == "best":
            n, draw = max(len(down), len(up)), None
        else:
            n, draw = self.per_class, rng
        down, up = oversample(down, n, draw), oversample(up, n, draw)
        fitted_on = join_parts([down, up])
        favorable = beside(np.arange(len(fitted_on)) >= len(down), fitted_on)
        plane = planes.fit(fitted_on, favorable, C=self.C)
        return plane, planes.auc(plane.distance(fitted_on), favorable)


def _is_new(session: Session, seen: KeySet, rows: Rows) -> Mask:
    """Which rows have a key that was not seen, and keep the rules."""
    new, broken = ~seen.contains(keys(session.schema, rows)), session.find_broken(rows)
    return new if broken is None else new & ~broken


def _labels(
    session: Session, latents: LatentStream | TensorStream, chunk: Latents, ends: float
) -> Any:
    """Scores of what latents decode to; of as many as can be labelled by then."""
    if not session.watch.limited:
        return session.ask(latents.decode(chunk))
    parts: list[Any] = []
    for start in range(0, len(chunk), _LABELLED_AT_ONCE):
        if parts and session.watch.seconds >= ends:
            break
        some = chunk[start : start + _LABELLED_AT_ONCE]
        parts.append(session.ask(latents.decode(some)))
        if len(parts[-1]) < len(some):
            break
    return join_parts(parts)
