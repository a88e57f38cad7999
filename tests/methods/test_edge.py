"""Walks to the edge of a decision: changes are measured, and lead from foothold to foothold."""

from dataclasses import replace

import numpy as np

from limi.decisions import AS_DECIDED
from limi.methods import _edge
from limi.methods._edge import _MOST_CHANGED, Anchors, Walk, _log_odds, _Usual
from limi.methods.guided import Guided
from limi.methods.natural import Natural
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import keys, uniform
from limi.table.rules import Rules
from limi.table.schema import Column, Schema
from tests.toy import Linear, Rounding, integers, schema_of

SCHEMA = schema_of((0, 90), (0, 90), (0, 40), (0, 9), (0, 1), protected=["x4"])
NEARLY_FAIR = Linear((0.03711, -0.05237, 0.07173, 0.21919, 0.0043), -1.30217)


def session_of(score=NEARLY_FAIR.unchecked, schema=SCHEMA, **budget):
    task = Task(schema, score, np.zeros((1, len(schema))), generator=Rounding(schema))
    session = Session(task, Budget(**budget))
    session.keep_scores = True
    return session


def anchors_of(session, n=300):
    latents = session.generator.sample_latents(n, np.random.default_rng(0))
    checked = session.check(session.generator.decode(latents))
    return Anchors.of(latents, checked, AS_DECIDED), checked


def walked(session, anchors, most=2_000.0):
    walk = Walk(session.schema)
    walk.add(session, anchors, np.random.default_rng(1))
    return list(walk.search(session, most))


def test_a_walk_flips_far_more_often_than_natural_rows_for_a_question():
    session = session_of()
    anchors, checked = anchors_of(session, 2_000)
    assert 0 < checked.flips.mean() < 0.005
    before = session.watch.questions
    found = [near for _, near in walked(session, anchors)]
    spent = session.watch.questions - before
    assert 2_000 <= spent < 2_000 + 2 * _edge._AT_ONCE[1]
    per_question = sum(near.flips.sum() for near in found) / spent
    assert per_question > 20 * checked.flips.sum() / checked.queries
    assert {near.origin for near in found} == {"edge"}


def test_a_row_is_checked_only_where_the_gap_of_its_anchor_reaches_over_the_edge():
    session = session_of()
    anchors, _ = anchors_of(session)
    found = walked(session, anchors)
    assert found
    for latents, near in found:
        of = (anchors.latents[None] == latents[:, None]).all(axis=2).argmax(axis=1)
        odds = _log_odds(near.scores)
        middle = (np.nanmin(odds, axis=1) + np.nanmax(odds, axis=1)) / 2
        # The middle of a linear model's scores moves as each of them does, so nothing is guessed.
        assert (np.abs(middle) <= 1.01 * _edge._NEAR * anchors.gap[of] + 1e-4).all()


def test_few_cells_of_an_anchor_change_and_no_row_is_asked_twice(monkeypatch):
    session = session_of()
    anchors, checked = anchors_of(session)
    asked, ask = [checked.rows], session.ask
    monkeypatch.setattr(session, "ask", lambda rows: (asked.append(rows.copy()), ask(rows))[1])
    found = walked(session, anchors)
    assert found
    for latents, near in found:
        of = (anchors.latents[None] == latents[:, None]).all(axis=2).argmax(axis=1)
        changed = near.rows != anchors.rows[of]
        assert (changed.sum(axis=1) <= _MOST_CHANGED).all()
        assert changed.any(axis=1).all()
        assert not changed[:, 4].any()
        assert ((near.rows >= SCHEMA.low) & (near.rows <= SCHEMA.high)).all()
    met = keys(SCHEMA, np.concatenate(asked))
    natural = keys(SCHEMA, checked.rows)
    twice_natural = len(natural) - len(np.unique(natural, axis=0))
    assert len(met) > 1_000
    assert len(met) - len(np.unique(met, axis=0)) == twice_natural


