"""`limi explain`: what the words of a report mean."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from limi.cli import _console
from limi.cli._options import AsJson

__all__ = ["explain"]


def explain(
    term: Annotated[
        str | None, Argument(help="Word used in a report. Default: list them all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a word of a report, or list them all."""
    from limi.report.terms import explain as explain_term
    from limi.report.terms import known_terms

    told = known_terms() if term is None else dict([explain_term(term)])
    if as_json:
        _console.print_json(dict(told))
        return
    for name, words in told.items():
        _console.out.print(f"{name}: {words}")
