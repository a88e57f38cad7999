"""`python -m lab`: the tables and figures of the papers, run again beside their numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option
from typer.main import get_command

from lab import bench_commands
from lab.running import (
    FreshOption,
    OutOption,
    SeedsOption,
    WorkersOption,
    align,
    end_run,
    show_progress,
)
from limi.cli import _console
from limi.cli._help import Command, Group
from limi.cli._net import exit_code_of
from limi.cli._options import AsJson, Cluster

if TYPE_CHECKING:
    pass

__all__ = ["main"]

_OUT = Path("limi-study")

app = typer.Typer(
    cls=Group,
    help="The tables and figures of the papers, run again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_studies(
    as_json: AsJson = False,
) -> None:
    """List the studies, and what each one reproduces."""
    from lab import api as studies

    known = [studies.load(name) for name in studies.names()]
    if as_json:
        _console.print_json(
            {
                s.name: {
                    "title": s.title,
                    "source": s.source,
                    "cells": {scale: len(studies.expand(s, scale)) for scale in studies.SCALES},
                }
                for s in known
            }
        )
        return
    rows = [("study", "what", "of the paper")]
    rows += [(study.name, study.title, study.source) for study in known]
    _console.print_text(align(rows))


@app.command()
def run(
    names: Annotated[list[str], Argument(help="Studies, or `all`.")],
    scale: Annotated[str, Option(help="smoke, small or paper.")] = "small",
    seeds: SeedsOption = None,
    out: OutOption = _OUT,
    keep: Annotated[
        Path | None, Option(help="Folder to write each study's results into, as one file.")
    ] = None,
    workers: WorkersOption = None,
    cluster: Cluster = None,
    fresh: FreshOption = False,
    only: Annotated[
        str | None, Option(help="Cells BENCHMARK/VARIANT/SEED to run, such as 'census-*/limi/0'.")
    ] = None,
    device: Annotated[str, Option(help="cpu, or cuda for generators and LIMI's searches.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Run the cells of studies that are not done yet, keeping each as it finishes."""
    from lab import api as studies
    from lab.files import check_names
    from limi.gpu.place import choose_device

    wanted = [studies.load(name) for name in check_names(names)]
    with show_progress() as show:
        ran = studies.run(
            wanted,
            scale=scale,
            out=out,
            seeds=seeds,
            workers=workers,
            cluster=cluster,
            kept=keep,
            fresh=fresh,
            only=only,
            device=choose_device(device, None, "ctgan"),
            on_progress=show,
        )
    end_run(ran, out, as_json, {"studies": [study.name for study in wanted], "scale": scale})


@app.command()
def page(
    results: Annotated[
        Path | None, Option(help="Folder of kept results. Default: those that come with limi.")
    ] = None,
    file: Annotated[Path | None, Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write the pages Reproduction from kept results: the overview into FILE, one page per study
    into the folder of that name, and their figures into `figures` beside it."""
    from lab import api as studies
    from limi.system import writing

    target = None if file is None else writing.place(file)
    place = results or studies.shipped_results()
    if target is None:
        _console.print_text(studies.pages(place)["reproduction.md"])
        return
    stem = target.name.removesuffix(".md")
    written = {target.parent / name: text for name, text in studies.pages(place, stem).items()}
    written[target] = written.pop(target.parent / f"{stem}.md")
    beside = target.parent / "figures"
    drawn = {beside / name: svg for name, svg in studies.figures(place).items()}
    for folder in (target.parent / stem, *([beside] if drawn else [])):
        writing.make_folder(folder)
    writing.write_all(written | drawn)


@app.command()
def check(
    baseline: Annotated[Path | None, Option(help="Numbers kept from before.")] = None,
    update: Annotated[bool, Option("--update", help="Write a new baseline.")] = False,
    workers: WorkersOption = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Run a fixed small set of cells; exit code 1 where a method has become worse, or where a
    remark on the kept cells no longer follows from them."""
    from lab import api as studies

    wrong = studies.check_pages(studies.shipped_results())
    with show_progress() as show:
        watched = studies.watch(
            baseline, update=update, workers=workers, cluster=cluster, on_progress=show
        )
    worse = [one for one in watched if not one.ok]
    lines = [*map(str, watched), *wrong]
    if as_json:
        _console.print_json({"ok": not worse and not wrong, "lines": lines})
    else:
        for line in lines:
            _console.out.print(line, soft_wrap=True, markup=False)
    if worse or wrong:
        raise typer.Exit(1)


app.add_typer(bench_commands.app, name="bench", cls=Group)
for _group in (app, bench_commands.app):
    for _command in _group.registered_commands:
        _command.cls = Command


def main() -> None:
    """Run the command; what goes wrong is one sentence and an exit code, as with `limi`."""
    sys.exit(exit_code_of(_run))


def _run() -> None:
    command = get_command(app)
    with command.make_context("python -m lab", sys.argv[1:]) as context:
        command.invoke(context)


if __name__ == "__main__":
    main()
