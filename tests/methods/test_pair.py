"""Pairs: one method's seeds, another's search around them."""

import dataclasses

import numpy as np
import pytest

from limi import methods
from limi.errors import InvalidInput, MissingCapability
from limi.methods import Pair
from limi.methods._phases import two_phase
from limi.methods._seeds import cluster_rows
from limi.methods.adf import ADF
from limi.methods.eidig import EIDIG
from limi.methods.limi import LIMI
from limi.methods.real import Real
from limi.models import gradients
from limi.search.budget import Budget
from limi.search.check import Checked
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import uniform
from limi.testing.methods import CHECKS
from tests.networks import linear, target_of
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, Rounding, schema_of, task

WIDE = schema_of((0, 40), (0, 40), (-5, 5), (1, 5), (0, 1), protected=["x3", "x4"])
RULE = Linear((0.15, -0.2, 0.3, 0.5, 1.0), 0.175)
TARGET = target_of(WIDE, linear(RULE.weights, RULE.bias))

PAIRS = ["real+adf", "limi+eidig", "adf+maft", "themis+neuronfair"]
SETTINGS = {
    "real+adf": {"adf.exploit_steps": 30},
    "limi+eidig": {"limi.n_latents": 2000, "eidig.exploit_steps": 30, "n_seeds": 20},
    "adf+maft": {"adf.n_seeds": 40, "maft.exploit_steps": 30},
    "themis+neuronfair": {"n_seeds": 20, "neuronfair.exploit_steps": 30},
}


def make_task(**more):
    rows = uniform(WIDE, 300, np.random.default_rng(0))
    return task(WIDE, RULE, rows, generator=Rounding(WIDE), gradients=gradients.of(TARGET), **more)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_a_method(name, check):
    check(lambda: methods.parse(name, SETTINGS[name]), make_task)


@pytest.mark.parametrize("exploiter", ["adf", "eidig", "maft", "neuronfair"])
def test_limi_explores_for_every_gradient_method(exploiter):
    settings = {"limi.n_latents": 3000, f"{exploiter}.exploit_steps": 40, "n_seeds": 50}
    found = run(methods.parse(f"limi+{exploiter}", settings), make_task(), Budget(), 0).findings
    origins = list(found.all().origin)
    assert set(origins) == {"limi", "exploit"}
    assert origins.index("exploit") > 10
    assert origins.count("exploit") > 50


def test_parts_and_settings_are_read():
    pair = methods.parse(
        "limi+adf",
        ["n_seeds=7", "explore_rows=none", "limi.step=0.5", "adf.restart=never"],
    )
    assert pair == Pair(
        name="limi+adf",
        explorer=LIMI(step=0.5),
        exploiter=ADF(restart="never"),
        n_seeds=7,
        explore_rows=None,
    )
    assert methods.parse("real + eidig", {"eidig.preset": "inf"}).exploiter.update_every is None
    assert (
        methods.parse("adf+adf", {"adf.explore_steps": 3}).explorer
        == methods.parse("adf+adf", {"adf.explore_steps": 3}).exploiter
        == ADF(explore_steps=3)
    )
    assert dataclasses.asdict(pair)["exploiter"]["restart"] == "never"


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("limi+themis", {}, "'themis' cannot search around seeds.*adf"),
        ("limi+adf+eidig", {}, "3 parts"),
        ("limi+", {}, "parts"),
        ("limi+adff", {}, "did you mean 'adf'"),
        ("nothing+adf", {}, "unknown method 'nothing'"),
        ("limi+adf", {"exploit_steps": 3}, "no setting 'exploit_steps'.*n_seeds.*adf."),
        ("limi+adf", {"eidig.decay": 0.1}, "no setting 'eidig.decay'"),
        ("limi+adf", {"adf.steps": 3}, "'adf' has no setting 'steps'"),
        ("limi+adf", {"n_seeds": 0}, "at least 1"),
        ("limi+adf", ["n_seeds=many"], "must be of type int"),
    ],
)
def test_what_cannot_be_paired_is_said(name, settings, words):
    with pytest.raises(InvalidInput, match=words):
        methods.parse(name, settings)


def test_a_pair_needs_what_its_parts_need():
    pair = methods.parse("limi+neuronfair")
    assert pair.needs == {"generator", "neurons"}
    with pytest.raises(MissingCapability, match=r"generator.*neurons|neurons.*generator"):
        run(pair, task(), Budget(), 0)
    assert methods.parse("real+adf").needs == frozenset()
    assert pair.population is None


@dataclasses.dataclass(frozen=True)
class Recording:
    """An exploiter that keeps the seeds it is given."""

    given: list[Checked]
    needs = frozenset()

    def exploit(self, session, seeds, rng):
        self.given.append(seeds)
        return iter(())


