"""The licence gate refuses what it must."""

import importlib.util
from importlib import metadata
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location(
    "licences", Path(__file__).parent.parent.parent / "tools" / "licences.py"
)
gate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gate)


@pytest.mark.parametrize(
    "words",
    ["MIT", "BSD License", "Apache-2.0 OR BSD-2-Clause", "PSF-2.0", "ISC License (ISCL)",
     "BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1"],
)  # fmt: skip
def test_permissive_licences_pass(words):
    assert gate.judged("some-package", words) is None


@pytest.mark.parametrize(
    "words",
    ["BUSL-1.1", "Business Source License 1.1", "GPL-3.0-only", "AGPL-3.0", "unknown", "",
     "License :: OSI Approved :: GNU General Public License v3 (GPLv3)", "Proprietary"],
)  # fmt: skip
def test_others_are_refused(words):
    assert "some-package" in gate.judged("some-package", words)


def test_every_extra_but_our_tools_is_looked_at():
    assert {"torch", "explore", "images", "ray", "tables", "docs"} <= set(gate.EXTRAS)
    assert not any(extra.startswith("dev") for extra in gate.EXTRAS)


def test_what_was_read_by_hand_is_still_so():
    """The GPL of docutils is that of one file of Emacs Lisp, which its wheel does not install."""
    pytest.importorskip("docutils", reason="comes with limi[docs]")
    files = {file.name for file in metadata.files("docutils")}
    assert "rst.el" not in files
    assert gate.judged("docutils", gate.licence("docutils")) is None


def test_the_closure_reaches_what_limi_needs_and_not_our_tools():
    names = gate.closure("limi", gate.EXTRAS)
    assert {"numpy", "scikit-learn", "joblib", "jinja2", "markupsafe", "torch"} <= names
    assert not names & {"pytest", "mypy", "ruff", "hypothesis"}
