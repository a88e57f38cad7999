"""`limi init`: write a limi.toml to commit beside the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from limi.cli import _console
from limi.cli._apart import MODEL, Writes
from limi.cli._asking import ask, can_ask
from limi.cli._config import FILE
from limi.cli._options import AsJson, TableFile

if TYPE_CHECKING:
    from limi.table.guesses import Guess
    from limi.table.schema import Column, Schema

__all__ = ["init"]

_SCHEMA = "schema.toml"


def _files(out: Path) -> Iterator[tuple[str, Path]]:
    yield "--out", out
    yield "--out", out.parent / _SCHEMA


def init(
    table: TableFile,
    model: Annotated[
        str | None, Option(help="Model to test, as KIND:PLACE (`limi list models`)."), MODEL
    ] = None,
    target: Annotated[str | None, Option(help="Column the model predicts.")] = None,
    favorable: Annotated[str | None, Option(help="Label that people want.")] = None,
    protected: Annotated[
        list[str] | None,
        Option(help="Protected column: sex, race=White,Black, age=18-80:5. Repeatable."),
    ] = None,
    out: Annotated[
        Path, Option(help="File to write; a schema.toml goes beside it."), Writes(_files)
    ] = Path(FILE),
    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a limi.toml to edit: guessed from the table, confirmed on a terminal."""
    from limi.cli._tables import is_known, set_aside
    from limi.system import writing
    from limi.table import schema_files

    place = writing.place(out, replace=force)
    known = is_known(table)
    beside = None if known else writing.place(place.with_name(_SCHEMA), replace=force)
    schema, n_rows, shipped = _look(table)
    guessed = _settle(schema, shipped, target, favorable, protected, model)
    text = _render(table, guessed, n_rows, place.parent, schema=beside is not None)
    contents: dict[Path, Any] = {place: text}
    if beside is not None:
        features = _without(schema, guessed["target"]).protect(guessed["protected"])
        features, aside = set_aside(shipped["frame"], features)
        features = replace(features, protected=(), protected_codes=())  # the limi.toml names them
        ignored = {name: seen.said for name, seen in aside.items()}
        contents[beside] = schema_files.dump(features, ignored=ignored)
    writing.write_all(contents)
    if as_json:
        _console.print_json({"file": str(out), "schema": beside and _SCHEMA, **guessed})
        return
    named = f"{out} and {out.with_name(_SCHEMA)}" if beside is not None else str(out)
    _console.out.print(
        f"Written: {named}. Look through what was guessed, then run limi test or limi gate."
    )


def _look(table: str) -> tuple[Schema, int, dict[str, Any]]:
    """The schema of all columns, the number of rows, and what is known of a shipped table."""
    from limi import data
    from limi.cli._tables import is_known
    from limi.table import files

    if is_known(table):
        known = data.load(table)
        return (
            files.infer(known.frame),
            len(known.frame),
            {"target": known.target, "favorable": known.favorable},
        )
    frame = files.read(table)
    return files.infer(frame), len(frame), {"frame": frame}


def _settle(
    schema: Schema,
    shipped: dict[str, Any],
    target: str | None,
    favorable: str | None,
    protected: list[str] | None,
    model: str | None,
) -> dict[str, Any]:
    """What is typed, else what is known or guessed and, on a terminal, confirmed."""
    from limi.errors import InvalidInput
    from limi.models import split_uri
    from limi.table.guesses import guess

    asks = can_ask()
    if target is not None:
        schema.position(target)
    first = guess(schema, target=target or shipped.get("target"))
    model = model or (ask("Model, as KIND:PLACE", None) if asks else None)
    if model is None:
        raise InvalidInput("--model is missing; name the model to test, such as onnx:model.onnx")
    split_uri(model)  # its file may still be to come, its kind not
    target = target or first.target
    if asks and "target" not in shipped:
        target = ask("Column the model predicts", target)
    if target is None:
        raise InvalidInput(
            "limi cannot tell which column the model predicts; name it with --target COLUMN"
        )
    schema.position(target)
    second = guess(schema, target=target)
    known = shipped.get("favorable") if target == shipped.get("target") else second.favorable
    wanted: Any = favorable or known
    if asks and not favorable and "target" not in shipped:
        wanted = ask(f"Label of {target} that people want", wanted)
    if wanted is None:
        raise InvalidInput(
            f"limi cannot tell which label of {target!r} people want; name it with --favorable "
            "LABEL"
        )
    _check_label(schema[target], wanted)
    chosen = protected or list(second.protected)
    if asks and not protected:
        chosen = _split(ask("Protected columns, joined by ;", "; ".join(chosen) or None))
    if not chosen:
        raise InvalidInput(
            "no column has a name that sounds protected, such as sex or race; name one with "
            "--protected COLUMN"
        )
    _without(schema, target).protect(chosen)
    return {
        "model": model,
        "target": target,
        "favorable": wanted,
        "protected": chosen,
        "maybe_protected": _others(second, chosen),
    }


