"""Study files: the paper's numbers copied right, and nothing claimed that is not run."""

import dataclasses
import re

import pytest

from lab import cells as _cells
from lab import files as _files
from lab import models as targets
from lab import tables as _tables
from lab.files import check_names, load, paper_numbers
from limi import generators, methods
from limi.errors import InvalidInput
from tests.lab.small import ALL

# A second transcription of the paper's tables, by way of another document than the first one's.
FINDINGS = """
census-sex 3484 1806 11540 12503 12791 40877 86065
census-race 3393 2893 11827 11330 11991 4215 132018
census-age 3982 14858 12078 12382 13214 45615 148221
credit-sex 1671 9241 4842 5201 4469 158687 164569
credit-age 1645 12854 6090 6494 6532 43202 261504
bank-age 1435 9276 3979 4731 5143 24691 145901
meps-sex 1549 5922 5555 4914 3970 32580 109701
"""


SPEED = """
census-sex 1.09 0.50 3.20 3.47 3.55 39.08 41.71
census-race 0.94 0.80 3.29 3.15 3.33 9.73 36.67
census-age 1.11 4.13 3.36 3.44 3.67 12.61 41.17
credit-sex 0.53 2.70 1.35 1.44 1.24 44.05 69.38
credit-age 0.46 3.57 1.69 1.80 1.81 11.98 72.64
bank-age 0.40 2.58 1.11 1.31 1.43 6.84 40.53
meps-sex 0.43 1.65 1.54 1.37 1.10 46.78 48.67
"""


FORESTS = """
census-sex 441 2487 10283 13360
census-race 100 1316 286 10398
census-age 846 5152 9402 14185
credit-sex 219 7338 1799 15010
credit-age 153 7908 946 11972
bank-age 186 6104 4071 6578
meps-sex 276 3865 3472 3958
"""


ATN = """
aequitas 50.53 48.02 46.22 67.84 65.02 60.85 69.45
sg 43.23 46.10 46.03 55.45 54.49 41.78 53.03
adf 63.79 66.91 64.24 73.13 74.37 71.14 70.17
eidig 63.45 66.73 64.69 73.67 73.97 69.62 71.09
neuronfair 63.93 66.89 64.33 73.97 74.18 71.56 71.11
expga 41.20 48.76 50.23 60.53 63.30 58.54 64.83
limi 80.98 81.94 82.10 80.15 80.05 80.84 82.93
"""


STEPS = """
census-sex 38974 80947 89348 86065 78188 69989
census-race 76294 100587 109761 132018 109826 114051
census-age 54644 99365 110158 148221 115063 110951
credit-sex 90210 168876 164561 164569 165417 165550
credit-age 152493 204704 196113 261504 196799 201052
bank-age 50820 77396 94739 145901 116837 118272
meps-sex 49769 130152 128876 109701 88500 73054
"""


# accuracy, IF_r, IF_o, SPD, AOD; before, then after LIMI
REPAIR = """
census-sex 88.16 86.92 3.59 1.67 8.20 5.50 0.17 0.14 0.04 0.03
census-race 88.16 87.04 7.13 2.51 16.31 8.63 0.09 0.08 0.04 0.02
census-age 88.16 86.86 10.72 5.91 26.92 17.34 0.21 0.17 0.19 0.05
credit-sex 100 99.83 14.09 11.18 15.50 9.30 0.07 0.07 0.00 0.00
credit-age 100 99.97 41.96 29.57 42.17 34.60 0.00 0.00 0.00 0.00
bank-age 93.65 92.50 25.79 13.15 27.94 16.98 0.23 0.21 0.07 0.07
meps-sex 95.07 94.77 7.78 3.32 11.72 9.74 0.08 0.07 0.02 0.01
"""


FITNESS = """
census 96.71 86.43 99.78 89.72 99.98 93.94
credit 82.16 67.82 96.69 76.54 99.93 75.36
bank 95.47 85.61 99.69 94.59 99.65 96.40
meps 93.52 84.09 99.96 97.20 99.42 90.50
"""


METHODS = ("aequitas", "sg", "adf", "eidig", "neuronfair", "expga", "limi")


BENCHMARKS = tuple(line.split()[0] for line in FINDINGS.split("\n") if line)


def transcribed(text):
    lines = [line.split() for line in text.strip().splitlines()]
    return {name: [float(number) for number in numbers] for name, *numbers in lines}


@pytest.mark.parametrize(
    ("study", "measure", "text", "columns"),
    [
        ("dnn", "findings", FINDINGS, METHODS),
        ("dnn", "per_second", SPEED, METHODS),
        ("rf", "findings", FORESTS, ("aequitas", "sg", "expga", "limi")),
        (
            "step",
            "found_latents",
            STEPS,
            tuple(f"step-{s}" for s in ("0", 0.1, 0.2, 0.3, 0.4, 0.5)),
        ),
    ],
)
def test_the_paper_s_counts_were_copied_right(study, measure, text, columns):
    found = paper_numbers(study)[measure]
    assert found == {
        name: dict(zip(columns, row, strict=True)) for name, row in transcribed(text).items()
    }


