"""Every method of the folder passes the suite that limi ships."""

import numpy as np
import pytest

from limi import methods
from limi.models import gradients
from limi.table.rows import uniform
from limi.testing.methods import CHECKS
from tests.methods.small import SMALL
from tests.networks import linear, target_of
from tests.toy import Linear, Rounding, schema_of, task

SCHEMA = schema_of((0, 40), (0, 40), (-5, 5), (0, 9), (1, 5), (0, 1), protected=["x4", "x5"])
MODEL = Linear((0.15, -0.2, 0.3, 0.1, 0.5, 1.0), 0.175)
TARGET = target_of(SCHEMA, linear(MODEL.weights, MODEL.bias))


def make_task(**more):
    rows = uniform(SCHEMA, 400, np.random.default_rng(0))
    return task(
        SCHEMA, MODEL, rows, generator=Rounding(SCHEMA), gradients=gradients.of(TARGET), **more
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", methods.names())
def test_contract(name, check):
    check(lambda: methods.parse(name, SMALL.get(name, {})), make_task)
