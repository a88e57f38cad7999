"""The run folder of an audit of images: pairs as PNG, checked again from their files.

`pair-00001-start.png` and `pair-00001-twin.png` are what the target decides differently. They are
written first, read back, and put to the target once more: what does not flip from its files is not
a finding.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.drafts import Draft
from limi.audits.run_folder import FORMAT, digest, file_digest, versions
from limi.decisions import differ
from limi.errors import CorruptStore, missing
from limi.images._base import ImageArray, as_array
from limi.images.conduct import Asked, image_hashes
from limi.images.result import ImageResult, Sheet
from limi.images.sources import Pictures
from limi.search.answer_log import AnswerLog
from limi.system import writing
from limi.system.reading import is_file
from limi.system.shown import to_json
from limi.types import Mask

__all__ = ["input_sums", "png", "read_png", "write_run"]

_AT_ONCE = 64  # files that are written together, each of them open meanwhile
_SIDES = ("start", "twin")

Run = Callable[[Callable[[Asked], None]], ImageResult]


def write_run(
    run: Run, out: str | Path, settings: Mapping[str, Any], *, force: bool, resume: bool
) -> ImageResult:
    """Run an audit with its journal in a folder, and write what it found."""
    from limi.report.images import render

    text = json.dumps(settings, sort_keys=True, default=str)
    manifest = {
        "format": FORMAT,
        "kind": "images",
        "settings": json.loads(text),
        "versions": versions(),
        "config_sha256": digest(text.encode()),
    }
    with Draft.at(out, force=force, resume=resume) as draft:
        draft.settle_on(manifest)
        asked: list[Asked] = []
        logs: list[AnswerLog] = []

        def journal(target: Asked) -> None:
            log = AnswerLog(draft.log, target.answer, hashes=image_hashes)
            target.through = lambda images: log.score(as_array(images))
            asked.append(target)
            logs.append(log)
            draft.searched = True

        result = run(journal)
        result = replace(result, notes=(*result.notes, *logs[0].notes))
        asked[0].through = asked[0].answer  # the files are asked about again
        result = _write_pairs(result, asked[0], draft.folder)
        contents: dict[str, writing.Content] = {
            "findings.parquet": _findings(result),
            "images.json": to_json(result.to_dict()) + "\n",
            "report.html": render(result),
            "manifest.json": to_json(manifest) + "\n",
        }
        draft.finish(contents, keep_journal=False)
    return result


def input_sums(given: Mapping[str, Any]) -> dict[str, str]:
    """Checksums of what an audit reads, by name: files that a text names, and images in memory.

    Functions and other objects are known by their names alone.
    """
    sums = {name: _sum_of(one) for name, one in given.items()}
    return {name: one for name, one in sums.items() if one is not None}


def _sum_of(given: Any) -> str | None:
    if isinstance(given, np.ndarray):
        shape = f"{given.shape} {given.dtype}".encode()
        return digest(shape, np.ascontiguousarray(given).tobytes())
    if isinstance(given, Pictures):
        parts = {**given.labels, "": given.images}
        if given.split is not None:
            parts["split"] = np.asarray(given.split)
        known = [f"{name} {_sum_of(np.asarray(parts[name]))}".encode() for name in sorted(parts)]
        return digest(*known, repr(sorted(given.values.items())).encode())
    if isinstance(given, Mapping):
        known = [f"{name} {_sum_of(one)}".encode() for name, one in sorted(given.items())]
        return digest(*known) if known else None
    if not isinstance(given, (str, Path)):
        return None
    after = str(given).partition(":")[2]
    places = (str(given), after, after.rpartition("?")[0], after.rpartition(":")[0])
    path = next((Path(place) for place in places if place and is_file(place)), None)
    if path is not None:
        return file_digest(path)
    if not Path(given).is_dir():
        return None
    files = [path for path in sorted(Path(given).rglob("*")) if path.is_file()]
    names = [path.relative_to(given).as_posix() for path in files]
    return digest(
        *(f"{name} {file_digest(path)}".encode() for name, path in zip(names, files, strict=True))
    )


def _write_pairs(result: ImageResult, target: Asked, folder: Path) -> ImageResult:
    """Write the pairs, ask about the files, and keep the findings that hold."""
    sheet = result.findings
    n = len(sheet.trials)
    files = {
        folder / _name(number, side): png(image)
        for side, images in zip(_SIDES, (sheet.images.start, sheet.images.twin), strict=True)
        for number, image in enumerate(images)
    }
    places = list(files)
    for start in range(0, len(places), _AT_ONCE):
        writing.write_all({place: files[place] for place in places[start : start + _AT_ONCE]})
    held = np.ones(n, dtype=bool)
    if n:
        scores = [
            target(np.stack([read_png(folder / _name(number, side)) for number in range(n)]))
            for side in _SIDES
        ]
        held = differ(*scores)
    if held.all():
        return replace(result, queries=target.queries)
    # What is left is numbered again, so that the names of files are the lines of the table.
    for place in places:
        place.unlink()
    lost = int(n - held.sum())
    note = (
        f"{lost:,} of {n:,} pairs did not flip when their files were asked about again, so they "
        "are not counted: the model does not repeat its answers"
    )
    kept = replace(
        result,
        findings=_only(sheet, held),
        n_findings=result.n_findings - lost,
        notes=(*result.notes, note),
        queries=target.queries,
    )
    for number, (start_image, twin) in enumerate(
        zip(kept.findings.images.start, kept.findings.images.twin, strict=True)
    ):
        pair = {"start": start_image, "twin": twin}
        writing.write_all({folder / _name(number, side): png(pair[side]) for side in _SIDES})
    return kept


def _only(sheet: Sheet, held: Mask) -> Sheet:
    return Sheet(sheet.trials[held], sheet.images.take(np.flatnonzero(held)))


def _name(number: int, side: str) -> str:
    return f"pair-{number + 1:05d}-{side}.png"


def _findings(result: ImageResult) -> writing.Content:
    frame = result.table()
    frame.insert(0, "pair", np.arange(1, len(frame) + 1))

    def put(file: Any) -> None:
        frame.to_parquet(file, index=False)

    return put


def png(image: ImageArray) -> bytes:
    """An image as the bytes of a PNG file, without a date or any text."""
    try:
        from PIL import Image
    except ImportError:
        raise missing("pillow", "images", "writing images") from None
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(file, format="PNG")
    return file.getvalue()


def read_png(path: Path) -> NDArray[np.uint8]:
    """The pixels of a PNG file of limi's; CorruptStore where it is none."""
    from PIL import Image

    try:
        with Image.open(path, formats=("PNG",)) as image:
            return np.asarray(image.convert("RGB"))
    except Exception as error:  # a decoder has an exception for each kind of damage
        raise CorruptStore(f"{str(path)!r} cannot be read as a PNG file: {error}") from None
