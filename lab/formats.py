"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from limi.system.shown import clean
from limi.system.words import markdown

__all__ = ["StudyTable", "note", "render"]


@dataclass(frozen=True)
class StudyTable:
    """A table as text: headings, rows of as many cells, and notes below it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    n_names: int = 2  # leading columns that hold names


def render(table: StudyTable) -> str:
    """The table, its title above and its notes below."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(markdown(cell) for cell in cells) + " |"

    sides = ["---" if i < table.n_names else "---:" for i in range(len(table.headings))]
    out = [f"**{markdown(table.title)}**", ""] if table.title else []
    out += [line(table.headings), "| " + " | ".join(sides) + " |", *map(line, table.rows)]
    notes = [f"- {note(one)}" for one in table.notes]
    return "\n".join([*out, *([""] if notes else []), *notes]) + "\n"


def note(text: str) -> str:
    """A note as Markdown: prose of ours, which may hold code marks, and what a library said."""
    return clean(text.replace("<", "&lt;").replace("[", "\\[").replace("\n", " "))
