"""What came of repairing a model: every way with its evidence, and the one to take."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from limi.audits.drafts import Draft
from limi.audits.problem import Problem
from limi.audits.run_folder import versions
from limi.errors import InvalidInput, spell
from limi.metrics.what_if import mcnemar
from limi.repairs import _saving, _shipping
from limi.repairs._compared import Moved, describe
from limi.repairs._figures import Figures, RepairGroups
from limi.repairs._mixing import MixedTable
from limi.repairs._refit import spell_labels
from limi.repairs._verify import Check, Fresh, Loss, Verdict
from limi.repairs._ways import WAYS, Made
from limi.system.shown import to_json
from limi.system.writing import Content

__all__ = ["Repairs", "Tried"]

FORMAT = 3
ADDED = "added.parquet"


@dataclass(frozen=True)
class Tried:
    """One repair, with the evidence for and against it."""

    how: str
    figures: Figures
    loss: Loss
    checks: tuple[Check, ...]
    verdict: Verdict
    moved: tuple[Moved, ...]
    asked: int  # questions to the model inside for one answer
    seconds: float  # to make it
    why: str = ""  # it is the one to take, or is not
    threshold: float | None = None  # that keeps the share of favorable decisions
    made: Made = field(default=None, repr=False)  # type: ignore[assignment]

    @property
    def people(self) -> Check:
        """The fresh people that both models were asked about."""
        return self.checks[-1]

    def _share(self) -> dict[str, Any]:
        """What became of the share of favorable decisions, and which threshold keeps it."""
        gained = sum(one.gained for one in self.moved)
        lost = sum(one.lost for one in self.moved)
        return {
            "gained": gained,
            "lost": lost,
            "p_value": float(f"{float(mcnemar(gained, lost)):.3g}"),
            "threshold_to_keep_it": None if self.threshold is None else round(self.threshold, 6),
            "was_moved": self.made.threshold is not None,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "how": self.how,
            "words": WAYS[self.how].words,
            "verdict": str(self.verdict),
            "why": self.why,
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "accuracy_loss": self.loss.as_dict(),
            "checks": [check.as_dict() for check in self.checks],
            "moved": describe(self.moved),
            "share": self._share(),
            "questions_per_answer": self.asked,
            "seconds": round(self.seconds, 3),
            "notes": list(self.made.notes),
            "added": 0 if self.made.mix is None else len(self.made.mix.added[1]),
        }


@dataclass(frozen=True)
class Repairs:
    """Repairs of one model, side by side, and which of them to take."""

    problem: Problem
    before: Figures
    tried: tuple[Tried, ...]
    recommended: str | None
    skipped: Mapping[str, str]  # ways that the model does not allow, and why
    groups: RepairGroups
    settings: Mapping[str, Any]
    run: Mapping[str, Any]
    fresh: Fresh
    command: str = ""
    close: tuple[str, ...] = ()  # ways that cannot be told from the recommended one

    def __getitem__(self, how: str) -> Tried:
        for one in self.tried:
            if one.how == how:
                return one
        why = self.skipped.get(how, f"these were tried: {spell(one.how for one in self.tried)}")
        raise InvalidInput(f"the repair {how!r} was not tried: {why}")

    @property
    def best(self) -> Tried | None:
        """The repair to take; None where none is good enough."""
        return None if self.recommended is None else self[self.recommended]

    @property
    def model(self) -> Any:
        """The repaired model to take, as an estimator, a benchmark model or a function; the only
        one that was tried where none is recommended."""
        return None if self._kept is None else self._kept.made.native

    @property
    def _kept(self) -> Tried | None:
        """The repair that is written: the one to take, or the only one."""
        return self.best or (self.tried[0] if len(self.tried) == 1 else None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": FORMAT,
            "recommended": self.recommended,
            "close": list(self.close),
            "verdict": "none recommended" if self.best is None else str(self.best.verdict),
            "before": {name: figure.as_dict() for name, figure in self.before.items()},
            "tried": [one.as_dict() for one in self.tried],
            "skipped": dict(self.skipped),
            "fresh": asdict(self.fresh),
            "groups": {"privileged": self.groups.words, "why": self.groups.reason},
            "settings": dict(self.settings),
            "run": dict(self.run),
            "model_files": [],
            "model_notes": [],
            "added_file": None,
            "versions": versions(),
            "date": datetime.date.today().isoformat(),
            "command": self.command,
        }

    def save(
        self, folder: str | Path, *, force: bool = False, model: bool = True, onnx: bool = False
    ) -> Path:
        """Write the model to take, as ONNX too where that is wanted, its card, the report and the
        figures."""
        if model:
            _saving.require(self.model)
        if onnx:
            _shipping.require_onnx(problem=self.problem)
        with Draft.at(folder, force=force) as draft:
            shipped, notes = self._ship(model=model, onnx=onnx)
            if onnx and _shipping.ONNX not in shipped:
                raise InvalidInput(
                    "; ".join(notes) or "no model is recommended, so none is written"
                )
            self._fill(draft, shipped, notes)
        return Path(folder)

    def write(self, draft: Draft, *, model: bool = True, onnx: bool = False) -> dict[str, Any]:
        """Fill a folder that was begun and put it in its place at once; what `as_dict` gives, with
        the files of the model and notes on those that could not be written."""
        return self._fill(draft, *self._ship(model=model, onnx=onnx))

    def _ship(self, *, model: bool, onnx: bool) -> tuple[dict[str, Content], list[str]]:
        """The files of the model to take, and notes on those that could not be written."""
        if model and self._kept is not None:
            return _shipping.files(self.problem, self._kept.made, onnx=onnx)
        return {}, ["no ONNX file was written: no model is recommended"] if onnx and model else []

    def _fill(self, draft: Draft, shipped: dict[str, Content], notes: list[str]) -> dict[str, Any]:
        from limi.report import repairs as page

        tree = self.as_dict() | {"model_files": list(shipped), "model_notes": notes}
        mix = None if self._kept is None else self._kept.made.mix
        tree["added_file"] = None if mix is None else ADDED
        files: dict[str, Content] = {
            "repair.json": to_json(tree) + "\n",
            "card.md": page.card(tree),
            "report.html": page.render(tree),
            **shipped,
        }
        if mix is not None:
            files[ADDED] = self._list_added(mix)
        draft.finish(files, keep_journal=False)
        return tree

    def _list_added(self, mix: MixedTable) -> bytes:
        """The rows that were added to train on, as the table has them, with their labels."""
        import pyarrow.parquet as pq

        codec, (rows, labels) = self.problem.target.codec, mix.added
        backend, frame = codec.backend, codec.decode(rows)
        columns = {name: backend.column(frame, name) for name in codec.schema.names}
        spelled = spell_labels(self.problem, labels)
        columns[str(self.problem.label_column)] = backend.plain_column(spelled)
        sink = io.BytesIO()
        pq.write_table(backend.to_arrow(backend.frame(columns)), sink)
        return sink.getvalue()

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{one.how}: {one.verdict.word}" for one in self.tried)
        first = self.recommended or "none"
        choice = f"{spell([first, *self.close])} within chance" if self.close else first
        return f"<limi.Repairs: {choice} recommended; {verdicts}>"
