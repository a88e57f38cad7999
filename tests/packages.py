"""Packages of other people, as pip would have installed them: modules and entry points."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

HERE = Path(__file__).parent.parent
SEVERAL = """
import contextlib, io, json, sys
from limi.cli import main

told = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["limi", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


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

    def limi_several(self, *commands, **more):
        """What `limi` says to each of the commands, one after another in one process.

        For commands that are not about the start, which takes longer than most of them.
        """
        words = [list(map(str, command)) for command in commands]
        done = self.run("-c", SEVERAL, json.dumps(words), **more)
        assert done.returncode == 0, done.stderr
        return [
            subprocess.CompletedProcess(given, code, out, err)
            for given, (code, out, err) in zip(words, json.loads(done.stdout), strict=True)
        ]
