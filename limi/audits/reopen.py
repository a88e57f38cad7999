"""Finished runs opened again: the table, the model and the findings that a folder stands for."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi import data, models
from limi.audits import run_folder
from limi.audits.beside import Beside
from limi.audits.manifest import Manifest
from limi.audits.problem import HeldOut, Problem, prepare, with_held_out
from limi.audits.result import Result, partner_columns
from limi.audits.sending import settle_remote
from limi.audits.summary import Summary, causes_in_words, rules_of
from limi.decisions import AS_DECIDED, Bands, Classes, Rule, parse_rule
from limi.errors import BadModel, BadTable, CorruptStore, InvalidInput, spell
from limi.models.target import Target
from limi.remote.options import Remote
from limi.search.check import cause_names
from limi.search.findings import Found
from limi.system import writing
from limi.system.arguments import checked
from limi.system.foreign import reason
from limi.system.plain import read
from limi.system.reading import is_file
from limi.system.shown import to_json
from limi.table import files, sources
from limi.table.frames import Codec, Frame
from limi.table.parts import is_many
from limi.table.schema import Schema
from limi.types import Rows, Scores

__all__ = [
    "ANSWERS",
    "Run",
    "Table",
    "as_arrays",
    "count_findings",
    "free_name",
    "open_findings",
    "read_findings",
    "read_shown_findings",
    "reopen",
    "reopen_problem",
    "require_answers",
    "sides_of",
]

_LONGEST = 160  # characters of a path in a sentence
ANSWERS = {"favorable": ("score",), "class": ("class", "lead"), "number": ("prediction",)}
"""Columns of a model's answers in a findings file, by what those are."""
_SPOT = 256  # findings that are put to the model again


@checked
def reopen(
    folder: str | Path,
    *,
    table: str | Path | Frame | None = None,
    model: Any = None,
    protected_from: str | Path | Frame | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
) -> Result:
    """The result of a finished run, with its table and model open again.

    Both are checked against what the run tested: a table or a model that has changed since is
    refused. Relative paths start where the run was started. `table` and `model` say where the two
    are now, or are a frame and a live model; `protected_from` does the same for a table of
    protected columns. A model whose file runs code when it is opened must be named, because a
    folder that somebody sent you should not choose what runs.
    """
    run = Run.at(folder)
    opened = run.table(table)
    problem = reopen_problem(
        run,
        table=opened,
        model=model,
        protected_from=protected_from,
        trust_pickle=trust_pickle,
        trust=trust,
        remote=remote,
    )
    found = read_findings(run.folder, problem.target.codec, problem.target.rule)
    if run.is_steady:
        require_answers(problem.target, found, run.model(model), run.words)
    with run_folder.reading("summary", run.folder):
        rules = rules_of(problem.schema, run.summary.where)
    problem = replace(problem, held_out=run.held_out(problem, run.beside(protected_from)))
    return Result(problem, found, run.summary, run.tree, rules, opened.frame)


def reopen_problem(
    run: Run,
    *,
    table: str | Path | Frame | Table | None = None,
    model: Any = None,
    protected_from: str | Path | Frame | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    max_queries: int | None = None,
) -> Problem:
    """The table and the model of a run, held to what it tested; its findings are left alone."""
    read = table if isinstance(table, Table) else run.table(table)
    named = run.model(model)
    beside = run.beside(protected_from)
    remote = settle_remote(named, remote, max_queries=max_queries)
    return _problem(run, read, named, beside, trust_pickle, trust, remote)


def _folder_of(given: Any) -> str | Path:
    if not isinstance(given, (str, os.PathLike)):
        raise InvalidInput(
            f"a run was expected, not {type(given).__name__}; give a result of limi.audit, or the "
            "folder that it was written to"
        )
    return Path(given)


@dataclass(frozen=True)
class Table:
    """A table, and what to call it in a sentence."""

    frame: Frame
    words: str


