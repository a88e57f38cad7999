"""Change one operator, comparison or constant at a time, and see which tests notice.

Each module of `SUITES` is mutated by mutmut in a scratch copy of the repository, and a fixed sample
of its mutants is run against the module's own quick tests. Two kinds are left out: changes of texts
alone, for no test should hold every word of a message, and a value replaced by None or an argument
left away, which mostly crashes and is noticed by anything. Survivors that were read and found to
change no behaviour, or to tune it only, stand in mutants.toml with the reason, and are counted
apart.
(mutmut's own runner does not work with the pytest we pin, and knows no sample; its mutations do.)

    python tools/mutants.py                 # all modules, 30 mutants each
    python tools/mutants.py check rates     # some of them
    python tools/mutants.py rates --each 0  # every mutant
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).resolve().parents[1]
RUNNER = Path(__file__).with_name("mutant_tests.py")

SUITES: dict[str, tuple[str, list[str]]] = {
    "check": ("limi/search/check.py", ["tests/search/test_check.py"]),
    "rates": ("limi/metrics/rates.py", ["tests/metrics/test_rates.py"]),
    "engine": (
        "limi/search/engine.py",
        ["tests/search/test_engine.py", "tests/methods/test_themis.py"],
    ),
    "frugal_check": ("limi/search/frugal_check.py", ["tests/search/test_frugal_check.py"]),
    "partner": (
        "limi/search/partner.py",
        ["tests/search/test_partner.py", "tests/search/test_frugal_check.py"],
    ),
    "rows": ("limi/table/rows.py", ["tests/table/test_rows.py"]),
    **{
        name: (f"limi/table/{name}.py", ["tests/table/test_constraints.py"])
        for name in ("constraints", "_rule_logic", "_rule_syntax")
    },
    "rule_checks": ("limi/table/rule_checks.py", ["tests/table/test_rule_checks.py"]),
    **{
        name: (f"limi/metrics/{name}.py", [f"tests/metrics/test_{name.strip('_')}.py"])
        for name in (
            *("regions", "individual", "group", "naturalness", "row_naturalness"),
            *("representative", "diversity", "severity", "sequential", "what_if", "_holm"),
        )
    },
}
"""By name: a module, and the tests that are to notice."""

SLOW = {
    "check": "neural_network",
    "naturalness": "boosted or sdmetrics_where",
    "regions": "audit or query or report or summary or noise or true_rate or any_table",
    "what_if": "rarely_told_apart or ten_thousand",
    "_rule_syntax": "deep or brackets",  # a changed function is called through one more
}
"""Tests that take too long to be run for each mutant, by words of their names."""

APART: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
"""Mutants that were read and that no test need notice, by file: the change, and why."""

_AROUND = 32  # letters shown before and after a change
_LEAST, _SLACK = 20.0, 4.0  # a mutant may take so many seconds, or so many times the tests' own


@dataclass
class Outcome:
    """What became of the sampled mutants of one module."""

    noticed: int = 0
    of: int = 0  # without those that stand apart
    apart: int = 0
    left: int = 0  # not run, because time ran out
    survivors: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # in mutants.toml, but not in the code any more

    @property
    def share(self) -> float:
        """Of those that count, the share that was noticed."""
        return self.noticed / self.of if self.of else 1.0


@dataclass(frozen=True)
class Mutant:
    """One change."""

    name: str  # as mutmut calls it
    text: str  # the function, and the words around the change


def main() -> int:
    """Run the suites that were asked for; 1 where a share lies under the bar."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(SUITES))
    parser.add_argument("--each", type=int, default=30, help="mutants of a module (30; 0: all)")
    parser.add_argument("--bar", type=float, default=0.85, help="share that must be noticed (0.85)")
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit of it all (60)")
    parser.add_argument("--workers", type=int, default=2, help="tests at the same time (2)")
    parser.add_argument("--json", type=Path, help="write the table here as well")
    given = parser.parse_args()
    unknown = set(given.modules) - set(SUITES)
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    end = time.monotonic() + 60 * given.minutes
    outcomes = {}
    print(f"{'module':16}{'noticed':>8}{'of':>5}{'share':>7}{'apart':>7}  survivors", flush=True)
    for name in given.modules or SUITES:
        path, tests = SUITES[name]
        tests = [*tests, "-k", f"not ({SLOW[name]})"] if name in SLOW else tests
        outcomes[name] = outcome = run_suite(path, tests, given.each, end, given.workers)
        print(
            f"{name:16}{outcome.noticed:8}{outcome.of:5}{outcome.share:7.0%}{outcome.apart:7}  "
            f"{len(outcome.survivors)}{f', {outcome.left} not run' if outcome.left else ''}",
            *(f"    {survivor}" for survivor in outcome.survivors),
            *(f"    no longer there: {entry}" for entry in outcome.stale),
            sep="\n",
            flush=True,
        )
    if given.json:
        table = {name: {**asdict(o), "share": round(o.share, 4)} for name, o in outcomes.items()}
        given.json.write_text(json.dumps(table, indent=2) + "\n")
    low = [name for name, outcome in outcomes.items() if outcome.share < given.bar]
    cut = [name for name, outcome in outcomes.items() if outcome.left]
    print(f"under {given.bar:.0%}: {', '.join(low) or 'none'}")
    if cut:
        print(f"the time was up before all were run: {', '.join(cut)}")
    return bool(low or cut or any(outcome.stale for outcome in outcomes.values()))


