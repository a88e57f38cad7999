"""Photographs and their labels: a folder with a table, CelebA's list, folders, arrays, datasets.

Images become uint8 red, green and blue of one size. What had to be done to them is said in a note;
what cannot be done without guessing is refused: mixed sizes, files that are not images, labels of
files that are not there.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, missing, nearest, spell
from limi.images._base import ImageArray
from limi.images.datasets import is_dataset, read_items
from limi.system.foreign import reason
from limi.system.reading import read_text, regular

__all__ = [
    "FEWEST",
    "Pictures",
    "Table",
    "check_enough",
    "read_images",
    "read_labels",
    "read_pictures",
]

FEWEST = 50
"""Images that a generator is fitted to."""

_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm")
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "PPM")
_FILE_COLUMNS = ("file", "filename", "file_name", "image", "image_id", "path", "name", "img")
_UNKNOWN = ("", "nan", "na", "none", "null", "?")
_TEST = ("test", "held_out", "held-out", "val", "valid", "validation")
_SMALLEST = 8  # pixels of a side
_MOST_PIXELS = 1 << 24  # of one file; more is a mistake or an attack
_MOST_LEVELS = 6  # of something that is held
_SHARE_HELD_OUT = 0.2


@dataclass(frozen=True)
class Pictures:
    """Images with the labels that are known of them."""

    images: ImageArray
    labels: Mapping[str, NDArray[np.int8]] = field(default_factory=dict)
    """0, 1, or -1 where none is known; by name."""
    values: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What 0 and 1 stand for; by name."""
    split: NDArray[np.bool_] | None = None
    """Which are held out, where the table says so."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_images(self.images)
        for name, values in self.labels.items():
            _check_label(name, values, len(self.images))
        if self.split is None:
            return
        split = np.asarray(self.split)
        if split.dtype != bool or split.shape != (len(self),) or split.all() or not split.any():
            raise BadTable(
                f"split must mark each of {len(self):,} images as held out (true) or not (false), "
                "with some of each; leave it out to hold out a random fifth"
            )

    def __len__(self) -> int:
        return len(self.images)

    def held_out(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Images that nothing is fitted on: those of the table's split, else a fifth at random."""
        if self.split is not None:
            return self.split
        n = len(self)
        chosen = np.zeros(n, dtype=bool)
        chosen[rng.permutation(n)[: int(n * _SHARE_HELD_OUT)]] = True
        return chosen


def _check_images(images: Any) -> None:
    found = f"{type(images).__name__} of {getattr(images, 'dtype', 'no type')}"
    shape: tuple[int, ...] = getattr(images, "shape", ())
    if getattr(images, "dtype", None) != np.uint8 or len(shape) != 4 or shape[3] != 3:
        raise BadTable(
            f"the images are {found} and the shape {tuple(shape)}; they must be uint8 of the "
            "shape (n, height, width, 3)"
        )
    if min(shape[1:3]) < _SMALLEST:
        raise BadTable(
            f"the images are {shape[2]} x {shape[1]}, smaller than {_SMALLEST} x {_SMALLEST}, "
            "which is too small to learn from; give larger ones"
        )


def _check_label(name: str, values: Any, n: int) -> None:
    array = np.asarray(values)
    if array.shape != (n,):
        raise BadTable(
            f"the labels {name!r} have the shape {array.shape} for {n:,} images; give one label "
            "per image"
        )
    if array.dtype.kind not in "biu" or not np.isin(array, (-1, 0, 1)).all():
        raise BadTable(
            f"the labels {name!r} are not all 0, 1 or -1; write 0 and 1, and -1 if a label is "
            "unknown"
        )


def check_enough(n: int, where: str = "") -> None:
    """BadTable where there are too few images to learn from."""
    if n < FEWEST:
        raise BadTable(
            f"there are {n} images{where}; a generator and scorers learn from {FEWEST} or more"
        )


