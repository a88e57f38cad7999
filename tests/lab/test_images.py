"""The study of images: cells on drawn faces, and what is said where there are no photographs."""

import pytest

from lab.cells import expand
from lab.files import load
from lab.kinds.images import find_faces, measure
from lab.run import run
from lab.workshop import Workshop
from limi.errors import InvalidInput


@pytest.fixture(scope="module")
def cells():
    return {cell.name: cell for cell in expand(load("images"), "smoke")}


def test_a_dose_is_seen_and_the_papers_count_is_beside_its_floor(cells, tmp_path):
    told = measure(cells["strokes-photographed-4/default/0"], Workshop(tmp_path))
    assert told["effect"] > 2
    assert told["direction"] > 0.9
    assert told["effect_seen"] == 1
    assert told["excess_low"] <= told["excess"] <= told["excess_high"]
    fair = measure(cells["strokes-balanced-0/default/0"], Workshop(tmp_path))
    assert fair["effect_seen"] == fair["excess_seen"] == 0
    paper = measure(cells["strokes-balanced-0/paper/0"], Workshop(tmp_path))
    assert paper["cases"] == 3 * 60
    assert 0 < paper["floor_flips"] < 1


def test_without_photographs_cells_are_absent_with_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("LIMI_DATA", raising=False)
    with pytest.raises(InvalidInput, match="do not come with limi; set LIMI_DATA"):
        find_faces()
    only = "faces-balanced-0/paper/0"
    ran = run([load("images")], scale="small", out=tmp_path, workers=1, only=only)
    assert ran.run == 0
    assert [why.partition(";")[0] for _, why in ran.problems] == [
        "the photographs of faces do not come with limi"
    ]
