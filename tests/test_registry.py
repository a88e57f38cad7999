"""A folder and the entry points of other packages are one registry."""

import pytest

from limi import methods
from limi._registry import Registry
from limi.errors import InvalidInput
from tests.packages import Package

METHOD = """
    from dataclasses import dataclass
    from typing import ClassVar


    @dataclass(frozen=True, kw_only=True)
    class Everybody:
        \"\"\"Check the table.\"\"\"

        needs: ClassVar[frozenset[str]] = frozenset()
        population: ClassVar[str | None] = None

        def search(self, task, rng):
            yield task.check(task.rows, origin="everybody")


    class Helper:
        pass


    __all__ = ["Everybody", "Helper"]
"""
ASK = """
from limi import methods
from limi.errors import InvalidInput

assert "everybody" in methods.names(), methods.names()
try:
    method = methods.parse("everybody")
except InvalidInput as error:
    print(error)
else:
    print(repr(method), methods.name_of(method))
"""


def installed(tmp_path, value, text=METHOD):
    return Package(tmp_path, {"search_all": text}, {"limi.methods": {"everybody": value}})


def test_an_entry_point_may_name_a_module(tmp_path):
    alone = METHOD.replace(', "Helper"', "")
    done = installed(tmp_path, "search_all", alone).run("-c", ASK)
    assert done.stdout == "Everybody() everybody\n", done.stderr


def test_an_entry_point_may_name_a_class_of_a_module(tmp_path):
    done = installed(tmp_path, "search_all:Everybody").run("-c", ASK)
    assert done.stdout == "Everybody() everybody\n", done.stderr


def test_a_module_with_two_public_names_is_explained(tmp_path):
    done = installed(tmp_path, "search_all").run("-c", ASK)
    assert "'everybody' is not a dataclass; its module must have the method alone" in done.stdout


@pytest.mark.parametrize(
    ("value", "text", "says"),
    [
        ("search_all", "import no_such_package", "ModuleNotFoundError: No module named 'no_such_p"),
        ("search_all", "raise SystemExit(3)", "SystemExit: 3"),
        ("search_all:Nobody", METHOD, "AttributeError: module 'search_all' has no attribute 'Nob"),
        ("elsewhere", METHOD, "ModuleNotFoundError: No module named 'elsewhere'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named_in_one_sentence(tmp_path, value, text, says):
    done = installed(tmp_path, value, text).run("-c", ASK)
    assert done.stdout.startswith("the method 'everybody' of the package others cannot be loaded")
    assert says in done.stdout
    assert done.stdout.count("\n") == 1


def test_a_module_of_the_folder_is_known_by_its_name_and_a_strange_one_is_not():
    known = Registry("limi.methods", "method")
    assert known.name_of("limi.methods.adf") == "adf"
    assert known.name_of("limi.methods._phases") is None
    assert known.name_of("somewhere.else") is None


def test_an_unknown_name_is_helped():
    with pytest.raises(InvalidInput, match=r"unknown method 'adff'; did you mean 'adf'\?"):
        methods.get("adff")
