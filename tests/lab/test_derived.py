"""What follows from the measures of cells."""

import dataclasses

import pytest

from lab import derived as _derived
from lab import page as _page
from lab.derived import complete
from lab.files import load
from lab.results import Results, keep
from tests.lab.small import outcome

CURVE = {"rows": [100, 720], "queries": [200, 1440], "findings": [10, 72]}


def derive(study, cell, speeds=None):
    results = Results(study, "paper", {cell.cell: cell})
    found = complete(load(study), results, {} if speeds is None else speeds)
    return found.outcomes[cell.cell].measures


def timed(name, machine="here", **measures):
    given = {"target": "dnn", "device": "cpu", "machine": machine}
    return dataclasses.replace(outcome(name, **measures), given=given)


def test_what_a_row_by_row_program_would_have_found_by_then():
    """SG on census (sex): 1,806 findings at 0.5 a second are 3,612 seconds, so an hour."""
    cell = outcome("census-sex/sg/0", findings=72.0, rows=720.0, curve=CURVE)
    speeds = {("census-sex", "sg"): _derived._Program(speed=0.1, before=600.0)}
    found = derive("dnn", cell, speeds)
    assert found["paper_seconds"] == 3600
    assert found["paper_end"] == 1
    assert found["loop_rows"] == pytest.approx(300)
    assert found["loop_findings"] == pytest.approx(30)
    # As many as the paper's were never found here.
    assert (found["paper_rows"], found["paper_speed"]) == (None, None)


def test_all_that_was_found_counts_where_it_fits_in_the_paper_s_time():
    for speed, expected in ((0.2, 72.0), (0.1, None)):
        cell = outcome("census-sex/sg/0", findings=72.0, rows=720.0)
        speeds = {("census-sex", "sg"): _derived._Program(speed, 0.0)}
        assert derive("dnn", cell, speeds)["loop_findings"] == expected


def test_rows_that_the_paper_s_program_would_have_checked_at_our_hit_rate():
    """ExpGA on census (race): 4,215 findings at 9.73 a second are 433 seconds."""
    curve = {"rows": [10_000, 20_000], "queries": [1, 2], "findings": [4_000, 8_300]}
    cell = outcome("census-race/expga/0", findings=8_300.0, rows=20_000.0, curve=curve)
    found = derive("dnn", cell)
    assert found["paper_end"] == 0
    assert found["paper_rows"] == pytest.approx(10_500)
    assert found["paper_speed"] == pytest.approx(10_500 / (4215 / 9.73))
    assert "loop_rows" not in found


def test_a_rounded_rate_that_may_be_an_hour_counts_as_one():
    """AEQUITAS on census (race), forests: 100 findings at 0.03 are between 2,857 and 4,000 s."""
    cell = outcome("census-race/aequitas/0", findings=5.0, rows=10.0)
    assert derive("rf", cell)["paper_end"] == 1
    cell = outcome("census-sex/aequitas/0", findings=5.0, rows=10.0)
    assert derive("dnn", cell)["paper_end"] == 0  # 3,484 at 1.09 are 3,196 s


def test_programs_of_other_targets_and_generators_have_speeds_of_their_own(tmp_path):
    cells = {
        name: timed(name, loop_speed=speed, loop_before=before, rows=300)
        for name, speed, before in (
            ("census-sex/limi/0", 1.0, 0.0),
            ("census-sex/limi-rf.ctgan/0", 2.0, 3.0),
            ("census-sex/limi-rf.ctgan/1", 4.0, 5.0),
            ("census-sex/limi-rf.ctgan/2", 9.0, 4.0),
        )
    }
    keep(Results("plain", "small", cells), tmp_path)
    speeds = _derived.read_speeds(tmp_path)
    assert speeds[("census-sex", "limi-rf.ctgan")] == _derived._Program(5.0, 4.0)
    cell = outcome("census-sex/limi.ctgan/0", findings=5.0, rows=10.0)
    told = derive("rf", cell, speeds)
    assert (told["loop_speed"], told["loop_per_second"]) == (5.0, 2.5)  # every other row flips
    assert "loop_speed" not in derive("dnn", cell, speeds)


