"""The run under other processors' kernels: what it can be put in, and that it can fail."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent.parent / "tools"
HERE = {
    "blas": ["Haswell"],
    "threads": [1],
    "numpy": ["X86_V2", "X86_V3"],
    "dispatched": ["X86_V3"],
    "torch": "AVX2",
    "hash": 1,
}


@pytest.fixture(scope="module")
def kernels():
    sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location("kernels", TOOLS / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(TOOLS))
    del sys.modules["kernels"], sys.modules["digests"]


def names(able):
    return [one if isinstance(one, str) else one.name for one in able]


def test_a_machine_is_put_in_what_it_can_do_and_is_not_yet(kernels):
    able = names(kernels.settings(HERE, "x86_64"))
    assert able[:4] == [
        "SkylakeX: this processor cannot do as much",
        "Haswell: this machine as it is",
        "Sandybridge",
        "Prescott",
    ]
    assert able[4:] == ["plain numpy", "plain torch", "two threads", "another hash seed"]
    newer = HERE | {"blas": ["SkylakeX"], "numpy": ["SSE3", "AVX", "AVX2", "AVX512_SKX"]}
    assert names(kernels.settings(newer, "x86_64"))[:2] == [
        "SkylakeX: this machine as it is",
        "Haswell",
    ]
    other = names(kernels.settings(HERE | {"dispatched": []}, "arm64"))
    assert all("not with this processor" in one for one in other[:4])
    assert other[4] == "plain numpy: this processor can do no more"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Sandybridge", {"blas": ["Sandybridge"]}),
        ("Prescott", {"blas": ["Katmai"]}),
        ("plain numpy", {"dispatched": []}),
        ("plain torch", {"torch": "DEFAULT"}),
        ("two threads", {"threads": [2]}),
        ("another hash seed", {"hash": 2}),
    ],
)
def test_a_setting_that_changed_nothing_is_seen(kernels, name, changes):
    able = {one.name: one for one in kernels.settings(HERE, "x86_64") if not isinstance(one, str)}
    assert able[name].took(HERE, HERE | changes)
    assert not able[name].took(HERE, HERE)


def test_settings_that_share_no_variable_are_tried_together(kernels):
    alone = [one for one in kernels.settings(HERE, "x86_64") if not isinstance(one, str)]
    together = kernels.combine(alone)
    assert names(together) == [
        "Sandybridge + plain numpy + two threads",
        "Prescott + plain torch + another hash seed",
    ]
    first, second = together
    assert first.variables | second.variables == (
        {name: value for one in alone for name, value in one.variables.items()}
        | {"OPENBLAS_CORETYPE": "Prescott"}
    )
    assert (first.apart, second.apart) == ((), (" in tensors",))
    assert first.tests
    assert second.tests
    took = HERE | {"blas": ["Sandybridge"], "dispatched": [], "threads": [2]}
    assert first.took(HERE, took)
    assert not first.took(HERE, took | {"threads": [1]})
    assert not first.took(HERE, took | {"blas": ["Haswell"]})


def test_one_library_with_other_kernels_is_not_enough(kernels):
    able = {one.name: one for one in kernels.settings(HERE, "x86_64") if not isinstance(one, str)}
    mixed = HERE | {"blas": ["Haswell", "Sandybridge"]}
    assert not able["Sandybridge"].took(HERE, mixed)
    both = {one if isinstance(one, str) else one.name for one in kernels.settings(mixed, "x86_64")}
    assert {"Haswell", "Sandybridge"} <= both


def test_choices_of_the_caller_do_not_leak_into_a_setting(kernels, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    monkeypatch.setenv("LIMI_DATA", "somewhere")
    plain = kernels.variables(None)
    assert "OPENBLAS_CORETYPE" not in plain
    assert plain["LIMI_DATA"] == "somewhere"
    assert plain["OMP_NUM_THREADS"] == "1"
    (threads,) = (
        one for one in kernels.settings(HERE) if not isinstance(one, str) and "two" in one.name
    )
    assert kernels.variables(threads)["OMP_NUM_THREADS"] == "2"


def test_another_digest_or_a_failing_test_fails_the_run(kernels, capsys):
    fine = kernels.Outcome({"a": "1"}, [], 1.0)
    assert not kernels._told("one", fine, [])
    assert kernels._told("two", fine, ["a: 1 became 2"])
    assert kernels._told("three", kernels.Outcome({"a": "1"}, ["tests failed"], 1.0), [])
    printed = capsys.readouterr().out
    assert "a: 1 became 2" in printed
    assert "tests failed" in printed


def test_there_are_tests_to_run(kernels):
    files = [Path(path).name for path in kernels._marked()]
    assert {"test_aequitas.py", "test_expga.py", "test_check.py", "test_verdicts.py"} <= {*files}
    assert "test_kernels.py" not in files
