"""Does limi survive kills, a full disk and itself? Every way ends in the same findings, or is told.

    python tools/survive.py            all of it; half an hour on two cores
    python tools/survive.py --short    the part that the tests run
    python tools/survive.py --seed 7   other random moments
    python tools/survive.py --every 4  every fourth operation only, and --only NAME a victim

Searches (limi, guided, aequitas, adf), proofs, a study, a repair and a fit are killed at every
operation on files, half-way through every write, and at random moments; they are told to end, and
interrupted twice; their workers are killed, also those of Ray; their disk fills up at every write,
or cannot be written at all; two run on one folder. Each is then run again, with --resume where
something is left. What must hold: the results of a run that nobody disturbed, no file left over,
nothing of others touched.

It works in a folder of its own, which it makes and removes, and refuses to touch any other.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # runs are forked, and a pool of threads does not survive that

import argparse
import contextlib
import errno
import hashlib
import importlib
import json
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import limi
from limi.errors import LimiError

MARK = ".made-by-survive"
CRASHED, INTERRUPTED = 99, 130
MOST_ANSWERS = 10  # appended records that are cut, of a run that appends many

Op = tuple[str, str]  # what is done, and the name of the file


def survive(*, seed: int, short: bool, every: int, only: str) -> int:
    """Run everything; the number of defects."""
    with scratch() as place:
        book = Book(place)
        rng = np.random.default_rng(seed)
        for name, make in victims(place, short):
            if not name.startswith(only):
                continue
            began = time.perf_counter()
            victim = make()
            reference = Reference.of(book, victim)
            step = every * 8 if victim.is_slow else every
            if victim.only_workers:
                with_killed_workers(book, reference, rng, times=4)
                print(f"{victim.name}: {time.perf_counter() - began:.0f} seconds", flush=True)
                continue
            at_every_operation(book, reference, rng, step)
            on_a_full_disk(book, reference, step)
            at_random_moments(book, reference, rng, times=1 if short or victim.is_slow else 12)
            with_signals(book, reference, rng, times=2 if short or victim.is_slow else 8)
            if victim.workers:
                with_killed_workers(book, reference, rng, times=3 if short else 25)
            if victim.resumes:
                two_on_one_folder(book, reference)
                if not short:
                    on_a_small_file_system(book, reference)
                    where_nothing_can_be_written(book, reference)
            print(f"{victim.name}: {time.perf_counter() - began:.0f} seconds", flush=True)
        for outcome, n in sorted(book.outcomes.items()):
            print(f"{n:6,}  {outcome}")
        for words in book.defects:
            print(f"DEFECT {words}")
        print(f"{sum(book.outcomes.values()):,} disturbed runs, {len(book.defects):,} defects")
        return len(book.defects)


# -- ways to disturb ------------------------------------------------------------------------


def at_every_operation(book: Book, whole: Reference, rng: np.random.Generator, every: int) -> None:
    """A kill before each operation on files, and in the middle of each write."""
    for number in chosen(whole.ops, rng)[::every]:
        case = whole.case(book, f"killed at operation {number}, {' '.join(whole.ops[number])}")
        code = case.run(Trap(kill_at=number))
        # With workers, how many records the journal takes depends on how far each worker gets, so
        # that a run may end before it meets its last operations.
        ends_before = whole.victim.workers and code == 0
        case.end(ends_before or code == -signal.SIGKILL, f"ended with {code}, not by the kill")
        case.recover()


def on_a_full_disk(book: Book, whole: Reference, every: int) -> None:
    """Nothing can be written from some write on; one sentence, and room comes back."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    writes = [n for n, (what, _) in enumerate(whole.ops) if what in ("write", "open", "fsync")]
    for turn, number in enumerate(writes[::every] if len(writes) < 60 else writes[:: 2 * every]):
        code = codes[turn % len(codes)]
        case = whole.case(book, f"{errno.errorcode[code]} from operation {number} on")
        ended = case.run(Trap(fail_at=number, code=code))
        case.end(ended in (0, 4), f"ended with {ended} and {case.said()!r}")
        case.end(ended == 0 or os.strerror(code) in case.said(), f"said {case.said()!r}")
        case.recover()


