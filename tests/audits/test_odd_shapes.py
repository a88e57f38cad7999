"""Tables of odd shapes, from frame to findings that the model itself confirms."""

import numpy as np
import pandas as pd
import pytest

import limi

N = 80
RNG = np.random.default_rng(11)
SEX = np.array(["f", "m"])[np.arange(N) % 2]


def column(values):
    return RNG.choice(values, N)


SHAPES = {
    "two columns": {"x": RNG.integers(0, 9, N)},
    "one value beside": {"x": np.ones(N)},
    "all text": {"a": column(["p", "q"]), "b": column(["r", "s", "t"])},
    "booleans": {"a": column([True, False]), "b": column([True, False])},
    "mostly missing": {"a": np.where(RNG.random(N) < 0.9, np.nan, 3.0), "b": column([1.0, 2.0])},
    "one-hot": {f"job_{k}": (np.arange(N) % 5 == k).astype(int) for k in range(5)},
    "odd names": {"a=b": column([1, 2]), "ü ,;": column([3, 4]), "": column([5, 6])},
    "tiny reals": {"a": RNG.random(N) * 1e-9, "b": RNG.normal(size=N) * 1e9},
    "negative zero": {"a": column([-0.0, 0.0, 1.0])},
    "unsigned": {"a": column([0, 255]).astype(np.uint8), "b": column([1, 2]).astype(np.int8)},
    "nullable": {"a": pd.array(column([1, 2]), dtype="Int64").astype("Int64")},
    "categories that nobody has": {
        "a": pd.Categorical(column(["x", "y"]), categories=["w", "x", "y", "z"])
    },
    "ordered": {"a": pd.Categorical(column(["lo", "hi"]), ["lo", "hi"], ordered=True)},
    "dates and counters": {
        "day": pd.date_range("2020-01-01", periods=N),
        "nr": np.arange(1, N + 1),
        "x": column([1, 2, 3]),
    },
    "wide": {f"c{k}": RNG.integers(0, 3, N) for k in range(120)},
}


def decide(frame):
    """Whatever columns there are, sex tips it where nothing else does."""
    return 0.3 + 0.4 * (frame["sex"].to_numpy() == "f")


@pytest.mark.parametrize("name", SHAPES)
def test_every_finding_flips_on_the_live_model(name):
    frame = pd.DataFrame({**SHAPES[name], "sex": SEX})
    result = limi.audit(
        decide, frame, protected="sex", method="natural", max_rows=60, rate_rows=40, seed=1
    )
    assert result.summary.findings > 0
    target = result.problem.target
    own, other = (decide(target.codec.decode(r)) for r in (result.found.rows, result.found.partner))
    assert ((own > 0.5) != (other > 0.5)).all()
    kept = [column for column in result.problem.schema.names if column in frame.columns]
    dtypes = target.codec.decode(result.found.rows).dtypes
    assert (dtypes[kept] == frame.dtypes[kept]).all()


def test_a_table_of_one_column_says_which_are_protected():
    frame = pd.DataFrame({"sex": SEX})
    with pytest.raises(limi.LimiError, match="sex"):
        limi.audit(decide, frame, protected="sex", method="natural", max_rows=20)
