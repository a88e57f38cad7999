"""One trained model of every kind, with what its own library says of the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

from tests.models.people import LABELS, numbers, people, spelled, truth, typed


@dataclass(frozen=True)
class Case:
    """A model, the table it is given, and its library's own answers for that table."""

    model: Any
    frame: Any
    scores: np.ndarray
    favors: np.ndarray  # by the library's own predict, or its documented rule
    given: dict[str, Any] = field(default_factory=dict)


KINDS: dict[str, Callable[[Path], Case]] = {}

WORDS = {"favorable": "good", "labels": LABELS}
BITS = {"favorable": "1", "labels": (0, 1)}


def kind(build: Callable[[Path], Case]) -> Callable[[Path], Case]:
    KINDS[build.__name__] = build
    return build


def pipeline(final: Any = None, frame: Any = None) -> Pipeline:
    """Text, categories, gaps and all, fitted on the spelled labels."""
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "city"]),
        (OrdinalEncoder(), ["job"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours", "grade"]),
        ("passthrough", ["member"]),
    )
    steps = make_pipeline(columns, LogisticRegression() if final is None else final)
    return steps.fit(people() if frame is None else frame, spelled())


def sklearn_case(estimator: Any, frame: Any, inputs: Any = None) -> Case:
    inputs = frame if inputs is None else inputs
    good = list(estimator.classes_).index("good")
    favors = np.asarray(estimator.predict(inputs)) == "good"
    if hasattr(estimator, "predict_proba"):
        return Case(estimator, frame, estimator.predict_proba(inputs)[:, good], favors, WORDS)
    return Case(estimator, frame, favors.astype(float), favors, WORDS)


@kind
def sklearn_pipeline(folder: Path) -> Case:
    return sklearn_case(pipeline(), people())


@kind
def sklearn_pipeline_on_polars(folder: Path) -> Case:
    frame = pl.from_pandas(people())
    return sklearn_case(pipeline(frame=frame), frame)


@kind
def sklearn_search(folder: Path) -> Case:
    search = GridSearchCV(pipeline(), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    return sklearn_case(search.fit(people(), spelled()), people())


@kind
def sklearn_forest(folder: Path) -> Case:
    return sklearn_case(pipeline(RandomForestClassifier(10, random_state=0)), people())


@kind
def sklearn_categories(folder: Path) -> Case:
    boosting = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    return sklearn_case(boosting.fit(typed(), spelled()), typed())


@kind
def sklearn_array(folder: Path) -> Case:
    inputs = numbers().to_numpy(float)
    return sklearn_case(
        RandomForestClassifier(5, random_state=0).fit(inputs, spelled()), numbers(), inputs
    )


@kind
def sklearn_array_of_cells(folder: Path) -> Case:
    frame = people()[["age", "sex", "member"]]
    cells = frame.to_numpy()
    columns = make_column_transformer((OneHotEncoder(), [1]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(cells, spelled())
    return sklearn_case(model, frame, cells)


@kind
def sklearn_svm(folder: Path) -> Case:
    model = SVC().fit(numbers(), spelled())
    margin = model.decision_function(numbers())
    return Case(
        model, numbers(), 1 / (1 + np.exp(-margin)), model.predict(numbers()) == "good", WORDS
    )


@kind
def sklearn_margin(folder: Path) -> Case:
    model = pipeline(Perceptron())
    margin = model.decision_function(people())
    return Case(
        model, people(), 1 / (1 + np.exp(-margin)), model.predict(people()) == "good", WORDS
    )


@kind
def sklearn_threshold(folder: Path) -> Case:
    model = FixedThresholdClassifier(pipeline(), threshold=0.2, pos_label="good")
    model.fit(people(), spelled())
    favors = model.predict(people()) == "good"
    share = model.predict_proba(people())[:, 1]
    moved = np.where(share < 0.2, share / 0.4, 0.5 + (share - 0.2) / 1.6)
    return Case(model, people(), moved, favors, WORDS)


@kind
def python_function(folder: Path) -> Case:
    model = pipeline()
    proba = model.predict_proba(people())[:, 1]
    return Case(lambda frame: model.predict_proba(frame)[:, 1], people(), proba, proba > 0.5)


@kind
def python_labels(folder: Path) -> Case:
    model = pipeline()
    favors = model.predict(people()) == "bad"
    given = {"favorable": "bad", "labels": LABELS}
    return Case(model.predict.__get__(model), people(), favors.astype(float), favors, given)


@kind
def skops_file(folder: Path) -> Case:
    import skops.io as sio

    model = pipeline(RandomForestClassifier(10, random_state=0))
    sio.dump(model, folder / "model.skops")
    return Case(f"skops:{folder / 'model.skops'}", *_said(model, people()), WORDS)


@kind
def pickle_file(folder: Path) -> Case:
    import pickle

    model = pipeline()
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    given = {**WORDS, "trust_pickle": True}
    return Case(f"pickle:{folder / 'model.pkl'}", *_said(model, people()), given)


@kind
def joblib_file(folder: Path) -> Case:
    import joblib

    model = pipeline()
    joblib.dump(model, folder / "model.joblib")
    given = {**WORDS, "trust_pickle": True}
    return Case(f"joblib:{folder / 'model.joblib'}", *_said(model, people()), given)


@kind
def pyfunc_folder(folder: Path) -> Case:
    model, place = pipeline(), str(folder / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own
        import mlflow.sklearn

        mlflow.sklearn.save_model(
            model, place, serialization_format="cloudpickle", pip_requirements=[]
        )
    given = {**WORDS, "trust_pickle": True}
    return Case(f"pyfunc:{place}", *_said(model, people()), given)


def _said(model: Any, frame: pd.DataFrame) -> tuple[Any, np.ndarray, np.ndarray]:
    return frame, model.predict_proba(frame)[:, 1], model.predict(frame) == "good"


# -- ONNX ---------------------------------------------------------------------------------


def to_onnx(model: Any, frame: pd.DataFrame, path: Path, **options: Any) -> str:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    def kind_of(name: str) -> Any:
        text = not (pd.api.types.is_numeric_dtype(frame[name].dtype))
        return (StringTensorType if text else FloatTensorType)([None, 1])

    graph = convert_sklearn(
        model,
        initial_types=[(name, kind_of(name)) for name in frame.columns],
        options={id(model): options} if options else None,
        target_opset=18,
    )
    path.write_bytes(graph.SerializeToString())
    return f"onnx:{path}"


def onnx_case(folder: Path, **options: Any) -> Case:
    frame = people().drop(columns="job")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "city"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "hours", "grade", "member"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, spelled())
    return Case(
        to_onnx(model, frame, folder / "model.onnx", **options), *_said(model, frame), WORDS
    )


@kind
def onnx_maps(folder: Path) -> Case:
    return onnx_case(folder)


@kind
def onnx_tensor(folder: Path) -> Case:
    return onnx_case(folder, zipmap=False)


@kind
def onnx_matrix(folder: Path) -> Case:
    from skl2onnx import to_onnx as convert

    inputs = numbers().to_numpy(np.float32)
    model = LogisticRegression().fit(inputs, truth())
    path = folder / "matrix.onnx"
    path.write_bytes(convert(model, inputs[:1], target_opset=18).SerializeToString())
    return Case(
        f"onnx:{path}",
        numbers(),
        model.predict_proba(inputs)[:, 0],
        model.predict(inputs) == 0,
        {"favorable": "0", "labels": (0, 1)},
    )


# -- boosters -----------------------------------------------------------------------------


def xgboost_model() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=8, enable_categorical=True).fit(typed(), truth())


def boosted(model: Any, given: Any, frame: Any) -> Case:
    """The classifier's answers for the frame it was trained on, held against another given."""
    proba = model.predict_proba(typed())[:, 1]
    return Case(given, frame, proba, np.asarray(model.predict(typed())) == 1, BITS)


@kind
def xgboost_classifier(folder: Path) -> Case:
    model = xgboost_model()
    return boosted(model, model, typed())


@kind
def xgboost_booster_on_text(folder: Path) -> Case:
    model = xgboost_model()
    return boosted(model, model.get_booster(), people())


@kind
def xgboost_json_on_text(folder: Path) -> Case:
    model = xgboost_model()
    model.save_model(folder / "model.json")
    return boosted(model, f"xgboost:{folder / 'model.json'}", people())


@kind
def xgboost_ubj_on_polars(folder: Path) -> Case:
    model = xgboost_model()
    model.save_model(folder / "model.ubj")
    return boosted(model, f"xgboost:{folder / 'model.ubj'}", pl.from_pandas(typed()))


@kind
def xgboost_matrix(folder: Path) -> Case:
    import xgboost

    inputs = numbers().to_numpy(float)
    booster = xgboost.train({"objective": "binary:logitraw"}, xgboost.DMatrix(inputs, truth()), 5)
    margin = booster.predict(xgboost.DMatrix(inputs)).astype(float)
    return Case(booster, numbers(), 1 / (1 + np.exp(-margin)), margin > 0, BITS)


def lightgbm_model() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=8, verbose=-1).fit(typed(), truth())


@kind
def lightgbm_classifier(folder: Path) -> Case:
    model = lightgbm_model()
    return boosted(model, model, typed())


@kind
def lightgbm_file_on_text(folder: Path) -> Case:
    model = lightgbm_model()
    model.booster_.save_model(folder / "model.txt")
    return boosted(model, f"lightgbm:{folder / 'model.txt'}", people())


@kind
def lightgbm_booster_on_polars(folder: Path) -> Case:
    model = lightgbm_model()
    return boosted(model, model.booster_, pl.from_pandas(typed()))


@kind
def lightgbm_matrix(folder: Path) -> Case:
    import lightgbm

    inputs = numbers().to_numpy(float)
    data = lightgbm.Dataset(inputs, truth())
    booster = lightgbm.train({"objective": "binary", "verbose": -1}, data, 5)
    proba = booster.predict(inputs)
    return Case(booster, numbers(), proba, proba > 0.5, BITS)


def whole() -> pd.DataFrame:
    """The table without gaps in text, as CatBoost wants it."""
    frame = people()
    return frame.assign(city=frame.city.fillna("none"))


def catboost_model() -> Any:
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=8,
        verbose=0,
        cat_features=["sex", "job", "city", "grade"],
        allow_writing_files=False,
    )
    return model.fit(whole(), spelled())


@kind
def catboost_classifier(folder: Path) -> Case:
    model = catboost_model()
    return Case(model, *_said(model, whole()), WORDS)


@kind
def catboost_file(folder: Path) -> Case:
    model = catboost_model()
    model.save_model(str(folder / "model.cbm"))
    return Case(f"catboost:{folder / 'model.cbm'}", *_said(model, whole()), WORDS)


@kind
def catboost_file_on_polars(folder: Path) -> Case:
    case = catboost_file(folder)
    return Case(case.model, pl.from_pandas(whole()), case.scores, case.favors, WORDS)


# -- torch --------------------------------------------------------------------------------


def network(*last: Any) -> Any:
    import torch

    rng = np.random.default_rng(3)
    first, second = torch.nn.Linear(3, 8), torch.nn.Linear(8, 1)
    with torch.no_grad():
        for tensor in (*first.parameters(), *second.parameters()):
            tensor.copy_(torch.from_numpy(rng.normal(0, 0.2, tensor.shape)))
        second.bias.fill_(-0.6)
    return torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Dropout(0.5), second, *last)


