"""Blocks of places as tensors: softmax, choice, and the cells that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.generators._bins import Bins
from limi.generators._domain import HIGHEST
from limi.generators._modes import Encoding, Modes
from limi.types import Index

__all__ = ["BinCells", "Blocks", "CellDecoder", "interval", "pick"]

Tensor: TypeAlias = Any

_FEW_POSITIONS = 4096  # of padded blocks; kernels cost more than padding up to there


@cache
def _rearranging() -> tuple[Any, Any]:
    """Places to padded positions and back, with gradients picked rather than added up.

    Each place has one position, so the gradient of picking by an index is picking by its inverse.
    """
    import torch

    def spread(places: Tensor, forth: Tensor, padding: float) -> Tensor:
        return torch.nn.functional.pad(places, (0, 1), value=padding).index_select(1, forth)

    class Spread(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, places: Tensor, forth: Tensor, back: Tensor) -> Tensor:
            ctx.save_for_backward(back)
            return spread(places, forth, -np.inf)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
            (back,) = ctx.saved_tensors
            return gradient.index_select(1, back), None, None

    class Gather(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, padded: Tensor, forth: Tensor, back: Tensor) -> Tensor:
            ctx.save_for_backward(forth)
            return padded.index_select(1, back)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
            (forth,) = ctx.saved_tensors
            return spread(gradient, forth, 0.0), None, None

    return Spread, Gather


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of places of one row, padded to equal widths, so that one call treats many.

    On a GPU calls cost more than padding, and few blocks are all padded to the widest. Otherwise
    they are sorted into groups of like width.
    """

    groups: tuple[tuple[int, int], ...]  # number and padded width of the blocks of each
    forth: Tensor  # (padded,) place of each padded position; padding names the place behind all
    back: Tensor  # (places,) padded position of each place
    rank: Tensor  # (blocks,) where in the groups each block stands

    @staticmethod
    def of(widths: Index, device: Any, *, calls_are_dear: bool = True) -> Blocks:
        """Blocks of these widths, one after the other; many rows at a time make calls cheap."""
        import torch

        n_places = int(widths.sum())
        starts = np.cumsum(widths) - widths
        order = np.argsort(widths, kind="stable")
        few = len(widths) * widths.max() <= _FEW_POSITIONS
        if device.type != "cpu" and calls_are_dear and few:
            members = [order]
        else:
            members = _alike(widths, order)
        forth = []
        for group in members:
            at = np.arange(widths[group].max())
            fits = at < widths[group, None]
            forth.append(np.where(fits, starts[group, None] + at, n_places).ravel())
        place_of = np.concatenate(forth)
        used = np.flatnonzero(place_of < n_places)
        back, rank = np.empty_like(used), np.empty_like(order)
        back[place_of[used]] = used
        rank[order] = np.arange(len(order))
        return Blocks(
            tuple((len(group), int(widths[group].max())) for group in members),
            torch.tensor(place_of, device=device),
            torch.tensor(back, device=device),
            torch.tensor(rank, device=device),
        )

    def softmax(self, scores: Tensor) -> Tensor:
        """(n, places): the softmax of each block of scores of the places."""
        return self._gather([part.softmax(-1) for part in self.spread(scores)])

    def log_softmax(self, scores: Tensor) -> Tensor:
        """(n, places): the logarithm of the same."""
        return self._gather([part.log_softmax(-1) for part in self.spread(scores)])

    def argmax(self, scores: Tensor) -> Tensor:
        """(n, blocks): the largest place within each block, the first where several are."""
        import torch

        if scores.device.type != "cpu":
            return self._argmax_across(scores)
        largest = [part.argmax(-1) for part in self.spread(scores)]
        return torch.cat(largest, 1).index_select(1, self.rank)

    def _argmax_across(self, scores: Tensor) -> Tensor:
        """The same with rows side by side in memory, where a GPU reduces several times as fast."""
        import torch

        n, n_places = scores.shape
        lying = scores.new_full((n_places + 1, n), -np.inf)
        lying[:n_places] = scores.T
        parts = lying.index_select(0, self.forth).split([c * width for c, width in self.groups])
        largest = [
            part.view(count, width, n).argmax(1)
            for part, (count, width) in zip(parts, self.groups, strict=True)
        ]
        return torch.cat(largest).index_select(0, self.rank).T.contiguous()

    def spread(self, scores: Tensor) -> list[Tensor]:
        """(n, blocks, width) of each group, minus infinity at padding."""
        padded = _rearranging()[0].apply(scores, self.forth, self.back)
        parts = padded.split([count * width for count, width in self.groups], 1)
        sizes = zip(parts, self.groups, strict=True)
        return [part.reshape(len(scores), count, width) for part, (count, width) in sizes]

    def _gather(self, parts: list[Tensor]) -> Tensor:
        import torch

        flat = [part.view(len(part), -1) for part in parts]
        joined = torch.cat(flat, 1) if len(flat) > 1 else flat[0]
        return _rearranging()[1].apply(joined, self.forth, self.back)


