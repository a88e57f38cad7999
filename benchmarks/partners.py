"""What partners, rules and twins cost and reach, one JSON line per figure.

python benchmarks/partners.py [PART ...]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lab.mechanism import draw_known, draw_recidivism
from limi import data, generators
from limi.audits.problem import prepare
from limi.decisions import favors
from limi.methods.limi import LIMI
from limi.metrics import collect
from limi.metrics._rate import clopper_pearson
from limi.metrics.naturalness import two_sample_auc
from limi.metrics.row_naturalness import judge_by_distance
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.constraints import Constraint, find_broken
from limi.table.frames import Codec
from limi.table.mining import mine
from limi.table.rules import Role, Rules
from limi.table.schema import Schema
from limi.twins import Effort, learn, measure

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
    line: dict[str, object] = {"name": name, "value": round(float(value), 4)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
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


def _adult() -> tuple[Any, Any, Any]:
    """Adult's train and test parts as rows, and a boosted model that never sees sex or race."""
    known = data.load("adult")
    schema = known.schema.unruled
    codec = Codec.learn(known.frame, schema)
    rows = codec.encode(known.frame)
    people = codec.encode_fitting(data.load("adult", part="test").frame)[0]
    labels = (known.frame[known.target] == known.favorable).to_numpy()
    return schema, (rows, people), labels


