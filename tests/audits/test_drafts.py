"""Run folders are complete or absent, and nothing but limi's own files is ever removed."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from limi.audits.drafts import Draft
from limi.errors import CorruptStore, FailedWrite, InvalidInput
from limi.search.answer_log import AnswerLog

MANIFEST = {"format": 1, "config_sha256": "a" * 64}
OTHER = {"format": 1, "config_sha256": "b" * 64}
FILES = {"summary.json": '{"format": 1}', "report.html": "<html>"}
PEOPLE = np.linspace(0, 1, 8)[:, None]
ROOT = Path(__file__).parent.parent.parent


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def written(place, *, manifest=MANIFEST, files=FILES, **given):
    """A run folder, and what was in its way."""
    with Draft.at(place, **given) as draft:
        draft.settle_on(manifest)
        draft.finish(files, keep_journal=False)
    return place


def attempt(place, work, **given):
    """Work in a draft."""
    with Draft.at(place, **given) as draft:
        work(draft)


def killed(place, answers=b"LJ02", files=()):
    """What a killed run left."""
    folder = place.with_name(place.name + ".partial")
    folder.mkdir(parents=True)
    (folder / "journal.bin").write_bytes(answers)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    for name in files:
        (folder / name).write_text("half")
    return folder


# -- places ---------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("x" * 300, "x" * 250, "loop"):
        with pytest.raises(InvalidInput, match=r"cannot be written to: .*; name another folder"):
            Draft.at(tmp_path / name)
    with pytest.raises(InvalidInput, match="null"):
        Draft.at(f"{tmp_path}/a\0b")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is not a folder"):
        Draft.at(tmp_path / "file")
    with pytest.raises(InvalidInput, match="cannot be written"), Draft.at(tmp_path / "file" / "a"):
        pass
    assert names(tmp_path) == ["file", "loop"]
    with pytest.raises(InvalidInput, match="contains the folder you are in"):
        Draft.at("/")


def test_the_longest_name_that_can_be_replaced_is_taken(tmp_path):
    place = tmp_path / ("x" * 242)
    written(place)
    written(place, force=True)
    assert names(tmp_path) == [place.name]


def test_asking_for_a_draft_creates_nothing(tmp_path):
    Draft.at(tmp_path / "a" / "b" / "run")
    assert names(tmp_path) == []


def test_folders_above_go_with_a_failure(tmp_path):
    (tmp_path / "kept").mkdir()
    with pytest.raises(InvalidInput), Draft.at(tmp_path / "kept" / "a" / "b" / "run"):
        raise InvalidInput("no")
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == []


def test_the_place_is_fixed_before_the_folder_is_left(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    draft = Draft.at("run")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with draft:
        draft.settle_on(MANIFEST)
        draft.finish(FILES, keep_journal=False)
    assert names(tmp_path) == ["elsewhere", "run"]
    assert names(tmp_path / "elsewhere") == []


def test_a_run_is_written_from_a_folder_that_is_gone(tmp_path):
    (tmp_path / "gone").mkdir()
    code = (
        "import os, sys\nfrom limi.audits.drafts import Draft\n"
        "from limi.errors import InvalidInput\n"
        "os.rmdir(os.getcwd())\n"
        "with Draft.at(sys.argv[1]) as draft:\n"
        "    draft.finish({'report.html': 'a'}, keep_journal=False)\n"
        "try: Draft.at('run')\nexcept InvalidInput as error: print(error)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "the folder you are in no longer exists" in shown.stdout
    assert names(tmp_path) == ["run"]


# -- what is not ours -----------------------------------------------------------------------


def a_file(path):
    path.write_text("mine")


def a_folder(path):
    path.mkdir()
    (path / "precious.txt").write_text("mine")


def a_link(path):
    path.symlink_to(path.parent.parent)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("notes.txt", a_file),
        (".env", a_file),
        (".git", a_folder),
        (".limi-0123456789abcdef.partial", a_file),
        ("schema.toml", a_folder),
        ("metrics.json", a_link),
    ],
)
def test_force_spares_a_folder_that_holds_more_than_a_run(tmp_path, name, made):
    place = written(tmp_path / "run")
    made(place / name)
    before = names(place)
    for given in ({"force": True}, {"force": True, "resume": True}):
        with pytest.raises(
            InvalidInput, match=r"holds files that are not part of|no unfinished run"
        ):
            Draft.at(place, **given)
    assert names(place) == before
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize(
    "files",
    [
        {"manifest.json": '{"name": "an extension"}', "summary.json": "{}"},
        {"manifest.json": "damaged", "summary.json": '{"format": 1}'},
        {"report.html": "my own page"},
        {"repair.json": '{"shop": "bicycles"}'},
        {"model.npz": "weights"},
    ],
)
def test_force_spares_files_that_are_only_called_like_ours(tmp_path, files):
    place = tmp_path / "run"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    with pytest.raises(InvalidInput, match="holds files that are not part of a limi run"):
        Draft.at(place, force=True)
    assert {path.name: path.read_text() for path in place.iterdir()} == files


def test_force_replaces_runs_and_empty_folders(tmp_path):
    place = written(tmp_path / "run")
    written(place, files={**FILES, "report.html": "new"}, force=True)
    assert (place / "report.html").read_text() == "new"
    assert names(place) == ["manifest.json", "report.html", "summary.json"]
    (tmp_path / "empty").mkdir()
    written(tmp_path / "empty", force=True)
    repair = {"repair.json": '{"format": 1, "verdict": "helped"}', "card.md": "#"}
    with Draft.at(tmp_path / "repaired") as draft:
        draft.finish(repair, keep_journal=False)
    with Draft.at(tmp_path / "repaired", force=True) as draft:
        draft.finish(repair, keep_journal=False)
    assert names(tmp_path) == ["empty", "repaired", "run"]
    assert names(tmp_path / "repaired") == ["card.md", "repair.json"]


def test_what_lies_beside_is_not_touched(tmp_path):
    place = written(tmp_path / "run")
    for name in ("run.old", "run.01234567.old", "run.0123456.old", ".run.partial"):
        a_folder(tmp_path / name)
    written(place, force=True)
    left = [".run.partial", "run", "run.0123456.old", "run.01234567.old", "run.old"]
    assert names(tmp_path) == left
    assert (tmp_path / "run.01234567.old" / "precious.txt").read_text() == "mine"


@pytest.mark.parametrize("made", [a_file, a_folder, a_link])
@pytest.mark.parametrize("given", [{}, {"force": True}, {"resume": True}])
def test_a_foreign_folder_where_the_draft_should_be_is_left_alone(tmp_path, made, given):
    made(tmp_path / "run.partial")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match=r"holds other files; move it"):
        Draft.at(tmp_path / "run", **given)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("stranger", ["notes.txt", ".env"])
def test_a_draft_with_something_foreign_is_left_alone(tmp_path, stranger):
    folder = killed(tmp_path / "run")
    (folder / stranger).write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        Draft.at(tmp_path / "run", force=True)
    assert names(folder) == sorted(["journal.bin", "manifest.json", stranger])


def test_what_comes_into_a_draft_during_the_run_is_not_removed(tmp_path):
    def work(draft):
        draft.settle_on(MANIFEST)
        (draft.folder / "notes.txt").write_text("mine")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        attempt(tmp_path / "run", work)
    assert names(tmp_path / "run.partial") == ["notes.txt"]


def test_what_comes_to_the_place_during_the_run_is_not_replaced(tmp_path):
    place = tmp_path / "run"

    def work(draft):
        draft.settle_on(MANIFEST)
        a_folder(place)
        draft.finish(FILES, keep_journal=False)

    with pytest.raises(FailedWrite, match=r"the finished run is in '.*run\.partial'"):
        attempt(place, work)
    assert names(place) == ["precious.txt"]
    assert set(FILES) < set(names(tmp_path / "run.partial"))


# -- two programs ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"force": True}, {"resume": True}])
def test_one_program_at_a_time_writes_a_folder(tmp_path, given):
    with Draft.at(tmp_path / "run") as draft:
        draft.settle_on(MANIFEST)
        with pytest.raises(InvalidInput, match=r"another limi is writing .* right now") as caught:
            Draft.at(tmp_path / "run", **given)
        assert caught.value.exit_code == 2
        draft.finish(FILES, keep_journal=False)
    assert names(tmp_path) == ["run"]


def test_two_that_begin_at_once_do_not_both_begin(tmp_path):
    first, second = (Draft.at(tmp_path / "run", force=True) for _ in range(2))
    with first:
        with pytest.raises(InvalidInput, match="right now"), second:
            pass
        first.settle_on(MANIFEST)
        first.finish(FILES, keep_journal=False)
    # One that looked before the other began, and begins after it has finished, looks again.
    late = Draft.at(tmp_path / "other")
    written(tmp_path / "other")
    with pytest.raises(InvalidInput, match="exists already"), late:
        pass
    assert names(tmp_path) == ["other", "run"]


# -- kills and failures ---------------------------------------------------------------------


def test_an_unfinished_run_is_neither_overwritten_nor_forgotten(tmp_path):
    folder = killed(tmp_path / "run", files=["report.html", ".limi-0123456789abcdef.partial"])
    with pytest.raises(InvalidInput, match="--resume, or start again with --force"):
        Draft.at(tmp_path / "run")
    with pytest.raises(InvalidInput, match="different settings"):
        attempt(tmp_path / "run", lambda draft: draft.settle_on(OTHER), resume=True)
    assert (folder / "journal.bin").read_bytes() == b"LJ02"
    with Draft.at(tmp_path / "run", resume=True) as draft:
        assert draft.log.read() == b"LJ02"
        draft.settle_on(MANIFEST)
        draft.finish(FILES, keep_journal=False)
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["manifest.json", "report.html", "summary.json"]


def test_force_begins_an_unfinished_run_again(tmp_path):
    killed(tmp_path / "run", files=["findings.parquet", ".limi-0123456789abcdef.partial"])
    with Draft.at(tmp_path / "run", force=True) as draft:
        assert draft.log.read() == b""
        assert names(draft.folder) == ["journal.bin"]


@pytest.mark.parametrize("start", [b"", b"LJ", b"LJ01 of an earlier version", b"damaged"])
def test_a_draft_is_ours_by_its_journal_or_its_manifest(tmp_path, start):
    killed(tmp_path / "run", start)
    written(tmp_path / "run", force=True)
    assert names(tmp_path) == ["run"]


def test_a_run_that_was_killed_before_its_first_answer_can_be_resumed_or_begun(tmp_path):
    for number, given in enumerate([{}, {"resume": True}] * 2):
        place = tmp_path / str(number)
        place.with_name(f"{number}.partial").mkdir()
        if number > 1:
            (place.with_name(f"{number}.partial") / "journal.bin").touch()
        written(place, **given)
    assert names(tmp_path) == ["0", "1", "2", "3"]


def test_an_empty_manifest_is_written_again(tmp_path):
    folder = killed(tmp_path / "run")
    (folder / "manifest.json").write_text("")
    with Draft.at(tmp_path / "run", resume=True) as draft:
        draft.settle_on(MANIFEST)
        assert json.loads((folder / "manifest.json").read_text()) == MANIFEST
    (folder / "manifest.json").write_text("{")
    with pytest.raises(CorruptStore, match="cannot be read"):
        attempt(tmp_path / "run", lambda draft: draft.settle_on(MANIFEST), resume=True)


def test_a_finished_run_is_not_resumed(tmp_path):
    place = written(tmp_path / "run")
    for made in (lambda: None, (tmp_path / "run.partial").mkdir):
        made()
        with pytest.raises(InvalidInput, match="there is no unfinished run"):
            Draft.at(place, resume=True)


def interrupted(place):
    with Draft.at(place) as draft:
        draft.settle_on(MANIFEST)
        os.write(draft.log.fileno(), b"LJ02 answers")
        draft.finish(FILES, keep_journal=True)


def test_an_interrupted_run_is_taken_up_from_its_folder(tmp_path):
    place = tmp_path / "run"
    interrupted(place)
    assert names(tmp_path) == ["run"]
    # A resumed run that fails at once leaves the folder as it was.
    with pytest.raises(InvalidInput, match="different settings"):
        attempt(place, lambda draft: draft.settle_on(OTHER), resume=True)
    assert names(tmp_path) == ["run"]
    assert (place / "journal.bin").read_bytes() == b"LJ02 answers"
    # A kill while the answers were copied is no loss.
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "journal.bin").write_bytes(b"LJ02 an")
    with Draft.at(place, resume=True) as draft:
        assert (draft.folder / "journal.bin").read_bytes() == b"LJ02 answers"
        draft.settle_on(MANIFEST)
        draft.finish(FILES, keep_journal=False)
    assert names(tmp_path) == ["run"]
    assert "journal.bin" not in names(place)


class Killed(BaseException):
    pass


def killing(monkeypatch, nth):
    """Die at the nth operation that changes names on the disk, as a kill does: without a word."""
    left, dead = [nth], []

    def watched(function):
        def call(*args, **kwargs):
            left[0] -= 1
            if dead or left[0] < 0:
                dead.append(True)
                raise Killed
            return function(*args, **kwargs)

        return call

    for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "chmod"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))


def test_a_kill_at_any_moment_leaves_the_old_run_or_the_new_one(tmp_path, monkeypatch):
    outcomes = set()
    for nth in range(60):
        place = written(tmp_path / str(nth) / "run", files={**FILES, "report.html": "old"})
        with monkeypatch.context() as patched:
            killing(patched, nth)
            try:
                with Draft.at(place, force=True) as draft:
                    draft.settle_on(MANIFEST)
                    os.write(draft.log.fileno(), b"LJ02")
                    draft.finish({**FILES, "report.html": "new"}, keep_journal=False)
                break
            except Killed:
                pass
        seen = (place / "report.html").read_text() if place.exists() else "aside"
        resumable = (place.with_name("run.partial") / "manifest.json").exists()
        outcomes.add((seen, resumable))
        if resumable or (place / "journal.bin").exists():
            written(place, files={**FILES, "report.html": "new"}, resume=True)
        else:
            written(place, files={**FILES, "report.html": "new"}, force=True)
        assert (place / "report.html").read_text() == "new", nth
        assert names(place.parent) == ["run"], nth
        assert names(place) == ["manifest.json", "report.html", "summary.json"], nth
    else:
        pytest.fail("it never came to an end")
    assert {("old", False), ("old", True), ("aside", True), ("new", False)} <= outcomes


def test_the_journal_is_kept_until_the_folder_is_in_its_place(tmp_path, monkeypatch):
    def fails(self, target):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def work(draft):
        os.write(draft.log.fileno(), b"LJ02")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", fails)
            draft.finish(FILES, keep_journal=False)

    with pytest.raises(FailedWrite, match="Input/output error"):
        attempt(tmp_path / "run", work)
    assert (tmp_path / "run.partial" / "journal.bin").read_bytes() == b"LJ02"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_a_run_that_can_be_resumed(tmp_path, monkeypatch, code):
    write = os.write

    def full(fd, data):
        write(fd, bytes(data[:1]))
        raise OSError(code, os.strerror(code))

    def ask(draft):
        draft.settle_on(MANIFEST)
        journal = AnswerLog(draft.log, lambda rows: rows[:, 0])
        journal.score(PEOPLE)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            journal.score(PEOPLE)

    def go_on(draft):
        draft.settle_on(MANIFEST)
        journal = AnswerLog(draft.log, lambda rows: rows[:, 0])
        journal.score(PEOPLE)
        assert journal.replayed == len(PEOPLE)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            draft.finish(FILES, keep_journal=False)

    place = tmp_path / "run"
    with pytest.raises(FailedWrite, match=os.strerror(code)) as caught:
        attempt(place, ask)
    assert caught.value.exit_code == 4
    assert "--resume" in str(caught.value)
    with pytest.raises(FailedWrite, match=os.strerror(code)):
        attempt(place, go_on, resume=True)
    assert not place.exists()
    with Draft.at(place, resume=True) as draft:
        draft.settle_on(MANIFEST)
        draft.finish(FILES, keep_journal=False)
    assert names(tmp_path) == ["run"]


def test_a_full_disk_at_the_very_start_leaves_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for function in ("open", "write"):
        with monkeypatch.context() as patched:
            patched.setattr(os, function, full)
            with pytest.raises(FailedWrite, match="No space left"):
                attempt(tmp_path / "a" / "run", lambda draft: draft.settle_on(MANIFEST))
    assert names(tmp_path) == []


def test_a_draft_that_is_taken_away_is_one_sentence(tmp_path):
    def work(draft):
        shutil.rmtree(draft.folder)
        draft.finish({"report.html": "a"}, keep_journal=False)

    with pytest.raises(InvalidInput, match=r"there is no folder '.*run\.partial' to write"):
        attempt(tmp_path / "run", work)


def test_options_that_cannot_be_used_leave_nothing_even_after_answers(tmp_path):
    def work(draft):
        os.write(draft.log.fileno(), b"LJ02")
        draft.searched = searched
        raise InvalidInput("the method needs something else")

    for searched in (False, True):  # what took a whole search is not thrown away
        with pytest.raises(InvalidInput):
            attempt(tmp_path / "run", work)
        assert names(tmp_path) == (["run.partial"] if searched else [])
