"""Triangular transport with neural conditionals: one normal number per column, decoded in order.

Columns stand in an order. A network tells the distribution of each from those before it, and a
latent z decodes column after column by inverse CDF:

    u_j = Phi(z_j);   x_j = the value at share u_j of p(x_j | x_1 .. x_(j-1))

One masked network holds all conditionals (`_made`). Values are levels: columns of real numbers
or of thousands of values are cut into bins, and what is left of u_j inside the bin says which of
its values is meant (`_bins`). The lowest millionth of u_j stands for the whole domain of the
column, so that every row that the schema allows has a latent and a probability.

The network starts at the columns' own frequencies, and is trained by AdamW with a rate that falls
to 0; averaged weights are judged on held-out rows, and the best are kept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from limi.errors import InvalidInput
from limi.generators import _domain
from limi.generators._base import GeneratorOffers, OnStep
from limi.generators._bins import column_order, cut
from limi.generators._checks import require_rows
from limi.generators._counter_rng import normals
from limi.generators._domain import HIGHEST, RARE
from limi.generators._made import Layout, MadeWalk, Position
from limi.generators._networks import NetworkOnDevice
from limi.generators._onehot import BinCells, Blocks, interval, pick
from limi.generators._state import Arrays, facts_of
from limi.generators._training import (
    Best,
    Tensor,
    arrays_of,
    begin,
    chunk,
    device_of,
    generator_of,
    pad,
    run_steps,
    set_rate,
    tensors_of,
    torch_for,
    update,
)
from limi.table.schema import Schema
from limi.types import Index, Latents, Rows, Scores

__all__ = ["Settings", "Transport", "fit", "from_state"]

OFFERS = GeneratorOffers(
    library="torch", quick=True, has_encoder=True, in_order=True, on_device=True
)

_FAINT = 1e-12  # a smaller share of u is not aimed at, the domain's is taken
_LEAST_COUNT = 0.5  # rows that a level counts for at least, in the first frequencies
_FEW_LEVELS = 16  # and bins, which the smallest table may have
_MANY_ROWS = 10_000
_WARM_UP = 20  # steps in which the rate rises
_MOST_HELD_OUT = 3000
_UNROLL = 10
_EVALUATE_EVERY = 20  # steps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes and training, and the order of the columns."""

    hidden: int = 128  # units of each of two layers; at least two per column are taken
    embedding: int = 8  # numbers that stand for a level
    steps: int = 400  # of training, at most
    batch: int = 512  # rows per step
    rate: float = 4e-3  # on 10,000 rows and more; on fewer it shrinks with their root
    decay: float = 0.01  # weight decay
    averaging: float = 0.95  # share of the averaged weights that a step keeps
    held_out: float = 0.1  # share of rows that say when to stop
    patience: int = 100  # steps without a better likelihood of held-out rows
    max_levels: int = 256  # values of a column that are levels of their own; ten rows a level
    max_bins: int = 64  # bins of a column with more values, or of real numbers; twenty rows a bin
    max_rows: int = 100_000  # rows fitted on; more are drawn from at random
    order: Literal["given", "fewest-first"] | tuple[str, ...] = "given"  # order of columns
    protected_first: bool = False  # then a changed protected column moves those behind it

    def __post_init__(self) -> None:
        least = {"max_levels": 2, "max_bins": 2}
        for name in ("hidden", "embedding", "steps", "batch", "patience", "max_rows", *least):
            if getattr(self, name) < (fewest := least.get(name, 1)):
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be at least {fewest}")
        if not 0 <= self.held_out < 1:
            raise InvalidInput(f"held_out is {self.held_out}; it must be 0 or more and below 1")
        if not 0 <= self.averaging < 1:
            raise InvalidInput(f"averaging is {self.averaging}; it must be 0 or more and below 1")


