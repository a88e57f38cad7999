"""Engine, ledger and budget, with the two plainest methods."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from limi import methods
from limi.errors import InvalidInput, MissingCapability
from limi.methods.real import Real
from limi.methods.themis import Themis
from limi.search.budget import Budget, Stop
from limi.search.engine import run
from limi.search.findings import Findings
from limi.search.session import Session
from limi.system.watch import Watch
from limi.table.rows import uniform
from tests.naive import check as naive
from tests.toy import (
    FLIPPING,
    MIXED,
    MODEL,
    SCHEMA,
    WIDE,
    WIDE_MODEL,
    Linear,
    grid,
    schema_of,
    task,
    wide_task,
)


def test_real_checks_every_row_once():
    ran = run(Real(), task(), Budget(), 0)
    assert ran.stop == Stop.EXHAUSTED
    assert ran.findings.rows_checked == 50
    assert ran.findings.flips == 18
    assert {tuple(row[:2].astype(int)) for row in ran.findings.all().rows} == FLIPPING
    assert len(ran.findings) == 9


@pytest.mark.kernels
def test_findings_are_those_of_the_plain_loop():
    rows = uniform(WIDE, 300, np.random.default_rng(1))
    rows = np.concatenate([rows, rows[::3]])
    ran = run(Real(), task(WIDE, WIDE_MODEL, rows), Budget(), 0)
    found = ran.findings.all()
    expected = naive.distinct_findings(WIDE_MODEL, WIDE, rows)
    assert sorted(naive.key(WIDE, row) for row in found.rows) == sorted(expected)


@pytest.mark.parametrize("method", [Real(), Themis()])
@pytest.mark.parametrize(
    "budget",
    [
        Budget(max_rows=777),
        Budget(max_queries=1_003, max_rows=5_000),
        Budget(max_findings=13, max_rows=5_000),
    ],
)
def test_same_seed_same_findings_whatever_the_batch(method, budget):
    reference = None
    for max_batch in (15, 1000, 100_000):
        ran = run(method, wide_task(max_batch=max_batch), budget, 7)
        found = ran.findings.all()
        if budget.max_queries:
            assert ran.queries <= budget.max_queries
            assert budget.max_queries - ran.queries < 5 + 1
            assert ran.stop == Stop.QUERIES
        elif budget.max_findings:
            assert len(found) == budget.max_findings
            assert ran.stop == Stop.FINDINGS
        else:
            assert ran.findings.rows_checked == budget.max_rows
            assert ran.stop == Stop.ROWS
        here = (found.rows.tolist(), found.partner.tolist())
        assert reference is None or here == reference
        reference = here
    other = run(method, wide_task(), budget, 8).findings.all()
    assert other.rows.tolist() != reference[0]


def test_seconds_end_a_run_by_the_given_clock():
    ticks = iter(range(0, 10_000, 3))
    ran = run(Themis(), wide_task(), Budget(max_seconds=10), 0, clock=lambda: float(next(ticks)))
    assert ran.stop == Stop.SECONDS
    assert ran.findings.rows_checked % 4096 == 0


def test_seconds_end_a_run_inside_a_large_batch():
    asked = []
    here = wide_task(max_batch=10)
    score = here.score
    here = replace(here, score=lambda rows: asked.append(len(rows)) or score(rows))
    ticks = iter(range(10**9))
    ran = run(Real(), here, Budget(max_seconds=50), 0, clock=lambda: float(next(ticks)))
    assert ran.stop == Stop.SECONDS
    assert 0 < sum(asked) < 600 < 5 * len(here.rows)


def test_an_interrupt_loses_nothing():
    calls = []

    def score(rows):
        calls.append(len(rows))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return WIDE_MODEL(rows)

    interrupted = wide_task()
    interrupted = replace(interrupted, score=score)
    ran = run(Themis(), interrupted, Budget(), 0)
    assert ran.stop == Stop.INTERRUPTED
    assert len(ran.findings) > 0
    assert ran.findings.rows_checked > 0


def test_progress_counts_queries_as_they_are_asked():
    seen = []
    ran = run(Real(), wide_task(max_batch=500), Budget(), 0, on_progress=seen.append)
    assert [p.queries for p in seen] == sorted(p.queries for p in seen)
    assert seen[-1].queries == ran.queries == 5 * len(np.unique(wide_task().rows[:, :3], axis=0))


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Asks for the same rows twice."""

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None

    def search(self, session, rng):
        yield session.check(session.rows)
        assert not session.unseen(session.rows).any()
        fresh = session.rows.copy()
        fresh[:, 0] = 99.0
        mask = session.unseen(fresh)
        assert mask.sum() == len(np.unique(fresh[:, :3], axis=0))
        yield session.check(session.rows)


