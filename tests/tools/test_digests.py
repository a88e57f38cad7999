"""The table of digests: what makes two of them differ, and what does not."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from limi import generators, methods

FILE = Path(__file__).parent.parent.parent / "tools" / "digests.py"


@pytest.fixture(scope="module")
def digests():
    spec = importlib.util.spec_from_file_location("digests", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["digests"] = module  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    yield module
    del sys.modules["digests"]


def test_order_cells_and_partners_count(digests):
    rows, partners = np.arange(12.0).reshape(4, 3), np.ones((4, 1))
    same = digests.digest(rows.copy(), partners.copy())
    assert digests.digest(rows, partners) == same
    assert same.startswith("4:")
    for other in (
        digests.digest(rows[::-1], partners),
        digests.digest(rows + 1, partners),
        digests.digest(rows, partners + 1),
        digests.digest(rows[:3], partners[:3]),
    ):
        assert other != same


def test_the_sign_of_zero_and_the_last_digits_do_not(digests):
    rows = np.array([[0.0, np.nan, 0.1 + 0.2]])
    alike = np.array([[-0.0, -np.nan, 0.3]])
    assert digests.digest(rows, rows) == digests.digest(alike, alike)


def test_differences_are_named(digests):
    old, new = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}
    assert digests.differences(old, new) == [
        "b: 2 became 4",
        "c: 3 became absent",
        "d: absent became 5",
    ]
    assert digests.differences(old, dict(old)) == []


def test_results_differ_key_by_key(digests):
    old = {"run": {"/rate": 0.5, "/n": 10}, "gone": {"/n": 1}}
    assert digests.differences(old, {"run": {"/rate": 0.25, "/n": 10}}) == [
        "run /rate: 0.5 became 0.25",
        "gone: {'/n': 1} became absent",
    ]


def test_a_run_is_the_same_twice_but_for_another_table(monkeypatch):
    monkeypatch.syspath_prepend(FILE.parent)
    import results

    def ran(**given):
        return results.facts(results._audited("run", max_rows=100, **given))

    first = ran()
    assert first == ran()
    assert first["findings"].partition(":")[0] != "0"
    other = ran(frame=lambda: results.people(500, 1))
    assert other["findings"] != first["findings"]
    rate = "/summary/rates/real/estimate"
    assert other[rate] != first[rate]


def test_every_method_preset_and_generator_has_a_case(digests, tmp_path, monkeypatch):
    monkeypatch.setenv("LIMI_CACHE", str(tmp_path))
    monkeypatch.setattr(digests, "_credit", lambda *given: digests._mixed())
    monkeypatch.setattr(digests, "_fits", lambda *given: True)
    names = [case.name for case in digests._cases(tmp_path)]
    for method in methods.names():
        presets = methods.presets(method)
        for preset in presets or [""]:
            assert f"mixed {method} {preset}".strip() in names
    for generator in generators.names():
        assert f"mixed rows of {generator}" in names
