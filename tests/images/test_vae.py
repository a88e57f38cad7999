"""The autoencoder: it learns, its latents are whitened, and its file gives it back."""

import numpy as np
import pytest
import torch

from limi.errors import BadTable, CorruptStore, InvalidInput
from limi.images import makers, vae
from limi.images._base import as_array
from tests.images.made import draw

SMALL = vae.Settings(latent=8, width=8, steps=120, batch=16, rate=6e-3, beta=1.0, features=0)


@pytest.fixture(scope="module")
def images():
    return draw(100, np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def made(images):
    return vae.fit(images, np.random.default_rng(0), settings=SMALL)


def test_it_learns_more_than_the_mean_image(images, made):
    again = as_array(made.decode(made.encode(images))).astype(float)
    error = ((again - images) ** 2).mean()
    assert error < 0.9 * ((images.mean(axis=0) - images) ** 2).mean()


def test_latents_of_photographs_are_white(made):
    parents = made.parents.astype(float)
    assert np.allclose(parents.mean(axis=0), 0, atol=0.02)
    spread = parents.var(axis=0)
    assert (spread < 1.1).all()


def test_children_lie_between_their_parents_and_noise(made):
    drawn = made.sample_latents(4000, np.random.default_rng(1))
    assert drawn.var(axis=0).mean() == pytest.approx(1, abs=0.25)
    settings = vae.Settings(**{**SMALL.__dict__, "sampling": "gaussian"})
    anywhere = vae.Vae(
        made.network, made.mean, made.whiten, made.parents, made.shape, settings, made.device
    )
    assert anywhere.sample_latents(4000, np.random.default_rng(1)).var() == pytest.approx(
        1, abs=0.1
    )


def test_a_file_gives_the_same_images_and_damage_is_told(made, tmp_path):
    makers.save(made, tmp_path / "vae.npz")
    again = makers.load(tmp_path / "vae.npz")
    latents = made.sample_latents(6, np.random.default_rng(2))
    assert torch.equal(again.decode(latents), made.decode(latents))
    lost = vae.Vae(
        made.network,
        made.mean,
        made.whiten,
        np.full_like(made.parents, np.nan),
        made.shape,
        SMALL,
        made.device,
    )
    makers.save(lost, tmp_path / "lost.npz")
    with pytest.raises(CorruptStore, match="not a finite number"):
        makers.load(tmp_path / "lost.npz")


def test_training_leaves_torchs_own_numbers_alone(images):
    state = torch.random.get_rng_state()
    few = vae.Settings(latent=4, width=8, steps=2, batch=8, feature_steps=1)
    one, other = (vae.fit(images, np.random.default_rng(3), settings=few) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    latents = one.sample_latents(3, np.random.default_rng(0))
    assert torch.equal(one.decode(latents), other.decode(latents))


def test_sides_that_cannot_be_halved_and_odd_settings_are_refused():
    with pytest.raises(BadTable, match="the images are 18 x 18"):
        vae.fit(np.zeros((60, 18, 18, 3), np.uint8), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="multiple of 8"):
        vae.Settings(width=12)
    with pytest.raises(InvalidInput, match="parents or gaussian"):
        vae.Settings(sampling="any")


def test_a_doubling_convolution_is_that_of_the_doubled_image():
    draws = torch.Generator().manual_seed(0)
    conv = torch.nn.Conv2d(5, 3, 3, 1, 1)
    small = torch.randn(2, 5, 4, 6, generator=draws)
    large = torch.nn.functional.interpolate(small, scale_factor=2)
    assert torch.allclose(vae.doubled(small, conv), conv(large), atol=1e-5)


def test_a_decoder_is_the_plain_one_on_images_made_larger_first(made):
    """Norms and single pixels may come before an image is made larger: nothing else changes."""
    latents = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    x = made.network.start(latents).reshape(3, -1, 4, 4)
    blocks = [one for one in made.network.up if hasattr(one, "inner")]
    for block in blocks:
        x = torch.nn.functional.interpolate(x, scale_factor=2)
        x = block.past(x) + block.inner(x)
    for layer in list(made.network.up)[len(blocks) :]:
        x = layer(x)
    assert torch.allclose(made.network.decode(latents), x.sigmoid(), atol=1e-5)