def at_random_moments(book: Book, whole: Reference, rng: np.random.Generator, times: int) -> None:
    """Kills from outside, one to three in a row, each some way into the run."""
    for _ in range(times):
        shares = rng.random(rng.integers(1, 4))
        case = whole.case(book, f"killed after shares {np.round(shares, 2).tolist()} of its time")
        for share in shares:
            code = case.run(Trap(), kill_after=share * whole.seconds)
            case.end(code in (0, -signal.SIGKILL), f"ended with {code} and {case.said()!r}")
            if code == 0:
                break
        case.recover()


def with_signals(book: Book, whole: Reference, rng: np.random.Generator, times: int) -> None:
    """A system that shuts down, and a user who interrupts and does not wait for the end of it."""
    for turn in range(times):
        signals = ((signal.SIGTERM,), (signal.SIGINT, signal.SIGINT))[turn % 2]
        share = rng.random()
        words = " and ".join(one.name for one in signals)
        case = whole.case(book, f"was sent {words} after {share:.2f} of its time")
        child = case.start(Trap())
        time.sleep(share * whole.seconds)
        for one in signals:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, one)
            time.sleep(0.02 * rng.random())
        code = ended(child)
        fine = (0, INTERRUPTED, -signal.SIGTERM, -signal.SIGINT)
        case.end(code in fine, f"ended with {code} and {case.said()!r}")
        case.recover()


def with_killed_workers(book: Book, whole: Reference, rng: np.random.Generator, times: int) -> None:
    """One to three of its workers are killed on the way; it ends by itself, as if they were not."""
    for _ in range(times):
        shares = np.sort(rng.random(rng.integers(1, 4)))
        case = whole.case(book, f"lost workers after shares {np.round(shares, 2).tolist()}")
        began, child = time.perf_counter(), case.start(Trap())
        for share in shares:
            time.sleep(max(0.0, share * whole.seconds - (time.perf_counter() - began)))
            for worker in workers_of(child)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    book.count("workers killed")
        code = ended(child)
        case.end(code == 0, f"ended with {code} and {case.said()!r}")
        case.settle("lost workers")


def workers_of(process: int) -> list[int]:
    """Its workers: what it has started itself, and actors of a cluster that it has started."""
    children = children_of(process)
    actors = [one for child in children for one in children_of(child) if is_actor(one)]
    return actors or [one for one in children if not is_of_ray(one)]


def is_actor(process: int) -> bool:
    """Is a process an actor of Ray that holds work of ours?"""
    return title_of(process).startswith("ray::_Worker")


def is_of_ray(process: int) -> bool:
    """Is a process a part of Ray itself?"""
    return "ray" in title_of(process)


