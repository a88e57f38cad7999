"""Answers do not depend on who decides: one process, two workers, one of them killed."""

import json
import os
import pickle
import signal
import socket
import time

import numpy as np
import pytest

import limi
from limi.errors import InvalidInput
from limi.models.target import Target
from limi.proofs import _run
from limi.proofs.deciding import Block, Deciding, Effort, find_means
from limi.proofs.near import parse_near
from limi.workers import Local, Stuck, local
from limi.workers._base import pack, unpack
from tests.proofs.test_networks import make
from tests.trees.cases import coded, draw_table, split

xgboost = pytest.importorskip("xgboost")

TOLD = {"protected": "sex", "target": "good", "favorable": 1, "near": {"age": 2, "pay": 0.3}}


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    monkeypatch.setattr(_run, "_BLOCK", 30)


@pytest.fixture(scope="module")
def frame():
    return coded(draw_table(np.random.default_rng(5), 200))


@pytest.fixture(scope="module")
def model(frame):
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=5, n_jobs=1, random_state=0)
    return boosted.fit(*split(frame))


def prove(model, frame, out, workers, **given):
    """What a proof writes, but for its seconds and its command."""
    told = {**TOLD, "rows": 90, "max_boxes": 1, "solver": True, **given}
    proof = limi.certify(model, frame, out=out, workers=workers, **told)
    tree = json.loads((out / "proof.json").read_text())
    tree.pop("seconds")
    return proof, tree, (out / "people.parquet").read_bytes()


def test_two_workers_answer_as_one_does(model, frame, tmp_path):
    proof, *alone = prove(model, frame, tmp_path / "one", 1)
    by = alone[0]["decided_by"]
    assert by["person"]
    assert by["bounds"]
    assert by["solver"]
    told = []
    _, *together = prove(model, frame, tmp_path / "two", 2, on_progress=told.append)
    assert together == alone
    ends = [progress.ends for progress in told]
    assert len(ends) == 3  # one for each block
    assert [low for low, _ in ends] == sorted(low for low, _ in ends)
    assert [high for _, high in ends] == sorted((high for _, high in ends), reverse=True)
    assert ends[-1] == proof.flip_share


def travel(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 (written in the same line)


@pytest.mark.parametrize("kind", ["in memory", "in a file"])
def test_work_that_is_sent_reads_the_model_where_it_arrives(model, frame, tmp_path, kind):
    model.save_model(tmp_path / "model.json")
    named = model if kind == "in memory" else f"xgboost:{tmp_path / 'model.json'}"
    proof = limi.certify(named, frame, rows=30, seed=3, **TOLD)
    problem = proof.problem
    work = Deciding(
        target=problem.target,
        near=parse_near(problem.schema, problem.rows, TOLD["near"]),
        effort=Effort(4096, 10.0, 2, 3),
        some=problem.rows[:1],
        means=find_means(problem.target, problem.rows[:1]),
        opened=problem.opened,
    )
    there = unpack(pack(work, pickle.dumps))
    job = travel(Block(0, proof.rows, lambda: 600.0))
    assert 500 < job.left() < 600
    people, _ = travel(there(job))
    assert people.answer.tolist() == proof.answer.tolist()
    assert np.array_equal(people.witness, proof.witness, equal_nan=True)


def test_a_killed_worker_changes_no_answer(model, frame, tmp_path, monkeypatch):
    _, *alone = prove(model, frame, tmp_path / "one", 1)
    real, parent, mark = Deciding.decide, os.getpid(), tmp_path / "mark"

    def killed_once(self, *given):
        if os.getpid() != parent and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, *given)

    monkeypatch.setattr(Deciding, "decide", killed_once)
    _, *together = prove(model, frame, tmp_path / "two", 2)
    assert mark.exists()
    assert together == alone


def test_a_block_that_kills_every_worker_is_told_in_a_sentence(model, frame, monkeypatch):
    parent = os.getpid()

    def killed(self, *given):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Deciding, "decide", killed)
    with pytest.raises(limi.LimiError, match="use fewer workers"):
        limi.certify(model, frame, rows=60, workers=2, **TOLD)


def test_a_run_of_workers_that_was_cut_short_goes_on(model, frame, tmp_path):
    _, *whole = prove(model, frame, tmp_path / "whole", 1)

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove(model, frame, tmp_path / "cut", 2, on_progress=stop)
    assert len((tmp_path / "cut.partial" / "progress.jsonl").read_text().splitlines()) == 1
    _, tree, people = prove(model, frame, tmp_path / "cut", 2, resume=True)
    assert any("resumed" in note for note in tree.pop("notes"))
    whole[0].pop("notes")
    assert [tree, people] == whole


def test_time_that_is_over_is_over_for_workers_too(model, frame):
    proof = limi.certify(model, frame, rows=90, workers=2, max_seconds=1e-6, **TOLD)
    assert proof.stop == "seconds"
    own = limi.certify(model, frame, rows=90, max_seconds=1e-6, **TOLD)
    assert proof.counts == own.counts


def test_networks_and_averaged_models_are_decided_by_workers_too(frame, model, tmp_path):
    averaged = limi.average(model, frame, protected="sex", target="good", favorable=1)
    for kind in (make(frame, 0), averaged):
        name = type(kind).__name__
        _, *alone = prove(kind, frame, tmp_path / f"one {name}", 1, solver=None)
        _, *together = prove(kind, frame, tmp_path / f"two {name}", 2, solver=None)
        assert together == alone
        assert alone[0]["answers"]["proven"]


def test_people_are_decided_here_where_no_worker_answers(model, frame, tmp_path, monkeypatch):
    _, *whole = prove(model, frame, tmp_path / "one", 1)
    parent, score = os.getpid(), Target.score

    def hang(target, rows):
        if os.getpid() != parent:
            time.sleep(600)
        return score(target, rows)

    monkeypatch.setattr(Target, "score", hang)
    monkeypatch.setattr(local, "_FORKED_SECONDS", 0.3)
    monkeypatch.setattr(_run, "open_executor", lambda workers, cluster: Patient(workers))
    _, tree, people = prove(model, frame, tmp_path / "two", 2)
    assert any("no worker was ready" in note for note in tree.pop("notes"))
    whole[0].pop("notes")
    assert [tree, people] == whole


class Patient(Local):
    """Knows forks alone."""

    def otherwise(self, work, why):
        raise Stuck(why)


def test_a_model_that_cannot_travel_is_told(model, frame, monkeypatch):
    def refuse(self):
        raise TypeError("it is tied to this process")

    monkeypatch.setattr(Target, "__getstate__", refuse)
    monkeypatch.setattr(_run, "open_executor", lambda workers, cluster: Local(workers, "anew"))
    with pytest.raises(InvalidInput, match=r"tied to this process.*save it.*workers.*1"):
        limi.certify(model, frame, rows=60, workers=2, **TOLD)


def test_a_cluster_that_is_not_there_is_told_before_the_model_is_opened(frame):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for cluster, words in ((f"ray://127.0.0.1:{port}", "did not answer"), ("dask", "write ray")):
        with pytest.raises(InvalidInput, match=words):
            limi.certify("xgboost:nowhere.json", frame, rows=5, cluster=cluster, **TOLD)
