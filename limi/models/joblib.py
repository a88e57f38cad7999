"""Models dumped by joblib, as `joblib:FILE`, only if trusted, because they are pickles too."""

from __future__ import annotations

from limi.models._base import Decision, Model
from limi.models._files import existing, unreadable, untrusted_pickle
from limi.models._offers import ModelOffers

__all__ = ["load"]

OFFERS = ModelOffers(endings=(".joblib",))


def load(place: str, decision: Decision, trust_pickle: bool = False) -> Model:
    """The model that a joblib file holds; InvalidInput unless its author is trusted."""
    path = existing(place, "joblib", OFFERS.endings)
    if not trust_pickle:
        raise untrusted_pickle(place, "joblib")
    import joblib  # it comes with scikit-learn

    from limi.models import adapt

    try:
        target = joblib.load(path)
    except Exception as error:
        raise unreadable(place, "a joblib file", error) from error
    return adapt(target, decision)
