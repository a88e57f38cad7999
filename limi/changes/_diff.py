"""Two models asked about the same people: how often decisions flip under each, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from limi import generators
from limi.audits import run_folder
from limi.audits.problem import Problem, prepare, protected_values
from limi.audits.reopen import Run, Table, open_findings, require_answers, sides_of
from limi.audits.result import Result, answer_columns
from limi.audits.sending import settle_remote
from limi.changes._columns import Columns, bring, newer_schema, rename_frame
from limi.changes._open import as_meant, notes_of, resting
from limi.changes._rates import Change, Regions, changed_regions, compare
from limi.changes._replay import Replay, ask_pairs
from limi.decisions import Classes, Favorable, Rule, favors
from limi.defaults import MEASURED_ROWS
from limi.errors import BadModel, BadTable, InvalidInput, spell
from limi.generators import Generator
from limi.metrics.rates import Measured, measure
from limi.models import Meaning
from limi.models.target import Target
from limi.remote.options import Remote
from limi.search import steadiness
from limi.search.budget import check_seed
from limi.search.session import Session
from limi.search.task import Task
from limi.streams import Stream
from limi.system import cores
from limi.system.arguments import checked
from limi.system.reading import is_file
from limi.system.watch import Watch
from limi.table.frames import Codec, Frame, columns_of
from limi.table.schema import Schema
from limi.types import Rows, Scores, Value

__all__ = ["Diff", "Population", "diff"]

FORMAT = 1
_STEADY_ROWS = 128  # asked four times, to see whether the answers stay


@dataclass(frozen=True)
class Population:
    """The same people of a population under both models."""

    name: str
    change: Change
    decided_otherwise: int  # people whose own decision is another one now
    # Of people as they are, before and after, by what decisions are:
    favorable: tuple[float, float] | None = None  # share decided favorably
    mean_prediction: tuple[float, float] | None = None
    classes: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # share of each

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = {"favorable": self.favorable, "mean_prediction": self.mean_prediction}
        classes = {label: _sides(shares) for label, shares in self.classes.items()}
        return {
            "population": self.name,
            **self.change.as_dict(),
            **{name: _sides(pair) for name, pair in told.items() if pair is not None},
            **({"classes": classes} if classes else {}),
            "decided_otherwise": self.decided_otherwise,
        }


def _sides(pair: tuple[float, float]) -> dict[str, float]:
    return {"before": pair[0], "after": pair[1]}


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What a newer model changed."""

    before: str  # the run
    after: str  # the other run, or the newer model
    models: tuple[str, str]
    table: str
    decisions: tuple[str, str]  # the rules
    protected: dict[str, list[str]]
    seed: int
    generator: str | None
    populations: tuple[Population, ...]
    regions: Regions
    replayed: Replay | None  # the earlier run's findings, put to the newer model
    replayed_back: Replay | None  # the newer run's findings, put to the earlier model
    queries: int
    notes: tuple[str, ...]
    hashes: dict[str, str | None]
    versions: dict[str, str]
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        forth, back = self.replayed, self.replayed_back
        return {
            "format": FORMAT,
            "before": self.before,
            "after": self.after,
            "models": {"before": self.models[0], "after": self.models[1]},
            "table": self.table,
            "decisions": {"before": self.decisions[0], "after": self.decisions[1]},
            "protected": self.protected,
            "seed": self.seed,
            "generator": self.generator,
            "rates": [population.as_dict() for population in self.populations],
            "where": self.regions.as_dict(),
            "findings_before": None if forth is None else forth.as_dict(),
            "findings_after": None if back is None else back.as_dict(),
            "queries": self.queries,
            "notes": list(self.notes),
            "hashes": self.hashes,
            "versions": self.versions,
            "command": self.command,
        }

    def report(self, path: str | Path) -> Path:
        """Write the page with both models side by side."""
        from limi.report import changes
        from limi.system.writing import write

        write(path, changes.render(self))
        return Path(path)


