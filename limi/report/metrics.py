"""The metrics of a run as lines to show: a number, how to read it, and which way is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from limi.audits.what_if import WhatIf
from limi.metrics.individual import Rate
from limi.report import wording
from limi.system import words

__all__ = ["Line", "Section", "sections"]

Tree = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One metric."""

    name: str
    aid: str
    figures: tuple[str, str]  # the value, and its interval or what else to hold it against
    reads: str = ""  # "0 to 1, lower is better"
    short: str = ""  # the paper's abbreviation
    main: bool = False  # does the report for the terminal show it?

    @property
    def value(self) -> str:
        """The number itself."""
        return self.figures[0]

    @property
    def interval(self) -> str:
        """What stands beside it; empty where nothing does."""
        return self.figures[1]


@dataclass(frozen=True)
class Section:
    """A family of metrics."""

    title: str
    aid: str
    lines: list[Line] = field(default_factory=list)


def sections(tree: Tree) -> list[Section]:
    """Families that have anything to show, in the order of a reader's questions."""
    families = [
        Section(
            "Individuals",
            "How often a person's decision depends on protected values alone.",
            list(_individual(tree.get("individual", {}))),
        ),
        Section(
            "Who is favored",
            "The same people, all decided as if they had each value of a column, all else as it "
            "is; p-values are corrected for all comparisons of the report.",
            list(_what_if(tree.get("what_if", []))),
        ),
        *(_group(name, entry) for name, entry in tree.get("group", {}).items()),
        Section(
            "Severity",
            "How bad a flip is, and how many people it would be.",
            list(_severity(tree.get("severity", {}))),
        ),
        Section(
            "Naturalness",
            "How much the findings look like people of your table.",
            list(_naturalness(tree.get("naturalness", {}))),
        ),
        Section(
            "Effectiveness",
            "What the search yields for its cost; this compares methods, not models.",
            list(_effectiveness(tree.get("effectiveness", {}))),
        ),
    ]
    return [family for family in families if family.lines]


_LESS_SHARE = "0 to 100 %, lower is better"
_SIGNED = "-1 to 1, 0 is best"
_LESS = "0 to 1, lower is better"
_MORE = "0 to 1, higher is better"

_RATES = {"held-out": "", "real": "IF_o", "natural": "", "uniform": "IF_r"}


def _what_if(tables: list[Tree]) -> Iterator[Line]:
    for table in map(WhatIf.from_dict, tables):
        rows = wording.population(table.population)
        together = " together" if len(table.columns) > 1 else ""
        highest = sorted(table.values, key=lambda value: -value.rate.estimate)
        ends = highest if len(highest) <= 4 else [highest[0], highest[-1]]
        shares = ", ".join(
            f"{wording.percent(v.rate).estimate} % as {wording.value_of(table, v.value)}"
            for v in ends
        )
        pairs = words.count(table.n_pairs)
        if table.favored:
            pair = table.favored[0]
            figures = (
                f"{wording.over(table, pair)}: {wording.points(pair)}",
                wording.chance(pair.corrected),
            )
        else:
            figures = ("nobody", "no difference is larger than chance explains")
        yield Line(
            f"favored by {words.both(table.columns)}{together}, {rows}",
            aid=f"favorable decisions on the same {words.count(table.n)} rows: {shares}; "
            f"{words.count(table.n_supported)} of {pairs} pairs of values differ beyond chance",
            figures=figures,
            reads="0 points is best",
        )


