"""Plain English: no construction of the list in pages, docstrings, messages or comments."""

import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BANNED = tomllib.loads((ROOT / "tests" / "prose.toml").read_text(encoding="utf-8"))["banned"]
MADE = {"_build", "generated", "reproduction", "figures"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(p for p in (ROOT / "docs").rglob("*.md") if not MADE & {*p.parts, p.stem}),
]
CODE = [*(ROOT / "limi").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')  # of pages: what is shown as an example, and code


def words_of(path):
    """(place, words) of what a reader sees: pages without code, strings and comments of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
        text = re.sub(r"<!-- before and after -->.*?<!-- end -->", _blank, text, flags=re.S)
        parts = enumerate(QUOTED.sub("", text).split("\n\n"))
        return [(f"paragraph {place}", " ".join(words.split())) for place, words in parts]
    kinds = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        (f"line {token.start[0]}", " ".join(token.string.split()))
        for token in tokens
        if token.type in kinds
    ]


def _blank(found):
    return "\n" * found[0].count("\n")


@pytest.fixture(scope="module")
def seen():
    return [(path.relative_to(ROOT), words_of(path)) for path in (*PAGES, *CODE)]


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


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned["write"])
def test_each_pattern_knows_bad_from_good(banned):
    for words in banned["bad"]:
        assert re.search(banned["pattern"], words, re.IGNORECASE), words
    for words in banned["good"]:
        assert not re.search(banned["pattern"], words, re.IGNORECASE), words
