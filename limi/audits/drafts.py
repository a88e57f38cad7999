"""Unfinished run folders: filled beside their place by one program at a time, then renamed.

A run is written into `PLACE.partial`, whose log of answers is locked as long as the run works.
Whatever moment a kill picks, it leaves the folder that was there, the new one, or a draft that
the next run takes up or clears. Only what limi wrote is ever removed: files of known names in a
folder that is recognizably a run's, one by one, and then the empty folder.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from limi.audits.record import RECORD
from limi.audits.run_folder import read_json
from limi.errors import CorruptStore, FailedWrite, InvalidInput, LimiError
from limi.search import answer_log
from limi.system import writing
from limi.system.shown import to_json

__all__ = ["Draft"]

_JOURNAL, _MANIFEST, _REPAIR, _PROOF = "journal.bin", "manifest.json", "repair.json", "proof.json"
_PROGRESS = "progress.jsonl"  # of a proof
_IMAGES = "images.json"
_RUN_FILES = {
    *(_MANIFEST, "summary.json", "schema.toml", "metrics.json", "findings.parquet"),
    *("report.html", _JOURNAL, RECORD),
}
_REPAIR_FILES = {
    *(_REPAIR, "card.md", "report.html", "added.parquet", _JOURNAL),
    *("model.skops", "model.onnx", "averaging.json", "score.py", "MLmodel"),
}
_PROOF_FILES = {
    *(_MANIFEST, _PROOF, "schema.toml", "people.parquet", "report.html", _PROGRESS, _JOURNAL)
}
_IMAGE_FILES = {_IMAGES, _MANIFEST, "findings.parquet", "report.html", _JOURNAL}
_PAIR = re.compile(r"pair-\d{5}-(start|twin)\.png")
_OURS = _RUN_FILES | _REPAIR_FILES | _PROOF_FILES | _IMAGE_FILES
_LAST = (_MANIFEST, _REPAIR, _PROOF, _IMAGES, _JOURNAL)
# ^ tell whose folder it is, so they are removed last
_COPIED_AT_ONCE = 1 << 20


class Draft:
    """An unfinished run folder, as a context that makes and locks it.

    An error leaves it where it holds answers that `--resume` can use, and removes it otherwise.
    """

    def __init__(self, place: Path, *, force: bool, resume: bool) -> None:
        self.place, self.force, self.resume = place, force, resume
        self.searched = False  # is more than the start of a search worth keeping?
        self._log: io.FileIO | None = None
        self._above: list[Path] = []  # folders that had to be made for it
        self._is_ours = False  # was all that it holds made or copied by this program?
        self._known = 0  # bytes of answers that it began with
        self._finishing = False

    @staticmethod
    def at(place: str | Path, *, force: bool = False, resume: bool = False) -> Draft:
        """The draft of a folder to write; InvalidInput where there can be none. Creates nothing."""
        given = writing.absolute(place)
        try:
            place = Path(os.path.realpath(given))
            if place.is_symlink():
                raise OSError(errno.ELOOP, "its links lead nowhere")
            draft = Draft(place, force=force, resume=resume)
            if draft.place.name:
                _mode(draft._aside())  # the longest name that will be needed
            draft._refuse_the_way_here()
            draft._check_lock()
            draft._look()
        except OSError as error:
            raise InvalidInput(
                f"--out names {_cut(given)!r}, which cannot be written to: {error.strerror}; "
                "name another folder"
            ) from None
        except ValueError as error:
            if isinstance(error, LimiError):
                raise
            raise InvalidInput(
                f"--out names {_cut(given)!r}, which is not a possible path: {error}; name another "
                "folder"
            ) from None
        return draft

    @property
    def folder(self) -> Path:
        """Where the unfinished run lies."""
        return self.place.with_name(self.place.name + ".partial")

    @property
    def log(self) -> io.FileIO:
        """Its answers: an open file, whose lock keeps other programs out."""
        assert self._log is not None
        return self._log

    def __enter__(self) -> Draft:
        try:
            self._open()
        except OSError as error:
            with suppress(OSError):
                if self._is_ours:
                    self.folder.rmdir()
                self._remove_above()
            raise writing.refusal(self.folder, error, "choose another --out") from None
        try:
            self._restore()
            self._look()  # again, now that nobody else is here
            if self.resume:
                self._take_up()
            else:
                self._clear()
            self._known = self._size()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            if isinstance(error, OSError):
                raise writing.refusal(self.folder, error, "choose another --out") from None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None and not self._is_worth_keeping(error):
                self._let_go()
                with suppress(OSError):
                    _remove(self.folder)
                    self._remove_above()
        finally:
            self.log.close()

    def settle_on(self, manifest: Mapping[str, Any]) -> None:
        """Write what the run is made of, or hold a resumed run to what it was made of."""
        path = self.folder / _MANIFEST
        # An empty one says nothing: the system went down before its text was on the disk.
        if path.exists() and path.stat().st_size:
            before = read_json(path)
            if before.get("config_sha256") != manifest["config_sha256"]:
                raise InvalidInput(
                    f"the unfinished run at {str(self.folder)!r} was made with different settings, "
                    "data or model; repeat its command, or start again with --force"
                )
        writing.write(path, to_json(manifest) + "\n")

    def finish(self, contents: Mapping[str, writing.Content], *, keep_journal: bool) -> None:
        """Write the files and put the folder in its place, all at once."""
        writing.write_all({self.folder / name: content for name, content in contents.items()})
        self._finishing = True
        try:
            self._let_go()
            old = self._make_way()
            self.folder.rename(self.place)
        except OSError as error:
            advice = f"move the finished run out of {str(self.folder)!r} by hand"
            raise writing.refusal(self.place, error, advice) from None
        # Until here the answers were needed: without them, a kill before the rename loses the run.
        with suppress(OSError):
            if not keep_journal:
                (self.place / _PROGRESS).unlink(missing_ok=True)
                (self.place / _JOURNAL).unlink()
            if old is not None:
                _remove(old)

    def _refuse_the_way_here(self) -> None:
        """InvalidInput where the folder would hold the one that the user is in."""
        try:
            here = Path.cwd().resolve()
        except FileNotFoundError:  # the user is nowhere
            return
        if self.place in (here, *here.parents):
            raise InvalidInput(
                f"--out names {_cut(self.place)!r}, which contains the folder you are in; name a "
                "new folder"
            )

    def _check_lock(self) -> None:
        """InvalidInput where another program is at work on the same folder."""
        if not _is_unfinished(self.folder) or _mode(self.folder / _JOURNAL) is None:
            return
        try:
            writing.lock(self.folder / _JOURNAL).close()
        except writing.Held:
            raise self._hold() from None

    def _hold(self) -> InvalidInput:
        return InvalidInput(
            f"another limi is writing {str(self.place)!r} right now; wait for it, or choose "
            "another --out"
        )

    def _look(self) -> None:
        """InvalidInput where something stands in the way, or there is nothing to resume."""
        mode = _mode(self.place)
        if mode is not None and not stat.S_ISDIR(mode):
            raise InvalidInput(f"{str(self.place)!r} is not a folder; give --out a folder to write")
        if _mode(self.folder) is not None and not _is_unfinished(self.folder):
            raise InvalidInput(
                f"{str(self.folder)!r} is needed for the unfinished run, but it holds other files; "
                "move it, or choose another --out"
            )
        if self.resume:
            self._require_something()
        elif mode is not None and not self.force:
            raise InvalidInput(
                f"{str(self.place)!r} exists already; choose another --out, or replace it with "
                "--force"
            )
        if mode is not None:
            self._require_a_run()
        if not self.force and not self.resume and _size(self.folder / _JOURNAL):
            raise InvalidInput(
                f"there is an unfinished run in {str(self.folder)!r}; continue with --resume, or "
                "start again with --force"
            )

    def _require_something(self) -> None:
        begun = _size(self.folder / _MANIFEST) is not None or _size(self.folder / _JOURNAL)
        killed_early = _mode(self.folder) is not None and _mode(self.place) is None
        if not (begun or killed_early or _mode(self.place / _JOURNAL) is not None):
            raise InvalidInput(
                f"there is no unfinished run at {str(self.place)!r}; start it without --resume"
            )

    def _require_a_run(self) -> None:
        """InvalidInput where the folder that would be replaced is not limi's alone."""
        why = _why_no_run(self.place)
        if why:
            raise InvalidInput(
                f"{str(self.place)!r} holds files that are not part of a limi run ({why}), so it "
                "is not replaced; choose another --out"
            )

    def _open(self) -> None:
        """Make the folder, or open the one that is there, and lock it."""
        self._above = [path for path in self.folder.parents if not path.exists()]
        self.place.parent.mkdir(parents=True, exist_ok=True)
        while self._log is None:
            try:
                self.folder.mkdir()
                self._is_ours = True
            except FileExistsError:
                self._is_ours = False
                self._look()
            try:
                self._log = writing.lock(self.folder / _JOURNAL)
            except writing.Held:
                raise self._hold() from None
            except FileNotFoundError:
                continue  # its last owner has just finished, or removed it

    def _restore(self) -> None:
        """Repair what a kill left between two renames: an old run that stands aside."""
        name = re.compile(re.escape(self.place.name) + r"\.[0-9a-f]{8}\.old")
        for old in [path for path in self.place.parent.iterdir() if name.fullmatch(path.name)]:
            if not _is_folder(old) or _stranger(old, _OURS):
                continue
            if _mode(self.place) is not None:
                _remove(old)
            elif not _why_no_run(old):
                old.rename(self.place)

    def _take_up(self) -> None:
        """An interrupted run keeps its journal in its folder; a killed one left it in the draft."""
        kept = self.place / _JOURNAL
        # The manifest is written after the answers: without it, a kill came between.
        if _mode(self.folder / _MANIFEST) is not None or _mode(kept) is None:
            return
        self._is_ours = True
        self.log.truncate(0)
        with kept.open("rb") as file:
            while part := file.read(_COPIED_AT_ONCE):
                writing.append(self.log.fileno(), part)
        writing.write(self.folder / _MANIFEST, (self.place / _MANIFEST).read_bytes())

    def _clear(self) -> None:
        """Begin with an empty folder."""
        _empty(self.folder, but=_JOURNAL)
        self.log.truncate(0)
        self._is_ours = True

    def _make_way(self) -> Path | None:
        """Put aside what the new folder replaces."""
        if _mode(self.place) is None:
            return None
        if not (self.force or self.resume) or _why_no_run(self.place):
            raise FailedWrite(
                f"{str(self.place)!r} gained other files during the run; the finished run is in "
                f"{str(self.folder)!r}: move one of them"
            )
        old = self._aside()
        self.place.rename(old)
        return old

    def _aside(self) -> Path:
        # A name that nobody has: what lies beside is not ours to remove.
        return self.place.with_name(f"{self.place.name}.{secrets.token_hex(4)}.old")

    def _is_worth_keeping(self, error: BaseException) -> bool:
        if self._finishing:
            return True
        # Options that cannot be used are told without a trace of the attempt.
        misused = isinstance(error, LimiError) and error.exit_code == 2 and not self.searched
        new = self._size() - self._known
        return self._size() > 0 and not (self._is_ours and (misused or not new))

    def _size(self) -> int:
        return os.fstat(self.log.fileno()).st_size

    def _let_go(self) -> None:
        # Windows neither renames nor removes what is open. Elsewhere the lock is kept to the end.
        if sys.platform == "win32":
            self.log.close()

    def _remove_above(self) -> None:
        for path in self._above:
            path.rmdir()


