"""What limi finds and says on small fixed problems, so that a change can be held to what was.

    python tools/digests.py                     # print findings and results
    python tools/digests.py --json new.json     # keep them
    python tools/digests.py --against old.json  # print what differs from a kept file, and fail
    python tools/digests.py --findings          # searches alone

Two files tell whether a change of the code, of a library or of the machine alters anything.
*Findings* are one digest for each method, preset and generator: it covers the rows of the findings
in their order and the protected values of their partners; scores are left out, because their last
digits are the machine's. *Results* (`tools/results.py`) are runs through the public functions, with
every number and sentence that they give back, so a difference is named by its key.

Whatever is trained in single precision (networks, torch generators) comes out differently on
another processor, and rightly so. Such parts are therefore trained once and kept in `--cache`;
without one they are trained again, which is fine on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import limi
from lab import models
from limi import data, generators, methods
from limi.audits.problem import prepare
from limi.generators import Generator
from limi.gpu import place
from limi.metrics.rates import measure
from limi.models import gradients
from limi.models.target import Target
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from limi.types import Rows, Scores

_SEED = 7
_ROWS = 1_500  # checked by each search
_QUERIES = 4_000  # asked by each frugal search

# Small enough that every phase of a method is reached within the rows of a search.
_SMALL: dict[str, dict[str, Any]] = {
    "adf": {"n_seeds": 60, "exploit_steps": 40},
    "eidig": {"n_seeds": 60, "exploit_steps": 40},
    "maft": {"n_seeds": 60, "exploit_steps": 40},
    "neuronfair": {"n_seeds": 60, "exploit_steps": 40},
    "aequitas": {"n_samples": 300, "exploit_steps": 40},
    "expga": {"n_rows": 200, "n_samples": 500},
    "causal": {"exploit_steps": 20},
    "grft": {"size": 100, "generations": 5},
    "limi": {"n_latents": 4_000},
    "sg": {"n_samples": 300},
    "vbtx": {"n_samples": 500},
    "guided": {"first": 200, "trees": 10, "pool": 6},
}
_USUAL = "trees"  # the generator of every search that does not name another
_PAIRS = ("limi+adf", "natural+aequitas", "themis+expga", "vbtx+sg")
_BRIEF: dict[str, dict[str, Any]] = {
    "transport": {"steps": 30},
    "ctgan": {"epochs": 1, "min_steps": 20},
}


@dataclass(frozen=True, eq=False)
class Problem:
    """What a search needs, made once."""

    name: str
    schema: Schema
    score: Callable[[Rows], Scores]
    rows: Rows
    target: Target | None = None

    def task(self, generator: Generator | None, **more: Any) -> Task:
        """A fresh task, for one run."""
        known = None if self.target is None else gradients.of(self.target)
        return Task(
            self.schema, self.score, self.rows, generator=generator, gradients=known, **more
        )


# -- problems ---------------------------------------------------------------------------


def _integers(*ranges: tuple[int, int]) -> tuple[Column, ...]:
    return tuple(
        Column(name=f"x{i}", kind="numerical", low=low, high=high, step=1)
        for i, (low, high) in enumerate(ranges)
    )


@cache
def _ties() -> Problem:
    """A linear rule with round weights: many rows lie on the decision edge, up to rounding."""
    ranges = ((0, 40), (0, 40), (-5, 5), (0, 9), (1, 5), (0, 1))
    schema = Schema(_integers(*ranges)).protect(["x4", "x5"])
    weights, bias = np.array([0.15, -0.2, 0.3, 0.1, 0.5, 1.0]), 0.2
    return Problem(
        "ties",
        schema,
        lambda rows: 1 / (1 + np.exp(-(rows @ weights + bias))),
        uniform(schema, 400, np.random.default_rng(0)),
    )


@cache
def _mixed() -> Problem:
    """Columns of every kind, some cells missing, and a rule that bends."""
    columns = (
        Column(name="age", kind="numerical", low=18, high=90, step=1),
        Column(name="sex", kind="categorical", levels=("F", "M")),
        Column(name="job", kind="categorical", levels=("a", "b", "c"), missing=True),
        Column(name="rank", kind="ordered", levels=("low", "mid", "high")),
        Column(name="vet", kind="boolean", levels=(False, True)),
        Column(name="debt", kind="numerical", low=-5.0, high=5.0, missing=True),
        Column(name="price", kind="numerical", low=0.0, high=2.0, step=0.1),
    )
    schema = Schema(columns).protect(["sex", "vet"])
    weights = np.array([0.0213, 0.807, 0.411, 0.307, 0.613, 0.223, 0.509])

    def score(rows: Rows) -> Scores:
        known = np.nan_to_num(rows, nan=-1.0)
        bend = np.tanh(known[:, 5]) * known[:, 1]
        return 1 / (1 + np.exp(-(known @ weights + 0.3 * bend - 2.2123)))

    return Problem("mixed", schema, score, uniform(schema, 400, np.random.default_rng(0)))


@cache
def _rare(told: str) -> Problem:
    """A rule that bends, whose protected effect is so small that few rows flip; it tells scores, or
    labels alone."""
    schema = Schema(_integers((0, 60), (0, 60), (0, 30), (0, 9), (0, 1))).protect(["x4"])
    weights = np.array([0.0811, -0.0637, 0.1173, 0.2191, 0.0043])

    def score(rows: Rows) -> Scores:
        bend = np.maximum(rows[:, 0] - 31.3, 0.0) * 0.0171 * rows[:, 3]
        scores: Scores = 1 / (1 + np.exp(-(rows @ weights + bend - 3.0217)))
        return scores if told == "scores" else (scores > 0.5).astype(float)

    people = uniform(schema, 400, np.random.default_rng(0))
    return Problem(f"rare {told}", schema, score, people)


@cache
def _credit(kind: str, *protected: str) -> Problem:
    """A benchmark model on the credit table."""
    known = data.load("credit")
    made = prepare(
        models.train("credit", kind),
        known.frame,
        protected=list(protected),
        target=known.target,
        favorable=known.favorable,
        schema=known.schema,
        table_name="credit",
    )
    asked = _in_double(made.target) if kind == "dnn" else made.target
    name = f"credit-{kind}-{'+'.join(protected)}"
    return Problem(name, made.schema, asked.score, made.rows, made.target)


@dataclass(frozen=True)
class _InDouble:
    """The layers of a benchmark network, evaluated in double precision.

    In single precision the seventh digit of a score is the machine's. No rule can hide that from
    a method that learns from scores, and it is the model's affair, not the search's.
    """

    layers: tuple[tuple[Rows, Rows], ...]

    def score(self, rows: Rows, favorable: int) -> Scores:
        here = rows.astype(np.float64)
        for depth, (weight, bias) in enumerate(self.layers):
            here = (np.maximum(here, 0.0) if depth else here) @ weight + bias
        scores: Scores = 1 / (1 + np.exp(here[:, 1 - favorable] - here[:, favorable]))
        return scores


def _in_double(target: Target) -> Target:
    model: Any = target.model
    arrays = {name: part.astype(np.float64) for name, part in model.scorer.arrays().items()}
    layers = [(arrays[f"weight{k}"].T, arrays[f"bias{k}"]) for k in range(len(arrays) // 2)]
    return replace(target, model=replace(model, scorer=_InDouble(tuple(layers))))


def _generator(problem: Problem, name: str, kept: Path) -> Generator:
    """A generator of the problem's rows; one that torch trains is trained once."""
    module = generators.get(name)
    rng = np.random.default_rng(_SEED)
    if name not in _BRIEF:
        return module.fit(problem.rows, problem.schema, rng)
    path = kept / f"{problem.name}-{name}.generator"
    if not path.exists():
        brief = module.Settings(**_BRIEF[name])
        made = module.fit(problem.rows, problem.schema, rng, settings=brief)
        generators.save(made, path)
    return generators.load(path)


