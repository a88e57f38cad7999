"""The generated pages of the reference: commands, Python names, settings, metrics, words, files.

    python tools/reference.py FOLDER   # write them there; docs/conf.py does so at every build

Nothing here is written by hand a second time: commands come from the command line itself, Python
names from their docstrings, settings from the dataclasses that hold them, metrics from what they
declare, words from the source of `limi explain`, exit codes from the errors.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup
from typer.main import get_command

import limi
from limi import errors, generators, methods, metrics
from limi.cli._app import app
from limi.report.terms import known_terms
from limi.system.settings import comments_of, describe_settings, range_in_words, value_in_words

ROOT = Path(__file__).parent.parent

# Where each public name of `limi` stands in the reference; what is in no list comes last.
API = {
    "Test a model": ["audit", "Result", "Out", "Budget", "Stop", "reopen"],
    "Gate a build": ["gate", "Gate"],
    "Compare models": ["replay", "Replay", "diff", "Diff"],
    "Prove and repair": [
        "certify",
        "Proof",
        "repair",
        "Repairs",
        "average",
        "AveragedClassifier",
    ],
    "Describe a table": ["Schema", "Column"],
    "Models behind an address": ["Remote"],
    "Images": ["audit_images", "ImageResult"],
    "Write a method": ["Task", "Session", "Checked", "check_rows", "run"],
    "Errors": ["LimiError"],
}
_OTHER = "More"


def pages() -> dict[str, str]:
    """Every generated page, by its path below the folder of generated pages."""
    return {
        **dict(_command_pages()),
        **dict(_api_pages()),
        "settings.md": _settings_page(),
        "metrics.md": _metrics_page(),
        "glossary.md": _glossary_page(),
        "exit-codes.md": _exit_codes_page(),
        "config.md": _config_page(),
        "run-folder.md": _run_folder_page(),
        "gate-file.md": _gate_file_page(),
        "proof-file.md": _proof_file_page(),
    }


# --- commands ------------------------------------------------------------------------------------


def _command_pages() -> Iterator[tuple[str, str]]:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, command in root.commands.items():
        panel = getattr(command, "rich_help_panel", None)
        groups.setdefault(panel if isinstance(panel, str) else "Commands", []).append(
            (name, command)
        )
    lines = ["# Command line", "", (root.help or "").strip(), ""]
    for panel, commands in groups.items():
        lines += [f"## {panel}", "", "| command | what it does |", "|---|---|"]
        lines += [
            f"| [`limi {name}`]({name}.md) | {_cell(_first_line(command.help))} |"
            for name, command in commands
        ]
        lines.append("")
    lines += _toctree(name for commands in groups.values() for name, _ in commands)
    yield "cli/index.md", "\n".join(lines)
    for name, command in root.commands.items():
        yield f"cli/{name}.md", "\n".join(_command_lines(f"limi {name}", command, "#"))


def _command_lines(words: str, command: Any, level: str) -> Iterator[str]:
    """A command, and those below it."""
    yield f"{level} {words}"
    yield ""
    yield (command.help or "").replace("\b", "").strip()
    yield ""
    context = typer.Context(command, info_name=words)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{words} {usage}\n```\n"
    if command.epilog:
        yield f"{level}# Examples\n"
        yield f"```console\n{_examples(command.epilog)}\n```\n"
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from _command_lines(f"{words} {name}", below, f"{level}#")
        return
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    arguments = [p for p in shown if isinstance(p, TyperArgument)]
    options = [p for p in shown if not isinstance(p, TyperArgument)]
    if arguments:
        yield "| argument | meaning |"
        yield "|---|---|"
        for one in arguments:
            name = f"`{one.metavar or one.name.upper()}`{'' if one.required else ', optional'}"
            yield f"| {name} | {_cell(one.help)} |"
        yield ""
    if options:
        yield "| option | meaning | default |"
        yield "|---|---|---|"
        for one in options:
            yield f"| {_spelling(one)} | {_cell(one.help)} | {_default(one)} |"
        yield ""


def _examples(epilog: str) -> str:
    lines = [line.strip() for line in epilog.replace("\b", "").splitlines()]
    return "\n".join(line for line in lines if line and line.rstrip(":").lower() != "examples")


def _spelling(option: Any) -> str:
    """How an option is written: its names, and what stands behind them."""
    spelled = ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
    if getattr(option, "is_flag", False):
        return spelled
    return f"{spelled} {_code(option.metavar or 'TEXT')}"


def _default(option: Any) -> str:
    default = option.default
    if default is None or callable(default) or default == [] or isinstance(default, bool):
        return ""
    if type(default).__name__ == "Sentinel":  # click's own word for "none given"
        return ""
    return _code(str(default))


# --- Python names --------------------------------------------------------------------------------


def _api_pages() -> Iterator[tuple[str, str]]:
    named = {name for names in API.values() for name in names}
    public = [name for name in limi.__all__ if name != "__version__"]
    packages = [name for name in public if inspect.ismodule(getattr(limi, name))]
    rest = [name for name in public if name not in named and name not in packages]
    groups = {**API, **({_OTHER: rest} if rest else {})}
    lines = ["# Python API", "", _first_line(limi.__doc__), ""]
    lines += ["```python\nimport limi\n```", ""]
    for title, names in groups.items():
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        lines += [
            f"| [`limi.{name}`]({_slug(title)}.md) | {_cell(_first_line(_doc(one)))} |"
            for name in names
            if (one := getattr(limi, name))
        ]
        lines.append("")
    lines += ["## Packages", "", "| package | what it holds |", "|---|---|"]
    lines += [
        f"| [`limi.{name}`](limi-{name}.md) | {_cell(_first_line(_doc(getattr(limi, name))))} |"
        for name in packages
    ]
    lines.append("")
    lines += _toctree([*map(_slug, groups), *(f"limi-{name}" for name in packages)])
    yield "api/index.md", "\n".join(lines)
    for title, names in groups.items():
        body = [f"# {title}", ""]
        for name in names:
            body += _object_lines(f"limi.{name}", getattr(limi, name))
        yield f"api/{_slug(title)}.md", "\n".join(body)
    own = {id(getattr(limi, name)) for name in public}
    for name in packages:
        yield f"api/limi-{name}.md", _package_page(f"limi.{name}", getattr(limi, name), own)


def _package_page(words: str, package: ModuleType, own: set[int]) -> str:
    lines = [f"# {words}", "", _doc(package), ""]
    for name in getattr(package, "__all__", []):
        one = getattr(package, name)
        if inspect.ismodule(one):
            continue
        if id(one) in own:
            lines += [f"`{words}.{name}` is {{py:obj}}`limi.{name}`.", ""]
        else:
            lines += _object_lines(f"{words}.{name}", one)
    return "\n".join(lines)


def _object_lines(name: str, one: object) -> list[str]:
    if not (inspect.isclass(one) or inspect.isroutine(one)):
        shown = repr(one)
        return (
            [f"`{name}` = `{shown}`", ""] if len(shown) <= 80 and "object at" not in shown else []
        )
    kind = "class" if inspect.isclass(one) else "function"
    lines = ["```{eval-rst}", f".. auto{kind}:: {name}"]
    if inspect.isclass(one):
        own = [key for key, value in vars(one).items() if _is_shown(key, value)]
        lines += [f"   :members: {', '.join(own)}"] if own else []
    lines += ["```", ""]
    if inspect.isclass(one) and dataclasses.is_dataclass(one):
        lines += _field_lines(one)
    return lines


def _is_shown(name: str, member: object) -> bool:
    """Is it a documented member of the class itself, and not one that a library puts there?"""
    kinds = (property, cached_property, classmethod, staticmethod, FunctionType)
    return not name.startswith("_") and isinstance(member, kinds) and bool(_doc(member))


def _field_lines(kind: type[Any]) -> list[str]:
    said = comments_of(kind)
    if not said:
        return []
    lines = ["| field | meaning |", "|---|---|"]
    lines += [
        f"| `{field.name}` | {_cell(said.get(field.name, ''))} |"
        for field in dataclasses.fields(kind)
        if not field.name.startswith("_")
    ]
    return [*lines, ""]


# --- settings, metrics, words --------------------------------------------------------------------


def _settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Every setting of every method and generator, with its default and its range. On the",
        "command line `--set NAME=VALUE` changes one, in Python `settings={...}`. `none` may be",
        "given where the type says so. `limi list methods --json` has the same for programs.",
        "",
        "## Methods",
        "",
    ]
    for name in methods.names():
        kind = methods.get(name)
        about = _first_line(_doc(inspect.getmodule(kind))) or _first_line(_doc(kind))
        lines += [f"(method-{name})=", f"### `{name}`", "", about, ""]
        lines += _setting_lines(describe_settings(kind))
        for preset, values in methods.presets(name).items():
            changed = ", ".join(f"`{key}={value_in_words(value)}`" for key, value in values.items())
            lines += [f"Preset `{preset}`: {changed or 'the defaults'}.", ""]
    lines += ["## Generators", ""]
    for name in generators.names():
        lines += [f"(generator-{name})=", f"### `{name}` generator", ""]
        lines += [_first_line(_doc(generators.get(name))), ""]
        settings = generators.settings_of(name)
        lines += _setting_lines({} if settings is None else describe_settings(settings))
    return "\n".join(lines)


def _setting_lines(described: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if not described:
        return ["It has no settings.", ""]
    lines = ["| setting | type | default | may be | meaning |", "|---|---|---|---|---|"]
    for name, one in described.items():
        cells = (
            f"`{name}`",
            one["type"],
            _code(value_in_words(one["default"])),
            _cell(range_in_words(one)),
            _cell(one.get("meaning", "")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _metrics_page() -> str:
    lines = [
        "# Metrics at a glance",
        "",
        "Every metric that a run measures, as the metrics declare themselves.",
        "[Metrics](../../metrics.md) explains how to read them.",
        "",
    ]
    for family in metrics.FAMILIES:
        lines += [f"## {family.name}", ""]
        lines += ["| metric | in JSON | formula | range | better | meaning |"]
        lines += ["|---|---|---|---|---|---|"]
        for one in metrics.declared():
            if one.family == family:
                better = {"zero": "0", "neither": ""}.get(one.better, one.better)
                formula = re.sub(r"\]\((?=[\w.])", "](../../", one.formula)  # links start at docs/
                cells = (one.title, f"`{one.name}`", formula, one.range, better, one.line)
                lines.append(f"| {' | '.join(map(_cell, cells))} |")
        lines.append("")
    return "\n".join(lines)


def _glossary_page() -> str:
    lines = [
        "# Glossary",
        "",
        "The words of reports and of this documentation. `limi explain TERM` prints the same text.",
        "",
        "```{glossary}",
        ":sorted:",
        "",
    ]
    for term, words in known_terms().items():
        lines += [term, f"  {words}", ""]
    return "\n".join([*lines, "```", ""])


def _exit_codes_page() -> str:
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip("\n")
    rows = [
        ("0", "done; for a gate, passed"),
        ("1", "`limi gate` failed, or a check such as `python -m lab check` found something worse"),
        ("2", "the command, an option, a schema or a configuration file cannot be used"),
        ("3", "`limi gate` is inconclusive: the budget did not decide a rule"),
        ("4", "the data, the model or the disk: what was given cannot be read, asked or written"),
        ("130", "interrupted with Ctrl-C; `--resume` continues"),
    ]
    lines = ["# Exit codes and errors", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {words} |" for code, words in rows]
    lines += [
        "",
        "An error is one sentence on standard error. It says what was given, what would work, and",
        "what to try; no traceback is shown unless the variable `LIMI_DEBUG=1` asks for one.",
        "",
        "In Python every error that limi raises is a `limi.LimiError`:",
        "",
        "```text",
        tree,
        "```",
        "",
    ]
    return "\n".join(lines)


def _config_page() -> str:
    from limi.cli._config import known_keys

    lines = [
        "# Configuration file",
        "",
        "`limi.toml` says what the command line would say, so that the test of a project needs no",
        "options. `limi init` writes one, and [gate a build](../../gate.md#limi-toml) explains it.",
        "The keys at the top are those of `limi test`; other commands share them where they have",
        "the same option. A section such as `[gate]` holds the keys of its command alone and wins.",
        "Paths start at the folder of the file. What is typed wins over the file.",
        "",
        "```toml",
        'table = "people.csv"',
        'model = "onnx:model.onnx"',
        'target = "approved"',
        'favorable = "yes"',
        'protected = ["sex", "age=18-80:5"]',
        "",
        "[gate]",
        'natural_rate = "<= 1 %"',
        "max_queries = 50_000",
        "```",
        "",
    ]
    for command, keys in known_keys().items():
        title = "Keys at the top" if command == "test" else f"`[{command}]`"
        lines += [f"## {title}", "", "| key | value |", "|---|---|"]
        lines += [f"| `{key}` | {kind} |" for key, kind in keys.items()]
        lines.append("")
    return "\n".join(lines)


def _run_folder_page() -> str:
    lines = [
        "# Run folder",
        "",
        "The [guide](../../guide.md#the-run-folder) says what a run folder holds. This page lists",
        "the keys of its JSON files. An unknown number is `null`. Each file has a JSON Schema:",
        "[manifest](../../manifest.schema.json), [summary](../../summary.schema.json).",
        "[Answers of gates](gate-file.md) and [proofs](proof-file.md) have pages of their own.",
        "",
        "## manifest.json",
        "",
        "What the run was made of, so that it can be repeated.",
        "",
        *_schema_lines("manifest", "###"),
        "",
        "## summary.json",
        "",
        "The numbers of the report, each once.",
        "",
        *_schema_lines("summary", "###"),
    ]
    return "\n".join([*lines, ""])


def _gate_file_page() -> str:
    lines = [
        "# Answer of a gate",
        "",
        "`limi gate --json` prints this object, and `--out FILE` writes it; in Python it is",
        "`Gate.as_dict()`. It has a [JSON Schema](../../gate.schema.json). An unknown number is",
        "`null`. [Gate a build](../../gate.md) explains rules and answers.",
        "",
        *_schema_lines("gate"),
    ]
    return "\n".join([*lines, ""])


def _proof_file_page() -> str:
    lines = [
        "# Proof",
        "",
        "`limi certify --json` prints this object, and `--out FOLDER` writes it as `proof.json`;",
        "in Python it is `Proof.as_dict()`. It has a [JSON Schema](../../proof.schema.json).",
        "[Certify](../../certify.md) explains what is proven.",
        "",
        *_schema_lines("proof"),
    ]
    return "\n".join([*lines, ""])


def _schema_lines(name: str, level: str = "##") -> Iterator[str]:
    """The keys of a file, then those of the objects in it, from its JSON Schema."""
    schema = json.loads((ROOT / "docs" / f"{name}.schema.json").read_text(encoding="utf-8"))
    yield from _key_lines(schema)
    for inner, one in schema["$defs"].items():
        if "properties" in one:
            yield from ("", f"{level} {inner}", "", one.get("description", ""), "")
            yield from _key_lines(one)


def _key_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of keys; those without a word about them need no column for it."""
    keys, needed = schema["properties"], schema["required"]
    if not any(one.get("description") for one in keys.values()):
        yield from ("| key | type |", "|---|---|")
        yield from (f"| `{key}` | {_type(one)} |" for key, one in keys.items())
        return
    yield from ("| key | type | meaning |", "|---|---|---|")
    for key, one in keys.items():
        kind = _type(one) + ("" if key in needed else " (may be absent)")
        yield f"| `{key}` | {kind} | {_cell(one.get('description'))} |"


_PLAIN_DEFS = {"sha256": "sha256", "answer": "`pass`, `fail` or `inconclusive`"}
"""Definitions that are not objects, so that they have no table to lead to."""


def _type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in _PLAIN_DEFS:
            return _PLAIN_DEFS[name]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return _code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(_code(json.dumps(one)) for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_type(inner)}" if isinstance(inner, dict) and inner else "object"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# --- Markdown ------------------------------------------------------------------------------------


def _toctree(names: Iterable[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", "", *names, "```", ""]


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _code(text: str | None) -> str:
    return f"`{_cell(text)}`" if text else ""


def _doc(one: object) -> str:
    return inspect.getdoc(one) or ""


def _first_line(text: str | None) -> str:
    """The first paragraph, as one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def _slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


def write(folder: Path) -> None:
    """Write every page whose text has changed, so that a build reads only those again."""
    fresh = pages()
    for path, text in fresh.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
    for place in folder.rglob("*.md"):
        if place.relative_to(folder).as_posix() not in fresh:
            place.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
