"""Find natural people whose model decision flips when only a protected value changes.

The public names are resolved on first use, so that `import limi` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limi.api import audit as audit
    from limi.budget import Budget as Budget
    from limi.budget import Stop as Stop
    from limi.check import Checked as Checked
    from limi.check import check_rows as check_rows
    from limi.engine import run as run
    from limi.errors import LimiError as LimiError
    from limi.repairs import Repair as Repair
    from limi.repairs import repair as repair
    from limi.results import Result as Result
    from limi.runs import reopen as reopen
    from limi.schema import Column as Column
    from limi.schema import Schema as Schema
    from limi.task import Task as Task

__version__ = "0.1.0"

_HOME = {
    "Budget": "limi.budget",
    "Checked": "limi.check",
    "Column": "limi.schema",
    "LimiError": "limi.errors",
    "Repair": "limi.repairs",
    "Result": "limi.results",
    "Schema": "limi.schema",
    "Stop": "limi.budget",
    "Task": "limi.task",
    "audit": "limi.api",
    "check_rows": "limi.check",
    "reopen": "limi.runs",
    "repair": "limi.repairs",
    "run": "limi.engine",
}
_PACKAGES = ("data", "generators", "methods", "metrics", "models", "report", "studies", "testing")

__all__ = ["__version__", *_HOME, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"limi.{name}")
    raise AttributeError(f"module 'limi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
