"""A fitted model of the `ctgan` package as a generator; limi does not depend on that package.

    from ctgan import CTGAN
    model = CTGAN(epochs=300)
    model.fit(table, discrete_columns)
    generator = limi.generators.from_ctgan(model, schema, table)

The package offers samples but no latents, so the private members `_generator`, `_embedding_dim`
and `_transformer` are read, which versions 0.5 to 0.12 have.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, missing, spell
from limi.generators._adapter import Adapted, adapt
from limi.table.frames import Frame
from limi.table.schema import Schema
from limi.types import Index, Latents

__all__ = ["from_ctgan"]

_BATCH = 1024
_STATISTICS = 20  # batches
_BELOW_ONE = 1 - 2.0**-40


def from_ctgan(model: Any, schema: Schema, table: Frame) -> Adapted:
    """A generator from a fitted `CTGAN` of the `ctgan` package.

    `table` is the real one that it was fitted to; columns outside the schema, such as the target,
    are generated and left out. A latent is everything that `model.sample` draws: the noise, one
    normal number for each choice of a level or mode, and the condition vector, which says of one
    cell of a random row what it held. The package normalises by each batch's own statistics; here
    a copy of the network keeps those of 20 batches, so that decoding is a function.
    """
    members = ("_generator", "_embedding_dim", "_transformer")
    lacking = [name for name in members if getattr(model, name, None) is None]
    if lacking:
        raise InvalidInput(
            f"{type(model).__name__} has no {spell(lacking)}; give a fitted CTGAN of the ctgan "
            "package, or adapt its decode function"
        )
    try:
        import torch  # noqa: F401
    except ImportError:
        raise missing("torch", "torch", "a model of the ctgan package") from None
    real = model._transformer.transform(nw.from_native(table, eager_only=True).to_pandas())
    blocks = [
        [(str(part.activation_fn), int(part.dim)) for part in column]
        for column in model._transformer.output_info_list
    ]
    network = copy.deepcopy(model._generator).to("cpu")
    package = _Package(network, model._transformer, int(model._embedding_dim), blocks, real)
    rng = np.random.default_rng(0)
    package.take_statistics(package.sample_latents(_BATCH, rng) for _ in range(_STATISTICS))
    return adapt(package, schema, table=table, batch=_BATCH)


@dataclass(frozen=True, eq=False)
class _Package:
    """The network's input from a latent, and rows from its output."""

    network: Any
    transformer: Any
    n_noise: int
    blocks: list[list[tuple[str, int]]]  # activation and width of each part of each column
    real: NDArray[np.float64]  # the table, encoded

    @cached_property
    def ends(self) -> Index:
        """Where each block ends in the output."""
        return np.cumsum([width for column in self.blocks for _, width in column])

    @cached_property
    def choices(self) -> list[Index]:
        """Positions of each block of which one place is chosen."""
        kinds = [(kind, width) for column in self.blocks for kind, width in column]
        return [
            np.arange(end - width, end)
            for end, (kind, width) in zip(self.ends, kinds, strict=True)
            if kind == "softmax"
        ]

    @cached_property
    def held(self) -> list[tuple[Index, int]]:
        """For each discrete column: which level every row of the table holds, and how many are."""
        widths = [sum(width for _, width in column) for column in self.blocks]
        starts = np.cumsum([0, *widths])
        return [
            (np.argmax(self.real[:, start : start + width], axis=1), width)
            for column, start, width in zip(self.blocks, starts, widths, strict=False)
            if [kind for kind, _ in column] == ["softmax"]
        ]

    @property
    def n_conditions(self) -> int:
        return sum(width for _, width in self.held)

    @property
    def latent_dim(self) -> int:
        return self.n_noise + len(self.choices) + self.n_conditions

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        from scipy.special import ndtr

        # Numbers are drawn row by row, so that n may be split without effect.
        n_normal = self.n_noise + len(self.choices)
        draws = rng.standard_normal((n, n_normal + 2))
        latents = np.zeros((n, self.latent_dim))
        latents[:, :n_normal] = draws[:, :n_normal]
        if self.held:
            shares = np.minimum(ndtr(draws[:, n_normal:]), _BELOW_ONE)
            column = (shares[:, 0] * len(self.held)).astype(np.intp)
            row = (shares[:, 1] * len(self.real)).astype(np.intp)
            starts = np.cumsum([n_normal, *(width for _, width in self.held)])
            levels = np.stack([cells for cells, _ in self.held])
            latents[np.arange(n), starts[column] + levels[column, row]] = 1.0
        return latents

    def decode(self, latents: NDArray[np.float64]) -> Any:
        import torch
        from scipy.special import ndtr, softmax

        with torch.no_grad():
            output = self.network(torch.from_numpy(self._input(latents))).numpy()
        output = output.astype(np.float64)
        chosen = np.tanh(output)
        draws = np.minimum(ndtr(latents[:, self.n_noise :]), _BELOW_ONE)
        for draw, places in zip(draws.T, self.choices, strict=False):
            # The largest of logits plus Gumbel noise has just these chances.
            reach = np.cumsum(softmax(output[:, places], axis=1), axis=1)
            choice = np.minimum((reach < draw[:, None]).sum(axis=1), len(places) - 1)
            chosen[:, places] = np.eye(len(places))[choice]
        return self.transformer.inverse_transform(chosen)

    def _input(self, latents: Latents) -> NDArray[np.float32]:
        used = np.delete(latents, np.s_[self.n_noise : self.n_noise + len(self.choices)], axis=1)
        return used.astype(np.float32)

    def take_statistics(self, batches: Iterable[Latents]) -> None:
        """Set the batch normalisation to the mean statistics of these batches, for good.

        The running ones lag a hundred steps behind, which is much of a short training.
        """
        import torch

        for module in self.network.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.reset_running_stats()
                module.momentum = None  # the mean of all batches, each alike
        self.network.train()
        with torch.no_grad():
            for latents in batches:
                self.network(torch.from_numpy(self._input(latents)))
        self.network.eval()