def title_of(process: int) -> str:
    """What a process calls itself."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""


def children_of(process: int) -> list[int]:
    """Processes that a process has started and that have not ended."""
    try:
        return [
            int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()
        ]
    except OSError:  # it has ended
        return []


def two_on_one_folder(book: Book, whole: Reference) -> None:
    """While one works, others are refused; it ends as if nothing had been."""
    case = whole.case(book, "run while another run works on its folder")
    waiting, go = os.pipe(), os.pipe()
    first = case.start(Trap(pause=(waiting[1], go[0])))
    os.read(waiting[0], 1)
    for force, resume in ((False, False), (True, False), (False, True)):
        code = case.run(Trap(), force=force, resume=resume)
        case.end(code == 2 and "another limi is writing" in case.said(), f"{code} {case.said()!r}")
    os.write(go[1], b"g")
    code = ended(first)
    case.end(code == 0, f"the first ended with {code}")
    case.settle("one of two that wanted the same folder")
    for end in (*waiting, *go):
        os.close(end)


def on_a_small_file_system(book: Book, whole: Reference) -> None:
    """A file system in memory that is really full, and then grows; only root can mount one."""
    for kib in (4, 16, 48, 128):
        case = whole.case(book, f"on a file system of {kib} KiB")
        place = case.folder / "small"
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            place.rmdir()
            book.count("skipped: only root mounts a small file system")
            return
        try:
            code = case.run(Trap(), out=place / "run")
            case.end(code in (0, 4), f"ended with {code} and {case.said()!r}")
            case.end(code == 0 or "No space left" in case.said(), f"said {case.said()!r}")
            grow = ["mount", "-o", "remount,size=64m", str(place)]
            subprocess.run(grow, capture_output=True, check=True)
            left = (place / "run.partial").exists()
            code = case.run(Trap(), out=place / "run", resume=left) if code else 0
            case.end(code == 0, f"ended with {code} and {case.said()!r}")
            same = whole.victim.results(place / "run") == whole.results
            case.end(same, "found something else")
            case.end(os.listdir(place) == ["run"], f"left {os.listdir(place)}")
            book.count("went on after a file system was really full" if left else "began again")
        finally:
            subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
        case.remove()


def where_nothing_can_be_written(book: Book, whole: Reference) -> None:
    """A folder that can only be read: one sentence; and the same folder when it can be written."""
    case = whole.case(book, "in a folder that can only be read")
    place = case.folder / "closed"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        place.rmdir()
        book.count("skipped: only root mounts a file system that can only be read")
        return
    try:
        for option, codes in (("ro", (2, 4)), ("rw", (0,))):
            again = ["mount", "-o", f"remount,{option}", str(place)]
            subprocess.run(again, capture_output=True, check=True)
            code = case.run(Trap(), out=place / "run", resume=False)
            case.end(code in codes, f"ended with {code} and {case.said()!r} ({option})")
            if option == "ro":
                case.end("ead-only file system" in case.said(), f"said {case.said()!r}")
                case.end(os.listdir(place) == [], f"left {os.listdir(place)}")
        case.end(whole.victim.results(place / "run") == whole.results, "found something else")
        book.count(f"{whole.victim.name}: refused where nothing can be written, then ran")
    finally:
        subprocess.run(["umount", str(place)], check=True)
    place.rmdir()
    case.remove()


# -- runs that are disturbed ----------------------------------------------------------------


@dataclass(frozen=True)
class Victim:
    """Something that limi does, with what must come of it however it is disturbed."""

    name: str
    work: Callable[[Path, bool, bool], None]  # the place, force, resume
    results: Callable[[Path], Any]
    resumes: bool
    make_ready: Callable[[Path], None] = lambda folder: None
    is_slow: bool = False  # a minute per run: some operations stand for all
    workers: int = 0  # processes that it starts
    only_workers: bool = False  # are they all that is disturbed?


@dataclass
class Book:
    """What happened."""

    place: Path
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    cases: int = 0

    def count(self, outcome: str) -> None:
        """One more."""
        self.outcomes[outcome] += 1


@dataclass(frozen=True)
class Reference:
    """A victim that nobody disturbed."""

    victim: Victim
    ops: list[Op]
    results: Any
    names: list[str]
    seconds: float

    @staticmethod
    def of(book: Book, victim: Victim) -> Reference:
        """Run it once, and write down every operation on files."""
        blank = Reference(victim, [], None, [], 0.0)
        case = blank.case(book, "left alone")
        code = case.run(Trap(log=case.folder / "ops"))
        if code:
            raise SystemExit(f"{victim.name} cannot even run alone: {case.said()}")
        ops, modules = json.loads((case.folder / "ops").read_text())
        ops = [tuple(op) for op in ops]
        # Imported once here and not in every run; nothing is used, so that no threads begin.
        for name in modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        (case.folder / "ops").unlink()
        whole = Reference(victim, ops, victim.results(case.out), case.names(), 0.0)
        case.remove()
        case = whole.case(book, "left alone once more")
        began = time.perf_counter()
        case.run(Trap())
        seconds = time.perf_counter() - began
        case.settle("was left alone twice")
        return replace(whole, seconds=seconds)

    def case(self, book: Book, words: str) -> Case:
        """A fresh folder to run it in."""
        book.cases += 1
        return Case(book, self, f"{self.victim.name} {words}", book.place / f"case-{book.cases}")


class Case:
    """One run that is disturbed, in a folder with things of others."""

    def __init__(self, book: Book, whole: Reference, words: str, folder: Path) -> None:
        self.book, self.whole, self.words = book, whole, words
        self.folder = held(folder)
        self.folder.mkdir()
        self.out = self.folder / "run"
        self._said = self.folder.with_name(f"{folder.name}.said")
        plant(self.folder)
        self._before = snapshot(self.folder)  # an older run, made next, is limi's to replace
        whole.victim.make_ready(self.folder)
        self._is_defect = False

    def run(self, trap: Trap, *, kill_after: float | None = None, **given: Any) -> int:
        """The exit code of a run, or the signal that ended it."""
        child = self.start(trap, **given)
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return ended(child)

    def start(self, trap: Trap, **given: Any) -> int:
        """A process that works on the folder; what is left of an earlier one is taken up."""
        out = given.get("out", self.out)
        left = self.whole.victim.resumes and is_unfinished(out)
        force, resume = given.get("force", False), given.get("resume", left)
        child = os.fork()
        if not child:
            serve(lambda: self.whole.victim.work(out, force, resume), trap, self._said, self.folder)
        return child

    def recover(self) -> None:
        """Run again without disturbance, unless it had come to its end."""
        left = is_unfinished(self.out)
        done = self.out.exists() and not left
        if not done or not self.whole.victim.resumes:
            # What cannot be resumed is begun again, over what is complete already.
            code = self.run(Trap(), force=not self.whole.victim.resumes)
            self.end(code == 0, f"the next run ended with {code} and {self.said()!r}")
        how = "had come to its end" if done else "was resumed" if left else "was begun again"
        self.settle(how if self.whole.victim.resumes else "was run again")

    def settle(self, how: str) -> None:
        """Hold what is there now to a run that nobody disturbed."""
        try:
            results = self.whole.victim.results(self.out)
        except (OSError, ValueError, KeyError) as error:
            results = repr(error)
        self.end(results == self.whole.results, "found something else")
        self.end(self.names() == self.whole.names, f"left {self.names()}")
        after = snapshot(self.folder)
        same = {name: after.get(name) for name in self._before} == self._before
        self.end(same, "touched what is not limi's")
        ending = "with a defect" if self._is_defect else "with the same results"
        self.book.count(f"{self.whole.victim.name}: {how}, {ending}")
        self.remove()

    def end(self, holds: bool, words: str) -> None:
        """A defect where something does not hold."""
        if not holds:
            self._is_defect = True
            self.book.defects.append(f"{self.words}: {words}")

    def said(self) -> str:
        """The last words of the last run."""
        return self._said.read_text() if self._said.exists() else ""

    def names(self) -> list[str]:
        """All that lies in the folder."""
        found = (str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))
        return sorted(name for name in found if "__pycache__" not in name)

    def remove(self) -> None:
        """Make room for the next."""
        shutil.rmtree(held(self.folder))
        self._said.unlink(missing_ok=True)


def serve(work: Callable[[], None], trap: Trap, said: Path, folder: Path) -> None:
    """The life of a forked process: work, and leave without a return."""
    code = 0
    try:
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        with trap.set(folder):
            work()
    except LimiError as error:
        code = error.exit_code
        said.write_text(str(error))
    except SystemExit as stop:
        code = int(stop.code or 0)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:
        code = CRASHED
        said.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of a process, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_unfinished(out: Path) -> bool:
    """Is there something that --resume takes up?"""
    return out.with_name("run.partial").exists() or (out / "journal.bin").exists()


# -- traps ----------------------------------------------------------------------------------


@dataclass
class Trap:
    """Watches a process's operations on files below a folder, and strikes at one of them."""

    kill_at: int | None = None
    fail_at: int | None = None  # and at every later write
    code: int = 0
    log: Path | None = None
    pause: tuple[int, int] | None = None  # at the tenth answer: say so, and wait
    ops: list[Op] = field(default_factory=list)
    _folder: str = ""
    _answers: int = 0

    @contextlib.contextmanager
    def set(self, folder: Path) -> Iterator[None]:
        """Watch from here on."""
        self._folder = str(folder)
        write, fsync, opened = os.write, os.fsync, os.open

        def watched_write(fd: int, data: Any) -> int:
            name = self._name_of(fd)
            if name is not None:
                self._pause_at_answers(name)
                if self._strikes("write", name):
                    write(fd, bytes(data[: len(data) // 2]))
                    os.kill(os.getpid(), signal.SIGKILL)
                if self._fails():
                    write(fd, bytes(data[: len(data) // 2]))
                    raise OSError(self.code, os.strerror(self.code))
            return write(fd, data)

        def watched_fsync(fd: int) -> None:
            self._meet("fsync", self._name_of(fd), may_fail=True)
            fsync(fd)

        def watched_open(path: Any, flags: int, *args: Any, **given: Any) -> int:
            if flags & os.O_CREAT and self._is_mine(path):
                self._meet("open", name_of(path), may_fail=True)
            return opened(path, flags, *args, **given)

        os.write, os.fsync, os.open = watched_write, watched_fsync, watched_open  # type: ignore[assignment]
        for what in ("mkdir", "rename", "replace", "unlink", "rmdir", "ftruncate", "chmod"):
            setattr(os, what, self._watched(what, getattr(os, what)))
        yield
        if self.log is not None:
            self.log.write_text(json.dumps([self.ops, [*sys.modules]]))

    def _watched(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:
            first = self._name_of(args[0]) if isinstance(args[0], int) else args[0]
            if first is not None and (isinstance(args[0], int) or self._is_mine(first)):
                self._meet(what, name_of(first))
            return function(*args, **given)

        return call

    def _meet(self, what: str, name: str | None, *, may_fail: bool = False) -> None:
        if name is None:
            return
        if self._strikes(what, name):
            os.kill(os.getpid(), signal.SIGKILL)
        if may_fail and self._fails():
            raise OSError(self.code, os.strerror(self.code))

    def _strikes(self, what: str, name: str) -> bool:
        self.ops.append((what, name))
        return self.kill_at == len(self.ops) - 1

    def _fails(self) -> bool:
        return self.fail_at is not None and len(self.ops) > self.fail_at

    def _pause_at_answers(self, name: str) -> None:
        self._answers += name == "journal.bin"
        if self.pause is not None and self._answers == 3:
            said, wait = self.pause
            self.pause = None
            os.write(said, b"w")
            os.read(wait, 1)

    def _name_of(self, fd: int) -> str | None:
        """The name of an open file below the folder."""
        path = os.readlink(f"/proc/self/fd/{fd}")
        # A pipe reads as `pipe:[1234]`, and no disk that fills up is behind it.
        return name_of(path) if path.startswith(os.sep) and self._is_mine(path) else None

    def _is_mine(self, path: Any) -> bool:
        path = os.path.join(os.getcwd(), os.fspath(path))
        return path.startswith(self._folder + os.sep) and "__pycache__" not in path


def name_of(path: Any) -> str:
    """A file's own name; that of a draft, which is random, is left out."""
    name = os.path.basename(os.fspath(path))
    return "draft" if name.startswith(".limi-") else name


def chosen(ops: list[Op], rng: np.random.Generator) -> list[int]:
    """Every operation, and some of the answers that are appended."""
    answers = [n for n, op in enumerate(ops) if op == ("write", "journal.bin")]
    few = answers[:2] + answers[-2:]
    if len(answers) > MOST_ANSWERS:
        few += rng.choice(answers[2:-2], MOST_ANSWERS - 4, replace=False).tolist()
        answers = sorted(set(answers) - set(few))
    else:
        answers = []
    return [n for n in range(len(ops)) if n not in set(answers)]


# -- the folder -----------------------------------------------------------------------------


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is made here and removed again."""
    place = Path(tempfile.mkdtemp(prefix="limi-survive-")).resolve()
    (place / MARK).touch()
    os.environ["LIMI_CACHE"] = str(place / "cache")
    try:
        yield place
    finally:
        shutil.rmtree(held(place))


def held(path: Path) -> Path:
    """The path; an exit where it is not in a folder that this program has made."""
    for folder in (path, path.parent):
        if folder.name.startswith("limi-survive-") and (folder / MARK).is_file():
            return path
    raise SystemExit(f"{str(path)!r} is not in a folder of this program's own; nothing was done")


def plant(folder: Path) -> None:
    """Things of others, with names that a careless program takes for its own."""
    for name in ("notes.txt", ".env", "run.txt", ".run.partial", "run.partial.bak", "a.partial"):
        (folder / name).write_text("mine")
    for name in ("run.old", ".git", "run2.partial"):
        (folder / name).mkdir()
        (folder / name / "journal.bin").write_text("mine")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("notes.txt")


def snapshot(folder: Path) -> dict[str, tuple[int, str]]:
    """Every path with its kind and content."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IFMT(path.lstat().st_mode),
            digest(path.read_bytes()) if stat.S_ISREG(path.lstat().st_mode) else "",
        )
        for path in folder.rglob("*")
    }


def digest(content: bytes) -> str:
    """sha256."""
    return hashlib.sha256(content).hexdigest()


# -- victims --------------------------------------------------------------------------------


def victims(place: Path, short: bool) -> list[tuple[str, Callable[[], Victim]]]:
    """What is disturbed, made when its turn comes."""
    if short:
        return [("themis", lambda: searching("themis", max_rows=400)), ("fit", fitting)]
    return [
        ("limi", lambda: searching("limi", max_rows=1500)),
        ("workers", lambda: searching("limi", max_rows=1500, workers=2)),
        ("scouts", lambda: searching("limi", workers=2, scouts=True)),
        ("ray", lambda: searching("limi", workers=2, scouts=True, cluster="ray")),
        ("replaced", lambda: searching("limi", max_rows=1500, replaces=True)),
        ("guided", lambda: searching("guided", max_queries=3000)),
        ("aequitas", lambda: searching("aequitas", max_rows=1500)),
        ("adf", lambda: searching("adf", max_rows=800)),
        ("certify", proving),
        ("fit", fitting),
        ("study", studying),
        ("repair", lambda: repairing(place)),
    ]


def people() -> pd.DataFrame:
    """A small table."""
    rng = np.random.default_rng(0)
    n = 250
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "income": rng.normal(3, 1, n).round(1),
        }
    )
    frame["ok"] = np.where(frame["income"] + frame["age"] / 40 > 4, "yes", "no")
    return frame


def model(frame: pd.DataFrame) -> Any:
    """Its model, which favors men a little."""
    merit = frame["income"] + frame["age"] / 40 + (frame["sex"] == "M") * 0.3137
    return 1 / (1 + np.exp(4.0123 - merit))


def network() -> tuple[Any, pd.DataFrame]:
    """A network with gradients, and numbers for it."""
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    layers = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1), torch.nn.Sigmoid()
    )
    for weights in layers.parameters():
        weights.data = torch.randn(weights.shape, generator=generator) * 0.4
    rng = np.random.default_rng(0)
    names = ("sex", "a", "b", "c")
    frame = pd.DataFrame({name: rng.integers(0, 2 if name == "sex" else 9, 250) for name in names})
    frame["ok"] = rng.integers(0, 2, 250)
    return layers.double(), frame


def searching(
    method: str,
    *,
    replaces: bool = False,
    workers: int = 1,
    scouts: bool = False,
    cluster: str | None = None,
    **budget: int | None,
) -> Victim:
    """A search; the first is made over an older run where it replaces one. Workers are asked for
    scores, or go ahead of it as `scouts`."""
    settings: dict[str, Any] = {}
    if scouts:
        from limi.methods import _scouting

        # The table has few people: after some thousand latents hardly one of them is new.
        _scouting._LARGEST = _scouting._SMALLEST = 256
        settings, budget = {"n_latents": 6000, "n_labelled": 400}, {"max_rows": None}
    if workers > 1:
        from limi.search import spread

        spread._PART_SECONDS = 1e-9  # every question goes to them
    if method == "adf":
        (tested, frame), favorable = network(), 1
    else:
        tested, frame, favorable = model, people(), "yes"

    def search(out: Path, force: bool, resume: bool, *, seed: int = 0) -> None:
        limi.audit(
            tested,
            frame,
            protected=["sex"],
            target="ok",
            favorable=favorable,
            method=method,
            settings=settings,
            rate_rows=100,
            max_batch=256,
            seed=seed,
            out=out,
            force=force or (replaces and not resume),
            resume=resume,
            workers=workers,
            cluster=cluster,
            **budget,  # type: ignore[arg-type]
        )

    def older(folder: Path) -> None:
        if replaces and ended(forked(lambda: search(folder / "run", False, False, seed=1))):
            raise SystemExit("the older run could not be made")

    def results(out: Path) -> Any:
        summary = json.loads((out / "summary.json").read_text())
        names = ["findings", "rows_checked", "rates", "stop"]
        # Which rows LIMI asks and does not meet depends on its parts; scouts do not count them.
        told = [summary[name] for name in names + ([] if scouts else ["queries"])]
        return told, digest((out / "findings.parquet").read_bytes())

    name = f"{method} over an older run" if replaces else method
    name += f" with {workers} {'scouts' if scouts else 'workers'}" if workers > 1 else ""
    name += " of Ray" if cluster else ""
    return Victim(
        name,
        search,
        results,
        not replaces,
        older,
        workers=workers if workers > 1 else 0,
        only_workers=cluster is not None,  # a cluster takes long to start and to end
    )


def forked(work: Callable[[], None]) -> int:
    """A process of its own, because what is used in this one is forked with every run."""
    child = os.fork()
    if not child:
        code = CRASHED
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def proving() -> Victim:
    """Proofs about people, kept as they are decided."""
    from sklearn.ensemble import RandomForestClassifier

    frame = people()
    frame["ok"] = np.where(model(frame) > 0.5, "yes", "no")
    frame = frame.drop(columns="job").assign(sex=(frame["sex"] == "M").astype(int))
    features = frame.drop(columns="ok")
    forest = RandomForestClassifier(5, max_depth=4, random_state=0, n_jobs=1)
    forest.fit(features, frame["ok"])

    def prove(out: Path, force: bool, resume: bool) -> None:
        limi.certify(
            forest,
            frame,
            protected=["sex"],
            target="ok",
            favorable="yes",
            near={"age": 2},
            rows=40,
            solver=False,
            out=out,
            force=force,
            resume=resume,
        )

    def results(out: Path) -> Any:
        tree = json.loads((out / "proof.json").read_text())
        # What a resumed run asks again, and says of it, are its own.
        own = ("seconds", "queries", "notes")
        told = {name: told for name, told in tree.items() if name not in own}
        return told, digest((out / "people.parquet").read_bytes()), sorted(os.listdir(out))

    return Victim("certify", prove, results, True)


def fitting() -> Victim:
    """`limi fit`, which writes a generator and its page."""

    def fit(out: Path, force: bool, resume: bool) -> None:
        command("fit", "people.csv", "--target", "ok", "--out", str(out), "--force")

    def results(out: Path) -> Any:
        return digest(out.read_bytes()), out.with_name("run.html").exists()

    return Victim("fit", fit, results, False, lambda f: people().to_csv(f / "people.csv"))


def studying() -> Victim:
    """A study of a few cells, each kept as it ends."""
    from lab import files as _files
    from lab import run as _run

    def study(out: Path, force: bool, resume: bool) -> None:
        one = _files.load("watch")
        cells = "credit-*/natural/0"
        _run.run([one], scale="smoke", out=out, kept=out / "kept", workers=1, only=cells)

    def results(out: Path) -> Any:
        clock = ("second", "speed", "took")
        told = []
        for path in sorted(out.rglob("cells/**/*.json")):
            tree = json.loads(path.read_text())
            measures = tree.get("measures", {})
            kept = {k: v for k, v in measures.items() if not any(word in k for word in clock)}
            told.append((tree["cell"], tree["status"], kept))
        return told

    return Victim("study", study, results, False)


def repairing(place: Path) -> Victim:
    """A repair of a run, of which nothing is kept before it is whole."""
    run = held(place / "tested")

    def test() -> None:
        import skops.io as sio
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        frame = people()
        run.mkdir()
        frame.to_csv(run / "people.csv", index=False)
        coded = make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder="passthrough")
        fitted = make_pipeline(coded, LogisticRegression(max_iter=500))
        fitted.fit(frame.drop(columns="ok"), frame["ok"])
        sio.dump(fitted, run / "model.skops")
        limi.audit(
            f"skops:{run / 'model.skops'}",
            pd.read_csv(run / "people.csv"),
            protected=["sex"],
            target="ok",
            favorable="yes",
            method="natural",
            max_rows=500,
            rate_rows=100,
            out=run / "run",
            table_name=str(run / "people.csv"),
        )

    if ended(forked(test)):
        raise SystemExit("the run to repair could not be made")

    def repair(out: Path, force: bool, resume: bool) -> None:
        command(
            *("repair", str(run / "run"), "--how", "findings"),
            *("--out", str(out), "--seeds", "1", "--force"),
        )

    def results(out: Path) -> Any:
        tree = json.loads((out / "repair.json").read_text())
        told = [tree["verdict"], tree["before"], tree["tried"][0]["figures"]]
        return told, digest((out / "added.parquet").read_bytes()), sorted(os.listdir(out))

    return Victim("repair", repair, results, False, is_slow=True)


def command(*words: str) -> None:
    """A command, as its user types it."""
    from typer.main import get_command

    from limi.cli._app import app

    with get_command(app).make_context("limi", list(words)) as context:
        context.command.invoke(context)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--short", action="store_true", help="the part that the tests run")
    parser.add_argument("--every", type=int, default=0, help="of the operations, each so manieth")
    parser.add_argument("--only", default="", help="victims whose name begins so")
    given = parser.parse_args()
    every = given.every or (12 if given.short else 1)
    defects = survive(seed=given.seed, short=given.short, every=every, only=given.only)
    sys.exit(1 if defects else 0)


if __name__ == "__main__":
    main()