@pytest.mark.parametrize("most_noted", [0, 1 << 18])
def test_a_session_remembers_what_was_asked_and_the_ledger_keeps_keys_once(most_noted, monkeypatch):
    monkeypatch.setattr("limi.search.session._MOST_NOTED", most_noted)
    rows = uniform(WIDE, 200, np.random.default_rng(0))
    rows[:, 0] = np.minimum(rows[:, 0], 98)
    once = run(Real(), task(WIDE, WIDE_MODEL, rows), Budget(), 0)
    twice = run(Greedy(), task(WIDE, WIDE_MODEL, rows), Budget(), 0)
    assert len(once.findings) == len(twice.findings) > 0


def test_the_ledger_keeps_origin_and_time():
    ledger = Findings(SCHEMA)
    here = Session(task())
    ledger.add(here.check(grid(SCHEMA)[:25], origin="one"), 1.5)
    ledger.add(here.check(grid(SCHEMA)[25:], origin="two"), 2.5)
    found = ledger.all()
    assert set(found.origin) == {"one", "two"}
    assert set(found.seconds[found.origin == "two"]) == {2.5}
    assert len(ledger.all()) == len(ledger) == 9


def test_capabilities_are_checked_before_the_first_row():
    @dataclass(frozen=True)
    class Needy:
        needs: ClassVar[frozenset[str]] = frozenset({"gradient"})
        population: ClassVar[str | None] = None

        def search(self, session, rng):
            raise AssertionError("must not start")

    with pytest.raises(MissingCapability, match=r"needs a gradient; give a torch module"):
        run(Needy(), task(), Budget(), 0)

    class Needier(Needy):
        needs: ClassVar[frozenset[str]] = frozenset({"gradient", "generator", "telescope"})

    # What to give is said of the first thing that is lacking.
    with pytest.raises(MissingCapability) as caught:
        run(Needier(), task(generator=None), Budget(), 0)
    assert str(caught.value).count("; give") == 1
    assert "; give a generator" in str(caught.value)


@pytest.mark.parametrize("name", ["max_rows", "max_queries", "max_findings", "max_seconds"])
@pytest.mark.parametrize("value", [0, -3, float("nan"), float("inf")])
def test_budgets_that_make_no_sense(name, value):
    with pytest.raises(InvalidInput, match=name.replace("_", ".")):
        Budget(**{name: value})


def test_a_budget_that_pays_for_no_row():
    with pytest.raises(InvalidInput, match="one row costs 5 queries"):
        run(Real(), wide_task(), Budget(max_queries=4), 0)


# -- budgets, row by row ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Checks the table in parts of a size, and writes down what the budget leaves of it."""

    size: int
    seen: list = field(default_factory=list, compare=False)

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None

    def search(self, session, rng):
        for start in range(0, len(session.rows), self.size):
            yield session.check(session.rows[start : start + self.size], origin="slice")
            self.seen.append((session.rows_left, session.queries_left, session.findings_left))


def by_hand(rows, most_rows=np.inf, most_queries=np.inf, most_findings=np.inf):
    """(rows checked, questions, keys of findings) of a search row by row, a person for two
    questions, each asked once."""
    checked, asked, found = 0, 0, []
    for n, row in enumerate(rows.tolist(), 1):
        key = tuple(row[:2])
        questions = asked + 2 * (key not in {tuple(r) for r in rows[: n - 1, :2].tolist()})
        if n > most_rows or questions > most_queries or len(found) >= most_findings:
            break
        checked, asked = n, questions
        if key in FLIPPING and key not in found:
            found.append(key)
    return checked, asked, found


@pytest.fixture(scope="module")
def shuffled():
    return np.random.default_rng(2).permutation(grid(SCHEMA)[::2])


@pytest.mark.parametrize("size", [1, 3, 25])
@pytest.mark.parametrize("most", [1, 4, 9, 24, 25, 26])
def test_rows_end_a_search_at_the_row(shuffled, size, most):
    method = Slices(size=size)
    ran = run(method, task(rows=shuffled), Budget(max_rows=most), 0)
    checked, asked, found = by_hand(shuffled, most_rows=most)
    assert ran.findings.rows_checked == checked == min(most, 25)
    assert ran.queries == asked
    assert [tuple(row[:2]) for row in ran.findings.all().rows] == found
    assert ran.stop == (Stop.ROWS if most <= 25 else Stop.EXHAUSTED)
    # The method is not asked for another batch once nothing is left.
    assert len(method.seen) == (most - 1) // size if most <= 25 else -(-25 // size)
    assert all(left == most - min(25, size * k) for k, (left, _, _) in enumerate(method.seen, 1))


