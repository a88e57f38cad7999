"""A masked network that holds the conditionals of ordered columns, and its evaluation in turn.

Hidden units are sorted by the last column that they may see, so that training takes one pass a
batch, and decoding computes every unit once, when its columns are known (Germain et al., MADE:
Masked Autoencoder for Distribution Estimation, ICML 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.generators._bins import Bins, pack_bins, take_bins
from limi.generators._state import Arrays, require
from limi.table.schema import Schema
from limi.types import Index, Rows

__all__ = ["Layout", "MadeWalk", "Position"]

Tensor: TypeAlias = Any

_MOST_DIRECT = 4_000_000  # weights from inputs straight to outputs, at most


@dataclass(frozen=True, eq=False)
class Layout:
    """Bins of the columns, their order, and which hidden units see which columns.

    Inputs, hidden units and outputs are each sorted by column, so that what is known when a column
    is decoded is always the first so many.
    """

    bins: tuple[Bins, ...]  # one per column, in schema order
    order: tuple[int, ...]  # columns in the order of decoding
    n_units: int  # of a hidden layer
    n_inputs: int  # a column: its embedding, and a number that says how high its value is

    @cached_property
    def sizes(self) -> Index:
        """(d,): levels of each column, in the order of decoding."""
        return np.array([len(self.bins[j]) for j in self.order], dtype=np.intp)

    @cached_property
    def starts(self) -> Index:
        """(d + 1,): where the levels of each begin among all."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def seen(self) -> Index:
        """(d,): hidden units that column j may use, those that see earlier columns alone."""
        return np.searchsorted(self.unit_columns, np.arange(len(self.order)))

    @cached_property
    def unit_columns(self) -> Index:
        """(units,): the last column that each hidden unit sees."""
        return np.sort(np.arange(self.n_units) % max(len(self.order) - 1, 1))

    @cached_property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Which weights may differ from 0, by layer."""
        inputs = np.repeat(np.arange(len(self.order)), self.n_inputs)
        outputs = np.repeat(np.arange(len(self.order)), self.sizes)
        units = self.unit_columns
        masks = {
            "first": inputs[:, None] <= units,
            "second": units[:, None] <= units,
            "out": units[:, None] < outputs,
        }
        if self.is_direct:
            masks["direct"] = inputs[:, None] < outputs
        return masks

    def bins_of(self, rows: Rows) -> Index:
        """(n, d): the bin of each cell, columns in the order of decoding."""
        return np.stack([self.bins[j].bin_of(rows[:, j]) for j in self.order], axis=1)

    def heights(self, schema: Schema) -> NDArray[np.float32]:
        """(levels,): how high the values of each level are, standardised; 0 where unordered."""
        heights = []
        for j in self.order:
            bins, known = self.bins[j], np.zeros(len(self.bins[j]))
            if schema.columns[j].kind in ("numerical", "ordered") and bins.n_known:
                cells = np.add.reduceat(bins.values * bins.counts, bins.starts[:-1])
                weights = bins.weights[: bins.n_known]
                values = cells[bins.order] / weights
                center = np.average(values, weights=weights)
                spread = np.sqrt(np.average((values - center) ** 2, weights=weights))
                known[: bins.n_known] = (values - center) / (spread or 1.0)
            heights.append(known)
        return np.concatenate(heights).astype(np.float32)

    def finished(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Weights with masked ones set to 0, and inputs side by side."""
        import torch

        done = {name: tensor for name, tensor in weights.items() if name != "heights"}
        for name, mask in self.masks.items():
            there = torch.tensor(mask, device=weights[name].device)
            done[name] = weights[name] * there
        done["embedding"] = torch.cat([weights["embedding"], weights["heights"]], 1)
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that `from_state` takes."""
        facts = [(bins.n_missing, int(bins.real)) for bins in self.bins]
        return {
            "order": np.array(self.order),
            "bins_facts": np.array(facts),
            **pack_bins("bins_", self.bins),
        }

    @staticmethod
    def from_state(arrays: Arrays, schema: Schema, n_units: int, n_inputs: int) -> Layout:
        """The layout that gave these arrays, for a network of this size."""
        d = len(schema)
        order = tuple(int(j) for j in arrays.wholes("order", d))
        require(sorted(order) == list(range(d)), "its order does not consist of its columns")
        facts = arrays.wholes("bins_facts", d, 2)
        bins = []
        given = zip(schema.columns, facts, take_bins(arrays, "bins_", d), strict=True)
        for column, (n_missing, real), parts in given:
            bins.append(Bins(*parts, n_missing=int(n_missing), real=bool(real)))
            bins[-1].check(column)
        return Layout(tuple(bins), order, n_units, n_inputs)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What shape each of the finished weights has."""
        n_levels, n_units = int(self.starts[-1]), self.n_units
        n_all = len(self.order) * self.n_inputs
        shapes: dict[str, tuple[int, ...]] = {
            "embedding": (n_levels, self.n_inputs),
            "first": (n_all, n_units),
            "first_bias": (n_units,),
            "second": (n_units, n_units),
            "second_bias": (n_units,),
            "out": (n_units, n_levels),
            "out_bias": (n_levels,),
        }
        return shapes | ({"direct": (n_all, n_levels)} if self.is_direct else {})

    @property
    def is_direct(self) -> bool:
        """Do inputs go straight to outputs as well?"""
        return len(self.order) * self.n_inputs * int(self.starts[-1]) <= _MOST_DIRECT


