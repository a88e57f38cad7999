"""Tree ensembles in ONNX graphs: one node TreeEnsembleClassifier, and simple steps before it.

onnxruntime compares float32 and adds float32. What stands before the trees is run by it as it is:
the graph is cut at the numbers that the trees take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel, missing, spell
from limi.trees._read import Read
from limi.trees.ensemble import SINGLE, Categories, Ensemble, Tree, join_trees

if TYPE_CHECKING:
    from limi.models.onnx import OnnxModel

__all__ = ["read"]

_TREES = "TreeEnsembleClassifier"
_IN_ORDER = ("Cast", "Scaler", "Imputer", "Concat", "FeatureVectorizer", "Identity", "Reshape")
_ENCODERS = ("OneHotEncoder", "LabelEncoder", "CategoryMapper")
_BEHIND = ("Cast", "ZipMap", "Identity")
_LARGER = ("BRANCH_GTE", "BRANCH_GT")


def read(model: OnnxModel) -> Read:
    """The trees of a graph, and the part of the graph before them."""
    try:
        import onnx
    except ImportError:
        raise missing("onnx", "certify", "reading the trees of an ONNX graph") from None
    import onnxruntime

    graph_model = onnx.load(model.file)
    graph = graph_model.graph
    found = [node for node in graph.node if node.op_type == _TREES]
    if len(found) != 1:
        kinds = sorted({node.op_type for node in graph.node})
        raise BadModel(
            f"the graph has {len(found) or 'no'} nodes {_TREES}, and proofs need one; it consists "
            f"of {spell(kinds)}"
        )
    (trees,) = found
    encoded = _check_before(graph, trees)
    behind = [n.op_type for n in graph.node if n.op_type not in (*_BEHIND, *_IN_ORDER, *_ENCODERS)]
    if behind != [_TREES]:
        raise BadModel(
            f"the graph does {spell(sorted(set(behind) - {_TREES}))} beside its trees, through "
            "which nothing can be proven"
        )
    told = {a.name: onnx.helper.get_attribute_value(a) for a in trees.attribute}
    wanted = trees.input[0]
    if wanted in [place.name for place in graph.input]:
        session = None
    else:
        graph.output.extend([onnx.helper.make_empty_tensor_value_info(wanted)])
        session = onnxruntime.InferenceSession(
            graph_model.SerializeToString(), providers=["CPUExecutionProvider"]
        )

    def numbers(inputs: Any) -> NDArray[Any]:
        feed = model._feed(inputs)
        (cells,) = [feed[wanted]] if session is None else session.run([wanted], feed)
        return np.asarray(cells, dtype=np.float32)

    joined = _ensemble(told, model)
    by_set = joined.feature[joined.set_of >= 0]
    # Without a step before them, the trees' numbers are the columns.
    jumps = tuple(np.unique(by_set).tolist()) if session is None else None if len(by_set) else ()
    return Read(joined, numbers, None if encoded else jumps)


def _check_before(graph: Any, trees: Any) -> bool:
    """Do steps before the trees encode? BadModel where one may look at several columns."""
    made_by = {name: node for node in graph.node for name in node.output}
    waiting, encoded = [*trees.input], False
    while waiting:
        node = made_by.get(waiting.pop())
        if node is None:
            continue
        if node.op_type not in (*_IN_ORDER, *_ENCODERS):
            raise BadModel(
                f"the graph has a step {node.op_type} before its trees, through which nothing can "
                f"be proven; steps that can be read are {spell((*_IN_ORDER, *_ENCODERS))}"
            )
        encoded |= node.op_type in _ENCODERS or not _keeps_order(node)
        waiting += node.input
    return encoded


def _keeps_order(node: Any) -> bool:
    """Does a step never turn two numbers around? Not if it replaces one, or has few for many."""
    import onnx

    told = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Imputer":
        return bool(np.isnan(told.get("replaced_value_float", 0.0)))
    if node.op_type == "Cast":
        kind = onnx.TensorProto
        return told["to"] in (kind.FLOAT, kind.DOUBLE, kind.INT32, kind.INT64)
    return True


def _ensemble(told: dict[str, Any], model: OnnxModel) -> Ensemble:
    labels = [*told.get("classlabels_int64s", ()), *told.get("classlabels_strings", ())]
    labels = [label.decode() if isinstance(label, bytes) else label for label in labels]
    after = told.get("post_transform", b"NONE").decode()
    if len(labels) != 2 or after not in ("NONE", "LOGISTIC") or "nodes_values" not in told:
        raise BadModel(
            f"the graph's trees decide between {len(labels)} classes with {after} after them; "
            "proofs are possible for two classes, as float32 shares or with LOGISTIC"
        )
    favorable = model.answers.decision.favored(labels)
    assert isinstance(favorable, int)
    sign = 1.0 if favorable == 1 else -1.0
    weights = np.array(told["class_weights"], dtype=np.float32).astype(np.float64)
    classes = np.array(told["class_ids"])
    base = np.array(told.get("base_values", ()), dtype=np.float32).astype(np.float64)
    if len(set(classes.tolist())) == 1 and len(base) < 2:
        # One number a leaf, of the second class: above 0.5 where none is negative, else above 0.
        shift = 0.5 if (weights >= 0).all() else 0.0
        start = float(base.sum()) - shift
    else:
        weights = np.where(classes == 1, weights, -weights)
        start = float(base[1] - base[0]) if len(base) == 2 else 0.0
    link = "share" if after == "NONE" else "logistic"
    scale = 2.0 if after == "NONE" and len(set(classes.tolist())) == 1 else 1.0
    keys = np.stack([told["nodes_treeids"], told["nodes_nodeids"]], axis=1)
    value_of: dict[tuple[int, int], float] = {}
    for tree, node, weight in zip(
        told["class_treeids"], told["class_nodeids"], weights, strict=True
    ):
        value_of[tree, node] = value_of.get((tree, node), 0.0) + float(weight)
    trees = [
        _tree(told, np.flatnonzero(keys[:, 0] == tree), value_of, sign * scale)
        for tree in dict.fromkeys(keys[:, 0].tolist())
    ]
    return join_trees(
        trees,
        base=sign * scale * start,
        link=link,  # type: ignore[arg-type]
        unit=SINGLE,
        kind="ONNX tree ensemble",
    )


def _tree(
    told: dict[str, Any],
    here: NDArray[np.intp],
    value_of: dict[tuple[int, int], float],
    scale: float,
) -> Tree:
    ids = np.array(told["nodes_nodeids"])[here]
    tree = int(told["nodes_treeids"][here[0]])
    place = np.zeros(int(ids.max()) + 1, dtype=np.int64)
    place[ids] = np.arange(len(ids))
    modes = np.array([told["nodes_modes"][k].decode() for k in here])
    known = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_EQ", *_LARGER)
    if not np.isin(modes, known).all():
        odd = spell(sorted(set(modes.tolist()) - set(known)))
        raise BadModel(
            f"the graph's trees compare in a way that limi cannot read ({odd}), so nothing can be "
            "proven about it"
        )
    leaf, larger = modes == "LEAF", np.isin(modes, _LARGER)
    true, false = (place[np.array(told[f"nodes_{n}nodeids"])[here]] for n in ("true", "false"))
    numbers = np.array(told["nodes_values"], dtype=np.float32)[here].astype(np.float64)
    tracks = np.array(told.get("nodes_missing_value_tracks_true", ()), dtype=bool)
    tracks = tracks[here] if len(tracks) else np.zeros(len(here), dtype=bool)
    sets = {}
    for node in np.flatnonzero(modes == "BRANCH_EQ"):
        number = numbers[node]
        if number < 0 or number % 1 or number > 1e6:
            raise BadModel("the graph's trees use == on something that is not a category")
        goes = np.zeros(int(number) + 1, dtype=bool)
        goes[-1] = True
        sets[int(node)] = Categories(goes, exact=True)
    return Tree(
        feature=np.where(leaf, -1, np.array(told["nodes_featureids"])[here]),
        threshold=numbers,
        left=np.where(larger, false, true),
        right=np.where(larger, true, false),
        value=[scale * value_of.get((tree, int(node)), 0.0) for node in ids],
        missing_left=np.where(larger, ~tracks, tracks),
        strict=np.isin(modes, ("BRANCH_LT", "BRANCH_GTE")),
        categories=sets,
    )
