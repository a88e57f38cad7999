"""Runs whose model is behind an address: what they may send, what they have sent, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from limi import models
from limi.errors import InvalidInput, LimiError, Unreachable
from limi.models._remote import RemoteModel
from limi.models.target import Target
from limi.remote.exchange import Exchange
from limi.remote.memory import remove_empty
from limi.remote.options import Remote
from limi.system.watch import OutOfQueries, OutOfTime
from limi.system.words import both

__all__ = [
    "check_queries",
    "describe",
    "destination",
    "exchange_of",
    "in_time",
    "is_by_address",
    "sends_rows",
    "settle_remote",
    "tell",
    "tidying",
    "too_late",
]

_FEWEST = 40  # queries with which a model is looked at, measured and searched
_ENDING = ".answers"


def settle_remote(
    model: Any,
    given: Remote | None,
    *,
    max_queries: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    look: Callable[[], None] | None = None,
) -> Remote | None:
    """How a model is asked in this run; None where it is not behind an address.

    With a run folder the answers are kept beside it, unless another file was named, so that a run
    that is resumed pays for nothing twice. While answers are waited for, `look` is called, which
    raises where the run has no time left.
    """
    if isinstance(model, RemoteModel):
        model.exchange.allow(max_queries, look)
        return None
    if not isinstance(model, str) or not is_by_address(model):
        if given is not None:
            raise InvalidInput(
                "--header, --concurrency, --cache, --timeout and --price are for a model behind an "
                "address, such as mlflow:http://127.0.0.1:5001; leave them out"
            )
        return None
    check_queries(max_queries)
    remote = Remote() if given is None else given
    cache = remote.cache
    if cache is None and out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        cache = out.with_name(out.name + _ENDING)
    run = "" if out is None else str(out)
    return replace(remote, max_queries=max_queries, cache=cache, run=run, resume=resume, look=look)


@contextmanager
def in_time(model: Any) -> Iterator[None]:
    """A block before anything is measured; Unreachable where the run's time ends in it."""
    try:
        yield
    except OutOfQueries:
        raise
    except OutOfTime:
        raise too_late(model) from None


def too_late(model: Any) -> Unreachable:
    """What a run ends with whose time was over before anything was measured."""
    host = model.exchange.shape.host if isinstance(model, RemoteModel) else destination(model)
    return Unreachable(
        f"the time was over before {host or 'the model'} had answered enough to measure "
        "anything; allow more seconds, or find out why its answers take so long"
    )


def check_queries(max_queries: int | None) -> None:
    """InvalidInput where a budget is too small to look at a model, measure it and search."""
    if max_queries is not None and max_queries < _FEWEST:
        raise InvalidInput(
            f"max-queries is {max_queries}; a model is asked about at least {_FEWEST} rows, to see "
            "what it answers, whether it repeats itself, and how often it flips"
        )


def sends_rows(model: Any) -> bool:
    """Is this a model behind an address, whether opened or not?"""
    return isinstance(model, RemoteModel) or (isinstance(model, str) and is_by_address(model))


@contextmanager
def tidying(remote: Remote | None) -> Iterator[None]:
    """A block that opens a model; where that fails, no cache is left in which nothing stands."""
    kept = None if remote is None or remote.cache is None else Path(remote.cache)
    made = kept is not None and not kept.exists()
    try:
        yield
    except LimiError:
        if made and kept is not None:
            remove_empty(kept)
        raise


def destination(model: Any) -> str | None:
    """Where rows would be sent, in words; None for a model that is here."""
    if not isinstance(model, str) or not is_by_address(model):
        return None
    place = model.partition(":")[2]
    address = place.partition("#")[0]
    return urlsplit(address).netloc or f"the address in {place}"


def is_by_address(uri: str) -> bool:
    """Does asking this model send rows to an address?"""
    kind = uri.partition(":")[0]
    try:
        return models.offers(kind).by_address
    except LimiError:  # an unknown kind, which opening it will say
        return False


def exchange_of(target: Target) -> Exchange | None:
    """What a model behind an address is asked through."""
    return target.model.exchange if isinstance(target.model, RemoteModel) else None


def describe(target: Target) -> dict[str, Any]:
    """What was sent, for JSON; empty for a model that is here."""
    exchange = exchange_of(target)
    if exchange is None:
        return {}
    kept = exchange.memory.path
    return {
        "address": exchange.shape.host,
        **exchange.tally.as_dict(exchange.remote.price),
        "max_queries": exchange.max_queries,
        "cache": None if kept is None else kept.name,
    }


def tell(target: Target) -> list[str]:
    """What was sent, in words."""
    exchange = exchange_of(target)
    if exchange is None:
        return []
    tally, price = exchange.tally, exchange.remote.price
    told = f"{tally.sent:,} rows were sent to {exchange.shape.host}"
    if tally.before:
        told += f", {tally.before:,} of them before the run was resumed, and the others"
    told += f" in {tally.requests:,} requests"
    if tally.known:
        told += f"; {tally.known:,} questions had been answered before"
    if tally.failed:
        why = both([f"{words} ({n:,})" for words, n in sorted(tally.failures.items())])
        told += (
            f"; {tally.failed:,} requests failed and were made again, with {tally.again:,} rows "
            f"outside the count: {why}"
        )
    notes = [told]
    if tally.refused:
        notes.append(
            f"{tally.refused:,} of {tally.answers:,} answers were refusals, or said neither yes "
            "nor no; they form a class of their own, decide nothing, and never count as part of a "
            "flip"
        )
    if price is not None:
        cost, most = (price * n / 1000 for n in (tally.sent, tally.sent + tally.again))
        beside = f", or {most:,.2f} if rows that were sent again are charged again"
        notes.append(
            f"that costs {cost:,.2f} at {price:g} for 1,000 queries{beside if most > cost else ''}"
        )
    return notes
