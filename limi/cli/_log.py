"""Where a run is logged beside what is printed and written: an experiment tracker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from limi.cli import _console

if TYPE_CHECKING:
    from limi.audits.result import Result
    from limi.gates import Gate

__all__ = ["Log", "check_log", "log_gate", "log_result"]

Log = Annotated[
    str | None,
    Option(metavar="mlflow", help="Log numbers and report to the active MLflow tracking store."),
]

_TRACKERS = ("mlflow",)


def check_log(log: str | None) -> None:
    """Refuse a tracker that there is not, or that does not answer, before anything is asked."""
    if log is None:
        return
    from limi.errors import InvalidInput, nearest

    if log not in _TRACKERS:
        raise InvalidInput(f"--log is {log!r}; {nearest(log, _TRACKERS)}")
    from limi.integrations import mlflow

    mlflow.check_store()


def log_result(log: str | None, result: Result, *, quiet: bool) -> None:
    """Log a run where it is asked for."""
    if log is not None:
        from limi.integrations import mlflow

        _tell(mlflow.log_result(result), quiet)


def log_gate(log: str | None, answer: Gate, *, quiet: bool) -> None:
    """Log a gate where it is asked for."""
    if log is not None:
        from limi.integrations import mlflow

        _tell(mlflow.log_gate(answer), quiet)


def _tell(run_id: str, quiet: bool) -> None:
    if not quiet:
        _console.out.print(f"Logged: MLflow run {run_id}", soft_wrap=True)
