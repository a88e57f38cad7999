"""An assertion on how often decisions flip, on as few questions as decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from limi.errors import InvalidInput, nearest
from limi.gates import Answer, Gate, gate
from limi.report import gate as words
from limi.table.frames import Frame

__all__ = ["assert_flip_rate"]

_POPULATIONS = {"natural": "natural", "real": "real", "held-out": "held_out", "uniform": "uniform"}


def assert_flip_rate(
    model: Any,
    frame: Frame,
    *,
    protected: str | Sequence[str] | Mapping[str, Any],
    at_most: float = 0.01,
    population: str = "natural",
    inconclusive: Literal["fail", "pass"] = "fail",
    **options: Any,
) -> Gate:
    """Fail unless at most a share of people would be decided differently under another protected
    value.

    `at_most` is a share, 0.01 for one in a hundred, of `population`: people that a generator draws
    (`natural`), the table's own (`real`), those of `held_out=`, or `uniform` ones. Rows are asked
    in growing batches until limits that hold at every look decide (see `limi.gate`, which takes
    the other `options`); a wrong answer has a chance of 5 % at most (`error=`). Where the budget
    ends before it is known, the test fails too, unless `inconclusive="pass"`.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if population not in _POPULATIONS:
        raise InvalidInput(
            f"unknown population {population!r}; {nearest(population, _POPULATIONS)}"
        )
    if inconclusive not in ("fail", "pass"):
        raise InvalidInput(f'inconclusive is {inconclusive!r}; it must be "fail" or "pass"')
    if isinstance(at_most, bool) or not isinstance(at_most, (int, float)) or not 0 < at_most < 1:
        raise InvalidInput(
            f"at_most is {at_most!r}; it must be a share between 0 and 1, such as 0.01 for one in "
            "a hundred"
        )
    rule = f"{_POPULATIONS[population]}_rate <= {100 * at_most:.10f} %"
    answer = gate(model, frame, rule, protected=protected, **options)
    if answer.answer == Answer.FAIL or (
        answer.answer == Answer.INCONCLUSIVE and inconclusive == "fail"
    ):
        raise AssertionError(_explain(answer))
    return answer


def _explain(answer: Gate) -> str:
    lines = [words.sentence(answer), *(words.why(judged) for judged in answer.rules)]
    if answer.answer == Answer.INCONCLUSIVE:
        lines.append('Allow more with max_queries=, or pass inconclusive="pass".')
    lines += [f"  {words.example(found, answer)}" for found in answer.examples]
    return "\n".join(lines)