def _individual(tree: Tree) -> Iterator[Line]:
    rates = tree.get("flip_rates", {})
    for name in [*(n for n in _RATES if n in rates), *(n for n in rates if n not in _RATES)]:
        yield Line(
            f"flip rate of {wording.population(name)}",
            aid=f"the share that flips of {wording.aid(name) or name}",
            figures=_percent(rates[name]),
            reads=_LESS_SHARE,
            short=_RATES.get(name, ""),
        )
        for column, alone in tree.get("flip_rates_by_column", {}).items():
            if name in alone:
                yield Line(
                    f"flip rate of {wording.population(name)}, {column} alone",
                    aid=f"the share that flips if {column} changes and all else is as it is",
                    figures=_percent(alone[name]),
                    reads=_LESS_SHARE,
                )
    if "causal_discrimination" in tree:
        yield Line(
            "causal discrimination",
            aid="THEMIS's name for the share of uniform rows that flip, with its 99 % interval",
            figures=_percent(tree["causal_discrimination"]),
            reads=_LESS_SHARE,
        )
    if "group_discrimination" in tree:
        yield Line(
            "group discrimination",
            aid="largest gap between two protected values in favorable decisions on the same "
            "uniform rows (THEMIS)",
            figures=_number(tree["group_discrimination"]),
            reads=_LESS,
        )
    if "consistency" in tree:
        yield Line(
            "consistency",
            aid="how alike a row's decision and those of its five nearest are, the row itself "
            "counted among them and protected columns left aside; on "
            f"{words.count(tree['consistency']['n'])} rows",
            figures=_number(tree["consistency"]),
            reads=_MORE,
            main=True,
        )
    if "generalized_entropy_error" in tree:
        yield Line(
            "generalized entropy error",
            aid="inequality of benefits, where a wrong favorable decision is one too much and a "
            "wrong unfavorable one too little",
            figures=_number(tree["generalized_entropy_error"]),
            reads="from 0, lower is better",
            short="GE(2)",
        )


_DIFFERENCES = (
    (
        *("parity_gap", "statistical parity gap", "SPD", _LESS, True),
        "by how much the two groups' shares of favorable decisions differ",
    ),
    (
        *("average_odds_error", "average odds gap", "AOD", _LESS, True),
        "by how much they differ among people of the same true label, on average over both labels",
    ),
    (
        "equal_opportunity_difference",
        *("equal opportunity difference", "", _SIGNED, False),
        "among people whose true label is favorable, others minus privileged: below 0 the others "
        "get less",
    ),
    (
        "statistical_parity_difference",
        *("statistical parity difference", "", _SIGNED, False),
        "SPD with its sign, others minus privileged",
    ),
    (
        *("average_odds_difference", "average odds difference", "", _SIGNED, False),
        "AOD with its sign; gaps of opposite sign cancel",
    ),
)


def _group(name: str, entry: Tree) -> Section:
    if entry.get("privileged") is None:
        return Section(f"Groups by {name}", "")
    group = f"{name} {entry['privileged']}"
    rows = sum(part["n"] for part in entry["selection_rate"].values())
    held_out = entry.get("population") == "held-out"
    whose = "held-out rows" if held_out else "rows of your table"
    lines = [
        Line(
            f"selection rate of {who}",
            aid="share of favorable decisions among these rows; differences are what counts",
            figures=_percent(entry["selection_rate"][side]),
            reads="0 to 100 %",
        )
        for side, who in (("privileged", group), ("others", "the others"))
    ]
    for key, title, short, reads, main, aid in _DIFFERENCES:
        if key in entry:
            lines.append(
                Line(
                    title, aid=aid, figures=_number(entry[key]), reads=reads, short=short, main=main
                )
            )
    return Section(
        f"Groups by {name}",
        f"Privileged: {group}, because {entry['chosen']}; compared with all others, on "
        f"{words.count(rows)} {whose}.",
        lines,
    )


def _severity(tree: Tree) -> Iterator[Line]:
    if "score_gap" in tree:
        gap, margin = tree["score_gap"], tree["margin"]
        yield Line(
            "score gap",
            "distance of the two scores of a pair, mean over the findings: what the partner's "
            "protected value is worth beside the person's own",
            (_figure(gap["value"]), f"largest {_figure(gap['largest'])}"),
            _LESS,
            main=True,
        )
        yield Line(
            "margin",
            "how far the less certain of the two decisions lies from turning round, mean over the "
            "findings",
            (_figure(margin["value"]), f"largest {_figure(margin['largest'])}"),
            "0 to 0.5, lower is better",
        )
    affected = tree.get("affected", {})
    for source in [name for name in affected if name != "volume"]:
        people = affected[source]
        yield Line(
            f"people affected, by {wording.population(source)}",
            f"of {words.count(affected['volume'])} people like these, how many would flip",
            (
                words.count(people["value"]),
                f"{words.count(people['low'])} to {words.count(people['high'])}",
            ),
            "lower is better",
            main=True,
        )


