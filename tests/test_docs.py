"""Every Python snippet of the documentation runs, and every command it shows exists."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from limi.cli._app import app
from limi.table._rule_syntax import parse_rule

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(match.group(2), id=f"{page.name}-{number}")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for place in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / place).exists(), place


def test_rules_that_the_documentation_shows_are_rules():
    shown = [tomllib.loads(block.values[0]).get("constraints", {}) for block in blocks("toml")]
    rules = [rule for section in shown for rule in section.values()]
    assert rules
    for rule in rules:
        parse_rule(rule)
