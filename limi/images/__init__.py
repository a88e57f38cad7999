"""Images: twins of the other group, made by a generator, beside placebos as far away.

Counting decisions that flip between such twins says little, because random moves of the same size
flip them too. So every audit here has a floor, the same cases moved as far in random directions;
keeps what the decision should depend on; and reports the signed effect, with the smallest that it
would have seen.
"""

from __future__ import annotations

from limi.images._base import ImageGenerator, Scorer
from limi.images.audit import PRESETS, audit_images
from limi.images.eigenfaces import Eigenfaces
from limi.images.makers import fit, load, save
from limi.images.result import ImageResult
from limi.images.sources import Pictures, read_pictures

__all__ = [
    "PRESETS",
    "Eigenfaces",
    "ImageGenerator",
    "ImageResult",
    "Pictures",
    "Scorer",
    "audit_images",
    "fit",
    "load",
    "read_pictures",
    "save",
]
