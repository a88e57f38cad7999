"""`limi pack`: the evidence of a run as one file, written or checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import RUN, Reads, Writes
from limi.cli._options import AsJson

if TYPE_CHECKING:
    from limi.evidence import Packed

__all__ = ["pack"]


def pack(
    folder: Annotated[
        Path | None, Argument(metavar="[RUN]", help="Run folder of `limi test`."), RUN
    ] = None,
    out: Annotated[Path | None, Option(help="ZIP file to write."), Writes()] = None,
    verify: Annotated[
        Path | None,
        Option(metavar="FILE", help="Check a pack instead: every file and its checksum."),
        Reads("the pack"),
    ] = None,
    findings: Annotated[
        bool, Option("--findings", help="Include the findings, some of which may be real people.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pack a run as evidence, with checksums and how to repeat it; or verify a pack."""
    from limi import evidence
    from limi.errors import InvalidInput

    if verify is not None:
        if folder is not None or out is not None:
            raise InvalidInput("--verify only checks a pack; leave out RUN and --out")
        _show(evidence.verify(verify), as_json, checked=True)
        return
    if folder is None or out is None:
        raise InvalidInput(
            "name a run and a file to write, as in limi pack RUN --out evidence.zip, or check a "
            "pack with limi pack --verify evidence.zip"
        )
    _show(evidence.pack(folder, out, findings=findings, force=force), as_json, checked=False)


def _show(packed: Packed, as_json: bool, *, checked: bool) -> None:
    from limi.evidence import MANIFEST

    if as_json:
        _console.print_json({"verified": checked, **packed.as_dict()})
        return
    n = len(packed.files)
    if checked:
        words = f"Intact: {packed.path}, {n} files as {MANIFEST} lists them."
    else:
        words = f"Written: {packed.path} ({n} files and {MANIFEST})."
    _console.out.print(f"{words} sha256 {packed.sha256}", soft_wrap=True)
