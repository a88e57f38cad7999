"""Averaging row by row, from the words of the definition: everybody's partners by the rules, those
that keep them, and the weighted mean of what a model says of these."""

import numpy as np

from limi.table.partners import change


def average(score, schema, rows, combinations, weights):
    """The averaged score of rows that keep all rules themselves."""
    answers = []
    for row in rows:
        total = counted = 0.0
        for cells, weight in zip(combinations, weights, strict=True):
            partner = change(schema, row[None], np.array([cells]))
            if schema.enforcer.breaks(partner)[0]:
                continue
            total += weight * score(partner)[0]
            counted += weight
        answers.append(total / counted)
    return np.array(answers)
