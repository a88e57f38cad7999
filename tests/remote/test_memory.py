"""Answers are kept by the keys of their rows, whatever ends the program."""

import sqlite3

import numpy as np
import pytest

from limi.errors import CorruptStore, InvalidInput
from limi.remote.cells import names
from limi.remote.memory import Memory, remove_empty


def keys(*numbers):
    return names(np.array([[n, -n] for n in numbers], dtype=np.int64))


def answers(memory, asked):
    places = memory.find(asked)
    return [None if place < 0 else memory.answers([place])[0] for place in places.tolist()]


def test_what_is_kept_is_found_by_the_next_run(tmp_path):
    first = Memory("model", tmp_path / "cache", run="a")
    first.end(first.begin(keys(1, 2, 3)), keys(1, 2, 3), [0.1, "yes", [0.25, 0.75]])
    first.keep_fact("about", "it")
    first.close()
    again = Memory("model", tmp_path / "cache", run="b")
    assert answers(again, keys(3, 4, 1)) == [[0.25, 0.75], None, 0.1]
    assert again.fact("about") == "it"
    assert again.new == 0
    again.close()
    other = Memory("another", tmp_path / "cache")
    assert answers(other, keys(1)) == [None]
    other.close()


def test_rows_without_an_answer_are_sent_again_and_counted_once(tmp_path):
    killed = Memory("model", tmp_path / "cache", run="a")
    killed.end(killed.begin(keys(1)), keys(1), [0.5])
    killed.begin(keys(2, 3))  # and then a kill
    killed.close()
    resumed = Memory("model", tmp_path / "cache", run="a", resume=True)
    assert resumed.new == 3
    assert resumed.count_new(keys(2, 3, 4)) == 1
    resumed.begin(keys(2, 3, 4))
    assert resumed.new == 4
    resumed.close()


def test_a_run_that_starts_anew_counts_anew_and_knows_the_answers(tmp_path):
    first = Memory("model", tmp_path / "cache", run="a")
    first.end(first.begin(keys(1, 2)), keys(1, 2), [0.5, 0.5])
    first.close()
    anew = Memory("model", tmp_path / "cache", run="a")
    assert anew.new == 0
    assert answers(anew, keys(1)) == [0.5]
    anew.close()


def test_nothing_is_written_into_what_is_not_a_cache(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("my notes")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (a)")
    file.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match="not a limi cache"):
            Memory("model", path)
        assert path.read_bytes() == before
    with pytest.raises(InvalidInput, match="no folder"):
        Memory("model", tmp_path / "none" / "cache")


def test_a_cache_of_another_version_or_with_damage_is_refused(tmp_path):
    path = tmp_path / "cache"
    made = Memory("model", path)
    made.end(made.begin(keys(1)), keys(1), [0.5])
    made.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE requests SET answers = '[0.5, 0.5]'")
    file.close()
    with pytest.raises(CorruptStore, match="a different number of answers"):
        Memory("model", path)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE requests SET answers = '{'")
    file.close()
    with pytest.raises(CorruptStore, match="cannot be read"):
        Memory("model", path)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 9")
    file.close()
    with pytest.raises(CorruptStore, match="another version"):
        Memory("model", path)


def test_a_locked_cache_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr("limi.remote.memory._PATIENCE", 0.05)
    path = tmp_path / "cache"
    mine = Memory("model", path)
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CorruptStore, match="locked by another program"):
        mine.begin(keys(1))
    other.close()


def test_no_row_is_kept_but_its_key(tmp_path):
    memory = Memory("model", tmp_path / "cache")
    memory.end(memory.begin(keys(7)), keys(7), [0.5])
    memory.close()
    with sqlite3.connect(tmp_path / "cache") as file:
        (line,) = file.execute("SELECT keys, answers FROM requests")
    file.close()
    assert line == (keys(7)[0], np.float64(0.5).tobytes())


@pytest.mark.parametrize(
    "given",
    [[0.1, 1e-300], [0, 1], [True, False], ["no", "é"], [[0.25, 0.75], [1.0, 0.0]], [0.5, 1]],
)
def test_answers_come_back_with_their_types(tmp_path, given):
    memory = Memory("model", tmp_path / "cache")
    memory.end(memory.begin(keys(1, 2)), keys(1, 2), given)
    memory.close()
    again = Memory("model", tmp_path / "cache")
    assert repr(answers(again, keys(1, 2))) == repr(given)
    again.close()


def test_what_names_a_model_is_not_kept_but_for_its_digest(tmp_path):
    memory = Memory("request with the key k-4815", tmp_path / "cache")
    memory.end(memory.begin(keys(7)), keys(7), [0.5])
    memory.close()
    assert b"k-4815" not in (tmp_path / "cache").read_bytes()


def test_runs_at_the_same_time_see_what_the_other_was_answered(tmp_path):
    one, two = (Memory("model", tmp_path / "cache", run=run) for run in "ab")
    number = one.begin(keys(1, 2))
    assert not two.refresh()  # it was asked, and not answered yet
    two.end(two.begin(keys(5)), keys(5), [0.25])
    one.end(number, keys(1, 2), [0.5, "x"])
    assert two.refresh()
    assert answers(two, keys(2, 1, 5)) == ["x", 0.5, 0.25]
    assert not two.refresh()
    assert one.refresh()
    assert answers(one, keys(5, 1)) == [0.25, 0.5]
    one.close()
    two.close()


def test_a_cache_that_was_made_for_nothing_is_taken_away(tmp_path):
    path = tmp_path / "cache"
    memory = Memory("model", path)
    memory.begin(keys(1))
    memory.close()
    assert list(tmp_path.iterdir()) == []
    memory.end(memory.begin(keys(1)), keys(1), [0.5])
    memory.close()
    assert path.exists()
    other = Memory("another", path)
    other.begin(keys(1))
    other.close()
    remove_empty(path)
    assert path.exists()
