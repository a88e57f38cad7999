"""Rows out, answers back: in order, each row once, in requests of a size that suits the server.

Several requests are in flight; memory and count are touched by the asking thread alone. A request
that fails is tried again after a while; an answer that cannot be read may have been spoiled on
the way, so that is tried again as well, and believed when it happens every time. An answer that
takes several times as long as others did counts as lost. Where nothing answers any longer,
Unreachable ends the run, which can be resumed.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, repeat
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, LimiError, Unreachable
from limi.remote.cells import Cells, Keys, names, read, turned
from limi.remote.client import SILENT, TOO_LARGE, Client, Failed, Malformed, Request
from limi.remote.memory import Memory
from limi.remote.options import Remote
from limi.remote.pace import Pace, Patience
from limi.remote.secrets import expand
from limi.remote.tally import Tally
from limi.system.watch import OutOfQueries
from limi.types import Index

__all__ = ["Exchange", "Shape"]

_T = TypeVar("_T")

_MOST_TRIES = 12  # of one request
_FIRST_TRIES = 6  # where nothing was ever answered: the address may be wrong
_MOST_MALFORMED = 6  # answers to one request that cannot be read
_MOST_FAILURES = 24  # in a row, of all requests: the circuit opens
_BLOCK = 4096  # rows that are read at once, while others are on their way
_LANDING = 10.0  # seconds that answers on their way are waited for when a run ends
_GLANCE = 0.1  # seconds between two looks at whether anybody still waits for the answers
_SILENCE = 15.0  # seconds without an answer after which we say so, and after which we say it again
_PATIENT = 2  # time-outs that an address has which never answered
_LONGEST_PAUSE = 15.0  # seconds between two tries of a request
_LONGEST_WAIT = 300.0  # seconds that a server may ask to be left alone

_log = logging.getLogger(__name__)


class Shape(Protocol):
    """How a kind of server is spoken to."""

    @property
    def identity(self) -> str:
        """All that an answer depends on beside the row: kind, address, name, options."""
        ...

    @property
    def host(self) -> str:
        """Where rows are sent."""
        ...

    @property
    def url(self) -> str:
        """The address, with the names of secrets that are filled in."""
        ...

    @property
    def columns(self) -> Sequence[str] | None:
        """Columns that the model takes, in order; None where nobody says."""
        ...

    @property
    def most_rows(self) -> int | None:
        """Rows of one request at most; None for no limit but the server's own."""
        ...

    def request(self, cells: Cells) -> Request:
        """The request that asks for these rows."""
        ...

    def read(self, body: bytes, n: int) -> list[Any]:
        """One answer per row; Malformed where the body holds no such thing."""
        ...


