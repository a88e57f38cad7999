"""The commands put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from limi.cli import (
    certify,
    compare,
    datasets,
    demo,
    diff,
    doctor,
    explain,
    explore,
    export,
    fit,
    gate,
    images,
    init,
    list_names,
    metrics,
    pack,
    repair,
    replay,
    report,
    sample,
    schema,
    test,
)
from limi.cli._apart import keep_apart
from limi.cli._complete import with_completion
from limi.cli._config import with_file
from limi.cli._examples import epilog
from limi.cli._help import Command, Group
from limi.cli._net import require_memory

__all__ = ["app"]

app = typer.Typer(
    name="limi",
    cls=Group,
    help="Find people whose decision flips when only a protected value changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from limi import __version__

        typer.echo(f"limi {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    require_memory(context.invoked_subcommand)


def _add(panel: str, name: str, command: Callable[..., None], *, config: bool = False) -> None:
    """A command under a heading of the help, with its examples; `config` reads limi.toml."""
    complete = with_completion(command)
    app.command(name, cls=Command, rich_help_panel=panel, epilog=epilog(name))(
        keep_apart(with_file(name, complete) if config else complete)
    )


def _add_group(panel: str, name: str, group: typer.Typer) -> None:
    for one in group.registered_commands:
        one.cls = Command
        if one.callback is not None:
            one.callback = keep_apart(with_completion(one.callback))
    app.add_typer(group, name=name, cls=Group, rich_help_panel=panel, epilog=epilog(name))


# In the order in which the help shows them.
_add("Test", "demo", demo.demo)
_add("Test", "init", init.init)
_add("Test", "test", test.test, config=True)
_add_group("Test", "images", images.app)
_add("Test", "schema", schema.schema, config=True)
_add("Test", "certify", certify.certify, config=True)
_add("Understand", "report", report.report)
_add("Understand", "explore", explore.explore)
_add("Understand", "metrics", metrics.metrics)
_add("Understand", "explain", explain.explain)
_add("Understand", "list", list_names.list_names)
_add("Understand", "doctor", doctor.doctor)
_add("Repair", "repair", repair.repair)
_add("Automate", "gate", gate.gate, config=True)
_add("Automate", "replay", replay.replay)
_add("Automate", "diff", diff.diff)
_add("Automate", "export", export.export)
_add("Automate", "pack", pack.pack)
_add("Research", "compare", compare.compare, config=True)
_add("Research", "fit", fit.fit, config=True)
_add("Research", "sample", sample.sample)
_add_group("Research", "datasets", datasets.app)
