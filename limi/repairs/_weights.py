"""What averaging is asked for, as one writes it on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from limi.errors import InvalidInput
from limi.repairs._partner_table import Weights

__all__ = ["parse_weights"]

_EXAMPLE = "sex=Male:0.5,Female:0.5"


def parse_weights(given: Sequence[str]) -> Weights:
    """`table`, `uniform`, or `COLUMN=VALUE:SHARE,VALUE:SHARE` once for each column.

    >>> parse_weights(["sex=Male:0.5,Female:0.5"])
    {'sex': {'Male': 0.5, 'Female': 0.5}}
    """
    if not given:
        return "table"
    if len(given) == 1 and given[0] in ("table", "uniform"):
        return given[0]
    found: dict[str, dict[str, float]] = {}
    for text in given:
        column, is_column, told = text.partition("=")
        if not is_column or not column or column in found:
            raise InvalidInput(
                f"--weights is {text!r}; give table, uniform, or the share of every value of each "
                f"column, such as {_EXAMPLE}"
            )
        pairs = [_share(column, one) for one in told.split(",")]
        found[column] = dict(pairs)
        if len(found[column]) < len(pairs):
            raise InvalidInput(
                f"--weights is {text!r}, which names a value twice; give each its share once, such "
                f"as {_EXAMPLE}"
            )
    return {**found}


def _share(column: str, text: str) -> tuple[str, float]:
    value, _, share = text.rpartition(":")
    try:
        return value, float(share)
    except ValueError:
        raise InvalidInput(
            f"--weights gives {column!r} {text!r}; write a colon and its share after each value, "
            f"such as {_EXAMPLE}"
        ) from None
