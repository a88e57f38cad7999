"""Rates of populations against rows counted one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from limi.metrics.individual import flip_rate
from limi.metrics.rates import MOST_QUERIES, measurable_rows, measure
from limi.search.session import Session
from limi.search.steadiness import TIMES, Steadiness
from limi.search.task import Task
from limi.system.watch import Watch
from limi.table.rows import uniform
from tests.naive import check as naive
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, Rounding, grid, schema_of, task

TWO = schema_of((0, 9), (0, 2), (0, 1), protected=["x1", "x2"])
# Some flip by x1 alone, some by x2 alone, some only if both change.
TWO_MODEL = Linear((0.8, 0.5, -0.9), -2.95)
STEADY = Steadiness(rows=50, questions=200)
BY_CHANCE = Steadiness(rows=50, questions=200, again=9, reordered=9, regrouped=9, scores_moved=9)
BY_BATCH = Steadiness(rows=50, questions=200, regrouped=9, scores_moved=9)


@dataclass
class Counting:
    """A model that counts the rows it is asked for."""

    model: Linear
    asked: int = 0
    calls: list = field(default_factory=list)

    def score(self, rows):
        self.asked += len(rows)
        self.calls.append(rows.copy())
        return self.model(rows)


@dataclass
class Unsteady(Counting):
    """Decides by a coin where x0 is even."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def score(self, rows):
        told = super().score(rows)
        return np.where(rows[:, 0] % 2 == 0, self.rng.choice([0.1, 0.9], len(rows)), told)


def counted(schema=SCHEMA, model=MODEL, rows=None, kind=Counting, **more):
    model = kind(model)
    return task(schema, model, rows, **more), model


def flips_alone(model, schema, row, column):
    """By the definition: does a value of this column, all else as it is, turn the decision?"""
    own = naive.side(model(row[None])[0])
    return any(other * own < 0 for other in naive.as_if(model, schema, row, column))


def test_the_rate_of_a_table_is_that_of_its_rows():
    here, model = counted()
    measured = measure(Session(here), ["real"], 0)
    assert measured.rates == {"real": flip_rate(np.arange(50) < 18)}
    assert measured.queries == model.asked == 50  # 25 people under two values
    assert measured.places["real"].tolist() == list(range(50))
    assert {tuple(row[:2].astype(int)) for row in measured.flipping["real"]} == FLIPPING
    assert measured.alone == {}


def test_questions_of_all_populations_count():
    here, model = counted(generator=Rounding(SCHEMA))
    populations = ["real", "natural", "uniform", "held-out"]
    measured = measure(Session(here), populations, 3, rows=40, held_out=grid(SCHEMA)[::3])
    assert list(measured.rates) == populations
    assert measured.queries == model.asked
    assert [rate.n for rate in measured.rates.values()] == [40, 40, 40, 17]
    for name, checked in measured.checked.items():
        told = [naive.verdict(MODEL, SCHEMA, row, "widest")[0] for row in checked.rows]
        assert checked.flips.tolist() == told
        assert measured.rates[name] == flip_rate(np.array(told))
    assert sorted(measured.places) == ["held-out", "real"]
    np.testing.assert_array_equal(measured.checked["held-out"].rows, grid(SCHEMA)[::3])


def test_a_population_has_a_stream_of_its_own():
    here, _ = counted(generator=Rounding(SCHEMA))
    alone = measure(Session(here), ["uniform"], 5, rows=60)
    among = measure(Session(here), ["real", "natural", "uniform"], 5, rows=60)
    other = measure(Session(here), ["uniform"], 6, rows=60)
    told = [m.checked["uniform"].rows.tolist() for m in (alone, among, other)]
    assert told[0] == told[1] != told[2]
    assert among.checked["natural"].rows.tolist() != told[0]


def test_natural_rows_are_the_generator_s():
    @dataclass(frozen=True)
    class Same(Rounding):
        def decode(self, latents):
            return np.tile([2.0, 1.0, 0.0], (len(latents), 1))

    here, _ = counted(generator=Same(SCHEMA))
    assert measure(Session(here), ["natural"], 0, rows=30).rates["natural"].estimate == 1.0


def test_a_part_of_a_table_holds_each_row_once_and_in_order():
    here, _ = counted()
    places = measure(Session(here), ["real"], 1, rows=20).places["real"]
    assert len(places) == len(set(places.tolist())) == 20
    assert places.tolist() == sorted(places.tolist())
    assert places.max() > 20  # from all over the table
    assert measure(Session(here), ["real"], 2, rows=20).places["real"].tolist() != places.tolist()


def test_a_rate_is_measured_on_as_many_rows_as_the_queries_pay_for():
    # Two values, and one more question where a row may hold neither of them.
    assert [measurable_rows(SCHEMA, 1, most) for most in (2, 3, 5, 6, 300)] == [0, 1, 1, 2, 100]
    assert measurable_rows(SCHEMA, 3, 300) == 33
    assert measurable_rows(SCHEMA, 0, 300) == 100
    assert measurable_rows(SCHEMA, 4) == measurable_rows(SCHEMA, 1) == MOST_QUERIES // 3
    # Two columns on a part of their values: (2 + 1) x (2 + 1) mixtures at the most.
    part = schema_of((0, 4), (0, 9), (0, 9), protected=["x1", "x2"])
    part = part.protect({"x1": [0, 9], "x2": [0, 9]})
    assert measurable_rows(part, 1, 899) == 99


