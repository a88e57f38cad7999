"""Workers that go ahead of LIMI change nothing: the same findings, in the same order."""

import os
import signal

import numpy as np
import pytest

import limi
from limi.methods import _scouting, natural, themis
from limi.methods import limi as probing
from limi.methods.limi import LIMI
from limi.search import rounds, spread
from tests.models.people import people, truth


def scored(frame):
    """Favors men a little, and the young among them less."""
    merit = frame["age"] / 40 + frame["hours"].fillna(40) / 50 + (frame["sex"] == "M") * 0.3137
    return (1 / (1 + np.exp(2.1123 - merit))).to_numpy()


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """Of a search that takes a second."""
    monkeypatch.setattr(_scouting, "_LARGEST", 256)
    monkeypatch.setattr(_scouting, "_SMALLEST", 128)


@pytest.fixture
def followed(monkeypatch):
    """How many latents were taken from scouts."""
    taken, follow = [], _scouting._follow

    def count(session, probes, seen, ranges, parts):
        taken.extend(one.n for one, part in zip(ranges, parts, strict=True) if part is not None)
        return follow(session, probes, seen, ranges, parts)

    monkeypatch.setattr(_scouting, "_follow", count)
    return taken


def audited(workers, model=scored, protected=("sex",), **given):
    given = {"max_rows": None, "method": LIMI(n_latents=3000, n_labelled=400), **given}
    result = limi.audit(
        model,
        people().assign(ok=truth()),
        protected=list(protected),
        target="ok",
        rate_rows=0,
        workers=workers,
        **{"favorable": 1, **given},
    )
    found = result.found
    arrays = (found.rows, found.partner, found.score, found.partner_score, found.causes, found.bits)
    told = b"".join(array.tobytes() for array in arrays)
    counted = [result.summary.rows_checked, result.summary.stop, result.summary.scores]
    if isinstance(given["method"], str):
        # LIMI asks a few rows that it does not meet; which ones depends on how it is cut.
        counted.append(result.summary.queries)
    return told, len(found), counted


def strange(frame):
    """Favors everybody but some whose age is none of those tried."""
    between = frame["age"].between(31, 38) & (frame["hours"].fillna(40) % 2 == 0)
    return np.where(between, 0.1, 0.9)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"protected": ("age=20-60:20",), "model": strange},
        {"protected": ("age",)},  # own values that are none of those tried
        {"protected": ("age", "sex")},
        {"max_rows": 1500},  # ends in the middle
        {"decision": "difference > 0.02", "favorable": None},
    ],
    ids=["one column", "an own value", "strays", "two columns", "budget", "numbers"],
)
def test_scouts_change_nothing(followed, given):
    alone = audited(1, **given)
    assert alone[1] > 0
    assert not followed
    assert audited(2, **given) == alone
    assert sum(followed) >= 256
    assert audited(8, **given) == alone


def test_labels_are_asked_by_workers(monkeypatch):
    alone = audited(1)
    monkeypatch.setattr(probing, "_labels", lambda *given: pytest.fail("they were asked here"))
    assert audited(2) == alone


def test_the_last_ranges_of_a_slow_model_are_smaller(monkeypatch):
    monkeypatch.setattr(_scouting, "_LARGEST", 32_768)
    assert _scouting._cut(32_768, 400_000, 6, 0.0) == 32_768
    assert _scouting._cut(32_768, 1000, 6, 0.0) == 8192
    assert _scouting._cut(32_768, 1000, 6, 3e-4) == 512
    assert _scouting._cut(32_768, 1000, 6, 1.0) == 128


def test_where_workers_never_go_ahead_latents_are_cut_as_without_them(followed):
    assert audited(2, max_findings=100) == audited(1, max_findings=100)
    assert not followed


def test_a_killed_scout_changes_nothing(followed, tmp_path):
    alone = audited(1)
    parent, mark = os.getpid(), tmp_path / "mark"

    def killed_once(frame):
        if os.getpid() != parent and len(frame) > 300 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return scored(frame)

    assert audited(2, killed_once) == alone
    assert mark.exists()
    assert sum(followed) >= 256


def test_where_scouts_fail_the_search_goes_alone(followed):
    alone = audited(1)
    parent = os.getpid()

    def short_of_memory(frame):
        if os.getpid() != parent and len(frame) > 300:
            raise MemoryError
        return scored(frame)

    assert audited(2, short_of_memory) == alone


def test_answers_of_scouts_are_kept_and_a_run_goes_on(followed, tmp_path):
    asked = []

    def counted(frame):
        asked.append(len(frame))
        return scored(frame)

    method = LIMI(n_latents=3000, n_labelled=400)
    alone = audited(1, out=tmp_path / "alone")

    def interrupt(told):
        if told.phase == "search" and told.rows > 900:
            raise KeyboardInterrupt

    audited(2, counted, method=method, out=tmp_path / "cut", on_progress=interrupt)
    assert sum(followed) > 256
    followed.clear()
    asked.clear()
    assert audited(2, counted, method=method, out=tmp_path / "cut", resume=True) == alone
    assert sum(followed) > 256  # behind what the log had known
    first, second = ((tmp_path / n / "findings.parquet").read_bytes() for n in ("alone", "cut"))
    assert first == second


def test_what_is_spread_and_what_is_scouted_do_not_get_in_each_others_way(monkeypatch):
    monkeypatch.setattr(spread, "_PART_SECONDS", 1e-9)
    assert audited(3) == audited(1)


@pytest.mark.parametrize("protected", [("sex",), ("age", "sex")])
@pytest.mark.parametrize("method", ["natural", "themis"])
def test_rounds_that_workers_check_change_nothing(method, protected, monkeypatch):
    monkeypatch.setattr(natural, "_ROUND", 256)
    monkeypatch.setattr(themis, "_ROUND", 128)
    taken, take = [], rounds._take

    def count(session, known, *, unseen):
        taken.append(len(known))
        return take(session, known, unseen=unseen)

    monkeypatch.setattr(rounds, "_take", count)
    given = {"method": method, "max_rows": 2100, "protected": protected}
    alone = audited(1, **given)
    assert alone[1] > 0
    assert not taken
    assert audited(2, **given) == alone
    assert sum(taken) >= 2100
