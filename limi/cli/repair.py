"""`limi repair`: the ways to repair a tested model, side by side, and which of them to take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, TABLE, TRAINER, Writes
from limi.cli._options import (
    AsJson,
    Cache,
    Cluster,
    Header,
    RunFolder,
    Timeout,
    Trust,
    TrustPickle,
    remote_of,
)

__all__ = ["repair"]


def repair(
    folder: RunFolder,
    out: Annotated[
        Path,
        Option(help="Folder to write: the repaired model, its card, figures and report."),
        Writes(),
    ],
    how: Annotated[
        str,
        Option(
            help="average (trains nothing), drop, copies, pairs, findings, or all side by side."
        ),
    ] = "all",
    preset: Annotated[
        str, Option(help="For findings: best, strong, or paper (the paper's recipe).")
    ] = "best",
    recipe: Annotated[str | None, Option(help="What is added: alone, both, or both+table.")] = None,
    label: Annotated[
        str | None, Option(help="Labels of findings: vote, ensemble or privileged.")
    ] = None,
    fraction: Annotated[
        float | None,
        Option(
            help="Findings to add, as a share of the rows. Default: 0.05 for best, 0.3 for others."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        Option(
            help=(
                "How often to train, each time holding out different rows. Default: 3, or 1 if "
                "only averaging."
            )
        ),
    ] = None,
    seed: Annotated[int, Option(help="Same seed, same repair.")] = 0,
    held_out: Annotated[
        float | None,
        Option(
            help="Share of rows to hold out. Default: the run's held-out rows, or else 0.2.",
        ),
    ] = None,
    fit: Annotated[
        str | None,
        Option(
            metavar="FILE.py:NAME",
            help="Function of a frame and its labels that returns a fitted model.",
        ),
        TRAINER,
    ] = None,
    privileged: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=VALUE", help="Group to compare the others with. Repeatable."),
    ] = None,
    max_accuracy_loss: Annotated[
        float, Option(help="Most accuracy on held-out rows that may be lost; 0.01 is one point.")
    ] = 0.01,
    weights: Annotated[
        list[str] | None,
        Option(
            metavar="WEIGHTS",
            help="For average: table, uniform, or COLUMN=VALUE:SHARE,... Repeatable.",
        ),
    ] = None,
    scale: Annotated[str, Option(help="For average: probability or log-odds.")] = "probability",
    same_share: Annotated[
        bool,
        Option(
            "--same-share",
            help="Move the threshold of averaged and dropped models until as many people as "
            "before get a favorable decision.",
        ),
    ] = False,
    workers: Annotated[
        str | None,
        Option(
            metavar="N|auto",
            help="Processes that train and measure; auto for one per core. The results are the "
            "same.",
        ),
    ] = None,
    cluster: Cluster = None,
    table: Annotated[str | None, Option(help="Where the run's table is now."), TABLE] = None,
    model: Annotated[
        str | None, Option(help="Where the run's model is now, as KIND:PLACE."), MODEL
    ] = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    cache: Cache = None,
    timeout: Timeout = None,
    no_model: Annotated[
        bool, Option("--no-model", help="Do not write the repaired model itself.")
    ] = False,
    onnx: Annotated[
        bool,
        Option("--onnx", help="Also write an averaged or dropped classifier as one ONNX graph."),
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing folder.")] = False,
    full: Annotated[
        bool, Option("--full", help="Print every figure, and how they were measured.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Repair a tested model in several ways, measure each before and after, and recommend one."""
    from limi.audits.drafts import Draft
    from limi.audits.reopen import reopen
    from limi.models.python import attribute
    from limi.repairs import parse_weights, require_onnx, require_saving
    from limi.repairs import repair as run_repair
    from limi.system.shown import clean

    draft = Draft.at(out, force=force)
    given: Any = None if fit is None else attribute(fit, "--fit FILE.py:NAME")
    with _console.steps("opening the run") as on_step:
        on_step(0.0, "opening the run")
        result = reopen(
            folder,
            table=table,
            model=model,
            trust_pickle=trust_pickle,
            trust=trust or (),
            remote=remote_of(header, None, cache, None, timeout),
        )
        if not no_model and given is None:
            require_saving(result.problem)
        if onnx:
            require_onnx(how, result.problem)
        with draft:
            repaired = run_repair(
                result,
                how=how,
                fit=given,
                preset=preset,
                recipe=recipe,
                label=label,  # type: ignore[arg-type]
                fraction=fraction,
                seeds=seeds,
                seed=seed,
                held_out=held_out,
                privileged=privileged or (),
                max_accuracy_loss=max_accuracy_loss,
                weights=parse_weights(weights or ()),
                scale=scale,  # type: ignore[arg-type]
                same_share=same_share,
                workers=workers,
                cluster=cluster,
                command=_console.command_line(),
                on_step=on_step,
            )
            tree = repaired.write(draft, model=not no_model, onnx=onnx)
    if as_json:
        _console.print_json(tree)
    else:
        _show(tree, out, full=full)
    for note in tree["model_notes"]:
        _console.err.print(clean(f"Note: {note}."), soft_wrap=True)


def _show(tree: dict[str, Any], out: Path, *, full: bool) -> None:
    from limi.report import repairs as page
    from limi.system.shown import clean

    _console.out.print(clean(f"{page.sentence(tree)} {page.basis(tree)}"))
    for name, words in page.answers(tree):
        if name.startswith("Who"):
            _console.out.print(clean(f"{name}: {words}"))
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(("", *page.heads(tree))):
        shown.add_column(heading, justify="right" if place else "left", overflow="fold")
    for line in page.lines(tree, only_first=not full):
        shown.add_row(line.name, *(cell.value for cell in line.cells))
    for line in page.moved(tree):
        shown.add_row(
            f"{page.moved_words(tree)[1]}, {line.name}", "", *(cell.value for cell in line.cells)
        )
    _console.out.print(shown)
    for how, why, _ in page.reasons(tree):
        _console.out.print(clean(f"{how}: {why}."))
    for words in [*page.remarks(tree), *page.use(tree)] if full else page.skipped(tree):
        _console.out.print(clean(words))
    step = page.next_step(tree)
    _console.out.print(clean(f"Next: {step.words}"))
    if step.command:
        # A line that is not broken can be copied.
        _console.out.print(f"  {clean(step.command)}", soft_wrap=True)
    if not full:
        _console.out.print("--full shows all figures and how they were measured, as does the page.")
    _console.out.print(f"Written: {out}/ ({', '.join(page.files(tree))})")
