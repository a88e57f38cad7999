"""Which device a run takes, and that nothing of the answer depends on the way through tensors."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

import limi
from lab import models as benchmark
from limi import data, generators
from limi.audits import early_check, verify
from limi.cli._app import app
from limi.errors import BadModel, InvalidInput
from limi.generators._counter_rng import mix, normals, ranks
from limi.gpu import place as device
from limi.methods.limi import LIMI
from limi.models.target import Target
from limi.table.frames import Codec
from tests.networks import linear, target_of
from tests.toy import Rounding, schema_of

SCHEMA = schema_of((0, 6), (0, 6), (0, 3), (0, 1), protected=["x3"])
NO_GPU = not torch.cuda.is_available()


@pytest.fixture(scope="module")
def credit():
    return data.load("credit")


@pytest.fixture(scope="module")
def network(credit):
    """A benchmark network, trained for a moment."""
    rows = credit.frame[credit.schema.names].to_numpy(dtype=np.float64)
    labels = (credit.frame[credit.target] == credit.favorable).to_numpy().astype(np.int8)
    return benchmark.fit("dnn", rows, labels, columns=credit.schema.names, table="rows")


@pytest.fixture(scope="module")
def transport(credit):
    rows = Codec.learn(credit.frame, credit.schema).encode(credit.frame)
    module = generators.get("transport")
    few = module.Settings(steps=30)
    return module.fit(rows, credit.schema, np.random.default_rng(0), settings=few)


# -- counting ---------------------------------------------------------------------------


def test_the_bits_are_those_of_splitmix64():
    # The first three outputs of the public reference for the seed 1234567.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    step = 0x9E3779B97F4A7C15
    start = 1234567 * pow(step, -1, 2**64)
    places = [(start + i + 1) % 2**64 for i in range(3)]
    signed = np.array(places, dtype=np.uint64).view(np.int64)
    assert [int(v) % 2**64 for v in mix(signed.copy())] == known
    assert [int(v) % 2**64 for v in mix(torch.tensor(signed))] == known


@pytest.mark.parametrize("width", [1, 6, 7])
def test_normals_by_number_are_normal_and_depend_on_no_neighbour(width):
    drawn = normals(3, torch.arange(20_000), torch.empty(20_000, width))
    assert stats.kstest(drawn.numpy().ravel(), "norm").pvalue > 1e-3
    if width > 1:
        corr = np.corrcoef(drawn.numpy().T) - np.eye(width)
        assert np.abs(corr).max() < 0.04
    some = torch.tensor([17, 3, 19_999])
    assert torch.equal(normals(3, some, torch.empty(3, width)), drawn[some])
    other = normals(4, some, torch.empty(3, width))
    assert not torch.equal(other, drawn[some])


def test_ranks_are_a_random_order():
    order = ranks(5, np.arange(10_000))
    assert len(set(order.tolist())) == 10_000
    assert abs(stats.spearmanr(order, np.arange(10_000)).statistic) < 0.04
    np.testing.assert_array_equal(order, ranks(5, torch.arange(10_000)).numpy())


@pytest.mark.parametrize("kind", ["ctgan", "transport"])
def test_latents_by_number_follow_the_generator(kind, credit):
    rows = Codec.learn(credit.frame, credit.schema).encode(credit.frame)
    module = generators.get(kind)
    few = {"transport": {"steps": 2}}.get(kind, {"epochs": 1, "min_steps": 2})
    made = module.fit(
        rows, credit.schema, np.random.default_rng(0), settings=module.Settings(**few)
    )
    by_number = made.latents_at(1, torch.arange(4_000)).numpy()
    drawn = made.sample_latents(4_000, np.random.default_rng(1))
    assert by_number.shape == drawn.shape
    assert by_number.dtype == drawn.dtype
    np.testing.assert_allclose(by_number.mean(0), drawn.mean(0), atol=0.09)
    np.testing.assert_allclose(by_number.std(0), drawn.std(0), atol=0.09)
    if kind == "ctgan":
        conditions = by_number[:, made.settings.noise :]
        assert set(np.unique(conditions)) == {0.0, 1.0}
        assert (conditions.sum(1) == 1).all()


# -- which device -----------------------------------------------------------------------


def test_words_that_are_no_device():
    with pytest.raises(InvalidInput, match="the device is 'gpu'"):
        device.choose_device("gpu", None, "ctgan")


def test_cpu_is_always_there(network):
    assert device.choose_device("cpu", None, None) == "cpu"
    assert device.choose_device("auto", None, "trees") == "cpu"
    assert device.choose_device("auto", None, None) == "cpu"
    assert device.choose_device("auto", target_of(SCHEMA, _Sum()), "trees") == "cpu"


class _Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, rows):
        return self.layer(rows)


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
def test_auto_without_a_gpu_is_the_cpu_and_cuda_is_refused():
    target = target_of(SCHEMA, _Sum())
    assert device.choose_device("auto", target, "ctgan") == "cpu"
    with pytest.raises(InvalidInput, match="cannot be used"):
        device.choose_device("cuda", target, "ctgan")


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize(
    "words",
    [
        [
            "test",
            "credit",
            "--model",
            "MODEL",
            "--protected",
            "sex",
        ],
        [
            "compare",
            "credit",
            "--model",
            "MODEL",
            "--protected",
            "sex",
        ],
        ["fit", "credit", "--generator", "ctgan", "--out", "never.generator"],
    ],
    ids=lambda words: words[0],
)
def test_asking_for_a_gpu_that_is_not_there_is_one_sentence(words, monkeypatch, tmp_path):
    (tmp_path / "model.py").write_text("import torch\nnet = torch.nn.Linear(20, 2)\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    words = [f"python:{tmp_path / 'model.py'}:net" if word == "MODEL" else word for word in words]
    from limi.cli import main

    monkeypatch.setattr("sys.argv", ["limi", *words, "--device", "cuda"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert not list((tmp_path / "empty").iterdir())


def test_auto_is_the_gpu_where_both_can_use_it(monkeypatch):
    """No GPU is needed to choose one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    target = target_of(SCHEMA, _Sum())
    assert device.choose_device("auto", target, "ctgan") == "cuda"
    assert device.choose_device("auto", None, "transport") == "cuda"
    assert device.choose_device("auto", target, "trees") == "cpu"
    assert device.choose_device("auto", target, Rounding(SCHEMA)) == "cpu"


