"""The metrics of a run as one plain tree, and what can be asked of that tree later.

Every measure is a dictionary with `value`, `low` and `high` where it has an interval, `n` where
it is a share, and `reason` where there is no number. Counts by protected value stay in the tree, so
that another privileged group, or a volume of people, needs neither the model nor the table.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.errors import InvalidInput
from limi.metrics.diversity import distinct_cells, pairwise_distance
from limi.metrics.effectiveness import findings_per_second, findings_per_thousand_queries
from limi.metrics.group import Difference, Tally, differences
from limi.metrics.individual import (
    Rate,
    consistency,
    generalized_entropy_error,
    group_discrimination,
    rate_of,
)
from limi.metrics.naturalness import (
    FEWEST_TO_JUDGE,
    Classifier,
    Likeness,
    detection_score,
    two_sample_auc,
)
from limi.metrics.privileged import (
    Counts,
    Privileged,
    Split,
    choose,
    count_by_value,
    is_lowest,
    lowest,
    parse,
)
from limi.metrics.rates import Measured
from limi.metrics.row_naturalness import (
    FEWEST_ROWS,
    Judge,
    judge_by_distance,
    nearest_neighbour_distance,
)
from limi.metrics.sequential import anytime_interval, anytime_rate
from limi.metrics.severity import expected_affected, margin, score_gap
from limi.search.findings import Found
from limi.streams import Stream
from limi.table.schema import Column, Schema
from limi.types import Index, Labels, Mask, Rows, Scores

__all__ = [
    "Decided",
    "Effort",
    "asked_for",
    "counts_by_column",
    "judge",
    "take",
]

Tree: TypeAlias = dict[str, Any]

_MOST_CONSISTENT = 4_000
_MOST_DETECTED: dict[Classifier, int] = {"logistic": 2_000, "svc": 1_000}


@dataclass(frozen=True)
class Decided:
    """Rows of people with the model's decisions and, where there are any, true labels."""

    population: str  # "real", or "held-out"
    rows: Rows
    favorable: Mask
    labels: Labels | None

    @staticmethod
    def of(
        population: str, rows: Rows, score: Scores, labels: Labels | None, index: Index
    ) -> Decided:
        """The rows at these places of a table, with the scores that they got."""
        return Decided(
            population, rows[index], favors(score), None if labels is None else labels[index]
        )


@dataclass(frozen=True)
class Effort:
    """What a run cost."""

    seconds: float
    preparation_seconds: float
    queries: int


def judge(rows: Rows, schema: Schema, rng: np.random.Generator) -> Judge | None:
    """Tells how natural a row is, by its distance to real rows; None for a table of too few rows.

    Never by a generator's own density: rows drawn from a generator look likely to it, whatever
    they look like to others.
    """
    return None if len(rows) < FEWEST_ROWS else judge_by_distance(rows, schema, rng)


def take(
    schema: Schema,
    table: Rows,
    found: Found,
    measured: Measured,
    rates: Mapping[str, Rate],
    decided: Decided | None,
    *,
    likeness: Mapping[str, Likeness],
    judged_by: str,
    effort: Effort,
    seed: int,
    in_time: Callable[[str], bool] = lambda what: True,
) -> Tree:
    """Every metric of a run; plain data that JSON can hold.

    `in_time` is asked before each that takes long, and those that it denies are left out.
    """
    streams = Stream.METRICS.sequence(seed).spawn(3)
    natural, detected, diverse = (np.random.default_rng(stream) for stream in streams)
    return {
        "individual": _individual(schema, rates, measured, decided, natural, in_time),
        "group": {} if decided is None else _group(schema, decided),
        "naturalness": _naturalness(schema, table, found, likeness, judged_by, detected, in_time),
        "severity": _severity(found),
        "effectiveness": _effectiveness(schema, found, effort, diverse),
    }


def asked_for(
    tree: Tree,
    schema: Schema,
    *,
    volume: int | None = None,
    privileged: Privileged | None = None,
) -> Tree:
    """The tree with another privileged group, and with the people that a volume would make."""
    answer = copy.deepcopy(tree)
    if privileged is not None:
        chosen = _choices(answer.get("group", {}), schema, privileged)
        for name, codes in chosen.items():
            entry = answer["group"][name]
            entry |= _compared(schema[name], entry["counts"], entry["labels"], codes)
    if volume is not None:
        populations = ("held-out", "real", "natural")  # uniform rows are no people
        shares = answer.get("individual", {}).get("flip_rates", {})
        rates = {p: shares[p] for p in populations if shares.get(p, {}).get("value") is not None}
        if not rates:
            raise InvalidInput(
                "no rate of real or natural rows was measured, so a volume cannot be turned into "
                "people; run again without --rate-rows 0"
            )
        answer["severity"]["affected"] = {"volume": volume} | {
            name: _affected(share, volume) for name, share in rates.items()
        }
    return answer