def test_programs_that_were_timed_on_several_machines_have_no_speeds(tmp_path):
    for other, n in (("here", 2), ("there", 0), ("", 0)):
        cells = [
            timed("census-sex/limi/0", loop_speed=1.0, loop_before=0.0),
            timed("census-sex/sg/0", other, loop_speed=2.0, loop_before=0.0),
        ]
        keep(Results("plain", "small", {cell.cell: cell for cell in cells}), tmp_path)
        assert len(_derived.read_speeds(tmp_path)) == n
        # Those that come with limi are of another machine still, so they do not stand in.
        assert len(_page._speeds(tmp_path)) == n


def test_speeds_that_come_with_limi_are_taken_where_no_program_was_timed(tmp_path):
    assert _derived.read_speeds(tmp_path) is None
    assert ("census-sex", "limi") in _page._speeds(tmp_path)


def test_findings_at_equal_rows_come_from_the_curve():
    curve = {"rows": [1_000, 10_000, 50_000], "queries": [1, 2, 3], "findings": [90, 800, 3_000]}
    found = derive("dnn", outcome("census-sex/limi/0", findings=3_000, rows=50_000, curve=curve))
    assert (found["found_1k"], found["found_10k"], found["found_100k"]) == (90, 800, None)


def test_findings_per_second_of_the_search_alone_and_of_everything():
    cells = [
        outcome("census-sex/sg/0", findings=60, seconds=2.0, rows=120, queries=600),
        outcome("census-sex/limi/0", findings=60, seconds=2.0, generator_seconds=10.0),
        outcome("census-sex/natural/0", findings=60, seconds=2.0, seconds_before=0.5),
    ]
    cells[1:] = [dataclasses.replace(c, given={"generator": "trees"}) for c in cells[1:]]
    told = [derive("dnn", cell) for cell in cells]
    # A fit whose seconds were not kept is not taken for none, nor is a time before the first check.
    assert [one.get("per_second_all") for one in told] == [30.0, 5.0, None]
    assert [one.get("per_second_search") for one in told] == [None, None, 40.0]
    assert (told[0]["per_row"], told[0]["per_thousand_queries"]) == (0.5, 100.0)


def test_findings_are_read_off_where_the_paper_stops():
    for rows, latents, expected in ((720, 1_000, 72), (720, 410, 41), (720, None, None)):
        cell = outcome("census-sex/step-0.3/0", findings=72.0, rows=rows, curve=CURVE)
        settings = {} if latents is None else {"n_latents": latents}
        cell = dataclasses.replace(cell, given={"settings": settings})
        assert derive("step", cell).get("found_latents") == expected
    # Without a curve nothing can be read off.
    cell = outcome("census-sex/step-0.3/0", findings=72.0, rows=720)
    cell = dataclasses.replace(cell, given={"settings": {"n_latents": 100}})
    assert derive("step", cell)["found_latents"] is None


def test_repeated_findings_are_counted_of_the_paper_s_recipe_alone():
    for variant, expected in (("limi", 2.5), ("limi-best", None), ("control", None)):
        cell = outcome(f"census-sex/{variant}/0", findings=40, added=100)
        assert derive("repair-dnn", cell).get("repeats") == expected


def test_a_negative_time_before_the_first_row_was_not_measured(tmp_path):
    times = {"census-sex/expga/0": -1.0, "census-sex/expga/1": 11.0, "census-sex/sg/0": 3.0}
    cells = {n: timed(n, loop_speed=2.0, loop_before=t, rows=300) for n, t in times.items()}
    known = Results("plain", "small", cells)
    found = complete(load("plain"), known, {}).outcomes
    assert [found[name].measures["loop_before"] for name in times] == [None, None, 3.0]
    negative = {**cells, "census-sex/expga/1": cells["census-sex/expga/0"]}
    keep(Results("plain", "small", negative), tmp_path)
    assert _derived.read_speeds(tmp_path)[("census-sex", "expga")].before == 0.0
