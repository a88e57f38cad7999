"""A model's file is tried in a process of its own before it enters this one.

Libraries read model files in native code that does not look twice: a file that is cut off, edited
or made for it crashes the program, takes all memory, or never ends. So a second Python opens the
file first and asks it for some rows, under limits of time and memory. What it runs into there is
one sentence here; only a file that has passed is opened again by this process.

The rows travel to that process as a pickle that this one has just written. Back comes JSON, because
a process that has opened a hostile file must not be able to send an object.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np

from limi import errors, models
from limi.decisions import AS_DECIDED, Rule
from limi.errors import BadModel, InvalidInput, LimiError
from limi.models import Meaning, Model
from limi.models.target import Target, bind, settling_rows
from limi.remote.options import Remote
from limi.system.foreign import reason, to_stderr
from limi.system.imports import import_library
from limi.table.frames import Codec, Frame
from limi.table.rows import uniform
from limi.types import Value

__all__ = ["GIGABYTES", "SECONDS", "Terms", "Work", "attempt", "begun", "main"]

SECONDS = "LIMI_MODEL_SECONDS"
GIGABYTES = "LIMI_MODEL_GB"

_SECONDS = 120.0
_SHARE = 0.5  # of the machine's memory
_ANYWHERE = 256  # rows from all over the schema, where no row of the table may lead
_READY = b"ready\n"
_PASSED, _MEMORY = "passed", "memory"
_MOST = 1e6  # seconds or gigabytes that mean anything
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from limi.models.trial import main; main()"
)

# Files that have passed in this process, by name, sum and trusted types.
_passed: set[tuple[str, str, tuple[str, ...]]] = set()


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a model is opened with."""

    favorable: Value | tuple[Value, ...] | None = None
    labels: tuple[Value, ...] = ()
    output: Meaning | None = None
    rule: Rule = AS_DECIDED
    trust_pickle: bool = False
    trust: tuple[str, ...] = ()
    table: str | None = None
    remote: Remote | None = None  # how a model behind an address is asked
    aside: tuple[str, ...] = ()  # columns of the table that are not the model's
    unlikely: tuple[str, ...] = ()  # those that are not, unless it takes them
    left_out: tuple[str, ...] = ()  # columns that the user has left out

    def bind(self, given: Any, codec: Codec) -> Target:
        """The model at `KIND:PLACE`, or of a live object, on these terms, bound to a table."""
        return bind(
            self.model(given),
            codec,
            aside=self.aside,
            unlikely=self.unlikely,
            left_out=self.left_out,
            rule=self.rule,
        )

    def model(self, given: Any) -> Model:
        """The model at `KIND:PLACE`, or of a live object, on these terms."""
        if not isinstance(given, str):
            return models.wrap(
                given,
                favorable=self.favorable,
                labels=self.labels,
                output=self.output,
                rule=self.rule,
            )
        return models.load(
            given,
            favorable=self.favorable,
            labels=self.labels,
            output=self.output,
            rule=self.rule,
            trust_pickle=self.trust_pickle,
            trust=self.trust,
            table=self.table,
            remote=self.remote,
        )


class Work(Protocol):
    """What is tried in the other process; its class is imported there."""

    @property
    def uri(self) -> str:
        """The file, as `KIND:PLACE`."""
        ...

    @property
    def asked(self) -> str:
        """What it is asked about, in words."""
        ...

    def run(self) -> None:
        """Open the file and ask it."""
        ...


@dataclass(frozen=True)
class _Rows:
    """A model of tables, and rows for it."""

    uri: str
    codec: Codec
    sample: Frame
    terms: Terms

    @property
    def asked(self) -> str:
        return f"{len(self.sample)} rows"

    def run(self) -> None:
        target = self.terms.bind(self.uri, self.codec)
        rows = target.codec.encode(self.sample)
        target = target.settled(rows)
        target.score(rows)
        # Edited files may lead astray where no row of the table goes. What a model merely refuses
        # there is for the search to say, if it ever asks.
        with suppress(Exception):
            target.score(uniform(target.codec.schema, _ANYWHERE, np.random.default_rng(0)))


@dataclass(frozen=True)
class _Job:
    """All that the other process is told."""

    work: Work
    seconds: float
    gigabytes: float | None


Judge = Callable[[Codec, Frame], None]


@contextmanager
def begun(model: Any, sha256: str | None, terms: Terms) -> Iterator[Judge]:
    """A trial of the model's file that has begun: a Python that imports what it needs meanwhile.

    The judge that is given ends the trial; it raises what opening the file would, or BadModel where
    that crashes, hangs or takes too much memory. Live objects and models that are not files, or
    whose own code the user vouches for (`python:`, pickles), pass untried.
    """
    library = _library(model, terms.trust)
    seconds = _setting(SECONDS, _SECONDS)
    key = (str(model), sha256 or "", terms.trust)
    if library is None or not seconds or key in _passed:
        yield lambda codec, frame: None
        return
    with _start(library) as process:
        with to_stderr(), suppress(Exception):
            import_library(library)  # at the same time as the other process

        def judge(codec: Codec, frame: Frame) -> None:
            sample = _sample(frame, codec.schema.names)
            _verdict(process, _job(_Rows(_place(model), codec, sample, terms), seconds), library)
            if sha256 is not None:
                _passed.add(key)

        yield judge


def attempt(work: Work, library: str) -> None:
    """Try a file in a process of its own, which imports the library that reads it.

    Raises what opening the file would, or BadModel where that crashes, hangs or takes too much
    memory.
    """
    seconds = _setting(SECONDS, _SECONDS)
    if seconds and importlib.util.find_spec(library.partition(".")[0]) is not None:
        with _start(library) as process:
            _verdict(process, _job(work, seconds), library)


