"""Repairs do not depend on who trains: one process, two workers, one of them killed."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import limi
from lab import models as benchmark
from limi.audits import hiring
from limi.errors import InvalidInput, LimiError
from limi.models.target import Target
from limi.repairs import _compare, _verify, _ways
from limi.workers import Local, Stuck, local
from tests.repairs.test_repair import audited, people, pipeline


@pytest.fixture(autouse=True, scope="module")
def small():
    """Fewer rows, and no torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compare, "_RATE_ROWS", 300)
        patch.setattr(_compare, "_SEARCH_ROWS", 200)
        patch.setattr(_verify, "quick_generators", lambda: ["trees"])
        yield


@pytest.fixture(scope="module")
def result():
    frame = people()
    return audited(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), frame)


def tell(made):
    """All that a repair says but its seconds, and what its models answer."""
    tree = made.as_dict()
    for one in tree["tried"]:
        one.pop("seconds")
        one.pop("why")  # of two that are equally good, the quicker is taken
    tree.pop("recommended")
    rows = made.problem.rows
    return tree, [one.made.target.score(rows).tolist() for one in made.tried]


@pytest.mark.parametrize(
    "told",
    [
        {"how": "all", "seeds": 2, "max_accuracy_loss": 0.2},
        {"how": "drop", "seeds": 2, "max_accuracy_loss": 0.5, "same_share": True},
        {"how": "findings", "seeds": 1},
    ],
    ids=["all", "same share", "findings"],
)
def test_two_workers_repair_as_one_process_does(result, told):
    done = []
    alone = tell(limi.repair(result, **told))
    together = limi.repair(result, workers=2, on_step=lambda at, words: done.append(at), **told)
    assert tell(together) == alone
    assert done == sorted(done)
    assert 0.5 < done[-1] <= 1


def test_a_killed_worker_changes_nothing(result, tmp_path):
    parent, mark = os.getpid(), tmp_path / "mark"

    def train(table, labels):
        if os.getpid() != parent and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pipeline().fit(table, labels)

    told = {"how": "copies", "seeds": 2, "fit": train}
    alone = tell(limi.repair(result, **told))
    assert tell(limi.repair(result, workers=2, **told)) == alone
    assert mark.exists()


def test_a_strength_is_chosen_by_the_first_seed_whoever_trains(monkeypatch):
    pytest.importorskip("torch", reason="needs limi[torch]")
    monkeypatch.setattr(benchmark, "_SMALL", (10, 32))
    monkeypatch.setattr(_ways, "STRENGTHS", (0.1, 5.0))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(2, size=300), "income": rng.integers(9, size=300)})
    frame["ok"] = (frame["income"] + 3 * frame["sex"] > 5).astype(int)
    rows, truth = frame[["sex", "income"]].to_numpy(dtype=float), frame["ok"].to_numpy(np.int8)
    model = benchmark.fit("dnn", rows, truth, columns=("sex", "income"))
    result = audited(model, frame, favorable=1)
    told = {"how": "pairs", "seeds": 2, "max_accuracy_loss": 0.9}
    assert tell(limi.repair(result, workers=2, **told)) == tell(limi.repair(result, **told))


def test_models_with_threads_of_their_own_are_trained_by_workers():
    """With threads that were started before: a fork has none of them."""
    lightgbm = pytest.importorskip("lightgbm", reason="needs limi[lightgbm]")
    frame = people()
    numbers = frame.assign(sex=(frame["sex"] == "M").astype(int))

    def train(table, labels):
        model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=2, verbose=-1, random_state=0)
        return model.fit(table, labels)

    model = train(numbers.drop(columns="ok"), numbers["ok"])
    result = audited(model, numbers)
    told = {"how": "copies", "seeds": 2, "fit": train, "max_accuracy_loss": 0.5}
    assert tell(limi.repair(result, workers=2, **told)) == tell(limi.repair(result, **told))


def test_what_no_worker_does_is_done_here(result, monkeypatch):
    """Where none is ready in time, whatever the reason."""
    parent, train = os.getpid(), pipeline().fit

    def hang(target, rows, score=Target.score):
        if os.getpid() != parent:
            time.sleep(600)
        return score(target, rows)

    told = {"how": "copies", "seeds": 2, "fit": train}
    alone = tell(limi.repair(result, **told))
    monkeypatch.setattr(Target, "score", hang)
    monkeypatch.setattr(local, "_FORKED_SECONDS", 0.3)
    monkeypatch.setattr(hiring, "open_executor", lambda workers, cluster: Local(2, "fork"))
    monkeypatch.setattr(Local, "otherwise", lambda self, work, why: stuck(why))
    assert tell(limi.repair(result, workers=2, **told)) == alone


def stuck(why):
    raise Stuck(why)


def test_a_way_that_breaks_is_skipped_by_workers_too():
    frame = people()

    def train(table, labels):
        if table["sex"].nunique() == 1:
            raise ValueError("only one sex")
        return pipeline().fit(table, labels)

    result = audited(pipeline().fit(frame.drop(columns="ok"), frame["ok"]), frame)
    told = {"fit": train, "seeds": 1, "max_accuracy_loss": 0.5}
    assert tell(limi.repair(result, workers=2, **told)) == tell(limi.repair(result, **told))
    for workers in (1, 2):
        with pytest.raises(LimiError, match="only one sex"):
            limi.repair(result, how="drop", workers=workers, **told)


def test_what_cannot_travel_is_told(result, monkeypatch):
    lock = threading.Lock()

    def train(table, labels):
        with lock:
            return pipeline().fit(table, labels)

    monkeypatch.setattr(hiring, "open_executor", lambda workers, cluster: Local(2, "anew"))
    with pytest.raises(InvalidInput, match=r"cannot be sent to another process.*workers.*1"):
        limi.repair(result, workers=2, how="copies", seeds=1, fit=train)


def test_a_model_that_cannot_travel_is_trained_here(result):
    def train(table, labels):
        made = pipeline().fit(table, labels)
        made.tied = lambda: None
        return made

    told = {"how": "copies", "seeds": 2, "fit": train}
    assert tell(limi.repair(result, workers=2, **told)) == tell(limi.repair(result, **told))


def test_a_job_that_kills_every_worker_is_told_in_a_sentence(result):
    parent = os.getpid()

    def train(table, labels):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(LimiError, match="use fewer workers"):
        limi.repair(result, how="copies", seeds=1, fit=train, workers=2)


def test_numbers_of_workers_that_cannot_be_are_told(result):
    for told, words in (
        ({"workers": 0}, "workers is 0"),
        ({"workers": "two"}, "must be a number"),
        ({"cluster": "dask"}, "write ray"),
    ):
        with pytest.raises(InvalidInput, match=words):
            limi.repair(result, **told)