@checked
def diff(
    before: Result | str | Path,
    after: Result | str | Path | None = None,
    *,
    model: Any = None,
    before_model: Any = None,
    table: str | Path | Frame | None = None,
    schema: Schema | None = None,
    rename: Mapping[str, str] | Sequence[str] = (),
    fill: Mapping[str, Any] | Sequence[str] = (),
    favorable: Value | Sequence[Value] | None = None,
    output: Meaning | None = None,
    decision: str | None = None,
    drop: str | Sequence[str] | None = None,
    only: str | Sequence[str] = (),
    generator: str | Path | Generator | None = "as before",
    rows: int = MEASURED_ROWS,
    seed: int | None = None,
    trust_pickle: bool = False,
    trust: Sequence[str] = (),
    remote: Remote | None = None,
    command: str = "",
    on_step: Callable[[float, str], None] = lambda done, words: None,
) -> Diff:
    """Ask two models about the same people, and compare them person by person.

    `before` is a result or the folder of a run; `after` is that of the newer model, or None if
    `model` is the newer model itself. `model` and `before_model` also say where the models of the
    runs are now; a model whose file runs code when it is opened must be named. The people come from
    the newer run's table, or from `table`, and from the earlier run's generator and seed; both
    models get the earlier run's question, with its protected values and rules. `rename` and `fill`
    work as in `limi.replay`, and so do `favorable`, `output`, `decision`, `drop` and `only`, which
    are about the newer model. `remote` is for whichever of the two is behind an address.
    """
    _check(after, model, rows)
    first, second = Run.of(before), None if after is None else Run.of(after)
    first.require_kind(decision if second is None or decision else second.summary.decision)
    called = _call(before), None if after is None else _call(after)
    seed = _seed(first) if seed is None else seed
    check_seed(seed)
    columns = Columns.of(rename, fill)
    read = (second or first).table(table)
    asked = _Question.of(first, second, read, columns, schema, anew=table is not None)
    on_step(0.0, "opening the models")
    reading = _Reading(
        output=output,
        decision=decision,
        favorable=favorable,
        drop=drop,
        only=only,
        trust_pickle=trust_pickle,
        trust=trust,
    )
    new_model, old_model = (
        (second or first).model(model),
        first.model(before_model, option="--before"),
    )
    remotes = _remotes(new_model, old_model, remote)
    newer = asked.open_newer(new_model, second or first, reading, remotes[0])
    earlier = asked.open_earlier(old_model, first, reading, remotes[1])
    with resting(newer, earlier), cores.share_cores():
        spot = _hold_to_run(first, earlier, columns, old_model)
        people = asked.people(earlier, newer)
        on_step(0.2, "fitting the generator")
        made, drawn_by = _generator(generator, first, people, seed)
        sides = []
        for step, problem, names in ((0.4, earlier, columns.renamed), (0.6, newer, {})):
            on_step(step, f"asking {problem.model_name}")
            sides.append(_measure(people, problem, names, made, rows, seed))
        on_step(0.8, "asking about the findings")
        replays, notes = _replays(first, second, earlier, newer, columns, seed, called)
    (one, n_one), (two, n_two) = sides
    rules = earlier.target.rule, newer.target.rule
    populations, regions = _compare(people.schema, rules, one, two, seed)
    regions = regions.without({*earlier.hidden, *newer.hidden})
    asked_again = sum(told.queries for told in replays if told is not None)
    return Diff(
        before=called[0],
        after=called[1] or newer.model_name,
        models=(
            first.manifest.model if before_model is None else earlier.model_name,
            newer.model_name,
        ),
        table=newer.table_name,
        decisions=(str(rules[0]), str(rules[1])),
        protected=protected_values(people.schema),
        seed=seed,
        generator=drawn_by,
        populations=populations,
        regions=regions,
        replayed=replays[0],
        replayed_back=replays[1],
        queries=spot + n_one + n_two + asked_again,
        notes=(*notes, *_notes(first, second, earlier, newer)),
        hashes={
            "data_sha256": run_folder.digest(np.ascontiguousarray(people.rows).tobytes()),
            "model_before_sha256": earlier.model_sha256,
            "model_after_sha256": newer.model_sha256,
        },
        versions=run_folder.versions(),
        command=command,
    )


def _check(after: Any, model: Any, rows: int) -> None:
    if after is None and model is None:
        raise InvalidInput(
            "there is nothing to compare the run with; name a second run, or the newer model with "
            "--model KIND:PLACE"
        )
    if rows < 1:
        raise InvalidInput(f"rows is {rows}; ask about at least one person")


