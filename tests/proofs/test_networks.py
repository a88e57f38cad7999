"""Networks: bounds hold everywhere in a box, and answers are those of all rows."""

import numpy as np
import pytest
import torch

import limi
from limi.audits.problem import prepare
from limi.errors import BadModel, InvalidInput
from limi.proofs import Answer, Stage
from limi.proofs.networks import find_network
from limi.table.rows import uniform
from tests.proofs.brute import flips_near
from tests.trees.cases import coded, draw_table, split

TOLD = {"protected": "sex", "target": "good", "favorable": 1}


def make(frame, seed, outputs=2, units=(12, 8)):
    """A network with a little training, on whole and decimal numbers."""
    rows, labels = split(frame)
    generator = torch.Generator().manual_seed(seed)
    sizes = (rows.shape[1], *units, outputs)
    layers = []
    for place in range(len(sizes) - 1):
        layer = torch.nn.utils.skip_init(torch.nn.Linear, sizes[place], sizes[place + 1])
        with torch.no_grad():
            layer.weight.normal_(0, sizes[place] ** -0.5, generator=generator)
            layer.bias.normal_(0, 0.3, generator=generator)
        layers += [layer, torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1])
    given = torch.tensor(rows.to_numpy(np.float32))
    truth = torch.tensor(labels.to_numpy())
    adam = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(60):
        out = module(given)
        logits = out if outputs == 2 else torch.cat([torch.zeros_like(out), out], 1)
        loss = torch.nn.functional.cross_entropy(logits, truth)
        adam.zero_grad()
        loss.backward()
        adam.step()
    module.output = "logits"
    return module.eval()


@pytest.fixture(scope="module")
def small():
    frame = coded(draw_table(np.random.default_rng(1), 200))
    return make(frame, 0), frame


@pytest.mark.parametrize("outputs", [1, 2])
def test_bounds_hold_everywhere_in_a_box(outputs):
    frame = coded(draw_table(np.random.default_rng(2), 200))
    problem = prepare(make(frame, 3, outputs), frame, **TOLD)
    network = find_network(problem.target)
    assert network.conform(problem.rows) < 1e-5
    rng = np.random.default_rng(0)
    centre = uniform(problem.schema, 40, rng)
    for wide in (0.0, 0.3, 3.0):
        low, high = centre - wide, centre + wide
        bounds = network.bound(low, high)
        assert (bounds.least <= bounds.most + 1e-9).all()
        for _ in range(20):
            inside = low + rng.random(low.shape) * (high - low)
            # As the model adds, in float32, and as we do.
            theirs = network.target.model.module(torch.tensor(inside.astype(np.float32)))
            theirs = theirs.detach().double().numpy()
            theirs = theirs[:, -1] - (theirs[:, 0] if outputs == 2 else 0.0)
            for margins in (network.margins(inside), theirs):
                assert (margins >= bounds.least - bounds.slack).all()
                assert (margins <= bounds.most + bounds.slack).all()
    points = network.bound(centre, centre)
    assert np.allclose(points.least, network.margins(centre))
    assert points.slack.max() < 1e-3


@pytest.mark.parametrize("seed", range(2))
def test_every_answer_is_that_of_all_rows(seed):
    frame = coded(draw_table(np.random.default_rng(seed), 150))
    near = {"age": 3, "pay": 0.05, "level": 1}
    proof = limi.certify(make(frame, seed), frame, near=near, rows=8, **TOLD)
    assert proof.kind == "network of 12-8 units"
    for row, answer in zip(proof.rows, proof.answer, strict=True):
        assert answer != Answer.UNDECIDED
        assert flips_near(proof.problem, near, row) == (answer == Answer.FLIPS)


def test_boxes_are_proven_by_bounds_and_some_stay_open_without_effort(small):
    told = TOLD | {"near": "age=3,pay=0.5,level=1"}
    full = limi.certify(*small, rows=40, **told)
    assert (full.stage == Stage.BOUNDS).any()
    short = limi.certify(*small, rows=40, max_boxes=1, **told)
    known = short.answer != Answer.UNDECIDED
    assert not known.all()
    assert (short.answer[known] == full.answer[known]).all()


def test_what_a_network_cannot_be_asked_is_told(small):
    with pytest.raises(InvalidInput, match="leave domain out"):
        limi.certify(*small, rows=5, domain=True, **TOLD)
    module = torch.nn.Sequential(*list(small[0])[:-1], torch.nn.Tanh(), list(small[0])[-1])
    module.output = "logits"
    with pytest.raises(BadModel, match="plain networks"):
        limi.certify(module.eval(), small[1], rows=5, **TOLD)


def test_gaps_that_were_never_bounded_are_not_told_as_small(small):
    """The time was over before anything was bounded."""
    ticks = iter(range(10_000))
    proof = limi.certify(*small, rows=40, max_seconds=2.0, clock=lambda: float(next(ticks)), **TOLD)
    assert (proof.own_gap > 0).any()
    assert (proof.gap[proof.answer == Answer.UNDECIDED] == 1).all()
    assert (proof.own_gap <= proof.gap).all()


def test_every_box_is_bounded_once_even_of_people_who_flip(small, monkeypatch):
    from limi.proofs import networks

    monkeypatch.setattr(networks, "_BATCH", 7)
    proof = limi.certify(*small, rows=40, near="age=3,level=1", **TOLD)
    assert (proof.answer == Answer.FLIPS).any()
    assert (proof.own_gap <= proof.gap).all()
