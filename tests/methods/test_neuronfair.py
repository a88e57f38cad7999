"""NeuronFair: the choice of neurons, its loss, and its twin."""

import numpy as np
import pandas as pd
import pytest
import torch

from limi import methods
from limi.errors import InvalidInput, MissingCapability
from limi.methods import neuronfair
from limi.methods.neuronfair import NeuronFair, choose, pulled
from limi.models import gradients
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.frames import Codec
from limi.table.rows import uniform
from limi.testing.methods import every_finding_flips, nothing_leaves_the_domain
from tests.naive import neuronfair as naive
from tests.networks import balanced, declared, linear, network, target_of, white
from tests.toy import FLIPPING, MIXED, MODEL, SCHEMA, schema_of, task

WIDE = schema_of((0, 9), (-4, 4), (0, 6), (1, 5), (0, 1), protected=["x3", "x4"])


def wide_task(seed, n=4, hidden=(8, 6)):
    rng = np.random.default_rng(seed)
    return white(WIDE, balanced(rng, WIDE, *hidden), uniform(WIDE, n, rng))


def gradients_of(seed, *sizes):
    module = network(np.random.default_rng(seed), *sizes)
    return gradients.of(target_of(WIDE, declared(module, "logits")))


def rows_of(n, seed=0):
    return uniform(WIDE, n, np.random.default_rng(seed))


# -- choosing ----------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "n"), [(0.5, 8), (0.25, 4), (0.01, 1), (1.0, 16)])
def test_a_share_of_the_layer_is_chosen(share, n):
    layer, chosen = choose(gradients_of(0, 5, 16, 4, 1), WIDE, rows_of(200), "Linear0", share)
    assert layer == "Linear0"
    assert chosen.sum() == n


@pytest.mark.parametrize("seed", range(5))
def test_the_layer_and_its_neurons_are_the_twin_s(seed):
    found = gradients_of(seed, 5, 8, 6, 7, 1)
    rows = rows_of(80, seed)
    twins = neuronfair._twins(WIDE, rows)
    z = {
        name: naive.reaction(lambda x, name=name: found.activations(x, name), rows, twins)
        for name in found.layers
    }
    layer, chosen = choose(found, WIDE, rows, None, None)
    assert layer == max(z, key=lambda name: naive.area(z[name]))
    assert chosen.tolist() == naive.biased(z[layer])
    assert 0 < chosen.sum() < len(chosen)


def test_twins_differ_in_protected_values_and_nowhere_else():
    rows = rows_of(500)
    twins = neuronfair._twins(WIDE, rows)
    assert (WIDE.combination_of(rows) != WIDE.combination_of(twins)).all()
    np.testing.assert_array_equal(rows[:, :3], twins[:, :3])
    assert len(np.unique(WIDE.combination_of(twins))) == len(WIDE.combinations)


def reading_sex():
    """Hidden units: one that reads the protected bit, three that are busy with the rest."""
    first = torch.nn.Linear(3, 4, dtype=torch.float64)
    last = torch.nn.Linear(4, 1, dtype=torch.float64)
    with torch.no_grad():
        first.weight[:] = torch.tensor([[0, 0, 1.0], [5, 5, 0], [3, 1, 0], [2, 2, 0]])
        first.bias[:] = 0.0
    return declared(torch.nn.Sequential(first, torch.nn.ReLU(), last), "logits")


def test_the_neuron_that_reads_the_protected_column_comes_first():
    schema = schema_of((0, 4), (0, 4), (0, 1), protected=["x2"])
    found = gradients.of(target_of(schema, reading_sex()))
    rows = uniform(schema, 100, np.random.default_rng(0))
    twins = neuronfair._twins(schema, rows)
    z = neuronfair._reaction(found, "ReLU1", rows, twins)
    assert z[0] == pytest.approx(np.tanh(1.0))
    assert (z[1:] == 0).all()  # these ignore it
    _, chosen = choose(found, schema, rows, None, None)
    assert chosen.tolist() == [True, False, False, False]


