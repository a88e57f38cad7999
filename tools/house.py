"""The picture of the house in docs: rooms by layer, who uses whom, and the way of a row through it.

    python tools/house.py           # write docs/house.svg and the table in docs/design.md
    python tools/house.py --check   # fail where they no longer show the code

Layers are those that the tests hold imports to. What a room is for is the first sentence of its
docstring; whom it uses is read from its imports; and every stop of the way is a name that must be
there to be drawn.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from xml.sax.saxutils import escape

_ROOT = Path(__file__).parent.parent
_PACKAGE = _ROOT / "limi"
_PAGE, _PICTURE = _ROOT / "docs" / "design.md", _ROOT / "docs" / "house.svg"
_START, _END = "<!-- rooms: written by tools/house.py -->", "<!-- end of rooms -->"

# Where a row goes: what it is, and the code that takes it on from there.
_WAY = (
    ("frame", "limi.table.frames:Codec.encode"),
    ("rows", "limi.search.method:Method.search"),
    ("candidates", "limi.search.session:Session.check"),
    ("questions", "limi.search.check:check_rows"),
    ("cells", "limi.models.target:Target.score"),
    ("verdicts", "limi.search.engine:run"),
    ("findings", "limi.audits.verify:verify"),
    ("facts", "limi.audits.sum_up:sum_up"),
    ("summary", "limi.report.html:render"),
)

_WIDTH, _GAP, _MARGIN = 960, 14, 16
_HEAD, _LINE, _LETTER = 30, 14, 6.6  # of a box: its name, a line of words, a letter


@dataclass(frozen=True)
class Room:
    """A folder of the package, or one of the modules at its root."""

    name: str
    purpose: str
    uses: tuple[str, ...]


def layers() -> list[list[str]]:
    """The layers of the tests, the lowest first."""
    tree = ast.parse((_ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            found: list[list[str]] = ast.literal_eval(node.value)
            return found
    raise LookupError("tests/test_layers.py has no LAYERS")


def read_room(name: str, known: set[str]) -> Room:
    """A room as its files describe it."""
    folder = _PACKAGE / name
    head = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    words = ast.get_docstring(ast.parse(head.read_text(encoding="utf-8"))) or ""
    purpose = " ".join(words.partition("\n\n")[0].split())
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [head]
    uses = {used for file in files for used in _used(file)} & known - {name}
    return Room(name, purpose, tuple(sorted(uses)))


def _used(file: Path) -> set[str]:
    """Rooms that a file imports from, late imports included."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "limi":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if "limi." in alias.name}
    return found


def way() -> list[tuple[str, str]]:
    """The stops of a row; LookupError where the code has no such name any more."""
    stops = []
    for what, place in _WAY:
        module, _, names = place.partition(":")
        there = import_module(module)
        for name in names.split("."):
            if not hasattr(there, name):
                raise LookupError(f"{place} is no longer there; tools/house.py draws it")
            there = getattr(there, name)
        stops.append((what, f"{module}:{names}"))
    return stops


def write_table(rooms: list[list[Room]]) -> str:
    """The rooms as a table in Markdown, the highest layer first."""
    lines = ["| layer | room | what it is for | uses |", "|---|---|---|---|"]
    for level in range(len(rooms) - 1, -1, -1):
        for room in rooms[level]:
            uses = ", ".join(room.uses) or "nothing"
            lines.append(f"| {level} | `{room.name}` | {room.purpose} | {uses} |")
    return "\n".join(lines)


def draw(rooms: list[list[Room]], stops: list[tuple[str, str]]) -> str:
    """The picture: layers as rows of boxes, and under them the way of a row."""
    parts, top = [], float(_MARGIN)
    for row in reversed(rooms):
        width = _share(len(row))
        told = [textwrap.wrap(room.purpose, int(width / _LETTER)) for room in row]
        height = _HEAD + _LINE * max(map(len, told))
        for left, room, lines in zip(_lefts(len(row)), row, told, strict=True):
            parts.append(_box(left, top, width, height, room.name, lines))
        top += height + _GAP
    top += _GAP
    across = -(-len(stops) // 2)
    height = _HEAD + 2 * _LINE
    for number, (what, place) in enumerate(stops):
        left = _lefts(across)[number % across]
        lines = [place.rpartition(":")[0], place.rpartition(":")[2]]
        title = f"{number + 1}. {what}"
        parts.append(_box(left, top, _share(across), height, title, lines, "way"))
        if number % across < across - 1 and number < len(stops) - 1:
            end, middle = left + _share(across) + _GAP, top + height / 2
            parts.append(f'<path class="arrow" d="M{end - _GAP:.0f} {middle:.0f}H{end - 4:.0f}"/>')
        if number % across == across - 1:
            top += height + _GAP
    bottom = top + (height + _GAP if len(stops) % across else 0) + _MARGIN
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom:.0f}" role="img" '
        'aria-label="The rooms of limi by layer, and the way of a row through them">\n'
        "<style>text{font:13px system-ui,sans-serif;fill:#1a2330}"
        ".name{font-weight:600}.room{fill:#eef3f8;stroke:#8aa0b8}"
        ".way{fill:#fdf3e3;stroke:#c79a4b}.small{font-size:11px}"
        ".arrow{stroke:#c79a4b;stroke-width:2;marker-end:url(#end)}</style>\n"
        '<defs><marker id="end" viewBox="0 0 6 6" refX="4" refY="3" markerWidth="5" '
        'markerHeight="5" orient="auto"><path d="M0 0L6 3L0 6z" fill="#c79a4b"/></marker></defs>\n'
        f"{body}\n</svg>\n"
    )


def _share(n: int) -> float:
    """The width of one of n boxes in a row."""
    return (_WIDTH - 2 * _MARGIN - _GAP * (n - 1)) / n


def _lefts(n: int) -> list[float]:
    return [_MARGIN + place * (_share(n) + _GAP) for place in range(n)]


def _box(
    left: float,
    top: float,
    width: float,
    height: float,
    name: str,
    lines: list[str],
    kind: str = "room",
) -> str:
    told = "".join(
        f'<text class="small" x="{left + 8:.0f}" y="{top + 35 + _LINE * n:.0f}">'
        f"{escape(line)}</text>"
        for n, line in enumerate(lines)
    )
    return (
        f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="6"/>'
        f'<text class="name" x="{left + 8:.0f}" y="{top + 19:.0f}">{escape(name)}</text>{told}'
    )


def render() -> tuple[str, str]:
    """The page with its table, and the picture, as the code is now."""
    names = layers()
    known = {name for row in names for name in row}
    rooms = [[read_room(name, known) for name in row] for row in names]
    page = _PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_START)
    _, _, after = rest.partition(_END)
    return f"{before}{_START}\n\n{write_table(rooms)}\n\n{_END}{after}", draw(rooms, way())


def main() -> int:
    """Write page and picture, or say that they are old."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where they differ"
    )
    checks = parser.parse_args().check
    page, picture = render()
    old = [
        file.name
        for file, text in ((_PAGE, page), (_PICTURE, picture))
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    if checks:
        print(f"old: {', '.join(old)}; run python tools/house.py" if old else "all is current")
        return int(bool(old))
    _PAGE.write_text(page, encoding="utf-8")
    _PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
