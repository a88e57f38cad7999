"""Generator files that were damaged or edited: one sentence, or a generator of rows that fit."""

import copy
import functools
import io
import json
import os
import tempfile
import zipfile

import numpy as np
import pytest

from limi import generators
from limi.errors import CorruptStore, InvalidInput, MissingDependency
from limi.generators import _state, ctgan, transport, trees
from limi.generators._base import WithDensity
from limi.generators._checks import require_rows
from limi.table.schema import Column, Schema

SCHEMA = Schema(
    (
        Column(name="sex", kind="categorical", levels=("F", "M", "X"), missing=True),
        Column(name="age", kind="numerical", low=18, high=80, step=1),
        Column(name="score", kind="numerical", low=-1.5, high=2.5, missing=True),
        Column(name="ok", kind="boolean", levels=(False, True)),
    )
)
KINDS = ["trees", "transport", "ctgan"]
SETTINGS = {
    "trees": trees.Settings(min_leaf=10, max_bins=8),
    "transport": transport.Settings(hidden=8, embedding=2, steps=10, batch=32),
    "ctgan": ctgan.Settings(
        epochs=1, min_steps=2, batch=20, noise=4, generator_layers=(8, 8), max_modes=3
    ),
}


def table(n=120):
    rng = np.random.default_rng(0)
    rows = np.stack(
        [
            rng.integers(0, 3, n),
            rng.integers(18, 81, n),
            rng.uniform(-1.5, 2.5, n),
            rng.integers(0, 2, n),
        ],
        axis=1,
    ).astype(float)
    rows[:9, 0] = np.nan
    rows[5:20, 2] = np.nan
    return rows


@functools.cache
def fitted(kind):
    rng = np.random.default_rng(1)
    return generators.get(kind).fit(table(), SCHEMA, rng, settings=SETTINGS[kind])


@functools.cache
def content(kind):
    """The parts of a file, by name."""
    with tempfile.TemporaryDirectory() as folder:
        generators.save(fitted(kind), f"{folder}/g.limi")
        with zipfile.ZipFile(f"{folder}/g.limi") as file:
            return {name: file.read(name) for name in file.namelist()}


