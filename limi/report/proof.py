"""A proof in words, as lines for a terminal and as a page.

Everything is drawn from the plain tree that `proof.json` holds, so no two of them disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limi.report import _pages, charts
from limi.system import words

__all__ = ["bounds", "facts", "progress", "remarks", "render", "sentence"]

Tree = Mapping[str, Any]

_ANSWERS = {
    "proven": "proven: nobody near them flips",
    "flips": "somebody near them flips",
    "undecided": "undecided: time or effort ran out",
    "alone": "no partner that keeps the rules, so nothing to prove",
}
_STAGES = {
    "person": "asking the model about the person",
    "bounds": "bounds of the whole neighbourhood",
    "search": "a short search near the person",
    "splitting": "cutting the neighbourhood into boxes",
    "solver": "the solver",
    "construction": "the construction of the model",
}
_LIMITS = (
    "A proof is about the neighbourhood that was named, the protected values that were tried, and "
    "exactly this model; it says nothing about people further away, about other columns, or about "
    "how the model was made. It is not a certificate of fairness.",
    "If a decision depends on the last digits of a sum, the model itself was asked.",
)


def sentence(tree: Tree) -> str:
    """What is known, in one sentence."""
    answers = tree["answers"]
    n = tree["people"] - answers["alone"]
    names = words.either(list(tree["protected"]))
    if tree["blind"]:
        return (
            f"The model does not take {names}, so no decision depends on it by itself, and there "
            f"was nothing to prove for these {words.count(n)} people. What goes along with it in "
            "other columns is another question: limi test --twin asks it."
        )
    if not n:
        return (
            "By the rules of the table, none of these people have a partner with a different "
            f"{names}."
        )
    told = (
        f"For {words.count(answers['proven'])} of {words.count(n)} people "
        f"({_percent(answers['proven'] / n)}) it is proven that nobody near them is decided "
        f"differently with another {names}; near {words.count(answers['flips'])} "
        f"({_percent(answers['flips'] / n)}) somebody is"
    )
    if answers["undecided"]:
        told += f", and {words.count(answers['undecided'])} are undecided"
    return f"{told}."


def bounds(tree: Tree) -> str:
    """The proven bound for these people, and the interval for those they were drawn from."""
    low, high = tree["population_interval"]
    at_least, at_most = tree["flip_share_at_least"], tree["flip_share_at_most"]
    between = (
        f"{_percent(at_most)} of these people, at most (proven)"
        if at_least != at_most
        else f"{_percent(at_most)} of these people (proven)"
    )
    return (
        f"Somebody near them flips for {between}, and for {_percent(low)} to {_percent(high)} of "
        f"the population that the table is a sample of ({100 * tree['confidence']:g} % interval)."
    )


@dataclass(frozen=True)
class _Fact:
    name: str
    value: str


def facts(tree: Tree) -> list[_Fact]:
    """Figures beside the sentence."""
    shown = [
        _Fact("near means", tree["near"].replace(",", ", ")),
        _Fact("people who flip themselves", words.count(tree["flips_themselves"])),
        _Fact("largest gap between a person's scores", f"{tree['largest_gap_of_a_person']:.3f}"),
        _Fact(
            "largest gap near a person, at most (proven)",
            f"{tree['largest_gap_near_a_person_at_most']:.3f}",
        ),
    ]
    domain = tree.get("domain")
    if domain:
        shown.append(_Fact("largest gap anywhere, at most", _say_domain(domain)))
    return shown


def _say_domain(domain: Tree) -> str:
    told = f"{domain['score_gap_at_most']:.3f} of score (sums {domain['gap_at_most']:.3f} apart"
    if domain["optimal"]:
        return f"{told}, which is reached)"
    return f"{told}; {domain['gap_found']:.3f} was found before the time ran out)"


def remarks(tree: Tree) -> list[str]:
    """How it was done, and what to keep in mind."""
    by = {name: n for name, n in tree["decided_by"].items() if n and name in _STAGES}
    parts = words.both([f"{_STAGES[name]} ({words.count(n)})" for name, n in by.items()])
    return [
        *([f"Decided by {parts}."] if by else []),
        _say_reading(tree),
        f"{words.count(tree['queries'])} queries to the model"
        + ("; the model itself confirmed every flip." if tree["answers"]["flips"] else "."),
        *tree["notes"],
    ]


def _say_reading(tree: Tree) -> str:
    if tree["read_within"] is None:
        return (
            f"This is a {tree['kind']}: a row and its partner get the same answer if they put the "
            "same into it, whatever the model inside."
        )
    return (
        f"The {tree['kind']} was read to within {tree['read_within']:.1e} of its own scores; "
        f"proofs keep {tree['margin']:.1e} between a sum and the edge, more than its rounding."
    )


def progress(people: int, proven: int, flips: int) -> str:
    """What is known so far: the truth lies between the two shares."""
    low, high = flips / max(1, people), 1 - proven / max(1, people)
    return f"flips near {_percent(low)} to {_percent(high)} of {words.count(people)} people"


def render(tree: Tree) -> str:
    """A page of its own."""
    answers = tree["answers"]
    return _pages.render(
        "proof.html",
        ("report", "proof"),
        title=f"{tree['model']} on {tree['table']}: proofs",
        tree=tree,
        figure="" if tree["blind"] else _percent(tree["share_proven"]),
        sentence=sentence(tree),
        bounds=bounds(tree),
        facts=facts(tree),
        legend=[(name, _ANSWERS[name], n) for name, n in answers.items() if n],
        bars=_bars(tree["picture"]),
        counts=_counts(tree["picture"]),
        regions=tree["regions"],
        witnesses=[_witness(found) for found in tree["witnesses"]],
        remarks=remarks(tree),
        limits=_LIMITS,
    )


@dataclass(frozen=True)
class _Bar:
    answer: str
    x: float
    width: float
    y: float
    height: float


def _bars(picture: Tree) -> list[_Bar]:
    """By score, the shares of answers; fractions of a frame from its upper left."""
    edges = picture["edges"]
    bars = []
    for place in range(len(edges) - 1):
        parts = {name: picture[name][place] for name in _ANSWERS}
        total, top = sum(parts.values()), 0.0
        for name, n in parts.items():
            if n:
                width = edges[place + 1] - edges[place]
                bars.append(_Bar(name, edges[place], 0.92 * width, top, n / total))
                top += n / total
    return bars


@dataclass(frozen=True)
class _Counts:
    bars: list[_Bar]
    most: str


def _counts(picture: Tree) -> _Counts:
    """By score, how many people there are."""
    edges = picture["edges"]
    totals = [sum(picture[name][k] for name in _ANSWERS) for k in range(len(edges) - 1)]
    top = charts.ticks(max(totals, default=0), whole=True)[-1]
    bars = [
        _Bar("all", edges[k], 0.92 * (edges[k + 1] - edges[k]), 1 - n / top, n / top)
        for k, n in enumerate(totals)
        if n
    ]
    return _Counts(bars, words.count(max(totals, default=0)))


@dataclass(frozen=True)
class _Witness:
    row: int
    moved: list[str]  # what differs from the person
    changed: str  # what the partner has instead
    score: str
    partner_score: str


def _witness(found: Tree) -> _Witness:
    fields = found["fields"]
    return _Witness(
        found["row"],
        [
            f"{f['name']} {f['person']} → {f['witness']}"
            for f in fields
            if f["person"] != f["witness"]
        ],
        ", ".join(
            f"{f['name']} {f['witness']} → {f['partner']}"
            for f in fields
            if f["witness"] != f["partner"]
        ),
        f"{found['score']:.3f}",
        f"{found['partner_score']:.3f}",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
