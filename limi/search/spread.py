"""Questions spread over workers: the same answers as in one process, sooner.

Answers of a steady model do not depend on the rows beside them, so questions are cut where it suits
the workers. What is written of a finding comes from blocks of a fixed size, each asked whole.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Rule
from limi.errors import BadModel
from limi.models._base import Reopens
from limi.models.target import Target
from limi.models.trial import Terms
from limi.search.ahead import Answered, News, Recorder, Scout, Timed
from limi.search.answer_log import AnswerLog
from limi.system import cores
from limi.table.frames import Codec
from limi.types import Rows, Scores
from limi.workers import Crew, Executor, Failed, Killed, Stuck, Trial

__all__ = ["Opened", "Spread", "try_rows"]

_PART_SECONDS = 0.1  # less is not worth the way to a worker
_PARTS_EACH = 2  # parts for each worker: a call has costs of its own, and the slowest is waited for
_FEWEST = 64  # rows that are not cut further where memory is short

_TRIED = (1, 8, 64, 512)  # rows of a trial: as many as ...
_TRIED_SECONDS = 0.1  # ... the model answers within this time
_TRIED_CELLS = 8192  # and no more cells: a pipe takes so many before anybody reads

_PATIENCE = 60.0  # seconds that a part may take a worker, and ...
_BUSY = 20  # ... times as long as one core would take, before the search goes alone
_FIRST_LOOK = 600.0, 1000  # seconds and rows of the first part of a search, whose size is not known
_MOST_FAILED = 8  # parts of a search that scouts could not look at, before it goes alone

What = Literal["score", "decide"]


@dataclass(frozen=True)
class Opened:
    """A model's file, with all that it takes to have the same target in another process."""

    uri: str
    terms: Terms
    codec: Codec
    unseen: tuple[str, ...]
    rule: Rule
    settled_on: Rows

    def arrive(self) -> _Asking:
        """The target of the file."""
        target = Target(
            self.terms.model(self.uri), self.codec, unseen=self.unseen, rule=self.terms.rule
        )
        return _Asking(replace(target.settled(self.settled_on), rule=self.rule))


@dataclass(frozen=True)
class _Asking:
    """The work: a target is asked for its scores, or its decisions, of some rows."""

    target: Target
    opened: Opened | None = None  # of a file
    scouts: dict[int, Scout] = field(default_factory=dict, compare=False)

    @property
    def forks(self) -> bool:
        """All but what makes frames does, or is opened again."""
        return self.target.codec.forks

    @property
    def luggage(self) -> Any:
        """The name of the model's file, where there is one: formats can be opened everywhere."""
        return self.opened or self

    def arrive(self) -> _Asking:
        """The same target, opened again where its library does not outlive a fork."""
        model = self.target.model
        if not isinstance(model, Reopens):
            return self
        return _Asking(replace(self.target, model=model.reopened()))

    def __call__(self, job: tuple[What, Rows] | _Look) -> tuple[Any, float]:
        start = time.perf_counter()
        if isinstance(job, _Look):
            return self._look(job), time.perf_counter() - start
        what, rows = job
        asked = self.target.score if what == "score" else self.target.decide
        return asked(rows), time.perf_counter() - start

    def _look(self, job: _Look) -> _Brought:
        """What a scout finds in a part of a search, and the answers that it got."""
        if job.scout is not None:
            self.scouts.clear()  # of searches that are over
            self.scouts[job.search] = pickle.loads(job.scout)  # noqa: S301 (our parent wrote it)
        scout = self.scouts[job.search]
        for news in job.news:
            scout.hear(news)
        timed = Timed(self.target.score)
        asked = Recorder(timed) if job.is_logged else timed
        found = scout.look(asked, job.part)
        answered = asked.answered if isinstance(asked, Recorder) else None
        return _Brought(found, answered, timed.n, timed.seconds)


@dataclass(frozen=True)
class _Brought:
    """What a scout comes back with."""

    found: Any
    answered: Answered | None  # where answers are kept
    n: int  # rows that it has asked for ...
    seconds: float  # ... and what they took


