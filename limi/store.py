"""Run folders: complete or absent. Written beside and renamed, never over what is there."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from limi import schema_files
from limi.errors import CorruptStore, InvalidInput, LimiError
from limi.report.summary import Summary
from limi.schema import Schema
from limi.shown import to_json
from limi.typed import hold_fields

__all__ = [
    "FORMAT",
    "Draft",
    "digest",
    "file_digest",
    "read_json",
    "read_schema",
    "read_summary",
    "reading",
    "versions",
    "write_beside",
]

FORMAT = 1
JOURNAL = "journal.bin"

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_RUN_FILES = {
    *("manifest.json", "summary.json", "schema.toml", "metrics.json", "findings.parquet"),
    *("report.html", JOURNAL),
}
_REPAIR_FILES = {
    *("repair.json", "card.md", "report.html", "added.parquet", "model.skops", "model.npz")
}


@dataclass(frozen=True)
class Draft:
    """An unfinished run folder beside the place of the finished one."""

    place: Path
    force: bool = False

    @property
    def folder(self) -> Path:
        """Where the unfinished run lies."""
        return self.place.with_name(self.place.name + ".partial")

    @property
    def journal(self) -> Path:
        """Where its answers are logged."""
        return self.folder / JOURNAL

    @staticmethod
    def begin(place: Path, *, force: bool = False, resume: bool = False) -> Draft:
        """Make room for a run, or take an unfinished one up again; nothing else is touched yet."""
        try:
            place = place.resolve()
            draft = Draft(place, force)
            # A name that is too long, or a folder nobody may look into.
            _ = place.name and draft.journal.exists()
        except (OSError, RuntimeError) as error:
            raise InvalidInput(
                f"--out names {_cut(str(place))!r}, which cannot be written to: "
                f"{getattr(error, 'strerror', None) or 'its links lead nowhere'}; name another "
                "folder"
            ) from None
        if place in (Path.cwd().resolve(), *Path.cwd().resolve().parents):
            raise InvalidInput(
                f"--out names {str(place)!r}, which holds the folder you are in; name a new folder"
            )
        if place.exists() and not place.is_dir():
            raise InvalidInput(f"{str(place)!r} is a file; --out names a folder to write")
        if resume:
            draft._take_up()
        elif place.exists() and not force:
            raise InvalidInput(
                f"{str(place)!r} exists already; choose another --out, or replace it with --force"
            )
        elif place.exists() and any(place.iterdir()) and not _is_run(place):
            raise InvalidInput(
                f"{str(place)!r} holds other files than a run of limi, so --force does not replace "
                "it; choose another --out"
            )
        elif draft.journal.exists() and not force:
            raise InvalidInput(
                f"an unfinished run lies in {str(draft.folder)!r}; go on with --resume, "
                "or start again with --force"
            )
        try:
            if draft.folder.exists() and not resume:
                shutil.rmtree(draft.folder)
            draft.folder.mkdir(parents=True, exist_ok=True)
            (draft.folder / ".writable").write_bytes(b"")
            (draft.folder / ".writable").unlink()
        except OSError as error:
            raise InvalidInput(
                f"{str(place.parent)!r} cannot be written to: {error.strerror}; "
                "choose another --out"
            ) from None
        return draft

    def _take_up(self) -> None:
        """An interrupted run keeps its journal in its folder; a killed one left it in the draft."""
        if self.journal.exists():
            return
        kept = self.place / JOURNAL
        if not kept.exists():
            raise InvalidInput(
                f"there is no unfinished run at {str(self.place)!r}; start it without --resume"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, self.journal)
        shutil.copyfile(self.place / "manifest.json", self.folder / "manifest.json")

    def settle_on(self, manifest: Mapping[str, Any]) -> None:
        """Write what the run is made of, or hold a resumed run to what it was made of."""
        path = self.folder / "manifest.json"
        if path.exists():
            before = read_json(path)
            if before.get("config_sha256") != manifest["config_sha256"]:
                raise InvalidInput(
                    f"the unfinished run at {str(self.folder)!r} was made with other settings, "
                    "data or model; repeat its command, or start again with --force"
                )
        path.write_text(to_json(manifest) + "\n", encoding="utf-8")

    def finish(self, files: Mapping[str, bytes | str], *, keep_journal: bool) -> None:
        """Write the files and put the folder in its place, all at once."""
        try:
            for name, content in files.items():
                data = content.encode("utf-8") if isinstance(content, str) else content
                (self.folder / name).write_bytes(data)
            if not keep_journal:
                self.journal.unlink(missing_ok=True)
            if not self.place.exists():
                self.folder.rename(self.place)
                return
            # A name that nobody has: what lies beside is not ours to remove.
            old = self.place.with_name(f"{self.place.name}.{uuid.uuid4().hex[:8]}.old")
            self.place.rename(old)
            self.folder.rename(self.place)
        except OSError as error:
            raise InvalidInput(
                f"{str(self.place)!r} cannot be written: {error.strerror or error}"
            ) from None
        shutil.rmtree(old, ignore_errors=True)

    def discard(self) -> None:
        """Leave nothing behind, where nothing was asked yet."""
        if not self.journal.exists() or self.journal.stat().st_size == 0:
            shutil.rmtree(self.folder, ignore_errors=True)


def write_beside(path: Path, text: str) -> None:
    """Write a text file beside its place and rename it; InvalidInput where that cannot be."""
    # A name of its own, for two programs may write the same file at once.
    draft = path.with_name(f".{uuid.uuid4().hex[:8]}.partial")
    try:
        try:
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(f"{_cut(str(path))!r} cannot be written: {why}") from None


def _is_run(folder: Path) -> bool:
    """Does a folder hold a run or a repair, and nothing that somebody else has put there?"""
    held = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    run = {"manifest.json", "summary.json"} <= held and held <= _RUN_FILES
    return run or ("repair.json" in held and held <= _REPAIR_FILES)


def read_summary(folder: str | Path) -> Summary:
    """The summary of a finished run; CorruptStore where the folder is none, or is newer."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(f"there is no run folder {str(folder)!r}")
    tree = read_json(folder / "summary.json")
    version = tree.get("format")
    if not isinstance(version, int):
        raise CorruptStore(f"{str(folder)!r} is no run folder of limi: its summary has no format")
    if version > FORMAT:
        raise CorruptStore(
            f"{str(folder)!r} was written by a newer limi (format {version}, this one reads up to "
            f"{FORMAT}); upgrade limi"
        )
    with reading("summary", folder):
        summary = Summary.from_dict(tree)
        hold_fields(summary)
    return summary