@dataclass(frozen=True, eq=False)
class Transport(NetworkOnDevice):
    """A trained generator; latents have one standard normal number per column, in schema order."""

    schema: Schema
    layout: Layout
    weights: dict[str, Tensor]  # masked
    settings: Settings
    device: Any
    notes: tuple[str, ...] = ()

    kind: ClassVar[str] = "transport"

    @property
    def latent_dim(self) -> int:
        """Dimensions of the latent space: one per column."""
        return len(self.schema)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the columns in the order of decoding."""
        return tuple(self.schema.names[j] for j in self.layout.order)

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim) float32: standard normal numbers."""
        return rng.standard_normal((n, self.latent_dim), dtype=np.float32)

    def latents_at(self, seed: int, numbers: Tensor) -> Tensor:
        """The latents of these numbers in the stream of a seed; the same on every device."""
        import torch

        latents = torch.empty(len(numbers), self.latent_dim, device=numbers.device)
        return normals(seed, numbers, latents)

    def encode(self, rows: Rows, rng: np.random.Generator) -> Latents:
        """Latents that decode to these rows, drawn from all that do; any row of the schema has one.

        Real numbers come back to about ten digits.
        """
        import torch

        rows = require_rows(rows, self.schema)
        latents = np.empty(rows.shape)
        for part, size in chunk(len(rows), self.device):
            draws = rng.random(rows[part].shape)
            n = len(draws)
            bins = self.layout.bins_of(rows[part])
            for place, chances in enumerate(self._chances(bins, size)):
                j = self.layout.order[place]
                column, known = self.schema.columns[j], self.layout.bins[j]
                fraction = known.locate(rows[part, j], bins[:, place], draws[:, j])
                at = torch.tensor(np.minimum(bins[:, place], len(known) - 1), device=self.device)
                low, width = (x.cpu().numpy() for x in interval(chances[:n], at))
                aimed = RARE + (1 - RARE) * (low + fraction * width)
                seen = ~np.isnan(fraction) & (width > _FAINT)
                domain = RARE * _domain.share_of(rows[part, j], draws[:, j], column)
                latents[part, j] = ndtri(np.minimum(np.where(seen, aimed, domain), HIGHEST))
        return latents

    def log_prob(self, rows: Rows) -> Scores:
        """ln of each row's probability, exactly that with which a sampled latent decodes to it.

        A real-valued column contributes a density, except at values that the table repeats.
        """
        import torch

        rows = require_rows(rows, self.schema)
        total = np.zeros(len(rows))
        for part, size in chunk(len(rows), self.device):
            bins = self.layout.bins_of(rows[part])
            for place, chances in enumerate(self._chances(bins, size)):
                j = self.layout.order[place]
                column, known = self.schema.columns[j], self.layout.bins[j]
                log_share, dense = known.log_share(rows[part, j], bins[:, place])
                at = torch.tensor(np.minimum(bins[:, place], len(known) - 1), device=self.device)
                _, width = interval(chances[: len(bins)], at)
                p = (1 - RARE) * width.cpu().numpy() * np.exp(log_share)
                # Where cells have a mass, the uniform density over a real domain adds nothing.
                atom = np.isfinite(log_share) & ~dense & ~np.isnan(rows[part, j])
                domain = RARE * _domain.probability_of(rows[part, j], column)
                total[part] += np.log(p + np.where(atom & (column.size == 0), 0.0, domain))
        return total

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights and bins as arrays, settings and notes as facts."""
        facts = {"settings": asdict(self.settings), "notes": list(self.notes)}
        return arrays_of(self.weights) | self.layout.state(), facts

    # -- column after column ------------------------------------------------------------

    def _decode_chunk(self, latents: Tensor) -> Tensor:
        import torch

        shares = torch.special.ndtr(latents.double()).clamp(max=HIGHEST)
        rows = torch.empty_like(shares)
        walk = MadeWalk(self.layout, self._places, len(latents))
        for place, j in enumerate(self.layout.order):
            share = shares[:, j]
            inside = ((share - RARE) / (1 - RARE)).clamp(min=0.0)
            bins, fraction = pick(walk.chances(place), inside)
            cells = self._cells[j](bins, fraction)
            rare = share < RARE
            if bool(rare.any()):
                bins, cells = self._from_domain(j, share, rare, bins, cells)
            rows[:, j] = cells
            walk.go(place, bins)
        return rows

    def _from_domain(
        self, j: int, share: Tensor, rare: Tensor, bins: Tensor, cells: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same with rare shares taken to the domain; on the host, because there are few."""
        import torch

        found = _domain.cell_at(share[rare].cpu().numpy() / RARE, self.schema.columns[j])
        # For the columns behind it, such a cell counts as a bin near it.
        near = np.minimum(self.layout.bins[j].bin_of(found), len(self.layout.bins[j]) - 1)
        bins, cells = bins.clone(), cells.clone()
        bins[rare] = torch.tensor(near, device=self.device)
        cells[rare] = torch.tensor(found, device=self.device)
        return bins, cells

    def _chances(self, bins: Index, size: int) -> Any:
        """Of each column in turn, (size, levels): the conditional given the bins before it."""
        import torch

        known = torch.tensor(bins, device=self.device)
        known = torch.minimum(known, torch.tensor(self.layout.sizes - 1, device=self.device))
        known = pad(known, size)
        with torch.no_grad():
            walk = MadeWalk(self.layout, self._places, size)
            for place in range(len(self.layout.order)):
                yield walk.chances(place)
                walk.go(place, known[:, place])

    @cached_property
    def _places(self) -> list[Position]:
        return Position.all_of(self.layout, self.weights)

    @cached_property
    def _cells(self) -> list[BinCells]:
        return [BinCells(bins, self.device) for bins in self.layout.bins]


