"""What is released: packages that build and work where only they are, and the files around them."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.main import get_command

import limi
from limi.cli._app import app

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    spec = spec_from_file_location("fresh_install", ROOT / "tools" / "fresh_install.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("dist")
    wheel, sdist = module.build(folder)
    with tarfile.open(sdist) as file:
        file.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    again = module.build(folder / "again", source)[0]
    return wheel, sdist, again


def contents(wheel):
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist() if "dist-info" not in name}


def test_both_have_the_version_of_the_package(built):
    for package in built:
        assert f"limi-{limi.__version__}" in package.name


def test_the_wheel_has_types_data_and_nothing_of_the_build(built):
    names = set(contents(built[0]))
    assert {"limi/py.typed", "limi/__main__.py", "limi/data/catalogue.toml"} <= names
    assert {name.partition("/")[0] for name in names} == {"limi"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_sdist_builds_the_same_wheel(built):
    assert contents(built[0]) == contents(built[2])


def test_the_sdist_has_what_a_packager_needs_and_no_built_pages(built):
    with tarfile.open(built[1]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"LICENSE", "CITATION.cff", "tests/toy.py", "docs/conf.py", "Makefile"} <= names
    assert not [name for name in names if "_build" in name or "generated/" in name]


def test_the_installed_wheel_works_where_only_it_is(built, tmp_path):
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", target, built[0]], check=True, capture_output=True)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(target)}
    code = "import limi, sys; sys.stdout.write(limi.__file__)"
    for command in (
        [sys.executable, "-c", code],
        [sys.executable, "-m", "limi", "--version"],
        [sys.executable, target / "bin" / "limi", "--version"],
    ):
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() in (str(target / "limi/__init__.py"), f"limi {limi.__version__}")


def test_the_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == limi.__version__
    assert citation["license"] == "Apache-2.0"
    assert citation["preferred-citation"]["title"].startswith("Latent Imitator")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


@pytest.mark.parametrize("name", ["bug.yml", "feature.yml"])
def test_issue_templates_have_the_shape_that_github_reads(name):
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text())
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


def lint(text, root):
    """What is wrong with a Dockerfile, by the rules that matter here."""
    joined = re.sub(r"\\\n", " ", "\n".join(x for x in text.splitlines() if x[:1] != "#"))
    lines = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    wrong = []
    for word, rest in lines:
        if word == "FROM" and not re.match(r"[\w/.-]+:(?!latest)[\w.-]*slim\S*( AS \w+)?$", rest):
            wrong.append(f"FROM {rest}: pin a slim image")
        if word == "ADD":
            wrong.append("ADD: use COPY")
        if word == "COPY" and not rest.startswith("--from"):
            wrong += [f"COPY {p}: not there" for p in rest.split()[:-1] if not (root / p).exists()]
        if "pip install" in rest and "--no-cache-dir" not in rest:
            wrong.append("pip keeps a cache")
        if "apt-get install" in rest and "rm -rf /var/lib/apt/lists" not in rest:
            wrong.append("apt keeps its lists")
        if "apt-get install" in rest and "--no-install-recommends" not in rest:
            wrong.append("apt installs more than is named")
        if word in ("ENTRYPOINT", "CMD") and not rest.startswith("["):
            wrong.append(f"{word} starts a shell")
    stage = lines[max(i for i, (word, _) in enumerate(lines) if word == "FROM") :]
    if not any(word == "USER" and rest != "root" for word, rest in stage):
        wrong.append("it runs as root")
    return wrong


def test_the_image_is_slim_and_does_not_run_as_root():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert lint(text, ROOT) == []
    bad = "FROM python:latest\nCOPY nowhere .\nRUN pip install x\nENTRYPOINT limi\n"
    assert len(lint(bad, ROOT)) == 5
    copied = {
        place
        for line in re.findall(r"^COPY (?!--)(.*)$", text, re.M)
        for place in line.split()[:-1]
    }
    shipped = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    assert all(f"!{place}\n" in shipped for place in copied)


ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_the_action_has_the_shape_that_github_reads():
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        # What a workflow passes in must not become part of a script.
        assert "${{" not in step["run"]
    given = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert given == set(ACTION["inputs"])


def test_the_action_gives_gate_options_that_exist():
    script = ACTION["runs"]["steps"][-1]["run"]
    used = set(re.findall(r"(?<=\s)--[\w-]+", script))
    assert used
    assert used <= {name for p in get_command(app).commands["gate"].params for name in p.opts}


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_action_passes_on_what_the_gate_says(code, tmp_path):
    """The script of the action, with a limi that writes down how it was called."""
    stub = tmp_path / "limi"
    stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > called\nexit {code}\n')
    stub.chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CONFIG": "my limi.toml; exit 9",
        "INCONCLUSIVE": "fail",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    script = ACTION["runs"]["steps"][-1]["run"]
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=env, cwd=tmp_path)
    assert done.returncode == code
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    assert "my limi.toml; exit 9" in (tmp_path / "called").read_text().splitlines()
