"""A small variational autoencoder of images, for a GPU: sharper than eigenfaces.

Residual blocks from the image to a few numbers and back, trained on the squared error, on the
distance of features, and on how far latents are from standard normal numbers. Its latents are the
encoded means, whitened. They are drawn near two photographs each (`parents`), which looks best and
repeats most; `gaussian` draws them anywhere, for photographs that must not be recognized.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput
from limi.generators._checks import check_latents
from limi.generators._state import Arrays, facts_of, require
from limi.generators._training import arrays_of, device_of, generator_of, tensors_of, torch_for
from limi.images._base import ImageArray, parts
from limi.images.networks import Recipe, augment, blank, draw_moves, draw_weights, train
from limi.types import Latents

__all__ = ["Settings", "Vae", "fit", "from_state"]

OnStep = Callable[[float, str], None]
_NOISE = 0.2  # of a pixel, as the squared error takes it
_AT_ONCE = 2048
_SMALLEST, _LARGEST = 16, 256  # pixels of a side
_WARM_UP = 100  # steps
_COMPARED = 64  # images by which the two lengths of numbers are compared
_MOST_OFF = 2  # grey levels between them


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a user may set."""

    latent: int = 128
    width: int = 32
    steps: int = 3000
    batch: int = 64
    rate: float = 1e-3
    beta: float = 6.0  # weight of the latents' distance from standard normal numbers
    features: float = 0.5  # weight of the distance of features; 0 trains none
    feature_steps: int = 400
    sampling: Literal["parents", "gaussian"] = "parents"
    spread: float = 0.5  # share of noise in a child of two parents

    def __post_init__(self) -> None:
        if min(self.latent, self.width, self.steps, self.batch) < 1 or self.width % 8:
            raise InvalidInput(
                "latent, width, steps and batch must be at least 1, and width a multiple of 8"
            )
        if not 0 <= self.spread <= 1:
            raise InvalidInput(f"spread is {self.spread}; it must lie between 0 and 1")
        if self.sampling not in ("parents", "gaussian"):
            raise InvalidInput(f"sampling is {self.sampling!r}; it must be parents or gaussian")