def test_a_model_that_ignores_the_protected_columns_still_has_neurons():
    schema = schema_of((0, 4), (0, 4), (0, 1), protected=["x2"])
    here = white(
        schema, linear([1.0, -1.0, 0.0], -0.5), uniform(schema, 20, np.random.default_rng(0))
    )
    layer, chosen = choose(here.gradients, schema, here.rows, None, None)
    assert layer == "ReLU1"
    assert chosen.all()
    assert len(run(NeuronFair(exploit_steps=5), here, Budget(), 0).findings) == 0


# -- loss --------------------------------------------------------------------------------


def activations(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.maximum(rng.normal(size=(2 * n, 6)), 0) * 2, np.array([1, 1, 0, 1, 0, 1], dtype=bool)


@pytest.mark.parametrize("loss", ["tensorflow", "derivative"])
def test_the_pull_is_the_twin_s(loss):
    output, mask = activations(7)
    both = pulled(output, mask, loss)
    for i in range(7):
        own, other = output[i], output[i + 7]
        np.testing.assert_allclose(both[i], naive.pulled(own, other, mask, loss), rtol=1e-10)
        np.testing.assert_allclose(both[i + 7], naive.pulled(other, own, mask, loss), rtol=1e-10)
    assert (both[:, ~mask] == 0).all()


def test_swapping_a_row_and_its_partner_swaps_the_gradients():
    output, mask = activations(5)
    swapped = np.concatenate([output[5:], output[:5]])
    both, again = pulled(output, mask, "tensorflow"), pulled(swapped, mask, "tensorflow")
    np.testing.assert_array_equal(both, np.concatenate([again[5:], again[:5]]))


def test_the_derivative_is_that_of_finite_differences():
    output, mask = activations(4)
    targets = np.where(mask, np.concatenate([output[4:], output[:4]]), 0.0)

    def loss(given):
        kept = np.where(mask, given, 0.0)
        logs = kept - np.log(np.exp(kept).sum(axis=1, keepdims=True))
        return -(targets * logs).sum(axis=1)

    found = pulled(output, mask, "derivative")
    for k in range(6):
        step = np.zeros(6)
        step[k] = 1e-6
        rise = (loss(output + step) - loss(output - step)) / 2e-6
        np.testing.assert_allclose(found[:, k], rise, atol=1e-6)


def test_gradients_of_pairs_are_the_twin_s():
    here = wide_task(3)
    mask = np.array([1, 0, 1, 1, 0, 0], dtype=bool)
    neurons = neuronfair._Neurons(
        here.gradients, "ReLU3", mask, 0.0, "tensorflow", np.random.default_rng(0)
    )
    rows, partner = rows_of(9, 1), rows_of(9, 2)
    own, other = neurons.gradients(rows, partner)
    for i in range(9):
        for slope, first, second in ((own, rows, partner), (other, partner, rows)):
            expected = naive.gradient(
                here.gradients, "ReLU3", mask, "tensorflow", first[i], second[i]
            )
            np.testing.assert_allclose(slope[i], expected, rtol=1e-9, atol=1e-12)


def test_further_neurons_are_drawn_anew_after_some_steps():
    here = wide_task(3, hidden=(40,))
    mask = np.zeros(40, dtype=bool)
    mask[:3] = True
    neurons = neuronfair._Neurons(
        here.gradients, "ReLU1", mask, 0.05, "tensorflow", np.random.default_rng(0)
    )
    drawn = []
    for _ in range(11):
        neurons.gradients(here.rows, here.rows)
        drawn.append(tuple(np.flatnonzero(neurons._chosen)))
    assert all(len(chosen) == 3 + 2 and chosen[:3] == (0, 1, 2) for chosen in drawn)
    assert [drawn[i] == drawn[i + 1] for i in range(10)] == [True] * 4 + [False] + [True] * 4 + [
        False
    ]


# -- walks -------------------------------------------------------------------------------


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(5))
def test_a_walk_to_a_flip_is_the_twin_s(seed):
    here = wide_task(seed, n=1)
    method = NeuronFair(extra=0.0, explore_steps=15)
    walked = [b.rows[0] for b in method.explore(Session(here), np.random.default_rng(seed))]
    layer, mask = choose(here.gradients, WIDE, here.rows, None, None)

    def slopes(row, partner):
        return [
            naive.gradient(here.gradients, layer, mask, "tensorflow", *pair)
            for pair in ((row, partner), (partner, row))
        ]

    expected, _ = naive.explore(
        here.score, slopes, WIDE, here.rows[0], 15, 0.1, np.random.default_rng(seed)
    )
    np.testing.assert_array_equal(walked, expected)


