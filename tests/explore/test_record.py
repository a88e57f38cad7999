"""The record: what stands in it, and what becomes of bookmarks."""

import json
import time

import numpy as np
import pytest

from limi.audits.record import RECORD, Record, cells_of, read_bookmarks, read_entries, row_of
from limi.errors import CorruptStore, FailedWrite
from limi.report import html
from limi.system import writing


def ask_all(x):
    x.ask_person(x.rows[3])
    x.find_nearest(x.rows[9], "flip")
    x.walk(x.rows[9])
    x.look_at(x.region_of([{"column": "age", "low": 45, "high": 60}]))
    x.bookmark(x.rows[3], x.rows[4], "why <this>")


def test_every_question_is_a_line_of_the_record_and_a_look_begins_with_one(opened):
    first = opened()
    ask_all(first)
    again = opened()  # the same file
    asked = [entry["ask"] for entry in again.record.entries if "ask" in entry]
    assert asked == ["person", "nearest", "walk", "region"]
    assert len(again.record.entries) == 6
    assert again.looks == 1


def test_a_row_reads_back_from_its_cells(opened):
    x = opened(read_only=True)
    for row in x.rows[:20]:
        cells = json.loads(json.dumps(cells_of(x.schema, row)))
        assert row_of(x.schema, cells).tolist() == row.tolist()
    hidden = cells_of(x.schema, x.rows[0], ("age",))
    assert "age" not in hidden
    with pytest.raises(CorruptStore, match="has no 'age', or it is hidden"):
        row_of(x.schema, hidden)


@pytest.mark.parametrize("line", ["{", "[]", '{"number": "1"}', '{"number": 1}', '"x"', "\x00"])
def test_a_line_that_limi_did_not_write_is_refused(tmp_path, line):
    path = tmp_path / RECORD
    path.write_text(line + "\n")
    with pytest.raises(CorruptStore, match="line 1 of"):
        read_entries(path)
    with pytest.raises(CorruptStore):
        read_bookmarks(tmp_path)


def test_a_newer_record_is_refused(tmp_path):
    (tmp_path / RECORD).write_text('{"format": 99, "number": 1}\n')
    with pytest.raises(CorruptStore, match="newer limi"):
        read_entries(tmp_path / RECORD)


def test_two_that_write_one_record_lose_no_line(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    records = [Record(tmp_path / RECORD, lambda: "now") for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: records[k % 4].add({"ask": "person", "k": k}), range(80)))
    entries = read_entries(tmp_path / RECORD)
    assert sorted(entry["k"] for entry in entries) == list(range(80))
    assert [entry["number"] for entry in entries] == list(range(1, 81))
    records[0].refresh()
    assert records[0].entries == entries


def test_two_explorations_of_one_record_count_their_looks_together(opened):
    one, other = opened(), opened()
    other.given_generator = one.generator()
    region = one.region_of([{"column": "age", "low": 45, "high": 60}])
    looks = [x.look_at(region).number for x in (one, other, other, one)]
    assert looks == [1, 2, 3, 4]
    other.bookmark(other.rows[3], other.rows[3], "by the other")
    one.record.refresh()
    assert [mark.note for mark in one.record.bookmarks] == ["by the other"]


def test_part_of_a_line_that_a_killed_program_left_is_not_read_and_goes(tmp_path):
    record = Record(tmp_path / RECORD, lambda: "now")
    record.add({"k": 1})
    with (tmp_path / RECORD).open("ab") as file:
        file.write(b'{"format": 1, "num')
    assert [entry["k"] for entry in read_entries(tmp_path / RECORD)] == [1]
    record.add({"k": 2})
    assert [entry["k"] for entry in read_entries(tmp_path / RECORD)] == [1, 2]


def test_a_last_line_without_an_end_is_kept(tmp_path):
    path = tmp_path / RECORD
    Record(path, lambda: "now").add({"k": 1})
    path.write_bytes(path.read_bytes().rstrip())  # as an editor may
    record = Record(path, lambda: "now")
    assert [entry["k"] for entry in record.entries] == [1]
    assert record.add({"k": 2})["number"] == 2
    assert [entry["k"] for entry in read_entries(path)] == [1, 2]


def test_a_record_that_another_program_holds_is_told_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    record = Record(tmp_path / RECORD, lambda: "now")
    with (
        writing.lock(tmp_path / RECORD),
        pytest.raises(FailedWrite, match="another program keeps it locked"),
    ):
        record.add({"k": 1})
    assert record.add({"k": 2})["number"] == 1


def test_a_bookmark_is_kept_when_the_session_may_ask_no_more(opened):
    x = opened(max_queries=64)  # as many as it takes to see that the model is the run's
    assert x.meter.left == 0
    kept = x.bookmark(x.rows[3], x.rows[3], "later")
    assert (kept["decision"], kept["partner"]) == ("not asked", [])
    assert [mark.note for mark in x.record.bookmarks] == ["later"]


def test_answers_of_several_threads_have_a_number_each():
    from concurrent.futures import ThreadPoolExecutor

    record = Record(None, lambda: time.sleep(0) or "now")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: record.add({"k": k}), range(200)))
    assert sorted(entry["number"] for entry in record.entries) == list(range(1, 201))


def test_a_look_that_failed_gives_its_number_to_no_other(opened, tmp_path):
    line = {"format": 1, "number": 1, "ask": "region", "look": 3}
    (tmp_path / "explore.jsonl").write_text(json.dumps(line) + "\n")
    assert opened(read_only=True).looks == 3


def test_a_full_disk_is_a_sentence(tmp_path, monkeypatch):
    record = Record(tmp_path / RECORD, lambda: "now")

    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "append", full)
    with pytest.raises(FailedWrite, match="--record FILE"):
        record.add({"ask": "person"})
    assert record.entries == []


def test_bookmarks_become_a_section_of_report_and_pack(opened, run, tmp_path):
    import shutil
    import zipfile

    from limi.evidence import pack

    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    x = opened(record=folder / RECORD)
    x.bookmark(x.who("f0").row, x.who("f0").row, "why <this>")
    kept = x.bookmark(x.rows[0], x.rows[0], "not any more")
    x.forget(kept["number"])
    marks = read_bookmarks(folder)
    assert [mark.note for mark in marks] == ["why <this>"]
    assert marks[0].flips
    assert marks[0].partner[0][0] == "sex"
    page = html.render(x.summary, bookmarks=marks)
    assert "why &lt;this&gt;" in page
    assert "Bookmarked people" in page
    assert "Bookmarked people" not in html.render(x.summary)
    pack(folder, tmp_path / "pack.zip")
    with zipfile.ZipFile(tmp_path / "pack.zip") as archive:
        assert b"why &lt;this&gt;" in archive.read("report.html")


def test_what_cannot_be_told_in_json_is_null(tmp_path):
    record = Record(None, lambda: "now")
    entry = record.add({"x": np.array([1.0, np.nan]), "y": np.float64(2), "z": (np.int64(3),)})
    assert entry["x"] == [1.0, None]
    assert entry["y"] == 2
    assert entry["z"] == [3]
