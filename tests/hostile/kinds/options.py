"""Words of commands: every option of every command with values that it was not made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from tests.hostile.case import ANSWERS, MINE, Around, Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import LONG, NUMBERS, PEOPLE, SMALL, Material
from tests.hostile.nasty import FLOATS, INTEGERS, WORDS

SHARE = 26
CORPUS = Corpus()

_MODEL = ("--model", "python:model.py:f")
_ENOUGH = ("--max-seconds", "0.5")
# A search as long as its budget is no hang; so no budget is huge without another that is small.

SOUND: dict[str, tuple[str, ...]] = {
    "test": ("test", *PEOPLE, *_MODEL, *SMALL, *_ENOUGH),
    "compare": (
        *("compare", *PEOPLE, *_MODEL, "--methods", "themis", "--max-queries", "60"),
        *_ENOUGH,
    ),
    "gate": (
        *("gate", *PEOPLE, *_MODEL, "--rule", "real_rate <= 5 %", "--generator", "none"),
        *("--max-queries", "300", *_ENOUGH),
    ),
    "certify": (
        *("certify", *NUMBERS, "--model", "skops:forest.skops", "--rows", "20", "--no-solver"),
        *("--max-boxes", "64"),
    ),
    "init": ("init", "people.csv", *_MODEL, "--target", "ok", "--protected", "sex", "--out", "new"),
    "replay": ("replay", "run", *_MODEL),
    "diff": ("diff", "run", *_MODEL, "--rows", "40", "--generator", "none"),
    "export": ("export", "run", "--pytest", "out"),
    "pack": ("pack", "run", "--out", "out.zip", "--findings"),
    "repair": ("repair", "run", "--out", "out", "--seeds", "1", "--no-model"),
    "report": ("report", "run"),
    "metrics": ("metrics", "run"),
    "schema": ("schema", "people.csv"),
    "fit": ("fit", "people.csv", "--out", "out", "--target", "ok"),
    "sample": ("sample", "trees.gen", "--out", "out.csv", "-n", "5"),
    "list": ("list", "methods"),
    "explain": ("explain", "flip"),
    "doctor": ("doctor",),
    "datasets show": ("datasets", "show", "credit"),
}
"""A command that works, for each one that ends soon."""

LONG_ONES: dict[str, tuple[str, ...]] = {
    "demo": ("demo", "--out", "run", "--seed", "-1"),
    "explore": ("explore", "run", "--token", "short"),
    "images test": (
        *("images", "test", "--images", "people.csv", "--target", "python:model.py:f"),
        *("--protected", "sex", "--labels", "people.csv", "--out", "out"),
    ),
    "images fit": ("images", "fit", "--images", "people.csv", "--out", "out"),
}
"""Commands that would run for minutes; they are given words that must be refused."""

NEEDS = {
    "test": ("people.csv", "model.py", "schema.toml", "trees.gen"),
    "compare": ("people.csv", "model.py", "schema.toml"),
    "gate": ("people.csv", "model.py", "trees.gen", "run"),
    "certify": ("numbers.csv", "forest.skops", "schema.toml"),
    "init": ("people.csv",),
    "replay": ("people.csv", "model.py", "run"),
    "diff": ("people.csv", "model.py", "model.skops", "run"),
    "export": ("people.csv", "model.skops", "run"),
    "pack": ("people.csv", "run"),
    "repair": ("people.csv", "model.skops", "run"),
    "report": ("run",),
    "metrics": ("run",),
    "schema": ("people.csv",),
    "fit": ("people.csv", "schema.toml"),
    "sample": ("trees.gen",),
    "demo": ("run",),
    "explore": ("people.csv", "run"),
    "images test": ("people.csv", "model.py"),
    "images fit": ("people.csv",),
}
OUTPUTS = ("out", "out.html", "out.zip", "out.csv", "out.parquet", "out.svg", "figures", "new")

AROUND: dict[str, Thing] = {
    "file": b"a file that was there before\n",
    "folder/keep.txt": MINE,
    "foreign/manifest.json": MINE,
    "foreign.partial/keep.txt": MINE,
    "new.partial/keep.txt": MINE,
    "pipe": Fifo(),
    "loop": Link("loop"),
    "nowhere": Link("gone"),
    "empty": Folder(),
    "out.csv.partial": Link("../victim/file.txt"),
    "out.partial": Link("../victim/folder"),
}
"""What lies where output may go."""

_PATHS = (
    *("new", "out", "", ".", "..", "file", "folder", "foreign", "pipe", "loop", "nowhere", "empty"),
    *("new/inner", "folder/new", "file/new", "people.csv", "run", "x" * 254, "x" * 300, "new.csv"),
    *("new.parquet", "a\nb", "\x1b[31m", "\udcff", "new/", "./new", "~", "$HOME", "-", "new.html"),
)
_SPECIAL: dict[str, tuple[str, ...]] = {
    "--protected": (
        *("sex", "income", "income=1-5", "income=0-19:5", "sex=F,M", "sex=", "=", "=F", "sex=X"),
        *("sex=F", "sex=F,F", "income=5-1", "income=1-5:0", "income=1-5:-1", "income=1-5:x"),
        *("income=-5--1", "income=nan", "income=1e999", "income=0-1e18", "income=0-10:1e-300"),
        *("ok", "gone", "sex,income", "sex=F=M", "income=" + "1" * 20_000, "income=1-" + "1" * 400),
        *("debt=0-9:3", "income=" + ",".join(map(str, range(500))), "income=0.5", "sex=\x1b[31m"),
    ),
    "--constraint": (
        *("income >= 0", 'sex == "F" implies debt >= 0', "income >= 10", "gone > 1", "sex < 'M'"),
        *("", "(" * 3000, "__import__('os')", "income > 1e999", "debt / 0 > 1", "\x1b", "\udcff"),
    ),
    "--set": (
        *("confidence=0.9", "x=1", "=", "confidence", "confidence=", "=1", "confidence=x"),
        *(
            "confidence=nan",
            "margin=1e999",
            "min_samples=-1",
            "min_samples=1" + "0" * 20,
            "bound=x",
        ),
        *("confidence=0.9=1", "margin=[]", "margin=None", "__class__=1", "\x1b=1", "bound=\u202e"),
    ),
    "--method": (
        "themis",
        "limi",
        "guided",
        "aequitas",
        "sg",
        "expga",
        "causal",
        "grft",
        "real",
        "natural",
        "themi",
    ),
    "--methods": (
        "themis",
        "themis,themis",
        ",",
        "themis,",
        " themis ",
        "limi,gone",
        "real,natural",
    ),
    "--generator": (
        "none",
        "trees",
        "trees.gen",
        "gone",
        "people.csv",
        "",
        "None",
        "trees.gen?x=1",
    ),
    "--model": (
        *(
            "python:model.py:f",
            "python:model.py:g",
            "python:model.py",
            "python:",
            "python",
            ":",
            "",
        ),
        *(
            "skops:model.skops",
            "skops:people.csv",
            "onnx:",
            "torch:people.csv?device=banana",
            "x:y",
        ),
        *("demo:x", "pickle:people.csv"),
        *("python:people.csv:f", "python:folder:f", "python:pipe:f", "skops:pipe", "onnx:folder"),
        *(
            "catboost:pipe",
            "lightgbm:file",
            "xgboost:loop",
            "python:model.py:f?x",
        ),
    ),
    "--verify": ("people.csv", "gone", "folder", "pipe", "loop", "", "file", "run"),
    "--before": ("skops:model.skops", "python:model.py:f", "skops:people.csv", "", "x:y"),
    "--rename": (
        "sex=gender",
        "sex=debt",
        "sex",
        "=",
        "gone=sex",
        "sex=gone",
        "\x1b=\x1b",
        "ok=sex",
    ),
    "--fill": ("debt=1", "debt", "=", "gone=1", "debt=x", "sex=M", "debt=" + "9" * 400),
    "--cluster": ("ray://", "dask", "", "http://x"),
    "--workers": ("1", "2", "auto", "0", "-1", "1e9", "", "two", "99999", "2.0"),
    "--device": ("cpu", "auto", "cuda", "banana", "", "cuda:99", "meta", "mps", "CPU"),
    "--privileged": (
        "sex=M",
        "lowest",
        "sex",
        "sex=X",
        "=",
        "",
        "gone=1",
        "income=5-19",
        "sex=M,F",
    ),
    "--rule": (
        *("real_rate <= 5 %", "natural_rate <= 1", "spd <= 0.1", "score_gap_p99 <= 0.2", "<=", ""),
        *("worst_region_rate <= 5 %", "real_rate no worse than baseline by 1 point", "real_rate"),
        *("real_rate <= 1e3 %", "x" * 5000, "real_rate <= " + "9" * 400, "real_rate \x1b <= 1 %"),
        *("real_rate <= 1 in 0", "score_gap_p0 <= 1 %", "uniform_rate < .5 %", "spd <= nan"),
    ),
    "--near": (
        *("income=1", "debt=any", "sex=any", "income=1e999", "income=-1", "gone=1", "income", "="),
        *("", ",", "income=1,income=1", "income=nan", "x" * 5000 + "=1", "\x1b=1", "income=0"),
    ),
    "--inconclusive": ("pass", "fail", "maybe", ""),
    "--baseline": ("run", "gone", "folder", "file", ""),
    "--config": ("none", "gone.toml", "people.csv", "folder", "pipe", "loop", "", "file"),
    "--preset": ("best", "strong", "paper", "worst", ""),
    "--recipe": ("alone", "pairs", "values", "copies", "copies+pairs", "x", "", "pairs+pairs"),
    "--label": ("vote", "ensemble", "privileged", "drop", "x", ""),
    "--fit": ("model.py:f", "model.py", "gone.py:f", "pipe:f", "", ":", "people.csv:f"),
    "--scale": ("smoke", "small", "paper", "large", "", "SMALL"),
    "--format": ("text", "markdown", "latex", "html", "pdf", ""),
    "--only": ("no-such-cell", "no/such/cell", "[", "x" * 5000, "a/b/c/d"),
    "--target": ("ok", "gone", "", "sex", "OK", "ok "),
    "--favorable": ("yes", "no", "maybe", "", "1", "YES"),
    "--trust": ("x", "", "os.system", "builtins.eval", "sklearn.linear_model.LogisticRegression"),
}
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "table": ("people.csv", "credit", "gone.csv", "folder", "pipe", "", ".", "run", "people.csv?x"),
    "folder": (
        "run",
        "gone",
        "",
        ".",
        "file",
        "folder",
        "loop",
        "pipe",
        "run/summary.json",
        "empty",
    ),
    "file": ("trees.gen", "gone", "people.csv", "folder", "pipe", "", "loop"),
    "before": ("run", "gone", "", ".", "file", "folder", "loop", "pipe", "empty"),
    "after": ("run", "gone", "", ".", "file", "folder", "loop", "pipe", "empty"),
    "noun": ("methods", "models", "generators", "metrics", "datasets", "x", "", "METHODS"),
    "name": ("dnn", "credit", "rf", "densities", "x", "", "all", "dn", "..", "DNN", "census"),
    "names": ("dnn", "x", "", "all,", "dnn dnn", ".."),
}
_SLOW = {
    # Options whose sound values run for longer than an input should.
    "--generator": ("ctgan", "transport"),
    "--model": ("demo:income",),
}
_HUGE = ("--rate-rows", "--max-rows", "--max-queries", "--seeds", "--rows", "-n", "--volume")


@cache
def commands() -> dict[str, Any]:
    """Every command of the command line, by its words."""
    import typer

    from limi.cli._app import app

    found: dict[str, Any] = {}

    def walk(group: Any, words: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*words, name))
            else:
                found[" ".join((*words, name))] = command

    walk(typer.main.get_command(app), ())
    return found


def files(material: Material, name: str) -> dict[str, Thing]:
    """What a command finds in its folder."""
    return {**material.files(*NEEDS.get(name, ())), **AROUND}


def drawn(draw: Draw, material: Material) -> Case:
    known = commands()
    if draw.chance(4):
        return _stray(draw, known)
    name = draw.pick(_WEIGHED)
    if name in LONG_ONES:
        return _long(draw, material, name, known[name])
    words = list(SOUND[name])
    for _ in range(draw.pick((1, 1, 1, 2, 3))):
        words = draw.pick((_set, _set, _set, _set, _drop, _double, _extra))(
            draw, words, known[name]
        )
    if name in ("test", "compare", "gate"):
        words = _bounded(words)
    json = "--json" in known[name].params[-1].opts
    if json and draw.chance(50):
        words.insert(len(name.split()), "--json")  # no option takes it for its value there
    return Case(
        tuple(words),
        files(material, name),
        (*OUTPUTS, *_written(words), *(_schemas(words) if name == "init" else ())),
        exits=frozenset({0, 2, 4, *(ANSWERS if name == "gate" else ())}),
    )


_WEIGHED = (
    *("test",) * 12,
    *("compare",) * 4,
    *("gate",) * 4,
    *("init",) * 2,
    *("repair", "replay", "diff", "export", "pack") * 3,
    *("report", "metrics", "schema", "fit", "sample") * 3,
    *("list", "doctor", "datasets show"),
    *LONG_ONES,
)


def _written(words: Sequence[str]) -> tuple[str, ...]:
    """Places that the words themselves name as output, where nothing of others lies."""
    options = ("--out", "--html", "--file", "--keep", "--junit", "--sarif", "--markdown")
    options += ("--pytest",)
    given = [after for word, after in pairwise(words) if word in options]
    given += [word.partition("=")[2] for word in words if word.startswith(("--out=", "--html="))]
    # A link that leads to nothing yet is a way to something new.
    given += [thing.to for place in given if isinstance(thing := AROUND.get(place), Link)]
    inner = {f"{place.rstrip('/')}.html" for place in given}
    return tuple(place.rstrip("/").removeprefix("./") for place in {*given, *inner} if place)


def _schemas(words: Sequence[str]) -> tuple[str, ...]:
    """Where a schema goes beside a limi.toml."""
    places = [PurePosixPath(place) for place in (*_written(words), "limi.toml")]
    return ("limi.toml", *(str(place.parent / "schema.toml") for place in places))


def _bounded(words: list[str]) -> list[str]:
    """The words with a time that ends the search, unless they give another."""
    given = [after for word, after in pairwise(words) if word in _HUGE]
    small = all(len(value) < 6 for value in given)
    return words if small else [*words, *_ENOUGH]


def _value(draw: Draw, option: Any, flag: str) -> str:
    """A value for an option, by its name and type."""
    kind = _type(option)
    special = _SPECIAL.get(flag) or _ARGUMENTS.get(option.name)
    if special and draw.chance(75):
        return draw.pick(special)
    if "int" in kind:
        return draw.pick(INTEGERS)
    if "float" in kind:
        return draw.pick(FLOATS)
    if "path" in kind and draw.chance(85):
        return draw.pick(_PATHS)
    value = draw.pick(WORDS)
    return value if value not in _SLOW.get(flag, ()) else ""


def _type(option: Any) -> str:
    """What an option takes, in words; how typer keeps it depends on its version."""
    described = getattr(option, "type_descriptor", None)
    return str(option.type if described is None else described.annotation).lower()


def _set(draw: Draw, words: list[str], command: Any) -> list[str]:
    """An option or argument with another value."""
    option = draw.pick(command.params)
    flag = option.opts[-1] if option.opts[-1].startswith("-") else ""
    if option.name == "help" or (flag and getattr(option, "is_flag", False)):
        return [*words, flag or "--help"]
    value = _value(draw, option, flag)
    if not flag:
        place = 2 if words[0] == "datasets" else 1
        return [*words[:place], value, *words[place + 1 :]]
    if option.multiple and draw.chance(30):
        return [*words, flag, value]
    if flag in words:
        place = words.index(flag) + 1
        return [*words[:place], value, *words[place + 1 :]]
    return [*words, f"{flag}={value}"] if draw.chance(20) else [*words, flag, value]


def _drop(draw: Draw, words: list[str], command: Any) -> list[str]:
    """One word less."""
    place = 1 + draw.below(max(len(words) - 1, 1))
    return words[:place] + words[place + 1 :]


def _double(draw: Draw, words: list[str], command: Any) -> list[str]:
    """One word twice."""
    place = draw.below(len(words))
    return words[: place + 1] + words[place:]


def _extra(draw: Draw, words: list[str], command: Any) -> list[str]:
    """A word that means nothing."""
    place = 1 + draw.below(len(words))
    word = draw.pick(("--", "--x", "-x", "--max-row", "--help=1", *WORDS))
    return [*words[:place], word, *words[place:]]


def _stray(draw: Draw, known: dict[str, Any]) -> Case:
    """No command at all, or one that there is not."""
    words = [
        draw.pick(("", "-h", "--version", "tset", *known, *WORDS)) for _ in range(draw.below(3))
    ]
    words = [part for word in words for part in (word.split(" ") if word in known else [word])]
    if words[:1] == ["demo"]:
        words = ["datasets"]
    return Case(tuple(words), AROUND, OUTPUTS, exits=frozenset({0, 2, 4}))


def _long(draw: Draw, material: Material, name: str, command: Any) -> Case:
    """A command that must be refused whatever else it is given."""
    words = list(LONG_ONES[name])
    option = draw.pick(command.params)
    flag = option.opts[-1]
    if flag.startswith("-") and flag not in words and not getattr(option, "is_flag", False):
        value = _value(draw, option, flag)
        words = [*words, flag, value]
    else:
        words = draw.pick((_double, _extra))(draw, words, command)
    return Case(tuple(words), files(material, name), ("out", "cells", "new", *_written(words)))


# -- the corpus ----------------------------------------------------------------------------


def _sound(name: str) -> Any:
    def build(material: Material) -> Case:
        needs = NEEDS.get(name, ())
        made = (*OUTPUTS, *(_schemas(SOUND[name]) if name == "init" else ()))
        ends = frozenset({0, *(ANSWERS if name == "gate" else ())})
        return Case(SOUND[name], material.files(*needs), made, exits=ends)

    return build


CORPUS.each("sound", {name.replace(" ", "-"): _sound(name) for name in SOUND})


@CORPUS.case("sound-test-natural")
def _(material: Material) -> Case:
    words = ("test", *PEOPLE, *_MODEL, "--max-rows", "60", "--rate-rows", "50", "--json")
    words += ("--method", "natural", "--out", "out")
    needs = material.files("people.csv", "model.py")
    return Case(words, needs, ("out",), exits=frozenset({0}))


def _refused(*words: str, says: str = "", exits: tuple[int, ...] = (2,)) -> Any:
    """A command that finds everything it could need, and is refused before it writes anything."""
    name = " ".join(words[:2]) if words[0] == "datasets" else words[0]
    return lambda material: Case(words, files(material, name), exits=frozenset(exits), says=says)


def _test(*words: str, **more: Any) -> Any:
    return _refused("test", *PEOPLE, *_MODEL, *SMALL, *_ENOUGH, *words, **more)


CORPUS.each(
    "refused",
    {
        "a-seed-below-zero": _test("--seed", "-1", says="seed is -1"),
        "a-budget-of-20-digits": _test("--max-queries", "1" + "0" * 20),
        "a-budget-of-401-digits": _test("--max-rows", "1" + "0" * 400, says="is of 401 digits"),
        "a-rate-of-20-digits": _test("--rate-rows", "1" + "0" * 20, exits=(0, 2)),
        "a-batch-of-nothing": _test("--max-batch", "0"),
        "no-such-column": _test("--protected", "gone", exits=(2, 4)),
        "a-range-of-20000-digits": _test("--protected", "income=" + "1" * 20_000, exits=(2, 4)),
        "a-range-that-runs-backwards": _test("--protected", "income=9-1", exits=(2, 4)),
        "no-such-method": _test("--method", "themi", says="did you mean 'themis'"),
        "no-such-device": _test("--device", "banana"),
        "no-workers": _test("--workers", "0"),
        "no-such-cluster": _test("--cluster", "dask", says="ray://HOST:PORT"),
        "more-workers-than-rows": _test("--workers", "9", "--max-rows", "5"),
        "out-is-here": _test("--out", "."),
        "out-is-nothing": _test("--out", ""),
        "out-is-a-file": _test("--out", "file"),
        "out-is-somebody-elses-folder": _test("--out", "foreign", "--force"),
        "out-is-a-link-to-itself": _test("--out", "loop"),
        "out-is-too-long": _test("--out", "x" * 300),
        "resume-of-nothing": _test("--out", "new", "--resume"),
        "compare-with-a-seed-below-zero": _refused(
            "compare", *PEOPLE, *_MODEL, "--methods", "themis", "--seed", "-1"
        ),
        "compare-without-methods": _refused("compare", *PEOPLE, *_MODEL, "--methods", ","),
        "compare-into-no-page": _refused(
            *("compare", *PEOPLE, *_MODEL, "--methods", "themis", "--html", "")
        ),
        "fit-into-here": _refused("fit", "people.csv", "--out", "."),
        "fit-into-nothing": _refused("fit", "people.csv", "--out", ""),
        "sample-of-far-too-many": _refused(
            *("sample", "trees.gen", "--out", "out.csv", "-n", "1" + "0" * 15), exits=(2, 4)
        ),
        "sample-of-more-than-can-be-counted": _refused(
            *("sample", "trees.gen", "--out", "out.csv", "-n", "1" + "0" * 20)
        ),
        "sample-into-a-folder": _refused("sample", "trees.gen", "--out", "folder", "--force"),
        "repair-into-the-run-itself": _refused("repair", "run", "--out", "run"),
        "repair-with-no-seeds": _refused(
            *("repair", "run", "--out", "next", "--seeds", "0"), says="seeds is 0"
        ),
        "repair-with-seeds-without-end": _refused(
            *("repair", "run", "--out", "next", "--seeds", "1" + "0" * 20), says="seeds is 1"
        ),
        "repair-into-a-link-to-itself": _refused(
            *("repair", "run", "--out", "loop"), says="cannot be written to"
        ),
        "metrics-with-volume-without-end": _refused(
            *("metrics", "run", "--volume", "1" + "0" * 400), says="from 1 to 1,000,000,000,000"
        ),
        "metrics-with-a-group-twice": _refused(
            *("metrics", "run", "--privileged", "sex=M", "--privileged", "sex=F"),
            says="names 'sex' twice",
        ),
        "metrics-of-nothing": _refused("metrics", "empty", exits=(2, 4)),
        "report-into-a-pipe": _refused("report", "run", "--html", "pipe"),
        "demo-over-something-else": _refused("demo", "--out", "folder"),
        "demo-with-a-seed-below-zero": _refused("demo", "--out", "new", "--seed", "-1"),
    },
)


@CORPUS.case("a-draft-of-somebody-else-stays")
def _(material: Material) -> Case:
    needs = {**material.files("people.csv", "model.py"), "out.partial/keep.txt": MINE}
    words = ("test", *PEOPLE, *_MODEL, *SMALL, "--out", "out")
    return Case(words, needs, ("out",))


@CORPUS.case("a-draft-of-samples-is-no-way-into-other-files")
def _(material: Material) -> Case:
    needs = {**material.files("trees.gen"), "out.csv.partial": Link("../victim/file.txt")}
    return Case(("sample", "trees.gen", "--out", "out.csv", "-n", "5"), needs, ("out.csv",))


@CORPUS.case("a-draft-of-a-generator-is-no-way-into-other-files")
def _(material: Material) -> Case:
    needs = {**material.files("people.csv"), "out.partial": Link("../victim/file.txt")}
    return Case(("fit", "people.csv", "--out", "out"), needs, ("out", "out.html"))


@CORPUS.case("force-spares-hidden-files")
def _(material: Material) -> Case:
    needs = material.files("people.csv", "model.py", "run")
    needs |= {"run/.git/config": MINE, "run/.env": MINE}
    words = ("test", *PEOPLE, *_MODEL, *SMALL, "--out", "run", "--force")
    return Case(words, needs, ("run",))


@CORPUS.case("force-spares-folders-named-like-our-files")
def _(material: Material) -> Case:
    needs = material.files("people.csv", "model.py", "run")
    del needs["run/report.html"]
    needs["run/report.html/keep.txt"] = MINE
    words = ("test", *PEOPLE, *_MODEL, *SMALL, "--out", "run", "--force")
    return Case(words, needs, ("run",))


@CORPUS.case("resume-an-interrupted-run")
def _(material: Material) -> Case:
    needs = material.files("people.csv", "model.py", "stopped")
    return Case(
        ("test", *LONG, "--out", "stopped", "--resume"),
        needs,
        ("stopped",),
        exits=frozenset({0}),
    )


@CORPUS.case("resume-a-killed-run")
def _(material: Material) -> Case:
    needs = material.files("people.csv", "model.py", "killed.partial")
    return Case(
        ("test", *LONG, "--out", "killed", "--resume"),
        needs,
        ("killed", "killed.partial"),
        exits=frozenset({0}),
    )


def _tried(data: Callable[[bytes], bytes], *codes: int) -> Any:
    """A model's file that is tried in a Python of its own, as limi does it outside of tests."""

    def build(material: Material) -> Case:
        words = ("test", *NUMBERS, "--model", "lightgbm:lightgbm.txt", *SMALL)
        return Case(
            words,
            {**material.files("numbers.csv"), "lightgbm.txt": data(material.read("lightgbm.txt"))},
            exits=frozenset(codes),
            around=Around(trial_s=100, real_trial=True),
        )

    return build


CORPUS.each(
    "trial",
    {"passed": _tried(bytes, 0), "crashed": _tried(lambda data: data[: len(data) // 3], 4)},
)