def directions(here, seed=0, steps=12):
    method = NeuronFair(extra=0.0, explore_steps=steps)
    rows = np.array([b.rows[0] for b in method.explore(Session(here), np.random.default_rng(seed))])
    return np.diff(rows, axis=0)


def test_rows_without_a_gradient_move_at_random():
    here = white(SCHEMA, linear([0.0, 0.0, 0.0], -1.0), [[2, 2, 0]])
    moves = directions(here)
    assert set(np.unique(moves)) == {-1.0, 0.0, 1.0}
    assert (moves[:, 2] == 0).all()


def test_directed_walks_go_where_both_gradients_point():
    here = wide_task(21)
    checked = Session(here).check(rows_of(2000))
    seeds = checked[checked.flips][:40]
    method = NeuronFair(exploit_walk="directed", extra=0.0, exploit_steps=1)
    (after,) = method.exploit(Session(here), seeds, np.random.default_rng(0))
    neurons = method._neurons(here, np.random.default_rng(0))
    own, other = neurons.gradients(seeds.rows, seeds.partner)
    moves = after.rows - seeds.rows
    changed = (moves != 0) & (own + other != 0)
    assert changed.sum() > 10
    np.testing.assert_array_equal(moves[changed], np.sign(own + other)[changed])


# -- the whole ---------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["best", "paper", "strong"])
def test_every_finding_flips(preset):
    here = wide_task(22, n=60)
    method = methods.parse("neuronfair", {"preset": preset, "exploit_steps": 20})
    found = run(method, here, Budget(), 0).findings.all()
    assert len(found) > 30
    assert check_rows(here.score, WIDE, found.rows).flips.all()
    assert set(found.origin) == {"explore", "exploit"}


def test_all_nine_points_are_found():
    here = white(SCHEMA, linear(MODEL.weights, MODEL.bias), [[2, 2, 0], [0, 4, 1]])
    ran = run(NeuronFair(exploit_steps=3000), here, Budget(max_findings=9), 1)
    assert {tuple(row[:2]) for row in ran.findings.all().rows} == FLIPPING


def test_mixed_tables_with_missing_and_real_cells():
    schema = MIXED.protect(["sex"])

    class Filling(torch.nn.Module):
        def forward(self, given):
            return torch.nan_to_num(given, nan=1.5)

    module = torch.nn.Sequential(Filling(), *linear([0.03, 0.8, -0.3, 0.2, 0.1, 0.1, -0.4], -1.5))
    found = gradients.TorchGradients(module, mixed_codec(schema), output="logits")

    def score(rows):
        return 1 / (1 + np.exp(-found.margins(rows)[0]))

    def make_task(**more):
        rng = np.random.default_rng(0)
        rows = uniform(schema, 120, rng)
        rows[rng.random(120) < 0.2, 5] = np.nan
        return Task(schema, score, rows, gradients=found, **more)

    for check in (every_finding_flips, nothing_leaves_the_domain):
        check(lambda: NeuronFair(exploit_steps=12, explore_steps=10), make_task)


def mixed_codec(schema):
    frame = pd.DataFrame(
        {
            "age": [20, 30],
            "sex": ["F", "M"],
            "job": ["a", None],
            "rank": ["low", "mid"],
            "vet": [False, True],
            "debt": [0.5, np.nan],
            "price": [0.1, 0.2],
        }
    )
    return Codec.learn(frame, schema)


def test_targets_without_neurons_are_refused_before_the_first_row():
    with pytest.raises(MissingCapability, match=r"neurons.*torch"):
        run(NeuronFair(), task(), Budget(), 0)
    assert task().capabilities == frozenset()
    assert wide_task(0).capabilities == {"gradient", "neurons"}


def test_settings():
    with pytest.raises(InvalidInput, match="share is 0"):
        NeuronFair(share=0.0)
    with pytest.raises(InvalidInput, match="extra is 2"):
        NeuronFair(extra=2.0)
    here = wide_task(0)
    with pytest.raises(InvalidInput, match="no layer 'ReLU9'"):
        run(NeuronFair(layer="ReLU9"), here, Budget(), 0)
