"""Budgets of seconds, with a clock that only the model's work moves: 2 ms a row."""

import json

import numpy as np
import pandas as pd
import pytest

import limi
from limi import methods
from limi.audits.summary import Summary
from limi.metrics.individual import clopper_pearson
from limi.metrics.sequential import anytime_interval
from limi.report import html, text, wording
from limi.search.budget import Budget
from limi.search.engine import run
from tests.toy import Clock, Linear, Rounding, schema_of, task

PER_ROW = 0.002


class Slow:
    """A model on a frame, of which every row takes its time."""

    __name__ = "slow"

    def __init__(self, clock, per_row=PER_ROW, per_call=0.0):
        self.clock, self.per_row, self.per_call = clock, per_row, per_call
        self.calls = []

    def __call__(self, frame):
        self.calls.append(len(frame))
        self.clock.now += self.per_call + self.per_row * len(frame)
        margin = (frame["age"] - 40) / 10 - frame["debt"] + 0.8 * (frame["sex"] == "M")
        return 1 / (1 + np.exp(-margin.to_numpy(dtype=float)))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, 3_000),
            "sex": rng.choice(["F", "M"], 3_000),
            "job": rng.choice(list("abcdef"), 3_000),
            "debt": rng.normal(0, 2, 3_000).round(1),
        }
    )


def audit(table, clock, model, **more):
    start = clock.now
    given = {"protected": ["sex"], "max_seconds": 15, "clock": clock} | more
    result = limi.audit(model, table, **given)
    return result, clock.now - start


METHODS = [
    *("limi", "natural", "guided", "real", "themis", "aequitas", "expga", "sg", "vbtx"),
    *("adf", "eidig", "maft", "limi+adf"),
]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends_in_time(table, method):
    clock = Clock()
    slow = Slow(clock)
    result, took = audit(table, clock, slow, method=method)
    assert took <= 16.5
    assert took == pytest.approx(PER_ROW * sum(slow.calls))
    # A call takes about a second, the first of a phase that was seen faster a little more.
    assert max(slow.calls) * PER_ROW <= 1.1
    summary = result.summary
    assert summary.stop == "seconds"
    assert summary.findings > 20
    assert {"real", "natural", "uniform"} == set(summary.rates)
    assert "rows, because time ran out" in summary.cut["search"]
    assert summary.cut["search"] in summary.notes
    spent = {name: phase["seconds"] for name, phase in summary.phases.items()}
    assert sum(spent.values()) == pytest.approx(took, abs=0.01)
    assert spent["rates"] <= 15 / 5 * 1.1
    assert spent["search"] >= 5
    # Each finding was asked again, and there was time for it.
    assert summary.phases["second_check"]["questions"] >= 2 * summary.findings
    assert "second_check" not in summary.cut


def test_a_budget_that_is_not_reached_changes_nothing(table):
    """Batches are about asking, never about what is asked."""
    found = []
    given = {"max_rows": 1_000, "rate_rows": 1_000}
    for max_seconds in (None, 1e7):
        clock = Clock()
        result, _ = audit(table, clock, Slow(clock), max_seconds=max_seconds, **given)
        found.append(result)
    one, other = found
    pd.testing.assert_frame_equal(one.findings, other.findings)
    assert one.rates == other.rates
    assert one.summary.stop == other.summary.stop == "rows"
    assert not other.summary.cut


@pytest.mark.parametrize("per_call", [0.05, 0.4])
def test_calls_that_cost_something_themselves_are_in_time_too(table, per_call):
    clock = Clock()
    slow = Slow(clock, per_row=0.0002, per_call=per_call)
    result, took = audit(table, clock, slow)
    assert took <= 16.5
    assert result.summary.findings > 50
    # A large batch shares the cost of its call; it is found out by the second or third.
    assert max(slow.calls) > 500


@pytest.mark.parametrize("per_row", [0.05, 0.3])
def test_a_very_slow_model_still_ends_in_time(table, per_row):
    clock = Clock()
    _, took = audit(table, clock, Slow(clock, per_row), protected=["sex", "job"])
    assert took <= max(16.5, 15 + 2 * per_row)


