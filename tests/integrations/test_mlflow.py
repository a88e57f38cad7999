"""MLflow with a real tracking store, a folder of files."""

import json

import numpy as np
import pytest

import limi as package
from limi.errors import FailedWrite
from limi.integrations import mlflow as integration
from tests.changes.small import by_sex, people

mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (limi[mlflow])")

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own, of its libraries

OPTIONS = {
    "protected": ["sex"],
    "target": "ok",
    "favorable": "yes",
    "generator": None,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A tracking store, and an experiment whose artifacts lie beside it."""
    folder = tmp_path_factory.mktemp("mlflow")
    uri = (folder / "store").as_uri()
    with pytest.MonkeyPatch.context() as patch:
        # A database takes MLflow ten seconds to set up.
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.setenv("MLFLOW_EXPERIMENT_NAME", "fairness")
        patch.setenv("LIMI_MODEL_SECONDS", "0")
        before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
        mlflow.set_tracking_uri(uri)
        mlflow.set_registry_uri(uri)
        mlflow.create_experiment("fairness", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("fairness")
        yield mlflow.MlflowClient()
        mlflow.set_tracking_uri(before[0])
        mlflow.set_registry_uri(before[1])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    result = package.audit(
        by_sex(20),
        people(),
        output="score",
        method="real",
        rate_rows=200,
        out=folder,
        **OPTIONS,
    )
    return result, folder


def artifact(store, run_id, name):
    return mlflow.artifacts.load_text(f"{store.get_run(run_id).info.artifact_uri}/limi/{name}")


def test_a_run_is_logged_with_numbers_params_and_report(store, run):
    result, _ = run
    run_id = integration.log_result(result)
    logged = store.get_run(run_id)
    assert logged.info.status == "FINISHED"
    metrics = logged.data.metrics
    assert metrics["limi/findings"] == result.summary.findings
    real = result.rates["real"]
    assert metrics["limi/flip_rate/real/value"] == pytest.approx(real.estimate)
    assert metrics["limi/flip_rate/real/high"] == pytest.approx(real.high)
    assert any(name.startswith("limi/group/") for name in metrics)
    assert logged.data.params["limi.protected"] == "sex"
    assert logged.data.tags["limi.data_sha256"] == result.summary.hashes["data_sha256"]
    assert json.loads(artifact(store, run_id, "summary.json"))["findings"] == len(result.found)
    assert artifact(store, run_id, "report.html").startswith("<!DOCTYPE html>")


def test_the_active_run_is_used_and_left_open(store, run):
    with mlflow.start_run() as mine:
        assert integration.log_result(run[0].summary) == mine.info.run_id
        assert mlflow.active_run() is not None
    assert mlflow.active_run() is None


def test_names_that_mlflow_does_not_take_are_respelled(store):
    names = dict(integration._flatten("limi", {"a|b\x1b": {"value": 1.0}, "gone": {"value": None}}))
    assert names == {"limi/a|b\x1b": 1.0}
    assert integration._name("limi/a|b\x1b") == "limi/a_b_"


def test_a_gate_is_logged_with_its_answer(store):
    answer = package.gate(by_sex(20), people(), ["real_rate <= 1 %"], output="score", **OPTIONS)
    logged = store.get_run(integration.log_gate(answer))
    assert logged.data.tags["limi.gate"] == "fail"
    assert logged.data.metrics["limi/gate/failed"] == 1.0
    assert logged.data.metrics["limi/gate/real_rate/limit"] == pytest.approx(0.01)


def test_a_store_that_takes_nothing_is_one_sentence(store, run, monkeypatch):
    def refuse(*given, **more):
        raise RuntimeError("the disk is full\nand more")

    monkeypatch.setattr(mlflow, "log_params", refuse)
    with pytest.raises(
        FailedWrite, match=r"^MLflow did not accept the run: RuntimeError: the disk is"
    ):
        integration.log_result(run[0])
    assert mlflow.active_run() is None


def test_commands_log_where_it_is_wished(store, limi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(120).to_csv("people.csv", index=False)
    (tmp_path / "model.py").write_text(
        "def f(frame):\n    return (frame['sex'] == 'm') * 0.6 + 0.2\n"
    )
    words = ("people.csv", "--model", "python:model.py:f", "--protected", "sex", "--target", "ok")
    words += ("--favorable", "yes", "--generator", "none")
    code, out, err = limi(
        "test", *words, "--method", "real", "--rate-rows", "50", "--log", "mlflow"
    )
    assert (code, err) == (0, "")
    run_id = out.partition("Logged: MLflow run ")[2].split()[0]
    assert store.get_run(run_id).data.metrics["limi/flip_rate/real/value"] == 1.0
    code, out, err = limi("gate", *words, "--rule", "real_rate <= 1 %", "--log", "mlflow")
    assert (code, err) == (1, "")
    run_id = out.partition("Logged: MLflow run ")[2].split()[0]
    assert store.get_run(run_id).data.tags["limi.gate"] == "fail"
    code, out, _ = limi("gate", *words, "--rule", "real_rate <= 1 %", "--log", "mlflow", "--json")
    assert code == 1
    assert json.loads(out)["answer"] == "fail"
    code, out, err = limi("test", *words, "--log", "wandb")
    assert (code, out) == (2, "")
    assert "--log is 'wandb'; " in err


def test_a_store_that_does_not_answer_is_told_before_anything_is_asked(limi, tmp_path, monkeypatch):
    asked = tmp_path / "asked"
    (tmp_path / "model.py").write_text(
        f"open({str(asked)!r}, 'w')\n\ndef f(frame):\n    return 1\n"
    )
    people(50).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri("nosuch://store")
    try:
        words = ("people.csv", "--model", "python:model.py:f", "--protected", "sex")
        code, out, err = limi("test", *words, "--target", "ok", "--log", "mlflow")
    finally:
        mlflow.set_tracking_uri(before)
    assert (code, out) == (2, "")
    assert "MLflow's tracking store cannot be used" in err
    assert not asked.exists()


def test_without_mlflow_the_extra_is_named(monkeypatch):
    import sys

    from limi.errors import MissingDependency

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependency, match=r"pip install 'limi\[mlflow\]'"):
        integration.check_store()


def test_numbers_that_are_none_are_left_out(store):
    run_id = integration._log({"a": np.nan, "b": 2.0}, {"x": None}, {}, {})
    logged = store.get_run(run_id)
    assert logged.data.metrics == {"b": 2.0}
    assert logged.data.params == {}
