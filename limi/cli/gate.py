"""`limi gate`: does a model keep the rules of a build?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from limi.cli import _console
from limi.cli._options import AsJson, Constraints, Trust, TrustPickle
from limi.defaults import DEFAULT_GATE_QUERIES, DEFAULT_GENERATOR

if TYPE_CHECKING:
    from limi.gates import Gate

__all__ = ["gate"]

_FAILED, _UNKNOWN = 1, 3  # exit codes; 2 and 4 are errors of usage and of data or model
_CODES = {"pass": 0, "fail": _FAILED, None: _UNKNOWN}


def gate(
    table: Annotated[str, Argument(help="CSV or Parquet file, or a name of `limi list datasets`.")],
    model: Annotated[str, Option(help="What is tested, as KIND:PLACE (`limi list models`).")],
    protected: Annotated[
        list[str], Option(help="Protected column: sex, race=White,Black, age=18-80:5. Repeatable.")
    ],
    rule: Annotated[
        list[str] | None,
        Option(
            metavar="TEXT",
            help="What must hold, such as 'natural_rate <= 1 %', not the file's. Repeatable.",
        ),
    ] = None,
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: Annotated[str | None, Option(help="Label that people want.")] = None,
    output: Annotated[
        str | None, Option(help="What a Python function answers: label or score.")
    ] = None,
    held_out: Annotated[
        str | None, Option(metavar="FILE", help="Rows that the model has not seen.")
    ] = None,
    privileged: Annotated[
        list[str] | None,
        Option(metavar="COL=VALUE", help="Group that spd compares the others with. Repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None, Option(metavar="RUN", help="Run folder of an earlier model.")
    ] = None,
    generator: Annotated[str, Option(help="`limi list generators`, or a file.")] = (
        DEFAULT_GENERATOR
    ),
    schema: Annotated[Path | None, Option(help="Schema of the table (TOML or SDV JSON).")] = None,
    constraint: Constraints = None,
    max_queries: Annotated[int, Option(help="Model queries at most.")] = DEFAULT_GATE_QUERIES,
    max_seconds: Annotated[float | None, Option(help="Seconds at most.")] = None,
    error: Annotated[float, Option(help="Chance of any wrong answer, shared by all rules.")] = 0.05,
    inconclusive: Annotated[
        str | None,
        Option(metavar="pass|fail", help="What not knowing counts as; by default exit code 3."),
    ] = None,
    seed: Annotated[int, Option(help="Same seed, same rows.")] = 0,
    max_batch: Annotated[int, Option(help="Rows given to the model at once.")] = 1 << 18,
    device: Annotated[str, Option(help="cpu, cuda, or auto.")] = "auto",
    out: Annotated[Path | None, Option(help="JSON file to write: the answer in numbers.")] = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a model keeps the rules of a build: pass (0), fail (1) or inconclusive (3)."""
    from limi.cli._tables import source
    from limi.gates import gate as run_gate
    from limi.system import writing
    from limi.system.shown import to_json
    from limi.table import files

    _check_choice(inconclusive)
    place = None if out is None else writing.place(out)
    given = source(table, target, favorable, schema, constraint)
    with _console.run_progress() as show:
        answered = run_gate(
            model,
            given.pop("frame"),
            rule or (),
            protected=protected,
            output=output,  # type: ignore[arg-type]
            held_out=None if held_out is None else files.read(held_out),
            held_out_name=held_out or "held-out rows",
            privileged=privileged or (),
            baseline=baseline,
            generator=generator,
            max_queries=max_queries,
            max_seconds=max_seconds,
            error=error,
            seed=seed,
            max_batch=max_batch,
            device=device,
            trust_pickle=trust_pickle,
            trust=trust or (),
            table_name=table,
            command=_console.command_line(),
            on_progress=show,
            **given,
        )
    if place is not None:
        writing.write(place, to_json(answered.as_dict()) + "\n")
    if as_json:
        _console.print_json(answered.as_dict())
    else:
        _show(answered)
    code = {"pass": 0, "fail": _FAILED}.get(answered.answer, _CODES[inconclusive])
    raise typer.Exit(code)


def _check_choice(inconclusive: str | None) -> None:
    from limi.errors import InvalidInput, nearest

    if inconclusive not in _CODES:
        known = [name for name in _CODES if name is not None]
        raise InvalidInput(
            f"--inconclusive is {inconclusive!r}; {nearest(str(inconclusive), known)} (without it "
            "the exit code is 3)"
        )


def _show(answered: Gate) -> None:
    from rich.table import Table

    from limi.report import gate as page

    _console.out.print(page.sentence(answered), soft_wrap=True)
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(page.HEADINGS):
        shown.add_column(heading, justify="left" if place < 2 else "right")
    for judged in answered.rules:
        shown.add_row(*page.cells(judged))
    _console.out.print(shown)
    for judged in answered.rules:
        _console.out.print(page.why(judged), soft_wrap=True)
    for note in answered.notes:
        _console.out.print(note, soft_wrap=True)
    if answered.failed and answered.examples:
        _console.out.print("Decisions that flip:")
        for found in answered.examples:
            _console.out.print(f"  {page.example(found)}", soft_wrap=True)