def _job(work: Work, seconds: float) -> _Job:
    return _Job(work, seconds, _setting(GIGABYTES, _memory()))


def _library(model: Any, trust: Sequence[str]) -> str | None:
    """The package that would read this file natively; None where nothing is to be tried."""
    if not isinstance(model, str) or not models.files(model):
        return None
    library = models.offers(model.partition(":")[0]).library
    # Another process cannot have what was defined in this one's own script or notebook.
    if library is None or any(name.startswith("__main__.") for name in trust):
        return None
    installed = importlib.util.find_spec(library.partition(".")[0]) is not None
    return library if installed else None


def _place(uri: str) -> str:
    """The same file where a trial can limit it."""
    kind, _, place = uri.partition(":")
    return f"{kind}:{models.offers(kind).on_trial(place)}"


def _sample(frame: Frame, names: Sequence[str]) -> Frame:
    """Rows of the frame as it is, evenly apart: those that a model is settled on."""
    import narwhals as nw

    given = nw.from_native(frame, eager_only=True)
    return given.select(list(names))[settling_rows(len(given)).tolist()].to_native()


@contextmanager
def _start(library: str) -> Iterator[subprocess.Popen[bytes]]:
    if not sys.executable or getattr(sys, "frozen", False):
        raise _unstarted("no Python interpreter could be found for the trial")
    # Not from the folder one is in, which may hold files named like Python's own.
    command = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), library]
    quiet = None if os.environ.get("LIMI_DEBUG", "0") not in ("", "0") else subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet
        )
    except OSError as error:
        raise _unstarted(error.strerror or reason(error)) from None
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _verdict(process: subprocess.Popen[bytes], job: _Job, library: str) -> None:
    """Wait for the trial's answer, and raise what it means."""
    refused = f"{job.work.uri} was not opened: in a trial in a separate process, it"
    try:
        said, _ = process.communicate(pickle.dumps(job, protocol=5), timeout=job.seconds)
    except subprocess.TimeoutExpired:
        raise BadModel(
            f"{refused} did not open and answer {job.work.asked} within {job.seconds:g} seconds; "
            f"the file is damaged or malicious, or needs more time (set {SECONDS})"
        ) from None
    if not said.startswith(_READY):
        raise _unstarted(f"it ended with {_ending(process.returncode)}")
    try:
        answer = json.loads(said.removeprefix(_READY))
        kind, words = str(answer["kind"]), str(answer["said"])
    except (KeyError, TypeError, ValueError):
        raise BadModel(
            f"{refused} crashed {library.partition('.')[0]} ({_ending(process.returncode)}); the "
            "file is damaged or malicious; save the model again"
        ) from None
    if kind == _MEMORY:
        if job.gigabytes is None:
            most, other = "memory than there is", "it needs a larger machine"
        else:
            most, other = (
                f"than {job.gigabytes:.3g} GB of memory",
                f"{GIGABYTES} must allow it more",
            )
        raise BadModel(f"{refused} took more {most}; the file is damaged or malicious, or {other}")
    if kind != _PASSED:
        raise _ERRORS.get(kind, BadModel)(words)


_ERRORS: dict[str, type[LimiError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, LimiError)
}


def _unstarted(why: str) -> InvalidInput:
    return InvalidInput(
        f"a model file is first tried in a separate process, which could not be started: {why}; "
        f"{SECONDS}=0 opens files without a trial, so use it only for files that you know"
    )


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _setting(name: str, usual: float | None) -> float | None:
    """A limit from the environment, 0 for none; InvalidInput where it is not a number."""
    text = os.environ.get(name, "")
    if not text:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidInput(f"{name} is {text!r}; it must be 0 or more, where 0 means no limit")
    return min(number, _MOST) or None


def _memory() -> float | None:
    """How many gigabytes a trial may take: a share of what this machine, or container, has."""
    sizes = []
    with suppress(AttributeError, OSError, ValueError):  # another system
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no container, or one without a limit
            sizes.append(int(Path("/sys/fs/cgroup", place).read_text(encoding="ascii")))
    return _SHARE * min(sizes) / 1e9 if sizes else None


# -- in the other process -------------------------------------------------------------------


def main() -> NoReturn:
    """Answer for one job on standard input, and end at once: nothing of a bad model is tidied."""
    answer = os.dup(1)
    os.dup2(2, 1)  # what the model prints is not the answer
    with suppress(Exception):
        import_library(sys.argv[2])
    os.write(answer, _READY)
    try:
        job = pickle.load(sys.stdin.buffer)  # noqa: S301 (the process that started this one wrote it)
        _limit(job.seconds, job.gigabytes)
        job.work.run()
        said = {"kind": _PASSED, "said": ""}
    except EOFError:  # nothing was asked
        os._exit(0)
    except BaseException as error:
        words = str(error) if isinstance(error, LimiError) else reason(error)
        kind = _MEMORY if isinstance(error, MemoryError) else type(error).__name__
        said = {"kind": kind, "said": words}
    os.write(answer, json.dumps(said).encode())
    os._exit(0)


def _limit(seconds: float, gigabytes: float | None) -> None:
    try:
        import resource
    except ImportError:  # Windows: the process that waits keeps the time, and memory has no limit
        return
    # The kernel's own alarm, which no native loop can keep waiting, for when nobody waits any more.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(seconds) + 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if gigabytes is not None:
        # Linux counts data that are written; address space would count what libraries reserve.
        which = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        most = int(gigabytes * 1e9) + _hold_bytes()
        with suppress(OSError, ValueError):  # a lower limit is in force already
            resource.setrlimit(which, (most, resource.getrlimit(which)[1]))


def _hold_bytes() -> int:
    """What this process and its libraries hold already."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # not Linux
        return 0
