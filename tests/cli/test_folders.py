"""Commands that write: files whole or not at all, folders locked, nothing of others touched."""

import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limi
from limi.cli import main
from limi.system import writing
from tests.repairs.test_repair import people, pipeline
from tests.toy import schema_of

ROOT = Path(__file__).parent.parent.parent

MODEL = """
import os
import numpy as np

def approve(frame):
    return 1 / (1 + np.exp(3 - frame["income"] / 2 - (frame["sex"] == "M") * 0.8))

def wanders(frame):
    os.chdir("/")
    return approve(frame)
"""

TEST = ["test", "people.csv", "--model", "python:model.py:approve", "--target", "ok"]
TEST += ["--favorable", "yes", "--protected", "sex"]
QUICK = ["--method", "themis", "--generator", "none", "--max-rows", "400", "--rate-rows", "50"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, a model, a finished run and a generator."""
    folder = tmp_path_factory.mktemp("folders")
    frame = people(200)
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    model = pipeline().fit(frame.drop(columns="ok"), frame["ok"])
    limi.audit(
        model,
        frame,
        protected=["sex"],
        target="ok",
        favorable="yes",
        method="natural",
        max_rows=200,
        rate_rows=50,
        out=folder / "run",
    )
    limi.generators.save(small_generator(), folder / "g.limi")
    return folder


def small_generator():
    schema = schema_of((0, 9), (0, 4), protected=["x0"])
    rows = np.stack([np.arange(30.0) % 10, np.arange(30.0) % 5], axis=1)
    return limi.generators.get("trees").fit(rows, schema, np.random.default_rng(0))


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    place = tmp_path / "work"
    shutil.copytree(made, place)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def call(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["limi", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            main()
        shown = capsys.readouterr()
        said = [line for line in shown.err.splitlines() if line.startswith("limi: ")]
        assert "Traceback" not in shown.err
        assert bool(done.value.code) == (len(said) == 1), shown.err
        return done.value.code or 0, " ".join(shown.err.split())

    return call


def snapshot(folder):
    """Every path below a folder with its kind and content."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IFMT(path.lstat().st_mode),
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in folder.rglob("*")
    }


# Each command with a file to write, the file last.
WRITERS = {
    "schema": ["schema", "people.csv", "--force", "--out"],
    "sample": ["sample", "g.limi", "--force", "--out"],
    "fit": ["fit", "people.csv", "--target", "ok", "--force", "--out"],
    "report": ["report", "run", "--html"],
    "compare": ["compare", *TEST[1:], "--methods", "themis", "--max-queries", "200", "--html"],
}


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link", "long", "nowhere", "empty"])
def test_what_cannot_be_a_file_is_one_sentence_and_left_alone(folder, call, command, kind):
    name = {"sample": "there.csv"}.get(command, "there")
    place = folder / name
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        try:  # a node of the null device, in the test's own folder
            os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes device nodes")
    elif kind == "link":
        place.symlink_to("people.csv")
    names = {"long": f"{'x' * 300}.csv", "nowhere": f"none/{name}", "empty": ""}
    before = snapshot(folder)
    code, said = call(*WRITERS[command], names.get(kind, name))
    assert code == 2
    assert len(said) < 600
    assert snapshot(folder) == before


