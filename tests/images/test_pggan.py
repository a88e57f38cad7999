"""Progressive GANs of the public layout: the same images, and no payload is run."""

import collections
import pickle
import sys
import types
import warnings

import numpy as np
import pytest
import torch

from limi.errors import BadModel, InvalidInput
from limi.images import pggan

LATENT, DEPTHS = 12, (8, 6)


def weights(infix="module."):
    """A small generator of two scales, under the zoo's names."""
    rng = np.random.default_rng(0)
    shapes = {
        "formatLayer": (16 * DEPTHS[0], LATENT),
        "groupScale0.0": (DEPTHS[0], DEPTHS[0], 3, 3),
        "scaleLayers.0.0": (DEPTHS[1], DEPTHS[0], 3, 3),
        "scaleLayers.0.1": (DEPTHS[1], DEPTHS[1], 3, 3),
        "toRGBLayers.0": (3, DEPTHS[0], 1, 1),
        "toRGBLayers.1": (3, DEPTHS[1], 1, 1),
    }
    found = collections.OrderedDict()
    for name, shape in shapes.items():
        for part, size in (("weight", shape), ("bias", shape[:1])):
            drawn = torch.from_numpy(rng.standard_normal(size).astype(np.float32))
            found[f"{name}.{infix}{part}"] = drawn
    return found


def save(path, held, **options):
    torch.save(held, path, **options)
    return str(path)


@pytest.fixture
def zoo(tmp_path):
    """A checkpoint as the zoo writes it, with an object of its configuration."""
    module = types.ModuleType("models.utils.config")
    module.BaseConfig = type("BaseConfig", (), {"__module__": "models.utils.config"})
    names = {"models": types.ModuleType("models"), "models.utils": types.ModuleType("models.utils")}
    with pytest.MonkeyPatch.context() as patch:
        for name, one in {**names, "models.utils.config": module}.items():
            patch.setitem(sys.modules, name, one)
        config = module.BaseConfig()
        config.dimLatent = LATENT
        return save(tmp_path / "zoo.pth", {"config": config, "netG": weights()})


def plainly(latent):
    """The network of the description, pixel by pixel where that says more."""
    w = {name.replace("module.", ""): one.double().numpy() for name, one in weights().items()}

    def unit(x):
        return x / np.sqrt((x**2).mean(axis=0) + 1e-8)

    def leak(x):
        return np.where(x > 0, x, 0.2 * x)

    def convolve(x, name):
        kernel, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        k = kernel.shape[2]
        padded = np.pad(x, ((0, 0), (k // 2, k // 2), (k // 2, k // 2)))
        out = np.zeros((len(kernel), *x.shape[1:]))
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                out[:, i, j] = np.tensordot(kernel, padded[:, i : i + k, j : j + k], 3) + bias
        return out * np.sqrt(2 / kernel[0].size)

    x = w["formatLayer.weight"] @ unit(latent) + w["formatLayer.bias"]
    x = unit(leak(x * np.sqrt(2 / LATENT)).reshape(DEPTHS[0], 4, 4))
    x = unit(leak(convolve(x, "groupScale0.0")))
    x = x.repeat(2, axis=1).repeat(2, axis=2)
    for number in (0, 1):
        x = unit(leak(convolve(x, f"scaleLayers.0.{number}")))
    return convolve(x, "toRGBLayers.1")


def test_its_images_are_those_of_the_description(zoo):
    made = pggan.load(zoo)
    latents = made.sample_latents(3, np.random.default_rng(1))
    assert (made.latent_dim, made.side) == (LATENT, 8)
    colours = made.forward(torch.from_numpy(latents.astype(np.float32))).numpy()
    for number in range(3):
        assert np.allclose(colours[number], plainly(latents[number]), atol=1e-3)
    images = made.decode(latents).numpy()
    assert images.shape == (3, 8, 8, 3)
    expected = np.clip((np.clip(plainly(latents[0]), -1, 1) + 1) * 127.5 + 0.5, 0, 255)
    assert np.abs(images[0].astype(int) - expected.transpose(1, 2, 0).astype(int)).max() <= 1


def test_only_the_direction_of_a_latent_matters(zoo):
    made = pggan.load(zoo)
    latents = made.sample_latents(4, np.random.default_rng(2))
    apart = (made.decode(latents).int() - made.decode(7.5 * latents).int()).abs()
    assert int(apart.max()) <= 1


@pytest.mark.parametrize("infix", ["module.", ""])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("inner", ["netG", "avgG", None])
def test_both_spellings_and_both_formats_are_read(tmp_path, zoo, infix, zipped, inner):
    held = weights(infix) if inner is None else {inner: weights(infix)}
    path = save(tmp_path / "net.pth", held, _use_new_zipfile_serialization=zipped)
    latents = np.ones((1, LATENT))
    assert torch.equal(pggan.load(path).decode(latents), pggan.load(zoo).decode(latents))


class Payload:
    """What an attacker puts beside the weights."""

    ran = False

    def __reduce__(self):
        return (exec, ("import tests.images.test_pggan as t; t.Payload.ran = True",))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_planted_payload_is_refused_and_not_run(tmp_path, zipped):
    held = {"netG": weights(), "config": Payload()}
    path = save(tmp_path / "evil.pth", held, _use_new_zipfile_serialization=zipped)
    with pytest.raises(BadModel, match=r"was refused: it loads '[\w.]*exec'"):
        pggan.load(path)
    assert not Payload.ran


def test_a_payload_of_another_kind_of_pickle_is_refused(tmp_path):
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(BadModel):
        pggan.load(str(tmp_path / "evil.pth"))
    assert not Payload.ran


def test_a_program_is_not_opened_as_weights(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(str(tmp_path / "a.pt"))
    with pytest.raises(BadModel, match="TorchScript program"):
        pggan.load(str(tmp_path / "a.pt"))


def broken(change):
    held = weights()
    change(held)
    return held


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"a": torch.zeros(3)}, "it has no formatLayer"),
        ([1, 2], "it holds list"),
        (broken(lambda w: w.pop("scaleLayers.0.1.module.weight")), "do not fit"),
        (broken(lambda w: w.update({"toRGBLayers.1.module.bias": torch.zeros(9)})), "the shape"),
        (broken(lambda w: w["formatLayer.module.bias"].fill_(float("nan"))), "finite"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, held, words):
    with pytest.raises(BadModel, match=words):
        pggan.load(save(tmp_path / "other.pth", held))


def test_no_file_and_no_checkpoint(tmp_path):
    with pytest.raises(InvalidInput, match="there is no file"):
        pggan.load(str(tmp_path / "none.pth"))
    (tmp_path / "text.pth").write_text("weights, honestly")
    with pytest.raises(BadModel, match="it is not a file of weights"):
        pggan.load(str(tmp_path / "text.pth"))