def test_a_saved_or_ready_generator_says_itself_where_it_runs(transport, tmp_path, monkeypatch):
    generators.save(transport, tmp_path / "kept")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    target = target_of(SCHEMA, _Sum())
    assert device.choose_device("auto", target, tmp_path / "kept") == "cuda"
    assert device.choose_device("auto", target, transport) == "cpu"


def test_a_device_that_nothing_can_use_is_refused(monkeypatch):
    monkeypatch.setattr(device, "device_of", torch.device)

    class Plain:
        takes, columns, n_columns = "matrix", None, 4

        def score(self, rows):
            return np.zeros(len(rows))

    target = Target(Plain(), target_of(SCHEMA, _Sum()).codec)
    with pytest.raises(InvalidInput, match="nothing here can run on it"):
        device.choose_device("cuda", target, "trees")
    assert device.choose_device("cuda", target, "ctgan") == "cuda"
    assert device.choose_device("cuda", target_of(SCHEMA, _Sum()), "trees") == "cuda"


def test_a_module_that_cannot_move_stays(monkeypatch):
    """torch's meta device takes any module and answers nothing."""
    module = linear((0.5, -0.5, 0.25, 1.0), -0.375)
    target = target_of(SCHEMA, module)
    with pytest.raises(BadModel, match="cannot run on 'meta'"):
        device.place_target(target, "meta")
    assert next(module.parameters()).device.type == "cpu"
    monkeypatch.setattr(device, "choose_device", lambda *a: "meta")
    assert device.settle_device("auto", target, "ctgan") == ("cpu", target)
    with pytest.raises(BadModel):
        device.settle_device("cuda", target, "ctgan")


# -- an audit through tensors -----------------------------------------------------------