# -- cases ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A name, and what makes the rows to digest."""

    name: str
    make: Callable[[], tuple[Rows, Rows]]


def _searched(
    problem: Problem,
    method: methods.Method,
    generator: Callable[[], Generator | None],
    budget: Budget,
    *,
    on_device: bool = False,
) -> tuple[Rows, Rows]:
    task = problem.task(generator())
    if on_device:
        assert problem.target is not None
        task = replace(task, on_device=place.join_on_device(problem.target, task.generator))
        assert task.on_device is not None
    found = run(method, task, budget, _SEED).findings.all()
    return found.rows, found.partner[:, problem.schema.protected_index]


def _method(name: str, preset: str | None = None) -> methods.Method:
    settings = {} if preset is None else {"preset": preset}
    small = _SMALL.get(name, {}) | _SMALL.get(f"{name} {preset}", {})
    return methods.parse(name, settings | small)


def _pair(name: str) -> methods.Method:
    settings: dict[str, Any] = {"n_seeds": 40}
    for part in name.split("+"):
        settings |= {f"{part}.{key}": value for key, value in _SMALL.get(part, {}).items()}
    return methods.parse(name, settings)


def _fits(problem: Problem, method: methods.Method) -> bool:
    """Can the problem be searched so?"""
    white = problem.target is not None and gradients.of(problem.target) is not None
    return white or "neurons" not in method.needs


