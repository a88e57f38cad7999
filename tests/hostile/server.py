"""A process that has loaded limi and its libraries, and forks one child for each input.

Starting Python and limi takes seconds, forking takes milliseconds; a child that crashes, hangs,
changes its folder or fills its memory takes nothing with it. The server itself never works with a
library: threads of a pool do not survive a fork.

Lines of JSON go both ways: {"case": ID, "choices": [...], "debug": false}, and what came of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.hostile import cases, trials
from tests.hostile.case import Around, Case
from tests.hostile.material import small_repairs
from tests.hostile.scratch import SENTINELS, Scratch, fill, inventory
from tests.hostile.verdict import Ending, judge

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plan:
    """How a server works."""

    name: str
    cpu_s: int = 20  # of computing that an input may take
    wall_s: int = 90  # of time, for the machine may be busy
    bare: bool = False  # without material and without libraries, for inputs that need none


@dataclass(frozen=True)
class Result:
    """What came of one input."""

    case: str
    outcome: str
    problems: tuple[str, ...]
    signature: str
    seconds: float
    cpu: float  # seconds of computing
    choices: tuple[int, ...]
    words: str
    err: str = ""


# -- the side that asks ----------------------------------------------------------------------


class Server:
    """A server process, asked for one input at a time."""

    def __init__(self, scratch: Scratch, plan: Plan) -> None:
        self.scratch, self.plan = scratch, plan
        words = (str(scratch.root), scratch.token, json.dumps(asdict(plan)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.server", *words],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_surroundings(scratch),
            text=True,
        )

    @property
    def box(self) -> Path:
        """What the last input has left."""
        return self.scratch.root / self.plan.name / "box"

    def run(
        self, case: str, choices: Sequence[int] | None = None, *, debug: bool = False
    ) -> Result:
        """What comes of an input; `debug` shows the traceback behind a sentence."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "case": case,
            "choices": None if choices is None else list(choices),
            "debug": debug,
        }
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the server ended while it ran {case}")
        tree = json.loads(line)
        tree |= {name: tuple(tree[name]) for name in ("problems", "choices")}
        return Result(**tree)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _surroundings(scratch: Scratch) -> dict[str, str]:
    """Variables of the server: few, so that inputs run alike everywhere."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "POLARS_MAX", "RAYON")
    return {
        **kept,
        "PYTHONPATH": str(_ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "COLUMNS": "100",
        # Memory in large pages, of which a fork copies few entries instead of many.
        "PYTHONMALLOC": "malloc",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        # Libraries keep caches of their own there as they are loaded.
        "HOME": str(scratch.folder("home")),
        "TMPDIR": str(scratch.folder("tmp")),
        **{f"{name}_{'' if name.endswith('MAX') else 'NUM_'}THREADS": "1" for name in threads},
    }


# -- the server ------------------------------------------------------------------------------


def serve(scratch: Scratch, plan: Plan) -> None:
    """Answer on standard output until standard input ends."""
    # What libraries print while they are loaded must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    material = cases.Material(scratch.root / "material")
    if not plan.bare:
        _in_child(material.make_all)
        _warm_up(scratch, plan, material)
    for line in sys.stdin:
        asked = json.loads(line)
        # Children inherit it; the server itself has no use for it.
        os.environ["LIMI_DEBUG"] = str(int(asked["debug"]))
        result = _run(scratch, plan, material, asked["case"], asked["choices"])
        answers.write(json.dumps(asdict(result)) + "\n")
        answers.flush()


def _warm_up(scratch: Scratch, plan: Plan, material: cases.Material) -> None:
    """Load every module that inputs load: those that the material took, and a few of them take."""
    small_repairs()
    trials.fork()
    _load(material.modules)
    for case in cases.WARM_UP:
        report = scratch.root / plan.name / "modules"
        _run(scratch, plan, material, case, modules=report)
        _load(json.loads(report.read_text()))
    _know_commands()
    import gc

    gc.collect()
    gc.freeze()  # so that a child's collector does not copy every page


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        with contextlib.suppress(Exception):  # made by another one, or meant for its own program
            importlib.import_module(module)


def _know_commands() -> None:
    """Work out once what every child would work out again: commands, options and what there is."""
    import typer.main

    from limi import generators, methods, models
    from limi.cli._app import app

    command = typer.main.get_command(app)
    typer.main.get_command = lambda asked: command  # what `limi.cli` asks for, and nothing else
    for registry in (generators, methods, models):
        registry.names()


def _in_child(work: Any) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("the material cannot be made")


def _run(
    scratch: Scratch,
    plan: Plan,
    material: cases.Material,
    case_id: str,
    choices: Sequence[int] | None = None,
    modules: Path | None = None,
) -> Result:
    home = scratch.folder(plan.name)
    box = scratch.empty(f"{plan.name}/box")
    places = {part: home / part for part in ("out", "err", "built", "outside")}
    for place in places.values():
        place.write_bytes(b"")
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _Child(box, places, plan.cpu_s, modules).run(material, case_id, choices)
    status, hung, cpu = _wait(child, start, plan.wall_s)
    left = _end_group(child)
    seconds = time.monotonic() - start
    built = places["built"].read_bytes()
    if not built:
        said = places["err"].read_text(errors="replace")
        return Result(case_id, "HARNESS", (said[-2000:],), said[-200:], seconds, cpu, (), "")
    case, before, taken = pickle.loads(built)  # noqa: S301 (written by our own child)
    ending = Ending(
        code=status,
        hung=hung,
        out=places["out"].read_bytes(),
        err=places["err"].read_bytes(),
        before=before,
        after=inventory(box),
        outside=tuple(places["outside"].read_text(errors="replace").splitlines()),
        left=left,
    )
    verdict = judge(case, ending)
    return Result(
        case=case_id,
        outcome=verdict.outcome,
        problems=verdict.problems,
        signature=verdict.signature,
        seconds=seconds,
        cpu=cpu,
        choices=taken,
        words=" ".join(map(ascii, case.words))[:600],
        err=ending.err.decode("utf-8", "replace")[-4000:],
    )


def _wait(child: int, start: float, wall_s: float) -> tuple[int, bool, float]:
    """How a child ended, whether it had to be stopped, and how long it computed."""
    pause = 0.001
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code, code == -signal.SIGXCPU, used.ru_utime + used.ru_stime
        if time.monotonic() - start > wall_s:
            os.kill(child, signal.SIGXCPU)
            time.sleep(0.2)
            os.kill(child, signal.SIGKILL)
            used = os.wait4(child, 0)[2]
            return -signal.SIGKILL, True, used.ru_utime + used.ru_stime
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)


def _end_group(child: int) -> bool:
    """End what a child has started; whether anything of it was still there after a while."""
    for _ in range(50):
        try:
            os.killpg(child, 0)
        except (ProcessLookupError, PermissionError):
            return False
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    return True


# -- the child -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Child:
    """Builds an input, runs it, and never comes back."""

    box: Path
    places: dict[str, Path]
    cpu_s: int
    modules: Path | None

    def run(self, material: cases.Material, case_id: str, choices: Sequence[int] | None) -> None:
        os.setsid()
        try:
            self._redirect()
            case, taken = cases.build(case_id, material, choices)
            self._prepare(case)
            with self.places["built"].open("wb") as file:
                pickle.dump((case, inventory(self.box), taken), file)
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            os._exit(70)
        code = 70
        modules = None if self.modules is None else self.modules.open("w")
        try:
            self._enter(case.around)
            code = _call(case)
        finally:
            if modules is not None:
                modules.write(json.dumps(list(sys.modules)))
                modules.close()
            os._exit(code)

    def _redirect(self) -> None:
        for part, number in (("out", 1), ("err", 2)):
            handle = os.open(self.places[part], os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, number)
            os.close(handle)
        handle = os.open(os.devnull, os.O_RDONLY)
        os.dup2(handle, 0)
        os.close(handle)

    def _prepare(self, case: Case) -> None:
        work = self.box / "work"
        case.check_inside(str(work), str(self.box))
        for name in ("work", "home", "tmp", "cache", "victim"):
            (self.box / name).mkdir()
        fill(self.box, SENTINELS)
        fill(work, case.files)
        os.chdir(work)
        home = {"HOME": "home", "TMPDIR": "tmp", "LIMI_CACHE": "cache"}
        os.environ.update({name: str(self.box / place) for name, place in home.items()})
        os.environ["LIMI_MODEL_SECONDS"] = str(case.around.trial_s)
        os.environ.update(case.around.variables)
        import tempfile

        tempfile.tempdir = None

    def _enter(self, around: Around) -> None:
        """Put the limits and the surroundings of the input in force."""
        if around.real_trial:
            trials.start()
        if around.cwd == "deleted":
            gone = self.box / "tmp" / "gone"
            gone.mkdir()
            os.chdir(gone)
            gone.rmdir()
        if around.ascii:
            for stream in (sys.stdout, sys.stderr):
                assert isinstance(stream, io.TextIOWrapper)
                stream.reconfigure(encoding="ascii", errors="surrogateescape")
        # Where it is when its time is over, for whoever has to mend it.
        faulthandler.register(signal.SIGXCPU, chain=True)
        sys.addaudithook(_Watch(self.box, self.places["outside"]))
        if around.stdout == "closed":
            os.close(1)
            sys.stdout = None  # as Python starts where it is closed
            sys.__stdout__ = None
        elif around.stdout == "gone":
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, 1)
            os.close(writer)
        size = _address_space() + around.memory
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_s, self.cpu_s + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (around.files, around.files))
        resource.setrlimit(resource.RLIMIT_FSIZE, (around.file_size, around.file_size))


def _call(case: Case) -> int:
    """Run the program as Python runs a script, and say its exit code."""
    sys.argv = ["limi", *case.words]
    module, _, name = case.entry.partition(":")
    code = 0
    try:
        getattr(importlib.import_module(module), name)()
    except SystemExit as stop:
        if isinstance(stop.code, str):
            sys.stderr.write(stop.code)
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            # So ends Python where its output cannot be written.
            os.write(2, f"Exception ignored while flushing: {error}\n".encode())
            code = 120
    return code & 0xFF


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class _Watch:
    """Writes down, and forbids, what a program does to anything but its own folder."""

    _ONE = ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown")
    _TWO = ("os.rename", "os.link", "os.symlink")
    _RUNS = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.startfile")

    def __init__(self, box: Path, log: Path) -> None:
        self._box = os.path.realpath(box)
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND)

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if writes and not isinstance(path, int):
                self._hold(event, path)
        elif event in self._ONE:
            if len(given) < 2 or given[-1] in (-1, None):
                self._hold(event, given[0])
        elif event in self._TWO:
            for path in given[:2] if event == "os.rename" else given[1:2]:
                self._hold(event, path)
        elif event == "shutil.rmtree":
            self._hold(event, given[0])
        elif event in self._RUNS and os.fsdecode(given[0] or "") != sys.executable:
            self._refuse(f"{event} {given[:2]!r}")
        elif event == "socket.connect":
            self._refuse(f"{event} {given[1]!r}")

    def _hold(self, event: str, path: Any) -> None:
        if isinstance(path, int):
            return
        try:
            folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        except FileNotFoundError:  # the working folder is gone, and nothing can be written there
            return
        place = os.path.join(os.path.realpath(folder), name)
        if place != os.devnull and not place.startswith(self._box + os.sep):
            self._refuse(f"{event} {place!r}")

    def _refuse(self, what: str) -> None:
        os.write(self._log, ascii(what)[:500].encode() + b"\n")
        raise PermissionError(1, "outside the scratch folder")


@contextlib.contextmanager
def servers(scratch: Scratch, count: int) -> Iterator[list[Server]]:
    """Several servers, ended afterwards."""
    started = [Server(scratch, Plan(f"worker{number}")) for number in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.close()


if __name__ == "__main__":
    serve(Scratch(Path(sys.argv[1]), sys.argv[2]), Plan(**json.loads(sys.argv[3])))
