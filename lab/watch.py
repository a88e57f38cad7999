"""The regression watch: a fixed small set of cells against the numbers kept from before."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import results as _results
from lab.cells import expand
from lab.files import folder, load
from lab.results import DONE, Results
from lab.run import run
from limi.errors import CorruptStore, InvalidInput
from limi.system import writing
from limi.system.validate import require_type

__all__ = ["Watched", "baseline_file", "compare", "watch"]

_SCALE = "small"


@dataclass(frozen=True)
class Watched:
    """One measure of one cell, now and before."""

    cell: str
    measure: str
    now: float | None
    before: float | None
    margin: float  # share that it may fall by

    @property
    def ok(self) -> bool:
        """Has it not fallen by more than the margin?"""
        if self.before is None:
            return True
        return self.now is not None and self.now >= self.before * (1 - self.margin)

    def __str__(self) -> str:
        now = "no result" if self.now is None else f"{self.now:g}"
        if self.before is None:
            return f"{self.cell} {self.measure}: {now}, nothing to compare with"
        word = "ok" if self.ok else f"FELL by more than {self.margin:.0%}"
        return f"{self.cell} {self.measure}: {now}, was {self.before:g}: {word}"


def baseline_file() -> Path:
    """The numbers kept from before."""
    return folder() / "results" / "watch.json"


def watch(
    baseline: Path | None = None,
    *,
    update: bool = False,
    workers: int | str | None = None,
    cluster: str | None = None,
    on_progress: Callable[[str], None] = lambda words: None,
) -> list[Watched]:
    """Run the watched cells and compare them; `update` writes them as the new baseline."""
    study, path = load("watch"), baseline or baseline_file()
    before = None if update else _read(path)
    with tempfile.TemporaryDirectory() as place:
        run(
            [study],
            scale=_SCALE,
            out=Path(place),
            workers=workers,
            cluster=cluster,
            on_progress=on_progress,
        )
        results = _results.collect(study, _SCALE, expand(study, _SCALE), Path(place))
    if update:
        now = {name: _measures(results, name, study.margins) for name in results.outcomes}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(tree)}" for name, tree in now.items())
        writing.write(path, f"{{\n{lines}\n}}\n")
        before = now
    return compare(results, before or {}, dict(study.margins))


def compare(
    results: Results, before: dict[str, dict[str, float]], margins: dict[str, float]
) -> list[Watched]:
    """Every watched measure of every cell, those that are missing now included."""
    cells = list(dict.fromkeys([*before, *results.outcomes]))
    return [
        Watched(
            cell,
            measure,
            _measures(results, cell, margins).get(measure),
            before.get(cell, {}).get(measure),
            margin,
        )
        for cell in cells
        for measure, margin in margins.items()
        if measure in before.get(cell, {}) or measure in _measures(results, cell, margins)
    ]


def _measures(results: Results, cell: str, margins: object) -> dict[str, float]:
    outcome = results.outcomes.get(cell)
    if outcome is None or outcome.status != DONE:
        return {}
    found = {name: outcome.measures.get(name) for name in margins}  # type: ignore[attr-defined]
    return {name: value for name, value in found.items() if isinstance(value, (int, float))}


def _read(path: Path) -> dict[str, dict[str, float]]:
    if not path.exists():
        raise InvalidInput(
            f"there is no baseline {str(path)!r}; make one with: python -m lab check --update"
        )
    try:
        tree: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
        require_type(dict[str, dict[str, float]], tree, "the baseline")
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptStore(f"the baseline {str(path)!r} cannot be read: {error}") from None
    return tree
