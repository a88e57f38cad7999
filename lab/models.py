"""The papers' targets on the four encodings, trained here by seed: a DNN, a forest and an SVM.

A model is trained once and kept below `$LIMI_CACHE` or `~/.cache/limi`, as arrays without code.
The command line takes one as `python:lab/models.py:census_dnn`, or `credit_rf_3` for seed 3.

Faithfulness
- Papers: a fully connected ReLU network d-64-32-16-8-4-2 on raw integer codes; weights N(0, 1),
  each unit's incoming weights scaled to length 1, biases 0. Here too.
- Papers: Adam at 0.001 for 1000 epochs of batches of 128 (254,000 steps on census). Here: Adam
  whose rate rises to 0.01 within a tenth of 12,000 steps of batches of 1024 and then falls to 0
  (4,000 steps of 128 for tables under 5,000 rows). So the weights are others, at about the same
  accuracy: in percent on census, credit, bank and meps 88.4, 100, 93.4 and 97.0 for seed 0, where
  LIMI reports 88.2, 100, 93.7 and 95.1. Other seeds reach 97 to 100 on credit.
- Papers: accuracy on the rows trained on, the whole file. Here too; for census the test rows, which
  no paper uses, are reported beside.
- Papers: RandomForestClassifier and SVC (RBF) with scikit-learn's defaults, the SVM with Platt
  scaling. Here: the same forest; the SVM is fitted on 10,000 rows drawn by seed where there are
  more, and its score is the margin through a sigmoid, so that it never contradicts the decision.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from limi import data
from limi.decisions import favors
from limi.errors import InvalidInput, LimiError, missing, nearest
from limi.models._base import Takes
from limi.models._forests import sort_alike
from limi.models._modules import on_one_core
from limi.models._scores import Outputs, from_margin, from_pairs
from limi.system.cores import n_cores
from limi.system.writing import make_folder
from limi.system.writing import write as write_file
from limi.types import Labels, Rows, Scores, Truth

__all__ = [
    "BenchmarkModel",
    "Info",
    "Kind",
    "Schedule",
    "cache_folder",
    "fit",
    "read",
    "save",
    "train",
]

Kind = Literal["dnn", "rf", "svm"]
OnStep = Callable[[float, str], None]
"""Called with the fraction that is done, and what is being done in words."""

FORMAT = 1

_HIDDEN = (64, 32, 16, 8, 4)
_PEAK_RATE = 0.01
_WARM_UP = 0.1  # of the steps
_SMALL_TABLE = 5_000  # rows
_SMALL, _LARGE = (4_000, 128), (12_000, 1024)  # steps, and rows per batch
_PAPER_BATCH, _PAPER_RATE = 128, 0.001  # of the LIMI paper and its program, with 1,000 epochs
_RESTARTS = 5
_N_TREES = 100
_SVM_ROWS = 10_000
# Kept beside each cached model; one made by another recipe is trained again.
_RECIPES: dict[str, dict[str, Any]] = {
    "dnn": {"hidden": [*_HIDDEN], "rate": _PEAK_RATE, "small": [*_SMALL], "large": [*_LARGE]},
    "rf": {"trees": _N_TREES},
    "svm": {"rows": _SVM_ROWS},
}

_CHUNK = 4096  # rows whose activations stay in a core's cache
_MOST_ROWS_A_TASK = 16 * _CHUNK
_WORTH_THREADS = 256  # rows for which a forest wakes the other cores

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Info:
    """How a benchmark model came about, and how well it does."""

    table: str
    kind: Kind
    seed: int
    rows: int  # of the table
    trained_rows: int  # of them, those it was fitted on
    accuracy: float  # on all rows of the table
    test_accuracy: float | None  # on rows it was not fitted on; census alone has them
    seconds: float  # that training took
    versions: dict[str, str]

    def __str__(self) -> str:
        tested = "" if self.test_accuracy is None else f", {self.test_accuracy:.1%} on test rows"
        return (
            f"benchmark {self.kind} on {self.table}, seed {self.seed}: {self.accuracy:.1%} of "
            f"{self.rows:,} rows right{tested}, fitted on {self.trained_rows:,}"
        )


@dataclass(frozen=True)
class Schedule:
    """How long a network is trained, where not by the recipe: at most one of the two is given."""

    length: float | None = None  # times the recipe's steps
    epochs: int | None = None  # as the paper does: so many, in its batches and at its constant rate

    def __post_init__(self) -> None:
        if self.length is not None and self.epochs is not None:
            raise InvalidInput("a network is trained for a length or for epochs; give one of them")
        if self.length is not None and not 0 < self.length < math.inf:
            raise InvalidInput(f"length is {self.length}; it must be a finite number above 0")
        if self.epochs is not None and (not isinstance(self.epochs, int) or self.epochs < 1):
            raise InvalidInput(f"epochs is {self.epochs}; it must be a whole number, 1 or more")


@dataclass(frozen=True, eq=False)
class BenchmarkModel:
    """A target of the papers; it takes the codes of its encoding as numbers."""

    scorer: _Scorer
    columns: tuple[str, ...]
    info: Info
    favorable_column: int = 1  # of the classes 0 and 1
    notes: tuple[str, ...] = field(default=())

    stretch: ClassVar[int] = _CHUNK  # rows are taken in stretches of so many, from the first on

    @property
    def takes(self) -> Takes:
        """Numbers."""
        return "matrix"

    @property
    def n_columns(self) -> int:
        """The number of features."""
        return len(self.columns)

    @property
    def module(self) -> Any:
        """The torch module of two logits behind a DNN, for gradients; None for other kinds."""
        return self.scorer.module if isinstance(self.scorer, _Network) else None

    @property
    def forest(self) -> Sequence[Any] | None:
        """The trees of scikit-learn behind a forest; None for other kinds."""
        return self.scorer.trees if isinstance(self.scorer, _Forest) else None

    @property
    def outputs(self) -> Outputs:
        """Two logits."""
        return Outputs(self.favorable_column, "logits")

    def describe_refit(self) -> str:
        """By the same recipe."""
        return f"the benchmark's {self.info.kind} recipe from a fresh initialisation"

    @property
    def learns_pairs(self) -> bool:
        """Can it be trained with a penalty on pairs of scores?"""
        return self.info.kind == "dnn"

    def refit(
        self,
        inputs: Rows,
        labels: Truth,
        seed: int,
        *,
        n_table: int,
        pairs: tuple[Rows, float] | None = None,
    ) -> BenchmarkModel:
        """A model of the same recipe; a small table's rows are seen as often as before.

        With `pairs`, a partner for each row and a strength, a network is punished for the squared
        distance of their margins (logit pairing).
        """
        # Class 1 of a benchmark model need not be the favorable label.
        classes = labels if self.favorable_column == 1 else 1 - labels
        made = fit(
            self.info.kind,
            inputs,
            classes.astype(np.int8),
            columns=self.columns,
            seed=seed,
            grown_from=min(len(inputs), n_table),
            pairs=pairs,
        )
        return replace(made, favorable_column=self.favorable_column)

    def score(self, inputs: Rows) -> Scores:
        """Scores of the favorable class."""
        return self.scorer.score(np.asarray(inputs), self.favorable_column)


def __getattr__(name: str) -> BenchmarkModel:
    """TABLE_KIND or TABLE_KIND_SEED, as `python:lab/models.py:NAME` asks for it."""
    table, kind, seed = (*name.split("_"), "0", "")[:3]
    if table not in data.encodings() or kind not in get_args(Kind) or not seed.isdecimal():
        raise AttributeError(name)
    return train(table, cast("Kind", kind), seed=int(seed))


def train(
    table: str,
    kind: Kind,
    *,
    seed: int = 0,
    cache: bool = True,
    on_step: OnStep | None = None,
) -> BenchmarkModel:
    """The model of a kind, table and seed: from the cache, else trained and kept there."""
    _check_kind(kind)
    if seed < 0:
        raise InvalidInput(f"seed is {seed}; it must be 0 or a positive whole number")
    if table not in data.encodings():
        raise InvalidInput(
            f"there is no benchmark model for {table!r}; {nearest(table, data.encodings())}"
        )
    known = data.load(table)
    columns = tuple(known.schema.names)
    rows, labels = _split(known)
    stem = cache_folder() / f"{table}-{kind}-{seed}"
    wanted = {
        "format": FORMAT,
        "table": table,
        "kind": kind,
        "seed": seed,
        "recipe": _RECIPES[kind],
        "data_sha256": _sha256(repr(columns).encode(), rows.tobytes(), labels.tobytes()),
    }
    kept = _read(stem, wanted) if cache else None
    if kept is not None:
        scorer, info = kept
        return BenchmarkModel(scorer, columns, info, notes=(str(info),))
    model = fit(kind, rows, labels, columns=columns, seed=seed, table=table, on_step=on_step)
    if cache:
        _write(stem, wanted, model)
    return model


def fit(
    kind: Kind,
    rows: Rows,
    labels: Labels,
    *,
    columns: Sequence[str],
    seed: int = 0,
    table: str = "rows",
    grown_from: int | None = None,
    pairs: tuple[Rows, float] | None = None,
    schedule: Schedule | None = None,
    on_step: OnStep | None = None,
) -> BenchmarkModel:
    """A model of a kind, fitted on these rows by the same recipe and not kept.

    `grown_from` is the size of the table that the rows grew from, where they did: a DNN then sees
    a small table's rows as often as before. `pairs` and `schedule` are for a DNN alone.
    """
    _check_kind(kind)
    if len(np.unique(labels)) != 2:
        raise InvalidInput("the labels to fit on must hold both 0 and 1")
    if schedule is not None and schedule != Schedule() and kind != "dnn":
        raise InvalidInput(
            f"only a dnn is trained for a length or for epochs, and this is {kind!r}"
        )
    network: Callable[..., tuple[_Scorer, int]] = partial(
        _fit_network, pairs=pairs, schedule=schedule or Schedule()
    )
    fitter = {"dnn": network, "rf": _fit_forest, "svm": _fit_machine}[kind]
    rng = np.random.default_rng(seed)
    began = time.perf_counter()
    scorer, trained_rows = fitter(rows, labels, rng, on_step or _silent, grown_from or len(rows))
    seconds = time.perf_counter() - began
    tested = None
    if table == "census":
        tested = _accuracy(scorer, *_split(data.load(table, part="test")))
    info = Info(
        table=table,
        kind=kind,
        seed=seed,
        rows=len(rows),
        trained_rows=trained_rows,
        accuracy=_accuracy(scorer, rows, labels),
        test_accuracy=tested,
        seconds=round(seconds, 2),
        versions=_versions("numpy", "torch" if kind == "dnn" else "scikit-learn"),
    )
    return BenchmarkModel(scorer, tuple(columns), info, notes=(str(info),))


def save(model: BenchmarkModel, file: IO[bytes]) -> None:
    """Write a model as arrays without code."""
    about = {"format": FORMAT, "columns": [*model.columns], "info": asdict(model.info)}
    # Text as an array of characters, which numpy reads without unpickling.
    np.savez(file, about=np.array(json.dumps(about)), **model.scorer.arrays())  # type: ignore[arg-type]


def read(path: Path) -> BenchmarkModel:
    """A model that `save` wrote."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    info = Info(**about["info"])
    scorer = _SCORERS[info.kind](arrays)
    return BenchmarkModel(scorer, tuple(about["columns"]), info, notes=(str(info),))


