"""What came of a repair: figures side by side, the verdict, and the model."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.drafts import Draft
from limi.audits.problem import Problem
from limi.audits.run_folder import versions
from limi.repairs import _saving
from limi.repairs._compared import Moved, describe
from limi.repairs._figures import Figures, RepairFigure, RepairGroups
from limi.repairs._refit import Fitted
from limi.repairs._verify import Check, Fresh, Loss, Verdict
from limi.system.shown import to_json
from limi.system.writing import Content
from limi.types import Labels, Rows

__all__ = ["FORMAT", "Point", "Repair"]

FORMAT = 1


@dataclass(frozen=True)
class Point:
    """One fraction of a sweep."""

    fraction: float  # 0: nothing added
    figures: Figures


@dataclass(frozen=True)
class Repair:
    """A repaired model with the evidence for and against it."""

    problem: Problem
    before: Figures
    after: Figures
    blind: Figures  # the same model trained without the protected columns, to hold `after` against
    verdict: Verdict
    loss: Loss
    checks: tuple[Check, ...]
    own: Check  # the run's own findings, which prove nothing
    groups: RepairGroups
    settings: Mapping[str, Any]
    run: Mapping[str, Any]  # what the findings come from
    how: str  # the model is trained again
    fresh: Fresh
    fitted: Fitted = field(repr=False)
    added: tuple[Rows, Labels] = field(repr=False)
    front: tuple[Point, ...] = ()
    moved: tuple[Moved, ...] = ()  # whose decision is another than without findings, by group
    command: str = ""

    @property
    def model(self) -> Any:
        """The repaired model: an estimator, or what the fit function gave."""
        return self.fitted.native

    def reduction(self, name: str) -> float | None:
        """By what share of its value before a figure fell; None where that was 0 or unknown."""
        before, after = self.before[name].value, self.after[name].value
        return None if not before or after is None else 1 - after / before

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `before` and `after` by figure, and `verdict`."""
        return {
            "format": FORMAT,
            "verdict": str(self.verdict),
            "before": _as_dict(self.before),
            "after": _as_dict(self.after),
            "without_protected": _as_dict(self.blind),
            "reduction": {
                name: None if (share := self.reduction(name)) is None else round(share, 4)
                for name in self.before
                if name not in ("accuracy", "training_accuracy")
            },
            "accuracy_loss": self.loss.as_dict(),
            "checks": [check.as_dict() for check in self.checks],
            "own_findings": self.own.as_dict(),
            "fresh": asdict(self.fresh),
            "groups": {"privileged": self.groups.words, "why": self.groups.reason},
            "settings": dict(self.settings),
            "run": dict(self.run),
            "how": self.how,
            "rows": {"table": len(self.problem.rows), "added": len(self.added[0])},
            "front": [
                {
                    "fraction": point.fraction,
                    **_as_dict(point.figures),
                }
                for point in self.front
            ],
            "moved": describe(self.moved),
            "model_file": _saving.name_of(self.fitted),
            "versions": versions(),
            "date": datetime.date.today().isoformat(),
            "command": self.command,
        }

    def save(self, folder: str | Path, *, force: bool = False, model: bool = True) -> Path:
        """Write the model, its card, the report, the figures and the rows that were added."""
        if model:
            _saving.require(self.model)
        with Draft.at(folder, force=force) as draft:
            self.write(draft, model=model)
        return Path(folder)

    def write(self, draft: Draft, *, model: bool = True) -> dict[str, Any]:
        """Fill a folder that was begun and put it in its place at once; what `as_dict` gives."""
        from limi.report import repair as page

        tree = self.as_dict()
        stored = _saving.store(self.fitted) if model else None
        tree["model_file"] = None if stored is None else stored[0]
        files: dict[str, Content] = {
            "repair.json": to_json(tree) + "\n",
            "card.md": page.card(tree),
            "report.html": page.render(tree),
            "added.parquet": self._list_added(),
        }
        draft.finish(files | ({} if stored is None else dict([stored])), keep_journal=False)
        return tree

    def _list_added(self) -> bytes:
        """The added rows as the table has them, with their labels."""
        import pyarrow.parquet as pq

        codec, (rows, labels) = self.problem.target.codec, self.added
        backend, frame = codec.backend, codec.decode(rows)
        columns = {name: backend.column(frame, name) for name in codec.schema.names}
        spelled = np.array([self.problem.unfavorable, self.problem.favorable])
        columns[str(self.problem.label_column)] = backend.plain_column(spelled[labels])
        sink = io.BytesIO()
        pq.write_table(backend.to_arrow(backend.frame(columns)), sink)
        return sink.getvalue()

    def __repr__(self) -> str:
        def shown(figure: RepairFigure) -> str:
            return "-" if figure.value is None else f"{figure.value:.2%}"

        changes = ", ".join(
            f"{name} {shown(self.before[name])} to {shown(self.after[name])}"
            for name in ("accuracy", "real", "natural")
        )
        return f"<limi.Repair: {self.verdict.word}; {changes}>"


def _as_dict(figures: Figures) -> dict[str, Any]:
    return {name: figure.as_dict() for name, figure in figures.items()}
