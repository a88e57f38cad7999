"""Sound commands in bad surroundings: no memory, no room, no folder, no output, no letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.hostile.case import Around, Case
from tests.hostile.draw import Draw
from tests.hostile.kinds import options
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import Material

SHARE = 4
CORPUS = Corpus()

_EXITS = frozenset({0, 1, 2, 4, 120, 141})
# With less OpenBLAS tries for ever to get the buffer that it has never been refused before.
_LITTLE = 128 << 20
_VARIABLES = (
    {},
    {"COLUMNS": "1"},
    {"COLUMNS": "0"},
    {"COLUMNS": "-5"},
    {"COLUMNS": "x"},
    {"COLUMNS": "100000"},
    {"TERM": "dumb"},
    {"LIMI_CACHE": ""},
    {"LIMI_DATA": "gone"},
    {"LIMI_CACHE": "people.csv"},
    {"HOME": "gone"},
    {"TMPDIR": "gone"},
    {"LANG": "x", "LC_ALL": "x"},
    {"OMP_NUM_THREADS": "x"},
    {"NO_COLOR": "1"},
)


def surrounded(material: Material, name: str, around: Around, **more: Any) -> Case:
    """A sound command, somewhere."""
    return Case(
        options.SOUND[name],
        material.files(*options.NEEDS.get(name, ())),
        options.OUTPUTS,
        around=around,
        **{"exits": _EXITS, **more},
    )


def drawn(draw: Draw, material: Material) -> Case:
    name = draw.pick(("schema", "test", "report", "metrics", "fit", "sample", "list", "doctor"))
    around = Around(
        memory=draw.pick((4 << 30, 4 << 30, 512 << 20, _LITTLE)),
        file_size=draw.pick((256 << 20, 256 << 20, 1 << 14, 1 << 12, 1 << 11)),
        files=draw.pick((256, 256, 256, 24, 12)),
        ascii=draw.chance(20),
        stdout=draw.pick(("file", "file", "file", "closed", "gone")),
        cwd="deleted" if draw.chance(10) else "there",
        variables=draw.pick(_VARIABLES) if draw.chance(30) else {},
    )
    return surrounded(material, name, around)


# -- the corpus ----------------------------------------------------------------------------


def _in(name: str, around: Around, *codes: int, **more: Any) -> Callable[[Material], Case]:
    exits = frozenset(codes) if codes else _EXITS
    return lambda material: surrounded(material, name, around, exits=exits, **more)


for _name in ("schema", "test", "report", "fit", "sample", "list"):
    CORPUS.each(
        _name,
        {
            "in-a-folder-that-is-gone": _in(_name, Around(cwd="deleted")),
            "without-output": _in(_name, Around(stdout="closed")),
            "with-nobody-listening": _in(_name, Around(stdout="gone")),
            "in-the-c-locale": _in(_name, Around(ascii=True), 0),
            "on-a-full-disk": _in(_name, Around(file_size=1 << 11)),
            "with-little-memory": _in(_name, Around(memory=_LITTLE)),
        },
    )


@CORPUS.case("rows-beyond-memory")
def _(material: Material) -> Case:
    """More rows than memory holds at once are drawn and written in parts."""
    words = ("sample", "trees.gen", "--out", "out.csv", "-n", "1000000")
    return Case(
        words,
        material.files("trees.gen"),
        ("out.csv",),
        exits=frozenset({0}),
        around=Around(memory=_LITTLE),
    )