@dataclass(frozen=True)
class _Look:
    """A part of a search that a scout should look at."""

    search: int  # which one
    scout: bytes | None  # of a worker that has none yet
    news: list[Any]
    part: Any
    is_logged: bool


def try_rows(score: Callable[[Rows], Scores], rows: Rows) -> tuple[Rows, float]:
    """Rows that a model answers quickly, and the seconds that it takes: many enough to have its
    threads started, if it has any."""
    most = _most_tried(rows)
    for n in _TRIED:
        part = rows[: min(n, most)]
        start = time.perf_counter()
        score(part)
        seconds = time.perf_counter() - start
        if seconds > _TRIED_SECONDS or n >= most:
            break
    return part, seconds


def _most_tried(rows: Rows) -> int:
    return max(1, min(len(rows), _TRIED[-1], _TRIED_CELLS // int(rows.shape[1])))


class Spread:
    """A target that is asked by the workers of an executor, as a context.

    Until it is told to `begin`, this process asks by itself: whether a model is steady is seen in
    one process, and one that is not stays there. Workers are then first asked what this process has
    asked, so that none is waited for which would never answer.
    """

    def __init__(self, target: Target, executor: Executor, opened: Opened | None = None) -> None:
        self._target = target
        self._crew = Crew(executor, _Asking(target, opened))
        self._tried: Trial | None = None  # what this process has asked
        self.notes: list[str] = []  # what the report should say about workers
        self._at_work = False
        self._per_row = 0.0  # seconds of one process
        self._n_searches = 0
        self._is_ahead = False  # are the workers scouts now, who do not answer?
        self.log: AnswerLog | None = None  # where answers are kept, if they are

    def __enter__(self) -> Spread:
        # Now, while this process holds no lock that they would hold with it.
        self._crew.hire()
        return self

    def __exit__(self, *raised: object) -> None:
        self._at_work = False
        self._crew.dismiss()

    @property
    def n_workers(self) -> int:
        """How many are asked at the same time; 1 while this process asks."""
        return self._crew.size if self._at_work else 1

    @property
    def per_row(self) -> float:
        """Seconds of the model for one row in one process; 0 while that is not known."""
        return self._per_row

    @property
    def again(self) -> int:
        """Parts that were asked again, because their worker was killed."""
        return self._crew.again

    def begin(self) -> None:
        """From now on workers are asked."""
        self._at_work = True
        if self._tried is not None:
            self._crew.try_out(self._tried)

    def rest(self) -> None:
        """From now on this process asks alone."""
        self._at_work = False
        self._crew.dismiss()

    def _give_up(self, error: Stuck) -> None:
        """Ask alone, because workers do not answer."""
        self.rest()
        self.notes.append(
            f"{error}, so the model was asked in one process from then on; the findings are the "
            "same"
        )

    def score(self, rows: Rows) -> Scores:
        """The target's scores of rows, in order."""
        n_parts = int(len(rows) * self._per_row / _PART_SECONDS)
        if not self._at_work or self._is_ahead or n_parts < 2 or not self._crew.is_ready:
            start = time.perf_counter()
            scores = self._target.score(rows)
            seconds = time.perf_counter() - start
            self._learn(len(rows), seconds)
            if not self._at_work:
                self._keep_for_trial(rows[: _most_tried(rows)], seconds)
            return scores
        n_parts = min(n_parts, _PARTS_EACH * self._crew.size)
        ends = np.linspace(0, len(rows), n_parts + 1).astype(np.intp)
        parts = [rows[a:b] for a, b in pairwise(ends)]
        return np.concatenate(self._ask("score", parts))

    @property
    def can_go_ahead(self) -> bool:
        """Are there workers, and is nothing answered by a log of an earlier run?"""
        is_replaying = self.log is not None and self.log.is_replaying
        return self._at_work and not is_replaying and self._crew.is_ready

    def go_ahead(
        self, scout: Scout, jobs: Iterable[Any], news: News
    ) -> Generator[list[Any], None, None]:
        """What scouts find in these parts of a search, in their order, as many as are there; None
        of one where they failed, so that the search looks there and meets what they have met."""
        try:
            message = pickle.dumps(scout, protocol=5)
        except Exception:  # whatever an object's own code raises
            return
        self._n_searches += 1
        search, log = self._n_searches, self.log

        def brief(hand: Any, part: Any) -> _Look:
            first = None if news.knows(hand) else message
            return _Look(search, first, news.since(hand), part, log is not None)

        n_failed = 0
        longest = 0.0

        def patience(part: Any) -> float:
            if longest:
                return _PATIENCE + _BUSY * longest
            seconds, n = _FIRST_LOOK
            return seconds + self._allow(n)

        self._is_ahead = True
        try:
            for results in self._crew.in_turn(jobs, brief, patience):
                for one in results:
                    if isinstance(one, Failed) and isinstance(one.error, Stuck):
                        raise one.error
                brought: list[_Brought | None] = [
                    None if isinstance(one, Failed) else one[0] for one in results
                ]
                took = [one[1] for one in results if not isinstance(one, Failed)]
                longest = max([longest, *took])
                for one in brought:
                    if one is None:
                        n_failed += 1
                        continue
                    self._learn(one.n, one.seconds)
                    if log is not None and one.answered is not None:
                        log.add(one.answered.hashes, one.answered.scores)
                yield [None if one is None else one.found for one in brought]
                if n_failed >= _MOST_FAILED:
                    return
        except Stuck as error:
            self._give_up(error)
        finally:
            self._is_ahead = False

    def score_blocks(self, blocks: Sequence[Rows]) -> list[Scores]:
        """Scores of blocks that are asked whole, each in one call of the model."""
        return self._ask("score", blocks)

    def decide_blocks(self, blocks: Sequence[Rows]) -> list[Any]:
        """The same of the model's own decisions; None of a block where scores are all it says."""
        return self._ask("decide", blocks)

    def _ask(self, what: What, parts: Sequence[Rows]) -> list[Any]:
        if not self._at_work:
            asking = _Asking(self._target)
            return [asking((what, part))[0] for part in parts]
        answers: list[Any] = [None] * len(parts)
        failed: dict[int, BaseException] = {}
        try:
            for number, result in self._crew.each([(what, part) for part in parts], self._patience):
                if isinstance(result, Failed):
                    if isinstance(result.error, Stuck):
                        raise result.error
                    failed[number] = result.error
                    continue
                answers[number], seconds = result
                self._learn(len(parts[number]), seconds)
        except Stuck as error:
            self._give_up(error)
            return self._ask(what, parts)
        # The first of them in any case, as this process would have met it.
        for number in sorted(failed):
            answers[number] = self._ask_smaller(what, parts[number], failed[number])
        return answers

    def _patience(self, job: tuple[What, Rows]) -> float:
        return _PATIENCE + self._allow(len(job[1]))

    def _allow(self, n: int) -> float:
        """Seconds for n rows; what they took this process, it may have had all cores for."""
        return _BUSY * cores.n_cores() * n * self._per_row

    def _ask_smaller(self, what: What, rows: Rows, error: BaseException) -> NDArray[Any]:
        """The answers to a part that was too much for a worker, in two halves."""
        if not isinstance(error, (MemoryError, Killed)):
            raise error
        if len(rows) < 2 * _FEWEST:
            raise BadModel(
                f"a worker {_describe(error)} when it asked the model about {len(rows)} rows, and "
                "about more rows before; use fewer --workers, or a machine with more memory"
            ) from None
        half = len(rows) // 2
        return np.concatenate(self._ask(what, [rows[:half], rows[half:]]))

    def _keep_for_trial(self, rows: Rows, seconds: float) -> None:
        """Keep the most rows that the model has answered quickly, for workers to try."""
        kept = self._tried
        if kept is None or (len(rows) > len(kept.job[1]) and seconds <= _TRIED_SECONDS):
            self._tried = Trial(("score", rows), seconds)

    def _learn(self, n: int, seconds: float) -> None:
        if n:
            # Of small calls and large ones the cheapest row: what a call costs is not the rows'.
            known = self._per_row or seconds / n
            self._per_row = min(known * 1.1, seconds / n)


def _describe(error: BaseException) -> str:
    return "ran out of memory" if isinstance(error, MemoryError) else "was killed"
