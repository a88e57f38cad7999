"""Faces made of a few strokes, whose attributes are known: small, quick, and no one's."""

import numpy as np

from lab.kinds.images import draw_faces as draw

__all__ = ["GROUPS", "draw", "look_at_mouth", "pictures"]

GROUPS = ("F", "M")


def look_at_mouth(images):
    """A target that looks at the mouth alone."""
    rows = slice(int(0.7 * images.shape[1]), int(0.9 * images.shape[1]))
    columns = slice(int(0.35 * images.shape[2]), int(0.65 * images.shape[2]))
    mouth = images[:, rows, columns, 1].mean(axis=(1, 2))
    chin = images[:, -2:, columns, 1].mean(axis=(1, 2))
    return 1 / (1 + np.exp(-(mouth - chin) / 9))


def pictures(n=800, seed=0):
    """The same as limi reads them."""
    from limi.images import Pictures

    images, labels = draw(n, np.random.default_rng(seed))
    coded = {name: values.astype(np.int8) for name, values in labels.items()}
    values = {"gender": GROUPS, "smile": ("0", "1"), "ground": ("0", "1")}
    return Pictures(images, coded, values)
