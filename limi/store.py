"""Run folders: complete or absent. Written beside and renamed, never over what is there."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from limi.errors import CorruptStore, InvalidInput
from limi.report.summary import Summary

__all__ = [
    "FORMAT",
    "Draft",
    "digest",
    "file_digest",
    "read_summary",
    "versions",
    "write_beside",
]

FORMAT = 1
JOURNAL = "journal.bin"


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
        place = place.resolve()
        draft = Draft(place, force)
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
            before = _read_json(path)
            if before.get("config_sha256") != manifest["config_sha256"]:
                raise InvalidInput(
                    f"the unfinished run at {str(self.folder)!r} was made with other settings, "
                    "data or model; repeat its command, or start again with --force"
                )
        path.write_text(_json(manifest), encoding="utf-8")

    def finish(self, files: Mapping[str, bytes | str], *, keep_journal: bool) -> None:
        """Write the files and put the folder in its place, all at once."""
        for name, content in files.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            (self.folder / name).write_bytes(data)
        if not keep_journal:
            self.journal.unlink(missing_ok=True)
        if self.place.exists():
            old = self.place.with_name(self.place.name + ".old")
            shutil.rmtree(old, ignore_errors=True)
            self.place.rename(old)
            self.folder.rename(self.place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self.folder.rename(self.place)

    def discard(self) -> None:
        """Leave nothing behind, where nothing was asked yet."""
        if not self.journal.exists() or self.journal.stat().st_size == 0:
            shutil.rmtree(self.folder, ignore_errors=True)


def write_beside(path: Path, text: str) -> None:
    """Write a text file beside its place and rename it; InvalidInput where that cannot be."""
    draft = path.with_name(path.name + ".partial")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"{str(path)!r} cannot be written: {error.strerror or error}") from None


def _is_run(folder: Path) -> bool:
    run = (folder / "manifest.json").is_file() and (folder / "summary.json").is_file()
    return run or (folder / "repair.json").is_file()


def read_summary(folder: str | Path) -> Summary:
    """The summary of a finished run; CorruptStore where the folder is none, or is newer."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(f"there is no run folder {str(folder)!r}")
    tree = _read_json(folder / "summary.json")
    version = tree.get("format")
    if not isinstance(version, int):
        raise CorruptStore(f"{str(folder)!r} is no run folder of limi: its summary has no format")
    if version > FORMAT:
        raise CorruptStore(
            f"{str(folder)!r} was written by a newer limi (format {version}, this one reads up to "
            f"{FORMAT}); upgrade limi"
        )
    try:
        return Summary.from_dict(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptStore(f"the summary in {str(folder)!r} is damaged: {error}") from None


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


def _json(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorruptStore(
            f"{str(path.parent)!r} is no run folder of limi: it has no {path.name}"
        ) from None
    except (OSError, ValueError) as error:
        raise CorruptStore(f"{str(path)!r} cannot be read: {error}") from None
    if not isinstance(tree, dict):
        raise CorruptStore(f"{str(path)!r} cannot be read: it holds no object")
    return tree
