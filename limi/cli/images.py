"""`limi images`: fit generators and scorers of images, and test a classifier with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Option, Typer

from limi.cli import _console
from limi.cli._apart import Reads, Writes
from limi.cli._options import AsJson, TrustPickle

__all__ = ["app"]


def _folder(place: str) -> Iterator[tuple[str, str]]:
    yield "the images", place


def _file_of(place: str) -> Iterator[tuple[str, str]]:
    """The file of `KIND:FILE` or `KIND:FILE:NAME`, where there is such a file."""
    from limi.system.reading import is_file

    _, _, rest = place.partition(":")
    for path in (place, rest, rest.rpartition(":")[0]):
        if is_file(path):
            yield f"the file {path!r}", path


def _files_of(judges: str) -> Iterator[tuple[str, str]]:
    for part in judges.split(","):
        yield from _file_of(part.partition("=")[2])


app = Typer(no_args_is_help=True, help="Test image classifiers.")

Folder = Annotated[
    str,
    Option("--images", help="Folder of images, or .npz with `images`."),
    Reads("the images", _folder),
]
Labels = Annotated[
    Path | None,
    Option(help="CSV with a column of file names, or CelebA's list."),
    Reads("the labels"),
]
Size = Annotated[int | None, Option(help="Crop and resize images to a square of this side.")]
Device = Annotated[str, Option(help="cpu, cuda, or auto: cuda if there is one.")]
Seed = Annotated[int, Option(help="Same seed, same findings.")]


@app.command()
def test(
    target: Annotated[
        str,
        Option(metavar="KIND:PLACE", help="python:FILE.py:NAME, torch:, onnx: or scorer:FILE."),
        Reads("the model", _file_of),
    ],
    protected: Annotated[str, Option(help="Label whose groups are compared.")],
    out: Annotated[Path, Option(help="Folder to write."), Writes()],
    images: Folder,
    labels: Labels = None,
    truth: Annotated[str | None, Option(help="Label that the decision should depend on.")] = None,
    hold: Annotated[
        list[str] | None, Option(help="Label that must not change either. Repeatable.")
    ] = None,
    generator: Annotated[
        str,
        Option(help="eigenfaces, vae, a file or python:FILE.py:NAME."),
        Reads("the generator", _file_of),
    ] = "eigenfaces",
    judge: Annotated[
        str,
        Option(help="edges, plain (a network), or none; NAME=KIND:PLACE,... for your own."),
        Reads("a judge", _files_of),
    ] = "edges",
    scorers: Annotated[str, Option(help="pixels, or resnet18.")] = "pixels",
    cases: Annotated[
        int | None, Option(help="Cases to search. Default: 6,000, or 50,000 on a GPU.")
    ] = None,
    preset: Annotated[str, Option(help="default, or paper.")] = "default",
    step: Annotated[str | None, Option(help="least or mirror.")] = None,
    start: Annotated[str | None, Option(help="boundary or random.")] = None,
    placebo: Annotated[bool, Option(help="Move the same cases in random directions too.")] = True,
    plant: Annotated[float, Option(help="Add a bias of this many logits to the target.")] = 0.0,
    max_queries: Annotated[int | None, Option(help="Most questions to the target.")] = None,
    max_seconds: Annotated[float | None, Option(help="Most seconds.")] = None,
    max_findings: Annotated[int | None, Option(help="Stop after this many findings.")] = None,
    pairs: Annotated[int, Option(help="Findings to keep as PNG pairs, the strongest.")] = 200,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    trust_pickle: TrustPickle = False,
    force: Annotated[bool, Option("--force", help="Replace an existing run.")] = False,
    resume: Annotated[bool, Option("--resume", help="Continue an unfinished run.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find images whose decision changes with a protected attribute, compared with a placebo."""
    from limi.images import audit_images
    from limi.report import images as report
    from limi.search.budget import Budget

    with _console.run_progress() as on_progress:
        result = audit_images(
            target,
            generator,
            protected,
            images=images,
            labels=labels,
            truth=truth,
            hold=tuple(hold or ()),
            judge=_judge(judge),
            scorers=_literal(scorers),
            cases=cases,
            preset=preset,
            step=_literal(step),
            start=_literal(start),
            placebo=placebo,
            plant=plant,
            budget=Budget(
                max_queries=max_queries, max_seconds=max_seconds, max_findings=max_findings
            ),
            pairs=pairs,
            size=size,
            seed=seed,
            device=_device(device),
            trust_pickle=trust_pickle,
            out=out,
            force=force,
            resume=resume,
            on_progress=on_progress,
        )
    if as_json:
        _console.print_json({**result.to_dict(), "folder": str(out)})
        return
    _console.out.print(report.sentence(result), soft_wrap=True)
    shown = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for line in report.lines(result):
        shown.add_row(line.name, line.value, line.means)
    _console.out.print(shown)
    for note in result.notes:
        _console.err.print(f"Note: {note}.", soft_wrap=True)
    _console.out.print(f"Written: {out / 'report.html'}")


@app.command()
def fit(
    images: Folder,
    out: Annotated[Path, Option(help="File to keep it in."), Writes()],
    generator: Annotated[str, Option(help="eigenfaces or vae.")] = "eigenfaces",
    attribute: Annotated[
        str | None, Option(help="Label: fit a scorer of it instead of a generator.")
    ] = None,
    beside: Annotated[
        list[str] | None, Option(help="Label that the scorer must not confuse it with. Repeatable.")
    ] = None,
    scorer: Annotated[str, Option(help="pixels, edges, resnet18 or plain.")] = "pixels",
    threshold: Annotated[
        str, Option(help="half, or f1: where F1 is best on half of the held-out images.")
    ] = "half",
    labels: Labels = None,
    steps: Annotated[int | None, Option(help="Steps of training, for vae.")] = None,
    size: Size = None,
    seed: Seed = 0,
    device: Device = "auto",
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit an image generator, or a scorer for one attribute, and say how good it is."""
    from limi.images import fitting
    from limi.search.budget import check_seed
    from limi.system import writing

    place = writing.place(out, replace=force)
    check_seed(seed)
    where = _device(device)
    with _console.steps(f"fitting {attribute or generator}") as on_step:
        if attribute is None:
            content, told = fitting.fit_generator(
                images, generator, seed, size=size, steps=steps, device=where, on_step=on_step
            )
        else:
            content, told = fitting.fit_attribute(
                images,
                labels,
                attribute,
                tuple(beside or ()),
                scorer,
                seed,
                size=size,
                device=where,
                threshold=threshold,
            )
    writing.write(place, content)
    told["file"] = str(out)
    if as_json:
        _console.print_json(told)
        return
    shown = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, value in told.items():
        shown.add_row(
            name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
        )
    _console.out.print(shown)


def _device(name: str) -> str:
    """The device of a name; `auto` is a GPU where there is one."""
    if name != "auto":
        if name != "cpu":
            from limi.generators._training import device_of, torch_for

            torch_for(f"the device {name!r}")
            device_of(name)
        return name
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def _judge(text: str) -> Any:
    """An architecture, or scorers by the name of what they judge."""
    if "=" not in text:
        return text
    return dict(part.partition("=")[::2] for part in text.split(","))


def _literal(word: str | None) -> Any:
    """A word as the audit takes it, which says itself where it is not one of its own."""
    return word
