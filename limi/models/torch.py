"""PyTorch modules, live or as `torch:FILE` (torch.export or TorchScript, if trusted)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, LimiError, missing
from limi.models._base import Decision, Takes, ignore
from limi.models._files import existing, output_kind, split_options, unreadable
from limi.models._modules import evaluating
from limi.models._offers import ModelOffers
from limi.models._scores import Output, Outputs
from limi.types import Rows, Scores

__all__ = ["TorchModel", "accepts", "load", "wrap"]


def _on_trial(place: str) -> str:
    """The same file on the CPU, whose memory can be limited."""
    file, options = split_options(place, ("output", "device"))
    options.pop("device", None)
    return f"{file}?{urlencode(options)}" if options else file


# Torch files are programs, so they are not data alone.
OFFERS = ModelOffers(endings=(".pt2", ".pt", ".pth", ".ts"), library="torch", on_trial=_on_trial)


@dataclass(frozen=True)
class TorchModel:
    """Score rows with a module, in eval mode and batch by batch.

    Of two outputs per row the larger decides. One output is a probability where the module ends in
    a sigmoid or its attribute `output` says so, else a logit if some lie outside [0, 1].
    """

    module: Any
    outputs: Outputs
    n_columns: int | None = None
    device: str = "cpu"  # where the module is
    batch: int = 65536  # rows on the device at once
    notes: tuple[str, ...] = ()

    @property
    def takes(self) -> Takes:
        """Numbers."""
        return "matrix"

    @property
    def columns(self) -> None:
        """A module does not know their names."""
        return None

    def score(self, inputs: Rows) -> Scores:
        """Scores of the favorable class."""
        return self.outputs.read(self.forward(inputs), len(inputs))

    def settle(self, inputs: Rows, on_asked: Callable[[int], None] = ignore) -> TorchModel:
        """The same module with the kind of its output settled."""
        on_asked(len(inputs))
        return replace(self, outputs=self.outputs.settle(self.forward(inputs)))

    def forward(self, inputs: Rows) -> NDArray[Any]:
        """What the module returns for these rows."""
        import torch

        weights = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        dtype = next(weights, torch.float32)
        wide = np.float64 if dtype == torch.float64 else np.float32
        parts = []
        with torch.inference_mode(), evaluating(self.module):
            for start in range(0, len(inputs), self.batch):
                # A copy in any case, because a module may write into what it is given.
                rows = np.array(inputs[start : start + self.batch], dtype=wide, order="C")
                part = self.module(torch.from_numpy(rows).to(self.device, dtype))
                if not isinstance(part, torch.Tensor):
                    raise BadModel(
                        f"the module returned {type(part).__name__}; it must return one tensor"
                    )
                parts.append(part.to("cpu", torch.float64).numpy())
        return np.concatenate(parts)


def accepts(target: object) -> bool:
    """A module, scripted or not, or an exported program."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(target, (torch.nn.Module, torch.export.ExportedProgram))


def wrap(target: Any, decision: Decision, output: Output | None = None) -> TorchModel:
    """A model of a live module; it stays where it is and as it is."""
    import torch

    declared = getattr(target, "output", None)
    if output is None and isinstance(declared, str):
        output = output_kind(declared)
    exported = isinstance(target, torch.export.ExportedProgram)
    module = target.module() if exported else target
    place = next((tensor.device for tensor in module.parameters()), "cpu")
    return TorchModel(
        module,
        decision.outputs(output or _last_layer(target)),
        n_columns=_width(target),
        device=str(place),
        notes=decision.output_notes(),
    )


def load(place: str, decision: Decision, trust_pickle: bool = False) -> TorchModel:
    """The program of a torch.export file, on the CPU or on `?device=cuda`.

    Such a file runs code while it is read, so it needs `trust_pickle`.
    """
    file, options = split_options(place, ("output", "device"))
    path = existing(file, "torch", OFFERS.endings)
    try:
        import torch  # noqa: F401
    except ImportError:
        raise missing("torch", "torch", "running a PyTorch model") from None
    from limi.generators._training import device_of
    from limi.models import _programs

    output = output_kind(options.get("output"))
    device = str(device_of(options.get("device", "cpu")))
    target = _programs.read(path, trusted=trust_pickle)
    try:
        model = wrap(target, decision, output)
        return model if device == "cpu" else _move(model, target, device)
    except LimiError:
        raise
    # A program whose parts do not fit each other may fail anywhere.
    except Exception as error:
        raise unreadable(file, "a torch program", error) from error


def _move(model: TorchModel, target: Any, device: str) -> TorchModel:
    import torch

    if not isinstance(target, torch.export.ExportedProgram):
        return replace(model, module=model.module.to(device), device=device)
    from torch.export.passes import move_to_device_pass

    return replace(model, module=move_to_device_pass(target, device).module(), device=device)


# Operations that change an output's shape and not its numbers.
_RESHAPES = {"squeeze", "view", "reshape", "flatten", "select", "unsqueeze", "ravel", "alias"}


def _last_layer(target: Any) -> Output | None:
    """A probability where the last operation is a sigmoid; None where that cannot be seen."""
    import torch

    if isinstance(target, torch.export.ExportedProgram):
        outputs = target.graph_signature.user_outputs
        node = next(node for node in target.graph.nodes if node.name == outputs[0])
        while _operation(node.target) in _RESHAPES:
            node = node.args[0]
        return "probability" if _operation(node.target) == "sigmoid" else None
    if isinstance(target, torch.jit.ScriptModule):
        graph = target.inlined_graph  # its values live only as long as it does
        value = next(graph.outputs())
        while value.node().kind().removeprefix("aten::") in _RESHAPES:
            value = next(value.node().inputs())
        return "probability" if value.node().kind() == "aten::sigmoid" else None
    layers = _layers(target)
    while layers and isinstance(layers[-1], (torch.nn.Flatten, torch.nn.Identity)):
        layers.pop()
    return "probability" if layers and isinstance(layers[-1], torch.nn.Sigmoid) else None


def _layers(module: Any) -> list[Any]:
    """The layers of a module in the order they run; one that is not a Sequential counts as one."""
    import torch

    if not isinstance(module, torch.nn.Sequential):
        return [module]
    return [layer for part in module for layer in _layers(part)]


def _operation(target: Any) -> str:
    """`sigmoid` of `aten.sigmoid.default`."""
    return str(target).removeprefix("aten.").partition(".")[0]


def _width(target: Any) -> int | None:
    """How many columns the program takes, where its first layer or its signature says so."""
    import torch

    if isinstance(target, torch.export.ExportedProgram):
        users = target.graph_signature.user_inputs
        nodes = [n for n in target.graph.nodes if n.op == "placeholder" and n.name in users]
        shape: tuple[Any, ...] = nodes[0].meta["val"].shape if nodes else ()
        return int(shape[1]) if len(shape) == 2 and isinstance(shape[1], int) else None
    first = next(iter(_layers(target)), None)
    return int(first.in_features) if isinstance(first, torch.nn.Linear) else None
