"""Benchmark targets: what they answer, how they are kept, and what is refused."""

from __future__ import annotations

import json
import logging
import math
import sys

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

import limi.data
from lab import models as benchmark
from limi.errors import InvalidInput, MissingDependency
from limi.models import _forests
from limi.models.target import bind
from limi.table.frames import Codec
from limi.testing.models import check

KINDS = ["dnn", "rf", "svm"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The cache folder with a model of every kind for credit, and the models as trained."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMI_CACHE", str(folder))
        return folder, {kind: benchmark.train("credit", kind) for kind in KINDS}


@pytest.fixture
def models(trained, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(trained[0]))
    return trained[1]


@pytest.fixture(scope="module")
def credit():
    return benchmark._split(limi.data.load("credit"))


@pytest.fixture(scope="module")
def rows(credit):
    """More rows than a chunk, most of them new to the models."""
    rng = np.random.default_rng(1)
    drawn = credit[0][rng.integers(len(credit[0]), size=10_000)]
    return np.ascontiguousarray(rng.permuted(drawn, axis=0))


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(tmp_path))
    return tmp_path / "models"


# -- answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "floor"), [("dnn", 0.95), ("rf", 0.99), ("svm", 0.65)])
def test_accuracy_reaches_a_floor(models, credit, kind, floor):
    info = models[kind].info
    rows, labels = credit
    assert info.accuracy == ((models[kind].score(rows) > 0.5) == (labels == 1)).mean()
    assert info.accuracy >= floor
    assert info.rows == info.trained_rows == 600
    assert info.test_accuracy is None
    assert f"benchmark {kind} on credit, seed 0" in models[kind].notes[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_the_contract_of_models(models, kind):
    known = limi.data.load("credit")
    features = known.frame.drop(columns=known.target)
    codec = Codec.learn(features, known.schema.protect(["sex"]))
    check(bind(models[kind], codec), codec.encode(features)[:200])


def test_the_forest_scores_as_scikit_learn_does_to_the_last_bit(models, credit, rows):
    seed = int(np.random.default_rng(0).integers(2**31))
    forest = RandomForestClassifier(random_state=seed).fit(*credit)
    chances = forest.predict_proba(rows)
    scores = models["rf"].score(rows)
    tied = np.isclose(chances[:, 0], chances[:, 1], rtol=0, atol=1e-12)
    assert np.array_equal(scores[~tied], chances[~tied, 1])
    assert np.array_equal(scores > 0.5, forest.predict(rows) == 1)
    assert np.array_equal(models["rf"].scorer._shares(rows), chances)


@pytest.mark.parametrize("threads", [1, 10**6])
@pytest.mark.parametrize("sorts", [1, 10**6])
def test_small_batches_of_the_forest_score_as_large_ones(models, rows, monkeypatch, threads, sorts):
    whole = models["rf"].score(rows)
    monkeypatch.setattr(benchmark, "_WORTH_THREADS", threads)
    monkeypatch.setattr(_forests, "_WORTH_SORTING", sorts)
    for cores in (1, 3, 200):
        monkeypatch.setattr(benchmark, "n_cores", lambda cores=cores: cores)
        for n in (1, 2, 50, 1000):
            assert np.array_equal(models["rf"].score(rows[:n]), whole[:n])
    assert models["rf"].score(rows[:0]).shape == (0,)


def test_the_machine_decides_as_scikit_learn_does(models, credit, rows):
    margins = SVC().fit(*credit).decision_function(rows)
    scores = models["svm"].score(rows)
    assert np.allclose(scores, 1 / (1 + np.exp(-margins)), rtol=0, atol=1e-9)
    assert np.array_equal(scores > 0.5, margins > 0)


def test_the_network_scores_its_own_softmax(models, rows):
    model = models["dnn"]
    with torch.inference_mode():
        logits = model.module(torch.tensor(rows, dtype=torch.float32))
    expected = torch.softmax(logits.double(), dim=1)[:, 1].numpy()
    assert np.allclose(model.score(rows), expected, rtol=1e-4, atol=1e-5)


def test_the_network_has_the_shape_of_the_papers_and_gradients(models, rows):
    module = models["dnn"].module
    shapes = [tuple(p.shape) for p in module.parameters() if p.ndim == 2]
    assert shapes == [(64, 20), (32, 64), (16, 32), (8, 16), (4, 8), (2, 4)]
    inputs = torch.tensor(rows[:5], dtype=torch.float32, requires_grad=True)
    torch.nn.functional.cross_entropy(module(inputs), torch.zeros(5, dtype=torch.long)).backward()
    assert inputs.grad.abs().sum() > 0
    assert models["rf"].module is None


def test_first_weights_have_length_one_and_no_bias():
    layers = benchmark._initial(13, np.random.default_rng(0))
    assert [weight.shape for weight, _ in layers][:2] == [(64, 13), (32, 64)]
    for weight, bias in layers:
        assert np.allclose((weight**2).sum(axis=1), 1)
        assert not bias.any()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_do_not_depend_on_cores_or_layout(models, rows, monkeypatch, kind):
    scores = models[kind].score(rows)
    frozen = np.asfortranarray(rows)
    frozen.flags.writeable = False
    assert np.array_equal(models[kind].score(frozen), scores)
    monkeypatch.setattr(benchmark, "n_cores", lambda: 1)
    assert np.array_equal(models[kind].score(rows), scores)
    assert models[kind].score(rows[:0]).shape == (0,)


def test_torch_keeps_its_number_of_threads(models, rows):
    before = torch.get_num_threads()
    models["dnn"].score(rows)
    assert torch.get_num_threads() == before
    threads = benchmark._torch_threads(benchmark.os.getpid())
    assert threads.submit(torch.get_num_threads).result() == 1


# -- training -----------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(benchmark, "_SMALL", (40, 32))


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_decide(credit, short, kind):
    rows, labels = credit
    names = limi.data.load("credit").schema.names
    fit = [benchmark.fit(kind, rows, labels, columns=names, seed=s).score(rows) for s in (3, 3, 4)]
    assert np.array_equal(fit[0], fit[1])
    # All 600 rows go into an SVM, so that nothing is left to chance.
    assert np.array_equal(fit[0], fit[2]) == (kind == "svm")


def test_large_tables_are_sampled_for_the_machine(monkeypatch, credit):
    monkeypatch.setattr(benchmark, "_SVM_ROWS", 150)
    names = limi.data.load("credit").schema.names
    fits = [benchmark.fit("svm", *credit, columns=names, seed=seed) for seed in (0, 1)]
    assert [model.info.trained_rows for model in fits] == [150, 150]
    assert [model.info.rows for model in fits] == [600, 600]
    scores = [model.score(credit[0]) for model in fits]
    assert not np.array_equal(*scores)


@pytest.mark.parametrize("kind", KINDS)
def test_progress_runs_from_nothing_to_all(credit, short, kind):
    steps = []
    benchmark.fit(
        kind, *credit, columns=["x"] * 20, on_step=lambda done, words: steps.append((done, words))
    )
    fractions = [done for done, _ in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert all(words for _, words in steps)


@pytest.mark.parametrize(
    ("schedule", "steps", "batch", "rates"),
    [
        (benchmark.Schedule(), 40, 32, [0.0, 0.009, 0.005]),  # it rises for a tenth, then falls
        (benchmark.Schedule(length=0.5), 20, 32, [0.0, 0.009, 0.005]),
        (benchmark.Schedule(epochs=3), 12, 128, [0.001, 0.001, 0.001]),
    ],
)
def test_a_schedule_says_how_many_steps_at_which_rate(short, schedule, steps, batch, rates):
    course = benchmark._Course.of(schedule, 600, 600)
    assert (course.steps, course.batch) == (steps, batch)
    assert [course.rate(done) for done in (0.0, 0.1, 0.5)] == pytest.approx(rates)


def test_a_network_is_trained_for_as_many_steps_as_its_schedule_says(credit, short):
    for schedule, words in (
        (benchmark.Schedule(epochs=2), "trained a DNN in 8 steps"),
        (benchmark.Schedule(length=0.25), "trained a DNN in 10 steps"),
        (None, "trained a DNN in 40 steps"),
    ):
        said = []
        benchmark.fit(
            "dnn",
            *credit,
            columns=["x"] * 20,
            schedule=schedule,
            on_step=lambda done, words, said=said: said.append(words),
        )
        assert said[-1] == words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"length": 0.0}, "length is 0.0; it must be a finite number above 0"),
        ({"length": float("nan")}, "length is nan"),
        ({"length": float("inf")}, "length is inf"),
        ({"length": math.inf}, "length is inf; it must be a finite number above 0"),
        ({"epochs": 0}, "epochs is 0; it must be a whole number, 1 or more"),
        ({"epochs": 2.5}, "epochs is 2.5; it must be a whole number, 1 or more"),
        ({"length": 0.5, "epochs": 3}, "give one of them"),
    ],
)
def test_a_schedule_of_nothing_and_one_that_says_two_things_are_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        benchmark.Schedule(**given)


