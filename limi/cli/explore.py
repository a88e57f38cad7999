"""`limi explore`: ask the model back, person by person, on a page of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from limi.cli import _console
from limi.cli._apart import MODEL, TABLE, Reads, Writes, run_files, table_files
from limi.cli._options import (
    AsJson,
    Cache,
    Concurrency,
    Constraints,
    DecisionRule,
    Drop,
    FavorableLabels,
    Header,
    LabelOrder,
    Only,
    Redact,
    ShowPersonal,
    Trust,
    TrustPickle,
    redacted,
    remote_of,
)

if TYPE_CHECKING:
    from limi.explore.exploration import Exploration

__all__ = ["explore"]


def _behind(place: str) -> Iterator[tuple[str, str | Path]]:
    """The files of a run, or those of a table."""
    if Path(place).is_dir() and not _is_table(place):
        from limi.audits.record import RECORD

        # The record may be continued where it is.
        yield from ((what, path) for what, path in run_files(place) if Path(path).name != RECORD)
    else:
        yield from table_files(place)


def explore(
    place: Annotated[
        str,
        Argument(metavar="RUN|TABLE", help="Run folder, or a table."),
        Reads("the run", _behind),
    ],
    model: Annotated[
        str | None, Option(help="The model, as KIND:PLACE. Default: the run's own."), MODEL
    ] = None,
    table: Annotated[str | None, Option(help="Where the run's table is now."), TABLE] = None,
    protected: Annotated[
        list[str] | None, Option(help="For a table: protected column, as in limi test. Repeatable.")
    ] = None,
    target: Annotated[str | None, Option(help="For a table: column the model predicts.")] = None,
    favorable: FavorableLabels = None,
    decision: DecisionRule = None,
    order: LabelOrder = None,
    schema: Annotated[
        Path | None, Option(help="For a table: its schema."), Reads("the schema")
    ] = None,
    constraint: Constraints = None,
    drop: Drop = None,
    only: Only = None,
    redact: Redact = None,
    show_personal: ShowPersonal = False,
    generator: Annotated[
        str | None,
        Option(help="Generator that draws natural people. Default: the run's."),
        Reads("the generator"),
    ] = None,
    read_only: Annotated[
        bool, Option("--read-only", help="Show what the run found, and ask the model nothing.")
    ] = False,
    max_queries: Annotated[int | None, Option(help="Most questions in the whole session.")] = None,
    timeout: Annotated[
        float, Option(help="Most seconds the model may take for one answer.")
    ] = 60.0,
    record: Annotated[
        Path | None,
        Option(metavar="FILE", help="File to keep the questions in. Default: in the run folder."),
        Writes(),
    ] = None,
    port: Annotated[int, Option(help="Port to listen on; 0 for a free one.")] = 0,
    host: Annotated[
        str, Option(help="Address to listen on; any but this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        Option(envvar="LIMI_EXPLORE_TOKEN", help="Secret for opening the page, if others may."),
    ] = None,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open a browser, if started from a terminal.")
    ] = True,
    seed: Annotated[
        int | None, Option(help="For a table: same seed, same natural people. Default: 0.")
    ] = None,
    trust_pickle: TrustPickle = False,
    trust: Trust = None,
    header: Header = None,
    concurrency: Concurrency = None,
    cache: Cache = None,
    as_json: AsJson = False,
) -> None:
    """Question the model, person by person, on a local page."""
    from limi.errors import InvalidInput
    from limi.explore import opening
    from limi.system.cores import share_cores

    if timeout <= 0:
        raise InvalidInput(f"timeout is {timeout:g}; give a number of seconds above 0, such as 60")
    guard = _guard(host, port, token)
    common: dict[str, Any] = {
        "generator": generator,
        "max_queries": max_queries,
        "timeout": timeout,
        "record": record,
    }
    opens: dict[str, Any] = {
        "trust_pickle": trust_pickle,
        "trust": tuple(trust or ()),
        "remote": remote_of(header, concurrency, cache, None, None),
    }
    about = {
        "protected": protected,
        "target": target,
        "favorable": favorable,
        "decision": decision,
        "order": order,
        "schema": schema,
        "constraint": constraint,
        "drop": drop,
        "only": only,
        "redact": redact,
        "show_personal": show_personal,
    }
    _console.announce_sending(None if read_only else model)
    with share_cores(), closing(guard[1]):
        if Path(place).is_dir() and not _is_table(place):
            _refuse_table_options(place, about | {"seed": seed})
            exploration = opening.explore_run(
                place,
                table=table,
                model=model,
                read_only=read_only,
                **common,
                **opens,
            )
        else:
            if read_only:
                raise InvalidInput(
                    "--read-only shows a run, but this is a table; name a run folder"
                )
            if table is not None:
                raise InvalidInput(
                    f"--table says where the table of a run is now, but {place!r} is itself a "
                    "table; leave --table out, or name a run folder"
                )
            exploration = _open_table(place, model, about, opens, seed or 0, common)
        _serve(exploration, guard, browser, as_json)


def _is_table(place: str) -> bool:
    """Is a folder a table in many files, and not a run?"""
    from limi.table.parts import is_many

    return not (Path(place) / "summary.json").exists() and is_many(Path(place))


def _refuse_table_options(place: str, about: dict[str, Any]) -> None:
    from limi.errors import InvalidInput

    for name, given in about.items():
        if given is not None and given is not False:
            raise InvalidInput(
                f"--{name.replace('_', '-')} is for a table, but {place!r} is a run, which already "
                "knows it; leave it out"
            )


def _guard(host: str, port: int, token: str | None) -> tuple[Any, Any]:
    """Who may ask, and the socket that listens: told before a model is opened."""
    from limi.errors import InvalidInput
    from limi.explore.guard import Guard
    from limi.explore.server import bind

    if not 0 <= port <= 65_535:
        raise InvalidInput(f"port is {port}; use 1 to 65535, or 0 for a free port")
    is_local = host in ("127.0.0.1", "localhost", "::1")
    if is_local and token is None:
        sock = bind(host, port)
        guard = Guard.local(sock.getsockname()[1])
        guard.host = host
        return guard, sock
    guard = Guard.at(host, port, token)  # refused before anything listens
    sock = bind(host, port)
    guard.port = sock.getsockname()[1]
    return guard, sock


def _open_table(
    place: str,
    model: str | None,
    about: dict[str, Any],
    opens: dict[str, Any],
    seed: int,
    common: dict[str, Any],
) -> Exploration:
    from limi.audits.problem import prepare
    from limi.audits.sending import settle_remote
    from limi.cli._asking import fill_in
    from limi.cli._fitting import showing_command
    from limi.cli._tables import source
    from limi.errors import InvalidInput
    from limi.explore import opening

    if model is None:
        raise InvalidInput(
            f"{place!r} is not a run folder; to explore a table, name the model: --model "
            "KIND:PLACE --protected COLUMN (limi list models)"
        )
    given = source(place, about["target"], about["favorable"], about["schema"], about["constraint"])
    answers: list[str] = []
    protected = fill_in(given, about["protected"] or (), answers)
    frame = given.pop("frame")

    def opened(uri: str, remote: Any) -> Any:
        return prepare(
            uri,
            frame,
            protected=protected or (),
            decision=about["decision"],
            order=about["order"],
            drop=about["drop"] or (),
            only=about["only"] or (),
            redact=redacted(about["redact"], about["show_personal"]),
            table_name=place,
            **given,
            **{**opens, "remote": remote},
        )

    with showing_command(answers):
        seconds, remote = common["timeout"], opens["remote"]
        problem = opened(model, settle_remote(model, opening.wait_at_most(seconds, model, remote)))
    return opening.explore_problem(problem, seed=seed, **common)


def _serve(exploration: Exploration, guard: Any, browser: bool, as_json: bool) -> None:
    from limi.explore.server import serve

    who, sock = guard
    address = who.address
    if as_json:
        _console.print_json({"address": address, "port": who.port})
    else:
        _console.out.print(f"Exploring {exploration.name}: {address}", soft_wrap=True)
        opens = "The address works once. " if who.once else ""
        _console.err.print(f"{opens}Press Ctrl-C to stop.", soft_wrap=True)
    _console.out.file.flush()
    if browser and not as_json and _console.out.is_terminal:
        import webbrowser

        webbrowser.open(address)
    serve(exploration, who, sock, lambda words: _console.err.print(words, soft_wrap=True))