def test_the_page_of_a_generator_needs_a_place_too(folder, call):
    before = snapshot(folder)
    code, said = call(*WRITERS["fit"], "x" * 252)
    assert code == 2
    assert "File name too long" in said
    (folder / "g.html").mkdir()
    code, said = call(*WRITERS["fit"], "g")
    assert code == 2
    assert "is a folder" in said
    (folder / "g.html").rmdir()
    code, said = call("fit", "people.csv", "--target", "ok", "--out", ".")
    assert code == 2
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("command", "code"),
    [
        *((command, errno.ENOSPC) for command in WRITERS if command != "page"),  # takes long
        *(("fit", code) for code in (errno.EDQUOT, errno.EIO)),
    ],
)
def test_a_failing_disk_is_one_sentence_and_nothing_half_written(
    folder, call, monkeypatch, command, code
):
    name = {"sample": "there.csv"}.get(command, "there")
    (folder / name).write_text("old")

    def fails(fd):
        # Behind the text, as a disk does that takes a part.
        raise OSError(code, os.strerror(code))

    before = snapshot(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        ended, said = call(*WRITERS[command], name)
    assert ended == 4
    assert os.strerror(code) in said
    assert snapshot(folder) == before


@pytest.mark.parametrize("command", ["schema", "sample", "fit", "report"])
def test_planted_drafts_are_neither_followed_nor_removed(folder, call, command):
    name = {"sample": "there.csv"}.get(command, "there")
    (folder / "precious").write_text("mine")
    for planted in (f"{name}.partial", f"{name}.html.partial", f".{name}.partial"):
        (folder / planted).symlink_to("precious")
    before = snapshot(folder)
    assert call(*WRITERS[command], name)[0] == 0
    after = snapshot(folder)
    assert set(before) < set(after)
    assert {path: after[path] for path in before} == before


def test_equal_generators_give_equal_files(folder, call):
    for name in ("a", "b"):
        assert call(*WRITERS["fit"], name)[0] == 0
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


# -- run folders ----------------------------------------------------------------------------


def test_a_foreign_partial_folder_survives(folder, call):
    foreign = folder / "out.partial"
    foreign.mkdir()
    (foreign / "precious.txt").write_text("mine")
    before = snapshot(folder)
    for options in ((), ("--force",), ("--resume",)):
        code, said = call(*TEST, *QUICK, "--out", "out", *options)
        assert code == 2
        assert "move it, or choose another --out" in said
    assert call("repair", "run", "--out", "out", "--force")[0] == 2
    assert snapshot(folder) == before


def test_force_spares_dotfiles_and_folders_named_like_ours(folder, call):
    for name in (".git", "schema.toml"):
        run = folder / f"with{name}"
        shutil.copytree(folder / "run", run)
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()
        (run / name / "HEAD").write_text("mine")
    before = snapshot(folder)
    for name in (".git", "schema.toml"):
        code, said = call(*TEST, *QUICK, "--out", f"with{name}", "--force")
        assert code == 2
        assert f"such as {name!r}" in said
    assert snapshot(folder) == before


def test_a_run_is_written_where_it_was_asked_for_though_the_model_wanders(folder, call):
    there = f"{folder}/model.py:wanders"
    words = [word.replace("model.py:approve", there) for word in TEST]
    assert call(*words, *QUICK, "--out", "out")[0] == 0
    assert (folder / "out" / "report.html").exists()
    os.chdir(folder)
    words = [word.replace("approve", "wanders") for word in WRITERS["compare"]]
    methods = ("--methods", "themis,real", "--generator", "trees.limi")
    assert call("fit", TEST[1], "--target", "ok", "--out", "trees.limi")[0] == 0
    assert call(*words, "page.html", *methods)[0] == 0
    assert (folder / "page.html").exists()


def test_a_generator_is_found_though_the_model_wanders(folder, call):
    words = [word.replace("approve", "wanders") for word in TEST]
    assert call("fit", TEST[1], "--target", "ok", "--out", "trees.limi")[0] == 0
    assert call(*words, *QUICK, "--generator", "trees.limi", "--out", "out")[0] == 0
    assert json.loads((folder / "out" / "manifest.json").read_text())["generator"] == "trees.limi"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--generator", "tres"], "did you mean 'trees'"),
        (["--method", "natural", "--generator", "none"], "needs a generator"),
        (["--max-queries", "1"], "at least 40 rows"),
        (["--method", "adf", "--set", "gradient=exact"], "needs a model with gradients"),
        (["--generator", "g.limi"], "fitted to columns that differ"),
    ],
)
def test_a_usage_error_leaves_nothing(folder, call, words, sentence):
    before = snapshot(folder)
    code, said = call(*TEST, "--rate-rows", "50", "--out", "a/b/out", *words)
    assert code == 2
    assert sentence in said
    assert snapshot(folder) == before


def test_a_repair_that_cannot_be_leaves_nothing(folder, call):
    before = snapshot(folder)
    code, _ = call("repair", "run", "--table", "people.csv", "--out", "a/out", "--preset", "bst")
    assert code == 2
    assert snapshot(folder) == before


