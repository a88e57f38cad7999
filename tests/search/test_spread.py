"""Workers answer for every kind of model, and nobody is waited for who does not answer."""

import os
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

import limi
from limi.search import spread
from limi.search.spread import Spread
from limi.workers import Local, local
from tests.models.kinds import KINDS, network
from tests.models.people import bound, numbers, people, truth


@contextmanager
def two_threads():
    """Whoever has threads starts them here, however many the tests are run with."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threadpool_limits(limits=2):
            yield
    finally:
        torch.set_num_threads(before)


def ask_workers(target, rows, executor):
    """What this process answers, and then workers."""
    with two_threads():
        own = target.score(rows)
        with Spread(target, executor) as asked:
            asked.score(rows)
            asked.begin()
            told = asked.score_blocks([rows[:150], rows[150:]])
    assert asked.notes == []
    return own, np.concatenate(told)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_workers_answer_as_this_process_does(name, tmp_path):
    case = KINDS[name](tmp_path)
    target = bound(case.model, case.frame, **case.given)
    # One is enough of those that take seconds to start.
    executor = Local(2 if target.codec.forks else 1)
    own, told = ask_workers(target, target.codec.encode(case.frame), executor)
    np.testing.assert_allclose(told, own, rtol=0, atol=1e-6)


def lightgbm_classifier():
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=8, n_jobs=2, verbose=-1).fit(numbers(), truth())


def xgboost_classifier():
    import xgboost

    return xgboost.XGBClassifier(n_estimators=8, n_jobs=2).fit(numbers(), truth())


def catboost_classifier():
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=8, verbose=0, thread_count=2, allow_writing_files=False
    )
    return model.fit(numbers(), truth())


def forest():
    return RandomForestClassifier(10, n_jobs=2, random_state=0).fit(numbers(), truth())


def boosting():
    return HistGradientBoostingClassifier(max_iter=8).fit(numbers(), truth())


def torch_function():
    import torch

    module, wide = network(torch.nn.Sigmoid()).eval(), torch.nn.Linear(512, 512)

    def score(frame):
        torch.set_num_threads(2)
        with torch.no_grad():
            wide(torch.zeros(len(frame), 512))  # enough work for two threads
            cells = torch.from_numpy(frame.to_numpy(np.float32))
            return module(cells).double().numpy()[:, 0]

    return score


MODELS = [lightgbm_classifier, xgboost_classifier, catboost_classifier, forest, boosting]


@pytest.mark.parametrize("make", [*MODELS, torch_function])
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_models_with_threads_of_their_own_are_forked(make, is_wrapped):
    """Threads that a model has started are not in the fork, which must not wait for them."""
    model = make()
    if is_wrapped and make in MODELS:
        target = bound(lambda frame: model.predict_proba(frame)[:, 1], numbers())
    else:
        target = bound(model, numbers(), favorable=1)
    own, told = ask_workers(target, target.codec.encode(numbers()), Local(2, "fork"))
    np.testing.assert_allclose(told, own, rtol=0, atol=1e-6)


def test_settings_of_a_thread_go_along():
    """Some libraries keep them for each thread, and workers are forked in another."""
    import sklearn
    import torch

    def score(frame):
        share = torch.full((len(frame),), 0.7, requires_grad=True) * 1.0
        named = sklearn.get_config()["transform_output"] == "pandas"
        raises = np.geterr()["divide"] == "raise"
        return share.numpy() * (named and raises)  # numpy() needs gradients to be off

    target = bound(score, numbers())
    rows = target.codec.encode(numbers())[:200]
    with (
        sklearn.config_context(transform_output="pandas"),
        np.errstate(divide="raise"),
        torch.no_grad(),
        Spread(target, Local(1, "fork")) as asked,
    ):
        asked.begin()
        (told,) = asked.score_blocks([rows])
    np.testing.assert_allclose(told, 0.7, rtol=0, atol=1e-6)


def audit(model, tmp_path, name, **given):
    result = limi.audit(
        model,
        people().assign(ok=truth()),
        protected=["sex"],
        target="ok",
        favorable=1,
        method="themis",
        max_rows=300,
        rate_rows=20,
        out=tmp_path / name,
        **given,
    )
    return result.summary, (tmp_path / name / "findings.parquet").read_bytes()


def score(frame):
    """Favors men a little."""
    merit = frame["age"] / 40 + frame["hours"].fillna(40) / 50 + (frame["sex"] == "M") * 0.3137
    return (1 / (1 + np.exp(2.1123 - merit))).to_numpy()


@pytest.fixture
def impatience(monkeypatch):
    """Nobody is waited for as long as users would be."""
    monkeypatch.setattr(spread, "_PART_SECONDS", 1e-9)  # every question goes to workers
    monkeypatch.setattr(local, "_FORKED_SECONDS", 0.5)
    monkeypatch.setattr(spread, "_PATIENCE", 0.5)
    monkeypatch.setattr(spread, "_FIRST_LOOK", (0.5, 0))


def test_forked_workers_that_do_not_answer_are_started_instead(tmp_path, impatience):
    """What hangs in a fork often works in a process of its own; and a function can travel there."""
    summary, findings = audit(score, tmp_path, "alone")
    parent = os.getpid()

    def hangs_in_forks(frame):
        if os.getpid() != parent and sys.argv[0] != "-c":
            time.sleep(600)
        return score(frame)

    told, found = audit(hangs_in_forks, tmp_path, "workers", workers=2)
    assert found == findings
    assert told.notes == summary.notes


def test_a_search_goes_on_alone_where_no_worker_answers(tmp_path, impatience, monkeypatch):
    monkeypatch.setattr(local, "_STARTED_SECONDS", 2.0)
    _, findings = audit(score, tmp_path, "alone")
    parent = os.getpid()

    def hangs(frame):
        if os.getpid() != parent:
            time.sleep(600)
        return score(frame)

    told, found = audit(hangs, tmp_path, "workers", workers=2)
    assert found == findings
    assert any("no worker was ready" in note and "one process" in note for note in told.notes)


def test_a_search_goes_on_alone_where_workers_stop_to_answer(tmp_path, impatience, monkeypatch):
    """After their trial, and however often they are replaced."""
    monkeypatch.setattr(local, "_STARTED_SECONDS", 2.0)
    _, findings = audit(score, tmp_path, "alone")
    parent, later = os.getpid(), tmp_path / "later"

    def hangs_later(frame):
        if os.getpid() != parent and later.exists():
            time.sleep(600)
        return score(frame)

    def tell(progress):
        if progress.phase == "search":
            later.touch()

    told, found = audit(hangs_later, tmp_path, "workers", workers=2, on_progress=tell)
    assert found == findings
    assert any("in one process from then on" in note for note in told.notes)


def test_a_search_goes_on_alone_where_every_worker_is_killed(tmp_path, impatience):
    _, findings = audit(score, tmp_path, "alone")
    parent = os.getpid()

    def dies(frame):
        if os.getpid() != parent:
            os._exit(1)
        return score(frame)

    told, found = audit(dies, tmp_path, "workers", workers=2)
    assert found == findings
    assert any("every worker was killed" in note for note in told.notes)
