"""What torch generators share: devices and seeds, the training loop, and decoding in chunks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, missing
from limi.generators._checks import check_latents, prepare
from limi.generators._state import Arrays
from limi.table.schema import Schema
from limi.types import Latents, Rows

__all__ = [
    "Best",
    "Tensor",
    "arrays_of",
    "begin",
    "chunk",
    "decode_array",
    "decode_rows",
    "device_of",
    "finish",
    "generator_of",
    "linear",
    "pad",
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
    except (RuntimeError, AssertionError, TypeError, NotImplementedError, ImportError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it does not answer"
        raise InvalidInput(
            f"the device {name!r} cannot be used ({reason}); use 'cpu', or 'cuda' with an NVIDIA "
            "GPU and a build of torch that supports it"
        ) from None
    return device


def generator_of(rng: np.random.Generator, device: Any) -> Any:
    """A torch stream of random numbers on a device, seeded from rng."""
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(int(rng.integers(2**63)))
    return generator


def begin(
    name: str, rows: Rows, schema: Schema, rng: np.random.Generator, max_rows: int, device: str
) -> tuple[Rows, list[str], Any]:
    """What every fit of networks begins with: rows to fit on, what to say of them, the device.

    The signature of `fit` stands in every module again, because it is what is asked of a module of
    this folder.
    """
    torch_for(f"the generator {name!r}")
    place = device_of(device)
    return *prepare(rows, schema, rng, max_rows), place


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


def tensors_of(
    arrays: Arrays, shapes: Mapping[str, tuple[int, ...]], device: Any
) -> dict[str, Tensor]:
    """The weights of these shapes among the arrays of a state, as float32 tensors on a device."""
    import torch

    held = {
        name: arrays.floats(_PREFIX + name, *shape, dtype=np.float32)
        for name, shape in shapes.items()
    }
    return {name: torch.tensor(array, device=device) for name, array in held.items()}


def chunk(n: int, device: Any) -> Iterator[tuple[slice, int]]:
    """Slices of n rows and the size to pad each to.

    Matrix products round differently for different shapes. With one fixed shape a row comes out
    the same whatever stands beside it.
    """
    size = _CHUNK.get(device.type, _CHUNK["cuda"])
    for start in range(0, n, size):
        yield slice(start, min(start + size, n)), size


def pad(rows: Tensor, size: int) -> Tensor:
    """Rows with zeros below, up to a size."""
    import torch

    lacking = size - len(rows)
    return torch.nn.functional.pad(rows, (0, 0, 0, lacking)) if lacking else rows


def decode_rows(latents: Tensor, n_columns: int, decode: Callable[[Tensor], Tensor]) -> Tensor:
    """(n, columns) float64: what `decode` makes of latents in chunks of one size."""
    import torch

    rows = [latents.new_zeros((0, n_columns), dtype=torch.float64)]
    with torch.no_grad():
        for part, size in chunk(len(latents), latents.device):
            piece = latents[part]
            rows.append(decode(pad(piece, size))[: len(piece)])
    return torch.cat(rows)


def decode_array(
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
    for part, _ in chunk(len(latents), device):
        piece = np.ascontiguousarray(latents[part])
        if np.isnan(piece).any():
            raise InvalidInput("the latents hold NaN; use finite numbers")
        made = decode_rows(torch.from_numpy(piece).to(device), n_columns, decode)
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
            self._kept = finish(self._weights)
        return done - self._at < self._patience

    def weights(self) -> dict[str, Tensor]:
        """The best weights."""
        return finish(self._weights) if self._kept is None else self._kept

    def notes(self, done: int, n_steps: int) -> list[str]:
        """What to say of the end of training."""
        if self._kept is None:
            return []
        return [f"trained for {done:,} steps; held-out rows were predicted best after {self._at:,}"]


def finish(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of weights to keep; BadTable where training has run into infinity."""
    if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
        raise BadTable(
            "training diverged: the network's weights are no longer finite; the cause may be a "
            "column with extreme values, or a learning rate that is too high"
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
        _log.warning("steps are taken one by one, because a CUDA graph of them fails: %s", reason)
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
