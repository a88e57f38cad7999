"""Known tables with their schemas: three of UCI as published, two made from these, and four of
the papers as encoded.

`adult`, `german-credit` and `bank-marketing` hold the values that UCI publishes. `census`,
`credit`, `bank` and `meps` are the integer encodings that the fairness-testing papers share.
`german-amount` has a number as its target and `adult-hours` one of three classes; both say how they
are made.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from limi.data import _encodings, _made
from limi.errors import BadTable, InvalidInput, nearest, spell
from limi.table import files, schema_files
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Value

__all__ = ["Dataset", "Domain", "Part", "encodings", "load", "names", "title"]

Part = Literal["train", "test"]
Domain = Literal["data", "paper"]

_HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, what its columns may hold, and where it comes from."""

    name: str
    frame: Any  # pandas; the target column is the last
    schema: Schema  # of all columns but the target; none is protected yet
    target: str
    favorable: Value | None  # None where nothing is: the target is a number, or of many classes
    protected: tuple[str, ...]  # the columns usually tested
    title: str
    licence: str
    citation: str
    source: str
    notes: tuple[str, ...]


def names() -> list[str]:
    """Every known table, those of UCI first."""
    return list(_catalogue())


def title(name: str) -> str:
    """What a known table is, in one line; its file is not read."""
    return str(_entry(name)["title"])


def encodings() -> list[str]:
    """The tables in the integer encoding of the papers, which have benchmark targets."""
    return [name for name, entry in _catalogue().items() if entry.get("encoded")]


def load(
    name: str,
    *,
    part: Part = "train",
    domain: Domain = "data",
    path: str | Path | None = None,
) -> Dataset:
    """A known table.

    `part="test"` exists for `adult` and `census`. `domain="paper"` gives an encoding the bounds
    that the papers declare and cuts the cells to them, as the published programs do; the default
    is what occurs in the data. `path` says where the file of `meps` is, which limi may not ship.
    """
    entry = _entry(name)
    _check_choice("part", part, get_args(Part))
    _check_choice("domain", domain, get_args(Domain))
    if part not in entry["parts"]:
        with_test = [n for n, e in _catalogue().items() if "test" in e["parts"]]
        raise InvalidInput(
            f"{name} has no part {part!r}, only {spell(entry['parts'])}; there are test rows for "
            f"{spell(with_test)}"
        )
    if domain == "paper" and name not in encodings():
        raise InvalidInput(
            f"the papers declare no bounds for {name}; domain='paper' is for {spell(encodings())}"
        )
    if path is not None and name != "meps":
        raise InvalidInput(f"{name} comes with limi, so leave path out; path is for meps")
    schema = _schema(name, domain)
    frame = _meps(path) if name == "meps" else _shipped(name, part).copy()
    if domain == "paper":
        frame = _encodings.clip(frame, schema)
    return Dataset(
        name=name,
        frame=frame,
        schema=schema,
        target=entry["target"],
        favorable=entry.get("favorable"),
        protected=tuple(entry["protected"]),
        title=entry["title"],
        licence=entry["licence"],
        citation=entry["citation"],
        source=entry["source"],
        notes=tuple(entry["notes"]),
    )


def _entry(name: str) -> dict[str, Any]:
    if name not in names():
        raise InvalidInput(f"there is no known table {name!r}; {nearest(name, names())}")
    return _catalogue()[name]


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    return tomllib.loads((_HERE / "catalogue.toml").read_text(encoding="utf-8"))


@cache
def _schema(name: str, domain: Domain = "data") -> Schema:
    entry = _entry(name)
    if "made_from" in entry:
        kept = [column for column in _shipped(name, "train") if column != entry["target"]]
        return _schema(entry["made_from"]).select(kept)
    schema = schema_files.load(_HERE / "schemas" / f"{name}.toml")
    # The file of declared bounds lists only the columns that it changes, and meps has none.
    other = _HERE / "schemas" / f"{name}-paper.toml"
    if domain == "data" or not other.exists():
        return schema
    declared = {column.name: column for column in schema_files.load(other).columns}
    return Schema(tuple(declared.get(column.name, column) for column in schema.columns))


@cache
def _shipped(name: str, part: Part) -> Any:
    if name == "census":
        return _encodings.census(_shipped("adult", part), _schema(name))
    if name == "credit":
        rows = np.loadtxt(_HERE / "tables" / "credit-rows.txt", dtype=np.intp)
        return _encodings.credit(_shipped("german-credit", part), _schema(name), rows)
    if name == "german-amount":
        return _made.amount(_shipped("german-credit", part))
    if name == "adult-hours":
        return _made.hours(_shipped("adult", part))
    if name == "bank":
        return _encodings.bank(_shipped("bank-marketing", part), _schema(name))
    frame = files.read(_HERE / "tables" / f"{name}{'-test' if part == 'test' else ''}.parquet")
    # pandas before 3 reads missing text as None from Parquet, and as NaN from text files.
    gaps = [name for name in frame if frame[name].dtype == object and frame[name].hasnans]
    return frame.assign(**{name: frame[name].where(frame[name].notna(), np.nan) for name in gaps})


def _meps(path: str | Path | None) -> Any:
    file = _meps_file(path)
    entry, schema = _catalogue()["meps"], _schema("meps")
    wanted = [*schema.names, entry["target"]]
    frame = _read_meps(str(file), file.stat().st_mtime_ns)
    if sorted(frame.columns) != sorted(wanted):
        absent = [name for name in wanted if name not in frame.columns]
        raise BadTable(
            f"{str(file)!r} is not the encoded MEPS table: it lacks "
            f"{spell(absent) if absent else 'nothing, but has more columns'}; "
            f"it must hold {len(wanted)} columns, {wanted[0]} to {wanted[-1]}"
        )
    frame = frame[wanted].astype(np.int64)
    Codec.learn(frame, schema)  # every cell must fit, else this is another encoding
    return frame


@cache
def _read_meps(file: str, _changed: int) -> Any:
    import pandas as pd

    # The file that the papers share has the survey's capital names and calls the target "label".
    frame = pd.read_csv(file)
    return frame.rename(columns=str.lower).rename(columns={"label": "utilization"})


def _meps_file(path: str | Path | None) -> Path:
    given = path or os.environ.get("LIMI_DATA")
    if not given:
        raise InvalidInput(
            "the MEPS table does not come with limi; get the encoded file (in the LIMI paper's "
            "repository: xiaoyisong/Latent_Imitator, LIMI_tabular/datasets/meps), then give "
            "path=FILE or set the environment variable LIMI_DATA to the folder that holds it, as "
            "meps, meps.csv.gz or benchmark/meps.csv.gz"
        )
    place = Path(given)
    candidates = [place / "benchmark" / "meps.csv.gz", place / "meps.csv.gz", place / "meps"]
    found = [file for file in [place, *candidates] if file.is_file()]
    if not found:
        said = "path" if path else "LIMI_DATA"
        raise InvalidInput(
            f"{said} is {str(given)!r}, which is not a file and holds no benchmark/meps.csv.gz, "
            "meps.csv.gz or meps; give the encoded MEPS file, or the folder that holds it"
        )
    return found[0]


def _check_choice(argument: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InvalidInput(f"{argument} is {given!r}; {nearest(str(given), known)}")
