"""Model files are tried in a process of their own: crashes, hangs and floods are one sentence."""

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import polars as pl
import pytest
import skops.io as sio
import xgboost
from onnx import TensorProto, helper
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from limi.audits.problem import prepare
from limi.errors import BadModel, InvalidInput
from limi.models import trial
from tests.models.kinds import KINDS
from tests.models.people import numbers, truth

ROOT = Path(__file__).parents[1]


def table():
    return numbers().assign(ok=truth())


def prepared(uri, frame=None, **given):
    terms = {"protected": ["member"], "target": "ok", "favorable": 1, **given}
    return prepare(uri, table() if frame is None else frame, **terms)


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    """No file has passed before."""
    monkeypatch.setattr(trial, "_passed", set())


@pytest.fixture
def starts(monkeypatch):
    """The commands of the processes that were started."""
    seen = []
    start = subprocess.Popen

    def counted(command, **given):
        seen.append(command)
        return start(command, **given)

    monkeypatch.setattr(subprocess, "Popen", counted)
    return seen


def saved(folder, limit=40):
    """A graph that favors people above an age: its library is the quickest to import."""
    constants = {"w": np.float32([[1], [0], [0]]), "b": np.float32([-limit])}
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return written(graph, folder / "model.onnx")


def written(graph, path):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return f"onnx:{path}"


# -- what passes ----------------------------------------------------------------------------

FILES = [
    *("skops_file", "onnx_tensor", "xgboost_ubj_on_polars", "lightgbm_file_on_text"),
    *("catboost_file", "torch_exported", "torch_script"),
]


@pytest.mark.parametrize("name", FILES)
def test_a_sound_file_passes_and_answers_as_its_library_does(name, tmp_path, starts):
    case = KINDS[name](tmp_path)
    starts.clear()
    other, wanted = sorted(case.given["labels"], key=lambda v: str(v) == case.given["favorable"])
    column = [wanted if favors else other for favors in case.favors]
    if isinstance(case.frame, pl.DataFrame):
        frame = case.frame.with_columns(pl.Series("ok", column))
    else:
        frame = case.frame.assign(ok=column)
    given = {name: value for name, value in case.given.items() if name != "labels"}
    made = prepare(case.model, frame, protected=["age"], target="ok", **given)
    np.testing.assert_allclose(made.target.score(made.rows), case.scores, atol=1e-5)
    assert len(starts) == 1


def test_a_file_that_has_passed_is_not_tried_again_until_it_changes(tmp_path, starts):
    uri = saved(tmp_path)
    prepared(uri)
    prepared(uri)
    assert len(starts) == 1
    saved(tmp_path, limit=50)
    prepared(uri)
    assert len(starts) == 2


COUNTS = """
import pathlib

def approve(frame):
    with open("asked", "a") as file:
        file.write(f"{len(frame)} ")
    return (frame["age"] > 40).astype(float)
"""


