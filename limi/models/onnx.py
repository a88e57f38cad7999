"""ONNX graphs, as `onnx:FILE.onnx`: one matrix of numbers as input, or one input per column."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.decisions import Classes, favors
from limi.errors import BadModel, MissingDependency, missing
from limi.models import _weights
from limi.models._base import Answers, Decision, Takes, ignore
from limi.models._files import existing, output_kind, split_options, unreadable
from limi.models._offers import ModelOffers
from limi.models._scores import Outputs, take_side
from limi.types import Mask, Scores

__all__ = ["OnnxModel", "load", "open_graph"]


def _all_files(path: Path) -> list[Path]:
    """The graph's file, and those beside it that hold its weights."""
    return [path, *_weights.beside(path)]


OFFERS = ModelOffers(
    data_only=True, endings=(".onnx",), library="onnxruntime", all_files=_all_files
)

# As it is loaded onnxruntime would put an identifier into the user's home and report to its maker;
# whoever wants that sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_OLDEST = (1, 24)

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.str_,
}
_LABELS = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")
_NUMBERS = ("tensor(float)", "tensor(double)")


@dataclass(frozen=True)
class OnnxModel:
    """Score rows with a graph.

    A label among the graph's outputs decides, and probabilities beside it say how clearly. A
    missing cell of a text input is given as its own text ("nan", "None"), which is how skl2onnx
    writes the category that stands for it, or as the option `missing` says.
    """

    session: Any
    answers: Answers
    outputs: Outputs  # reads a graph that gives numbers alone
    missing: str | None = None
    notes: tuple[str, ...] = ()
    file: str = ""

    @property
    def takes(self) -> Takes:
        """A matrix where the graph has one input of numbers for all columns."""
        inputs = self.session.get_inputs()
        return "matrix" if _is_wide(inputs) and inputs[0].type != "tensor(string)" else "frame"

    @property
    def columns(self) -> Sequence[str] | None:
        """The names of the graph's inputs, one per column."""
        inputs = self.session.get_inputs()
        return None if _is_wide(inputs) else [i.name for i in inputs]

    @property
    def n_columns(self) -> int | None:
        """The width of the graph's only input, where it is fixed."""
        inputs = self.session.get_inputs()
        width = inputs[0].shape[1] if _is_wide(inputs) else len(inputs)
        return width if isinstance(width, int) else None

    def reopened(self) -> OnnxModel:
        """The same graph in a session of this process, because threads do not outlive a fork."""
        return replace(self, session=open_graph(self.file))

    def score(self, inputs: Any) -> Scores:
        """Scores of the favorable class."""
        labels, numbers = self._run(inputs)
        if labels is None:
            return self._numbers(numbers, len(inputs))
        if isinstance(self.answers.decision.rule, Classes):
            return self._classes(labels, numbers)
        favors = self.answers.favors(labels)
        if isinstance(numbers, list):
            return take_side(self._numbers(numbers, len(inputs)), favors)
        many = self.answers.decision.is_of_many
        width = len(self.answers.decision.numbered)
        if numbers is None or numbers.ndim != 2 or numbers.shape[1] != width:
            return favors.astype(np.float64)
        if many:
            return take_side(self._read_classes(self.answers.decision.ordered, numbers), favors)
        # The graph does not say which column is which class; the label of each row does.
        second = Outputs(1).read(numbers, len(inputs))
        strength = np.maximum(second, 1 - second)
        return take_side(np.where(favors, strength, 1 - strength), favors)

    def _classes(self, labels: NDArray[Any], numbers: Any) -> Scores:
        """Answers of a rule of classes: the graph's label, and how far it is ahead."""
        decision, places = self.answers.decision, self.answers.places(labels)
        if isinstance(numbers, list):
            told = self._numbers(numbers, len(labels))
        elif numbers is not None and numbers.shape[1:] == (len(decision.numbered),):
            told = self._read_classes(decision.ordered, numbers)
        else:
            return places
        return np.where(decision.rule.contradicts(told, places), places, told)

    def decide(self, inputs: Any) -> Any:
        """Where the graph's label is the favorable one; by a rule of classes, which it is."""
        labels, numbers = self._run(inputs)
        decision = self.answers.decision
        if decision.for_numbers:
            return np.zeros(len(inputs), dtype=bool)
        if isinstance(decision.rule, Classes):
            told = self._numbers(numbers, len(inputs)) if labels is None else None
            return np.floor(self.answers.places(labels) if told is None else told)
        if labels is None:
            decided: Mask = favors(self._numbers(numbers, len(inputs)))
            return decided
        return self.answers.favors(labels)

    def settle(self, inputs: Any, on_asked: Callable[[int], None] = ignore) -> OnnxModel:
        """The same graph with the kind of its numbers settled."""
        on_asked(len(inputs))
        labels, numbers = self._run(inputs)
        if labels is not None and self.answers.decision.rule.kind != "favorable":
            return self
        if labels is not None:
            self.answers.favors(labels)
            seen = sorted(set(np.asarray(labels).tolist()))
            many = self.answers.decision.is_of_many
            notes = self.answers.decision.notes(seen) if len(seen) == 2 and not many else ()
            return replace(self, notes=notes)
        if isinstance(numbers, list):
            return self
        return replace(self, outputs=self.outputs.settle(numbers))

    def _run(self, inputs: Any) -> tuple[NDArray[Any] | None, Any]:
        """Labels and numbers of the graph, each where it gives them."""
        labels, numbers = _roles(self.session)
        wanted = [name for name in (labels, numbers) if name is not None]
        found = dict(zip(wanted, self.session.run(wanted, self._feed(inputs)), strict=True))
        answered = None if labels is None else found[labels].reshape(-1)
        return answered, None if numbers is None else found[numbers]

    def _numbers(self, numbers: Any, n: int) -> Scores:
        if not isinstance(numbers, list):
            return self.outputs.read(numbers, n)
        classes = list(numbers[0])  # one map from class to probability per row
        cells = chain.from_iterable(map(dict.values, numbers))
        pairs = np.fromiter(cells, np.float64, n * len(classes)).reshape(n, -1)
        return self._read_classes(classes, pairs)

    def _read_classes(self, classes: Sequence[Any], numbers: NDArray[Any]) -> Scores:
        """Scores of one number for each of these classes."""
        favored = self.answers.decision.favored(classes)
        width = numbers.shape[1]
        return Outputs(favored, self.outputs.kind, width).read(numbers, len(numbers))

    def _feed(self, inputs: Any) -> dict[str, NDArray[Any]]:
        graph = self.session.get_inputs()
        if isinstance(inputs, np.ndarray):
            return {graph[0].name: _cast(inputs, graph[0].type, "the table")}
        import narwhals as nw

        frame = nw.from_native(inputs, eager_only=True)
        named = [(name, frame.get_column(name)) for name in frame.columns]
        if _is_wide(graph):
            cells = [self._text(series) for _, series in named]
            return {graph[0].name: np.stack(cells, axis=1)}
        return {
            place.name: (
                self._text(series)
                if place.type == "tensor(string)"
                else _cast(series.to_numpy(), place.type, f"column {name!r}")
            ).reshape((-1, 1) if len(place.shape) == 2 else -1)
            for place, (name, series) in zip(graph, named, strict=True)
        }

    def _text(self, series: Any) -> NDArray[Any]:
        cells = np.asarray(series.to_native(), dtype=object)
        if self.missing is not None:
            cells = np.where(series.is_null().to_numpy(), self.missing, cells)
        return cells.astype(np.str_).astype(object)


