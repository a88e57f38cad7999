"""Kinds of cells, a module each.

A kind has `measure(cell, shop)`, which gives the numbers of a cell, ready for JSON. It may have
`require_table(cell)`, which raises where the cell's table cannot be loaded (by default it is one of
`limi datasets`), and `ALONE = True` where its cells share no model and no generator with others.
"""

from __future__ import annotations

from limi._registry import Registry

__all__ = ["KINDS"]

KINDS = Registry("lab.kinds", "kind of cell")