def test_what_is_no_file_or_vouched_for_is_not_run_twice(tmp_path, starts, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(COUNTS)
    prepared("python:model.py:approve")
    prepared(LogisticRegression().fit(numbers(), truth()))
    with pytest.raises(InvalidInput, match="there is no file"):
        prepared("skops:absent.skops")
    assert starts == []
    assert not (tmp_path / "asked").exists() or (tmp_path / "asked").read_text().split() == ["400"]


def test_types_of_this_script_cannot_be_had_elsewhere(tmp_path, starts):
    prepared(saved(tmp_path), trust=["__main__.Shift"])
    assert starts == []


def test_errors_are_those_of_the_file_itself(tmp_path):
    (tmp_path / "a.onnx").write_text("hello")
    with pytest.raises(BadModel, match="cannot be read as an ONNX model"):
        prepared(f"onnx:{tmp_path / 'a.onnx'}")
    uri = saved(tmp_path)
    with pytest.raises(BadModel, match="the model needs 3 columns, but the table has 2"):
        prepared(uri, table().drop(columns="member"), protected=["age"])
    with pytest.raises(InvalidInput, match="favorable label 'x' is not in the target"):
        prepared(uri, favorable="x")


# -- what does not ----------------------------------------------------------------------------


def crashing(path):
    """An XGBoost file so deep that reading it fills the stack."""
    path.write_text('{"a":' * 200_000)
    return f"xgboost:{path}"


def test_a_file_that_crashes_its_library_is_one_sentence(tmp_path):
    with pytest.raises(BadModel) as caught:
        prepared(crashing(tmp_path / "a.json"))
    said = str(caught.value)
    assert "was not opened: in a trial in a separate process, it crashed xgboost (SIGSEGV)" in said
    assert "\n" not in said


@pytest.mark.parametrize("share", [0.1, 0.5, 0.6, 0.9])
def test_cut_files_are_one_sentence(share, tmp_path):
    path = tmp_path / "a.ubj"
    xgboost.train({}, xgboost.DMatrix(numbers(), truth()), 2).save_model(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(BadModel, match=r"crashed xgboost|cannot be read as an XGBoost model"):
        prepared(f"xgboost:{path}")


def endless(path, *, rarely=False):
    """A graph that counts to 2^62 before it answers; rarely: for people over 40 of grade 4 only."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["go_on"]),
            helper.make_node("Identity", ["state"], ["next_state"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next_state", TensorProto.FLOAT, None),
        ],
    )
    constants = {
        "most": np.array(2**62),
        "always": np.array(True),
        "limits": np.array([40, 3, -1], np.float32),
        "first": np.array([1, 0, 0], np.float32)[:, None],
    }
    nodes = [
        helper.make_node("Greater", ["x", "limits"], ["beyond"]),
        helper.make_node("Cast", ["beyond"], ["ones"], to=TensorProto.INT64),
        helper.make_node("ReduceMin", ["ones"], ["alike"], axes=[1], keepdims=0),
        helper.make_node("ReduceMax", ["alike"], ["any"], axes=[0], keepdims=0),
        helper.make_node("Mul", ["any", "most"], ["times"]),
        helper.make_node("Loop", ["times" if rarely else "most", "always", "x"], ["z"], body=body),
        helper.make_node("MatMul", ["z", "first"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return written(graph, path)


def test_a_file_that_never_answers_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(trial.SECONDS, "4")
    with pytest.raises(BadModel, match=r"did not open and answer 400 rows within 4 seconds"):
        prepared(endless(tmp_path / "a.onnx"))


def test_rows_are_asked_that_the_table_does_not_hold(tmp_path, monkeypatch):
    monkeypatch.setenv(trial.SECONDS, "20")
    frame = table()
    frame = frame[(frame.age <= 40) | (frame.grade <= 3)]
    with pytest.raises(BadModel, match="did not open and answer"):
        prepared(endless(tmp_path / "a.onnx", rarely=True), frame)
    monkeypatch.setenv(trial.SECONDS, "0")
    made = prepared(endless(tmp_path / "a.onnx", rarely=True), frame)
    assert made.target.score(made.rows).shape == (len(frame),)


def flooding(path):
    """A model's file that makes room for a million columns when it is asked."""
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    model = make_pipeline(encoder, LogisticRegression()).fit(numbers(), truth())
    encoder.categories_ = [np.arange(10.0**6)] * 3
    encoder._n_features_outs = [10**6] * 3
    sio.dump(model, path)
    return f"skops:{path}"


def test_a_file_that_fills_the_memory_when_asked_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(trial.GIGABYTES, "1.5")
    with pytest.raises(BadModel, match=r"took more than 1.5 GB of memory"):
        prepared(flooding(tmp_path / "a.skops"))


def test_a_lack_of_memory_that_nobody_asked_for_names_no_limit(tmp_path, monkeypatch):
    limit = partial(resource.setrlimit, resource.RLIMIT_DATA, (3 << 29, 3 << 29))
    monkeypatch.setattr(subprocess, "Popen", partial(subprocess.Popen, preexec_fn=limit))
    monkeypatch.setenv(trial.GIGABYTES, "0")
    with pytest.raises(BadModel, match=r"took more memory than there is; .* a larger machine$"):
        prepared(flooding(tmp_path / "a.skops"))


# -- how it is done -----------------------------------------------------------------------------


def test_the_folder_one_is_in_brings_no_code_along(tmp_path, monkeypatch):
    uri = saved(tmp_path)
    for name in ("json", "limi", "numpy", "sitecustomize", "pickle"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    prepared(uri)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
@pytest.mark.parametrize("name", [trial.SECONDS, trial.GIGABYTES])
def test_limits_are_numbers(name, value, tmp_path, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=f"{name} is '{value}'; it must be 0 or more"):
        prepared(saved(tmp_path))


@pytest.mark.parametrize("gigabytes", ["0", "1e300"])
def test_a_limit_of_0_is_none(gigabytes, tmp_path, monkeypatch, starts):
    uri = saved(tmp_path)
    monkeypatch.setenv(trial.GIGABYTES, gigabytes)
    monkeypatch.setenv(trial.SECONDS, "1e300")
    prepared(uri)
    assert len(starts) == 1
    monkeypatch.setattr(trial, "_passed", set())
    monkeypatch.setenv(trial.SECONDS, "0")
    prepared(uri)
    assert len(starts) == 1


@pytest.mark.parametrize("python", ["", "/nowhere/python", "/bin/false"])
def test_where_no_process_can_be_started_it_is_said(python, tmp_path, monkeypatch):
    uri = saved(tmp_path)
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(InvalidInput, match=r"could not be started: .*LIMI_MODEL_SECONDS=0"):
        prepared(uri)


def children():
    """The processes that this one has started and that have not ended."""
    folder = Path(f"/proc/{os.getpid()}/task")
    return [pid for task in folder.iterdir() for pid in (task / "children").read_text().split()]


def test_a_trial_leaves_no_process_behind(tmp_path):
    before = children()
    uri = saved(tmp_path)
    prepared(uri)
    with pytest.raises(InvalidInput, match="there is no column 'nothing'"):
        prepared(uri, protected=["nothing"])
    assert children() == before


WAITS = """
import sys
from tests.models.test_trial import endless, prepared
from pathlib import Path
import subprocess
start = subprocess.Popen

def told(command, **given):
    process = start(command, **given)
    print(process.pid, flush=True)
    return process

subprocess.Popen = told
prepared(endless(Path("a.onnx")))
"""


def test_a_trial_ends_even_where_nobody_waits_for_it(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT), trial.SECONDS: "5"}
    parent = subprocess.Popen(
        [sys.executable, "-c", WAITS], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    tried = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    # It ends by an alarm of its own, or for lack of a question; nothing else would stop it.
    while Path(f"/proc/{tried}/stat").exists() and "Z" not in state_of(tried):
        time.sleep(0.1)


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_the_command_ends_with_one_sentence(tmp_path):
    table().to_csv(tmp_path / "people.csv", index=False)
    uri = crashing(tmp_path / "a.json")
    words = ["test", "people.csv", "--model", uri, "--target", "ok", "--protected", "member"]
    done = subprocess.run(
        [sys.executable, "-m", "limi", *words, "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "it crashed xgboost" in done.stderr