def cache_folder() -> Path:
    """Where trained models are kept: below `$LIMI_CACHE`, else below the user's cache folder."""
    given = os.environ.get("LIMI_CACHE")
    if given:
        return Path(given) / "models"
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "limi" / "models"


def _check_kind(kind: str) -> None:
    if kind not in get_args(Kind):
        raise InvalidInput(f"there is no benchmark model {kind!r}; {nearest(kind, get_args(Kind))}")


def _split(known: data.Dataset) -> tuple[Rows, Labels]:
    rows = known.frame[known.schema.names].to_numpy(dtype=np.float64)
    favors = known.frame[known.target].to_numpy() == known.favorable
    return np.ascontiguousarray(rows), favors.astype(np.int8)


def _accuracy(scorer: _Scorer, rows: Rows, labels: Labels) -> float:
    return float((favors(scorer.score(rows, 1)) == (labels == 1)).mean())


def _silent(fraction: float, words: str) -> None:
    pass


class _Scorer(Protocol):
    """What differs between the kinds."""

    def score(self, rows: Rows, favorable_column: int) -> Scores: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...


# -- the network --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Network:
    """Layers as matrices, evaluated chunk by chunk in single-threaded tasks.

    The two logits of the last layer are folded into their difference, which is all that a
    decision between two classes needs.
    """

    module: Any
    layers: tuple[tuple[Any, Any], ...]  # (inputs x units) weights and biases, float32 tensors

    @staticmethod
    def of(module: Any) -> _Network:
        *inner, last = [
            (layer.weight.detach().T, layer.bias.detach())
            for layer in module
            if hasattr(layer, "weight")
        ]
        difference = (last[0][:, 1:] - last[0][:, :1], last[1][1:] - last[1][:1])
        layers = tuple((weight.contiguous(), bias) for weight, bias in [*inner, difference])
        return _Network(module, layers)

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> _Network:
        pairs = [
            (arrays[f"weight{place}"], arrays[f"bias{place}"]) for place in range(len(_HIDDEN) + 1)
        ]
        return _Network.of(_module(pairs))

    def arrays(self) -> dict[str, NDArray[Any]]:
        linear = [layer for layer in self.module if hasattr(layer, "weight")]
        weights = {f"weight{i}": x.weight.detach().numpy() for i, x in enumerate(linear)}
        return weights | {f"bias{i}": x.bias.detach().numpy() for i, x in enumerate(linear)}

    def score(self, rows: Rows, favorable_column: int) -> Scores:
        threads = _torch_threads(os.getpid())
        return _spread(threads, rows, lambda p: from_margin(self._margins(p), favorable_column))

    def _margins(self, rows: Rows) -> NDArray[np.float64]:
        import torch

        margins = np.empty(len(rows))
        size = min(_CHUNK, len(rows))
        with torch.inference_mode():
            given = torch.empty(size, rows.shape[1])
            outputs = [torch.empty(size, len(bias)) for _, bias in self.layers]
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                here = given[: len(part)]
                np.copyto(here.numpy(), part, casting="same_kind")
                for place, (weight, bias) in enumerate(self.layers):
                    if place:
                        here = here.relu_()
                    here = torch.addmm(bias, here, weight, out=outputs[place][: len(part)])
                margins[start : start + len(part)] = here[:, 0].numpy()
        return margins