def run_suite(path: str, tests: list[str], most: int, end: float, workers: int) -> Outcome:
    """What became of a file's sampled mutants."""
    with tempfile.TemporaryDirectory(prefix="limi-mutants-") as folder:
        scratch = Path(folder)
        copy_tree(scratch)
        every, mutated = mutants_of(path, (scratch / path).read_text())
        apart = APART.get(path, {})
        chosen = every[: most or None]
        counted = [mutant for mutant in chosen if mutant.text not in apart]
        outcome = Outcome(apart=len(chosen) - len(counted), left=len(counted))
        outcome.stale = sorted(set(apart) - {mutant.text for mutant in every})
        if time.monotonic() > end:
            return outcome
        (scratch / path).write_text(mutated)
        noticed = notice(scratch, tests, counted, end, workers)
    outcome.left = noticed.count(None)
    outcome.of = len(counted) - outcome.left
    outcome.noticed = noticed.count(True)
    outcome.survivors = [m.text for m, seen in zip(counted, noticed, strict=True) if seen is False]
    return outcome


def notice(
    scratch: Path, tests: list[str], mutants: list[Mutant], end: float, workers: int
) -> list[bool | None]:
    """Whether the tests notice each mutant; None where the time was up."""
    runners: queue.Queue[Runner] = queue.Queue()
    started = [Runner(scratch, tests) for _ in range(max(1, workers))]
    try:
        with ThreadPoolExecutor(len(started)) as pool:  # each of them, for what it imports
            plain, *_ = pool.map(lambda runner: runner.ask({"mutant": ""}), started)
        if plain["failed"]:
            raise SystemExit(f"without any change: {plain['failed']} fails")
        for runner in started:
            runners.put(runner)
        longest = _LEAST + _SLACK * sum(plain["seconds"])

        def noticed(mutant: Mutant) -> bool | None:
            left = end - time.monotonic()
            if left <= 0:
                return None
            original = mutant.name.rpartition("__mutmut_")[0]
            order = sorted(
                range(len(plain["seconds"])),
                key=lambda i: (original not in plain["called"][i], plain["seconds"][i]),
            )
            runner = runners.get()
            told = {"mutant": mutant.name, "order": order, "seconds": min(longest, left)}
            answer = runner.ask(told)
            runners.put(runner)
            # One that was cut off by the end of it all was not noticed.
            return None if time.monotonic() >= end else bool(answer["noticed"])

        with ThreadPoolExecutor(len(started)) as pool:
            return list(pool.map(noticed, mutants))
    finally:
        for runner in started:
            runner.close()


