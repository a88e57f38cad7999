"""What is known of people, block by block, in the draft of a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.run_folder import digest
from limi.errors import CorruptStore
from limi.proofs.people import Answer, People, Stage
from limi.system import writing

__all__ = ["NAME", "Store"]

NAME = "progress.jsonl"


class Store:
    """Finished blocks, a line for each; an interrupted run takes them up."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file = writing.lock(self._path)
        self._blocks: dict[int, dict[str, Any]] = {}
        content = self._file.read()
        whole = content.rfind(b"\n") + 1  # a kill may have left a part of a line
        try:
            for line in content[:whole].splitlines():
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError):
            self.close()
            raise CorruptStore(
                f"{str(self._path)!r} was changed after limi wrote it; start again with --force"
            ) from None
        self._file.truncate(whole)

    def _take(self, tree: dict[str, Any]) -> None:
        block = tree["block"]
        if tree["sha256"] != _sum(block):
            raise ValueError("another sum")
        self._blocks[int(block["number"])] = block

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __contains__(self, number: int) -> bool:
        return number in self._blocks

    def keep(self, number: int, people: People) -> None:
        """Write a block behind the others."""
        flips = np.flatnonzero(people.answer == Answer.FLIPS)
        block = {
            "number": number,
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
        line = json.dumps({"block": block, "sha256": _sum(block)})
        writing.append(self._file.fileno(), f"{line}\n".encode())

    def restore(self, number: int, people: People) -> None:
        """Take up a block that it contains; flips are put to the model once more."""
        known = self._blocks[number]
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


def _sum(block: dict[str, Any]) -> str:
    return digest(json.dumps(block, sort_keys=True).encode())
