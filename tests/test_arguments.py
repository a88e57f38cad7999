"""Every public function refuses what its signature does not name, in one sentence."""

import inspect

import numpy as np
import pandas as pd
import pytest

import limi
from limi.audits.compare import compare
from limi.errors import InvalidInput
from limi.system.arguments import _fits, _hints

FRAME = pd.DataFrame({"age": [20, 30, 40] * 20, "sex": ["f", "m"] * 30, "ok": [0, 1, 1] * 20})


def model(frame):
    return np.where(frame["sex"] == "m", 0.8, 0.2)


NEEDED = {
    "model": model,
    "target": None,
    "frame": FRAME,
    "protected": "sex",
    "rules": ["real_rate <= 1 %"],
    "run": "nowhere",
    "before": "nowhere",
    "folder": "nowhere",
    "result": "nowhere",
    "methods": ["real"],
}
FUNCTIONS = [
    *(limi.audit, limi.gate, limi.certify, limi.replay, limi.diff, limi.repair, limi.average),
    *(limi.reopen, limi.audit_images, compare),
]


def checkable(function):
    """The parameters that not every object fits."""
    hints = _hints(function)
    return [name for name, hint in hints.items() if not _fits(hint, object())]


@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function in FUNCTIONS for name in checkable(function)],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
def test_a_value_of_another_type_is_refused_by_its_name(function, name):
    parameters = inspect.signature(function).parameters
    needed = {one: NEEDED[one] for one in NEEDED if one in parameters}
    with pytest.raises(InvalidInput, match=f"^{name} is .*; it must be "):
        function(**needed | {name: object()})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (limi.Budget, limi.Remote, limi.Out)
        for name in inspect.signature(kind).parameters
    ],
)
def test_so_is_a_value_of_an_object_that_is_passed(kind, name):
    needed = {"path": "run"} if kind is limi.Out else {}
    with pytest.raises(InvalidInput, match=f"^{name} is .*; it must be "):
        kind(**needed | {name: object()})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("protected", value) for value in (None, 3)),
        *(("seed", value) for value in (None, "abc", 1.5, -1, True)),
        *(("max_rows", value) for value in ("1000", 1.5, -5, 0)),
        *(("rate_rows", value) for value in (-1, "all")),
        *(("max_batch", value) for value in (0, -1)),
        *(("max_queries", value) for value in (-3, "many")),
        *(("max_findings", value) for value in (0, 2.5)),
        *(("volume", value) for value in (0, -4, "x")),
        *(("max_seconds", value) for value in (0, -1, "soon")),
        ("device", None),
        ("twin", "yes"),
    ],
)
def test_slips_of_the_hand_are_one_sentence(name, value):
    with pytest.raises(InvalidInput, match=rf"(?i){name.replace('_', '.')}"):
        limi.audit(model, FRAME, **{"protected": "sex", "output": "score", name: value})


def test_rules_and_what_a_result_is_asked():
    with pytest.raises(InvalidInput, match=r"^rules is None"):
        limi.gate(model, FRAME, None, protected="sex")
    result = limi.audit(
        model, FRAME, protected="sex", output="score", method="real", rate_rows=0, redact=False
    )
    for name, asked in (
        ("volume", lambda: result.metrics(volume="x")),
        ("n", lambda: result.representative("all")),
        ("n", lambda: result.ranked(1.5)),
        ("rule", lambda: result.inside("age > 3", FRAME)),
        ("column", lambda: result.what_if(3)),
    ):
        with pytest.raises(InvalidInput, match=f"^{name} is "):
            asked()
