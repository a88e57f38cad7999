"""Tables that are not a file of rows: a sheet of a workbook, a table of SQLite, a query of DuckDB.

`sqlite:FILE:TABLE` and `duckdb:QUERY` stand where a file may stand. A database is opened to read
and nothing else, and a query is one SELECT, because a command that tests a model changes no data.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from limi.errors import BadTable, InvalidInput, missing, nearest, spell
from limi.system.reading import regular

__all__ = ["SHEETS", "file_of", "is_query", "is_source", "move", "read_sheet", "read_source"]

SHEETS = (".xlsx",)

_SQLITE, _DUCKDB = "sqlite:", "duckdb:"
_EXTRA = "tables"  # brings what these need


def is_source(table: object) -> bool:
    """Does a text name a table of a database or a query?"""
    return isinstance(table, str) and table.startswith((_SQLITE, _DUCKDB))


def is_query(table: object) -> bool:
    """Is it a query, which may read any file that it names?"""
    return isinstance(table, str) and table.startswith(_DUCKDB)


def file_of(table: str | Path) -> Path | None:
    """The file that a table is read from; None for a query."""
    if is_query(table):
        return None
    return Path(_split(str(table))[0]) if is_source(table) else Path(table)


def move(table: str, folder: Path) -> str:
    """A relative place as it is seen from where the folder is; queries stay as they are."""
    if is_query(table):
        return table
    if is_source(table):
        file, name = _split(table)
        return f"{_SQLITE}{folder / file}:{name}"
    return str(folder / table)


def read_source(table: str) -> tuple[Any, list[str]]:
    """The pandas frame of a table of SQLite or a query of DuckDB, and what there is to say."""
    if is_query(table):
        return _read_duckdb(table.removeprefix(_DUCKDB)), []
    return _read_sqlite(*_split(table)), []


def _split(table: str) -> tuple[str, str]:
    file, colon, name = table.removeprefix(_SQLITE).rpartition(":")
    if not colon or not file or not name:
        raise InvalidInput(
            f"{table[:160]!r} does not say which table; write sqlite:FILE:TABLE, for example "
            "sqlite:people.db:applicants"
        )
    return file, name


def _read_sqlite(file: str, name: str) -> Any:
    import pandas as pd

    path = regular(file, "an SQLite database, as sqlite:FILE:TABLE")
    try:
        # Of a file that is read only, nothing is written beside it, no matter how it was left.
        opened = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            known = [
                row[0]
                for row in opened.execute(
                    "select name from sqlite_master where type in ('table', 'view') order by name"
                )
            ]
            if name not in known:
                raise BadTable(f"{str(path)!r} has no table {name!r}; {nearest(name, known)}")
            quoted = '"' + name.replace('"', '""') + '"'
            return pd.read_sql_query(f"select * from {quoted}", opened)
        finally:
            opened.close()
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        said = str(error).partition("\n")[0]
        raise BadTable(f"{str(path)!r} cannot be read as an SQLite database: {said}") from None


def _read_duckdb(query: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise missing("duckdb", _EXTRA, "a DuckDB query") from None
    try:
        opened = duckdb.connect(
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        try:
            statements = opened.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InvalidInput(
                    'a DuckDB query must be a single SELECT, such as duckdb:"SELECT * FROM '
                    "'people.parquet' WHERE year = 2025\""
                )
            return opened.execute(statements[0]).df()
        finally:
            opened.close()
    except duckdb.Error as error:
        said = str(error).strip().partition("\n")[0]
        raise BadTable(f"the DuckDB query fails: {said[:300]}") from None


def read_sheet(path: Path) -> tuple[Any, list[str]]:
    """The pandas frame of a workbook's first sheet, and which sheets were not read."""
    import pandas as pd

    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise missing("openpyxl", _EXTRA, "reading .xlsx files") from None
    with pd.ExcelFile(path, engine="openpyxl") as book:
        first, *others = book.sheet_names
        frame = pd.read_excel(book, sheet_name=first)
    if not others:
        return frame, []
    return frame, [
        f"only its first sheet {str(first)!r} was read, not {spell(map(repr, others))}; to test "
        "another sheet, save it as a separate file"
    ]
