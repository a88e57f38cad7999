"""Twin cells: people matched with somebody of another group, by trees or by optimal transport.

The second is FlipTest's question (Black, Yeom and Fredrikson, FAccT 2020) with its transport solved
exactly: each person is paired with another one of the table, so that all pairs together lie as near
as they can. Both make pairs of the same people for the same model, which never sees the group.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.cells import Cell
from lab.mechanism import draw_known, draw_recidivism
from lab.workshop import Workshop, rows_of
from limi import data
from limi.decisions import favors
from limi.metrics.naturalness import two_sample_auc
from limi.table.schema import Schema
from limi.twins import Groups, TwinMaker, find_groups, learn
from limi.types import Index, Mask, Rows, Scores

__all__ = ["DRAWN", "match_people", "measure", "require_table"]

DRAWN = ("known", "compas")
"""Tables that a mechanism makes; what is called `compas` here is synthetic, only like the real."""

ALONE = True  # it trains models of its own in passing
_DRAWN_PEOPLE = {"known": 20_000, "compas": 6_000}
_SPLIT = 2 / 3  # of the table that models and twins are learned from


def require_table(cell: Cell) -> None:
    """An error where the table is neither known nor drawn."""
    if cell.table not in DRAWN:
        data.load(cell.table)


@dataclass(frozen=True)
class _Case:
    """A table in two parts, and a model that does not see the protected columns."""

    schema: Schema
    table: Rows
    people: Rows
    score: Callable[[Rows], Scores]
    true_twins: Rows | None = None  # of the people, where a mechanism tells


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Rates of a matching, how far it agrees with itself, its placebo, and its time."""
    case = _case(cell.table, cell.protected)
    groups = find_groups(case.schema, case.table)
    most = int(cell.extra.get("people", 1000))
    rng = np.random.default_rng([cell.seed, 17])
    own, goal = _widest(case, groups)
    members = groups.of(case.people)
    mine, theirs = (rng.permutation(np.flatnonzero(members == g)) for g in (own, goal))
    n = min(most, len(mine), len(theirs) // 2)
    side = _Side(case, groups, goal, mine[:n], theirs)
    matching = _MATCHINGS[str(cell.extra["matching"])](side, rng)
    start = time.perf_counter()
    twins = matching(0)
    seconds = time.perf_counter() - start
    people = case.people[side.mine]
    before, after = (favors(case.score(rows)) for rows in (people, twins))
    again = favors(case.score(matching(1)))
    goal_rate = float(favors(case.score(case.people[theirs])).mean())
    gap, net = goal_rate - float(before.mean()), float(after.mean() - before.mean())
    tree = {
        "people": n,
        "gains": float((~before & after).mean()),
        "losses": float((before & ~after).mean()),
        "net": net,
        "gap": gap,
        "coverage": net / gap if abs(gap) > 0.02 else None,
        "kappa": _kappa(before != after, before != again),
        "placebo": _PLACEBOS[str(cell.extra["matching"])](case, groups, n, rng),
        # Against people whom no matching has taken.
        "twin_auc": two_sample_auc(case.people[theirs[n:]], twins, case.schema, rng, max_rows=n),
        "seconds": seconds,
    }
    if case.true_twins is not None:
        true = favors(case.score(case.true_twins[side.mine]))
        tree["true_changes"] = float((before != true).mean())
        tree["right"] = float((after == true).mean())
    return {name: None if v is None else round(v, 4) for name, v in tree.items()}


@dataclass(frozen=True)
class _Side:
    """The people of a group that are matched, and those that they may be matched with."""

    case: _Case
    groups: Groups
    goal: int
    mine: Index
    theirs: Index


_Matching = Callable[[int], Rows]


def _by_trees(side: _Side, rng: np.random.Generator) -> _Matching:
    maker = learn(side.case.table, side.case.schema, rng, groups=side.groups)
    people, goals = side.case.people[side.mine], np.full(len(side.mine), side.goal)
    draws = rng.spawn(2)
    return lambda number: maker.make(people, goals, draws[number])


def _by_assignment(side: _Side, rng: np.random.Generator) -> _Matching:
    people, n = side.case.people[side.mine], len(side.mine)

    def match(number: int) -> Rows:
        # Other people of the goal's group each time: a matching depends on who happens to be there.
        pool = side.case.people[side.theirs[number * n : (number + 1) * n]]
        return pool[match_people(side.case.schema, people, pool)]

    return match


def match_people(schema: Schema, people: Rows, pool: Rows) -> Index:
    """For each person the one of the pool; squared distances are least over all pairs together.

    Numbers in units of their spread, and each other level at the distance 1.
    """
    both = np.concatenate([people, pool])
    axes = []
    for position in schema.free_index.tolist():
        cells = both[:, position]
        if schema.columns[position].kind == "categorical":
            levels = np.unique(cells[~np.isnan(cells)])
            axes.append((cells[:, None] == levels) * np.sqrt(0.5))
        else:
            spread = np.nanstd(cells) or 1.0
            axes.append(np.nan_to_num((cells - np.nanmean(cells)) / spread)[:, None])
    space = np.hstack(axes)
    from scipy.optimize import linear_sum_assignment  # late, because it takes a while
    from scipy.spatial.distance import cdist

    cost = cdist(space[: len(people)], space[len(people) :], "sqeuclidean")
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.intp)


