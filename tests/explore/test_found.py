"""Findings read from Parquet column by column: the same as the rest of limi reads as a whole."""

import shutil

import numpy as np
import pytest

from limi.audits.reopen import Run, open_findings
from limi.audits.run_folder import read_schema, read_summary
from limi.audits.summary import rules_of
from limi.decisions import AS_DECIDED, favors
from limi.errors import CorruptStore
from limi.explore.found import read_found, sheet_of_found
from limi.explore.sheet import Filter
from limi.metrics.severity import severity_of


@pytest.fixture(scope="module")
def both(run):
    schema, _, found = open_findings(Run.at(run))
    regions = rules_of(schema, read_summary(run).where)
    return found, read_found(run, schema, AS_DECIDED, "favorable", regions)


def test_every_cell_is_as_it_was_written(both):
    found, sheet = both
    which = np.arange(len(found))
    assert len(sheet) == len(found) > 20
    told = sheet.found(which)
    for name in ("rows", "partner", "score", "partner_score", "naturalness", "partner_naturalness"):
        np.testing.assert_array_equal(getattr(told, name), getattr(found, name))
    np.testing.assert_array_equal(sheet.sheet["severity"].values, severity_of(AS_DECIDED, found))


def test_a_sheet_of_findings_in_memory_is_the_same(both):
    found, sheet = both
    other = sheet_of_found(sheet.schema, AS_DECIDED, found, sheet.regions)
    assert set(other.sheet.strips) == set(sheet.sheet.strips)
    some = np.arange(0, len(found), 3)
    for name, strip in sheet.sheet.strips.items():
        mine, theirs = strip.take(some), other.sheet[name].take(some)
        if strip.words:
            mine = [strip.show(x) for x in mine]
            theirs = [other.sheet[name].show(x) for x in theirs]
        np.testing.assert_array_equal(mine, theirs)


def test_a_direction_says_who_is_favored(both):
    found, sheet = both
    strip = sheet.sheet["direction"]
    sex = sheet.schema.position("sex")
    for k in range(len(found)):
        mine, theirs = (sheet.schema["sex"].show(r[k, sex]) for r in (found.rows, found.partner))
        if not favors(found.score)[k]:
            mine, theirs = theirs, mine
        assert strip.show(strip.take(np.array([k]))[0]) == f"sex {mine} over sex {theirs}"


def test_a_region_filters_whom_its_rule_holds(both):
    found, sheet = both
    for number, region in enumerate(sheet.regions):
        chosen = sheet.sheet.select({f"g{number}": Filter(codes=(1.0,))})
        assert chosen.rows.tolist() == np.flatnonzero(region.mask(found.rows)).tolist()


def test_a_diverse_draw_differs_and_keeps_to_the_selection(both):
    _, sheet = both
    chosen = sheet.sheet.select({"c0": Filter(low=40)})
    drawn = sheet.draw_diverse(chosen, 20)
    assert len(drawn) == len(set(drawn.tolist())) == min(20, chosen.n)
    assert set(drawn.tolist()) <= set(chosen.rows.tolist())


def test_a_damaged_file_is_one_sentence(run, tmp_path):
    schema = read_schema(run)
    with pytest.raises(CorruptStore, match="it has no findings"):
        read_found(tmp_path, schema, AS_DECIDED, "favorable")
    (tmp_path / "findings.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptStore, match="cannot be read"):
        read_found(tmp_path, schema, AS_DECIDED, "favorable")
    shutil.copy(run / "findings.parquet", tmp_path)
    with pytest.raises(CorruptStore, match="prediction"):
        read_found(tmp_path, schema, AS_DECIDED, "number")
