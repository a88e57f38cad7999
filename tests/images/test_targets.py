"""Targets as files and objects: torch, ONNX, Python; programs are not run unasked."""

import os
import signal
import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from limi.errors import BadModel, CorruptStore, InvalidInput
from limi.images import attributes, eigenfaces, scorer_files, targets
from limi.images._base import ask
from limi.images.networks import Recipe, fit_scorer
from limi.images.targets import as_scorer, load_scorer
from limi.models import trial
from tests.images.made import draw, pictures

SHAPE = (16, 16, 3)


@pytest.fixture(scope="module")
def images():
    return draw(40, np.random.default_rng(0))[0]


class Net(torch.nn.Module):
    """The mean light of the lower half, as a logit."""

    def forward(self, light):
        return (light[:, :, 8:].mean((1, 2, 3)) - 0.45)[:, None] * 20


def expected(images):
    return 1 / (1 + np.exp(-20 * (images[:, 8:].mean(axis=(1, 2, 3)) / 255 - 0.45)))


def test_a_module_gets_light_from_0_to_1_and_its_logits_are_read(images):
    scorer = as_scorer(Net(), "target", SHAPE)
    assert np.allclose(ask(scorer, images, "target"), expected(images), atol=1e-4)
    tensors = torch.from_numpy(images)
    assert np.allclose(ask(scorer, tensors, "target"), expected(images), atol=1e-4)


def test_a_program_is_opened_only_where_it_is_trusted(images, tmp_path):
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(
        Net(), (torch.zeros(4, 3, 16, 16),), dynamic_shapes={"light": {0: batch}}
    )
    torch.export.save(program, tmp_path / "net.pt2")
    place = f"torch:{tmp_path / 'net.pt2'}"
    with pytest.raises(InvalidInput, match="trust"):
        load_scorer(place, "target", SHAPE)
    scorer = load_scorer(place, "target", SHAPE, trust_pickle=True)
    assert np.allclose(scorer(images), expected(images), atol=1e-4)
    archive = str(tmp_path / "net.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(Net(), torch.zeros(4, 3, 16, 16)).save(archive)
    with pytest.raises(InvalidInput, match="trust"):
        load_scorer(f"torch:{archive}", "target", SHAPE)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_graph_is_fed_in_the_layout_that_it_takes(images, tmp_path, layout):
    shape = ["n", 3, 16, 16] if layout == "nchw" else ["n", 16, 16, 3]
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=0),
        helper.make_node("Sub", ["m", "half"], ["c"]),
        helper.make_node("Mul", ["c", "slope"], ["y"]),
    ]
    held = [
        helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3]),
        helper.make_tensor("half", TensorProto.FLOAT, [1], [0.45]),
        helper.make_tensor("slope", TensorProto.FLOAT, [1], [30.0]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        held,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "net.onnx")
    scorer = load_scorer(f"onnx:{tmp_path / 'net.onnx'}", "target", SHAPE)
    logit = 30 * (images.mean(axis=(1, 2, 3)) / 255 - 0.45)
    assert np.allclose(ask(scorer, images, "target"), 1 / (1 + np.exp(-logit)), atol=1e-4)


def test_a_graph_of_a_table_is_refused(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "table.onnx")
    with pytest.raises(BadModel, match="does not take images"):
        load_scorer(f"onnx:{tmp_path / 'table.onnx'}", "target", SHAPE)


def test_a_function_gets_images_that_it_cannot_change(images, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def score(images):\n    images[:] = 0\n    return images.mean(axis=(1, 2, 3)) / 255\n"
        "def fair(images):\n    return images.mean(axis=(1, 2, 3)) / 255\n"
    )
    fair = load_scorer(f"python:{tmp_path / 'mine.py'}:fair", "target", SHAPE)
    assert ask(fair, images, "target").shape == (40,)
    rude = load_scorer(f"python:{tmp_path / 'mine.py'}:score", "target", SHAPE)
    with pytest.raises(BadModel, match="read-only"):
        ask(rude, images, "target")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("pickle:model.pkl", "not of the form KIND:PLACE"),
        ("tourch:net.pt2", "did you mean 'torch'"),
        ("torch:nowhere.pt2", "there is no file"),
        ("torch:net.pt2?input=grey", "input='grey' is unknown"),
        (7, "the target is int"),
        (Net, "the class Net"),
    ],
)
def test_what_is_no_target_is_told(given, words):
    with pytest.raises(InvalidInput, match=words):
        as_scorer(given, "target", SHAPE)


def learned(architecture):
    people = pictures(200)
    held_out = np.arange(200) % 4 == 0
    fits = {
        "pixels": lambda: attributes.fit_pixels(
            eigenfaces.fit(people.images, np.random.default_rng(0))
        ),
        "edges": lambda: attributes.fit_edges,
    }
    recipe = Recipe(steps=8, batch=16)
    fit = fits.get(
        architecture,
        lambda: fit_scorer(architecture, np.random.default_rng(0), recipe=recipe, width=16),
    )()
    return people, attributes.learn(
        "gender", fit, architecture, people.images, people.labels, held_out, ["smile"]
    )