def load(place: str, decision: Decision) -> OnnxModel:
    """The graph of a .onnx file."""
    file, options = split_options(place, ("output", "missing"))
    session = open_graph(file)
    _check(session)
    alone = _roles(session)[0] is None and "map" not in _types(session)
    output = output_kind(options.get("output"))
    return OnnxModel(
        session,
        Answers(decision),
        decision.outputs(output) if alone else Outputs(1, output),
        missing=options.get("missing"),
        file=str(Path(file)),
        notes=decision.output_notes() if alone else (),
    )


def open_graph(file: str) -> Any:
    """A session that runs the graph of a file, which may read the weights beside it and no more."""
    path = existing(file, "onnx", OFFERS.endings)
    try:
        import onnxruntime
    except ImportError:
        raise missing("onnxruntime", "onnx", "running an ONNX model") from None
    _check_version(onnxruntime.__version__)
    _weights.beside(path)  # named now, where the graph reads what it must not
    try:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise unreadable(file, "an ONNX model", error) from error


def _check_version(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise MissingDependency(
            f"running an ONNX model needs onnxruntime {_OLDEST[0]}.{_OLDEST[1]} or later, but "
            f"{version} is installed, which would read any file that a graph names; try: pip "
            "install --upgrade 'limi[onnx]'"
        )


def _check(session: Any) -> None:
    inputs = session.get_inputs()
    strange = [i.type for i in inputs if i.type not in _DTYPES]
    if not inputs or strange:
        raise BadModel(
            f"the graph's inputs are {strange or 'none'}; limi can pass numbers, booleans and text"
        )
    grouped = [] if _is_wide(inputs) else [i.name for i in inputs if not _is_column(i)]
    if grouped:
        raise BadModel(
            f"the graph's input {grouped[0]!r} takes several columns and does not say which; "
            "convert the model with one input per column, or one matrix for all"
        )
    if not any(_roles(session)):
        raise BadModel("the graph gives neither a label nor probabilities")


def _is_column(place: Any) -> bool:
    return len(place.shape) == 1 or (len(place.shape) == 2 and place.shape[1] == 1)


def _is_wide(inputs: Sequence[Any]) -> bool:
    return len(inputs) == 1 and len(inputs[0].shape) == 2 and inputs[0].shape[1] != 1


def _types(session: Any) -> str:
    return " ".join(output.type for output in session.get_outputs())


def _roles(session: Any) -> tuple[str | None, str | None]:
    """Names of the output with labels and of the one with numbers."""
    outputs = session.get_outputs()
    labels = [o.name for o in outputs if o.type in _LABELS]
    maps = [o.name for o in outputs if o.type.startswith("seq(map(")]
    numbers = [o.name for o in outputs if o.type in _NUMBERS]
    likely = [name for name in numbers if "prob" in name.lower()]
    return next(iter(labels), None), next(iter([*maps, *likely, *numbers]), None)


def _cast(cells: NDArray[Any], kind: str, where: str) -> NDArray[Any]:
    dtype = np.dtype(_DTYPES[kind])
    if dtype.kind in "ib" and cells.dtype.kind in "fO":
        numbers = cells.astype(np.float64)
        if np.isnan(numbers).any():
            raise BadModel(
                f"{where} has missing cells, but the graph takes {kind}, which cannot hold them; "
                "convert the model with a float input, or fill the cells"
            )
        cells = numbers
    return cells.astype(dtype, copy=False)
