"""`limi doctor`: what is installed, what each missing extra would add, and what to do next."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any

from rich.table import Table

from limi.cli import _console
from limi.cli._config import FILE
from limi.cli._options import AsJson

__all__ = ["doctor"]

_CORE = (
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "narwhals",
    "typer",
    "rich",
    "jinja2",
)
_EXTRAS = {
    "torch": (("torch",), "torch targets, neural generators, GPU"),
    "onnx": (("onnxruntime",), "ONNX files as targets"),
    "skops": (("skops",), "scikit-learn models from .skops files"),
    "boosters": (("xgboost", "lightgbm", "catboost"), "native booster files as targets"),
    "mlflow": (("mlflow-skinny",), "--log mlflow, and thresholds for models in MLflow"),
    "remote": (("httpx", "msgspec"), "models behind an address"),
    "certify": (("ortools", "onnx"), "a solver for proofs about models made of trees"),
    "images": (("pillow",), "testing image classifiers"),
    "explore": (("starlette", "uvicorn"), "limi explore, the page for asking a model questions"),
    "tables": (("openpyxl", "duckdb"), "Excel files and duckdb queries as tables"),
    "ray": (("ray",), "workers on a Ray cluster"),
    "export": (("onnx", "skl2onnx"), "repaired models written as ONNX files"),
    "plots": (("matplotlib",), "result.plot drawn on matplotlib axes"),
}
# Files whose ending shows that an extra will be needed.
_NEEDED = {
    ".onnx": "onnx",
    ".skops": "skops",
    ".pt2": "torch",
    ".ubj": "boosters",
    ".cbm": "boosters",
    ".xlsx": "tables",
}


def doctor(
    as_json: AsJson = False,
) -> None:
    """Show what is installed, what each missing extra would add, and what to do next."""
    from limi import __version__

    core = {name: _version(name) for name in _CORE}
    extras: dict[str, dict[str, Any]] = {
        name: {
            "packages": {package: _version(package) for package in packages},
            "adds": adds,
            "install": f"pip install 'limi[{name}]'",
        }
        for name, (packages, adds) in _EXTRAS.items()
    }
    gpu = _gpu()
    step = next_step(Path.cwd(), extras)
    if as_json:
        _console.print_json(
            {
                "limi": __version__,
                "python": platform.python_version(),
                "core": core,
                "extras": extras,
                "gpu": gpu,
                "next": step,
            }
        )
        return
    console = _console.out
    console.print(f"limi {__version__}, Python {platform.python_version()}")
    console.print("core: " + ", ".join(f"{name} {version}" for name, version in core.items()))
    table = Table("extra", "state", "adds", box=None, padding=(0, 2, 0, 0))
    for name, extra in extras.items():
        lacking = [package for package, version in extra["packages"].items() if version is None]
        have = ", ".join(f"{p} {v}" for p, v in extra["packages"].items() if v)
        state = have if not lacking else f"missing {', '.join(lacking)}: {extra['install']}"
        table.add_row(name, state, extra["adds"])
    console.print(table)
    console.print(f"gpu: {gpu or 'none that torch can use'}")
    console.print(f"next: {step}", soft_wrap=True)


def next_step(folder: Path, extras: Mapping[str, Mapping[str, Any]]) -> str:
    """What to type next, by what lies in a folder: a missing package comes before everything, then
    the newest run, then a configuration, then a table, and the demo where there is nothing yet."""
    files = _visible(folder)
    for file in files:
        extra = _NEEDED.get(file.suffix.lower())
        if extra is not None and None in extras[extra]["packages"].values():
            return f"{extras[extra]['install']}, which {file.name} needs"
    runs = [file for file in files if (file / "summary.json").is_file()]
    runs += [run for run in _visible(folder / "runs") if (run / "summary.json").is_file()]
    if runs:
        newest = max(runs, key=lambda run: (run / "summary.json").stat().st_mtime)
        return f"limi report {shlex.quote(newest.relative_to(folder).as_posix())}"
    if (folder / FILE).is_file():
        return f"limi test, with the options of {FILE}"
    tables = [file for file in files if file.suffix.lower() in (".csv", ".parquet")]
    if tables:
        return f"limi init {shlex.quote(tables[0].name)} --model KIND:PLACE"
    return "limi demo"


def _visible(folder: Path) -> list[Path]:
    """What lies in a folder, hidden files left out; nothing where it cannot be read."""
    try:
        return sorted(file for file in folder.iterdir() if not file.name.startswith("."))
    except OSError:
        return []


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu() -> str | None:
    if util.find_spec("torch") is None:
        return None
    import torch

    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else None
