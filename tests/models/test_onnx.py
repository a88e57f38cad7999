"""ONNX graphs: inputs of every shape, outputs of every kind."""

import hashlib

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from onnx import TensorProto, helper
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import limi
from limi import models
from limi.audits.problem import prepare
from limi.errors import BadModel, InvalidInput, MissingDependency
from limi.models import trial
from tests.models.kinds import onnx_case, to_onnx
from tests.models.people import LABELS, bound, numbers, people, scored, spelled, truth

WORDS = {"favorable": "good", "labels": LABELS}


def graph_file(path, nodes, inputs, outputs, constants=()):
    """A graph written by hand."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return f"onnx:{path}"


def linear(path, width=3, columns=1, bias=-45.5, last=None):
    """Age minus 45 and a half, as the last layer of a network might give it."""
    weights = np.zeros((width, columns), np.float32)
    weights[0, -1] = 1
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["z"])]
    if last:
        nodes.append(helper.make_node(last, ["z"], ["y"]))
    shift = np.zeros(columns, np.float32)
    shift[-1] = bias
    return graph_file(
        path,
        nodes,
        [("x", TensorProto.FLOAT, [None, width])],
        [("y" if last else "z", TensorProto.FLOAT, [None, columns])],
        [("w", weights), ("b", shift)],
    )


OLDER = numbers().age > 45


@pytest.mark.parametrize("columns", [1, 2])
def test_logits_alone_decide(tmp_path, columns):
    scores = scored(linear(tmp_path / "a.onnx", columns=columns), numbers())
    assert np.array_equal(scores > 0.5, OLDER)


def test_probabilities_alone_must_be_declared(tmp_path):
    place = linear(tmp_path / "a.onnx", last="Sigmoid")
    with pytest.raises(InvalidInput, match="probabilities or logits"):
        bound(place, numbers())
    scores = scored(place + "?output=probability", numbers(), favorable=0)
    assert np.array_equal(scores > 0.5, ~OLDER)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("model", [Perceptron(), LinearSVC()], ids=["perceptron", "svc"])
def test_margins_beside_a_label(tmp_path, model, favorable):
    model.fit(numbers(), truth())
    scores = scored(_matrix(model, tmp_path), numbers(), favorable=favorable)
    assert np.array_equal(scores > 0.5, model.predict(numbers()) == favorable)


def _matrix(model, folder, **options):
    from skl2onnx import to_onnx as convert

    inputs = numbers().to_numpy(np.float32)
    said = {id(model): options} if options else None
    graph = convert(model, inputs[:1], options=said, target_opset=18)
    (folder / "m.onnx").write_bytes(graph.SerializeToString())
    return f"onnx:{folder / 'm.onnx'}"


def test_a_label_alone_decides(tmp_path):
    place = graph_file(
        tmp_path / "a.onnx",
        [
            helper.make_node("Greater", ["age", "limit"], ["older"]),
            helper.make_node("Cast", ["older"], ["label"], to=TensorProto.INT64),
        ],
        [("age", TensorProto.FLOAT, [None, 1]), ("grade", TensorProto.INT64, [None])],
        [("label", TensorProto.INT64, [None, 1])],
        [("limit", np.float32([45]))],
    )
    target = bound(place, numbers(), **WORDS)
    assert target.model.columns == ["age", "grade"]
    assert np.array_equal(target.score(target.codec.encode(numbers())), OLDER)
    assert "1 was read as 'good'" in target.notes[0]


@pytest.mark.parametrize("gap", [np.nan, None])
def test_a_missing_text_is_the_category_it_was_in_training(tmp_path, gap):
    frame = people()[["age", "city"]].astype({"city": object})
    frame.loc[frame.city.isna(), "city"] = gap
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, spelled())
    place = to_onnx(model, frame, tmp_path / "a.onnx")
    expected = model.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(scored(place, frame, **WORDS), expected, atol=1e-6)


def test_missing_text_can_be_spelled(tmp_path):
    frame = people()[["age", "city"]].assign(city=people().city.fillna(""))
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, spelled())
    place = to_onnx(model, frame, tmp_path / "a.onnx")
    gaps = people()[["age", "city"]]
    expected = model.predict_proba(frame)[:, 1]
    np.testing.assert_allclose(scored(place + "?missing=", gaps, **WORDS), expected, atol=1e-6)
    with pytest.raises(BadModel, match="raised"):
        scored(place, gaps, **WORDS)


def test_polars_is_fed_alike(tmp_path):
    case = onnx_case(tmp_path)
    frame = pl.from_pandas(case.frame)
    # A gap is None in polars and NaN in pandas, on which this model was trained.
    assert np.array_equal(
        scored(case.model + "?missing=nan", frame, **WORDS), scored(case.model, case.frame, **WORDS)
    )


def test_a_matrix_of_text(tmp_path):
    frame = people()[["sex", "job", "grade"]]
    encoder = OneHotEncoder().fit(frame.astype(str).to_numpy(object))
    model = make_pipeline(encoder, LogisticRegression()).fit(
        frame.astype(str).to_numpy(object), spelled()
    )
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType

    graph = convert_sklearn(
        model, initial_types=[("x", StringTensorType([None, 3]))], target_opset=18
    )
    (tmp_path / "a.onnx").write_bytes(graph.SerializeToString())
    expected = model.predict_proba(frame.astype(str).to_numpy(object))[:, 1]
    np.testing.assert_allclose(
        scored(f"onnx:{tmp_path / 'a.onnx'}", frame, **WORDS), expected, atol=1e-6
    )


def test_the_same_decisions_as_the_pipeline_it_was_made_from(tmp_path):
    case = onnx_case(tmp_path)
    assert np.array_equal(scored(case.model, case.frame, **WORDS) > 0.5, case.favors)
    less = scored(case.model, case.frame, favorable="bad", labels=LABELS)
    assert np.array_equal(less > 0.5, ~case.favors)


def identity(path, kind, shape, out=None, name="x"):
    out = kind if out is None else out
    node = helper.make_node("Cast", [name], ["y"], to=out)
    return graph_file(path, [node], [(name, kind, shape)], [("y", out, shape)])


def test_whole_numbers_cannot_be_missing(tmp_path):
    frame = people()[["hours", "age"]].round()
    place = graph_file(
        tmp_path / "a.onnx",
        [helper.make_node("Cast", ["hours"], ["y"], to=TensorProto.FLOAT)],
        [("hours", TensorProto.INT64, [None, 1]), ("age", TensorProto.INT64, [None, 1])],
        [("y", TensorProto.FLOAT, [None, 1])],
    )
    with pytest.raises(
        BadModel, match=r"'hours' has missing cells, but the graph takes tensor\(int64\)"
    ):
        bound(place, frame)


def test_graphs_that_do_not_fit(tmp_path):
    with pytest.raises(BadModel, match="needs 3 columns, but the table has 2"):
        bound(linear(tmp_path / "a.onnx"), numbers()[["age", "grade"]])
    with pytest.raises(BadModel, match="3 outputs per row"):
        bound(linear(tmp_path / "b.onnx", columns=3), numbers())
    with pytest.raises(BadModel, match=r"inputs are \['tensor\(uint8\)'\]; limi can pass"):
        models.load(identity(tmp_path / "c.onnx", TensorProto.UINT8, [None, 2]))
    grouped = graph_file(
        tmp_path / "d.onnx",
        [helper.make_node("Identity", ["num"], ["y"])],
        [("num", TensorProto.FLOAT, [None, 2]), ("cat", TensorProto.STRING, [None, 1])],
        [("y", TensorProto.FLOAT, [None, 2])],
    )
    with pytest.raises(BadModel, match=r"input 'num' takes several columns and does not say which"):
        models.load(grouped)
    strange = identity(tmp_path / "e.onnx", TensorProto.FLOAT, [None, 2], TensorProto.UINT8)
    with pytest.raises(BadModel, match="neither a label nor probabilities"):
        models.load(strange)
    with pytest.raises(BadModel, match="needs the columns hours, city, grade"):
        bound(onnx_case(tmp_path).model, people()[["age", "sex", "member"]], **WORDS)


def test_files_that_are_none(tmp_path):
    (tmp_path / "a.onnx").write_text("hello")
    with pytest.raises(BadModel, match="cannot be read as an ONNX model"):
        models.load(f"onnx:{tmp_path / 'a.onnx'}")
    with pytest.raises(InvalidInput, match="output='odds' is unknown"):
        models.load(linear(tmp_path / "b.onnx") + "?output=odds")


def test_three_classes_are_refused(tmp_path):
    model = LogisticRegression(max_iter=1000).fit(numbers(), people().grade)
    with pytest.raises(BadModel, match=r"the model answers 1, 2, 3, 4|instead of 1"):
        bound(_matrix(model, tmp_path), numbers(), favorable=1)


@pytest.mark.parametrize("zipmap", [True, False])
def test_several_of_many_labels(tmp_path, zipmap):
    model = LogisticRegression(max_iter=2000).fit(numbers(), people().grade.map("g{}".format))
    uri = _matrix(model, tmp_path, zipmap=zipmap)
    given = {"favorable": ("g1", "g3"), "labels": ("g1", "g2", "g3", "g4")}
    scores = scored(uri, numbers(), **given)
    shares = model.predict_proba(numbers())
    mine, other = shares[:, [0, 2]].max(axis=1), shares[:, [1, 3]].max(axis=1)
    np.testing.assert_allclose(scores, mine / (mine + other), rtol=0, atol=1e-4)
    assert len(set(scores.tolist())) > 10


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("order", [None, ("g4", "g2", "g1", "g3")])
def test_classes_of_a_graph_are_those_of_the_model_it_was_made_from(tmp_path, zipmap, order):
    model = LogisticRegression(max_iter=2000).fit(numbers(), people().grade.map("g{}".format))
    problem = prepare(
        _matrix(model, tmp_path, zipmap=zipmap),
        numbers().assign(g=people().grade.map("g{}".format)),
        protected="age",
        target="g",
        decision="class",
        order=order,
    )
    rule, answers = problem.target.rule, problem.target.score(problem.rows)
    assert rule.labels == (order or ("g1", "g2", "g3", "g4"))
    assert [rule.show(answer) for answer in answers] == model.predict(numbers()).tolist()
    best, second = np.sort(model.predict_proba(numbers()), axis=1)[:, [-1, -2]].T
    leads = np.minimum(best / (best + second) - 0.5, 0.499)
    np.testing.assert_allclose(answers - np.floor(answers), leads, rtol=0, atol=1e-4)


def test_numbers_of_a_graph_are_those_of_the_regressor_it_was_made_from(tmp_path):
    price = 3.0 * numbers().age + 50 * numbers().member + numbers().index % 7
    model = LinearRegression().fit(numbers(), price)
    uri = _matrix(model, tmp_path)
    table = numbers().assign(price=price)
    problem = prepare(uri, table, protected="age", target="price", decision="difference > 5")
    answers = problem.target.score(problem.rows)
    np.testing.assert_allclose(answers, model.predict(numbers()), rtol=1e-5)
    told = {
        name: limi.audit(
            given,
            table,
            protected={"age": [20, 60]},
            target="price",
            method="real",
            generator=None,
            rate_rows=0,
        )
        for name, given in {"graph": uri, "model": model}.items()
    }
    graph, live = told["graph"].summary, told["model"].summary
    assert (graph.kind, graph.decision) == ("number", live.decision)
    assert graph.findings == live.findings > 0


def test_a_frame_of_one_column(tmp_path):
    place = identity(tmp_path / "a.onnx", TensorProto.FLOAT, [None, 1], name="age")
    frame = pd.DataFrame({"age": [-1.0, 2.0], "other": [0, 1]})
    assert (scored(place, frame) > 0.5).tolist() == [False, True]


# -- weights in files of their own --------------------------------------------------------


def kept_apart(path, name="weights.bin", *, where="initializer"):
    """The linear graph with its weights in another file, named as given."""
    linear(path)
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    raw, tensor.raw_data = tensor.raw_data, b""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", name), ("offset", "0"), ("length", str(len(raw)))):
        tensor.external_data.add(key=key, value=value)
    if where == "attribute":  # of a node, in a branch that is a graph of its own
        node = helper.make_node("Constant", [], ["w"], value=tensor)
        branch = helper.make_graph([node], "branch", [], [])
        model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=branch))
        del model.graph.initializer[0]
    path.write_bytes(model.SerializeToString())
    return raw


def test_the_sum_of_a_model_is_of_its_weights_too(tmp_path, monkeypatch):
    monkeypatch.setenv(trial.SECONDS, "0")
    path = tmp_path / "a.onnx"
    raw = kept_apart(path)
    (tmp_path / "weights.bin").write_bytes(raw)
    np.testing.assert_array_equal(scored(f"onnx:{path}", numbers()) > 0.5, OLDER)
    assert models.files(f"onnx:{path}") == [path, tmp_path / "weights.bin"]

    def told():
        frame = numbers().assign(ok=truth())
        return prepare(f"onnx:{path}", frame, protected=["member"], target="ok").model_sha256

    before = told()
    assert told() == before
    (tmp_path / "weights.bin").write_bytes(np.float32([2, 0, 0]).tobytes())
    assert told() != before
    linear(path)
    assert told() == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("where", ["initializer", "attribute"])
@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../weights.bin", "a/../../weights.bin", "..", "", "a\0b"]
)
def test_weights_outside_the_folder_are_not_read(tmp_path, name, where):
    (tmp_path / "model").mkdir()
    kept_apart(tmp_path / "model" / "a.onnx", name, where=where)
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    with pytest.raises(BadModel, match=r"reads weights from .*, outside its folder"):
        models.load(f"onnx:{tmp_path / 'model' / 'a.onnx'}")


def test_weights_that_are_not_there_are_named(tmp_path):
    kept_apart(tmp_path / "a.onnx")
    with pytest.raises(
        BadModel, match=r"keeps weights in 'weights.bin', which is not in the same folder"
    ):
        models.load(f"onnx:{tmp_path / 'a.onnx'}")


def test_graphs_cut_anywhere_are_one_sentence(tmp_path):
    path = tmp_path / "a.onnx"
    (tmp_path / "weights.bin").write_bytes(kept_apart(path))
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(
            BadModel, match=r"cannot be read as an ONNX model|not in the same folder"
        ):
            models.load(f"onnx:{path}")


@pytest.mark.parametrize("version", ["1.19.2", "1.23.0", "0.9", "odd"])
def test_an_older_onnxruntime_is_not_used(tmp_path, monkeypatch, version):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    with pytest.raises(MissingDependency, match=r"needs onnxruntime 1.24 or later"):
        models.load(linear(tmp_path / "a.onnx"))
