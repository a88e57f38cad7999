"""Gradients of a target over rows, where its framework can give them: torch modules by autograd.

Everything here is per code: the derivative by a column's own unit, so that a level's number
(10, 20, 30) and its position (0, 1, 2) are told apart. A target that is not a torch module has no
gradients; methods then estimate them from scores, or refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Numbers, favors
from limi.errors import BadModel, InvalidInput, nearest
from limi.models._base import WithModule
from limi.models._modules import evaluating, on_one_core
from limi.models._scores import Favored, Output, Outputs, Places
from limi.system.foreign import at_work, reason
from limi.table.frames import Codec
from limi.types import Rows, Scores

if TYPE_CHECKING:
    from limi.models.target import Target

__all__ = [
    "Activations",
    "Gradients",
    "Pull",
    "TorchGradients",
    "by_loss",
    "by_output",
    "network_of",
    "of",
]

Activations: TypeAlias = NDArray[np.float64]
"""(n, width): what the neurons of a layer say to n rows."""

Pull: TypeAlias = Callable[[Activations], Activations]
"""The derivative of something by a layer's activations, given those activations."""

_AT_ONCE = 1 << 13  # rows whose activations stay in a core's cache


class Gradients(Protocol):
    """What a white-box target offers beside its scores."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Hidden layers in the order they run; none where they cannot be seen."""
        ...

    def loss_gradient(self, rows: Rows) -> Rows:
        """(n, d): derivative of -log(score of the decision taken) by each code."""
        ...

    def output_gradient(self, rows: Rows) -> Rows:
        """(n, d): derivative of the score by each code."""
        ...

    def activations(self, rows: Rows, layer: str) -> Activations:
        """What the neurons of a layer say."""
        ...

    def layer_gradient(self, rows: Rows, layer: str, pull: Pull) -> Rows:
        """(n, d): derivative by each code of whatever has the derivative `pull` by the layer."""
        ...


def of(target: Target) -> TorchGradients | None:
    """The gradients of a target; None where it has none."""
    network = network_of(target)
    if network is None:
        return None
    module, outputs = network
    rule, favored = target.rule, outputs.favorable_column
    middle, scale = rule.log_odds, 1.0
    if isinstance(rule, Numbers):
        middle, scale = rule.middle, rule.spread
    if isinstance(favored, Places):  # the classes that a search has on its one side
        wanted = rule.wanted
        columns = tuple(c for c, place in enumerate(favored.of) if place in wanted)
        favored = columns[0] if outputs.classes == 2 else columns
    return TorchGradients(module, target.codec, favored, outputs.kind, middle, scale)


def network_of(target: Target) -> tuple[Any, Outputs] | None:
    """The torch module behind a target that takes numbers, and how to read what it returns."""
    torch, model = sys.modules.get("torch"), target.model
    if torch is None or not isinstance(model, WithModule) or model.takes != "matrix":
        return None
    if target.unseen:  # slopes and tensors have the columns of the rows, not of the model
        return None
    known = isinstance(model.module, torch.nn.Module)
    return (model.module, model.outputs) if known else None


def by_loss(margin: Scores, slope: Rows) -> Rows:
    """Derivative of -log(score of the decision taken), from log-odds and their derivative.

    On the edge the decision is the unfavorable one, as everywhere in limi.
    """
    from scipy.special import expit

    side = np.where(favors(expit(margin)), 1.0, -1.0)
    # Not through the score, which is 1.0 long before its logarithm is flat.
    factor: Rows = -side * expit(-side * margin)
    return factor[:, None] * slope


def by_output(margin: Scores, slope: Rows) -> Rows:
    """Derivative of the score, from log-odds and their derivative."""
    from scipy.special import expit

    factor: Rows = expit(margin) * expit(-margin)
    return factor[:, None] * slope