@dataclass(frozen=True)
class Table:
    """Labels as text, one line per image."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    name: str

    def column(self, name: str) -> list[str]:
        """The cells of a column; InvalidInput if there is no column of that name."""
        if name not in self.columns:
            raise InvalidInput(f"{self.name} has no column {name!r}; {nearest(name, self.columns)}")
        place = self.columns.index(name)
        return [line[place].strip() for line in self.lines]


def read_pictures(
    images: Any,
    labels: str | Path | None = None,
    *,
    names: Sequence[str] = (),
    hold: Sequence[str] = (),
    size: int | None = None,
) -> Pictures:
    """Images of a folder, an .npz file or a dataset, with the labels of these names.

    Labels of `names` have two values; those of `hold` may have some more, and each of them is then
    held on its own. A folder of folders has the label `folder`.
    """
    table = None if labels is None else read_labels(labels)
    known: dict[str, NDArray[Any]] = {}
    if is_dataset(images):
        check_enough(len(images), " in the dataset")
        items, known = read_items(images)
        found, notes = _alike(items, size)
        order = _numbered(table, len(found))
        return _label(found, known, table, order, names, hold, tuple(notes))
    place = Path(images)
    if place.is_dir():
        files, order = _listed(place, table)
        inside = [path.relative_to(place) for path in files]
        check_enough(len(files), f" in {str(place)!r}")
        found, notes = read_images(files, size=size)
        notes += _unlabelled(inside, order) if table is not None else []
        if all(len(path.parts) > 1 for path in inside):
            known = {"folder": np.array([path.parts[0] for path in inside])}
    else:
        found, known, notes = _arrays(place)
        order = _numbered(table, len(found))
        check_enough(len(found), f" in {str(place)!r}")
    return _label(found, known, table, order, names, hold, tuple(notes))


def _unlabelled(files: Sequence[Path], order: Sequence[int]) -> list[str]:
    """A note on the files that the labels miss."""
    lost = [path.as_posix() for path, line in zip(files, order, strict=True) if line < 0]
    if not lost:
        return []
    some = "1 image has" if len(lost) == 1 else f"{len(lost):,} images have"
    serve = "serves" if len(lost) == 1 else "serve"
    return [f"{some} no labels and {serve} only the generator: {spell(lost, most=5)}"]


def read_labels(place: str | Path) -> Table:
    """A CSV file with a header, or CelebA's list: a number, the names, then -1 and 1 by line."""
    text = read_text(place, "a CSV file of labels")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 2 and lines[0].strip().isdigit():
        names = ("file", *lines[1].split())
        cells = [tuple(line.split()) for line in lines[2:]]
    else:
        rows = list(csv.reader(io.StringIO(text)))
        rows = [row for row in rows if any(cell.strip() for cell in row)]
        if len(rows) < 2:
            raise BadTable(f"{str(place)!r} holds no labels; give a header and a line per image")
        names = tuple(name.strip() for name in rows[0])
        cells = [tuple(row) for row in rows[1:]]
    short = [number for number, line in enumerate(cells) if len(line) != len(names)]
    if short:
        raise BadTable(
            f"line {short[0] + 2:,} of {str(place)!r} has {len(cells[short[0]])} cells, but the "
            f"header has {len(names)}"
        )
    return Table(names, tuple(cells), repr(str(place)))


# -- images -------------------------------------------------------------------------------


def read_images(files: Sequence[Path], *, size: int | None = None) -> tuple[ImageArray, list[str]]:
    """Image files as one array, and notes on what was done to them."""
    _check_size(size)
    done: Counter[str] = Counter()
    return _stacked([_read(path, size, done) for path in files], done)


def _alike(items: Sequence[Any], size: int | None) -> tuple[ImageArray, list[str]]:
    """Images of a dataset as one array, and notes on what was done to them."""
    _check_size(size)
    done: Counter[str] = Counter()
    return _stacked([_sized(_to_colour(item, done), size, done) for item in items], done)


def _check_size(size: int | None) -> None:
    if size is not None and not _SMALLEST <= size <= 1024:
        raise InvalidInput(f"size is {size}; sides must have 8 to 1,024 pixels")


def _stacked(images: Sequence[ImageArray], done: Mapping[str, int]) -> tuple[ImageArray, list[str]]:
    sizes = Counter(image.shape[:2] for image in images)
    if len(sizes) > 1:
        told = ", ".join(
            f"{count:,} of {width} x {height}" for (height, width), count in sizes.most_common(4)
        )
        raise BadTable(
            f"the images are of {len(sizes)} sizes ({told}); crop them to the same size, or give "
            "--size to make all of them square"
        )
    notes = [
        f"{n:,} {'image was' if n == 1 else 'images were'} {words}" for words, n in done.items()
    ]
    return np.stack(images) if images else np.empty((0, 8, 8, 3), dtype=np.uint8), notes