def test_the_paper_s_shares_were_copied_right():
    natural = paper_numbers("naturalness")["atn_07"]
    for method, row in transcribed(ATN).items():
        assert [100 * natural[b][method] for b in BENCHMARKS] == pytest.approx(row)
    repaired = paper_numbers("repair-dnn")
    for benchmark, row in transcribed(REPAIR).items():
        for place, measure in enumerate(("accuracy", "if_r", "if_o", "spd", "aod")):
            scale = 100 if place < 3 else 1
            pair = [scale * repaired[measure][benchmark][v] for v in ("before", "limi")]
            assert pair == pytest.approx(row[2 * place : 2 * place + 2])
    fitness = paper_numbers("fitness")
    for table, row in transcribed(FITNESS).items():
        for place, target in enumerate(("dnn", "rf", "svm")):
            pair = [100 * fitness[m][table][target] for m in ("auc_train", "auc_entire")]
            assert pair == pytest.approx(row[2 * place : 2 * place + 2])
    several = paper_numbers("several-protected")
    assert several["findings"]["mean"]["limi"] == 120_164
    assert several["per_second"]["mean"]["expga"] == 6.51
    assert several["atn_07"]["mean"]["adf"] == pytest.approx(0.6721)
    # The paper's mean for its fitted boundary is that of its own table's column for step 0.
    steps = [transcribed(STEPS)[b][0] for b in BENCHMARKS[:3]]
    fitted = paper_numbers("random-boundary")["findings"]["mean of census"]["fitted-0"]
    assert round(sum(steps) / 3) == fitted == 56_637


@pytest.mark.parametrize("name", ALL)
def test_what_a_study_shows_is_measured_and_what_it_claims_is_run(name):
    study = load(name)
    known = {variant.name for variant in study.variants}
    for spec in study.tables:
        assert set(spec.measures) <= set(_tables.MEASURES)
        assert set(spec.variants) <= known
    for claim in study.claims:
        assert claim.measure in _tables.MEASURES
        assert {claim.first, *claim.over} <= known | {"real"}
    for one in study.combined:
        assert {v for pair in one.pairs for v in pair} <= known
    for measure, rows in paper_numbers(study.name).items():
        assert measure in _tables.MEASURES
        shown = {m for spec in study.tables for m in spec.measures}
        assert measure in shown
        for benchmark, values in rows.items():
            assert benchmark in study.benchmarks or benchmark.startswith("mean")
            assert set(values) <= known


def test_the_tables_are_as_complete_as_the_paper_s():
    assert load("dnn").benchmarks == BENCHMARKS
    extra = {"themis", "maft", "vbtx", "natural", "guided"}
    assert {v.name for v in load("dnn").variants if not v.of} == {*METHODS, *extra}
    assert load("dnn").scale("small").seeds >= 3
    paper = load("dnn").scale("paper")
    assert paper.budget["max_rows"] == paper.settings["limi"]["n_latents"] == 1_000_000


def test_names_follow_the_paper_s_order_and_unknown_ones_are_refused():
    assert _files.names()[:4] == ["dnn", "rf", "svm", "naturalness"]
    assert check_names(["all"]) == _files.names()
    assert check_names(["rf", "dnn", "rf"]) == ["rf", "dnn"]
    with pytest.raises(InvalidInput, match="no study 'dmn'; did you mean 'dnn'"):
        load("dmn")
    with pytest.raises(InvalidInput, match="unknown scale 'tiny'"):
        load("dnn").scale("tiny")


def settings_of(cells):
    """Every number that a cell is run with, defaults of its method and generator included."""
    found = set()
    for cell in cells:
        method = methods.parse(cell.method, cell.settings)
        given = [dataclasses.asdict(method), cell.budget, cell.extra, {"target": targets._SVM_ROWS}]
        given += [dataclasses.asdict(methods.parse(part, {})) for part in cell.method.split("+")]
        if cell.generator:
            made = generators.get(cell.generator).Settings()
            given += [dataclasses.asdict(made), cell.generator_settings]
        found |= {v for tree in given for v in tree.values() if isinstance(v, int | float)}
    return found


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", _files.names())
def test_the_words_of_a_scale_say_what_its_cells_are_run_with(name, scale):
    study = load(name)
    if study.uses:
        return
    known = settings_of(_cells.expand(study, scale))
    words = study.scale(scale).words.replace("a million", "1,000,000").replace("ResNet-18", "")
    held_out = {30}  # per cent, of every repair beside others
    for number in re.findall(r"\d[\d,.]*\d|\d", words):
        assert float(number.replace(",", "")) in known | held_out, (number, words)


def test_scales_name_only_methods_that_they_run():
    for name in _files.names():
        study = load(name)
        for scale in ("small", "paper"):
            size = study.scale(scale) if not study.uses else None
            if size is None:
                continue
            run = {study.variant(v).method for v in size.variants}
            for method, label in (("sg", "SG"), ("guided", "`guided`")):
                assert label not in size.words or method in run, (name, scale)


def test_the_variant_beside_is_the_same_with_the_paper_s_generator():
    study = load("dnn")
    assert study.beside("limi") == "limi.ctgan"
    assert [study.beside(name) for name in ("sg", "limi.ctgan", "")] == ["", "", ""]


def test_the_model_before_is_one_draw_where_no_seed_trains_it():
    for name, is_one in (("repair-dnn", True), ("retraining", True), ("repairs-dnn", False)):
        assert load(name).is_one_draw("before") == is_one
    assert not load("repair-dnn").is_one_draw("limi")