@pytest.mark.parametrize("architecture", ["pixels", "edges", "resnet18", "plain"])
def test_a_learned_scorer_comes_back_from_its_file(architecture, tmp_path):
    from limi.system import writing

    people, found = learned(architecture)
    if architecture in ("pixels", "edges"):
        assert found.accuracy > 0.75
    place = tmp_path / "scorer.npz"
    writing.write(place, scorer_files.content(found))
    again = load_scorer(f"scorer:{place}", "target", SHAPE)
    assert np.allclose(again(people.images), found.scorer(people.images), atol=1e-5)


def test_networks_are_drawn_and_trained_from_their_seed():
    state = torch.random.get_rng_state()
    _, one = learned("plain")
    _, other = learned("plain")
    images = pictures(200).images
    assert np.allclose(one.scorer(images), other.scorer(images), atol=1e-4)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_damaged_scorer_is_refused(tmp_path):
    from limi.generators._base import packed
    from limi.system import writing

    facts = {"of": "scorer", "name": "smile", "architecture": "pixels"}
    place = tmp_path / "bad.npz"
    writing.write(place, packed({"slope": np.full(3, np.nan)}, facts))
    with pytest.raises(CorruptStore, match="not a finite number"):
        load_scorer(f"scorer:{place}", "target", SHAPE)
    writing.write(place, packed({"slope": np.ones(3)}, {**facts, "architecture": "huge"}))
    with pytest.raises(CorruptStore, match="its architecture is 'huge'"):
        load_scorer(f"scorer:{place}", "target", SHAPE)


def test_a_graph_that_floods_the_memory_is_refused_before_it_enters(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_MODEL_GB", "0.5")
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [1 << 15, 1 << 16])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["flood"]),
        helper.make_node("ReduceMean", ["light"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("ReduceMax", ["flood"], ["most"], keepdims=0),
        helper.make_node("Add", ["mean", "most"], ["score"]),
    ]
    light = helper.make_tensor_value_info("light", TensorProto.FLOAT, ["n", 3, 16, 16])
    score = helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph(nodes, "flood", [light], [score], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "flood.onnx")
    with pytest.raises(BadModel, match=r"the target raised Fail: .*ConstantOfShape"):
        load_scorer(f"onnx:{tmp_path / 'flood.onnx'}", "target", SHAPE)


class Crash:
    """A file whose reader crashes, which is imported by the process that tries it."""

    uri, asked = "onnx:crash.onnx", "8 images"

    def run(self):
        os.kill(os.getpid(), signal.SIGSEGV)


def test_what_crashes_its_reader_is_one_sentence():
    with pytest.raises(BadModel, match=r"onnx:crash.onnx was not opened: .* crashed json .SIGSEGV"):
        trial.attempt(Crash(), "json")


@pytest.mark.parametrize(
    ("text", "tried"),
    [
        ("torch:net.pt2?device=cuda&input=signed", "torch:net.pt2?input=signed"),
        ("onnx:net.onnx?output=logits", "onnx:net.onnx?output=logits"),
        ("torch:net.pt2", "torch:net.pt2"),
    ],
)
def test_a_file_is_tried_on_the_cpu_before_it_is_opened(monkeypatch, text, tried):
    seen = []

    def refuse(attempted, library):
        seen.append((attempted.uri, attempted.shape))
        raise BadModel("refused")

    monkeypatch.setattr(targets.trial, "attempt", refuse)
    with pytest.raises(BadModel, match="refused"):
        load_scorer(text, "target", SHAPE)
    assert seen == [(tried, SHAPE)]


def test_a_threshold_is_the_best_of_the_grid_by_f1():
    scores = np.array([0.05, 0.12, 0.25, 0.36, 0.41, 0.62, 0.9])
    answers = np.array([False, False, False, True, True, True, True])

    def f1(edge):
        said = scores > edge
        return 2 * (said & answers).sum() / (said.sum() + answers.sum())

    found = attributes.best_threshold(scores, answers)
    assert f1(found) == max(map(f1, np.arange(1, 100) / 100)) == 1
    assert found == 0.25  # the lowest
    assert attributes.best_threshold(scores, np.ones(7, dtype=bool)) <= 0.05


@pytest.mark.parametrize("architecture", ["pixels", "plain"])
def test_a_moved_scorer_says_yes_above_its_threshold(architecture):
    people, found = learned(architecture)
    before = np.asarray(found.scorer(people.images))
    edge = float(np.quantile(before, 0.7))
    after = attributes.moved(found.scorer, float(np.log(edge / (1 - edge))))(people.images)
    apart = np.abs(before - edge) > 1e-3
    assert np.array_equal((after > 0.5)[apart], (before > edge)[apart])