@dataclass(frozen=True, eq=False)
class TorchGradients:
    """Gradients of a module by autograd, in eval mode and in the module's own precision."""

    module: Any
    codec: Codec
    favorable_column: Favored = 1
    output: Output | None = None  # None: seen from the numbers
    middle: float = 0.0  # the log-odds above which a decision is favorable
    scale: float = 1.0  # of numbers

    def loss_gradient(self, rows: Rows) -> Rows:
        """Derivative of the cross entropy against the module's own decision."""
        return by_loss(*self.margins(rows))

    def output_gradient(self, rows: Rows) -> Rows:
        """Derivative of the favorable class's probability."""
        return by_output(*self.margins(rows))

    def margins(self, rows: Rows) -> tuple[Scores, Rows]:
        """Log-odds of the favorable class, less those that decide, and their derivative by each
        code."""
        parts = [self._margins(rows[at]) for at in _parts(len(rows))]
        if not parts:
            return np.empty(0), np.empty((0, len(self.codec.schema)))
        return np.concatenate([m for m, _ in parts]), np.concatenate([s for _, s in parts])

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Hidden layers, named by kind and place in the order they run: Linear0, ReLU1, ..."""
        import torch

        parts = list(self._modules.values())
        linear = [place for place, part in enumerate(parts) if isinstance(part, torch.nn.Linear)]
        # The layer that gives the output, and what follows it, is not hidden.
        hidden = list(self._modules)[: linear[-1] if linear else len(parts) - 1]
        acting = [name for name in hidden if _is_activation(self._modules[name])]
        return tuple(acting or hidden)

    def activations(self, rows: Rows, layer: str) -> Activations:
        """What the neurons of a layer say."""
        import torch

        parts = []
        with torch.no_grad(), self._watching(layer) as seen, on_one_core():
            for at in _parts(len(rows)):
                self._run(self._inputs(rows[at]))
                parts.append(_numbers(seen.pop()))
        return np.concatenate(parts)

    def layer_gradient(self, rows: Rows, layer: str, pull: Pull) -> Rows:
        """Derivative by each code of whatever has the derivative `pull` by the layer's output.

        One pass over all rows, so that `pull` may compare rows of the batch with each other.
        """
        import torch

        with torch.enable_grad(), self._watching(layer) as seen, on_one_core():
            inputs = self._inputs(rows).requires_grad_()
            self._run(inputs)
            output = seen.pop()
            pulled = torch.from_numpy(pull(_numbers(output))).to(output.device, output.dtype)
            return self._by_code(rows, self._derivative(output, inputs, pulled))

    # -- torch -------------------------------------------------------------------------

    def _margins(self, rows: Rows) -> tuple[Scores, Rows]:
        import torch

        with torch.enable_grad(), evaluating(self.module), on_one_core():
            inputs = self._inputs(rows).requires_grad_()
            outputs = Outputs(self.favorable_column, self.output)
            margin = outputs.margins(self._run(inputs)) - self.middle
            margin = margin if self.scale == 1 else margin / self.scale
            slope = self._derivative(margin, inputs, torch.ones_like(margin))
            return _numbers(margin), self._by_code(rows, slope)

    def _run(self, inputs: Any) -> Any:
        with at_work(lambda error: BadModel(f"the model raised {reason(error)}")):
            return self.module(inputs)

    def _inputs(self, rows: Rows) -> Any:
        import torch

        weights = [p for p in self.module.parameters() if p.is_floating_point()]
        matrix = torch.from_numpy(np.array(self.codec.matrix(rows), order="C"))
        if not weights:
            return matrix.float()
        return matrix.to(weights[0].device, weights[0].dtype)

    def _derivative(self, output: Any, inputs: Any, pulled: Any) -> Rows:
        import torch

        if not output.requires_grad:  # nothing of the input reaches it by a derivative
            return np.zeros(tuple(inputs.shape))

        def told(error: BaseException) -> BadModel:
            return BadModel(
                f"torch cannot differentiate the module ({reason(error)}); try the setting "
                "gradient=estimated"
            )

        with at_work(told):
            (slope,) = torch.autograd.grad(output, inputs, pulled, allow_unused=True)
        return np.zeros(tuple(inputs.shape)) if slope is None else _numbers(slope)

    def _by_code(self, rows: Rows, slope: Rows) -> Rows:
        """The derivative by codes: where levels stand for other numbers, times their spacing."""
        for position, spacing in self._spacings:
            codes = np.nan_to_num(rows[:, position]).astype(np.intp)
            slope[:, position] *= spacing[codes]
        # A missing cell, or one that the module turned into NaN, points nowhere.
        return np.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0)

    @cached_property
    def _spacings(self) -> list[tuple[int, NDArray[np.float64]]]:
        found = []
        for position, column in enumerate(self.codec.schema.columns):
            numbers = column.level_numbers
            if column.kind == "numerical" or numbers is None:
                continue
            spacing = np.gradient(numbers) if len(numbers) > 1 else np.zeros(1)
            if (spacing != 1).any():
                found.append((position, spacing))
        return found

    @cached_property
    def _modules(self) -> dict[str, Any]:
        """Parts of the module that run once and give one vector a row, in the order they run."""
        import torch

        ran: list[Any] = []

        def note(part: Any, given: Any, output: Any) -> None:
            vector = isinstance(output, torch.Tensor) and output.ndim == 2 and len(output) == 2
            ran.append(part if vector else None)

        if isinstance(self.module, torch.jit.ScriptModule):
            return {}  # it runs outside Python, where its parts cannot be watched
        leaves = [m for m in self.module.modules() if not any(True for _ in m.children())]
        hooks = [leaf.register_forward_hook(note) for leaf in leaves]
        try:
            with torch.no_grad(), evaluating(self.module):
                self._run(self._inputs(np.tile(self.codec.schema.low, (2, 1))))
        finally:
            for hook in hooks:
                hook.remove()
        once = [m for m in ran if m is not None and sum(m is other for other in ran) == 1]
        return {f"{type(m).__name__}{place}": m for place, m in enumerate(once)}

    @contextmanager
    def _watching(self, layer: str) -> Iterator[list[Any]]:
        """The layer's outputs, one per call of the module."""
        if layer not in self._modules:
            raise InvalidInput(
                f"the module has no layer {layer!r}; {nearest(layer, self._modules)}"
            )
        seen: list[Any] = []

        def note(part: Any, given: Any, output: Any) -> None:
            seen.append(output)

        hook = self._modules[layer].register_forward_hook(note)
        try:
            with evaluating(self.module):
                yield seen
        finally:
            hook.remove()


def _is_activation(part: Any) -> bool:
    return type(part).__module__ == "torch.nn.modules.activation"


def _numbers(tensor: Any) -> NDArray[np.float64]:
    import torch

    numbers: NDArray[np.float64] = tensor.detach().to("cpu", torch.float64).numpy()
    return numbers


def _parts(n: int) -> list[slice]:
    return [slice(start, min(start + _AT_ONCE, n)) for start in range(0, n, _AT_ONCE)]
