"""What generators declare is what they are, and what the page says of them."""

import re
from pathlib import Path

import pytest

from limi import generators
from limi.generators import Encoder, GeneratorOffers
from limi.generators._base import WithTensors
from limi.repairs import _verify

PAGE = Path(__file__).parents[2] / "docs" / "generators.md"


@pytest.mark.parametrize("name", generators.names())
def test_the_class_of_a_generator_can_do_what_its_module_declares(name):
    offers = generators.offers(name)
    (made,) = [
        one
        for one in vars(generators.get(name)).values()
        if isinstance(one, type) and vars(one).get("kind") == name
    ]
    for protocol, member, declared in (
        (Encoder, "encode", offers.has_encoder),
        (WithTensors, "decode_tensor", offers.on_device),
    ):
        assert hasattr(made, member) == declared, (name, protocol.__name__)


def test_the_page_says_which_generators_need_torch():
    said = dict(re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \|$", PAGE.read_text("utf-8"), re.M))
    needs = {n: "yes" if generators.offers(n).library else "no" for n in generators.names()}
    assert said == needs


def test_a_module_that_declares_nothing_offers_nothing(monkeypatch):
    monkeypatch.setattr(generators, "get", lambda name: pytest)
    assert generators.offers("silent") == GeneratorOffers()


def test_fresh_people_come_from_quick_generators_that_can_be_fitted_here(monkeypatch):
    assert _verify.quick_generators() == ["transport", "trees"]
    monkeypatch.setattr(_verify, "find_spec", lambda name: None)
    assert _verify.quick_generators() == ["trees"]
