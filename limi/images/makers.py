"""Generators by name, by file, by `KIND:PLACE`, or as a user's own decode function."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from limi.errors import BadModel, CorruptStore, InvalidInput, LimiError, nearest
from limi.generators._base import packed
from limi.generators._state import read, require
from limi.images._base import ImageArray, ImageGenerator, check_decoded
from limi.system import writing
from limi.system.foreign import at_work, reason
from limi.system.reading import is_file
from limi.types import Latents

__all__ = ["FITTED", "Decoder", "content", "fit", "load", "open_generator", "save"]

FITTED = ("eigenfaces", "vae")
"""Generators that are fitted to images; each is a module of this room."""

OnStep = Callable[[float, str], None]
_TRIED = 4  # latents that are decoded to see that a generator works


class Decoder:
    """A user's function from latents to images, with standard normal latents unless it says how."""

    kind = "decode"

    def __init__(self, function: Any, latent_dim: int) -> None:
        self._function, self._dim = function, latent_dim
        self.kind = getattr(function, "__name__", "decode")

    @property
    def latent_dim(self) -> int:
        """The function's attribute `latent_dim`."""
        return self._dim

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        """Standard normal numbers."""
        return rng.standard_normal((n, self._dim))

    def decode(self, latents: Latents) -> Any:
        """What the function returns."""
        with at_work(lambda error: BadModel(f"decode raised {reason(error)}")):
            return self._function(latents)


def open_generator(
    given: Any,
    images: ImageArray | None,
    rng: np.random.Generator,
    *,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> tuple[ImageGenerator, tuple[int, ...]]:
    """The generator that a user names or gives, and the shape of its images.

    InvalidInput where it is none, BadModel where it does not make images.
    """
    made: ImageGenerator = _open(given, images, rng, device, on_step)
    latents = made.sample_latents(_TRIED, np.random.default_rng(0))
    if np.shape(latents) != (_TRIED, made.latent_dim):
        raise BadModel(
            f"the generator drew latents of the shape {np.shape(latents)} when asked for "
            f"{(_TRIED, made.latent_dim)}"
        )
    name = f"the generator {made.kind}"
    if not np.isfinite(latents).all():
        raise BadModel(f"{name} drew latents that are NaN or infinite")
    images = check_decoded(made.decode(np.asarray(latents, dtype=np.float32)), _TRIED, name)
    return made, tuple(int(side) for side in images.shape[1:])


def _open(
    given: Any, images: ImageArray | None, rng: np.random.Generator, device: str, on_step: OnStep
) -> Any:
    if not isinstance(given, (str, Path)):
        return _of_object(given)
    text = str(given)
    kind, _, place = text.partition(":")
    if text in FITTED:
        if images is None:
            raise InvalidInput(
                f"the generator {text!r} must be fitted to images; give images, or a generator's "
                "file"
            )
        return fit(text, images, rng, device=device, on_step=on_step)
    if kind == "python" and place:
        from limi.models.python import attribute

        return _of_object(attribute(place))
    if is_file(text):
        return load(text, device=device)
    known = (*FITTED, "python:FILE.py:NAME", "a file of `limi images fit`")
    raise InvalidInput(f"unknown generator {text!r}; {nearest(text, known)}")


def _of_object(given: Any) -> Any:
    if isinstance(given, type):
        raise InvalidInput(f"the generator is the class {given.__name__}; give an instance of it")
    if hasattr(given, "decode") and hasattr(given, "latent_dim"):
        if hasattr(given, "sample_latents"):
            return given if _is_ours(given) else _Guarded(given)
        return Decoder(given.decode, _dim(given))
    if callable(given) and hasattr(given, "latent_dim"):
        return Decoder(given, _dim(given))
    raise InvalidInput(
        f"the generator is {type(given).__name__} without latent_dim; give a function decode(z) "
        "with the attribute latent_dim, or an object with latent_dim, sample_latents and decode"
    )


def _is_ours(given: Any) -> bool:
    return type(given).__module__.startswith("limi.images.")


def _dim(given: Any) -> int:
    dim = given.latent_dim
    if not isinstance(dim, (int, np.integer)) or not 1 <= dim <= 100_000:
        raise InvalidInput(f"latent_dim is {dim!r}; it must be a whole number, 1 or more")
    return int(dim)


class _Guarded:
    """A user's generator, whose errors are sentences and which has a name."""

    def __init__(self, given: Any) -> None:
        self._given = given
        kind = getattr(given, "kind", None)
        self.kind = kind if isinstance(kind, str) else type(given).__name__
        self.device = getattr(given, "device", "cpu")
        self.latent_dim = _dim(given)
        if hasattr(given, "encode"):
            self.encode = given.encode

    def sample_latents(self, n: int, rng: np.random.Generator) -> Latents:
        with at_work(lambda error: BadModel(f"sample_latents raised {reason(error)}")):
            return np.asarray(self._given.sample_latents(n, rng))

    def decode(self, latents: Latents) -> Any:
        with at_work(lambda error: BadModel(f"decode raised {reason(error)}")):
            return self._given.decode(latents)


def fit(
    name: str,
    images: ImageArray,
    rng: np.random.Generator,
    *,
    settings: Any = None,
    device: str = "cpu",
    on_step: OnStep = lambda done, words: None,
) -> Any:
    """A generator of a name, fitted to images."""
    module = _module(name)
    if name == "eigenfaces":
        return module.fit(images, rng, settings=settings)
    return module.fit(images, rng, settings=settings, device=device, on_step=on_step)


def _module(name: str) -> ModuleType:
    if name not in FITTED:
        raise InvalidInput(f"unknown generator {name!r}; {nearest(name, FITTED)}")
    return importlib.import_module(f"limi.images.{name}")


def content(made: Any) -> writing.Content:
    """What the file of a generator holds."""
    arrays, facts = made.state()
    return packed(arrays, {"kind": made.kind, "of": "images", "facts": facts})


def save(made: Any, path: str | Path) -> None:
    """Keep a generator in a file of arrays."""
    writing.write(path, content(made))


def load(path: str | Path, *, device: str = "cpu") -> Any:
    """The generator of a file; CorruptStore unless the file holds together."""
    arrays, head = read(path)
    try:
        kind = str(head.get("kind"))
        require(head.get("of") == "images", "it is a generator of rows, not of images")
        require(kind in FITTED, f"its kind is {kind[:40]!r}")
        return _module(kind).from_state(arrays, head.get("facts"), device=device)
    except (LimiError, MemoryError):
        raise
    except Exception as error:  # whatever numbers can do to arithmetic
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorruptStore(f"{str(path)!r} is damaged: {said}; fit it again") from None
