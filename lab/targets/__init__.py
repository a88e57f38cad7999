"""Targets of the open benchmark: what they are, the recipes that make them, and ranks of methods.

A target is a definition in a TOML file: a table, its protected columns, and a recipe with settings.
A recipe is a module of this folder, or an entry point of another package, with

- `Settings`: a frozen dataclass of what a definition may set;
- `make(making)`: the model, as anything that `limi` can ask;
- `REVISION`, where it is not 1: a whole number, raised with every change by design that makes the
  same definition another model. Results of the earlier model are then run again.
"""

from __future__ import annotations

from limi._registry import Registry

__all__ = ["RECIPES", "revision"]

RECIPES = Registry(
    "lab.targets", "recipe", apart=frozenset({"definitions", "making", "ranks", "reference"})
)


def revision(recipe: str) -> int:
    """How often what a recipe makes was changed by design; 1 where it does not say."""
    return int(vars(RECIPES.get(recipe)).get("REVISION", 1))
