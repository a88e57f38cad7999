"""Who is privileged: as a user names it, or by one rule for metrics and repairs alike."""

import numpy as np
import pandas as pd
import pytest

import limi
from limi.errors import InvalidInput
from limi.metrics import collect, privileged
from limi.metrics._base import Decided
from limi.metrics.group_lines import group_lines
from limi.repairs import groups
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="age", kind="numerical", low=18, high=90, step=1),
        Column(name="race", kind="categorical", levels=("White", "Black", "Asian")),
        Column(name="debt", kind="numerical", low=-1.0, high=1.0),
        Column(name="hours", kind="numerical", low=0, high=80, step=1),
    )
).protect(["age=18-90:9", "race", "debt=-1-1:0.5"])


@pytest.mark.parametrize(
    ("stated", "inside", "outside"),
    [
        ("age=30-90", (30, 90), (29, 18)),
        ("age=30-50:10", (30, 40, 50), (35,)),
        ("age=30", (30,), (29, 31)),
        ("debt=-0.5-1e-1", (-0.5, 0.05), (-0.6, 0.2)),
        ("race=White, Asian", (0, 2), (1,)),
        ({"race": "Black"}, (1,), (0, 2)),
        ({"race": ["Black"]}, (1,), (0, 2)),
        ({"age": 30}, (30,), (31,)),
    ],
)
def test_a_group_is_named_by_values_or_by_a_range(stated, inside, outside):
    (split,) = privileged.parse(SCHEMA, stated).values()
    assert all(split.holds(code) for code in inside)
    assert not any(split.holds(code) for code in outside)
    cells = np.array([*inside, *outside, np.nan], dtype=float)
    assert split.mask(cells).tolist() == [True] * len(inside) + [False] * (len(outside) + 1)
    assert split.why == "it was stated"


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ("age=1.2.3-4", "'1.2.3-4' is not a number"),
        ("age=60-30", "the privileged group of 'age' has the range 60 to 30"),
        ("age=0-1e999", "too large"),
        ("age=30-60:0.7", "does not fit"),
        ("race=White\nBlack", "cannot be read"),
        ("race=White,White", "lists a value twice"),
        ("race", "write COLUMN=VALUE"),
        ([3], "write COLUMN=VALUE"),
        (["race=White", "race=Black"], "twice"),
    ],
)
def test_a_slip_in_the_words_is_one_sentence(stated, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        privileged.parse(SCHEMA, stated)
    assert "\n" not in str(caught.value)


def model(frame):
    return 1 / (1 + np.exp(5.5 - frame["income"] - 2 * (frame["sex"] == "M")))


@pytest.fixture(scope="module")
def result():
    """A model that favors men, on a table whose labels favor women."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 10, n),
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(20, 70, n),
        }
    )
    frame["ok"] = np.where((frame["sex"] == "F") ^ (rng.random(n) < 0.1), "yes", "no")
    return limi.audit(
        model,
        frame,
        protected=["sex", "age"],
        target="ok",
        favorable="yes",
        method="real",
        generator=None,
        max_rows=50,
        rate_rows=100,  # of 400, so that the rows decided on are a sample
    )


def test_metrics_and_repairs_call_the_same_groups_privileged(result):
    tree = result.metrics()
    ours = groups(result.problem, (), collect.counts_by_column(tree))
    assert {name: split.words for name, split in ours.splits.items()} == {
        name: entry["privileged"] for name, entry in tree["group"].items()
    }
    assert ours.splits["sex"].words == "M"
    assert "limi metrics" in ours.reason


def test_a_run_without_counts_is_decided_on_its_table(result):
    assert groups(result.problem).splits["sex"].words == "M"


@pytest.mark.parametrize("n_groups", [2, 3, 9])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_where_groups_are_alike_the_choice_does_not_make_them_differ(n_groups, rate):
    """Without a correction for the choice, nine groups differ in 20 % of such tables."""
    rng = np.random.default_rng(n_groups)
    levels = tuple(f"g{k}" for k in range(n_groups))
    columns = [Column(name="group", kind="categorical", levels=levels)]
    columns.append(Column(name="x", kind="numerical", low=0, high=1))
    schema = Schema(tuple(columns)).protect(["group"])
    tables, apart, ratios = 400, dict.fromkeys(("SPD", "AOD"), 0), [0, 0]
    for _ in range(tables):
        rows = np.column_stack([rng.integers(0, n_groups, 1_800), np.zeros(1_800)]).astype(float)
        decided = Decided(
            "real", rows, rng.random(1_800) < rate, (rng.random(1_800) < 0.5).astype(np.int8)
        )
        told = collect._groups(schema, decided)["group"]
        assert told["chosen_from"] == n_groups
        apart["SPD"] += told["parity_gap"]["low"] > 0
        apart["AOD"] += told["average_odds_error"]["low"] > 0
        known = [line.impact_ratio for line in group_lines(schema, decided) if not line.reference]
        ratios[0] += sum(ratio.high < 1 for ratio in known)
        ratios[1] += len(known)
    # Three standard errors of 5 % in 400 tables are 3.3 points.
    assert max(apart.values()) <= 0.083 * tables
    assert ratios[0] <= 0.083 * ratios[1]
