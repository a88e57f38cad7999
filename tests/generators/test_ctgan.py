"""CTGAN: its conditions, its losses against autograd, its decoding, and what a fit survives."""

import dataclasses
import itertools
import sys

import numpy as np
import pytest
import torch

from limi.errors import InvalidInput, MissingDependency
from limi.generators import ctgan
from limi.generators._conditions import Conditions, compute_released_chances, data_chances
from limi.generators._modes import Encoded, Encoding, Modes
from limi.generators._training import generator_of
from limi.table.rows import snap
from limi.table.schema import Column, Schema
from limi.testing.generators import SCHEMA, table

FAST = ctgan.Settings(
    epochs=1,
    min_steps=4,
    batch=40,
    noise=8,
    generator_layers=(16, 12),
    discriminator_layers=(14, 10),
)

LEVELS = Schema(
    (
        Column(name="a", kind="categorical", levels=("p", "q", "r")),
        Column(name="b", kind="boolean", levels=(False, True)),
    )
)


def fitted(rows=None, schema=SCHEMA, seed=0, **changes):
    rows = table(200) if rows is None else rows
    settings = dataclasses.replace(FAST, **changes)
    return ctgan.fit(rows, schema, np.random.default_rng(seed), settings=settings)


def trainer(rows, schema, settings=FAST):
    rng = np.random.default_rng(0)
    encoding = Encoding.fit(rows, schema, rng)
    encoded = encoding.encode(rows, rng)
    conditions = Conditions.of(encoded, encoding)
    stream = generator_of(rng, torch.device("cpu"))
    return ctgan._Trainer(encoded, encoding, conditions, settings, stream)


def one_step(made):
    return {name: tensor[0] for name, tensor in made.draw(1).items()}


# -- conditions -------------------------------------------------------------------------


def two_columns():
    """2 of 8 rows hold r; b is rare, and True exactly where a is r."""
    a = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    return np.column_stack([a, a == 2]).astype(float)


def conditions_of(rows, schema):
    encoding = Encoding.fit(rows, schema, np.random.default_rng(0))
    encoded = encoding.encode(rows, np.random.default_rng(0))
    return Conditions.of(encoded, encoding), encoded, encoding


def test_generating_draws_categories_as_often_as_the_table_holds_them():
    conditions, *_ = conditions_of(two_columns(), LEVELS)
    # A column evenly, then 4, 2, 2 of 8 and 6, 2 of 8.
    assert np.allclose(data_chances(conditions), np.array([4, 2, 2, 6, 2]) / 16)
    generator = fitted(two_columns(), LEVELS)
    latents = generator.sample_latents(40_000, np.random.default_rng(0))
    assert np.allclose(latents[:, 8:].mean(axis=0), np.array([4, 2, 2, 6, 2]) / 16, atol=0.01)


def test_training_draws_categories_by_the_logarithm_of_their_count():
    conditions, *_ = conditions_of(two_columns(), LEVELS)
    a, b = np.log1p([4, 2, 2]), np.log1p([6, 2])
    expected = np.concatenate([a / a.sum(), b / b.sum()]) / 2
    assert np.allclose(conditions.training_chances, expected)


def test_real_rows_fulfil_the_conditions_that_stand_behind_them():
    made = trainer(table(300), SCHEMA)
    real = made.draw(5)["real"].reshape(-1, made.n_scalars + made.n_places + made.n_conditions)
    row = real[:, made.n_scalars : made.n_scalars + made.n_places]
    named = real[:, made.n_scalars + made.n_places :]
    assert (named.sum(1) == 1).all()
    columns = made.window[named.argmax(1), 0]  # where the column's block begins
    place = columns + made.condition_place[named.argmax(1)]
    assert (row.gather(1, place[:, None]) == 1).all()
    assert len(torch.unique(named.argmax(1))) == made.n_conditions


