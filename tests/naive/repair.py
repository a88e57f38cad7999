"""Labels and training rows of a repair, one row at a time."""

from tests.naive.check import side


def vote(score, schema, row):
    """1 where most protected combinations bring the favorable decision; even: the mean score."""
    scores = []
    for values in schema.combinations:
        twin = row.copy()
        twin[schema.protected_index] = values
        scores.append(float(score(twin[None])[0]))
    favorable = sum(side(s) > 0 for s in scores)
    if 2 * favorable == len(scores):
        return int(side(sum(scores) / len(scores)) > 0)
    return int(2 * favorable > len(scores))


def average_odds_gap(decided, labels, privileged):
    """Mean absolute gap in false and true favorable rates, counted row by row."""
    gaps = []
    for actual in (0, 1):
        rates = []
        for wanted in (True, False):
            mine = [
                d
                for d, y, p in zip(decided, labels, privileged, strict=True)
                if y == actual and p == wanted
            ]
            rates.append(sum(mine) / len(mine))
        gaps.append(abs(rates[0] - rates[1]))
    return sum(gaps) / 2
