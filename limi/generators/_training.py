"""What torch generators share: devices and seeds, the training loop, and decoding blocks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, missing
from limi.generators._bins import Bins
from limi.generators._checks import check_latents, check_rows
from limi.generators._modes import Encoding, Modes
from limi.schema import Schema
from limi.types import Index, Latents, Rows

__all__ = [
    "HIGHEST",
    "Best",
    "BinCells",
    "Blocks",
    "CellDecoder",
    "Tensor",
    "arrays_of",
    "chunked",
    "decoded",
    "decoded_array",
    "device_of",
    "finished",
    "generator_of",
    "given_settings",
    "interval",
    "linear",
    "padded",
    "pick",
    "prepare",
    "run_steps",
    "set_rate",
    "tensors_of",
    "torch_for",
    "update",
]

Tensor: TypeAlias = Any
Inputs: TypeAlias = dict[str, Tensor]

_log = logging.getLogger(__name__)

_PREFIX = "weights_"
_CHUNK = {"cpu": 1024, "cuda": 1 << 16}
_FEW_POSITIONS = 4096  # of padded blocks; kernels cost more than padding up to there
HIGHEST = 1.0 - 2.0**-40  # a share must stay below 1 even after it is scaled and rounded
_WORTH_CAPTURE = 10  # rounds


def torch_for(purpose: str) -> Any:
    """The package torch; MissingDependency where it is not installed."""
    try:
        import torch
    except ImportError:
        raise missing("torch", "torch", purpose) from None
    return torch


def device_of(name: str) -> Any:
    """The device of a name; InvalidInput where this machine has none such."""
    import torch

    try:
        device = torch.device(name)
        torch.empty(0, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it does not answer"
        raise InvalidInput(
            f"the device {name!r} cannot be used ({reason}); use 'cpu', or 'cuda' with an NVIDIA "
            "GPU and a torch that was built for it"
        ) from None
    return device


def generator_of(rng: np.random.Generator, device: Any) -> Any:
    """A torch stream of random numbers on a device, seeded from rng."""
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(int(rng.integers(2**63)))
    return generator


def prepare(
    rows: Rows, schema: Schema, rng: np.random.Generator, max_rows: int
) -> tuple[Rows, list[str]]:
    """Rows to fit on, at most max_rows, and what to say of that."""
    rows = check_rows(rows, schema)
    if not len(rows):
        raise BadTable("the table has no rows; a generator needs at least one")
    if len(rows) <= max_rows:
        return rows, []
    note = f"fitted on {max_rows:,} of {len(rows):,} rows, drawn at random"
    return rows[np.sort(rng.permutation(len(rows))[:max_rows])], [note]


def linear(n_in: int, n_out: int, generator: Any) -> tuple[Tensor, Tensor]:
    """Weights (n_in, n_out) and biases, uniform within 1 / sqrt(n_in) as torch starts layers."""
    import torch

    bound = max(n_in, 1) ** -0.5

    def drawn(*shape: int) -> Tensor:
        uniform = torch.rand(*shape, generator=generator, device=generator.device)
        return uniform.mul_(2 * bound).sub_(bound).requires_grad_()

    return drawn(n_in, n_out), drawn(n_out)


def arrays_of(weights: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Copies as arrays, under names of their own."""
    return {_PREFIX + name: tensor.cpu().numpy().copy() for name, tensor in weights.items()}


def tensors_of(arrays: dict[str, NDArray[Any]], device: Any) -> dict[str, Tensor]:
    """The weights among the arrays of a state, as float32 tensors on a device."""
    import torch

    return {
        name.removeprefix(_PREFIX): torch.tensor(array, dtype=torch.float32, device=device)
        for name, array in arrays.items()
        if name.startswith(_PREFIX)
    }


def given_settings(facts: dict[str, Any]) -> dict[str, Any]:
    """The settings among the facts of a state; JSON has lists where they have tuples."""
    settings: dict[str, Any] = facts["settings"]
    return {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}


def chunked(n: int, device: Any) -> Iterator[tuple[slice, int]]:
    """Slices of n rows and the size to pad each to.

    Matrix products round differently for different shapes. With one fixed shape a row comes out
    the same whatever stands beside it.
    """
    size = _CHUNK.get(device.type, _CHUNK["cuda"])
    for start in range(0, n, size):
        yield slice(start, min(start + size, n)), size


