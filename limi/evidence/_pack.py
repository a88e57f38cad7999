"""Packs written and checked.

A pack is a ZIP file whose bytes depend on the run alone: files in a fixed order, with one date,
stored as they are. `pack.json` holds the sum of every other file. Checking one opens nothing on the
disk and believes nothing that the file says of itself before it is counted.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from limi.audits import run_folder
from limi.audits.record import read_bookmarks
from limi.audits.reopen import Run
from limi.errors import CorruptStore, spell
from limi.evidence import _texts
from limi.evidence._agree import require_agreement
from limi.report import html
from limi.system import writing
from limi.system.reading import regular
from limi.system.shown import to_json

__all__ = ["FORMAT", "MANIFEST", "Packed", "pack", "verify"]

FORMAT = 1
MANIFEST = "pack.json"

_FINDINGS = "findings.parquet"  # goes along on request
_OF_THE_RUN = ("summary.json", "schema.toml", "manifest.json", _FINDINGS)
_ALWAYS = (
    *("README.md", "report.html", "summary.json", "metrics.json", "schema.toml"),
    *("manifest.json", "model-card.md", "mapping.md"),
)
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP file knows
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_FILES = 100
_MOST_BYTES = 1 << 30  # of all files together, once unpacked
_MOST_MANIFEST = 1 << 20
_AT_ONCE = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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
    listed = {name: {"sha256": sums[name], "bytes": len(data)} for name, data in contents.items()}
    from limi import __version__

    tree = {"format": FORMAT, "limi": __version__, "files": listed}
    whole = _zip({**contents, MANIFEST: (to_json(tree) + "\n").encode()})
    writing.write(place, whole)
    return Packed(str(out), hashlib.sha256(whole).hexdigest(), sums)


def _contents(run: Run, findings: bool) -> dict[str, bytes]:
    """The files of a pack but its manifest, each held to what limi writes."""
    summary, folder = run.summary, run.folder
    names = [*_ALWAYS, MANIFEST]
    if findings:
        names.insert(names.index("model-card.md"), _FINDINGS)
    with run_folder.reading("summary", folder):
        made = {
            "README.md": _texts.readme(summary, run.manifest, names),
            "report.html": html.render(summary, bookmarks=read_bookmarks(folder)),
            "metrics.json": to_json(summary.all_metrics) + "\n",
            "model-card.md": _texts.card(summary),
            "mapping.md": _texts.mapping(names),
        }
    given = {name: _read(folder / name) for name in names if name in _OF_THE_RUN}
    return {
        name: given[name] if name in given else made[name].encode("utf-8", "backslashreplace")
        for name in names
        if name != MANIFEST
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


def verify(path: str | Path) -> Packed:
    """Check every file of a pack against its sum; CorruptStore where anything differs, lacks, or is
    there besides."""
    place = regular(path, "a pack that limi pack wrote")
    with _reading(place), place.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        with zipfile.ZipFile(file) as whole:
            entries = _entries(place, whole)
            listed = _manifest(place, whole, entries)
            _compare(place, entries, listed)
            for name, told in listed.items():
                seen, size = _digest(place, whole, entries[name])
                if (seen, size) != (told["sha256"], told["bytes"]):
                    _refuse(place, f"{name} was altered after it was packed")
    return Packed(str(path), digest, {name: told["sha256"] for name, told in listed.items()})


def _entries(place: Path, whole: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries = whole.infolist()
    if len(entries) > _MOST_FILES:
        _refuse(place, f"it holds {len(entries):,} files, but a pack has about a dozen")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.filename
        if not _NAME.fullmatch(name):
            _refuse(
                place, f"it contains a file named {name[:80]!r}, which does not belong in a pack"
            )
        if name in found:
            _refuse(place, f"it holds {name} twice")
        if entry.flag_bits & 1 or entry.compress_type not in _METHODS:
            _refuse(place, f"{name} is encrypted, or compressed in a way that limi does not use")
        found[name] = entry
    if sum(entry.file_size for entry in entries) > _MOST_BYTES:
        _refuse(place, "it would unpack to more than a gigabyte")
    return found


def _manifest(
    place: Path, whole: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]
) -> dict[str, dict[str, Any]]:
    """The sums that the pack lists."""
    if MANIFEST not in entries:
        _refuse(place, f"it has no {MANIFEST}")
    with whole.open(entries[MANIFEST]) as file:
        data = file.read(_MOST_MANIFEST + 1)
    if len(data) > _MOST_MANIFEST:
        _refuse(place, f"its {MANIFEST} is larger than a megabyte")
    tree = json.loads(data)
    version = tree.get("format") if isinstance(tree, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        _refuse(place, f"its {MANIFEST} has no format")
    if version > FORMAT:
        raise CorruptStore(
            f"{str(place)!r} was packed by a newer limi (format {version}, this one reads up to "
            f"{FORMAT}); upgrade limi"
        )
    listed = tree.get("files")
    if not isinstance(listed, dict) or not all(map(_is_told, listed.values())):
        _refuse(place, f"its {MANIFEST} lists no checksums")
    return listed


def _is_told(told: Any) -> bool:
    return (
        isinstance(told, dict)
        and isinstance(told.get("sha256"), str)
        and isinstance(told.get("bytes"), int)
    )


def _compare(
    place: Path, entries: Mapping[str, zipfile.ZipInfo], listed: Mapping[str, Any]
) -> None:
    """Refuse files that are missing, that nobody listed, or that are not a pack's."""
    missing = [name for name in {**dict.fromkeys(_ALWAYS), **listed} if name not in entries]
    if missing:
        _refuse(place, f"it lacks {spell(missing)}")
    extra = [name for name in entries if name not in listed and name != MANIFEST]
    if extra:
        _refuse(place, f"it holds {spell(extra)}, which its {MANIFEST} does not list")
    strange = [name for name in listed if name not in (*_ALWAYS, _FINDINGS)]
    if strange:
        _refuse(place, f"it holds {spell(strange)}, which does not belong in a pack")


def _digest(place: Path, whole: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[str, int]:
    """The sum and the size of a file, read no further than it says it is long."""
    total, size = hashlib.sha256(), 0
    with whole.open(entry) as file:
        while part := file.read(_AT_ONCE):
            size += len(part)
            if size > entry.file_size:
                _refuse(place, f"{entry.filename} is longer than it says")
            total.update(part)
    return total.hexdigest(), size


def _refuse(place: Path, why: str) -> NoReturn:
    raise CorruptStore(f"the pack {str(place)!r} failed the check: {why}")


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    try:
        yield
    except zipfile.BadZipFile as error:
        raise CorruptStore(f"{str(place)!r} is damaged, or is not a pack: {error}") from None
    except (
        OSError,
        ValueError,
        RecursionError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        zlib.error,
    ) as error:
        if isinstance(error, CorruptStore):
            raise
        why = " ".join(str(error).split())[:160]
        raise CorruptStore(f"the pack {str(place)!r} cannot be read: {why}") from None