def forward(module: Any) -> np.ndarray:
    import torch

    with torch.no_grad():
        return module.eval()(torch.from_numpy(numbers().to_numpy(np.float32))).double().numpy()


def torch_case(given: Any) -> Case:
    import torch

    proba = forward(network(torch.nn.Sigmoid()))[:, 0]
    return Case(given, numbers(), proba, proba > 0.5, BITS)


@kind
def torch_module(folder: Path) -> Case:
    import torch

    return torch_case(network(torch.nn.Sigmoid()).train())


@kind
def torch_logits(folder: Path) -> Case:
    return torch_case(network())


@kind
def torch_exported(folder: Path) -> Case:
    import torch

    module = network(torch.nn.Sigmoid()).eval()
    dynamic = ({0: torch.export.Dim("n")},)
    program = torch.export.export(module, (torch.zeros(2, 3),), dynamic_shapes=dynamic)
    torch.export.save(program, folder / "model.pt2")
    case = torch_case(f"torch:{folder / 'model.pt2'}")
    return replace(case, given={**BITS, "trust_pickle": True})


@kind
def torch_script(folder: Path) -> Case:
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(network()).save(folder / "model.pt")
    case = torch_case(f"torch:{folder / 'model.pt'}?output=logits")
    return replace(case, given={**BITS, "trust_pickle": True})
