"""How far the densities of findings and of the table overlap, along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.cells import Cell
from lab.kinds._search import search_cell
from lab.workshop import Workshop
from limi.audits import pictures
from limi.errors import InvalidInput
from limi.metrics._enough import FEWEST_TO_JUDGE

__all__ = ["measure"]


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """The overlap, and the lines of the picture."""
    search = search_cell(cell, shop)
    problem, ran, rows = search.problem, search.run, search.rows
    rng = np.random.default_rng([cell.seed, 7])
    most = int(cell.extra.get("findings", 1000))
    chosen = rows[rng.permutation(len(rows))[:most]]
    # The same for every cell of a table, so that their lines lie over one axis.
    real = problem.rows[np.random.default_rng(0).permutation(len(problem.rows))]
    if len(chosen) < FEWEST_TO_JUDGE:
        raise InvalidInput(f"{cell.method} found {len(rows)} rows, too few for a density")
    drawn = pictures.densities(real, {"findings": chosen})
    lines = drawn["lines"]
    shared = np.minimum(lines["real"], lines["findings"]).sum() / max(sum(lines["real"]), 1e-12)
    return {
        "findings": len(rows),
        "shown": len(chosen),
        "seconds": round(ran.seconds, 3),
        "overlap": round(float(shared), 4),
        "share": drawn["share"],
        "picture": {"x": drawn["x"], "real": lines["real"], "findings": lines["findings"]},
        **shop.facts(cell),
    }
