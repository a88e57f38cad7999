"""Two models on the same people: person by person, straight from the definitions."""

from __future__ import annotations

from tests.naive.what_if import mcnemar


def compare(before, after):
    """Rows, flips before and after, those gone and new, and the exact chance of such a split."""
    pairs = list(zip(before, after, strict=True))
    gone = sum(1 for had, has in pairs if had and not has)
    new = sum(1 for had, has in pairs if has and not had)
    flipped = sum(1 for had, _ in pairs if had), sum(1 for _, has in pairs if has)
    return len(pairs), *flipped, gone, new, float(mcnemar(gone, new))
