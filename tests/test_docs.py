"""Every Python snippet of the documentation runs, and every command it shows exists."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from limi.cli._app import app
from limi.table import schema_files
from limi.table._rule_syntax import parse_rule

ROOT = Path(__file__).parent.parent
MADE = {"_build", "generated", "jupyter_execute"}  # what a build leaves in docs/
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not MADE & set(page.parts)),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name_of(page):
    return page.relative_to(ROOT / "docs" if ROOT / "docs" in page.parents else ROOT).as_posix()


@cache
def anchors(page):
    """The places of a page that a link can name: headings as GitHub and the site spell them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    slugs = [re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-") for words in plain]
    return {*slugs, *re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)}


def blocks(language):
    return [
        pytest.param(match.group(2), id=f"{name_of(page)}-{number}")
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
        if match.group(1) == language
    ]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_snippets_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize("text", blocks("console"))
def test_commands_and_options_exist(text):
    root = get_command(app)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words = line.partition("#")[0].removeprefix("$ ").split()
        if not words or words[0] != "limi":
            continue
        command, words = root, words[1:]
        while words and hasattr(command, "commands") and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known | {"--help", "--version"}, line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for place, anchor in re.findall(r"\]\(([^)#:\s]*)#?([^)\s]*)\)", text):
        start = ROOT / "docs" if place.startswith("/") else page.parent
        target = start / place.lstrip("/") if place else page
        if MADE & set(target.parts) or ":" in anchor:
            continue  # it is there once the site is built, and `make docs` checks it
        assert target.exists(), place
        if anchor and target.suffix == ".md" and page.name != "reproduction.md":
            assert anchor in anchors(target), f"{place}#{anchor}"


def test_every_page_has_a_place_in_the_site(tmp_path):
    """What no index names is listed under How-to, so that a new page needs no entry."""
    conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    marker = re.search(r'REST = "(.*)"', conf)[1]
    assert marker in (ROOT / "docs" / "how-to" / "index.md").read_text(encoding="utf-8")


def test_rules_that_the_documentation_shows_are_rules():
    shown = [tomllib.loads(block.values[0]).get("constraints", {}) for block in blocks("toml")]
    rules = [rule for section in shown for rule in section.values()]
    assert rules
    for rule in rules:
        parse_rule(rule)


def test_the_schema_that_the_reference_shows_is_one():
    page = (ROOT / "docs" / "reference" / "schema-file.md").read_text(encoding="utf-8")
    (shown,) = (found[2] for found in BLOCK.finditer(page) if found[1] == "toml")
    schema = schema_files.parse(shown)
    assert schema.protected == ("sex",)
    assert (len(schema.rules.derived), len(schema.rules.roles)) == (1, 1)
    named = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page.partition("## Columns")[2], re.M))
    fields = {name for cell in named for name in re.findall(r"\w+", cell)}
    assert fields == schema_files._FIELDS


NOTEBOOKS = [page for page in PAGES if "{code-cell}" in page.read_text(encoding="utf-8")]
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=name_of)
def test_notebooks_run_and_show_what_their_cells_end_with(page, tmp_path, monkeypatch):
    """Cells run in one process and in their order; what ends a cell can be shown by a notebook."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "notebook"}
    cells = CELL.findall(page.read_text(encoding="utf-8"))
    assert cells
    for cell in cells:
        tree = ast.parse(cell)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.copy_location(
                ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value), tree.body[-1]
            )
        names["_"] = None
        exec(compile(ast.fix_missing_locations(tree), "cell", "exec"), names)
        value = names["_"]
        assert value is None or getattr(value, "_repr_html_", value.__repr__)()
