"""Check a built site: every internal link leads somewhere, and no page loads from a network.

python tools/site_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a page loads something, rather than offers a link to click.
_LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect"}


@dataclass
class _Page(HTMLParser):
    """What a page is called by, what it links, and what it loads."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.ids |= {said[name] for name in ("id", "name") if name in said and tag != "input"}
        for name, value in said.items():
            if (tag, name) in _LOADED:
                self.loads.append(value)
            elif name == "href" and tag == "link":
                if _LOADED_LINKS & set(said.get("rel", "").split()):
                    self.loads.append(value)
            elif name == "href":
                self.links.append(value)


def read(page: Path) -> _Page:
    """The page, parsed."""
    parsed = _Page()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


def check(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each thing that a network would bring."""
    found = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    pages = {page.resolve(): read(page) for page in found}
    wrong = [] if pages else [f"{site} holds no page"]
    for place, page in pages.items():
        name = place.relative_to(site.resolve())
        wrong += [f"{name} loads {url}" for url in page.loads if _is_outside(url)]
        for url in {*page.links, *page.loads}:
            parts = urlsplit(url)
            if parts.scheme or _is_outside(url):
                continue
            target = (place.parent / unquote(parts.path)).resolve() if parts.path else place
            if not target.exists():
                wrong.append(f"{name} links {url}, which is not there")
            elif (anchor := unquote(parts.fragment)) and anchor not in _ids(pages, target, anchor):
                wrong.append(f"{name} links {url}, and that page has no such place")
    return wrong


def _is_outside(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https") or url.startswith("//")


def _ids(pages: Mapping[Path, _Page], target: Path, anchor: str) -> set[str]:
    """Places of a page; of a file that is not a page, whatever is asked for."""
    return pages[target].ids if target in pages else {anchor}


def main() -> int:
    """Print what is wrong; 1 where something is."""
    wrong = check(Path(sys.argv[1]))
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"links: {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