class Exchange:
    """Asks a server for the answers to rows that are not known yet."""

    def __init__(self, shape: Shape, remote: Remote) -> None:
        self.shape, self.remote = shape, remote
        self._headers = expand(remote.headers, url=shape.url)
        self._line = self._open_line()
        identity = "\n".join([shape.identity, *sorted(remote.headers)])
        self.memory = Memory(identity, remote.cache, run=remote.run, resume=remote.resume)
        self.tally = Tally(sent=self.memory.new, before=self.memory.new)
        self.max_queries = remote.max_queries
        self._pace, self._patience = Pace(shape.most_rows), Patience(remote.timeout)
        self._watch = remote.look
        self._answered = False  # did anything come back that could be used?
        self._began: float | None = None  # when the first request was sent
        self._said = ""  # the last words of a server that gives no answers
        self._heard = self._told = 0.0  # when an answer came last, and when its lack was told
        self._row_of_failures = 0  # one after another, over all requests
        self._lock = threading.Lock()
        self._free_at = 0.0  # when the server wants to be asked again, which holds for all requests
        self._asked: set[bytes] = set()  # different rows of this run, whoever knew the answer
        self._turns: dict[bytes, int] | None = None
        self._first_turn = 0

    @property
    def columns(self) -> list[str] | None:
        """Columns that the model takes, where the shape says so."""
        return None if self.shape.columns is None else list(self.shape.columns)

    @property
    def asked(self) -> int:
        """How many different rows this run has asked about, whoever knew the answers: as many as
        a run sends for which nothing was known before."""
        return len(self._asked)

    def allow(self, max_queries: int | None, look: Callable[[], None] | None = None) -> None:
        """Begin a run that may send so many rows, whatever was sent before; `look` is called
        while answers are waited for."""
        self.memory.new, self.tally = 0, Tally()
        self._asked.clear()
        self.max_queries, self._watch = max_queries, look

    @contextmanager
    def anew(self, first: int = 0) -> Iterator[None]:
        """In this block a row that is asked again is another question; its n-th asking has the
        n-th of the answers to that row, which are kept like all others."""
        before = self._turns, self._first_turn
        self._turns, self._first_turn = {}, first
        try:
            yield
        finally:
            self._turns, self._first_turn = before

    @contextmanager
    def watched(self, look: Callable[[], None]) -> Iterator[None]:
        """In this block `look` is called while answers are waited for, and may raise.

        What is then on its way is given up.
        """
        before, self._watch = self._watch, look
        try:
            yield
        finally:
            self._watch = before

    def __call__(self, frame: Any) -> NDArray[Any]:
        """The answers to rows, as the server gave them."""
        blocks: list[_Block] = []
        self._fetch(self._read_lacking(frame, blocks))
        answers: list[Any] = []
        for block in blocks:
            again = np.flatnonzero(block.places < 0)  # rows that stand there twice
            if len(again):
                block.places[again] = self.memory.find(block.select(again))
            answers += self.memory.answers(block.places.tolist())
        try:
            return np.array(answers)
        except ValueError:
            raise BadModel(
                f"{self.shape.host} answers with lists of different lengths; every row needs the "
                "same number of values"
            ) from None

    def _read_lacking(self, frame: Any, blocks: list[_Block]) -> Iterator[_Part]:
        """Rows whose answers are not known, block by block, so that the next ones are read while
        the first are on their way."""
        sent: set[bytes] = set()
        several = len(frame) > _BLOCK
        for start in range(0, len(frame), _BLOCK):
            cells, keys = read(frame[start : start + _BLOCK] if several else frame)
            if self._turns is not None:
                turns = self._count_turns(keys)
                keys = turned(keys, turns)
                cells = replace(cells, turns=turns.tolist())
            block = _Block(names(keys))
            self._asked.update(block.named)
            blocks.append(block)
            lacking = self._look_up(block)
            wanted = block.select(lacking)
            if len(set(wanted)) < len(wanted) or not sent.isdisjoint(wanted):
                # Rows that stand there twice are sent once.
                first = dict(zip(reversed(wanted), lacking[::-1].tolist(), strict=True))
                lacking = np.array(sorted(first[key] for key in first.keys() - sent), dtype=np.intp)
                wanted = block.select(lacking)
            if several:
                sent.update(wanted)
            self.tally.add(known=len(keys) - len(lacking))
            if len(lacking):
                left = len(lacking) + max(0, len(frame) - start - _BLOCK)
                yield _Part(cells.take(lacking), wanted, block, lacking, left, not several)

    def _look_up(self, block: _Block) -> Index:
        """The rows of a block that nobody was ever answered, as far as is known by now."""
        block.places[:] = self.memory.find(block.named)
        lacking = np.flatnonzero(block.places < 0)
        if len(lacking) and self.memory.refresh():
            block.places[lacking] = self.memory.find(block.select(lacking))
            lacking = np.flatnonzero(block.places < 0)
        return lacking

    def get(self, url: str) -> bytes:
        """What a server says of itself; tried again like any request."""
        line, request = self._line, Request(url, method="GET")
        self._begin()
        asked = line.submit(lambda: self._persist(line, lambda: request, bytes, 0))
        self._wait([asked])
        return asked.result()

    def keep_fact(self, name: str, value: str) -> None:
        """Keep something that the server said of the model, but for secrets that it repeats."""
        self.memory.keep_fact(name, self._headers.scrub(value))

    def rest(self) -> None:
        """Let go of connections, threads and the file, until something is asked again."""
        self._watch = None
        self._line.rest()
        self.memory.close()

    def _open_line(self) -> _Line:
        remote = self.remote
        client = Client(self.shape.host, self._headers, concurrency=remote.concurrency)
        return _Line(client, remote.concurrency)

    def _count_turns(self, keys: Keys) -> NDArray[np.int64]:
        """How often each row was asked before, in this block."""
        assert self._turns is not None
        named = names(keys)
        known = map(self._turns.get, named, repeat(self._first_turn))
        turns = np.fromiter(known, dtype=np.int64, count=len(keys))
        # Rows may stand in the batch several times.
        order = np.argsort(keys[:, 0], kind="stable")
        ascending = keys[order, 0]
        turns[order] += np.arange(len(keys)) - np.searchsorted(ascending, ascending)
        self._turns.update(zip(named, (turns + 1).tolist(), strict=True))
        return turns

    # -- several requests ---------------------------------------------------------------

    def _fetch(self, blocks: Iterator[_Part]) -> None:
        """Send rows and keep their answers; what came back is kept whatever happens."""
        queue: deque[_Part] = deque()
        flying: dict[Future[list[Any]], tuple[_Part, int]] = {}
        try:
            while True:
                while len(flying) < self.remote.concurrency and (
                    queue or self._refill(queue, blocks)
                ):
                    part = self._cut(queue)
                    number = self._reserve(part.named)
                    alone = part.alone and not flying and not queue
                    flying[self._submit(part.cells, alone)] = (part, number)
                if not flying:
                    return
                if len(queue) < 2:
                    self._refill(queue, blocks)  # while those are on their way
                for done in self._wait_for(flying):
                    part, number = flying.pop(done)
                    try:
                        self._keep(part, number, done.result())
                    except _TooLarge:
                        self.memory.lose(part.named)
                        # Where nothing was ever answered, one row shows whether anything will be.
                        first = len(part.named) // 2 if self._answered else 1
                        queue.extend((part[:first], part[first:]))
                    except BaseException:
                        self.memory.lose(part.named)
                        raise
        except BaseException:
            self._land(flying)
            raise

    def _wait_for(
        self, flying: dict[Future[list[Any]], tuple[_Part, int]]
    ) -> set[Future[list[Any]]]:
        """Requests that have come back; where nobody waits any more, all of them are lost."""
        try:
            return self._wait(flying)
        except BaseException:
            for part, _ in flying.values():
                self.memory.lose(part.named)
            flying.clear()
            raise

    def _wait(self, flying: Collection[Future[Any]]) -> set[Future[Any]]:
        """Requests that have come back, at least one."""
        while True:
            seconds = _SILENCE if self._watch is None else _GLANCE
            done = wait(flying, timeout=seconds, return_when=FIRST_COMPLETED).done
            if done:
                return done
            self._say_silence()
            if self._watch is None:
                continue
            try:
                self._watch()
            except BaseException:
                self._line.leave()
                self._line = self._open_line()
                raise

    def _say_silence(self) -> None:
        """Say that no answer comes, for whoever waits without a bar that shows it."""
        now = time.monotonic()
        silent = now - max(self._heard, self._began or now)
        if silent < _SILENCE or now - self._told < _SILENCE:
            return
        self._told = now
        _log.warning("%s has not answered for %.0f seconds; still asking", self.shape.host, silent)

    def _keep(self, part: _Part, number: int, answers: list[Any]) -> None:
        start = self.memory.end(number, part.named, answers)
        part.block.places[part.at] = np.arange(start, start + len(part.named))

    def _refill(self, queue: deque[_Part], blocks: Iterator[_Part]) -> bool:
        """Put the next block into the queue; False where there is none."""
        block = next(blocks, None)
        if block is None:
            return False
        queue.append(block)
        return True

    def _cut(self, queue: deque[_Part]) -> _Part:
        """The rows of the next request, of the size that suits the server by now."""
        part = queue.popleft()
        size = self._pace.size(part.left, self.remote.concurrency)
        if size < len(part.named):
            queue.appendleft(replace(part[size:], left=part.left - size))
            part = part[:size]
        return part

    def _reserve(self, named: Sequence[bytes]) -> int:
        """Count rows before they are sent; OutOfQueries where they are more than allowed."""
        new = self.memory.count_new(named)
        if self.max_queries is not None and self.memory.new + new > self.max_queries:
            raise OutOfQueries
        number = self.memory.begin(named)
        self.tally.add(sent=new, again=len(named) - new)
        return number

    def _submit(self, cells: Cells, alone: bool) -> Future[list[Any]]:
        """A request on its way; one that is alone needs no other thread, unless it is watched or
        may go unanswered."""
        line = self._line
        self._begin()
        if not alone or self._watch is not None or not self._answered:
            return line.submit(lambda: self._deliver(line, cells))
        done: Future[list[Any]] = Future()
        try:
            done.set_result(self._deliver(line, cells))
        except (LimiError, _TooLarge) as error:
            done.set_exception(error)
        return done

    def _land(self, flying: dict[Future[list[Any]], tuple[_Part, int]]) -> None:
        """Keep the answers that are still on their way: they are paid for."""
        self._line.stop.set()
        try:
            landed = wait(flying, timeout=min(self.remote.timeout, _LANDING)).done
            for done, (part, number) in flying.items():
                good = done in landed and not done.cancelled() and done.exception() is None
                if good:
                    self._keep(part, number, done.result())
                else:
                    self.memory.lose(part.named)
        finally:
            self._line.stop.clear()

    # -- one request --------------------------------------------------------------------

    def _deliver(self, line: _Line, cells: Cells) -> list[Any]:
        n = len(cells)
        start = time.perf_counter()
        answers = self._persist(
            line, lambda: self.shape.request(cells), lambda body: self._read(body, n), n
        )
        self._pace.learn(n, time.perf_counter() - start)
        return answers

    def _begin(self) -> None:
        """A request is about to be sent."""
        if self._began is None:
            self._began = time.monotonic()

    def _read(self, body: bytes, n: int) -> list[Any]:
        answers = self.shape.read(body, n)
        if len(answers) != n:
            raise Malformed(f"{len(answers)} answers for {n} rows")
        if self._headers.hidden and str in set(map(type, answers)):
            return [self._headers.scrub(one) if type(one) is str else one for one in answers]
        return answers

    def _persist(
        self, line: _Line, make: Callable[[], Request], read: Callable[[bytes], _T], n: int
    ) -> _T:
        """What one request gives, tried again where that may help."""
        malformed = late = 0
        for tries in count(1):
            self._look(line, tries)
            line.wait_until(self._free_at)
            self.tally.add(requests=1, again=n if tries > 1 else 0)
            after, patience, start = None, self._patience.seconds(n, late), time.monotonic()
            try:
                result = read(line.client.send(make(), patience))
            except BadModel as error:
                raise type(error)(self._headers.scrub(str(error))) from None
            except Failed as error:
                why, kind, after = str(error), error.kind, error.after
                late += error.late
                waited = error.late and patience >= self._patience.most
                if n > 1 and (kind == TOO_LARGE or waited) and not line.is_left:
                    self._fail(why, kind)
                    self._pace.shrink(n, for_good=kind == TOO_LARGE)
                    raise _TooLarge from None
                if kind == TOO_LARGE:
                    raise BadModel(
                        f"{self.shape.host} says that even a single row is too large (413)"
                    ) from None
            except Malformed as error:
                why, kind = self._headers.scrub(str(error)), "an answer that cannot be read"
                malformed += 1
                if malformed >= _MOST_MALFORMED:
                    raise BadModel(
                        f"{self.shape.host} answers with {why}, {malformed} times in a row; are "
                        "the server and the path right?"
                    ) from None
            else:
                self._patience.learn(n, time.monotonic() - start)
                with self._lock:
                    self._row_of_failures, self._answered = 0, True
                    self._heard = time.monotonic()
                return result
            if not line.is_left:  # of what nobody waits for, nobody counts the failures
                self._fail(why, kind)
                self._pause(line, tries, why, after)
        raise AssertionError

    def _fail(self, why: str, kind: str) -> None:
        self.tally.fail(kind)
        with self._lock:
            self._row_of_failures += 1
            is_open = self._row_of_failures >= _MOST_FAILURES
            self._said = self._said if kind == SILENT else why
            waited = time.monotonic() - (self._began or 0.0)
        if kind == SILENT and not self._answered:
            is_open |= waited >= _PATIENT * self._patience.most
        if is_open:
            raise self._unreachable()

    def _look(self, line: _Line, tries: int) -> None:
        """Unreachable where others have given up, or this request should."""
        if line.is_left or (line.stop.is_set() and tries > 1):
            raise Unreachable(f"{self.shape.host} was not asked again, because the run is ending")
        if tries > (_MOST_TRIES if self._answered else _FIRST_TRIES):
            raise self._unreachable()

    def _unreachable(self) -> Unreachable:
        why = self._said or f"no answer within {self._patience.most:g} seconds"
        if not self._answered and why.startswith("status"):
            return Unreachable(
                f"{self.shape.host} answers every request with {why}; is the address right, and "
                "does it accept requests now?"
            )
        if not self._answered:
            return Unreachable(
                f"{self.shape.host} does not answer ({why}); is the address right, and is the "
                "server running?"
            )
        return Unreachable(
            f"{self.shape.host} no longer answers ({why}); its answers so far are kept, so repeat "
            "the command with --resume to continue"
        )

    def _pause(self, line: _Line, tries: int, why: str, after: float | None) -> None:
        """Wait longer each time, by chance so that requests do not come all at once."""
        if after is not None and after > _LONGEST_WAIT:
            raise Unreachable(
                f"{self.shape.host} asks for a pause of {after:,.0f} seconds ({why}); its answers "
                "so far are kept, so repeat the command with --resume to continue"
            )
        if after:
            with self._lock:
                self._free_at = max(self._free_at, time.monotonic() + after)
        pause = min(self.remote.backoff * 2 ** (tries - 1), _LONGEST_PAUSE)
        pause *= 0.5 + secrets.randbelow(1000) / 1000
        line.wait_until(time.monotonic() + pause)


