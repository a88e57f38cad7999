"""Small torch networks in float64, and tasks that offer their gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import torch

from limi.models import gradients
from limi.models._base import Decision
from limi.models._modules import evaluating
from limi.models._scores import Outputs
from limi.models.target import bind
from limi.models.torch import wrap
from limi.search.task import Task
from limi.table.frames import Codec
from limi.table.rows import uniform
from tests.toy import clear


def linear(weights, bias):
    """A network with the margin weights . row + bias; its two neurons are the margin's sides."""
    weights = torch.tensor(weights, dtype=torch.float64)
    first = torch.nn.Linear(len(weights), 2, dtype=torch.float64)
    last = torch.nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        first.weight[:] = torch.stack([weights, -weights])
        first.bias[:] = torch.tensor([bias, -bias])
        last.weight[:] = torch.tensor([[1.0, -1.0]])
        last.bias[:] = 0.0
    return declared(torch.nn.Sequential(first, torch.nn.ReLU(), last), "logits")


def network(rng, *sizes, last=()):
    """A ReLU network with weights drawn from rng; `last` follows the last layer."""
    parts = []
    for n_inputs, n_units in itertools.pairwise(sizes):
        layer = torch.nn.Linear(n_inputs, n_units, dtype=torch.float64)
        with torch.no_grad():
            layer.weight[:] = torch.from_numpy(rng.normal(size=(n_units, n_inputs)) / n_inputs**0.5)
            layer.bias[:] = torch.from_numpy(rng.normal(size=n_units))
        parts += [torch.nn.ReLU(), layer] if parts else [layer]
    return torch.nn.Sequential(*parts, *last)


def balanced(rng, schema, *hidden):
    """A network of two logits that decides about half of the domain each way."""
    module = network(rng, len(schema), *hidden, 2)
    with torch.no_grad():
        logits = module(torch.from_numpy(uniform(schema, 500, rng)))
        # In the widest gap of the middle: the median itself is the margin of a row.
        margins = np.unique((logits[:, 1] - logits[:, 0]).numpy())
        middle = margins[2 * len(margins) // 5 : 3 * len(margins) // 5]
        widest = np.diff(middle).argmax()
        module[-1].bias[1] -= (middle[widest] + middle[widest + 1]) / 2
    return module


def declared(module, output):
    """The same module, which says what its one output is."""
    module.output = output
    return module


def codec_of(schema):
    """A codec for rows whose codes are their cells."""
    return Codec.learn(pd.DataFrame([schema.low], columns=schema.names), schema)


def target_of(schema, module, favorable=1, codec=None):
    return bind(wrap(module, Decision(favorable=favorable)), codec or codec_of(schema))


def white(schema, module, rows, **more):
    """A task whose target is a network with gradients; scores are in float64 like them."""
    found = gradients.of(target_of(schema, module))

    outputs = Outputs(found.favorable_column, found.output)

    def score(asked):
        matrix = torch.from_numpy(np.array(found.codec.matrix(asked), dtype=float))
        with torch.no_grad(), evaluating(module):
            margin = outputs.margins(module(matrix)).numpy()
        return clear(1 / (1 + np.exp(-margin)))

    return Task(schema, score, np.asarray(rows, dtype=float), gradients=found, **more)
