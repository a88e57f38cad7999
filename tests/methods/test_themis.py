"""THEMIS: its scores, and when it stops."""

import numpy as np
import pandas as pd
import pytest

import limi
from limi.methods.themis import Themis
from limi.metrics.individual import clopper_pearson
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.table.rows import uniform
from tests.toy import WIDE, WIDE_MODEL, Linear, task, wide_task


def test_themis_scores_do_not_depend_on_the_kind_of_budget():
    table = pd.DataFrame({"group": np.arange(60) % 3, "a": np.arange(60) % 30})
    given = {"protected": ["group"], "method": "themis", "generator": None, "rate_rows": 0}

    def follows(asked):
        return (asked["group"] == 2).to_numpy() * 1.0

    for budget in ({"max_rows": 2_000}, {"max_queries": 3_000, "max_rows": None}):
        scores = limi.audit(follows, table, **given, **budget).summary.scores
        assert scores["group_discrimination"] == 1.0


def test_themis_finds_all_nine_points_and_their_share():
    ran = run(Themis(), task(), Budget(max_rows=100_000), 0)
    assert len(ran.findings) == 9
    scores = Themis().scores(ran.findings)
    assert abs(scores["causal_discrimination"] - 0.36) < 0.0061
    # Favorable for bit 1 exactly where x0 - x1 + 1 > 0, for bit 0 where x0 - x1 - 1 > 0.
    assert abs(scores["group_discrimination"] - (15 - 6) / 25) < 0.01


def test_themis_scores_at_the_extremes():
    ignores = Linear((1.0, -1.0, 0.0), -0.5)
    follows = Linear((0.0, 0.0, 2.0), -1.0)
    for model, expected in ((ignores, 0.0), (follows, 1.0)):
        ran = run(Themis(), task(model=model), Budget(max_rows=5_000), 0)
        scores = Themis().scores(ran.findings)
        assert scores["causal_discrimination"] == expected
        assert scores["group_discrimination"] == expected


def test_themis_stops_when_its_error_bound_is_met():
    method = Themis(margin=0.02, confidence=0.95)
    ran = run(method, wide_task(), Budget(), 0)
    assert ran.stop == Stop.EXHAUSTED
    n = ran.findings.rows_checked
    low, high = clopper_pearson(ran.findings.flips, n, 0.95)
    assert (high - low) / 2 < 0.02
    low, high = clopper_pearson(ran.findings.flips, n - 4096, 0.95)
    assert n == 4096 or (high - low) / 2 >= 0.02


@pytest.mark.parametrize(("margin", "seed"), [(0.3, 0), (0.05, 0), (0.05, 1), (0.014, 2)])
def test_the_released_bound_is_looked_at_after_every_row(margin, seed):
    method = Themis(margin=margin, bound="normal", min_samples=12)
    here = wide_task()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    flips = check_rows(WIDE_MODEL, WIDE, uniform(WIDE, 20_000, rng)).flips
    n = hits = 0
    while n <= 12 or method.error_bound(hits, n) >= margin:
        hits += flips[n]
        n += 1
    ran = run(method, here, Budget(max_rows=50_000), seed)
    assert (ran.findings.rows_checked, ran.findings.flips) == (n, hits)
    assert ran.stop == Stop.EXHAUSTED
    assert ran.session.rows_left == 50_000 - n
    assert ran.findings.favorable.max() <= n


def test_the_released_bound_is_as_published():
    # Rows needed for a half-width: one-sided quantile, from the dossier.
    published = Themis(bound="normal", confidence=0.99)
    assert published.error_bound(2537, 10_148) < 0.01 < published.error_bound(2530, 10_120)
    published = Themis(bound="normal", confidence=0.98)
    assert published.error_bound(95, 950) < 0.02 < published.error_bound(94, 940)
    # Its known defect: no flip seen means no error at all. The exact bound knows better.
    assert published.error_bound(0, 11) == 0
    assert Themis().error_bound(0, 11) > 0.1
