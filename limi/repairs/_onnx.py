"""An averaged classifier as one ONNX graph, in which the model's own graph is asked once for all
partners of all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput, missing
from limi.models._averaged import LEAST_SHARE, AveragedClassifier
from limi.system.foreign import reason

__all__ = ["export"]

_OPSET = 19  # the first that compares text
_MOST_NODES = 20_000
_INNER = "asked_"
_MISSING_TEXT = ("nan", "None", "<NA>")  # as limi and skl2onnx spell a missing cell of text


def export(model: AveragedClassifier, example: Any) -> bytes:
    """The graph as bytes; `example` is a row or more as the model takes them."""
    try:
        import onnx.compose
        import skl2onnx  # noqa: F401
    except ImportError:
        raise missing("skl2onnx", "export", "writing an ONNX model") from None
    if model.reads == "margin":
        raise InvalidInput(
            f"{type(model.model).__name__} returns no probabilities, and limi does not write "
            "margins as ONNX; the model is in the skops file"
        )
    inner = _convert(model.model, example)
    graph = _Graph(onnx.compose.add_prefix(inner, _INNER), model)
    made = graph.build()
    onnx.checker.check_model(made)
    content: bytes = made.SerializeToString()
    return content


def _convert(estimator: Any, example: Any) -> Any:
    """The graph of the model inside: one input per column for frames, else one for all."""
    from onnx import version_converter
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        types: list[Any] = [("X", FloatTensorType([None, int(estimator.n_features_in_)]))]
    else:
        types = [
            (name, (FloatTensorType if _is_number(example[name]) else StringTensorType)([None, 1]))
            for name in map(str, names)
        ]
    try:
        with _plain_numbers():
            made = convert_sklearn(
                estimator,
                initial_types=types,
                target_opset={"": _OPSET, "ai.onnx.ml": 3},
                options={id(estimator): {"zipmap": False}},
            )
        return version_converter.convert_version(made, _OPSET)
    except Exception as error:
        raise InvalidInput(
            f"skl2onnx cannot write {type(estimator).__name__} "
            f"({reason(error).partition(' with name=')[0]}); the model is in the skops file"
        ) from error


@contextmanager
def _plain_numbers() -> Iterator[None]:
    """A block in which numpy's numbers are numbers to onnx as well.

    skl2onnx gives it those of boosted trees as they are, mixed with Python's, which onnx refuses
    since it looks at the types of a list.
    """
    from onnx import helper

    make = helper.make_attribute

    def make_attribute(key: str, value: Any, *rest: Any, **told: Any) -> Any:
        if isinstance(value, (list, tuple)):
            value = [one.item() if isinstance(one, np.generic) else one for one in value]
            if {type(one) for one in value} == {bool, int}:
                value = [int(one) for one in value]
        return make(key, value, *rest, **told)

    helper.make_attribute = make_attribute
    try:
        yield
    finally:
        helper.make_attribute = make


def _is_number(series: Any) -> bool:
    return np.asarray(series).dtype.kind in "biuf"


class _Graph:
    """Nodes in front of and behind the model's own graph."""

    def __init__(self, inner: Any, model: AveragedClassifier) -> None:
        self.inner = inner
        self.model = model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.places = {place.name.removeprefix(_INNER): place for place in inner.graph.input}
        self.wide = list(self.places) == ["X"] and not hasattr(model.model, "feature_names_in_")

    @property
    def n_partners(self) -> int:
        return len(self.model.weights)

    def build(self) -> Any:
        """The whole as a model."""
        from onnx import TensorProto, helper

        partners = [self._swap(number) for number in range(self.n_partners)]
        for name in self.places:
            stacked = [partner.get(name, name) for partner in partners]
            self._add("Concat", stacked, _INNER + name, axis=0)
        shares = self._mean(partners)
        label = self._decide(shares)
        if len(self.nodes) > _MOST_NODES:
            raise InvalidInput(
                f"the rules of the table would take {len(self.nodes):,} nodes in an ONNX graph; "
                "the model is in the skops file"
            )
        kind = TensorProto.STRING if self._classes.dtype.kind == "U" else TensorProto.INT64
        graph = helper.make_graph(
            [*self.nodes],
            "averaged",
            [
                helper.make_tensor_value_info(name, place.type.tensor_type.elem_type, _shape(place))
                for name, place in self.places.items()
            ],
            [
                helper.make_tensor_value_info(label, kind, [None]),
                helper.make_tensor_value_info(
                    shares, TensorProto.DOUBLE, [None, len(self._classes)]
                ),
            ],
            [*self.inner.graph.initializer, *self.constants],
        )
        made = helper.make_model(graph, opset_imports=self.inner.opset_import)
        made.ir_version = self.inner.ir_version
        return made

    @property
    def _classes(self) -> NDArray[Any]:
        classes = np.asarray(self.model.classes_)
        return classes.astype(str) if classes.dtype.kind not in "biu" else classes.astype(np.int64)

    # -- in front -----------------------------------------------------------------------

    def _swap(self, number: int) -> dict[str | int, str]:
        """By column, the tensor of its cells in one partner; those that stay are left out."""
        now: dict[Any, str] = {}
        for column, cells in self.model.values.items():
            now[column] = self._fill(column, cells[number])
        for rule in self.model.along:
            column, told = rule["column"], rule["values"][number]
            if not rule["by"]:
                now[column] = self._fill(column, told[0])
                continue
            found = now.get(column) or self._column(column)
            cases = zip(product(*rule["cells"]), told, strict=True)
            for cells, cell in [(cells, cell) for cells, cell in cases if cells != (cell,)]:
                here = self._all_equal(rule["by"], cells, now)
                found = self._add("Where", [here, self._cell(column, cell), found])
            now[column] = found
        if not self.wide:
            return now
        return {**now, "X": self._widen(now)}

    def _widen(self, now: Mapping[Any, str]) -> str:
        """One matrix of the columns of a partner."""
        width = int(self.model.n_features_in_)
        parts = [now.get(place) or self._column(place) for place in range(width)]
        return self._add("Concat", parts, axis=1)

    def _column(self, column: str | int) -> str:
        """(n, 1): a column as it was given."""
        if not self.wide:
            return str(column)
        return self._add("Gather", ["X", self._constant(np.array([int(column)]))], axis=1)

    def _fill(self, column: str | int, cell: Any) -> str:
        """(n, 1): one and the same cell."""
        like = self._add("Shape", [self._column(column)])
        return self._add("Expand", [self._cell(column, cell), like])

    def _cell(self, column: str | int, cell: Any) -> str:
        if self._is_text(column):
            return self._constant(np.array([["nan" if cell is None else str(cell)]], dtype=object))
        number = math.nan if cell is None else float(cell)
        return self._constant(np.array([[number]], dtype=np.float32))

    def _is_text(self, column: str | int) -> bool:
        from onnx import TensorProto

        place = self.places["X" if self.wide else str(column)]
        return bool(place.type.tensor_type.elem_type == TensorProto.STRING)

    def _all_equal(
        self, columns: Sequence[Any], cells: Sequence[Any], now: Mapping[Any, str]
    ) -> str:
        """(n, 1): where all of these columns hold these cells."""
        found = ""
        for column, cell in zip(columns, cells, strict=True):
            own = now.get(column) or self._column(column)
            here = self._equal(column, own, cell)
            found = here if not found else self._add("And", [found, here])
        return found

    def _equal(self, column: str | int, own: str, cell: Any) -> str:
        if cell is not None:
            return self._add("Equal", [own, self._cell(column, cell)])
        if not self._is_text(column):
            return self._add("IsNaN", [own])
        spelled = [self._add("Equal", [own, self._cell(column, t)]) for t in _MISSING_TEXT]
        either = self._add("Or", spelled[:2])
        return self._add("Or", [either, spelled[2]])

    # -- behind -------------------------------------------------------------------------

    def _mean(self, partners: Sequence[Mapping[Any, str]]) -> str:
        """(n, classes): the mean of what the model says of all partners."""
        n_classes = len(self._classes)
        self.nodes.extend(self.inner.graph.node)
        answers = self._add("Cast", [self._answers()], to=11)  # DOUBLE
        if self.model.reads == "log-odds":
            least = self._constant(np.array(LEAST_SHARE))
            answers = self._add("Log", [self._add("Clip", [answers, least])])
        shape = self._constant(np.array([self.n_partners, -1, n_classes]))
        by_partner = self._add("Reshape", [answers, shape])
        counted = self._add("Mul", [by_partner, self._counts(partners)])
        first = self._constant(np.array([0]))
        mean = self._add("ReduceSum", [counted, first], keepdims=0)
        if self.model.reads != "log-odds":  # a sum of floats may pass 1 by a digit
            ends = [self._constant(np.array(end)) for end in (0.0, 1.0)]
            return self._add("Clip", [mean, *ends], "probabilities")
        return self._add("Softmax", [mean], "probabilities", axis=1)

    def _answers(self) -> str:
        label, numbers = (output.name for output in self.inner.graph.output)
        if self.model.reads != "label":
            return str(numbers)
        column = self._add("Reshape", [label, self._constant(np.array([-1, 1]))])
        return self._add("Equal", [column, self._constant(self._spelled())])

    def _spelled(self) -> NDArray[Any]:
        classes = self._classes
        return classes[None].astype(object) if classes.dtype.kind == "U" else classes[None]

    def _counts(self, partners: Sequence[Mapping[Any, str]]) -> str:
        """What each partner counts: (partners, 1, 1), or (partners, n, 1) where some are closed."""
        weights = np.asarray(self.model.weights, dtype=np.float64)
        weights = (weights / weights.sum())[:, None, None]
        if not self.model.closed:
            return self._constant(weights)
        opens = [self._open(number, partner) for number, partner in enumerate(partners)]
        counted, one = self._constant(weights), self._constant(np.array([0]))
        stacked = self._add("Concat", [self._add("Unsqueeze", [o, one]) for o in opens], axis=0)
        weighted = self._add("Mul", [stacked, counted])
        total = self._add("ReduceSum", [weighted, one], keepdims=1)
        some = self._add("ReduceSum", [stacked, one], keepdims=1)
        none = self._constant(np.array(0.0))
        plain = self._add("Where", [self._add("Greater", [some, none]), stacked, counted])
        fair = self._add("Where", [self._add("Greater", [total, none]), weighted, plain])
        return self._add("Div", [fair, self._add("ReduceSum", [fair, one], keepdims=1)])

    def _open(self, number: int, partner: Mapping[Any, str]) -> str:
        """(n, 1): 1.0 where a partner keeps the rules."""
        barred = ""
        for rule in self.model.closed:
            cases = zip(product(*rule["cells"]), rule["values"][number], strict=True)
            for cells in [cells for cells, is_barred in cases if is_barred]:
                here = self._all_equal(rule["by"], cells, partner) if cells else ""
                if not here:
                    return self._add("Mul", [self._ones(), self._constant(np.array(0.0))])
                barred = here if not barred else self._add("Or", [barred, here])
        if not barred:
            return self._ones()
        return self._add("Cast", [self._add("Not", [barred])], to=11)

    def _ones(self) -> str:
        first = next(iter(self.places))
        column = self._column(0 if self.wide else first)
        like = self._add("Shape", [column])
        return self._add("Expand", [self._constant(np.array([[1.0]])), like])

    def _decide(self, shares: str) -> str:
        """(n,): the class with the highest mean, or by the threshold."""
        classes = self._constant(self._spelled()[0])
        if self.model.threshold is None:
            place = self._add("ArgMax", [shares], axis=1, keepdims=0)
            return self._add("Gather", [classes, place], "label", axis=0)
        second = self._add("Gather", [shares, self._constant(np.array(1))], axis=1)
        least = self._constant(np.array(self.model.threshold))
        place = self._add("Cast", [self._add("GreaterOrEqual", [second, least])], to=7)
        return self._add("Gather", [classes, place], "label", axis=0)

    # -- parts --------------------------------------------------------------------------

    def _add(self, kind: str, inputs: Sequence[str], output: str = "", **told: Any) -> str:
        from onnx import helper

        output = output or f"averaged_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **told))
        return output

    def _constant(self, array: NDArray[Any]) -> str:
        from onnx import TensorProto, helper, numpy_helper

        name = f"constant_{len(self.constants)}"
        if array.dtype == object:
            cells: Any = [str(cell).encode() for cell in array.ravel().tolist()]
            made = helper.make_tensor(name, TensorProto.STRING, array.shape, cells)
        else:
            made = numpy_helper.from_array(array, name)
        self.constants.append(made)
        return name


def _shape(place: Any) -> list[Any]:
    sizes = [one.dim_value or None for one in place.type.tensor_type.shape.dim]
    return [None, *sizes[1:]]
