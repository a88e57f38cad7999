"""THEMIS: its scores, and when it stops."""

import numpy as np
import pandas as pd

import limi
from limi.methods.themis import Themis
from limi.metrics.individual import clopper_pearson
from limi.search.budget import Budget, Stop
from limi.search.engine import run
from tests.toy import Linear, task, wide_task


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
