"""How well LIMI's boundary fits, without the search that follows."""

from __future__ import annotations

from typing import Any

from lab.cells import Cell
from lab.kinds._search import search_cell
from lab.workshop import Workshop
from limi.errors import InvalidInput

__all__ = ["measure"]


def measure(cell: Cell, shop: Workshop) -> dict[str, Any]:
    """Its AUC on the latents it was fitted to and on all."""
    ran = search_cell(cell, shop).run
    facts = {name.removeprefix("boundary_"): value for name, value in ran.session.facts.items()}
    if "auc_train" not in facts:
        why = ran.session.notes[0] if ran.session.notes else "no boundary was fitted"
        raise InvalidInput(f"{cell.benchmark}, {cell.target}: {why}")
    tree = {name: round(float(value), 4) for name, value in facts.items()}
    return tree | shop.facts(cell) | shop.generator_facts(cell)
