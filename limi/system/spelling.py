"""Sentences written for the command line, in the words of a Python caller.

Errors name options as they are typed: "replace it with --force". Whoever calls a function has
parameters instead, so what leaves a public function says `force=True`.

>>> in_python("choose another --out, or replace it with --force")
'choose another out, or replace it with force=True'
>>> in_python("if it does not take 'mail': the same command with --drop mail --drop 'his name'")
"if it does not take 'mail': pass drop=['mail', 'his name']"
>>> in_python("say so with --decision 'score > 0.3' (decision= in Python)")
"say so with decision='score > 0.3'"
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["at_command_line", "in_python", "is_at_command_line"]

_TYPED: ContextVar[bool] = ContextVar("typed", default=False)

_NAMES = {
    "before": "before_model",
    "constraint": "constraints",
    "protected-from": "protected_from",
    "set": "settings",
}
_FLAGS = {
    **{name: f"{name}=True" for name in ("domain", "force", "noisy", "resume", "twin")},
    "dry-run": "dry_run=True",
    "no-model": "model=False",
    "no-solver": "solver=False",
    "same-share": "same_share=True",
    "show-personal": "redact=False",
    "trust-pickle": "trust_pickle=True",
}
_REMOTE = {
    "cache": "cache",
    "concurrency": "concurrency",
    "header": "headers",
    "price": "price",
    "timeout": "timeout",
}
_WORDS = (
    *("auto", "cpu", "cuda", "none", "trees", "ctgan", "label", "score", "class", "findings"),
    *("vote", "paper", "uniform"),
)
_DASHED = (
    *("domain-seconds", "fit-rows", "max-batch", "max-boxes", "max-findings", "max-queries"),
    *("max-rows", "max-seconds", "rate-rows", "seconds-each"),
)

_VALUE = "|".join(
    [
        r"'[^']*'",
        r'"[^"]*"',
        r"\d+(?:\.\d+)?",
        r"\w+(?:,\w+)+",
        r"\w+=\w+",
        r"[A-Z]+(?:[:=,.][\w.:,=]+)*\b(?![a-z])",  # a placeholder, such as KIND:PLACE
        r"(?:python|skops|onnx):[\w.:]+",
        rf"(?:{'|'.join(_WORDS)})\b",
    ]
)
_OPTION = re.compile(rf"--(?P<name>[a-z][a-z-]*[a-z])(?: (?P<value>{_VALUE}))?")
_ASIDE = re.compile(r" \([^()]*(?:\[[^]]*\])?[^()]* in Python\)")
_COMMAND = re.compile(
    r"\blimi (?:certify|compare|datasets|demo|diff|explore|export|fit|gate|images|init|list|metrics"
    r"|pack|repair|replay|report|sample|schema|test)\b[^,;:]*$"
)
_AGAIN = re.compile(
    r"(?:try: )?the same command with (?P<words>(?:--(?:drop|only) (?:'[^']*'|\S+) ?)+)$"
)
_PAIR = re.compile(r"(=(?:'[^']*'|[\w.]+)) (?=\w+=)")
_TWICE = re.compile(r"(\b\w+=\w+) \(\1\)")
_NAME = re.compile(rf"(?<![\w-])({'|'.join(_DASHED)})(?![\w-])")


@contextmanager
def at_command_line() -> Iterator[None]:
    """Sentences stay as they are: somebody typed options."""
    token = _TYPED.set(True)
    try:
        yield
    finally:
        _TYPED.reset(token)


def is_at_command_line() -> bool:
    """Did somebody type a command?"""
    return _TYPED.get()


def in_python(text: str) -> str:
    """The sentence with parameters in the place of options; commands of a shell stay."""

    def spell(found: re.Match[str]) -> str:
        if _COMMAND.search(text[: found.start()]):
            return found[0]
        name, value = found["name"], found["value"]
        if name in _FLAGS and not text[: found.start()].endswith(("leave ", "without ")):
            return _FLAGS[name] + (f" {value}" if value else "")
        if name in _REMOTE:
            return f"remote=Remote({_REMOTE[name]}=...)"
        name = _NAMES.get(name, name).replace("-", "_")
        if value is None:
            return name
        if value == "none":
            return f"{name}=None"
        literal = value[0] in "'\"" or value.replace(".", "").isdigit()
        return f"{name}={value}" if literal else f"{name}={value!r}"

    text = _AGAIN.sub(_columns_again, text)
    spelled = _PAIR.sub(r"\1, ", _ASIDE.sub("", _OPTION.sub(spell, text)))
    return _NAME.sub(lambda found: found[0].replace("-", "_"), _TWICE.sub(r"\1", spelled))


def _columns_again(found: re.Match[str]) -> str:
    """The columns to leave out, or to take alone, as a list."""
    option, *words = shlex.split(found["words"])
    names = [name for word in words if word != option for name in word.split(",")]
    return f"pass {option.removeprefix('--')}={names!r}"
