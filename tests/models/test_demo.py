"""The demo's model by its name."""

import pytest

from limi import models
from limi.errors import InvalidInput


def test_the_income_model_leaves_the_survey_weight_out():
    model = models.load("demo:income", favorable=">50K", labels=("<=50K", ">50K"))
    assert model.columns is not None
    assert "sex" in model.columns
    assert "fnlwgt" not in model.columns


def test_another_name_is_refused():
    with pytest.raises(InvalidInput, match="no demo model 'outcome'"):
        models.load("demo:outcome")
