"""Progressive GANs in the layout of the public PyTorch zoo, read without running what they bring.

The files are pickles with a configuration object inside. They are opened by torch's own reader of
weights, which allows tensors and dictionaries and refuses everything else; an empty object takes
the place of the configuration. The architecture is read from the shapes of the weights.

The network: latents in units of their root mean square; a linear layer to 4 x 4; pairs of 3 x 3
convolutions, each scale twice as large as the one before; one 1 x 1 convolution to colours. Weights
are kept as standard normal numbers, and He's factor scales what a layer gives, bias and all.
"""

from __future__ import annotations

import math
import pickle
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from limi.errors import BadModel
from limi.generators._checks import check_latents
from limi.generators._training import device_of, torch_for
from limi.images._base import parts
from limi.models._files import existing, unreadable
from limi.system.foreign import reason
from limi.types import Latents

__all__ = ["Pggan", "load"]

_LEAK = 0.2
_LEAST = 1e-8  # under the root, so that nothing is divided by zero
_AT_ONCE = {"cpu": 16, "cuda": 128}
_NETWORKS = ("avgG", "netG")  # the running mean of the weights makes the better images
_NAMES = re.compile(
    r"(formatLayer|groupScale0\.0|scaleLayers\.\d+\.[01]|toRGBLayers\.\d+)\.(weight|bias)"
)
_CONFIGURATION = "models.utils.config.BaseConfig"


class _Configuration:
    """In the place of the zoo's configuration; holds nothing and does nothing."""

    def __setstate__(self, state: object) -> None:
        """Forget it."""