def test_the_released_conditions_come_from_the_first_numbers_of_the_row():
    schema = Schema(
        (
            Column(name="x", kind="numerical", low=0, high=100, step=1),
            *LEVELS.columns,
        )
    )
    modes = Modes(np.array([0.5, 0.5]), np.array([0.0, 90.0]), np.ones(2), missing=False)
    rows = np.column_stack([[0, 0, 90, 90, 90, 90, 90, 90], two_columns()]).astype(float)
    bins = Encoding.fit(rows, schema, np.random.default_rng(0)).parts[1:]
    encoding = Encoding(schema, (modes, *bins))
    encoded = encoding.encode(rows, np.random.default_rng(0))
    conditions = Conditions.of(encoded, encoding)

    chances = compute_released_chances(conditions, encoded, encoding)

    # A row begins with its scalar, 0 here, and the two modes of x. The largest of the first three
    # is 1 + the mode, and of the first two it is the first mode, or nothing, which takes place 0.
    assert np.allclose(chances, [0, 2 / 16, 6 / 16, 6 / 16, 2 / 16])


def test_the_released_conditions_of_a_table_are_those_of_its_first_column():
    rows = two_columns()
    conditions, encoded, encoding = conditions_of(rows, LEVELS)
    chances = compute_released_chances(conditions, encoded, encoding)
    # b has two categories: the largest of the first two places of a, 0 where a is p or r.
    assert np.allclose(chances, np.array([4, 2, 2, 6, 2]) / 16)
    swapped = Encoded(encoded.places[:, ::-1], encoded.scalars[:, ::-1])
    other = Encoding(Schema(LEVELS.columns[::-1]), encoding.parts[::-1])
    chances = compute_released_chances(Conditions.of(swapped, other), swapped, other)
    # Now b leads: a's first three places are b's two and a's first, of which b's is 1 first.
    assert np.allclose(chances, np.array([6, 2, 6, 2, 0]) / 16)
    assert not np.allclose(chances, data_chances(Conditions.of(swapped, other)))
    assert np.allclose(fitted(rows, LEVELS, conditions="released").chances.sum(), 1)


# -- losses -----------------------------------------------------------------------------


