"""Run folders, journals and results of studies, edited or damaged after limi wrote them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.hostile.case import MINE, Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import LONG, Material
from tests.hostile.nasty import VALUES, as_json, damaged, edited, nested, put, respelled

SHARE = 12
CORPUS = Corpus()

_FILES = ("manifest.json", "summary.json", "schema.toml", "findings.parquet")
_REFUSED = frozenset({2, 4})

"""A cell of a study as limi keeps it."""


def asked(
    material: Material, changed: Mapping[str, Thing | None], how: int = 0, **more: Any
) -> Case:
    """A command that reads a run; `changed` are files of it that are others, or gone."""
    files = material.files("people.csv", "model.skops", "run")
    for name, thing in changed.items():
        for old in [old for old in files if old == f"run/{name}" or old.startswith(f"run/{name}/")]:
            del files[old]
        if thing is not None:
            files[f"run/{name}"] = thing
    words, outputs = (
        (("report", "run", "--full"), ()),
        (("report", "run", "--json"), ()),
        (("report", "run", "--html", "page.html"), ("page.html",)),
        (("metrics", "run"), ()),
        (("metrics", "run", "--json", "--privileged", "sex=M", "--volume", "1000"), ()),
        (("repair", "run", "--out", "out", "--seeds", "1", "--no-model", "--json"), ("out",)),
        (("replay", "run", "--model", "skops:model.skops", "--json"), ()),
        (("pack", "run", "--out", "out.zip", "--json"), ("out.zip",)),
    )[how]
    return Case(words, files, outputs, **more)


def resumed(material: Material, changed: Mapping[str, Thing], **more: Any) -> Case:
    """A resumed run, of which some files are others."""
    files = {**material.files("people.csv", "model.py", "killed.partial", "stopped"), **changed}
    run = "killed" if any(name.startswith("killed") for name in changed) else "stopped"
    words = ("test", *LONG, "--out", run, "--resume", "--json")
    return Case(words, files, (run, f"{run}.partial"), **more)


# -- generated -----------------------------------------------------------------------------


def drawn(draw: Draw, material: Material) -> Case:
    make = draw.pick((_json, _json, _json, _spelled, _bytes, _findings, _things, _journal))
    return make(draw, material)


def _how(draw: Draw) -> int:
    return draw.pick((0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 6, 7))


def _json(draw: Draw, material: Material) -> Case:
    """Values of the JSON files edited."""
    how = _how(draw)
    name = draw.pick(("summary.json", "manifest.json")) if how in (5, 6, 7) else "summary.json"
    tree = json.loads(material.read(f"run/{name}"))
    values = (*VALUES, "sex", "people.csv", "skops:model.skops", "python:evil.py:f", "pickle:x")
    return asked(material, {name: as_json(edited(draw, tree, values))}, how)


def _spelled(draw: Draw, material: Material) -> Case:
    """Words of the schema edited."""
    text = respelled(draw, material.read("run/schema.toml").decode())
    data = text.encode("utf-8", "surrogateescape")
    return asked(material, {"schema.toml": data}, draw.pick((3, 4, 5, 6, 7)))


def _bytes(draw: Draw, material: Material) -> Case:
    """Bytes of any file damaged."""
    name = draw.pick(_FILES)
    return asked(material, {name: damaged(draw, material.read(f"run/{name}"))}, _how(draw))


def _findings(draw: Draw, material: Material) -> Case:
    """Findings with other columns, types or cells."""
    import pandas as pd

    frame = pd.read_parquet(io.BytesIO(material.read("run/findings.parquet")))
    for _ in range(1 + draw.below(2)):
        column = draw.pick(list(frame.columns))
        how = draw.below(6)
        if how == 0:
            frame = frame.drop(columns=column)
            if not len(frame.columns):
                break
        elif how == 1:
            frame[column] = draw.pick(("x", None, 5.0, -1, float("nan"), "\x1b[31m", 10**18))
        elif how == 2:
            frame[column] = [[0.5]] * len(frame)
        elif how == 3:
            new = draw.pick(("x", "", "\x1b", "sex_"))
            if new not in frame:  # Parquet has no two columns of one name
                frame = frame.rename(columns={column: new})
        elif how == 4:
            frame = frame.iloc[: draw.below(2)]
        else:
            frame[column] = frame[draw.pick(list(frame.columns))].to_numpy()
    how = draw.pick((5, 6))
    return asked(material, {"findings.parquet": frame.to_parquet(index=False)}, how)


def _things(draw: Draw, material: Material) -> Case:
    """Something else where a file should be."""
    things: tuple[Thing | None, ...] = (
        *(None, b"", Folder(), Fifo(), Link("summary.json"), Link("gone"), Link("schema.toml")),
        *(nested(100_000), b"[]", b"{}", b'{"format": []}', b"\x00", b"\xff\xfe", MINE),
    )
    changed = {draw.pick(_FILES): draw.pick(things) for _ in range(1 + draw.below(2))}
    if draw.chance(20):
        changed |= {draw.pick((".env", "extra", "a/b", "journal.bin")): MINE}
    return asked(material, changed, _how(draw))


def _journal(draw: Draw, material: Material) -> Case:
    """The log of an unfinished run, or what it says of itself, damaged."""
    run = draw.pick(("killed.partial", "stopped"))
    if draw.chance(30):
        tree = edited(draw, json.loads(material.read(f"{run}/manifest.json")))
        return resumed(material, {f"{run}/manifest.json": as_json(tree)})
    data = material.read(f"{run}/journal.bin")
    if draw.chance(40):
        # Answers that a model cannot have given.
        place = draw.below(max(len(data) // 8 - 1, 1)) * 8 + draw.pick((4, 0))
        value = np.float64(draw.pick((0.1, 0.5, -1.0, 2.0, np.nan, np.inf, -np.inf, 1e300)))
        return resumed(
            material, {f"{run}/journal.bin": data[:place] + value.tobytes() + data[place + 8 :]}
        )
    return resumed(material, {f"{run}/journal.bin": damaged(draw, data)})


# -- the corpus ----------------------------------------------------------------------------


def _edit(
    name: str, *path: Any, value: Any, how: int, exits: tuple[int, ...] = (4,), says: str = ""
):
    def build(material: Material) -> Case:
        tree = put(json.loads(material.read(f"run/{name}")), path, value)
        return asked(material, {name: as_json(tree)}, how, exits=frozenset(exits), says=says)

    return build


_SUMMARIES: Mapping[str, tuple[tuple[Any, ...], Any]] = {
    "rates-that-are-text": (("rates",), "x"),
    "a-bound-that-is-a-list": (("rates", "real", "low"), [1]),
    "rows-that-steer-a-terminal": (("n_rows",), "\x1b[31m"),
    "a-seed-that-is-text": (("seed",), "x"),
    "a-method-that-is-a-number": (("method",), 3),
    "values-that-are-a-number": (("protected",), {"sex": 3}),
    "a-rate-that-is-text": (("rates", "real", "estimate"), "x"),
    "a-count-that-is-an-object": (("metrics", "individual", "consistency", "n"), {}),
    "a-group-that-is-nothing": (("metrics", "group", "sex"), None),
    "severity-that-is-a-list": (("metrics", "severity"), [1]),
    "a-speed-of-400-digits": (
        ("metrics", "effectiveness", "findings_per_second", "value"),
        10**400,
    ),
}
for _what, _how_shown in {"report": 0, "metrics": 3}.items():
    CORPUS.each(
        f"{_what}-with",
        {
            name: _edit("summary.json", *path, value=value, how=_how_shown)
            for name, (path, value) in _SUMMARIES.items()
        },
    )

CORPUS.case("metrics-with-counts-of-groups-that-are-text")(
    _edit(
        *("summary.json", "metrics", "group", "sex", "counts", 0, "rows"),
        value="x",
        how=4,
        says="the summary in",
    )
)


def _replaced(name: str, thing: Thing | None, how: int, *codes: int) -> Callable[[Material], Case]:
    exits = frozenset(codes or (4,))
    return lambda material: asked(material, {name: thing}, how, exits=exits)


for _name in ("summary.json", "manifest.json"):
    CORPUS.each(
        f"repair-{_name.replace('.', '-')}",
        {
            what: _replaced(_name, thing, 5)
            for what, thing in {
                "deep": b"[" * 100_000,
                "a-list": b"[]",
                "empty": b"",
                "a-format-that-is-a-list": b'{"format": []}',
                "a-zero": b"\x00",
                "a-pipe": Fifo(),
                "a-folder": Folder(),
                "missing": None,
            }.items()
        },
    )


def _schema(old: str, new: str) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        text = material.read("run/schema.toml").decode()
        assert old in text
        data = text.replace(old, new).encode()
        return asked(material, {"schema.toml": data}, 3, exits=frozenset({4}), says="the schema in")

    return build


CORPUS.each(
    "schema-with",
    {
        "levels-that-are-lists": _schema('["F", "M"]', '[["F"], "M"]'),
        "a-range-without-end": _schema("high = 19", "high = inf"),
        "a-newer-format": _schema("format = 1", "format = 9"),
        "depth": _schema("format = 1", "x = " + "[" * 5000),
    },
)

CORPUS.each(
    "manifest-with",
    {
        what: _edit("manifest.json", name, value=value, how=5, says=f"{name} is")
        for what, name, value in (
            ("a-target-that-is-a-number", "target", 3),
            ("a-target-that-is-a-list", "target", ["ok"]),
            ("no-table", "table", None),
            ("a-model-that-is-an-object", "model", {}),
            ("no-sum-of-the-data", "data_sha256", None),
        )
    },
)
CORPUS.case("manifest-with-a-table-no-file-can-be")(
    _edit("manifest.json", "table", value="x" * 5000, how=5, exits=(2,), says="is not at")
)


def _refound(change: Callable[[Any], Any]) -> Callable[[Material], Case]:
    """Findings that were edited after the run wrote them."""

    def build(material: Material) -> Case:
        import pandas as pd

        frame = change(pd.read_parquet(io.BytesIO(material.read("run/findings.parquet"))))
        files = {"findings.parquet": frame.to_parquet(index=False)}
        says = "findings in|gives answers that differ"
        return asked(material, files, 5, exits=frozenset({4}), says=says)

    return build


CORPUS.each(
    "findings-with",
    {
        "scores-that-are-text": _refound(lambda frame: frame.assign(score="x")),
        "scores-that-are-lists": _refound(lambda frame: frame.assign(score=[[0.5]] * len(frame))),
        "scores-above-one": _refound(lambda frame: frame.assign(partner_score=5.0)),
        "partners-of-the-same-sex": _refound(lambda frame: frame.assign(sex__partner=frame["sex"])),
        "no-origin": _refound(lambda frame: frame.drop(columns="origin")),
    },
)

EVIL = b"open('ran', 'w')\ndef f(frame): return 0.5"


def _chosen(model: str, *more: str) -> Callable[[Material], Case]:
    """A manifest that would like to choose what runs."""

    def build(material: Material) -> Case:
        tree = json.loads(material.read("run/manifest.json"))
        tree |= {"model": model, "trust_pickle": True}
        case = asked(material, {"manifest.json": as_json(tree)}, 5)
        files = {**case.files, "evil.py": EVIL, "evil.pkl": material.read("model.pkl")}
        return Case((*case.words, *more), files, case.outputs, exits=frozenset({2}))

    return build


CORPUS.each(
    "manifest-that-chooses",
    {
        f"{model.partition(':')[0]}{'-'.join(more)}": _chosen(model, *more)
        for model in ("python:evil.py:f", "pickle:evil.pkl", "joblib:x", "plugin:x", "torch:x.pt2")
        for more in ((), ("--model", ""), ("--trust-pickle",))
    },
)
CORPUS.case("manifest-whose-model-steers-a-terminal")(_chosen("python:a\nb\x1b[31m.py:f"))


def _answers(run: str, value: float) -> Callable[[Material], Case]:
    """A journal with an answer that nobody gave: it is cut there, and the run ends well."""

    def build(material: Material) -> Case:
        data = material.read(f"{run}/journal.bin")
        place = len(data) - 8  # the last answer of the last whole record
        edited = data[:place] + np.float64(value).tobytes()
        return resumed(material, {f"{run}/journal.bin": edited}, exits=frozenset({0}))

    return build


CORPUS.each(
    "journal",
    {
        f"of-a-{run.partition('.')[0]}-run-with-{name}": _answers(run, value)
        for run in ("killed.partial", "stopped")
        for name, value in {"no-number": np.nan, "infinity": np.inf, "another-score": 0.1}.items()
    },
)
