"""The same findings, and passing tests, with the kernels of several processors.

    python tools/kernels.py [--apart]

A processor shows in the last digits: libraries choose their kernels by what it can do, and sums
come out in another order. They can be told to do as an older one would, so one machine can stand
for many. In each setting the tests marked `kernels` run, and the table of `tools/digests.py` must
be the one of this machine as it is. Two processes run at a time.

Settings that do not touch each other are tried together, which takes half the time. Where such a
run fails, `--apart` tries each by itself and so says which of them it was.
"""

from __future__ import annotations

import argparse
import functools
import json
import operator
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from digests import differences

_ROOT = Path(__file__).parent.parent
_AT_ONCE = 2

# What OpenBLAS calls processors, and what numpy calls what they can do, in its old and new words.
_PROCESSORS: dict[str, set[str]] = {
    "SkylakeX": {"AVX512_SKX", "X86_V4"},
    "Haswell": {"AVX2", "X86_V3"},
    "Sandybridge": {"AVX", "X86_V3"},
    "Prescott": {"SSE3", "X86_V2"},
}
_ALSO_CALLED = {"Prescott": "Katmai"}  # they share their kernels
_AS_IT_IS = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
_CHOICES = (
    *("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY"),
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA"),
)

Facts = dict[str, Any]
"""What the libraries of a process say of themselves."""

_FACTS = """
import json
import numpy, scipy.linalg, torch
from threadpoolctl import threadpool_info
pools = [pool for pool in threadpool_info() if pool["internal_api"] == "openblas"]
simd = numpy.show_config(mode="dicts")["SIMD Extensions"]
print(json.dumps({
    "blas": sorted({pool["architecture"] for pool in pools}),
    "threads": sorted({torch.get_num_threads(), *(pool["num_threads"] for pool in pools)}),
    "numpy": [*simd["baseline"], *simd.get("found", [])],
    "dispatched": simd.get("found", []),
    "torch": torch.backends.cpu.get_cpu_capability(),
    "hash": hash("limi"),
}))
"""


@dataclass(frozen=True)
class Setting:
    """Variables that make libraries choose other kernels, and how to see that they did."""

    name: str
    variables: dict[str, str]
    took: Callable[[Facts, Facts], bool]  # from the facts as they are and those of the setting
    tests: bool = True  # do the marked tests run as well? Not where no sum comes out differently
    apart: tuple[str, ...] = ()  # cases whose name ends so are not compared

    def __add__(self, other: Setting) -> Setting:
        return Setting(
            f"{self.name} + {other.name}",
            self.variables | other.variables,
            lambda before, now: self.took(before, now) and other.took(before, now),
            self.tests or other.tests,
            self.apart + other.apart,
        )


def combine(alone: list[Setting]) -> list[Setting]:
    """As few settings as these allow: each joins the smallest that shares no variable with it."""
    groups: list[list[Setting]] = []
    for setting in alone:
        free = [
            group
            for group in groups
            if not any(setting.variables.keys() & one.variables.keys() for one in group)
        ]
        if free:
            min(free, key=len).append(setting)
        else:
            groups.append([setting])
    return [functools.reduce(operator.add, group) for group in groups]


def settings(here: Facts, machine: str = platform.machine()) -> Iterator[Setting | str]:
    """Every setting that this machine can be put in; for the others, why it cannot."""
    for name, needed in _PROCESSORS.items():
        if machine not in ("x86_64", "AMD64") or not here["blas"]:
            yield f"{name}: not with this processor and its linear algebra"
        elif not needed & {*here["numpy"]}:
            yield f"{name}: this processor cannot do as much"
        elif _is_called(name, here):
            yield f"{name}: this machine as it is"
        else:
            yield Setting(
                name,
                {"OPENBLAS_CORETYPE": name},
                lambda before, now, name=name: _is_called(name, now),
            )
    if here["dispatched"]:
        yield Setting(
            "plain numpy",
            {"NPY_DISABLE_CPU_FEATURES": " ".join(here["dispatched"])},
            lambda before, now: not {*before["dispatched"]} & {*now["dispatched"]},
        )
    else:
        yield "plain numpy: this processor can do no more"
    # Matrix products in torch are not its own; these are the words of those who make them.
    yield Setting(
        "plain torch",
        {
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
        },
        lambda before, now: now["torch"] in ("DEFAULT", "NO AVX"),
        # Rows that single precision makes on a device are that device's own. A search on a
        # processor never makes them so; these cases stand for a GPU, and the GPU stays the same.
        apart=(" in tensors",),
    )
    yield Setting(
        "two threads",
        # They wait asleep, because other settings run beside.
        dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
        | {"OMP_WAIT_POLICY": "PASSIVE"},
        lambda before, now: before["threads"] == [1] and now["threads"] == [2],
    )
    yield Setting(
        "another hash seed",
        {"PYTHONHASHSEED": "1"},
        lambda before, now: before["hash"] != now["hash"],
        tests=False,
    )


