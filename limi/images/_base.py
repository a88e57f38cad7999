"""What the parts of the image room agree on: generators, scorers, and images held to be such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadModel
from limi.models._scores import probabilities, whole
from limi.system.arrays import is_tensor
from limi.system.foreign import at_work, reason
from limi.types import Latents, Scores

__all__ = [
    *("AT_ONCE", "Encodes", "ImageArray", "ImageGenerator", "Images", "Scorer", "ask", "as_array"),
    *("check_decoded", "logits", "parts", "probability"),
]

ImageArray: TypeAlias = NDArray[np.uint8]
"""(n, height, width, 3): red, green and blue."""

Images: TypeAlias = Any
"""An ImageArray, or a tensor of the same shape and type on a device."""

Scorer: TypeAlias = Callable[[Any], Any]
"""Images to scores in [0, 1], one for each; above 0.5 the answer is yes."""

AT_ONCE = 1024  # images that are decoded or scored together
_CLEAREST = 1e-6  # a score nearer to 0 or 1 counts as this near: logits stay finite


@runtime_checkable
class ImageGenerator(Protocol):
    """Latents to images."""

    kind: str

    @property
    def latent_dim(self) -> int:
        """How many numbers a latent has."""
        ...

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """(n, latent_dim): latents of natural images."""
        ...

    def decode(self, latents: Latents) -> Images:
        """One image for each latent."""
        ...


@runtime_checkable
class Encodes(Protocol):
    """A generator that finds the latent of an image."""

    def encode(self, images: ImageArray) -> Latents:
        """One latent for each image."""
        ...


def parts(n: int, size: int = AT_ONCE) -> Iterator[slice]:
    """n places in slices of a fixed size, so that neither memory nor rounding follows n."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def as_array(images: Images) -> ImageArray:
    """Images in the machine's own memory."""
    found: ImageArray = images.cpu().numpy() if is_tensor(images) else images
    return found


def ask(scorer: Scorer, images: Images, name: str) -> Scores:
    """What a scorer says, held to be one score in [0, 1] for each image."""
    with at_work(lambda error: BadModel(f"the {name} raised {reason(error)}")):
        given = images if getattr(scorer, "takes_tensors", False) else _lend(as_array(images))
        raw = whole(scorer(given))
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.shape != (len(images),):
        raise BadModel(
            f"the {name} returned an array of the shape {raw.shape} for {len(images)} images; it "
            "must return one score for each"
        )
    if raw.dtype.kind not in "biuf":
        raise BadModel(f"the {name} returned {raw.dtype}; scores must be numbers from 0 to 1")
    try:
        return probabilities(raw)
    except BadModel as error:
        raise BadModel(str(error).replace("the model", f"the {name}", 1)) from None


def _lend(images: ImageArray) -> ImageArray:
    """Images that a user's function may read and not change."""
    lent = images.view()
    lent.flags.writeable = False
    return lent


def logits(scores: Scores) -> Scores:
    """Scores on the scale on which effects add up."""
    inside = np.clip(scores, _CLEAREST, 1 - _CLEAREST)
    found: Scores = np.log(inside) - np.log1p(-inside)
    return found


def probability(logit: Any) -> Scores:
    """The score of a logit."""
    found: Scores = 1.0 / (1.0 + np.exp(-np.clip(logit, -50.0, 50.0)))
    return found


def check_decoded(images: Any, n: int, name: str, shape: tuple[int, ...] | None = None) -> Images:
    """What a generator decoded, as uint8; BadModel where it is not a batch of images of the shape.

    Numbers with a point are shares of full light, from 0 to 1.
    """
    if is_tensor(images) and str(images.dtype) != "torch.uint8":
        images = images.detach().cpu().numpy()
    if not is_tensor(images):
        images = np.asarray(images)
        if images.dtype != np.uint8:
            images = _from_shares(images, name)
    found = tuple(images.shape)
    if len(found) != 4 or found[0] != n or found[3] != 3 or 0 in found[1:3]:
        raise BadModel(
            f"{name} decoded {n} latents to an array of the shape {found}; it must be "
            f"({n}, height, width, 3)"
        )
    if shape is not None and found[1:] != shape:
        raise BadModel(
            f"{name} decoded images of {shape[1]} x {shape[0]} at first, and of {found[2]} x "
            f"{found[1]} now; all images must have the same size"
        )
    return images


def _from_shares(images: NDArray[Any], name: str) -> ImageArray:
    if images.dtype.kind != "f":
        raise BadModel(
            f"{name} decodes to {images.dtype}; images must be uint8, or floats from 0 to 1"
        )
    bad = int(images.size - np.isfinite(images).sum())
    if bad:
        raise BadModel(
            f"{name} decodes to {bad:,} numbers that are NaN or infinite; images must be uint8, or "
            "floats from 0 to 1"
        )
    if images.size and (images.min() < 0 or images.max() > 1):
        raise BadModel(
            f"{name} decodes to floats from {images.min():.4g} to {images.max():.4g}; they must "
            "lie in [0, 1] (map [-1, 1] by (x + 1) / 2, and clip)"
        )
    return (images * 255 + 0.5).astype(np.uint8)
