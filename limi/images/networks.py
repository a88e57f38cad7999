"""Networks that see attributes: ResNet-18, and a plain stack of convolutions as its judge.

Both are trained here from labels, by one recipe: AdamW, cosine, labels a little smoothed, and
images turned, scaled, shifted, tinted, blurred and partly covered, so that a few hundred faces
suffice. Every combination of labels is drawn alike often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, nearest
from limi.generators._training import device_of, generator_of, run_steps, set_rate, torch_for
from limi.images._base import ImageArray
from limi.images.targets import NetworkScorer
from limi.models._scores import Outputs
from limi.types import Mask

__all__ = [
    *("ARCHITECTURES", "Recipe", "augment", "blank", "build", "draw_moves", "draw_weights"),
    *("fit_scorer", "train"),
]

ARCHITECTURES = ("resnet18", "plain")
_UNROLL = 10  # steps of a round
_MOVES = 13  # numbers that an image is moved by


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained."""

    steps: int = 1500
    batch: int = 128
    rate: float = 1e-3
    decay: float = 0.05
    smoothing: float = 0.05
    turn: float = math.radians(11)
    scale: float = 0.12
    shift: float = 0.06  # of the side
    tint: float = 0.15
    hole: float = 0.25  # of the side


def build(architecture: str, generator: Any, width: int = 64) -> Any:
    """An untrained network: (n, 3, height, width) to one logit each."""
    torch_for(f"the scorer {architecture!r}")
    if architecture not in ARCHITECTURES:
        raise InvalidInput(
            f"unknown network {architecture!r}; {nearest(architecture, ARCHITECTURES)}"
        )
    layers = blank(_resnet18 if architecture == "resnet18" else _plain, width)
    draw_weights(layers, generator)
    return layers


def blank(make: Callable[..., Any], *args: Any) -> Any:
    """Layers whose weights nobody has drawn yet; torch's own stream stays where it is."""
    import torch

    with torch.random.fork_rng(devices=[]):
        return make(*args)


def draw_weights(layers: Any, generator: Any) -> None:
    """Draw the weights of layers from a generator, by He's rule; biases are zero."""
    import torch

    with torch.no_grad():
        for name, weight in layers.named_parameters():
            if weight.ndim > 1:
                fan_in = weight[0].numel()
                spread = math.sqrt(2 / fan_in) if weight.ndim == 4 else math.sqrt(1 / fan_in)
                drawn = torch.randn(weight.shape, generator=generator, device=generator.device)
                weight.copy_((drawn * spread).to(weight.device))
            elif name.endswith("bias"):
                weight.zero_()


def _resnet18(width: int) -> Any:
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, n_in: int, n_out: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(n_out) for _ in range(2)])
            same = stride == 1 and n_in == n_out
            self.past = (
                nn.Identity()
                if same
                else nn.Sequential(
                    nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
                )
            )

        def forward(self, x: Any) -> Any:
            inner = self.norms[0](self.first(x)).relu()
            return (self.norms[1](self.second(inner)) + self.past(x)).relu()

    sizes = [width, width, 2 * width, 4 * width, 8 * width]
    blocks: list[Any] = []
    for number, (n_in, n_out) in enumerate(pairwise(sizes)):
        blocks += [Block(n_in, n_out, 1 if number == 0 else 2), Block(n_out, n_out, 1)]
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8 * width, 1),
    )


def _plain(width: int) -> Any:
    """Convolutions of 5 x 5 one after the other, without a way past them."""
    from torch import nn

    layers: list[Any] = []
    n_in = 3
    for n_out in (width // 2, width, 2 * width, 4 * width):
        layers += [nn.Conv2d(n_in, n_out, 5, 2, 2), nn.GroupNorm(8, n_out), nn.GELU()]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(n_in, 1))


def train(
    network: Any,
    loss_of: Callable[[dict[str, Any]], Any],
    draw: Callable[[int], dict[str, Any]],
    n_steps: int,
    *,
    rate: float,
    decay: float,
    betas: tuple[float, float] = (0.9, 0.999),
    warm_up: int = 0,
    device: Any,
    on_step: Callable[[float], None] = lambda done: None,
) -> None:
    """Train weights by AdamW with a rate that falls as a cosine; on a GPU as one graph per round.

    `draw(k)` gives the random numbers of k steps, because a graph must not draw any itself.
    """
    import torch

    on_gpu = device.type == "cuda"
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=torch.tensor(0.0, device=device) if on_gpu else 0.0,
        betas=betas,
        weight_decay=decay,
        fused=on_gpu,
        capturable=on_gpu,
    )

    def set_for(done: int) -> None:
        rising = min(1.0, (done + 1) / (warm_up + 1))
        falling = 0.5 * (1 + math.cos(math.pi * done / max(1, n_steps)))
        set_rate(optimizer, rate * rising * falling)

    def step(inputs: dict[str, Any]) -> Any:
        loss = loss_of(inputs)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def after(done: int, loss: Any) -> bool:
        set_for(done)
        on_step(done / n_steps)
        return True

    network.train()
    set_for(0)
    run_steps(step, draw, n_steps, unroll=_UNROLL, device=device, after=after)
    network.eval()
    for weight in network.parameters():
        weight.requires_grad_(False)
        weight.grad = None
    if not all(bool(weight.isfinite().all()) for weight in network.parameters()):
        raise BadTable(
            "training diverged: the network's weights are no longer finite; try another seed"
        )


