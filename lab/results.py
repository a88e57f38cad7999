"""Results of cells: one small file each as they finish, and one file a study to keep."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lab.cells import Cell
from lab.files import Study
from lab.measures import found_too_few
from limi.audits.run_folder import versions
from limi.errors import CorruptStore, InvalidInput
from limi.system import writing

__all__ = ["DONE", "FAILED", "NOT_MEASURED", "NOT_RUN", "TOO_FEW", "Outcome", "Results", "collect"]
__all__ += ["join_makers", "keep", "read", "write_cell"]

FORMAT = 1
DONE, ABSENT, UNABLE, FAILED = "done", "absent", "unable", "failed"
# Said where there is no number: there is no cell, it lacks the measure, or a seed of it found
# fewer than the measure needs.
NOT_RUN, NOT_MEASURED, TOO_FEW = "not run", "not measured", "too few found"
_CELL = re.compile(r"[a-z0-9][\w+.-]*/[a-z0-9][a-z0-9+.-]*/\d{1,9}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a cell."""

    cell: str  # BENCHMARK/VARIANT/SEED
    digest: str
    status: str  # done; absent: no data; unable: the method cannot; failed
    revision: int = 1  # of the method that was run
    took: float = 0.0  # seconds, with all that was measured
    why: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)  # budget, settings, generator
    measures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        """The first part of the cell's name."""
        return self.cell.split("/")[0]

    @property
    def variant(self) -> str:
        """The second."""
        return self.cell.split("/")[1]

    @property
    def seed(self) -> int:
        """The third."""
        return int(self.cell.split("/")[2])

    def line(self) -> str:
        """As one line of JSON."""
        tree = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({k: v for k, v in tree.items() if v not in ("", {})}, ensure_ascii=False)


@dataclass(frozen=True)
class Results:
    """What is known of a study at a scale."""

    study: str
    scale: str
    outcomes: Mapping[str, Outcome]  # by cell
    made: Mapping[str, Any] = field(default_factory=dict)  # versions, machine
    is_complete: bool = False  # with what follows from the cells and the paper's numbers

    @cached_property
    def done(self) -> list[Outcome]:
        """Those that have numbers."""
        return [outcome for outcome in self.outcomes.values() if outcome.status == DONE]

    @cached_property
    def benchmarks(self) -> list[str]:
        """Every benchmark that a cell is of, as they come."""
        return list(dict.fromkeys(outcome.benchmark for outcome in self.outcomes.values()))

    def of(self, benchmark: str, variant: str) -> list[Outcome]:
        """The outcomes of all seeds."""
        return self._by_variant.get((benchmark, variant), [])

    @cached_property
    def _by_variant(self) -> dict[tuple[str, str], list[Outcome]]:
        """Outcomes in the order of their seeds; a table asks for each of them many times."""
        found: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in sorted(self.outcomes.values(), key=lambda outcome: outcome.seed):
            found.setdefault((outcome.benchmark, outcome.variant), []).append(outcome)
        return found

    def numbers(self, benchmark: str, variant: str, measure: str) -> list[float]:
        """A measure over the seeds that have it; of none where a seed found too few for it.

        Those that found more would stand for all: their mean would be another number.
        """
        done = [o.measures for o in self.of(benchmark, variant) if o.status == DONE]
        if any(found_too_few(measure, measures) for measures in done):
            return []
        found = [measures.get(measure) for measures in done]
        return [value for value in found if isinstance(value, (int, float))]


def read(study: Study, scale: str, *folders: Path) -> Results:
    """Results from these folders: of each cell the first that has it, cells before kept files."""
    name = study.uses or study.name
    known: dict[str, Outcome] = {}
    made: dict[str, Any] = {}
    for folder in folders:
        for path in _list(_cells_folder(folder, scale, name)):
            outcome = _outcome(_json(path), path)
            known.setdefault(outcome.cell, outcome)
        kept = folder / scale / f"{name}.json"
        if kept.exists():
            tree = _json(kept)
            made = made or tree["made"]
            for line in tree["cells"]:
                outcome = _outcome(line, kept)
                known.setdefault(outcome.cell, outcome)
    return Results(name, scale, known, made or machine())


def write_cell(folder: Path, cell: Cell, outcome: Outcome) -> None:
    """Keep a cell's outcome; beside, then renamed."""
    place = _cells_folder(folder, cell.scale, cell.study)
    writing.make_folder(place)
    writing.write(place / cell.file_name, outcome.line() + "\n")


def keep(results: Results, folder: Path) -> Path:
    """Write the results as one text file, one line per cell, in the order of their names."""
    path = folder / results.scale / f"{results.study}.json"
    writing.make_folder(path.parent)
    head = {
        "format": FORMAT,
        "study": results.study,
        "scale": results.scale,
        "made": dict(results.made),
    }
    lines = ",\n".join(outcome.line() for outcome in results.outcomes.values())
    writing.write(path, json.dumps(head)[:-1] + f', "cells": [\n{lines}\n]}}\n')
    return path


def collect(study: Study, scale: str, cells: Sequence[Cell], *folders: Path) -> Results:
    """The results of exactly these cells, in their order; `made` says what made them.

    Cells that were kept before may come from another machine, which is then named as well, for as
    long as one of its cells may still be among them.
    """
    known = read(study, scale, *folders)
    chosen = {c.name: known.outcomes[c.name] for c in cells if c.name in known.outcomes}
    made = join_makers(machine(), known.made, of=chosen.values())
    return Results(known.study, scale, chosen, made)


def join_makers(*made: Mapping[str, Any], of: Iterable[Outcome]) -> dict[str, Any]:
    """What made these results, the first named at the head and the others once each under
    `earlier`, for as long as one of their cells may still be among them."""
    every = [one for given in made if given for one in (given, *given.get("earlier", ()))]
    if not every:
        return {}
    plain = [{key: value for key, value in one.items() if key != "earlier"} for one in every]
    head, *others = [one for place, one in enumerate(plain) if one not in plain[:place]]
    by = {outcome.given.get("machine") for outcome in of if outcome.status == DONE}
    if None not in by:  # every cell says where it was run
        others = [one for one in others if one.get("processor") in by]
    return head | ({"earlier": others} if others else {})


def machine() -> dict[str, Any]:
    """What the results were made on and with."""
    return {"versions": versions(), "processor": processor(), "cores": os.cpu_count()}


@cache
def processor() -> str:
    """The processor's name, as far as the system tells it."""
    import platform

    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = [line for line in text.splitlines() if line.startswith("model name")]
    return named[0].partition(":")[2].strip() if named else platform.machine()


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.json"))
    except OSError as error:
        raise InvalidInput(f"{str(folder)!r} cannot be read: {error.strerror}") from None


def _cells_folder(folder: Path, scale: str, study: str) -> Path:
    return folder / "cells" / scale / study


def _outcome(tree: Any, path: Path) -> Outcome:
    try:
        outcome = Outcome(**{k: v for k, v in tree.items() if k in Outcome.__dataclass_fields__})
        if not _CELL.fullmatch(outcome.cell):
            raise ValueError(f"no cell is called {outcome.cell[:80]!r}")
        return outcome
    except (TypeError, ValueError, AttributeError) as error:
        raise _unreadable(path, error) from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CorruptStore:
    return CorruptStore(
        f"{str(path)!r} holds no results of a study ({error}); delete it, and run again"
    )
