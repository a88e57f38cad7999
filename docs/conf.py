"""Sphinx configuration: Markdown pages in four parts, and a reference that is generated.

`make docs` builds the site offline into docs/_build/html, with warnings as errors, and then checks
its links. Pages under docs/ need no entry anywhere: what no index names is listed under How-to.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tools")]

import reference

import limi

project = "limi"
author = "the limi developers"
version = release = limi.__version__
copyright = "Apache-2.0"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_in_temp = True  # what a lesson writes does not stay beside it

# Docstrings are written with single backticks for code.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
add_module_names = False

smartquotes = False  # quotes in messages and options are typed as they stand

copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = f"limi {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [one.name for one in sorted(HERE.glob("*.schema.json"))]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
# Claims and their numbers take the room of the list of headings.
WIDE = ("reproduction", "reproduction/claims")
html_theme_options = {
    "logo": {"text": "limi"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **dict.fromkeys(WIDE, ())},
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "show_prev_next": True,
}

# Pages that lie outside docs/, and the page of the site that shows each.
OUTSIDE = {
    "README.md": "/index.md",
    "CONTRIBUTING.md": "/project/contributing.md",
    "CHANGELOG.md": "/project/changes.md",
    "benchmarks/README.md": "/project/benchmarks.md",
    "limi/data/tables/ATTRIBUTION.md": "/project/attribution.md",
}
GENERATED = HERE / "reference" / "generated"
REST = "<!-- pages that no index names -->"

_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```\n", re.MULTILINE)
_STARRED = re.compile(r"^/(\S*\*\S*)\n", re.MULTILINE)
_TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)


def pages_without_a_place(folder: Path) -> list[str]:
    """Pages that no table of contents names, as document names."""
    every = {
        page.relative_to(folder).with_suffix("").as_posix()
        for page in folder.rglob("*.md")
        if "_build" not in page.parts
    }
    named: set[str] = {"index"}
    for page in every:
        text = (folder / page).with_suffix(".md").read_text(encoding="utf-8")
        for line in "\n".join(_TOCTREE.findall(text)).splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip()).removesuffix(".md")
            if entry and not entry.startswith(":"):
                base = Path() if entry.startswith("/") else Path(page).parent
                name = (base / entry.lstrip("/")).as_posix()
                named |= {one for one in every if Path(one).match(name)}
    return sorted(every - named)


def _read(app: object, docname: str, source: list[str]) -> None:
    """Put in pages from outside, and list the pages that are listed nowhere."""
    page = (HERE / docname).with_suffix(".md")
    text = _see_from_site(source[0], page.parent)
    for place in _INCLUDE.findall(text):
        app.env.note_dependency(str((page.parent / place).resolve()))  # type: ignore[attr-defined]
    text = _INCLUDE.sub(lambda found: _put_in((page.parent / found[1]).resolve()), text)
    text = _TOCTREE.sub(lambda found: _STARRED.sub(_expand, found[0]), text)
    if REST in text:
        rest = "\n".join(f"/{name}" for name in pages_without_a_place(HERE))
        text = text.replace(
            REST, f"```{{toctree}}\n:caption: More\n:maxdepth: 1\n\n{rest}\n```" if rest else ""
        )
    source[0] = text


def _expand(entry: re.Match[str]) -> str:
    """The pages that `/folder/*` stands for; nothing where there are none yet."""
    pages = sorted(HERE.glob(f"{entry[1]}.md"))
    return "".join(f"/{page.relative_to(HERE).with_suffix('').as_posix()}\n" for page in pages)


def _put_in(page: Path) -> str:
    return _see_from_site(page.read_text(encoding="utf-8"), page.parent)


def _see_from_site(text: str, folder: Path) -> str:
    """The page with links that lead to where the site shows what they name."""

    def lead(link: re.Match[str]) -> str:
        words, place, anchor = link[1], link[2], link[3] or ""
        target = (HERE if place.startswith("/") else folder) / place.lstrip("/")
        if not target.exists():
            return link[0]
        path = target.resolve().relative_to(HERE.parent).as_posix()
        if path in OUTSIDE:
            return f"[{words}]({OUTSIDE[path]}{anchor})"
        if path.startswith("docs/"):
            return f"[{words}](/{path.removeprefix('docs/')}{anchor})"
        return words  # a file of the repository that the site does not show

    return _LINK.sub(lead, text)


_COMMANDS = re.compile(r'<div class="highlight-console.*?</div>', re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def _keep_options_whole(
    app: object, page: str, template: str, context: dict[str, str], tree: object
) -> None:
    """Commands wrap on narrow screens, but not within `--an-option`."""
    whole = partial(_OPTION.sub, r'<span class="whole">\g<0></span>')
    if "body" in context:
        context["body"] = _COMMANDS.sub(lambda found: whole(found[0]), context["body"])


def _widen(app: object, page: str, *_: object) -> None:
    """Give pages of claims a style sheet of their own, after site.css."""
    if page in WIDE:
        app.add_css_file("wide.css", priority=900)  # type: ignore[attr-defined]


def setup(app: object) -> None:
    """Generate the reference, and read pages as they are seen from the site."""
    reference.write(GENERATED)
    app.connect("source-read", _read)  # type: ignore[attr-defined]
    app.connect("html-page-context", _keep_options_whole)  # type: ignore[attr-defined]
    app.connect("html-page-context", _widen)  # type: ignore[attr-defined]
