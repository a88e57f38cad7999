"""Sound files of every format, small, made once in a scratch folder, to be damaged."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import sys
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile import trials
from tests.hostile.case import Thing

PEOPLE = ("people.csv", "--protected", "sex", "--target", "ok", "--favorable", "yes")
NUMBERS = ("numbers.csv", "--protected", "sex", "--target", "ok", "--favorable", "1")
"""The first words of a sound command on either table."""

SMALL = ("--max-rows", "60", "--rate-rows", "0", "--generator", "none", "--method", "themis")
"""A search that takes no time."""

PROGRAM = b"""
import os, traceback
calls = []
def f(frame):
    searching = any(part.name == "check" for part in traceback.extract_stack())
    calls.extend([1] * searching)
    if len(calls) > 5 and os.environ.pop("HOSTILE_STOP", None):
        raise KeyboardInterrupt
    if len(calls) > 5 and "HOSTILE_KILL" in os.environ:
        os._exit(9)
    return ((frame["income"] - frame["debt"]) / 50 + 0.4 + 0.15 * (frame["sex"] == "M")).to_numpy()
"""
"""A model on the table of people; a run with it can be interrupted or killed on its way."""

_RUN = (*PEOPLE, "--method", "natural", "--max-rows", "60", "--rate-rows", "50")
LONG = (*PEOPLE, "--model", "python:model.py:f", "--method", "themis", "--max-rows", "200")
LONG += ("--max-batch", "20", "--rate-rows", "0", "--generator", "none")
"""The command of the runs that were interrupted or killed, without its --out."""


class Material:
    """A folder of sound files; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        if name not in self._known:
            self._known[name] = (self.folder / name).read_bytes()
        return self._known[name]

    def files(self, *names: str) -> dict[str, Thing]:
        """Files by the names they have here, those of folders with them."""
        found: dict[str, Thing] = {}
        for name in names:
            place = self.folder / name
            inner = sorted(place.rglob("*")) if place.is_dir() else [place]
            for path in inner:
                if path.is_file():
                    short = str(path.relative_to(self.folder))
                    found[short] = self.read(short)
        return found

    def make_all(self) -> None:
        """Make everything, unless another process has, and note which modules that took."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.folder / ".done"
            if not done.exists():
                os.chdir(self.folder)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _Maker(self.folder).make()
                done.write_text(json.dumps(list(sys.modules)), encoding="utf-8")

    @property
    def modules(self) -> list[str]:
        """The modules that making everything has loaded, in their order."""
        loaded: list[str] = json.loads((self.folder / ".done").read_text(encoding="utf-8"))
        return loaded


class _Maker:
    """Makes the files; every seed is fixed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        trials.fork()
        self._tables()
        self._sklearn()
        self._boosters()
        self._graphs()
        self._torch()
        self._generators()
        self._runs()

    def _write(self, name: str, data: bytes | str) -> None:
        place = self.folder / name
        place.write_bytes(data.encode() if isinstance(data, str) else data)

    @cached_property
    def people(self) -> Any:
        import pandas as pd

        rng = np.random.default_rng(0)
        n = 160
        frame = pd.DataFrame(
            {
                "income": rng.integers(0, 20, n),
                "debt": rng.integers(0, 10, n),
                "sex": rng.choice(["F", "M"], n),
            }
        )
        merit = frame["income"] / 2 - frame["debt"] / 2 + (frame["sex"] == "M") - 2.5
        frame["ok"] = np.where(merit + rng.normal(0, 0.7, n) > 0, "yes", "no")
        return frame

    @cached_property
    def numbers(self) -> Any:
        frame = self.people.copy()
        frame["sex"] = (frame["sex"] == "M").astype(int)
        frame["ok"] = (frame["ok"] == "yes").astype(int)
        return frame

    @property
    def inputs(self) -> np.ndarray:
        return self.numbers.drop(columns="ok").to_numpy(np.float64)

    @property
    def truth(self) -> np.ndarray:
        return self.numbers["ok"].to_numpy()

    def _tables(self) -> None:
        self._write("people.csv", self.people.to_csv(index=False))
        self._write("numbers.csv", self.numbers.to_csv(index=False))
        self._write("people.parquet", self.people.to_parquet(index=False))
        typed = self.people.astype({"sex": "category"}).assign(share=self.people["debt"] / 7)
        typed.loc[3, "share"] = np.nan
        self._write("typed.parquet", typed.to_parquet(index=False))
        from limi.table import files, schema_files

        self._write("schema.toml", schema_files.dump(files.infer(self.people, exclude=("ok",))))
        self._write("model.py", PROGRAM)

    def _sklearn(self) -> None:
        import joblib
        import skops.io as sio
        from sklearn.compose import make_column_transformer
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder
        from sklearn.tree import DecisionTreeClassifier

        columns = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
        frame = self.people.drop(columns="ok")
        model = make_pipeline(columns, LogisticRegression()).fit(frame, self.people["ok"])
        sio.dump(model, self.folder / "model.skops")
        self._write("model.pkl", pickle.dumps(model))
        joblib.dump(model, self.folder / "model.joblib")
        for name, estimator in {
            "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
            "forest": RandomForestClassifier(3, max_depth=3, random_state=0),
            "boosted": HistGradientBoostingClassifier(
                max_iter=3, max_leaf_nodes=4, random_state=0, early_stopping=False
            ),
        }.items():
            sio.dump(estimator.fit(self.inputs, self.truth), self.folder / f"{name}.skops")

    def _boosters(self) -> None:
        import catboost
        import lightgbm
        import xgboost

        boosted = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(self.inputs, self.truth)
        boosted.save_model(self.folder / "xgboost.json")
        boosted.save_model(self.folder / "xgboost.ubj")
        data = lightgbm.Dataset(self.inputs, self.truth)
        given = {"objective": "binary", "verbose": -1, "num_leaves": 4, "num_threads": 1}
        lightgbm.train(given, data, 3).save_model(str(self.folder / "lightgbm.txt"))
        catboost.CatBoostClassifier(
            iterations=3, depth=2, verbose=0, allow_writing_files=False, thread_count=1
        ).fit(self.inputs, self.truth).save_model(str(self.folder / "catboost.cbm"))

    def _graphs(self) -> None:
        from onnx import TensorProto, helper
        from skl2onnx import to_onnx
        from sklearn.ensemble import RandomForestClassifier

        weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 1], [0.1, -0.1, 0.3])
        bias = helper.make_tensor("b", TensorProto.FLOAT, [1], [-0.5])
        graph = helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["m"]),
                helper.make_node("Add", ["m", "b"], ["a"]),
                helper.make_node("Sigmoid", ["a"], ["y"]),
            ],
            "linear",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])],
            [weights, bias],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        self._write("linear.onnx", model.SerializeToString())
        inputs = self.inputs.astype(np.float32)
        forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(inputs, self.truth)
        self._write("forest.onnx", to_onnx(forest, inputs[:1], target_opset=18).SerializeToString())

    def _torch(self) -> None:
        import torch

        rng = np.random.default_rng(3)
        module = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1), torch.nn.Sigmoid()
        ).eval()
        with torch.no_grad():
            for tensor in module.parameters():
                tensor.copy_(torch.from_numpy(rng.normal(0, 0.2, tensor.shape)))
        dynamic = ({0: torch.export.Dim("n")},)
        program = torch.export.export(module, (torch.zeros(2, 3),), dynamic_shapes=dynamic)
        torch.export.save(program, self.folder / "network.pt2")
        torch.jit.script(module).save(str(self.folder / "script.pt"))

    def _generators(self) -> None:
        from limi import generators
        from limi.generators import ctgan, transport
        from limi.table import files
        from limi.table.frames import Codec

        frame = self.people.drop(columns="ok")
        schema = files.infer(frame)
        rows = Codec.learn(frame, schema).encode(frame)
        settings = {
            "trees": None,
            "transport": transport.Settings(hidden=8, embedding=2, steps=4, max_bins=4),
            "ctgan": ctgan.Settings(
                epochs=1, min_steps=2, batch=20, noise=4, generator_layers=(8,), max_modes=2
            ),
        }
        for name, given in settings.items():
            made = generators.get(name).fit(
                rows, schema, np.random.default_rng(0), settings=given, device="cpu"
            )
            generators.save(made, self.folder / f"{name}.gen")

    def _runs(self) -> None:
        """A finished run, an interrupted one, a killed one, and a repair of the first."""
        model = ("--model", "skops:model.skops")
        _command("test", *_RUN, *model, "--out", "run")
        os.environ["HOSTILE_STOP"] = "1"
        _command("test", *LONG, "--out", "stopped", exits=(130,))
        del os.environ["HOSTILE_STOP"]  # the run was a child, with variables of its own
        os.environ["HOSTILE_KILL"] = "1"
        _command("test", *LONG, "--out", "killed", exits=(9,))
        del os.environ["HOSTILE_KILL"]
        for run in ("stopped", "killed.partial"):
            if not (self.folder / run / "journal.bin").stat().st_size:
                raise RuntimeError(f"the run {run} has logged nothing")
        _command("repair", "run", "--out", "repaired", "--seeds", "1", "--no-model")


def small_repairs() -> None:
    """Repairs with fewer rows, as the other tests have them."""
    from limi.repairs import _compare, _verify

    _compare._RATE_ROWS = 100
    _compare._SEARCH_ROWS = 60
    _verify.quick_generators = lambda: ["trees"]


def _command(*words: str, exits: tuple[int, ...] = (0,)) -> None:
    """Run a command of limi in a process of its own."""
    child = os.fork()
    if child == 0:
        from limi.cli import main

        sys.argv = ["limi", *words]
        code = 70
        try:
            small_repairs()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in exits:
        raise RuntimeError(f"limi {' '.join(words)} ended with {code}")