def padded(rows: Tensor, size: int) -> Tensor:
    """Rows with zeros below, up to a size."""
    import torch

    lacking = size - len(rows)
    return torch.nn.functional.pad(rows, (0, 0, 0, lacking)) if lacking else rows


def decoded(latents: Tensor, n_columns: int, decode: Callable[[Tensor], Tensor]) -> Tensor:
    """(n, columns) float64: what `decode` makes of latents in chunks of one size."""
    import torch

    rows = [latents.new_zeros((0, n_columns), dtype=torch.float64)]
    with torch.no_grad():
        for part, size in chunked(len(latents), latents.device):
            piece = latents[part]
            rows.append(decode(padded(piece, size))[: len(piece)])
    return torch.cat(rows)


def decoded_array(
    latents: Latents,
    latent_dim: int,
    n_columns: int,
    device: Any,
    decode: Callable[[Tensor], Tensor],
) -> Rows:
    """The same of an array, a chunk at a time on the device; InvalidInput where it cannot be."""
    import torch

    latents = check_latents(latents, latent_dim)
    rows = np.empty((len(latents), n_columns))
    for part, _ in chunked(len(latents), device):
        piece = np.ascontiguousarray(latents[part])
        if np.isnan(piece).any():
            raise InvalidInput("the latents hold NaN; a latent is made of finite numbers")
        made = decoded(torch.from_numpy(piece).to(device), n_columns, decode)
        rows[part] = made.cpu().numpy()
    return rows


# -- training ---------------------------------------------------------------------------


class Best:
    """The weights with the lowest loss so far, or the present ones where none was told."""

    def __init__(self, weights: dict[str, Tensor], patience: int) -> None:
        self._weights, self._patience = weights, patience
        self._kept: dict[str, Tensor] | None = None
        self._loss, self._at = float("inf"), 0

    def offer(self, loss: float, done: int) -> bool:
        """Keep the present weights if their loss is lower; whether to go on waiting for better."""
        if loss < self._loss:
            self._loss, self._at = loss, done
            self._kept = finished(self._weights)
        return done - self._at < self._patience

    def weights(self) -> dict[str, Tensor]:
        """The best weights."""
        return finished(self._weights) if self._kept is None else self._kept

    def notes(self, done: int, n_steps: int) -> list[str]:
        """What to say of the end of training."""
        if self._kept is None:
            return [f"training ended after {done:,} of {n_steps:,} steps"] if done < n_steps else []
        return [f"trained for {done:,} steps; held-out rows were told best after {self._at:,}"]


