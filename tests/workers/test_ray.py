"""Workers of a Ray cluster: the same answers as those of this machine, and kills cost a retry."""

import hashlib
import os
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

import limi
from lab import files as _files
from lab import results as _results
from lab import run as _run
from lab.workshop import Workshop
from limi.audits.compare import compare
from limi.errors import InvalidInput, MissingDependency
from limi.methods import _scouting
from limi.methods.limi import LIMI
from limi.search.spread import Spread
from limi.workers import Crew, _crew, open_executor
from tests.models.kinds import pipeline
from tests.models.people import bound, people, truth

pytest.importorskip("ray", reason="needs limi[ray]")

from limi.workers import ray as cluster


@pytest.fixture(scope="module")
def executor():
    opened = open_executor(2, "ray")
    yield opened
    opened.close()


def work(job):
    """Ends its own process the first time it is given a file; raises at a minus."""
    if isinstance(job, str) and not Path(job).exists():
        Path(job).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if isinstance(job, int) and job < 0:
        raise InvalidInput("below 0")
    return job


def scored(frame):
    """Favors men a little."""
    merit = frame["age"] / 40 + frame["hours"].fillna(40) / 50 + (frame["sex"] == "M") * 0.3137
    return (1 / (1 + np.exp(2.1123 - merit))).to_numpy()


@pytest.mark.filterwarnings("ignore")  # of Ray itself, about its own future
def test_a_cluster_answers_as_this_machine_does(executor, tmp_path):
    with Crew(executor, work) as crew:
        file = str(tmp_path / "mark")
        assert crew.in_order([1, file, 2]) == [1, file, 2]
        assert crew.again == 1
        with pytest.raises(InvalidInput, match="below 0"):
            crew.in_order([-1])
    target = bound(pipeline(), people(), favorable="good", labels=("bad", "good"))
    rows = target.codec.encode(people())
    with Spread(target, executor) as asked:
        asked.begin()
        scores = np.concatenate(asked.score_blocks([rows[:100], rows[100:]]))
    np.testing.assert_array_equal(scores, target.score(rows))


@pytest.mark.filterwarnings("ignore")
def test_actors_that_go_ahead_of_a_search_change_nothing(executor, monkeypatch, tmp_path):
    """Whole ranges of latents, also where an actor is lost in the middle of one."""
    monkeypatch.setattr(_scouting, "_LARGEST", 256)
    monkeypatch.setattr(_scouting, "_SMALLEST", 128)
    monkeypatch.setattr(_crew, "_ARRIVES_SECONDS", 120.0)  # else the search is over before
    taken, follow = [], _scouting._follow

    def count(session, probes, seen, ranges, parts):
        taken.extend(one.n for one, part in zip(ranges, parts, strict=True) if part is not None)
        return follow(session, probes, seen, ranges, parts)

    monkeypatch.setattr(_scouting, "_follow", count)
    driver, mark = os.getpid(), tmp_path / "mark"

    def killed_once(frame):
        if os.getpid() != driver and len(frame) > 300 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return scored(frame)

    def found(**given):
        told = limi.audit(
            killed_once,
            people().assign(ok=truth()),
            protected=["sex"],
            target="ok",
            favorable=1,
            method=LIMI(n_latents=3000, n_labelled=400),
            max_rows=None,
            rate_rows=0,
            **given,
        ).found
        arrays = (told.rows, told.partner, told.score, told.partner_score)
        return len(told), [array.tobytes() for array in arrays]

    alone = found()
    assert alone[0] > 0
    assert not taken
    assert found(workers=2, cluster="ray") == alone
    assert mark.exists()
    assert sum(taken) >= 256


@pytest.mark.filterwarnings("ignore")
def test_the_file_of_findings_is_the_same_whoever_searches(executor, tmp_path, monkeypatch):
    """One process, two workers, two of a cluster, and the same with one of them killed."""
    monkeypatch.setattr(_scouting, "_LARGEST", 256)
    monkeypatch.setattr(_scouting, "_SMALLEST", 128)
    driver = os.getpid()

    def find(name, *, kills=False, **given):
        mark = tmp_path / f"{name} was killed"

        def model(frame):
            if kills and os.getpid() != driver and len(frame) > 300 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return scored(frame)

        limi.audit(
            model,
            people().assign(ok=truth()),
            protected=["sex"],
            target="ok",
            favorable=1,
            method=LIMI(n_latents=3000, n_labelled=400),
            max_rows=None,
            rate_rows=50,
            out=tmp_path / name,
            **given,
        )
        assert mark.exists() == kills
        return hashlib.sha256((tmp_path / name / "findings.parquet").read_bytes()).hexdigest()

    cluster = {"workers": 2, "cluster": "ray"}
    sums = [
        find("one", workers=1),
        find("two", workers=2),
        find("ray", **cluster),
        find("two, one of them", kills=True, workers=2),
        find("ray, one of them", kills=True, **cluster),
    ]
    assert len(set(sums)) == 1


