"""Effect and excess of image trials, case by case, as they are described."""

import math


def logit(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


def effect(trials):
    """Mean over valid twins: the first group's logit less the second's, less the judge's."""
    found = []
    for one in trials:
        if not one["valid"]:
            continue
        gap = logit(one["twin"]) - logit(one["score"])
        if not math.isnan(one["truth"]):
            gap -= logit(one["truth_twin"]) - logit(one["truth"])
        found.append(gap if one["protected"] > 0.5 else -gap)
    return sum(found) / len(found)


def flips(one, side):
    """Does a side's decision differ from the start's, once what the judge of the truth sees change
    is taken off, with the truth kept?"""
    other = logit(one[side])
    if not math.isnan(one["truth"]):
        other -= logit(one[f"truth_{side}"]) - logit(one["truth"])
        if (one["truth"] > 0.5) != (one[f"truth_{side}"] > 0.5):
            return False
    return (one["score"] > 0.5) != (other > 0)


def confirmed(one):
    """Valid, and seen so by the judge."""
    if not one["valid"]:
        return False
    if math.isnan(one["judged"]):
        return True
    return (one["judged"] > 0.5) == (one["protected"] > 0.5) and (one["judged"] > 0.5) != (
        one["judged_twin"] > 0.5
    )


def excess(trials):
    """Share of confirmed twins that flip less the share of their placebos that do."""
    some = [one for one in trials if confirmed(one) and not math.isnan(one["placebo"])]
    mine = sum(flips(one, "twin") for one in some) / len(some)
    other = sum(flips(one, "placebo") for one in some) / len(some)
    return mine, other