@dataclass(frozen=True)
class Run:
    """A finished run, read from its folder; what it names is opened on request."""

    folder: Path  # from the root on, because a model may go to another folder when it is loaded
    summary: Summary
    tree: dict[str, Any]  # its manifest, as it was written

    @staticmethod
    def at(folder: str | Path, *, derive: bool = True) -> Run:
        """The run in a folder; CorruptStore where it is damaged or newer.

        `derive` is of `Summary.from_dict`.
        """
        folder = writing.absolute(folder)
        summary = run_folder.read_summary(folder, derive=derive)
        run = Run(folder, summary, run_folder.read_json(folder / "manifest.json"))
        _ = run.manifest  # where it is damaged, that is told now
        return run

    @staticmethod
    def of(given: Result | str | Path) -> Run:
        """The run of a result, or in a folder."""
        if isinstance(given, Result):
            return HeldRun(Path(), given.summary, json.loads(to_json(given.manifest)), given)
        return Run.at(_folder_of(given))

    @property
    def words(self) -> str:
        """What to call it in a sentence."""
        return f"the run {str(self.folder)!r}"

    @cached_property
    def manifest(self) -> Manifest:
        """What it is made of."""
        return _read_manifest(self.folder, self.tree)

    @property
    def schema(self) -> Schema:
        """The columns that its model takes, with the protected ones."""
        return run_folder.read_schema(self.folder)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns whose cells it shows nowhere."""
        return self.manifest.hidden

    def left_out(self, names: Collection[str]) -> list[str]:
        """Those columns among these that its user kept from the model."""
        return [name for name in self.manifest.dropped if name in names]

    def findings(self) -> Any:
        """The findings as they were written, a pandas frame."""
        _require_whole(self)
        return _read_frame(self.folder)

    @property
    def rule(self) -> Rule:
        """What counted as a decision, as far as it is known without table and model."""
        rule = parse_rule(self.summary.decision)
        if not isinstance(rule, Classes):
            return rule
        labels = self.manifest.order or self.manifest.classes or self.summary.classes
        return replace(rule, labels=labels, ordered=self.summary.ordered)

    def require_kind(self, decision: str | None) -> None:
        """InvalidInput where a rule is of a different kind from the run's, so that answers of the
        two could not be compared."""
        if decision is not None and parse_rule(decision).kind != self.rule.kind:
            raise InvalidInput(
                f"the decision given is {decision!r}, but {self.words} used "
                f"{self.summary.decision!r}, which compares different answers; leave the decision "
                "out, or test both models by the same rule"
            )

    @property
    def base(self) -> Path:
        """Where its relative paths start."""
        return _base(self.folder, self.manifest)

    def table(self, given: str | Path | Frame | None = None) -> Table:
        """The table that is given, or else the one that the run names."""
        _require_whole(self)
        if given is not None:
            return _take_given(given, self.manifest.fit_rows)
        return _table(self.folder, self.base, self.manifest)

    def model(self, given: Any = None, *, option: str = "--model") -> Any:
        """The model that is given, or else the one that the run names, if its file is only data.

        `option` is the one that would give it.
        """
        if given is not None:
            return given
        return _model(self.folder, self.base, self.manifest.model, option)

    def beside(self, given: str | Path | Frame | None = None) -> Beside | None:
        """The table that protected columns came from, where there was one."""
        return _beside(self.folder, self.base, self.manifest, given)

    def held_out(self, problem: Problem, beside: Beside | None = None) -> HeldOut | None:
        """The held-out rows that the run names; None where there were none, or where they are gone
        or have changed since, which only matters to those who measure on them."""
        name = self.manifest.held_out
        if name is None:
            return None
        moved = sources.move(name, self.base)
        path = sources.file_of(moved)
        if path is None or not (is_file(path) or is_many(path)):
            return None
        try:
            held = with_held_out(problem, files.read(moved), name, beside).held_out
        except BadTable:
            return None
        same = held is not None and held.sha256 == self.manifest.held_out_sha256
        return held if same else None

    def inputs(self) -> list[tuple[str, Path]]:
        """The folder and the files that it was made of, as far as it names some, each with what it
        is. None of them is opened."""
        kind, _, place = self.manifest.model.partition(":")
        named = (
            ("the table", self.manifest.table),
            ("the protected table", self.manifest.protected_from),
        )
        tables = [
            (what, sources.file_of(sources.move(name, self.base))) for what, name in named if name
        ]
        return [
            ("the run", self.folder),
            *((what, path) for what, path in tables if path is not None and is_file(path)),
            *(("the model", path) for path in models.files(f"{kind}:{self.base / place}")),
        ]

    @property
    def is_steady(self) -> bool:
        """Can its model be held to the scores that it gave? One whose answers move cannot."""
        return not self.summary.steadiness.get("scores_moved")

    def is_same_model(self, problem: Problem) -> bool:
        """Does a problem hold the file that was tested? A model without one has no sum, and a file
        may hold several models: `require_answers` tells those apart."""
        return self.manifest.model_sha256 in (None, problem.model_sha256)


@dataclass(frozen=True)
class HeldRun(Run):
    """A run whose result is in memory, with its table, its model and all cells."""

    result: Result

    @property
    def words(self) -> str:
        return "the result"

    @property
    def schema(self) -> Schema:
        return self.result.problem.schema

    def findings(self) -> Any:
        backend = self.result.problem.target.codec.backend
        return backend.to_arrow(self.result.findings).to_pandas()

    @property
    def base(self) -> Path:
        return Path()

    def table(self, given: str | Path | Frame | None = None) -> Table:
        if given is not None:
            return _take_given(given, self.manifest.fit_rows)
        assert self.result.frame is not None  # because limi.audit and limi.reopen keep it
        return Table(self.result.frame, "the table of the result")

    def model(self, given: Any = None, *, option: str = "--model") -> Any:
        return self.result.problem.target.model if given is None else given

    def beside(self, given: str | Path | Frame | None = None) -> Beside | None:
        joined = self.result.problem.beside
        if joined is None:
            return None
        frame = joined.frame if given is None else _take_given(given).frame
        return Beside(frame, joined.key, joined.name)

    def held_out(self, problem: Problem, beside: Beside | None = None) -> HeldOut | None:
        return self.result.problem.held_out

    def inputs(self) -> list[tuple[str, Path]]:
        return []


def _problem(
    run: Run,
    read: Table,
    named: Any,
    beside: Beside | None,
    trust_pickle: bool,
    trust: Sequence[str],
    remote: Remote | None,
) -> Problem:
    """The run's problem, once table and model are known to be the run's."""
    manifest, schema = run.manifest, run.schema
    try:
        problem = prepare(
            named,
            read.frame,
            protected=(),
            schema=schema,
            drop=run.left_out(schema.names),
            redact=False,  # a run that hides something was refused before
            trust_pickle=trust_pickle,
            trust=trust,
            remote=remote,
            beside=beside,
            **manifest.asked,
        )
    except BadTable as error:
        raise BadTable(f"{read.words} is not the one that {run.words} tested: {error}") from None
    except BadModel as error:
        raise BadModel(f"the model does not fit {run.words}: {error}") from None
    _same_table(problem, manifest, read.words)
    if isinstance(named, str) and manifest.model_sha256 not in (None, problem.model_sha256):
        raise BadModel(
            f"the model at {named!r} has changed since the run; give the one that was tested with "
            "--model KIND:PLACE, or test the new one first"
        )
    return replace(problem, model_name=manifest.model, model_sha256=manifest.model_sha256)


def _read_manifest(folder: Path, tree: dict[str, Any]) -> Manifest:
    try:
        manifest = read(Manifest, tree)
    except ValueError as error:
        raise CorruptStore(f"the manifest in {str(folder)!r} is damaged: {error}") from None
    if manifest.format > run_folder.FORMAT:
        raise CorruptStore(
            f"{str(folder)!r} was written by a newer limi (format {manifest.format}, this one "
            f"reads up to {run_folder.FORMAT}); upgrade limi"
        )
    return manifest


def _base(folder: Path, manifest: Manifest) -> Path:
    """Where the run's relative paths start."""
    origin = manifest.origin
    return Path() if origin is None else Path(os.path.normpath(folder.absolute() / origin))


