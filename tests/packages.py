"""Packages of other people, as pip would have installed them: modules and entry points."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

HERE = Path(__file__).parent.parent


class Package:
    """A folder that stands for a place of installed packages, with one package in it."""

    def __init__(self, folder, modules, entry_points, name="others"):
        self.folder = Path(folder)
        for module, text in modules.items():
            path = self.folder / (module.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        known = self.folder / f"{name}-1.0.dist-info"
        known.mkdir(parents=True)
        (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        groups = [
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
            for group, points in entry_points.items()
        ]
        (known / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")

    def run(self, *arguments, **more):
        """`python ARGUMENTS` in a process in which the package is installed."""
        kept = os.environ.get("PYTHONPATH")
        path = os.pathsep.join(map(str, filter(None, (self.folder, HERE, kept))))
        return subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            **more,
        )

    def limi(self, *arguments, **more):
        """`limi ARGUMENTS` where the package is installed."""
        return self.run("-m", "limi", *map(str, arguments), **more)
