"""Findings of a run as a test of pytest: a readable module, and the pairs that it asks."""

from __future__ import annotations

import ast
import json
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limi import models
from limi.audits.reopen import Run, open_findings
from limi.changes import open_newer
from limi.decisions import AS_DECIDED, Rule
from limi.errors import InvalidInput
from limi.metrics.severity import severity_of
from limi.search.findings import Found
from limi.system import writing
from limi.system.shown import clean, spell_json
from limi.system.words import both, either
from limi.table.frames import Frame
from limi.testing.pairs import Asked, Pairs, Reading
from limi.types import Index

__all__ = ["MODULE", "PAIRS", "Exported", "choose", "export", "write_module"]

MODULE, PAIRS = "test_fairness.py", "fairness_pairs.parquet"

_LONGEST_NAME = 60  # characters of a function's name that say what is protected


@dataclass(frozen=True)
class Exported:
    """What was written, and what the model says to it now."""

    folder: Path
    pairs: int
    allowed: int
    asked: Asked

    @property
    def passes(self) -> bool:
        """Would the test pass with the model as it is?"""
        return len(self.asked) <= self.allowed


def export(
    run: str | Path,
    folder: str | Path,
    *,
    pairs: int = 200,
    allow: int = 0,
    model: str | None = None,
    table: str | Path | Frame | None = None,
    force: bool = False,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
) -> Exported:
    """Write a test that fails while more than `allow` of a run's pairs flip.

    The pairs are the most natural and the strongest findings, in turn. `model` is what the test
    asks, `KIND:PLACE`; by default the run's own.
    """
    if pairs < 1:
        raise InvalidInput(f"--pairs is {pairs}; keep at least one pair")
    if allow < 0:
        raise InvalidInput(f"--allow is {allow}; it must be 0 or more")
    place = writing.absolute(folder)
    named = [_place(place / name, force) for name in (MODULE, PAIRS)]
    opened = Run.at(run)
    uri = opened.model(model)
    _require_apart(named, opened, uri, table)
    problem = open_newer(
        opened, uri, opened.table(table), trust_pickle=trust_pickle, trust=tuple(trust)
    )
    schema, frame, found = open_findings(opened)
    if not len(found):
        raise InvalidInput(
            f"the run {str(run)!r} found nothing, so there is no pair to keep as a test; use "
            "limi.testing.assert_flip_rate to test a model without findings"
        )
    rule = problem.target.rule
    chosen = choose(found, pairs, rule)
    manifest = opened.manifest
    reading = Reading(
        favorable=manifest.favorable,
        labels=problem.known,
        output=manifest.output,
        decision=str(manifest.decision or "favorable"),
        table=manifest.table,
        ordered=rule.ordered,
    )
    kept = Pairs(schema, frame.iloc[chosen].reset_index(drop=True), found[chosen], reading)
    asked = kept.ask(uri, trust_pickle=trust_pickle, trust=trust)
    module = _module(place, uri, kept, allow, opened, trust_pickle, trust)
    writing.make_folder(place, option="--pytest")
    writing.write_all(dict(zip(named, (module, kept.as_parquet()), strict=True)))
    return Exported(place, len(kept), allow, asked)


def choose(found: Found, n: int, rule: Rule = AS_DECIDED) -> Index:
    """Places of the n findings to keep: the most natural ones and the strongest, in turn.

    A pair is as natural as the less natural of its two people.
    """
    strongest = np.argsort(-severity_of(rule, found), kind="stable")
    if not len(found.naturalness):
        return strongest[:n]
    natural = np.fmin(found.naturalness, found.partner_naturalness)
    most_natural = np.argsort(-np.nan_to_num(natural, nan=-1.0), kind="stable")
    turns = np.stack([most_natural, strongest], axis=1).ravel()
    _, first = np.unique(turns, return_index=True)
    return turns[np.sort(first)][:n]


def _require_apart(
    named: Sequence[Path], run: Run, uri: str, table: str | Path | Frame | None
) -> None:
    """InvalidInput where a file to write is one that the test is made of."""
    inputs: list[tuple[str, str | Path]] = [*run.inputs()]
    inputs += [("the model", path) for path in models.files(uri)]
    if isinstance(table, (str, Path)):
        inputs.append(("the table", table))
    writing.require_apart([("--pytest", path) for path in named], inputs)