def _take_given(table: str | Path | Frame, fit_rows: int | None = None) -> Table:
    if not isinstance(table, (str, Path)):
        return Table(table, "the frame")
    if str(table) in data.names() and not Path(table).exists():
        return Table(data.load(str(table)).frame, f"the table {str(table)!r}")
    return Table(files.read(table, fit_rows=fit_rows), f"the table {str(table)!r}")


def _table(folder: Path, base: Path, manifest: Manifest) -> Table:
    place = manifest.table
    if place in data.names() and not (base / place).exists():
        return Table(data.load(place).frame, f"the table {place!r}")
    if sources.is_query(place):
        raise InvalidInput(
            f"the table of the run {str(folder)!r} is a query, which can read any file; if you "
            f"know who wrote it, repeat it: --table {shlex.quote(place)}"
        )
    moved = sources.move(place, base)
    path = sources.file_of(moved)
    # A pipe or a device would be waited for; a folder that somebody sent may name any.
    if path is None or not (is_file(path) or is_many(path)):
        raise InvalidInput(
            f"the table of the run {str(folder)!r} is not at {_cut(Path(moved))!r} (moved, or "
            "given in memory); say where it is with --table FILE (table= in Python), or repair "
            "the result itself with limi.repair(result)"
        )
    return Table(files.read(moved, fit_rows=manifest.fit_rows), f"the table {moved!r}")


