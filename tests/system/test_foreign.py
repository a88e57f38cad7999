"""Foreign code at work: standard output stays the result's, and no exit ends the run."""

import ctypes
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limi
from limi import models
from limi.errors import BadModel, InvalidInput
from limi.system.foreign import at_work, reason, to_stderr

ROOT = Path(__file__).parents[1]

# Every way to standard output that code in this process has.
PRINTS = """
import ctypes, os, subprocess, sys
found = sys.stdout

def prints(frame=None):
    print("from print")
    found.write("from a kept stream\\n")
    sys.__stdout__.write("from Python's own stream\\n")
    os.write(1, b"from the descriptor\\n")
    ctypes.CDLL(None).puts(b"from C")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return [] if frame is None else [0.25] * len(frame)
"""
WAYS = ("print", "a kept stream", "Python's own stream", "the descriptor", "C", "a child")


def run(code, *, cwd, tail="", **given):
    """Run Python through a shell, whose redirections `tail` holds."""
    (cwd / "script.py").write_text(code, encoding="utf-8")
    command = f'"{sys.executable}" script.py {tail}'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, shell=True, cwd=cwd, env=env, capture_output=True, text=True, check=False, **given
    )


def test_whatever_prints_prints_to_standard_error(tmp_path):
    code = f"""{PRINTS}
from limi.system.foreign import to_stderr
print("before")
ctypes.CDLL(None).puts(b"before from C")
with to_stderr():
    prints()
    with to_stderr():
        prints()
    prints()
print("after")
"""
    done = run(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["after", "before", "before from C"]
    assert sorted(done.stderr.splitlines()) == sorted(3 * [f"from {way}" for way in WAYS])


@pytest.mark.parametrize("tail", [">&-", "2>&-", ">&- 2>&-", "< /dev/null >&-"])
def test_closed_streams_are_no_hindrance(tail, tmp_path):
    code = """
import os, pathlib, sys
from limi.system.foreign import to_stderr
before = sys.stdout
with to_stderr():
    if sys.stdout is not None:
        print("aside")
    open("taken", "w")  # a file that gets a standard number must not be printed into
assert sys.stdout is before
pathlib.Path("done").write_text("done")
"""
    run(code, cwd=tmp_path, tail=tail)
    assert (tmp_path / "done").read_text() == "done"
    assert (tmp_path / "taken").read_text() == ""


def test_a_notebook_has_streams_without_files(monkeypatch):
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with to_stderr():
        print("aside")
    print("result")
    assert (out.getvalue(), err.getvalue()) == ("result\n", "aside\n")


def test_output_that_somebody_captures_is_captured_again(capfd):
    print("before")
    with to_stderr():
        print("aside")
        os.write(1, b"aside by number\n")
        ctypes.CDLL(None).puts(b"aside from C")
    os.write(1, b"after\n")
    shown = capfd.readouterr()
    assert shown.out.split() == ["before", "after"]
    assert sorted(shown.err.splitlines()) == ["aside", "aside by number", "aside from C"]


CLOSING = """
import sys
from limi.system.foreign import to_stderr

for stream in ("stdout", "__stdout__", "stderr"):
    with to_stderr():
        getattr(sys, stream).close()
    print("result")
    print("aside", file=sys.stderr)
with to_stderr():
    sys.stdout = sys.stderr = None
print("result")
print("aside", file=sys.stderr)
"""


def test_streams_that_foreign_code_closes_or_takes_away_are_there_again():
    done = subprocess.run([sys.executable, "-c", CLOSING], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("result\n" * 4, "aside\n" * 4)


def test_the_last_of_several_threads_restores(capfd):
    start, go_on = threading.Barrier(3), threading.Event()

    def work():
        with to_stderr():
            start.wait()
            go_on.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    start.wait()
    with to_stderr():
        pass
    os.write(1, b"aside\n")  # the others are still at work
    go_on.set()
    for thread in threads:
        thread.join()
    os.write(1, b"result\n")
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("result\n", "aside\n")


def test_no_descriptor_is_lost():
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(50):
        with pytest.raises(KeyError), to_stderr():
            raise KeyError
    assert count() == before


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError


def test_errors_of_foreign_code_are_quoted_by_their_first_line():
    assert reason(ValueError("\n one \ntwo")) == "ValueError: one"
    assert reason(KeyError()) == "KeyError: no message"
    assert reason(Unspeakable()) == "Unspeakable: no message"
    assert len(reason(ValueError("x" * 1000))) == 204


class Ending(BaseException):
    """As libraries for tests and for asynchronous work have them."""


@pytest.mark.parametrize("error", [SystemExit(0), SystemExit("bye"), GeneratorExit(), Ending("x")])
def test_an_exit_is_an_error_of_foreign_code(error):
    with (
        pytest.raises(BadModel, match=f"it raised {type(error).__name__}"),
        at_work(lambda e: BadModel(f"it raised {reason(e)}")),
    ):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, InvalidInput])