@dataclass(frozen=True, eq=False)
class Pggan:
    """A progressive GAN's generator."""

    weights: dict[str, Any]
    device: Any
    kind: ClassVar[str] = "pggan"

    @property
    def latent_dim(self) -> int:
        """Inputs of the first layer."""
        return int(self.weights["formatLayer.weight"].shape[1])

    @property
    def scales(self) -> int:
        """How often the sides are doubled."""
        return sum(name.endswith(".0.weight") for name in self.weights if "scaleLayers" in name)

    @property
    def side(self) -> int:
        """Pixels of a side."""
        return int(4 << self.scales)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """Standard normal numbers; only their direction matters."""
        return rng.standard_normal((n, self.latent_dim))

    def decode(self, latents: Latents) -> Any:
        """One image for each latent, as a tensor on the device."""
        import torch

        points = check_latents(latents, self.latent_dim).astype(np.float32)
        found = []
        with torch.inference_mode():
            for part in parts(len(points), _AT_ONCE.get(self.device.type, 16)):
                light = self.forward(torch.from_numpy(points[part]).to(self.device))
                light = (light.clamp(-1, 1) + 1) * 127.5 + 0.5
                found.append(light.clamp(max=255).to(torch.uint8).permute(0, 2, 3, 1).contiguous())
        if not found:
            return torch.empty((0, self.side, self.side, 3), dtype=torch.uint8)
        return torch.cat(found)

    def forward(self, latents: Any) -> Any:
        """Colours around [-1, 1], (n, 3, side, side)."""
        from torch.nn import functional

        x = self._layer("formatLayer", _unit(latents))
        x = _unit(functional.leaky_relu(x, _LEAK).reshape(len(latents), -1, 4, 4))
        x = _unit(functional.leaky_relu(self._layer("groupScale0.0", x), _LEAK))
        for scale in range(self.scales):
            x = functional.interpolate(x, scale_factor=2)
            for number in (0, 1):
                x = self._layer(f"scaleLayers.{scale}.{number}", x)
                x = _unit(functional.leaky_relu(x, _LEAK))
        return self._layer(f"toRGBLayers.{self.scales}", x)

    def _layer(self, name: str, x: Any) -> Any:
        from torch.nn import functional

        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        if weight.ndim == 2:
            made = functional.linear(x, weight, bias)
        else:
            made = functional.conv2d(x, weight, bias, padding=weight.shape[2] // 2)
        return made * math.sqrt(2 / weight[0].numel())


def _unit(x: Any) -> Any:
    """Channels in units of their root mean square."""
    return x * (x.square().mean(1, keepdim=True) + _LEAST).rsqrt()


def load(place: str, *, device: str = "cpu") -> Pggan:
    """The generator of a checkpoint; BadModel where the file is none, or asks for more."""
    path = existing(place, "pggan", (".pth", ".pt"))
    torch_for("a progressive GAN")
    held = _read(path)
    where = device_of(device)
    weights = {name: one.to(where) for name, one in _weights(held, place).items()}
    return Pggan(weights, where)


def _read(path: Path) -> Any:
    """What torch's own reader of weights makes of a file, which runs nothing that it brings.

    It knows tensors and dictionaries by a list, and refuses programs of TorchScript.
    """
    import torch

    allowed = torch.serialization.safe_globals([(_Configuration, _CONFIGURATION)])
    try:
        with warnings.catch_warnings(), allowed:
            warnings.simplefilter("ignore")  # of formats that torch wrote years ago
            return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except pickle.UnpicklingError as error:
        raise BadModel(
            f"{str(path)!r} was refused: {_cause(error)}; give a checkpoint that holds only weights"
        ) from None
    except Exception as error:  # a damaged file has an exception of any kind
        if "TorchScript" in str(error):
            raise BadModel(
                f"{str(path)!r} was refused: it is a TorchScript program, which runs code while it "
                "is read; give a checkpoint that holds only weights"
            ) from None
        raise unreadable(str(path), "a checkpoint of a progressive GAN", error) from None


def _cause(error: Exception) -> str:
    """What a file asked for that weights do not need, as far as torch says it."""
    asked = re.search(r"GLOBAL ([\w.]+)", str(error))
    if asked is None:
        return "it is not a file of weights"
    return f"it loads {asked[1][:80]!r}, which could run any program"


def _weights(held: Any, place: str) -> dict[str, Any]:
    """The generator's weights under plain names, each with the shape that the next one needs."""
    import torch

    if not isinstance(held, dict):
        raise _not_one(place, f"it holds {type(held).__name__}")
    inner = next((held[name] for name in _NETWORKS if isinstance(held.get(name), dict)), held)
    found = {}
    for name, tensor in inner.items():
        plain = str(name).replace("module.", "")
        if _NAMES.fullmatch(plain) and isinstance(tensor, torch.Tensor):
            found[plain] = tensor.detach().float()
    if "formatLayer.weight" not in found:
        raise _not_one(place, f"it has no formatLayer among {len(inner)} entries")
    try:
        return _fitting(found)
    except (KeyError, ValueError, IndexError) as error:
        raise _not_one(place, f"its layers do not fit each other ({reason(error)})") from None


def _fitting(found: dict[str, Any]) -> dict[str, Any]:
    """Those weights that make a network; ValueError where one has another shape."""
    first = found["formatLayer.weight"]
    n_scales = len({name.split(".")[1] for name in found if name.startswith("scaleLayers")})
    depth = first.shape[0] // 16
    shapes: dict[str, tuple[int, ...]] = {
        "formatLayer": (16 * depth, first.shape[1]),
        "groupScale0.0": (depth, depth, 3, 3),
    }
    for scale in range(n_scales):
        n_out = found[f"scaleLayers.{scale}.0.weight"].shape[0]
        shapes[f"scaleLayers.{scale}.0"] = (n_out, depth, 3, 3)
        shapes[f"scaleLayers.{scale}.1"] = (n_out, n_out, 3, 3)
        depth = n_out
    shapes[f"toRGBLayers.{n_scales}"] = (3, depth, 1, 1)
    kept = {}
    for layer, shape in shapes.items():
        for name, wanted in ((f"{layer}.weight", shape), (f"{layer}.bias", shape[:1])):
            if tuple(found[name].shape) != wanted:
                raise ValueError(f"{name} has the shape {tuple(found[name].shape)}, not {wanted}")
            if not found[name].isfinite().all():
                raise ValueError(f"{name} holds what is not a finite number")
            kept[name] = found[name]
    return kept


def _not_one(place: str, why: str) -> BadModel:
    return BadModel(
        f"{place!r} is not a checkpoint of a progressive GAN: {why}; the public layout has "
        "formatLayer, groupScale0, scaleLayers and toRGBLayers"
    )