_MATCHINGS = {"trees": _by_trees, "assignment": _by_assignment}


def _trees_placebo(case: _Case, groups: Groups, n: int, rng: np.random.Generator) -> float:
    """Changed decisions between groups drawn at random: protected values shuffled."""
    table, people = case.table.copy(), case.people.copy()
    index = case.schema.protected_index
    for rows in (table, people):
        rows[:, index] = rows[rng.permutation(len(rows))][:, index]
    maker: TwinMaker = learn(table, case.schema, rng, groups=groups)
    people = people[rng.permutation(np.flatnonzero(groups.of(people) >= 0))[: 2 * n]]
    goals = (groups.of(people) + 1) % len(groups)
    twins = maker.make(people, goals, rng)
    return float((favors(case.score(people)) != favors(case.score(twins))).mean())


def _assignment_placebo(case: _Case, groups: Groups, n: int, rng: np.random.Generator) -> float:
    n = min(n, len(case.people) // 2)
    drawn = case.people[rng.permutation(len(case.people))[: 2 * n]]
    matched = drawn[n:][match_people(case.schema, drawn[:n], drawn[n:])]
    return float((favors(case.score(drawn[:n])) != favors(case.score(matched))).mean())


_PLACEBOS = {"trees": _trees_placebo, "assignment": _assignment_placebo}


def _kappa(one: Mask, other: Mask) -> float:
    """Agreement of two verdicts beyond what chance gives."""
    same = float((one == other).mean())
    chance = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)


def _widest(case: _Case, groups: Groups) -> tuple[int, int]:
    """The groups that are decided favorably least and most often."""
    members, favorable = groups.of(case.people), favors(case.score(case.people))
    rates = [
        favorable[members == g].mean() if (members == g).any() else np.nan
        for g in range(len(groups))
    ]
    return int(np.nanargmin(rates)), int(np.nanargmax(rates))


@lru_cache(maxsize=2)
def _case(table: str, protected: tuple[str, ...]) -> _Case:
    rng = np.random.default_rng(23)
    if table == "known":
        known = draw_known(_DRAWN_PEOPLE[table], rng)
        cut = int(_SPLIT * len(known.rows))
        return _Case(
            known.schema, known.rows[:cut], known.rows[cut:], known.score, known.twins[cut:]
        )
    if table == "compas":
        schema, rows, labels = draw_recidivism(_DRAWN_PEOPLE[table], rng)
        schema = schema.protect(list(protected))
    else:
        source = data.load(table)
        schema, rows = rows_of(table)
        schema = schema.protect(list(protected or source.protected[:1]))
        labels = (source.frame[source.target].to_numpy() == source.favorable).astype(np.int8)
    order = rng.permutation(len(rows))
    first, second = np.split(order, [int(_SPLIT * len(rows))])
    return _Case(schema, rows[first], rows[second], _train(schema, rows[first], labels[first]))


def _train(schema: Schema, rows: Rows, labels: NDArray[np.int8]) -> Callable[[Rows], Scores]:
    """A boosted model that sees no protected column."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    free = schema.free_index
    model = HistGradientBoostingClassifier(random_state=0).fit(rows[:, free], labels)
    return lambda asked: np.asarray(model.predict_proba(asked[:, free])[:, 1])