def test_a_dead_network_is_started_again(monkeypatch, credit, caplog):
    alive = benchmark._initial
    dead = [(np.zeros_like(w), b) for w, b in alive(20, np.random.default_rng(0))]
    starts = [dead, dead]
    monkeypatch.setattr(
        benchmark, "_initial", lambda width, rng: starts.pop() if starts else alive(width, rng)
    )
    # From zeros every gradient but that of the last bias is zero, so training cannot help.
    monkeypatch.setattr(benchmark, "_SMALL", (200, 128))
    with caplog.at_level(logging.INFO, "lab.models"):
        model = benchmark.fit("dnn", *credit, columns=["x"] * 20)
    assert not starts
    assert caplog.text.count("every unit of a layer had died") >= 2
    assert 0 < (model.score(credit[0]) > 0.5).mean() < 1


def test_one_class_alone_cannot_be_fitted(credit):
    with pytest.raises(InvalidInput, match="both 0 and 1"):
        benchmark.fit("svm", credit[0], np.ones(600, dtype=np.int8), columns=["x"] * 20)


def test_census_is_tested_on_its_test_rows(monkeypatch, empty_cache):
    monkeypatch.setattr(benchmark, "_SVM_ROWS", 1_000)
    info = benchmark.train("census", "svm").info
    assert (info.rows, info.trained_rows) == (32_561, 1_000)
    assert info.test_accuracy is not None
    assert 0.76 < info.test_accuracy < 0.9
    assert "on test rows" in str(info)


