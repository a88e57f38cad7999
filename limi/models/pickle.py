"""Pickled models, as `pickle:FILE`, only if trusted: reading one can run any program."""

from __future__ import annotations

from limi.models._base import Decision, Model
from limi.models._files import existing, unreadable, untrusted_pickle
from limi.models._offers import ModelOffers

__all__ = ["load"]

OFFERS = ModelOffers(endings=(".pkl", ".pickle"))


def load(place: str, decision: Decision, trust_pickle: bool = False) -> Model:
    """The model that a pickle holds; InvalidInput unless its author is trusted."""
    path = existing(place, "pickle", OFFERS.endings)
    if not trust_pickle:
        raise untrusted_pickle(place, "pickle")
    import pickle

    from limi.models import adapt

    try:
        with path.open("rb") as file:
            target = pickle.load(file)  # noqa: S301 (the user has vouched for the file)
    except Exception as error:
        raise unreadable(place, "a pickle", error) from error
    return adapt(target, decision)
