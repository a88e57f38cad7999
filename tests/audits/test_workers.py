"""What is found does not depend on who asks: bytes of findings for one, two and eight workers."""

import json
import os
import resource
import signal
import socket
from pathlib import Path

import numpy as np
import pytest

import limi
from limi import methods
from limi.audits.compare import compare
from limi.audits.problem import prepare
from limi.errors import BadModel, InvalidInput
from limi.search import rounds, spread
from limi.search.session import Session
from limi.search.spread import Spread
from limi.workers import Local
from tests.models.kinds import network
from tests.models.people import bound, numbers, people, spelled, truth

SMALL = {
    "limi": ("n_latents=600", "n_labelled=200"),
    "adf": ("n_seeds=20",),
    "eidig": ("n_seeds=20",),
    "neuronfair": ("n_seeds=20",),
}
NATURAL = ("limi", "natural", "guided")
WITH_SLOPES = ("adf", "eidig", "neuronfair", "maft")


@pytest.fixture(autouse=True)
def every_question_goes_to_workers(monkeypatch):
    """As the questions of a model do that takes its time."""
    monkeypatch.setattr(spread, "_PART_SECONDS", 1e-9)


def scored(frame):
    """Favors men a little, and is asked for frames."""
    merit = frame["age"] / 40 + frame["hours"].fillna(40) / 50 + (frame["sex"] == "M") * 0.3137
    return (1 / (1 + np.exp(2.1123 - merit))).to_numpy()


def table(method):
    if method in WITH_SLOPES:
        frame = numbers().assign(ok=truth())
        return network().double(), frame, "member"
    frame = people().assign(ok=truth())
    return scored, frame, "sex"


def audited(tmp_path, workers, method="limi", model=None, **given):
    tested, frame, protected = table(method)
    out = tmp_path / f"{method}-{workers}-{len(os.listdir(tmp_path))}"
    result = limi.audit(
        tested if model is None else model,
        frame,
        protected=[protected],
        target="ok",
        favorable=1,
        method=method,
        settings=SMALL.get(method, ()),
        rate_rows=20,
        generator="trees" if method in NATURAL else None,
        out=out,
        workers=workers,
        **{"max_rows": 200, **given},
    )
    told = json.loads((out / "summary.json").read_text())
    counts = [told[name] for name in ("findings", "rows_checked", "queries", "rates", "stop")]
    return result, counts, (out / "findings.parquet").read_bytes()


@pytest.mark.parametrize("method", sorted(methods.names()))
def test_two_workers_find_what_one_finds(tmp_path, method):
    _, counts, findings = audited(tmp_path, 1, method)
    assert counts[0] > 0
    assert audited(tmp_path, 2, method)[1:] == (counts, findings)


def test_eight_workers_and_a_budget_of_queries_change_nothing(tmp_path):
    for given in ({}, {"max_queries": 2000}):
        _, counts, findings = audited(tmp_path, 1, **given)
        assert audited(tmp_path, 8, **given)[1:] == (counts, findings)


@pytest.mark.parametrize("decision", [None, "class"])
def test_rates_are_measured_by_workers_in_whole_ranges(tmp_path, monkeypatch, decision):
    """Draws, decodes and verdicts are theirs; every figure is that of one process."""
    monkeypatch.setattr(rounds, "_SECONDS", 1e-9)
    taken, take = [], Session.take_surveyed

    def counting(session, parts):
        taken.append(len(parts))
        return take(session, parts)

    monkeypatch.setattr(Session, "take_surveyed", counting)

    def labels(frame):
        level = np.digitize(scored(frame), [0.3, 0.6])
        return np.array(["low", "middle", "high"])[level]

    told = []
    for workers in (1, 2):
        frame = people().assign(ok=truth())
        out = tmp_path / str(workers)
        limi.audit(
            scored if decision is None else labels,
            # With values of people that are not among those tried, and keys that repeat.
            frame if decision is None else frame.assign(ok=labels(frame)),
            protected=["sex", "grade=1,2", "age=20-60:20"],
            target="ok",
            decision=decision,
            favorable=1 if decision is None else None,
            method="natural",
            max_rows=300,
            rate_rows=350,
            out=out,
            workers=workers,
        )
        summary = json.loads((out / "summary.json").read_text())
        asked = {name: spent["questions"] for name, spent in summary.pop("phases").items()}
        told.append((summary | asked, (out / "findings.parquet").read_bytes()))
        assert len(taken) == (0 if workers == 1 else 3)  # real, natural, uniform
    assert taken == [4, 4, 4]
    assert told[0][1] == told[1][1]
    other = {name for name, value in told[0][0].items() if value != told[1][0][name]}
    assert other <= {"seconds", "preparation_seconds", "estimate"}


