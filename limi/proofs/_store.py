"""What is known of people, block by block, in the draft of a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.run_folder import digest, read_json
from limi.errors import CorruptStore
from limi.proofs.people import Answer, People, Stage
from limi.system import writing
from limi.system.shown import to_json

__all__ = ["NAME", "Store"]

NAME = "progress.json"


class Store:
    """Finished blocks; an interrupted run takes them up."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._blocks: dict[str, Any] = {}
        if self._path.exists():
            tree = read_json(self._path)
            blocks = tree.get("blocks")
            if not isinstance(blocks, dict) or tree.get("sha256") != _sum(blocks):
                raise CorruptStore(
                    f"{str(self._path)!r} was changed after limi wrote it; start again with --force"
                )
            self._blocks = blocks

    def __contains__(self, number: int) -> bool:
        return str(number) in self._blocks

    def keep(self, number: int, people: People) -> None:
        """Write a block behind the others."""
        flips = np.flatnonzero(people.answer == Answer.FLIPS)
        self._blocks[str(number)] = {
            "answer": people.answer.tolist(),
            "stage": people.stage.tolist(),
            "gap": [None if np.isinf(gap) else gap for gap in people.gap.tolist()],
            "witness": [
                [None if np.isnan(cell) else cell for cell in row]
                for row in people.witness[flips].tolist()
            ],
            "queries": people.queries,
            "slack": people.slack,
        }
        tree = {"format": 2, "blocks": self._blocks, "sha256": _sum(self._blocks)}
        writing.write(self._path, to_json(tree) + "\n")

    def restore(self, number: int, people: People) -> None:
        """Take up a block that it contains; flips are put to the model once more."""
        known = self._blocks[str(number)]
        stage = np.array(known["stage"], dtype=np.int8)
        answer = np.array(known["answer"], dtype=np.int8)
        if len(answer) != len(people.rows):
            raise CorruptStore(
                f"{str(self._path)!r} is about other people; start again with --force"
            )
        flips = np.flatnonzero(answer == Answer.FLIPS)
        witness = np.array(
            [[np.nan if cell is None else cell for cell in row] for row in known["witness"]]
        ).reshape(len(flips), people.rows.shape[1])
        for each in np.unique(stage[flips]):
            here = flips[stage[flips] == each]
            if each != Stage.PERSON:
                people.replay(here, witness[np.isin(flips, here)], Stage(int(each)))
        if (people.answer[flips] != Answer.FLIPS).any():
            raise CorruptStore(
                f"rows in {str(self._path)!r} do not flip when the model is asked again; start "
                "again with --force"
            )
        others = np.setdiff1d(np.arange(len(answer)), flips)
        people.answer[others], people.stage[others] = answer[others], stage[others]
        people.gap[:] = [np.inf if gap is None else gap for gap in known["gap"]]
        # As of a run that was never cut short; what was asked again is beside the count.
        people.queries, people.slack = known["queries"], known["slack"]


def _sum(blocks: dict[str, Any]) -> str:
    return digest(json.dumps(blocks, sort_keys=True).encode())
