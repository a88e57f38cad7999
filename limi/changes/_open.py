"""A newer model, held to the question that an earlier run asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from limi.audits.problem import Problem, describe_untaken, prepare
from limi.audits.reopen import Run, Table
from limi.audits.sending import exchange_of, settle_remote
from limi.changes._columns import Columns, newer_schema
from limi.errors import BadModel, BadTable, InvalidInput
from limi.models import Meaning
from limi.remote.options import Remote
from limi.table.frames import columns_of
from limi.table.schema import Schema
from limi.types import Value

__all__ = ["as_meant", "notes_of", "open_newer", "resting"]

T = TypeVar("T")


_AS_BEFORE = Columns({}, {})


def open_newer(
    run: Run,
    model: Any,
    read: Table,
    columns: Columns = _AS_BEFORE,
    *,
    schema: Schema | None = None,
    anew: bool = False,
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    drop: str | Sequence[str] | None = None,
    only: str | Sequence[str] = (),
    protected_from: Any = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
) -> Problem:
    """A model and a table brought together as in the run; `anew` where the table is another one,
    whose columns have to be looked at again. How answers are read, and which columns the user keeps
    from the model, is as in the run where nothing else is said."""
    run.require_kind(decision)
    manifest = run.manifest
    before = run.schema
    target = columns.newer(manifest.target)
    beside = run.beside(protected_from)
    settled = settle_remote(model, remote)
    columns.check(before, manifest.target, [name for name, _, _ in columns_of(read.frame)])
    if anew or schema is not None or columns.renamed:
        aside = () if beside is None else [name for name, _, _ in columns_of(beside.frame)]
        schema = newer_schema(
            before, read.frame, columns, target=target, given=schema, beside=aside
        )
    else:
        schema = before
    if drop is None:
        drop = () if only else run.left_out(schema.names)

    def opened(meaning: Meaning | None) -> Problem:
        return prepare(
            model,
            read.frame,
            protected=(),
            target=target,
            favorable=manifest.favorable if favorable is None else favorable,
            output=meaning,
            decision=manifest.decision if decision is None else decision,
            order=manifest.order,
            schema=schema,
            drop=drop,
            only=only,
            redact=run.hidden or True,
            shown=before.names if not run.hidden else (),
            trust_pickle=trust_pickle,
            trust=trust,
            table_name=manifest.table,
            beside=beside,
            remote=settled,
        )

    try:
        return as_meant(output, manifest.output, opened)
    except BadTable as error:
        raise BadTable(f"{read.words} does not fit {run.words}: {error}") from None
    except BadModel as error:
        raise BadModel(
            f"the model cannot be asked about people of {read.words}: {error}; if its columns have "
            "changed since the run, name its table with --table FILE and old names with --rename"
        ) from None


@contextmanager
def resting(*problems: Problem) -> Iterator[None]:
    """Models behind an address are let go of at the end, whatever it is."""
    try:
        yield
    finally:
        for problem in problems:
            exchange = exchange_of(problem.target)
            if exchange is not None:
                exchange.rest()


def notes_of(problem: Problem) -> tuple[str, ...]:
    """What should be said of a model and a table."""
    untaken = describe_untaken(problem, twins_asked=False)
    return (*problem.notes, *problem.target.notes, *untaken)


def as_meant(
    given: Meaning | None, inherited: Meaning | None, make: Callable[[Meaning | None], T]
) -> T:
    """What `make` gives with the meaning of answers that is given, or else with that of the run.

    That of a run was said of a function, and a newer model may be one that says it itself.
    """
    if given is not None or inherited is None:
        return make(given)
    try:
        return make(inherited)
    except InvalidInput:
        return make(None)
