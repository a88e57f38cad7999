"""MLflow: runs and gates in its tracking store.

Where it is kept is MLflow's business: its tracking URI, experiment and active run, by its own
variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`, `MLFLOW_RUN_ID`) or in Python.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from limi.audits.summary import Summary
from limi.errors import FailedWrite, InvalidInput, LimiError, missing
from limi.gates import Answer, Gate
from limi.report import gate as gate_words
from limi.report import html
from limi.system.foreign import at_work, reason
from limi.system.shown import to_json

if TYPE_CHECKING:
    from limi.audits.result import Result

__all__ = ["check_store", "log_gate", "log_result"]

_LONGEST = 250  # characters of a name, and of a value that MLflow keeps for certain
_UNKNOWN = re.compile(r"[^\w\-./ ]")
_QUIET = ("mlflow", "alembic")


def check_store() -> str:
    """The tracking URI, once MLflow has answered; InvalidInput where it does not."""
    mlflow = _import()
    what = (
        "MLflow's tracking store cannot be used; set MLFLOW_TRACKING_URI to your server's address, "
        "or install the whole of mlflow for a local database"
    )
    with _at_work(InvalidInput, what):
        mlflow.MlflowClient().search_experiments(max_results=1)
        return str(mlflow.get_tracking_uri())


def log_result(result: Result | Summary) -> str:
    """Log a run's metrics, params and report to the active run of MLflow, or to a new one; its id.

    Findings stay in the run folder, because some may be rows of the table.
    """
    summary = result if isinstance(result, Summary) else result.summary
    metrics: dict[str, float] = {
        "limi/findings": summary.findings,
        "limi/queries": summary.queries,
        "limi/rows_checked": summary.rows_checked,
        "limi/seconds": summary.seconds,
    }
    for name, rate in summary.rates.items():
        told = {"value": rate.estimate, "low": rate.low, "high": rate.high, "rows": rate.n}
        metrics |= {f"limi/flip_rate/{name}/{end}": number for end, number in told.items()}
    metrics |= dict(_flatten("limi", summary.metrics))
    params = {
        "table": summary.table,
        "model": summary.model,
        "target": summary.target,
        "favorable": summary.favorable,
        "decision": summary.decision,
        "protected": ", ".join(summary.protected),
        "method": summary.method,
        "generator": summary.generator,
        "seed": summary.seed,
    }
    texts = {
        "report.html": html.render(summary),
        "summary.json": to_json(summary.as_dict()) + "\n",
    }
    return _log(metrics, params, _tags(summary.hashes, summary.versions, summary.command), texts)


def log_gate(answer: Gate) -> str:
    """Log a gate's answer and numbers to the active run of MLflow, or to a new one; its id."""
    metrics: dict[str, float] = {
        "limi/gate/passed": float(answer.answer == Answer.PASS),
        "limi/gate/failed": float(answer.answer == Answer.FAIL),
        "limi/gate/queries": answer.queries,
    }
    for judged in answer.rules:
        known = judged.estimate
        told = {"value": known.value, "low": known.low, "high": known.high, "rows": known.n}
        told["limit"] = judged.rule.limit
        metrics |= {f"limi/gate/{judged.rule.name}/{end}": n for end, n in told.items()}
    params = {
        "table": answer.table,
        "model": answer.model,
        "protected": ", ".join(answer.protected),
        "rules": "; ".join(judged.rule.text for judged in answer.rules),
        "generator": answer.generator,
        "seed": answer.seed,
    }
    tags = _tags(answer.hashes, answer.versions, answer.command) | {"limi.gate": str(answer.answer)}
    texts = {
        "gate.json": to_json(answer.as_dict()) + "\n",
        "gate.md": gate_words.render_markdown(answer),
    }
    return _log(metrics, params, tags, texts)


# -- the store -------------------------------------------------------------------------------


def _log(
    metrics: Mapping[str, float],
    params: Mapping[str, Any],
    tags: Mapping[str, str],
    texts: Mapping[str, str],
) -> str:
    mlflow = _import()
    known = {_name(key): float(value) for key, value in metrics.items() if math.isfinite(value)}
    said = {f"limi.{key}": _cut(value) for key, value in params.items() if value is not None}
    with _at_work(FailedWrite, "MLflow did not accept the run"):
        active = mlflow.active_run()
        run = active or mlflow.start_run()
        try:
            mlflow.log_metrics(known)
            mlflow.log_params(said)
            mlflow.set_tags(tags)
            for name, text in texts.items():
                mlflow.log_text(text, f"limi/{name}")
        except BaseException:
            if active is None:
                mlflow.end_run("FAILED")
            raise
        if active is None:
            mlflow.end_run()
    run_id: str = run.info.run_id
    return run_id


def _tags(
    hashes: Mapping[str, str | None], versions: Mapping[str, str], command: str
) -> dict[str, str]:
    told = {**hashes, "version": versions.get("limi"), "command": command or None}
    return {f"limi.{name}": _cut(value) for name, value in told.items() if value is not None}


def _flatten(path: str, tree: Any) -> Iterator[tuple[str, float]]:
    """Every figure of a tree of metrics, by its way through the tree."""
    if not isinstance(tree, Mapping):
        return
    value = tree.get("value")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, float(value)
        return
    for name, inner in tree.items():
        yield from _flatten(f"{path}/{name}", inner)


def _name(key: str) -> str:
    """A name that MLflow takes."""
    return _UNKNOWN.sub("_", key)[:_LONGEST]


def _cut(value: Any) -> str:
    return str(value)[:_LONGEST]


def _import() -> Any:
    try:
        import mlflow
    except ImportError:
        raise missing("mlflow-skinny", "mlflow", "logging to MLflow") from None
    return mlflow


@contextmanager
def _at_work(kind: type[LimiError], what: str) -> Iterator[None]:
    """MLflow at work: quiet, and one sentence where it fails."""
    before = {name: logging.getLogger(name).level for name in _QUIET}
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with at_work(lambda error: kind(f"{what}: {reason(error)}")):
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
