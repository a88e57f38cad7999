"""The text of a rule as a tree: an own lexer and parser, so that no text is ever run as code.

    rule        := either [("implies" | "->") rule]            weakest, groups to the right
    either      := both ("or" both)*
    both        := negation ("and" negation)*
    negation    := "not" negation | comparison
    comparison  := sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum
                       | ["not"] "in" list | "is" ["not"] "missing")*
    sum         := product (("+" | "-") product)*
    product     := sign (("*" | "/") sign)*
    sign        := "-" sign | number | text | "true" | "false" | column | lookup | "(" rule ")"
    list        := "[" constant ("," constant)* "]"            also in () and {}
    lookup      := "{" constant ":" constant ("," constant ":" constant)* "}" "[" column "]"
    column      := name | "`" any name "`"

What a tree means for a table is the business of `constraints`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeGuard

from limi.errors import InvalidInput
from limi.system.shown import spell_json
from limi.table.schema import LARGEST, is_text
from limi.types import Value

__all__ = [
    "LONGEST",
    "MOST_DEEP",
    "MOST_NODES",
    "Arithmetic",
    "Comparison",
    "Constant",
    "Every",
    "Implies",
    "Lookup",
    "Missing",
    "Name",
    "Negation",
    "Node",
    "Some",
    "Within",
    "parse_rule",
    "quote_name",
    "quote_value",
    "turn_around",
]

_LONGEST_SAID = 82  # characters of a rule that a sentence repeats
LONGEST = 2000  # characters
MOST_NODES = 400
MOST_DEEP = 40

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WORDS = {"implies", "and", "or", "not", "in", "is", "missing", "true", "false", "True", "False"}
_NAME = re.compile(r"[^\W\d]\w*")
_TOKENS = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*)
      | (?P<mark>->|==|!=|<=|>=|[<>+\-*/()\[\]{},:])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"} | {c: c for c in "\\\"'/"}
_INSTEAD = {
    "=": "write == for equal",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or != for unequal",
    "`": "a name in backquotes needs a second backquote",
    '"': "text needs a second quote",
    "'": "text needs a second quote",
}


@dataclass(frozen=True)
class Constant:
    """A number, a text, true or false."""

    value: Value


@dataclass(frozen=True)
class Name:
    """A column."""

    name: str


@dataclass(frozen=True)
class Lookup:
    """What a column's value stands for: `{"HS-grad": 9, ...}[education]`."""

    pairs: tuple[tuple[Constant, Constant], ...]
    column: Name


@dataclass(frozen=True)
class Arithmetic:
    """A sum, difference, product or quotient."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison:
    """Two values and how they must relate."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Within:
    """Is a value one of a list?"""

    value: Node
    choices: tuple[Constant, ...]


@dataclass(frozen=True)
class Missing:
    """Is a value missing?"""

    value: Node


@dataclass(frozen=True)
class Negation:
    """The opposite of a condition."""

    condition: Node


@dataclass(frozen=True)
class Every:
    """Conditions that hold all together."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Some:
    """Conditions of which one holds at least."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Implies:
    """Where the first condition holds, the second does too."""

    condition: Node
    consequence: Node


Node: TypeAlias = (
    Constant
    | Name
    | Lookup
    | Arithmetic
    | Comparison
    | Within
    | Missing
    | Negation
    | Every
    | Some
    | Implies
)


def parse_rule(text: str) -> Node:
    """The tree of a rule; InvalidInput where the text is not one, or larger than the limits."""
    if len(text) > LONGEST:
        raise InvalidInput(
            f"the rule has {len(text):,} characters, more than {LONGEST:,}; "
            "split it into several rules"
        )
    tree = _Parser(_read_tokens(text)).read()
    _hold_to_limits(tree)
    return tree


def call_rule(name: object) -> str:
    """A constraint in a sentence: by its name, which may be the whole text of a long rule.

    >>> call_rule("week"), len(call_rule("age > 1 and " * 100))
    ("constraint 'week'", 97)
    """
    said = repr(name)
    return f"constraint {said if len(said) <= _LONGEST_SAID else f'{said[:_LONGEST_SAID]} ...'}"


def find_names(text: str) -> set[str]:
    """The columns that a rule names, whether there are such columns or not.

    >>> sorted(find_names("age >= 18 implies {1: 2}[sex] == 2"))
    ['age', 'sex']
    """
    names, ahead = set(), [parse_rule(text)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, Name):
            names.add(node.name)
        ahead += _find_parts(vars(node).values())
    return names


