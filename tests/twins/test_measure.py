"""The twin question as a whole, on people whose true twins are known."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from lab.mechanism import draw_known
from limi.search.budget import Budget
from limi.search.session import Session
from limi.search.steadiness import Steadiness
from limi.search.task import Task
from limi.system.plain import read
from limi.system.watch import Watch
from limi.twins import learn
from limi.twins.answers import Twins
from limi.twins.effort import Effort
from limi.twins.measure import measure

SMALL = Effort(people=800, again=300, kept=300, carried=60, drawn=40)


@pytest.fixture(scope="module")
def known():
    return draw_known(2500, np.random.default_rng(0))


def ask(known, *, max_batch=1 << 18, budget=None, score=None, **options):
    task = Task(known.schema, score or known.score, known.rows, max_batch=max_batch)
    session = Session(task, budget)
    return measure(session, known.rows, 0, unseen=("sex",), effort=SMALL, **options), session


@pytest.fixture(scope="module")
def twins(known):
    return ask(known, keep=("hours",))[0]


def true_rates(sex):
    many = draw_known(100_000, np.random.default_rng(9))
    here = many.rows[:, 0] == sex
    own, twin = (many.score(rows[here]) > 0.5 for rows in (many.rows, many.twins))
    return (~own & twin).mean(), (own & ~twin).mean()


def test_intervals_hold_the_rates_of_the_true_twins(twins):
    for direction in twins.directions:
        gains, losses = true_rates(0 if direction.group == "sex Female" else 1)
        found = (direction.gains, direction.losses)
        mainly, rarely = found if gains > losses else found[::-1]
        assert mainly.low <= max(gains, losses) <= mainly.high
        assert abs(rarely.estimate - min(gains, losses)) < 0.02
        assert direction.gains.estimate - direction.losses.estimate == pytest.approx(direction.net)


def test_the_group_with_fewer_favorable_decisions_comes_first_and_its_way_back_behind(twins):
    there, back = twins.directions
    assert (there.group, there.goal) == ("sex Female", "sex Male")
    assert (back.group, back.goal) == (there.goal, there.group)
    assert there.gap == pytest.approx(-back.gap)
    assert there.gap > 0.1
    assert 0.8 < there.coverage < 1.2


def test_groups_drawn_at_random_flip_next_to_nothing(twins):
    assert twins.placebo.estimate < 0.02


def test_carriers_are_the_columns_that_the_mechanism_moves(twins):
    there = twins.directions[0]
    assert there.carriers[0].columns == ("hours",)
    assert sum(carrier.share for carrier in there.carriers) == pytest.approx(1.0)
    shares = {carrier.columns: carrier.share for carrier in there.carriers}
    assert abs(shares.get(("district",), 0.0)) < 0.05
    assert ("age",) not in shares or abs(shares["age",]) < 0.05


def test_what_is_kept_carries_nothing_any_more(twins):
    there = twins.directions[0]
    asked = next(kept for kept in there.kept if kept.why == "asked")
    assert asked.columns == ("hours",)
    assert asked.gains.estimate < there.gains.estimate / 2
    by_carriers = [kept.columns for kept in there.kept if kept.why == "carriers"]
    assert all(columns[0] == "hours" and len(columns) > 1 for columns in by_carriers)


def test_examples_change_in_nearly_all_draws_and_say_in_what(known, twins):
    assert twins.examples
    for example in twins.examples:
        assert example.agreement >= 0.9
        assert (example.score > 0.5) != (example.twin_score > 0.5)
        fields = {name: (own, twin) for name, own, twin in example.fields}
        assert fields["sex"][0] != fields["sex"][1]
        assert list(fields) == known.schema.names


def test_draws_orders_and_fits_are_told(twins):
    for direction in twins.directions:
        assert 0.7 < direction.agreement < 1
        assert len(direction.orders) == 8
        assert direction.fit_error >= 0
        assert (
            direction.gains.high - direction.gains.low
            >= 2
            * 1.9
            * math.sqrt(direction.gains.estimate * (1 - direction.gains.estimate) / direction.n)
            * 0.95
        )


def test_other_orders_differ_by_what_is_learned_and_not_by_the_luck_of_their_draws(
    known, monkeypatch
):
    learned = []

    def learn_once(rows, *more, order=None, **options):
        if order is None or not learned:
            learned.append(learn(rows, *more, order=order, **options))
        return learned[0]

    monkeypatch.setitem(measure.__globals__, "learn", learn_once)
    for direction in ask(known)[0].directions:
        used = getattr(direction, direction.carried).estimate
        assert direction.orders == pytest.approx([used] * len(direction.orders))


def test_batches_do_not_change_an_answer(known, twins):
    again, _ = ask(known, keep=("hours",), max_batch=37)
    assert again == twins


def test_answers_come_back_from_json(twins):
    tree = json.loads(json.dumps(dataclasses.asdict(twins)))
    assert read(Twins, tree) == twins


def test_a_budget_is_kept_and_what_it_leaves_out_is_named(known):
    asked = []

    def score(rows):
        asked.append(len(rows))
        return known.score(rows)

    told, session = ask(known, budget=Budget(max_queries=3000), score=score)
    assert sum(asked) == told.queries <= 3000
    assert session.queries_left == 3000 - told.queries
    assert told.directions[0].n >= 50
    assert any("too small for" in note for note in told.notes)


def test_too_small_a_budget_gives_a_reason_and_no_number(known):
    told, _ = ask(known, budget=Budget(max_queries=100))
    assert not told.directions
    assert "100 questions" in told.reason


def test_a_model_that_looks_at_nothing_has_neither_gains_nor_gap(known):
    told, _ = ask(known, score=lambda rows: np.full(len(rows), 0.9))
    for direction in told.directions:
        assert (direction.gains.estimate, direction.losses.estimate) == (0, 0)
        assert direction.coverage is None
        assert not direction.carriers
    assert told.placebo.estimate == 0


def test_where_answers_move_only_changes_that_are_seen_every_time_count(known):
    moving = np.random.default_rng(0)

    def noisy(rows):
        return known.score(rows) + moving.normal(0, 0.3, len(rows)).clip(-0.4, 0.4)

    told = Steadiness(rows=16, questions=64, again=16, scores_moved=16)
    asked, _ = ask(known, score=lambda rows: noisy(rows).clip(0, 1), told=told)
    trusting, _ = ask(known, score=lambda rows: noisy(rows).clip(0, 1))
    for careful, plain in zip(asked.directions, trusting.directions, strict=True):
        assert careful.losses.estimate < plain.losses.estimate / 2


def test_no_time_gives_a_reason_and_a_little_time_the_rates(known):
    """The clock moves by a second with each look."""
    ticks = itertools.count()

    def session(seconds):
        watch = Watch(lambda: float(next(ticks)), seconds)
        task = Task(known.schema, known.score, known.rows)
        return Session(task, watch=watch)

    none = measure(session(1e-6), known.rows, 0, unseen=("sex",), effort=SMALL)
    assert not none.directions
    assert none.reason
    some = measure(session(150), known.rows, 0, unseen=("sex",), effort=SMALL)
    assert some.directions or some.reason
    assert some.notes or some.reason


def test_a_known_slow_model_and_no_budget_of_queries_ends_in_words(known):
    watch = Watch(lambda: 0.0, 10.0)
    watch.learn(1000, 5_000.0)
    session = Session(Task(known.schema, known.score, known.rows), watch=watch)
    assert session.queries_left == math.inf
    asked = measure(session, known.rows, 0, unseen=("sex",), effort=SMALL)
    assert asked.reason == "no time was left for them"
    assert not asked.queries


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: tree["directions"][0].update(group="nobody"),
        lambda tree: tree["directions"][0].update(orders=[None]),
        lambda tree: tree["directions"][0].update(gap=None),
        lambda tree: tree["groups"][0]["favorable"].update(estimate=None),
        lambda tree: tree["directions"][0]["carriers"][0].update(share=None),
        lambda tree: tree["examples"][0].update(score=None),
    ],
)
def test_damaged_answers_are_refused(twins, damage):
    tree = json.loads(json.dumps(dataclasses.asdict(twins)))
    damage(tree)
    with pytest.raises(ValueError, match=r"missing|twins go from"):
        read(Twins, tree).require_groups()