def read_schema(folder: str | Path) -> Schema:
    """The schema of a finished run; CorruptStore where it is damaged or missing."""
    try:
        with reading("schema", folder):
            return schema_files.load(Path(folder) / "schema.toml")
    except InvalidInput as error:
        raise CorruptStore(f"the schema in {str(folder)!r} is damaged: {error}") from None


@contextmanager
def reading(what: str, folder: str | Path) -> Iterator[None]:
    """CorruptStore where a part of a run turns out not to be as limi wrote it."""
    try:
        yield
    except LimiError:
        raise
    except _DAMAGE as error:
        said = _cut(" ".join(f"{type(error).__name__}: {error}".split()))
        raise CorruptStore(
            f"the {what} in {str(folder)!r} is damaged: {said}; run the test again"
        ) from None


def _cut(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def digest(*parts: bytes) -> str:
    """sha256 of parts, each with its length, so that no two lists of parts collide."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of what computed a run."""
    found = {"python": platform.python_version()}
    for name in ("limi", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of ours; CorruptStore where it holds none."""
    try:
        if path.exists() and not path.is_file():
            raise CorruptStore(f"{str(path)!r} cannot be read: it is no file")
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorruptStore(
            f"{str(path.parent)!r} is no run folder of limi: it has no {path.name}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(tree, dict):
        raise CorruptStore(f"{str(path)!r} cannot be read: it holds no object")
    return tree