def _is_unfinished(folder: Path) -> bool:
    """Is a folder a draft of ours, or empty?"""
    if not _is_folder(folder) or _stranger(folder, _OURS, drafts=True):
        return False
    if not any(folder.iterdir()):
        return True
    log = folder / _JOURNAL
    return (_mode(log) is not None and answer_log.looks_like_one(log)) or _tells(
        folder / _MANIFEST, "config_sha256"
    )


def _why_no_run(folder: Path) -> str:
    """Why a folder is neither a run or a repair of limi nor empty, in words; empty where it is."""
    held = {path.name for path in folder.iterdir()}
    names = _RUN_FILES
    for mark, files in (
        (_REPAIR, _REPAIR_FILES),
        (_PROOF, _PROOF_FILES),
        (_IMAGES, _IMAGE_FILES),
    ):
        names = files if mark in held else names
    stranger = _stranger(folder, names)
    if stranger:
        return f"such as {stranger!r}"
    if not held or _tells(folder / _REPAIR, "verdict") or _tells(folder / _PROOF, "answers"):
        return ""
    told = _IMAGES if _IMAGES in held else "summary.json"
    is_run = _tells(folder / _MANIFEST, "config_sha256") and _tells(folder / told)
    return "" if is_run else "limi did not write its manifest and summary"


