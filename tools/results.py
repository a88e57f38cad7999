"""Results of runs through the public functions, made comparable: see `tools/digests.py`.

Each run gives a digest of its findings and everything else that it says as plain facts, without
what may differ between two runs of the same code: dates, seconds, versions, paths.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import limi
from limi.audits.compare import compare
from limi.explore.opening import explore_run
from limi.table import files, schema_files

_SEED = 3
_LABELS = ("ok", "grade", "price")
_JOBS = ("clerk", "sales", "craft")
_GRADES = ("bronze", "gold", "silver")
_QUICK: dict[str, Any] = {"max_rows": 500, "rate_rows": 150, "seed": _SEED, "method": "natural"}

# How names of facts end that differ between two runs of the same code.
_FLEETING = ("seconds", "date", "versions", "command", "_seconds", "per_second")


# -- people and models ----------------------------------------------------------------------


def people(n: int = 500, seed: int = 0) -> pd.DataFrame:
    """People of mixed columns, some cells missing; what they earn goes a little with sex."""
    rng = np.random.default_rng(seed)
    sex, group = rng.integers(2, size=n), rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    age = rng.integers(18, 81, size=n)
    frame = pd.DataFrame(
        {
            "age": age,
            "hours": np.clip(rng.normal(36 + 4 * sex, 8, size=n).round(), 1, 60).astype(int),
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)),
            "job": np.array(_JOBS)[np.minimum(rng.integers(3, size=n) + sex, 2)],
            "sex": np.where(sex == 1, "M", "F"),
            "group": np.array(["a", "b", "c"])[group],
            "decade": age // 10,
        }
    )
    points = _points(frame) + rng.normal(scale=0.7, size=n)
    frame["ok"] = (points > 0).astype(int)
    frame["grade"] = np.array(_GRADES)[np.digitize(points, [-0.8, 0.9])]
    frame["price"] = (40 + 6 * points).round(1)
    return frame


def _points(frame: pd.DataFrame) -> Any:
    """What a rule by hand gives each person; men and group c stand apart."""
    numbers = {name: np.asarray(frame[name], dtype=float) for name in ("age", "hours", "debt")}
    return (
        (numbers["age"] - 50.0) / 17.3
        + (numbers["hours"] - 36.1) / 9.7
        - 0.31 * np.nan_to_num(numbers["debt"], nan=0.17)
        + 0.41 * (np.asarray(frame["job"]) == "craft")
        + np.where(np.asarray(frame["sex"]) == "M", 0.33, -0.29)
        - 0.57 * (np.asarray(frame["group"]) == "c")
        + 0.0513
    )


def lend(frame: Any) -> Any:
    """A favorable score."""
    return 1 / (1 + np.exp(-_points(frame)))


def lend_blindly(frame: Any) -> Any:
    """A favorable score that depends on neither sex nor group."""
    return 1 / (1 + np.exp(-(_points(frame.assign(sex="M", group="a")) - 0.3)))


def grade(frame: Any) -> Any:
    """One of three labels."""
    return np.array(_GRADES)[np.digitize(_points(frame), [-0.8, 0.9])]


def price(frame: Any) -> Any:
    """A number."""
    return 40 + 6 * _points(frame)


class Fickle:
    """A score whose answer to a row depends on how often the row was asked about before."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.asked: dict[bytes, int] = {}

    def __call__(self, frame: Any) -> Any:
        """Favorable scores, some of them turned around."""
        scores = lend(frame)
        cells = frame[["age", "hours", "debt", "job", "sex", "group"]].map(str)
        for place, row in enumerate(cells.agg("|".join, axis=1)):
            key = hashlib.sha256(row.encode()).digest()
            times = self.asked[key] = self.asked.get(key, -1) + 1
            drawn = hashlib.sha256(key + times.to_bytes(4, "little")).digest()
            if int.from_bytes(drawn[:4], "little") < self.share * 2**32:
                scores[place] = 1 - scores[place]
        return scores


