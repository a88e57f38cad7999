"""Lines across the edge: rows one step apart that a model of labels alone decides otherwise."""

import numpy as np
import pytest

from limi.methods._lines import _HOPS, Lines
from limi.methods.guided import Guided
from limi.methods.natural import Natural
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.rows import keys
from limi.table.rules import Derived, Rules
from limi.table.schema import Column, Schema
from tests.methods.test_edge import NEARLY_FAIR, SCHEMA
from tests.toy import Linear, Rounding, integers, schema_of


def label(rows):
    return (NEARLY_FAIR.unchecked(rows) > 0.5).astype(float)


def session_of(score=label, schema=SCHEMA, **budget):
    task = Task(schema, score, np.zeros((1, len(schema))), generator=Rounding(schema))
    session = Session(task, Budget(**budget))
    session.keep_scores = True
    return session


def natural(session, n=60):
    latents = session.generator.sample_latents(n, np.random.default_rng(0))
    return latents, session.generator.decode(latents)


def searched(session, n=60):
    latents, rows = natural(session, n)
    lines = Lines(session.schema)
    return rows, list(lines.search(session, latents, rows, np.random.default_rng(1)))


def test_the_rows_of_a_line_are_one_step_apart_and_decided_otherwise():
    session = session_of()
    _, found = searched(session)
    first = found[0][1].rows
    near, far = first[: len(first) // 2], first[len(first) // 2 :]
    apart = np.abs(near - far)
    assert len(near) > 30
    assert (apart.max(axis=1) == 1).all()
    assert ((apart > 0).sum(axis=1) == 1).all()
    assert (label(near) != label(far)).all()


def test_few_cells_of_a_natural_row_change_and_none_that_is_protected():
    session = session_of()
    start, found = searched(session)
    latents, _ = natural(session)
    asked = np.concatenate([checked.rows for _, checked in found])
    of = np.concatenate([(at[:, None] == latents).all(axis=2).argmax(axis=1) for at, _ in found])
    changed = asked != start[of]
    assert len(found) == _HOPS
    assert (changed.sum(axis=1) <= _HOPS).all()
    assert not changed[:, 4].any()
    assert ((asked >= SCHEMA.low) & (asked <= SCHEMA.high)).all()
    assert len(np.unique(keys(SCHEMA, asked), axis=0)) == len(asked)


def test_a_model_that_decides_all_alike_has_no_edge():
    assert searched(session_of(lambda rows: np.zeros(len(rows))))[1] == []


@pytest.mark.parametrize("queries", [10, 100, 300])
def test_a_budget_that_ends_on_the_way_ends_the_lines(queries):
    session = session_of(max_queries=queries)
    searched(session)
    assert session.queries_left >= 0
    assert session.watch.questions <= queries


def test_missing_cells_and_categories_lie_on_no_line():
    columns = (
        Column(name="x", kind="numerical", low=0, high=9, step=1, missing=True),
        Column(name="kind", kind="categorical", levels=("a", "b", "c")),
        integers("sex", 0, 1),
    )
    schema = Schema(columns).protect(["sex"])
    session = session_of(lambda rows: (rows[:, 1] > 0).astype(float), schema)
    rows = np.array([[np.nan, 0.0, 0.0], [3.0, 1.0, 1.0]])
    assert not list(Lines(schema).search(session, rows, rows, np.random.default_rng(0)))
    only = Schema(columns[1:]).protect(["sex"])
    assert Lines(schema).exist
    assert not Lines(only).exist


def test_a_number_without_steps_is_halved_to_a_small_part_of_its_range():
    columns = (
        Column(name="x", kind="numerical", low=0, high=10),
        integers("sex", 0, 1),
    )
    schema = Schema(columns).protect(["sex"])
    session = session_of(lambda rows: (rows[:, 0] > np.pi).astype(float), schema)
    rows = np.array([[1.0, 0.0], [9.0, 1.0]])
    ((_, first), *_) = Lines(schema).search(session, rows, rows, np.random.default_rng(0))
    assert np.abs(first.rows[:, 0] - np.pi).max() < 10 / (1 << 15)


def test_guided_finds_rare_flips_of_labels_sooner():
    task = Task(SCHEMA, label, np.zeros((1, 5)), generator=Rounding(SCHEMA))
    guided, plain = (
        run(method, task, Budget(max_queries=6_000), 0) for method in (Guided(), Natural())
    )
    assert len(guided.findings) > 5 * max(1, len(plain.findings))
    assert "edge" in set(guided.findings.all().origin)


def test_labels_that_never_change_leave_guided_with_its_rounds():
    schema = schema_of((0, 60), (0, 60), (0, 1), protected=["x2"])
    model = Linear((0.0, 0.0, 0.0), -1.0)
    task = Task(
        schema,
        lambda rows: (model.unchecked(rows) > 0.5).astype(float),
        np.zeros((1, 3)),
        generator=Rounding(schema),
    )
    ran = run(Guided(), task, Budget(max_queries=2_000), 0)
    assert ran.queries > 1_900
    assert not len(ran.findings)


def test_derived_cells_go_along_with_what_they_are_derived_from():
    bands = Derived(column="band", sources=("age",), steps=(25, 46), values=(0, 1, 2))
    columns = (integers("sex", 0, 1), integers("age", 0, 99), integers("band", 0, 2))
    schema = Schema(columns, rules=Rules(derived=(bands,))).protect(["sex"])
    session = session_of(lambda rows: (rows[:, 1] + 3 * rows[:, 0] > 60.2).astype(float), schema)
    _, found = searched(session)
    rows = np.concatenate([checked.rows for _, checked in found])
    assert len(rows)
    assert np.array_equal(rows, schema.enforcer.complete(rows))


def test_a_range_of_few_numbers_is_halved_until_none_lies_between():
    narrow = Column(name="x", kind="numerical", low=1e6, high=1e6 + 1e-7)
    schema = Schema((integers("sex", 0, 1), narrow)).protect(["sex"])
    session = session_of(lambda rows: (rows[:, 1] > 1e6 + 5e-8).astype(float), schema)
    assert searched(session, 20)[1]
