"""CTGAN: a conditional GAN for tables (Xu et al., NeurIPS 2019), as the LIMI paper uses it.

Faithfulness
- Paper: mode-specific normalisation, condition vector, training by sampling with log frequencies,
  packs of 10, WGAN loss with gradient penalty, 300 epochs in batches of 500. All of it here.
- Released code: Adam with 2e-4 and betas 0.5 and 0.9, weight decay 1e-6 for the generator and 0
  for the discriminator. So here.
- Released code fits mixtures to all rows with scikit-learn; here they are fitted to distinct
  values with counts, with the same priors and the same optimum up to the start (`_modes`).
- An epoch is one step on tables of up to 999 rows, so 300 epochs hardly train (credit: ATN about
  0.65). The default takes at least `min_steps` = 3,000; `Settings.paper()` keeps the 300 epochs.
- The latent of LIMI is the generator's whole input, 128 normal numbers and the condition vector,
  so that its search leaves the one-hot conditions (`latent="noise+cond"`, the default here). With
  `latent="noise"` one more normal number picks the condition, which then stays a real one.
- Released code draws conditions for generation from the wrong columns (`conditions="released"`);
  the default draws them as often as the table holds them (`conditions="data"`).
- CTGAN samples with Gumbel noise and batch statistics; LIMI decodes with softmax and running
  statistics, which makes decoding a function of the latent. So here: the largest place is taken.
- The gradient penalty is differentiated in closed form: the discriminator is piecewise linear, so
  its input gradient is a product of matrices and needs no second backward pass.
- Cells leave the generator inside the schema's domain; the released code clips them later.
- Categories of more than `max_levels` levels are cut into bins and keep a scalar; the published
  one-hot vector would have a place a level. Missing is one more category or mode.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from limi.errors import InvalidInput, nearest
from limi.generators._base import GeneratorOffers, OnStep
from limi.generators._conditions import Conditions, compute_released_chances, data_chances
from limi.generators._counter_rng import normals
from limi.generators._modes import Encoded, Encoding
from limi.generators._networks import NetworkOnDevice
from limi.generators._onehot import Blocks, CellDecoder
from limi.generators._state import Arrays, facts_of, require
from limi.generators._training import (
    Tensor,
    arrays_of,
    begin,
    device_of,
    finish,
    generator_of,
    linear,
    run_steps,
    tensors_of,
    torch_for,
    update,
)
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = ["CTGAN", "Settings", "fit", "from_state"]

OFFERS = GeneratorOffers(library="torch", on_device=True)

Latent = Literal["noise+cond", "noise"]
ConditionSource = Literal["data", "released"]

_SLOPE = 0.2  # of the leaky ReLU
_MOMENTUM = 0.1  # of the running statistics
_EPSILON = 1e-5
_DRAWN = 1 << 24  # random numbers drawn at once, at most, and with them steps unrolled
_REPORTS = 200  # times that progress is told


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The paper's parameters, and what to do where the table is small, large or wide."""

    epochs: int = 300  # passes over the table
    min_steps: int = 3000  # on small tables epochs are repeated up to this many steps
    batch: int = 500  # rows per step
    pac: int = 10  # rows that the discriminator judges together
    noise: int = 128  # numbers of a latent that are noise (|z|)
    generator_layers: tuple[int, ...] = (256, 256)  # units of each layer
    discriminator_layers: tuple[int, int] = (256, 256)  # units of each layer
    generator_rate: float = 2e-4  # learning rate
    generator_decay: float = 1e-6  # weight decay
    discriminator_rate: float = 2e-4  # learning rate
    discriminator_decay: float = 0.0  # weight decay
    betas: tuple[float, float] = (0.5, 0.9)  # of the optimiser Adam
    penalty: float = 10.0  # lambda of the gradient penalty
    temperature: float = 0.2  # tau of the Gumbel softmax
    dropout: float = 0.5  # of the discriminator
    max_modes: int = 10  # of a number, each with a place and a width
    max_levels: int = 256  # categories with more are cut into bins
    max_rows: int = 100_000  # rows fitted on; more are drawn from at random
    latent: Latent = "noise+cond"  # what a latent holds
    conditions: ConditionSource = "data"  # where conditions are drawn from

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "pac", "noise", "max_modes", "max_rows"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.batch % self.pac:
            raise InvalidInput(
                f"batch is {self.batch} and pac {self.pac}; batch must be a multiple of pac"
            )
        if len(self.discriminator_layers) != 2:
            raise InvalidInput(
                f"discriminator_layers has {len(self.discriminator_layers)} layers; use two"
            )
        for name, known in (
            ("latent", get_args(Latent)),
            ("conditions", get_args(ConditionSource)),
        ):
            if getattr(self, name) not in known:
                given = getattr(self, name)
                raise InvalidInput(f"{name} is {given!r}; {nearest(str(given), known)}")

    @staticmethod
    def paper() -> Settings:
        """300 epochs whatever the table: 300 steps on one of 600 rows, which hardly trains."""
        return Settings(min_steps=0)

    def steps(self, n_rows: int) -> int:
        """Steps of training on this many rows."""
        return max(self.epochs * max(n_rows // self.batch, 1), self.min_steps)


@dataclass(frozen=True, eq=False)
class CTGAN(NetworkOnDevice):
    """A trained generator.

    A latent is `noise` standard normal numbers and the condition vector or, with
    `latent="noise"`, one more normal number that picks the condition by inverse CDF.
    """

    schema: Schema
    encoding: Encoding
    weights: dict[str, Tensor]  # of the generator network, with running statistics
    chances: NDArray[np.float64]  # of each condition, in generation
    settings: Settings
    device: Any
    notes: tuple[str, ...] = ()

    kind: ClassVar[str] = "ctgan"

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space."""
        more = len(self.chances) if self.settings.latent == "noise+cond" else self._n_pickers
        return self.settings.noise + more

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim) float32: normal noise, and conditions as `settings` says."""
        width = self.settings.noise + self._n_pickers
        drawn = rng.standard_normal((n, width), dtype=np.float32)
        if self.settings.latent == "noise" or not self._n_pickers:
            return drawn
        latents = np.zeros((n, self.latent_dim), dtype=np.float32)
        latents[:, : self.settings.noise] = drawn[:, :-1]
        picked = np.searchsorted(self._ends, ndtr(drawn[:, -1].astype(np.float64)), side="right")
        latents[np.arange(n), self.settings.noise + picked] = 1.0
        return latents

    def latents_at(self, seed: int, numbers: Tensor) -> Tensor:
        """The latents of these numbers in the stream of a seed; the same on every device."""
        import torch

        noise, width = self.settings.noise, self.settings.noise + self._n_pickers
        latents = torch.zeros(len(numbers), self.latent_dim, device=numbers.device)
        normals(seed, numbers, latents[:, :width])
        if self.settings.latent == "noise" or not self._n_pickers:
            return latents
        # The last of the numbers picks the condition whose vector takes its place.
        picked = self._pick(latents[:, noise])
        latents[:, noise] = 0.0
        return latents.scatter_(1, noise + picked[:, None], 1.0)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights, encoding and conditions as arrays, settings and notes as facts."""
        arrays = arrays_of(self.weights) | self.encoding.state() | {"chances": self.chances}
        return arrays, {"settings": asdict(self.settings), "notes": list(self.notes)}

    # -- the network in evaluation ------------------------------------------------------

    def _decode_chunk(self, latents: Tensor) -> Tensor:
        scalars, scores = self._network(latents.float())
        return self._cells(scalars, self._blocks.argmax(scores))

    def _network(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Scalars in [-1, 1] and scores of places."""
        import torch

        noise = self.settings.noise
        if self.settings.latent == "noise" and self._n_pickers:
            latents = torch.cat([latents[:, :noise], self._conditions_at(latents[:, noise])], 1)
        out = _evaluate(self._folded, latents)
        return torch.tanh(out[:, : self.encoding.n_scalars]), out[:, self.encoding.n_scalars :]

    def _conditions_at(self, numbers: Tensor) -> Tensor:
        import torch

        return torch.nn.functional.one_hot(self._pick(numbers), len(self.chances)).float()

    def _pick(self, numbers: Tensor) -> Tensor:
        """The condition that each normal number stands for."""
        import torch

        shares = torch.special.ndtr(numbers.double())
        return torch.searchsorted(self._ends_tensor, shares, right=True)

    @cached_property
    def _folded(self) -> list[tuple[Tensor, Tensor]]:
        return _folded(self.weights, (*self.settings.generator_layers, self.encoding.width))

    @property
    def _n_pickers(self) -> int:
        return int(len(self.chances) > 0)

    @cached_property
    def _ends(self) -> NDArray[np.float64]:
        """Upper ends of the conditions' shares; the last that can occur reaches infinity."""
        ends = np.cumsum(self.chances)
        ends[np.flatnonzero(self.chances)[-1] :] = np.inf
        return ends

    @cached_property
    def _ends_tensor(self) -> Tensor:
        import torch

        return torch.tensor(self._ends, device=self.device)

    @cached_property
    def _cells(self) -> CellDecoder:
        return CellDecoder(self.encoding, self.device)

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks.of(self.encoding.widths, self.device, calls_are_dear=False)


def fit(
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Settings | None = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> CTGAN:
    """A CTGAN trained on these rows."""
    settings = settings or Settings()
    rows, notes, place = begin("ctgan", rows, schema, rng, settings.max_rows, device)
    on_step(0.0, notes[0] if notes else "mixtures")
    encoding = Encoding.fit(
        rows, schema, rng, max_modes=settings.max_modes, max_levels=settings.max_levels
    )
    encoded = encoding.encode(rows, rng)
    conditions = Conditions.of(encoded, encoding)
    if settings.conditions == "released":
        chances = compute_released_chances(conditions, encoded, encoding)
    else:
        chances = data_chances(conditions)
    trainer = _Trainer(encoded, encoding, conditions, settings, generator_of(rng, place))
    n_steps = settings.steps(len(rows))
    every = max(n_steps // _REPORTS, 1)
    told = 0

    def after(done: int, loss: Tensor) -> bool:
        nonlocal told
        if done - told >= every or done == n_steps:
            told = done
            on_step(done / n_steps, f"step {done:,} of {n_steps:,}")
        return True

    run_steps(trainer.step, trainer.draw, n_steps, unroll=trainer.unroll, device=place, after=after)
    weights = finish(trainer.generator)
    return CTGAN(schema, encoding, weights, chances, settings, place, tuple(notes))


def from_state(
    arrays: dict[str, NDArray[Any]],
    facts: dict[str, Any],
    schema: Schema,
    *,
    device: str = "cpu",
) -> CTGAN:
    """The generator that gave this state, on a device."""
    torch_for("the generator 'ctgan'")
    place = device_of(device)
    settings, notes = facts_of(facts, Settings)
    held = Arrays(arrays)
    encoding = Encoding.from_state(held, schema)
    chances = held.floats("chances", int(encoding.widths[encoding.discrete].sum()))
    fair = bool((chances >= 0).all()) and (not len(chances) or abs(chances.sum() - 1) < 1e-6)
    require(fair, "the chances of its conditions do not add up to 1")
    sizes = (*settings.generator_layers, encoding.width)
    weights = tensors_of(held, _shapes(settings.noise + len(chances), sizes), place)
    held.end()
    spread = all(bool((weights[f"var{i}"] >= 0).all()) for i in range(len(sizes) - 1))
    require(spread, "a variance is below 0")
    return CTGAN(schema, encoding, weights, chances, settings, place, notes)


# -- the networks -------------------------------------------------------------------------


def _shapes(n_in: int, sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """What shape each of the generator's weights has."""
    shapes: dict[str, tuple[int, ...]] = {"z": (n_in, sum(sizes)), "b": (sum(sizes),)}
    for i, size in enumerate(sizes):
        if i:
            shapes[f"w{i}"] = (sum(sizes[:i]), size)
        if i < len(sizes) - 1:
            shapes |= {f"{name}{i}": (size,) for name in ("gain", "shift", "mean", "var")}
    return shapes


def _forward(
    weights: dict[str, Tensor], z: Tensor, sizes: tuple[int, ...], *, training: bool
) -> Tensor:
    """The generator: every layer sees the input and all layers before it.

    The published network joins what a layer makes to what it was given. Here the input's share of
    all layers is one product, which is the same sum and cheaper.
    """
    import torch

    shares = torch.addmm(weights["b"], z, weights["z"]).split(sizes, 1)
    made: list[Tensor] = []
    for i, share in enumerate(shares):
        before = torch.cat(made, 1) if len(made) > 1 else made[0] if made else None
        h = share if before is None else torch.addmm(share, before, weights[f"w{i}"])
        if i == len(sizes) - 1:
            return h
        h = torch.nn.functional.batch_norm(
            h,
            weights[f"mean{i}"],
            weights[f"var{i}"],
            weights[f"gain{i}"],
            weights[f"shift{i}"],
            training,
            _MOMENTUM,
            _EPSILON,
        )
        made.append(torch.relu(h))
    raise AssertionError("the last layer returns")


def _folded(weights: dict[str, Tensor], sizes: tuple[int, ...]) -> list[tuple[Tensor, Tensor]]:
    """Weights and biases of the layers in evaluation, running statistics multiplied in.

    A layer takes the input and then what the layers before it made.
    """
    import torch

    w = {name: tensor.detach().double() for name, tensor in weights.items()}
    layers = []
    for i, (inputs, bias) in enumerate(
        zip(w["z"].split(sizes, 1), w["b"].split(sizes), strict=True)
    ):
        matrix = torch.cat([inputs, w[f"w{i}"]]) if i else inputs
        if i < len(sizes) - 1:
            scale = w[f"gain{i}"] / torch.sqrt(w[f"var{i}"] + _EPSILON)
            matrix, bias = matrix * scale, (bias - w[f"mean{i}"]) * scale + w[f"shift{i}"]
        layers.append((matrix.T.contiguous().float(), bias.float()))
    return layers


def _evaluate(layers: list[tuple[Tensor, Tensor]], z: Tensor) -> Tensor:
    """`_forward` in evaluation: one product a layer, over everything made so far."""
    import torch

    *inner, (last, last_bias) = layers
    known = z.new_empty((len(z), last.shape[1]))
    end = z.shape[1]
    known[:, :end] = z
    for weights, bias in inner:
        made = torch.nn.functional.linear(known[:, :end], weights, bias)
        end += len(bias)
        torch.clamp_min(made, 0.0, out=known[:, end - len(bias) : end])
    return torch.nn.functional.linear(known, last, last_bias)


class _Trainer:
    """Networks, tables and optimisers on the device; one step updates both networks."""

    def __init__(
        self,
        encoded: Encoded,
        encoding: Encoding,
        conditions: Conditions,
        settings: Settings,
        stream: Any,
    ) -> None:
        import torch

        device = stream.device
        self.settings, self.stream, self.device = settings, stream, device
        self.n_rows, self.n_conditions = len(encoded), len(conditions)
        self.n_scalars, self.n_places = encoding.n_scalars, encoding.n_places
        self.sizes = (*settings.generator_layers, encoding.width)
        self.packs = settings.batch // settings.pac
        self.blocks = Blocks.of(encoding.widths, device)
        numbers = settings.batch * (self.n_places + settings.noise + 3 * len(conditions)) * 2
        self.unroll = int(np.clip(_DRAWN // numbers, 1, 16))

        def there(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        self.scalars = there(encoded.scalars[:, encoding.scalar_columns])
        self.hot = there(encoded.places + (encoding.n_scalars + encoding.starts).astype(np.int32))
        if self.n_conditions:
            self.training_ends = there(np.cumsum(conditions.training_chances)[:-1])
            self.counts, self.starts = there(conditions.counts), there(conditions.starts)
            self.lists = there(conditions.rows)
            self.condition_place = there(conditions.places)
            # Where the logits of each condition's column stand, padded by its first.
            widths = encoding.widths[conditions.columns]
            inside = np.arange(widths.max()) < widths[:, None]
            at = np.where(inside, np.arange(widths.max()), 0)
            at += encoding.starts[conditions.columns][:, None]
            self.window = there(at)
            self.window_pad = there(np.where(inside, 0.0, -np.inf).astype(np.float32))
        self.generator = self._new_generator()
        self.critic = self._new_critic()
        halves = torch.full((2 * self.packs, 1), 1 / self.packs, device=device)
        halves[: self.packs] *= -1
        self.signs = halves  # real packs should score high, generated ones low
        # Constants of a captured step must live on the device.
        self.one, self.slope = torch.tensor([1.0, _SLOPE], device=device)
        self.generator_names = [n for n, t in self.generator.items() if t.requires_grad]
        more = {"betas": settings.betas, "fused": True, "capturable": device.type == "cuda"}
        self.generator_adam = torch.optim.Adam(
            [self.generator[name] for name in self.generator_names],
            lr=settings.generator_rate,
            weight_decay=settings.generator_decay,
            **more,
        )
        self.critic_adam = torch.optim.Adam(
            list(self.critic.values()),
            lr=settings.discriminator_rate,
            weight_decay=settings.discriminator_decay,
            **more,
        )

    def _new_generator(self) -> dict[str, Tensor]:
        import torch

        weights: dict[str, Tensor] = {}
        n_in = self.settings.noise + self.n_conditions
        inputs, biases = [], []
        for i, size in enumerate(self.sizes):
            made = sum(self.sizes[:i])
            w, b = linear(n_in + made, size, self.stream)
            inputs.append(w[made:].detach())
            biases.append(b.detach())
            if i:
                weights[f"w{i}"] = w[:made].detach().clone().requires_grad_()
            if i < len(self.sizes) - 1:
                weights[f"gain{i}"] = torch.ones(size, device=self.device, requires_grad=True)
                weights[f"shift{i}"] = torch.zeros(size, device=self.device, requires_grad=True)
                weights[f"mean{i}"] = torch.zeros(size, device=self.device)
                weights[f"var{i}"] = torch.ones(size, device=self.device)
        weights["z"] = torch.cat(inputs, 1).requires_grad_()
        weights["b"] = torch.cat(biases).requires_grad_()
        return weights

    def _new_critic(self) -> dict[str, Tensor]:
        first, second = self.settings.discriminator_layers
        row = self.n_scalars + self.n_places + self.n_conditions
        w0, b0 = linear(self.settings.pac * row, first, self.stream)
        w1, b1 = linear(first, second, self.stream)
        w2, b2 = linear(second, 1, self.stream)
        return {"w0": w0, "b0": b0, "w1": w1, "b1": b1, "w2": w2, "b2": b2}

    # -- random inputs ------------------------------------------------------------------

    def draw(self, k: int) -> dict[str, Tensor]:
        """Everything random that k steps need, the first axis being the step."""
        import torch

        s, device = self.settings, self.device

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=self.stream, device=device)

        noise = torch.randn(k, 2, s.batch, s.noise, generator=self.stream, device=device)
        # 32-bit uniform numbers are multiples of 2^-24, and 0 among them has no logarithm.
        gumbel = uniform(k, 2, s.batch, self.n_places).clamp_(min=2.0**-25).log_().neg_()
        kept = uniform(k, 4 * self.packs, sum(s.discriminator_layers)) >= s.dropout
        inputs = {
            "noise": noise,
            "gumbel": gumbel.log_().div_(-s.temperature),
            "keep": kept.float().div_(1 - s.dropout),
            "mix": uniform(k, self.packs, 1),
        }
        if not self.n_conditions:
            picked = (uniform(k, s.batch).double() * self.n_rows).long().clamp_(max=self.n_rows - 1)
            return inputs | {"real": self._rows(picked)}
        ends = self.training_ends
        wanted = torch.searchsorted(ends, uniform(k, 2, s.batch).double(), right=True)
        permuted = wanted[:, 0].gather(1, uniform(k, s.batch).argsort(1))
        counts = self.counts[permuted]
        turn = (uniform(k, s.batch).double() * counts).long()
        picked = self.lists[self.starts[permuted] + torch.minimum(turn, counts - 1)].long()
        vectors = torch.zeros(k, 3, s.batch, self.n_conditions, device=device)
        named = torch.cat([wanted, permuted[:, None]], 1)
        vectors.scatter_(3, named[..., None], 1.0)
        return inputs | {
            "real": torch.cat([self._rows(picked), vectors[:, 2]], 2),
            "conditions": vectors[:, :2],
            "wanted": wanted[:, 1],
        }

    def _rows(self, picked: Tensor) -> Tensor:
        """(k, batch, width): the network's rows of these row numbers."""
        import torch

        hot = torch.zeros(*picked.shape, self.n_scalars + self.n_places, device=self.device)
        hot[..., : self.n_scalars] = self.scalars[picked]
        return hot.scatter_(2, self.hot[picked].long(), 1.0)

    # -- one step -----------------------------------------------------------------------

    def step(self, inputs: dict[str, Tensor]) -> Tensor:
        """One update of the discriminator and one of the generator."""

        loss = self.critic_loss(inputs)
        update(self.critic_adam, loss, list(self.critic.values()))
        loss = self.generator_loss(inputs)
        update(self.generator_adam, loss, [self.generator[n] for n in self.generator_names])
        return loss.detach()

    def critic_loss(self, inputs: dict[str, Tensor]) -> Tensor:
        """Wasserstein loss of the discriminator with its gradient penalty."""
        import torch

        packs = self.packs
        real = inputs["real"].view(packs, -1)
        with torch.no_grad():
            fake = self._generate(inputs, 0)[0].view(packs, -1)
            mixed = torch.lerp(fake, real, inputs["mix"])
        scores = self._judge(torch.cat([real, fake]), inputs["keep"][: 2 * packs])
        loss = (scores * self.signs).sum()
        norms = self._input_gradient(mixed, inputs["keep"][2 * packs : 3 * packs]).norm(dim=1)
        return loss + self.settings.penalty * (norms - 1).square().mean()

    def generator_loss(self, inputs: dict[str, Tensor]) -> Tensor:
        """What the discriminator says of generated rows, and whether they obey their conditions."""
        import torch

        rows, logits = self._generate(inputs, 1)
        scores = self._judge(rows.view(self.packs, -1), inputs["keep"][3 * self.packs :])
        loss = -scores.mean()
        if not self.n_conditions:
            return loss
        wanted = inputs["wanted"]
        asked = logits.gather(1, self.window[wanted]) + self.window_pad[wanted]
        obeyed = torch.nn.functional.cross_entropy(asked, self.condition_place[wanted])
        return loss + obeyed

    def _generate(self, inputs: dict[str, Tensor], which: int) -> tuple[Tensor, Tensor]:
        """Rows with their conditions behind, and the logits of all places."""
        import torch

        x = inputs["noise"][which]
        behind = [inputs["conditions"][which]] if self.n_conditions else []
        out = _forward(self.generator, torch.cat([x, *behind], 1), self.sizes, training=True)
        scalars, logits = out.split([self.n_scalars, self.n_places], 1)
        noisy = torch.add(inputs["gumbel"][which], logits, alpha=1 / self.settings.temperature)
        return torch.cat([torch.tanh(scalars), self.blocks.softmax(noisy), *behind], 1), logits

    def _judge(self, x: Tensor, keep: Tensor) -> Tensor:
        """Scores of packs; `keep` is the dropout of both layers."""
        import torch

        p, first = self.critic, self.settings.discriminator_layers[0]
        leaky = torch.nn.functional.leaky_relu
        h = leaky(torch.addmm(p["b0"], x, p["w0"]), _SLOPE) * keep[:, :first]
        h = leaky(torch.addmm(p["b1"], h, p["w1"]), _SLOPE) * keep[:, first:]
        return torch.addmm(p["b2"], h, p["w2"])

    def _input_gradient(self, x: Tensor, keep: Tensor) -> Tensor:
        """Gradient of each pack's score by the pack.

        The slopes of the activations are constant almost everywhere, so only the weights carry a
        gradient of their own.
        """
        import torch

        p, first = self.critic, self.settings.discriminator_layers[0]
        with torch.no_grad():
            h = torch.addmm(p["b0"], x, p["w0"])
            slope0 = torch.where(h > 0, self.one, self.slope) * keep[:, :first]
            h = torch.addmm(p["b1"], h * slope0, p["w1"])
            slope1 = torch.where(h > 0, self.one, self.slope) * keep[:, first:]
        back = (slope1 * p["w2"].T) @ p["w1"].T
        return (back * slope0) @ p["w0"].T