class Counting:
    """A clock that goes on by a hundredth of a second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        self.now += 0.01
        return self.now


_TAKEN = ("job", "sex", "group", "age", "hours")


@cache
def _pipeline(strength: float = 0.5, names: tuple[str, ...] = _TAKEN) -> Any:
    """A fitted estimator that takes some columns by name."""
    frame = people(800, 1)
    numbers = [name for name in names if name in ("age", "hours")]
    words = [name for name in names if name not in numbers]
    encode = (OneHotEncoder(handle_unknown="ignore"), words)
    steps = make_column_transformer(encode, (StandardScaler(), numbers))
    made = make_pipeline(steps, LogisticRegression(C=strength))
    return made.fit(frame[list(names)], frame["ok"])


# -- runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A name, and what makes its findings and its facts in a scratch folder."""

    name: str
    make: Callable[[Path], tuple[Any, Any]]


def _audit(model: Any = lend, frame: Any = None, **given: Any) -> Any:
    asked = {"protected": ["sex", "group"], "target": "ok", "favorable": 1} | _QUICK | given
    if model in (lend, lend_blindly) or isinstance(model, Fickle):
        asked = {"output": "score"} | asked
    asked = {name: value for name, value in asked.items() if value is not None}
    frame = people() if frame is None else frame
    others = [name for name in _LABELS if name in frame.columns and name != asked["target"]]
    return limi.audit(model, _without(frame, others), **asked)


def _without(frame: Any, names: list[str]) -> Any:
    return frame.drop(columns=names) if isinstance(frame, pd.DataFrame) else frame.drop(names)


def _said(result: Any) -> tuple[Any, Any]:
    """What an audit found and says."""
    return result.findings, {
        "summary": result.summary.as_dict(),
        "metrics": result.metrics(),
        "groups": result.groups,
        "where": [str(rule) for rule in result.where()],
        "representative": result.representative(5),
    }


def _audited(name: str, model: Any = lend, **given: Any) -> Run:
    """An audit; what keeps a state is given as a function that makes it anew."""
    fresh = {key: given.pop(key) for key in ("clock", "frame", "held_out") if key in given}

    def make(folder: Path) -> tuple[Any, Any]:
        asked = given | {key: make_it() for key, make_it in fresh.items()}
        return _said(_audit(model() if isinstance(model, partial) else model, **asked))

    return Run(name, make)


def runs() -> Iterator[Run]:
    """All runs, small enough that each takes a few seconds at most."""
    grades: dict[str, Any] = {"target": "grade", "output": "label"}
    number: dict[str, Any] = {"target": "price", "favorable": None}
    classes = grades | {"favorable": None, "decision": "class"}
    polars = {"frame": lambda: pl.from_pandas(people())}
    yield _audited("favorable")
    yield _audited("favorable limi", method="limi", settings={"n_latents": 2_000})
    yield _audited("estimator", _pipeline())
    yield _audited("several favorable labels", grade, favorable=["gold", "silver"], **grades)
    yield _audited("score above 0.3", decision="score > 0.3")
    yield _audited("classes", grade, **classes)
    yield _audited("classes in order", grade, order=["bronze", "silver", "gold"], **classes)
    yield _audited("number by difference", price, decision="difference > 3", **number)
    yield _audited("number by percent", price, decision="difference > 5 %", **number)
    yield _audited("number by bands", price, decision="bands = 35, 42.5, 50", **number)
    yield _audited("constraints", frame=_ruled, constraints=[_HUSBANDS])
    yield Run("roles", _with_roles)
    yield Run("ruled table by limi", lambda folder: _with_roles(folder, method="limi"))
    yield _audited("protected number", frame=_ruled, protected=["age=20,40,70"])
    yield _audited("twins", twin=True, keep=["job"])
    yield _audited("blind model", lend_blindly)
    yield _audited("held-out rows", held_out=lambda: people(200, 5))
    yield _audited("polars", **polars)
    yield _audited("polars estimator", _pipeline(), **polars)
    yield Run("Parquet folder", _from_folder)
    yield Run("joined protected table", _joined)
    yield _audited("noisy model", partial(Fickle, 0.05), noisy=True, max_queries=6_000)
    yield _audited("unsteady model", partial(Fickle, 0.004))
    yield _audited("few queries", max_queries=700, method=None)
    yield _audited("few rows", max_rows=60)
    yield _audited("few findings", max_findings=5)
    yield _audited("few seconds", max_seconds=3.0, clock=Counting)
    yield Run("workers", _with_workers)
    yield Run("gate", _gate)
    yield Run("replay", _replay)
    yield Run("diff", _diff)
    yield Run("repair", _repair)
    yield Run("certify", _certify)
    yield Run("compare", _compare)
    yield Run("explore", _explore)
    yield Run("evidence pack", _pack)


