"""Change one operator, comparison or constant at a time, and see which tests notice.

Each module of `SUITES` is mutated by mutmut in a scratch copy of the repository, and a fixed sample
of its mutants is run against the module's own tests. Changes of texts alone are left out: no test
should hold every word of a message. Prints the share that was noticed and the survivors as diffs.
(mutmut's own runner does not work with the pytest we pin, and knows no sample; its mutations do.)

    python tools/mutants.py                 # all modules, 30 mutants each
    python tools/mutants.py check rates     # some of them
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).resolve().parents[1]

SUITES: dict[str, tuple[str, list[str]]] = {
    "check": ("limi/search/check.py", ["tests/search/test_check.py"]),
    "rates": ("limi/metrics/rates.py", ["tests/metrics/test_rates.py"]),
    "engine": ("limi/search/engine.py", ["tests/search/test_engine.py"]),
    "thrift": ("limi/search/frugal_check.py", ["tests/search/test_frugal_check.py"]),
    "rows": ("limi/table/rows.py", ["tests/table/test_rows.py"]),
    "where": ("limi/metrics/regions.py", ["tests/metrics/test_regions.py"]),
    **{
        f"metrics.{name}": (f"limi/metrics/{name}.py", [f"tests/metrics/test_{name}.py"])
        for name in (
            *("diversity", "group", "individual", "naturalness", "representative"),
            *("row_naturalness", "sequential", "severity", "what_if"),
        )
    },
}
_WORKERS = 2
_HEADS = ("--", "++", "@@")
_SLACK = 4.0  # a mutant may take this many times as long as the tests without it, and a minute


def main() -> int:
    """Run the suites that were asked for; 1 where a share lies under the bar."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(SUITES))
    parser.add_argument("--each", type=int, default=30, help="mutants of each module (30)")
    parser.add_argument("--bar", type=float, default=0.85, help="share that must be noticed (0.85)")
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit of it all (60)")
    given = parser.parse_args()
    unknown = set(given.modules) - set(SUITES)
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    os.chdir(ROOT)  # mutmut reads its settings from pyproject.toml
    end = time.monotonic() + 60 * given.minutes
    low = []
    for name in given.modules or SUITES:
        path, tests = SUITES[name]
        if not (ROOT / path).exists():
            continue
        found = run_suite(path, tests, given.each, end)
        noticed = sum(found.values())
        share = noticed / max(1, len(found))
        print(f"{name}: {noticed} of {len(found)} noticed ({share:.0%})", flush=True)
        if share < given.bar:
            low.append(name)
        if time.monotonic() > end:
            print("the time is up")
            return 1
    print(f"under {given.bar:.0%}: {', '.join(low) or 'none'}")
    return bool(low)


def run_suite(path: str, tests: list[str], most: int, end: float) -> dict[str, bool]:
    """Which sampled mutants of a file were noticed; survivors are printed."""
    with tempfile.TemporaryDirectory(prefix="limi-mutants-") as folder:
        scratch = Path(folder)
        copy_tree(scratch)
        names, texts, mutated = sample(scratch, path, most)
        (scratch / path).write_text(mutated)
        start = time.monotonic()
        if run_tests(scratch, tests, "", end - start):
            raise SystemExit(f"{' '.join(tests)} fail without any change")
        limit = 60 + _SLACK * (time.monotonic() - start)
        with ThreadPoolExecutor(_WORKERS) as pool:
            noticed = pool.map(
                lambda name: (
                    run_tests(scratch, tests, name, min(limit, end - time.monotonic()))
                    if time.monotonic() < end
                    else None
                ),
                names,
            )
            found = dict(zip(names, noticed, strict=True))
        for name in [name for name, seen in found.items() if seen is False]:
            print(f"  survived {name}\n{texts[name]}")
        return {name: seen for name, seen in found.items() if seen is not None}


def run_tests(scratch: Path, tests: list[str], mutant: str, seconds: float) -> bool:
    """Did the tests fail, or take too long, with this mutant?"""
    env = os.environ | {
        "PYTHONPATH": str(scratch),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MUTANT_UNDER_TEST": mutant,
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        ran = subprocess.run(
            command, cwd=scratch, env=env, timeout=max(1.0, seconds), capture_output=True
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def copy_tree(scratch: Path) -> None:
    """Copy what git tracks, and new files that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, scratch / name)


def sample(scratch: Path, path: str, most: int) -> tuple[list[str], dict[str, str], str]:
    """Mutants of a file with their diffs, and the file that holds them all.

    Chosen by a hash, so that the same file gives the same sample.
    """
    made = mutate_file_contents(path, (scratch / path).read_text())
    dumps, sources = functions(made.code)
    module = path.removesuffix(".py").replace("/", ".")
    texts = {}
    for name in made.mutant_names:
        # A mutant that differs from the original in its texts alone is left out.
        original = f"{name.rpartition('__mutmut_')[0]}__mutmut_orig"
        if dumps[name] == dumps[original]:
            continue
        pair = [sources[part].splitlines()[1:] for part in (original, name)]
        lines = [line for line in unified_diff(*pair, n=0, lineterm="") if line[:2] not in _HEADS]
        texts[f"{module}.{name}"] = "\n".join(f"    {line}" for line in lines)
    chosen = sorted(texts, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:most]
    return chosen, texts, made.code


class _WithoutTexts(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


def functions(code: str) -> tuple[dict[str, str], dict[str, str]]:
    """All functions of a file by name: as a tree with every text the same, and as source."""
    dumps, sources = {}, {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            sources[node.name] = ast.unparse(node)
            parts = [_WithoutTexts().visit(part) for part in (node.args, *node.body)]
            dumps[node.name] = "".join(map(ast.dump, parts))
    return dumps, sources


if __name__ == "__main__":
    sys.exit(main())
