"""Targets: what can be asked for decisions. One file a kind; the folder is the registry.

A kind's module may offer `accepts(object)` and `wrap(object, decision)` for live objects, and
`load(place, decision)` for `KIND:PLACE`. Loaders that can be told more name the keyword
(`trust_pickle`, `trust`, `table`), and get it only then.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from limi._registry import Registry
from limi.errors import InvalidInput, nearest
from limi.models._base import Answers, Decision, Model
from limi.types import Value

__all__ = ["Answers", "Decision", "Model", "get", "load", "names", "wrap"]

_REGISTRY = Registry("limi.models", "model kind")


def names() -> list[str]:
    """Every kind of target."""
    return _REGISTRY.names()


def get(kind: str) -> ModuleType:
    """The module of a kind."""
    return _REGISTRY.get(kind)


def wrap(
    target: Any,
    *,
    favorable: Value | None = None,
    labels: Sequence[Value] = (),
) -> Model:
    """A model of a live object: an estimator, a torch module, a booster, or a function."""
    if isinstance(target, Model):
        return target
    decision = Decision(favorable, tuple(labels))
    # Functions accept every callable, so they are asked last.
    for kind in sorted(names(), key=lambda name: (name == "python", name)):
        module = get(kind)
        if hasattr(module, "accepts") and module.accepts(target):
            model: Model = module.wrap(target, decision)
            return model
    raise InvalidInput(
        f"{type(target).__name__} is no model that limi knows; give a fitted classifier, a torch "
        "module, a booster, or a function that takes a frame and returns scores"
    )


def load(
    uri: str,
    *,
    favorable: Value | None = None,
    labels: Sequence[Value] = (),
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    table: str | None = None,
) -> Model:
    """The model at `KIND:PLACE`."""
    kind, _, place = uri.partition(":")
    loadable = [name for name in names() if hasattr(get(name), "load")]
    if not place or kind not in loadable:
        hint = nearest(kind, loadable)
        raise InvalidInput(f"--model {uri!r} is not of the form KIND:PLACE; kinds: {hint}")
    loader = get(kind).load
    known = inspect.signature(loader).parameters
    offered = {"trust_pickle": trust_pickle, "trust": tuple(trust), "table": table}
    extra = {name: value for name, value in offered.items() if name in known}
    model: Model = loader(place, Decision(favorable, tuple(labels)), **extra)
    return model