def _tells(path: Path, *names: str) -> bool:
    """Is it a JSON object of ours, with a format and these names?"""
    try:
        tree = read_json(path)
    except CorruptStore:
        return False
    return isinstance(tree.get("format"), int) and all(name in tree for name in names)


def _stranger(folder: Path, names: Iterable[str], *, drafts: bool = False) -> str:
    """The first thing in a folder that is not a file of these names; empty where there is none."""
    with os.scandir(folder) as entries:
        strangers = [
            entry.name
            for entry in entries
            if not entry.is_file(follow_symlinks=False)
            or not (_is_of(entry.name, names) or (drafts and writing.is_draft(entry.name)))
        ]
    return min(strangers, default="")


def _is_of(name: str, names: Iterable[str]) -> bool:
    """Is a file of these names, or a picture of a pair where the names are those of images?"""
    return name in names or (_IMAGES in names and _PAIR.fullmatch(name) is not None)


def _remove(folder: Path) -> None:
    """Remove a folder of ours; OSError where somebody has put something into it."""
    _empty(folder)
    folder.rmdir()


def _empty(folder: Path, but: str = "") -> None:
    """Remove our files from a folder of ours, those that tell whose it is last."""
    with os.scandir(folder) as entries:
        found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    ours = [
        name for name in found if name != but and (_is_of(name, _OURS) or writing.is_draft(name))
    ]
    for name in sorted(ours, key=lambda name: (name in _LAST, name == _JOURNAL)):
        (folder / name).unlink()


def _is_folder(path: Path) -> bool:
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def _size(path: Path) -> int | None:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return None


def _mode(path: Path) -> int | None:
    """What stands at a path, a link for itself; None where nothing does."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


def _cut(path: Path, most: int = 160) -> str:
    text = str(path)
    return text if len(text) <= most else f"{text[:most]} ..."
