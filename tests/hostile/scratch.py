"""The scratch folder: made here, marked, filled with files of somebody else, and looked over.

work/     the working folder of the program, with its inputs
home/     HOME
tmp/      where temporary files belong
cache/    where limi may keep models
victim/   what links lead to
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.hostile.case import MINE, Fifo, Folder, Link, Thing

_MARK = ".limi-hostile"

SENTINELS: Mapping[str, Thing] = {
    "work/.env": MINE,
    "work/.git/config": MINE,
    "work/notes.txt": MINE,
    "home/.profile": MINE,
    "home/.cache/other/keep": MINE,
    "victim/file.txt": MINE,
    "victim/folder/keep.txt": MINE,
    "victim/folder/.hidden": MINE,
}


class Scratch:
    """A folder that this program made itself; nothing outside it is written or removed."""

    def __init__(self, root: Path, token: str) -> None:
        self.root, self.token = root, token
        self.check()

    @staticmethod
    def make() -> Scratch:
        """A new one, below the folder of temporary files."""
        root = Path(tempfile.mkdtemp(prefix="limi-hostile-")).resolve()
        token = secrets.token_hex(16)
        (root / _MARK).write_text(token, encoding="ascii")
        return Scratch(root, token)

    def check(self) -> None:
        """Refuse a folder that is not one of ours."""
        mark = self.root / _MARK
        try:
            ours = (
                self.root.is_absolute()
                and not self.root.is_symlink()
                and self.root.name.startswith("limi-hostile-")
                and self.root.stat().st_uid == os.getuid()
                and not mark.is_symlink()
                and mark.read_text(encoding="ascii") == self.token
            )
        except OSError:
            ours = False
        if not ours:
            raise SystemExit(f"{self.root} is no scratch folder that this program made; not run")

    def folder(self, name: str) -> Path:
        """A folder in it, made where it is missing."""
        self.check()
        place = self.root / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def empty(self, name: str) -> Path:
        """A folder in it, with nothing inside."""
        self.check()
        place = self.root / name
        if place.is_symlink():
            raise SystemExit(f"{place} is a link; not removed")
        if place.exists():
            for inner, _, _ in os.walk(place):  # a program may have shut folders
                os.chmod(inner, 0o700)
            shutil.rmtree(place)
        place.mkdir()
        return place

    def remove(self) -> None:
        """Take the whole folder away."""
        self.check()
        shutil.rmtree(self.root)


def fill(box: Path, files: Mapping[str, Thing]) -> None:
    """Write files into a box, below what is named there."""
    for name, thing in files.items():
        place = os.path.join(box, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if isinstance(thing, bytes):
            with open(place, "wb") as file:
                file.write(thing)
        elif isinstance(thing, Link):
            os.symlink(thing.to, place)
        elif isinstance(thing, Fifo):
            os.mkfifo(place)
        elif isinstance(thing, Folder):
            os.makedirs(place, exist_ok=True)


def inventory(box: Path) -> dict[str, tuple[str, str]]:
    """What each name of a box is, and a sum of what it holds; its own files begin with MINE."""
    found: dict[str, tuple[str, str]] = {}
    for folder, folders, files in os.walk(box):
        for name in [*folders, *files]:
            place = os.path.join(folder, name)
            found[os.path.relpath(place, box)] = _seen(place)
    return found


def _seen(place: str) -> tuple[str, str]:
    status = os.lstat(place)
    kind = stat.filemode(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return kind, os.readlink(place)
    if not stat.S_ISREG(status.st_mode):
        return kind, ""
    with open(place, "rb") as file:
        content = file.read()
    foreign = "mine" if content.startswith(MINE) else "input"
    return kind, f"{foreign} {hashlib.blake2b(content, digest_size=12).hexdigest()}"
