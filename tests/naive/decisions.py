"""Decision rules, one pair of outputs at a time."""

from limi.decisions import EDGE


def flips_at_threshold(mine: float, other: float, threshold: float) -> bool:
    """Do two scores lie on either side of a threshold, both clear of its edge?"""
    low, high = min(mine, other), max(mine, other)
    return low < threshold - EDGE and high > threshold + EDGE


def side_of_classes(shares: list[float], favorable: set[int]) -> int:
    """1 where a favorable class is the most probable, -1 where another is, 0 on the edge."""
    mine = max(share for place, share in enumerate(shares) if place in favorable)
    other = max(share for place, share in enumerate(shares) if place not in favorable)
    middle = (mine - other) / (2 * (mine + other))
    return 0 if abs(middle) <= EDGE else 1 if middle > 0 else -1
