"""The picture of the house shows the code as it is."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def house():
    spec = spec_from_file_location("house", ROOT / "tools" / "house.py")
    module = module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


def test_page_and_picture_are_current():
    done = subprocess.run(
        [sys.executable, "tools/house.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stop_that_is_gone_is_noticed(house, monkeypatch):
    monkeypatch.setattr(house, "_WAY", (("rows", "limi.search.engine:walk"),))
    with pytest.raises(LookupError, match="no longer there"):
        house.way()


def test_every_room_is_drawn(house):
    known = {name for row in house.layers() for name in row}
    folders = {path.parent.name for path in (ROOT / "limi").glob("*/__init__.py")}
    assert folders <= known
    _, picture = house.render()
    assert all(f">{name}</text>" in picture for name in known)
