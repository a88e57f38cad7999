"""The outermost net: one sentence and an exit code, whatever is raised and whatever is shut."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from limi.cli import _console, _net, main
from limi.errors import BadTable, InvalidInput
from limi.system.shown import clean_lines, one_line
from tests.system.test_shown import UNSAFE

ROOT = Path(__file__).parents[2]


def limi(*words, before="", after="", **given):
    """Exit code, output and errors of a command in a shell that may close or limit things."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **given.pop("env", {})}
    line = f'{before} "$0" -m limi "$@" {after}'
    ran = subprocess.run(
        ["bash", "-c", line, sys.executable, *map(str, words)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **given,
    )
    return ran.returncode, ran.stdout, ran.stderr


# -- what is raised ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (InvalidInput("no"), 2, "limi: no"),
        (BadTable("no\nway"), 4, "limi: no way"),
        (KeyboardInterrupt(), 130, "limi: interrupted"),
        (KeyError("colour"), 4, "unexpected error: KeyError: 'colour'; LIMI_DEBUG=1 shows"),
        (TypeError(UNSAFE), 4, "TypeError: a\\x1b[31m"),
        (MemoryError(), 4, "memory ran out"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 bytes"), 4, "memory ran out"),
        (RuntimeError("can't start new thread"), 4, "memory ran out"),
        (RecursionError("maximum"), 4, "nested too deeply"),
        (OSError(28, "No space left on device"), 4, "refused: No space left on device"),
        (PermissionError(13, "Permission denied", "/x/y"), 4, "Permission denied ('/x/y')"),
        (FileNotFoundError(2, "No such file or directory"), 4, "No such file"),
        (OSError(), 4, "the operating system refused: OSError"),
        (SystemExit(0), 4, "ended the program (exit code 0), without a result"),
        (BrokenPipeError(32, "Broken pipe"), 4, "refused: Broken pipe"),  # not of our output
        (typer.Exit(3), 3, ""),
        (typer.BadParameter(UNSAFE), 2, "limi: "),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else "",
)
def test_any_error_is_one_sentence_and_an_exit_code(capsys, monkeypatch, error, code, told):
    monkeypatch.delenv(_net.DEBUG, raising=False)

    def run():
        raise error

    assert _net.exit_code_of(run) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert told in shown.err
    assert len(shown.err.splitlines()) == (1 if told else 0)
    assert clean_lines(shown.err) == shown.err


@pytest.mark.parametrize("error", [KeyError("colour"), InvalidInput("no"), MemoryError()])
def test_the_traceback_is_behind_a_variable(capsys, monkeypatch, error):
    def run():
        raise error

    monkeypatch.setenv(_net.DEBUG, "1")
    assert _net.exit_code_of(run) in (2, 4)
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.splitlines()[-1].startswith("limi: ")
    monkeypatch.setenv(_net.DEBUG, "0")
    _net.exit_code_of(run)
    assert "Traceback" not in capsys.readouterr().err


def test_an_endless_message_keeps_its_beginning_and_its_end():
    told = one_line("what was given " + "x" * 100_000 + " what to try")
    assert len(told) < 1100
    assert told.startswith("what was given")
    assert told.endswith("what to try")


def test_hooks_are_put_back():
    before = sys.unraisablehook
    _net.exit_code_of(lambda: None)
    assert sys.unraisablehook is before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tst"], "No such command 'tst'. Did you mean 'test'? Try: limi --help"),
        (["test", "--nope\x1b"], r"No such option: --nope\x1b"),
        (["test", "a.csv", "--max-rows", "x"], "Invalid value for '--max-rows'"),
        (["test", "a.csv"], "--model is missing; name the model to test"),
        (["datasets", "nope"], "Try: limi datasets --help"),
    ],
)
def test_a_usage_error_is_one_sentence_too(monkeypatch, capsys, words, told):
    monkeypatch.setattr(sys, "argv", ["limi", *words])
    with pytest.raises(SystemExit) as done:
        main()
    shown = capsys.readouterr()
    assert (done.value.code, shown.out) == (2, "")
    assert told in shown.err
    assert len(shown.err.splitlines()) == 1


