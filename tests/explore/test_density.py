"""Hexagons beside a search of the nearest centre; directions beside a known answer."""

import numpy as np
import pytest

from limi.explore import density
from limi.explore.density import _ACROSS, Axis, bin_people, tell_directions
from limi.table.schema import Column

AGE = Column(name="age", kind="numerical", low=0, high=1000, step=1)
JOB = Column(name="job", kind="categorical", levels=("a", "b", "c"))


def test_everybody_is_counted_where_the_nearest_centre_is():
    rng = np.random.default_rng(0)
    x, y = rng.random(3_000), rng.random(3_000)
    axes = (Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0))
    nobody = np.empty(0)
    grid = bin_people(axes, (x, y), (nobody, nobody))
    assert sum(one.n for one in grid.bins) == 3_000
    width = 1 / _ACROSS
    lines = range(int(2 / (width * np.sqrt(3))) + 3)
    centres = np.array(
        [
            ((k + (line % 2) / 2) * width, line * width * np.sqrt(3) / 2)
            for line in lines
            for k in range(-1, _ACROSS + 2)
        ]
    )
    nearest = ((x[:, None] - centres[:, 0]) ** 2 + (y[:, None] - centres[:, 1]) ** 2).argmin(axis=1)
    counts = {
        tuple(np.round(centres[k], 6)): n
        for k, n in zip(*np.unique(nearest, return_counts=True), strict=True)
    }
    told = {(round(one.x, 6), round(one.y, 6)): one.n for one in grid.bins}
    assert told == counts


def test_a_bin_names_its_first_finding_and_else_its_first_person():
    axes = (Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0))
    x = np.array([0.1, 0.1, 0.9])
    grid = bin_people(axes, (x, x), (np.array([0.9, 0.9]), np.array([0.9, 0.9])))
    told = {round(one.x, 1): (one.n, one.findings, one.first, one.is_finding) for one in grid.bins}
    assert told == {0.1: (2, 0, 0, False), 0.9: (1, 2, 0, True)}


def test_levels_have_a_box_each_and_missing_cells_are_counted_apart():
    jobs = np.array([0.0, 1, 1, 2, np.nan])
    ages = np.array([10.0, 20, 20, 1000, 5])
    axes = (Axis.of(JOB, jobs), Axis.of(AGE, np.arange(1000.0)))
    grid = bin_people(axes, (jobs, ages), (np.empty(0), np.empty(0)))
    assert grid.shape == "box"
    assert grid.left_out == 1
    assert sorted(one.n for one in grid.bins) == [1, 1, 2]
    assert [label for _, label in axes[0].ticks()] == ["a", "b", "c"]


def test_the_first_direction_parts_findings_from_people():
    rng = np.random.default_rng(1)
    people = rng.normal(size=(4_000, 5))
    findings = rng.normal(size=(2_000, 5))
    findings[:, 3] += 2.0
    findings[:, 1] *= 3.0
    first, second = tell_directions(people, findings)
    assert abs(first[3]) > 0.95
    assert abs(second[1]) > 0.95
    assert first @ second == pytest.approx(0, abs=1e-6)


def test_people_in_several_parts_are_counted_as_at_once(monkeypatch):
    rng = np.random.default_rng(2)
    x, y = rng.random(500), rng.random(500)
    x[::9] = np.nan
    jobs = rng.integers(3, size=500).astype(float)
    plain = (Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0))
    banded = (Axis.of(JOB, jobs), plain[1])
    for axes, cells in ((plain, (x, y)), (banded, (jobs, y))):
        whole = bin_people(axes, cells, (y, x))
        monkeypatch.setattr(density, "_AT_ONCE", 37)
        assert bin_people(axes, cells, (y, x)) == whole
        monkeypatch.undo()


def test_a_rare_level_has_a_band_of_its_own_among_very_many_findings():
    jobs = np.zeros(60_000)
    jobs[[7, 30_001]] = 1.0, 2.0  # a sample of every second row would miss the first
    axis = Axis.of(JOB, jobs[::2], np.array([0.0, 1.0, 2.0, np.nan]))
    assert [label for _, label in axis.ticks()] == ["a", "b", "c"]
    grid = bin_people((axis, axis), (np.empty(0), np.empty(0)), (jobs, jobs))
    assert sorted(one.findings for one in grid.bins) == [1, 1, 59_998]


def test_a_scale_is_ruled_at_round_numbers():
    assert Axis("x", 17.0, 93.0).ticks() == [
        (pytest.approx((at - 17) / 76), f"{at}") for at in (20, 40, 60, 80)
    ]
    assert [label for _, label in Axis("x", -0.3, 0.3).ticks()] == ["-0.2", "0", "0.2"]
