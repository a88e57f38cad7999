"""The commands put together."""

from __future__ import annotations

from typing import Annotated

import typer

from limi.cli import (
    bench,
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
    study,
    test,
)
from limi.cli._config import with_file
from limi.cli._net import require_memory

__all__ = ["app"]

app = typer.Typer(
    name="limi",
    help="Find people whose decision flips when only a protected value changes.",
    no_args_is_help=True,
    add_completion=False,
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


app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("test")(with_file("test", test.test))
app.command("gate")(with_file("gate", gate.gate))
app.command("certify")(with_file("certify", certify.certify))
app.command("compare")(with_file("compare", compare.compare))
app.command("replay")(replay.replay)
app.command("diff")(diff.diff)
app.command("export")(export.export)
app.command("pack")(pack.pack)
app.command("repair")(repair.repair)
app.command("report")(report.report)
app.command("explore")(explore.explore)
app.command("metrics")(metrics.metrics)
app.command("schema")(with_file("schema", schema.schema))
app.command("fit")(with_file("fit", fit.fit))
app.command("sample")(sample.sample)
app.command("list")(list_names.list_names)
app.command("explain")(explain.explain)
app.command("doctor")(doctor.doctor)
app.add_typer(datasets.app, name="datasets")
app.add_typer(study.app, name="study")
app.add_typer(bench.app, name="bench")
app.add_typer(images.app, name="images")
