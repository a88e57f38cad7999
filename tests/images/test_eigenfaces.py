"""Eigenfaces: exact directions, images back and forth, and files that are not trusted."""

import numpy as np
import pytest

from limi.errors import BadTable, CorruptStore
from limi.images import eigenfaces, makers
from tests.images.made import draw


@pytest.fixture(scope="module")
def images():
    return draw(120, np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def faces(images):
    return eigenfaces.fit(images, np.random.default_rng(0))


def test_they_are_those_of_the_images_and_their_mirror_images(images, faces):
    both = np.concatenate([images, images[:, :, ::-1]]).reshape(240, -1) / 255
    mean = both.mean(axis=0)
    values = np.linalg.svd(both - mean, compute_uv=False)[: faces.latent_dim]
    assert np.allclose(faces.mean, mean, atol=1e-5)
    assert np.allclose(faces.spread, values / np.sqrt(240), rtol=1e-2, atol=1e-4)
    products = faces.directions @ faces.directions.T
    assert np.allclose(products, np.eye(len(products)), atol=1e-3)


def test_images_come_back_from_their_latents(images, faces):
    again = faces.decode(faces.encode(images))
    assert again.shape == images.shape
    assert np.abs(again.astype(int) - images).mean() < 2.0
    latents = faces.encode(images)
    assert np.abs(latents.std(axis=0) - 1).mean() < 0.25


def test_an_image_does_not_hang_on_its_company(faces):
    latents = faces.sample_latents(40, np.random.default_rng(1))
    alone = np.concatenate([faces.decode(latents[i : i + 1]) for i in range(40)])
    apart = np.abs(alone.astype(int) - faces.decode(latents))
    assert apart.max() <= 1  # where light lies between two levels
    assert (apart > 0).mean() < 1e-3


def test_a_file_gives_the_same_images(faces, tmp_path):
    makers.save(faces, tmp_path / "faces.npz")
    again = makers.load(tmp_path / "faces.npz")
    latents = faces.sample_latents(5, np.random.default_rng(2))
    assert np.array_equal(again.decode(latents), faces.decode(latents))


def test_a_damaged_file_is_refused(faces, tmp_path):
    faces_file = tmp_path / "faces.npz"
    makers.save(
        eigenfaces.Eigenfaces(faces.mean, faces.directions, -faces.spread, (16, 16)), faces_file
    )
    with pytest.raises(CorruptStore, match="a spread is not above 0"):
        makers.load(faces_file)
    faces_file.write_bytes(b"nothing of the kind")
    with pytest.raises(CorruptStore, match="not a generator file"):
        makers.load(faces_file)


def test_images_that_are_all_the_same_teach_nothing():
    with pytest.raises(BadTable, match="nothing to learn"):
        eigenfaces.fit(np.full((60, 8, 8, 3), 7, np.uint8), np.random.default_rng(0))
