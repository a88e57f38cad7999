"""Filters, counts, orders and pages of a sheet, beside pandas doing the same row by row."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import InvalidInput
from limi.explore.sheet import Filter, Sheet, Strip
from limi.table.schema import Column

JOB = Column(name="job", kind="categorical", levels=("a", "b", "c"), missing=True)
AGE = Column(name="age", kind="numerical", low=0, high=99, step=1, missing=True)


def sheet_and_frame(seed, n=200):
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 3, n).astype(float)
    age = rng.integers(0, 100, n).astype(float)
    figure = rng.random(n).round(2)
    job[rng.random(n) < 0.1] = np.nan
    age[rng.random(n) < 0.1] = np.nan
    figure[rng.random(n) < 0.1] = np.nan
    strips = {
        "job": Strip.of("job", job, JOB),
        "age": Strip.of("age", age, AGE),
        "figure": Strip("figure", None, figure, None),
    }
    return Sheet(strips, n), pd.DataFrame({"job": job, "age": age, "figure": figure})


def passes(frame, name, wanted):
    """Row by row, as a reader would."""
    told = []
    for cell in frame[name]:
        if wanted.codes is not None:
            told.append(wanted.missing if math.isnan(cell) else cell in wanted.codes)
        else:
            told.append(not math.isnan(cell) and wanted.low <= cell <= wanted.high)
    return np.array(told)


FILTERS = {
    "job": st.builds(
        lambda codes, missing: Filter(codes=tuple(codes), missing=missing),
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), unique=True),
        st.booleans(),
    ),
    "age": st.builds(Filter, st.integers(0, 60).map(float), st.integers(20, 99).map(float)),
    "figure": st.builds(Filter, st.floats(0, 0.5), st.floats(0.4, 1)),
}


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 5),
    st.fixed_dictionaries({}, optional=FILTERS),
    st.sampled_from(["job", "age", "figure", None]),
    st.booleans(),
)
def test_a_selection_is_what_a_reader_would_pick(seed, filters, by, falling):
    sheet, frame = sheet_and_frame(seed)
    masks = {name: passes(frame, name, wanted) for name, wanted in filters.items()}
    inside = np.logical_and.reduce([np.ones(len(frame), dtype=bool), *masks.values()])
    chosen = sheet.select(filters)
    assert chosen.n == inside.sum()
    assert chosen.rows.tolist() == np.flatnonzero(inside).tolist()
    page = chosen.page(0, len(frame), by, falling=falling)
    assert sorted(page.tolist()) == np.flatnonzero(inside).tolist()
    if by is not None:  # what is missing comes last, either way, and equal cells as they stand
        cells = frame[by].to_numpy()
        ranked = sorted(
            np.flatnonzero(inside).tolist(),
            key=lambda row: (
                (math.isnan(cells[row]), -cells[row] if falling else cells[row], row)
                if not math.isnan(cells[row])
                else (True, 0.0, row)
            ),
        )
        assert page.tolist() == ranked
        some = [chosen.page(start, 7, by, falling=falling) for start in range(0, 210, 7)]
        assert np.concatenate(some).tolist() == ranked
    for facet in chosen.facets(["job", "age"]):
        others = [mask for name, mask in masks.items() if name != facet.name]
        among = np.logical_and.reduce([np.ones(len(frame), dtype=bool), *others])
        assert sum(slot.n for slot in facet.slots) == among.sum()
        for slot in facet.slots:
            cells = frame[facet.name].to_numpy()[among]
            if slot.is_missing:
                assert slot.n == np.isnan(cells).sum()
            elif facet.name == "job":
                assert slot.n == (cells == slot.low).sum()


def test_a_share_of_one_stands_with_those_just_below_it():
    cells = np.array([0.05, 0.3, 0.999, 1.0, 1.0, np.nan])
    strip = Strip("naturalness", None, cells, None)
    slots = strip.count(None, None).slots
    assert [slot.n for slot in slots] == [1, 1, 0, 0, 3, 1]
    assert strip.show(slots[-2].high) == "1"
    assert strip.passes(Filter(low=0.8, below=float(repr(slots[-2].high)))).sum() == 3


def test_bins_hold_every_number_once():
    sheet, frame = sheet_and_frame(0, 5_000)
    facet = sheet.select({}).facets(["figure"])[0]
    known = frame.figure.dropna().to_numpy()
    slots = [slot for slot in facet.slots if not slot.is_missing]
    assert sum(slot.n for slot in slots) == len(known)
    assert slots[0].low <= known.min()
    assert slots[-1].high > known.max()
    for slot in slots:
        assert slot.n == ((known >= slot.low) & (known < slot.high)).sum()
        chosen = sheet.select({"figure": Filter(low=slot.low, below=slot.high)})
        assert chosen.n == slot.n
        assert chosen.facets(["figure"])[0].slots[slots.index(slot)].chosen
    for one, other in itertools.pairwise(slots):
        assert one.high == other.low


def test_few_bytes_hold_a_column_of_few_values():
    strip = Strip.of("job", np.arange(3_000) % 3.0, JOB)
    assert strip.places.dtype == np.uint8
    assert strip.take(np.array([0, 4, 2])).tolist() == [0, 1, 2]
    many = Strip.at("x", np.arange(70_000) / 7, np.arange(70_000), AGE)
    assert many.places is None


def test_a_column_that_is_not_there_is_refused():
    sheet, _ = sheet_and_frame(0)
    with pytest.raises(InvalidInput, match="there is no column 'nothing'"):
        sheet.select({}).page(0, 5, "nothing")


def test_missing_stays_chosen():
    from limi.explore.query import Query, facet_view

    strip = Strip.of("c0", np.array([1.0, np.nan, 2.0]), JOB)
    view = facet_view(
        strip, strip.count(None, None), "x0", Query((("c0", "missing"),)), "/findings"
    )
    assert [line.label for line in view.lines if line.chosen] == ["missing"]


def test_a_range_may_let_missing_cells_pass():
    from limi.explore.query import Query, filters_of

    cells = np.array([10.0, np.nan, 30.0])
    sheet = Sheet({"age": Strip.of("age", cells, AGE)}, 3)
    asked = Query((("age.low", "20"), ("age", "missing")))
    assert sheet.select(filters_of(sheet, asked)).rows.tolist() == [1, 2]
    only = Query((("age", "missing"),))
    assert sheet.select(filters_of(sheet, only)).rows.tolist() == [1]
