"""What a method may offer: each member has one protocol, one meaning and one way to be absent."""

import ast
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import limi
from limi import methods
from limi.search import method as members
from limi.search.budget import Budget
from limi.search.engine import run
from limi.search.findings import Findings
from limi.search.session import Session
from limi.testing.methods import members_are_what_they_promise
from tests.methods.test_contract import make_task
from tests.toy import SCHEMA

PACKAGE = Path(limi.__file__).parent


@dataclass(frozen=True)
class Plain:
    """A method that has nothing but what every method has."""

    needs: ClassVar[frozenset[str]] = frozenset()
    population: ClassVar[str | None] = None

    def search(self, session, rng):
        yield session.check(session.rows)


@dataclass(frozen=True)
class Rich(Plain):
    """And one that has all the rest."""

    n: int = 1

    exhaustive: ClassVar[bool] = True
    revision: ClassVar[int] = 3
    presets: ClassVar[dict[str, dict[str, int]]] = {"large": {"n": 2}}

    @property
    def stops_on_flips(self):
        return self.n > 1

    @property
    def name(self):
        return "rich+plain"

    def most_rows(self, n_table):
        return n_table + self.n

    def explore(self, session, rng):
        yield session.check(session.rows[:1])

    def exploit(self, session, seeds, rng):
        yield session.check(seeds.rows)

    def scores(self, findings):
        return {"rows": float(findings.rows_checked)}


def test_what_a_method_does_not_have_has_one_meaning():
    plain, nothing = Plain(), Findings(SCHEMA)
    assert members.presets(Plain) == {}
    assert members.most_rows(plain, 10) == math.inf
    assert not members.is_exhaustive(plain)
    assert not members.stops_on_flips(plain)
    assert members.revision(plain) == 1
    assert members.scores(plain, nothing) == {}
    assert methods.name_of(plain) == "plain"
    assert len(next(members.explore(plain, Session(make_task()), None))) == len(make_task().rows)
    assert not isinstance(plain, members.Exploiter)


def test_what_a_method_has_is_used():
    rich, nothing = Rich(), Findings(SCHEMA)
    assert members.presets(Rich) == {"large": {"n": 2}}
    assert members.most_rows(rich, 10) == 11
    assert members.is_exhaustive(rich)
    assert not members.stops_on_flips(rich)
    assert members.revision(rich) == 3
    assert members.stops_on_flips(Rich(n=2))
    assert members.scores(rich, nothing) == {"rows": 0.0}
    assert methods.name_of(rich) == "rich+plain"
    assert len(next(members.explore(rich, Session(make_task()), None))) == 1
    assert isinstance(rich, members.Exploiter)


@pytest.mark.parametrize("kind", [Plain, Rich])
def test_the_shipped_suite_takes_both(kind):
    members_are_what_they_promise(kind, make_task)


def test_the_shipped_suite_refuses_a_setting_that_is_called_like_a_member():
    @dataclass(frozen=True)
    class Homonym(Plain):
        explore: float = 0.1

    with pytest.raises(AssertionError, match="called like a member"):
        members_are_what_they_promise(Homonym, make_task)


def test_the_shipped_suite_refuses_a_preset_of_settings_that_are_none():
    @dataclass(frozen=True)
    class Misspelt(Plain):
        presets: ClassVar[dict[str, dict[str, int]]] = {"large": {"m": 2}}

    with pytest.raises(AssertionError, match="settings that do not exist"):
        members_are_what_they_promise(Misspelt, make_task)


def test_every_member_is_named_where_methods_are_explained():
    told = set(re.findall(r"^ *- `(\w+)`: ", members.Method.__doc__, re.M))
    assert told == members.MEMBERS - {"needs", "population", "search"}


def test_nobody_guesses_what_a_method_has():
    """`getattr(method, "exhaustive", False)` would be a second definition of its absence."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("getattr", "hasattr") and len(node.args) > 1:
                asked = getattr(node.args[1], "value", None)
                assert asked not in members.MEMBERS - {"name"}, (
                    f"{path.name}:{node.lineno} asks for {asked}"
                )


@pytest.mark.parametrize("explorer", methods.names())
def test_every_method_can_be_the_first_part_of_a_pair(explorer):
    small = {"n_seeds": 5, "explore_rows": 300}
    pair = methods.parse(f"{explorer}+aequitas", small)
    assert run(pair, make_task(), Budget(max_rows=400), 0).findings.rows_checked