def test_confirming_flips_is_paid_for_as_well():
    once = 2 * TIMES  # both sides of a pair
    assert measurable_rows(SCHEMA, 1, 10_000, STEADY) == 10_000 // 3
    assert measurable_rows(SCHEMA, 1, 10_000, BY_CHANCE) == 10_000 // (3 + once)
    assert measurable_rows(SCHEMA, 1, 10_000, BY_BATCH) == 10_000 // (3 + 4 * once)
    # The flips of each of two columns are confirmed beside those of all.
    assert measurable_rows(TWO, 1, 10_000, BY_CHANCE) == 10_000 // (7 + 3 * once)


@pytest.mark.parametrize(("most", "n"), [(2, 0), (3, 1), (60, 20), (10_000, 50)])
def test_no_more_is_asked_than_was_allowed(most, n):
    here, model = counted()
    measured = measure(Session(here), ["real"], 0, max_queries=most)
    assert model.asked == measured.queries <= most
    assert [rate.n for rate in measured.rates.values()] == ([n] if n else [])


def test_columns_alone_are_those_of_the_definition():
    rows = grid(TWO)
    here, model = counted(TWO, TWO_MODEL, rows)
    measured = measure(Session(here), ["real", "uniform"], 0, rows=100)
    assert list(measured.alone) == ["x1", "x2"]
    for place, column in enumerate(measured.alone):
        for name, checked in measured.checked.items():
            told = [flips_alone(TWO_MODEL, TWO, row, place) for row in checked.rows]
            assert measured.alone[column][name] == flip_rate(np.array(told))
    by_one = [any(flips_alone(TWO_MODEL, TWO, row, c) for c in (0, 1)) for row in rows]
    assert 0 < np.mean(by_one) < measured.rates["real"].estimate  # some flip only by both
    assert measured.queries == model.asked


def test_nobody_on_the_edge_flips():
    class Edge:
        def score(self, rows):
            return np.where(rows[:, 0] < 5, 0.5, np.where(rows[:, 1] == 2, 0.9, 0.1))

    measured = measure(Session(task(TWO, Edge(), grid(TWO))), ["real"], 0)
    assert measured.rates["real"].estimate == 0.5
    assert measured.alone["x1"]["real"].estimate == 0.5
    assert measured.alone["x2"]["real"].estimate == 0.0


def test_of_an_unsteady_model_only_flips_that_are_seen_every_time_count():
    # Three values: the first one that flips a row is not always the second of the column.
    rows = grid(TWO)
    here, model = counted(TWO, TWO_MODEL, rows, kind=Unsteady)
    measured = measure(Session(here), ["real"], 0, told=BY_CHANCE)
    odd = rows[:, 0] % 2 == 1
    told = odd & [naive.verdict(TWO_MODEL, TWO, row, "widest")[0] for row in rows]
    assert measured.checked["real"].flips.tolist() == told.tolist()
    for place, column in enumerate(("x1", "x2")):
        flips = odd & [flips_alone(TWO_MODEL, TWO, row, place) for row in rows]
        assert measured.alone[column]["real"] == flip_rate(flips)
        assert flips.any()
    assert measured.queries == model.asked
    # Believed to be steady, it is asked once, and the coins count.
    again, model = counted(TWO, TWO_MODEL, rows, kind=Unsteady)
    believed = measure(Session(again), ["real"], 0, told=STEADY)
    assert believed.queries == model.asked == 60
    assert believed.checked["real"].flips.sum() > told.sum()


@pytest.mark.parametrize(("told", "beside"), [(BY_CHANCE, 0), (BY_BATCH, 3)])
def test_flips_are_confirmed_among_rows_of_the_table_where_batches_have_a_say(told, beside):
    here, model = counted()
    measured = measure(Session(here), ["real"], 0, told=told)
    assert measured.rates["real"].estimate == 0.36
    # 18 rows flip; they and their partners are asked ten times, with their company.
    assert measured.queries == model.asked == 50 + 18 * 2 * TIMES * (1 + beside)


def test_confirmed_questions_are_asked_in_batches_of_the_wished_size():
    here, model = counted(TWO, TWO_MODEL, grid(TWO), max_batch=7)
    measure(Session(here), ["real"], 0, told=BY_CHANCE)
    assert max(map(len, model.calls)) <= 7


class Slow:
    """Takes a second for each row."""

    def __init__(self, model):
        self.model, self.now, self.asked = model, 0.0, 0

    def score(self, rows):
        self.asked += len(rows)
        self.now += len(rows)
        return self.model(rows)


def slow_session(seconds, rows=None):
    model = Slow(MODEL)
    rows = grid(SCHEMA) if rows is None else rows
    watch = Watch(lambda: model.now, seconds)
    return Session(Task(SCHEMA, watch.timed(model.score), rows), watch=watch), model


def test_where_time_runs_out_the_rate_is_that_of_the_rows_asked_until_then():
    rows = uniform(SCHEMA, 400, np.random.default_rng(1))
    here, model = slow_session(100, rows)
    measured = measure(here, ["real", "held-out"], 0, held_out=rows)
    places, checked = measured.places["real"], measured.checked["real"]
    assert list(measured.rates) == ["real"]  # there was no time for another
    assert 0 < measured.rates["real"].n == len(checked) == len(places) < 400
    np.testing.assert_array_equal(rows[places], checked.rows)
    assert measured.queries == model.asked <= 102
    # Not the first ones of the table, which may be sorted.
    assert places.tolist() != sorted(places.tolist())
    assert places.max() > len(places)


def test_without_time_nothing_is_measured():
    here, model = slow_session(10)
    here.watch.until = -1.0
    measured = measure(here, ["real"], 0)
    assert (measured.rates, measured.queries, model.asked) == ({}, 0, 0)
