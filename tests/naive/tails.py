"""The tail beyond a sample, by trying shapes and scales one by one."""

from __future__ import annotations

import math


def likelihood(excesses: list[float], shape: float, scale: float) -> float:
    """The log-likelihood of a generalised Pareto distribution; -inf where one lies beyond it."""
    total = 0.0
    for excess in excesses:
        inner = 1 + shape * excess / scale
        if inner <= 0:
            return -math.inf
        if shape == 0:
            total += -math.log(scale) - excess / scale
        else:
            total += -math.log(scale) - (1 + 1 / shape) * math.log(inner)
    return total


def level(shape: float, scale: float, times: float) -> float:
    """The excess that is so many times rarer than the threshold."""
    if shape == 0:
        return scale * math.log(times)
    return scale * (times**shape - 1) / shape


def best(
    excesses: list[float], times: float, shapes: list[float], scales: list[float]
) -> tuple[float, float, float]:
    """The level of the best curve, and the lowest and highest level of those that are at most half
    of 5.991 worse, which is the 95 % region of two parameters."""
    tried = [
        (likelihood(excesses, shape, scale), level(shape, scale, times))
        for shape in shapes
        for scale in scales
    ]
    highest, value = max(tried)
    held = [reached for told, reached in tried if told >= highest - 5.991 / 2]
    return value, min(held), max(held)