# -- individual -------------------------------------------------------------------------


def _individual(
    schema: Schema,
    rates: Mapping[str, Rate],
    measured: Measured,
    decided: Decided | None,
    rng: np.random.Generator,
    in_time: Callable[[str], bool],
) -> Tree:
    tree: Tree = {"flip_rates": {name: _share(rate) for name, rate in rates.items()}}
    if measured.alone:
        tree["flip_rates_by_column"] = {
            column: {name: _share(rate) for name, rate in alone.items()}
            for column, alone in measured.alone.items()
        }
    uniform = rates.get("uniform")
    if uniform is not None and uniform.n:
        counted = anytime_rate if uniform.anytime else rate_of
        themis = counted(round(uniform.estimate * uniform.n), uniform.n, 0.99)
        tree["causal_discrimination"] = _interval(themis) | {"confidence": 0.99}
    checked = measured.checked.get("uniform")
    if checked is not None and len(checked.favorable):
        share = group_discrimination(checked.favorable, len(checked))
        tree["group_discrimination"] = {"value": _short(share), "n": len(checked)}
    if decided is None:
        return tree
    chosen = rng.permutation(len(decided.rows))[:_MOST_CONSISTENT]
    if len(chosen) >= 5 and in_time("consistency"):
        alike = consistency(decided.favorable[chosen], decided.rows[chosen], schema)
        tree["consistency"] = {"value": _short(alike), "n": len(chosen)}
    if decided.labels is not None and (decided.labels >= 0).any():
        tree["generalized_entropy_error"] = {
            "value": _short(generalized_entropy_error(decided.favorable, decided.labels)),
            "n": int((decided.labels >= 0).sum()),
        }
    return tree


def _share(rate: Rate) -> Tree:
    low, high = anytime_interval(round(rate.estimate * rate.n) if rate.n else 0, rate.n)
    return _interval(rate) | {"anytime": {"low": _short(float(low)), "high": _short(float(high))}}


def _interval(rate: Rate) -> Tree:
    if not rate.n:
        return {"value": None, "n": 0, "reason": "no row was checked"}
    return {
        "value": _short(rate.estimate),
        "low": _short(rate.low),
        "high": _short(rate.high),
        "n": rate.n,
    } | ({"holds": "whenever one stops"} if rate.anytime else {})


# -- groups -----------------------------------------------------------------------------


def _group(schema: Schema, decided: Decided) -> Tree:
    tree = {}
    for position, name in zip(schema.protected_index, schema.protected, strict=True):
        column, cells = schema.columns[position], decided.rows[:, position]
        counts = [
            {"value": column.show(code), "code": code} | dataclasses.asdict(group)
            for code, group in count_by_value(cells, decided.favorable, decided.labels)
        ]
        labels = decided.labels is not None
        compared = _compared(column, counts, labels, None)
        tree[name] = {
            "labels": labels,
            "population": decided.population,
            **compared,
            "counts": counts,
        }
    return tree


def _compared(column: Column, counts: list[Tree], labels: bool, privileged: Split | None) -> Tree:
    """Differences between a privileged group and the rest, from counts by value."""
    if len(counts) < 2:
        return {"privileged": None, "chosen": "the table holds one value only"}
    split = privileged or choose(column, _read_counts(counts))
    groups: dict[bool, list[Tally]] = {True: [], False: []}
    for code, group in _read_counts(counts):
        groups[split.holds(code)].append(group)
    mine, others = Tally.total(groups[True]), Tally.total(groups[False])
    names = (f"{column.name} {split.words}", f"{column.name} other than {split.words}")
    found = differences(mine, others, names=names)
    if not labels:
        unknown = Difference(None, reason="the table has no labels")
        found |= {n: unknown for n in found if n.startswith(("equal_", "average_"))}
    return {
        "privileged": split.words,
        "chosen": split.why,
        "selection_rate": {
            "privileged": _selected(mine),
            "others": _selected(others),
        },
        **{name: _told(difference) for name, difference in found.items()},
    }


def _choices(group: Tree, schema: Schema, privileged: Privileged) -> dict[str, Split]:
    """The privileged group of each column that was named, of those that the run measured."""
    if not group:
        raise InvalidInput(
            "the run measured no group metrics, so no privileged group can be compared; "
            "run again without --rate-rows 0"
        )
    if is_lowest(privileged):
        codes = {name: [entry["code"] for entry in told["counts"]] for name, told in group.items()}
        return {name: lowest(schema[name], known) for name, known in codes.items() if known}
    return parse(schema, privileged)


