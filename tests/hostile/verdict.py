"""How an input ended, and whether that is how a program should end."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from tests.hostile.case import ANSWERS, Case

GOOD = {0: "accepted", 2: "refused, exit 2", 4: "refused, exit 4", 130: "interrupted"}
GOOD |= dict.fromkeys(ANSWERS, "accepted")
BAD = (
    *("CODE RAN", "TOUCHED", "OUTSIDE", "CRASH", "HANG", "TRACEBACK", "UNFORESEEN", "LITTER"),
    *("PROCESS LEFT", "BAD JSON", "CONTROL CHARACTERS", "NOT ONE SENTENCE", "OUTPUT AND FAILURE"),
    *("ODD EXIT", "UNEXPECTED", "HARNESS"),
)
"""From the worst on: an input counts as the first of these that it is."""

RAN = "ran"
"""The file that hostile code would write."""

_LONGEST = 3000  # characters of a sentence, for names of files and columns may be long
# What steers a terminal or turns text around; a line may hold tabs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True)
class Ending:
    """What is seen of a program after it ended."""

    code: int  # the exit code, or minus the signal
    hung: bool
    out: bytes
    err: bytes
    before: Mapping[str, tuple[str, str]]
    after: Mapping[str, tuple[str, str]]
    outside: tuple[str, ...] = ()  # what it tried to do to others than its own folder
    left: bool = False  # a process that outlived it


@dataclass(frozen=True)
class Verdict:
    """An outcome, and all that is wrong, in words."""

    outcome: str
    problems: tuple[str, ...]

    @property
    def good(self) -> bool:
        return not self.problems

    @property
    def signature(self) -> str:
        """The same for inputs that fail in the same way."""
        return re.sub(r"[0-9]+", "0", f"{self.outcome}: {' '.join(self.problems)}")[:300]


def judge(case: Case, ending: Ending) -> Verdict:
    """The verdict on an ending."""
    out, err = (text.decode("utf-8", "surrogateescape") for text in (ending.out, ending.err))
    wrong = [
        *_ended(ending, err),
        *_sentence(case, ending, err),
        *_output(case, ending, out),
        *(f"OUTSIDE: {what}" for what in ending.outside[:3]),
        *_controls(case, out, err),
        *_files(case, ending),
    ]
    if ending.left:
        wrong.append("PROCESS LEFT: a process outlived the program")
    if not wrong:
        wrong += _expected(case, ending, err)
    if not wrong:
        return Verdict(GOOD.get(ending.code, f"exit {ending.code}"), ())
    worst = min(wrong, key=lambda words: BAD.index(words.partition(":")[0]))
    return Verdict(worst.partition(":")[0], tuple(wrong))


def _ended(ending: Ending, err: str) -> list[str]:
    if ending.hung:
        return ["HANG: stopped at its limit of time"]
    if ending.code < 0:
        return [f"CRASH: {signal.Signals(-ending.code).name}"]
    if "Traceback (most recent call last)" in err:
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        frames = [line for line in lines if line.startswith("File ") and "limi" in line]
        where = re.sub(r".*/(\w+/\w+\.py).*in (\w+)", r"\1 \2", frames[-1]) if frames else ""
        return [f"TRACEBACK: {lines[-1][:160]} ({where})"]
    return []


def _sentence(case: Case, ending: Ending, err: str) -> list[str]:
    """A failure is told in one sentence; a usage error may show usage before it."""
    if ending.hung or ending.code <= 0 or "Traceback" in err or case.around.stdout == "gone":
        return []
    if _helps(ending) or (ending.code == 130 and "Interrupted; " in err):
        return []
    if ending.code in ANSWERS and ending.code in case.exits and not err.strip():
        return []
    lines = _lines(case, err)
    told = [line for line in lines if line.startswith("limi: ")]
    if UNFORESEEN.search(err):
        return [f"UNFORESEEN: {told[-1][:200] if told else lines[-1][:200]}"]
    usage = any(line.startswith(("Usage: ", "limi: ")) for line in lines)
    if not usage or (told and told[-1] != lines[-1]) or len(told) > 1:
        return [f"NOT ONE SENTENCE: {err[-200:]!r}"]
    if told and len(lines) > 1 and not case.chatty:
        return [f"NOT ONE SENTENCE: {err[:200]!r}"]
    if told and len(told[0]) > _LONGEST:
        return [f"NOT ONE SENTENCE: {len(told[0])} characters"]
    return []


def _lines(case: Case, err: str) -> list[str]:
    """The lines of standard error; ours begin anew after one that a model did not end."""
    if case.chatty:
        err = re.sub(r"(?m)^(?!limi: )(.*?)(?=limi: )", r"\1\n", err)
    return [line for line in err.splitlines() if line.strip()]


UNFORESEEN = re.compile(r"LIMI_DEBUG")
"""What the net below all commands says: nobody foresaw this, so no sentence was written for it."""


def _output(case: Case, ending: Ending, out: str) -> list[str]:
    if (
        ending.hung
        or ending.code < 0
        or case.around.stdout != "file"
        or case.around.file_size < 1 << 16
    ):
        return []
    if case.wants_json and (ending.code == 0 or out.strip()) and not _shows_help(case):
        try:
            tree = json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            return [f"BAD JSON: {str(error)[:100]}: {out[:80]!r}"]
        return [] if isinstance(tree, dict) else ["BAD JSON: no object"]
    if ending.code in (2, 4) and out.strip() and not _helps(ending):
        return [f"OUTPUT AND FAILURE: {out[:100]!r}"]
    return []


def _helps(ending: Ending) -> bool:
    """Words that are no command yet are answered with the help, which is no failure to tell."""
    return ending.code == 2 and not ending.err.strip() and b"Usage: limi" in ending.out


def _shows_help(case: Case) -> bool:
    return any(word in ("-h", "--help", "--version") for word in case.words)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _controls(case: Case, out: str, err: str) -> list[str]:
    if case.chatty:  # what a model prints is its own; what we say of it is ours
        err = "\n".join(line for line in _lines(case, err) if line.startswith("limi: "))
    shown = [("stdout", out), ("stderr", err)]
    found = [(name, _CONTROL.search(text) or _surrogate(text)) for name, text in shown]
    return [f"CONTROL CHARACTERS: {one[0]!a} in {name}" for name, one in found if one]


def _surrogate(text: str) -> re.Match[str] | None:
    return re.search("[\ud800-\udfff]", text)


def _files(case: Case, ending: Ending) -> list[str]:
    """Nothing new apart from outputs, nothing of others changed."""
    wrong = []
    outputs = tuple(f"work/{name}" for name in case.outputs)
    for name, seen in ending.before.items():
        now = ending.after.get(name)
        ours = _under(name, outputs) and not seen[1].startswith("mine") and seen[0][0] in "-dl"
        if now != seen and not ours:
            wrong.append(f"TOUCHED: {name!r} was {seen}, is {now}")
    new = sorted(set(ending.after) - set(ending.before))
    for name in new:
        if name.endswith(f"/{RAN}"):
            wrong.append(f"CODE RAN: {name}")
        elif not (_under(name, outputs) and ending.code in (0, *ANSWERS, 130, 141)) and not _kept(
            name, outputs, ending
        ):
            wrong.append(f"LITTER: {name!r}")
    return wrong[:5]


def _under(name: str, outputs: tuple[str, ...]) -> bool:
    return name.startswith("cache/") or any(
        name == place or name.startswith(f"{place}/") for place in outputs
    )


def _kept(name: str, outputs: tuple[str, ...], ending: Ending) -> bool:
    """A run that failed on the way keeps its draft, where answers lie that can be used again."""
    for place in outputs:
        draft = f"{place}.partial"
        if name == draft or name.startswith(f"{draft}/"):
            return ending.code in (4, 130) and f"{draft}/journal.bin" in ending.after
    return False


def _expected(case: Case, ending: Ending, err: str) -> list[str]:
    if ending.code not in case.exits:
        return [f"{'ODD EXIT' if ending.code not in GOOD else 'UNEXPECTED'}: exit {ending.code}"]
    if case.says and not re.search(case.says, err, re.MULTILINE):
        return [f"UNEXPECTED: {err[-200:]!r} does not say {case.says!r}"]
    return []