def test_the_gradient_penalty_is_that_of_a_second_backward_pass():
    made = trainer(table(200), SCHEMA)
    inputs = one_step(made)
    keep = inputs["keep"][2 * made.packs : 3 * made.packs]
    x = torch.randn(made.packs, len(made.critic["w0"]), requires_grad=True)

    closed = made._input_gradient(x.detach(), keep)
    slow = torch.autograd.grad(made._judge(x, keep).sum(), x, create_graph=True)[0]
    assert torch.allclose(closed, slow, atol=1e-6)

    names = ["w0", "w1", "w2"]
    weights = [made.critic[name] for name in names]
    for ours, theirs in zip(
        torch.autograd.grad((closed.norm(dim=1) - 1).square().mean(), weights),
        torch.autograd.grad((slow.norm(dim=1) - 1).square().mean(), weights),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_the_losses_are_those_of_the_paper():
    made = trainer(table(200), SCHEMA)
    inputs = one_step(made)
    s, packs = made.settings, made.packs
    before = {name: tensor.clone() for name, tensor in made.generator.items()}

    with torch.no_grad():
        fake, _ = made._generate(inputs, 0)
    real, fake = inputs["real"].view(packs, -1), fake.view(packs, -1)
    keep = inputs["keep"]
    mixed = (inputs["mix"] * real + (1 - inputs["mix"]) * fake).requires_grad_()
    slope = torch.autograd.grad(made._judge(mixed, keep[2 * packs : 3 * packs]).sum(), mixed)[0]
    expected = (
        made._judge(fake, keep[packs : 2 * packs]).mean()
        - made._judge(real, keep[:packs]).mean()
        + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
    )
    assert torch.allclose(made.critic_loss(inputs), expected, atol=1e-5)

    made.generator.update({n: t for n, t in before.items() if n.startswith(("mean", "var"))})
    rows, logits = made._generate(inputs, 1)
    errors = []
    for i, wanted in enumerate(inputs["wanted"]):
        block = made.window[wanted][made.window_pad[wanted] == 0]
        place = made.condition_place[wanted]
        errors.append(-logits[i, block].log_softmax(0)[place])
    expected = -made._judge(rows.view(packs, -1), keep[3 * packs :]).mean()
    expected = expected + torch.stack(errors).sum() / s.batch
    assert torch.allclose(made.generator_loss(inputs), expected, atol=1e-5)


def test_generated_rows_are_blocks_that_add_up_to_1_before_their_condition():
    made = trainer(table(200), SCHEMA)
    inputs = one_step(made)
    rows = made._generate(inputs, 1)[0].detach()
    scalars, places, named = rows.split([made.n_scalars, made.n_places, made.n_conditions], 1)
    assert float(scalars.abs().max()) <= 1
    assert torch.allclose(places.sum(1), torch.full((40,), float(len(SCHEMA))), atol=1e-4)
    assert torch.equal(named, inputs["conditions"][1])


def test_a_step_moves_every_weight_of_both_networks():
    made = trainer(table(200), SCHEMA)
    before = {n: t.detach().clone() for n, t in (made.generator | made.critic).items()}
    made.step(one_step(made))
    for name, tensor in (made.generator | made.critic).items():
        # The last bias of the critic adds the same to real and generated packs.
        assert torch.equal(tensor, before[name]) == (name == "b2"), name


def test_training_learns_a_table():
    """A column that follows another, after a few hundred steps on a tiny network."""
    rng = np.random.default_rng(0)
    a = rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    rows = np.column_stack([a, a == 2]).astype(float)
    generator = fitted(
        rows,
        LEVELS,
        min_steps=300,
        batch=100,
        generator_layers=(32, 32),
        discriminator_layers=(64, 64),
        generator_rate=1e-3,
        discriminator_rate=1e-3,
    )
    made = generator.decode(generator.sample_latents(2000, np.random.default_rng(1)))
    agree = np.mean((made[:, 0] == 2) == made[:, 1])
    assert agree > 0.9
    assert 0.02 < np.mean(made[:, 0] == 2) < 0.4


# -- decoding ---------------------------------------------------------------------------


def test_a_latent_decodes_alone_as_among_others_which_it_does_not_in_training():
    generator = fitted()
    latents = generator.sample_latents(60, np.random.default_rng(0))
    rows = generator.decode(latents)
    alone = np.concatenate([generator.decode(latents[i : i + 1]) for i in range(60)])
    assert np.array_equal(rows, alone, equal_nan=True)

    sizes = (*FAST.generator_layers, generator.encoding.width)
    z = torch.tensor(latents)
    weights = {n: t.clone() for n, t in generator.weights.items()}
    together = ctgan._forward(weights, z, sizes, training=True)
    half = ctgan._forward(weights, z[:30], sizes, training=True)
    assert not torch.allclose(together[:30], half, atol=1e-3)


def test_the_network_is_the_published_one():
    """Layers that see all that was made before them, and the input."""
    generator = fitted()
    w, z = generator.weights, torch.tensor(generator.sample_latents(5, np.random.default_rng(0)))
    sizes = (*FAST.generator_layers, generator.encoding.width)
    inputs, biases = w["z"].split(sizes, 1), w["b"].split(sizes)
    made = []
    for i in range(3):
        weight = torch.cat([w[f"w{i}"], inputs[i]]) if i else inputs[i]
        h = torch.cat([*made, z], 1) @ weight + biases[i]
        if i == 2:
            break
        h = (h - w[f"mean{i}"]) / (w[f"var{i}"] + 1e-5).sqrt() * w[f"gain{i}"] + w[f"shift{i}"]
        made.append(h.relu())
    scalars, scores = generator._network(z)
    assert torch.allclose(torch.cat([scalars, scores], 1)[:, :3], h[:, :3].tanh(), atol=1e-5)
    assert torch.allclose(scores, h[:, generator.encoding.n_scalars :], atol=1e-5)


def test_tensors_decode_as_arrays_do():
    generator = fitted()
    latents = generator.sample_latents(1300, np.random.default_rng(0))
    rows = generator.decode_tensor(torch.tensor(latents))
    assert rows.dtype == torch.float64
    assert np.array_equal(rows.numpy(), generator.decode(latents), equal_nan=True)
    drawn = generator.latents_at(0, torch.arange(400))
    assert drawn.shape == (400, generator.latent_dim)
    assert (drawn[:, FAST.noise :].sum(1) == 1).all()


def test_a_latent_of_noise_picks_its_condition_by_one_more_number():
    both, alone = fitted(), fitted(latent="noise")
    n_conditions = len(both.chances)
    assert both.latent_dim == FAST.noise + n_conditions
    assert alone.latent_dim == FAST.noise + 1
    # One seed draws the same noise and the same conditions for both, and they decode alike.
    rows = [g.decode(g.sample_latents(300, np.random.default_rng(3))) for g in (both, alone)]
    assert np.array_equal(rows[0], rows[1], equal_nan=True)
    drawn = [g.latents_at(3, torch.arange(300)) for g in (both, alone)]
    rows = [g.decode_tensor(z) for g, z in zip((both, alone), drawn, strict=True)]
    assert np.array_equal(rows[0].numpy(), rows[1].numpy(), equal_nan=True)


def test_conditions_that_are_no_longer_one_hot_decode():
    generator = fitted()
    latents = generator.sample_latents(50, np.random.default_rng(0))
    latents[:, FAST.noise :] += 0.3
    rows = generator.decode(latents)
    assert np.array_equal(snap(SCHEMA, rows), rows, equal_nan=True)


# -- tables -----------------------------------------------------------------------------


def test_numbers_alone_need_no_conditions():
    schema = SCHEMA.select(["age", "rate", "price"])
    generator = fitted(table(100)[:, :3], schema)
    assert generator.latent_dim == FAST.noise
    rows = generator.decode(generator.sample_latents(30, np.random.default_rng(0)))
    assert np.array_equal(snap(schema, rows), rows, equal_nan=True)


def test_thousands_of_levels_become_bins_and_come_back():
    schema = Schema(
        (
            Column(name="zip", kind="categorical", levels=tuple(f"z{i}" for i in range(5000))),
            LEVELS.columns[1],
        )
    )
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 5000, 3000), rng.integers(0, 2, 3000)]).astype(float)
    generator = fitted(rows, schema, max_levels=64)
    assert generator.encoding.width < 100
    made = generator.decode(generator.sample_latents(2000, np.random.default_rng(1)))
    assert set(made[:, 0]) <= set(rows[:, 0])
    assert len(set(made[:, 0])) > 100


