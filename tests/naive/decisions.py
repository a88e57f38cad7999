"""Decision rules, one pair of outputs at a time."""

from limi.decisions import EDGE, PRECISION


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


def classes_differ(shares: list[float], others: list[float]) -> bool:
    """Are two rows' most probable classes different, and both ahead of the next?"""
    places = []
    for row in (shares, others):
        place = max(range(len(row)), key=row.__getitem__)
        rival = max(share for other, share in enumerate(row) if other != place)
        if (row[place] - rival) / (row[place] + rival) / 2 <= EDGE:
            return False
        places.append(place)
    return places[0] != places[1]


def numbers_differ(one: float, other: float, least: float, relative: bool) -> bool:
    """Are two numbers further apart than allowed, by more than rounding?"""
    low, high = sorted([abs(one), abs(other)])
    return abs(one - other) > (least * low if relative else least) + PRECISION * high


def bands_apart(one: float, other: float, cuts: list[float]) -> int:
    """How many bands two numbers are apart; 0 where one is within rounding of a cut."""
    if any(abs(x - cut) <= PRECISION * abs(cut) for x in (one, other) for cut in cuts):
        return 0
    return abs(sum(one >= cut for cut in cuts) - sum(other >= cut for cut in cuts))


def bands_spanned(numbers: list[float], cuts: list[float]) -> int:
    """How many bands numbers span, from the lowest to the highest; all are clear of the cuts."""
    bands = [sum(number >= cut for cut in cuts) for number in numbers]
    return max(bands) - min(bands) + 1