def test_rows_that_break_a_rule_are_not_asked(monkeypatch):
    rules = Rules(constraints=(("one", "x0 <= x1"), ("other", "x1 <= x2 + 40")))
    ruled = replace(SCHEMA, rules=rules)
    session = session_of(schema=ruled)
    rows = uniform(ruled, 2_000, np.random.default_rng(0))
    rows = rows[~session.find_broken(rows)]
    anchors = Anchors.of(rows, session.check(rows), AS_DECIDED)
    asked, ask = [], session.ask
    monkeypatch.setattr(session, "ask", lambda rows: (asked.append(rows.copy()), ask(rows))[1])
    walked(session, replace(anchors, latents=anchors.rows), most=500)
    assert sum(map(len, asked)) > 300
    assert not session.find_broken(np.concatenate(asked)).any()


def test_a_cell_at_the_end_of_its_range_has_fewer_steps_and_is_no_change_of_itself():
    session = session_of()
    anchors, _ = anchors_of(session)
    rows = anchors.rows.copy()
    rows[:, 0] = 2.0
    column, value, steps = _edge._step(SCHEMA, rows, np.random.default_rng(0))
    first = column[0] == 0
    assert sorted(set(steps[0][first])) == [-2, -1, 1, 2, 3, 5, 8]
    np.testing.assert_array_equal(value[0][first], 2 + steps[0][first])
    walk = Walk(SCHEMA)
    rows[:, 0] = 0.0
    walk.add(session, replace(anchors, rows=rows), np.random.default_rng(0))
    own = walk._grounds.value == np.take_along_axis(
        walk._grounds.start, walk._grounds.column, axis=1
    )
    assert own.any()
    assert walk._grounds.dead[own].all()


def test_all_that_is_measured_near_an_anchor_at_once_is_learned():
    session = session_of()
    walk = Walk(SCHEMA)
    walk.add(session, anchors_of(session)[0], np.random.default_rng(0))
    of = walk._grounds.column[0]
    one, other = (int(np.flatnonzero(of == column)[0]) for column in (0, 1))
    walk._learn(np.array([0, 0]), np.array([one, other]), np.array([0.3, 0.7]))
    assert walk._grounds.effect[0, one] == 0.3
    assert walk._grounds.effect[0, other] == 0.7


def test_rows_of_which_nothing_was_asked_are_no_anchors():
    session = session_of()
    rows = uniform(SCHEMA, 5, np.random.default_rng(0))
    checked = session.check(rows)
    closed = replace(checked, scores=np.full(checked.scores.shape, np.nan))
    assert not len(Anchors.of(rows, closed, AS_DECIDED))


def test_the_best_anchors_are_near_the_edge_for_their_gap():
    scores = np.array([[0.6, 0.7], [0.505, 0.53], [0.3, 0.3], [0.505, 0.53], [0.2, np.nan]])
    anchors = Anchors(np.arange(5.0)[:, None], np.arange(5.0)[:, None], scores)
    # The others have no gap, or the scores of one before. The first is farther off, but its gap is
    # more than four times as wide.
    assert anchors.best(4).rows.ravel().tolist() == [0, 1]
    same_gap = replace(anchors[:2], scores=np.array([[0.6, 0.61], [0.501, 0.5114]]))
    assert same_gap.best(1).rows.ravel().tolist() == [1]


def test_labels_alone_give_no_anchors():
    session = session_of(lambda rows: (NEARLY_FAIR.unchecked(rows) > 0.5).astype(float))
    anchors, _ = anchors_of(session)
    assert not len(anchors.best(10))
    assert not walked(session, anchors)


def test_a_budget_that_ends_on_the_way_ends_the_walk():
    session = session_of(max_queries=600 + 500)
    anchors, _ = anchors_of(session)
    assert walked(session, anchors)
    assert session.watch.questions == 1_100