def _blind(schema: Any, rows: Any, labels: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    free = schema.free_index
    kinds = [schema.columns[j].kind == "categorical" for j in free]
    model = HistGradientBoostingClassifier(random_state=0, categorical_features=kinds)
    model.fit(rows[:, free], labels)
    return lambda asked: model.predict_proba(asked[:, free])[:, 1]


def _gaps(
    name: str, schema: Any, rows: Any, people: Any, score: Any, bars: dict[str, float]
) -> None:
    """Net against gap both ways between each group and the first, and the placebo."""
    maker = learn(rows, schema, np.random.default_rng(0))
    own, names = maker.groups.of(people), maker.groups.names
    favorable = score(people) > 0.5
    best_off = int(np.argmax([favorable[own == g].mean() for g in range(len(names))]))
    pairs = [p for g in range(len(names)) for p in ((g, best_off), (best_off, g))]
    counts = maker.groups.counts
    small = []
    if len(names) > 3:  # from most people to the fewest as well
        small = [(int(counts.argmax()), int(g)) for g in np.argsort(counts)[:2]]
        pairs = list(dict.fromkeys([*pairs, *small]))
    for start, goal in pairs:
        if start == goal or (own == start).sum() < 40 or (own == goal).sum() < 40:
            continue
        here = people[own == start]
        goals = np.full(len(here), goal)
        twins = maker.make(here, goals, np.random.default_rng(1))
        before, after = favorable[own == start], score(twins) > 0.5
        gap = favorable[own == goal].mean() - before.mean()
        net = after.mean() - before.mean()
        words = f"{name}, {names[start]} to {names[goal]}"
        report(f"{words}: flips", (before != after).mean())
        report(f"{words}: net less gap", abs(net - gap), bars.get("net"))
        bar = bars.get("small") if (start, goal) in small else None
        report(f"{words}: coverage", net / gap, bar, at_least=True)
    rng, index = np.random.default_rng(2), schema.protected_index
    shuffled = [part.copy() for part in (rows, people)]
    for part in shuffled:
        part[:, index] = part[rng.permutation(len(part))][:, index]
    maker = learn(shuffled[0], schema, rng)
    own = maker.groups.of(shuffled[1])
    asked = shuffled[1][own >= 0]
    twins = maker.make(asked, (own[own >= 0] + 1) % len(maker.groups), rng)
    twins[:, index] = people[own >= 0][:, index]
    changed = (score(twins) > 0.5) != favorable[own >= 0]
    report(f"{name}: placebo, percent", 100 * changed.mean(), bars.get("placebo"))


def twins() -> None:
    """Twins on adult: how like the other group they are, what they flip, and how long they take."""
    plain, (rows, people), labels = _adult()
    schema = plain.protect(["sex"])
    score = _blind(schema, rows, labels)
    took = time.process_time  # threads counted together: a busy machine does not matter
    seconds = best(lambda: learn(rows, schema, np.random.default_rng(0)), clock=took)
    report("twins adult: seconds to learn", seconds, 3)
    maker = learn(rows, schema, np.random.default_rng(0))
    some = people[:10_000]
    goals = 1 - maker.groups.of(some)
    seconds = best(lambda: maker.make(some, goals, np.random.default_rng(1)), clock=took)
    report("twins adult: seconds for 10,000", seconds, 0.4)

    own = maker.groups.of(people)
    rng = np.random.default_rng(3)
    judge = judge_by_distance(rows, schema, rng)
    for g, name in enumerate(maker.groups.names):
        here, others = people[own == g], people[own == 1 - g]
        made = maker.make(here, np.full(len(here), 1 - g), np.random.default_rng(1))
        auc = two_sample_auc(others, made, schema, rng, max_rows=4000)
        report(f"twins adult, {name}: AUC against the other group", auc, 0.60)
        drawn = made[rng.permutation(len(made))[:4000]]
        report(f"twins adult, {name}: odd, percent", 100 * (judge.p_values(drawn) < 0.05).mean(), 9)
    women = people[own == 0]
    made = maker.make(women, np.ones(len(women), dtype=int), np.random.default_rng(1))
    flips = 100 * ((score(women) > 0.5) != (score(made) > 0.5)).mean()
    report("twins adult, women: flips, percent", flips, 17, at_least=True)
    report("twins adult, women: flips, percent", flips, 21)
    _gaps("twins adult sex", schema, rows, people, score, {"net": 0.015, "placebo": 0.5})
    schema = plain.protect(["race"])
    score = _blind(schema, rows, labels)
    _gaps("twins adult race", schema, rows, people, score, {"placebo": 0.5, "small": 0.5})
    records, rows, labels = draw_recidivism(6000, np.random.default_rng(0))
    for column, bars in (("race", {"net": 0.06, "placebo": 2}), ("sex", {"placebo": 2})):
        schema = records.protect([column])
        score = _blind(schema, rows[:4000], labels[:4000])
        _gaps(f"twins synthetic compas {column}", schema, rows[:4000], rows[4000:], score, bars)


def bands() -> None:
    """Ages as groups: quartiles of adult, each with the best-off."""
    plain, (rows, people), labels = _adult()
    schema = plain.protect(["age=17-90:1"])
    score = _blind(schema, rows, labels)
    _gaps("twins adult age bands", schema, rows, people, score, {"placebo": 0.5})


def mechanism() -> None:
    """20,000 people whose true twins are known: rates, and verdicts that most draws agree on."""
    known = draw_known(20_000, np.random.default_rng(0))
    own, true = (known.score(part) > 0.5 for part in (known.rows, known.twins))
    maker = learn(known.rows, known.schema, np.random.default_rng(1))
    people = known.rows[:4000]
    many = np.repeat(people, 20, axis=0)
    made = maker.make(many, 1 - maker.groups.of(many), np.random.default_rng(2))
    flips = ((known.score(made) > 0.5) != np.repeat(own[:4000], 20)).reshape(-1, 20).mean(axis=1)
    rate, truth = 100 * flips.mean(), 100 * (own != true).mean()
    report("known mechanism: true flips, percent", truth)
    report("known mechanism: flips less true ones, points", abs(rate - truth), 2)
    sure = flips >= 0.9
    report("known mechanism: sure verdicts, percent", 100 * sure.mean())
    right = 100 * (own != true)[:4000][sure].mean()
    report("known mechanism: sure verdicts that are right, percent", right, 95, at_least=True)


def cover(times: int = 60) -> None:
    """How often intervals hold the true rate, of tables drawn again and again: ten minutes."""
    many = draw_known(400_000, np.random.default_rng(99))
    own, true = (many.score(part) > 0.5 for part in (many.rows, many.twins))
    women = many.rows[:, 0] == 0
    wanted = {
        "sex Female": ((~own & true)[women].mean(), (own & ~true)[women].mean()),
        "sex Male": ((~own & true)[~women].mean(), (own & ~true)[~women].mean()),
    }
    held: dict[str, list[tuple[bool, bool]]] = {}
    effort = Effort(kept=0, carried=0, drawn=0)
    for number in range(times):
        known = draw_known(4000, np.random.default_rng(1000 + number))
        session = Session(Task(known.schema, known.score, known.rows))
        told = measure(session, known.rows, number, unseen=("sex",), effort=effort)
        for way in told.directions:
            for kind, rate, truth in zip(
                ("gains", "losses"), (way.gains, way.losses), wanted[way.group], strict=True
            ):
                exact = clopper_pearson(round(rate.estimate * rate.n), rate.n)
                inside = (rate.low <= truth <= rate.high, exact[0] <= truth <= exact[1])
                held.setdefault(f"{kind} of {way.group}", []).append(inside)
    for name, both in held.items():
        ours, alone = np.mean(both, axis=0)
        report(f"intervals of {name} that hold the truth, percent", 100 * ours, 90, at_least=True)
        report(f"of {name} with people and draws alone, percent", 100 * alone)


def orders(times: int = 10) -> None:
    """Is the table's own order of columns any other than eight drawn at random? Half a minute."""
    apart, outside = [], []
    effort = Effort(kept=0, carried=0, drawn=0)
    for number in range(times):
        known = draw_known(3000, np.random.default_rng(50 + number))
        session = Session(Task(known.schema, known.score, known.rows))
        told = measure(session, known.rows, number, unseen=("sex",), effort=effort)
        for way in told.directions:
            used = (way.gains if way.carried == "gains" else way.losses).estimate
            apart.append(100 * (np.mean(way.orders) - used))
            outside.append(not min(way.orders) <= used <= max(way.orders))
    error = float(np.std(apart) / np.sqrt(len(apart)))
    report("other orders less the table's, points", abs(float(np.mean(apart))), 0.5)
    report("its standard error", error)
    report(
        "tables outside the range of other orders, percent (22 by chance)", 100 * np.mean(outside)
    )


def demo() -> None:
    """The demo's model on all rows of Adult, with the rules of its shipped schema."""
    adult = data.load("adult")
    problem = prepare(
        "demo:income",
        adult.frame,
        protected=["sex"],
        target=adult.target,
        favorable=adult.favorable,
        schema=adult.schema,
    )
    schema, rows = problem.schema, problem.rows
    judge = collect.judge(rows, schema, np.random.default_rng(0))
    sex, male = schema.position("sex"), schema["sex"].code("Male")
    for name, known in (("with what goes along", schema), ("only sex", schema.unruled)):
        checked = check_rows(problem.target.score, known, rows)
        flips = checked.flips
        better = np.where(favors(checked.score)[:, None], checked.rows, checked.partner)[flips]
        odd = judge.p_values(checked.partner[flips]) < 0.05
        figures = {
            "rate, %": (100 * flips.sum() / checked.is_paired.sum(), 5.7),
            "flips that favor Male, %": (100 * (better[:, sex] == male).mean(), 30),
            "odd partners among flips, %": (100 * odd.mean(), 7),
            "people without a partner": ((~checked.is_paired).sum(), None),
        }
        for figure, (value, bar) in figures.items():
            report(f"demo, {name}: {figure}", float(value), bar if known is schema else None)


PARTS = {
    "rules": rules,
    "mining": mining,
    "oracle": oracle,
    "latents": latents,
    "demo": demo,
    "twins": twins,
    "bands": bands,
    "mechanism": mechanism,
    "cover": cover,
    "orders": orders,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