def limited(function, *words, cwd, **given):
    """A command in a process of its own, after a function has been called in it."""
    return subprocess.run(
        [sys.executable, "-m", "limi", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=function,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        **given,
    )


def test_two_runs_on_one_folder(folder, call):
    """The second is refused while the first works, and goes on when the first is killed."""
    (folder / "slow.py").write_text(
        "import os, time\nfrom model import approve as fast\ncalls = []\n"
        "def approve(frame):\n    calls.append(1)\n"
        "    if len(calls) == 40:\n"
        "        open('waiting', 'w').close()\n        time.sleep(100)\n    return fast(frame)\n"
    )
    words = [*TEST, *QUICK, "--max-rows", "3000", "--max-batch", "8", "--out", "out"]
    slow = [word.replace("model.py", "slow.py") for word in words]
    first = subprocess.Popen(
        [sys.executable, "-m", "limi", *slow],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
    )
    try:
        while not (folder / "waiting").exists():
            assert first.poll() is None
        for options in ((), ("--force",), ("--resume",)):
            code, said = call(*words, *options)
            assert code == 2
            assert "another limi is writing" in said
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert (folder / "out.partial" / "journal.bin").stat().st_size > 0
    assert call(*words, "--force")[0] == 0
    assert not (folder / "out.partial").exists()


def test_a_folder_that_is_gone(folder):
    (folder / "gone").mkdir()

    def leave():
        os.rmdir(folder / "gone")

    for words in (
        ["schema", "credit", "--out", "a.toml"],
        ["test", "credit", *TEST[2:], "--out", str(folder / "out")],
    ):
        (folder / "gone").mkdir(exist_ok=True)
        done = limited(leave, *words, cwd=folder / "gone")
        assert done.returncode in (2, 4), (words, done.stderr)
        assert "the folder you are in no longer exists" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


@pytest.fixture
def shared(made):
    """A folder that other users may look into, as those of pytest may not be."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        shutil.copytree(made, folder)
        for path in (Path(place), folder, *folder.rglob("*")):
            path.chmod(0o755)
        yield folder


@contextmanager
def without_power():
    """As a user who is not root, whom nothing stops."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_folders_that_may_not_be_looked_into(shared, call, monkeypatch):
    folder = shared
    monkeypatch.chdir(folder)
    # Everything is imported before power is given up: a root's Python may be closed to others.
    for words in (
        ["report", "run", "--html", "page.html"],
        ["metrics", "run"],
        [*TEST, *QUICK, "--out", "out"],
        ["sample", "g.limi", "--out", "a.csv"],
    ):
        assert call(*words)[0] == 0
    shutil.copytree(folder / "run", folder / "shut" / "run")
    (folder / "shut").chmod(0)
    folder.chmod(0o555)
    try:
        for words in (
            ["report", "shut/run"],
            ["metrics", "shut/run"],
            ["repair", "shut/run", "--out", "new"],
            [*TEST, "--out", "shut/new"],
            [*TEST, "--out", "new"],
            ["report", "run", "--html", "shut/page.html"],
            ["report", "run", "--html", "new.html"],
            ["sample", "g.limi", "--out", "shut/a.csv"],
        ):
            with without_power():
                code, said = call(*words)
            assert code == 2, (words, said)
            assert "Permission denied" in said or "is not writable" in said
    finally:
        folder.chmod(0o755)
        (folder / "shut").chmod(0o755)


def test_a_run_into_a_small_disk_can_go_on_elsewhere(folder, call):
    """A limit on the size of files stands for a full disk, which only root can make."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    words = [*TEST, *QUICK, "--max-rows", "20000", "--max-batch", "500", "--out", "out"]
    done = limited(limit, *words, cwd=folder)
    assert done.returncode == 4, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()
    assert call(*words, "--resume")[0] == 0
    assert call(*words[:-1], "whole")[0] == 0
    found = [pd.read_parquet(folder / name / "findings.parquet") for name in ("out", "whole")]
    pd.testing.assert_frame_equal(*found)
    notes = json.loads((folder / "out" / "summary.json").read_text())["notes"]
    assert any("the run was resumed" in note for note in notes)


# -- damaged journals -----------------------------------------------------------------------


def unfinished(folder):
    """A run that was killed half-way; it dies as long as there is a file `die`."""
    words = [*TEST, *QUICK, "--max-rows", "3000", "--max-batch", "8", "--out", "out"]
    (folder / "dies.py").write_text(
        "import os, signal\nfrom model import approve as fast\ncalls = []\n"
        "def approve(frame):\n    calls.append(1)\n"
        "    if len(calls) == 80 and os.path.exists('die'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n    return fast(frame)\n"
    )
    (folder / "model2.py").write_text(MODEL)
    source = (folder / "dies.py").read_text().replace("from model ", "from model2 ")
    (folder / "model.py").write_text(source)
    (folder / "die").touch()
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    done = subprocess.run(
        [sys.executable, "-m", "limi", *words],
        cwd=folder,
        check=False,
        capture_output=True,
        env=env,
    )
    assert done.returncode == -signal.SIGKILL
    return words


def test_a_damaged_log_is_cut_and_the_run_ends_in_the_same_findings(folder, call, monkeypatch):
    words = unfinished(folder)
    monkeypatch.syspath_prepend(folder)
    (folder / "die").unlink()
    path = folder / "out.partial" / "journal.bin"
    whole = path.read_bytes()
    assert call(*words[:-1], "undisturbed")[0] == 0
    findings = (folder / "undisturbed" / "findings.parquet").read_bytes()
    for at in (3, len(whole) // 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert call(*words, "--resume")[0] == 0
        told = json.loads((folder / "out" / "summary.json").read_text())["notes"]
        assert any("was damaged at record" in note and "was cut" in note for note in told)
        assert (folder / "out" / "findings.parquet").read_bytes() == findings
        (folder / "out").rename(folder / "out.partial")
    path.write_bytes(whole)
    with path.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another limi is writing" in call(*words, "--resume")[1]
    assert [name for name in os.listdir(folder) if writing.is_draft(name)] == []
