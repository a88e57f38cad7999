"""Speed of what partners and rules need, one JSON line per figure.

python benchmarks/partners.py [PART ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # this folder has a limi.py of its own

import json
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from limi import data, generators
from limi.audits.problem import prepare
from limi.methods.limi import LIMI
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.task import Task
from limi.table.constraints import Constraint, find_broken
from limi.table.frames import Codec
from limi.table.mining import mine
from limi.table.rules import Role, Rules
from limi.table.schema import Schema

RULES = {
    "husband": 'relationship == "Husband" implies sex == "Male"',
    "wife": 'relationship == "Wife" implies sex == "Female"',
    "spouses": 'relationship in ["Husband", "Wife"] implies marital_status in '
    '["Married-civ-spouse", "Married-AF-spouse"]',
    "hours": "hours_per_week <= 7 * 24",
    "capital": "capital_gain == 0 or capital_loss == 0",
    "child": 'relationship == "Own-child" implies age < 90 - education_num / 2',
    "education": 'education_num == {"Preschool": 1, "1st-4th": 2, "5th-6th": 3, "7th-8th": 4, '
    '"9th": 5, "10th": 6, "11th": 7, "12th": 8, "HS-grad": 9, "Some-college": 10, "Assoc-voc": 11, '
    '"Assoc-acdm": 12, "Bachelors": 13, "Masters": 14, "Prof-school": 15, "Doctorate": 16}'
    "[education]",
    "work": 'workclass == "Never-worked" implies occupation is missing',
    "adult": "age >= 17",
}


def report(name: str, value: float, bar: float | None = None, *, at_least: bool = False) -> None:
    line: dict[str, object] = {"name": name, "value": round(value, 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": value >= bar if at_least else value <= bar}
    print(json.dumps(line), flush=True)


def best(function, repeats: int = 3, clock=time.perf_counter) -> float:
    """Seconds of the quickest of several runs."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        function()
        seconds.append(clock() - start)
    return min(seconds)


def rules() -> None:
    """One million rows of adult under each rule alone, and under all of them at once."""
    adult = data.load("adult")
    rows = Codec.learn(adult.frame, adult.schema).encode(adult.frame)
    rows = np.tile(rows, (31, 1))[:1_000_000]
    constraints = [Constraint.read(name, text, adult.schema) for name, text in RULES.items()]
    for constraint in constraints:
        alone = best(lambda rule=constraint: rule.broken(rows))
        report(f"rule {constraint.name}, 1 million rows: ms", 1000 * alone, 80)
    together = best(lambda: find_broken(constraints, rows)) / len(constraints)
    report(f"{len(constraints)} rules at once, 1 million rows: ms per rule", 1000 * together, 80)


def mining() -> None:
    """Suggestions for each table, and for the same table with every column shuffled."""
    for name in ("adult", "bank-marketing", "german-credit", "meps"):
        known = data.load(name)
        schema = known.schema.unruled
        rows = Codec.learn(known.frame, schema).encode(known.frame)
        protected = [column for column in known.protected if column == "sex"]
        start = time.perf_counter()
        found = mine(schema, rows, protected)
        report(f"mining {name}: seconds", time.perf_counter() - start)
        most = 20 if name == "adult" else None
        count = len(found.rules.constraints) + len(found.rules.derived) + len(found.rules.roles)
        report(f"mining {name}: rules, derived columns and roles", count, most)
        report(f"mining {name}: remarks", len(found.remarks))
        rng = np.random.default_rng(1)
        mixed = np.stack([rng.permutation(column) for column in rows.T], axis=1)
        by_chance = mine(schema, mixed, protected)
        report(
            f"mining {name}, shuffled: anything", bool(by_chance.rules) + len(by_chance.remarks), 0
        )


ROLE = Role(
    protected="sex", column="relationship", things=((("Female", "Wife"), ("Male", "Husband")),)
)


def ruled_adult() -> tuple[Schema, np.ndarray, Callable]:
    """Adult without its label, with nine rules and a role; and a linear model, the quickest."""
    adult = data.load("adult")
    rows = Codec.learn(adult.frame, adult.schema.unruled).encode(adult.frame)
    rules = Rules(tuple(RULES.items()), roles=(ROLE,))
    schema = replace(adult.schema.unruled, rules=rules).protect(["sex"])
    spread = np.nanstd(rows, axis=0) + 1e-9
    weights = np.random.default_rng(0).normal(size=len(schema)) / spread
    middle = np.nanmean(rows, axis=0)

    def score(asked: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(np.nan_to_num(asked - middle) @ weights)))

    return schema, rows, score


def oracle() -> None:
    """100,000 rows and their partners, with nine rules and a role and without."""
    schema, rows, score = ruled_adult()
    rows = np.tile(rows, (4, 1))[:100_000]
    adult = data.load("adult")
    problem = prepare(
        "demo:income",
        adult.frame,
        protected=["sex"],
        target=adult.target,
        favorable=adult.favorable,
        schema=schema.unruled,
    )
    places = [schema.position(name) for name in problem.schema.names]
    for name, ask in (
        ("linear", score),
        ("the demo's", lambda asked: problem.target.score(asked[:, places])),
    ):
        plain = best(lambda ask=ask: check_rows(ask, schema.unruled, rows), clock=time.process_time)
        ruled = best(lambda ask=ask: check_rows(ask, schema, rows), clock=time.process_time)
        report(f"oracle, {name} model, 100,000 rows: seconds without rules", plain)
        bar = 1.25 if name != "linear" else None
        report(f"oracle, {name} model: times as long with 9 rules and a role", ruled / plain, bar)
    enforcer = schema.enforcer
    seconds = best(lambda: enforcer.expand(rows, schema.combinations))
    report("100,000 rows with their partners: seconds", seconds)


def latents() -> None:
    """LIMI over one million latents of trees, with nine rules and a role and without."""
    schema, rows, score = ruled_adult()
    took = {}
    for name, known in (("without", schema.unruled), ("with", schema)):
        made = generators.fit("trees", rows, known, np.random.default_rng(0))
        task = Task(known, score, rows, generator=made)
        start = time.process_time()
        ran = run(LIMI(n_latents=1_000_000), task, Budget(), 0)
        took[name] = time.process_time() - start
        report(f"one million latents {name} rules: seconds", took[name])
        report(f"one million latents {name} rules: findings", len(ran.findings))
    report("one million latents: times as long with rules", took["with"] / took["without"], 1.3)
    found = ran.findings.all()
    broken = schema.enforcer.breaks(found.rows).sum() + schema.enforcer.breaks(found.partner).sum()
    report("one million latents: findings or partners that break a rule", int(broken), 0)
    kept = 1 - ran.session.refused / ran.session.proposed
    report("one million latents: share that keeps the rules", kept)


PARTS = {"rules": rules, "mining": mining, "oracle": oracle, "latents": latents}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
