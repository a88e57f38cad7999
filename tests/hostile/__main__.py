"""Run hostile inputs and count how they end.

    python -m tests.hostile                          10,000 inputs of seed 0, on two cores
    python -m tests.hostile --inputs 500 --seed 7    some other ones
    python -m tests.hostile --kind models            one class alone; repeatable
    python -m tests.hostile --corpus                 the named cases
    python -m tests.hostile --case tables/0/17       one input, with all that came of it
    python -m tests.hostile --case tables/0/17 --choices 3.0.2

Exit code 1 where an input failed. A failure is shrunk to fewer choices, which are printed, and
each way of failing is shown once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.hostile import cases
from tests.hostile.draw import shrunk
from tests.hostile.scratch import Scratch
from tests.hostile.server import Result, Server, servers
from tests.hostile.verdict import BAD


def main() -> int:
    given = _parsed()
    scratch = Scratch.make()
    try:
        with servers(scratch, 1 if given.case else given.workers) as crew:
            if given.case:
                return _one(crew[0], given.case, given.choices, given.keep)
            names = cases.corpus() if given.corpus else None
            if given.corpus and given.kind:
                names = [name for kind in given.kind for name in cases.corpus(kind)]
            names = names or list(cases.generated(given.seed, given.inputs, given.kind))
            return _many(crew, names, given.shrink)
    finally:
        scratch.remove()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=list(cases.KINDS), default=[])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--corpus", action="store_true", help="the named cases alone")
    parser.add_argument("--shrink", type=int, default=60, help="tries for each way of failing")
    parser.add_argument("--case", help="one input by its name")
    parser.add_argument("--choices", help="numbers in place of those of the seed: 3.0.2")
    parser.add_argument("--keep", type=Path, help="new folder to copy the input's files to")
    return parser.parse_args()


def _one(server: Server, case: str, choices: str | None, keep: Path | None) -> int:
    numbers = None if choices is None else [int(word) for word in choices.split(".") if word]
    result = server.run(case, numbers)
    _show(result)
    print(server.run(case, numbers, debug=True).err)
    print(f"choices: {_dotted(result.choices)}")
    if keep is not None:
        shutil.copytree(server.box, keep, symlinks=True)
        print(f"what it left is in {keep}")
    return int(result.outcome in BAD)


def _many(crew: Sequence[Server], names: Sequence[str], tries: int) -> int:
    start = time.monotonic()
    results = list(_run_all(crew, names, start))
    seconds = time.monotonic() - start
    print(f"\n{len(results):,} inputs in {seconds:,.0f} seconds on {len(crew)} workers")
    _count(results)
    failures: dict[str, list[Result]] = {}
    for result in results:
        if result.outcome in BAD:
            failures.setdefault(result.signature, []).append(result)
    for number, alike in enumerate(failures.values(), 1):
        print(f"\n{number} of {len(failures)}: {len(alike):,} alike")
        _show(alike[0])
        _show_where(crew[0], alike[0])
        if tries and alike[0].choices:
            _show_smaller(crew[0], alike[0], tries)
    return int(bool(failures))


def _run_all(crew: Sequence[Server], names: Sequence[str], start: float) -> Iterable[Result]:
    free: SimpleQueue[Server] = SimpleQueue()
    for server in crew:
        free.put(server)

    def run(name: str) -> Result:
        server = free.get()
        try:
            return server.run(name)
        finally:
            free.put(server)

    with ThreadPoolExecutor(len(crew)) as threads:
        for done, result in enumerate(threads.map(run, names), 1):
            if result.outcome in BAD:
                print(f"{result.case}: {result.problems[0][:160]}", flush=True)
            if done % 500 == 0:
                took = time.monotonic() - start
                print(f"{done:,} of {len(names):,}, {took:,.0f} seconds", flush=True)
            yield result


def _count(results: Sequence[Result]) -> None:
    counts = Counter((result.case.partition("/")[0], result.outcome) for result in results)
    kinds = sorted({kind for kind, _ in counts})
    outcomes = sorted({outcome for _, outcome in counts}, key=lambda one: (one in BAD, one))
    times = {
        kind: sum(result.cpu for result in results if result.case.startswith(f"{kind}/"))
        for kind in kinds
    }
    width = max(map(len, [*outcomes, "cpu seconds"]))
    print(f"{'':{width}}" + "".join(f"{kind:>14}" for kind in [*kinds, "all"]))
    for outcome in outcomes:
        row = [counts[kind, outcome] for kind in kinds]
        print(f"{outcome:{width}}" + "".join(f"{n:>14,}" for n in [*row, sum(row)]))
    row = [times[kind] for kind in kinds]
    print(f"{'cpu seconds':{width}}" + "".join(f"{n:>14,.0f}" for n in [*row, sum(row)]))
    bad = sum(result.outcome in BAD for result in results)
    print(f"{bad:,} inputs of {len(results):,} ended as no input should")


def _show(result: Result) -> None:
    print(
        f"{result.case}: {result.outcome}, {result.seconds:.2f} s, of computing {result.cpu:.2f} s"
    )
    print(f"  limi {result.words}")
    for problem in result.problems:
        print(f"  {problem}")


def _show_where(server: Server, result: Result) -> None:
    """The last places of our own in the traceback behind a sentence that nobody wrote."""
    if result.outcome == "UNFORESEEN":
        lines = server.run(result.case, debug=True).err.splitlines()
        places = [line for line in lines if "/limi/" in line and line.strip().startswith("File ")]
        print("\n".join(places[-4:]))


def _show_smaller(server: Server, result: Result, tries: int) -> None:
    def still(choices: tuple[int, ...]) -> bool:
        return server.run(result.case, choices).signature == result.signature

    least = shrunk(result.choices, still, tries=tries)
    print(f"  again: python -m tests.hostile --case {result.case} --choices {_dotted(least)}")
    smaller = server.run(result.case, least)
    print(f"  limi {smaller.words}")


def _dotted(choices: Sequence[int]) -> str:
    return ".".join(map(str, choices)) or "."


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
