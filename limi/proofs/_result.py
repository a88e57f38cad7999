"""What is proven of a table's people, and what is not."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.audits.drafts import Draft
from limi.audits.hiding import HIDDEN, hide_cells, hide_schema, say_region
from limi.audits.problem import Problem, protected_values
from limi.audits.run_folder import FORMAT, versions
from limi.metrics._rate import clopper_pearson
from limi.metrics.regions import learn_regions
from limi.proofs.people import Answer, Stage
from limi.system.shown import to_json
from limi.system.writing import Content
from limi.table.schema_files import dump
from limi.types import Rows

__all__ = ["Domain", "Proof"]

_MOST_REGIONS = 6
_BINS = 40  # of the picture
_WITNESSES = 10
_LEAST_PROVEN = 0.95  # of the people in a region that is worth telling

WORDS = {
    Answer.PROVEN: "proven",
    Answer.FLIPS: "flips",
    Answer.UNDECIDED: "undecided",
    Answer.ALONE: "alone",
}


@dataclass(frozen=True)
class Domain:
    """How far the sums of a row and its partner can be apart anywhere in the table's domain."""

    reached: float  # by a row that was found
    bound: float  # by any row, at most
    score_bound: float  # the same for scores
    optimal: bool
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "gap_found": self.reached,
            "gap_at_most": self.bound,
            "score_gap_at_most": self.score_bound,
            "optimal": self.optimal,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """Answers for people's neighbourhoods, person by person."""

    problem: Problem
    rows: Rows
    chosen: NDArray[np.intp]  # places of the people in the table
    answer: NDArray[np.int8]
    stage: NDArray[np.int8]
    score: NDArray[np.float64]
    gap: NDArray[np.float64]  # of scores in the neighbourhood, at most
    own_gap: NDArray[np.float64]  # of scores, for the person as it is
    witness: Rows
    partner: Rows
    witness_scores: NDArray[np.float64]
    kind: str
    near: str
    slack: float
    apart: float | None  # of the reading from the model, on rows of the table; None if not read
    seed: int
    queries: int
    seconds: float
    stop: str  # "decided", or "seconds"
    domain: Domain | None = None
    notes: tuple[str, ...] = ()
    command: str = ""
    manifest: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many people have which answer."""
        return {word: int((self.answer == answer).sum()) for answer, word in WORDS.items()}

    @property
    def asked(self) -> int:
        """People who have a partner, so that there is something to prove."""
        return len(self) - self.counts["alone"]

    @property
    def flip_share(self) -> tuple[float, float]:
        """Of these people: between which shares those lie in whose neighbourhood somebody flips."""
        n = max(1, self.asked)
        return self.counts["flips"] / n, (self.counts["flips"] + self.counts["undecided"]) / n

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The same for the population that the people were drawn from, with this confidence."""
        if not self.asked:
            return 0.0, 1.0
        flips, late = self.counts["flips"], self.counts["undecided"]
        low = clopper_pearson(flips, self.asked, confidence)[0]
        return low, clopper_pearson(flips + late, self.asked, confidence)[1]

    def regions(self) -> list[dict[str, Any]]:
        """Where the proven people are: groups of whom nearly all are."""
        proven = self.answer == Answer.PROVEN
        found = []
        for region in learn_regions(self.problem.schema, self.rows, proven, most=_MOST_REGIONS):
            held = region.mask(self.rows)
            n, hits = int(held.sum()), int(proven[held].sum())
            if n and hits >= _LEAST_PROVEN * n:
                flips = int((self.answer[held] == Answer.FLIPS).sum())
                where = say_region(region, self.problem.hidden)
                found.append({"where": where, "people": n, "proven": hits, "flips": flips})
        return found

    def picture(self) -> dict[str, Any]:
        """How many people have which score, by answer."""
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        return {
            "edges": [round(float(edge), 6) for edge in edges],
            **{
                word: np.histogram(self.score[self.answer == answer], bins=edges)[0].tolist()
                for answer, word in WORDS.items()
            },
        }

    def witnesses(self, most: int = _WITNESSES) -> list[dict[str, Any]]:
        """People whose neighbourhood flips, with a row that does: the clearest first."""
        gaps = np.abs(np.diff(self.witness_scores, axis=1))[:, 0]
        order = np.argsort(-np.round(np.nan_to_num(gaps, nan=-1.0), 6), kind="stable")
        columns = self.problem.schema.columns
        sides = {"person": self.rows, "witness": self.witness, "partner": self.partner}
        return [
            {
                "row": int(self.chosen[place]),
                "fields": [
                    {
                        "name": column.name,
                        **{
                            side: HIDDEN
                            if column.name in self.problem.hidden
                            else column.show(float(rows[place, j]))
                            for side, rows in sides.items()
                        },
                    }
                    for j, column in enumerate(columns)
                ],
                "score": float(self.witness_scores[place, 0]),
                "partner_score": float(self.witness_scores[place, 1]),
            }
            for place in order[:most].tolist()
            if self.answer[place] == Answer.FLIPS
        ]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.flip_share
        own = self.stage == Stage.PERSON
        known = self.answer != Answer.ALONE
        return {
            "format": FORMAT,
            "answers": self.counts,
            "people": len(self),
            "table_rows": len(self.problem.rows),
            "share_proven": self.counts["proven"] / max(1, self.asked),
            "flip_share_at_least": low,
            "flip_share_at_most": high,
            "population_interval": list(self.interval()),
            "confidence": 0.95,
            "flips_themselves": int((own & (self.answer == Answer.FLIPS)).sum()),
            "decided_by": {s.name.lower(): int((self.stage == s).sum()) for s in Stage},
            "largest_gap_of_a_person": float(self.own_gap[known].max(initial=0.0)),
            "largest_gap_near_a_person_at_most": float(self.gap[known].max(initial=0.0)),
            "near": self.near,
            "protected": protected_values(self.problem.schema),
            "hidden": list(self.problem.hidden),
            "blind": self.problem.blind,  # the model does not take them, so all is proven
            "favorable": self.problem.favorable,
            "table": self.problem.table_name,
            "model": self.problem.model_name,
            "kind": self.kind,
            "margin": self.slack,
            "read_within": self.apart,
            "regions": self.regions(),
            "witnesses": self.witnesses(),
            "picture": self.picture(),
            "domain": None if self.domain is None else self.domain.as_dict(),
            "stop": self.stop,
            "seed": self.seed,
            "queries": self.queries,
            "seconds": round(self.seconds, 3),
            "notes": [*self.notes],
            "hashes": self.problem.hashes(),
            "versions": versions(),
            "command": self.command,
        }

    def write(self, draft: Draft) -> None:
        """Fill a folder that was begun, and put it in its place."""
        from limi.report import proof as page

        tree = self.as_dict()
        files: dict[str, Content] = {
            "proof.json": to_json(tree) + "\n",
            "schema.toml": dump(hide_schema(self.problem.schema, self.problem.hidden)),
            "people.parquet": self._list_people(),
            "report.html": page.render(tree),
        }
        draft.finish(files, keep_journal=False)

    def _list_people(self) -> bytes:
        """Everybody as the table has them, with the answer and a row that flips; one word in
        the place of what is hidden."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        codec, hidden = self.problem.target.codec, self.problem.hidden
        flips = self.answer == Answer.FLIPS

        def told(rows: Rows, prefix: str) -> dict[str, Any]:
            shown = {
                column.name: [
                    (HIDDEN if column.name in hidden else column.show(float(cell)))
                    if there
                    else None
                    for cell, there in zip(rows[:, j], flips, strict=True)
                ]
                for j, column in enumerate(codec.schema.columns)
            }
            return {
                f"{prefix}{name}": pa.array(cells, pa.string()) for name, cells in shown.items()
            }

        backend = codec.backend
        frame = codec.decode(self.rows)
        cells = {name: backend.column(frame, name) for name in backend.names(frame)}
        frame = backend.frame(hide_cells(cells, hidden, backend, len(self))) if hidden else frame
        table = backend.to_arrow(frame)
        added = {
            "answer": pa.array([WORDS[Answer(a)] for a in self.answer]),
            "decided_by": pa.array([Stage(s).name.lower() for s in self.stage]),
            "table_row": pa.array(self.chosen),
            "score": pa.array(self.score),
            "gap_at_most": pa.array(self.gap),
            **told(self.witness, "witness: "),
            **told(self.partner, "partner: "),
        }
        for name, values in added.items():
            table = table.append_column(
                name if name not in table.column_names else f"{name}*", values
            )
        sink = io.BytesIO()
        pq.write_table(table, sink)
        return sink.getvalue()

    def __repr__(self) -> str:
        told = ", ".join(f"{n} {word}" for word, n in self.counts.items() if n)
        names = " or ".join(self.problem.schema.protected)
        blind = f"; the model does not take {names}" if self.problem.blind else ""
        return f"<limi.Proof of {len(self)} people: {told}{blind}>"