@dataclass(frozen=True, eq=False)
class Position:
    """The weights that one place of the order needs, outputs by inputs, side by side in memory."""

    seen: int  # hidden units before its own
    known: int  # inputs before its own
    embedding: Tensor  # of its levels
    out_bias: Tensor
    out: Tensor
    direct: Tensor | None
    first_bias: Tensor
    first: Tensor
    second_bias: Tensor
    second: Tensor

    @staticmethod
    def all_of(layout: Layout, weights: dict[str, Tensor]) -> list[Position]:
        """Of every place."""
        w = {name: tensor.double() for name, tensor in weights.items()}
        ends = [*(int(n) for n in layout.seen), layout.n_units]
        places = []
        for i in range(len(layout.order)):
            levels = slice(int(layout.starts[i]), int(layout.starts[i + 1]))
            # The last column has no units: nothing stands behind it that could use them.
            new = slice(ends[i], ends[i + 1] if i + 1 < len(layout.order) else ends[i])
            known, more = i * layout.n_inputs, (i + 1) * layout.n_inputs
            direct = w["direct"][:known, levels].T.contiguous() if "direct" in w else None
            places.append(
                Position(
                    seen=ends[i],
                    known=known,
                    embedding=w["embedding"][levels].contiguous(),
                    out_bias=w["out_bias"][levels],
                    out=w["out"][: ends[i], levels].T.contiguous(),
                    direct=direct,
                    first_bias=w["first_bias"][new],
                    first=w["first"][:more, new].T.contiguous(),
                    second_bias=w["second_bias"][new],
                    second=w["second"][: new.stop, new].T.contiguous(),
                )
            )
        return places


class MadeWalk:
    """The network for a batch of rows, computed as their columns become known.

    In float64: products of matrices round differently from batch to batch and from device to
    device, and in 64 bits no cell is likely ever to notice.
    """

    def __init__(self, layout: Layout, places: list[Position], n: int) -> None:
        self._places = places
        empty = places[0].out_bias.new_empty
        self._inputs = empty((n, len(places) * layout.n_inputs))
        self._first = empty((n, layout.n_units))
        self._units = empty((n, layout.n_units))

    def chances(self, place: int) -> Tensor:
        """(n, levels): the conditional of the column at this place of the order."""
        import torch

        p = self._places[place]
        out = torch.addmm(p.out_bias, self._units[:, : p.seen], p.out.T)
        if p.direct is not None:
            out = torch.addmm(out, self._inputs[:, : p.known], p.direct.T)
        return out.softmax(1)

    def go(self, place: int, bins: Tensor) -> None:
        """Take the column's bins as known."""
        import torch

        p = self._places[place]
        known = p.known + p.embedding.shape[1]
        self._inputs[:, p.known : known] = p.embedding[bins]
        if not len(p.first_bias):
            return
        new = slice(p.seen, p.seen + len(p.first_bias))
        first = torch.addmm(p.first_bias, self._inputs[:, :known], p.first.T).relu_()
        self._first[:, new] = first
        second = torch.addmm(p.second_bias, self._first[:, : new.stop], p.second.T).relu_()
        self._units[:, new] = second.add_(first)