class _Line:
    """Connections and threads of requests that may have to be given up."""

    def __init__(self, client: Client, concurrency: int) -> None:
        self.client, self._concurrency = client, concurrency
        self.stop = threading.Event()  # nothing is tried again
        self.is_left = False
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Work in a thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._concurrency, "limi-remote")
        return self._pool.submit(work)

    def wait_until(self, moment: float) -> None:
        """Wait for a moment, or until nothing is to be tried again."""
        if (left := moment - time.monotonic()) > 0:
            self.stop.wait(left)

    def rest(self) -> None:
        """Let go of connections and threads, until something is asked again."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self.client.close()

    def leave(self) -> None:
        """Give up what is on its way: its connections are cut, so that its threads end."""
        self.is_left = True
        self.stop.set()
        self.client.abort()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class _Block:
    """Rows that are asked for together, and where their answers are kept; -1 until they are."""

    def __init__(self, named: list[bytes]) -> None:
        self.named = named
        self.places = np.full(len(named), -1, dtype=np.intp)

    def select(self, at: Index) -> list[bytes]:
        """The keys of some of the rows."""
        if len(at) == len(self.named):
            return self.named
        return list(map(self.named.__getitem__, at.tolist()))


@dataclass(frozen=True)
class _Part:
    """Rows of a request, or of several."""

    cells: Cells
    named: list[bytes]
    block: _Block
    at: Index  # where in the block they stand
    left: int  # rows to send yet, these and those of blocks that were not read
    alone: bool  # are these all rows that are wanted?

    def __getitem__(self, cut: slice) -> _Part:
        return replace(self, cells=self.cells[cut], named=self.named[cut], at=self.at[cut])


class _TooLarge(Exception):
    """A request that should go in two halves."""
