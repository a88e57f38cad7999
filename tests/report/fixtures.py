"""Summaries to draw: as a run on the adult table gives them, and the awkward ones."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Any

import numpy as np

from limi.audits.summary import Clause, Example, Field, Region, Regions, Summary
from limi.audits.what_if import AsIf, Versus, WhatIf
from limi.metrics.individual import Rate, rate_of
from limi.metrics.naturalness import Likeness
from limi.metrics.what_if import mcnemar, paired_interval
from limi.search.steadiness import Steadiness
from limi.twins import Carrier, Direction, Group, Kept, TwinExample, Twins
from tests.report.measured import tree

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'-alert(3)-'",
    "{{ 7 * 7 }}",
    "</style><style>body{display:none}</style>",
)

ADULT = {
    "age": "37",
    "workclass": "Private",
    "fnlwgt": "189778",
    "education": "Bachelors",
    "education_num": "13",
    "marital_status": "Married-civ-spouse",
    "occupation": "Exec-managerial",
    "relationship": "Husband",
    "race": "White",
    "sex": "Male",
    "capital_gain": "0",
    "capital_loss": "0",
    "hours_per_week": "45",
    "native_country": "United-States",
}


def example(
    change: dict[str, str],
    score: float,
    partner_score: float,
    *,
    protected: tuple[str, ...] = ("sex",),
    origin: str = "real",
    flipped_by: str = "",
    **values: str,
) -> Example:
    row = ADULT | values
    fields = tuple(
        Field(name, value, change.get(name, value), name in protected)
        for name, value in row.items()
    )
    return Example(fields, score, partner_score, origin, flipped_by)


def people(
    columns: tuple[str, ...],
    hits: dict[str, int],
    n: int,
    only_second: int = 0,
    *,
    population: str = "real",
    curve: bool = False,
    most: int = 45,
) -> WhatIf:
    """Values with so many favorable decisions; of each pair so many go against the rest."""
    names = list(hits)
    confidence = 1 - 0.05 / max(1, len(names) * (len(names) - 1) // 2)
    both = [
        (one, other) if hits[one] >= hits[other] else (other, one)
        for one, other in combinations(names, 2)
    ]
    surplus = np.array([hits[first] - hits[second] for first, second in both], dtype=np.int64)
    counts = surplus + only_second, np.full_like(surplus, only_second)
    # All pairs at once, because one at a time takes seconds.
    measured = (*counts, *paired_interval(*counts, n, confidence), mcnemar(*counts))
    pairs = []
    for pair, b, c, low, high, p_value in zip(both, *(m.tolist() for m in measured), strict=True):
        corrected = min(1.0, 3 * len(names) * p_value)
        supported = corrected <= 0.05 and low > 0
        pairs.append(Versus(*pair, b, c, (b - c) / n, low, high, p_value, corrected, supported))
    pairs.sort(key=lambda pair: -pair.difference)
    n_pairs, n_supported = len(pairs), sum(pair.supported for pair in pairs)
    if n_pairs > most:
        pairs = [pair for pair in pairs if pair.supported][:most]
    values = tuple(
        AsIf(name, rate_of(count, n), float(name) if curve else None)
        for name, count in hits.items()
    )
    q = 0.0 if len(set(hits.values())) == 1 else 12.3
    return WhatIf(
        population,
        columns,
        n,
        values,
        tuple(pairs),
        n_pairs,
        n_supported,
        q,
        1.0 if not q else 0.0064,
        curve,
    )


SEX = Summary(
    table="adult.parquet",
    n_rows=32_561,
    n_columns=14,
    model="onnx:adult-forest.onnx",
    target="income",
    favorable=">50K",
    unfavorable="<=50K",
    method="real",
    settings={},
    protected={"sex": ["Female", "Male"]},
    combinations=2,
    findings=3_911,
    rows_checked=32_561,
    queries=65_074,
    seconds=1.84,
    stop="exhausted",
    seed=0,
    rates={"real": rate_of(1_233, 10_000), "uniform": rate_of(2_871, 10_000)},
    what_if=(people(("sex",), {"Female": 2_289, "Male": 2_410}, 10_000, 556),),
    favorable_findings={"Female": 807, "Male": 3_104},
    examples=(
        example({"sex": "Female"}, 0.7134, 0.2921),
        example(
            {"sex": "Male"},
            0.3312,
            0.7018,
            sex="Female",
            age="44",
            relationship="Wife",
            occupation="Prof-specialty",
            education="Masters",
            education_num="14",
            hours_per_week="40",
        ),
        example({"sex": "Female"}, 0.6601, 0.3187, age="51", workclass="Self-emp-inc"),
        example({"sex": "Female"}, 0.6018, 0.3304, age="29", education="HS-grad"),
        example({"sex": "Female"}, 0.500004, 0.3099, age="62"),
    ),
    command=(
        "limi test adult.parquet --model onnx:adult-forest.onnx --target income "
        "--favorable '>50K' --protected sex --method real --seed 0 --out runs/adult-sex"
    ),
    versions={"python": "3.11.9", "limi": "0.1.0", "numpy": "2.3.4", "scikit-learn": "1.7.2"},
    hashes={
        "data_sha256": "5a1d6f3f4c0c4e7f9b8a61f2b0d8f1c1d3e0a9b7c6d5e4f3a2b1c0d9e8f7a6b5",
        "model_sha256": "0c9b8a7f6e5d4c3b2a190817263544536271809f0e1d2c3b4a59687786950413",
    },
)

_THREE = ("sex", "race", "age")

MANY = dataclasses.replace(
    SEX,
    model="python:lending.models:decide_applications",
    method="themis",
    settings={"confidence": 0.99, "margin": None, "min_samples": 10, "bound": "exact"},
    protected={
        "sex": ["Female", "Male"],
        "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
        "age": [str(age) for age in range(17, 91)],
    },
    combinations=740,
    findings=48_212,
    rows_checked=131_072,
    queries=1_000_000,
    seconds=247.3,
    stop="queries",
    seed=20_240_613,
    rates={
        "uniform": rate_of(1_361, 2_000),
        "real": rate_of(412, 2_000),
        "natural": rate_of(447, 2_000),
    },
    scores={
        "causal_discrimination": 0.678312,
        "group_discrimination": 0.2219,
        "error_bound": 0.0033,
        "confidence": 0.99,
    },
    rates_by_column={
        "sex": {"real": rate_of(61, 2_000), "natural": rate_of(70, 2_000)},
        "race": {"real": rate_of(33, 2_000), "natural": rate_of(31, 2_000)},
        "age": {"real": rate_of(290, 2_000), "natural": rate_of(302, 2_000)},
    },
    what_if=(
        people(("sex",), {"Female": 440, "Male": 488}, 2_000, 7),
        people(
            ("race",),
            {
                "White": 460,
                "Asian-Pac-Islander": 466,
                "Amer-Indian-Eskimo": 455,
                "Other": 462,
                "Black": 458,
            },
            2_000,
            15,
        ),
        people(
            ("age",),
            {str(age): 180 + 9 * (age - 17) for age in range(17, 91)},
            2_000,
            20,
            curve=True,
        ),
        people(
            ("sex", "race", "age"),
            {
                f"sex {sex}, race {race}, age {age}": 150 + 20 * (sex == "Male") + 9 * (age - 17)
                for sex in ("Female", "Male")
                for race in ("White", "Black")
                for age in range(17, 91, 4)
            },
            2_000,
            20,
            most=20,
        ),
    ),
    favorable_findings={},
    examples=tuple(
        example(
            {"sex": "Female", "race": "Black", "age": "22"},
            0.9811 - 0.013 * place,
            0.0214 + 0.017 * place,
            protected=_THREE,
            origin="themis",
            age="58",
            occupation=occupation,
            hours_per_week=str(38 + place),
        )
        for place, occupation in enumerate(
            (
                "Exec-managerial",
                "Sales",
                "Craft-repair",
                "Tech-support",
                "Protective-serv",
                "Adm-clerical",
                "Other-service",
                "Prof-specialty",
                "Farming-fishing",
                "Transport-moving",
            )
        )
    ),
    notes=(
        "The columns education and education_num repeat each other; a uniform row may contradict "
        "itself.",
        "Age was tried at all of its 74 values, so a row costs 740 queries and 2,000 rows were "
        "measured instead of 10,000.",
        "12 rows flipped in the search but not when asked about again, so they were "
        "left out: their scores "
        "lie within rounding of 0.5",
    ),
    unconfirmed=12,
    command=(
        "limi test adult.parquet --model python:lending.models:decide_applications "
        "--target income --favorable '>50K' --protected sex --protected race --protected age "
        "--method themis --max-queries 1000000 --seed 20240613 --out runs/adult-three"
    ),
    hashes=SEX.hashes | {"model_sha256": None},
)


def _densities(**hills: tuple[tuple[float, float, float], ...]) -> dict[str, Any]:
    """Sums of bells: share, middle, spread."""
    grid = [-4.4 + 0.11 * place for place in range(81)]
    return {
        "x": [round(x, 5) for x in grid],
        "share": 0.1734,
        "lines": {
            name: [
                round(
                    sum(p * math.exp(-(((x - m) / s) ** 2) / 2) / s for p, m, s in hills[name]), 5
                )
                for x in grid
            ]
            for name in hills
        },
    }


def _score_pairs(n: int) -> list[list[float]]:
    rng = np.random.default_rng(7)
    high, low = 0.5 + 0.5 * rng.beta(1.3, 3, n), 0.5 - 0.5 * rng.beta(1.2, 3, n)
    flipped = rng.random(n) < 0.3
    pairs = np.stack([np.where(flipped, low, high), np.where(flipped, high, low)], axis=1)
    return [[round(x, 5) for x in pair] for pair in pairs.tolist()]


def _curve(n: int, queries: int, findings: int) -> list[list[int]]:
    return [
        [queries * k // n, round(findings * (1 - math.exp(-2.2 * k / n)) / (1 - math.exp(-2.2)))]
        for k in range(1, n + 1)
    ]


PICTURED = dataclasses.replace(
    MANY,
    method="limi",
    generator="trees",
    preparation_seconds=37.42,
    settings={"n_train": 10_000, "step": 0.3, "choice": "confident"},
    protected={name: MANY.protected[name] for name in ("sex", "race")},
    combinations=10,
    findings=4_386,
    rows_checked=100_000,
    queries=1_000_000,
    unconfirmed=12,
    notes=(MANY.notes[0], MANY.notes[2]),
    command=(
        "limi test adult.parquet --model python:lending.models:decide_applications "
        "--target income --favorable '>50K' --protected sex --protected race "
        "--method limi --generator trees --max-queries 1000000 --seed 20240613 --out runs/adult-two"
    ),
    scores={"boundary_auc_train": 0.9812, "boundary_auc_entire": 0.913244},
    where=Regions(
        "natural",
        rate_of(223, 1_000),
        learned=1_000,
        tried=4,
        share=0.187,
        flips=0.683,
        reason="",
        rules=(
            Region(
                (
                    Clause("hours_per_week at least 45", "hours_per_week", 45.0),
                    Clause(
                        "marital_status is Married-civ-spouse or Widowed",
                        "marital_status",
                        levels=("Married-civ-spouse", "Widowed"),
                    ),
                ),
                rate_of(71, 87, 1 - 0.05 / 4),
                0.087,
                3.66,
                3.1e-12,
                people(("sex",), {"Female": 21, "Male": 59}, 87, 3, population="natural"),
            ),
            Region(
                (Clause("occupation is missing", "occupation", levels=(), missing=True),),
                rate_of(51, 118, 1 - 0.05 / 4),
                0.118,
                1.94,
                0.0123,
                None,
            ),
        ),
    ),
    naturalness={
        "findings": Likeness(0.7421, 0.0042, 412, 10),
        "representative": Likeness(0.8893, 0.0033, 412, 10),
        "ceiling": Likeness(0.9312, None, 412, 1),
    },
    pictures={
        "densities": _densities(
            real=((0.55, -0.9, 0.9), (0.45, 1.3, 0.8)),
            findings=((0.8, 1.7, 0.55), (0.2, -0.4, 0.8)),
            representative=((0.35, -0.7, 0.9), (0.65, 1.35, 0.75)),
        ),
        "score_pairs": _score_pairs(400),
        "curve": _curve(120, 970_000, 4_398),
    },
    rates_by_column={
        "sex": {"real": rate_of(61, 2_000), "natural": rate_of(70, 2_000)},
        "race": {"real": rate_of(33, 2_000), "natural": rate_of(31, 2_000)},
    },
    what_if=tuple(
        people(columns, hits, 2_000, 9, population=population)
        for population in ("real", "natural")
        for columns, hits in (
            (("sex",), {"Female": 440, "Male": 488}),
            (("race",), {"White": 470, "Other": 466, "Black": 455}),
            (
                ("sex", "race"),
                {
                    f"sex {sex}, race {race}": 430 + 40 * (sex == "Male") + 7 * (race == "White")
                    for sex in ("Female", "Male")
                    for race in ("White", "Other", "Black")
                },
            ),
        )
    ),
    favorable_findings={
        "sex Female, race White": 1_420,
        "sex Female, race Other": 1_113,
        "sex Male, race White": 3_261,
    },
    examples=(
        example(
            {"sex": "Male"},
            0.1822,
            0.8217,
            protected=("sex", "race"),
            origin="limi",
            flipped_by="sex",
            age="38",
            marital_status="Divorced",
            occupation="Sales",
            relationship="Not-in-family",
            sex="Female",
        ),
        example(
            {"sex": "Female", "race": "Black"},
            0.8011,
            0.2154,
            protected=("sex", "race"),
            origin="limi",
            flipped_by="sex, race",
        ),
        example(
            {"sex": "Female", "race": "Amer-Indian-Eskimo"},
            0.7311,
            0.2954,
            protected=("sex", "race"),
            origin="limi",
            flipped_by="sex+race",
            age="81",
            hours_per_week="20",
        ),
    ),
)

FEW = dataclasses.replace(
    PICTURED,
    findings=1,
    unconfirmed=0,
    generator=None,
    scores={},
    where=Regions(
        "real",
        rate_of(2, 90),
        learned=0,
        tried=0,
        share=0.0,
        flips=0.0,
        reason="2 of 90 rows flip; at least 30 are needed to learn rules from one "
        "half of them and verify "
        "them on the other",
    ),
    naturalness={"ceiling": Likeness(0.9312, None, 412, 1)},
    pictures={"densities": {}, "score_pairs": [[0.49, 0.53]], "curve": [[40, 0], [90, 1]]},
    rates_by_column={},
    what_if=(people(("sex",), {"Female": 40, "Male": 42}, 90),),
    favorable_findings={"sex Female, race White": 0, "sex Male, race White": 1},
    examples=PICTURED.examples[:1],
)

NOTHING = dataclasses.replace(
    SEX,
    findings=0,
    what_if=(people(("sex",), {"Female": 2_300, "Male": 2_300}, 10_000),),
    favorable_findings={},
    examples=(),
    rates={"real": rate_of(0, 10_000), "uniform": rate_of(0, 10_000)},
)

UNMEASURED = dataclasses.replace(SEX, rates={}, what_if=())
UNMEASURED_NOTHING = dataclasses.replace(NOTHING, rates={}, what_if=(), rows_checked=0, queries=0)
NOT_A_NUMBER = dataclasses.replace(
    SEX, rates={"real": Rate(math.nan, 0.0, 1.0, 0), "uniform": rate_of(2_871, 10_000)}
)
ALL_NOT_A_NUMBER = dataclasses.replace(NOTHING, rates={"real": Rate(math.nan, 0.0, 1.0, 0)})

_SCRIPT, _IMAGE, _QUOTE, _BRACES, _STYLE = HOSTILE
LONG = "Überlanges-Wort-ohne-Lücke-" * 9

ATTACKED = dataclasses.replace(
    SEX,
    table=_IMAGE,
    model=_SCRIPT,
    target=_STYLE,
    favorable=_SCRIPT,
    unfavorable=_IMAGE,
    method=_QUOTE,
    settings={_SCRIPT: _IMAGE, "plain": _BRACES},
    protected={_IMAGE: [_SCRIPT, _BRACES, LONG]},
    generator=_IMAGE,
    preparation_seconds=0.5,
    scores={_SCRIPT: 0.5},
    where=Regions(
        _SCRIPT,
        rate_of(5, 50),
        learned=50,
        tried=1,
        share=0.2,
        flips=1.0,
        reason="",
        rules=(
            Region(
                (Clause(f"{_IMAGE} is {LONG}", _IMAGE), Clause(_STYLE, _BRACES)),
                rate_of(5, 10),
                0.2,
                5.0,
                0.01,
                people((_SCRIPT,), {_IMAGE: 90, _BRACES: 10}, 100, population=_STYLE),
            ),
        ),
    ),
    naturalness={_SCRIPT: Likeness(0.5)},
    pictures={
        "densities": {"x": [0.0, 1.0, 2.0], "lines": {_SCRIPT: [0.1, 0.2, 0.1]}},
        "score_pairs": [[0.9, 0.1]],
        "curve": [[2, 1]],
    },
    stop=_SCRIPT,
    rates={_SCRIPT: rate_of(5, 50)},
    rates_by_column={_IMAGE: {_SCRIPT: rate_of(4, 50)}},
    what_if=(
        people((_IMAGE,), {_SCRIPT: 30, _BRACES: 20, LONG: 2}, 50),
        people((_IMAGE, _QUOTE), {_STYLE: 40, _SCRIPT: 5}, 50, population="natural"),
    ),
    favorable_findings={_SCRIPT: 3_000, _IMAGE: 911},
    examples=(
        Example(
            (
                Field(_IMAGE, _SCRIPT, LONG, True),
                Field(_SCRIPT, _STYLE, _STYLE, False),
                Field("b\x1b[31mreak\u202e", "[red]x[/red]", "[red]x[/red]", False),
                Field(LONG, LONG, LONG, False),
            ),
            0.9,
            0.1,
            _SCRIPT,
            flipped_by=_IMAGE,
        ),
    ),
    notes=HOSTILE,
    unmeasured={_SCRIPT: _IMAGE},
    held_out=f"{_STYLE}{LONG}",
    command=_SCRIPT,
    versions={_IMAGE: _SCRIPT},
    hashes={_SCRIPT: _IMAGE},
)

MEASURED = dataclasses.replace(SEX, metrics=tree())

UNSTEADY = dataclasses.replace(
    SEX,
    rates={"held-out": rate_of(61, 900)},
    unmeasured={"natural": "no generator was given", "real": "held-out rows were given"},
    held_out="new.parquet",
    n_held_out=900,
    steadiness=Steadiness(512, 2048, 0, 40, 44, 50, 9).as_dict(),
)


def twins(
    group: str = "sex Female", goal: str = "sex Male", *, unseen: tuple[str, ...] = ("sex",)
) -> Twins:
    """The twin question as adult answers it, with names of any kind."""
    there = Direction(
        group,
        goal,
        5000,
        gains=rate_of(860, 5000),
        losses=rate_of(70, 5000),
        net=0.158,
        gap=0.173,
        gap_error=0.007,
        coverage=0.913,
        fit_error=0.004,
        carried="gains",
        orders=(0.152, 0.201),
        agreement=0.87,
        sure=rate_of(12, 200),
        n_carried=300,
        carriers=(
            Carrier(("marital_status", "relationship"), 0.6, 0.02),
            Carrier(("capital_gain",), 0.3, None),
            Carrier(tuple(HOSTILE), 0.15, 0.02),
            Carrier(("occupation",), -0.05, 0.01),
        ),
        kept=(
            Kept(("education", "hours_per_week"), "asked", rate_of(340, 2500), rate_of(35, 2500)),
            Kept(("x" * 90,), "carriers", rate_of(0, 2500), rate_of(9, 2500)),
        ),
        moved={"marital_status": 0.55},
    )
    back = dataclasses.replace(
        there,
        group=goal,
        goal=group,
        gains=there.losses,
        losses=there.gains,
        net=-0.158,
        gap=-0.173,
        coverage=0.31,
        carried="losses",
        no_twin=12,
    )
    even = dataclasses.replace(
        there, gap=0.001, coverage=None, carriers=(), kept=(), orders=(), agreement=None
    )
    fields = tuple((name, value, "Husband") for name, value in [*ADULT.items(), (HOSTILE[0], "")])
    return Twins(
        ("sex",),
        unseen,
        ("education", "hours_per_week"),
        "real",
        "trees",
        groups=(Group(group, 10_771, rate_of(427, 5000)), Group(goal, 21_790, rate_of(1293, 5000))),
        directions=(there, back, even),
        placebo=rate_of(9, 10_000),
        examples=(TwinExample(group, goal, fields, 0.2, 0.8, 0.95),),
        queries=100_000,
        notes=(f"too few people to have twins: {HOSTILE[1]} (12)",),
    )


BLIND = dataclasses.replace(
    SEX,
    findings=0,
    rows_checked=0,
    stop="exhausted",
    examples=(),
    rates={"real": Rate(0.0, 0.0, 0.0, 10_000)},
    unmeasured={"natural": "the model does not take sex, so that it is 0 for them too"},
    twins=twins(),
)
TWINS = dataclasses.replace(SEX, twins=twins(HOSTILE[1], "y" * 300, unseen=()))
UNASKED = dataclasses.replace(
    BLIND,
    twins=dataclasses.replace(
        twins(),
        groups=(),
        directions=(),
        placebo=None,
        examples=(),
        reason="no questions were left",
    ),
)

SUMMARIES = {
    "sex": SEX,
    "blind": BLIND,
    "twins": TWINS,
    "unasked": UNASKED,
    "many": MANY,
    "pictured": PICTURED,
    "measured": MEASURED,
    "few": FEW,
    "nothing": NOTHING,
    "unmeasured": UNMEASURED,
    "unmeasured-nothing": UNMEASURED_NOTHING,
    "not-a-number": NOT_A_NUMBER,
    "all-not-a-number": ALL_NOT_A_NUMBER,
    "unsteady": UNSTEADY,
    "attacked": ATTACKED,
}
