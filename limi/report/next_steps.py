"""What to do next, with the command that does it and what it will cost."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from limi.audits.summary import Example, Summary
from limi.defaults import BUDGETED_METHOD, DEFAULT_MAX_ROWS
from limi.report import wording
from limi.system import words

__all__ = ["NextStep", "ask_again", "next_step", "opening_of", "option_of"]

_MORE = 10  # times as much makes a try that tells more than the last one
_OPENING = ("--trust", "--header", "--cache")
_UNNAMED = "limi test TABLE --model KIND:PLACE --protected COLUMN"


@dataclass(frozen=True)
class NextStep:
    """One thing to do."""

    words: str
    command: str  # as a shell reads it; empty where there is none


def next_step(summary: Summary) -> NextStep:
    """The one thing that would tell or help most after a run."""
    if summary.blind:
        return NextStep(
            "See which columns carry the difference, and try the model without them.", ""
        )
    if not summary.findings or not wording.searched(summary):
        return _try_again(summary)
    folder = option_of(summary.command, "--out")
    if folder is None:
        return NextStep(
            "Keep the findings and their report, to ask a newer model about them or to repair "
            "this one.",
            _with(summary.command, "--out", "run"),
        )
    if summary.target is None:
        return NextStep(
            "Name the column with the true answers, to see accuracy (overall and by group) and to "
            "try repairs.",
            _in_place(_with(summary.command, "--target", "COLUMN")),
        )
    repair = ["limi", "repair", folder, "--out", f"{folder.rstrip('/')}-repaired"]
    return NextStep(
        "See what a repair would change, for whom, and at what cost in accuracy.",
        shlex.join([*repair, *opening_of(summary.command)]),
    )


def ask_again(summary: Summary, example: Example) -> str:
    """The command that puts one pair to the model again; empty where no run folder is known."""
    folder, model = option_of(summary.command, "--out"), option_of(summary.command, "--model")
    if folder is None or model is None or example.row is None:
        return ""
    if summary.hidden:
        return ""
    replay = ["limi", "replay", folder, "--model", model, "--row", str(example.row)]
    return shlex.join([*replay, *opening_of(summary.command)])


def opening_of(command: str) -> list[str]:
    """What a command that opens the model of a run has to repeat: what the user trusts, and how a
    model behind an address is asked."""
    parts = _split(command)
    given = [part for part in parts if part == "--trust-pickle"]
    for place, part in enumerate(parts):
        option, equals, _ = part.partition("=")
        if option in _OPENING:
            given += [part] if equals else parts[place : place + 2]
    return given


def _try_again(summary: Summary) -> NextStep:
    """What was done without a finding, and what a try of ten times as much costs."""
    checked, queries = words.count(summary.rows_checked), words.count(summary.queries)
    done = (
        f"{checked} rows were checked with {queries} queries in "
        f"{words.seconds(summary.seconds)}, and none flips."
    )
    if not wording.searched(summary):
        done = "No row was checked, because no time was left."
    if summary.stop == "interrupted":
        again = summary.command or _UNNAMED
        resumed = _with(again, "--resume") if option_of(again, "--out") else again
        return NextStep(f"{done} The run was interrupted; it can be continued.", resumed)
    if why := _why_another_method(summary):
        return NextStep(
            f"{done} {why}", _in_place(_with(summary.command, "--method", BUDGETED_METHOD))
        )
    option, now = {
        "queries": ("--max-queries", summary.queries),
        "seconds": ("--max-seconds", round(sum(p["seconds"] for p in summary.phases.values()))),
    }.get(summary.stop, ("--max-rows", summary.rows_checked or DEFAULT_MAX_ROWS))
    cost = (
        f"about {words.count(_MORE * summary.queries)} queries and "
        f"{words.seconds(_MORE * summary.seconds)}"
    )
    if summary.stop == "seconds":
        cost = words.seconds(float(_MORE * max(now, 1)))
    return NextStep(
        f"{done} A longer search, with {_MORE} times the budget, takes {cost}.",
        _in_place(_with(summary.command, option, str(_MORE * max(int(now), 1)))),
    )


def _why_another_method(summary: Summary) -> str:
    """Why more of the same would not help; empty where it may."""
    method = summary.method
    if summary.stop == "exhausted":
        return (
            f"The method {method} had nothing left to check; another method may, at about the same "
            "cost."
        )
    if summary.stop == "rules":
        return (
            f"Hardly any row that {method} proposes keeps the rules of the table; "
            f"{BUDGETED_METHOD} proposes rows like the table's, at about the same cost."
        )
    known = [(name, rate) for name, rate in wording.listed_rates(summary) if rate.estimate > 0]
    if method == BUDGETED_METHOD or not known:
        return ""
    name, rate = known[0]
    return (
        f"Of {wording.population(name)} {wording.percent(rate).estimate} % flip, so there is "
        f"something to find, and {BUDGETED_METHOD} needs fewer queries to find it."
    )


def option_of(command: str, option: str) -> str | None:
    """What a command gives an option; None where it does not."""
    parts = _split(command)
    for place, part in enumerate(parts):
        if part == option and place + 1 < len(parts):
            return parts[place + 1]
        if part.startswith(f"{option}="):
            return part.partition("=")[2]
    return None


def _with(command: str, option: str, value: str | None = None) -> str:
    """A command with an option, in the place of the one it has."""
    parts = _split(command or _UNNAMED)
    given = [option] if value is None else [option, value]
    kept: list[str] = []
    skip = False
    for part in parts:
        if skip:
            skip = False
        elif part == option:
            skip = value is not None
        elif not part.startswith(f"{option}="):
            kept.append(part)
    return shlex.join([*kept, *given])


def _in_place(command: str) -> str:
    """A command that replaces the folder that it wrote before, where it wrote one."""
    if not option_of(command, "--out"):
        return command
    return _with(shlex.join(p for p in _split(command) if p != "--resume"), "--force")


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # written by hand in Python
        return command.split()
