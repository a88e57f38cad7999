"""`python -m lab bench`: every method on the same targets, ranked; add targets and methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from lab.running import (
    FreshOption,
    OutOption,
    ScaleOption,
    SeedsOption,
    WorkersOption,
    align,
    end_run,
    find_results,
    show_progress,
)
from limi.cli import _console
from limi.cli._help import Group
from limi.cli._options import AsJson, Cluster

if TYPE_CHECKING:
    from lab.api import Standings, Study

__all__ = ["app"]

_OUT = Path("limi-bench")

app = typer.Typer(
    cls=Group, help="The open benchmark of methods, run and ranked.", no_args_is_help=True
)

AddOption = Annotated[
    list[Path] | None,
    Option("--add", help="TOML file with your own targets and methods. Repeatable."),
]


@app.command("list")
def list_targets(add: AddOption = None, as_json: AsJson = False) -> None:
    """List the targets and the methods."""
    study = _study(add)
    if as_json:
        _console.print_json(
            {
                "targets": list(study.targets.values()),
                "methods": [
                    {"name": v.name, "method": v.method, "settings": dict(v.settings)}
                    for v in study.variants
                ],
                "cells": {scale: _count(study, scale) for scale in _scales()},
            }
        )
        return
    rows = [("family", "target", "table", "protected", "recipe")]
    for name, given in study.targets.items():
        settings = ", ".join(f"{key}={value}" for key, value in given["settings"].items())
        recipe = f"{given['recipe']} ({settings})" if settings else given["recipe"]
        rows.append((given["family"], name, given["table"], ", ".join(given["protected"]), recipe))
    _console.print_text(align(rows))
    _console.out.print(f"methods: {', '.join(v.name for v in study.variants)}", soft_wrap=True)


@app.command()
def run(
    scale: Annotated[str, Option(help="smoke, small or paper.")] = "small",
    add: AddOption = None,
    seeds: SeedsOption = None,
    out: OutOption = _OUT,
    keep: Annotated[
        Path | None, Option(help="Folder to write all results into, as one file.")
    ] = None,
    workers: WorkersOption = None,
    cluster: Cluster = None,
    fresh: FreshOption = False,
    only: Annotated[
        str | None, Option(help="Cells TARGET/METHOD/SEED to run, such as 'census-*/limi/0'.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the cells that are not done yet, keeping each as it finishes."""
    from lab import api as studies

    study = _study(add)
    with show_progress() as show:
        ran = studies.run(
            [study],
            scale=scale,
            out=out,
            seeds=seeds,
            workers=workers,
            cluster=cluster,
            kept=keep,
            fresh=fresh,
            only=only,
            on_progress=show,
        )
    end_run(ran, out, as_json, {"scale": scale})


@app.command()
def collect(
    folders: Annotated[list[Path], Argument(help="Folders of runs or of kept results.")],
    keep: Annotated[Path, Option(help="Folder to write all results into, as one file.")],
    scale: Annotated[str, Option(help="smoke, small or paper.")] = "small",
    add: AddOption = None,
    as_json: AsJson = False,
) -> None:
    """Merge results of several machines into one file; the first folder that has a cell wins."""
    from lab import api as studies
    from limi.system import writing

    found = studies.collect_bench(_study(add), scale, folders)
    writing.make_folder(writing.absolute(keep), option="--keep")
    path = studies.keep(found, keep)
    if as_json:
        _console.print_json({"cells": len(found.outcomes), "file": str(path)})
    else:
        _console.out.print(f"wrote {len(found.outcomes):,} cells into {path}", soft_wrap=True)


@app.command()
def table(
    measure: Annotated[
        str, Option(help="What to compare; `ranks` for the ranks only.")
    ] = "findings",
    budget: Annotated[
        int | None, Option(help="Queries. Default: 10,000, or the nearest that was run.")
    ] = None,
    scale: ScaleOption = None,
    add: AddOption = None,
    out: OutOption = _OUT,
    as_json: AsJson = False,
) -> None:
    """Compare the methods: a measure on every target, and their ranks."""
    from lab import api as studies

    standings = _standings(_study(add), scale, out)
    if as_json:
        _console.print_json(standings.tree())
        return
    drawn = []
    if measure != "ranks":
        drawn.append(standings.table(measure, standings.check_budget(budget)))
    drawn.append(standings.rank_table("Mean ranks over all targets", standings.targets))
    networks = standings.networks()
    if len(networks) < len(standings.targets):
        drawn.append(standings.rank_table("Mean ranks over networks, of all methods", networks))
    _console.print_text("\n".join(studies.render(one) for one in drawn))


@app.command()
def page(
    results: Annotated[
        Path | None, Option(help="Folder of kept results. Default: those that come with limi.")
    ] = None,
    scale: ScaleOption = None,
    add: AddOption = None,
    file: Annotated[Path | None, Option(help="File to write. Default: standard output.")] = None,
) -> None:
    """Write the page of results, and its diagrams into `figures` beside it."""
    from lab import api as studies
    from limi.system import writing

    target = None if file is None else writing.place(file)
    standings = _standings(_study(add), scale, results or studies.shipped_results())
    text = studies.bench_page(standings)
    if target is None:
        _console.print_text(text)
        return
    drawn = studies.bench_figures(standings)
    beside = target.parent / "figures"
    if drawn:
        writing.make_folder(beside)
    writing.write_all({target: text, **{beside / name: svg for name, svg in drawn.items()}})


def _study(added: list[Path] | None) -> Study:
    from lab import api as studies

    return studies.load_bench(added or ())


def _scales() -> tuple[str, ...]:
    from lab import api as studies

    return studies.SCALES


def _count(study: Study, scale: str) -> int:
    from lab import api as studies

    return len(studies.expand(study, scale))


def _standings(study: Study, scale: str | None, folder: Path) -> Standings:
    """How methods stand by the results of a scale, or of the largest that has any."""
    from lab import api as studies
    from limi.errors import InvalidInput

    found = find_results(study, scale, folder, lambda outcome: outcome.status == "done")
    if found is None:
        raise InvalidInput(
            f"there are no results of the benchmark in {str(folder)!r}; "
            f"run: python -m lab bench run --scale {scale or 'small'}"
        )
    return studies.Standings(study, found)
