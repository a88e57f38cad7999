"""`python -m lab`: the tables and figures of the papers, run again beside their numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.main import get_command

from lab.bench_page import bench_figures, bench_page
from lab.extend import load_bench
from lab.files import SCALES, Study, check_names, load, names, shipped_results
from lab.formats import render
from lab.page import check_pages, figures, pages
from lab.results import DONE, Results, read
from lab.standings import Standings
from limi.cli import _console
from limi.cli._help import Command, Group
from limi.cli._net import exit_code_of
from limi.cli._options import Cluster
from limi.errors import InvalidInput, nearest
from limi.gpu.place import choose_device
from limi.system import writing

__all__ = ["main"]

app = typer.Typer(
    cls=Group,
    help="The tables and figures of the papers, run again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench = typer.Typer(
    cls=Group, help="The open benchmark of methods, run and ranked.", no_args_is_help=True
)
app.add_typer(bench, name="bench")

Out = Annotated[Path, Option(help="Folder of the cells and the files that they share.")]
Scale = Annotated[str, Option(help="smoke, small or paper.")]
Seeds = Annotated[int | None, Option(help="Seeds per cell. Default: as many as the scale has.")]
Keep = Annotated[
    Path | None, Option(help="Folder to write each study's results into, as one file.")
]
Workers = Annotated[
    str | None,
    Option(metavar="N|auto", help="Processes that run one cell each. Default: one per core."),
]
Fresh = Annotated[bool, Option("--fresh", help="Run cells that are already done too.")]
Only = Annotated[
    str | None, Option(help="Cells BENCHMARK/VARIANT/SEED to run, such as 'census-*/limi/0'.")
]
Kept = Annotated[
    Path | None, Option("--results", help="Folder of kept results. Default: those of lab/.")
]
File = Annotated[Path | None, Option(help="File to write. Default: standard output.")]
Add = Annotated[
    list[Path] | None,
    Option("--add", help="TOML file with your own targets and methods. Repeatable."),
]


@app.command("list")
def list_studies() -> None:
    """List the studies, and what each one reproduces."""
    known = map(load, names())
    _show(("study", "what", "of the paper"), *((s.name, s.title, s.source) for s in known))


@app.command()
def run(
    names: Annotated[list[str], Argument(help="Studies, or `all`.")],
    scale: Scale = "small",
    seeds: Seeds = None,
    out: Out = Path("limi-study"),
    keep: Keep = None,
    workers: Workers = None,
    cluster: Cluster = None,
    fresh: Fresh = False,
    only: Only = None,
    device: Annotated[str, Option(help="cpu, or cuda for generators and LIMI's searches.")] = "cpu",
) -> None:
    """Run the cells of studies that are not done yet, keeping each as it finishes."""
    given: dict[str, Any] = {"scale": scale, "seeds": seeds, "kept": keep, "workers": workers}
    given |= {"cluster": cluster, "fresh": fresh, "only": only}
    wanted = [load(name) for name in check_names(names)]
    _run_all(wanted, out, device=choose_device(device, None, "ctgan"), **given)


@app.command()
def page(results: Kept = None, file: File = None) -> None:
    """Write the pages Reproduction from kept results: the overview into FILE, one page per study
    into the folder of that name, and their figures into `figures` beside it."""
    target = None if file is None else writing.place(file)
    place = results or shipped_results()
    if target is None:
        _console.print_text(pages(place)["reproduction.md"])
        return
    stem = target.name.removesuffix(".md")
    written = {target.parent / name: text for name, text in pages(place, stem).items()}
    writing.make_folder(target.parent / stem)
    _write(written, figures(place), target.parent)


@app.command()
def check(
    baseline: Annotated[Path | None, Option(help="Numbers kept from before.")] = None,
    update: Annotated[bool, Option("--update", help="Write a new baseline.")] = False,
    workers: Workers = None,
    cluster: Cluster = None,
) -> None:
    """Run a fixed small set of cells; exit code 1 where a method has become worse, or where a
    remark on the kept cells no longer follows from them."""
    from lab.watch import watch

    wrong = check_pages(shipped_results())
    watched = watch(baseline, update=update, workers=workers, cluster=cluster, on_progress=_tell)
    _console.print_text("\n".join([*map(str, watched), *wrong, ""]))
    if wrong or not all(one.ok for one in watched):
        raise typer.Exit(1)


# -- the open benchmark -----------------------------------------------------------------------


@bench.command("list")
def list_targets(add: Add = None) -> None:
    """List the targets and the methods."""
    study = load_bench(add or ())
    rows = []
    for name, given in study.targets.items():
        settings = ", ".join(f"{key}={value}" for key, value in given["settings"].items())
        recipe = f"{given['recipe']} ({settings})" if settings else given["recipe"]
        rows.append((given["family"], name, given["table"], ", ".join(given["protected"]), recipe))
    _show(("family", "target", "table", "protected", "recipe"), *rows)
    _console.print_text(f"methods: {', '.join(v.name for v in study.variants)}\n")


@bench.command("run")
def run_bench(
    scale: Scale = "small",
    add: Add = None,
    seeds: Seeds = None,
    out: Out = Path("limi-bench"),
    keep: Keep = None,
    workers: Workers = None,
    cluster: Cluster = None,
    fresh: Fresh = False,
    only: Only = None,
) -> None:
    """Run the cells that are not done yet, keeping each as it finishes."""
    given: dict[str, Any] = {"scale": scale, "seeds": seeds, "kept": keep, "workers": workers}
    given |= {"cluster": cluster, "fresh": fresh, "only": only}
    _run_all([load_bench(add or ())], out, **given)


@bench.command()
def table(
    measure: Annotated[
        str, Option(help="What to compare; `ranks` for the ranks only.")
    ] = "findings",
    budget: Annotated[
        int | None, Option(help="Queries. Default: 10,000, or the nearest that was run.")
    ] = None,
    scale: Annotated[str | None, Option(help="Default: the largest that was run.")] = None,
    add: Add = None,
    out: Out = Path("limi-bench"),
) -> None:
    """Compare the methods: a measure on every target, and their ranks."""
    standings = _standings(add, scale, out)
    drawn = []
    if measure != "ranks":
        drawn.append(standings.table(measure, standings.check_budget(budget)))
    drawn.append(standings.rank_table("Mean ranks over all targets", standings.targets))
    networks = standings.networks()
    if len(networks) < len(standings.targets):
        drawn.append(standings.rank_table("Mean ranks over networks, of all methods", networks))
    _console.print_text("\n".join(map(render, drawn)))


@bench.command("page")
def write_bench(
    results: Kept = None,
    scale: Annotated[str | None, Option(help="Default: the largest that was run.")] = None,
    add: Add = None,
    file: File = None,
) -> None:
    """Write the page of results, and its diagrams into `figures` beside it."""
    target = None if file is None else writing.place(file)
    standings = _standings(add, scale, results or shipped_results())
    text = bench_page(standings)
    if target is None:
        _console.print_text(text)
    else:
        _write({target: text}, bench_figures(standings), target.parent)


# -- what commands share ----------------------------------------------------------------------


def _run_all(studies: list[Study], out: Path, **given: Any) -> None:
    """Run, and say what came of it; exit code 4 where cells failed."""
    from lab.run import run

    ran = run(studies, out=out, on_progress=_tell, **given)
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(ran.counts.items()))
    _console.print_text(
        f"{ran.cells:,} cells ({counts}); {ran.run:,} were run now in {ran.seconds:,.0f} seconds. "
        f"They are in {out}.\n"
    )
    told: dict[str, list[str]] = {}
    for cell, why in ran.problems:
        told.setdefault(why, []).append(cell)
    for why, cells in told.items():
        more = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
        _tell(f"{cells[0]}{more}: {why}")
    if ran.counts.get("failed"):
        raise typer.Exit(4)


def _tell(words: str) -> None:
    _console.err.print(words, soft_wrap=True, markup=False, highlight=False)


def _show(*rows: tuple[str, ...]) -> None:
    """Rows under each other, whole: names are there to be pasted, so a terminal may wrap them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    _console.print_text("\n".join([*lines, ""]))


def _write(texts: dict[Path, str], drawn: dict[str, str], folder: Path) -> None:
    """Pages, and their figures beside them."""
    if drawn:
        writing.make_folder(folder / "figures")
    writing.write_all(texts | {folder / "figures" / name: svg for name, svg in drawn.items()})


def _standings(added: list[Path] | None, scale: str | None, folder: Path) -> Standings:
    """How methods stand by the results of a scale, or of the largest that has any; by those of the
    folder first, then those that are kept."""
    study = load_bench(added or ())
    if scale is not None and scale not in SCALES:
        raise InvalidInput(f"unknown scale {scale!r}; {nearest(scale, SCALES)}")
    for place in (folder, shipped_results()):
        for one in [scale] if scale else reversed(SCALES):
            found: Results = read(study, one, place)
            if any(outcome.status == DONE for outcome in found.outcomes.values()):
                return Standings(study, found)
    raise InvalidInput(
        f"there are no results of the benchmark in {str(folder)!r}; "
        f"run: python -m lab bench run --scale {scale or 'small'}"
    )


for _group in (app, bench):
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
