"""People of an earlier run as a newer table would hold them: columns renamed, added or dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limi.errors import BadTable, InvalidInput, nearest, spell
from limi.search.check import cause_sets
from limi.table.files import infer
from limi.table.frames import Codec, Frame, columns_of
from limi.table.schema import Column, Schema
from limi.types import Mask, Rows

__all__ = ["Brought", "Columns", "bring", "newer_schema", "rename_frame"]


@dataclass(frozen=True)
class Columns:
    """What became of a run's columns in the table of a newer model."""

    renamed: Mapping[str, str]  # from the run's name to the newer one
    filled: Mapping[str, str]  # new columns, with the value that people of the run get there

    @staticmethod
    def of(
        rename: Mapping[str, str] | Sequence[str], fill: Mapping[str, Any] | Sequence[str]
    ) -> Columns:
        """As a user says it."""
        return Columns(
            _take_pairs(rename, "--rename", "OLD=NEW"), _take_pairs(fill, "--fill", "COLUMN=VALUE")
        )

    def newer(self, name: str | None) -> str | None:
        """What a column of the run is called now."""
        return None if name is None else self.renamed.get(name, name)

    def earlier(self, name: str) -> str:
        """What a column of today was called in the run."""
        return self.backward.get(name, name)

    @property
    def backward(self) -> dict[str, str]:
        """From the newer name to the run's."""
        return {new: old for old, new in self.renamed.items()}

    def check(self, schema: Schema, target: str | None, names: Sequence[str]) -> None:
        """InvalidInput where a name is of neither table."""
        known = [*schema.names, *([] if target is None else [target])]
        for old, new in self.renamed.items():
            if old not in known:
                raise InvalidInput(
                    f"the run has no column {old!r} to rename; {nearest(old, known)}"
                )
            if new not in names:
                raise InvalidInput(
                    f"{old!r} is renamed to {new!r}, but the table has no such column; "
                    f"{nearest(new, names)}"
                )
        if len(self.backward) < len(self.renamed):
            raise InvalidInput("two columns of the run are renamed to one; name each only once")
        for name in self.filled:
            if name not in names:
                raise InvalidInput(
                    f"--fill gives a value for {name!r}, but the table has no such column; "
                    f"{nearest(name, names)}"
                )


def _take_pairs(given: Mapping[str, Any] | Sequence[str], option: str, form: str) -> dict[str, str]:
    """Texts such as `OLD=NEW`, or a mapping, as a mapping of texts."""
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{option} is {text!r}; write {option} {form}")
        if name in pairs:
            raise InvalidInput(f"{option} names {name!r} twice; keep one of the two")
        pairs[name] = value
    return pairs


def rename_frame(frame: Frame, names: Mapping[str, str]) -> Frame:
    """The same frame under other names."""
    import narwhals as nw

    if not names:
        return frame
    return nw.from_native(frame, eager_only=True).rename(dict(names)).to_native()


def newer_schema(
    schema: Schema,
    frame: Frame,
    columns: Columns,
    *,
    target: str | None,
    given: Schema | None = None,
    beside: Sequence[str] = (),
) -> Schema:
    """The schema of a newer table: columns as the run has them where the table's cells fit, else as
    they are found there; with the run's protected columns and rules, as far as they are there."""
    names = [name for name, _, _ in columns_of(frame) if name != target]
    backward = columns.backward
    if given is None:
        known = {columns.newer(column.name): column for column in schema.columns}
        found = [_column(frame, name, known.get(name)) for name in names]
        aside = [
            column
            for column in schema.columns
            if column.name in beside and columns.newer(column.name) not in names
        ]
        # What nobody has described is not the model's for sure: dates, names, identifiers.
        new = frozenset(column.name for column in found if column.name not in known)
        given = Schema((*found, *aside), guessed=new)
    elif target is not None and target in given.names:
        given = given.select([name for name in given.names if name != target])
    if not given.protected:
        given = _protect(given, schema, columns)
    if given.rules or not schema.rules:
        return given
    kept = [name for name in schema.names if columns.newer(name) in given.names]
    unmoved = [name for name in kept if name not in backward.values()]
    rules = schema.select(kept).rules
    if schema.select(unmoved).rules != rules:
        raise InvalidInput(
            "the run's rules mention columns that were renamed; give the newer table's own "
            "schema, with its rules, as --schema FILE"
        )
    return replace(given, rules=rules)


def _column(frame: Frame, name: str, known: Column | None) -> Column:
    import narwhals as nw

    alone = nw.from_native(frame, eager_only=True).select([name]).to_native()
    if known is not None:
        column = replace(known, name=name)
        try:
            Codec.learn(alone, Schema((column,))).encode(alone)
        except BadTable:
            pass  # the table has moved on
        else:
            return column
    return infer(alone).columns[0]


