"""Tables of a study: ours beside the paper's, claims and ratios."""

import dataclasses

import pytest

from limi import studies
from limi.studies import _tables
from limi.studies._files import load
from limi.studies._formats import render
from limi.studies._results import Results
from tests.studies.small import outcome, small_study, tiny

TEXT = """\
Counts

benchmark   method   findings          min to max    paper  ratio
----------  -------  --------  ------------------  -------  -----
census-sex  adf       125,000  120,000 to 130,000   11,540  10.83
census-sex  limi      100,000   90,000 to 110,000   86,065   1.16
census-sex  natural    80,000              80,000
credit-sex  adf        failed                        4,842
credit-sex  limi      300,000             300,000  164,569   1.82
credit-sex  natural   210,000  200,000 to 220,000
mean        adf             -
mean        limi      200,000
mean        natural   145,000

- Means over 2 seeds; the spread is the smallest and the largest.
- failed: credit-sex, adf: no gradient | at all
"""


def test_a_table_has_ours_the_spread_the_paper_s_and_the_ratio():
    (table,) = studies.tables(small_study(), tiny())
    assert render(table, "text").startswith(TEXT)
    notes = "\n".join(table.notes)
    assert "few rows (scale `small`), 2 seeds" in notes
    assert "a machine, 2 cores (limi 0.1.0, numpy 2)" in notes
    assert "census dnn 88.0 (88.2)" in notes
    assert "Key:" in notes
    assert "Clock:" in notes


def test_the_matrix_marks_the_best_and_shows_the_paper_s():
    table = _tables.matrix(small_study(), "findings", tiny())
    assert table.headings == ("benchmark", "adf", "limi", "natural")
    assert table.rows[0] == ("census-sex", "125,000* (11,540)", "100,000 (86,065)", "80,000")
    assert table.rows[1] == ("credit-sex", "failed (4,842)", "300,000* (164,569)", "210,000")


def test_claims_are_judged_benchmark_by_benchmark():
    study = small_study()
    claims = [
        dataclasses.replace(study.claims[0], over=("adf", "natural")),
        dataclasses.replace(study.claims[0], over=("natural",)),
        dataclasses.replace(study.claims[0], measure="atn", over=("real",)),
        dataclasses.replace(study.claims[0], first="absent-one", over=("adf",)),
    ]
    told = _tables.claims(dataclasses.replace(study, claims=tuple(claims)), tiny())
    assert [(n, against) for _, n, against in told] == [
        (2, ["census-sex: adf 125,000 against 100,000"]),
        (2, []),
        (2, []),
        (0, []),
    ]


def test_less_is_better_where_it_is():
    worse = {
        "census-sex/limi/0": outcome("census-sex/limi/0", distance=1.5),
        "census-sex/adf/0": outcome("census-sex/adf/0", distance=1.2),
    }
    claim = dataclasses.replace(load("dnn").claims[0], measure="distance", over=("adf",))
    study = small_study(claims=(claim,))
    ((_, n, against),) = _tables.claims(study, Results("dnn", "small", worse))
    assert (n, against) == (1, ["census-sex: adf 1.20 against 1.50"])


def test_ratios_of_pairs_are_means_over_benchmarks():
    one = dataclasses.replace(
        load("queries").combined[0], pairs=(("limi", "natural"), ("adf", "limi"))
    )
    ((_, ratios),) = _tables.combine(small_study(combined=(one,)), tiny())
    assert ratios["limi to natural"] == pytest.approx((100 / 80 + 300 / 210) / 2)
    assert ratios["adf to limi"] == pytest.approx(1.25)
    assert ratios["mean"] == pytest.approx((100 / 80 + 300 / 210 + 1.25) / 3)


def test_what_a_repair_measures_before_is_a_variant_of_its_own():
    study = load("repair-dnn")
    before = {"accuracy": 0.88, "if_o": 0.2, "if_r": 0.1}
    outcomes = {
        name: outcome(name, before=before, if_o=0.1, accuracy=0.87)
        for name in ("census-sex/limi/0", "census-sex/adf/0")
    }
    results = _tables.complete(study, Results("repair-dnn", "small", outcomes))
    assert results.numbers("census-sex", "before", "if_o") == [0.2]
    ((_, n, against), *_) = [t for t in _tables.claims(study, results) if t[0].measure == "if_o"]
    assert (n, against) == (1, [])
