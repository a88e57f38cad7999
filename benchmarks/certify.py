"""Proofs for tree ensembles: how many people are decided in which time, and whether any is wrong.

    python -m benchmarks.certify                     # people of Adult, and the whole domain
    python -m benchmarks.certify --conform           # readers on 100,000 natural rows
    python -m benchmarks.certify --ensembles 500     # every reader against all rows of small boxes
        --jobs 16 --first 1000 --only forest         # on 16 cores, from another seed, some readers
    python -m benchmarks.certify --one-pass          # all protected values in one walk
    python -m benchmarks.certify --workers 2         # the same people by one process and by two

Seconds are of the processor, of this process and of all its threads, because a machine that others
use too tells little by the clock. Those of `--workers` are by the clock, and tell something on a
machine that is idle.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd

import limi
from limi import data
from limi.audits.problem import prepare
from limi.generators import trees as natural
from limi.proofs import Answer, Stage
from limi.search.check import check_rows
from limi.trees.lattice import build_lattice
from limi.trees.reading import read_trees
from tests.proofs.brute import rows_near
from tests.trees.cases import CASES, draw_table, with_gaps

NEAR = "age=5,hours_per_week=10,education_num=1,capital_gain=500,capital_loss=200"
PEOPLE = 3000
WORDS = ("proven", "flips", "undecided")
AT_ONCE = 10  # ensembles that a process is given together


def tell(name: str, value: Any, bar: Any = None, ok: bool | None = None) -> None:
    told = {"name": name, "value": value}
    print(json.dumps(told | ({} if bar is None else {"bar": bar, "ok": ok})), flush=True)


def adult() -> pd.DataFrame:
    """Adult with its categories as whole numbers."""
    frame = data.load("adult").frame
    numbers = pd.api.types.is_numeric_dtype
    return pd.DataFrame(
        {
            name: frame[name]
            if numbers(frame[name])
            else frame[name].astype("category").cat.codes.astype(int)
            for name in frame.columns
        }
    )


def make(kind: str, n_trees: int, depth: int) -> Any:
    if kind == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(
            n_estimators=n_trees, max_depth=depth, random_state=0, n_jobs=1
        )
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_trees, max_depth=depth, random_state=0, n_jobs=1)


MODELS = {
    # kind, trees, depth; the share to be decided, and in how many seconds
    "XGBoost 100 x 6": ("xgboost", 100, 6, 0.99, 300),
    "forest 50 x 6": ("forest", 50, 6, 0.99, 300),
    "forest 100 x 10": ("forest", 100, 10, 0.95, 900),
    "XGBoost 300 x 6": ("xgboost", 300, 6, None, None),
}


def people(frame: pd.DataFrame) -> None:
    for name, (kind, n_trees, depth, share, seconds) in MODELS.items():
        model = make(kind, n_trees, depth).fit(frame.drop(columns="income"), frame.income)
        told = {"protected": "sex", "target": "income", "favorable": 1, "near": NEAR}
        start = time.process_time()
        seen: list[tuple[float, int]] = []

        def note(progress: Any, start: float = start, seen: list[Any] = seen) -> None:
            seen.append((time.process_time() - start, progress.proven + progress.flips))

        proof = limi.certify(model, frame, rows=PEOPLE, on_progress=note, **told)
        spent = time.process_time() - start
        decided = float((proof.answer != Answer.UNDECIDED).mean())
        bar = None if share is None else f"{share:.0%} in {seconds} s"
        ok = None if share is None else decided >= share and spent <= seconds
        tell(f"{name}: decided, and seconds", [round(decided, 4), round(spent, 1)], bar, ok)
        tell(f"{name}: answers", proof.counts)
        by = {stage.name.lower(): int((proof.stage == stage).sum()) for stage in Stage}
        tell(f"{name}: decided by", by)
        start = time.process_time()
        bounds = limi.certify(model, frame, rows=PEOPLE, solver=False, max_boxes=32, **told)
        spent = time.process_time() - start
        decided = float((bounds.answer != Answer.UNDECIDED).mean())
        bar = {"XGBoost 100 x 6": 0.7, "forest 50 x 6": 0.88}.get(name)
        tell(
            f"{name}: by bounds and 32 boxes, reading the model included",
            [round(decided, 4), round(spent, 1)],
            bar,
            None if bar is None else decided >= bar,
        )


def domain(frame: pd.DataFrame) -> None:
    model = make("xgboost", 100, 6).fit(frame.drop(columns="income"), frame.income)
    told = {"protected": "sex", "target": "income", "favorable": 1, "near": NEAR}
    start = time.process_time()
    proof = limi.certify(model, frame, rows=1, domain=True, domain_seconds=120, **told)
    spent = time.process_time() - start
    assert proof.domain is not None
    tell("whole domain, XGBoost 100 x 6", proof.domain.as_dict())
    ok = proof.domain.optimal and spent <= 20
    tell("whole domain, XGBoost 100 x 6: seconds to the optimum", round(spent, 1), 20, ok)
    try:
        import veritas
    except ImportError:
        tell("whole domain: dtai-veritas is not installed", "pip install 'limi[bench]'")
        return
    gaps, spent = ask_veritas(veritas, model, frame.drop(columns="income"), "sex")
    tell("whole domain, dtai-veritas: [found, at most] in both directions", gaps)
    tell("whole domain, dtai-veritas: seconds", round(spent, 1))
    agree = all(found is None or found <= proof.domain.bound for found, _ in gaps)
    agree &= proof.domain.reached <= max(bound for _, bound in gaps) + 1e-4
    tell("whole domain: the bounds of both hold for each other", agree, True, agree)


def ask_veritas(
    veritas: Any, model: Any, rows: pd.DataFrame, protected: str, seconds: float = 60.0
) -> tuple[list[tuple[float | None, float]], float]:
    """The same gap by dtai-veritas: found, and at most, for both directions; and all its seconds.

    Trees that do not ask for the protected column are left out for it too, because they cancel.
    """
    start = time.process_time()
    place = list(rows.columns).index(protected)
    asking = veritas.AddTree(1, veritas.AddTreeType.REGR)
    for tree in veritas.get_addtree(model, silent=True):
        inner = filter(tree.is_internal, range(tree.num_nodes()))
        if any(tree.get_split(node).feat_id == place for node in inner):
            asking.add_tree(tree)
    # Cut to one value each, the two ask for what they share alone.
    sides = [asking.prune({place: veritas.Interval(*ends)}) for ends in ((-1, 0.5), (0.5, 2))]
    domain = {
        number: veritas.Interval(float(rows[name].min()), float(rows[name].max()) + 0.5)
        for number, name in enumerate(rows.columns)
        if number != place
    }
    gaps = []
    for one, other in (sides, sides[::-1]):
        config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
        config.stop_when_optimal = True
        search = config.get_search(one.concat_negated(other), domain)
        until = time.process_time() + seconds
        while not search.is_optimal() and search.num_open() and time.process_time() < until:
            search.step_for(1.0, 100)
        found = search.get_solution(0).output if search.num_solutions() else None
        bound = found if search.is_optimal() else search.current_bounds().top_of_open
        gaps.append((found, float(bound)))
    return gaps, time.process_time() - start


def conform(n: int) -> None:
    """Every reader on natural rows of its table."""
    for name, build in CASES.items():
        rng = np.random.default_rng(sum(name.encode()))
        frame = draw_table(rng, 2000)
        frame = frame if "onnx" in name else with_gaps(frame, rng)
        model, frame = build(frame, 0)
        problem = prepare(model, frame, protected="sex", target="good", favorable=1)
        made = natural.fit(problem.rows, problem.schema, np.random.default_rng(1))
        rows = made.decode(made.sample_latents(n, np.random.default_rng(2)))
        apart = read_trees(problem.target).conform(rows)
        tell(f"{name}: largest difference of scores on {n:,} natural rows", apart, 1e-5, True)


def ensembles(n: int, jobs: int = 1, first: int = 0, only: str = "") -> None:
    """Answers against all rows of small boxes, by cuts and by the solver, n for each reader."""
    names = [name for name in CASES if name.startswith(only) and can_build(name)]
    parts = [
        (name, seed, min(seed + AT_ONCE, first + n))
        for seed in range(first, first + n, AT_ONCE)
        for name in names
    ]
    counts = {name: dict.fromkeys(("ensembles", *WORDS, "wrong"), 0) for name in names}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        told = pool.map(try_ensembles, parts) if jobs > 1 else map(try_ensembles, parts)
        for (name, _, _), found in zip(parts, told, strict=True):
            for word, number in found.items():
                counts[name][word] += number
            done = counts[name]["ensembles"]
            if done == n or found["wrong"] or done % 100 < AT_ONCE:
                wrong = counts[name]["wrong"]
                tell(f"{name}: {done} ensembles, answers", counts[name], 0, wrong == 0)


def can_build(name: str) -> bool:
    """Is the library of a case installed?"""
    libraries = {word: word for word in ("xgboost", "lightgbm", "catboost")} | {"onnx": "skl2onnx"}
    return all(find_spec(lib) for word, lib in libraries.items() if name.startswith(word))


def try_ensembles(part: tuple[str, int, int]) -> dict[str, int]:
    """How ensembles of one reader were answered, from one seed to another, and how many wrongly: by
    their answer, or by the largest gap of scores."""
    warnings.filterwarnings("ignore")
    name, first, last = part
    counts = dict.fromkeys(("ensembles", *WORDS, "wrong"), 0)
    for seed in range(first, last):
        rng = np.random.default_rng([seed, sum(name.encode())])
        frame = draw_table(rng, 100)
        frame = with_gaps(frame, rng) if seed % 2 and "onnx" not in name else frame
        model, frame = CASES[name](frame, seed)
        told = {"protected": "sex", "target": "good", "favorable": int(rng.integers(2))}
        schema = prepare(model, frame, **told).schema
        near: dict[str, Any] = {"age": int(rng.integers(1, 3)), "level": 1}
        near |= {"pay": 2 * float(schema["pay"].step)} if schema["pay"].step else {}
        near |= {"job": 1 if schema["job"].kind == "numerical" else "any"}
        by_solver = seed % 3 == 2 and find_spec("ortools")
        how = {"max_boxes": 1, "solver": True, "workers": 1} if by_solver else {"solver": False}
        proof = limi.certify(model, frame, near=near, rows=3, seed=seed, **how, **told)
        counts["ensembles"] += 1
        score, schema = proof.problem.target.score, proof.problem.schema
        boxes = [rows_near(schema, near, row) for row in proof.rows]
        # All boxes are asked at once, because a call of a small model is mostly overhead.
        asked = check_rows(score, schema, np.concatenate(boxes), keep_scores=True)
        gaps = np.abs(asked.scores - asked.score[:, None]).max(axis=1)
        ends = np.cumsum([len(box) for box in boxes])[:-1]
        flips, widest = np.split(asked.flips, ends), np.split(gaps, ends)
        for answer, gap, flip, wide in zip(proof.answer, proof.gap, flips, widest, strict=True):
            counts[Answer(answer).name.lower()] += 1
            wrong = answer != Answer.UNDECIDED and flip.any() != (answer == Answer.FLIPS)
            counts["wrong"] += int(wrong or wide.max() > gap)
    return counts


def one_pass() -> None:
    """A forest asked under nine ages: its own scores, and one walk for all ages."""
    frame = adult()
    model = make("forest", 100, 10).fit(frame.drop(columns="income"), frame.income)
    problem = prepare(model, frame, protected="age=20-60:5", target="income", favorable=1)
    rows, schema = problem.rows[:4000], problem.schema
    from limi.table.partners import expand

    asked, _ = expand(schema, rows, schema.combinations)
    flat = asked.reshape(-1, asked.shape[2])
    start = time.process_time()
    theirs = problem.target.score(flat)
    own = time.process_time() - start
    reading = read_trees(problem.target)
    lattice = build_lattice(reading, problem.rows[:1], np.zeros(len(schema), dtype=bool))
    moves = lattice.looks_at(schema.protected_index)
    start = time.process_time()
    atoms = lattice.atoms(flat).reshape(asked.shape)
    shared = lattice.sums(atoms[:, 0], ~moves)
    sums = shared[:, None] + np.stack(
        [lattice.sums(atoms[:, k], moves) for k in range(asked.shape[1])], axis=1
    )
    walked = time.process_time() - start
    same = np.array_equal(sums.ravel() > 0, theirs > 0.5)
    tell("one pass: trees that ask for age", [int(moves.sum()), len(moves)])
    tell("one pass: decisions are the same", same)
    tell("one pass: speed against the model", round(own / walked, 2), 3, own / walked >= 3)


def workers(n: int, n_people: int = 6000) -> None:
    """One process and several, on the same people: seconds by the clock, and whether any answer
    differs. One process may use one core, as each of the several does."""
    frame = adult()
    for name in ("forest 100 x 10", "XGBoost 300 x 6"):
        kind, n_trees, depth, *_ = MODELS[name]
        model = make(kind, n_trees, depth).fit(frame.drop(columns="income"), frame.income)
        told = {"protected": "sex", "target": "income", "favorable": 1, "near": NEAR}
        took, proofs = [], []
        for number in (1, n):
            start = time.perf_counter()
            proofs.append(limi.certify(model, frame, rows=n_people, workers=number, **told))
            took.append(time.perf_counter() - start)
        one, several = proofs
        same = all(
            np.array_equal(getattr(one, part), getattr(several, part), equal_nan=True)
            for part in ("answer", "stage", "gap", "witness", "partner", "score")
        )
        tell(f"{name}, {n_people:,} people: the same with {n} workers", same, True, same)
        tell(f"{name}: seconds with 1 and {n} workers", [round(each, 1) for each in took])
        tell(f"{name}: times as fast", round(took[0] / took[1], 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conform", action="store_true")
    parser.add_argument("--ensembles", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes for --ensembles")
    parser.add_argument("--first", type=int, default=0, help="first seed of --ensembles")
    parser.add_argument("--only", default="", help="readers whose names begin so")
    parser.add_argument("--one-pass", action="store_true")
    parser.add_argument("--workers", type=int, default=0, help="processes, beside one")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    if given.conform:
        conform(100_000)
    if given.ensembles:
        ensembles(given.ensembles, given.jobs, given.first, given.only)
    if given.one_pass:
        one_pass()
    if given.workers:
        workers(given.workers)
    if not (given.conform or given.ensembles or given.one_pass or given.workers):
        frame = adult()
        people(frame)
        domain(frame)


if __name__ == "__main__":
    main()
