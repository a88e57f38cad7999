"""Decision rules, one pair of outputs at a time."""

from limi.decisions import EDGE


def flips_at_threshold(mine: float, other: float, threshold: float) -> bool:
    """Do two scores lie on either side of a threshold, both clear of its edge?"""
    low, high = min(mine, other), max(mine, other)
    return low < threshold - EDGE and high > threshold + EDGE