def _check_label(column: Column, wanted: Any) -> None:
    """InvalidInput unless the label, or each of several, is one of the column's."""
    from limi.errors import InvalidInput, nearest

    labels = [str(level) for level in column.levels]
    text = str(wanted)
    for label in [text] if text in labels else text.split(","):
        if labels and label.strip() not in labels:
            raise InvalidInput(
                f"{column.name!r} has no label {label.strip()!r}; {nearest(label, labels)}"
            )


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _others(guessed: Guess, chosen: list[str]) -> list[str]:
    taken = {text.partition("=")[0] for text in chosen}
    return [text for text in guessed.maybe if text.partition("=")[0] not in taken]


def _without(schema: Schema, target: str) -> Schema:
    return schema.select([name for name in schema.names if name != target])


def _render(table: str, said: dict[str, Any], n_rows: int, folder: Path, *, schema: bool) -> str:
    from limi.cli._tables import is_known
    from limi.system.shown import to_toml

    seen = table if is_known(table) else _from(folder, table)
    maybe = [f"# protected as well? {to_toml(text)}" for text in said["maybe_protected"]]
    lines = [
        "# What limi needs to know about this model: `limi test` and `limi gate` read it here.",
        "# Options on the command line override this file. Paths are relative to its folder.",
        "# Do not put secrets in it.",
        "",
        f"table = {to_toml(seen)}  # {n_rows:,} rows",
        f"model = {to_toml(_model_from(folder, said['model']))}  # as in limi list models",
        f"target = {to_toml(said['target'])}  # the column that the model predicts",
        f"favorable = {to_toml(said['favorable'])}  # the label that people want",
        "",
        "# Changing only these should change no decision. All values of a column, or some:",
        '# "race=White,Black", "age=18-80:5".',
        f"protected = {to_toml(said['protected'])}",
        *maybe,
        "",
        *(
            [f"schema = {to_toml(_SCHEMA)}  # what the columns may hold; look through it"]
            if schema
            else ['# schema = "schema.toml"  # what the columns may hold, by limi schema']
        ),
        'generator = "trees"  # imitates the table to draw natural rows; see limi list generators',
        "seed = 0",
        "# max_queries = 20_000  # most questions that limi test may ask the model",
        '# method = "guided"  # see limi list methods; its settings go under [settings]',
        "",
        "# The rules a build must keep: limi gate asks about as few rows as it needs, and exits",
        "# with 0 (pass), 1 (fail) or 3 (inconclusive).",
        "[gate]",
        'natural_rate = "<= 1 %"  # share of natural people who would be decided differently',
        '# real_rate = "<= 1 %"  # the same for the table\'s rows',
        '# worst_region_rate = "<= 5 %"  # in the group of people that flips most',
        '# score_gap_p99 = "<= 0.2"  # how far a protected value moves the score of 99 % of people',
        '# spd = "<= 0.1"  # gap between the groups\' shares of favorable decisions',
        '# impact_ratio = ">= 0.8"  # lowest share by the highest: the four-fifths rule',
        '# natural_rate = ["<= 1 %", "no worse than baseline by 0.2 points"]',
        '# baseline = "runs/last"  # run folder of the previous model, on the same table',
        "max_queries = 50_000",
        "error = 0.05  # chance of any wrong answer, for all rules together",
    ]
    return "\n".join(lines) + "\n"


def _from(folder: Path, path: str) -> str:
    """A path as seen from the file's folder; an absolute one stays."""
    from limi.table import sources

    if sources.is_query(path):
        return path
    if sources.is_source(path):
        file, _, name = path.removeprefix("sqlite:").rpartition(":")
        return f"sqlite:{_from(folder, file)}:{name}"
    if os.path.isabs(path):
        return path
    seen = os.path.relpath(path, folder)
    return Path(seen).as_posix()


def _model_from(folder: Path, model: str) -> str:
    from limi import models

    kind, colon, place = model.partition(":")
    return f"{kind}{colon}{_from(folder, place)}" if models.files(model) else model
