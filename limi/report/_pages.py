"""What all pages share: one head, one policy, and one way for a cell to reach the page.

A page asks for nothing and runs nothing: its policy forbids every request and every script, and
allows its one style sheet by its hash.
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
from limi.system import words

__all__ = ["environment", "render"]


def render(
    template: str, styles: tuple[str, ...], /, *, pictures: bool = False, **content: Any
) -> str:
    """A page of its own; the same bytes for the same content.

    `pictures` lets it show images that it holds itself.
    """
    folder = resources.files("limi.report")
    css = "".join(folder.joinpath(f"templates/{name}.css").read_text("utf-8") for name in styles)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return (
        environment()
        .get_template(template)
        .render(
            **content,
            css=Markup(css),
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; "
            + ("img-src data:; " if pictures else "")
            + "base-uri 'none'; form-action 'none'",
        )
    )


@cache
def environment() -> Environment:
    """Templates with every expression cleaned and escaped."""
    environment = Environment(
        loader=PackageLoader("limi.report"),
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
        "score": wording.score,
        "share": wording.share,
        "label": _label,
        "at": _at,
    }
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
