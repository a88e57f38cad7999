"""What a command lacks, asked of somebody who sits at a terminal; never of a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from limi.cli import _console

__all__ = ["ask", "can_ask", "fill_in"]


def can_ask() -> bool:
    """Is there somebody to ask?"""
    return sys.stdin.isatty() and _console.out.is_terminal


def ask(question: str, default: Any = None) -> str:
    """What somebody answers, or the default where they only press enter."""
    from typer import prompt

    from limi.system.shown import clean

    answer: str = prompt(clean(question), default=None if default is None else str(default))
    return answer.strip()


def fill_in(given: dict[str, Any], protected: Sequence[str], answers: list[str]) -> list[str]:
    """Ask for target, favorable label and protected columns where they are not said.

    What is known of the table is in `given`, as `limi.audit` takes it, and is filled in; the
    protected columns come back. To the `answers` are added the options that say the same.
    """
    schema = given["schema"]
    if not can_ask() or protected or (schema is not None and schema.protected):
        return list(protected)
    from limi.audits.labels import read_labels, values_of
    from limi.errors import LimiError
    from limi.table import files
    from limi.table.frames import columns_of
    from limi.table.guesses import guess

    frame = given["frame"]
    whole = files.infer(frame)
    guessed = guess(whole, target=given["target"])
    if given["target"] is None:
        named = ask("Label column, or - for none", guessed.target or "-")
        if named not in ("-", ""):
            given["target"] = named
            answers += ["--target", named]
    target = given["target"]
    if target is not None and given["favorable"] is None:
        whole.position(target)
        columns = columns_of(frame)
        try:
            labels = [str(label) for label in read_labels(columns, target)]
        except LimiError:  # numbers, of which none is favorable
            labels = []
        if labels:
            wanted = guess(whole, target=target).favorable
            shown = ", ".join(map(str, values_of(columns, target)[:6]))
            favorable = ask(f"Label of {target} that people want ({shown})", wanted)
            given["favorable"] = favorable
            answers += ["--favorable", favorable]
    proposed = "; ".join(guess(whole, target=target).protected) or None
    answer = ask("Protected columns, joined by ;", proposed)
    chosen = [part.strip() for part in answer.split(";") if part.strip()]
    for name in chosen:
        answers += ["--protected", name]
    return chosen
