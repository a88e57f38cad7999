"""Columns as blocks and scalars, the way back, and the tensors that do it for many at once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import BayesianGaussianMixture

from limi.generators import _onehot
from limi.generators._bins import cut
from limi.generators._modes import Encoding, Modes, mixture
from limi.generators._onehot import BinCells, Blocks, CellDecoder, interval, pick
from limi.generators._state import Arrays
from limi.table.rows import snap
from limi.table.schema import Column, Schema
from limi.testing.generators import SCHEMA, table

CPU = torch.device("cpu")


def number(name="x", low=-1000.0, high=1000.0, step=1.0, **more):
    return Column(name=name, kind="numerical", low=low, high=high, step=step, **more)


# -- mixtures ---------------------------------------------------------------------------


def test_a_mixture_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    cells = np.concatenate([rng.normal(-20, 1, 600), rng.normal(5, 3, 300), rng.normal(60, 2, 100)])
    theirs = BayesianGaussianMixture(
        n_components=10, weight_concentration_prior=0.001, random_state=0, max_iter=500
    ).fit(cells[:, None])
    kept = np.flatnonzero(theirs.weights_ > 0.005)
    kept = kept[np.argsort(-theirs.weights_[kept])]

    weights, means, stds = mixture(*np.unique(cells, return_counts=True))

    assert len(kept) == len(weights) == 3
    assert np.allclose(weights, theirs.weights_[kept], atol=0.01)
    assert np.allclose(means, theirs.means_[kept, 0], atol=0.1)
    assert np.allclose(stds, np.sqrt(theirs.covariances_[kept, 0, 0]), rtol=0.05)


def test_counts_stand_for_repeated_cells():
    values = np.array([0.0, 1.0, 2.0, 40.0, 41.0])
    counts = np.array([50, 30, 20, 60, 40])
    once = mixture(values, counts)
    jitter = np.repeat(values, counts) + np.linspace(0, 1e-9, counts.sum())
    one_by_one = mixture(jitter, np.ones(counts.sum(), dtype=int))
    assert len(once[0]) == len(one_by_one[0])
    for ours, theirs in zip(once, one_by_one, strict=True):
        assert np.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, -3e7)])
def test_the_unit_of_a_column_plays_no_part(scale, shift):
    values = np.array([0.0, 1, 2, 3, 50, 51, 52, 200, 201])
    counts = np.array([10, 40, 40, 10, 30, 40, 30, 25, 25])
    weights, means, stds = mixture(values, counts)
    assert len(weights) == 3
    again = mixture(scale * values + shift, counts)
    assert np.allclose(again[0], weights)
    assert np.allclose(again[1], scale * means + shift, rtol=1e-6)
    assert np.allclose(again[2], scale * stds)


def test_a_constant_column_has_one_mode():
    weights, means, stds = mixture(np.array([7.0]), np.array([12]))
    assert (weights.tolist(), means.tolist(), stds.tolist()) == ([1.0], [7.0], [0.0])


def test_rare_modes_are_dropped():
    values, counts = np.array([0.0, 100.0]), np.array([999, 1])
    weights, means, _ = mixture(values, counts)
    assert len(weights) == 1
    assert abs(means[0]) < 1


# -- encoding ---------------------------------------------------------------------------


def test_scalars_measure_from_the_mode_in_four_deviations():
    rows = np.random.default_rng(0).normal(0, 3, (400, 1))
    schema = Schema((number(step=0.0),))
    encoding = Encoding.fit(rows, schema, np.random.default_rng(1))
    (modes,) = encoding.parts
    assert isinstance(modes, Modes)
    encoded = encoding.encode(rows, np.random.default_rng(2))
    place, scalar = encoded.places[:, 0], encoded.scalars[:, 0]
    assert np.abs(scalar).max() <= 0.99 + 1e-6
    back = modes.means[place] + 4 * modes.stds[place] * scalar
    assert np.allclose(back, rows[:, 0], atol=1e-4)


def test_modes_are_drawn_by_responsibility():
    modes = Modes(np.array([0.75, 0.25]), np.zeros(2), np.ones(2), missing=False)
    draws = np.random.default_rng(0).random(20_000)
    place, _ = modes.locate(np.zeros(20_000), draws)
    assert abs(place.mean() - 0.25) < 0.01


def test_what_the_fitted_column_never_held_is_encoded_too():
    schema = Schema((number(missing=True), Column(name="c", kind="categorical", levels="abc")))
    whole = np.column_stack([np.arange(20.0), np.zeros(20)])
    empty = whole.copy()
    empty[:, 0] = np.nan
    for fitted, asked in ((whole, empty), (empty, whole)):
        encoding = Encoding.fit(fitted, schema, np.random.default_rng(0))
        other = asked.copy()
        other[:, 1] = 2
        encoded = encoding.encode(other, np.random.default_rng(0))
        assert (encoded.places < encoding.widths).all()
        assert (encoded.places >= 0).all()


def test_an_encoding_comes_back_from_its_state():
    rows = table(300)
    encoding = Encoding.fit(rows, SCHEMA, np.random.default_rng(0), max_levels=2)
    again = Encoding.from_state(Arrays(encoding.state()), SCHEMA)
    ours = encoding.encode(rows, np.random.default_rng(1))
    theirs = again.encode(rows, np.random.default_rng(1))
    assert np.array_equal(ours.places, theirs.places)
    assert np.array_equal(ours.scalars, theirs.scalars)


# -- decoding cells ---------------------------------------------------------------------


def decoder(column, *modes):
    means, stds = np.array(modes).T
    part = Modes(np.full(len(means), 1 / len(means)), means, stds, column.missing)
    return CellDecoder(Encoding(Schema((column,)), (part,)), CPU)


def decode(cells, scalar, place):
    one = torch.tensor([[float(scalar)]]), torch.tensor([[place]])
    return float(cells(*one)[0, 0])


def test_a_scalar_of_0_is_the_mean_and_of_1_four_deviations_away():
    cells = decoder(number(), (10.4, 2.0), (-3.0, 0.25))
    assert decode(cells, 0, 0) == 10
    assert decode(cells, 1, 0) == 18
    assert decode(cells, -1, 0) == 2
    assert decode(cells, 1, 1) == -2
    assert decode(cells, 5, 1) == -2  # beyond the edge is the edge


@pytest.mark.parametrize(("mean", "rounded"), [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2)])
@pytest.mark.parametrize("low", [-999.0, -1000.0])
def test_halves_round_to_even(mean, rounded, low):
    assert decode(decoder(number(low=low), (mean, 1.0)), 0, 0) == rounded


def test_cells_stay_in_the_domain_and_missing_stays_missing():
    cells = decoder(number(low=0, high=9, missing=True), (8.0, 5.0))
    assert decode(cells, 1, 0) == 9
    assert decode(cells, -1, 0) == 0
    assert np.isnan(decode(cells, 0, 1))


def test_decimals_are_those_of_a_table():
    column = number(low=0.0, high=2.0, step=0.1)
    cells = decoder(column, (0.0, 0.5))
    found = np.array([[decode(cells, s, 0)] for s in np.linspace(0, 1, 201)])
    assert np.array_equal(snap(Schema((column,)), found), found)
    assert 0.3 in found


def test_a_category_is_its_level_and_a_wide_one_its_bin_at_a_fraction():
    schema = Schema((Column(name="c", kind="categorical", levels=tuple(range(9)), missing=True),))
    rows = np.array([0.0, 0, 0, 1, 5, 5, 7, 8, np.nan])[:, None]
    narrow = Encoding.fit(rows, schema, np.random.default_rng(0))
    cells = CellDecoder(narrow, CPU)
    none = torch.zeros(6, 0)
    found = cells(none, torch.arange(6)[:, None])[:, 0].numpy()
    assert np.array_equal(found, [0, 1, 5, 7, 8, np.nan], equal_nan=True)

    wide = Encoding.fit(rows, schema, np.random.default_rng(0), max_levels=2)
    assert wide.has_scalar.tolist() == [True]
    encoded = wide.encode(rows, np.random.default_rng(1))
    back = CellDecoder(wide, CPU)(
        torch.tensor(encoded.scalars), torch.tensor(encoded.places).long()
    )
    assert np.array_equal(back.numpy(), rows, equal_nan=True)


@given(seed=st.integers(0, 2**32 - 1), real=st.booleans(), max_bins=st.integers(2, 20))
def test_bins_resolve_alike_with_tensors(seed, real, max_bins):
    rng = np.random.default_rng(seed)
    cells = rng.normal(0, 5, 60) if real else rng.integers(0, 50, 60).astype(float)
    cells[rng.random(60) < 0.3] = 0.0
    cells[rng.random(60) < 0.1] = np.nan
    bins = cut(cells, real=real, max_bins=max_bins)
    order = rng.permutation(bins.n_known)
    bins = bins.in_order(order)
    asked = rng.integers(0, len(bins), 200)
    fraction = rng.random(200) * 0.999
    ours = BinCells(bins, CPU)(torch.tensor(asked), torch.tensor(fraction)).numpy()
    assert np.allclose(ours, bins.resolve(asked, fraction), atol=1e-9, equal_nan=True)


# -- blocks -----------------------------------------------------------------------------

WIDTHS = [np.array([3, 1, 40, 2, 7, 3]), np.array([1]), np.array([5, 5])]


@pytest.fixture(params=["groups", "one group"])
def grouping(request, monkeypatch):
    if request.param == "one group":
        monkeypatch.setattr(_onehot, "_alike", lambda widths, order: [order])


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.usefixtures("grouping")
def test_blocks_are_treated_one_by_one(widths):
    blocks = Blocks.of(widths, CPU)
    scores = torch.randn(
        4, int(widths.sum()), dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    weight = torch.arange(scores.numel(), dtype=torch.float64).view_as(scores) % 7
    for ours, theirs in ((blocks.softmax, "softmax"), (blocks.log_softmax, "log_softmax")):
        expected = torch.cat([getattr(p, theirs)(1) for p in scores.split(widths.tolist(), 1)], 1)
        found = ours(scores)
        assert torch.allclose(found, expected)
        slope = torch.autograd.grad((found * weight).sum(), scores)[0]
        assert torch.allclose(slope, torch.autograd.grad((expected * weight).sum(), scores)[0])
    largest = torch.stack([p.argmax(1) for p in scores.split(widths.tolist(), 1)], 1)
    assert torch.equal(blocks.argmax(scores.detach()), largest)


def test_equal_places_go_to_the_first():
    blocks = Blocks.of(np.array([3, 2]), CPU)
    assert blocks.argmax(torch.tensor([[1.0, 2.0, 2.0, 5.0, 5.0]])).tolist() == [[1, 0]]


def test_places_are_picked_as_often_as_their_chance():
    chances = torch.tensor([[0.5, 0.0, 0.3, 0.2, 0.0]]).expand(10_000, 5)
    shares = (torch.arange(10_000).double() + 0.5) / 10_000
    places, fractions = pick(chances, shares)
    assert torch.bincount(places, minlength=5).tolist() == [5000, 0, 3000, 2000, 0]
    assert 0 <= float(fractions.min()) <= float(fractions.max()) < 1
    low, width = interval(chances[:1], torch.tensor([2]))
    assert np.allclose([float(low), float(width)], [0.5, 0.3])


@pytest.mark.parametrize("share", [0.0, 1 - 2**-40])
def test_the_ends_of_a_share_are_places_too(share):
    chances = torch.tensor([[0.0, 0.6, 0.4, 0.0]])
    place, _ = pick(chances, torch.tensor([share], dtype=torch.float64))
    assert place.tolist() == [1 if share == 0 else 2]
