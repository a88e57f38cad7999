"""Workers that go ahead of LIMI change nothing: the same findings, in the same order."""

import os
import signal
from types import SimpleNamespace

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


def cut(n, *, workers=2, per_row=0.0, questions=6, learned=None):
    """Sizes of the ranges that n latents are cut into."""
    ahead = SimpleNamespace(n_workers=workers, per_row=per_row)
    stream = SimpleNamespace(generator=None, part=lambda start, n: None)
    cutting = _scouting._Cutting(ahead, n, questions)
    sizes = []
    for one in cutting.cut(stream, 0, n):
        sizes.append(one.n)
        if learned is not None:
            asked = np.arange(3 * one.n) < learned * one.n / 2  # two combinations
            cutting.learn([one], [SimpleNamespace(asked=asked)], 2)
    assert sum(sizes) == n
    return sizes


def test_ranges_are_large_at_first_and_smaller_towards_the_end(monkeypatch):
    monkeypatch.setattr(_scouting, "_LARGEST", 65_536)
    assert cut(400_000) == [65_536] * 5 + [32_768, 16_384, 8192, 8192, 6784]
    # A range of 8,192 latents is enough for a model that takes no time; a slow one is waited for.
    assert min(cut(1_000_000)[:-1]) == 8192
    assert min(cut(100_000, per_row=5e-5)[:-1]) == 512
    assert min(cut(100_000, per_row=1.0)[:-1]) == 128
    # What latents really take counts, as soon as it is known.
    assert min(cut(100_000, per_row=5e-5, learned=2)[:-1]) == 1024


def test_of_many_workers_each_looks_at_less(monkeypatch):
    monkeypatch.setattr(_scouting, "_LARGEST", 65_536)
    assert [cut(10**7, workers=n)[0] for n in (2, 4, 8)] == [65_536, 32_768, 8192]


def test_a_budget_of_rows_takes_fewer_ranges_at_once(monkeypatch):
    monkeypatch.setattr(_scouting, "_LARGEST", 1024)
    cutting = _scouting._Cutting(SimpleNamespace(n_workers=2, per_row=0.0), 10**4, 6)
    stream = SimpleNamespace(generator=None, part=lambda start, n: None)
    list(cutting.cut(stream, 0, 4096))
    assert cutting.take(3, 1023) == []
    assert [one.start for one in cutting.take(3, 2048)] == [0, 1024]
    assert [one.start for one in cutting.take(1, 10**6)] == [2048]


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