def finished(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of weights to keep; BadTable where training has run into infinity."""
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise BadTable(
            "training diverged: the network's weights are no longer finite; a column with extreme "
            "values may be the cause, or a rate that is too high"
        )
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def set_rate(adam: Any, rate: float) -> None:
    """Change the learning rate, in place where a captured graph reads it."""
    for group in adam.param_groups:
        if isinstance(group["lr"], float):
            group["lr"] = rate
        else:
            group["lr"].fill_(rate)


def update(adam: Any, loss: Tensor, parameters: list[Tensor]) -> None:
    """One step of an optimiser down the gradient of a loss."""
    import torch

    gradients = torch.autograd.grad(loss, parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        # Fused optimisers want the strides of the parameter, also along axes of length 1.
        parameter.grad = gradient.reshape(-1).view(parameter.shape)
    adam.step()


def run_steps(
    step: Callable[[Inputs], Tensor],
    draw: Callable[[int], Inputs],
    n_steps: int,
    *,
    unroll: int,
    device: Any,
    after: Callable[[int, Tensor], bool],
    capture: bool = True,
) -> int:
    """Steps taken: `step` on the inputs of `draw`, which are drawn for a round of steps at once.

    `draw(k)` gives tensors whose first axis is the step; `step` updates parameters in place and
    gives a loss. `after(done, loss)` is called between rounds and says whether to go on. On a CUDA
    device a round is captured once as a graph and then replayed, where there are enough of them.
    """
    capture = capture and device.type == "cuda" and n_steps >= _WORTH_CAPTURE * unroll
    captured: _Round | None = None
    done = 0
    try:
        with _current(device):
            while done < n_steps:
                size = min(unroll, n_steps - done)
                if capture and done:
                    captured, capture = _try_capture(step, draw(unroll)), False
                if captured is not None and size == unroll:
                    loss = captured.replay(draw(unroll))
                else:
                    loss = _plain(step, draw(size), size, aside=capture)
                done += size
                if not after(done, loss):
                    break
    except KeyboardInterrupt:
        if not done:
            raise
        _log.warning("training was interrupted after %d of %d steps", done, n_steps)
    return done


def _current(device: Any) -> Any:
    """A context in which CUDA's current device is this one."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def _plain(step: Callable[[Inputs], Tensor], inputs: Inputs, size: int, *, aside: bool) -> Tensor:
    """The loss of the last of these steps, taken one by one.

    Before a capture they are taken aside, on a stream of their own: in the first round libraries
    allocate what must not be captured.
    """
    if aside:
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss = _plain(step, inputs, size, aside=False)
        torch.cuda.current_stream().wait_stream(stream)
        return loss
    for i in range(size):
        loss = step({name: tensor[i] for name, tensor in inputs.items()})
    return loss


def _try_capture(step: Callable[[Inputs], Tensor], inputs: Inputs) -> _Round | None:
    try:
        return _Round(step, inputs)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        _log.warning("steps are taken one by one, for a CUDA graph of them fails: %s", reason)
        return None


class _Round:
    """Several steps as one CUDA graph with its own input tensors."""

    def __init__(self, step: Callable[[Inputs], Tensor], inputs: Inputs) -> None:
        import torch

        self._inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        size = len(next(iter(self._inputs.values())))
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        # Capture records the steps without taking them.
        with torch.cuda.graph(self._graph):
            for i in range(size):
                loss = step({name: tensor[i] for name, tensor in self._inputs.items()})
            self._loss = loss

    def replay(self, inputs: Inputs) -> Tensor:
        """The loss of the last of these steps."""
        for name, tensor in inputs.items():
            self._inputs[name].copy_(tensor)
        self._graph.replay()
        return self._loss


# -- blocks -------------------------------------------------------------------------------


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
    def of(widths: Index, device: Any) -> Blocks:
        """Blocks of these widths, one behind the other."""
        import torch

        n_places = int(widths.sum())
        starts = np.cumsum(widths) - widths
        order = np.argsort(widths, kind="stable")
        if device.type != "cpu" and len(widths) * widths.max() <= _FEW_POSITIONS:
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

        largest = [part.argmax(-1) for part in self.spread(scores)]
        return torch.cat(largest, 1).index_select(1, self.rank)

    def pick(self, scores: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """(n, blocks) places at shares of each block's softmax, and the fraction of it passed."""
        import torch

        found = [
            pick(part.softmax(-1), some)
            for part, some in zip(self.spread(scores), self._grouped(shares), strict=True)
        ]
        places, fractions = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        return places.index_select(1, self.rank), fractions.index_select(1, self.rank)

    def share(self, scores: Tensor, places: Tensor, fractions: Tensor) -> Tensor:
        """(n, blocks): shares that `pick` takes to these places and fractions."""
        import torch

        shares = []
        grouped = zip(
            self.spread(scores), self._grouped(places), self._grouped(fractions), strict=True
        )
        for part, place, fraction in grouped:
            low, width = interval(part.softmax(-1), place)
            shares.append(low + fraction * width)
        return torch.cat(shares, 1).index_select(1, self.rank)

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

    def _grouped(self, by_block: Tensor) -> Any:
        order = self.rank.argsort()
        return by_block.index_select(1, order).split([count for count, _ in self.groups], 1)


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
        on_grid = self._origin + torch.round((cells - self._origin) / self._step) * self._step
        decimal = torch.round(on_grid * self._ten) / self._ten
        on_grid = torch.where(self._decimal, decimal, on_grid)
        cells = torch.where(self._grid, on_grid, cells)
        for j, resolve in self._wide:
            cells[:, j] = resolve(places[:, j], (alphas[:, j] + 1) / 2)
        # Both bounds pass a missing value on.
        return torch.minimum(torch.maximum(cells, self._low), self._high)


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
