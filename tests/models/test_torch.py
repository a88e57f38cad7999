"""PyTorch modules: read in eval mode, left as they were, opened only where harmless."""

import json
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from limi import models
from limi.errors import BadModel, InvalidInput
from tests.models.kinds import forward, network
from tests.models.people import bound, numbers, people, scored

MATRIX = numbers().to_numpy(float)


def export(module, path, **given):
    dynamic = ({0: torch.export.Dim("n")},)
    program = torch.export.export(module.eval(), (torch.zeros(2, 3),), dynamic_shapes=dynamic)
    torch.export.save(program, path, **given)
    return path


def test_training_flags_are_as_they_were():
    module = network(torch.nn.Sigmoid())
    module.train()
    module[0].eval()
    flags = [part.training for part in module.modules()]
    models.wrap(module).score(MATRIX)
    assert [part.training for part in module.modules()] == flags


def test_flags_are_restored_where_the_module_fails():
    module = network().train()
    with pytest.raises(BadModel):
        bound(module, people()[["age", "hours"]].fillna(0))
    with pytest.raises(RuntimeError):
        models.wrap(module).score(np.zeros((2, 5)))
    assert all(part.training for part in module.modules())


def test_no_gradients_are_kept_and_the_module_stays_reachable():
    module = network(torch.nn.Sigmoid())
    model = models.wrap(module)
    model.score(MATRIX)
    assert model.module is module
    assert all(p.grad is None for p in module.parameters())


def test_batches_are_bounded_and_change_nothing():
    sizes = []

    class Watched(torch.nn.Module):
        def forward(self, rows):
            sizes.append(len(rows))
            assert rows.dtype == torch.float32
            return rows[:, 0] - 45

    model = replace(models.wrap(Watched()), batch=150)
    scores = model.score(MATRIX)
    assert sizes == [150, 150, 100]
    assert np.array_equal(scores > 0.5, MATRIX[:, 0] > 45)


def test_a_module_of_doubles_is_given_doubles():
    module = network(torch.nn.Sigmoid()).double()
    rows = MATRIX + np.random.default_rng(0).normal(size=MATRIX.shape)
    with torch.no_grad():
        expected = module.eval()(torch.from_numpy(rows)).numpy()[:, 0]
    np.testing.assert_allclose(models.wrap(module).score(rows), expected, rtol=1e-14)


def test_a_live_script_is_read_in_eval_mode_too():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.script(network(torch.nn.Sigmoid()).train())
    expected = forward(network(torch.nn.Sigmoid()))[:, 0]
    np.testing.assert_allclose(scored(script, numbers()), expected, atol=1e-7)
    assert script.training


