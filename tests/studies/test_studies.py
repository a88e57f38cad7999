"""Study files, cells, runs that stop and go on, tables, figures and the page."""

import dataclasses
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import numpy as np
import pytest

from limi import data, studies
from limi.errors import CorruptStore, InvalidInput
from limi.studies import _cells, _measure, _results, _run, _tables, _watch
from limi.studies._cells import Cell, expand
from limi.studies._files import checked_names, folder, load, paper_numbers
from limi.studies._formats import Table, render
from limi.studies._pool import Failure, Pool
from limi.studies._results import DONE, Outcome, Results, keep, read
from limi.studies._workshop import Workshop
from limi.table.frames import Codec
from limi.table.rows import uniform

ROOT = Path(__file__).parent.parent.parent
ALL = [*studies.names(), "watch"]

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


# -- the files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("study", "measure", "text", "columns"),
    [
        ("dnn", "findings", FINDINGS, METHODS),
        ("dnn", "per_second", SPEED, METHODS),
        ("rf", "findings", FORESTS, ("aequitas", "sg", "expga", "limi")),
        ("step", "findings", STEPS, tuple(f"step-{s}" for s in ("0", 0.1, 0.2, 0.3, 0.4, 0.5))),
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
def test_every_study_expands_at_every_scale(name):
    study = load(name)
    known = {variant.name for variant in study.variants}
    for scale in studies.SCALES:
        cells = expand(study, scale)
        assert cells
        assert len({cell.name for cell in cells}) == len(cells)
        for cell in cells:
            assert cell.variant in known
            assert set(cell.protected) <= {"age", "race", "sex"}
            assert cell.table in data.encodings()
            assert not set(cell.name) & set(" \\")
            assert len(cell.digest()) == 64  # settings and method fit each other


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
    assert {v.name for v in load("dnn").variants} == {*METHODS, *extra}
    assert load("dnn").scale("small").seeds >= 3
    paper = load("dnn").scale("paper")
    assert paper.budget["max_rows"] == paper.settings["limi"]["n_latents"] == 1_000_000


def test_names_follow_the_paper_s_order_and_unknown_ones_are_refused():
    assert studies.names()[:4] == ["dnn", "rf", "svm", "naturalness"]
    assert checked_names(["all"]) == studies.names()
    assert checked_names(["rf", "dnn", "rf"]) == ["rf", "dnn"]
    with pytest.raises(InvalidInput, match="no study 'dmn'; did you mean 'dnn'"):
        load("dmn")
    with pytest.raises(InvalidInput, match="there is no scale 'tiny'"):
        load("dnn").scale("tiny")


def test_a_study_that_shows_another_s_cells_has_none_of_its_own():
    mine, other = expand(load("naturalness"), "small"), expand(load("dnn"), "small")
    assert mine == other


def test_settings_of_a_pair_are_its_parts_own():
    cells = {cell.variant: cell for cell in expand(load("combination"), "smoke")}
    settings = cells["limi+adf"].settings
    assert settings["limi.n_latents"] == cells["limi+adf"].settings["limi.n_latents"] == 3_000
    assert settings["adf.exploit_steps"] == 20
    assert settings["n_seeds"] == 30
    # A budget of 0 is none, and only methods that need a generator have one.
    assert "max_rows" not in expand(load("queries"), "small")[0].budget
    assert cells["adf"].generator is None
    assert cells["limi+adf"].generator == "trees"


def cell(**changes):
    given = next(c for c in expand(load("dnn"), "smoke") if c.variant == "limi")
    return dataclasses.replace(given, **changes)


def test_a_cell_s_digest_changes_with_all_that_its_result_depends_on(monkeypatch):
    plain = cell().digest()
    assert plain == cell().digest()
    changed = [
        cell(seed=1),
        cell(benchmark="credit-age"),
        cell(target="rf"),
        cell(target_seed=1),
        cell(settings={"n_latents": 10}),
        cell(budget={"max_rows": 9}),
        cell(generator="transport"),
        cell(generator_settings={"max_bins": 8}),
        cell(generator_seed=4),
        cell(extras=()),
        cell(extra={"findings": 3}),
        cell(kind="densities"),
    ]
    assert len({plain, *(c.digest() for c in changed)}) == len(changed) + 1
    assert cell(study="other", scale="paper", variant="x").digest() == plain
    monkeypatch.setattr(_cells, "tools", lambda: {"limi": "9.9"})
    assert cell().digest() != plain


# -- processes ------------------------------------------------------------------------------


def squared(job):
    if job == 3:
        raise InvalidInput("three is no good")
    if job == 5:
        raise RuntimeError("five")
    if job == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return job * job


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_fail_alone(workers):
    jobs = [1, 2, 3, 4, 5, 6] if workers == 1 else [1, 2, 3, 4, 5, 6, 7, 8]
    with Pool(squared, workers) as pool:
        got = dict(pool.each(jobs))
        assert dict(pool.each([9])) == {9: 81}
    assert {job: got[job] for job in (1, 2, 4, 6)} == {1: 1, 2: 4, 4: 16, 6: 36}
    assert got[3] == Failure("three is no good", "InvalidInput")
    assert got[5].kind == "RuntimeError"
    assert "five" in got[5].why
    if workers == 2:
        assert got[7].kind == "Killed"
        assert got[8] == 64


def test_workers_end_with_the_loop_that_wants_them():
    with Pool(squared, 2) as pool:
        next(pool.each([1, 2, 4, 6]))
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()


# -- runs -----------------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    """Cells that count how often they are measured, and need nothing."""
    ran = []

    def measured(cell, shop):
        ran.append(cell.name)
        return {"findings": 100 + 10 * cell.seed, "atn": 0.5, "accuracy": 0.9}

    monkeypatch.setattr(_run, "measured", measured)
    monkeypatch.setattr(_run, "needs_of", lambda cells: [])
    return ran


def go(tmp_path, name="dnn", **given):
    return studies.run(
        [load(name)], **{"scale": "smoke", "out": tmp_path / "out", "workers": 1, **given}
    )


def test_a_second_run_does_nothing_and_a_lost_cell_is_run_again(fake, tmp_path):
    first = go(tmp_path)
    assert first.run == first.cells == len(fake) == first.counts[DONE] == 12
    assert go(tmp_path).run == 0
    (tmp_path / "out" / "cells" / "smoke" / "dnn" / "credit-sex.adf.0.json").unlink()
    fake.clear()
    again = go(tmp_path)
    assert (again.run, again.cells, fake) == (1, 12, ["credit-sex/adf/0"])


def test_more_seeds_run_only_the_new_ones(fake, tmp_path):
    go(tmp_path)
    fake.clear()
    assert go(tmp_path, seeds=3).run == 24
    assert {name.rpartition("/")[2] for name in fake} == {"1", "2"}


def test_cells_of_other_versions_or_settings_are_stale(fake, tmp_path, monkeypatch):
    go(tmp_path)
    monkeypatch.setattr(_cells, "tools", lambda: {"limi": "9.9"})
    assert go(tmp_path).run == 12
    assert go(tmp_path).run == 0
    plain = _cells._settings
    monkeypatch.setattr(
        _cells,
        "_settings",
        lambda size, method: plain(size, method) | ({"n_seeds": 7} if method == "adf" else {}),
    )
    fake.clear()
    assert go(tmp_path).run == 1
    assert fake == ["credit-sex/adf/0"]
    assert go(tmp_path, fresh=True).run == 12


def test_only_some_cells(fake, tmp_path):
    ran = go(tmp_path, only="*/l*/0")
    assert fake == ["credit-sex/limi/0"]
    assert ran.counts == {DONE: 1, "missing": 11}
    with pytest.raises(InvalidInput, match="no cell is called 'nothing'"):
        go(tmp_path, only="nothing")


def test_kept_results_count_as_done_and_are_one_line_a_cell(fake, tmp_path, monkeypatch):
    go(tmp_path, kept=tmp_path / "kept")
    text = (tmp_path / "kept" / "smoke" / "dnn.json").read_text()
    assert len(json.loads(text)["cells"]) == 12
    assert len(text.splitlines()) == 14  # a line a cell, one before, one behind
    fake.clear()
    other = studies.run(
        [load("dnn")], scale="smoke", out=tmp_path / "new", workers=1, kept=tmp_path / "kept"
    )
    assert (other.run, fake, other.counts) == (0, [], {DONE: 12})
    assert (tmp_path / "kept" / "smoke" / "dnn.json").read_text() == text
    # Cells that another machine has run keep their maker beside the new one's.
    monkeypatch.setattr(_results, "machine", lambda: {"processor": "another", "cores": 1})
    go(tmp_path, kept=tmp_path / "kept", seeds=2)
    made = read(load("dnn"), "smoke", tmp_path / "kept").made
    assert made["processor"] == "another"
    assert [one["cores"] for one in made["earlier"]] == [os.cpu_count()]


def test_a_failing_cell_is_kept_as_failed_and_tried_again(fake, tmp_path, monkeypatch):
    good = _run.measured

    def sometimes(cell, shop):
        if cell.variant == "sg":
            raise InvalidInput("sg is on strike")
        return good(cell, shop)

    monkeypatch.setattr(_run, "measured", sometimes)
    ran = go(tmp_path)
    assert ran.counts == {DONE: 11, "failed": 1}
    assert ran.problems == (("dnn credit-sex/sg/0", "sg is on strike"),)
    shown = render(
        studies.tables(load("dnn"), read(load("dnn"), "smoke", tmp_path / "out"))[0], "text"
    )
    assert "failed: credit-sex, sg: sg is on strike" in shown
    monkeypatch.setattr(_run, "measured", good)
    assert go(tmp_path).counts == {DONE: 12}


KILLED = """
import os, signal, sys
from pathlib import Path
from limi import studies
from limi.studies import _run

def measured(cell, shop):
    if cell.variant == "eidig":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"findings": 1}

_run.measured = measured
_run.needs_of = lambda cells: []
studies.run([studies.load("dnn")], scale="smoke", out=Path(sys.argv[1]), workers=1)
"""


def test_a_killed_run_goes_on_where_it_was(fake, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert go(tmp_path).run == 9  # aequitas, sg and adf were done
    assert "credit-sex/aequitas/0" not in fake
    assert fake[0] == "credit-sex/eidig/0"


def test_a_table_that_is_not_there_makes_its_cells_absent(fake, tmp_path, monkeypatch):
    monkeypatch.delenv("LIMI_DATA", raising=False)
    ran = go(tmp_path, scale="small", seeds=1)
    assert ran.counts == {DONE: 72, "absent": 12}
    assert not any("meps" in name for name in fake)
    assert "LIMI_DATA" in ran.problems[0][1]
    results = read(load("dnn"), "small", tmp_path / "out")
    shown = studies.tables(load("dnn"), results)
    row = next(r for r in shown[0].rows if r[:2] == ("meps-sex", "limi"))
    assert row[2:5] == ("absent", "109,701", "")
    assert sum(note.startswith("absent: meps: ") for note in shown[0].notes) == 1
    # A mean over benchmarks of which one is missing would be another mean.
    mean = next(r for r in shown[0].rows if r[:2] == ("mean", "limi"))
    assert mean[2] == "-"
    # Where the table comes back, its cells are run.
    monkeypatch.setattr(_run, "_absent_tables", lambda cells: {})
    assert go(tmp_path, scale="small", seeds=1).run == 12


def test_time_left_comes_from_like_cells(fake, tmp_path):
    told = []
    go(tmp_path, on_progress=told.append)
    assert [p.done for p in told] == list(range(1, 13))
    assert {p.total for p in told} == {12}
    assert told[-1].left == 0.0
    book = _run._Book(tmp_path / "out", None, {"dnn": expand(load("dnn"), "smoke")}, "smoke", False)
    costs = {("dnn", "adf"): [4.0, 6.0], ("dnn", ""): [3.0]}
    book._costs = costs
    assert book.left([cell(variant="adf"), cell(variant="sg")], 2) == (5.0 + 3.0) / 2


def test_bad_numbers_and_places_are_refused(fake, tmp_path):
    with pytest.raises(InvalidInput, match="seeds is 0"):
        go(tmp_path, seeds=0)
    with pytest.raises(InvalidInput, match="workers is 0"):
        go(tmp_path, workers=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        go(tmp_path, out=tmp_path / "file")
    place = tmp_path / "out" / "cells" / "smoke" / "dnn"
    place.mkdir(parents=True)
    (place / "x.json").write_text("{")
    with pytest.raises(CorruptStore, match=r"x\.json.*cannot be read"):
        go(tmp_path)
    (place / "x.json").write_text('{"cell": "a", "digest": "", "status": "done"}')
    with pytest.raises(CorruptStore, match="no result of a study"):
        go(tmp_path)


def test_what_cells_share_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(tmp_path))
    from limi.studies._workshop import needs_of

    cells = [
        cell(seed=s, benchmark=b, target="rf") for b in ("credit-sex", "credit-age") for s in (0, 1)
    ]
    cells = [dataclasses.replace(c, generator_seed=c.seed) for c in cells]
    first, second = needs_of(cells)
    assert [need.what for need in first] == ["model", "generator", "generator"]
    assert [need.cell.benchmark for need in second] == ["credit-sex", "credit-age"]
    shop = Workshop(tmp_path / "made")
    for need in (*first, *second):
        assert not shop.has(need)
        shop.make(need)
        assert shop.has(need)
    made = {p: p.stat().st_mtime_ns for p in (tmp_path / "made").rglob("*") if p.is_file()}
    assert len(made) == 6  # two generators with their facts, two facts of targets
    for need in (*first, *second):
        shop.make(need)
    assert made == {p: p.stat().st_mtime_ns for p in made}
    facts = shop.facts(cells[0])
    assert facts["accuracy"] > 0.95
    assert facts["real_rate_rows"] == 600


# -- tables ---------------------------------------------------------------------------------


def outcome(name, status=DONE, **measures):
    given = {"target": "dnn"}
    return Outcome(cell=name, digest="d", status=status, took=1.0, given=given, measures=measures)


def tiny():
    """Two benchmarks, three methods, two seeds, and a cell that could not run."""
    found = {
        "census-sex/limi": [(90_000, 0.81), (110_000, 0.83)],
        "census-sex/natural": [(80_000, 0.90), (80_000, 0.92)],
        "census-sex/adf": [(120_000, 0.60), (130_000, 0.62)],
        "credit-sex/limi": [(300_000, 0.9), (300_000, 0.9)],
        "credit-sex/natural": [(200_000, 0.9), (220_000, 0.9)],
    }
    outcomes = [
        outcome(
            f"{name}/{seed}", findings=n, per_second=n / 10, atn=atn, accuracy=0.88, real_atn=0.8
        )
        for name, numbers in found.items()
        for seed, (n, atn) in enumerate(numbers)
    ]
    outcomes.append(
        dataclasses.replace(outcome("credit-sex/adf/0", "failed"), why="no gradient | at all")
    )
    made = {"processor": "a machine", "cores": 2, "versions": {"limi": "0.1.0", "numpy": "2"}}
    return Results("dnn", "small", {o.cell: o for o in outcomes}, made)


def small_study(**changes):
    study = load("dnn")
    variants = tuple(study.variant(name) for name in ("adf", "limi", "natural"))
    spec = dataclasses.replace(study.tables[0], measures=("findings",), title="Counts")
    sizes = {
        "small": {
            "benchmarks": ["census-sex", "credit-sex"],
            "variants": ["adf", "limi", "natural"],
            "words": "few rows",
        }
    }
    return dataclasses.replace(study, variants=variants, tables=(spec,), _scales=sizes, **changes)


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
    ((_, ratios),) = _tables.combined(small_study(combined=(one,)), tiny())
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
    results = _tables.completed(study, Results("repair-dnn", "small", outcomes))
    assert results.numbers("census-sex", "before", "if_o") == [0.2]
    ((_, n, against), *_) = [t for t in _tables.claims(study, results) if t[0].measure == "if_o"]
    assert (n, against) == (1, [])


ODD = Table("50% & more_", ("a|b", "c_d"), (("x|y*<b>", "1 & 2 \\ {3} λ^~#$"),), ("a note",), 1)


def test_markdown_is_escaped():
    shown = render(ODD, "markdown")
    assert "| x\\|y\\*&lt;b> | 1 & 2 \\\\ {3} λ^~#$ |" in shown
    assert "**50% & more\\_**" in shown
    lines = shown.splitlines()
    assert lines[3] == "| --- | ---: |"


def test_latex_is_escaped():
    shown = render(ODD, "latex")
    assert r"\caption{50\% \& more\_}" in shown
    wanted = r"x|y*\textless{}b\textgreater{} & 1 \& 2 \textbackslash{} \{3\} $\lambda$"
    assert wanted + r"\textasciicircum{}\textasciitilde{}\#\$ \\" in shown
    assert shown.count(r"\begin{tabular}{lr}") == 1


def test_html_is_escaped():
    shown = render(ODD, "html")
    assert "<caption>50% &amp; more_</caption>" in shown
    assert '<th scope="row">x|y*&lt;b&gt;</th><td>1 &amp; 2' in shown
    ElementTree.fromstring(f"<div>{shown}</div>")


def test_latex_names_a_benchmark_once():
    (table,) = studies.tables(small_study(), tiny())
    shown = render(table, "latex")
    assert shown.count("census-sex & ") == 1
    assert shown.count(r"\midrule") == 3


def test_an_unknown_format_is_refused():
    with pytest.raises(InvalidInput, match="no format 'markdwn'; did you mean 'markdown'"):
        render(ODD, "markdwn")


# -- figures, page, watch -------------------------------------------------------------------


def inside(svg):
    """Every circle lies inside the sheet."""
    root = ElementTree.fromstring(svg)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    circles = root.iter("{http://www.w3.org/2000/svg}circle")
    return all(-5 <= float(c.get("cx")) <= width and float(c.get("cy")) <= height for c in circles)


def test_dots_are_drawn_for_ours_and_the_paper_s():
    svg = studies.figure(small_study(), tiny())
    assert svg == studies.figure(small_study(), tiny())
    assert inside(svg)
    # One in the key, then five variants of ours, and four numbers of the paper.
    assert svg.count('class="ours"') == 1 + 5
    assert svg.count('class="paper"') == 1 + 4
    assert "census-sex" in svg


def test_lines_and_densities_are_drawn():
    steps = {
        f"census-sex/{v.name}/0": outcome(f"census-sex/{v.name}/0", findings=10_000 * (i + 1))
        for i, v in enumerate(load("step").variants)
    }
    svg = studies.figure(load("step"), Results("step", "small", steps))
    assert inside(svg)
    assert svg.count("<polyline") == 2
    picture = {"x": [0.0, 1.0, 2.0], "real": [0.1, 0.5, 0.1], "findings": [0.2, 0.3, 0.2]}
    drawn = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", overlap=0.8, picture=picture)
        for name in ("limi", "expga")
    }
    svg = studies.figure(load("densities"), Results("densities", "small", drawn))
    ElementTree.fromstring(svg)
    assert svg.count("<polygon") == 1
    assert svg.count("<polyline") == 4  # a line and its sample in the key, for each of two


def test_nothing_to_draw_is_said():
    with pytest.raises(InvalidInput, match="no results of dnn at scale small to draw"):
        studies.figure(load("dnn"), Results("dnn", "small", {}))


def test_the_page_says_what_holds_and_what_does_not(tmp_path):
    keep(tiny(), tmp_path)
    text = studies.page(tmp_path)
    assert text == studies.page(tmp_path)
    assert (
        "LIMI finds more than every method of the paper: **holds on 0 of 1 benchmarks; "
        "not on census-sex: adf 125,000 against 100,000**" in text
    )
    assert "| [rf](#rf) | Table 2 | not run | | |" in text
    for name in studies.names():
        assert f"\n## {name}\n" in text
    # No cell is left out: every planned benchmark and method stands in the table.
    for benchmark in load("dnn").benchmarks:
        for variant in load("dnn").variants:
            assert f"| {benchmark} | {variant.label} |" in text


def test_the_page_shows_every_scale_and_only_what_was_measured_there(tmp_path):
    keep(tiny(), tmp_path)
    counted = {"findings": 90.0, "plausible": 80.0, "plausible_share": 0.9, "rows": 100.0}
    larger = {
        f"census-sex/{name}/0": outcome(f"census-sex/{name}/0", **counted)
        for name in ("limi", "adf")
    }
    keep(Results("dnn", "paper", larger), tmp_path)
    text = studies.page(tmp_path)
    assert text.index("### dnn, scale paper") < text.index("### dnn, scale small")
    at_paper, at_small = (
        text.split("### dnn, scale small")[0],
        text.split("### dnn, scale small")[1],
    )
    assert "plausible findings: ours" in at_paper
    assert "plausible" not in at_small.split("\n## ")[0]
    assert {"dnn-paper.svg", "dnn-small.svg"} <= set(studies.figures(tmp_path))


def test_a_scale_may_measure_more_than_the_others():
    small, paper = (expand(load("dnn"), scale, 1)[0] for scale in ("small", "paper"))
    assert "plausible" not in small.extras
    assert paper.extras == (*small.extras, "plausible")


def test_natural_rows_are_plausible_and_uniform_ones_are_not():
    known = data.load("census")
    codec = Codec.learn(known.frame, known.schema)
    real = codec.encode(known.frame)
    rng = np.random.default_rng(0)
    halves = np.split(real[rng.permutation(len(real))[:8000]], 2)
    assert _measure._plausible(halves[0], halves[1], codec.schema, rng) > 0.9
    wild = uniform(codec.schema, 2000, rng)
    assert _measure._plausible(halves[0], wild, codec.schema, rng) < 0.05


def test_the_page_in_the_documentation_is_what_the_kept_results_give():
    """Write it anew with: limi study page --file docs/reproduction.md."""
    assert (ROOT / "docs" / "reproduction.md").read_text("utf-8") == studies.page(
        ROOT / "studies" / "results"
    )


def test_the_figures_in_the_documentation_are_those_of_the_kept_results():
    place = ROOT / "docs" / "figures"
    assert {p.name: p.read_text("utf-8") for p in place.glob("*.svg")} == studies.figures(
        ROOT / "studies" / "results"
    )


def test_kept_results_can_be_read_and_hold_no_findings():
    for path in (ROOT / "studies" / "results").glob("*/*.json"):
        results = read(load(path.stem), path.parent.name, ROOT / "studies" / "results")
        assert results.outcomes
        assert path.stat().st_size < 1_500_000


def test_the_watch_fails_where_a_measure_falls_too_far():
    margins = {"per_thousand_queries": 0.1, "atn": 0.02}
    now = Results(
        "watch",
        "small",
        {
            "a/limi/0": outcome("a/limi/0", per_thousand_queries=91.0, atn=0.70),
            "a/new/0": outcome("a/new/0", per_thousand_queries=5.0),
        },
    )
    before = {
        "a/limi/0": {"per_thousand_queries": 100.0, "atn": 0.80},
        "a/gone/0": {"atn": 0.5},
    }
    watched = {(w.cell, w.measure): w for w in _watch.compared(now, before, margins)}
    assert watched["a/limi/0", "per_thousand_queries"].ok
    assert not watched["a/limi/0", "atn"].ok
    assert "FELL by more than 2%" in str(watched["a/limi/0", "atn"])
    assert not watched["a/gone/0", "atn"].ok
    assert watched["a/new/0", "per_thousand_queries"].ok
    assert "nothing to compare with" in str(watched["a/new/0", "per_thousand_queries"])


def test_the_watch_has_a_baseline_for_its_cells():
    known = json.loads(_watch.baseline_file().read_text("utf-8"))
    assert set(known) == {c.name for c in expand(load("watch"), "small")}
    assert all(set(measures) == set(load("watch").margins) for measures in known.values())


def test_a_missing_baseline_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="no baseline"):
        studies.watch(tmp_path / "none.json")


# -- the wheel ------------------------------------------------------------------------------


def test_the_wheel_brings_the_studies_along(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
    packed = tmp_path / "site" / "limi" / "studies" / "files"
    wanted = {p.relative_to(folder()) for p in folder().rglob("*.toml")}
    assert wanted
    assert {p.relative_to(packed) for p in packed.rglob("*.toml")} == wanted
    code = "from limi import studies; print(studies.names()); print(studies._files.folder())"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    names, place = shown.stdout.splitlines()
    assert names == str(studies.names())
    assert place == str(packed)


def test_cells_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        cell().seed = 3
    assert Cell.__dataclass_params__.frozen
