"""PyTorch modules: read in eval mode, left as they were, opened only where harmless."""

import io
import json
import pickle
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
    here = models.load(f"torch:{path}").score(MATRIX)
    there = models.load(f"torch:{path}?device=cuda").score(MATRIX)
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
    assert models.load(f"torch:{export(module, tmp_path / 'a.pt2')}").outputs.kind == kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(tmp_path / "a.pt")
    assert models.load(f"torch:{tmp_path / 'a.pt'}").outputs.kind == kind


def test_an_output_that_could_be_either_must_be_declared():
    module = torch.nn.Sequential(network(), torch.nn.Hardsigmoid())
    with pytest.raises(InvalidInput, match=r'set model.output = "probability" or "logits"'):
        bound(module, numbers())
    module.output = "probability"
    np.testing.assert_allclose(scored(module, numbers()), forward(module)[:, 0], atol=1e-7)
    module.output = "odds"
    with pytest.raises(InvalidInput, match="output='odds' is unknown; it is one of logits"):
        models.wrap(module)


def test_a_file_is_declared_behind_its_name(tmp_path):
    module = torch.nn.Sequential(network(), torch.nn.Hardsigmoid())
    path = export(module, tmp_path / "a.pt2")
    with pytest.raises(InvalidInput, match=r"\?output=probability"):
        bound(f"torch:{path}", numbers())
    scores = scored(f"torch:{path}?output=probability", numbers())
    np.testing.assert_allclose(scores, forward(module)[:, 0], atol=1e-6)
    with pytest.raises(InvalidInput, match="unknown option 'outputs'; did you mean 'output'"):
        models.load(f"torch:{path}?outputs=logits")


def test_two_outputs_need_no_declaration():
    module = network(torch.nn.Linear(1, 2))
    favors = forward(module).argmax(axis=1) == 0
    assert np.array_equal(scored(module, numbers(), favorable="0", labels=(0, 1)) > 0.5, favors)


@pytest.mark.parametrize(
    ("module", "frame", "says"),
    [
        (network(torch.nn.Linear(1, 3)), numbers(), "3 outputs a row"),
        (network(), numbers()[["age", "grade"]], "wants 3 columns and the table has 2"),
        (
            torch.nn.Linear(2, 1),
            people()[["age", "sex"]],
            "takes numbers only, but these columns hold text: sex",
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
        bound(f"torch:{tmp_path / 'a.pt2'}", numbers())


def test_the_width_of_an_exported_program_is_known(tmp_path):
    assert models.load(f"torch:{export(network(), tmp_path / 'a.pt2')}").n_columns == 3


def test_the_device_is_a_choice(tmp_path):
    export(network(torch.nn.Sigmoid()), tmp_path / "a.pt2")
    assert models.load(f"torch:{tmp_path / 'a.pt2'}?device=cpu").device == "cpu"
    meta = models.load(f"torch:{tmp_path / 'a.pt2'}?device=meta")
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
    with pytest.raises(BadModel, match="holds no program but pickled objects"):
        models.load(f"torch:{tmp_path / 'a.pt'}")
    assert not (tmp_path / "owned").exists()


def test_a_pickle_among_the_sample_inputs_is_not_opened(tmp_path):
    buffer = io.BytesIO()
    torch.save((Bomb(tmp_path / "owned"),), buffer)
    path = export(network(), tmp_path / "a.pt2")
    rewritten(path, {"data/sample_inputs/model.pt": buffer.getvalue()})
    with pytest.raises(BadModel, match="cannot be read as a torch program"):
        models.load(f"torch:{path}")
    assert not (tmp_path / "owned").exists()


def test_a_pickled_constant_is_not_opened(tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    config = {
        "config": {
            "x": {
                "path_name": "opaque_obj_0",
                "is_param": False,
                "use_pickle": True,
                "tensor_meta": None,
            }
        }
    }
    rewritten(path, {"data/constants/model_constants_config.json": json.dumps(config).encode()})
    with pytest.raises(BadModel, match="it holds pickled tensors"):
        models.load(f"torch:{path}")
    rewritten(path, {"data/constants/opaque_obj_0": pickle.dumps(Bomb(tmp_path / "owned"))})
    with pytest.raises(BadModel, match="was not opened: it holds"):
        models.load(f"torch:{path}")
    assert not (tmp_path / "owned").exists()


def test_compiled_libraries_are_not_opened(tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    rewritten(path, {"data/aotinductor/model/code.so": b"\x7fELF"})
    with pytest.raises(BadModel, match=r"it holds 'data/aotinductor/model/code.so'"):
        models.load(f"torch:{path}")


@pytest.mark.parametrize(
    "change",
    [
        lambda graph, code: graph["nodes"][0].update(target="torch.os.system"),
        lambda graph, code: graph["nodes"][0].update(target="torch.ops.aten.save.default"),
        lambda graph, code: graph["nodes"][0].update(target="_operator.attrgetter"),
        lambda graph, code: graph["nodes"][0].update(name=f"x\n{code}"),
        lambda graph, code: graph["inputs"].append({"as_tensor": {"name": f"x={code}"}}),
        lambda graph, code: _expression(graph).update(expr_str=code),
        lambda graph, code: graph["tensor_values"].update(
            metadata={"sizes": [{"as_expr": {"expr_str": code, "hint": None}}]}
        ),
        lambda graph, code: _expression(graph).update(expr_str="Symbol('s0').__class__"),
        lambda graph, code: _expression(graph).update(expr_str="exec(chr(49))"),
    ],
)
def test_texts_that_torch_would_run_are_refused(change, tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    program = program_of(path)
    change(program["graph_module"]["graph"], f"open({str(tmp_path / 'owned')!r}, 'w')")
    rewritten(path, {"models/model.json": json.dumps(program).encode()})
    with pytest.raises(BadModel, match=r"was not opened: its .* which a network has no use for"):
        models.load(f"torch:{path}")
    assert not (tmp_path / "owned").exists()


def _expression(graph):
    sizes = graph["tensor_values"]["input"]["sizes"]
    return next(size["as_expr"] for size in sizes if "as_expr" in size)


def test_a_rewritten_archive_that_says_nothing_new_still_opens(tmp_path):
    path = export(network(), tmp_path / "a.pt2")
    rewritten(path, {"models/model.json": json.dumps(program_of(path)).encode()})
    assert models.load(f"torch:{path}").n_columns == 3


def test_a_script_that_writes_files_is_not_opened(tmp_path):
    class Writes(torch.nn.Module):
        def forward(self, rows):
            torch.save(rows, "owned")
            return rows

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(Writes()).save(tmp_path / "a.pt")
    with pytest.raises(BadModel, match=r"it calls torch.save"):
        models.load(f"torch:{tmp_path / 'a.pt'}")


def test_other_files_are_no_programs(tmp_path):
    (tmp_path / "a.pt2").write_text("hello")
    with pytest.raises(BadModel, match=r"cannot be read as a torch.export or TorchScript program"):
        models.load(f"torch:{tmp_path / 'a.pt2'}")
