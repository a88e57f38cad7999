"""Build wheel and sdist, install the wheel with what it needs in a fresh environment, and use it.

python tools/fresh_install.py   # or: make dist
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent
_TRIED = (
    ("limi", "--version"),
    ("python", "-m", "limi", "doctor"),
    ("limi", "schema", "adult"),
)


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """Wheel and sdist of a source tree."""
    (wheel,) = WheelBuilder(str(root)).build(directory=str(folder), versions=["standard"])
    (sdist,) = SdistBuilder(str(root)).build(directory=str(folder), versions=["standard"])
    return Path(wheel), Path(sdist)


def main() -> int:
    """0 where every command of the fresh environment ends with 0."""
    wheel, sdist = build(ROOT / "dist")
    print(f"built {wheel.name} and {sdist.name}")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        bin_ = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        install = [bin_ / "python", "-m", "pip", "install", "--quiet", wheel]
        subprocess.run([*install, "-c", ROOT / "constraints.txt"], check=True)
        for command, *words in _TRIED:
            done = subprocess.run([bin_ / command, *words], cwd=folder, stdout=subprocess.DEVNULL)
            print(f"{command} {' '.join(words)}: exit code {done.returncode}")
            if done.returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