def _naturalness(tree: Tree) -> Iterator[Line]:
    for name, entry in tree.get("average_tabular_naturalness", {}).items():
        rows = "real rows that flip" if name == "ceiling" else f"{name} findings"
        yield Line(
            f"naturalness of {'findings' if name == 'findings' else rows}",
            aid=f"likeness of columns and pairs of columns to the table's{_drawn(entry)}",
            figures=_natural(entry),
            reads=_MORE,
            short="ATN",
        )
    p_values = tree.get("p_values", {})
    for side in ("findings", "partners"):
        if side in p_values:
            entry = p_values[side]
            yield Line(
                f"odd {side}",
                "share that is odder than 95 % of held-out real rows (p under 0.05, by "
                f"{p_values['by']}); of the table's own rows 5 % are",
                (
                    f"{100 * entry['under_0.05']['value']:.1f} %",
                    f"median p {_figure(entry['median'])}",
                ),
                _LESS_SHARE,
                main=True,
            )
    for name, entry in tree.get("detection", {}).items():
        kind = {"logistic": "a logistic regression", "svc": "an RBF support vector machine"}[name]
        yield Line(
            f"detection, {name}",
            f"1 where {kind} cannot tell findings from the table's rows, 0 where it can at once",
            (_figure(entry["value"]), f"AUC {_figure(entry['auc'])}"),
            _MORE,
        )
    if "nearest_neighbour_distance" in tree:
        entry = tree["nearest_neighbour_distance"]
        yield Line(
            "nearest-neighbour distance",
            "mean Euclidean distance of a finding to the nearest real row",
            (_figure(entry["value"]), f"real rows {_figure(entry['of_real_rows'])}"),
            "from 0, lower is more natural",
        )


def _effectiveness(tree: Tree) -> Iterator[Line]:
    if "findings_per_second" in tree:
        speed = tree["findings_per_second"]
        yield Line(
            "findings per second",
            "of the search alone; the other figure counts the time to fit the generator too",
            (f"{speed['value']:,.1f}", f"{speed['with_preparation']:,.1f} with preparation"),
            "higher is better",
            "EGS",
        )
    if "findings_per_thousand_queries" in tree:
        yield Line(
            "findings per thousand queries",
            "rows that the model was asked, for the search and for the rates",
            (f"{tree['findings_per_thousand_queries']['value']:,.1f}", ""),
            reads="0 to 1,000, higher is better",
        )
    if "distinct_cells" in tree:
        yield Line(
            "distinct cells",
            "cells of a coarse grid that hold a finding: how much of the domain they reach",
            (words.count(tree["distinct_cells"]["value"]), ""),
            reads="higher is more diverse",
        )
    if "pairwise_distance" in tree:
        yield Line(
            "pairwise distance",
            "mean Gower distance of two findings",
            _number(tree["pairwise_distance"]),
            reads="0 to 1, higher is more diverse",
        )


def _drawn(entry: Tree) -> str:
    """How many rows a set was compared at."""
    if entry.get("n") is None:
        return ", as a set"
    times = f", mean of {entry['draws']} draws" if entry["draws"] > 1 else ""
    return f", as a set of {words.count(entry['n'])} rows{times}"


def _natural(entry: Tree) -> tuple[str, str]:
    spread = entry.get("spread")
    return _figure(entry["value"]), "" if spread is None else f"spread {_figure(spread)}"


def _percent(entry: Tree) -> tuple[str, str]:
    if entry["value"] is None:
        return "none", entry.get("reason", "")
    low, high = entry["low"], entry["high"]
    shown = wording.percent(Rate(entry["value"], low, high, entry["n"]))
    return f"{shown.estimate} %", f"{shown.low} to {shown.high} %"


def _number(entry: Tree) -> tuple[str, str]:
    if entry["value"] is None:
        return "none", entry.get("reason", "")
    ends = ""
    if "low" in entry:
        ends = f"{_figure(entry['low'])} to {_figure(entry['high'])}"
    return _figure(entry["value"]), ends


def _figure(value: float | None) -> str:
    if value is None:
        return "none"
    if value and abs(value) < 0.0005:
        return f"{value:.1g}"
    return f"{value:.3f}"