def _read(path: Path, size: int | None, done: Counter[str]) -> ImageArray:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise missing("pillow", "images", "reading images") from None
    try:
        with Image.open(path, formats=_FORMATS) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                raise BadTable(
                    f"{str(path)!r} has {opened.width:,} x {opened.height:,} pixels, which is too "
                    "large; make it smaller"
                )
            image = ImageOps.exif_transpose(opened)
            if opened.getexif().get(0x0112, 1) != 1:
                done["turned as EXIF data say"] += 1
            image = _to_colour(image, done)
    except BadTable:
        raise
    except Exception as error:  # a decoder has an exception for each kind of damage
        raise BadTable(
            f"{str(path)!r} cannot be read as an image ({reason(error)}); remove it, or save it as "
            "PNG or JPEG"
        ) from None
    return _sized(image, size, done)


def _sized(image: Any, size: int | None, done: Counter[str]) -> ImageArray:
    from PIL import Image, ImageOps

    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), Image.Resampling.LANCZOS)
        done[f"cropped and resized to {size} x {size}"] += 1
    return np.asarray(image, dtype=np.uint8)


def _to_colour(image: Any, done: Counter[str]) -> Any:
    """Red, green and blue of any image; what shines through is white."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        done["transparent and put on white"] += 1
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(ground, image).convert("RGB")
    if image.mode in ("L", "1", "I", "I;16", "F"):
        done["grey and taken as colour"] += 1
        if image.mode in ("I", "I;16"):  # 16 bits a pixel, of which convert would cut the top
            image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).astype(np.uint8))
    return image.convert("RGB")


def _listed(folder: Path, table: Table | None) -> tuple[list[Path], list[int]]:
    """Files to read, and the line of each in the table; -1 where it has none."""
    there = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS and path.is_file()
    )
    if not there:
        raise BadTable(
            f"there are no images in {str(folder)!r}; file names must end in {spell(_ENDINGS)}"
        )
    if table is None:
        return there, [-1] * len(there)
    known = {path.relative_to(folder).as_posix(): path for path in there}
    cells = _file_column(table, known)
    lost = [cell for cell in cells if cell not in known]
    if lost:
        raise BadTable(
            f"{table.name} has labels of {_files(len(lost))} not in {str(folder)!r}: "
            f"{spell(lost, most=3)}; remove {'its line' if len(lost) == 1 else 'their lines'}, or "
            f"add the {'file' if len(lost) == 1 else 'files'}"
        )
    twice = [cell for cell, n in Counter(cells).items() if n > 1]
    if twice:
        raise BadTable(f"{table.name} has two lines for {spell(twice, most=3)}; keep one")
    lines = {cell: number for number, cell in enumerate(cells)}
    return there, [lines.get(name, -1) for name in known]


def _files(n: int) -> str:
    return "a file that is" if n == 1 else f"{n:,} files that are"


def _file_column(table: Table, known: Mapping[str, Path]) -> list[str]:
    named = [one for one in table.columns if one.lower() in _FILE_COLUMNS]
    for name in (*named, *table.columns):
        cells = [Path(cell).as_posix() for cell in table.column(name)]
        if any(cell in known for cell in cells):
            return cells
    first = table.column(named[0] if named else table.columns[0])
    raise BadTable(
        f"no column of {table.name} names files of the folder (it has {spell(first, most=2)}, the "
        f"folder {spell(list(known), most=2)}); write the exact file names in a column called "
        "'file'"
    )


def _arrays(place: Path) -> tuple[ImageArray, dict[str, NDArray[Any]], list[str]]:
    """Images, and whatever else in an .npz file has a number for each."""
    path = regular(place, "a folder of images, or an .npz file with an array `images`")
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in file.files} if hasattr(file, "files") else {}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise BadTable(
            f"{str(path)!r} cannot be read as arrays ({reason(error)}); give a folder of images, "
            "or an .npz file with an array `images`"
        ) from None
    images = held.pop("images", None)
    if images is None or images.dtype != np.uint8 or images.ndim not in (3, 4):
        what = "no array `images`" if images is None else f"images of {images.dtype}"
        raise BadTable(
            f"{str(path)!r} has {what}; it must be uint8 of the shape (n, height, width, 3)"
        )
    notes = []
    if images.ndim == 3 or images.shape[3] == 1:
        images = np.repeat(images.reshape(*images.shape[:3], 1), 3, axis=3)
        notes.append(f"{len(images):,} images were grey and taken as colour")
    if images.shape[3] != 3:
        raise BadTable(f"{str(path)!r} has images of {images.shape[3]} channels; they must have 3")
    return images, {n: a for n, a in held.items() if a.shape == (len(images),)}, notes


def _numbered(table: Table | None, n: int) -> list[int]:
    """The line of each image of an array: that of its number, else the lines in their order."""
    if table is None:
        return [-1] * n
    if len(table.lines) != n:
        raise BadTable(
            f"{table.name} has {len(table.lines):,} lines for {n:,} images; give one line per image"
        )
    if "index" not in table.columns:
        return list(range(n))
    numbers = table.column("index")
    if sorted(numbers) != sorted(map(str, range(n))):
        raise BadTable(f"the column 'index' of {table.name} does not number the images from 0")
    lines = {int(number): line for line, number in enumerate(numbers)}
    return [lines[number] for number in range(n)]


# -- labels -------------------------------------------------------------------------------


def _label(
    images: ImageArray,
    known: Mapping[str, NDArray[Any]],
    table: Table | None,
    order: Sequence[int],
    names: Sequence[str],
    hold: Sequence[str],
    notes: tuple[str, ...],
) -> Pictures:
    labels: dict[str, NDArray[np.int8]] = {}
    values: dict[str, tuple[str, str]] = {}
    for name in dict.fromkeys([*names, *hold]):
        cells = _cells(name, known, table, order)
        levels = sorted({cell for cell in cells if cell.lower() not in _UNKNOWN}, key=_rank)
        if len(levels) < 2:
            raise BadTable(
                f"the label {name!r} has only one value ({spell(levels)}); two groups of images "
                "are needed to learn what it looks like"
            )
        if len(levels) == 2:
            labels[name] = _coded(cells, levels)
            values[name] = (levels[0], levels[1])
        elif name in names or len(levels) > _MOST_LEVELS:
            raise BadTable(
                f"the label {name!r} has {len(levels)} values ({spell(levels, most=4)}); "
                + (
                    f"what is held may have at most {_MOST_LEVELS}"
                    if name not in names
                    else "two are needed, so leave out the images of the others"
                )
            )
        else:
            for level in levels:
                own = f"{name}={level}"
                chosen = np.array([cell == level for cell in cells], dtype=np.int8)
                unknown = np.array([cell.lower() in _UNKNOWN for cell in cells])
                labels[own] = np.where(unknown, -1, chosen).astype(np.int8)
                values[own] = ("other", level)
    return Pictures(images, labels, values, _split(table, order), notes)


def _cells(
    name: str, known: Mapping[str, NDArray[Any]], table: Table | None, order: Sequence[int]
) -> list[str]:
    if table is not None and (name in table.columns or name not in known):
        column = table.column(name)
        return ["" if line < 0 else column[line] for line in order]
    if name not in known:
        raise InvalidInput(
            f"there are no labels for {name!r}; give a CSV file that has them (--labels)"
            + (f", or one of {spell(sorted(known))}" if known else "")
        )
    return [str(cell) for cell in known[name].tolist()]


def _rank(level: str) -> tuple[int, float, str]:
    """Numbers by size, then words by letter; no before yes."""
    words = {"no": 0, "false": 0, "yes": 1, "true": 1}
    if level.lower() in words:
        return (0, words[level.lower()], "")
    try:
        return (0, float(level), "")
    except ValueError:
        return (1, 0.0, level)


def _coded(cells: Sequence[str], levels: Sequence[str]) -> NDArray[np.int8]:
    place = {level: number for number, level in enumerate(levels)}
    return np.array([place.get(cell, -1) for cell in cells], dtype=np.int8)


def _split(table: Table | None, order: Sequence[int]) -> NDArray[np.bool_] | None:
    """Which images a column `split` holds out; None where there is none."""
    if table is None or "split" not in table.columns:
        return None
    cells = table.column("split")
    chosen = np.array([line >= 0 and cells[line].lower() in _TEST for line in order])
    return chosen if 0 < chosen.sum() < len(chosen) else None
