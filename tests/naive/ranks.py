"""Ranks by counting, target by target."""


def mean_ranks(table, more_is_better=True):
    """Of rows of numbers; a None is worse than all, and Nones tie."""
    n_methods = len(table[0])
    totals = [0.0] * n_methods
    for line in table:
        for mine in range(n_methods):
            better = equal = 0
            for other in range(n_methods):
                sign = _compare(line[other], line[mine], more_is_better)
                better += sign > 0
                equal += sign == 0
            # The mean of the places that the equal ones share, of which it is one itself.
            totals[mine] += better + (equal + 1) / 2
    return [total / len(table) for total in totals]


def _compare(a, b, more_is_better):
    if a is None or b is None:
        return (b is None) - (a is None)
    sign = (a > b) - (a < b)
    return sign if more_is_better else -sign