def _cases(kept: Path) -> Iterator[Case]:
    @cache
    def trees(problem: Problem) -> Generator:
        return _generator(problem, _USUAL, kept)

    rows, queries = Budget(max_rows=_ROWS), Budget(max_queries=_QUERIES)
    network = _credit("dnn", "sex")
    for problem in (_ties(), _mixed(), network):
        for name in methods.names():
            for preset in methods.presets(name) or (None,):
                label = f"{problem.name} {name}" + (f" {preset}" if preset else "")
                method = _method(name, preset)
                if _fits(problem, method):
                    yield _case(label, problem, method, trees, rows)
    for problem in (_credit("rf", "age", "sex"), _credit("svm", "sex"), _credit("dnn", "age")):
        for name in ("limi", "guided", "aequitas", "expga", "real"):
            yield _case(f"{problem.name} {name}", problem, _method(name), trees, rows)
    for problem in (_ties(), _credit("rf", "age", "sex"), _credit("dnn", "age")):
        for name in ("limi", "guided", "natural", "adf"):
            yield _case(f"{problem.name} {name} frugal", problem, _method(name), trees, queries)
    for problem in (_rare("scores"), _rare("labels")):
        yield _case(f"{problem.name} guided", problem, _method("guided"), trees, queries)
    for name in _PAIRS:
        yield _case(f"{network.name} {name}", network, _pair(name), trees, rows)
    yield from _generated(network, kept, rows)
    for problem in (_ties(), _mixed(), _credit("rf", "age", "sex"), network):
        yield Case(f"{problem.name} rates", lambda p=problem: _measured(p, trees(p)))
    yield Case("credit audit", _audited)


def _case(
    label: str,
    problem: Problem,
    method: methods.Method,
    generator: Callable[[Problem], Generator],
    budget: Budget,
) -> Case:
    return Case(label, lambda: _searched(problem, method, lambda: generator(problem), budget))


def _generated(problem: Problem, kept: Path, budget: Budget) -> Iterator[Case]:
    """Every generator: its rows, and a search among them, in arrays and in tensors."""
    longer = replace(budget, max_rows=2 * _ROWS)  # tensors are probed in larger blocks
    # A device fits its boundary at once; a processor that stands for it takes a third of all time.
    there = methods.parse("limi", _SMALL["limi"] | {"per_class": 2_000})
    for name in generators.names():
        made = cache(lambda name=name: _generator(problem, name, kept))

        def drawn(made: Callable[[], Generator] = made) -> tuple[Rows, Rows]:
            generator = made()
            latents = generator.sample_latents(2_000, np.random.default_rng(_SEED))
            rows = generator.decode(latents)
            return rows, rows[:, :0]

        yield Case(f"{problem.name} rows of {name}", drawn)
        for method in () if name == _USUAL else ("limi", "guided"):  # searched so above
            label = f"{problem.name} {method} by {name}"
            yield Case(
                label,
                lambda made=made, method=method: _searched(problem, _method(method), made, budget),
            )
        if name in _BRIEF:
            yield Case(
                f"{problem.name} limi by {name} in tensors",
                lambda made=made: _searched(problem, there, made, longer, on_device=True),
            )


