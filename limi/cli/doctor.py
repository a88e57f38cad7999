"""`limi doctor`: what is installed, and what each missing extra would add."""

from __future__ import annotations

import platform
from importlib import metadata, util
from typing import Any

from rich.table import Table

from limi.cli import _console
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
    "torch": (("torch",), "torch targets, neural generators and benchmark models, GPU"),
    "onnx": (("onnxruntime",), "ONNX files as targets"),
    "skops": (("skops",), "scikit-learn models from .skops files"),
    "solver": (("z3-solver",), "the SG method with the solver of its paper"),
    "boosters": (("xgboost", "lightgbm", "catboost"), "native booster files as targets"),
    "mlflow": (("mlflow-skinny",), "--log mlflow, and models of MLflow held to thresholds"),
}


def doctor(
    as_json: AsJson = False,
) -> None:
    """Show what is installed, and what each missing extra would add."""
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
    if as_json:
        _console.print_json(
            {
                "limi": __version__,
                "python": platform.python_version(),
                "core": core,
                "extras": extras,
                "gpu": gpu,
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