# -- what is shut or full ---------------------------------------------------------------------

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


@needs_full
@pytest.mark.parametrize("words", [["list", "methods"], ["list", "methods", "--json"], ["--help"]])
def test_a_full_disk_behind_the_output_is_one_sentence(words):
    code, _, err = limi(*words, after="> /dev/full")
    assert code == 4
    assert "No space left on device" in err
    assert len(err.splitlines()) == 1


@needs_full
def test_progress_that_cannot_be_shown_does_not_end_a_command():
    code, out, _ = limi("list", "methods", "--json", after="2> /dev/full")
    assert code == 0
    assert "themis" in json.loads(out)


def test_a_closed_output_is_refused_before_any_work(tmp_path):
    words = ["schema", "nowhere.csv"]
    code, _, err = limi(*words, after=">&-", cwd=tmp_path)
    assert code == 2
    assert "standard output is closed" in err
    assert len(err.splitlines()) == 1
    code, out, err = limi(*words, after=">&- 2>&-", cwd=tmp_path)
    assert (code, out, err) == (2, "", "")


def test_a_closed_input_or_error_stream_does_not_matter():
    code, out, _ = limi("list", "methods", "--json", after="<&- 2>&-")
    assert code == 0
    assert "themis" in json.loads(out)


@pytest.mark.parametrize("words", [["--help"], ["list", "methods"], ["list", "methods", "--json"]])
def test_a_reader_that_has_gone_is_not_an_error(words):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        ran = subprocess.run(
            [sys.executable, "-m", "limi", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}], ids=str
)
def test_any_locale_takes_any_text(tmp_path, env):
    (tmp_path / "Zoë.csv").write_text("Größe,ok\nы,1\nж,0\n", encoding="utf-8")
    code, out, err = limi("schema", "Zoë.csv", cwd=tmp_path, env=env)
    assert (code, err) == (0, "")
    assert out.isascii()
    code, out, err = limi("schema", "Zoö.csv", cwd=tmp_path, env=env)
    assert (code, out) == (2, "")
    assert "there is no file" in err
    code, out, _ = limi("datasets", "show", "adult", "--json", cwd=tmp_path, env=env)
    assert code == 0
    assert json.loads(out)["name"] == "adult"


def test_no_text_steers_the_terminal(capsys):
    from rich.table import Table
    from rich.text import Text

    table = Table(f"head {UNSAFE}", title=UNSAFE)
    table.add_row(f"[bold] :smile: {UNSAFE}")
    for shown in (UNSAFE, Text(UNSAFE), table):
        _console.out.print(shown, width=200)
        _console.err.print(shown, width=200)
    _console.print_text(f"{UNSAFE}\n")
    _console.print_json({"name": UNSAFE})
    for told in capsys.readouterr():
        assert clean_lines(told) == told
        assert "[bold] :smile: " in told


# -- what is loaded ---------------------------------------------------------------------------

HELP = """
import sys
sys.argv = ["limi", *{words}]
from limi.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + " ".join(sys.modules))
"""


@pytest.mark.parametrize("words", [["--help"], ["test", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_heavy(words):
    ran = subprocess.run(
        [sys.executable, "-c", HELP.format(words=words)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    loaded = ran.stdout.splitlines()[-1].split()
    ours = {name for name in loaded if name.startswith("limi.") and "cli" not in name}
    system = {"limi.system", "limi.system.shown", "limi.system.spelling"}
    assert ours <= {"limi.defaults", "limi.errors"} | system
    packages = {name.partition(".")[0] for name in loaded}
    heavy = {"jinja2", "narwhals", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "torch"}
    assert not heavy & packages