# -- the cache ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_model_scores_the_same(models, rows, monkeypatch, kind):
    monkeypatch.setattr(benchmark, "fit", None)  # it must not be needed
    kept = benchmark.train("credit", kind)
    assert np.array_equal(kept.score(rows), models[kind].score(rows))
    assert kept.info == models[kind].info
    assert kept.columns == models[kind].columns


def test_what_is_kept_holds_no_code_and_says_how_it_came_about(trained):
    folder = trained[0] / "models"
    assert sorted(p.suffix for p in folder.iterdir()) == [".json"] * 3 + [".npz"] * 3
    for path in folder.glob("*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)
    about = json.loads((folder / "credit-dnn-0.json").read_text())
    assert (about["format"], about["seed"], about["kind"]) == (benchmark.FORMAT, 0, "dnn")
    assert len(about["data_sha256"]) == 64
    assert set(about["info"]["versions"]) == {"numpy", "torch"}
    assert about["info"]["accuracy"] >= 0.95


def _cut(folder):
    path = folder / "credit-svm-0.npz"
    path.write_bytes(path.read_bytes()[:-100])


def _flip(folder):
    path = folder / "credit-svm-0.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def _lose(folder):
    (folder / "credit-svm-0.npz").unlink()


def _scribble(folder):
    (folder / "credit-svm-0.json").write_text("{")


def _forget(folder):
    _edit(folder, "info", {})


def _edit(folder, name, value):
    path = folder / "credit-svm-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))


@pytest.mark.parametrize("damage", [_cut, _flip, _lose, _scribble, _forget])
def test_a_damaged_model_is_trained_anew(empty_cache, caplog, rows, damage):
    scores = benchmark.train("credit", "svm").score(rows)
    damage(empty_cache)
    assert np.array_equal(benchmark.train("credit", "svm").score(rows), scores)
    assert "cannot be read" in caplog.text
    caplog.clear()
    benchmark.train("credit", "svm")
    assert not caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [("format", 0), ("recipe", {"rows": 5}), ("data_sha256", "0" * 64), ("seed", 1)],
)
def test_a_model_made_otherwise_is_trained_anew(empty_cache, caplog, name, value):
    benchmark.train("credit", "svm")
    _edit(empty_cache, name, value)
    with caplog.at_level(logging.INFO, "lab.models"):
        benchmark.train("credit", "svm")
    assert f"made with a different {name}" in caplog.text
    assert json.loads((empty_cache / "credit-svm-0.json").read_text())[name] != value


def test_without_a_cache_nothing_is_written(empty_cache):
    benchmark.train("credit", "svm", cache=False)
    assert not empty_cache.exists()


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("LIMI_CACHE", str(blocked))
    assert benchmark.train("credit", "svm").info.accuracy > 0.6
    assert "is not kept" in caplog.text


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("LIMI_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert benchmark.cache_folder() == tmp_path / "limi" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert benchmark.cache_folder().parts[-3:] == (".cache", "limi", "models")


# -- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adult_dnn", "credit_dnm", "credit_svm_first", "credit"])
def test_a_name_that_stands_for_no_model_is_none(name):
    assert not hasattr(benchmark, name)


def test_a_name_stands_for_a_table_a_kind_and_a_seed(empty_cache):
    assert benchmark.credit_svm_7.info.seed == 7
    assert benchmark.credit_svm_7.info.table == "credit"


def test_unknown_tables_are_refused():
    with pytest.raises(InvalidInput, match="did you mean 'census'"):
        benchmark.train("cencus", "svm")


def test_a_network_without_torch_names_what_to_install(models, monkeypatch, credit):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"limi\[torch\]"):
        benchmark.train("credit", "dnn")
    with pytest.raises(MissingDependency, match=r"limi\[torch\]"):
        benchmark.fit("dnn", *credit, columns=["x"] * 20)
    assert benchmark.train("credit", "rf").info.kind == "rf"


@pytest.mark.parametrize("kind", ["rf", "svm"])
def test_a_schedule_is_refused_for_models_that_are_not_trained_in_steps(kind):
    rows, labels = np.eye(4, dtype=np.int64), np.array([0, 1, 0, 1], dtype=np.int8)
    with pytest.raises(InvalidInput, match="only a dnn is trained for a length or for epochs"):
        benchmark.fit(
            kind, rows, labels, columns=list("abcd"), schedule=benchmark.Schedule(epochs=3)
        )
