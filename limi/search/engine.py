"""The only search loop: it pours checked rows into a ledger until the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from limi.errors import InvalidInput, MissingCapability, Unreachable, spell
from limi.search.budget import Budget, Stop
from limi.search.findings import Findings, Found
from limi.search.method import Method, is_exhaustive
from limi.search.session import Session
from limi.search.task import Task
from limi.streams import Stream
from limi.system.watch import OutOfQueries, OutOfTime, Progress, Watch

__all__ = ["Progress", "Run", "check", "run"]


@dataclass(frozen=True)
class Run:
    """What a search found, and why it ended."""

    findings: Findings
    stop: Stop
    queries: int
    seconds: float
    session: Session  # what it spent, and what the method says of it
    curve: tuple[tuple[int, int], ...] = ()  # (queries, findings) after each batch
    rows: tuple[int, ...] = ()  # rows checked at each point of the curve


def run(
    method: Method,
    task: Task,
    budget: Budget,
    seed: int,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.perf_counter,
    watch: Watch | None = None,
    on_found: Callable[[Found], None] | None = None,
) -> Run:
    """Search until the budget is spent, the method has nothing left, or the user interrupts.

    The engine owns the randomness: one stream, which depends on the seed alone. What was found
    before an interrupt is returned, never lost.

    A search that is part of something larger brings its `watch`, which then says when it must end
    and how fast the model is; the task's `score` is timed by it already. `on_found` is told of new
    findings, in their order.
    """
    check(method, task.capabilities, len(task.schema.combinations), budget)
    rng = Stream.SEARCH.rng(seed)
    if watch is None:
        watch = Watch(clock, budget.max_seconds, on_progress)
        task = replace(task, score=watch.timed(task.score))
    frugal = (
        budget.max_queries is not None
        and len(task.schema.combinations) > 2
        and not is_exhaustive(method)
    )
    session = Session(task, budget, watch, frugal=frugal)
    sided = task.decision.kind == "favorable"
    findings = Findings(task.schema, sided=sided, on_new=on_found)
    watch.owed = 0
    start, asked = watch.seconds, watch.questions
    watch.done = _share(budget, session, findings)
    stop = Stop.EXHAUSTED
    curve: list[tuple[int, int]] = []
    rows: list[int] = []
    try:
        watch.enter("search")
        for checked in method.search(session, rng):
            room = None if budget.max_findings is None else budget.max_findings - len(findings)
            findings.add(checked, watch.seconds - start, most=room)
            session.release(checked, len(findings) - watch.findings)
            session.findings_left -= len(findings) - watch.findings
            watch.rows, watch.findings = findings.rows_checked, len(findings)
            watch.owed = task.recheck * len(findings)
            curve.append((watch.questions - asked, len(findings)))
            rows.append(findings.rows_checked)
            reached = _find_reached(budget, session, findings)
            if reached:
                stop = reached
                break
    except OutOfQueries:
        stop = Stop.QUERIES
    except OutOfTime:
        stop = Stop.SECONDS
    except Unreachable as error:
        session.notes.append(str(error))
        stop = Stop.INTERRUPTED
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    finally:
        watch.done = None
    if stop == Stop.EXHAUSTED and watch.ran_out:
        stop = Stop.SECONDS
    queries, seconds = watch.questions - asked, watch.seconds - start
    return Run(findings, stop, queries, seconds, session, tuple(curve), tuple(rows))


def _share(budget: Budget, session: Session, findings: Findings) -> Callable[[], float]:
    """How much of the budget is spent: of the part that is spent most."""
    watch = session.watch
    began, until = watch.seconds, watch.until
    limits = (budget.max_rows, budget.max_queries, budget.max_findings)

    def done() -> float:
        queries = 0 if limits[1] is None else limits[1] - session.queries_left
        spent = (findings.rows_checked, queries, len(findings))
        shares = [n / most for n, most in zip(spent, limits, strict=True) if most is not None]
        seconds = (watch.seconds - began) / max(until - began, 1e-9)  # 0 of endless time
        return max([seconds, *shares])

    return done


def _find_reached(budget: Budget, session: Session, findings: Findings) -> Stop | None:
    if budget.max_findings is not None and len(findings) >= budget.max_findings:
        return Stop.FINDINGS
    if session.watch.ran_out or session.watch.late:
        return Stop.SECONDS
    if session.rows_left < 1:
        return Stop.RULES if session.is_starved else Stop.ROWS
    if session.queries_left < 1:
        return Stop.QUERIES
    return None


def check(method: Method, capabilities: frozenset[str], per_row: int, budget: Budget) -> None:
    """InvalidInput where a method cannot run: it lacks something, or not one row is paid for."""
    lacking = sorted(method.needs - capabilities)
    if lacking:
        raise MissingCapability(
            f"method {_name(method)!r} needs {spell(map(_with_article, lacking))}{_hint(lacking)}"
        )
    if budget.max_queries is not None and budget.max_queries < per_row:
        raise InvalidInput(
            f"max-queries is {budget.max_queries}, but one row costs {per_row} queries (one for "
            "each protected combination); allow more, or fewer protected values"
        )


def _name(method: Method) -> str:
    """What a pair is called, or else its class, as `limi list methods` spells it."""
    return str(getattr(method, "name", type(method).__name__)).lower()


def _with_article(capability: str) -> str:
    return capability if capability.endswith("s") else f"a {capability}"


def _hint(lacking: list[str]) -> str:
    known = {
        "generator": "a generator of natural rows (generator='trees')",
        "gradient": "a torch module as the target",
        "neurons": "a torch module as the target",
    }
    return "".join(f"; give {known[name]}" for name in lacking[:1] if name in known)
