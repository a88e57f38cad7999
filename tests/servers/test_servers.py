"""Real servers on loopback give the findings that the same model gives in process.

MLflow's scoring server and MLServer with its scikit-learn runtime, each in a virtual environment
of its own (`make test-servers`), and an application under uvicorn.
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from limi import Remote, audit
from tests.remote.faults import spoiled
from tests.remote.servers import COLUMNS, people

HERE = Path(__file__).parent
MLFLOW, MLSERVER, UVICORN = (
    os.environ.get(f"LIMI_{name}") for name in ("MLFLOW", "MLSERVER", "UVICORN")
)
GIVEN = {"protected": "sex", "target": "ok", "method": "themis", "generator": None, "seed": 0}
GIVEN |= {"rate_rows": 200, "max_rows": 1000}
SAVE = """
import sys, joblib, mlflow.sklearn
model = joblib.load(sys.argv[1])
mlflow.sklearn.save_model(model, sys.argv[2], pyfunc_predict_fn=sys.argv[3],
    serialization_format="cloudpickle")
"""


@pytest.fixture(scope="module")
def table():
    return people(600).assign(wealth=lambda frame: frame["wealth"].fillna(0.0))


@pytest.fixture(scope="module")
def model(table):
    text = make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder="passthrough")
    return make_pipeline(text, LogisticRegression(max_iter=2000)).fit(table[COLUMNS], table["ok"])


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.joblib"
    joblib.dump(model, path)
    return path


def alike(one, other):
    """Are these the same findings? Sums in batches of another size differ in the last digits."""
    a, b = one.found, other.found
    return (
        np.array_equal(a.rows, b.rows, equal_nan=True)
        and np.array_equal(a.partner, b.partner, equal_nan=True)
        and np.allclose(a.score, b.score, rtol=0, atol=1e-12)
        and np.allclose(a.partner_score, b.partner_score, rtol=0, atol=1e-12)
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def running(command, ready, folder, **environment):
    """A server as a process of its own, once it answers."""
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=os.environ | environment
    )
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(ready, timeout=2):
                    break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.5)
        else:
            raise AssertionError((folder / "log").read_text())
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


@contextmanager
def mlflow_serving(saved, folder, predict):
    port = free_port()
    python = f"{MLFLOW}/python"
    quiet = {"PYTHONPATH": "", "MLFLOW_TRACKING_URI": f"file:{folder}/runs"}
    subprocess.run(
        [python, "-c", SAVE, str(saved), str(folder / "model"), predict],
        check=True,
        cwd=folder,
        env=os.environ | quiet,
        capture_output=True,
    )
    command = [f"{MLFLOW}/mlflow", "models", "serve", "-m", str(folder / "model")]
    command += ["--host", "127.0.0.1", "--port", str(port), "--env-manager", "local"]
    path = f"{MLFLOW}:{os.environ['PATH']}"
    address = f"http://127.0.0.1:{port}"
    with running(command, f"{address}/ping", folder, PATH=path, **quiet):
        yield address


@pytest.mark.skipif(not MLFLOW, reason="make test-servers")
def test_mlflow_gives_the_findings_of_the_model_in_process(model, saved, table, tmp_path):
    here = audit(lambda frame: model.predict_proba(frame), table, **GIVEN)
    assert len(here.found) > 20
    with mlflow_serving(saved, tmp_path, "predict_proba") as address:
        there = audit(f"mlflow:{address}", table, **GIVEN)
        assert alike(there, here)
        calm = audit(f"mlflow:{address}", table, **{**GIVEN, "max_queries": 3000})
        with spoiled(address) as (proxy, _):
            remote = Remote(backoff=0.01, timeout=10)
            rough = {**GIVEN, "max_queries": 3000, "remote": remote}
            assert alike(audit(f"mlflow:{proxy}", table, **rough), calm)


@pytest.mark.skipif(not MLFLOW, reason="make test-servers")
def test_mlflow_with_labels_alone_gives_the_same_people(model, saved, table, tmp_path):
    here = audit(lambda frame: model.predict(frame), table, **GIVEN)
    with mlflow_serving(saved, tmp_path, "predict") as address:
        assert alike(audit(f"mlflow:{address}", table, **GIVEN), here)


@pytest.mark.skipif(not MLSERVER, reason="make test-servers")
@pytest.mark.parametrize("output", ["predict_proba", "predict"])
def test_mlserver_gives_the_findings_of_the_model_in_process(model, saved, table, tmp_path, output):
    ports = [free_port() for _ in range(3)]
    names = ("http_port", "grpc_port", "metrics_port")
    settings = {"host": "127.0.0.1", "parallel_workers": 0, **dict(zip(names, ports, strict=True))}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    about = {
        "name": "credit",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": str(saved), "version": "1"},
    }
    (tmp_path / "model-settings.json").write_text(json.dumps(about))
    here = audit(lambda frame: getattr(model, output)(frame), table, **GIVEN)
    address = f"http://127.0.0.1:{ports[0]}"
    command = [f"{MLSERVER}/mlserver", "start", str(tmp_path)]
    with running(command, f"{address}/v2/models/credit/ready", tmp_path, PYTHONPATH=""):
        there = audit(f"oip:{address}#credit?output={output}", table, **GIVEN)
    assert alike(there, here)


@pytest.mark.skipif(not UVICORN, reason="make test-servers")
@pytest.mark.parametrize("place", ["instances:{}/v1/models/credit:predict", "csv:{}/csv"])
def test_an_application_under_uvicorn_gives_the_findings_in_process(
    model, saved, table, tmp_path, place
):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [f"{UVICORN}/python", "-m", "uvicorn", "tests.servers.app:app"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    root = str(HERE.parent.parent)
    more = {"LIMI_SAVED": str(saved), "PYTHONPATH": root}
    here = audit(lambda frame: model.predict_proba(frame)[:, 1], table, **GIVEN)
    with running(command, f"{address}/ready", tmp_path, **more):
        there = audit(place.format(address), table, **GIVEN)
    assert len(here.found) > 20
    assert alike(there, here)
