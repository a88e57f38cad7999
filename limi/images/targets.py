"""Targets that look at images: torch modules, ONNX graphs, Python functions, scorers of limi.

A network gets float32 of the shape (n, 3, height, width), light from 0 to 1; a place may say
otherwise: `?input=signed` (-1 to 1), `?input=bytes` (0 to 255), `?input=imagenet` (0 to 1, less
ImageNet's mean, in units of its spread). A function gets uint8 of the shape (n, height, width, 3).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from limi.errors import BadModel, InvalidInput, nearest, spell
from limi.images._base import ImageArray, Images, Scorer, ask, parts
from limi.models import Decision, trial
from limi.models._files import output_kind, split_options
from limi.models._modules import evaluating
from limi.models._scores import Outputs
from limi.system.arrays import is_tensor
from limi.system.reading import is_file
from limi.types import Scores

__all__ = ["GraphScorer", "NetworkScorer", "as_scorer", "load_scorer", "open_scorer"]

_KINDS = ("python", "torch", "onnx", "scorer")
_LIBRARIES = {"onnx": "onnxruntime", "torch": "torch"}
_TRIED_ON = 8  # images that a file is asked about first
_AT_ONCE = 1024  # images on the device at once
_INPUTS = {
    "unit": (0.0, 255.0),
    "signed": (127.5, 127.5),
    "bytes": (0.0, 1.0),
    "imagenet": ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
}


@dataclass(eq=False)
class NetworkScorer:
    """Scores of a torch module, on the device where it is."""

    module: Any
    outputs: Outputs = field(default_factory=lambda: Outputs(1))
    device: str = "cpu"
    input: str = "unit"
    takes_tensors: bool = True
    half: bool = False  # was it trained in half precision, on a GPU?

    def __call__(self, images: Images) -> Scores:
        """One score for each image."""
        import torch

        given = images if is_tensor(images) else torch.from_numpy(np.array(images))
        found = []
        with torch.inference_mode(), evaluating(self.module):
            for part in parts(len(given), _AT_ONCE):
                inputs = prepare(given[part].to(self.device), self.input)
                with torch.autocast(inputs.device.type, torch.bfloat16, enabled=self._halves):
                    raw = self.module(inputs)
                if not isinstance(raw, torch.Tensor):
                    raise BadModel(
                        f"the module returned {type(raw).__name__}; it must return one tensor"
                    )
                found.append(raw.detach().to("cpu", torch.float64).numpy())
        answers = np.concatenate(found)
        # One number alone is a logit or a probability; the first images tell which.
        self.outputs = self.outputs.settle(answers)
        return self.outputs.read(answers, len(given))

    @property
    def _halves(self) -> bool:
        return self.half and self.device != "cpu"


@dataclass(eq=False)
class GraphScorer:
    """Scores of an ONNX graph with one input of images."""

    session: Any
    outputs: Outputs = field(default_factory=lambda: Outputs(1))
    input: str = "unit"

    def __call__(self, images: ImageArray) -> Scores:
        """One score for each image."""
        place = self.session.get_inputs()[0]
        name = self.session.get_outputs()[-1].name
        found = [
            self.session.run([name], {place.name: self._feed(images[part], place.shape)})[0]
            for part in parts(len(images), _AT_ONCE)
        ]
        answers = np.concatenate(found)
        self.outputs = self.outputs.settle(answers)
        return self.outputs.read(answers, len(images))

    def _feed(self, images: ImageArray, shape: Any) -> Any:
        if self.session.get_inputs()[0].type == "tensor(uint8)":
            light: Any = images
        else:
            low, span = (np.asarray(part, dtype=np.float32) for part in _INPUTS[self.input])
            light = (images.astype(np.float32) - low) / span
        return light if shape[-1] == 3 else np.ascontiguousarray(light.transpose(0, 3, 1, 2))


def prepare(images: Any, how: str) -> Any:
    """uint8 tensors (n, height, width, 3) as a network takes them: (n, 3, height, width)."""
    low, span = _light(how, str(images.device))
    return (images.permute(0, 3, 1, 2).float() - low) / span


@cache
def _light(how: str, device: str) -> tuple[Any, Any]:
    """What is taken off light, and what it is measured in, on a device."""
    import torch

    low, span = (
        torch.tensor(part, dtype=torch.float32, device=device).reshape(-1, 1, 1)
        for part in _INPUTS[how]
    )
    return low, span


def as_scorer(
    given: Any,
    name: str,
    shape: tuple[int, ...],
    *,
    device: str = "cpu",
    trust_pickle: bool = False,
) -> Scorer:
    """A scorer of whatever a user gives: `KIND:PLACE`, a torch module, a function.

    It will be asked about images of this shape.
    """
    if isinstance(given, str):
        return load_scorer(given, name, shape, device=device, trust_pickle=trust_pickle)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        where = next((str(weight.device) for weight in given.parameters()), "cpu")
        return NetworkScorer(given, Outputs(1, output_kind(getattr(given, "output", None))), where)
    if callable(given) and not isinstance(given, type):
        function: Callable[[Any], Any] = given
        return function
    what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise InvalidInput(
        f"the {name} is {what}; give a function of images that returns scores, a torch module, or "
        f"KIND:PLACE with a KIND of {spell(_KINDS)}"
    )


def load_scorer(
    text: str,
    name: str,
    shape: tuple[int, ...],
    *,
    device: str = "cpu",
    trust_pickle: bool = False,
) -> Scorer:
    """The scorer at `KIND:PLACE`, whose file is tried in a process of its own first."""
    library = _LIBRARIES.get(text.partition(":")[0])
    if library is not None:  # functions are the user's own, and limi's scorers are arrays
        trial.attempt(_Trial(_on_trial(text), name, shape, trust_pickle), library)
    return open_scorer(text, name, device=device, trust_pickle=trust_pickle)


@dataclass(frozen=True)
class _Trial:
    """A file that native code reads, opened and asked once where a crash does no harm."""

    uri: str
    name: str
    shape: tuple[int, ...]  # of images
    trust_pickle: bool

    @property
    def asked(self) -> str:
        """What it is asked about."""
        return f"{_TRIED_ON} images"

    def run(self) -> None:
        """Open it and ask it."""
        scorer = open_scorer(self.uri, self.name, trust_pickle=self.trust_pickle)
        rng = np.random.default_rng(0)
        ask(scorer, rng.integers(0, 256, (_TRIED_ON, *self.shape), dtype=np.uint8), self.name)


def _on_trial(text: str) -> str:
    """The same file on the CPU, whose memory can be limited."""
    file, mark, options = text.rpartition("?")
    if not mark or is_file(text.partition(":")[2]):
        return text
    kept = [(name, value) for name, value in parse_qsl(options, True) if name != "device"]
    return f"{file}?{urlencode(kept)}" if kept else file


def open_scorer(text: str, name: str, *, device: str = "cpu", trust_pickle: bool = False) -> Scorer:
    """The scorer at `KIND:PLACE`; InvalidInput where there is none."""
    kind, _, place = text.partition(":")
    if kind not in _KINDS or not place:
        raise InvalidInput(
            f"the {name} {text!r} is not of the form KIND:PLACE; {nearest(kind, _KINDS)}"
        )
    if kind == "python":
        from limi.models.python import attribute

        return as_scorer(attribute(place), name, ())
    if kind == "scorer":
        from limi.images.scorer_files import load

        return load(place, device=device)
    how, place = _input(place)
    if kind == "onnx":
        return _graph(place, how)
    from limi.models.torch import load as load_torch

    if device != "cpu" and "device=" not in place:
        place += f"{'&' if '?' in place else '?'}device={device}"
    model = load_torch(place, Decision(), trust_pickle=trust_pickle)
    return NetworkScorer(model.module, model.outputs, model.device, how)


def _input(place: str) -> tuple[str, str]:
    """How a place says that light is given, and the place without that."""
    file, mark, text = place.rpartition("?")
    if not mark or is_file(place):
        return "unit", place
    options = dict(parse_qsl(text, keep_blank_values=True))
    how = options.pop("input", "unit")
    if how not in _INPUTS:
        raise InvalidInput(f"input={how!r} is unknown; {nearest(how, _INPUTS)}")
    return how, f"{file}?{urlencode(options)}" if options else file


def _graph(place: str, how: str) -> GraphScorer:
    from limi.models.onnx import open_graph

    file, options = split_options(place, ("output",))
    session = open_graph(file)
    inputs = session.get_inputs()
    shape: list[Any] = list(inputs[0].shape) if len(inputs) == 1 else []
    if len(shape) != 4 or 3 not in (shape[1], shape[3]):
        raise BadModel(
            f"the graph {file!r} does not take images: its input has shape {shape}; it must be (n, "
            "3, height, width) or (n, height, width, 3)"
        )
    if inputs[0].type not in ("tensor(float)", "tensor(uint8)"):
        raise BadModel(
            f"the graph {file!r} takes {inputs[0].type}; it must take float or uint8 images"
        )
    return GraphScorer(session, Outputs(1, output_kind(options.get("output"))), how)
