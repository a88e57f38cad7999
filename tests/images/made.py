"""Faces made of a few strokes, whose attributes are known: small, quick, and no one's."""

import numpy as np

SIDE = 16
GROUPS = ("F", "M")


def draw(n, rng, side=SIDE):
    """Images with brow (the group), mouth (the smile), ground, and shades that mean nothing."""
    group = rng.integers(0, 2, n)
    smile = (rng.random(n) < np.where(group == 1, 0.35, 0.65)).astype(int)
    ground = rng.integers(0, 2, n)
    rows, columns = np.mgrid[0:side, 0:side] / side
    brow = np.exp(-(((rows - 0.3) / 0.08) ** 2)) * (np.abs(columns - 0.5) < 0.35)
    mouth = np.exp(-(((rows - 0.75 - (columns - 0.5) ** 2) / 0.07) ** 2))
    mouth = mouth * (np.abs(columns - 0.5) < 0.25)
    around = (np.hypot(rows - 0.5, columns - 0.5) > 0.48).astype(float)
    shades = [np.cos(np.pi * (a * rows + b * columns)) for a, b in SHADES]
    light = np.full((n, side, side), 0.5)
    light -= (0.05 + 0.12 * (group + 0.35 * rng.standard_normal(n)))[:, None, None] * brow
    light += (0.12 * (smile - 0.5 + 0.3 * rng.standard_normal(n)))[:, None, None] * mouth
    light += (0.1 * (ground - 0.5 + 0.2 * rng.standard_normal(n)))[:, None, None] * around
    light += np.tensordot(0.012 * rng.standard_normal((n, len(shades))), np.array(shades), 1)
    light += 0.01 * rng.standard_normal(light.shape)
    colours = light[..., None] * np.array([1.0, 0.9, 0.8]) * 255
    labels = {"gender": group, "smile": smile, "ground": ground}
    return np.clip(colours, 0, 255).astype(np.uint8), labels


SHADES = [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2), (3, 0), (0, 3)]


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
