"""MLflow: runs and gates in its tracking store, and models of its registry held to thresholds.

Where it is kept is MLflow's business: its tracking URI, experiment and active run, by its own
variables (`MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`, `MLFLOW_RUN_ID`) or in Python.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from limi import models
from limi.audits.run_folder import read_summary
from limi.audits.summary import Summary
from limi.errors import FailedWrite, InvalidInput, LimiError, missing
from limi.gates import Answer, Gate, gate
from limi.models.pyfunc import open_folder
from limi.report import gate as gate_words
from limi.report import html
from limi.system.foreign import at_work, reason
from limi.system.shown import to_json
from limi.table.frames import Frame

if TYPE_CHECKING:
    from limi.audits.result import Result

__all__ = ["check_store", "log_gate", "log_result", "validate"]

_LONGEST = 250  # characters of a name, and of a value that MLflow keeps for certain
_UNKNOWN = re.compile(r"[^\w\-./ ]")
_FILES = ("data", "pickled_model", "model_file")  # how flavors name the file of a model
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


def validate(
    model_uri: str,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    validation_thresholds: Mapping[str, Any],
    baseline: str | Path | None = None,
    inconclusive: Literal["fail", "pass"] = "fail",
    log: bool = True,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    **options: Any,
) -> Gate:
    """Hold a model of MLflow to thresholds by a sequential gate, and log the answer.

    `validation_thresholds` are MLflow's `MetricThreshold`s by the name of a gate's metric, such as
    `{"natural_rate": MetricThreshold(threshold=0.01, greater_is_better=False)}`. `threshold` is the
    most that a metric may be. `min_absolute_change` and `min_relative_change` ask for a rate that
    is lower than that of `baseline`, a run folder of an earlier model, by so much, or by such a
    part of the rate that the run measured, which is taken as a fixed number. MLflow's
    `ModelValidationFailedException` is raised where a threshold is broken, and where the budget
    ends before it is known, unless `inconclusive="pass"`. Other options are those of `limi.gate`.

    A model that is kept as data (ONNX, skops, boosters) is opened by limi, as `limi test` opens
    one; any other flavor runs code, and needs `trust_pickle=True`.
    """
    mlflow = _import()
    if inconclusive not in ("fail", "pass"):
        raise InvalidInput(f'inconclusive is {inconclusive!r}; it must be "fail" or "pass"')
    rules = _rules(validation_thresholds, baseline)
    with _at_work(InvalidInput, f"the model {model_uri!r} cannot be loaded from MLflow"):
        place = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
        model = _open(model_uri, place, trust_pickle)
    answer = gate(
        model,
        frame,
        rules,
        protected=protected,
        baseline=baseline,
        trust_pickle=trust_pickle,
        trust=trust,
        **options,
    )
    if log:
        log_gate(answer)
    broken = answer.answer == Answer.FAIL
    if broken or (answer.answer == Answer.INCONCLUSIVE and inconclusive == "fail"):
        from mlflow.models.evaluation.validation import ModelValidationFailedException

        told = [gate_words.sentence(answer), *map(gate_words.why, answer.rules)]
        raise ModelValidationFailedException("\n".join(told))
    return answer


# -- thresholds ------------------------------------------------------------------------------


def _rules(thresholds: Mapping[str, Any], baseline: str | Path | None) -> list[str]:
    """Thresholds of MLflow as rules of a gate."""
    rules: list[str] = []
    for metric, wanted in thresholds.items():
        try:
            most = wanted.threshold
            absolute, relative = wanted.min_absolute_change, wanted.min_relative_change
            greater = wanted.greater_is_better
        except AttributeError:
            raise InvalidInput(
                f"the threshold of {metric!r} is {wanted!r}; give mlflow.models.MetricThreshold"
            ) from None
        if greater:
            raise InvalidInput(
                f"{metric!r} is better when it is lower; set greater_is_better=False in its "
                "threshold"
            )
        if most is not None:
            rules.append(f"{metric} <= {100 * most:.10f} {_unit(metric)}")
        changes = [] if absolute is None else [float(absolute)]
        if relative is not None:
            rate = _rate(metric, baseline)
            if not rate:
                raise InvalidInput(
                    f"the threshold of {metric!r} asks for a relative change, and the baseline's "
                    "rate is 0, which leaves nothing to lower; give it a threshold= instead"
                )
            changes.append(float(relative) * rate)
        if changes:
            rules.append(f"{metric} better than baseline by {100 * max(changes):.10f} points")
    return rules


def _unit(metric: str) -> str:
    return "%" if metric.endswith("rate") else "points"


def _rate(metric: str, baseline: str | Path | None) -> float:
    """The rate that a baseline measured."""
    if baseline is None:
        raise InvalidInput(
            f"the threshold of {metric!r} asks for a change, and there is no baseline; name the "
            "run folder of an earlier model as baseline="
        )
    population = metric.removesuffix("_rate").replace("_", "-")
    summary = read_summary(baseline)
    rate = summary.rates.get(population)
    if rate is None and summary.blind and population in ("natural", "uniform"):
        return 0.0
    if rate is None or not math.isfinite(rate.estimate):
        raise InvalidInput(f"the baseline {str(baseline)!r} has no {metric}")
    return rate.estimate


# -- models ----------------------------------------------------------------------------------


def _open(uri: str, place: Path, trusted: bool) -> Any:
    """A model of MLflow: the file of one that is data, or a live object where code may run."""
    from mlflow.models import Model

    flavors: Mapping[str, Any] = Model.load(str(place)).flavors
    for flavor in flavors.values():
        names = [flavor[key] for key in _FILES if isinstance(flavor, Mapping) and key in flavor]
        for name in names:
            path = (place / str(name)).resolve()
            kind = models.kind_of_file(path.name)
            inside = path.is_relative_to(place.resolve()) and path.is_file()
            if kind is not None and inside and models.offers(kind).data_only:
                return f"{kind}:{path}"
    if not trusted:
        raise InvalidInput(
            f"the model {uri!r} is stored in a form that runs code when it is opened "
            f"({', '.join(flavors)}); if you know who made it, pass trust_pickle=True"
        )
    return open_folder(place)


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