CLOCK = ("seconds", "findings_per_second")


def compared(model, methods, **given):
    _, frame, protected = table("natural")
    told = {"protected": [protected], "target": "ok", "favorable": 1, "max_queries": 400}
    return [
        {name: value for name, value in line.as_dict().items() if name not in CLOCK}
        for line in compare(model, frame, methods, **told, **given)
    ]


def test_methods_compare_as_they_do_without_workers(tmp_path):
    """Each run of a method is a job; a method that cannot run says so in either case."""
    parent = os.getpid()

    def seen(frame):
        if os.getpid() != parent and len(frame) > 1:
            (tmp_path / str(os.getpid())).touch()
        return scored(frame)

    names, told = ["natural", "neuronfair", "themis"], []
    alone = compared(seen, names, seeds=2)
    assert not list(tmp_path.iterdir())
    together = compared(seen, names, seeds=2, workers=2, on_run=lambda *said: told.append(said))
    assert together == alone
    assert alone[1]["problem"]
    assert len(alone[0]["curves"]) == 2
    assert len(list(tmp_path.iterdir())) == 2
    assert [done for done, _ in told] == [n / 6 for n in range(7)]
    # One run alone is shared by all workers.
    assert compared(seen, ["themis"], workers=2) == compared(seen, ["themis"])


def test_a_method_that_ends_in_an_error_ends_the_comparison(tmp_path):
    def broken(frame):
        if len(frame) > 100:
            raise ValueError("too many people")
        return scored(frame)

    told = []
    for workers in (1, 2):
        with pytest.raises(BadModel) as error:
            compared(broken, ["natural", "themis"], workers=workers)
        told.append(str(error.value))
    assert told[0] == told[1]
    with pytest.raises(InvalidInput, match="concurrency"):
        compared("mlflow:http://127.0.0.1:9/", ["natural", "themis"], workers=2)


def test_a_run_that_kills_its_worker_is_done_by_another(tmp_path):
    alone = compared(scored, ["natural", "themis"])
    parent, mark = os.getpid(), tmp_path / "mark"

    def killed_once(frame):
        if os.getpid() != parent and len(frame) > 150 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return scored(frame)

    assert compared(killed_once, ["natural", "themis"], workers=2) == alone
    assert mark.exists()


def test_a_killed_worker_changes_nothing(tmp_path):
    _, counts, findings = audited(tmp_path, 1)
    parent, mark = os.getpid(), tmp_path / "mark"

    def killed_once(frame):
        if os.getpid() != parent and len(frame) > 2 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return scored(frame)

    assert audited(tmp_path, 2, model=killed_once)[1:] == (counts, findings)
    assert mark.exists()


def test_a_run_of_workers_that_was_cut_short_is_resumed(tmp_path):
    *_, findings = audited(tmp_path, 1)
    _, frame, protected = table("limi")
    given = {
        "protected": [protected],
        "target": "ok",
        "favorable": 1,
        "settings": SMALL["limi"],
        "rate_rows": 20,
        "max_rows": 200,
        "out": tmp_path / "cut",
    }

    def progress(told):
        if told.phase == "search" and told.rows > 50:
            raise KeyboardInterrupt

    limi.audit(scored, frame, workers=2, on_progress=progress, **given)
    assert (tmp_path / "cut" / "journal.bin").exists()
    limi.audit(scored, frame, workers=3, resume=True, **given)
    assert (tmp_path / "cut" / "findings.parquet").read_bytes() == findings


def test_a_model_whose_answers_move_is_asked_in_one_process(tmp_path):
    rng = np.random.default_rng(0)
    parent, elsewhere = os.getpid(), tmp_path / "elsewhere"

    def moving(frame):
        if os.getpid() != parent:
            elsewhere.touch()
        return np.clip(scored(frame) + rng.normal(0, 0.2, len(frame)), 0, 1)

    result, *_ = audited(tmp_path, 2, model=moving)
    assert not elsewhere.exists()
    assert any("without workers" in note for note in result.summary.notes)