def _remotes(newer: Any, earlier: Any, given: Remote | None) -> tuple[Remote | None, Remote | None]:
    """How each model is asked that is behind an address; InvalidInput where neither is."""
    by_address = [settle_remote(model, None) is not None for model in (newer, earlier)]
    if not any(by_address):
        return settle_remote(newer, given), None
    models = zip((newer, earlier), by_address, strict=True)
    first, second = (settle_remote(model, given) if there else None for model, there in models)
    return first, second


def _call(run: Result | str | Path) -> str:
    return "the result" if isinstance(run, Result) else str(run)


def _seed(run: Run) -> int:
    return run.manifest.seed


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How the newer model's answers are read, where the user says so."""

    favorable: Value | Sequence[Value] | None
    output: Meaning | None
    decision: str | None
    drop: str | Sequence[str] | None
    only: str | Sequence[str]
    trust_pickle: bool
    trust: Sequence[str]


@dataclass(frozen=True)
class _People:
    """The people that both models are asked about, in the columns of both."""

    schema: Schema
    rows: Rows


@dataclass(frozen=True)
class _Question:
    """One table, and what is asked of both models about its people."""

    read: Table
    schema: Schema  # of the table, under its own names
    columns: Columns
    target: str | None
    anew: bool = False  # did the user name the table?

    @staticmethod
    def of(
        first: Run,
        second: Run | None,
        read: Table,
        columns: Columns,
        given: Schema | None,
        *,
        anew: bool,
    ) -> _Question:
        """The earlier run's question, of a table that may have moved on."""
        before = first.schema
        names = [name for name, _, _ in columns_of(read.frame)]
        columns.check(before, first.manifest.target, names)
        target = columns.newer(first.manifest.target)
        if first.manifest.protected_from is not None:
            raise InvalidInput(
                f"{first.words} took protected columns from another table; join "
                "the two tables, test both models on the joined one, and compare those runs"
            )
        if second is None and not anew and given is None and not columns.renamed:
            return _Question(read, before, columns, target)
        if second is not None and not anew:
            # What neither model was tested with, such as a number of each person, stays out.
            known = {
                *map(columns.newer, before.names),
                *second.schema.names,
            }
            keep = [name for name in names if name in known or name == target]
            read = Table(_select(read.frame, keep), read.words)
        schema = newer_schema(before, read.frame, columns, target=target, given=given)
        return _Question(read, schema, columns, target, anew)

    def open_newer(self, model: Any, run: Run, reading: _Reading, remote: Remote | None) -> Problem:
        """The newer model, asked this question."""
        manifest, drop = run.manifest, reading.drop
        if drop is None:
            drop = () if reading.only else run.left_out(self.schema.names)

        def opened(meaning: Meaning | None) -> Problem:
            return self._prepare(
                "newer",
                model,
                self.read.frame,
                self.schema,
                target=self.target,
                favorable=manifest.favorable if reading.favorable is None else reading.favorable,
                output=meaning,
                drop=drop,
                only=reading.only,
                redact=run.hidden or True,
                shown=run.schema.names if not run.hidden else (),
                decision=manifest.decision if reading.decision is None else reading.decision,
                order=manifest.order,
                trust_pickle=reading.trust_pickle,
                trust=reading.trust,
                table_name=manifest.table,
                remote=remote,
            )

        return as_meant(reading.output, manifest.output, opened)

    def open_earlier(
        self, model: Any, run: Run, reading: _Reading, remote: Remote | None
    ) -> Problem:
        """The earlier model, asked this question under the names that it knows."""
        manifest, backward = run.manifest, self.columns.backward
        before = run.schema
        known = {*before.names}
        # Columns that came since are none that it was tested with.
        asked = self.schema.select(
            [
                name
                for name in self.schema.names
                if self.columns.earlier(name) in known or name in self.schema.protected
            ]
        )
        schema = replace(
            asked,
            columns=tuple(
                replace(column, name=self.columns.earlier(column.name)) for column in asked.columns
            ),
            protected=tuple(map(self.columns.earlier, asked.protected)),
        )
        gone = [name for name in before.names if self.columns.newer(name) not in self.schema.names]
        problem = self._prepare(
            "earlier",
            model,
            rename_frame(self.read.frame, backward),
            schema,
            gone,
            drop=run.left_out(schema.names),
            redact=run.hidden,
            shown=before.names,
            trust_pickle=reading.trust_pickle,
            trust=reading.trust,
            remote=remote,
            **manifest.asked,
        )
        if isinstance(model, str) and not run.is_same_model(problem):
            raise BadModel(
                f"the model at {model!r} is not the one that {run.words} tested; "
                "say where that one is with --before KIND:PLACE"
            )
        return problem

    def _prepare(
        self,
        which: str,
        model: Any,
        frame: Frame,
        schema: Schema,
        gone: Sequence[str] = (),
        **given: Any,
    ) -> Problem:
        try:
            return prepare(model, frame, protected=(), schema=schema, **given)
        except (BadTable, BadModel) as error:
            if gone:  # columns that the model was tested with: what it lacks is one of them
                name = "leave --table out" if self.anew else "name a table that has it with --table"
                raise type(error)(
                    f"the {which} model cannot be asked about people of {self.read.words}, because "
                    f"that table has no {spell(gone)}, which the model had when it was tested; "
                    f"{name}, or give its new name with --rename OLD=NEW"
                ) from None
            raise type(error)(
                f"the {which} model cannot be asked about people of {self.read.words}: {error}"
            ) from None

    def people(self, earlier: Problem, newer: Problem) -> _People:
        """The table's people in the columns of both models."""
        mine = [str(self.columns.newer(name)) for name in earlier.schema.names]
        names = [*mine, *(name for name in newer.schema.names if name not in mine)]
        codec = Codec.learn(self.read.frame, self.schema.select(names))
        rows = codec.encode(self.read.frame)
        return _People(codec.schema, rows[~codec.schema.enforcer.disagrees(rows)])


