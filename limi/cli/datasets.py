"""`limi datasets show NAME`: a known table and its columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument

from limi.cli import _console
from limi.cli._options import AsJson

if TYPE_CHECKING:
    from limi.table.schema import Schema

__all__ = ["app"]

app = typer.Typer(help="Known tables.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    pass


@app.command()
def show(
    name: Annotated[str, Argument(help="A name of `limi list datasets`.")],
    as_json: AsJson = False,
) -> None:
    """Show a known table: its columns, target, favorable label and licence."""
    from limi import data

    known = data.load(name)
    schema = known.schema
    if as_json:
        _console.print_json(
            {
                "name": known.name,
                "title": known.title,
                "rows": len(known.frame),
                "target": known.target,
                "favorable": known.favorable,
                "protected": list(known.protected),
                "licence": known.licence,
                "citation": known.citation,
                "columns": [
                    {"name": c.name, "kind": c.kind, "missing": c.missing, "meaning": c.meaning}
                    for c in schema.columns
                ],
                "constraints": dict(schema.rules.constraints),
                "derived": {d.column: list(d.sources) for d in schema.rules.derived},
                "roles": {r.column: r.protected for r in schema.rules.roles},
            }
        )
        return
    console = _console.out
    console.print(f"{known.name}: {known.title}", style="bold")
    wanted = "" if known.favorable is None else f" (favorable: {known.favorable})"
    console.print(
        f"{len(known.frame):,} rows, {len(schema)} columns, target {known.target}{wanted}, "
        f"usually protected: {', '.join(known.protected)}"
    )
    table = Table("column", "kind", "values", "meaning", box=None, padding=(0, 2, 0, 0))
    for column in schema.columns:
        if column.kind == "numerical":
            values = f"{column.show(column.low)} to {column.show(column.high)}"
        else:
            words = column.labels or [str(level) for level in column.levels]
            values = ", ".join(words[:4]) + (f" ... ({len(words)})" if len(words) > 4 else "")
        values += ", missing" if column.missing else ""
        table.add_row(column.name, column.kind, values, column.meaning)
    console.print(table)
    for rule in _say_rules(schema):
        console.print(rule)
    console.print(f"Licence: {known.licence}. {known.citation}")


def _say_rules(schema: Schema) -> Iterator[str]:
    """The rules of a table, a line each."""
    from limi.system.words import both

    yield from (f"Rule {name}: {text}" for name, text in schema.rules.constraints)
    for derived in schema.rules.derived:
        yield f"Derived: {derived.column} from {both(derived.sources)}"
    for role in schema.rules.roles:
        for thing in role.things:
            levels = [f"{level} as {role.protected} {value}" for value, level in thing]
            yield f"Role: {role.column} {' is '.join(levels)}"