# -- fitting ----------------------------------------------------------------------------


def test_steps_are_epochs_of_whole_batches_and_at_least_some():
    assert ctgan.Settings().steps(32_561) == 300 * 65
    assert ctgan.Settings().steps(600) == 3000
    assert ctgan.Settings.paper().steps(600) == 300
    assert ctgan.Settings.paper().steps(32_561) == 19_500


def test_other_seeds_give_other_generators_and_nothing_global_is_drawn():
    state = torch.get_rng_state()
    one, two = fitted(seed=0), fitted(seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(one.weights["z"], two.weights["z"])


def test_more_rows_than_asked_for_are_drawn_from_and_said():
    generator = fitted(table(500), max_rows=100)
    assert generator.notes == ("fitted on 100 of 500 rows, drawn at random",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pac": 7}, "multiple of pac"),
        ({"batch": 0}, "batch is 0"),
        ({"latent": "cond"}, "noise\\+cond"),
        ({"conditions": "real"}, "released"),
        ({"discriminator_layers": (256,)}, "use two"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        ctgan.Settings(**changes)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InvalidInput, match="cannot be used"):
        ctgan.fit(table(20), SCHEMA, np.random.default_rng(0), settings=FAST, device="nowhere")


@pytest.mark.parametrize("name", ["ctgan", "transport"])
def test_without_torch_a_sentence_names_the_extra(name, monkeypatch):
    from limi import generators

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"limi\[torch\]"):
        generators.get(name).fit(table(20), SCHEMA, np.random.default_rng(0))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_captured_round_takes_the_steps_that_plain_ones_take():
    from limi.generators import _training

    rows = table(400)
    rng = np.random.default_rng(0)
    encoding = Encoding.fit(rows, SCHEMA, rng)
    encoded = encoding.encode(rows, rng)
    conditions = Conditions.of(encoded, encoding)
    ends = []
    for capture in (False, True):
        stream = torch.Generator("cuda").manual_seed(0)
        one = ctgan._Trainer(encoded, encoding, conditions, FAST, stream)
        fixed = {n: t.clone() for n, t in one.draw(4).items()}

        turns = itertools.count()

        def draw(k, fixed=fixed, turns=turns):
            picked = torch.tensor([next(turns) % 4 for _ in range(k)], device="cuda")
            return {n: t[picked] for n, t in fixed.items()}

        done = _training.run_steps(
            one.step,
            draw,
            42,
            unroll=4,
            device=stream.device,
            after=lambda *_: True,
            capture=capture,
        )
        assert done == 42
        ends.append({n: t.detach().cpu() for n, t in one.generator.items()})
    for name, tensor in ends[0].items():
        assert torch.allclose(tensor, ends[1][name], atol=1e-3), name