class Runner:
    """A process that has imported the tests and forks for each mutant."""

    def __init__(self, scratch: Path, tests: list[str]) -> None:
        env = os.environ | {
            "PYTHONPATH": str(scratch),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "MUTANT_UNDER_TEST": "",
        }
        self._words = scratch / f"words-{id(self)}"
        with self._words.open("w") as words:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), *tests],
                cwd=scratch,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                text=True,
            )

    def ask(self, told: dict[str, object]) -> dict[str, object]:
        """Send a line, read one."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(told), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the tests cannot be run:\n{self._words.read_text()}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process; it holds nothing that would be lost."""
        self._process.kill()
        self._process.communicate()


def copy_tree(scratch: Path) -> None:
    """Copy what git tracks, and new files that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, scratch / name)


def mutants_of(path: str, source: str) -> tuple[list[Mutant], str]:
    """Mutants of a file, and the code that holds them all.

    In the order of a hash of what they change, so that the first of them are a sample, and the
    same one while the code stays.
    """
    os.chdir(ROOT)  # mutmut reads its settings from pyproject.toml
    made = mutate_file_contents(path, source)
    parsed = functions(made.code)
    module = path.removesuffix(".py").replace("/", ".")
    mutants = []
    for name in made.mutant_names:
        mangled = name.rpartition("__mutmut_")[0]
        original, changed = parsed[f"{mangled}__mutmut_orig"], parsed[name]
        is_crude = changed.n_none > original.n_none or changed.n_arguments < original.n_arguments
        if is_crude or changed.shape == original.shape:
            continue
        function = mangled.removeprefix("x").strip("ǁ").replace("ǁ", ".").removeprefix("_")
        text = f"{function}: {difference(original.source, changed.source)}"
        # Where lengths are equal anyway, `strict` changes nothing.
        if "strict={" not in text and "-> None}" not in text:
            mutants.append(Mutant(f"{module}.{name}", text))
    mutants.sort(key=lambda mutant: hashlib.sha256(mutant.text.encode()).hexdigest())
    return mutants, made.code


def difference(was: str, now: str) -> str:
    """What differs, with some words before and after it: `n {- -> +} 1`."""
    parts = [re.findall(r"\d+\.\d+|\w+|\s+|.", text) for text in (was, now)]
    same = 0
    while same < min(map(len, parts)) and parts[0][same] == parts[1][same]:
        same += 1
    rest = [part[same:] for part in parts]
    after = 0
    while after < min(map(len, rest)) and rest[0][-1 - after] == rest[1][-1 - after]:
        after += 1
    old, new = ("".join(part[: len(part) - after]).strip() for part in rest)
    before = "".join(parts[0][:same]).rpartition("\n")[2].lstrip()[-_AROUND:]
    behind = "".join(parts[0][len(parts[0]) - after :]).partition("\n")[0][:_AROUND]
    return f"{before}{{{old} -> {new}}}{behind}"


class _WithoutTexts(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


@dataclass(frozen=True)
class Parsed:
    """One function of a file."""

    source: str
    shape: str  # its tree with every text the same
    n_none: int  # how often it says None
    n_arguments: int  # of all its calls


def functions(code: str) -> dict[str, Parsed]:
    """All functions of a file by name."""
    found = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name, node.name = node.name, "_"  # which differs anyway
            source, inner = ast.unparse(node), list(ast.walk(node))
            n_none = sum(isinstance(n, ast.Constant) and n.value is None for n in inner)
            n_arguments = sum(len(n.args) + len(n.keywords) for n in inner if type(n) is ast.Call)
            parts = [_WithoutTexts().visit(part) for part in (node.args, *node.body)]
            shape = "".join(map(ast.dump, parts))
            found[name] = Parsed(source, shape, n_none, n_arguments)
    return found


if __name__ == "__main__":
    sys.exit(main())