_HUSBANDS = 'tie == "Husband" implies sex == "M"'
_ROLES = """
[roles.sex]
tie = [{ F = "Wife", M = "Husband" }]

[derived.decade]
from = "age"
steps = [30, 45, 60]
values = [0, 1, 2, 3]
"""


def _ruled() -> pd.DataFrame:
    """People some of whom are married, with a column that follows from their age."""
    frame = people()
    married = frame["hours"] % 3 == 0
    spouse = np.where(frame["sex"] == "M", "Husband", "Wife")
    frame["tie"] = np.where(married, spouse, "single")
    frame["decade"] = np.digitize(frame["age"], [30, 45, 60])
    return frame


def _with_roles(folder: Path, **given: Any) -> tuple[Any, Any]:
    frame = _ruled().drop(columns=["grade", "price"])
    columns = schema_files.dump(files.infer(frame.drop(columns="ok")))
    file = folder / "schema.toml"
    file.write_text(columns.replace("format = 1", "format = 2") + _ROLES, encoding="utf-8")
    schema = schema_files.read_for(frame, file, exclude=("ok",))
    return _said(_audit(frame=frame, schema=schema, protected=["sex", "age=20,40,70"], **given))


def _from_folder(folder: Path) -> tuple[Any, Any]:
    place = folder / "table"
    place.mkdir()
    frame = people()
    for part in range(3):
        frame[part::3].to_parquet(place / f"part-{part}.parquet")
    return _said(_audit(frame=files.read(place)))


def _joined(folder: Path) -> tuple[Any, Any]:
    frame = people().assign(key=np.arange(500) * 7 % 500)
    apart = frame[["key", "sex"]].sample(frac=1, random_state=0)
    told = {"protected": "sex", "protected_from": apart, "key": "key", "keep": "job"}
    return _said(
        _audit(_pipeline(0.5, ("job", "group", "age", "hours")), frame.drop(columns="sex"), **told)
    )


def _with_workers(folder: Path) -> tuple[Any, Any]:
    return _said(_audit(_pipeline(), workers=2, method="limi", settings={"n_latents": 2_000}))


def _run_folder(folder: Path, model: Any = None, **given: Any) -> Path:
    """A finished run of an estimator."""
    _audit(_pipeline() if model is None else model, out=folder / "run", **given)
    return folder / "run"


def _gate(folder: Path) -> tuple[Any, Any]:
    rules = [
        "natural_rate <= 40 %",
        "real_rate <= 1 %",
        "worst_region_rate <= 60 %",
        "score_gap_p90 <= 0.9",
        "spd <= 0.5",
    ]
    told = {"protected": ["sex", "group"], "target": "ok", "favorable": 1, "output": "score"}
    made = limi.gate(lend, people(), rules, seed=_SEED, max_queries=8_000, **told)
    return None, made.as_dict()


def _replay(folder: Path) -> tuple[Any, Any]:
    table = folder / "table.csv"
    people().to_csv(table, index=False)
    return None, limi.replay(_run_folder(folder), _pipeline(0.05), table=table).as_dict()


