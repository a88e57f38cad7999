"""The income model of `limi demo`, as `demo:income`: trained on the Adult census when asked for."""

from __future__ import annotations

from typing import Any

from limi import data
from limi.errors import InvalidInput
from limi.models._base import Decision, Model
from limi.models._offers import ModelOffers

__all__ = ["LEFT_OUT", "income_model", "load"]

OFFERS = ModelOffers(data_only=True, by_name=True)

LEFT_OUT = ("fnlwgt",)
"""A survey weight, which no model should use."""


def load(place: str, decision: Decision) -> Model:
    """The pipeline, fitted on all rows of the shipped table; the same on every call."""
    from limi.models import adapt

    if place != "income":
        raise InvalidInput(f"there is no demo model {place!r}; the only one is demo:income")
    adult = data.load("adult")
    return adapt(
        income_model(
            adult.frame.drop(columns=[*LEFT_OUT, adult.target]), adult.frame[adult.target]
        ),
        decision,
    )


def income_model(frame: Any, labels: Any) -> Any:
    """A pipeline that takes the table as it is: text, missing values and all."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((encoder, text), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))
    return model.fit(frame, labels)
