"""TVAE: a variational autoencoder for tables (Xu et al., NeurIPS 2019), with its encoder.

Faithfulness
- Paper: columns as in CTGAN, two layers of 128 units on either side, 128 latent numbers, Adam
  with 1e-3 and weight decay 1e-5, batches of 500, 300 epochs. A scalar is normal around tanh of
  the network's output with a learnt deviation, a block is categorical. So here, but for the rate
  and the number of steps: 3e-3 falling to 0 over at most 2,000 steps is enough (ATN 0.97 on
  census, in half a minute). Held-out rows say when to stop.
- Paper: rows are drawn from those distributions. Released code draws scalars only and takes the
  largest place of a block, which loses rare levels (ATN 0.76 instead of 0.96 on census after 1,500
  steps). Here one more normal number per column draws its cell by inverse CDF, as part of the
  latent (`latent="code+cells"`, the default): decoding stays a function, and rows can be encoded
  exactly. `latent="code"` takes the largest place and the middle scalar.
- Paper: the loss is the bound on the evidence. Released code weighs reconstruction twice, which
  makes rows less alike those of the table (`reconstruction=2` for that).
- `Settings.released()` has the published sizes and the released choices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from limi.errors import InvalidInput, nearest
from limi.generators._base import GeneratorOffers, OnStep
from limi.generators._bins import inside_interval
from limi.generators._checks import require_rows
from limi.generators._domain import HIGHEST
from limi.generators._modes import Encoded, Encoding, Modes
from limi.generators._networks import NormalLatents
from limi.generators._onehot import Blocks, CellDecoder
from limi.generators._state import Arrays, facts_of
from limi.generators._training import (
    Best,
    Tensor,
    arrays_of,
    begin,
    chunk,
    device_of,
    generator_of,
    linear,
    pad,
    run_steps,
    set_rate,
    tensors_of,
    torch_for,
    update,
)
from limi.table.schema import Schema
from limi.types import Index, Latents, Rows

__all__ = ["TVAE", "Settings", "fit", "from_state"]

OFFERS = GeneratorOffers(library="torch", has_encoder=True, on_device=True)

Latent = Literal["code+cells", "code"]

_DEVIATIONS = (0.01, 1.0)  # the least and the largest of a scalar
_FIRST_DEVIATION = 0.1
_FURTHEST = 7.0  # deviations from its middle at which a scalar is still encoded
_LOWEST = 1e-300  # a share must stay above 0
_EVALUATE_EVERY = 50  # steps
_MOST_HELD_OUT = 4000
_UNROLL = 10


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes and training."""

    epochs: int = 300  # passes over the table
    min_steps: int = 1000  # epochs are repeated up to this many steps
    max_steps: int | None = 2000  # most steps of training
    batch: int = 500  # rows per step
    code: int = 128  # numbers of a latent code (embedding_dim)
    layers: tuple[int, ...] = (128, 128)  # of the decoder; of the encoder in reverse
    rate: float = 3e-3  # learning rate
    falling: bool = True  # the rate falls to 0 along half a cosine
    decay: float = 1e-5  # weight decay (l2scale)
    reconstruction: float = 1.0  # weight of the reconstruction in the loss (loss_factor)
    held_out: float = 0.1  # share of rows that say when to stop; 0 trains on all to the end
    patience: int = 500  # steps without a better bound on held-out rows
    max_modes: int = 10  # of a number, each with a place and a width
    max_levels: int = 256  # categories with more are cut into bins
    max_rows: int = 100_000  # rows fitted on; more are drawn from at random
    latent: Latent = "code+cells"  # what a latent holds

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "code", "max_modes", "max_rows", "patience"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.held_out < 1:
            raise InvalidInput(f"held_out is {self.held_out}; it must be 0 or more and below 1")
        if self.latent not in get_args(Latent):
            raise InvalidInput(
                f"latent is {self.latent!r}; {nearest(self.latent, get_args(Latent))}"
            )

    @staticmethod
    def released() -> Settings:
        """As published: 300 epochs at 1e-3 on all rows, reconstruction twice, largest places."""
        return Settings(
            min_steps=0,
            max_steps=None,
            rate=1e-3,
            falling=False,
            reconstruction=2.0,
            held_out=0.0,
            latent="code",
        )

    def steps(self, n_rows: int) -> int:
        """Steps of training on this many rows, at most."""
        steps = max(self.epochs * max(n_rows // self.batch, 1), self.min_steps)
        return steps if self.max_steps is None else min(steps, self.max_steps)


@dataclass(frozen=True, eq=False)
class TVAE(NormalLatents):
    """A trained generator with its encoder.

    A latent is the code, standard normal numbers, and with `latent="code+cells"` one more normal
    number per column that draws its cell.
    """

    schema: Schema
    encoding: Encoding
    weights: dict[str, Tensor]
    settings: Settings
    device: Any
    notes: tuple[str, ...] = ()

    kind: ClassVar[str] = "tvae"

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space."""
        cells = len(self.schema) if self.settings.latent == "code+cells" else 0
        return self.settings.code + cells

    @property
    def cell_latents(self) -> Index:
        """Where the numbers stand that draw the cells."""
        return np.arange(self.settings.code, self.latent_dim)

    def encode(self, rows: Rows, rng: np.random.Generator) -> Latents:
        """Latents that decode to these rows, drawn from those that the encoder finds likely.

        With `latent="code"` they decode to rows near these. Numbers further than four deviations
        from every mode of their column come back at that distance.
        """
        import torch

        rows = require_rows(rows, self.schema)
        latents = np.empty((len(rows), self.latent_dim))
        size, code = self.settings.code, slice(0, self.settings.code)
        for part, whole in chunk(len(rows), self.device):
            encoded = self.encoding.encode(rows[part], rng)
            normals = rng.standard_normal((len(encoded), size), dtype=np.float32)
            draws = inside_interval(rng.random(rows[part].shape))
            with torch.no_grad():
                inputs = pad(_dense(encoded, self.encoding, self.device), whole)
                mean, log_var = _encode(self.weights, inputs, self.settings)
                drawn = pad(torch.tensor(normals, device=self.device), whole)
                codes = mean + torch.exp(log_var / 2) * drawn
                latents[part, code] = codes[: len(encoded)].cpu().numpy()
                if self.settings.latent == "code":
                    continue
                middle, scores = self._decode(codes)
                fractions = torch.tensor(draws, device=self.device)
                scalars = torch.tensor(encoded.scalars, device=self.device)
                scalars = scalars.index_select(1, self._scalar_columns).double()
                away = (scalars - middle[: len(encoded)].double()) / self._deviations
                away = torch.special.ndtr(away.clamp(-_FURTHEST, _FURTHEST))
                fractions[:, self._scalar_columns] = away.clamp(max=HIGHEST)
                places = torch.tensor(encoded.places, dtype=torch.long, device=self.device)
                shares = self._blocks.share(scores[: len(encoded)], places, fractions)
            latents[part, size:] = ndtri(np.clip(shares.cpu().numpy(), _LOWEST, HIGHEST))
        return latents

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights and encoding as arrays, settings and notes as facts."""
        facts = {"settings": asdict(self.settings), "notes": list(self.notes)}
        return arrays_of(self.weights) | self.encoding.state(), facts

    def _decode_chunk(self, latents: Tensor) -> Tensor:
        import torch

        middle, scores = self._decode(latents[:, : self.settings.code].float())
        if self.settings.latent == "code":
            return self._cells(middle, self._blocks.argmax(scores))
        shares = torch.special.ndtr(latents[:, self.settings.code :].double())
        places, passed = self._blocks.pick(scores, shares.clamp(max=HIGHEST))
        away = torch.special.ndtri(passed.index_select(1, self._scalar_columns))
        scalars = middle.double() + self._deviations * away.clamp(-_FURTHEST, _FURTHEST)
        return self._cells(scalars, places)

    def _decode(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Middles of scalars and scores of places."""
        out = _mlp(self.weights, "decoder", codes, len(self.settings.layers))
        n_scalars = self.encoding.n_scalars
        return out[:, :n_scalars].tanh(), out[:, n_scalars:]

    @cached_property
    def _deviations(self) -> Tensor:
        return _deviations(self.weights).double()

    @cached_property
    def _scalar_columns(self) -> Tensor:
        import torch

        return torch.tensor(self.encoding.scalar_columns, device=self.device)

    @cached_property
    def _cells(self) -> CellDecoder:
        return CellDecoder(self.encoding, self.device)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks.of(self.encoding.widths, self.device)


def fit(
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Settings | None = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> TVAE:
    """A TVAE trained on these rows."""
    settings = settings or Settings()
    rows, notes, place = begin("tvae", rows, schema, rng, settings.max_rows, device)
    on_step(0.0, notes[0] if notes else "mixtures")
    encoding = Encoding.fit(
        rows, schema, rng, max_modes=settings.max_modes, max_levels=settings.max_levels
    )
    trainer = _Trainer(encoding.encode(rows, rng), encoding, settings, generator_of(rng, place))
    best = Best(trainer.weights, settings.patience)
    n_steps = settings.steps(len(rows))

    def after(done: int, loss: Tensor) -> bool:
        if settings.falling:
            set_rate(trainer.adam, settings.rate * (1 + math.cos(math.pi * done / n_steps)) / 2)
        if done % _EVALUATE_EVERY and done < n_steps:
            return True
        words = f"step {done:,} of at most {n_steps:,}"
        go_on = True
        if trainer.n_held_out:
            bound = trainer.held_out_loss()
            go_on = best.offer(bound, done)
            words += f", loss {bound:.3f} on held-out rows"
        on_step(done / n_steps if go_on else 1.0, words)
        return go_on

    done = run_steps(trainer.step, trainer.draw, n_steps, unroll=_UNROLL, device=place, after=after)
    notes += best.notes(done, n_steps)
    return TVAE(schema, encoding, best.weights(), settings, place, tuple(notes))


def from_state(
    arrays: dict[str, NDArray[Any]],
    facts: dict[str, Any],
    schema: Schema,
    *,
    device: str = "cpu",
) -> TVAE:
    """The generator that gave this state, on a device."""
    torch_for("the generator 'tvae'")
    place = device_of(device)
    settings, notes = facts_of(facts, Settings)
    held = Arrays(arrays)
    encoding = Encoding.from_state(held, schema)
    weights = tensors_of(held, _shapes(encoding, settings), place)
    held.end()
    return TVAE(schema, encoding, weights, settings, place, notes)


# -- the networks -------------------------------------------------------------------------


def _sides(encoding: Encoding, settings: Settings) -> Iterator[tuple[str, str, int, int]]:
    """Of every layer the network, the end of its name, and the numbers that go in and come out."""
    width, code, layers = encoding.width, settings.code, settings.layers
    sides = {"encoder": (width, *reversed(layers), 2 * code), "decoder": (code, *layers, width)}
    for side, sizes in sides.items():
        for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            yield side, "" if i == len(layers) else str(i), n_in, n_out


def _shapes(encoding: Encoding, settings: Settings) -> dict[str, tuple[int, ...]]:
    """What shape each of the weights has."""
    shapes: dict[str, tuple[int, ...]] = {"log_deviation": (encoding.n_scalars,)}
    for side, end, n_in, n_out in _sides(encoding, settings):
        shapes |= {f"{side}_w{end}": (n_in, n_out), f"{side}_b{end}": (n_out,)}
    return shapes


def _mlp(weights: dict[str, Tensor], name: str, x: Tensor, n_layers: int) -> Tensor:
    import torch

    for i in range(n_layers):
        x = torch.relu(torch.addmm(weights[f"{name}_b{i}"], x, weights[f"{name}_w{i}"]))
    return torch.addmm(weights[f"{name}_b"], x, weights[f"{name}_w"])


def _encode(weights: dict[str, Tensor], x: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Means and logarithms of the variances of the codes of rows."""
    mean, log_var = _mlp(weights, "encoder", x, len(settings.layers)).split(settings.code, 1)
    return mean, log_var


def _deviations(weights: dict[str, Tensor]) -> Tensor:
    return weights["log_deviation"].exp().clamp(*_DEVIATIONS)


def _dense(encoded: Encoded, encoding: Encoding, device: Any) -> Tensor:
    """(n, width): the network's rows."""
    import torch

    rows = torch.zeros(len(encoded), encoding.width, device=device)
    scalars = torch.tensor(encoded.scalars[:, encoding.scalar_columns], device=device)
    rows[:, : encoding.n_scalars] = scalars
    hot = encoded.places + encoding.n_scalars + encoding.starts
    return rows.scatter_(1, torch.tensor(hot, device=device), 1.0)


class _Trainer:
    """Networks, rows and the optimiser on the device."""

    def __init__(
        self, encoded: Encoded, encoding: Encoding, settings: Settings, stream: Any
    ) -> None:
        import torch

        device = stream.device
        self.settings, self.encoding, self.stream, self.device = settings, encoding, stream, device
        self.blocks = Blocks.of(encoding.widths, device)
        self.n_scalars = encoding.n_scalars
        self.scalars = torch.tensor(encoded.scalars[:, encoding.scalar_columns], device=device)
        # A missing number has a place but no scalar to reconstruct.
        known = np.array([len(p.means) if isinstance(p, Modes) else len(p) for p in encoding.parts])
        has = encoded.places < known
        self.has_scalar = torch.tensor(
            has[:, encoding.scalar_columns], dtype=torch.float32, device=device
        )
        self.hot = torch.tensor((encoded.places + encoding.starts).astype(np.int32), device=device)
        order = torch.randperm(len(encoded), generator=stream, device=device)
        self.n_held_out = min(int(len(encoded) * settings.held_out), _MOST_HELD_OUT)
        self.held_out, self.train = order[: self.n_held_out], order[self.n_held_out :]
        self.held_out_normals = self._normals(self.n_held_out)
        self.weights = self._new_weights()
        self.adam = torch.optim.Adam(
            list(self.weights.values()),
            lr=torch.tensor(settings.rate, device=device)
            if device.type == "cuda"
            else settings.rate,
            weight_decay=settings.decay,
            fused=True,
            capturable=device.type == "cuda",
        )

    def _new_weights(self) -> dict[str, Tensor]:
        import torch

        weights = {}
        for side, end, n_in, n_out in _sides(self.encoding, self.settings):
            weights[f"{side}_w{end}"], weights[f"{side}_b{end}"] = linear(n_in, n_out, self.stream)
        first = math.log(_FIRST_DEVIATION)
        log_deviation = torch.full((self.n_scalars,), first, device=self.device)
        weights["log_deviation"] = log_deviation.requires_grad_()
        return weights

    def _normals(self, *shape: int) -> Tensor:
        import torch

        size = (*shape, self.settings.code)
        return torch.randn(*size, generator=self.stream, device=self.device)

    def draw(self, k: int) -> dict[str, Tensor]:
        """Rows and normal numbers of k steps."""
        import torch

        batch = self.settings.batch
        turns = torch.randint(
            len(self.train), (k, batch), generator=self.stream, device=self.device
        )
        return {"picked": self.train[turns], "normals": self._normals(k, batch)}

    def step(self, inputs: dict[str, Tensor]) -> Tensor:
        """One update."""
        loss = self.loss(inputs["picked"], inputs["normals"], self.settings.reconstruction)
        update(self.adam, loss, list(self.weights.values()))
        return loss.detach()

    def loss(self, picked: Tensor, normals: Tensor, reconstruction: float) -> Tensor:
        """Minus the bound on the evidence of a row, with reconstruction weighed."""
        import torch

        hot, scalars, has = self.hot[picked].long(), self.scalars[picked], self.has_scalar[picked]
        x = torch.zeros(len(picked), self.encoding.width, device=self.device)
        x[:, : self.n_scalars] = scalars
        x.scatter_(1, hot + self.n_scalars, 1.0)
        mean, log_var = _encode(self.weights, x, self.settings)
        codes = mean + torch.exp(log_var / 2) * normals
        out = _mlp(self.weights, "decoder", codes, len(self.settings.layers))
        middles, scores = out.split([self.n_scalars, self.encoding.n_places], 1)
        deviations = _deviations(self.weights)
        missed = ((scalars - middles.tanh()) / deviations).square() / 2 + deviations.log()
        told = self.blocks.log_softmax(scores).gather(1, hot)
        divergence = (mean.square() + log_var.exp() - 1 - log_var).sum() / 2
        lost = (missed * has).sum() - told.sum()
        return (reconstruction * lost + divergence) / len(picked)

    def held_out_loss(self) -> float:
        """Minus the bound on the evidence of held-out rows, always with the same normal numbers."""
        import torch

        with torch.no_grad():
            return float(self.loss(self.held_out, self.held_out_normals, 1.0))