def test_a_model_that_slows_down_ends_in_time_and_keeps_what_was_confirmed(table):
    class Tiring(Slow):
        def __call__(self, frame):
            if self.clock.now > 1011:
                self.per_row = 0.009
            return super().__call__(frame)

    clock = Clock()
    result, took = audit(table, clock, Tiring(clock), method="themis")
    assert took <= 15 + 500 * 0.009  # one batch
    summary = result.summary
    assert summary.findings > 20
    assert "no time to ask about them again" in summary.cut["second_check"]
    assert summary.cut["second_check"] in text.render(summary).replace("\n    ", " ")
    for _, row in result.findings.iterrows():
        partner = row.copy()
        partner["sex"] = row["sex__partner"]
        both = Slow(Clock())(pd.DataFrame([row, partner]))
        assert (both[0] > 0.5) != (both[1] > 0.5)


def test_a_search_that_had_no_time_says_so(table):
    clock = Clock()
    result, took = audit(table, clock, Slow(clock, 0.1), max_seconds=1.5)
    assert took <= 1.5 + 0.2
    summary = result.summary
    assert (summary.findings, summary.rows_checked, summary.stop) == (0, 0, "seconds")
    assert "no time was left to search" in summary.cut["search"]
    assert "not searched" in text.render(summary)
    assert "not searched" in html.render(summary)
    assert summary.as_dict()["cut"]["search"] == summary.cut["search"]


def test_queries_and_seconds_together(table):
    """Many values are asked one after another; a row is not begun that could not be ended."""
    clock = Clock()
    slow = Slow(clock)
    result, took = audit(
        table, clock, slow, protected=["job", "sex"], method="real", max_queries=100_000
    )
    assert took <= 16.5
    assert result.summary.findings > 20
    assert result.summary.stop == "seconds"


def test_rates_say_on_how_many_rows_they_were_measured(table):
    clock = Clock()
    result, _ = audit(table, clock, Slow(clock), rate_rows=8_000)
    told = result.summary.cut["rates"]
    n = result.rates["uniform"].n
    assert n < 8_000
    assert f"at most {n:,} rows, not on 8,000: the search keeps a fifth of --max-seconds" in told
    given = {"max_seconds": None, "method": "themis", "generator": None}
    result, _ = audit(table, clock, Slow(clock), max_rows=50, **given)
    assert "rates" not in result.summary.cut
    result, _ = audit(table, clock, Slow(clock), max_queries=9_000, **given)
    assert "a fifth of --max-queries" in result.summary.cut["rates"]
    result, _ = audit(table, clock, Slow(clock), max_rows=50, rate_rows=200_000, **given)
    assert "a rate takes at most 250,000 questions" in result.summary.cut["rates"]


@pytest.mark.parametrize(("method", "population"), [("real", "real"), ("themis", "uniform")])
def test_a_short_search_does_not_shorten_the_rate_of_its_population(table, method, population):
    clock = Clock()
    given = {"method": method, "max_seconds": None, "rate_rows": 2_000}
    result, _ = audit(table, clock, Slow(clock), max_rows=100, **given)
    assert result.summary.rows_checked == 100
    assert result.rates[population].n == 2_000
    # A search that checks enough is the sample itself, and nothing is asked twice.
    result, _ = audit(table, clock, Slow(clock), max_rows=2_500, **given)
    assert result.rates[population].n == result.summary.rows_checked == 2_500
    assert not result.rates[population].anytime