def _measured(problem: Problem, generator: Generator) -> tuple[Rows, Rows]:
    """The rows of each population that flip."""
    populations = ["real", "uniform", "natural"]
    measured = measure(Session(problem.task(generator)), populations, _SEED, rows=1_000)
    flipping = [measured.flipping[name] for name in populations]
    index = np.repeat(np.arange(3), [len(rows) for rows in flipping])
    return np.concatenate(flipping), index[:, None].astype(np.float64)


def _audited() -> tuple[Rows, Rows]:
    """The whole way, with the second check of the findings."""
    known = data.load("credit")
    result = limi.audit(
        models.train("credit", "rf"),
        known.frame,
        protected=["age", "sex"],
        target=known.target,
        favorable=known.favorable,
        schema=known.schema,
        settings={"n_latents": 4_000},
        max_rows=_ROWS,
        rate_rows=500,
        seed=_SEED,
        table_name="credit",
    )
    protected = result.problem.schema.protected_index
    return result.found.rows, result.found.partner[:, protected]


# -- the table --------------------------------------------------------------------------


def digest(rows: Rows, partners: Rows) -> str:
    """Findings as one word: their number, and the sum of their cells in order.

    Cells are rounded where steps that are not binary fractions were added up in some order.
    """
    cells = np.round(np.column_stack([rows, partners]), 9) + 0.0  # turns -0.0 into 0.0
    cells = np.where(np.isnan(cells), np.nan, cells)
    return f"{len(rows)}:{hashlib.sha256(cells.astype('<f8').tobytes()).hexdigest()[:16]}"


def table(kept: Path, only: str = "", say: Callable[[str], None] = print) -> dict[str, str]:
    """The digest of every case whose name holds the words `only`."""
    found: dict[str, str] = {}
    for case in _cases(kept):
        if only not in case.name:
            continue
        start = time.perf_counter()
        found[case.name] = digest(*case.make())
        say(f"{found[case.name]:>22}  {case.name}  ({time.perf_counter() - start:.1f} s)")
    return found


def run_all(only: str = "", say: Callable[[str], None] = print) -> dict[str, dict[str, Any]]:
    """The facts of every run whose name holds the words `only`."""
    import results

    found: dict[str, dict[str, Any]] = {}
    for case in results.runs():
        if only not in case.name:
            continue
        start = time.perf_counter()
        found[case.name] = results.facts(case)
        seconds = time.perf_counter() - start
        say(f"{len(found[case.name]):>16} facts  {case.name}  ({seconds:.1f} s)")
    return found


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is not the same, or stands on one side only, in words; results key by key."""
    absent = "absent"
    lines = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, absent), new.get(name, absent)
        if isinstance(before, dict) and isinstance(after, dict):
            lines += [f"{name} {line}" for line in differences(before, after)]
        elif before != after:
            lines.append(f"{name}: {before} became {after}")
    return lines


def main() -> int:
    """Print findings and results, keep them, compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write them to this file")
    parser.add_argument("--against", type=Path, help="fail where they differ from this one")
    parser.add_argument("--only", default="", help="cases whose name holds these words")
    parser.add_argument("--cache", type=Path, help="where trained parts are kept")
    parser.add_argument("--findings", action="store_true", help="leave the results out")
    parser.add_argument("--results", action="store_true", help="leave the findings out")
    given = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        kept = given.cache or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        os.environ["LIMI_CACHE"] = str(kept)
        if not given.results:
            found["findings"] = table(kept, given.only)
        if not given.findings:
            found["results"] = run_all(given.only)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if given.against is None:
        return 0
    old = json.loads(given.against.read_text(encoding="utf-8"))
    changed = [
        line
        for part, now in found.items()
        for line in differences({n: d for n, d in old[part].items() if given.only in n}, now)
    ]
    print("\n".join(changed) or f"all {sum(map(len, found.values()))} are the same")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
