"""`limi pack`: the evidence of a run as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from limi.cli import _console
from limi.cli._apart import Writes
from limi.cli._options import AsJson, RunFolder

__all__ = ["pack"]


def pack(
    folder: RunFolder,
    out: Annotated[Path, Option(help="ZIP file to write."), Writes()],
    findings: Annotated[
        bool, Option("--findings", help="Include the findings, some of which may be real people.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pack a run as evidence, with checksums and how to repeat it."""
    from limi import evidence

    packed = evidence.pack(folder, out, findings=findings, force=force)
    if as_json:
        _console.print_json(packed.as_dict())
        return
    _console.out.print(
        f"Written: {packed.path} ({len(packed.files)} files and {evidence.SUMS}). sha256 "
        f"{packed.sha256}",
        soft_wrap=True,
    )
