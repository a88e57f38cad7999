"""Scorers learned from labels, kept in files of arrays: targets to try an audit with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from limi.errors import CorruptStore, InvalidInput, LimiError
from limi.generators._base import packed
from limi.generators._state import Arrays, read, require
from limi.generators._training import arrays_of, device_of, tensors_of, torch_for
from limi.images._base import Scorer
from limi.images.attributes import EdgeScorer, Learned, PixelScorer
from limi.images.targets import NetworkScorer
from limi.models._scores import Outputs
from limi.system import writing

__all__ = ["content", "load"]

_MOST_PIXELS = 3 << 20
_WIDEST = 512


def content(learned: Learned) -> writing.Content:
    """What the file of a scorer holds."""
    scorer = learned.scorer
    facts: dict[str, Any] = {"name": learned.name, "architecture": learned.architecture}
    arrays: dict[str, Any]
    if isinstance(scorer, (PixelScorer, EdgeScorer)):
        arrays = {"slope": scorer.weights, "intercept": np.array([scorer.intercept])}
    elif isinstance(scorer, NetworkScorer):
        arrays = arrays_of(_weights(scorer.module))
        facts["width"] = int(next(iter(scorer.module.parameters())).shape[0])
    else:
        raise InvalidInput(f"a scorer of {type(scorer).__name__} cannot be kept in a file")
    return packed(arrays, {"of": "scorer", **facts})


def _weights(module: Any) -> dict[str, Any]:
    """Weights and running means, without the count of batches that a norm has seen."""
    state = module.state_dict()
    return {name.replace(".", "_"): one for name, one in state.items() if one.is_floating_point()}


def load(path: str | Path, *, device: str = "cpu") -> Scorer:
    """The scorer of a file; CorruptStore unless the file holds together."""
    try:
        arrays, head = read(path)
    except CorruptStore as error:
        said = str(error).replace("a generator file", "a file of a scorer", 1)
        raise CorruptStore(said) from None
    try:
        require(head.get("of") == "scorer", "it is not a scorer of images")
        architecture = head.get("architecture")
        held = Arrays(arrays)
        if architecture in ("pixels", "edges"):
            made = PixelScorer if architecture == "pixels" else EdgeScorer
            slope = held.floats("slope", None, dtype=np.float32)
            require(0 < len(slope) <= _MOST_PIXELS, "it has an unexpected number of weights")
            scorer: Scorer = made(slope, float(held.floats("intercept", 1)[0]))
        else:
            scorer = _network(str(architecture), head.get("width"), held, device)
        held.end()
    except (LimiError, MemoryError):
        raise
    except Exception as error:  # whatever numbers can do to arithmetic
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorruptStore(f"{str(path)!r} is damaged: {said}; fit it again") from None
    return scorer


def _network(architecture: str, width: Any, held: Arrays, device: str) -> NetworkScorer:
    from limi.images import networks

    require(architecture in networks.ARCHITECTURES, f"its architecture is {architecture[:40]!r}")
    require(isinstance(width, int) and 8 <= width <= _WIDEST, "its width is not usable")
    if architecture == "plain":
        width *= 2  # its first layer has half of it
    torch = torch_for("a network that scores images")
    place = device_of(device)
    module = networks.build(architecture, torch.Generator(place), width).to(place)
    known = {name: tuple(one.shape) for name, one in _weights(module).items()}
    tensors = tensors_of(held, known, place)
    names = {name.replace(".", "_"): name for name in module.state_dict()}
    module.load_state_dict({names[name]: one for name, one in tensors.items()}, strict=False)
    module.eval()
    for weight in module.parameters():
        weight.requires_grad_(False)
    return NetworkScorer(module, Outputs(1, "logits"), str(place), half=True)
