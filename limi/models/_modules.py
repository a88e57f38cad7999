"""The state of torch around a call of a module: eval mode, and one core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["evaluating", "on_one_core"]


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Every part of the module in eval mode, and as it was before afterwards."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def on_one_core() -> Iterator[None]:
    """Torch on one core: batches this small gain nothing from more, and wait for them if busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
