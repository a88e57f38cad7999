"""A model that answers by chance: findings carry both chances, and noise is told beside rates."""

import numpy as np
import pytest

from limi import Remote, audit
from tests.remote.servers import App, favorable_chance, people, serving

GIVEN = {
    "protected": "sex",
    "target": "ok",
    "method": "themis",
    "generator": None,
    "rate_rows": 50,
    "seed": 0,
    "max_queries": 3000,
}


def by_chance(effect, seed=0):
    """Male cooks have a better chance, by so much."""
    rng = np.random.default_rng(seed)

    def model(frame):
        cooks = ((frame["sex"] == "m") & (frame["job"] == "cook")).to_numpy()
        chance = np.clip(favorable_chance(frame.assign(sex="f")) + effect * cooks, 0, 1)
        return (rng.random(len(frame)) < chance).astype(float)

    return model


@pytest.fixture(scope="module")
def table():
    return people()


def test_a_noisy_model_that_ignores_the_column_has_no_findings(table):
    result = audit(by_chance(0.0), table, **GIVEN, noisy=True)
    assert result.summary.noise["pairs"] > 100
    assert len(result.found) == 0
    assert any("noise floor" in note for note in result.summary.notes)


def test_findings_have_both_chances_with_their_intervals(table):
    result = audit(by_chance(0.8), table, **GIVEN, noisy=True)
    found = result.findings
    assert len(found) >= 5
    assert (found["job"] == "cook").mean() > 0.9
    for side in ("chance", "partner_chance"):
        assert (found[f"{side}_low"] <= found[side]).all()
        assert (found[side] <= found[f"{side}_high"]).all()
    cooks = found[found["job"] == "cook"]
    better = cooks["chance"] > cooks["partner_chance"]
    assert (better == (cooks["sex"] == "m")).mean() > 0.9
    noise = result.summary.noise
    assert noise["error"] == 0.05
    assert 0 < noise["floor"]["low"] < noise["floor"]["estimate"] < noise["floor"]["high"] < 1


def test_noise_behind_an_address_is_noticed_and_paid_for_within_the_budget(table, tmp_path):
    app = App(by_chance(0.8))
    given = {**GIVEN, "remote": Remote(cache=tmp_path / "cache")}
    with serving(app) as address:
        first = audit(f"mlflow:{address}", table, **given)
        asked = app.asked
        again = audit(f"mlflow:{address}", table, **given)
    assert first.summary.noise["shown"] == len(first.found) > 0
    assert asked == first.summary.remote["rows_sent"] <= 3000
    assert app.asked == asked  # even chance answers the same from the cache
    assert np.array_equal(again.found.chances, first.found.chances)


def price(effect, noise, seed=0):
    """Men pay more, by so much; the answer moves by the noise."""
    rng = np.random.default_rng(seed)

    def model(frame):
        men = (frame["sex"] == "m").to_numpy()
        return 200.0 + frame["age"] + effect * men + noise * rng.normal(size=len(frame))

    return model


@pytest.mark.parametrize("decision", ["difference > 10", "difference > 5 %", "bands = 230, 260"])
def test_noisy_prices_are_judged_by_their_own_rule(table, decision):
    given = GIVEN | {"target": None, "decision": decision, "noisy": True}
    table = table.drop(columns="ok")
    unfair = audit(price(40.0, 2.0), table, **given)
    assert unfair.summary.rates["real"].estimate > 0.4
    assert len(unfair.found) == unfair.summary.noise["shown"] > 5
    fair = audit(price(0.0, 20.0), table, **given)
    assert fair.summary.noise["pairs"] > 50
    assert len(fair.found) <= 0.1 * fair.summary.noise["pairs"]
    floor = fair.summary.noise["floor"]
    rate = fair.summary.rates["real"]
    assert floor["estimate"] > 0.1
    assert floor["low"] < rate.high
    assert rate.low < floor["high"]