def fit_scorer(
    architecture: str,
    rng: np.random.Generator,
    device: str = "cpu",
    recipe: Recipe | None = None,
    width: int = 64,
) -> Callable[[ImageArray, Mask, Any], NetworkScorer]:
    """How scorers of an architecture are fitted to images, answers and weights."""
    torch_for(f"the scorer {architecture!r}")
    place, recipe = device_of(device), recipe or Recipe()

    def fit(images: ImageArray, answers: Mask, weights: NDArray[Any]) -> NetworkScorer:
        import torch

        draws = generator_of(rng, place)
        network = build(architecture, draws, width).to(place, memory_format=torch.channels_last)
        pixels = torch.from_numpy(np.ascontiguousarray(images)).to(place)
        wanted = torch.from_numpy(answers.astype(np.float32)).to(place)
        chances = torch.from_numpy(np.asarray(weights, dtype=np.float32)).to(place)

        def draw(n_steps: int) -> dict[str, Any]:
            n = n_steps * recipe.batch
            chosen = torch.multinomial(chances, n, replacement=True, generator=draws)
            shape = (n_steps, recipe.batch)
            return {"chosen": chosen.reshape(shape), "moves": draw_moves(shape, draws)}

        def loss_of(inputs: dict[str, Any]) -> Any:
            chosen = inputs["chosen"]
            views = augment(pixels[chosen], recipe, inputs["moves"])
            smooth = wanted[chosen] * (1 - recipe.smoothing) + recipe.smoothing / 2
            with torch.autocast(place.type, torch.bfloat16, enabled=place.type == "cuda"):
                logit = network(views.contiguous(memory_format=torch.channels_last))[:, 0]
            return torch.nn.functional.binary_cross_entropy_with_logits(logit.float(), smooth)

        train(
            *(network, loss_of, draw, recipe.steps),
            rate=recipe.rate,
            decay=recipe.decay,
            device=place,
        )
        return NetworkScorer(network, Outputs(1, "logits"), str(place), half=True)

    return fit


def draw_moves(shape: tuple[int, ...], draws: Any) -> Any:
    """What `augment` needs for images of a shape: numbers from -1 to 1."""
    import torch

    return torch.rand(*shape, _MOVES, generator=draws, device=draws.device) * 2 - 1


def augment(pixels: Any, recipe: Recipe, moves: Any) -> Any:
    """Images turned, scaled, shifted, tinted, blurred and partly covered, each in its own way."""
    import torch

    height, width = pixels.shape[1:3]
    light = pixels.permute(0, 3, 1, 2).float() / 255
    angle, size = moves[:, 0] * recipe.turn, 1 + moves[:, 1] * recipe.scale
    mirrored = torch.where(moves[:, 2] > 0, 1.0, -1.0)
    shift = moves[:, 3:5] * recipe.shift * 2
    cos, sin = angle.cos() * size, angle.sin() * size
    ways = torch.stack(
        [
            torch.stack([cos * mirrored, -sin, shift[:, 0]], 1),
            torch.stack([sin * mirrored, cos, shift[:, 1]], 1),
        ],
        1,
    )
    grid = torch.nn.functional.affine_grid(ways, light.shape, align_corners=False)
    light = torch.nn.functional.grid_sample(light, grid, padding_mode="border", align_corners=False)
    tint, shine = moves[:, 5:8, None, None], moves[:, 8:9, None, None]
    light = light * (1 + tint * recipe.tint) + shine * recipe.tint
    soft = torch.nn.functional.avg_pool2d(light, 3, 1, 1, count_include_pad=False)
    light = torch.lerp(light, soft, moves[:, 9:10, None, None].clamp(min=0))
    rows = _covered(moves[:, 10:11], height, recipe.hole)
    columns = _covered(moves[:, 11:12], width, recipe.hole)
    hole = rows[:, None, :, None] & columns[:, None, None, :] & (moves[:, 12:13, None, None] > 0)
    return torch.where(hole, 0.5, light).clamp(0, 1)


def _covered(middle: Any, side: int, share: float) -> Any:
    """(n, side): which pixels of a side lie near a middle given from -1 to 1."""
    import torch

    places = (torch.arange(side, device=middle.device) + 0.5) / side
    return (places - (middle + 1) / 2).abs() < share / 2