@pytest.mark.parametrize("error", ["memory", "killed"])
def test_what_is_too_much_for_a_worker_is_asked_in_smaller_parts(error):
    parent = os.getpid()

    def greedy(frame):
        if os.getpid() != parent and len(frame) > 200:
            if error == "memory":
                raise MemoryError
            os.kill(os.getpid(), signal.SIGKILL)
        return scored(frame)

    target = bound(greedy, people())
    rows = np.tile(target.codec.encode(people()), (4, 1))
    with Spread(target, Local(2)) as asked:
        asked.begin()
        (scores,) = asked.score_blocks([rows])
    assert len(rows) > 400
    np.testing.assert_array_equal(scores, target.score(rows))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
@pytest.mark.parametrize("kilobytes", [512, 4096])
def test_a_worker_whose_memory_the_system_limits_is_asked_in_smaller_parts(kilobytes):
    """It may have 64 MB more than it has: enough for 95 rows of 512 kB, and not for 64 of 4 MB."""
    parent, limited = os.getpid(), []

    def greedy(frame):
        if os.getpid() != parent and not limited:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + (64 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            limited.append(most)
        np.empty((len(frame), kilobytes << 10), dtype=np.uint8)
        return scored(frame)

    target = bound(greedy, people())
    rows = target.codec.encode(people())[:380]
    with Spread(target, Local(2)) as asked:
        asked.begin()
        if kilobytes > 512:
            with pytest.raises(BadModel, match=r"a worker ran out of memory .* fewer --workers"):
                asked.score_blocks([rows])
        else:
            np.testing.assert_array_equal(asked.score_blocks([rows])[0], target.score(rows))
        assert asked.again == 0  # nobody was killed


def test_a_worker_that_never_has_enough_memory_is_one_sentence():
    parent = os.getpid()

    def greedy(frame):
        if os.getpid() != parent:
            raise MemoryError
        return scored(frame)

    target = bound(greedy, people())
    with Spread(target, Local(2)) as asked:
        asked.begin()
        with pytest.raises(BadModel, match=r"a worker ran out of memory .* fewer --workers"):
            asked.score_blocks([target.codec.encode(people())])


def test_what_a_model_raises_in_a_worker_is_what_it_raises_here(tmp_path):
    parent = os.getpid()

    def broken(frame):
        if os.getpid() != parent:
            raise ValueError("no such job")
        return scored(frame)

    with pytest.raises(BadModel, match="the model raised ValueError: no such job"):
        audited(tmp_path, 2, model=broken)


def test_combinations_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"8 workers and at most 4 rows .* higher max.rows"):
        audited(tmp_path, 8, max_rows=4)
    with pytest.raises(InvalidInput, match=r"100 workers and at most 50 questions .* max.quer"):
        audited(tmp_path, 100, max_queries=50)
    with pytest.raises(InvalidInput, match="device is 'cuda'"):
        audited(tmp_path, 2, device="cuda")
    with pytest.raises(InvalidInput, match="workers is 0"):
        audited(tmp_path, 0)
    with pytest.raises(InvalidInput, match="concurrency"):
        audited(tmp_path, 2, model="mlflow:http://127.0.0.1:9/")
    assert not os.listdir(tmp_path)


def test_a_table_of_polars_is_asked_by_processes_that_are_not_forked(tmp_path):
    import polars as pl
    import skops.io as sio

    from tests.models.kinds import pipeline

    sio.dump(pipeline(), tmp_path / "model.skops")
    frame = pl.from_pandas(people().assign(ok=spelled()))
    given = {"protected": ["sex"], "target": "ok", "favorable": "good"}
    problem = prepare(f"skops:{tmp_path / 'model.skops'}", frame, **given)
    assert problem.opened is not None
    with Spread(problem.target, Local(1), problem.opened) as asked:
        asked.begin()
        (scores,) = asked.score_blocks([problem.rows])
    np.testing.assert_array_equal(scores, problem.target.score(problem.rows))


def test_frames_that_no_fork_can_make_are_told():
    import polars as pl

    assert bound(scored, people()).codec.forks
    assert not bound(lambda frame: np.zeros(len(frame)), pl.from_pandas(people())).codec.forks


def test_an_unreachable_cluster_is_told_before_the_model_is_asked(monkeypatch):
    monkeypatch.setattr("limi.audits.audit.prepare", lambda *given, **more: pytest.fail("too late"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        place = f"ray://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidInput, match="did not answer within") as told:
            limi.audit(scored, people(), protected=["sex"], cluster=place)
    assert told.value.exit_code == 2