def counts_by_column(tree: Tree) -> dict[str, Counts]:
    """Decisions by value of each protected column, as a run has counted them."""
    return {name: _read_counts(told["counts"]) for name, told in tree.get("group", {}).items()}


def _read_counts(counts: list[Tree]) -> Counts:
    fields = [field.name for field in dataclasses.fields(Tally)]
    return [(entry["code"], Tally(**{name: entry[name] for name in fields})) for entry in counts]


def _selected(group: Tally) -> Tree:
    return _interval(rate_of(group.favorable, group.rows))


def _told(difference: Difference) -> Tree:
    if difference.value is None:
        return {"value": None, "reason": difference.reason}
    ends = {"low": difference.low, "high": difference.high}
    return {"value": _short(difference.value)} | {
        name: _short(end) for name, end in ends.items() if end is not None
    }


# -- naturalness ------------------------------------------------------------------------


def _naturalness(
    schema: Schema,
    table: Rows,
    found: Found,
    likeness: Mapping[str, Likeness],
    judged_by: str,
    rng: np.random.Generator,
    in_time: Callable[[str], bool],
) -> Tree:
    tree: Tree = {
        "average_tabular_naturalness": {
            name: {"value": _short(like.value), "n": like.n, "draws": like.draws}
            | ({} if like.spread is None else {"spread": _short(like.spread)})
            for name, like in likeness.items()
        }
    }
    if len(found) and len(found.naturalness):
        tree["p_values"] = {
            "by": judged_by,
            "findings": _p_values(found.naturalness),
            "partners": _p_values(found.partner_naturalness),
        }
    if len(found) < FEWEST_TO_JUDGE or len(table) < 2 * FEWEST_TO_JUDGE:
        return tree
    shuffled = table[rng.permutation(len(table))]
    tree["detection"] = {}
    classifiers: tuple[Classifier, ...] = ("logistic", "svc")
    for name in classifiers:
        if not in_time(f"detection ({name})"):
            continue
        auc = two_sample_auc(
            table, found.rows, schema, rng, classifier=name, max_rows=_MOST_DETECTED[name]
        )
        tree["detection"][name] = {"value": _short(detection_score(auc)), "auc": _short(auc)}
    if not in_time("distance to real rows"):
        return tree
    half = len(table) // 2
    tree["nearest_neighbour_distance"] = {
        "value": _short(nearest_neighbour_distance(shuffled[:half], found.rows, schema, rng)),
        "of_real_rows": _short(
            nearest_neighbour_distance(shuffled[:half], shuffled[half:], schema, rng)
        ),
    }
    return tree


def _p_values(values: NDArray[np.float64]) -> Tree:
    return {
        "median": _short(float(np.median(values))),
        "under_0.05": {"value": _short(float((values < 0.05).mean())), "n": len(values)},
    }


# -- severity ---------------------------------------------------------------------------


def _severity(found: Found) -> Tree:
    tree: Tree = {}
    if len(found):
        tree["score_gap"] = _spread(score_gap(found.score, found.partner_score))
        tree["margin"] = _spread(margin(found.score, found.partner_score))
    return tree


def _spread(values: Scores) -> Tree:
    return {
        "value": _short(float(values.mean())),
        "median": _short(float(np.median(values))),
        "largest": _short(float(values.max())),
    }


def _affected(share: Tree, volume: int) -> Tree:
    rate = Rate(share["value"], share["low"], share["high"], share["n"])
    people = expected_affected(rate, volume)
    return {"value": round(people.estimate), "low": people.low, "high": people.high}


# -- effectiveness ----------------------------------------------------------------------


def _effectiveness(schema: Schema, found: Found, effort: Effort, rng: np.random.Generator) -> Tree:
    n = len(found)
    tree: Tree = {
        "findings": {"value": n},
        "findings_per_second": {
            "value": _short(findings_per_second(n, effort.seconds)),
            "scope": "the search alone",
            "with_preparation": _short(
                findings_per_second(n, effort.seconds, effort.preparation_seconds)
            ),
        },
        "findings_per_thousand_queries": {
            "value": _short(findings_per_thousand_queries(n, effort.queries)),
            "scope": "queries of the search and of the rates",
        },
        "distinct_cells": {"value": distinct_cells(found.rows, schema)},
    }
    if n > 1:
        tree["pairwise_distance"] = {"value": _short(pairwise_distance(found.rows, schema, rng))}
    return tree


def _short(number: float) -> float | None:
    return float(f"{number:.6g}") if math.isfinite(number) else None