def test_a_walk_ends_where_nothing_is_left_to_try():
    schema = schema_of((0, 4), (0, 4), (0, 1), protected=["x2"])
    model = Linear((0.3071, -0.2113, 0.0043), -0.1117)
    session = session_of(model.unchecked, schema)
    anchors, _ = anchors_of(session)
    walked(session, anchors, most=1e6)
    assert session.watch.questions == 2 * 25  # every key was checked before


def test_changes_that_do_nothing_are_not_tried_again():
    # Two columns matter; a plateau of the others would lead nowhere for ever.
    schema = schema_of(*[(0, 9)] * 8, (0, 1), protected=["x8"])
    model = Linear((0.3071, -0.2113, 0, 0, 0, 0, 0, 0, 0.0043), -0.4117)
    session = session_of(model.unchecked, schema)
    anchors, _ = anchors_of(session)
    walk = Walk(schema)
    walk.add(session, anchors, np.random.default_rng(1))
    list(walk.search(session, 3_000))
    grounds = walk._grounds
    known = ~np.isnan(grounds.unsure)
    moves = grounds.column < 2
    assert known[moves].mean() > 0.5
    assert grounds.dead[known & ~moves & (grounds.effect == 0)].mean() > 0.5
    assert not grounds.dead[moves & (np.abs(grounds.effect) > 0.01)].any()


def test_missing_cells_stay_or_come_from_neighbours():
    gappy = Column(name="gap", kind="numerical", low=0, high=9, step=1, missing=True)
    schema = Schema((gappy, *SCHEMA.columns)).protect(["x4"])
    weights = np.array((0.21, *NEARLY_FAIR.weights))

    def score(rows):
        return 1 / (1 + np.exp(-(np.nan_to_num(rows, nan=3.0) @ weights - 2.1)))

    session = session_of(score, schema)
    latents = session.generator.sample_latents(400, np.random.default_rng(0))
    rows = session.generator.decode(latents)
    rows[::2, 0] = np.nan
    anchors = Anchors.of(latents, session.check(rows), AS_DECIDED)
    found = np.concatenate([near.rows for _, near in walked(session, anchors)])
    assert np.isnan(found[:, 0]).any()
    assert not np.isnan(found[:, 1:]).any()


def test_what_is_usual_is_learned_by_column():
    usual = _Usual(3)
    first = usual.guess(np.array([0, 1]), np.array([0.0, 3.0]))
    assert first[0] > first[1] > 0
    usual.learn(np.array([0, 0, 1]), np.array([2.0, -4.0, 1.0]), np.array([0.02, 0.04, 5.0]))
    small, large, unknown = usual.guess(np.array([0, 1, 2]), np.ones(3))
    assert 0.01 < small < unknown < large
    assert usual.guess(np.array([0]), np.array([-5.0]))[0] == 5 * small
    np.testing.assert_allclose(usual.guess(np.array([1]), np.zeros(1)), first[0])


def test_guided_finds_rare_flips_sooner():
    task = Task(SCHEMA, NEARLY_FAIR.unchecked, np.zeros((1, 5)), generator=Rounding(SCHEMA))
    guided, plain = (
        run(method, task, Budget(max_queries=6_000), 0) for method in (Guided(), Natural())
    )
    assert len(guided.findings) > 10 * max(1, len(plain.findings))
    assert "edge" in set(guided.findings.all().origin)


def test_ordered_levels_are_stepped_through():
    schema = Schema(
        (
            integers("n", 0, 30),
            Column(name="o", kind="ordered", levels=tuple("abcdef")),
            integers("p", 0, 1),
        )
    ).protect(["p"])
    model = Linear((0.1171, -0.3113, 0.0043), -0.5117)
    session = session_of(model.unchecked, schema)
    anchors, _ = anchors_of(session)
    column, value, steps = _edge._draw_changes(session, anchors, np.random.default_rng(0))
    by_steps = (steps != 0) & (column == 1)
    assert by_steps.any()
    assert set(np.unique(value[by_steps])) <= set(range(6))