def _diff(folder: Path) -> tuple[Any, Any]:
    run, seed = _run_folder(folder), _SEED
    told = {"model": _pipeline(0.05), "before_model": _pipeline(), "rows": 500}
    return None, limi.diff(run, table=people(), seed=seed, **told).as_dict()


def _repair(folder: Path) -> tuple[Any, Any]:
    result = _audit(_pipeline(), max_rows=2_000)
    made = limi.repair(result, how="all", seeds=2, seed=_SEED, max_accuracy_loss=0.5)
    return None, made.as_dict()


def _certify(folder: Path) -> tuple[Any, Any]:
    frame = people()
    names = ["age", "hours", "decade"]
    forest = RandomForestClassifier(8, max_depth=4, random_state=0, n_jobs=1)
    forest.fit(frame[names], frame["ok"])
    told = {"protected": "age=20,40,60", "target": "ok", "favorable": 1}
    proof = limi.certify(forest, frame[[*names, "ok"]], rows=60, seed=_SEED, **told)
    return None, proof.as_dict()


def _compare(folder: Path) -> tuple[Any, Any]:
    told = {"protected": "sex", "target": "ok", "favorable": 1, "output": "score"}
    lines = compare(
        lend, people(), ["limi", "natural", "aequitas"], seed=_SEED, max_rows=600, **told
    )
    return None, [line.as_dict() for line in lines]


def _explore(folder: Path) -> tuple[Any, Any]:
    table = folder / "table.csv"
    people().to_csv(table, index=False)
    run = _run_folder(folder)
    exploration = explore_run(run, table=table, model=_pipeline())
    row = exploration.rows[3]
    exploration.ask_person(row)
    exploration.find_nearest(row, "flips")
    exploration.find_nearest(row, "keeps")
    exploration.walk(row)
    exploration.ask_twins(row)
    region = exploration.region_of([{"column": "hours", "low": 30.0, "high": 40.0}])
    exploration.look_at(region)
    alike = [who.ref for who in exploration.find_alike(row)]
    lines = (run / "explore.jsonl").read_text(encoding="utf-8").splitlines()
    record = [json.loads(line) | {"at": ""} for line in lines]
    return None, {"alike": alike, "record": record}


def _pack(folder: Path) -> tuple[Any, Any]:
    limi.evidence.pack(_run_folder(folder), folder / "pack.zip", findings=True)
    with zipfile.ZipFile(folder / "pack.zip") as pack:
        known = {name: pack.read(name) for name in pack.namelist()}
    return None, {"names": sorted(known), "summary": json.loads(known["summary.json"])}


# -- what is compared -----------------------------------------------------------------------


def facts(run: Run) -> dict[str, Any]:
    """The findings of a run as one digest, and everything else under a path of its own."""
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        findings, tree = run.make(Path(scratch))
        flat: dict[str, Any] = {}
        _flatten(_plain(tree), "", flat, scratch)
    if findings is not None:
        flat["findings"] = digest_of_frame(findings)
    return flat


def digest_of_frame(frame: Any) -> str:
    """The rows of a frame in their order as one word; numbers to nine digits."""
    return f"{len(frame)}:" + _short(json.dumps(_plain(frame)))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """The value of plain lists, dictionaries and words."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_pandas"):
        value = value.to_pandas()
    if isinstance(value, pd.DataFrame):
        return {str(name): [_plain(cell) for cell in value[name]] for name in value}
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.9g}")
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _flatten(value: Any, path: str, into: dict[str, Any], scratch: str) -> None:
    """Each plain fact under its path; a long list of them as one digest."""
    if isinstance(value, dict):
        for name, part in value.items():
            if not name.endswith(_FLEETING):
                _flatten(part, f"{path}/{name}", into, scratch)
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for place, part in enumerate(value):
            _flatten(part, f"{path}/{place}", into, scratch)
    elif isinstance(value, list) and len(value) > 12:
        into[path] = f"{len(value)}:" + _short(json.dumps(value))
    else:
        into[path] = value.replace(scratch, "...") if isinstance(value, str) else value