@pytest.mark.parametrize("size", [1, 3, 25])
@pytest.mark.parametrize("most", [2, 3, 8, 19, 49, 50, 51])
def test_queries_end_a_search_at_the_question(shuffled, size, most):
    method = Slices(size=size)
    ran = run(method, task(rows=shuffled), Budget(max_queries=most), 0)
    checked, asked, found = by_hand(shuffled, most_queries=most)
    assert (ran.findings.rows_checked, ran.queries) == (checked, asked)
    assert checked == min(most // 2, 25)
    assert [tuple(row[:2]) for row in ran.findings.all().rows] == found
    assert ran.stop == (Stop.QUERIES if most <= 50 else Stop.EXHAUSTED)
    assert all(0 < left <= most for _, left, _ in method.seen)


@pytest.mark.parametrize("size", [1, 3, 25])
@pytest.mark.parametrize("most", [1, 2, 8, 9, 10])
def test_findings_end_a_search_at_the_finding(shuffled, size, most):
    method = Slices(size=size)
    ran = run(method, task(rows=shuffled), Budget(max_findings=most), 0)
    found = by_hand(shuffled, most_findings=most)[2]
    assert [tuple(row[:2]) for row in ran.findings.all().rows] == found
    assert len(ran.findings) == min(most, 9)
    assert ran.stop == (Stop.FINDINGS if most <= 9 else Stop.EXHAUSTED)
    # What is left of the findings is told to the method before each batch.
    told = [len(by_hand(shuffled[: size * k])[2]) for k in range(1, len(method.seen) + 1)]
    assert [left for _, _, left in method.seen] == [most - n for n in told]


@pytest.mark.parametrize("most", [2, 9, 10, 11])
def test_questions_beside_checks_are_paid_for_as_well(shuffled, most):
    """Eight rows are asked as they are, then people for two questions each."""

    @dataclass(frozen=True)
    class Both:
        needs: ClassVar[frozenset[str]] = frozenset()
        population: ClassVar[str | None] = None

        def search(self, task, rng):
            assert len(task.ask(shuffled[:8])) == min(8, most)
            yield task.check(shuffled[:1])
            assert len(task.ask(shuffled[:8])) == most - 10
            yield task.check(shuffled[1:2])

    model = Slow()
    ran = run(Both(), task(model=model, rows=shuffled), Budget(max_queries=most), 0)
    assert model.now - 1000 == ran.queries == {2: 2, 9: 8, 10: 10, 11: 11}[most]
    assert ran.findings.rows_checked == (most >= 10)
    assert ran.stop == Stop.QUERIES


@pytest.mark.parametrize(("most_rows", "most_queries"), [(1, 30), (7, 1000), (40, 90), (41, 91)])
def test_rows_and_queries_end_a_thrifty_search_exactly(most_rows, most_queries):
    """Three values: whoever flips is settled by two questions, whoever does not by three."""
    three = schema_of((0, 99), (0, 2), protected=["x1"])
    model = Linear((1.0, 0.0), -49.5)  # nobody flips
    rows = np.column_stack([np.arange(100.0), np.zeros(100)])
    for size in (1, 10, 100):
        here = task(three, model, rows)
        ran = run(Slices(size=size), here, Budget(max_rows=most_rows, max_queries=most_queries), 0)
        assert ran.findings.rows_checked == min(most_rows, most_queries // 3)
        assert ran.queries == 3 * ran.findings.rows_checked
        assert ran.stop == (Stop.ROWS if most_rows <= most_queries // 3 else Stop.QUERIES)


def test_without_a_budget_everything_is_left():
    method = Slices(size=10)
    ran = run(method, task(), Budget(), 0)
    assert method.seen == [(np.inf,) * 3] * 5
    assert ran.stop == Stop.EXHAUSTED


def test_the_curve_tells_questions_and_findings_after_each_batch(shuffled):
    ran = run(Slices(size=4), task(rows=shuffled), Budget(), 0)
    expected = [by_hand(shuffled[:end]) for end in range(4, 29, 4)]
    assert ran.curve == tuple((asked, len(found)) for _, asked, found in expected)
    assert ran.queries == 50


class Slow:
    """A model that takes a second for each row, by a clock of its own."""

    def __init__(self, model=MODEL):
        self.model, self.now = model, 1000.0

    def score(self, rows):
        self.now += len(rows)
        return self.model(rows)

    def clock(self):
        return self.now


def test_seconds_of_a_search_are_its_own(shuffled):
    model = Slow()
    seen = []
    ran = run(
        Slices(size=5),
        task(model=model, rows=shuffled),
        Budget(max_seconds=1e6),
        0,
        clock=model.clock,
        on_progress=seen.append,
    )
    assert (ran.seconds, ran.queries, ran.stop) == (50.0, 50, Stop.EXHAUSTED)
    found = ran.findings.all()
    ends = {2.0 * 5 * k for k in range(1, 6)}
    assert set(found.seconds) <= ends
    assert seen[-1].rows == 20  # known when the last questions were asked
    assert seen[-1].findings == len(by_hand(shuffled[:20])[2])


def test_a_search_ends_with_the_batch_that_took_the_last_second(shuffled):
    model, method = Slow(), Slices(size=5)
    here = task(model=model, rows=shuffled)
    ran = run(method, here, Budget(max_seconds=20), 0, clock=model.clock)
    assert (ran.stop, ran.seconds, ran.findings.rows_checked) == (Stop.SECONDS, 20.0, 10)
    assert len(method.seen) == 1  # it was not asked for a third batch


def test_a_method_that_ran_out_of_time_before_its_first_row_says_so(shuffled):
    @dataclass(frozen=True)
    class Curious:
        needs: ClassVar[frozenset[str]] = frozenset()
        population: ClassVar[str | None] = None

        def search(self, session, rng):
            answers = session.ask(np.repeat(session.rows, 10, axis=0))
            assert 0 < len(answers) < 250
            return iter(())

    for seconds, stop in ((1e6, Stop.EXHAUSTED), (100, Stop.SECONDS)):
        model = Slow()
        method = Slices(size=5) if stop == Stop.EXHAUSTED else Curious()
        here = task(model=model, rows=shuffled)
        ran = run(method, here, Budget(max_seconds=seconds), 0, clock=model.clock)
        assert ran.stop == stop


def test_nothing_is_owed_when_a_search_begins(shuffled):
    model = Slow()
    watch = Watch(model.clock, 20)
    watch.ask(watch.timed(model.score), grid(SCHEMA)[:10], 100)
    watch.owed = 10**6  # of another search
    here = task(model=model, rows=shuffled)
    here = replace(here, score=watch.timed(model.score))
    ran = run(Slices(size=5), here, Budget(), 0, watch=watch)
    assert (ran.findings.rows_checked, ran.seconds, ran.stop) == (5, 10.0, Stop.SECONDS)


def test_a_search_inside_something_larger_counts_from_its_own_start(shuffled):
    model = Slow()
    watch = Watch(model.clock)
    with watch.phase("rates"):
        watch.ask(watch.timed(model.score), grid(SCHEMA), 100)
    here = task(model=model, rows=shuffled)
    here = replace(here, score=watch.timed(model.score))
    ran = run(Slices(size=5), here, Budget(), 0, watch=watch)
    assert (ran.queries, ran.seconds) == (50, 50.0)
    assert ran.curve[-1] == (50, 9)
    assert ran.findings.all().seconds.max() <= 50
    assert watch.questions == 100
    assert watch.done is None  # it tells of other phases again


@pytest.mark.parametrize(("recheck", "least"), [(0, 0), (2, 2), (5, 5)])
def test_time_is_left_to_ask_for_the_findings_once_more(recheck, least):
    rows = uniform(WIDE, 400, np.random.default_rng(3))
    model = Slow(WIDE_MODEL)
    ran = run(
        Slices(size=10),
        task(WIDE, model, rows, recheck=recheck),
        Budget(max_seconds=1000),
        0,
        clock=model.clock,
    )
    assert ran.stop == Stop.SECONDS
    assert len(ran.findings) > 5
    left = 1000 - ran.seconds
    assert least * len(ran.findings) - 1 <= left <= least * len(ran.findings) + 55


@pytest.mark.parametrize(
    ("budget", "share"),
    [
        (Budget(max_rows=100), lambda rows, queries, findings, seconds: rows / 100),
        (Budget(max_queries=400), lambda rows, queries, findings, seconds: queries / 400),
        (Budget(max_findings=18), lambda rows, queries, findings, seconds: findings / 18),
        (Budget(max_seconds=500), lambda rows, queries, findings, seconds: seconds / 500),
        (Budget(), lambda rows, queries, findings, seconds: 0.0),
        (
            Budget(max_rows=100, max_findings=12, max_queries=2000, max_seconds=600),
            lambda rows, queries, findings, seconds: max(rows / 100, findings / 12, seconds / 600),
        ),
    ],
)
def test_progress_is_the_share_of_the_part_that_is_spent_most(shuffled, budget, share):
    model, seen = Slow(), []
    end = None if budget.max_seconds is None else 30 + budget.max_seconds
    watch = Watch(model.clock, end, seen.append)
    model.now += 30  # what was before the search is no part of it
    here = task(model=model, rows=shuffled)
    run(Slices(size=5), here, budget, 0, watch=watch)
    asked = [p for p in seen if p.phase == "search"]
    assert len(asked) == 1 + 5  # at the start, and after each call
    for k, progress in enumerate(asked):
        # A batch is in the ledger, and paid for, when the next one is asked.
        rows, queries, found = by_hand(shuffled[: 5 * max(0, k - 1)])
        assert progress.done == pytest.approx(share(rows, queries, len(found), 10 * k))
        assert (progress.rows, progress.findings) == (rows, len(found))


def test_several_values_are_asked_thriftily_only_where_queries_are_short():
    three = schema_of((0, 9), (0, 2), protected=["x1"])
    model = Linear((0.0, 1.0), -0.5)  # every row flips: two questions show it
    for budget, queries in ((Budget(), 30), (Budget(max_queries=1000), 20)):
        rows = grid(three)[::3]
        assert run(Slices(size=10), task(three, model, rows), budget, 0).queries == queries
    # The group score of this one needs every value.
    ran = run(Themis(), task(three, model), Budget(max_queries=300, max_rows=10), 0)
    assert ran.queries == 3 * len(np.unique(ran.findings.all().rows[:, 0]))


def test_a_budget_that_pays_for_one_row():
    assert run(Real(), wide_task(), Budget(max_queries=5), 0).findings.rows_checked >= 1


# -- the registry of methods ------------------------------------------------------------


def test_methods_are_the_files_of_their_folder():
    assert {"real", "themis"} <= set(methods.names())
    assert methods.get("themis") is Themis


def test_settings_are_read_by_the_type_of_their_field():
    method = methods.parse("themis", ["margin=0.01", "min_samples=50"])
    assert method == Themis(margin=0.01, min_samples=50)
    assert methods.parse("themis", ["margin=none"]) == Themis()
    assert methods.parse("themis", {"confidence": 0.9}) == Themis(confidence=0.9)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("themiss", (), "did you mean 'themis'"),
        ("themis", ["margn=1"], "did you mean 'margin'"),
        ("themis", ["margin=abc"], "must be of type float"),
        ("eidig", ["restart=stai"], "did you mean 'stay'"),
        ("themis", ["margin"], "NAME=VALUE"),
        ("themis", ["margin=2"], "between 0 and 1"),
        ("themis", ["confidence=0"], "between 0 and 1"),
    ],
)
def test_wrong_names_and_settings(name, settings, words):
    with pytest.raises(InvalidInput, match=words):
        methods.parse(name, settings)


def test_mixed_schemas_search_too():
    schema = MIXED.protect(["sex", "vet"])
    weights = np.array([0.02, 1.0, 0.5, 0.3, 0.4, 0.2, -1.0])
    here = task(schema, Linear((0,) * 7, -1), uniform(schema, 50, np.random.default_rng(0)))
    here = replace(
        here, score=lambda rows: 1 / (1 + np.exp(-(np.nan_to_num(rows, nan=-1) @ weights - 2)))
    )
    ran = run(Themis(), here, Budget(max_rows=3_000), 0)
    found = ran.findings.all()
    assert len(found) > 0
    assert ((found.score > 0.5) != (found.partner_score > 0.5)).all()


def test_a_session_knows_when_its_first_row_was_checked():
    seconds = iter(range(1_000))
    session = Session(task(), watch=Watch(clock=lambda: float(next(seconds))))
    session.ask(grid(SCHEMA)[:3])
    assert session.first_check is None
    session.check(grid(SCHEMA)[:3])
    began = session.first_check
    assert began is not None
    session.check(grid(SCHEMA)[3:6])
    assert session.first_check == began < session.watch.seconds