def _place(path: Path, force: bool) -> Path:
    """Where a file goes, checked before anything is asked; its folder may still be missing."""
    return writing.place(path, replace=force) if path.parent.is_dir() else path


def _module(
    folder: Path,
    uri: str,
    kept: Pairs,
    allow: int,
    run: Run,
    trust_pickle: bool,
    trust: Sequence[str],
) -> str:
    options = [
        *(["trust_pickle=True"] if trust_pickle else []),
        *([f"trust=[{', '.join(map(_quote, trust))}]"] if trust else []),
    ]
    about = f"the most natural and the strongest of {run.summary.findings:,} that a search found"
    return write_module(uri, kept, about=about, folder=folder, allow=allow, options=options)


def write_module(
    uri: str,
    kept: Pairs,
    *,
    about: str,
    folder: Path | None = None,
    allow: int = 0,
    options: Sequence[str] = (),
) -> str:
    """The test, as a person would write it; `about` says which pairs these are.

    Without a `folder` nobody knows where the test will lie, and the model is named from the root.
    """
    protected = either(list(kept.schema.protected))
    along = [kept.schema.names[i] for i in kept.schema.moving_index]
    along = [name for name in along if name not in kept.schema.protected]
    change = (
        f"{protected} changed, and {both(along)} with it" if along else f"only {protected} changed"
    )
    ask = ", ".join(["MODEL", *options])
    about = (
        f"{len(kept):,} pairs of people whom a model decided differently when {change}: "
        f"{about}. Written by limi; edit it as you like. "
        "The pairs are a table with one pair in each row, which any tool reads."
    )
    text = _TEMPLATE.format(
        about=_comment(about),
        model=_quote(uri) if folder is None else _spell_model(uri, folder),
        allow=allow,
        name=_name(protected),
        pairs=PAIRS,
        ask=ask,
    )
    return _checked(text)


def _name(protected: str) -> str:
    """What is protected as the end of a function's name: letters and digits of ASCII alone, because
    the letters that Python takes are not those that a table may use."""
    plain = re.sub("[^a-z0-9]+", "_", protected.lower())[:_LONGEST_NAME].strip("_")
    return plain or "protected_values"


def _checked(text: str) -> str:
    """The module, once it holds the statements of the template and no other.

    Names of files and columns come from whoever made the run, and pytest runs what is written.
    """
    try:
        held = [type(node) for node in ast.parse(text).body]
    except (SyntaxError, ValueError):
        held = []
    if held != _STATEMENTS:
        raise InvalidInput(
            "the names of the model and of the protected columns cannot be written into a test; "
            "name the model with --model KIND:PLACE from a path of plain characters"
        )
    return text


_TEMPLATE = '''"""Are people decided alike, whoever they are?"""

{about}

from pathlib import Path

import limi.testing

HERE = Path(__file__).parent
MODEL = {model}
ALLOWED = {allow}  # pairs that may still be decided differently


def test_decisions_do_not_depend_on_{name}():
    pairs = limi.testing.read_pairs(HERE / "{pairs}")
    flipped = pairs.ask({ask})
    assert len(flipped) <= ALLOWED, str(flipped)
'''

_STATEMENTS = [
    *(ast.Expr, ast.ImportFrom, ast.Import),
    *(ast.Assign, ast.Assign, ast.Assign, ast.FunctionDef),
]


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in textwrap.wrap(clean(text), 92))


def _spell_model(uri: str, folder: Path) -> str:
    """The model as an expression: a file's path starts at the test, a name stays as it is."""
    kind, _, place = uri.partition(":")
    if not models.files(uri) and not Path(place.partition(":")[0]).exists():
        return _quote(uri)
    try:
        path = os.path.relpath(writing.absolute(place), folder)
    except ValueError:  # on another drive
        return _quote(f"{kind}:{writing.absolute(place)}")
    return f"{_quote(f'{kind}:')} + str(HERE / {_quote(path)})"


def _quote(text: str) -> str:
    """Text as a literal of Python that reads back the same, whatever it holds.

    >>> print(_quote('a"b'))
    "a\\"b"
    """
    # Strings of JSON are strings of Python, as long as characters beyond U+FFFF are not cut in two.
    return spell_json(json.dumps(text, ensure_ascii=False))
