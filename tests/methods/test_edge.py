"""Walks to the edge of a decision: changes are measured, added up, and land on the edge."""

import numpy as np

from limi.decisions import AS_DECIDED
from limi.methods._edge import _AT_ONCE, _CHANGES, Anchors, _count_before, walk
from limi.methods.guided import Guided
from limi.methods.natural import Natural
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import keys
from tests.toy import Linear, Rounding, schema_of

SCHEMA = schema_of((0, 90), (0, 90), (0, 40), (0, 9), (0, 1), protected=["x4"])
NEARLY_FAIR = Linear((0.03711, -0.05237, 0.07173, 0.21919, 0.0043), -1.30217)


def session_of(score=NEARLY_FAIR.unchecked, **budget):
    task = Task(SCHEMA, score, np.zeros((1, 5)), generator=Rounding(SCHEMA))
    session = Session(task, Budget(**budget))
    session.keep_scores = True
    return session


def anchors_of(session, n=300):
    latents = session.generator.sample_latents(n, np.random.default_rng(0))
    checked = session.check(session.generator.decode(latents))
    return Anchors.of(latents, checked, AS_DECIDED), checked


def test_walks_flip_far_more_often_than_natural_rows():
    session = session_of()
    anchors, checked = anchors_of(session, 2_000)
    assert checked.flips.mean() < 0.005
    found = [near for _, near in walk(session, anchors.best(10), np.random.default_rng(1))]
    assert len(found) > 1  # anchors that flip are gone on with
    assert found[0].flips.mean() > 20 * checked.flips.mean()
    assert {near.origin for near in found} == {"edge"}


def test_a_walk_changes_few_cells_of_its_anchor_and_stays_in_the_domain():
    session = session_of()
    best = anchors_of(session)[0].best(5)
    assert len(best) == 5
    for latents, near in walk(session, best, np.random.default_rng(1)):
        of = (best.latents[None] == latents[:, None]).all(axis=2).argmax(axis=1)
        changed = near.rows != best.rows[of]
        assert (changed.sum(axis=1) <= _AT_ONCE).all()
        assert not changed[:, 4].any()
        assert ((near.rows >= SCHEMA.low) & (near.rows <= SCHEMA.high)).all()
        assert len(np.unique(keys(SCHEMA, near.rows), axis=0)) == len(near)


def test_the_best_anchors_lack_least_in_parts_of_their_gap():
    scores = np.array([[0.6, 0.7], [0.505, 0.53], [0.3, 0.3], [0.505, 0.53], [0.2, np.nan]])
    anchors = Anchors(np.arange(5.0)[:, None], np.arange(5.0)[:, None], scores)
    assert anchors.best(4).rows.ravel().tolist() == [1, 0]  # the others have no gap, or are alike
    assert anchors.without(anchors.best(1)).rows.ravel().tolist() == [0, 2, 3, 4]


def test_labels_alone_give_no_anchors():
    session = session_of(lambda rows: (NEARLY_FAIR.unchecked(rows) > 0.5).astype(float))
    assert not len(anchors_of(session)[0].best(10))


def test_a_budget_that_ends_while_changes_are_measured_ends_the_walk():
    session = session_of(max_queries=600 + _CHANGES)
    best = anchors_of(session)[0].best(2)
    assert not list(walk(session, best, np.random.default_rng(1)))


def test_members_of_a_group_are_counted():
    assert _count_before(np.array([0, 0, 0, 2, 2, 5])).tolist() == [0, 1, 2, 0, 1, 0]
    assert not len(_count_before(np.zeros(0, dtype=int)))


def test_guided_finds_rare_flips_sooner():
    task = Task(SCHEMA, NEARLY_FAIR.unchecked, np.zeros((1, 5)), generator=Rounding(SCHEMA))
    guided, plain = (
        run(method, task, Budget(max_queries=6_000), 0) for method in (Guided(), Natural())
    )
    assert len(guided.findings) > 10 * max(1, len(plain.findings))
    assert "edge" in set(guided.findings.all().origin)
