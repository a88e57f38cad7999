"""Sketches: of fixed size, near the truth, and the same however rows are cut into batches."""

import numpy as np
import pytest

from limi.table.sketches import DistinctCount, Quantiles, RowSampler, row_ranks


@pytest.mark.parametrize("draw", ["normal", "sorted", "few values"])
def test_quantiles_are_near_those_of_all_numbers(draw):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=300_000)
    numbers = {"normal": numbers, "sorted": np.sort(numbers), "few values": np.rint(numbers)}[draw]
    sketch = Quantiles()
    for part in np.split(numbers, 30):
        sketch.add(part)
    wanted = (np.arange(100) + 0.5) / 100
    told = sketch.spread(100)
    ascending = np.sort(numbers)
    low = np.searchsorted(ascending, told, side="left") / len(numbers)
    high = np.searchsorted(ascending, told, side="right") / len(numbers)
    assert ((low - 0.002 <= wanted) & (wanted <= high + 0.002)).all()


def test_quantiles_of_a_few_numbers_are_those_numbers():
    sketch = Quantiles()
    assert len(sketch.spread(5)) == 0
    sketch.add(np.array([3.0, 1.0]))
    sketch.add(np.array([2.0]))
    np.testing.assert_array_equal(sketch.spread(3), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("n", [0, 1, 4_095, 200_000])
def test_values_are_counted_within_a_few_per_cent(n):
    sketch = DistinctCount()
    hashes = row_ranks(0, n)
    for part in (hashes, hashes[: n // 2], hashes[n // 3 :]):
        sketch.add(part)
    assert sketch.estimate == pytest.approx(n, rel=0 if n < 4_096 else 0.06)


def sampled(n_rows, n, size):
    """The rows that are left of a table read in batches of a size."""
    sampler, kept = RowSampler(n), []
    for start in range(0, n_rows, size):
        rows = np.arange(start, min(start + size, n_rows))
        kept.append(rows[sampler.offer(len(rows))])
        masks = sampler.settle()
        kept = kept if masks is None else [k[m] for k, m in zip(kept, masks, strict=True)]
        assert sum(map(len, kept)) <= 2 * n
    masks = sampler.settle(at_end=True)
    kept = kept if masks is None else [k[m] for k, m in zip(kept, masks, strict=True)]
    return np.concatenate(kept)


def test_the_sample_hangs_on_the_rows_and_not_on_the_batches():
    ranks = row_ranks(0, 5_000)
    plain = np.sort(np.argsort(ranks)[:200])  # the twin: rank all rows, take the first
    for size in (1, 7, 64, 5_000):
        np.testing.assert_array_equal(sampled(5_000, 200, size), plain)
    np.testing.assert_array_equal(sampled(150, 200, 40), np.arange(150))


def test_the_sample_is_fair():
    rows = sampled(100_000, 10_000, 4_096)
    counts = np.histogram(rows, bins=20, range=(0, 100_000))[0]
    assert (np.abs(counts - 500) < 5 * np.sqrt(500 * 0.9)).all()