@pytest.fixture
def through_tensors(monkeypatch):
    """Audits that take torch's CPU for a device of its own."""
    monkeypatch.setattr(device, "settle_device", lambda wanted, target, given: ("cpu:0", target))


def audited(credit, network, transport, **more):
    return limi.audit(
        network,
        credit.frame,
        protected=["sex"],
        target=credit.target,
        schema=credit.schema,
        generator=transport,
        method=LIMI(n_latents=3_000, n_labelled=1_000),
        rate_rows=200,
        **more,
    )


def test_an_audit_through_tensors_finds_the_same(credit, network, transport, monkeypatch):
    plain = audited(credit, network, transport)
    monkeypatch.setattr(device, "settle_device", lambda wanted, target, given: ("cpu:0", target))
    there = audited(credit, network, transport)
    assert there.summary.findings == plain.summary.findings > 50
    assert there.summary.rows_checked == plain.summary.rows_checked
    assert there.summary.queries == plain.summary.queries
    assert there.findings.equals(plain.findings)
    assert there.rates == plain.rates
    assert there.manifest["device"] == "cpu:0"
    assert there.manifest["config_sha256"] != plain.manifest["config_sha256"]


def test_findings_that_were_checked_again_during_the_search_are_the_same(
    credit, network, transport, monkeypatch
):
    plain = audited(credit, network, transport)
    taken = []
    take = early_check.EarlyCheck.take

    def watched(self, start, most):
        told = take(self, start, most)
        taken.append(told is not None)
        return told

    monkeypatch.setattr(early_check.EarlyCheck, "take", watched)
    monkeypatch.setattr(early_check, "BLOCK", 32)
    monkeypatch.setattr(verify, "BLOCK", 32)
    monkeypatch.setattr(
        device, "settle_device", lambda wanted, target, given: ("cpu:0", replace(target))
    )
    there = audited(credit, network, transport)
    assert sum(taken) >= 1
    assert there.summary.findings == plain.summary.findings
    assert there.summary.queries == plain.summary.queries
    names = [name for name in plain.findings if "score" not in name]
    assert there.findings[names].equals(plain.findings[names])
    # Of a second check that begins afterwards, the same to the last digit.
    monkeypatch.setattr(early_check.EarlyCheck, "offer", lambda self, found: None)
    assert audited(credit, network, transport).findings.equals(there.findings)


def test_an_interrupted_run_through_tensors_is_repeated(
    credit, network, transport, through_tensors, tmp_path, monkeypatch
):
    whole = audited(credit, network, transport, out=tmp_path / "whole")
    together = device.join_on_device
    n_calls = 0

    def failing(target, generator):
        here = together(target, generator)

        def forward(matrix):
            nonlocal n_calls
            n_calls += 1
            if n_calls == 4:
                raise KeyboardInterrupt
            return here.forward(matrix)

        return replace(here, forward=forward)

    monkeypatch.setattr(device, "join_on_device", failing)
    cut = audited(credit, network, transport, out=tmp_path / "run", max_batch=700)
    assert cut.stop == "interrupted"
    again = audited(credit, network, transport, out=tmp_path / "run", max_batch=700, resume=True)
    assert again.stop == "exhausted"
    assert again.findings.equals(whole.findings)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["findings"] == whole.summary.findings


@pytest.mark.gpu
@pytest.mark.skipif(NO_GPU, reason="needs a GPU")
def test_a_gpu_finds_what_the_cpu_finds(credit, network):
    rows = Codec.learn(credit.frame, credit.schema).encode(credit.frame)
    module = generators.get("transport")
    made = module.fit(rows, credit.schema, np.random.default_rng(0), device="cuda")
    arrays, facts = made.state()
    plain = module.from_state(arrays, json.loads(json.dumps(facts)), made.schema)
    found = [
        audited(credit, network, generator, device=place).findings
        for generator, place in ((made, "cuda"), (plain, "cpu"))
    ]
    rows = [set(map(tuple, frame.iloc[:, : len(credit.schema)].to_numpy())) for frame in found]
    assert len(rows[0] ^ rows[1]) <= 0.01 * len(rows[1])


def test_the_option_is_there():
    for command in ("test", "compare", "fit"):
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
        assert "--device" in shown.output
