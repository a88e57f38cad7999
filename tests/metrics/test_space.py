"""Rows as points: one axis for each number, for each frequent level, and for missing cells."""

import numpy as np
import pytest

from limi.metrics._space import Space, find_neighbours, nearest
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="age", kind="numerical", low=0, high=100, step=1),
        Column(name="job", kind="categorical", levels=("a", "b", "c"), missing=True),
        Column(name="debt", kind="numerical", low=-9.0, high=9.0, missing=True),
    )
)


def rows_of(n=60):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 100, n), rng.integers(0, 3, n), rng.normal(0, 2, n)])
    rows = rows.clip([0, 0, -9], [100, 2, 9]).astype(float)
    rows[:7, 2] = np.nan
    return rows


def by_hand(rows, *, missing):
    """One point at a time; `missing` are the columns with an axis for missing cells."""
    points = []
    for row in rows:
        point = []
        for j, column in enumerate(SCHEMA.columns):
            known = rows[~np.isnan(rows[:, j]), j]
            if j in missing:
                point.append(float(np.isnan(row[j])))
            if column.kind == "numerical":
                here = known.mean() if np.isnan(row[j]) else row[j]
                point.append((here - known.mean()) / known.std())
            else:
                point += [float(row[j] == level) for level in np.unique(known)]
        points.append(point)
    return np.array(points)


@pytest.mark.parametrize(("closed", "missing"), [(False, {0, 1, 2}), (True, {2})])
def test_points_are_those_made_by_hand(closed, missing):
    rows = rows_of()
    points = Space.learn(rows, SCHEMA, closed=closed).place(rows, np.float64)
    np.testing.assert_allclose(points, by_hand(rows, missing=missing), atol=1e-12)


def test_the_nearest_point_is_found():
    points = Space.learn(rows_of(), SCHEMA).place(rows_of())
    distances, which = nearest(points[:5], points[5:], 1)
    gaps = np.linalg.norm(points[:5, None] - points[None, 5:], axis=2)
    np.testing.assert_allclose(distances[:, 0], gaps.min(axis=1), rtol=1e-5)
    assert which[:, 0].tolist() == gaps.argmin(axis=1).tolist()


@pytest.mark.parametrize(("n", "k"), [(5, 5), (40, 12), (700, 5)])
def test_neighbours_are_as_far_as_the_nearest_of_all_distances(n, k):
    rng = np.random.default_rng(n)
    points = rng.integers(3, size=(60, 4)).astype(np.float32)  # so coarse that most are tied
    among = rng.integers(3, size=(n, 4)).astype(np.float32)
    gaps = np.sqrt(((points[:, None] - among[None]).astype(float) ** 2).sum(axis=2))
    distances, which = nearest(points, among, k)
    assert np.array_equal(distances, np.sort(gaps, axis=1)[:, :k])
    assert np.array_equal(np.take_along_axis(gaps, which, axis=1), distances)
    assert (np.diff(np.sort(which, axis=1), axis=1) > 0).all()
    assert nearest(points[:0], among, k)[0].shape == (0, k)


def test_equal_rows_are_equally_far_whatever_stands_beside_them():
    rng = np.random.default_rng(0)
    points, among = (rng.normal(size=(size, 30)).astype(np.float32) for size in (300, 900))
    together, _ = nearest(points, among, 5)
    alone = np.concatenate([nearest(points[i : i + 1], among, 5)[0] for i in range(0, 300, 29)])
    assert np.array_equal(together[::29], alone)


def test_of_equally_near_points_the_first_are_the_neighbours():
    rng = np.random.default_rng(2)
    points = rng.integers(0, 3, (300, 4)).astype(float) / 7  # hundreds are equally far
    away = np.round(((points[:, None] - points) ** 2).sum(axis=2), 6)
    expected = np.argsort(away, axis=1, kind="stable")[:, :5]
    assert np.array_equal(find_neighbours(points, 5), expected)
    shifted = find_neighbours(points + 1e-12 * rng.random(points.shape), 5)
    assert np.array_equal(shifted, expected)
