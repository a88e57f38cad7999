"""The generated reference has every command, public name, setting, metric and word."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.main import get_command

import limi
from limi import generators, methods, metrics
from limi.cli._app import app
from limi.report.terms import known_terms
from limi.system.settings import describe_settings

ROOT = Path(__file__).parent.parent.parent


def load(name):
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    return load("reference")


@pytest.fixture(scope="module")
def pages(reference):
    return reference.pages()


def test_every_command_has_a_page_with_all_its_options(pages):
    def options(command):
        for below in getattr(command, "commands", {}).values():
            yield from options(below)
        if not hasattr(command, "commands"):
            for one in command.params:
                if one.name != "help" and one.param_type_name == "option":
                    yield from one.opts

    for name, command in get_command(app).commands.items():
        page = pages[f"cli/{name}.md"]
        assert all(f"`{option}`" in page for option in options(command)), name


def test_every_public_name_stands_in_the_reference(pages):
    api = "".join(text for path, text in pages.items() if path.startswith("api/"))
    for name in limi.__all__:
        assert name == "__version__" or f"limi.{name}" in api, name


def test_groups_of_names_hold_only_names_that_are_public(reference):
    grouped = [name for names in reference.API.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= set(limi.__all__)


def test_every_setting_stands_there_with_its_default_and_range(pages):
    page = pages["settings.md"]
    for name in methods.names():
        section = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        for setting in describe_settings(methods.get(name)):
            assert f"| `{setting}` |" in section, (name, setting)
    for name in generators.names():
        section = page.partition(f"### `{name}` generator\n")[2].partition("\n### ")[0]
        for setting in describe_settings(generators.settings_of(name)):
            assert f"| `{setting}` |" in section, (name, setting)


def test_every_setting_says_what_it_means():
    settings = {name: methods.get(name) for name in methods.names()}
    settings |= {name: generators.settings_of(name) for name in generators.names()}
    silent = [
        f"{name}.{setting}"
        for name, kind in settings.items()
        for setting, told in describe_settings(kind).items()
        if not told.get("meaning")
    ]
    assert silent == []


def test_every_metric_and_every_word_stands_there(pages):
    for one in metrics.declared():
        if one.measure.__module__.startswith("limi."):
            assert f"| `{one.name}` |" in pages["metrics.md"]
    for term in known_terms():
        assert f"\n{term}\n" in pages["glossary.md"]


def test_pages_that_are_no_longer_generated_are_removed(reference, tmp_path):
    old = tmp_path / "cli" / "gone.md"
    old.parent.mkdir()
    old.write_text("# limi gone")
    reference.write(tmp_path)
    assert not old.exists()
    assert (tmp_path / "cli" / "test.md").exists()


def test_links_that_lead_nowhere_and_pages_that_load_from_outside_are_told(tmp_path):
    links = load("site_links")
    (tmp_path / "a.html").write_text(
        '<h1 id="here"></h1><a href="b.html#there">b</a><a href="#here">a</a>'
        '<a href="https://example.org">outside</a><img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"></h1>')
    assert links.check(tmp_path) == ["a.html links c.png, which is not there"]
    (tmp_path / "c.png").write_bytes(b"")
    assert links.check(tmp_path) == []
    (tmp_path / "b.html").write_text('<script src="https://example.org/x.js"></script>')
    assert links.check(tmp_path) == [
        "a.html links b.html#there, and that page has no such place",
        "b.html loads https://example.org/x.js",
    ]
    assert links.check(tmp_path / "nothing") != []
