"""The harness sees what it is there to see, and touches nothing but its own folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.hostile import cases, villains
from tests.hostile.case import MINE, Case, Fifo, Link
from tests.hostile.draw import Draw, shrunk, stream
from tests.hostile.kinds import KINDS, options
from tests.hostile.scratch import Scratch, fill, inventory
from tests.hostile.server import Plan, Server

SEEN = {
    "well": "accepted",
    "refuses": "refused, exit 2",
    "leaves_a_thread": "accepted",
    "raises": "TRACEBACK",
    "says_nothing": "NOT ONE SENTENCE",
    "says_two_things": "NOT ONE SENTENCE",
    "did_not_foresee": "UNFORESEEN",
    "crashes": "CRASH",
    "computes_without_end": "HANG",
    "waits_without_end": "HANG",
    "litters": "LITTER",
    "litters_elsewhere": "LITTER",
    "runs_code": "CODE RAN",
    "overwrites": "TOUCHED",
    "deletes": "TOUCHED",
    "writes_through_a_link": "TOUCHED",
    "replaces_a_pipe": "TOUCHED",
    "writes_outside": "OUTSIDE",
    "runs_a_program": "OUTSIDE",
    "prints_no_json": "BAD JSON",
    "prints_twice": "BAD JSON",
    "steers_the_terminal": "CONTROL CHARACTERS",
    "turns_text_around": "CONTROL CHARACTERS",
    "prints_what_is_no_text": "CONTROL CHARACTERS",
    "prints_and_fails": "OUTPUT AND FAILURE",
    "exits_oddly": "ODD EXIT",
    "leaves_a_process": "PROCESS LEFT",
    "fills_memory": "TRACEBACK",
    "fills_the_disk": "TRACEBACK",
}


@pytest.fixture
def scratch():
    made = Scratch.make()
    yield made
    made.remove()


def test_each_way_to_end_is_seen(scratch):
    assert {name.replace("-", "_") for name in villains.CORPUS} == set(SEEN)
    # A second of computing must fit into the time on the wall, however busy the machine is.
    server = Server(scratch, Plan("test", cpu_s=1, wall_s=15, bare=True))
    try:
        results = {name: server.run(f"villains/{name.replace('_', '-')}") for name in SEEN}
    finally:
        server.close()
    assert {name: result.outcome for name, result in results.items()} == SEEN, results
    assert not Path(villains.__file__).with_suffix(".outside").exists()


# -- the scratch folder ------------------------------------------------------------------


def test_a_folder_that_the_harness_did_not_make_is_refused(tmp_path):
    (tmp_path / "limi-hostile-x").mkdir()
    for folder in (tmp_path, tmp_path / "limi-hostile-x", tmp_path / "gone"):
        with pytest.raises(SystemExit, match="no scratch folder"):
            Scratch(folder, "")
    assert list((tmp_path / "limi-hostile-x").iterdir()) == []


def test_a_mark_of_another_run_is_refused(scratch):
    with pytest.raises(SystemExit, match="no scratch folder"):
        Scratch(scratch.root, "another token")


def test_a_link_to_a_scratch_folder_is_refused(scratch, tmp_path):
    link = tmp_path / "limi-hostile-link"
    link.symlink_to(scratch.root)
    with pytest.raises(SystemExit, match="no scratch folder"):
        Scratch(link, scratch.token)


@pytest.mark.parametrize(
    "case",
    [
        Case(("report", "/dev/null")),
        Case(("test", "x.csv", "--model", "onnx:/etc/hosts")),
        Case(("report", "run", "--html=/tmp/x")),
        Case(("report", "../../x")),
        Case(("report", "a/../../../x")),
        Case((), {"../x": b""}),
        Case((), {"/x": b""}),
        Case((), {"a/x": Link("../../../x")}),
        Case((), {"x": Link("/dev/zero")}),
    ],
    ids=str,
)
def test_an_input_names_nothing_outside(case):
    with pytest.raises(ValueError, match="outside the scratch folder"):
        case.check_inside("/tmp/limi-hostile-x/box/work", "/tmp/limi-hostile-x/box")


def test_an_input_may_name_what_is_inside():
    case = Case(("report", "../victim/x", "--html=new/x"), {"a/x": Link("../../victim/x")})
    case.check_inside("/tmp/limi-hostile-x/box/work", "/tmp/limi-hostile-x/box")


def test_an_inventory_tells_files_of_others_from_inputs(scratch):
    box = scratch.empty("box")
    fill(box, {"a": MINE, "b/c": b"x", "l": Link("a"), "p": Fifo()})
    seen = inventory(box)
    assert set(seen) == {"a", "b", "b/c", "l", "p"}
    assert seen["a"][1].startswith("mine ")
    assert seen["b/c"][1].startswith("input ")
    assert seen["l"][1] == "a"
    os.chmod(box / "a", 0o600)
    assert inventory(box)["a"] != seen["a"]


# -- choices -----------------------------------------------------------------------------


def test_choices_given_again_make_the_same_input():
    def words(draw):
        return [draw.pick("abcdef") for _ in range(3 + draw.below(5))], draw.bytes(4)

    first = Draw(stream(3, "tables", 9))
    made = words(first)
    assert words(Draw(given=first.taken)) == made
    assert words(Draw(stream(3, "tables", 9))) == made
    assert words(Draw()) == (["a"] * 3, b"\x00" * 4)


def test_shrinking_keeps_what_matters_and_little_else():
    rng = np.random.default_rng(0)
    choices = [int(n) for n in rng.integers(0, 9, 40)]
    choices[7] = 90
    least = shrunk(choices, lambda given: any(n > 50 for n in given), tries=500)
    assert len(least) == 1
    assert 50 < least[0] <= 90


def test_the_names_of_inputs_do_not_depend_on_how_many_there_are():
    few, many = (list(cases.generated(0, count)) for count in (50, 500))
    assert many[:50] == few
    assert len(set(many)) == 500
    shares = {kind: sum(name.startswith(f"{kind}/") for name in many) for kind in KINDS}
    total = sum(module.SHARE for module in KINDS.values())
    for kind, module in KINDS.items():
        assert abs(shares[kind] - 500 * module.SHARE / total) <= 1


# -- coverage ----------------------------------------------------------------------------


def test_every_command_is_fuzzed():
    assert set(options.commands()) == {*options.SOUND, *options.LONG_ONES}


def test_every_kind_of_model_has_files_to_damage():
    from limi import models
    from tests.hostile.kinds.models import FILES

    loaded = {name for name in models.names() if "load" in vars(models.get(name))}
    # What is behind an address has no file; tests/remote has servers that misbehave.
    loaded -= {name for name in loaded if models.offers(name).by_address}
    # One ships with limi, one is a kind of its own, and one is a folder (named cases of models).
    assert loaded == {*FILES.values(), "demo", "python", "pyfunc"}


def test_every_generator_has_a_file_to_damage():
    from limi import generators
    from tests.hostile.kinds.generators import KINDS as known

    assert set(generators.names()) == set(known)
