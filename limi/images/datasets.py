"""Datasets of other libraries, by what they can do: a length, and an item for each number.

An item is an image with its label or labels (torchvision), or a mapping that holds both (Hugging
Face). Labels are called by the mapping's keys, by the dataset's `attr_names`, or `target`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, missing, spell
from limi.images._base import ImageArray
from limi.system.arrays import is_tensor
from limi.system.foreign import at_work, reason

__all__ = ["is_dataset", "read_items"]

_IMAGE_KEYS = ("image", "img", "pixel_values", "pixels", "picture", "photo")
_MOST = 1_000_000


def is_dataset(given: Any) -> bool:
    """Has it a length and items?"""
    plain = isinstance(given, (str, bytes, Mapping, np.ndarray))
    return not plain and hasattr(given, "__len__") and hasattr(given, "__getitem__")


def read_items(dataset: Any) -> tuple[list[Any], dict[str, NDArray[Any]]]:
    """Images as the dataset gives them, as PIL images, and its labels by name."""
    n = len(dataset)
    if n > _MOST:
        raise BadTable(f"the dataset has {n:,} items, more than limi reads; give at most {_MOST:,}")
    images, cells = [], []
    for number in range(n):
        with at_work(lambda error: BadTable(f"the dataset raised {reason(error)}")):
            item = dataset[number]
        image, labels = _apart(item, dataset, number)
        images.append(_to_pil(image, number))
        cells.append(labels)
    names = list(cells[0]) if cells else []
    odd = next((number for number, one in enumerate(cells) if list(one) != names), None)
    if odd is not None:
        raise BadTable(
            f"item {odd} of the dataset has the labels {spell(list(cells[odd]))}, but item 0 has "
            f"{spell(names)}"
        )
    return images, {name: np.array([one[name] for one in cells]) for name in names}


def _apart(item: Any, dataset: Any, number: int) -> tuple[Any, dict[str, str]]:
    """The image of an item, and its labels as text."""
    if isinstance(item, Mapping):
        key = next((key for key in _IMAGE_KEYS if key in item), None)
        if key is None:
            raise BadTable(
                f"item {number} of the dataset has {spell([str(k) for k in item])} and no image "
                f"among them; call the image {_IMAGE_KEYS[0]!r}"
            )
        return item[key], _labels({k: v for k, v in item.items() if k != key}, dataset)
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return item[0], _labels(item[1], dataset)
    return item, {}


def _labels(given: Any, dataset: Any) -> dict[str, str]:
    if isinstance(given, Mapping):
        found = {str(name): _scalar(value) for name, value in given.items()}
        return {name: value for name, value in found.items() if value is not None}
    values = np.asarray(given.cpu() if is_tensor(given) else given).reshape(-1)
    if len(values) == 1:
        classes = getattr(dataset, "classes", None)
        code = values[0].item()
        named = isinstance(classes, list) and isinstance(code, int) and 0 <= code < len(classes)
        return {"target": str(classes[code] if named and classes else code)}
    names = [str(name) for name in getattr(dataset, "attr_names", ()) if name]
    names = names if len(names) == len(values) else [f"target_{k}" for k in range(len(values))]
    return {name: str(value.item()) for name, value in zip(names, values, strict=True)}


def _scalar(value: Any) -> str | None:
    if isinstance(value, (str, bool, int, float, np.generic)):
        return str(value)
    if is_tensor(value) and value.numel() == 1:
        return str(value.item())
    return None


def _to_pil(image: Any, number: int) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise missing("pillow", "images", "reading images") from None
    if isinstance(image, Image.Image):
        return image
    array = image.detach().cpu().numpy() if is_tensor(image) else np.asarray(image)
    if array.ndim == 3 and is_tensor(image) and array.shape[0] in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    wide = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if not wide or array.dtype.kind not in "fu":
        raise BadTable(
            f"item {number} of the dataset is not an image but {type(image).__name__} of the "
            f"shape {array.shape}; give PIL images, uint8 (height, width, 3), or tensors "
            "(3, height, width) from 0 to 1"
        )
    return Image.fromarray(_bytes(array, number))


def _bytes(array: NDArray[Any], number: int) -> ImageArray:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (array.min() >= 0 and array.max() <= 1):
        raise BadTable(
            f"item {number} of the dataset is {array.dtype} with values outside 0 to 1; leave out "
            "the step that normalizes images"
        )
    return (array * 255 + 0.5).astype(np.uint8)
