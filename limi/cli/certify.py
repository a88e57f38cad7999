"""`limi certify`: prove that nobody near a person flips, or show somebody who does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, Writes
from limi.cli._options import (
    AsJson,
    Cluster,
    Constraints,
    DecisionRule,
    Drop,
    FavorableLabels,
    Only,
    Redact,
    SchemaFile,
    ShowPersonal,
    TableFile,
    Trust,
    TrustPickle,
    redacted,
)

if TYPE_CHECKING:
    from limi.proofs import Progress, Proof

__all__ = ["certify"]


def certify(
    table: TableFile,
    model: Annotated[str, Option(help="A model made of trees, as KIND:PLACE."), MODEL],
    protected: Annotated[
        list[str], Option(help="Protected column: sex, race=White,Black, age=18-80:5. Repeatable.")
    ],
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: FavorableLabels = None,
    near: Annotated[
        str | None,
        Option(
            metavar="COL=N,...",
            help="Which columns may differ from a person's, and how far: 'age=5,education=any'. By "
            "default numbers, by a tenth of their standard deviation.",
        ),
    ] = None,
    rows: Annotated[int, Option(help="People to ask about, drawn from the table; 0 for all.")] = (
        1000
    ),
    domain: Annotated[
        bool, Option("--domain", help="Also bound the gap between scores over the whole domain.")
    ] = False,
    domain_seconds: Annotated[float, Option(help="Most seconds for --domain.")] = 60.0,
    decision: DecisionRule = None,
    schema: SchemaFile = None,
    constraint: Constraints = None,
    drop: Drop = None,
    only: Only = None,
    redact: Redact = None,
    show_personal: ShowPersonal = False,
    max_boxes: Annotated[int, Option(help="Most boxes to cut a neighbourhood into.")] = 4096,
    seconds_each: Annotated[
        float, Option(help="Seconds the solver may spend on each person still undecided.")
    ] = 10.0,
    max_seconds: Annotated[float | None, Option(help="Most seconds.")] = None,
    solver: Annotated[
        bool | None,
        Option(
            "--solver/--no-solver",
            help="Give what bounds leave undecided to a solver. Default: where it is installed.",
        ),
    ] = None,
    workers: Annotated[
        str | None,
        Option(
            metavar="N|auto",
            help="Processes that decide people; auto for one per core. The answers are the same.",
        ),
    ] = None,
    cluster: Cluster = None,
    seed: Annotated[int, Option(help="Same seed, same people.")] = 0,
    out: Annotated[
        Path | None, Option(help="Folder to write: proof.json and report.html."), Writes()
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing folder.")] = False,
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted run.")] = False,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Prove that nobody near the people of a table flips, or show somebody who does."""
    import limi
    from limi.cli._tables import source

    given = source(table, target, favorable, schema, constraint)
    with _shown() as show:
        proof = limi.certify(
            model,
            given.pop("frame"),
            protected=protected,
            decision=decision,
            near=near,
            rows=rows or None,
            domain=domain,
            domain_seconds=domain_seconds,
            drop=drop or (),
            only=only or (),
            redact=redacted(redact, show_personal),
            max_boxes=max_boxes,
            seconds_each=seconds_each,
            max_seconds=max_seconds,
            solver=solver,
            workers=workers,
            cluster=cluster,
            seed=seed,
            out=out,
            force=force,
            resume=resume,
            trust_pickle=trust_pickle,
            trust=trust or (),
            table_name=table,
            command=_console.command_line(),
            on_progress=show,
            **given,
        )
    if as_json:
        _console.print_json(proof.as_dict())
    else:
        _show(proof, out)


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """A bar over the people that are decided, with bounds that tighten."""
    from limi.report.proof import progress as say

    with _console.steps("reading the trees") as step:

        def show(told: Progress) -> None:
            decided = (told.proven + told.flips) / max(1, told.people)
            step(decided, f"{told.phase}: {say(told.people, told.proven, told.flips)}")

        yield show


def _show(proof: Proof, out: Path | None) -> None:
    from limi.report import proof as page

    tree = proof.as_dict()
    told = [page.sentence(tree), page.bounds(tree)]
    told += [f"{fact.name}: {fact.value}" for fact in page.facts(tree)]
    for region in tree["regions"]:
        told.append(f"{region['proven']} of {region['people']} are proven where {region['where']}")
    for line in [*told, *page.remarks(tree)]:
        _console.out.print(line, soft_wrap=True)
    if out is not None:
        _console.out.print(f"Written: {out}/ (report.html, people.parquet, proof.json)")