@pytest.mark.filterwarnings("ignore")
def test_methods_compare_as_they_do_in_one_process(executor):
    given = {"protected": "sex", "target": "ok", "favorable": 1, "max_queries": 400}

    def compared(**more):
        lines = compare(scored, people().assign(ok=truth()), ["natural", "themis"], **given, **more)
        return [(line.method, line.findings, line.queries, line.curves) for line in lines]

    assert compared(workers=2, cluster="ray") == compared()


@pytest.mark.filterwarnings("ignore")
def test_cells_of_a_study_are_those_of_one_process(executor, tmp_path):
    def measured(out, **more):
        study = _files.load("rf")
        ran = _run.run([study], scale="smoke", only="*/[nt]*/0", out=out, **more)
        assert ran.run == 2
        found = _results.read(study, "smoke", out).outcomes
        names = ("findings", "rows", "queries", "curve", "atn", "real_rate")
        return {cell: {name: one.measures[name] for name in names} for cell, one in found.items()}

    there = measured(tmp_path / "there", workers=2, cluster="ray")
    assert there == measured(tmp_path / "here", workers=1)


@pytest.mark.filterwarnings("ignore")
def test_a_study_needs_a_folder_that_all_nodes_share(executor, tmp_path, monkeypatch):
    monkeypatch.setattr(Workshop, "has", lambda shop, need: False)
    with pytest.raises(InvalidInput, match="--out must be a folder that all nodes share"):
        _run.run([_files.load("rf")], scale="smoke", only="*/themis/0", out=tmp_path, cluster="ray")


def test_other_versions_are_refused_and_both_are_named():
    here = cluster.versions()
    cluster.require_same(here, dict(here))
    with pytest.raises(InvalidInput, match=r"limi 9\.9\.9, but this machine has limi"):
        cluster.require_same(here, here | {"limi": "9.9.9"})
    with pytest.raises(InvalidInput, match=r"Python 3\.1, but this machine has Python"):
        cluster.require_same(here, here | {"Python": "3.1"})


@pytest.mark.filterwarnings("ignore")
def test_every_worker_tells_its_versions(executor, monkeypatch):
    """The first that does not fit is refused with what it has, before it is given a job."""
    monkeypatch.setattr(cluster, "versions", lambda: {"limi": "9.9.9", "Python": "3.99.0"})
    with (
        pytest.raises(InvalidInput, match=rf"limi {limi.__version__}, but .* limi 9\.9\.9"),
        Crew(executor, work) as crew,
    ):
        crew.in_order([1])


@pytest.mark.filterwarnings("ignore")
def test_workers_for_whom_there_is_no_place_are_not_waited_for(executor, monkeypatch):
    monkeypatch.setattr(executor, "workers", 3)  # on two CPUs
    with Crew(executor, work) as crew:
        assert crew.in_order(list(range(9))) == list(range(9))
        assert [one for some in crew.in_turn(range(9)) for one in some] == list(range(9))
        assert crew._expected


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_a_free_place_is_one_sentence(executor, monkeypatch):
    with Crew(executor, work) as crew:
        crew.hire()
        while crew._expected:  # until both CPUs are taken
            assert crew.in_order([1, 2]) == [1, 2]
        monkeypatch.setattr(cluster, "_READY_SECONDS", 2.0)
        with (
            pytest.raises(InvalidInput, match=r"no worker .* within 2 seconds.*is one free\?"),
            Crew(executor, work) as other,
        ):
            other.in_order([1])


def test_all_that_ray_says_of_versions_is_told(monkeypatch):
    """Which they are stands in the last of its lines."""
    from ray._private.utils import check_version_info

    def refuse(**given):
        check_version_info({"ray_version": "2.7.0", "python_version": "3.8.1"}, "node 1")

    class Ray:
        init = staticmethod(refuse)

    joining = object.__new__(cluster.RayCluster)
    joining._ray = Ray
    with pytest.raises(InvalidInput, match=r"cannot be used: .*Version mismatch") as told:
        joining._join("ray://127.0.0.1:10001")
    for version in ("2.7.0", "3.8.1", cluster.platform.python_version()):
        assert version in str(told.value)
    assert "\n" not in str(told.value)


def test_nobody_at_the_address_is_one_sentence(monkeypatch):
    monkeypatch.setattr(cluster, "TIMEOUT", 0.2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=r"did not answer within 0\.2 seconds"):
            cluster._require_reachable(f"ray://127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["dask", "", "ray:/x", "tcp://127.0.0.1:1"])
def test_what_is_no_cluster_is_refused(address):
    with pytest.raises(InvalidInput, match="ray://HOST:PORT"):
        open_executor(2, address)


def test_a_client_that_lacks_a_part_is_told_before_anything_is_opened(monkeypatch):
    monkeypatch.delitem(sys.modules, "ray", raising=False)  # no cluster is joined
    monkeypatch.setattr(cluster, "_require_reachable", lambda address: None)
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"limi\[ray\]"):
        cluster.reach("ray://host:10001")


@pytest.mark.parametrize("address", ["ray://", "ray://host", "ray://host:x", "http://host:1"])
def test_an_address_without_host_or_port_is_refused(address):
    with pytest.raises(InvalidInput, match="is not an address"):
        cluster._require_reachable(address)
