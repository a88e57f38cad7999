"""Model files of every format, damaged, edited or made to do harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hostile import nasty
from tests.hostile.case import Around, Case, Fifo, Folder, Link, Thing
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import NUMBERS, PEOPLE, SMALL, Material
from tests.hostile.nasty import (
    FLOATS,
    INTEGERS,
    as_json,
    damaged,
    edited,
    from_npy,
    nested,
    put,
    respelled,
    rezipped,
    to_npy,
    unzipped,
    zipped,
)

SHARE = 14
CORPUS = Corpus()

FILES = {
    "model.skops": "skops",
    "tree.skops": "skops",
    "forest.skops": "skops",
    "boosted.skops": "skops",
    "linear.onnx": "onnx",
    "forest.onnx": "onnx",
    "xgboost.json": "xgboost",
    "xgboost.ubj": "xgboost",
    "lightgbm.txt": "lightgbm",
    "catboost.cbm": "catboost",
    "network.pt2": "torch",
    "script.pt": "torch",
    "model.pkl": "pickle",
    "model.joblib": "joblib",
}
_REFUSED = frozenset({2, 4})


def asked(material: Material, name: str, thing: Thing, options: str = "", **more: Any) -> Case:
    """A test of the model in a file."""
    text = name in ("model.skops", "model.pkl", "model.joblib")
    table = PEOPLE if text else NUMBERS
    if name == "linear.onnx" and not options:
        options = "?output=probability"
    trusted = ("--trust-pickle",) if name == "network.pt2" else ()
    words = (
        "test",
        *table,
        "--model",
        f"{FILES[name]}:{name}{options}",
        *trusted,
        *SMALL,
        "--json",
    )
    return Case(words, {**material.files(table[0]), name: thing}, **more)


def drawn(draw: Draw, material: Material) -> Case:
    name = draw.pick(tuple(FILES))
    edits = {
        "skops": (rezipped, rezipped, _skops, _skops, damaged),
        "onnx": (_onnx, _onnx, _onnx, damaged),
        "xgboost": (_xgboost, _xgboost, damaged),
        "lightgbm": (_lines, _spelled, _spelled, damaged),
        "catboost": (damaged,),
        "torch": (rezipped, _program, _program, damaged),
        "pickle": (damaged,),
        "joblib": (damaged,),
    }[FILES[name]]
    data = draw.pick(edits)(draw, material.read(name))
    options = ""
    if draw.chance(8):
        options = draw.pick(_OPTIONS)
    if draw.chance(4):
        things: tuple[Thing, ...] = (b"", Folder(), Fifo(), Link(name), Link("gone"))
        return asked(material, name, draw.pick(things), options)
    if draw.chance(4):
        other = draw.pick(tuple(FILES))
        return asked(material, other, data, options)
    return asked(material, name, data, options)


_OPTIONS = (
    *("?output=probability", "?output=x", "?device=cpu", "?device=banana", "?x=1", "?", "?output"),
    *("?missing=", "?output=logits&output=x", "?device=", "?output=margin", "?missing=\x1b", "??"),
)


def _skops(draw: Draw, data: bytes) -> bytes:
    """A skops file whose account of its objects was edited."""
    records = unzipped(data)
    values: tuple[Any, ...] = (
        *(0, 1, -1, 3, 2**31, 2**63, 1e308, float("nan"), None, "", "x", [], {}, True, "os"),
        *("system", "builtins", "eval", "sklearn.tree._tree", "Tree", "numpy", "ndarray", "json"),
        *("MethodNode", "ObjectNode", "TypeNode", "FunctionNode", "ReduceNode", "operator", "load"),
    )
    tree = edited(draw, json.loads(records["schema.json"]), values)
    records["schema.json"] = as_json(tree)
    return zipped(records)


def _xgboost(draw: Draw, data: bytes) -> bytes:
    if not data.startswith(b'{"'):
        return damaged(draw, data)
    return as_json(edited(draw, json.loads(data)))


def _lines(draw: Draw, data: bytes) -> bytes:
    """A text model with lines lost, doubled or swapped."""
    lines = data.split(b"\n")
    for _ in range(1 + draw.below(3)):
        place, other = draw.below(len(lines)), draw.below(len(lines))
        how = draw.below(3)
        if how == 0:
            del lines[place]
        elif how == 1:
            lines.insert(other, lines[place])
        else:
            lines[place], lines[other] = lines[other], lines[place]
    return b"\n".join(lines)


def _spelled(draw: Draw, data: bytes) -> bytes:
    text = respelled(draw, data.decode("utf-8", "surrogateescape"), (*INTEGERS, *FLOATS, "x", "="))
    return text.encode("utf-8", "surrogateescape")


def _onnx(draw: Draw, data: bytes) -> bytes:
    """A graph with other nodes, sizes or weights."""
    import onnx

    model = onnx.load_from_string(data)
    for _ in range(1 + draw.below(2)):
        nodes, graph = model.graph.node, model.graph
        how = draw.below(9)
        if how == 0 and graph.initializer:
            draw.pick(graph.initializer).dims[0] = draw.pick((0, 1, 7, 2**31, 2**62, -1))
        elif how == 1:
            node = draw.pick(nodes)
            node.op_type = draw.pick(("Relu", "Loop", "If", "Scan", "X", "", "Gather", "Tile"))
        elif how == 2:
            node = draw.pick(nodes)
            if node.input:
                node.input[0] = draw.pick(("x", "y", "gone", ""))
        elif how == 3:
            node = draw.pick(nodes)
            if node.attribute:
                _warp(draw, draw.pick(node.attribute))
        elif how == 4:
            graph.input[0].type.tensor_type.elem_type = draw.pick((1, 7, 8, 11, 14, 99, 0))
        elif how == 5:
            model.opset_import[0].version = draw.pick((18, 1, 0, -1, 99, 2**31))
        elif how == 6:
            shape = graph.input[0].type.tensor_type.shape
            if shape.dim:
                draw.pick(shape.dim).dim_value = draw.pick((3, 0, -1, 1, 4, 2**40))
        elif how == 7 and graph.initializer:
            tensor = draw.pick(graph.initializer)
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", draw.pick(("w.bin", "../victim/file.txt", ""))
            tensor.data_location = onnx.TensorProto.EXTERNAL
        else:
            del nodes[draw.below(len(nodes))]
            if not nodes:
                break
    return model.SerializeToString()


def _warp(draw: Draw, attribute: Any) -> None:
    if attribute.ints:
        attribute.ints[draw.below(len(attribute.ints))] = draw.pick((0, -1, 99, 2**31, 2**62))
    elif attribute.floats:
        value = float(np.clip(draw.pick(nasty.NUMBERS), -3e38, 3e38))
        attribute.floats[draw.below(len(attribute.floats))] = value
    elif attribute.strings:
        attribute.strings[draw.below(len(attribute.strings))] = draw.pick((b"", b"x", b"BRANCH_EQ"))
    else:
        attribute.i = draw.pick((0, -1, 99, 2**62))


def _program(draw: Draw, data: bytes) -> bytes:
    """A torch program whose text was edited."""
    records = unzipped(data)
    texts = [name for name in records if name.endswith((".json", ".py"))]
    name = draw.pick(sorted(texts))
    if name.endswith(".py"):
        text = respelled(draw, records[name].decode(), (*INTEGERS[:8], "torch.save", "ops.aten.x"))
        records[name] = text.encode("utf-8", "surrogateescape")
        return zipped(records)
    tree = json.loads(records[name])
    values = (0, -1, 2**40, "x", "", [], {}, None, True, "torch.ops.aten.add.Tensor", "s0", 1.5)
    records[name] = as_json(edited(draw, tree, values))
    return zipped(records)


# -- the corpus ----------------------------------------------------------------------------


def _sound(name: str) -> Callable[[Material], Case]:
    needs_trust = FILES[name] in ("pickle", "joblib") or name == "script.pt"
    exits = frozenset({2} if needs_trust else {0})
    # A busy machine needs longer for files that are sound than for those that are refused.
    around = Around(trial_s=60)
    return lambda material: asked(material, name, material.read(name), exits=exits, around=around)


def _cut(name: str, share: float) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        data = material.read(name)
        return asked(material, name, data[: int(len(data) * share)], exits=_REFUSED)

    return build


for _name in FILES:
    CORPUS.each(
        _name.replace(".", "-"),
        {
            "sound": _sound(_name),
            "cut-early": _cut(_name, 0.3),
            "cut-late": _cut(_name, 0.9),
            "empty": lambda material, name=_name: asked(material, name, b"", exits=_REFUSED),
            "a-pipe": lambda material, name=_name: asked(material, name, Fifo(), exits=_REFUSED),
        },
    )


def _mlflow(thing: Thing, *more: str) -> Callable[[Material], Case]:
    """A folder that MLflow is to open."""
    words = ("test", *PEOPLE, "--model", "pyfunc:MLmodel", *SMALL, "--json", *more)
    return lambda material: Case(
        words, {**material.files(PEOPLE[0]), "MLmodel": thing}, exits=_REFUSED
    )


_LOADER = as_json({"flavors": {"python_function": {"loader_module": "os", "data": "../.."}}})
CORPUS.each(
    "mlflow",
    {
        "not-trusted": _mlflow(_LOADER),
        "a-pipe": _mlflow(Fifo(), "--trust-pickle"),
        "a-folder": _mlflow(Folder(), "--trust-pickle"),
    },
)


def _json_edit(name: str, *path: Any, value: Any) -> Callable[[Material], Case]:
    def build(material: Material) -> Case:
        tree = put(json.loads(material.read(name)), path, value)
        return asked(material, name, as_json(tree))

    return build


_TREE = ("learner", "gradient_booster", "model", "trees", 0)
CORPUS.each(
    "xgboost",
    {
        "deep": lambda material: asked(material, "xgboost.json", nested(100_000), exits=_REFUSED),
        "deep-objects": lambda material: asked(
            material, "xgboost.json", nested(100_000, '{"a":'), exits=_REFUSED
        ),
        "a-child-far-away": _json_edit(
            "xgboost.json", *_TREE, "left_children", value=[10**6, -1, -1]
        ),
        "a-tree-in-circles": _json_edit("xgboost.json", *_TREE, "left_children", value=[0, -1, -1]),
        "a-column-far-away": _json_edit(
            "xgboost.json", *_TREE, "split_indices", value=[10**6, 0, 0]
        ),
    },
)


def _tree_nodes(name: str, change: Callable[[Any], None]) -> Callable[[Material], Case]:
    """The nodes of a scikit-learn tree in a skops file, edited."""

    def build(material: Material) -> Case:
        records = unzipped(material.read(name))
        touched = 0
        for record, data in records.items():
            if record.endswith(".npy"):
                array = from_npy(data)
                if array.dtype.names and {"left_child", "left"} & set(array.dtype.names):
                    change(array)
                    records[record] = to_npy(array)
                    touched += 1
        if not touched:  # the tree holds its nodes in the account itself
            raise ValueError(f"{name} has no nodes to edit")
        return asked(material, name, zipped(records), exits=_REFUSED)

    return build


def _far(array: Any) -> None:
    for name in ("left_child", "left"):
        if name in array.dtype.names:
            array[name][0] = 2**28


def _circle(array: Any) -> None:
    for name in ("left_child", "right_child", "left", "right"):
        if name in array.dtype.names:
            array[name][0] = 0


def _wide(array: Any) -> None:
    for name in ("feature", "feature_idx"):
        if name in array.dtype.names:
            array[name][0] = 2**28


for _name in ("tree.skops", "forest.skops", "boosted.skops"):
    CORPUS.each(
        _name.replace(".", "-"),
        {
            "nodes-far-away": _tree_nodes(_name, _far),
            "nodes-in-circles": _tree_nodes(_name, _circle),
            "columns-far-away": _tree_nodes(_name, _wide),
        },
    )


@CORPUS.case("skops-with-a-type-to-trust")
def _(material: Material) -> Case:
    records = unzipped(material.read("model.skops"))
    text = records["schema.json"].decode()
    records["schema.json"] = text.replace('"LogisticRegression"', '"system"').encode()
    return asked(material, "model.skops", zipped(records), exits=_REFUSED)


@CORPUS.case("onnx-with-a-loop-without-end")
def _(material: Material) -> Case:
    data, around = _endless(), Around(trial_s=1)
    return asked(material, "linear.onnx", data, exits=_REFUSED, around=around)


def _endless() -> bytes:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["go"]),
            helper.make_node("Add", ["a", "a"], ["b"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("on", TensorProto.BOOL, []),
            value("a", TensorProto.FLOAT, None),
        ],
        [value("go", TensorProto.BOOL, []), value("b", TensorProto.FLOAT, None)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["x", "axis"], ["s"], keepdims=1),
            helper.make_node("Loop", ["many", "true", "s"], ["y"], body=body),
        ],
        "endless",
        [value("x", TensorProto.FLOAT, [None, 3])],
        [value("y", TensorProto.FLOAT, [None, 1])],
        [
            helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
            helper.make_tensor("many", TensorProto.INT64, [], [2**62]),
            helper.make_tensor("true", TensorProto.BOOL, [], [True]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    return model.SerializeToString()


@CORPUS.case("onnx-with-weights-of-somebody-else")
def _(material: Material) -> Case:
    import onnx

    model = onnx.load_from_string(material.read("linear.onnx"))
    tensor = model.graph.initializer[0]
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../victim/file.txt"
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.ClearField("float_data")
    return asked(material, "linear.onnx", model.SerializeToString(), exits=_REFUSED)


_RUNS = "__import__('builtins').open('ran', 'w')"


def _script(line: str) -> Callable[[Material], Case]:
    """TorchScript whose code writes a file."""

    def build(material: Material) -> Case:
        records = unzipped(material.read("script.pt"))
        for name, data in records.items():
            if name.endswith(".py") and b"def forward" in data:
                head, _, rest = data.decode().partition("def forward")
                first, _, body = rest.partition("\n")
                if "Tensor:" in first or first.rstrip().endswith(":"):
                    records[name] = f"{head}def forward{first}\n    {line}\n{body}".encode()
                else:
                    second, _, body = body.partition("\n")
                    text = f"{head}def forward{first}\n{second}\n    {line}\n{body}"
                    records[name] = text.encode()
        return asked(material, "script.pt", zipped(records), exits=_REFUSED)

    return build


CORPUS.case("torchscript-that-saves")(_script('torch.save(input, "ran")'))


@CORPUS.case("torchscript-that-is-trusted")
def _(material: Material) -> Case:
    case = asked(material, "script.pt", material.read("script.pt"))
    return Case((*case.words, "--trust-pickle"), case.files, exits=frozenset({0}))


@CORPUS.case("pickle-that-runs-code")
def _(material: Material) -> Case:
    data = b"cbuiltins\neval\n(V" + _RUNS.encode() + b"\ntR."
    return asked(material, "model.pkl", data, exits=frozenset({2}))


@CORPUS.case("torch-on-no-device")
def _(material: Material) -> Case:
    data = material.read("network.pt2")
    return asked(material, "network.pt2", data, "?device=banana", exits=frozenset({2}))
