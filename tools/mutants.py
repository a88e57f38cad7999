"""Change one operator, comparison or constant at a time, and see which tests notice.

Each module of `SUITES` is mutated by mutmut in a scratch copy of the repository, and a fixed sample
of its mutants is run against the module's own quick tests. Two kinds are left out: changes of texts
alone, for no test should hold every word of a message, and a value replaced by None or an argument
left away, which mostly crashes and is noticed by anything. Survivors that were read and found to
change no behaviour, or to tune it only, stand in `APART` with the reason, and are counted apart.
(mutmut's own runner does not work with the pytest we pin, and knows no sample; its mutations do.)

    python tools/mutants.py                 # all modules, 60 mutants each
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
    "rows": ("limi/table/rows.py", ["tests/table/test_rows.py"]),
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
    "regions": "audit or query or report or summary or noise or true_rate",
    "what_if": "rarely_told_apart or ten_thousand",
}
"""Tests that take too long to be run for each mutant, by words of their names."""

APART: dict[str, dict[str, str]] = {
    "limi/search/check.py": {
        "check_rows: ind='stable') if len(first) < n { -> or True}else None": (
            "the longer way to the same rows, where no key repeats"
        ),
        "check_rows: cells = asked.reshape(-{1 -> 2}, n_combinations, rows.shape[1])": (
            "numpy takes any negative number for the length to find out"
        ),
        "check_rows: scores = score(asked).reshape(-{1 -> 2}, n_combinations)": (
            "numpy takes any negative number for the length to find out"
        ),
        "Checked.join: ts if len(part)] or list(parts[:{1 -> 2}])": (
            "two batches without rows are none as well"
        ),
    },
    "limi/metrics/rates.py": {
        "_places: chosen = np.arange(size) if n >{= -> } size else np.sort(rng.choice(si": (
            "of n rows all n are drawn and sorted: the same places"
        ),
    },
    "limi/search/engine.py": {
        "_share: queries = {0 -> 1} if limits[1] is None else limit": (
            "without a budget of queries nobody looks at it"
        ),
        "_share: s - began) / max(until - began, {1e-09 -> 1.000000001})": (
            "keeps from dividing by nothing; of a second the progress is not shown"
        ),
    },
    "limi/search/frugal_check.py": {
        "_verdicts: lips] = np.where(flipped, gap, -{1.0 -> 2.0})[flips]": (
            "any number below 0 is below all gaps"
        ),
        "_verdicts: p[line[inside], own[inside]] = -{1.0 -> 2.0}": (
            "any number below 0 is below all gaps"
        ),
        "_verdicts: .abs(scores - mine[:, None])), -{1.0 -> 2.0})": (
            "any number below 0 is below all gaps"
        ),
        "_with_mixtures: gap[line, mixed.own] = -{1.0 -> 2.0}": (
            "any number below 0 is below all gaps"
        ),
        "_with_mixtures: ixed.scores - mine[:, None])), -{1.0 -> 2.0})": (
            "any number below 0 is below all gaps"
        ),
        "_with_mixtures: gap = np.where(flipped, gap + {2.0 -> 3.0}, gap)": (
            "any number above 1 is above all gaps"
        ),
        "Flight._unasked: ique(key * self.scores.shape[1] {+ -> -} own, return_index=True)[1]": (
            "a number of its own for each pair of key and value, either way"
        ),
        "Flight.__init__: lf._by_key], np.arange(n_keys + {1 -> 2}))": (
            "one more end, which nobody looks at"
        ),
        "Flight.__init__: _combination: Index = np.arange({0 -> 1})": (
            "set anew before it is looked at"
        ),
    },
    "limi/table/rows.py": {
        "KeySet._last_is_long: return last * 2 > before {or -> and} before <= _FEW": (
            "when runs are merged is a matter of speed"
        ),
        "KeySet._last_is_long: return last * 2 >{ -> =} before or before <= _FEW": (
            "when runs are merged is a matter of speed"
        ),
        "KeySet._last_is_long: return last * {2 -> 3} > before or before <= _FEW": (
            "when runs are merged is a matter of speed"
        ),
        "KeySet._last_is_long: return last {* -> /} 2 > before or before <= _FEW": (
            "when runs are merged is a matter of speed"
        ),
        "KeySet._last_is_long: rn last * 2 > before or before <{= -> } _FEW": (
            "when runs are merged is a matter of speed"
        ),
        "KeySet.add: while len(self._runs) > {1 -> 2} and self._last_is_long():": (
            "when runs are merged is a matter of speed"
        ),
        "_hash: = (hashes ^ hashes >> np.uint64({29 -> 30})) * _MIXER + word": (
            "another hash: equal ones are told apart by their words"
        ),
        "_hash: for word in keys.T[{1 -> 2}:]:": (
            "another hash: equal ones are told apart by their words"
        ),
        "_hash: hashes = (hashes ^ hashes {>> -> <<} np.uint64(29)) * _MIXER + word": (
            "another hash: equal ones are told apart by their words"
        ),
        "_hash: hashes = (hashes {^ -> &} hashes >> np.uint64(29)) * _MIX": (
            "another hash: equal ones are told apart by their words"
        ),
        "_hash: shes >> np.uint64(29)) * _MIXER {+ -> -} word": (
            "another hash: equal ones are told apart by their words"
        ),
        "group: , minlength=1 << bits)[bucket] >{ -> =} 1)": (
            "more keys are sorted, to the same end"
        ),
        "group: hashes * _MIXER >> np.uint64(64 {- -> +} bits)).astype(np.intp)": (
            "other buckets: keys that share one are sorted"
        ),
        "group: = (hashes * _MIXER >> np.uint64({64 -> 65} - bits)).astype(np.intp)": (
            "other buckets: keys that share one are sorted"
        ),
        "group: bits = max(10, ({4 -> 5} * n).bit_length())": (
            "how many buckets there are is a matter of speed"
        ),
        "group: bits = max({10 -> 11}, (4 * n).bit_length())": (
            "how many buckets there are is a matter of speed"
        ),
        "group: o(np.bincount(bucket, minlength={1 -> 2} << bits)[bucket] > 1)": (
            "buckets that no key is in"
        ),
        "group: np.bincount(bucket, minlength=1 {<< -> >>} bits)[bucket] > 1)": (
            "buckets that no key is in"
        ),
        "group: if n <{= -> } _FEW:": (
            "from which number on keys are thrown into buckets is a matter of speed"
        ),
        "_packed:  in_word, in_sum = (-1, _WORD + {1 -> 2}, _EXACT + 1)": (
            "full, so that the first column begins a word"
        ),
        "_packed: _sum = (-1, _WORD + 1, _EXACT + {1 -> 2})": (
            "full, so that the first column begins a sum"
        ),
        "_packed: in_sum = (word + 1, 1, _EXACT + {1 -> 2})": (
            "full, so that the next column begins a sum"
        ),
        "_packed: , [float(low @ w) if plain else {0.0 -> 1.0} for w in weights], places, real": (
            "all keys are moved by as much"
        ),
        "_packed:  top + (low if plain else 0.0), {0.0 -> 1.0}), weights, [float(low @ w) if p": (
            "what stands for a missing cell where none may be missing"
        ),
        "_packed: steps, np.where(schema.may_miss {& -> |} grid, top + (low if plain else ": (
            "what stands for a missing cell where none may be missing"
        ),
        "_packed: s = np.where(grid, schema.step, {1.0 -> 2.0})": (
            "a column without a step is in no sum"
        ),
        "_snapped: a.is_numerical & (schema.step % {1 -> 2} > 0)):": (
            "rounds whole numbers, which are round"
        ),
        "_snapped: p = np.where(grid, schema.step, {1.0 -> 2.0})": (
            "what is computed for a column without a step is not used"
        ),
    },
    "limi/metrics/individual.py": {
        "group_discrimination: t(shares.max() - shares.min()), {12 -> 13})": (
            "digits that are shown nowhere"
        ),
    },
    "limi/metrics/group.py": {
        "_wilson: turn (np.clip(middle - half, 0, {1 -> 2}), np.clip(middle + half, 0, 1))": (
            "a low end is never above 1"
        ),
        "Shares.linear: fference(round(value, 12), max(-{1.0 -> 2.0}, value - math.sqrt(((weights * ": (
            "by this formula no end lies beyond 1"
        ),
        "Shares.linear: ghts * down) ** 2).sum())), min({1.0 -> 2.0}, value + math.sqrt(((weights * ": (
            "by this formula no end lies beyond 1"
        ),
        "tally: in (1, 0) if labels is not None { -> or True}else ():": (
            "without labels nobody has one: the same zeros"
        ),
        "Shares.linear: down = np.where(weights >{ -> =} 0, share - low, high - share)": (
            "no weight is 0"
        ),
        "Shares.linear: up = np.where(weights >{ -> =} 0, high - share, share - low)": (
            "no weight is 0"
        ),
        "Shares.linear: return Difference(round(value, {12 -> 13}), max(-1.0, value - math.sqrt((": (
            "digits that are shown nowhere"
        ),
    },
    "limi/metrics/row_naturalness.py": {
        "nearest_neighbour_distance: x_real: int=5000, max_rows: int={2000 -> 2001}) -> float:": (
            "how large a sample is"
        ),
        "nearest_neighbour_distance: dom.Generator, *, max_real: int={5000 -> 5001}, max_rows: int=2000) -> float:": (
            "how large a sample is"
        ),
    },
    "limi/metrics/representative.py": {
        "population_odds: _nodes=15, min_samples_leaf=min({20 -> 21}, max(1, len(is_real) // 20)), c": (
            "how the classifier is tuned"
        ),
        "population_odds: =min(20, max(1, len(is_real) // {20 -> 21})), categorical_features=categor": (
            "how the classifier is tuned"
        ),
        "population_odds: ier(max_iter=50, max_leaf_nodes={15 -> 16}, min_samples_leaf=min(20, max(1": (
            "how the classifier is tuned"
        ),
        "population_odds: 5, min_samples_leaf=min(20, max({1 -> 2}, len(is_real) // 20)), categori": (
            "how the classifier is tuned"
        ),
        "population_odds: ures=categories, early_stopping={False -> True}, random_state=0)": (
            "how the classifier is tuned"
        ),
        "population_odds: ientBoostingClassifier(max_iter={50 -> 51}, max_leaf_nodes=15, min_samples": (
            "how the classifier is tuned"
        ),
        "population_odds: ly_stopping=False, random_state={0 -> 1})": (
            "how the classifier is tuned"
        ),
        "population_odds: af=min(20, max(1, len(is_real) /{/ -> } 20)), categorical_features=cate": (
            "how the classifier is tuned"
        ),
        "population_odds: .kind != 'ordered' and (c.size <{= -> } _MOST_LEVELS) for c in schema.c": (
            "255 levels as numbers are learned as well"
        ),
    },
    "limi/metrics/diversity.py": {
        "distinct_cells: np.unique(cell * (codes.max() + {1 -> 2}) + codes, return_inverse=True)[": (
            "a number of its own for each pair of codes, either way"
        ),
        "distinct_cells: unique(cell * (codes.max() + 1) {+ -> -} codes, return_inverse=True)[1]": (
            "a number of its own for each pair of codes, either way"
        ),
        "pairwise_distance: b) / np.where(width > 0, width, {1.0 -> 2.0}), a != b)": (
            "a column of one value has no gaps to divide"
        ),
        "distinct_cells: h = column.high - column.low or {1.0 -> 2.0}": (
            "a column of one value has no gaps to divide"
        ),
        "pairwise_distance: ndom.Generator, *, n_pairs: int={20000 -> 20001}) -> float:": (
            "how large a sample is"
        ),
        "pairwise_distance: second = (first {+ -> -} rng.integers(1, len(rows), n_pa": (
            "another row than the first, drawn as fairly"
        ),
    },
    "limi/metrics/sequential.py": {
        "anytime_interval: seen = h / np.maximum(rows, {1 -> 2})": (
            "of one row: another start of the halving, inside the interval too"
        ),
        "_end: = log_capital(hits, n, middle) <{ -> =} bound": (
            "no capital is the bound to the last digit"
        ),
    },
}
"""Mutants that were read and that no test need notice, by file: the change, and why."""

_AROUND = 32  # letters shown before and after a change
_LEAST, _SLACK = 20.0, 4.0  # a mutant may take so many seconds, or so many times the tests' own


@dataclass
class Outcome:
    """What became of the sampled mutants of one module."""

    noticed: int = 0
    of: int = 0  # without those that stand apart
    apart: int = 0
    left: int = 0  # not run for want of time
    survivors: list[str] = field(default_factory=list)

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
    parser.add_argument("--each", type=int, default=60, help="mutants of a module (60; 0: all)")
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
    return bool(low or cut)


def run_suite(path: str, tests: list[str], most: int, end: float, workers: int) -> Outcome:
    """What became of a file's sampled mutants."""
    with tempfile.TemporaryDirectory(prefix="limi-mutants-") as folder:
        scratch = Path(folder)
        copy_tree(scratch)
        every, mutated = mutants_of(path, (scratch / path).read_text())
        apart = APART.get(path, {})
        stale = set(apart) - {mutant.text for mutant in every}
        if stale:
            raise SystemExit(f"{path} has changed; take out of APART: {', '.join(sorted(stale))}")
        chosen = every[: most or None]
        counted = [mutant for mutant in chosen if mutant.text not in apart]
        outcome = Outcome(apart=len(chosen) - len(counted), left=len(counted))
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
