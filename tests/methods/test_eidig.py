"""EIDIG: its worked paths, its twin, how often it reads gradients, and how walks restart."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from limi import methods
from limi.errors import InvalidInput
from limi.methods import _gradient
from limi.methods.adf import ADF
from limi.methods.eidig import EIDIG
from limi.search.budget import Budget
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import uniform
from tests.naive import eidig as naive
from tests.naive.check import key
from tests.networks import balanced, linear, white
from tests.toy import FLIPPING, MODEL, SCHEMA, schema_of

TEN = schema_of((0, 10), (0, 10), (0, 1), protected=["x2"])
WIDE = schema_of((0, 9), (-4, 4), (0, 6), (1, 5), (0, 1), protected=["x3", "x4"])


def path(method, here):
    return [
        int(checked.rows[0, 0])
        for checked in method.explore(Session(here), np.random.default_rng(0))
    ]


def swinging():
    return white(TEN, linear([1.0, 1.0, 0.5], -9.25), [[2, 2, 0]])


def wide_task(seed, n=4):
    rng = np.random.default_rng(seed)
    return white(WIDE, balanced(rng, WIDE, 8, 6), uniform(WIDE, n, rng))


def seed_of(here):
    checked = Session(here).check(uniform(here.schema, 2000, np.random.default_rng(0)))
    return checked[checked.flips][:1]


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_little_momentum_swings_for_ever(decay):
    assert path(EIDIG(decay=decay), swinging()) == [2, 3, 4, *[5, 4] * 4]


def test_the_worked_path_with_much_momentum():
    assert path(EIDIG(decay=0.9), swinging()) == [2, 3, 4, 5, 5, 4, 4, 5, 5, 4, 4]


def test_the_row_after_the_last_move_is_checked():
    here = white(TEN, linear([1.0, 1.0, 0.5], -10.25), [[2, 2, 0]])
    assert path(EIDIG(explore_steps=3), here) == [2, 3, 4, 5]
    assert len(run(EIDIG(explore_steps=3, exploit_steps=1), here, Budget(), 0).findings) >= 1


@pytest.mark.parametrize("seed", range(5))
def test_without_momentum_it_explores_as_the_paper_s_adf(seed):
    here = wide_task(seed)
    walks = [
        [batch.rows for batch in method.explore(Session(here), np.random.default_rng(seed))]
        for method in (EIDIG(decay=0.0), ADF(fallback="none"))
    ]
    # EIDIG takes seeds in random order, ADF in the table's.
    assert len(walks[0]) == len(walks[1])
    for mine, theirs in zip(*walks, strict=True):
        assert sorted(map(tuple, mine)) == sorted(map(tuple, theirs))


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(6))
def test_exploring_in_lock_step_is_the_loop_row_by_row(seed):
    here = wide_task(seed)
    batches = list(EIDIG(decay=0.7).explore(Session(here), np.random.default_rng(0)))
    slope = here.gradients.output_gradient
    walks = [naive.explore(here.score, slope, WIDE, row, 10, 0.7) for row in batches[0].rows]
    for step, checked in enumerate(batches):
        expected = [walked[step] for walked, _ in walks if step < len(walked)]
        np.testing.assert_array_equal(checked.rows, expected)
    assert {key(WIDE, w[-1]) for w, flips in walks if flips} == {
        key(WIDE, row) for batch in batches for row in batch.rows[batch.flips]
    }


@pytest.mark.kernels
@pytest.mark.parametrize("update_every", [1, 5, None])
@pytest.mark.parametrize("seed", range(4))
def test_a_walk_is_the_twin_s(seed, update_every):
    here = wide_task(seed + 20)
    seeds = seed_of(here)
    method = EIDIG(exploit_steps=30, update_every=update_every)
    walked = list(method.exploit(Session(here), seeds, np.random.default_rng(seed)))
    expected = naive.exploit(
        here.score,
        here.gradients.output_gradient,
        WIDE,
        seeds.rows[0],
        30,
        update_every,
        np.random.default_rng(seed),
    )
    for checked, (row, flips) in zip(walked, expected, strict=True):
        np.testing.assert_array_equal(checked.rows[0], row)
        assert bool(checked.flips[0]) == flips


def test_the_partner_is_the_end_with_the_larger_squared_difference():
    schema = schema_of((0, 9), (1, 9), protected=["x1"])
    here = white(schema, linear([1.0, 0.4], -6.5), [[0, 5]])
    rows = np.array([[0.0, 5.0], [9.0, 5.0]])
    checked = Session(here).check(rows)
    assert not checked.flips.any()
    for row, partner in zip(rows, checked.partner, strict=True):
        ends = np.array([[row[0], end] for end in range(1, 10)])
        gap = (here.score(ends) - here.score(row[None])) ** 2
        assert partner[1] == ends[gap.argmax(), 1]


@dataclass
class Counting:
    """Counts the rows whose gradient was asked for."""

    inner: Any
    asked: list[int] = field(default_factory=list)

    def output_gradient(self, rows):
        self.asked.append(len(rows))
        return self.inner.output_gradient(rows)

    loss_gradient = output_gradient
    layers = ()


def counted(update_every, *, always):
    """Steps after which gradients were read, on a model where everything or only the seed flips."""
    schema = schema_of((0, 40), (0, 40), (0, 1), protected=["x2"])
    weights = [0.0, 0.0, 1.0] if always else [1.0, 1.0, 0.5]
    here = white(schema, linear(weights, -0.5 if always else -40.25), [[20, 20, 0]])
    counting = Counting(here.gradients)
    here = replace(here, gradients=counting)
    seeds = Session(here).check(np.array([[20.0, 20.0, 0.0]]))
    assert seeds.flips.all()
    method = EIDIG(exploit_steps=20, update_every=update_every)
    read = []
    for step, _ in enumerate(method.exploit(Session(here), seeds, np.random.default_rng(0))):
        read += [step] * len(counting.asked)
        counting.asked.clear()
    return read


def test_gradients_are_read_once_a_seed_or_after_flips_in_a_row():
    assert counted(None, always=True) == [0, 0]  # of the row and of its partner
    assert counted(5, always=True) == [0, 0, 5, 5, 10, 10, 15, 15]
    assert counted(5, always=False) == [0, 0]  # a failure brings the seed's own chances back


def test_a_walk_stays_as_near_its_seed_as_it_flipped_in_a_row():
    here = wide_task(21)
    seeds = seed_of(here)
    in_a_row = 0
    for checked in EIDIG(exploit_steps=200).exploit(Session(here), seeds, np.random.default_rng(0)):
        distance = np.abs(checked.rows - seeds.rows).sum()
        in_a_row = in_a_row + 1 if checked.flips[0] else 0
        if checked.flips[0]:
            assert distance <= in_a_row


def test_every_finding_is_checked_and_in_the_domain():
    here = wide_task(22, n=60)
    found = run(EIDIG(exploit_steps=30), here, Budget(), 0).findings.all()
    assert len(found) > 30
    assert check_rows(here.score, WIDE, found.rows).flips.all()
    assert (found.rows >= WIDE.low).all()
    assert (found.rows <= WIDE.high).all()


@pytest.mark.parametrize("restart", ["reset_to_seed", "metropolis", "never"])
def test_all_nine_points_are_found(restart):
    here = white(SCHEMA, linear(MODEL.weights, MODEL.bias), [[2, 2, 0], [0, 4, 1]])
    ran = run(EIDIG(restart=restart, exploit_steps=3000), here, Budget(max_findings=9), 1)
    assert {tuple(row[:2]) for row in ran.findings.all().rows} == FLIPPING


def test_confidence_is_of_the_decision_taken():
    here = white(TEN, linear([1.0, -2.0, 0.5], -0.3), [[0, 0, 0]])
    rows = np.array([[9.0, 0.0, 1.0], [0.0, 9.0, 0.0]])
    slope = _gradient.confidence(here.gradients, rows, here.score(rows))
    np.testing.assert_array_equal(np.sign(slope), [[1, -1, 1], [-1, 1, -1]])


def test_settings():
    assert methods.parse("eidig", ["update_every=none"]) == EIDIG(update_every=None)
    assert methods.parse("eidig", ["preset=inf"]).update_every is None
    with pytest.raises(InvalidInput, match="update_every is 0"):
        EIDIG(update_every=0)
