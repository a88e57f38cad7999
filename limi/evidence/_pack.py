"""Packs: a ZIP file whose bytes depend on the run alone.

Files stand in a fixed order, with one date, stored as they are. SHA256SUMS holds the sum of every
other file, as `sha256sum -c` reads it.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limi.audits import run_folder
from limi.audits.record import read_bookmarks
from limi.audits.reopen import Run
from limi.errors import CorruptStore
from limi.evidence import _texts
from limi.evidence._agree import require_agreement
from limi.report import html
from limi.system import writing
from limi.system.reading import regular
from limi.system.shown import to_json

__all__ = ["SUMS", "Packed", "pack"]

SUMS = "SHA256SUMS"

_FINDINGS = "findings.parquet"  # goes along on request
_OF_THE_RUN = ("summary.json", "schema.toml", "manifest.json", _FINDINGS)
_ALWAYS = (
    *("README.md", "report.html", "summary.json", "metrics.json", "schema.toml"),
    *("manifest.json", "model-card.md"),
)
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP file knows


@dataclass(frozen=True)
class Packed:
    """A pack: the sums of its files, and that of the whole."""

    path: str
    sha256: str
    files: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"file": self.path, "sha256": self.sha256, "files": self.files}


def pack(
    run: str | Path, out: str | Path, *, findings: bool = False, force: bool = False
) -> Packed:
    """Write the evidence of a run; the same run gives the same bytes.

    The findings themselves go along on request: some may be rows of the table, and so people.
    """
    place = writing.place(out, replace=force)
    opened = Run.at(run)
    writing.require_apart([("--out", place)], opened.inputs())
    require_agreement(opened)
    contents = _contents(opened, findings)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    listed = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    whole = _zip({**contents, SUMS: listed.encode()})
    writing.write(place, whole)
    return Packed(str(out), hashlib.sha256(whole).hexdigest(), sums)


def _contents(run: Run, findings: bool) -> dict[str, bytes]:
    """The files of a pack but its manifest, each held to what limi writes."""
    summary, folder = run.summary, run.folder
    names = [*_ALWAYS, SUMS]
    if findings:
        names.insert(names.index("model-card.md"), _FINDINGS)
    with run_folder.reading("summary", folder):
        made = {
            "README.md": _texts.readme(summary, run.tree, names),
            "report.html": html.render(summary, bookmarks=read_bookmarks(folder)),
            "metrics.json": to_json(summary.all_metrics) + "\n",
            "model-card.md": _texts.card(summary),
        }
    given = {name: _read(folder / name) for name in names if name in _OF_THE_RUN}
    return {
        name: given[name] if name in given else made[name].encode("utf-8", "backslashreplace")
        for name in names
        if name != SUMS
    }


def _read(path: Path) -> bytes:
    try:
        return regular(path, "a file of the run").read_bytes()
    except OSError as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error.strerror or error}") from None


def _zip(contents: Mapping[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as whole:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            whole.writestr(entry, data)
    return sink.getvalue()
