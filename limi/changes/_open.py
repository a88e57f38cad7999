"""A newer model, held to the question that an earlier run asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limi.audits import run_folder
from limi.audits.problem import Problem, prepare
from limi.audits.reopen import Run, Table
from limi.changes._columns import Columns, newer_schema
from limi.errors import BadModel, BadTable
from limi.models import Meaning
from limi.table.frames import columns_of
from limi.table.schema import Schema
from limi.types import Value

__all__ = ["Terms", "open_newer"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a newer model's answers are read; what is not said is as in the run."""

    favorable: Value | Sequence[Value] | None = None
    output: Meaning | None = None
    decision: str | None = None
    trust_pickle: bool = False
    trust: Sequence[str] = ()


def open_newer(
    run: Run,
    model: Any,
    read: Table,
    columns: Columns,
    terms: Terms,
    *,
    schema: Schema | None = None,
    anew: bool = False,
    protected_from: Any = None,
) -> Problem:
    """A model and a table brought together as in the run; `anew` where the table is another one,
    whose columns have to be looked at again."""
    manifest = run.manifest
    before = run_folder.read_schema(run.folder)
    target = columns.newer(manifest["target"])
    beside = run.beside(protected_from)
    columns.check(before, manifest["target"], [name for name, _, _ in columns_of(read.frame)])
    if anew or schema is not None or columns.renamed:
        aside = () if beside is None else [name for name, _, _ in columns_of(beside.frame)]
        schema = newer_schema(
            before, read.frame, columns, target=target, given=schema, beside=aside
        )
    else:
        schema = before
    try:
        return prepare(
            model,
            read.frame,
            protected=(),
            target=target,
            favorable=manifest["favorable"] if terms.favorable is None else terms.favorable,
            output=terms.output or manifest.get("output"),
            decision=manifest.get("decision") if terms.decision is None else terms.decision,
            schema=schema,
            trust_pickle=terms.trust_pickle,
            trust=terms.trust,
            table_name=manifest["table"],
            beside=beside,
        )
    except BadTable as error:
        raise BadTable(f"{read.words} does not fit the run {str(run.folder)!r}: {error}") from None
    except BadModel as error:
        raise BadModel(
            f"the model cannot be asked about people of {read.words}: {error}; if its columns have "
            "changed since the run, name its table with --table FILE and old names with --rename"
        ) from None