def test_a_module_that_writes_into_its_input_changes_no_rows():
    class Writes(torch.nn.Module):
        def forward(self, rows):
            return rows.mul_(2)[:, 0]

    rows = MATRIX.astype(np.float32)
    models.wrap(Writes()).score(rows)
    assert np.array_equal(rows, MATRIX.astype(np.float32))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_file_runs_on_the_device(tmp_path):
    path = export(network(torch.nn.Sigmoid()), tmp_path / "a.pt2")
    here = models.load(f"torch:{path}", trust_pickle=True).score(MATRIX)
    there = models.load(f"torch:{path}?device=cuda", trust_pickle=True).score(MATRIX)
    np.testing.assert_allclose(there, here, atol=1e-5)
    live = network(torch.nn.Sigmoid()).cuda()
    assert models.wrap(live).device.startswith("cuda")
    np.testing.assert_allclose(models.wrap(live).score(MATRIX), here, atol=1e-5)


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ([torch.nn.Sigmoid()], "probability"),
        ([torch.nn.Sigmoid(), torch.nn.Flatten(0)], "probability"),
        ([torch.nn.Sequential(torch.nn.Sequential(torch.nn.Sigmoid()))], "probability"),
        ([torch.nn.Tanh()], None),
        ([], None),
    ],
)
def test_a_last_sigmoid_is_seen(last, kind, tmp_path):
    module = network(*last)
    assert models.wrap(module).outputs.kind == kind
    assert (
        models.load(f"torch:{export(module, tmp_path / 'a.pt2')}", trust_pickle=True).outputs.kind
        == kind
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(tmp_path / "a.pt")
    script = models.load(f"torch:{tmp_path / 'a.pt'}", trust_pickle=True)
    assert script.outputs.kind == kind


def test_an_output_that_could_be_either_must_be_declared():
    module = torch.nn.Sequential(network(), torch.nn.Hardsigmoid())
    with pytest.raises(InvalidInput, match=r'set model.output = "probability" or "logits"'):
        bound(module, numbers())
    module.output = "probability"
    np.testing.assert_allclose(scored(module, numbers()), forward(module)[:, 0], atol=1e-7)
    module.output = "odds"
    with pytest.raises(InvalidInput, match="output='odds' is unknown; use one of logits"):
        models.wrap(module)


def test_a_file_is_declared_behind_its_name(tmp_path):
    module = torch.nn.Sequential(network(), torch.nn.Hardsigmoid())
    path = export(module, tmp_path / "a.pt2")
    with pytest.raises(InvalidInput, match=r"\?output=probability"):
        bound(f"torch:{path}", numbers(), trust_pickle=True)
    scores = scored(f"torch:{path}?output=probability", numbers(), trust_pickle=True)
    np.testing.assert_allclose(scores, forward(module)[:, 0], atol=1e-6)
    with pytest.raises(InvalidInput, match="unknown option 'outputs'; did you mean 'output'"):
        models.load(f"torch:{path}?outputs=logits", trust_pickle=True)


def test_two_outputs_need_no_declaration():
    module = network(torch.nn.Linear(1, 2))
    favors = forward(module).argmax(axis=1) == 0
    assert np.array_equal(scored(module, numbers(), favorable="0", labels=(0, 1)) > 0.5, favors)


@pytest.mark.parametrize(
    ("module", "frame", "says"),
    [
        (network(torch.nn.Linear(1, 3)), numbers(), "3 outputs per row"),
        (network(), numbers()[["age", "grade"]], "needs 3 columns, but the table has 2"),
        (
            torch.nn.Linear(2, 1),
            people()[["age", "sex"]],
            "takes only numbers, but these columns hold text: sex",
        ),
        (torch.nn.LSTM(3, 2), numbers(), "returned tuple; it must return one tensor"),
        (torch.nn.Sequential(torch.nn.Linear(2, 1)), people()[["age", "hours"]], "NaN or infinite"),
    ],
)
def test_modules_that_do_not_fit(module, frame, says):
    with pytest.raises(BadModel) as caught:
        bound(module, frame)
    assert says in str(caught.value)


def test_a_program_for_one_size_of_batch_says_so(tmp_path):
    program = torch.export.export(network().eval(), (torch.zeros(2, 3),))
    torch.export.save(program, tmp_path / "a.pt2")
    with pytest.raises(
        BadModel, match=r"raised AssertionError: Guard failed: .*size\(\)\[0\] == 2"
    ):
        bound(f"torch:{tmp_path / 'a.pt2'}", numbers(), trust_pickle=True)


def test_the_width_of_an_exported_program_is_known(tmp_path):
    assert (
        models.load(f"torch:{export(network(), tmp_path / 'a.pt2')}", trust_pickle=True).n_columns
        == 3
    )


def test_the_device_is_a_choice(tmp_path):
    export(network(torch.nn.Sigmoid()), tmp_path / "a.pt2")
    assert models.load(f"torch:{tmp_path / 'a.pt2'}?device=cpu", trust_pickle=True).device == "cpu"
    meta = models.load(f"torch:{tmp_path / 'a.pt2'}?device=meta", trust_pickle=True)
    assert {str(p.device) for p in meta.module.parameters()} == {meta.device} == {"meta"}


# -- files that could run code ------------------------------------------------------------


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def rewritten(path: Path, records: dict[str, bytes]) -> Path:
    """The archive with some records replaced or added."""
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(kept)).partition("/")[0]
    kept.update({f"{root}/{name}": data for name, data in records.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in kept.items():
            archive.writestr(name, data)
    return path


def program_of(path: Path) -> dict:
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        return json.loads(archive.read(name))


def test_a_pickled_module_is_not_opened(tmp_path):
    torch.save([Bomb(tmp_path / "owned")], tmp_path / "a.pt")
    with pytest.raises(BadModel, match="holds pickled objects"):
        models.load(f"torch:{tmp_path / 'a.pt'}", trust_pickle=True)
    assert not (tmp_path / "owned").exists()


def test_a_rewritten_archive_that_says_nothing_new_still_opens(tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    rewritten(path, {"models/model.json": json.dumps(program_of(path)).encode()})
    assert models.load(f"torch:{path}", trust_pickle=True).n_columns == 3


class Wide(torch.nn.Module):
    """Layers and functions as people use them for tables."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 4)
        self.norm = torch.nn.BatchNorm1d(7)
        self.attend = torch.nn.MultiheadAttention(7, 1, batch_first=True)
        self.layers = torch.nn.Sequential(
            *(torch.nn.LayerNorm(7), torch.nn.Linear(7, 8), torch.nn.GELU(approximate="tanh")),
            *(torch.nn.Linear(8, 8), torch.nn.SELU(), torch.nn.Dropout(0.2), torch.nn.SiLU()),
        )
        self.register_buffer("weights", torch.ones(2, 8))

    def forward(self, rows):
        embedded = self.embed(rows[:, 0].clamp(0, 99).long())
        joined = self.norm(torch.cat([rows / rows.abs().max(), embedded], dim=1))
        seen, _ = self.attend(joined[:, None], joined[:, None], joined[:, None])
        hidden = self.layers(joined + seen.squeeze(1))
        masked = hidden.masked_fill(hidden > 1e6, -torch.inf).clamp_(min=-1e6)
        return torch.einsum("bi,oi->bo", masked, self.weights).softmax(dim=-1)


@pytest.mark.parametrize("decomposed", [False, True])
def test_layers_that_people_use_open(decomposed, tmp_path):
    torch_rng = torch.Generator().manual_seed(0)
    module = Wide().eval()
    with torch.no_grad():
        for tensor in module.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=torch_rng) / 4)
    dynamic = ({0: torch.export.Dim("n")},)
    program = torch.export.export(module, (torch.zeros(2, 3),), dynamic_shapes=dynamic)
    if decomposed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of torch about itself
            program = program.run_decompositions()
    torch.export.save(program, tmp_path / "a.pt2")
    with torch.no_grad():
        expected = module(torch.from_numpy(MATRIX.astype(np.float32))).numpy()[:, 1]
    np.testing.assert_allclose(
        models.load(f"torch:{tmp_path / 'a.pt2'}", trust_pickle=True).score(MATRIX),
        expected,
        atol=1e-6,
    )


class Writes(torch.nn.Module):
    """A script that writes a file while it is opened."""

    def __init__(self, path: str):
        super().__init__()
        self.path = path

    @torch.jit.export
    def __getstate__(self):
        return (self.path, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]):
        self.path, self.training = state
        torch.save(torch.zeros(1), self.path)

    def forward(self, rows):
        return rows


def test_a_script_that_writes_files_is_not_opened(tmp_path):
    script(Writes(str(tmp_path / "owned"))).save(tmp_path / "a.pt")
    with pytest.raises(InvalidInput, match=r"was not opened: .*torch.onnx.export.*--trust-pickle"):
        models.load(f"torch:{tmp_path / 'a.pt'}")
    assert not (tmp_path / "owned").exists()
    # No look at the opened program could come in time: opening it is enough.
    models.load(f"torch:{tmp_path / 'a.pt'}", trust_pickle=True)
    assert (tmp_path / "owned").exists()


def script(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(module)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: b"[]",
        lambda text: b"{}",
        lambda text: b"[" * 100_000,
        lambda text: b"\xff" * 100,
        lambda text: text.replace(b'"outputs": [', b'"outputs": [], "more": [', 1),
        lambda text: text.replace(b'"user_outputs"', b'"x"').replace(b'"sizes"', b'"size"'),
        lambda text: text.replace(b'"in_spec": "[1', b'"in_spec": "['),
        lambda text: text.replace(b'"inputs"', b'"nothing"'),
        lambda text: text.replace(b'"children_spec', b'"children'),
    ],
)
def test_a_damaged_program_is_one_sentence(damage, tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    damaged = damage(json.dumps(program_of(path)).encode())
    rewritten(path, {"models/model.json": damaged})
    with pytest.raises(BadModel, match=r"cannot be read as|holds pickled objects"):
        models.load(f"torch:{path}", trust_pickle=True)


def test_archives_cut_anywhere_are_one_sentence(tmp_path):
    whole = export(network(), tmp_path / "a.pt2").read_bytes()
    for end in range(0, len(whole), len(whole) // 40):
        (tmp_path / "b.pt2").write_bytes(whole[:end])
        with pytest.raises(BadModel, match="cannot be read as"):
            models.load(f"torch:{tmp_path / 'b.pt2'}", trust_pickle=True)


def test_a_program_is_opened_only_where_its_author_is_trusted(tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    with pytest.raises(InvalidInput, match=r"was not opened: it is a program.*--trust-pickle"):
        models.load(f"torch:{path}")
    assert models.load(f"torch:{path}", trust_pickle=True).n_columns == 3


@pytest.mark.parametrize("device", ["banana", "", "cuda:999", "cpu:x", "privateuseone"])
def test_a_device_that_is_none_is_said(device, tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    with pytest.raises(InvalidInput, match=r"the device .* cannot be used"):
        models.load(f"torch:{path}?device={device}", trust_pickle=True)


def test_other_files_are_no_programs(tmp_path):
    (tmp_path / "a.pt2").write_text("hello")
    with pytest.raises(BadModel, match=r"cannot be read as a torch.export or TorchScript program"):
        models.load(f"torch:{tmp_path / 'a.pt2'}", trust_pickle=True)
