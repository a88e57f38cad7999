"""Every method of the folder passes the suite that limi ships."""

import numpy as np
import pytest

from limi import methods
from limi.models import gradients
from limi.table.rows import uniform
from limi.testing import problem
from limi.testing.methods import CHECKS
from tests.methods.small import SMALL
from tests.networks import linear, target_of

TARGET = target_of(problem.SCHEMA, linear((0.15, -0.2, 0.3, 0.1, 0.5, 1.0), 0.175))


def make_task(**more):
    return problem.make_task(gradients=gradients.of(TARGET), **more)


def test_the_network_of_the_gradients_is_the_model_of_the_problem():
    rows = problem.make_task().rows
    np.testing.assert_allclose(TARGET.score(rows), problem.score(rows), atol=1e-6)


def test_no_row_of_the_problem_lies_near_the_edge():
    assert (
        np.abs(
            problem.score(uniform(problem.SCHEMA, 100_000, np.random.default_rng(1))) - 0.5
        ).min()
        > 1e-3
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", methods.names())
def test_contract(name, check):
    check(lambda: methods.parse(name, SMALL.get(name, {})), make_task)
