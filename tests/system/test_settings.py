"""Settings read from text, and described for programs."""

from dataclasses import dataclass
from typing import Literal

import pytest

from limi.errors import InvalidInput
from limi.system.settings import describe_settings, read_settings


@dataclass(frozen=True)
class Some:
    steps: int = 3  # how many
    share: float = 0.5
    layers: tuple[int, ...] = (4, 4)
    betas: tuple[float, float] = (0.5, 0.9)
    order: Literal["given", "sorted"] | tuple[str, ...] = "given"
    most: int | None = None
    quick: bool = False

    def __post_init__(self):
        if self.steps < 1 or not 0 < self.share < 1:
            raise InvalidInput("no")


def test_texts_become_values_of_their_types():
    texts = ["steps=7", "share=0.25", "layers=8,8,2", "betas=0.1, 0.2", "order=b,a", "most=none"]
    assert read_settings([*texts, "quick=True"], Some, "it") == {
        "steps": 7,
        "share": 0.25,
        "layers": (8, 8, 2),
        "betas": (0.1, 0.2),
        "order": ("b", "a"),
        "most": None,
        "quick": True,
    }
    assert read_settings(["order=sorted"], Some, "it") == {"order": "sorted"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step=1", "it has no setting 'step'; did you mean 'steps'"),
        ("steps=x", "must be of type int"),
        ("betas=1", "must be of type float,float"),
        ("quick=maybe", "must be of type bool"),
        ("steps", "not of the form NAME=VALUE"),
    ],
)
def test_what_is_no_setting_is_refused_with_the_nearest(text, said):
    with pytest.raises(InvalidInput, match=said):
        read_settings([text], Some, "it")


def test_settings_are_described_with_bounds_found_by_trying():
    told = describe_settings(Some)
    assert told["steps"] == {"type": "int", "default": 3, "at_least": 1, "meaning": "how many"}
    assert told["share"] == {"type": "float", "default": 0.5, "above": 0, "below": 1}
    assert told["order"]["choices"] == ["given", "sorted"]
    assert told["most"] == {"type": "int", "default": None, "may_be_none": True}
    assert told["layers"]["default"] == [4, 4]
