"""Where target and generator run: chosen once, at the edge.

Methods do not know devices. They find a target and a generator of one device together in
`Task.on_device`, or not.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from limi import generators
from limi.decisions import AS_DECIDED, Rule
from limi.errors import BadModel, InvalidInput, nearest
from limi.generators._base import WithTensors
from limi.generators._state import read
from limi.generators._training import device_of, torch_for
from limi.gpu.verdicts import OnDevice
from limi.models._base import notes_of
from limi.models._modules import evaluating
from limi.models._scores import Outputs, say_width
from limi.models.gradients import network_of
from limi.models.target import Target
from limi.models.torch import TorchModel
from limi.search.check import MAX_BATCH
from limi.system.foreign import at_work, reason
from limi.system.reading import is_file

__all__ = ["CHOICES", "choose_device", "join_on_device", "place_target", "settle_device"]

CHOICES = ("auto", "cpu", "cuda")

_FEWEST, _MOST = 1 << 16, 1 << 20  # latents probed at once
_SHARE = 8  # of the free memory, the part that these may take
_BATCH = {"cuda": 1 << 20}  # rows that a module gets at once


def choose_device(wanted: str, target: Target | None, generator: Any) -> str:
    """The device that was asked for; InvalidInput where there is none such, or no use for it.

    `auto` is cuda where there is a GPU that target and generator can both use. Without a target,
    as for the fit of a generator, the generator decides.
    """
    kind = wanted.partition(":")[0]
    if kind not in CHOICES:
        raise InvalidInput(f"the device is {wanted!r}; {nearest(wanted, CHOICES)}")
    if kind == "cpu":
        return "cpu"
    network = None if target is None else network_of(target)
    if kind == "auto":
        if not _can_follow(generator) or (target is not None and network is None):
            return "cpu"
        if isinstance(generator, WithTensors):
            return str(generator.device)  # a ready-made generator stays where it is
        torch = torch_for(f"the generator {str(generator)!r}")
        return "cuda" if torch.cuda.is_available() else "cpu"
    torch_for("the device 'cuda'")
    device_of(wanted)
    if network is None and not _can_follow(generator):
        raise InvalidInput(
            f"the device is {wanted!r}, but nothing here can run on it: neither the model nor the "
            "generator uses torch; use --device cpu, or a generator such as ctgan"
        )
    return wanted


def settle_device(wanted: str, target: Target, generator: Any) -> tuple[str, Target]:
    """The device that was asked for, and the target on it."""
    device = choose_device(wanted, target, generator)
    try:
        return device, place_target(target, device)
    except BadModel:
        if wanted != "auto":
            raise
        return "cpu", target


def place_target(target: Target, device: str) -> Target:
    """The target on a device: a copy of its module there, and all else as it is."""
    network = network_of(target)
    if device == "cpu" or network is None:
        return target
    module, outputs = network
    here = next((p.device.type for p in module.parameters()), "cpu")
    if here == device.partition(":")[0]:
        return target
    moved = copy.deepcopy(module).to(device)
    there = replace(
        target,
        model=TorchModel(
            moved, outputs, target.model.n_columns, device, notes=notes_of(target.model)
        ),
    )
    try:
        there.score(target.codec.schema.low[None])
    except BadModel as error:
        raise BadModel(
            f"the module cannot run on {device!r}: {error}; use --device cpu, or load the file on "
            f"that device (torch:FILE?device={device})"
        ) from None
    return there


def join_on_device(target: Target, generator: Any) -> OnDevice | None:
    """Target and generator as tensors; None where one of them cannot be, or they are apart."""
    network = network_of(target)
    if network is None or not isinstance(generator, WithTensors):
        return None
    module, outputs = network
    import torch

    weights = [p for p in module.parameters() if p.is_floating_point()]
    if not weights or weights[0].device.type != generator.device.type:
        return None

    def forward(matrix: Any) -> Any:
        with (
            at_work(lambda error: BadModel(f"the model raised {reason(error)}")),
            torch.inference_mode(),
            evaluating(module),
        ):
            raw = module(matrix)
        if not isinstance(raw, torch.Tensor) or raw.ndim == 0 or len(raw) != len(matrix):
            raise BadModel("the module must return one tensor, with outputs for each row")
        return raw

    schema = target.codec.schema
    return OnDevice(
        schema,
        forward,
        lambda raw: _read(raw, outputs, target.rule),
        weights[0].dtype,
        generator,
        tuple(_numbers(target, generator.device)),
        _chunk(generator, len(schema)),
        _BATCH.get(generator.device.type, MAX_BATCH),
        target.rule,
    )


def _can_follow(generator: Any) -> bool:
    """Can a generator, given by name, file or itself, decode on a device?"""
    if generator is None or generator == "none":
        return False
    if not isinstance(generator, (str, Path)):
        return isinstance(generator, WithTensors)
    name = str(read(generator)[1].get("kind")) if is_file(generator) else str(generator)
    return generators.offers(name).on_device


def _numbers(target: Target, device: Any) -> list[tuple[int, Any]]:
    """Columns whose levels stand for numbers other than their position, with NaN for missing."""
    import torch

    found = []
    for position, column in enumerate(target.codec.schema.columns):
        numbers = column.level_numbers
        if column.kind == "numerical" or numbers is None:
            continue
        if not np.array_equal(numbers, np.arange(len(numbers))):
            found.append((position, torch.tensor(np.append(numbers, np.nan), device=device)))
    return found


def _chunk(generator: WithTensors, n_columns: int) -> int:
    """Latents to probe at once: many, because few waste a device, within its memory."""
    if generator.device.type != "cuda":
        return _FEWEST
    import torch

    free, _ = torch.cuda.mem_get_info(generator.device)
    each = 4 * 4 * generator.latent_dim + 3 * 8 * 4 * n_columns + 512
    return int(np.clip(free // _SHARE // each // _FEWEST * _FEWEST, _FEWEST, _MOST))


# -- what a module says -----------------------------------------------------------------


def _read(raw: Any, outputs: Outputs, rule: Rule = AS_DECIDED) -> Any:
    """(n,) float64 answers as `Target.score` gives them; NaN where it would complain."""
    import torch

    width = tuple(raw.shape[1:])
    if width not in (((), (1,), (2,)) if outputs.classes == 2 else ((outputs.classes,),)):
        raise BadModel(
            f"the module returned outputs of shape {tuple(raw.shape)}; {say_width(outputs.classes)}"
        )
    if outputs.kind is None and width in ((), (1,)):
        raise InvalidInput(
            "limi cannot tell whether the module returns probabilities or logits; set "
            'module.output = "probability" or "logits"'
        )
    scores = outputs.scores(torch.where(raw.isfinite(), raw, torch.nan).double())
    told = torch.where(rule.allows(scores), scores, torch.nan)
    return rule.move(told)
