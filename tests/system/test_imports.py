"""Libraries are imported without what they drag along."""

import subprocess
import sys

import pytest

_SKOPS = """
import sys
from limi.system.imports import import_library
skops = import_library("skops.io")
assert "torch" not in sys.modules
assert skops is import_library("skops.io")
import sklearn.linear_model
assert skops.get_untrusted_types(data=skops.dumps(sklearn.linear_model.LogisticRegression())) == []
import json
assert import_library("json") is json
"""


def test_skops_comes_without_torch():
    pytest.importorskip("skops", reason="needs limi[skops]")
    subprocess.run([sys.executable, "-c", _SKOPS], check=True)


def test_torch_can_be_imported_afterwards():
    pytest.importorskip("skops", reason="needs limi[skops]")
    pytest.importorskip("torch", reason="needs limi[torch]")
    told = (
        "from limi.system.imports import import_library; import_library('skops.io'); import torch"
    )
    subprocess.run([sys.executable, "-c", told], check=True)
