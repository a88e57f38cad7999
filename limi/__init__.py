"""Find natural people whose model decision flips when only a protected value changes.

The public names are resolved on first use, so that `import limi` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limi.audits.audit import Out as Out
    from limi.audits.audit import audit as audit
    from limi.audits.reopen import reopen as reopen
    from limi.audits.result import Result as Result
    from limi.changes import Diff as Diff
    from limi.changes import Replay as Replay
    from limi.changes import diff as diff
    from limi.changes import replay as replay
    from limi.errors import LimiError as LimiError
    from limi.gates import Gate as Gate
    from limi.gates import gate as gate
    from limi.images.audit import audit_images as audit_images
    from limi.images.result import ImageResult as ImageResult
    from limi.models._averaged import AveragedClassifier as AveragedClassifier
    from limi.proofs import Proof as Proof
    from limi.proofs import certify as certify
    from limi.remote.options import Remote as Remote
    from limi.repairs import Repairs as Repairs
    from limi.repairs import average as average
    from limi.repairs import repair as repair
    from limi.search.budget import Budget as Budget
    from limi.search.budget import Stop as Stop
    from limi.search.check import Checked as Checked
    from limi.search.check import check_rows as check_rows
    from limi.search.engine import run as run
    from limi.search.session import Session as Session
    from limi.search.task import Task as Task
    from limi.table.schema import Column as Column
    from limi.table.schema import Schema as Schema

__version__ = "0.1.0"

_HOME = {
    "AveragedClassifier": "limi.models._averaged",
    "Budget": "limi.search.budget",
    "Checked": "limi.search.check",
    "Column": "limi.table.schema",
    "Diff": "limi.changes",
    "Gate": "limi.gates",
    "ImageResult": "limi.images.result",
    "LimiError": "limi.errors",
    "Out": "limi.audits.audit",
    "Remote": "limi.remote.options",
    "Proof": "limi.proofs",
    "Repairs": "limi.repairs",
    "Replay": "limi.changes",
    "Result": "limi.audits.result",
    "Schema": "limi.table.schema",
    "Session": "limi.search.session",
    "Stop": "limi.search.budget",
    "Task": "limi.search.task",
    "audit": "limi.audits.audit",
    "audit_images": "limi.images.audit",
    "average": "limi.repairs",
    "certify": "limi.proofs",
    "check_rows": "limi.search.check",
    "diff": "limi.changes",
    "gate": "limi.gates",
    "reopen": "limi.audits.reopen",
    "repair": "limi.repairs",
    "replay": "limi.changes",
    "run": "limi.search.engine",
}
_PACKAGES = (
    "data",
    "evidence",
    "generators",
    "images",
    "methods",
    "metrics",
    "models",
    "report",
    "testing",
    "twins",
)

__all__ = ["__version__", *_HOME, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"limi.{name}")
    raise AttributeError(f"module 'limi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