def _protect(given: Schema, schema: Schema, columns: Columns) -> Schema:
    """The run's protected columns and values, as far as the newer table has them."""
    wanted: dict[str, tuple[float, ...]] = {}
    for name, codes in zip(schema.protected, schema.protected_codes, strict=True):
        now = str(columns.newer(name))
        if now not in given.names:
            continue
        before, after = schema[name], given[now]
        if replace(before, name=now) == after:
            wanted[now] = codes
        elif after.kind == "numerical":
            wanted[now] = tuple(c for c in codes if after.low <= c <= after.high)
        else:
            shown = {after.show(float(code)): float(code) for code in range(after.size)}
            told = [before.show(code) for code in codes]
            wanted[now] = tuple(shown[word] for word in told if word in shown)
    if not wanted:
        raise BadTable(
            f"the table has none of the protected columns of the run ({spell(schema.protected)}), "
            "so no two people could form a pair; if the columns have new names, say so with "
            "--rename OLD=NEW"
        )
    return replace(given, protected=tuple(wanted), protected_codes=tuple(wanted.values()))


@dataclass(frozen=True)
class Brought:
    """Pairs of a run as rows of a newer schema; NaN where one could not be brought."""

    rows: Rows
    partner: Rows
    reasons: np.ndarray[Any, np.dtype[np.object_]]  # why a pair cannot be asked; "" where it can
    added: tuple[str, ...]  # columns that the newer model takes and the run's people lacked
    dropped: tuple[str, ...]  # columns of the run that the newer model does not take

    @property
    def is_askable(self) -> Mask:
        """Which pairs can be put to the newer model."""
        return np.asarray(self.reasons == "")


def bring(
    sides: tuple[Any, Any],
    schema: Schema,
    columns: Columns,
    codec: Codec,
    causes: NDArray[np.uint8] | None = None,
    hidden: Collection[str] = (),
) -> Brought:
    """Pairs of the run's schema, as pandas frames, as rows of the newer model's.

    A pair whose cells the newer columns cannot hold, or whose two people they do not tell apart, is
    not asked, and has its reason. `causes` are the columns that flipped each pair, as a run keeps
    them: a pair of whose causes none is left is not asked either. Reasons quote no `hidden` cell.
    """
    n = len(sides[0])
    reasons = np.full(n, "", dtype=object)
    rows, partner = (np.full((n, len(codec.schema)), np.nan) for _ in range(2))
    held = {columns.newer(name): name for name in schema.names}
    gone = [name for name in schema.names if columns.newer(name) not in codec.schema.names]
    for position, column in enumerate(codec.schema.columns):
        if column.name in held:
            for side, to in zip(sides, (rows, partner), strict=True):
                cells, fits, why = _read(side, held[column.name], column, codec, hidden)
                to[:, position] = cells
                reasons[(reasons == "") & ~fits] = why
        elif column.name in columns.filled:
            code = column.code(columns.filled[column.name])
            rows[:, position] = partner[:, position] = code
        else:
            reasons[reasons == ""] = _lacks(column.name, gone, schema.protected)
    alike = np.all((rows == partner) | (np.isnan(rows) & np.isnan(partner)), axis=1)
    reasons[(reasons == "") & alike] = (
        f"the two people differ only in columns that the newer model does not have ({spell(gone)})"
        if gone
        else "the two people are the same to the newer model"
    )
    if causes is not None and gone:
        _leave_out(reasons, schema, causes, gone)
    added = tuple(name for name in codec.schema.names if name not in held)
    return Brought(rows, partner, reasons, added, tuple(gone))


def _lacks(name: str, gone: Sequence[str], protected: Sequence[str]) -> str:
    """Why people of the run cannot be asked who have no such column."""
    told = f"the run's people have no {name!r}, which the newer model needs; "
    lost = next((one for one in gone if one in protected), None)
    if lost is not None:
        told += f"if it used to be {lost!r}, say so with --rename {lost}={name}, otherwise "
    return f"{told}give the value to use with --fill {name}=VALUE"


def _leave_out(
    reasons: NDArray[np.object_], schema: Schema, causes: NDArray[np.uint8], gone: Sequence[str]
) -> None:
    """Give a reason to pairs that only columns which are gone would flip."""
    protected = schema.protected
    sets = [{protected[place] for place in places} for places, _ in cause_sets(schema)]
    for mask in np.unique(causes[causes > 0]).tolist():
        mine = [names for bit, names in enumerate(sets) if mask >> bit & 1]
        if all(names & set(gone) for names in mine):
            lost = [name for name in protected if name in gone and name in set().union(*mine)]
            reasons[(reasons == "") & (causes == mask)] = (
                f"they flipped because of {spell(lost)}, and the newer model's table has no such "
                "column"
            )


def _read(
    side: Any, name: str, column: Column, codec: Codec, hidden: Collection[str]
) -> tuple[Any, Mask, str]:
    """Codes of one column, which of its cells fit, and why the others do not."""
    frame = side[[name]].rename(columns={name: column.name})
    cells = np.full(len(side), np.nan)
    if not len(side):
        return cells, np.ones(0, dtype=bool), ""
    try:
        rows, fits, misfits = codec.select([column.name]).encode_fitting(frame)
    except BadTable as error:
        return cells, np.zeros(len(side), dtype=bool), str(error)
    cells[fits] = rows[:, 0]
    why = misfits.describe(hidden) if misfits else ""
    return cells, fits, f"the newer table does not allow their values: {why}"
