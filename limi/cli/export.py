"""`limi export`: keep the findings of a run as a test of pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._options import AsJson, Trust, TrustPickle

__all__ = ["export"]


def export(
    folder: Annotated[Path, Argument(metavar="RUN", help="Run folder of `limi test`.")],
    pytest: Annotated[
        Path, Option(metavar="FOLDER", help="Folder of tests to write into, made if missing.")
    ],
    pairs: Annotated[
        int, Option(help="Most pairs to keep: the most natural and the strongest.")
    ] = 200,
    allow: Annotated[int, Option(help="Pairs that may still flip.")] = 0,
    model: Annotated[
        str | None, Option(help="Model that the test asks, as KIND:PLACE. Default: the run's.")
    ] = None,
    table: Annotated[str | None, Option(help="Where the run's table is now.")] = None,
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