def _model(folder: Path, base: Path, uri: str, option: str) -> str:
    kind, _, place = uri.partition(":")
    if not place or kind not in models.names():
        raise InvalidInput(
            f"the run {str(folder)!r} tested a {uri} that was given in memory; name its file "
            f"with {option} KIND:PLACE (or give it as model= in Python), or repair the result "
            "itself with limi.repair(result)"
        )
    offers = models.offers(kind)
    if offers.by_address:
        raise InvalidInput(
            f"the run {str(folder)!r} tested {uri}, and asking it sends rows to that address; if "
            f"you trust it, name it: --model {shlex.quote(uri)}"
        )
    if not offers.data_only:
        raise InvalidInput(
            f"the run {str(folder)!r} tested {uri}, and opening it may run code; if you know who "
            f"wrote it, name it: {option} {shlex.quote(uri)}"
        )
    there = f"{kind}:{base / place}"
    if models.files(there):
        return there
    if offers.by_name and not place.partition("?")[0].endswith(offers.endings):
        return uri
    raise InvalidInput(
        f"the model of the run {str(folder)!r} is not at {_cut(base / place)!r}; say where it is "
        f"with {option} {kind}:PLACE (model= in Python)"
    )


def _beside(
    folder: Path, base: Path, manifest: Manifest, given: str | Path | Frame | None
) -> Beside | None:
    """The table that protected columns came from, where there was one."""
    name, key = manifest.protected_from, manifest.key
    if name is None or key is None:
        return None
    if given is not None:
        return Beside(_take_given(given).frame, key, name)
    moved = sources.move(name, base)
    path = sources.file_of(moved)
    if path is None or not (is_file(path) or is_many(path)):
        raise InvalidInput(
            f"the protected columns of the run {str(folder)!r} came from {_cut(Path(moved))!r}, "
            "which is not there; give that table as protected_from="
        )
    return Beside(files.read(moved), key, name)


def _cut(path: Path) -> str:
    """A path of bearable length, its end above all."""
    text = str(path)
    return text if len(text) <= _LONGEST else f"... {text[-_LONGEST:]}"


def _same_table(problem: Problem, manifest: Manifest, words: str) -> None:
    """BadTable where rows or labels are others than in the run; without labels, rows alone."""
    rows = manifest.data_sha256 == problem.hashes()["data_sha256"]
    labels = manifest.labels_sha256 in (None, problem.labels_sha256)
    if not (rows and labels):
        raise BadTable(
            f"{words} has different {'labels' if rows else 'rows'} from what the run tested; give "
            "the original table with --table FILE, or test the model on the new one first"
        )


def _read_frame(folder: Path) -> Any:
    """The findings as they were written, a pandas frame."""
    path = folder / "findings.parquet"
    if not is_file(path):
        raise CorruptStore(f"{str(folder)!r} is not a run folder of limi: it has no {path.name}")
    with _reading_findings(folder):
        import pandas as pd

        # Opened here, for Arrow takes no name that is not UTF-8.
        with path.open("rb") as file:
            return pd.read_parquet(file)


def _require_whole(run: Run) -> None:
    """InvalidInput where cells that the model takes are hidden in the folder."""
    if run.hidden:
        raise InvalidInput(
            f"{run.words} hides {spell(map(repr, run.hidden))}, which the model "
            "takes, so its people cannot be asked about again; run it again with --show-personal, "
            "and take care who can read that folder"
        )


def read_findings(folder: Path, codec: Codec, rule: Rule = AS_DECIDED) -> Found:
    """The findings as arrays; when they were found is not kept in the folder."""
    frame = _read_frame(folder)
    with _reading_findings(folder):
        return as_arrays(codec, frame, rule)


def open_findings(run: Run) -> tuple[Schema, Any, Found]:
    """The schema of a run, its findings as they were written, and as arrays: all that is known of
    them without table and model."""
    schema, frame = run.schema, run.findings()
    with _reading_findings(run.folder):
        return schema, frame, as_arrays(Codec.learn(frame, schema), frame, run.rule)


def read_shown_findings(run: Run) -> tuple[Schema, Found]:
    """The schema and the findings of a run as they may be shown, with what is hidden hidden."""
    schema, frame = run.schema, _read_frame(run.folder)
    with _reading_findings(run.folder):
        return schema, as_arrays(Codec.learn(frame, schema), frame, run.rule)