def packed(parts, path, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return path


def npy(array):
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


def sentence(error):
    told = str(error)
    assert "\n" not in told
    assert len(told) < 500
    return told


def use(path):
    """Load a file and do with it what limi does; the sentence where it is refused."""
    try:
        made = generators.load(path)
    except (CorruptStore, MissingDependency) as error:
        return sentence(error)
    with np.errstate(all="ignore"):
        rows = made.decode(made.sample_latents(200, np.random.default_rng(2)))
    require_rows(rows, made.schema)
    if isinstance(made, WithDensity):
        made.log_prob(rows[:20])
    if hasattr(made, "encode"):
        made.encode(rows[:20], np.random.default_rng(3))
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_as_it_was_written_is_read(tmp_path, kind):
    assert use(packed(content(kind), tmp_path / "g.limi")) is None


# -- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_is_refused(tmp_path, kind):
    whole = packed(content(kind), tmp_path / "g.limi").read_bytes()
    for end in [*range(0, 200, 7), *np.linspace(200, len(whole) - 1, 40).astype(int)]:
        (tmp_path / "cut.limi").write_bytes(whole[:end])
        assert "not a generator file, or is damaged" in use(tmp_path / "cut.limi")


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_is_found_or_harmless(tmp_path, kind):
    whole = bytearray(packed(content(kind), tmp_path / "g.limi").read_bytes())
    rng = np.random.default_rng(4)
    for place in rng.integers(0, len(whole), 150):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        (tmp_path / "flipped.limi").write_bytes(flipped)
        use(tmp_path / "flipped.limi")


# -- arrays -----------------------------------------------------------------------------------


def put(value):
    def change(array):
        array = array.copy()
        array.flat[array.size // 2] = value
        return array

    return change


CHANGES = {
    "scalar": lambda a: a.sum(),
    "empty": lambda a: a[:0],
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "deeper": lambda a: a[None],
    "reversed": lambda a: a[::-1],
    "other type": lambda a: a.astype(np.float64 if a.dtype.kind == "i" else np.int64),
    "bytes": lambda a: a.astype("S8"),
    "objects": lambda a: a.astype(object),
    "complex": lambda a: a.astype(complex),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "small": lambda a: a.astype(np.int8 if a.dtype.kind == "i" else np.float16),
    "zero": put(0),
    "minus one": put(-1),
    "minus two": put(-2),
    "one": put(1),
    "large": lambda a: put(2**31 - 1 if a.dtype.kind == "i" else 3e38)(a),
    "negative": lambda a: put(-(2**31) if a.dtype.kind == "i" else -3e38)(a),
    "all large": lambda a: np.full_like(a, 2**31 - 1 if a.dtype.kind == "i" else 3e38),
    "all zero": np.zeros_like,
    "nan": lambda a: put(np.nan)(a) if a.dtype.kind == "f" else a[:-1],
    "inf": lambda a: put(np.inf)(a) if a.dtype.kind == "f" else a[:-1],
}
REFUSED = {
    *("scalar", "deeper", "shorter", "longer", "bytes", "objects", "complex", "big-endian"),
    *("nan", "inf", "negative", "minus two"),
}


@pytest.mark.filterwarnings("ignore")  # the changes themselves overflow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_was_changed_is_refused_or_harmless(tmp_path, kind, change):
    parts = content(kind)
    # Weights are alike, and the networks that they make take longest.
    weights = [name for name in parts if name.startswith("weights_")]
    for name in parts:
        if not name.endswith(".npy") or name in weights[2:]:
            continue
        array = np.load(io.BytesIO(parts[name]))
        if not array.size:
            continue
        changed = CHANGES[change](array)
        told = use(packed(parts | {name: npy(changed)}, tmp_path / "g.limi"))
        may_be = name in weights or array.dtype.kind == "f"
        if change in REFUSED and not (may_be and change in ("negative", "minus two")):
            assert told is not None, (name, change)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_that_is_missing_or_too_much_is_refused(tmp_path, kind):
    parts = content(kind)
    for name in parts:
        less = {other: data for other, data in parts.items() if other != name}
        assert use(packed(less, tmp_path / "g.limi")) is not None, name
    for name, data in {
        "more.npy": npy(np.zeros(3)),
        "readme.txt": b"hello",
        "../x.npy": npy(np.zeros(3)),
    }.items():
        assert use(packed(parts | {name: data}, tmp_path / "g.limi")) is not None, name
    assert "compressed" in use(packed(parts, tmp_path / "g.limi", zipfile.ZIP_DEFLATED))


def test_an_array_that_says_to_be_larger_than_it_is_takes_no_memory(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header = header.ljust(117) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\x00" * 64
    told = use(packed(content("trees") | {"values.npy": data}, tmp_path / "g.limi"))
    assert "not as long" in told


# -- the head ---------------------------------------------------------------------------------

VALUES = [None, True, -1, 0, 1.5, 10**400, "x", "", [], [None], {}, {"a": 1}, "\x1b[31m\n", 1e308]


def leaves(tree, path=()):
    """Every place in a tree, and the whole of it."""
    yield path
    items = tree.items() if isinstance(tree, dict) else []
    items = enumerate(tree) if isinstance(tree, list) else items
    for key, item in items:
        yield from leaves(item, (*path, key))


def replaced(tree, path, value):
    if not path:
        return value
    tree = copy.deepcopy(tree)
    part = tree
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return tree


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_was_edited_is_refused_or_harmless(tmp_path, kind):
    parts = content(kind)
    head = json.loads(parts["generator.json"])
    # Every place gets another few of the values: all of them together meet every kind of place.
    for turn, path in enumerate(leaves(head)):
        for value in VALUES[turn % 3 :: 3]:
            edited = json.dumps(replaced(head, path, value))
            use(packed(parts | {"generator.json": edited}, tmp_path / "g.limi"))
    for path in [("kind",), ("schema",), ("facts",), ("format",), ("facts", "notes")]:
        for value in (None, -1, 1.5, {"a": 1}, "x"):
            edited = json.dumps(replaced(head, path, value))
            told = use(packed(parts | {"generator.json": edited}, tmp_path / "g.limi"))
            assert told is not None, (path, value)


@pytest.mark.parametrize("text", ["", "[", "[]", "3", "[" * 100_000, "\x00", '{"format": 1e999}'])
def test_a_head_that_is_none_is_refused(tmp_path, text):
    parts = content("trees") | {"generator.json": text}
    assert "not a generator file, or is damaged" in use(packed(parts, tmp_path / "g.limi"))


def test_a_generator_that_is_not_installed_is_named(tmp_path):
    head = json.loads(content("trees")["generator.json"]) | {"kind": "gauss"}
    path = packed(content("trees") | {"generator.json": json.dumps(head)}, tmp_path / "g.limi")
    with pytest.raises(MissingDependency, match="'gauss', which is not installed"):
        generators.load(path)


def test_a_newer_file_says_so(tmp_path):
    head = json.loads(content("trees")["generator.json"]) | {"format": 10**30}
    parts = content("trees") | {"generator.json": json.dumps(head)}
    assert "was written by a newer limi" in use(packed(parts, tmp_path / "g.limi"))


def test_a_schema_of_other_columns_is_refused(tmp_path):
    parts = content("trees")
    head = json.loads(parts["generator.json"])
    for before, after in [
        ("high = 80", "high = 60"),
        ('["F", "M", "X"]', '["F", "M"]'),
        ("missing = true", "missing = false"),
        ("step = 1", "step = 2"),
    ]:
        assert before in head["schema"]
        edited = head | {"schema": head["schema"].replace(before, after, 1)}
        told = use(packed(parts | {"generator.json": json.dumps(edited)}, tmp_path / "g.limi"))
        assert "is damaged" in told


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place, words in [
        (tmp_path / "pipe", "is a pipe or a device"),
        (tmp_path, "is a folder"),
        (tmp_path / "none", "there is no file"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            generators.load(place)
    with pytest.raises(InvalidInput, match="the device 'banana' cannot be used"):
        generators.load(packed(content("ctgan"), tmp_path / "g.limi"), device="banana")


def test_a_generator_that_needs_torch_says_so_itself(monkeypatch):
    from limi.gpu.place import choose_device

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingDependency, match="the generator 'ctgan' needs the package torch"):
        choose_device("auto", None, "ctgan")


def test_settings_are_held_to_their_types():
    facts = {"settings": {"min_leaf": None, "order": ["a", "b"]}, "notes": ["x"]}
    settings, notes = _state.facts_of(facts, trees.Settings)
    assert (settings.order, notes) == (("a", "b"), ("x",))
    for name, value in [
        ("order", "sideways"),
        ("max_bins", 1),
        ("max_bins", "8"),
        ("min_gain", float("nan")),
        ("protected_first", 1),
        ("nope", 1),
    ]:
        with pytest.raises(ValueError, match="setting"):
            _state.facts_of({"settings": {name: value}, "notes": []}, trees.Settings)