def test_a_number_of_rows_that_hangs_on_flips_gets_an_interval_for_any_end(table):
    clock = Clock()
    given = {"max_seconds": None, "rate_rows": 500}
    by_margin, _ = audit(
        table, clock, Slow(clock), method="themis", settings={"margin": 0.02}, **given
    )
    frugal, _ = audit(
        table, clock, Slow(clock), method="real", protected=["job"], max_queries=9_000, **given
    )
    fixed, _ = audit(table, clock, Slow(clock), method="real", max_queries=9_000, **given)
    for result, name, anytime in (
        (by_margin, "uniform", True),
        (frugal, "real", True),
        (fixed, "real", False),
    ):
        rate = result.rates[name]
        assert rate.anytime is anytime
        hits = round(rate.estimate * rate.n)
        ends = anytime_interval(hits, rate.n) if anytime else clopper_pearson(hits, rate.n)
        assert (rate.low, rate.high) == pytest.approx((float(ends[0]), float(ends[1])))
        words = " ".join(text.render(result.summary).split())
        assert (wording.ANYTIME in words) is anytime
        again = Summary.from_dict(json.loads(json.dumps(result.summary.as_dict())))
        assert again.rates == result.summary.rates
    assert "holds" in frugal.summary.metrics["individual"]["flip_rates"]["real"]


def test_a_run_with_a_budget_of_seconds_can_be_resumed(table, tmp_path):
    """Other batches, other samples: what was answered is found by its rows."""

    class Dying(Slow):
        def __call__(self, frame):
            if self.clock.now > 1006:
                raise KeyboardInterrupt
            return super().__call__(frame)

    out = tmp_path / "run"
    clock = Clock()
    result, _ = audit(table, clock, Dying(clock), method="natural", out=out)
    assert result.stop == "interrupted"
    clock = Clock()
    slow = Slow(clock, per_row=0.0011)
    result, took = audit(table, clock, slow, method="natural", out=out, resume=True)
    assert took <= 16.5
    assert result.stop == "seconds"
    assert any("answers are from the log" in note for note in result.summary.notes)


@pytest.mark.parametrize("method", ["guided", "limi", "natural"])
def test_what_limi_computes_itself_counts_too(method):
    """A generator that takes half a millisecond a row, and a model that takes no time at all."""
    clock = Clock()

    class Slowly(Rounding):
        def decode(self, latents):
            clock.now += 0.0005 * len(latents)
            return super().decode(latents)

    schema = schema_of((0, 60), (0, 60), (0, 30), (0, 1), protected=["x3"])
    here = task(schema, Linear((0.125, -0.0625, 0.0625, 1.0), -2.28125), generator=Slowly(schema))
    settings = {"limi": {"n_labelled": 1_000}}.get(method, {})
    start = clock.now
    ran = run(methods.parse(method, settings), here, Budget(max_seconds=15), 0, clock=clock)
    assert ran.stop == "seconds"
    assert clock.now - start <= 16.5
    assert len(ran.findings) > 50


def test_a_model_is_settled_on_fewer_rows_where_it_is_slow(table):
    class Classes:
        """Answers labels, so that it must be seen on many rows what they are."""

        __name__ = "classes"

        def __init__(self, clock):
            self.slow = Slow(clock, 0.02)

        def __call__(self, frame):
            return np.where(self.slow(frame) > 0.5, "yes", "no")

    labelled = table.assign(ok=np.where(table["debt"] < 0, "yes", "no"))
    given = {"target": "ok", "favorable": "yes", "method": "themis"}
    clock = Clock()
    model = Classes(clock)
    _, took = audit(labelled, clock, model, **given)
    assert took <= 16.5
    assert max(model.slow.calls) <= 60


def test_a_clock_that_jumps_changes_no_finding(table, monkeypatch):
    """A machine that sleeps for a year, one whose clock is set back, and a wall clock at work."""
    quiet = Clock()
    given = {"max_seconds": None, "max_rows": 2_000, "rate_rows": 200, "method": "themis"}
    whole, _ = audit(table, quiet, Slow(quiet), **given)

    class Jumping(Slow):
        def __call__(self, frame):
            self.clock.now += (3e7, -5e6, 0.0)[len(self.calls) % 3]
            return super().__call__(frame)

    times = iter(np.tile([1e9, -1e9, 4e9], 10_000))
    monkeypatch.setattr("time.time", lambda: float(next(times)))
    clock = Clock()
    result, _ = audit(table, clock, Jumping(clock), **given)
    pd.testing.assert_frame_equal(result.findings, whole.findings)
    assert result.stop == whole.stop