def _fit_network(
    rows: Rows,
    labels: Labels,
    rng: np.random.Generator,
    on_step: OnStep,
    size: int,
    pairs: tuple[Rows, float] | None = None,
    *,
    schedule: Schedule,
) -> tuple[_Scorer, int]:
    torch = _torch()
    course = _Course.of(schedule, len(rows), size)
    inputs = torch.from_numpy(np.array(rows, dtype=np.float32))
    truth = torch.from_numpy(np.array(labels, dtype=np.int64))
    partners, strength = (rows, 0.0) if pairs is None else pairs
    others = torch.from_numpy(np.array(partners, dtype=np.float32))
    for _ in range(_RESTARTS):
        module = _module(_initial(rows.shape[1], rng))
        with on_one_core():
            given = (inputs, truth, others)
            _descend(module, given, strength, course, rng, on_step)
        network = _Network.of(module)
        decided = favors(network.score(rows, 1))
        if decided.any() and not decided.all():
            break
        _log.info(
            "the network gave every row the same decision, because every unit of a layer had "
            "died; trying again"
        )
    return network, len(rows)


@dataclass(frozen=True)
class _Course:
    """The steps of a training."""

    steps: int
    batch: int
    rate: Callable[[float], float]  # by the share of steps that is done

    @staticmethod
    def of(schedule: Schedule, n_rows: int, size: int) -> _Course:
        if schedule.epochs is not None:
            batch = min(_PAPER_BATCH, n_rows)
            return _Course(schedule.epochs * (n_rows // batch), batch, lambda done: _PAPER_RATE)
        steps, batch = _SMALL if size < _SMALL_TABLE else _LARGE
        if size < _SMALL_TABLE:
            # The papers count epochs. On large tables the steps suffice for several times the rows.
            steps = max(steps, steps * n_rows // size)
        if schedule.length is not None:
            steps = max(1, round(schedule.length * steps))
        return _Course(steps, min(batch, n_rows), _rise_and_fall)


def _rise_and_fall(done: float) -> float:
    return _PEAK_RATE * min(done / _WARM_UP, 1) * (1 - done)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise missing("torch", "torch", "a benchmark DNN") from None
    return torch


def _initial(width: int, rng: np.random.Generator) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    sizes = (width, *_HIDDEN, 2)
    layers = []
    for n_inputs, n_units in itertools.pairwise(sizes):
        weight = rng.normal(size=(n_units, n_inputs))
        weight /= np.linalg.norm(weight, axis=1, keepdims=True)
        layers.append((weight.astype(np.float32), np.zeros(n_units, dtype=np.float32)))
    return layers


def _module(layers: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> Any:
    torch = _torch()
    parts: list[Any] = []
    for weight, bias in layers:
        linear = torch.nn.utils.skip_init(torch.nn.Linear, weight.shape[1], weight.shape[0])
        linear.load_state_dict(
            {"weight": torch.from_numpy(weight.copy()), "bias": torch.from_numpy(bias.copy())}
        )
        parts += [torch.nn.ReLU(), linear] if parts else [linear]
    return torch.nn.Sequential(*parts).eval()


def _descend(
    module: Any,
    given: tuple[Any, Any, Any],  # rows, classes, and a partner for each row
    strength: float,
    course: _Course,
    rng: np.random.Generator,
    on_step: OnStep,
) -> None:
    import torch

    inputs, truth, others = given
    steps, batch = course.steps, course.batch
    adam = torch.optim.Adam(module.parameters(), lr=_PEAK_RATE, fused=True)
    per_epoch = len(inputs) // batch
    for step in range(steps):
        place = step % per_epoch
        if not place:
            order = torch.from_numpy(rng.permutation(len(inputs)))
            rows, labels = inputs[order], truth[order]
            partners = others[order] if strength else rows
            on_step(step / steps, f"training a DNN: step {step:,} of {steps:,}")
        adam.param_groups[0]["lr"] = course.rate(step / steps)
        part = slice(place * batch, (place + 1) * batch)
        adam.zero_grad()
        logits = module(rows[part])
        loss = torch.nn.functional.cross_entropy(logits, labels[part])
        if strength:
            apart = (logits - module(partners[part])).diff(dim=1)
            loss = loss + strength * apart.square().mean()
        loss.backward()
        adam.step()
    adam.zero_grad()
    on_step(1.0, f"trained a DNN in {steps:,} steps")


# -- the forest ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Forest:
    """scikit-learn's trees, walked by several cores: each takes some rows through all trees.

    Scores are those of scikit-learn, to the last bit: the trees are summed in the same order.
    """

    trees: tuple[Any, ...]  # sklearn.tree._tree.Tree
    leaves: tuple[NDArray[np.float64], ...]  # per tree (nodes, 2): share of each class
    n_columns: int

    @staticmethod
    def of(estimator: Any) -> _Forest:
        trees = tuple(one.tree_ for one in estimator.estimators_)
        leaves = tuple(np.ascontiguousarray(tree.value[:, 0, :]) for tree in trees)
        return _Forest(trees, leaves, int(estimator.n_features_in_))

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> _Forest:
        ends = np.cumsum(arrays["nodes"])[:-1]
        names = ("feature", "threshold", "left", "right", "leaf", "depth")
        parts = zip(*(np.split(arrays[name], ends) for name in names[:-1]), strict=True)
        n_columns = int(arrays["n_columns"])
        trees, leaves = [], []
        for depth, (feature, threshold, left, right, leaf) in zip(
            arrays["depth"], parts, strict=True
        ):
            trees.append(_tree(n_columns, int(depth), feature, threshold, left, right, leaf))
            leaves.append(np.ascontiguousarray(leaf))
        return _Forest(tuple(trees), tuple(leaves), n_columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        def joined(name: str, dtype: Any) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in self.trees]).astype(dtype)

        return {
            "n_columns": np.array(self.n_columns),
            "nodes": np.array([tree.node_count for tree in self.trees]),
            "depth": np.array([tree.max_depth for tree in self.trees]),
            "feature": joined("feature", np.int16),
            "threshold": joined("threshold", np.float64),
            "left": joined("children_left", np.int32),
            "right": joined("children_right", np.int32),
            "leaf": np.concatenate(self.leaves),
        }

    def score(self, rows: Rows, favorable_column: int) -> Scores:
        threads = _numpy_threads(os.getpid())
        if len(rows) < _CHUNK:
            return from_pairs(self._few(threads, rows), favorable_column, votes=True)
        return _spread(
            threads, rows, lambda p: from_pairs(self._shares(p), favorable_column, votes=True)
        )

    def _shares(self, rows: Rows) -> NDArray[np.float64]:
        cast_rows, order = sort_alike(self.trees[0], _cast(rows))
        shares = np.zeros((len(rows), 2))
        for tree, leaf in zip(self.trees, self.leaves, strict=True):
            shares += leaf.take(tree.apply(cast_rows), axis=0)
        shares /= len(self.trees)
        return _back(shares, order)

    def _few(self, threads: ThreadPoolExecutor, rows: Rows) -> NDArray[np.float64]:
        """The same for a small batch: each core takes all rows through some of the trees.

        Most of the time goes into fetching nodes from memory, so no tree is walked by two cores.
        """
        cast_rows, order = sort_alike(self.trees[0], _cast(rows))

        def found(trees: Sequence[Any]) -> list[NDArray[np.intp]]:
            return [tree.apply(cast_rows) for tree in trees]

        if len(rows) < _WORTH_THREADS:
            places = found(self.trees)
        else:
            size = math.ceil(len(self.trees) / n_cores())
            starts = range(0, len(self.trees), size)
            parts = threads.map(found, [self.trees[start : start + size] for start in starts])
            places = list(itertools.chain.from_iterable(parts))
        leaves, first = self._joined_leaves
        shares = leaves.take(np.stack(places) + first, axis=0)
        # A sum over the first axis is taken in its order, as scikit-learn takes it.
        return _back(shares.sum(axis=0) / len(self.trees), order)

    @cached_property
    def _joined_leaves(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The leaves of all trees as one array, and where each tree's begin."""
        counts = [len(leaf) for leaf in self.leaves]
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
        return np.concatenate(self.leaves), first[:, None]


def _cast(rows: Rows) -> NDArray[np.float32]:
    """Rows as scikit-learn casts them."""
    return np.ascontiguousarray(rows, dtype=np.float32)


def _back(shares: NDArray[np.float64], order: NDArray[np.intp] | None) -> NDArray[np.float64]:
    if order is None:
        return shares
    unsorted = np.empty_like(shares)
    unsorted[order] = shares
    return unsorted


def _fit_forest(
    rows: Rows, labels: Labels, rng: np.random.Generator, on_step: OnStep, size: int
) -> tuple[_Scorer, int]:
    from sklearn.ensemble import RandomForestClassifier

    on_step(0.0, f"growing {_N_TREES} trees")
    seed = int(rng.integers(2**31))
    forest = RandomForestClassifier(_N_TREES, random_state=seed, n_jobs=n_cores())
    forest.fit(rows, labels)
    on_step(1.0, f"grew {_N_TREES} trees")
    return _Forest.of(forest), len(rows)


def _tree(
    n_columns: int,
    depth: int,
    feature: NDArray[Any],
    threshold: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    leaf: NDArray[Any],
) -> Any:
    """A tree of scikit-learn with these nodes, by the state that copying and storing it use."""
    from sklearn.tree._tree import Tree

    tree = Tree(n_columns, np.array([2], dtype=np.intp), 1)
    state = tree.__getstate__()
    nodes = np.zeros(len(feature), dtype=state["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = left, right
    nodes["feature"], nodes["threshold"] = feature, threshold
    values = np.ascontiguousarray(leaf[:, None, :])
    tree.__setstate__(
        {**state, "max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    )
    return tree


# -- the support vector machine -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Machine:
    """An RBF machine as matrices: margin = sum over vectors of weight x exp(-gamma x distance^2).

    In float64, since the weighted sum cancels: in float32 a margin would be off by 1e-3, and
    decisions near the boundary would depend on the batch.
    """

    vectors: NDArray[np.float64]
    weights: NDArray[np.float64]
    intercept: float
    gamma: float

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> _Machine:
        return _Machine(
            arrays["vectors"],
            arrays["weights"],
            float(arrays["intercept"]),
            float(arrays["gamma"]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "vectors": self.vectors,
            "weights": self.weights,
            "intercept": np.array(self.intercept),
            "gamma": np.array(self.gamma),
        }

    def score(self, rows: Rows, favorable_column: int) -> Scores:
        threads = _numpy_threads(os.getpid())
        with _single_threaded_products():
            return _spread(threads, rows, lambda p: from_margin(self._margins(p), favorable_column))

    @cached_property
    def _right(self) -> NDArray[np.float64]:
        """One product gives squared distances: (x, |x|^2, 1) . (-2s, 1, |s|^2)."""
        squares = (self.vectors**2).sum(axis=1)
        return np.column_stack([-2 * self.vectors, np.ones(len(squares)), squares]).T.copy()

    def _margins(self, rows: Rows) -> NDArray[np.float64]:
        tile_rows, tile_vectors = 1024, 256  # 2 MB, which a core's cache holds
        left = np.column_stack([rows, (rows**2).sum(axis=1), np.ones(len(rows))])
        margins = np.full(len(rows), self.intercept)
        kernel = np.empty(tile_rows * tile_vectors)
        for start in range(0, len(rows), tile_rows):
            part = left[start : start + tile_rows]
            for first in range(0, len(self.weights), tile_vectors):
                weights = self.weights[first : first + tile_vectors]
                tile = kernel[: len(part) * len(weights)].reshape(len(part), len(weights))
                np.matmul(part, self._right[:, first : first + tile_vectors], out=tile)
                np.multiply(tile, -self.gamma, out=tile)
                np.exp(tile, out=tile)
                margins[start : start + tile_rows] += tile @ weights
        return margins


def _fit_machine(
    rows: Rows, labels: Labels, rng: np.random.Generator, on_step: OnStep, size: int
) -> tuple[_Scorer, int]:
    from sklearn.svm import SVC

    chosen = np.arange(len(rows))
    if len(rows) > _SVM_ROWS:
        chosen = np.sort(rng.choice(len(rows), _SVM_ROWS, replace=False))
    on_step(0.0, f"fitting an SVM to {len(chosen):,} rows")
    variance = rows[chosen].var()
    gamma = 1.0 / (rows.shape[1] * variance) if variance else 1.0  # scikit-learn's "scale"
    machine = SVC(C=1.0, kernel="rbf", gamma=gamma, cache_size=1000)
    machine.fit(rows[chosen], labels[chosen])
    on_step(1.0, f"fitted an SVM to {len(chosen):,} rows")
    vectors, weights = machine.support_vectors_, machine.dual_coef_[0]
    return _Machine(vectors, weights, float(machine.intercept_[0]), gamma), len(chosen)


# -- several cores ------------------------------------------------------------------------


def _spread(threads: ThreadPoolExecutor, rows: Rows, score: Callable[[Rows], Scores]) -> Scores:
    """The scores of rows, stretch by stretch on all cores.

    Stretches are whole chunks, so that no row's score depends on the number of cores.
    """
    n_chunks = math.ceil(len(rows) / _CHUNK)
    size = min(_CHUNK * max(1, math.ceil(n_chunks / n_cores())), _MOST_ROWS_A_TASK)
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return np.concatenate([np.empty(0), *threads.map(score, parts)])


@cache
def _numpy_threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process; a fork has none of them, and so gets its own."""
    return ThreadPoolExecutor(n_cores(), "limi-numpy")


@cache
def _torch_threads(process: int) -> ThreadPoolExecutor:
    """Such threads, in each of which torch uses one core.

    The layers are small. Torch would split each product over all cores and wait for the slowest
    after every one, which on a busy machine takes many times as long.
    """
    import torch

    n, before = n_cores(), torch.get_num_threads()
    pool = ThreadPoolExecutor(n, "limi-torch")
    all_started = threading.Barrier(n)

    def settle(_: int) -> None:
        torch.get_num_threads()  # a thread's first call takes the process's number
        torch.set_num_threads(1)
        all_started.wait()

    list(pool.map(settle, range(n)))
    torch.set_num_threads(before)
    return pool


@contextmanager
def _single_threaded_products() -> Iterator[None]:
    """numpy's matrix products on the calling core: the rows are spread over the cores already."""
    with _BLAS_LOCK, _blas().limit(limits=1, user_api="blas"):
        yield


_BLAS_LOCK = threading.Lock()  # the limit is the process's: two callers would undo each other's


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# -- the cache ----------------------------------------------------------------------------


def _read(stem: Path, wanted: dict[str, Any]) -> tuple[_Scorer, Info] | None:
    """The model kept at a place, or None: absent, made otherwise, or damaged."""
    about, packed = stem.with_suffix(".json"), stem.with_suffix(".npz")
    if not about.exists():
        return None
    try:
        kept = json.loads(about.read_text(encoding="utf-8"))
        other = [name for name, value in wanted.items() if kept.get(name) != value]
        if other:
            _log.info(
                "the cached %s was made with a different %s; training it again", stem.name, other[0]
            )
            return None
        content = packed.read_bytes()
        if _sha256(content) != kept["arrays_sha256"]:
            raise ValueError("its arrays are not those that were written")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _SCORERS[wanted["kind"]](arrays), Info(**kept["info"])
    except LimiError:
        raise
    # What a damaged file raises is as manifold as damage; training again repairs all of it.
    except Exception as error:
        _log.warning("the cached %s cannot be read (%s); training it again", stem.name, error)
        return None


def _write(stem: Path, wanted: dict[str, Any], model: BenchmarkModel) -> None:
    """Keep a model: arrays first, then the text that names their sum, each renamed into place."""
    packed = io.BytesIO()
    np.savez(packed, **model.scorer.arrays())  # type: ignore[arg-type]
    content = packed.getvalue()
    about = {**wanted, "arrays_sha256": _sha256(content), "info": asdict(model.info)}
    try:
        make_folder(stem.parent)
        write_file(stem.with_suffix(".npz"), content)
        write_file(stem.with_suffix(".json"), json.dumps(about, indent=1))
    except LimiError as error:
        _log.warning("the model %s is not kept: %s", stem.name, error)


_SCORERS: dict[str, Callable[[dict[str, NDArray[Any]]], _Scorer]] = {
    "dnn": _Network.from_arrays,
    "rf": _Forest.from_arrays,
    "svm": _Machine.from_arrays,
}


def _sha256(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _versions(*packages: str) -> dict[str, str]:
    return {name: metadata.version(name) for name in packages}
