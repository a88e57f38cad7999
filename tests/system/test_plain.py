"""What was written as plain data comes back as it was, and what was damaged does not."""

import json
import math
from dataclasses import asdict, dataclass, field

import pytest

from limi.system.plain import Known, read


@dataclass(frozen=True)
class Inner:
    share: float
    sure: Known = 0.0
    at: float | str | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    parts: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("", 0)
    table: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    first: Inner | None = None


WHOLE = Outer("a", (Inner(0.5, 1.0, "x"), Inner(0.25, at=3.5)), ("b", 2), {"k": ((1, 2), ())})


def plain(value):
    return json.loads(json.dumps(asdict(value)))


def test_it_is_the_inverse_of_asdict_and_json():
    for value in (WHOLE, Outer("b", first=Inner(1.0))):
        assert read(Outer, plain(value)) == value


def test_an_unknown_number_is_nan_and_what_is_absent_has_its_default():
    inner = read(Inner, {"share": None, "more": 1})
    assert math.isnan(inner.share)
    assert (inner.sure, inner.at) == (0.0, None)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: tree.update(name=3),
        lambda tree: tree.pop("name"),
        lambda tree: tree.update(parts={}),
        lambda tree: tree.update(pair=["b"]),
        lambda tree: tree["parts"][0].update(share="much"),
        lambda tree: tree["parts"][0].update(sure=None),
        lambda tree: tree["parts"][0].update(share=1e301),
        lambda tree: tree.update(first=[]),
        lambda tree: tree["table"].update(k=[[1.5]]),
    ],
)
def test_damage_is_refused(damage):
    tree = plain(WHOLE)
    damage(tree)
    with pytest.raises((ValueError, KeyError)):
        read(Outer, tree)