def _hold_to_run(run: Run, earlier: Problem, columns: Columns, named: Any) -> int:
    """BadModel where the earlier model does not score the run's findings as it did then; how many
    rows were asked. What the table's columns cannot hold is left out."""
    if not run.is_steady:
        return 0
    schema, frame, found = open_findings(run)
    by = Columns({}, columns.filled)
    brought = bring(sides_of(frame, schema), schema, by, earlier.target.codec)
    can = brought.is_askable
    asked = replace(found[can], rows=brought.rows[can], partner=brought.partner[can])
    return require_answers(earlier.target, asked, named, run.words, option="--before")


def _select(frame: Frame, names: Sequence[str]) -> Frame:
    import narwhals as nw

    return nw.from_native(frame, eager_only=True).select(list(names)).to_native()


def _generator(
    given: str | Path | Generator | None, run: Run, people: _People, seed: int
) -> tuple[Generator | None, str | None]:
    """The generator that natural people are drawn from, fitted to this table, and its name."""
    called = run.summary.generator if given == "as before" else given
    if called is None or called == "none":
        return None, None
    if not isinstance(called, (str, Path)):
        return generators.obey(called, people.schema), called.kind
    path = run.base / called if given == "as before" else Path(called)
    if is_file(path):
        made = generators.load(path)
        if made.schema.columns != people.schema.columns:
            raise InvalidInput(
                f"the generator {str(path)!r} was not fitted to the columns that both models take; "
                "name a kind to fit, such as --generator trees, or none"
            )
        return generators.obey(made, people.schema), str(called)
    made = generators.fit(str(called), people.rows, people.schema, Stream.GENERATOR.rng(seed))
    return made, str(called)


def _measure(
    people: _People,
    problem: Problem,
    names: Mapping[str, str],
    generator: Generator | None,
    rows: int,
    seed: int,
) -> tuple[Measured, int]:
    """Verdicts of one model on the people of each population, and how many questions they took."""
    watch = Watch()
    score = _score_of(problem.target, people.schema, names)
    counted, rule = watch.counted(score), problem.target.rule
    with problem.target.anew():  # what a model behind an address once said would be said again
        told = steadiness.sample(
            counted, people.rows, Stream.STEADINESS.rng(seed), n=_STEADY_ROWS, decision=rule
        )
    task = Task(people.schema, score, people.rows, generator=generator, decision=rule)
    session = Session(task, watch=watch)
    populations = [*([] if generator is None else ["natural"]), "real"]
    with nullcontext() if told.steady else problem.target.anew():
        measured = measure(session, populations, seed, rows=rows, told=told)
    return measured, measured.queries + told.questions