def count_findings(run: Run) -> int:
    """How many findings a run holds; CorruptStore where they are not such as limi writes."""
    schema, frame = run_folder.read_schema(run.folder), _read_frame(run.folder)
    answers = ANSWERS.get(run.summary.kind, ("score",))
    wanted = ["origin", "severity", "naturalness", "partner_naturalness"]
    wanted += [f"{side}{name}" for side in ("", "partner_") for name in answers]
    with _reading_findings(run.folder):
        codec = Codec.learn(frame, schema)
        for side in sides_of(frame, schema):
            _encode(codec, side)
        _causes(schema, frame)
        for name in wanted:
            frame[free_name(name, schema.names)]
    return len(frame)


def as_arrays(codec: Codec, frame: Any, rule: Rule = AS_DECIDED) -> Found:
    """A pandas frame of findings as arrays; KeyError or ValueError where it holds other things."""
    schema = codec.schema
    rows, partner = (_encode(codec, side) for side in sides_of(frame, schema))
    score, partner_score = (_answers(rule, frame, prefix, schema) for prefix in ("", "partner_"))
    origin = frame[free_name("origin", schema.names)].to_numpy().astype(str)
    natural = [
        frame[free_name(name, schema.names)].to_numpy(dtype=np.float64)
        for name in ("naturalness", "partner_naturalness")
    ]
    causes = _causes(schema, frame)
    mine, other = (np.empty(0) if np.isnan(told).all() else told for told in natural)
    seconds = np.zeros(len(rows))
    told = Found(rows, partner, score, partner_score, origin, seconds, causes, mine, other)
    if not isinstance(rule, Bands):
        return told
    severity = frame[free_name("severity", schema.names)].to_numpy(dtype=np.float64)
    return replace(told, span=severity)


def sides_of(frame: Any, schema: Schema) -> tuple[Any, Any]:
    """The people of findings and their partners, as frames of the schema's columns."""
    people = frame[schema.names]
    return people, people.assign(
        **{
            name: frame[free_name(f"{name}__partner", schema.names)]
            for name in partner_columns(schema)
        }
    )


@contextmanager
def _reading_findings(folder: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, OSError, ValueError, TypeError) as error:
        raise CorruptStore(
            f"the findings in {str(folder)!r} cannot be read: {reason(error)}"
        ) from None


def _causes(schema: Schema, frame: Any) -> NDArray[np.uint8]:
    """Which columns flip each finding, from the words that were written."""
    name = free_name("flipped_by", schema.names)
    if name not in frame:
        return np.zeros(len(frame), dtype=np.uint8)
    masks = np.arange(1 << len(cause_names(schema)), dtype=np.uint8)
    known = {
        str(words): mask for mask, words in zip(masks, causes_in_words(schema, masks), strict=True)
    }
    return np.array([known[words] for words in frame[name]], dtype=np.uint8)


def _encode(codec: Codec, frame: Frame) -> Rows:
    return codec.encode(frame) if len(frame) else np.empty((0, len(codec.schema)))


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name that a column of ours got where the table has one of that name."""
    while name in taken:
        name += "_"
    return name


def _answers(rule: Rule, frame: Any, prefix: str, schema: Schema) -> Scores:
    """The answers behind what was written of them (see `limi.audits.result.answer_columns`)."""

    def column(name: str) -> Any:
        return frame[free_name(f"{prefix}{name}", schema.names)]

    if isinstance(rule, Classes):
        known = {rule.show(place): place for place in range(len(rule.labels) + 1)}
        places = np.array([known[label] for label in column("class")], dtype=np.float64)
        lead: Scores = column("lead").to_numpy(dtype=np.float64)
        return places + lead
    answers: Scores = column(rule.noun).to_numpy(dtype=np.float64)
    return answers


def _alike(rule: Rule, now: Scores, then: Scores) -> bool:
    if rule.kind == "favorable":
        return bool(np.allclose(now, then, rtol=1e-3, atol=1e-3))
    return not rule.moved(now, then).any()


def require_answers(
    target: Target, found: Found, named: Any, words: str, *, option: str = "--model"
) -> int:
    """BadModel where findings of a run do not get the scores that it wrote; how many rows were
    asked. `words` name the run, and `option` is the one that would give its model."""
    some = slice(0, _SPOT)
    sides = (
        (found.rows[some], found.score[some]),
        (found.partner[some], found.partner_score[some]),
    )
    if not all(_alike(target.rule, target.score(rows), score) for rows, score in sides):
        raise BadModel(
            f"the model{f' {named!r}' if isinstance(named, str) else ''} gives answers that differ "
            f"from those in {words}; give the one that was tested with {option} "
            "KIND:PLACE, or test this one first"
        )
    return 2 * len(found.rows[some])