def test_the_user_s_interrupt_and_our_own_errors_pass(error):
    with pytest.raises(error), at_work(lambda e: BadModel("no")):
        raise error


# -- models ---------------------------------------------------------------------------------


def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 60), "sex": rng.choice(["F", "M"], 60)})
    return frame.assign(ok=rng.integers(0, 2, 60))


@pytest.mark.parametrize("when", ["at once", "later", "always"])
def test_a_model_that_exits_is_a_bad_model(when):
    asked = []

    def model(frame):
        asked.append(len(frame))
        if when == "always" or (when == "later" and len(asked) > 6):
            sys.exit(0)
        return (frame["age"] > 40).to_numpy(float)

    if when == "at once":
        model.columns = Exits()
    with pytest.raises(BadModel, match="raised SystemExit: 0"):
        limi.audit(model, people(), protected=["sex"], target="ok", method="themis", max_rows=2000)


def test_a_model_that_hides_answers_is_a_bad_model():
    def model(frame):
        return np.ma.masked_array((frame["age"] > 40).to_numpy(float), mask=frame["age"] == 41)

    with pytest.raises(BadModel, match=r"a masked array in which \d+ of \d+ answers are hidden"):
        limi.audit(model, people(), protected=["sex"], target="ok", method="themis")


class Odd:
    """A model of somebody's own, whose answers are foreign code as well."""

    takes, columns, n_columns = "frame", None, None

    def __init__(self, answer):
        self.answer = answer

    def score(self, frame):
        return self.answer


@pytest.mark.parametrize("answer", [[[0.1], [0.2, 0.3]], "high", object(), {"a": 1}])
def test_answers_that_are_no_arrays_are_one_sentence(answer):
    with pytest.raises(BadModel, match="the model r"):
        limi.audit(Odd(answer), people(), protected=["sex"], target="ok", method="themis")


class Exits:
    def __iter__(self):
        sys.exit(0)


def test_a_file_that_exits_while_it_is_opened_is_a_bad_model(tmp_path):
    (tmp_path / "a.pkl").write_bytes(b"cbuiltins\nexit\n(I0\ntR.")
    with pytest.raises(BadModel, match="raised SystemExit"):
        models.load(f"pickle:{tmp_path / 'a.pkl'}", trust_pickle=True)


@pytest.fixture
def folder(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    ending = "\ndef ends(frame):\n    sys.exit(0)\n"
    (tmp_path / "model.py").write_text(f"{PRINTS}{ending}\nprints()\n", encoding="utf-8")
    return tmp_path


def limi_test(folder, name, *words):
    given = ["test", "people.csv", "--model", f"python:model.py:{name}", "--target", "ok"]
    return subprocess.run(
        [sys.executable, "-m", "limi", *given, "--protected", "sex", "--max-rows", "50", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_result_is_all_there_is_on_standard_output(folder):
    done = limi_test(folder, "prints", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rows"] == 60
    assert {f"from {way}" for way in WAYS} <= set(done.stderr.splitlines())


def test_a_model_that_exits_while_scoring_fails_the_run(folder):
    done = limi_test(folder, "ends", "--json")
    assert (done.returncode, done.stdout) == (4, "")
    assert "limi: the model raised SystemExit: 0" in done.stderr
    assert "Traceback" not in done.stderr