def _score_of(target: Target, schema: Schema, names: Mapping[str, str]) -> Callable[[Rows], Scores]:
    """A model's scores of rows that hold the columns of both models."""
    places = [schema.position(names.get(name, name)) for name in target.codec.schema.names]

    def score(rows: Rows) -> Scores:
        return target.score(rows[:, places])

    return score


def _compare(
    schema: Schema, rules: tuple[Rule, Rule], one: Measured, two: Measured, seed: int
) -> tuple[tuple[Population, ...], Regions]:
    """Verdicts before and after, population by population, and where they changed."""
    names = [name for name in one.checked if name in two.checked]
    paired = {name: one.checked[name].is_paired & two.checked[name].is_paired for name in names}
    flips = {
        name: tuple(side.checked[name].flips[paired[name]] for side in (one, two)) for name in names
    }
    changes = compare([(had, has) for had, has in flips.values()])
    populations = []
    for name, change in zip(names, changes, strict=True):
        answers = one.checked[name].score, two.checked[name].score
        populations.append(Population(name, change, **_as_they_are(rules, answers)))
    if not names:
        return (), Regions(reason="no people were asked")
    where, people = names[0], one.checked[names[0]].rows[paired[names[0]]]
    had, has = flips[where]
    regions = changed_regions(schema, people, had, has, Stream.REGIONS.rng(seed))
    return tuple(populations), replace(regions, population=where)


def _as_they_are(rules: tuple[Rule, Rule], answers: tuple[Scores, Scores]) -> dict[str, Any]:
    """How people are decided as they are under both models, as parts of a `Population`."""
    if isinstance(rules[1], Favorable):
        decided = [favors(told) for told in answers]
        shares = float(decided[0].mean()), float(decided[1].mean())
        return {"favorable": shares, "decided_otherwise": int((decided[0] != decided[1]).sum())}
    if isinstance(rules[0], Classes) and isinstance(rules[1], Classes):
        told = [
            answer_columns(rule, one)["class"] for rule, one in zip(rules, answers, strict=True)
        ]
        labels = dict.fromkeys([*map(str, rules[1].labels), *np.unique(np.concatenate(told))])
        classes = {
            label: (float((told[0] == label).mean()), float((told[1] == label).mean()))
            for label in labels
        }
        return {"classes": classes, "decided_otherwise": int((told[0] != told[1]).sum())}
    otherwise = int(rules[1].differ(*answers).sum())
    means = float(answers[0].mean()), float(answers[1].mean())
    return {"mean_prediction": means, "decided_otherwise": otherwise}


def _replays(
    first: Run,
    second: Run | None,
    earlier: Problem,
    newer: Problem,
    columns: Columns,
    seed: int,
    called: tuple[str, str | None],
) -> tuple[tuple[Replay | None, Replay | None], list[str]]:
    """The findings of each run, put to the other model; a note where none of them could be."""
    backward = Columns(columns.backward, {})
    notes: list[str] = []

    def ask(run: Run, problem: Problem, by: Columns, name: str) -> Replay | None:
        try:
            return ask_pairs(run, problem, by, seed, called=name)
        except BadTable as error:
            notes.append(str(error))
            return None

    forth = ask(first, newer, columns, called[0])
    back = None if second is None else ask(second, earlier, backward, str(called[1]))
    return (forth, back), notes


def _notes(first: Run, second: Run | None, earlier: Problem, newer: Problem) -> list[str]:
    notes = []
    if second is not None:
        if first.summary.protected != second.summary.protected:
            notes.append(
                "the two runs tried different protected values; both models were asked with those "
                "of the earlier run"
            )
        if first.manifest.data_sha256 != second.manifest.data_sha256:
            notes.append(
                "the two runs tested different rows or columns; both models were asked about "
                "people from the newer run's table"
            )
    if str(earlier.target.rule) != str(newer.target.rule):
        notes.append(
            f"the earlier model decides by {str(earlier.target.rule)!r}, the newer one by "
            f"{str(newer.target.rule)!r}"
        )
    for words, problem in (("earlier", earlier), ("newer", newer)):
        notes += [f"{words} model: {note}" for note in notes_of(problem)]
    return list(dict.fromkeys(notes))