@dataclass(frozen=True, eq=False)
class Vae:
    """Encoder and decoder, with the latents of the images that they were trained on."""

    network: Any
    mean: NDArray[np.float32]  # (latent,), of the encoded means
    whiten: NDArray[np.float32]  # (latent, latent): makes their covariance the identity
    parents: NDArray[np.float32]  # (n, latent), whitened
    shape: tuple[int, int]
    settings: Settings
    device: Any
    kind: ClassVar[str] = "vae"

    @property
    def latent_dim(self) -> int:
        """Numbers of a latent."""
        return len(self.mean)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """Children of two photographs each with some noise, or standard normal numbers."""
        noise = rng.standard_normal((n, self.latent_dim), dtype=np.float32)
        if self.settings.sampling == "gaussian":
            return noise
        chosen = rng.integers(0, len(self.parents), (2, n))
        share = rng.random((n, 1), dtype=np.float32)
        mixed = np.sqrt(share) * self.parents[chosen[0]]
        mixed += np.sqrt(1 - share) * self.parents[chosen[1]]
        spread = np.float32(self.settings.spread)
        child: Latents = np.sqrt(1 - spread**2) * mixed + spread * noise
        return child

    def decode(self, latents: Latents) -> Any:
        """One image for each latent, as a tensor on the device."""
        import torch

        points = check_latents(latents, self.latent_dim).astype(np.float32)
        colour, mean = self._colour
        network, kind = self._decoder
        with torch.inference_mode():
            there = (torch.from_numpy(points).to(self.device) @ colour + mean).to(kind)
            found = [_as_bytes(network.decode(there[part])) for part in parts(len(there), _AT_ONCE)]
        return torch.cat(found) if found else torch.empty((0, *self.shape, 3), dtype=torch.uint8)

    def encode(self, images: ImageArray) -> Latents:
        """The latents of images."""
        return (_encode(self.network, images, self.device) - self.mean) @ self.whiten

    @cached_property
    def _colour(self) -> tuple[Any, Any]:
        """What undoes the whitening, on the device."""
        import torch

        inverse = np.linalg.inv(self.whiten.astype(np.float64)).astype(np.float32)
        both = (torch.from_numpy(one).to(self.device) for one in (inverse, self.mean))
        return next(both), next(both)

    @cached_property
    def _decoder(self) -> tuple[Any, Any]:
        """The network that decodes, with the type of its numbers: on a GPU half as long ones.

        They are as exact as what the GPU makes of whole ones; where they are not, for numbers that
        are too large for them, whole ones it is.
        """
        import torch

        if self.device.type != "cuda":
            return self.network, torch.float32
        short = copy.deepcopy(self.network).half()
        drawn = torch.from_numpy(self.parents[:_COMPARED]).to(self.device)
        with torch.inference_mode():
            there = drawn @ self._colour[0] + self._colour[1]
            one, other = (
                _as_bytes(network.decode(there.to(kind))).int()
                for network, kind in ((self.network, torch.float32), (short, torch.float16))
            )
            alike = int((one - other).abs().max()) <= _MOST_OFF
        return (short, torch.float16) if alike else (self.network, torch.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file keeps: arrays, and facts that JSON can hold."""
        arrays = {
            "mean": self.mean,
            "whiten": self.whiten,
            "parents": self.parents,
            "sides": np.array(self.shape, dtype=np.int64),
            **arrays_of(_weights(self.network)),
        }
        return arrays, {"settings": asdict(self.settings), "notes": []}


def _as_bytes(light: Any) -> Any:
    """(n, height, width, 3) from 0 to 255 of light (n, 3, height, width) from 0 to 1."""
    import torch

    return (light.float() * 255 + 0.5).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _weights(network: Any) -> dict[str, Any]:
    return {name.replace(".", "_"): one for name, one in network.state_dict().items()}


def _encode(network: Any, images: ImageArray, device: Any) -> NDArray[np.float32]:
    import torch

    found = []
    with torch.inference_mode():
        for part in parts(len(images), _AT_ONCE):
            pixels = torch.from_numpy(np.ascontiguousarray(images[part])).to(device)
            light = pixels.permute(0, 3, 1, 2).float() / 255
            found.append(network.encode(light)[0].float().cpu().numpy())
    return np.concatenate(found)


def _network(shape: tuple[int, int], settings: Settings) -> Any:
    """Encoder and decoder; each block halves or doubles the sides, down to a few pixels."""
    from torch import nn

    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, n_in: int, n_out: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.GroupNorm(8, n_in),
                nn.SiLU(),
                nn.Conv2d(n_in, n_out, 3, 1, 1),
                nn.GroupNorm(8, n_out),
                nn.SiLU(),
                nn.Conv2d(n_out, n_out, 3, 1, 1),
            )
            self.past = nn.Identity() if n_in == n_out else nn.Conv2d(n_in, n_out, 1)

        def forward(self, x: Any) -> Any:
            return self.past(x) + self.inner(x)

    class Doubling(Residual):
        """The same of an image with its sides doubled.

        Norms and whatever looks at one pixel give the same before as after, for a quarter of the
        work.
        """

        def forward(self, x: Any) -> Any:
            inner = doubled(self.inner[:2](x), self.inner[2])
            inner = self.inner[3:](inner)
            n, channels, height, width = inner.shape
            fours = inner.view(n, channels, height // 2, 2, width // 2, 2)
            return (fours + self.past(x)[:, :, :, None, :, None]).view(inner.shape)

    depth = max(1, int(math.log2(min(shape) / 4)))
    widths = [settings.width * min(2**level, 4) for level in range(depth + 1)]
    small = (shape[0] >> depth, shape[1] >> depth)
    flat = widths[-1] * small[0] * small[1]

    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            down: list[Any] = [nn.Conv2d(3, widths[0], 3, 1, 1)]
            for n_in, n_out in pairwise(widths):
                down += [Residual(n_in, n_out), nn.Conv2d(n_out, n_out, 3, 2, 1)]
            down += [nn.GroupNorm(8, widths[-1]), nn.SiLU(), nn.Flatten()]
            self.down = nn.Sequential(*down)
            self.told = nn.Linear(flat, 2 * settings.latent)
            self.start = nn.Linear(settings.latent, flat)
            up: list[Any] = []
            for n_in, n_out in pairwise(widths[::-1]):
                up.append(Doubling(n_in, n_out))
            up += [nn.GroupNorm(8, widths[0]), nn.SiLU(), nn.Conv2d(widths[0], 3, 3, 1, 1)]
            self.up = nn.Sequential(*up)

        def encode(self, light: Any) -> Any:
            return self.told(self.down(light)).chunk(2, dim=1)

        def decode(self, latents: Any) -> Any:
            first = self.start(latents).reshape(len(latents), widths[-1], *small)
            return self.up(first).sigmoid()

    return Network()


def doubled(x: Any, conv: Any) -> Any:
    """What a 3 x 3 convolution gives of an image with each pixel made four, without making it.

    Of the nine weights several meet the same pixel; added up before, they are a transposed
    convolution of 4 x 4 with less than half of the products.
    """
    from torch.nn import functional

    weight = conv.weight.flip(2, 3).transpose(0, 1)
    for before, after in (((0, 0, 0, 1), (0, 0, 1, 0)), ((0, 1), (1, 0))):
        weight = functional.pad(weight, before) + functional.pad(weight, after)
    return functional.conv_transpose2d(x, weight, conv.bias, stride=2, padding=1)


def _check_shape(shape: tuple[int, int]) -> None:
    halvings = max(1, int(math.log2(max(min(shape), 1) / 4))) if min(shape) >= _SMALLEST else 0
    if not halvings or max(shape) > _LARGEST or any(side % (1 << halvings) for side in shape):
        raise BadTable(
            f"the images are {shape[1]} x {shape[0]}; the vae needs sides of {_SMALLEST} to "
            f"{_LARGEST} pixels that can be halved down to a few, such as 64 (--size 64)"
        )


def fit(
    images: ImageArray,
    rng: np.random.Generator,
    *,
    settings: Settings | None = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Vae:
    """Train on images and their mirror images."""
    settings = settings or Settings()
    torch = torch_for("the generator 'vae'")
    shape = (images.shape[1], images.shape[2])
    _check_shape(shape)
    place = device_of(device)
    draws = generator_of(rng, place)
    network = blank(_network, shape, settings).to(place)
    draw_weights(network, draws)
    with torch.no_grad():
        network.up[-1].weight.mul_(0.1)  # begins near grey, so that no light is saturated
    pixels = torch.from_numpy(np.ascontiguousarray(images)).to(place)
    features = _features(pixels, settings, draws) if settings.features else None
    _train(network, pixels, features, settings, draws, on_step)
    both = np.concatenate([images, images[:, :, ::-1]])
    encoded = _encode(network, both, place).astype(np.float64)
    mean = encoded.mean(axis=0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(encoded, rowvar=False)))
    # Where no information is carried the spread is next to nothing, and is not blown up.
    spread = np.sqrt(np.maximum(values, 1e-4))
    whiten = ((vectors / spread) @ vectors.T).astype(np.float32)
    parents = ((encoded - mean) @ whiten).astype(np.float32)
    return Vae(network, mean.astype(np.float32), whiten, parents, shape, settings, place)


def _train(
    network: Any, pixels: Any, features: Any, settings: Settings, draws: Any, on_step: OnStep
) -> None:
    import torch

    device, size = pixels.device, pixels[0].numel()

    def draw(n_steps: int) -> dict[str, Any]:
        shape = (n_steps, settings.batch)
        options = {"generator": draws, "device": device}
        return {
            "chosen": torch.randint(len(pixels), shape, **options),
            "turned": torch.rand(shape, **options) < 0.5,
            "noise": torch.randn(*shape, settings.latent, **options),
        }

    def loss_of(inputs: dict[str, Any]) -> Any:
        light = pixels[inputs["chosen"]].permute(0, 3, 1, 2).float() / 255
        light = torch.where(inputs["turned"][:, None, None, None], light.flip(3), light)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            mean, log_spread = network.encode(light)
            mean, log_spread = mean.float(), log_spread.float().clamp(-8, 4)
            made = network.decode(mean + (0.5 * log_spread).exp() * inputs["noise"])
            loss = (made.float() - light).square().mean() / (2 * _NOISE**2)
            if features is not None:
                loss = loss + settings.features * _apart(features, made, light)
        apart = 0.5 * (mean.square() + log_spread.exp() - 1 - log_spread).sum(1).mean()
        return loss + settings.beta * apart / size

    train(
        *(network, loss_of, draw, settings.steps),
        rate=settings.rate,
        decay=0.01,
        betas=(0.9, 0.99),
        warm_up=min(_WARM_UP, settings.steps // 10),
        device=device,
        on_step=lambda done: on_step(done, "training the vae"),
    )


def _features(pixels: Any, settings: Settings, draws: Any) -> Any:
    """Three stages of convolutions that know two views of one image from views of others."""
    import torch
    from torch import nn

    def make() -> Any:
        stages, n_in = [], 3
        for n_out in (32, 64, 128):
            stages.append(
                nn.Sequential(
                    nn.Conv2d(n_in, n_out, 3, 2, 1),
                    nn.GroupNorm(8, n_out),
                    nn.SiLU(),
                    nn.Conv2d(n_out, n_out, 3, 1, 1),
                    nn.GroupNorm(8, n_out),
                    nn.SiLU(),
                )
            )
            n_in = n_out
        return nn.ModuleList(stages)

    stages = blank(make).to(pixels.device)
    draw_weights(stages, draws)
    recipe, n = Recipe(), min(128, len(pixels))

    def draw(n_steps: int) -> dict[str, Any]:
        keys = torch.rand(n_steps, len(pixels), generator=draws, device=draws.device)
        return {"chosen": keys.topk(n).indices, "moves": draw_moves((n_steps, 2 * n), draws)}

    def loss_of(inputs: dict[str, Any]) -> Any:
        views = augment(pixels[inputs["chosen"].repeat(2)], recipe, inputs["moves"])
        with torch.autocast(pixels.device.type, torch.bfloat16, enabled=pixels.is_cuda):
            for stage in stages:
                views = stage(views)
        codes = torch.nn.functional.normalize(views.float().mean((2, 3)), dim=1)
        alike = codes @ codes.T / 0.2
        alike = alike - 1e9 * torch.eye(2 * n, device=alike.device)
        other = torch.arange(2 * n, device=alike.device).roll(n)
        return torch.nn.functional.cross_entropy(alike, other)

    train(
        *(stages, loss_of, draw, settings.feature_steps), rate=1e-3, decay=0.05, device=draws.device
    )
    return stages


def _apart(stages: Any, one: Any, other: Any) -> Any:
    """Distance of two batches in the features of all stages, each of unit length."""
    import torch

    total = 0.0
    for stage in stages:
        one, other = stage(one), stage(other)
        first, second = (torch.nn.functional.normalize(x.float(), dim=1) for x in (one, other))
        total = total + (first - second).square().sum(1).mean()
    return total


def from_state(arrays: dict[str, Any], facts: Any, *, device: str = "cpu") -> Vae:
    """The autoencoder of a file."""
    settings, _ = facts_of(facts, Settings)
    require(settings.latent <= 4096 and settings.width <= 1024, "its network is too large")
    torch_for("the generator 'vae'")
    place = device_of(device)
    held = Arrays(arrays)
    sides = held.wholes("sides", 2)
    shape = (int(sides[0]), int(sides[1]))
    require(min(shape) >= _SMALLEST and max(shape) <= _LARGEST, f"its sides are {shape}")
    mean = held.floats("mean", settings.latent, dtype=np.float32)
    whiten = held.floats("whiten", settings.latent, settings.latent, dtype=np.float32)
    parents = held.floats("parents", None, settings.latent, dtype=np.float32)
    require(len(parents) > 0, "it has no latents to draw from")
    network = blank(_network, shape, settings).to(place).eval()
    known = {name: tuple(one.shape) for name, one in _weights(network).items()}
    tensors = tensors_of(held, known, place)
    held.end()
    names = {name.replace(".", "_"): name for name in network.state_dict()}
    network.load_state_dict({names[name]: one for name, one in tensors.items()})
    for weight in network.parameters():
        weight.requires_grad_(False)
    return Vae(network, mean, whiten, parents, shape, settings, place)