def fit(
    rows: Rows,
    schema: Schema,
    rng: np.random.Generator,
    *,
    settings: Settings | None = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Transport:
    """A transport map trained on these rows."""
    settings = settings or Settings()
    rows, notes, place = begin("transport", rows, schema, rng, settings.max_rows, device)
    on_step(0.0, notes[0] if notes else "levels")
    layout = _layout(rows, schema, settings)
    peak = settings.rate * min(1.0, math.sqrt(len(rows) / _MANY_ROWS))
    trainer = _Trainer(
        layout.bins_of(rows), layout, schema, settings, peak, generator_of(rng, place)
    )
    best = Best(trainer.averaged, settings.patience)

    def after(done: int, loss: Tensor) -> bool:
        falling = (1 + math.cos(math.pi * done / settings.steps)) / 2
        set_rate(trainer.adam, peak * falling * min(1.0, (done + _UNROLL) / _WARM_UP))
        if not trainer.n_held_out:
            on_step(done / settings.steps, f"step {done:,} of {settings.steps:,}")
            return True
        if done % _EVALUATE_EVERY and done < settings.steps:
            return True
        bits = trainer.held_out_loss()
        go_on = best.offer(bits, done)
        words = f"step {done:,} of at most {settings.steps:,}, loss {bits:.3f} on held-out rows"
        on_step(done / settings.steps if go_on else 1.0, words)
        return go_on

    done = run_steps(
        trainer.step,
        trainer.draw,
        settings.steps,
        unroll=_UNROLL,
        device=place,
        after=after,
        capture=False,  # the gradient of an embedding waits for the device, and steps are few
    )
    notes += best.notes(done, settings.steps)
    weights = layout.finished(best.weights())
    return Transport(schema, layout, weights, settings, place, tuple(notes))


def from_state(
    arrays: dict[str, NDArray[Any]],
    facts: dict[str, Any],
    schema: Schema,
    *,
    device: str = "cpu",
) -> Transport:
    """The generator that gave this state, on a device."""
    torch_for("the generator 'transport'")
    place = device_of(device)
    settings, notes = facts_of(facts, Settings)
    held = Arrays(arrays)
    layout = Layout.from_state(held, schema, *_size(schema, settings))
    weights = tensors_of(held, layout.shapes(), place)
    held.end()
    return Transport(schema, layout, weights, settings, place, notes)


# -- columns ------------------------------------------------------------------------------


def _layout(rows: Rows, schema: Schema, settings: Settings) -> Layout:
    """Bins of the columns of a table, and their order."""
    bins = []
    max_levels = min(settings.max_levels, max(len(rows) // 10, _FEW_LEVELS))
    max_bins = min(settings.max_bins, max(len(rows) // 20, _FEW_LEVELS))
    for j, column in enumerate(schema.columns):
        real, cells = column.size == 0, rows[:, j]
        whole = cut(cells, real=real, max_bins=max_levels)
        levels_alone = whole.only_value is not None
        bins.append(whole if levels_alone else cut(cells, real=real, max_bins=max_bins))
    order = column_order(schema, bins, settings.order, settings.protected_first)
    return Layout(tuple(bins), tuple(order), *_size(schema, settings))


def _size(schema: Schema, settings: Settings) -> tuple[int, int]:
    """Units of a hidden layer, and inputs of a column: its embedding and its height."""
    return max(settings.hidden, 2 * len(schema)), settings.embedding + 1


# -- training -----------------------------------------------------------------------------


class _Trainer:
    """The network with its masks, rows and optimiser on the device."""

    def __init__(
        self,
        bins: Index,
        layout: Layout,
        schema: Schema,
        settings: Settings,
        peak: float,
        stream: Any,
    ) -> None:
        import torch

        device = stream.device
        self.settings, self.layout, self.schema = settings, layout, schema
        self.stream, self.device = stream, device
        self.blocks = Blocks.of(layout.sizes, device)
        self.levels = torch.tensor((bins + layout.starts[:-1]).astype(np.int32), device=device)
        masks = layout.masks.items()
        self.masks = {n: torch.tensor(m, dtype=torch.float32, device=device) for n, m in masks}
        order = torch.randperm(len(bins), generator=stream, device=device)
        self.n_held_out = min(int(len(bins) * settings.held_out), _MOST_HELD_OUT)
        self.held_out, self.train = order[: self.n_held_out], order[self.n_held_out :]
        self.weights = self._new_weights()
        self.averaged = {name: t.detach().clone() for name, t in self.weights.items()}
        decayed = [t for name, t in self.weights.items() if name != "out_bias" and t.requires_grad]
        rate = peak * _UNROLL / _WARM_UP
        self.adam = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": settings.decay},
                {"params": [self.weights["out_bias"]], "weight_decay": 0.0},
            ],
            lr=torch.tensor(rate, device=device) if device.type == "cuda" else rate,
            betas=(0.9, 0.99),
            fused=True,
            capturable=device.type == "cuda",
        )
        self.drawn = 0

    def _new_weights(self) -> dict[str, Tensor]:
        import torch

        layout, device = self.layout, self.device
        n_levels, n_units = int(layout.starts[-1]), layout.n_units

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=self.stream, device=device)

        counts = torch.bincount(self.levels.flatten(), minlength=n_levels).clamp(min=_LEAST_COUNT)
        weights = {
            "embedding": normal(n_levels, layout.n_inputs - 1) * 0.3,
            "out_bias": (counts / len(self.levels)).log(),
            "first_bias": torch.zeros(n_units, device=device),
            "second_bias": torch.zeros(n_units, device=device),
        }
        for name, mask in self.masks.items():
            if name in ("first", "second"):
                scale = (2 / mask.sum(0).clamp(min=1)).sqrt()
                weights[name] = normal(*mask.shape) * scale
            else:
                weights[name] = torch.zeros_like(mask)
        weights = {name: tensor.requires_grad_() for name, tensor in weights.items()}
        heights = layout.heights(self.schema)[:, None]
        return weights | {"heights": torch.tensor(heights, device=device)}

    def draw(self, k: int) -> dict[str, Tensor]:
        """Rows of k steps, and how much each step renews the averaged weights."""
        import torch

        turns = torch.randint(
            len(self.train), (k, self.settings.batch), generator=self.stream, device=self.device
        )
        steps = self.drawn + np.arange(1, k + 1)
        self.drawn += k
        # The first steps renew more, because the average starts at weights that know nothing.
        kept = np.minimum(self.settings.averaging, steps / (steps + 9))
        renewed = torch.tensor(1 - kept, dtype=torch.float32, device=self.device)
        return {"picked": self.train[turns], "renewed": renewed}

    def step(self, inputs: dict[str, Tensor]) -> Tensor:
        """One update of the weights, and of their average."""
        import torch

        parameters = {name: t for name, t in self.weights.items() if t.requires_grad}
        loss = self.loss(self.weights, inputs["picked"])
        update(self.adam, loss, list(parameters.values()))
        with torch.no_grad():
            for name, parameter in parameters.items():
                self.averaged[name].lerp_(parameter, inputs["renewed"])
        return loss.detach()

    def loss(self, weights: dict[str, Tensor], picked: Tensor) -> Tensor:
        """Minus the mean log-probability of rows' bins."""
        import torch

        w, levels = weights, self.levels[picked].long()
        embedded = torch.nn.functional.embedding(levels, w["embedding"])
        inputs = torch.cat([embedded, w["heights"][levels]], 2).flatten(1)
        first = torch.addmm(w["first_bias"], inputs, w["first"] * self.masks["first"]).relu()
        second = torch.addmm(w["second_bias"], first, w["second"] * self.masks["second"]).relu()
        out = torch.addmm(w["out_bias"], first + second, w["out"] * self.masks["out"])
        if "direct" in w:
            out = torch.addmm(out, inputs, w["direct"] * self.masks["direct"])
        return -self.blocks.log_softmax(out).gather(1, levels).sum() / len(picked)

    def held_out_loss(self) -> float:
        """The loss of the averaged weights on held-out rows."""
        import torch

        with torch.no_grad():
            return float(self.loss(self.averaged, self.held_out))
