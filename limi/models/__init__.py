"""Targets: what can be asked for decisions. One file per kind; the folder is the registry.

A kind's module may have `accepts(object)` and `wrap(object, decision)` for live objects, and
`load(place, decision)` for `KIND:PLACE`; what else it can do it declares as `OFFERS`. Modules
elsewhere ask `offers(kind)` and know no kind by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from limi._registry import Registry
from limi.decisions import AS_DECIDED, Rule
from limi.errors import BadModel, InvalidInput, nearest
from limi.models import _offers
from limi.models._base import Answers, Decision, Meaning, Model
from limi.models._function import FunctionModel
from limi.models._offers import Loads, ModelOffers, Wraps
from limi.remote.options import Remote
from limi.system.foreign import at_work, reason
from limi.system.reading import is_file
from limi.types import Value

__all__ = [
    "Answers",
    "Decision",
    "Meaning",
    "Model",
    "ModelOffers",
    "adapt",
    "files",
    "get",
    "kind_of_file",
    "load",
    "names",
    "offers",
    "split_uri",
    "wrap",
]

_REGISTRY = Registry("limi.models", "model kind", apart=frozenset({"gradients", "target", "trial"}))


def names() -> list[str]:
    """Every kind of target."""
    return _REGISTRY.names()


def get(kind: str) -> ModuleType:
    """The module of a kind."""
    module: ModuleType = _REGISTRY.get(kind)
    return module


def offers(kind: str) -> ModelOffers:
    """What a kind declares of itself."""
    return _offers.offers(get(kind))


def wrap(
    target: Any,
    *,
    favorable: Value | tuple[Value, ...] | None = None,
    labels: Sequence[Value] = (),
    output: Meaning | None = None,
    rule: Rule = AS_DECIDED,
) -> Model:
    """A model of a live object: an estimator, a torch module, a booster, or a function.

    `output` says whether the answers of a function are labels or scores, `rule` what counts as a
    decision.
    """
    decision = Decision(favorable, tuple(labels), _meaning(output), rule)
    with at_work(lambda error: BadModel(f"looking at the model raised {reason(error)}")):
        return _fitting(adapt(target, decision), decision)


def adapt(target: Any, decision: Decision) -> Model:
    """A model of a live object under a decision; what loaders end with."""
    if isinstance(target, Model):
        return target
    for kind in sorted(names(), key=lambda kind: (offers(kind).last_resort, kind)):
        module = get(kind)
        if isinstance(module, Wraps) and module.accepts(target):
            model: Model = module.wrap(target, decision)
            return model
    what = f"the class {target.__name__}" if isinstance(target, type) else type(target).__name__
    raise InvalidInput(
        f"{what} is not a model that limi recognises; give a fitted classifier, a torch module, a "
        "booster, or a function that takes a frame and returns scores"
    )


def load(
    uri: str,
    *,
    favorable: Value | tuple[Value, ...] | None = None,
    labels: Sequence[Value] = (),
    output: Meaning | None = None,
    rule: Rule = AS_DECIDED,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    table: str | None = None,
    remote: Remote | None = None,
) -> Model:
    """The model at `KIND:PLACE`."""
    kind, place = split_uri(uri)
    loader = get(kind).load
    known = inspect.signature(loader).parameters
    offered = {
        "trust_pickle": trust_pickle,
        "trust": tuple(trust),
        "table": table,
        "remote": remote,
    }
    extra = {name: value for name, value in offered.items() if name in known}
    decision = Decision(favorable, tuple(labels), _meaning(output), rule)
    with at_work(lambda error: BadModel(f"opening {uri!r} raised {reason(error)}")):
        model: Model = loader(place, decision, **extra)
    return _fitting(model, decision)


def split_uri(uri: str) -> tuple[str, str]:
    """Kind and place of `KIND:PLACE`; InvalidInput where no kind that opens models is named."""
    kind, _, place = uri.partition(":")
    loadable = [name for name in names() if isinstance(get(name), Loads)]
    if not place or kind not in loadable:
        raise InvalidInput(
            f"model {uri!r} is not of the form KIND:PLACE; {_guess(uri) or nearest(kind, loadable)}"
        )
    return kind, place


def _meaning(output: str | None) -> Meaning | None:
    if output in (None, *get_args(Meaning)):
        return output  # type: ignore[return-value]
    raise InvalidInput(
        f"output is {output!r}; it must say what a function returns: label or score (the run "
        "folder is --out)"
    )


def _fitting(model: Model, decision: Decision) -> Model:
    """The model; InvalidInput where its answers were called something that it knows better."""
    if decision.output is not None and not isinstance(model, FunctionModel):
        raise InvalidInput(
            f"output={decision.output!r} is for functions, but this model is a "
            f"{type(model).__name__}, whose answers are known; leave it out"
        )
    return model


def files(uri: str) -> list[Path]:
    """The files that `KIND:PLACE` is read from, the named one first; none where it names none."""
    kind, _, place = uri.partition(":")
    bare = place.rpartition("?")[0]  # in front of options
    for path in map(Path, (place, bare, place.rpartition(":")[0])):
        if place and kind in names() and is_file(path):
            return offers(kind).all_files(path)
    return []


def kind_of_file(name: str) -> str | None:
    """The kind whose files' names end so; None where there is none."""
    return next((kind for kind in names() if name.lower().endswith(offers(kind).endings)), None)


def _guess(uri: str) -> str:
    """A hint for a bare file name, by its ending."""
    kind = kind_of_file(uri)
    return "" if kind is None else f"did you mean '{kind}:{uri}'?"