def _is_called(name: str, now: Facts) -> bool:
    """Does all linear algebra take this processor's kernels?"""
    names = {name.lower(), _ALSO_CALLED.get(name, name).lower()}
    return {arch.lower() for arch in now["blas"]} <= names


def variables(setting: Setting | None) -> dict[str, str]:
    """The environment of a setting: this one, with no choice of kernels but the setting's."""
    kept = {name: value for name, value in os.environ.items() if name not in _CHOICES}
    return kept | _AS_IT_IS | ({} if setting is None else setting.variables)


def facts(setting: Setting | None = None) -> Facts:
    """What the libraries say of themselves in a setting."""
    told = subprocess.run(
        [sys.executable, "-c", _FACTS],
        env=variables(setting),
        check=True,
        capture_output=True,
        text=True,
    )
    found: Facts = json.loads(told.stdout)
    return found


@dataclass(frozen=True)
class Outcome:
    """What came of a setting."""

    digests: dict[str, str]
    problems: list[str]
    seconds: float

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.digests | other.digests,
            self.problems + other.problems,
            self.seconds + other.seconds,
        )


def digests(setting: Setting | None, folder: Path) -> Outcome:
    """The table of digests in a setting."""
    file = folder / f"{'as it is' if setting is None else setting.name}.json"
    words = ["tools/digests.py", "--findings", "--json", str(file), "--cache", str(folder)]
    problems, seconds = _run(words, setting)
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"findings": {}}
    return Outcome(kept["findings"], problems, seconds)


def tests(setting: Setting, before: Facts) -> Outcome:
    """Whether the setting took, seen from the facts before it, and what its tests say."""
    now = facts(setting)
    if not setting.took(before, now):
        return Outcome({}, [f"{setting.variables} changed nothing: {now}"], 0.0)
    if not setting.tests:
        return Outcome({}, [], 0.0)
    words = ["-m", "pytest", "-q", "-m", "kernels", "-p", "no:cacheprovider", *_marked()]
    return Outcome({}, *_run(words, setting))


def _run(words: list[str], setting: Setting | None) -> tuple[list[str], float]:
    """What failed of `python WORDS` in a setting, and its seconds."""
    start = time.perf_counter()
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=_ROOT, env=variables(setting), capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    if not done.returncode:
        return [], seconds
    return [f"{' '.join(words[:3])} failed:\n{_tail(done.stdout + done.stderr)}"], seconds


def _marked() -> list[str]:
    """Files with tests to run; to look into all of them would take longer than the tests."""
    mark = "@pytest.mark.kernels\n"
    files = sorted((_ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in files if mark in path.read_text(encoding="utf-8")]


def _tail(text: str, lines: int = 40) -> str:
    return "\n".join(text.splitlines()[-lines:])


def main() -> int:
    """Run all settings; 1 where one of them finds something else, or fails a test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--apart", action="store_true", help="try each setting by itself")
    apart = parser.parse_args().apart
    here = facts()
    able = list(settings(here))
    for reason in (one for one in able if isinstance(one, str)):
        print(f"  skipped  {reason}", flush=True)
    alone = [one for one in able if isinstance(one, Setting)]
    others = alone if apart else combine(alone)
    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):
        folder = Path(scratch)
        # First, because it trains what the others' digests share; their tests need none of it.
        # As the machine is, `make test` runs the tests.
        first = threads.submit(digests, None, folder)
        tested = [threads.submit(tests, setting, here) for setting in others]
        wanted = first.result()
        failed = _told("as it is", wanted, [])
        if not wanted.digests:
            threads.shutdown(cancel_futures=True)
            return 1
        found = [threads.submit(digests, setting, folder) for setting in others]
        for setting, test, table in zip(others, tested, found, strict=True):
            its = test.result() + table.result()
            both = [
                {name: d for name, d in of.items() if not name.endswith(setting.apart)}
                for of in (wanted.digests, its.digests)
            ]
            changed = differences(*both) if its.digests else []
            failed |= _told(setting.name, its, changed)
    if failed and not apart:
        print("python tools/kernels.py --apart says which setting it is.")
    return int(failed)


def _told(name: str, its: Outcome, changed: list[str]) -> bool:
    """Print what came of a setting; did it fail?"""
    failed = bool(its.problems or changed)
    same = f"{len(its.digests) - len(changed)} of {len(its.digests)} digests the same"
    print(f"{'FAILED' if failed else 'passed':>8}   {name}: {same} ({its.seconds:.0f} s)")
    for line in (*changed, *its.problems):
        print(f"           {line}")
    sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
