"""A table in text, Markdown, LaTeX or HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from limi.errors import InvalidInput, nearest
from limi.system.shown import clean
from limi.system.words import markdown

__all__ = ["FORMATS", "StudyTable", "latex", "note", "render"]

FORMATS = ("text", "markdown", "latex", "html")


@dataclass(frozen=True)
class StudyTable:
    """A table as text: headings, rows of as many cells, and notes below it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    n_names: int = 2  # leading columns that hold names


def render(table: StudyTable, form: str) -> str:
    """A table in one of FORMATS."""
    if form not in FORMATS:
        raise InvalidInput(f"there is no format {form!r}; {nearest(form, FORMATS)}")
    return {"text": _text, "markdown": _markdown, "latex": _latex, "html": _html}[form](table)


def _text(table: StudyTable) -> str:
    lines = [table.headings, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headings))]
    out = [table.title, ""] if table.title else []
    for number, line in enumerate(lines):
        cells = [
            cell.ljust(width) if i < table.n_names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
        if not number:
            out.append("  ".join("-" * width for width in widths))
    return (
        "\n".join([*out, *([""] if table.notes else []), *(f"- {n}" for n in table.notes)]) + "\n"
    )


def _markdown(table: StudyTable) -> str:
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


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "λ": r"$\lambda$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\n": " ",
}


def latex(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex(table: StudyTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(latex, cells)) + r" \\"

    sides = "".join("l" if i < table.n_names else "r" for i in range(len(table.headings)))
    body: list[str] = []
    before = ""
    for row in table.rows:
        # A benchmark is named once, and a rule parts it from the next.
        if table.n_names > 1 and before and row[0] != before:
            body.append(r"\midrule")
        shown = ("", *row[1:]) if table.n_names > 1 and row[0] == before else row
        body.append(line(shown))
        before = row[0]
    return (
        "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                r"\begin{table}",
                *([rf"\caption{{{latex(table.title)}}}"] if table.title else []),
                rf"\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                line(table.headings),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                *(rf"\par\footnotesize {latex(note)}" for note in table.notes),
                r"\end{table}",
            ]
        )
        + "\n"
    )


def _html(table: StudyTable) -> str:
    def cells(row: Sequence[str]) -> str:
        named = "".join(f'<th scope="row">{html.escape(c)}</th>' for c in row[: table.n_names])
        return named + "".join(f"<td>{html.escape(c)}</td>" for c in row[table.n_names :])

    heads = "".join(f'<th scope="col">{html.escape(h)}</th>' for h in table.headings)
    rows = "\n".join(f"<tr>{cells(row)}</tr>" for row in table.rows)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    caption = f"<caption>{html.escape(table.title)}</caption>\n" if table.title else ""
    below = f"\n<ul>{notes}</ul>" if notes else ""
    return (
        f'<table class="wide">\n{caption}<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>{below}\n"
    )