def turn_around(text: str) -> str | None:
    """A rule `A implies B` as `B implies A`; None where it is none.

    >>> turn_around('sex == "Male" -> (age > 3 or vet)')
    '(age > 3 or vet) implies sex == "Male"'
    """
    if not isinstance(parse_rule(text), Implies):
        return None
    depth = 0
    for token in _read_tokens(text):
        if token.kind == "mark":
            depth += (token.text in _CLOSING) - (token.text in _CLOSING.values())
        if depth == 0 and token.kind in ("word", "mark") and token.text in ("implies", "->"):
            break
    else:  # the whole of it stands in brackets
        return turn_around(text.strip()[1:-1])
    left = text[: token.at - 1].strip()
    right = text[token.at - 1 + len(token.text) :].strip()
    chained = isinstance(parse_rule(right), Implies)
    return f"({right}) implies {left}" if chained else f"{right} implies {left}"


def quote_name(name: str) -> str:
    """A column's name as a rule spells it.

    >>> quote_name("age"), quote_name("hours-per-week")
    ('age', '`hours-per-week`')
    """
    if _NAME.fullmatch(name) and name not in _WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_value(value: Value) -> str:
    """A value as a rule spells it.

    >>> quote_value("HS-grad"), quote_value(9.0), quote_value(True)
    ('"HS-grad"', '9', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return spell_json(json.dumps(value, ensure_ascii=False))
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


@dataclass(frozen=True)
class _Token:
    kind: str  # number, text, quoted, word, mark or end
    text: str
    at: int  # counted from 1, as people do


def _read_tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            hint = _INSTEAD.get(text[at], "write names with such characters in backquotes")
            raise InvalidInput(f"character {at + 1}, {text[at]!r}, is not allowed there; {hint}")
        if found.lastgroup != "space":
            tokens.append(_Token(str(found.lastgroup), found[0], at + 1))
        at = found.end()
    return [*tokens, _Token("end", "", len(text) + 1)]


def _hold_to_limits(tree: Node) -> None:
    n_nodes, ahead = 0, [(tree, 1)]
    while ahead:
        node, depth = ahead.pop()
        n_nodes += 1
        if depth > MOST_DEEP:
            _refuse_depth()
        ahead += [(part, depth + 1) for part in _find_parts(vars(node).values())]
    if n_nodes > MOST_NODES:
        raise InvalidInput(
            f"the rule has {n_nodes:,} names, constants and signs, more than {MOST_NODES}; "
            "split it into several rules"
        )


def _find_parts(values: Iterable[object]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _find_parts(value)


def _refuse_depth() -> NoReturn:
    raise InvalidInput(f"the rule is nested more than {MOST_DEEP} deep; split it into several")


class _Parser:
    """Recursive descent, one method a line of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def read(self) -> Node:
        tree = self._rule()
        if self._here.kind != "end":
            self._refuse("the end of the rule, or a word such as 'and',")
        return tree

    @property
    def _here(self) -> _Token:
        return self._tokens[self._next]

    def _sees(self, *wanted: str) -> bool:
        return self._here.kind in ("word", "mark") and self._here.text in wanted

    def _takes(self, *wanted: str) -> str:
        """The text of the next token where it is one of these; else nothing, and it stays."""
        if not self._sees(*wanted):
            return ""
        self._next += 1
        return self._tokens[self._next - 1].text

    def _needs(self, wanted: str) -> None:
        if not self._takes(wanted):
            self._refuse(repr(wanted))

    def _refuse(self, expected: str) -> NoReturn:
        token = self._here
        if token.kind == "end":
            raise InvalidInput(f"the rule ends where {expected} is expected")
        raise InvalidInput(
            f"{token.text!r} is at character {token.at}, where {expected} is expected"
        )

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEEP:
            _refuse_depth()

    def _rule(self) -> Node:
        self._deeper()
        tree = self._either()
        if self._takes("implies", "->"):
            tree = Implies(tree, self._rule())
        self._depth -= 1
        return tree

    def _either(self) -> Node:
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return Some(tuple(parts)) if len(parts) > 1 else parts[0]

    def _both(self) -> Node:
        parts = [self._negation()]
        while self._takes("and"):
            parts.append(self._negation())
        return Every(tuple(parts)) if len(parts) > 1 else parts[0]

    def _negation(self) -> Node:
        if not self._takes("not"):
            return self._comparison()
        self._deeper()
        negated = Negation(self._negation())
        self._depth -= 1
        return negated

    def _comparison(self) -> Node:
        left = self._sum()
        parts: list[Node] = []
        while True:
            if sign := self._takes(*_COMPARISONS):
                right = self._sum()
                parts.append(Comparison(sign, left, right))
                left = right
            elif self._sees("in", "not"):
                negated = bool(self._takes("not"))
                self._needs("in")
                within = Within(left, self._list())
                parts.append(Negation(within) if negated else within)
            elif self._takes("is"):
                negated = bool(self._takes("not"))
                self._needs("missing")
                parts.append(Negation(Missing(left)) if negated else Missing(left))
            else:
                break
        return Every(tuple(parts)) if len(parts) > 1 else [left, *parts][-1]

    def _sum(self) -> Node:
        tree = self._product()
        while sign := self._takes("+", "-"):
            tree = Arithmetic(sign, tree, self._product())
        return tree

    def _product(self) -> Node:
        tree = self._sign()
        while sign := self._takes("*", "/"):
            tree = Arithmetic(sign, tree, self._sign())
        return tree

    def _sign(self) -> Node:
        if self._takes("-"):
            self._deeper()
            operand = self._sign()
            self._depth -= 1
            if isinstance(operand, Constant) and _is_number(operand.value):
                return Constant(-operand.value)
            return Arithmetic("-", Constant(0), operand)
        if self._sees("{"):
            return self._lookup()
        if self._takes("("):
            tree = self._rule()
            self._needs(")")
            return tree
        constant = self._constant_or_none()
        return self._name() if constant is None else constant

    def _name(self) -> Name:
        token = self._here
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        elif token.kind == "word" and token.text not in _WORDS:
            name = token.text
        else:
            self._refuse("a column, a number or a text in quotes")
        self._next += 1
        return Name(name)

    def _list(self) -> tuple[Constant, ...]:
        opening = self._takes(*_CLOSING)
        if not opening:
            self._refuse("a list such as [1, 2]")
        choices = [self._constant()]
        while self._takes(",") and not self._sees(_CLOSING[opening]):
            choices.append(self._constant())
        self._needs(_CLOSING[opening])
        return tuple(choices)

    def _lookup(self) -> Lookup:
        self._needs("{")
        pairs = [self._pair()]
        while self._takes(",") and not self._sees("}"):
            pairs.append(self._pair())
        self._needs("}")
        self._needs("[")
        column = self._name()
        self._needs("]")
        return Lookup(tuple(pairs), column)

    def _pair(self) -> tuple[Constant, Constant]:
        key = self._constant()
        self._needs(":")
        return key, self._constant()

    def _constant(self) -> Constant:
        negative = bool(self._takes("-"))
        constant = self._constant_or_none()
        if constant is None:
            self._refuse("a number" if negative else "a number, a text in quotes, true or false")
        if not negative:
            return constant
        if not _is_number(constant.value):
            raise InvalidInput(
                f"{constant.value!r} is not a number, so it cannot be negated as "
                f"-{constant.value!r}"
            )
        return Constant(-constant.value)

    def _constant_or_none(self) -> Constant | None:
        token = self._here
        value: Value
        if token.kind == "number":
            value = int(token.text) if token.text.isdecimal() else float(token.text)
            if value > LARGEST:
                raise InvalidInput(f"the rule holds a number beyond {LARGEST:g}")
        elif token.kind == "text":
            value = _unescape(token.text[1:-1])
        elif self._sees("true", "True", "false", "False"):
            value = token.text in ("true", "True")
        else:
            return None
        self._next += 1
        return Constant(value)


def _is_number(value: Value) -> TypeGuard[int | float]:
    return not isinstance(value, (bool, str))


def _unescape(text: str) -> str:
    plain = _ESCAPES.sub(_plain, text)
    if not is_text(plain):
        raise InvalidInput("a text in the rule holds half a character")
    return plain


def _plain(found: re.Match[str]) -> str:
    escape = found[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if escape not in _ESCAPED:
        raise InvalidInput(f"a text in the rule holds \\{escape}; write \\\\ for a backslash")
    return _ESCAPED[escape]
