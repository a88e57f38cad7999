"""What all pages share: one head, one policy, and one way for a cell to reach the page.

A page asks for nothing: its policy forbids every request, and allows its one style sheet and, where
it has one, its one script by their hashes. No cell of a table can become either.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limi.report import wording
from limi.report.terms import TERMS
from limi.system import words

__all__ = ["environment", "read_part", "render"]


def render(
    template: str,
    styles: tuple[str, ...],
    /,
    *,
    pictures: bool = False,
    script: str | None = None,
    **content: Any,
) -> str:
    """A page of its own; the same bytes for the same content.

    `pictures` lets it show images that it holds itself, and `script` names the one it runs.
    """
    css = "".join(read_part(f"{name}.css") for name in styles)
    js = "" if script is None else read_part(f"{script}.js")
    return (
        environment()
        .get_template(template)
        .render(
            **content,
            css=Markup(css),
            js=Markup(js),
            policy=f"default-src 'none'; style-src '{_digest(css)}'; "
            + (f"script-src '{_digest(js)}'; " if js else "")
            + ("img-src data:; " if pictures else "")
            + "base-uri 'none'; form-action 'none'",
        )
    )


def read_part(name: str) -> str:
    """A style sheet or a script of the pages."""
    return resources.files("limi.report").joinpath(f"templates/{name}").read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def environment(package: str = "limi.report") -> Environment:
    """The templates of a package, with every expression cleaned and escaped."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        finalize=_show,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": words.count,
        "hash_of": wording.hash_of,
        "number": words.number,
        "percent": wording.percent,
        "score": words.score,
        "share": wording.share,
        "label": _label,
        "at": _at,
    }
    environment.globals["terms"] = TERMS
    return environment


def _show(value: object) -> object:
    """Every expression of a template passes here before it is escaped."""
    if isinstance(value, Markup):
        return value
    return wording.clean(value if isinstance(value, str) else str(value))


def _label(name: str) -> str:
    words = wording.title(name)
    return words[:1].upper() + words[1:]


def _at(fraction: float) -> str:
    """A place on a chart; two digits, so that the last bits of a sum change no byte."""
    return f"{100 * min(max(fraction, 0.0), 1.0):.2f}%"
