"""Plain English: nothing that `prose.toml` bans in pages, studies, docstrings or messages."""

import ast
import io
import re
import tokenize
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BANNED = tomllib.loads((ROOT / "tests" / "prose.toml").read_text(encoding="utf-8"))["banned"]
MADE = {"_build", "generated", "reproduction", "figures"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(p for p in (ROOT / "docs").rglob("*.md") if not MADE & {*p.parts, p.stem}),
]
CODE = [
    *(ROOT / "limi").rglob("*.py"),
    *(ROOT / "lab").rglob("*.py"),
    *(ROOT / "tools").glob("*.py"),
]
TEMPLATES = [*(ROOT / "limi").rglob("*.html")]
STUDIES = [*(ROOT / "lab" / "studies").glob("*.toml")]
SHOWN = ("says", "remarks", "notes", "note")  # keys of studies whose strings stand on pages
QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')  # of pages: what is shown as an example, and code


def words_of(path):
    """(place, words) of what a reader sees: pages and templates without code, strings, comments.

    Of studies the texts of their pages, with `0` for every number that is filled in.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
        text = re.sub(r"<!-- before and after -->.*?<!-- end -->", _blank, text, flags=re.S)
        parts = enumerate(QUOTED.sub("", text).split("\n\n"))
        return [(f"paragraph {place}", " ".join(words.split())) for place, words in parts]
    if path.suffix == ".html":
        text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", " ", text, flags=re.S)
        return [("template", " ".join(text.split()))]
    if path.suffix == ".toml":
        return [*_shown(tomllib.loads(text))]
    return [*_comments(text), *_strings(ast.parse(text))]


def _shown(tree, place=""):
    """Texts under the keys that are shown, paragraph by paragraph, wherever they stand."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        where = f"{place}.{key}".lstrip(".")
        if isinstance(value, dict | list):
            yield from _shown(value, where)
        elif isinstance(value, str) and {*SHOWN} & {*where.split(".")}:
            filled = re.sub(r"{[^{}]*}", "0", value)
            for words in QUOTED.sub("", filled).split("\n\n"):
                yield where, " ".join(words.split())


def _comments(text):
    """Comments that follow each other line by line are one text."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {t.start[0]: t.string.lstrip("#: ") for t in tokens if t.type == tokenize.COMMENT}
    starts = [line for line in lines if line - 1 not in lines]
    for start, end in pairwise([*starts, float("inf")]):
        words = " ".join(said for line, said in lines.items() if start <= line < end)
        yield f"line {start}", " ".join(words.split())


def _strings(tree):
    """Strings whole, however many pieces they are written in; values that are filled in as `0`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [v.value if isinstance(v, ast.Constant) else "0" for v in node.values]
            yield f"line {node.lineno}", " ".join("".join(parts).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield f"line {node.lineno}", " ".join(node.value.split())


def _blank(found):
    return "\n" * found[0].count("\n")


@pytest.fixture(scope="module")
def seen():
    return [
        (path.relative_to(ROOT), words_of(path)) for path in (*PAGES, *CODE, *TEMPLATES, *STUDIES)
    ]


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned["write"])
def test_nothing_reads_as_translated(banned, seen):
    pattern = re.compile(banned["pattern"], re.IGNORECASE)
    found = [
        f"{path}, {place}: {words[max(match.start() - 30, 0) : match.end() + 20]}"
        for path, parts in seen
        for place, words in parts
        for match in pattern.finditer(words)
    ]
    assert found == [], f"write {banned['write']!r} instead"


def test_texts_of_studies_are_read():
    tree = {
        "title": "Not shown",
        "remarks": "Of {atn limi mean} a `row`.\n\nMore.",
        "notes": ["A note."],
        "claims": [{"says": "It\nholds.", "measure": "atn"}, {"note": "Why."}],
    }
    assert [*_shown(tree)] == [
        ("remarks", "Of 0 a ."),
        ("remarks", "More."),
        ("notes.0", "A note."),
        ("claims.0.says", "It holds."),
        ("claims.1.note", "Why."),
    ]


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned["write"])
def test_each_pattern_knows_bad_from_good(banned):
    for words in banned["bad"]:
        assert re.search(banned["pattern"], words, re.IGNORECASE), words
    for words in banned["good"]:
        assert not re.search(banned["pattern"], words, re.IGNORECASE), words
