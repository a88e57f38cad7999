"""Files are written whole or not at all, and nothing of others is touched."""

import ast
import errno
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import limi
from limi.errors import FailedWrite, InvalidInput, LimiError
from limi.system import writing

PACKAGE = Path(limi.__file__).parent


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failing(monkeypatch, function, code):
    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, function, fail)


# -- what is written ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "there"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("ä \ud800", b"\xc3\xa4 \\ud800"),
        (lambda file: file.write(b"by hand"), b"by hand"),
        (b"", b""),
    ],
)
def test_bytes_text_and_functions_become_files(tmp_path, content, there):
    writing.write(tmp_path / "a", content)
    assert (tmp_path / "a").read_bytes() == there
    assert names(tmp_path) == ["a"]


def test_a_new_file_has_the_usual_permissions_and_a_private_one_stays_private(tmp_path):
    before = os.umask(0o027)
    try:
        writing.write(tmp_path / "new", "a")
        (tmp_path / "private").touch(0o600)
        writing.write(tmp_path / "private", "a")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "private")]
    assert modes == [0o640, 0o600]


def test_several_files_are_written_all_or_none(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(FailedWrite, match="No space left"):
        writing.write_all({tmp_path / "a": "new", tmp_path / "b": full})
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("function", ["write", "fsync", "replace", "open"])
def test_a_failing_disk_is_one_sentence_and_leaves_the_old_file(
    tmp_path, monkeypatch, code, function
):
    path = tmp_path / "a"
    path.write_text("old")
    with monkeypatch.context() as patched:
        failing(patched, function, code)
        with pytest.raises(FailedWrite, match=re.escape(os.strerror(code))) as caught:
            writing.write(path, "new")
    assert caught.value.exit_code == 4
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_short_write_goes_on(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    writing.write(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_what_the_caller_raises_leaves_nothing(tmp_path):
    def stops(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writing.write(tmp_path / "a", stops)
    assert names(tmp_path) == []


# -- where it is written --------------------------------------------------------------------


def special(tmp_path, kind):
    path = tmp_path / "there"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        try:  # a node of the null device, in the test's own folder
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes device nodes")
    return path


@pytest.mark.parametrize("kind", ["a folder", "a named pipe", "a socket", "a device"])
def test_what_is_no_regular_file_is_refused_and_left_as_it_is(tmp_path, kind):
    path = special(tmp_path, kind)
    before = path.lstat()
    for use in (writing.place, lambda path: writing.write(path, "a")):
        with pytest.raises(InvalidInput, match=f"is {kind}; name a file to write"):
            use(path)
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert names(tmp_path) == ["there"]


@pytest.mark.parametrize("target", ["of-others", "nowhere", "link"])
def test_links_are_not_written_through_and_not_replaced(tmp_path, target):
    (tmp_path / "of-others").write_text("theirs")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(InvalidInput, match=f"is a link to '{target}'; name that file directly"):
        writing.write(link, "a")
    assert link.is_symlink()
    assert (tmp_path / "of-others").read_text() == "theirs"
    assert names(tmp_path) == ["link", "of-others"]


def test_a_folder_that_is_a_link_is_a_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    writing.write(tmp_path / "link" / "a", "a")
    assert (tmp_path / "real" / "a").read_text() == "a"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 300, "File name too long; name another place"),
        ("none/a", "there is no folder"),
        ("file/a", "Not a directory|there is no folder"),
        ("nul\0nul", "null"),
        ("", "is a folder"),
        ("..", "is a folder"),
    ],
)
def test_a_path_that_cannot_be_is_one_sentence(tmp_path, monkeypatch, name, words):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for use in (writing.place, lambda path: writing.write(path, "a")):
        with pytest.raises(InvalidInput, match=words) as caught:
            use(name)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    assert names(tmp_path) == ["file"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    writing.write(tmp_path / ("x" * 255), "a")
    assert names(tmp_path) == ["x" * 255]


def test_a_folder_that_is_gone_is_one_sentence(tmp_path):
    (tmp_path / "gone").mkdir()
    code = (
        "import os, sys\nfrom limi.system import writing\nos.rmdir(os.getcwd())\n"
        "writing.write(sys.argv[1] + '/a', 'a')\n"
        "try: writing.place('b')\nexcept writing.InvalidInput as error: print(error)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert "the folder you are in no longer exists" in shown.stdout
    assert names(tmp_path) == ["a"]


def test_a_folder_that_may_not_be_written_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidInput, match="is not writable; name another place"):
        writing.place(tmp_path / "a")


# -- drafts and locks -----------------------------------------------------------------------

LEFT = ".limi-0123456789abcdef.partial"


def test_what_a_killed_program_left_is_removed_by_the_next(tmp_path):
    (tmp_path / LEFT).write_text("half")
    theirs = [f"{LEFT}.mine", "limi-0123456789abcdef.partial", ".limi-x.partial", ".limi"]
    for name in theirs:
        (tmp_path / name).touch()
    (tmp_path / ".limi-fedcba9876543210.partial").mkdir()
    (tmp_path / ".limi-aaaaaaaaaaaaaaaa.partial").symlink_to(theirs[0])
    writing.write(tmp_path / "a", "a")
    kept = [".limi-aaaaaaaaaaaaaaaa.partial", ".limi-fedcba9876543210.partial"]
    assert names(tmp_path) == sorted([*theirs, *kept, "a"])


def test_a_draft_at_work_is_left_alone(tmp_path):
    def meanwhile(file):
        file.write(b"first")
        writing.write(tmp_path / "b", "second")

    writing.write(tmp_path / "a", meanwhile)
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "first"


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, swept = writing._try_lock, []

    def late(fd):
        if not swept:
            swept.append(names(tmp_path))
            (tmp_path / swept[0][0]).unlink()
        return lock(fd)

    monkeypatch.setattr(writing, "_try_lock", late)
    writing.write(tmp_path / "a", "a")
    assert names(tmp_path) == ["a"]
    assert len(swept) == 1


def test_a_planted_name_is_never_opened(tmp_path, monkeypatch):
    (tmp_path / "of-others").write_text("theirs")
    (tmp_path / LEFT).symlink_to("of-others")
    monkeypatch.setattr(writing.secrets, "token_hex", lambda n: "0123456789abcdef")
    with pytest.raises(LimiError, match="File exists"):
        writing.write(tmp_path / "a", "a")
    assert (tmp_path / "of-others").read_text() == "theirs"


def test_two_writers_of_one_file_do_not_meet(tmp_path, monkeypatch):
    path, replace = tmp_path / "a.json", os.replace

    def while_another_writes(draft, place):
        monkeypatch.setattr(os, "replace", replace)
        writing.write(path, "second")
        return replace(draft, place)

    monkeypatch.setattr(os, "replace", while_another_writes)
    writing.write(path, "first")
    assert path.read_text() == "first"
    assert names(tmp_path) == ["a.json"]


def test_a_lock_has_one_owner_at_a_time(tmp_path):
    with writing.lock(tmp_path / "log") as file:
        file.write(b"kept")
        with pytest.raises(writing.Held):
            writing.lock(tmp_path / "log")
    with writing.lock(tmp_path / "log") as file:
        assert file.read() == b"kept"


def test_a_lock_goes_with_its_program(tmp_path):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom limi.system import writing\n"
        "file = writing.lock(Path(sys.argv[1]))\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "log")],
        check=False,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert killed.returncode < 0
    writing.lock(tmp_path / "log").close()


def test_a_lock_is_of_the_file_that_is_there(tmp_path, monkeypatch):
    path, lock = tmp_path / "log", writing._try_lock
    path.write_text("old")

    def removed_meanwhile(fd):
        monkeypatch.setattr(writing, "_try_lock", lock)
        path.unlink()
        return lock(fd)

    monkeypatch.setattr(writing, "_try_lock", removed_meanwhile)
    with writing.lock(path) as file:
        assert file.read() == b""
        assert os.path.samestat(os.fstat(file.fileno()), path.stat())


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_only_regular_files_are_locked(tmp_path, kind):
    path = tmp_path / "log"
    if kind == "link":
        (tmp_path / "of-others").touch()
        path.symlink_to("of-others")
    else:
        os.mkfifo(path)
    with pytest.raises((OSError, InvalidInput)):
        writing.lock(path)


def test_a_record_is_appended_whole_or_not_at_all(tmp_path, monkeypatch):
    write = os.write

    def full(fd, data):
        if len(data) < 8:
            raise OSError(errno.ENOSPC, "full")
        return write(fd, bytes(data[:5]))

    with writing.lock(tmp_path / "log") as file:
        writing.append(file.fileno(), b"first")
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(OSError, match="full"):
                writing.append(file.fileno(), b"0123456789")
        assert (tmp_path / "log").read_bytes() == b"first"
        writing.append(file.fileno(), b" second")
    assert (tmp_path / "log").read_bytes() == b"first second"


# -- nothing else writes --------------------------------------------------------------------

WRITERS = {"write_text", "write_bytes", "savetxt", "tofile"}
BY_MODULE = {
    "os": {"open", "replace", "rename", "renames", "link", "symlink", "unlink", "remove"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "tempfile": {"mkstemp", "NamedTemporaryFile", "mktemp"},
}
# Folders take their place, and are removed file by file; a tried process tells the kernel that it
# is the first to go when memory runs out; streams that a model closed are opened anew.
ALLOWED = {
    "foreign.py": {"open"},
    "run_folder.py": {"rename", "unlink"},
    "trial.py": {"write_text"},
}


def writing_calls(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        owner = getattr(getattr(function, "value", None), "id", "")
        if getattr(next(iter(node.args), None), "attr", "") == "devnull":
            continue
        if name in WRITERS or name in BY_MODULE.get(owner, ()):
            yield name
        elif name == "open" and owner not in ("zipfile", "tarfile"):
            given = [*node.args, *(word.value for word in node.keywords)]
            modes = [a.value for a in given if isinstance(getattr(a, "value", None), str)]
            if any(
                re.fullmatch(r"[rwaxbt+]{1,4}", mode) and set("wax+") & set(mode) for mode in modes
            ):
                yield name


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_every_file_is_written_by_one_module(path):
    found = set(writing_calls(path))
    if path.name != "writing.py":
        assert found <= ALLOWED.get(path.name, set())


def test_the_search_for_writers_finds_them(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "p.write_text('a')\nopen('a', 'wb')\np.open('r+b')\nos.replace(a, b)\nopen(p)\n"
    )
    assert list(writing_calls(path)) == ["write_text", "open", "open", "replace"]


def test_outputs_are_held_apart_from_inputs_and_from_each_other(tmp_path):
    run, table = tmp_path / "run", tmp_path / "people.csv"
    run.mkdir()
    table.write_text("a")
    (tmp_path / "link").symlink_to(table)
    inputs = [("the table", table), ("the run", run), ("gone", tmp_path / "gone"), ("odd", "a\0b")]
    fine = {"--out": tmp_path / "gone", "--html": tmp_path / "run.html", "--odd": "a\0b"}
    writing.require_apart(fine.items(), inputs)
    for outputs, says in (
        ({"--out": tmp_path / "run" / ".." / "people.csv"}, "--out names .* is the table"),
        ({"--out": tmp_path / "link"}, "is the table"),
        ({"--out": run}, "is the run"),
        ({"--out": run / "a" / "b"}, "lies in the run"),
        ({"--out": tmp_path}, "holds the table"),
        ({"--out": tmp_path / "x", "--html": run / ".." / "x"}, "--html names .* is the --out"),
    ):
        with pytest.raises(InvalidInput, match=says):
            writing.require_apart(outputs.items(), inputs)
