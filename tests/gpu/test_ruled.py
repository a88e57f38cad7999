"""Rules on a device: the same keys, verdicts and searches as in arrays, on torch's CPU device."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from limi.gpu import place as device
from limi.gpu.verdicts import Packing
from limi.methods.limi import LIMI
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.task import Task
from limi.table.partners import change
from limi.table.rows import group, keys, uniform
from limi.table.rules import Derived, Role, Rules
from limi.table.schema import Schema
from tests.gpu.test_verdicts import Tensors, told
from tests.networks import linear, target_of
from tests.toy import integers

RULES = Rules(
    constraints=(
        ("sum", "x0 + x1 <= 90"),
        ("none", "x4 == 1 implies x2 >= 2"),
        ("band", "x5 == 2 implies x2 != 7"),
    ),
    derived=(Derived(column="x5", sources=("x3",), steps=(2, 4), values=(0, 1, 2)),),
    roles=(Role(protected="x4", column="x2", things=(((0, 3), (1, 5)), ((0, 8), (1, 9)))),),
)
COLUMNS = tuple(
    integers(f"x{i}", low, high)
    for i, (low, high) in enumerate([(0, 60), (0, 60), (0, 12), (1, 6), (0, 1), (0, 2)])
)
ONE = Schema(COLUMNS, rules=RULES).protect(["x4"])
TWO = Schema(COLUMNS, rules=RULES).protect(["x3=1,3,6", "x4"])
MODEL = linear((0.125, -0.0625, 0.0625, 0.25, 1.0, -0.25), -1.53125)


@dataclass(frozen=True)
class Completed(Tensors):
    """The toys' generator, with derived cells computed."""

    def decode(self, latents):
        return self.schema.enforcer.complete(super().decode(latents))


def test_words_tell_rows_apart_as_keys_do():
    for schema in (ONE, TWO):
        rows = schema.enforcer.complete(uniform(schema, 3000, np.random.default_rng(0)))
        rows[:, :2] = rows[:, :2] // 30
        words = Packing.of(schema, torch.device("cpu")).words(torch.tensor(rows)).numpy()
        np.testing.assert_array_equal(told(words), told(keys(schema, rows)))


@pytest.mark.parametrize("rule", ["widest", "first"])
@pytest.mark.parametrize("schema", [ONE, TWO], ids=["one", "two"])
def test_verdicts_are_those_of_the_oracle(schema, rule):
    target = target_of(schema, MODEL)
    here = device.join_on_device(target, Completed(schema))
    rows = schema.enforcer.complete(uniform(schema, 400, np.random.default_rng(1)))
    rows = rows[group(keys(schema, rows))[0]]
    expected = check_rows(target.score, schema, rows, partner=rule)
    asked = []
    found = here.check(torch.tensor(rows), asked.append, 50, rule)
    assert found.queries == sum(asked) == expected.queries
    assert found.closed == expected.closed > 0
    assert found.alone == (~expected.is_paired).sum()
    np.testing.assert_array_equal(found.flips.numpy(), expected.flips)
    np.testing.assert_allclose(found.score.numpy(), expected.score, rtol=1e-9)
    np.testing.assert_allclose(found.partner_score.numpy(), expected.partner_score, rtol=1e-9)
    np.testing.assert_array_equal(change(schema, rows, found.partner.numpy()), expected.partner)
    if len(expected.causes):
        np.testing.assert_array_equal(found.causes.numpy(), expected.causes)


@pytest.mark.parametrize("budget", [Budget(), Budget(max_rows=150)], ids=["all", "rows"])
@pytest.mark.parametrize("schema", [ONE, TWO], ids=["one", "two"])
def test_a_search_on_the_device_finds_what_arrays_find_and_nothing_that_breaks_a_rule(
    schema, budget
):
    target, generator = target_of(schema, MODEL), Completed(schema)
    plain = Task(schema, target.score, np.zeros((1, len(schema))), generator=generator)
    there = replace(plain, on_device=device.join_on_device(target, generator))
    method = LIMI(n_latents=700, n_labelled=300, per_class=300)
    expected, mine = (run(method, task, budget, 5) for task in (plain, there))
    ours, theirs = mine.findings.all(), expected.findings.all()
    assert mine.findings.rows_checked == expected.findings.rows_checked
    assert len(ours) > 9
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.partner, theirs.partner)
    for rows in (ours.rows, ours.partner):
        assert not schema.enforcer.breaks(rows).any()
        assert not schema.enforcer.disagrees(rows).any()
    assert expected.session.refused > 0
