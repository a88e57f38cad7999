"""Gradients of torch targets against finite differences and plain autograd, in float64."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from limi.errors import InvalidInput
from limi.models import gradients
from limi.models._base import Decision
from limi.models.sklearn import wrap as wrap_estimator
from limi.models.target import bind
from limi.table.frames import Codec
from limi.table.rows import uniform
from limi.table.schema import Column, Schema
from tests.networks import declared, linear, network, target_of
from tests.toy import integers, schema_of

SCHEMA = schema_of((0, 9), (-5, 5), (0, 3), (0, 1), protected=["x3"])
SIZES = (4, 8, 6)


def heads(rng):
    """Every kind of output: the module, and whether torch can differentiate its score itself."""
    return {
        "one logit": declared(network(rng, *SIZES, 1), "logits"),
        "flat logit": declared(network(rng, *SIZES, 1, last=[torch.nn.Flatten(0)]), "logits"),
        "one probability": network(rng, *SIZES, 1, last=[torch.nn.Sigmoid()]),
        "two logits": network(rng, *SIZES, 2),
        "two probabilities": network(rng, *SIZES, 2, last=[torch.nn.Softmax(1)]),
    }


def rows_of(n=40, seed=0):
    return uniform(SCHEMA, n, np.random.default_rng(seed))


def probability(module, favorable, inputs):
    """The favorable class's probability, straight from the module's output."""
    raw = module(inputs)
    if raw.ndim == 2 and raw.shape[1] == 2:
        if not isinstance(module[-1], torch.nn.Softmax):
            raw = raw.softmax(1)
        return raw[:, favorable]
    raw = raw.reshape(-1)
    second = raw if isinstance(module[-1], torch.nn.Sigmoid) else raw.sigmoid()
    return second if favorable else 1 - second


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("head", list(heads(np.random.default_rng(0))))
def test_gradients_are_those_of_autograd(head, favorable):
    module = heads(np.random.default_rng(3))[head]
    found = gradients.of(target_of(SCHEMA, module, favorable))
    rows = rows_of()
    inputs = torch.from_numpy(rows.copy()).requires_grad_()
    score = probability(module, favorable, inputs)
    (slope,) = torch.autograd.grad(score.sum(), inputs, retain_graph=True)
    np.testing.assert_allclose(found.output_gradient(rows), slope.numpy(), rtol=1e-8, atol=1e-12)
    taken = torch.where(score > 0.5, score, 1 - score)
    (slope,) = torch.autograd.grad(-taken.log().sum(), inputs)
    np.testing.assert_allclose(found.loss_gradient(rows), slope.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("head", list(heads(np.random.default_rng(0))))
def test_gradients_are_finite_differences_of_the_margin(head):
    module = heads(np.random.default_rng(4))[head]
    found = gradients.of(target_of(SCHEMA, module))
    rows = rows_of() + 0.123  # off the grid, where no ReLU turns
    margin, slope = found.margins(rows)
    for column in range(rows.shape[1]):
        step = np.zeros(rows.shape[1])
        step[column] = 1e-6
        rise = (found.margins(rows + step)[0] - found.margins(rows - step)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, column], rise, rtol=1e-5, atol=1e-6)
    scores = target_of(SCHEMA, module).score(rows)
    # The target itself is asked in float32.
    np.testing.assert_allclose(1 / (1 + np.exp(-margin)), scores, atol=1e-5)


def test_a_saturated_score_still_has_a_direction():
    found = gradients.of(target_of(SCHEMA, linear([5.0, -3.0, 1.0, 0.5], 0.0)))
    row = np.array([[9.0, -5.0, 3.0, 1.0]])
    assert np.float32(1 / (1 + np.exp(-found.margins(row)[0][0]))) == 1.0
    np.testing.assert_array_equal(np.sign(found.loss_gradient(row)), [[-1, 1, -1, -1]])


def test_levels_that_stand_for_other_numbers_are_differentiated_by_code():
    columns = (
        integers("age", 0, 9),
        Column(name="size", kind="ordered", levels=(10, 20, 40)),
        Column(name="down", kind="categorical", levels=(3, 2, 1)),
        Column(name="sex", kind="categorical", levels=(0, 1)),
    )
    schema = Schema(columns).protect(["sex"])
    frame = pd.DataFrame({"age": [1], "size": [10], "down": [3], "sex": [0]})
    codec = Codec.learn(frame, schema)
    module = linear([1.0, 0.5, 2.0, -1.0], 0.0)
    found = gradients.of(target_of(schema, module, codec=codec))
    rows = np.array([[4.0, 0.0, 0.0, 1.0], [4.0, 1.0, 1.0, 0.0], [4.0, 2.0, 2.0, 0.0]])
    _, slope = found.margins(rows)
    np.testing.assert_allclose(
        slope, [[1, 5, -2, -1], [1, 7.5, -2, -1], [1, 10, -2, -1]], rtol=1e-12
    )


def test_missing_cells_and_unused_columns_point_nowhere():
    class Filling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))

        def forward(self, given):
            return torch.nan_to_num(given[:, :2]) @ self.weight - 3

    found = gradients.of(target_of(SCHEMA, declared(Filling(), "logits")))
    _, slope = found.margins(np.array([[np.nan, 1.0, 2.0, 0.0], [3.0, 1.0, np.nan, 1.0]]))
    np.testing.assert_array_equal(slope, [[0, 2, 0, 0], [1, 2, 0, 0]])


def test_a_module_without_derivatives_is_flat():
    class Rounded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 1, dtype=torch.float64)

        def forward(self, given):
            return self.table(given[:, 0].long())[:, 0]

    found = gradients.of(target_of(SCHEMA, declared(Rounded(), "logits")))
    np.testing.assert_array_equal(found.loss_gradient(rows_of(5)), np.zeros((5, 4)))


def test_layers_are_named_by_kind_and_place():
    found = gradients.of(target_of(SCHEMA, network(np.random.default_rng(0), 4, 8, 6, 3, 2)))
    assert found.layers == ("ReLU1", "ReLU3", "ReLU5")
    assert found.activations(rows_of(7), "ReLU3").shape == (7, 6)
    assert found.activations(rows_of(7), "Linear0").shape == (7, 8)
    with pytest.raises(InvalidInput, match=r"no layer 'ReLU9'.*ReLU5"):
        found.activations(rows_of(7), "ReLU9")


def test_layers_without_activation_modules_are_linear_ones():
    class Functional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = (torch.nn.Linear(n, m) for n, m in ((4, 5), (5, 1)))

        def forward(self, given):
            return self.last(torch.relu(self.first(given)))

    found = gradients.of(target_of(SCHEMA, declared(Functional(), "logits")))
    assert found.layers == ("Linear0",)


def test_layer_gradients_pull_back_through_the_layers_before():
    module = network(np.random.default_rng(5), 4, 8, 6, 1)
    found = gradients.of(target_of(SCHEMA, declared(module, "logits")))
    rows, pull = rows_of(), np.random.default_rng(1).normal(size=(40, 6))
    slope = found.layer_gradient(rows, "ReLU3", lambda output: pull)
    inputs = torch.from_numpy(rows.copy()).requires_grad_()
    (expected,) = torch.autograd.grad(module[:4](inputs), inputs, torch.from_numpy(pull))
    np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-10, atol=1e-12)
    given = []
    found.layer_gradient(rows, "ReLU3", lambda output: given.append(output) or pull)
    np.testing.assert_allclose(given[0], found.activations(rows, "ReLU3"), rtol=1e-12)


def test_a_module_is_left_as_it_was():
    module = network(np.random.default_rng(0), 4, 8, 1)
    module.insert(1, torch.nn.Dropout(0.9))
    module.train()
    found = gradients.of(target_of(SCHEMA, declared(module, "logits")))
    threads = torch.get_num_threads()
    rows = rows_of()
    np.testing.assert_array_equal(found.loss_gradient(rows), found.loss_gradient(rows))
    found.activations(rows, "ReLU2")
    assert all(part.training for part in module.modules())
    assert not any(part._forward_hooks for part in module.modules())
    assert all(p.grad is None for p in module.parameters())
    assert torch.get_num_threads() == threads


def test_many_rows_are_split_without_effect(monkeypatch):
    found = gradients.of(target_of(SCHEMA, network(np.random.default_rng(0), 4, 8, 2)))
    whole = found.loss_gradient(rows_of()), found.activations(rows_of(), "ReLU1")
    monkeypatch.setattr(gradients, "_AT_ONCE", 7)
    np.testing.assert_allclose(found.loss_gradient(rows_of()), whole[0], rtol=1e-12)
    np.testing.assert_allclose(found.activations(rows_of(), "ReLU1"), whole[1], rtol=1e-12)
    assert found.loss_gradient(rows_of(0)).shape == (0, 4)


def test_exported_programs_have_gradients_but_no_layers():
    module = network(np.random.default_rng(0), 4, 8, 2)
    dynamic = ({0: torch.export.Dim("n")},)
    program = torch.export.export(
        module.eval(), (torch.zeros(2, 4, dtype=torch.float64),), dynamic_shapes=dynamic
    )
    live, exported = (gradients.of(target_of(SCHEMA, m)) for m in (module, program))
    np.testing.assert_allclose(
        exported.loss_gradient(rows_of()), live.loss_gradient(rows_of()), rtol=1e-10
    )
    assert exported.layers == ()


def test_other_targets_have_none():
    rows = rows_of()
    codec = Codec.learn(pd.DataFrame(rows, columns=SCHEMA.names), SCHEMA)
    estimator = LogisticRegression().fit(rows, rows[:, 0] > 4)
    assert gradients.of(bind(wrap_estimator(estimator, Decision()), codec)) is None
