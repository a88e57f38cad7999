"""Random numbers by counting: the number of a latent and a seed give it, in any order, anywhere.

SplitMix64 in 64-bit integers that wrap, so that a CPU and a GPU draw the same bits; the normal
numbers are computed in double precision and rounded to single, which hides the last digit in
which their logarithms and cosines differ.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

__all__ = ["mix", "normals", "ranks", "sign"]

Tensor: TypeAlias = Any

_STEP = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, odd
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_LOW = (1 << 32) - 1


def sign(number: int) -> int:
    """The 64-bit integer that has the lowest 64 bits of a number."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def mix(numbers: Any) -> Any:
    """SplitMix64's bits at these places; (n,) int64 arrays or tensors, which are overwritten."""
    numbers *= sign(_STEP)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        numbers ^= (numbers >> shift) & ((1 << 64 - shift) - 1)  # >> copies the sign
        numbers *= sign(factor)
    numbers ^= (numbers >> 31) & ((1 << 33) - 1)
    return numbers


def ranks(seed: int, numbers: Any) -> Any:
    """(n,) int64: a place in a random order for each of these numbers."""
    return mix(numbers + _start(seed + 1))


def normals(seed: int, numbers: Tensor, out: Tensor) -> Tensor:
    """Fill (n, width) float32 with standard normal numbers, those of the n latents so numbered."""
    import torch

    width = out.shape[1]
    pairs = (width + 1) // 2
    within = _start(seed) + torch.arange(pairs, device=numbers.device)
    # On a CPU a few at once, so that the steps between stay in a core's cache.
    size = 512 if numbers.device.type == "cpu" else 1 << 18
    for part in (slice(at, at + size) for at in range(0, len(numbers), size)):
        bits = mix(numbers[part, None] * pairs + within)
        # Both halves of 64 bits are uniform: one is a radius, the other an angle (Box and Muller).
        angle = (bits & _LOW).double().mul_(math.tau * 2.0**-32)
        radius = bits.bitwise_right_shift_(32).bitwise_and_(_LOW).double()
        radius = radius.add_(0.5).mul_(2.0**-32).log_().mul_(-2.0).sqrt_()
        out[part, :pairs] = torch.cos(angle).mul_(radius)
        out[part, pairs:] = angle.sin_().mul_(radius)[:, : width - pairs]
    return out


def _start(seed: int) -> int:
    """Where the counting of a seed begins; two of them hardly ever lie near each other."""
    return int(mix(np.array([sign(seed)]))[0])
