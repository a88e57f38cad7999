"""Targets of the open benchmark: what they are, the recipes that make them, and ranks of methods.

A target is a definition in a TOML file: a table, its protected columns, and a recipe with settings.
A recipe is a module of this folder, or an entry point of another package, with

- `Settings`: a frozen dataclass of what a definition may set;
- `make(making)`: the model, as anything that `limi` can ask.
"""

from __future__ import annotations

from limi._registry import Registry

__all__ = ["RECIPES"]

RECIPES = Registry(
    "limi.bench", "recipe", apart=frozenset({"definitions", "making", "ranks", "reference"})
)
