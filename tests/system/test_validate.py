"""Plain data held to declared types."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from limi.audits.summary import Summary
from limi.system.validate import require_fields, require_type
from tests.report.fixtures import people


@dataclass(frozen=True)
class Part:
    name: str
    share: float


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    by_name: dict[str, list[int]]
    end: float | str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def test_what_fits_is_held():
    require_fields(
        Whole((Part("a", 1), Part("b", math.nan)), {"x": [1, 2]}, "late", {"any": object})
    )
    require_fields(Whole((), {}, None))
    require_type(float, None, "unknown")  # JSON has no NaN


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (Whole([Part("a", 1.0)], {}), "parts is"),
        (Whole((Part(3, 1.0),), {}), r"parts\[0\].name is 3"),
        (Whole((Part("a", "x"),), {}), r"parts\[0\].share is 'x'"),
        (Whole((Part("a", True),), {}), r"parts\[0\].share is True"),
        (Whole((Part("a", 10**400),), {}), r"parts\[0\].share is 10+ \.\.\."),
        (Whole((), {"x": [1.5]}), r"by_name.x\[0\] is 1.5"),
        (Whole((), {"x": 1}), "by_name.x is 1"),
        (Whole((), {}, []), r"end is \[\]"),
        (Whole((), {}, None, []), r"more is \[\]"),
        (Whole(("a",), {}), r"parts\[0\] is 'a'"),
    ],
)
def test_what_does_not_fit_is_named(whole, told):
    with pytest.raises(ValueError, match=told):
        require_fields(whole)


def test_a_summary_is_held_to_its_fields():
    known = {
        "table": "t",
        "n_rows": 1,
        "n_columns": 1,
        "model": "m",
        "target": None,
        "favorable": "yes",
        "unfavorable": "no",
        "method": "limi",
        "settings": {},
        "protected": {"sex": ["F", "M"]},
        "combinations": 2,
        "findings": 1,
        "rows_checked": 1,
        "queries": 2,
        "seconds": 0.5,
        "stop": "rows",
        "seed": 0,
    }
    require_fields(Summary(**known, what_if=(people(("sex",), {"F": 1, "M": 2}, 9),)))
    odd = replace(people(("sex",), {"F": 1, "M": 2}, 9), n="9")
    with pytest.raises(ValueError, match="what_if"):
        require_fields(Summary(**known, what_if=(odd,)))
    with pytest.raises(ValueError, match="seed is 'x'"):
        require_fields(Summary(**{**known, "seed": "x"}))
