"""The metrics of a run as one plain tree, and what can be asked of that tree later.

Every measure is a dictionary with `value`, `low` and `high` where it has an interval, `n` where
it is a share, and `reason` where there is no number. Counts by protected value stay in the tree, so
that another privileged group, or a volume of people, needs neither the model nor the table.

Which metrics there are is not said here: `limi.metrics.declared` finds them.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from limi.decisions import AS_DECIDED, Rule
from limi.errors import InvalidInput
from limi.metrics import declared
from limi.metrics._base import (
    FAMILIES,
    GROUP,
    Decided,
    Effort,
    Evidence,
    Known,
    Metric,
    Tree,
    entry_of,
)
from limi.metrics._enough import FEWEST_RANKED
from limi.metrics.group import Groups, Tally
from limi.metrics.individual import Rate
from limi.metrics.naturalness import Likeness
from limi.metrics.outcomes import Outcomes
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
from limi.metrics.row_naturalness import Judge, judge_by_distance
from limi.metrics.severity import expected_affected, require_volume
from limi.search.findings import Found
from limi.table.schema import Column, Schema
from limi.types import Rows

__all__ = [
    "Decided",
    "Effort",
    "Known",
    "add_derived",
    "answer_request",
    "counts_by_column",
    "drop_derived",
    "judge",
    "take",
]


def judge(rows: Rows, schema: Schema, rng: np.random.Generator) -> Judge | None:
    """Tells how natural a row is, by its distance to real rows; None for a table of too few rows.

    Never by a generator's own density: rows drawn from a generator look likely to it, whatever
    they look like to others.
    """
    return None if len(rows) < FEWEST_RANKED else judge_by_distance(rows, schema, rng)


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
    decision: Rule = AS_DECIDED,
    threshold: float | None = None,
    in_time: Callable[[str], bool] = lambda what: True,
    left_out: Mapping[str, int] | None = None,
    n_found: int | None = None,
    outcomes: Sequence[Outcomes] = (),
) -> Tree:
    """Every metric of a run; plain data that JSON can hold.

    Groups are told of by `decided`, or by `outcomes` where decisions are classes or numbers.

    `in_time` is asked before each that takes long, and those that it denies are left out. Where
    `found` is a sample, `n_found` says of how many.
    """
    evidence = Evidence(
        schema=schema,
        table=table,
        found=found,
        rates=rates,
        by_column=measured.alone,
        checked=measured.checked,
        decided=decided,
        likeness=likeness,
        judged_by=judged_by,
        effort=effort,
        seed=seed,
        decision=decision,
        threshold=threshold,
        in_time=in_time,
        left_out=left_out or {},
        n_found=n_found,
    )
    tree: Tree = {family.name: {} for family in FAMILIES}
    for metric in declared():
        if metric.family != GROUP:
            tree[metric.family.name] |= _entry(metric, evidence)
    if decided is not None:
        tree[GROUP.name] = _groups(schema, decided)
    elif outcomes:
        tree[GROUP.name] = _outcome_groups(outcomes)
    return tree


def _entry(metric: Metric, given: Any) -> Tree:
    """What a metric gives, under its name; nothing where there is nothing to measure."""
    measured = metric(given)
    return {} if measured is None else {metric.name: entry_of(measured)}


def drop_derived(tree: Tree) -> Tree:
    """The tree without what follows from the rest of a summary."""
    derived = {(metric.family.name, metric.name) for metric in declared() if metric.derived}
    return {
        family: {name: entry for name, entry in told.items() if (family, name) not in derived}
        for family, told in tree.items()
    }


def add_derived(tree: Tree, known: Known) -> Tree:
    """The tree with what follows from the rest of a summary; the inverse of `drop_derived`."""
    whole: Tree = {family: dict(told) for family, told in tree.items()}
    for metric in declared():
        if metric.derived and metric.family.name in whole:
            whole[metric.family.name] |= _entry(metric, known)
    return whole


def answer_request(
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
            entry |= _compare(schema[name], entry["counts"], entry["labels"], codes)
    if volume is not None:
        require_volume(volume)
        populations = ("held-out", "real", "natural")  # uniform rows are not people
        shares = answer.get("individual", {}).get("flip_rates", {})
        rates = {p: shares[p] for p in populations if shares.get(p, {}).get("value") is not None}
        if not rates:
            raise InvalidInput(
                "no rate of real or natural rows was measured, so a volume cannot be turned into "
                "people; run again without --rate-rows 0"
            )
        answer["severity"]["affected"] = {"volume": volume} | {
            name: _count_affected(share, volume) for name, share in rates.items()
        }
    return answer


# -- groups -----------------------------------------------------------------------------


def _groups(schema: Schema, decided: Decided) -> Tree:
    tree = {}
    for position, name in zip(schema.protected_index, schema.protected, strict=True):
        column, cells = schema.columns[position], decided.rows[:, position]
        counts = [
            {"value": column.show(code), "code": code} | dataclasses.asdict(group)
            for code, group in count_by_value(cells, decided.favorable, decided.labels)
        ]
        labels = decided.labels is not None
        compared = _compare(column, counts, labels, None)
        tree[name] = {
            "labels": labels,
            "population": decided.population,
            **compared,
            "counts": counts,
        }
    return tree


def _outcome_groups(outcomes: Sequence[Outcomes]) -> Tree:
    """Groups where decisions are classes or numbers, of the first population: none is privileged,
    so that gaps are those between the two that differ most."""
    return {
        one.column: {
            "population": one.population,
            "privileged": None,
            "chosen": "nothing is favorable where decisions are classes or numbers",
            "groups": [dataclasses.asdict(group) for group in one.groups],
            **{name: {"value": gap} for name, gap in one.gaps.items()},
        }
        for one in outcomes
        if one.population == outcomes[0].population
    }


def _compare(column: Column, counts: list[Tree], labels: bool, privileged: Split | None) -> Tree:
    """Every metric of a privileged group and the rest, from counts by value."""
    if len(counts) < 2:
        return {"privileged": None, "chosen": "the table holds only one value"}
    split = privileged or choose(column, _read_counts(counts))
    sides: dict[bool, list[Tally]] = {True: [], False: []}
    for code, group in _read_counts(counts):
        sides[split.holds(code)].append(group)
    groups = Groups(
        Tally.total(sides[True]),
        Tally.total(sides[False]),
        names=(f"{column.name} {split.words}", f"{column.name} other than {split.words}"),
        confidence=split.confidence,
    )
    compared: Tree = {
        "privileged": split.words,
        "chosen": split.why,
        "chosen_from": split.chosen_from,
    }
    for metric in declared():
        if metric.family != GROUP:
            continue
        if metric.needs_labels and not labels:
            compared[metric.name] = {"value": None, "reason": "the table has no labels"}
        else:
            compared |= _entry(metric, groups)
    return compared


def _choices(group: Tree, schema: Schema, privileged: Privileged) -> dict[str, Split]:
    """The privileged group of each column that was named, of those that the run measured."""
    if not group:
        raise InvalidInput(
            "the run measured no group metrics, so no privileged group can be compared; "
            "run again without --rate-rows 0"
        )
    if not all("counts" in entry for entry in group.values()):
        raise InvalidInput(
            "decisions of the run are classes or numbers, so no group is privileged; leave "
            "privileged out, or name the favorable decision in a new run"
        )
    if is_lowest(privileged):
        codes = {name: [entry["code"] for entry in told["counts"]] for name, told in group.items()}
        return {name: lowest(schema[name], known) for name, known in codes.items() if known}
    return parse(schema, privileged)


def counts_by_column(tree: Tree) -> dict[str, Counts]:
    """Decisions by value of each protected column, as a run has counted them."""
    groups = tree.get("group", {})
    return {name: _read_counts(told["counts"]) for name, told in groups.items() if "counts" in told}


def _read_counts(counts: list[Tree]) -> Counts:
    fields = [field.name for field in dataclasses.fields(Tally)]
    return [(entry["code"], Tally(**{name: entry[name] for name in fields})) for entry in counts]


# -- severity ---------------------------------------------------------------------------


def _count_affected(share: Tree, volume: int) -> Tree:
    rate = Rate(share["value"], share["low"], share["high"], share["n"])
    n_asked = rate.n + share.get("left_out", 0)  # who has no partner cannot flip
    people = expected_affected(rate, round(volume * rate.n / n_asked) if n_asked else volume)
    return {"value": round(people.estimate), "low": people.low, "high": people.high}