def _alike(widths: NDArray[Any], order: NDArray[Any]) -> list[NDArray[Any]]:
    """Ascending blocks cut where the width passes three times the smallest of the group."""
    cuts, smallest = [0], widths[order[0]]
    for place, block in enumerate(order):
        if widths[block] > 3 * smallest:
            cuts.append(place)
            smallest = widths[block]
    return np.split(order, cuts[1:])


class CellDecoder:
    """Turns places and scalars into rows of the schema, on the device, in float64."""

    def __init__(self, encoding: Encoding, device: Any) -> None:
        import torch

        schema, d = encoding.schema, len(encoding.parts)
        base, spread = np.zeros((2, d, int(encoding.widths.max())))
        for j, part in enumerate(encoding.parts):
            if isinstance(part, Modes):
                base[j, : len(part.means)] = part.means
                spread[j, : len(part.means)] = 4 * part.stds
                base[j, len(part.means) :] = np.nan
            elif part.only_value is not None:
                base[j, : len(part)] = part.only_value
        grid = schema.is_numerical & (schema.step > 0)
        step = np.where(grid, schema.step, 1.0)
        ten = 10.0 ** np.array([c.decimals if c.step % 1 else 0 for c in schema.columns])
        scalar_at = np.full(d, encoding.n_scalars)
        scalar_at[encoding.scalar_columns] = np.arange(encoding.n_scalars)

        def there(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        # Halves round to even, and grids that hold 0 are rounded as multiples of their step.
        origin = np.where(grid, schema.low - np.rint(schema.low / step) * step, 0.0)
        self._base, self._spread = there(base.ravel()), there(spread.ravel())
        self._first = there(np.arange(d) * base.shape[1])
        self._low, self._high = there(schema.low), there(schema.high)
        self._grid, self._step, self._origin = there(grid), there(step), there(origin)
        self._ten, self._decimal = there(ten), there(grid & (schema.step % 1 != 0))
        self._any_decimal = bool((grid & (schema.step % 1 != 0)).any())
        # Where every cell is a whole number, one rounding does.
        real = schema.is_numerical & ~grid
        self._whole = not (real | (step != 1) | (origin != 0)).any()
        self._scalar_at = there(scalar_at)
        self._wide = [
            (j, BinCells(part, device))
            for j, part in enumerate(encoding.parts)
            if isinstance(part, Bins) and part.only_value is None
        ]

    def __call__(self, scalars: Tensor, places: Tensor) -> Tensor:
        """(n, d) codes of (n, s) scalars in [-1, 1] and (n, d) places within the blocks."""
        import torch

        at = places + self._first
        alphas = torch.nn.functional.pad(scalars.double().clamp(-1, 1), (0, 1))
        alphas = alphas.index_select(1, self._scalar_at)
        cells = self._base[at] + alphas * self._spread[at]
        cells = torch.round(cells) if self._whole else self._snap(cells)
        for j, resolve in self._wide:
            cells[:, j] = resolve(places[:, j], (alphas[:, j] + 1) / 2)
        # Both bounds pass a missing value on.
        return torch.minimum(torch.maximum(cells, self._low), self._high)

    def _snap(self, cells: Tensor) -> Tensor:
        import torch

        on_grid = self._origin + torch.round((cells - self._origin) / self._step) * self._step
        if self._any_decimal:
            decimal = torch.round(on_grid * self._ten) / self._ten
            on_grid = torch.where(self._decimal, decimal, on_grid)
        return torch.where(self._grid, on_grid, cells)


class BinCells:
    """The cells that fractions of bins stand for; `Bins.resolve` on a device."""

    def __init__(self, bins: Bins, device: Any) -> None:
        import torch

        def there(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        self._only = None if bins.only_value is None else there(bins.only_value)
        if self._only is not None:
            return
        runs = np.repeat(np.arange(bins.n_known), np.diff(bins.starts))
        bin_of_run = np.argsort(bins.order)
        below = np.concatenate([[0], np.cumsum(bins.counts)]).astype(np.float64)
        first, weight = below[bins.starts[:-1]], np.diff(below[bins.starts])

        def cells_at(part: float) -> NDArray[np.float64]:
            fraction = (below[:-1] + part * bins.counts - first[runs]) / weight[runs]
            return bins.resolve(bin_of_run[runs], fraction)

        # A value stands for itself or for an interval, in which cells lie evenly.
        span = 2 * (cells_at(0.75) - cells_at(0.25))
        self._below, self._counts = there(below), there(np.append(bins.counts, 1).astype(float))
        self._begin = there(np.append(cells_at(0.5) - span / 2, np.nan))
        self._span = there(np.append(span, 0.0))
        # The bin of missing cells lies behind all others and has the last value, NaN.
        self._first = there(np.append(first[bins.order], below[-1]))
        self._weight = there(np.append(weight[bins.order], 1.0))
        self._lowest = there(np.append(bins.starts[:-1][bins.order], len(bins.values)))
        self._highest = there(np.append(bins.starts[1:][bins.order] - 1, len(bins.values)))

    def __call__(self, bins: Tensor, fraction: Tensor) -> Tensor:
        """Cells of (n,) bins and fractions in [0, 1]."""
        import torch

        if self._only is not None:
            return self._only[bins]
        target = self._first[bins] + fraction.clamp(0.0, HIGHEST) * self._weight[bins]
        value = torch.searchsorted(self._below, target, right=True) - 1
        value = torch.minimum(torch.maximum(value, self._lowest[bins]), self._highest[bins])
        inside = (target - self._below[value]) / self._counts[value]
        return self._begin[value] + inside * self._span[value]


def pick(chances: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Place (...) at shares (...) in (0, 1) of chances (..., k), and the fraction of it passed."""
    import torch

    ends = chances.double().cumsum(-1)
    target = shares * ends[..., -1]
    # A place without a chance is never at a share.
    place = (ends <= target[..., None]).sum(-1)
    last = (ends < ends[..., -1:]).sum(-1)
    place = torch.minimum(place, last)
    low, width = interval(chances, place)
    return place, ((target - low * ends[..., -1]) / (width * ends[..., -1])).clamp(0.0, HIGHEST)


def interval(chances: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """Where the shares of a place begin, and how many there are."""
    ends = chances.double().cumsum(-1)
    total = ends[..., -1]
    high = ends.gather(-1, place[..., None])[..., 0]
    before = ends.gather(-1, (place[..., None] - 1).clamp(min=0))[..., 0]
    low = before.where(place > 0, 0.0)
    return low / total, (high - low) / total
