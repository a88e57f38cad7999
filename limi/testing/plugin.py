"""The plug-in of pytest: a fixture that audits a model once for all tests of a session.

It costs nothing where no test asks for it: limi itself is imported with the first call.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from limi.audits.result import Result

__all__ = ["limi_audit"]


class Audit(Protocol):
    """`limi.audit`, whose results are kept."""

    def __call__(self, model: Any, frame: Any, **options: Any) -> Result:
        """The result for a model, a frame and options, asked once."""
        ...


@pytest.fixture(scope="session")
def limi_audit() -> Audit:
    """`limi.audit(model, frame, protected=..., ...)`, asked once in a session: the same model,
    frame and options give the same result again."""
    # The objects stay with their results, so that no other object gets the number of one.
    kept: dict[Any, tuple[Any, Result]] = {}

    def audit(model: Any, frame: Any, **options: Any) -> Result:
        import limi

        key = (_mark(model), _mark(frame), _mark(dict(sorted(options.items()))))
        if key not in kept:
            result = limi.audit(model, frame, **options)
            kept[key] = ((model, frame, options), result)
        return kept[key][1]

    return audit


def _mark(value: Any) -> Any:
    """What tells a plain value or an object apart from others."""
    if isinstance(value, (str, int, float, NoneType)):
        return (type(value).__name__, value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_mark, value))
    if isinstance(value, dict):
        return tuple((_mark(name), _mark(inner)) for name, inner in value.items())
    return id(value)