def explored(n_seeds, explore_rows=None, explorer=None):
    recording = Recording([])
    here = task(SCHEMA, MODEL)
    pair = Pair(
        name="x+y",
        explorer=explorer or Real(),
        exploiter=recording,
        n_seeds=n_seeds,
        explore_rows=explore_rows,
    )
    ran = run(pair, here, Budget(), 0)
    return ran, recording.given


def test_seeds_are_the_first_distinct_flips():
    ran, (seeds,) = explored(4)
    found = ran.findings.all()
    np.testing.assert_array_equal(seeds.rows, found.rows[:4])
    assert seeds.flips.all()
    _, (seeds,) = explored(100)
    assert {tuple(row[:2]) for row in seeds.rows} == FLIPPING


def test_exploring_ends_with_enough_seeds_or_rows():
    class Slow:
        needs = frozenset()
        population = None

        def search(self, session, rng):
            for row in session.rows:
                yield session.check(row[None], origin="slow")

    ran, (seeds,) = explored(2, explorer=Slow())
    assert len(seeds) == 2
    assert ran.findings.rows_checked < 50
    ran, given = explored(100, explore_rows=11, explorer=Slow())
    assert ran.findings.rows_checked == 11
    assert len(given[0]) == len(ran.findings)


@pytest.mark.parametrize(("n_seeds", "explore_rows"), [(7, 4_000), (50, 4_000), (10_000, 333)])
def test_limi_explores_no_row_and_keeps_no_seed_beyond_what_is_asked_for(n_seeds, explore_rows):
    """The rows of LIMI alone, up to the one that brings the last seed."""
    alone = LIMI(n_latents=3_000, boundary="random")
    recording = Recording([])
    pair = Pair(
        name="limi+y",
        explorer=alone,
        exploiter=recording,
        n_seeds=n_seeds,
        explore_rows=explore_rows,
    )
    here = make_task()
    ran = run(pair, here, Budget(max_rows=9_000), 0)
    explore_rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0,))).spawn(2)[0]
    plain = Session(make_task(), Budget(max_rows=explore_rows))
    met = Checked.join([b for b in alone.explore(plain, explore_rng) if len(b)])
    n = min(explore_rows, len(met))
    flips = np.flatnonzero(met.flips[:n])[:n_seeds]
    if len(flips) == n_seeds:
        n = int(flips[-1]) + 1
    assert ran.findings.rows_checked == n
    np.testing.assert_array_equal(ran.findings.all().rows, met.rows[flips])
    np.testing.assert_array_equal(recording.given[0].rows, met.rows[flips])
    assert ran.session.rows_left == 9_000 - n
    assert ran.session.watch.questions <= 10 * explore_rows


def test_without_seeds_nothing_is_exploited():
    recording = Recording([])
    blind = Linear((1.0, -1.0, 0.0), -0.5)
    ran = list(
        two_phase(
            Session(task(SCHEMA, blind)), Real(), recording, np.random.default_rng(0), n_seeds=5
        )
    )
    assert sum(len(checked) for checked in ran) == 50
    assert recording.given == []


def test_seeds_bring_their_partners_to_the_exploiter():
    here = make_task()
    pair = Pair(name="real+eidig", explorer=Real(), exploiter=EIDIG(exploit_steps=5))
    found = run(pair, here, Budget(), 3).findings.all()
    assert ((here.score(found.rows) > 0.5) != (here.score(found.partner) > 0.5)).all()


def test_seeds_of_tables_with_few_different_rows():
    for rows in (np.tile([[1.0, 2.0, 0.0]], (10, 1)), np.repeat(np.eye(3), 5, axis=0)):
        for shuffled in (False, True):
            rng = np.random.default_rng(0)
            seeds = cluster_rows(task(SCHEMA, MODEL, rows), rng, n=4, shuffled=shuffled)
            assert len(seeds) == 4
            assert {tuple(row) for row in seeds} == {tuple(row) for row in rows}


def test_shuffled_seeds_come_from_each_cluster_in_turn():
    rows = np.repeat([[0.0, 0, 0], [4, 4, 0]], 50, axis=0)
    rows[::2, 2] = 1
    drawn = [
        cluster_rows(
            task(SCHEMA, MODEL, rows), np.random.default_rng(seed), n=20, clusters=2, **more
        )
        for seed in (0, 1)
        for more in ({}, {"shuffled": True})
    ]
    for seeds in drawn:
        assert (seeds[:, 0] == 0).sum() == 10
    np.testing.assert_array_equal(drawn[0][:, 2], np.repeat([1, 0] * 5, 2))
    assert not np.array_equal(drawn[1], drawn[3])
