"""What the paper measures, against a count by hand."""

import numpy as np

from lab.yardstick import Yardstick
from limi.repairs import groups
from tests.naive import repair as naive
from tests.repairs.small import people, problem


class Anyone:
    """A generator of the table's own rows."""

    kind = "anyone"

    def __init__(self, rows):
        self.rows = rows

    def sample_latents(self, n, rng):
        return rng.integers(0, len(self.rows), n)

    def decode(self, latents):
        return self.rows[latents]


def test_figures_agree_with_a_count_by_hand():
    one = problem()
    rng = np.random.default_rng(0)
    stick = Yardstick.make(one, groups(one), Anyone(one.rows), 200, rng)
    found = stick.measure(one.target, np.arange(200))
    frame = people()[:200]
    decided = (frame["income"] + 2 * (frame["sex"] == "M") > 5.5).to_numpy()
    truth, male = (frame["ok"] == "yes").to_numpy(), (frame["sex"] == "M").to_numpy()
    assert found["accuracy"] == (decided == truth).mean()
    # Incomes 4 and 5 are decided by sex alone.
    names = {"if_o": stick.real, "if_r": stick.uniform, "if_n": stick.natural}
    for name, rows in names.items():
        assert found[name] == np.isin(rows[:, one.schema.position("income")], [4, 5]).mean()
    np.testing.assert_allclose(found["spd"], abs(decided[male].mean() - decided[~male].mean()))
    np.testing.assert_allclose(found["aod"], naive.average_odds_gap(decided, truth, male))
