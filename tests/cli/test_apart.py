"""No command writes over what it reads: every option with a path is marked, every pair refused."""

import inspect
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import pytest
from typer.models import ParameterInfo

from limi.cli._apart import MODEL, TABLE, Reads, Writes, keep_apart
from limi.cli._app import app
from limi.errors import InvalidInput
from limi.testing import export as exporting

COMMANDS = {
    (f"{group.name} " if group else "") + (one.name or one.callback.__name__): one.callback
    for group in (None, *app.registered_groups)
    for one in (group.typer_instance if group else app).registered_commands
    if group is None or group.name not in ("study", "bench")
}
PLACES = ("FILE", "FOLDER", "RUN", "KIND:PLACE")
NAMES = ("table", "model", "generator", "twin_generator", "schema", "header")


def marks(command):
    """The parameters of a command that read or write, each with its mark."""
    hints = get_type_hints(command, include_extras=True)
    for name in inspect.signature(command).parameters:
        said = get_args(hints[name])
        yield from ((name, one) for one in said if isinstance(one, (Reads, Writes)))


def needs_mark(name, hint):
    info = next((one for one in get_args(hint) if isinstance(one, ParameterInfo)), None)
    metavar = str(getattr(info, "metavar", None))
    return "Path" in str(get_args(hint)[:1]) or name in NAMES or any(w in metavar for w in PLACES)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_with_a_path_says_whether_it_is_read_or_written(words):
    command = COMMANDS[words]
    hints = get_type_hints(command, include_extras=True)
    wanted = {n for n in inspect.signature(command).parameters if needs_mark(n, hints[n])}
    if words == "images fit":
        wanted.discard("generator")  # the name of a kind alone
    assert wanted <= {name for name, _ in marks(command)}


def pairs():
    for words, command in COMMANDS.items():
        marked = list(marks(command))
        for output in (name for name, mark in marked if isinstance(mark, Writes)):
            yield from (
                pytest.param(words, output, name, id=f"{words}-{output}-{name}")
                for name, mark in marked
                if isinstance(mark, Reads)
            )


@pytest.mark.parametrize(("words", "output", "source"), list(pairs()))
def test_no_output_is_an_input_of_the_same_command(words, output, source, tmp_path):
    command = COMMANDS[words]
    mark = dict(marks(command))[source]
    for name in (exporting.MODULE, "summary.json"):
        path = tmp_path / name
        path.write_text("{}")
        values = (
            str(path),
            f"python:{path}:f",
            f"{path}:f",
            [f"A: @{path}"],
            f"a={path}",
            tmp_path,
        )
        value = next((v for v in values if leads_to(mark, v, path)), None)
        if value is None:
            continue
        target = tmp_path if output == "pytest" else path
        with pytest.raises(InvalidInput, match=r"names .* which (is|holds|lies in) "):
            command(**{source: value, output: target})
        return
    raise AssertionError(f"nothing that {source} takes is seen to be read")


def leads_to(mark, value, path):
    try:
        return any(Path(place) in (path, path.parent) for _, place in mark.places(value))
    except (AttributeError, TypeError):
        return False  # a value of another kind


def test_two_outputs_are_not_one_place_and_a_name_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("adult").mkdir()

    @keep_apart
    def command(
        out: Annotated[Path, Writes()],
        html: Annotated[Path | None, Writes()] = None,
        model: Annotated[str | None, MODEL] = None,
        table: Annotated[str | None, TABLE] = None,
    ):
        ran.append(out)

    ran = []
    command(out=Path("a.json"), html=Path("b.html"), model="python:gone.py:f", table="adult")
    command(out=Path("adult"), table="adult")  # the shipped table, and a folder of that name
    assert len(ran) == 2
    with pytest.raises(InvalidInput, match=r"--html names .* is the --out"):
        command(out=Path("a"), html=Path("a"))
