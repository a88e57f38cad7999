"""`limi export`: keep the findings of a run as a test of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, TABLE, Writes
from limi.cli._options import AsJson, RunFolder, Trust, TrustPickle

__all__ = ["export"]


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files that are written; the folder itself may hold others, the model among them."""
    from limi.testing import export as exporting

    yield from (("--pytest", folder / name) for name in (exporting.MODULE, exporting.PAIRS))


def export(
    folder: RunFolder,
    pytest: Annotated[
        Path,
        Option(metavar="FOLDER", help="Folder of tests to write into, made if missing."),
        Writes(_files),
    ],
    pairs: Annotated[
        int, Option(help="Most pairs to keep: the most natural and the strongest.")
    ] = 200,
    allow: Annotated[int, Option(help="Pairs that may still flip.")] = 0,
    model: Annotated[
        str | None,
        Option(help="Model that the test asks, as KIND:PLACE. Default: the run's."),
        MODEL,
    ] = None,
    table: Annotated[str | None, Option(help="Where the run's table is now."), TABLE] = None,
    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Write a pytest test that fails while a model still flips the people that a run found."""
    from limi.testing import export as exporting

    done = exporting.export(
        folder,
        pytest,
        pairs=pairs,
        allow=allow,
        model=model,
        table=table,
        force=force,
        trust_pickle=trust_pickle,
        trust=trust or (),
    )
    flips = len(done.asked)
    if as_json:
        _console.print_json(
            {
                "folder": str(pytest),
                "files": [exporting.MODULE, exporting.PAIRS],
                "pairs": done.pairs,
                "flip_now": flips,
                "allow": allow,
                "passes_now": done.passes,
            }
        )
        return
    verb = "passes" if done.passes else "fails"
    _console.out.print(
        f"Written: {pytest}/ ({exporting.MODULE}, {exporting.PAIRS}). {flips:,} of {done.pairs:,} "
        f"pairs flip now and {allow:,} may, so the test {verb} with this model.",
        soft_wrap=True,
    )
